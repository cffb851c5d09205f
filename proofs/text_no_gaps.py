"""What a report may say where no difference between groups was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.results.finding import Finding
from proofs.text_facts import Facts


def no_gap(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """No difference shown: so it is for each of these rates, and none of them is a finding elsewhere."""
    instruments = {x.rater: x.tests for x in facts.results.measured}
    tests = facts.results.tests if f.rater == "ensemble" else instruments[str(f.rater)]
    own = [t for t in tests if t.editor == f.editor and t.factor == f.factor and t.condition == f.condition]
    none = {t.measure.removeprefix("gap.").removeprefix("measured_") for t in own if t.level == "none" and t.value > 0}
    told = set(re.split(", | and ", m["rates"]))
    if count := re.fullmatch(r"any of (\d+) rates", m["rates"]):
        if int(count[1]) > len(none):
            yield f"{count[1]} rates are told, {len(none)} show nothing"
    elif not {name.replace(" ", "_") for name in told} <= none:
        yield f"not all of {sorted(told)} are among those without a difference, {sorted(none)}"
    bounds = [
        max(abs(c.low), abs(c.high))
        for c in (
            *facts.results.contrasts,
            *(c for x in facts.results.measured for c in x.contrasts),
            *(p for p in facts.results.powered if p.measure.startswith("contrast.")),
        )
        if c.low is not None and c.high is not None and c.editor == f.editor and f.factor in c.group
    ]
    if m["size"] is None and f.high is not None:
        yield "a bound is there and not told"
    elif m["size"] is not None and not any(abs(float(m["size"]) - 100 * b) < 0.06 for b in bounds):
        yield f"no group's interval reaches {m['size']} points"
    if m["labels"] is not None:
        yield from _people_in_bound(m, f, facts)


def _people_in_bound(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The bound that rests on people's ratings, on how many, and what the judges alone would say."""
    for p in facts.results.powered:
        if p.measure.startswith("contrast.") and p.editor == f.editor and f.factor in p.group:
            reach, alone = (
                100 * max(abs(low or 0.0), abs(high or 0.0))
                for low, high in ((p.low, p.high), (p.judge_low, p.judge_high))
            )
            told = (abs(float(m["size"]) - reach) < 0.06, abs(float(m["alone"]) - alone) < 0.06)
            if all(told) and p.labelled == int(m["labels"].replace(",", "")):
                return
    yield f"people rated {m['labels']} edits of no group whose bound this is"

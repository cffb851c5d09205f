"""The claims of the model card and of the paragraph on people."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.core.records import Kind
from evenedit.core.version import __version__
from evenedit.results.results import Agreement
from proofs.text_claims import (
    Check,
    close,
    expect,
    joined,
    noun,
    pattern,
)
from proofs.text_facts import Facts, Share
from proofs.text_methods import MEANS, METHODS, RATE_OF, as_stated, rated_outputs, simulated, was_asked


def card_problems(card: str, facts: Facts) -> list[str]:
    """The card holds every finding in the report's order under its editor, and a table of true numbers."""
    problems: list[str] = []
    editor: str | None = ""
    told: dict[str | None, list[tuple[str, str]]] = {}
    for line in card.splitlines():
        if heading := re.fullmatch(r"### (.+)", line):
            editor = None if heading[1] == "The audit as a whole" else heading[1]
        elif bullet := re.fullmatch(r"- (Clear|Suggestive|Observed|Cannot tell|Caution): (.+)", line):
            told.setdefault(editor, []).append((bullet[1].lower().replace(" ", "_"), bullet[2]))
        elif line.startswith("| ") and not line.startswith("| measure"):
            problems += _row_problems(line, str(editor), facts)
        elif line and not _known_line(line, facts):
            problems.append(f"no claim fits the line of the card: {line}")
    for name in dict.fromkeys([*told, *(f.editor for f in facts.results.findings)]):
        true = [(f.level, f.text) for f in facts.results.findings if f.editor == name]
        if told.get(name, []) != true:
            problems.append(f"the card has other findings of {name} than the report, or another order")
    if set(facts.edits["editor"]) - {e for e in told if e} - set(re.findall(r"^### (.+)$", card, re.M)):
        problems.append("an editor has no section in the card")
    return problems


def _known_line(line: str, facts: Facts) -> bool:
    known = (
        rf"## Demographic consistency of edits \(EvenEdit {re.escape(__version__)}\)",
        r"\|(---\|)+",
        rf"\| measure \| by \| value \| {100 * facts.design.rules.confidence:g}% interval \| n \| missing \|",
        r"SIMULATED data \(simulated-gamma\): no finding about any real editor\.",
    )
    raters = [facts.name(r) for r in facts.raters(Kind.VLM) if facts.calls(r)[1]]
    raters += [facts.name(r) for r in facts.raters(Kind.INSTRUMENT) if was_asked(facts, r)]
    people = len(facts.answered(Kind.HUMAN))
    raters += ["1 person" if people == 1 else f"{people:,} people"] if people else []
    by = f"Observations by {joined(raters)}" if raters else "Observations"
    scope = f"{by} on the edits of this audit, which hold for its prompts, settings and seeds."
    labels = " Labels are the dataset's labels."
    return any(re.fullmatch(form, line) for form in known) or line in (scope, scope + labels)


def _row_problems(line: str, editor: str, facts: Facts) -> Iterator[str]:
    title, by, value, interval, n, missing = line.strip("| ").split(" | ")
    rate = RATE_OF.get(title, "")
    if not rate:
        yield f"no such measure: {line}"
        return
    rows = facts.rows(editor)
    rater = "ensemble" if by in ("judges", "the editor") else by
    true = facts.mean(f"mean.{rate}", rows) if rate in MEANS else facts.rate(rate, rater, rows)
    e = facts.estimate(f"{'mean' if rate in MEANS else 'rate'}.{rate}", editor, rater=rater)
    yield from _numbers(rate, value, n, missing, true, facts, line)
    ends = re.findall(r"[+−]?[\d.]+", interval)
    if (e is None or e.low is None) != (interval == "–"):
        yield f"interval: {line}"
    elif e is not None and e.low is not None and len(ends) == 2:
        scale = 1 if rate == "skin_delta_L" else 100
        for shown, end in zip(ends, (e.low, e.high), strict=True):
            yield from close(shown, None if end is None else scale * end, "points", f"interval of {rate}")


def _numbers(rate: str, value: str, n: str, missing: str, true: Share, facts: Facts, line: str) -> Iterator[str]:
    if facts.design.rules.missing == "neutral-3" and rate in facts.design.rules.rates:
        return
    yield from close(value, true.value, "points" if rate == "skin_delta_L" else "share", f"{rate} — in: {line}")
    yield from expect((n, missing), (f"{true.n:,}", f"{true.missing:,}"), f"n and missing — in: {line}")


def people_rated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many outputs of how many, by arm; judges are checked only where there are some."""
    edited = int((facts.edits["outcome"] == "edited").sum())
    yield from expect((m["n"], m["of"]), (f"{rated_outputs(facts):,}", f"{edited:,}"), "outputs")
    if m["check"] is not None and not facts.answered(Kind.VLM):
        yield "there are no judges to check"
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    rated = facts.edits[(values > 0).any(axis=(0, 2))]
    arms = rated.groupby(["experiment", "condition"]).size()
    words = {"baseline": "", "feature": ", feature prompt", "placebo": ", placebo (other seed)", "swapped": ", pronoun swapped"}  # fmt: skip # noqa: E501
    true = [f"N = {n:,} for {e}{words[c]}" for (e, c), n in arms.items()]
    yield from expect(m["arms"], ", ".join(true), "outputs by arm")


def recruited(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Where people come from, if the study says so."""
    people = len(facts.answered(Kind.HUMAN))
    yield from expect(m["who"], "1 person count" if people == 1 else f"{people:,} people count", "people")
    kind = facts.design.study.get("survey", {}).get("platform", {}).get("kind")
    words = {"prolific": "through Prolific", "panel": "through a panel", "invitation": "by invitation"}
    true = f"people were recruited {words[kind]}" if kind else "where people were recruited is not recorded"
    yield from expect(m["where"], true, "recruitment")


def raters_each(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many people rated each output."""
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    per = [int(n) for n in (values > 0).any(axis=2).sum(axis=0) if n]
    low, high, mean = min(per), max(per), sum(per) / len(per)
    one = "1 person" if low == 1 else f"{low} people"
    true = one if low == high else f"{low} to {high} people ({mean:.2f} on average)"
    yield from expect(m["each"], true, "people for each output")


def sampling(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How the sample was drawn, if the study says so."""
    sampler = facts.design.study.get("survey", {}).get("sampler")
    if m["how"] is None:
        yield from expect(bool(sampler), False, "a sampler is recorded")
        return
    first = {"so that": "balanced", "within strata of": "strata", "by the review priority": "priority"}
    yield from expect(next(v for k, v in first.items() if m["how"].startswith(k)), sampler, "sampler")
    n = facts.design.sampled
    yield from expect(m["n"], f"{n:,} cases were" if n else "Cases were", "cases drawn")


def spread(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Rated outputs by label."""
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    rated = facts.edits[(values > 0).any(axis=(0, 2))]
    parts = []
    for factor in facts.results.factors:
        sizes = [n for code, n in rated[factor.name].value_counts().items() if code]
        if sizes:
            ends = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
            parts.append(
                f"{ends} for each of {len(sizes)} {noun(factor)} labels"
                if len(sizes) > 1
                else f"{ends} for one {noun(factor)} label"
            )
    yield from expect(m["labels"], ", ".join(parts), "rated outputs by label")


def kappas(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Each printed kappa is one of the analysis', its word that of the whole interval."""
    statistic = "fleiss_kappa" if m["who"].startswith("Between people") else "cohen_kappa"
    rows = [a for a in facts.results.agreement if a.statistic == statistic and a.editor is None and not a.group]
    for part in m["list"].split("; "):
        if part.startswith("missing for ") or part == "not computed":
            if part == "not computed" and any(a.raters == "all" and a.condition == "baseline" for a in rows):
                yield "there is such a kappa"
            continue
        told = re.fullmatch(r"(−?[\d.]+) (?:\[(−?[\d.]+), (−?[\d.]+)\]|\(no interval\)) for ([^,]+(?:\([^)]*\))?)(?:, ([\w ]+))?", part)  # fmt: skip # noqa: E501
        if told is None:
            yield f"not read: {part}"
            continue
        if not any(_same(told, a) for a in rows):
            yield f"no such kappa: {part}"
        if told[5]:
            yield from _band(told)


def _same(told: re.Match[str], a: Agreement) -> bool:
    shown = [None if x is None else f"{x:.2f}".replace("-", "−") for x in (a.value, a.low, a.high)]
    ends = shown[1:] if a.low is not None and a.high is not None else [None, None]
    return [told[1], told[2], told[3]] == [shown[0], *ends]


def _band(told: re.Match[str]) -> Iterator[str]:
    tops = {"poor": 0.0, "slight": 0.2, "fair": 0.4, "moderate": 0.6, "substantial": 0.8, "almost perfect": 1.0}
    bottom = {"poor": -9.0, "slight": 0.0, "fair": 0.2, "moderate": 0.4, "substantial": 0.6, "almost perfect": 0.8}
    for number in (told[1], told[2], told[3]):
        value = float(number.replace("−", "-"))
        if not bottom[told[5]] - 0.006 <= value <= tops[told[5]] + 0.006:
            yield f"{value} is not '{told[5]}'"


def reached(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """For how many questions the target is reached."""
    rows = [a for a in facts.results.agreement if a.statistic == "fleiss_kappa" and a.raters == "all"]
    known = [a for a in rows if a.editor is None and not a.group and a.condition == "baseline" and a.value is not None]
    above = [a for a in known if (a.value or 0) >= 0.6]
    yield from expect((m["few"], m["all"]), (str(len(above)), str(len(known))), "questions that reach the target")


def above_target(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The questions whose whole interval lies above the target."""
    rows = [a for a in facts.results.agreement if a.statistic == "cohen_kappa" and a.editor is None and not a.group]
    high = [a for a in rows if a.raters == "all" and a.low is not None and a.low > 0.6]
    told = [] if m["which"] == "none of these" else m["which"].split(", ")
    if len(told) > len(high):
        yield f"{len(told)} are told, {len(high)} lie above"


def not_compared(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Questions without a comparison of judges and people."""
    names = {"edit quality": "edit_success.label", "gender drift": "gender_drift.label", "race drift": "race_drift.label", "preference": "preference", "stereotype": "stereotype"}  # fmt: skip # noqa: E501
    there = {a.axis for a in facts.results.agreement if a.statistic == "cohen_kappa" and a.editor is None and a.raters == "all" and not a.group}  # fmt: skip # noqa: E501
    yield from expect(m["which"], ", ".join(n for n, axis in names.items() if axis not in there), "not compared")


PEOPLE: tuple[tuple[re.Pattern[str], Check], ...] = (
    (pattern(r"4\.3 Human Evaluation|Sampling\.|Agreement\."), as_stated),
    (METHODS[0][0], simulated),
    (
        pattern(
            r"(?P<check>To check the judges, people)?(?:People)? rated "
            r"(?P<n>[\d,]+) of (?P<of>[\d,]+) outputs \((?P<arms>.+)\)\."
        ),
        people_rated,
    ),
    (pattern(r"The answers of (?P<who>[\d,]+ (?:person|people) count); (?P<where>.+)\."), recruited),
    (pattern(r"Each of these outputs was rated by (?P<each>.+)\."), raters_each),
    (
        pattern(
            r"(?:How the sample was drawn is not recorded in the study|(?P<n>[\d,]+ cases were|Cases were) drawn "
            r"(?P<how>.+))\."
        ),
        sampling,
    ),
    (pattern(r"Rated outputs by label of the portrait: (?P<labels>.+)\."), spread),
    (pattern(r"(?P<labels>)Labels of the portraits are missing\."), spread),
    (
        pattern(
            r"(?P<who>Between people, Fleiss' κ was|Between the judges' scores and "
            r"people, Cohen's κ was) (?P<list>.+)\."
        ),
        kappas,
    ),
    (pattern(r"The target of 0\.6 was reached for (?P<few>\d+) of (?P<all>\d+) questions(?: \(.+\))?\."), reached),
    (pattern(r"Not compared, since judges, people or both gave no such answers: (?P<which>.+)\."), not_compared),
    (pattern(r"The whole interval lies above 0\.6 for (?P<which>.+)\."), above_target),
    (pattern(r"Brackets are (?P<level>[\d.]+%) intervals, faces drawn; words are Landis and Koch's .+\."), as_stated),
)

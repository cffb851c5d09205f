"""What the best design of a budget can show, with the study's own design and the paper's beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenedit.stats.power.design import Assumptions, Design, PlannedTest, even_margin, planned_tests

LARGEST = 0.6
"""A larger effect is not given as a number."""
LABEL_COLUMNS = ("labels", "by people")


@dataclass(frozen=True, slots=True)
class DesignRow:
    """A design, its cost, and what it shows."""

    name: str
    design: Design
    usd: float
    """NaN where a price is not known."""
    tests: Mapping[str, PlannedTest | None]
    """By question; None where there is no test."""
    even: float | None
    """The margin within which even groups are shown to be even."""

    @classmethod
    def of(cls, name: str, design: Design, usd: float, a: Assumptions) -> DesignRow:
        """Compute what a design shows."""
        tests = planned_tests(design, a)
        return cls(name, design, usd, tests, even_margin(design, a) if tests["contrast"] else None)

    @property
    def cells(self) -> dict[str, str]:
        """Its row of the table."""
        d = self.design
        return {
            "design": self.name,
            "faces × prompts × seeds": f"{sum(d.faces):,} × {d.prompts} × {d.seeds}",
            "edits": f"{d.edits:,}",
            "labels": f"{d.labels:,}",
            "US$": "not known" if math.isnan(self.usd) else f"{self.usd:,.2f}",
            **{name: _points(None if test is None else test.detectable) for name, test in self.tests.items()},
            "even within": _points(self.even),
        }


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """The designs beside one another."""

    rows: tuple[DesignRow, ...]
    assumptions: Assumptions
    budget: str
    """In words."""
    tests: str
    gap: float | None = None

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(plan: PowerPlan) -> Iterator[str]:
    """Yield terminal lines: what is assumed, a table of the designs, and a sentence on each."""
    a = plan.assumptions
    yield f"power: the smallest effects that 80 of 100 studies find; budget: {plan.budget}"
    rate, shift = _origin(a.rate_of, "a rate of 20 to 30 %"), _origin(a.shift_of, "a shift with 20 % on either side")
    yield f"variances: {rate}; {shift}"
    yield f"tests: {plan.tests}"
    labelled = any(row.design.labels for row in plan.rows)
    if labelled:
        origin = "measured in this study" if a.labelled else "ASSUMED"
        yield f"correlation of judges and people on single edits: {a.correlation:.2f}, {origin}"
    table = [
        {name: text for name, text in row.cells.items() if labelled or name not in LABEL_COLUMNS} for row in plan.rows
    ]
    widths = {name: max(len(name), *(len(cells[name]) for cells in table)) + 2 for name in table[0]}
    yield "\n" + "".join(f"{name:>{width}}" for name, width in widths.items())
    yield from ("".join(f"{cells[name]:>{width}}" for name, width in widths.items()) for cells in table)
    yield ""
    yield from (f"{row.name}: {sentence(row, plan.gap)}" for row in plan.rows)


def _origin(measure: str, assumed: str) -> str:
    return f"{measure} in this study's results" if measure else f"ASSUMED, {assumed}"


def _points(effect: float | None) -> str:
    if effect is None:
        return "–"
    return f"over {100 * LARGEST:.0f} pp" if effect > LARGEST else f"{100 * effect:.1f} pp"


def sentence(row: DesignRow, gap: float | None) -> str:
    """Return what a design can show."""
    contrast, people, cells = row.tests["contrast"], row.tests["by people"], row.cells
    if contrast is None:
        return "no test has a group of fewer than three portraits, or a single prompt."
    text = (
        f"80 of 100 studies find a difference of {cells['contrast']} between half of the groups and the others, one "
        f"group that is {cells['one group']} from the others, and a shift of everybody of {cells['shift']}; groups "
        f"that are even are shown to be so within {cells['even within']}"
    )
    if row.design.labels:
        text += f"; {cells['labels']} edits rated by people "
        text += f"show a difference of {cells['by people']}" if people else "are too few for a finding"
    if gap is not None:
        shares = [contrast.power(gap), *([people.power(gap)] if people else [])]
        text += f". A difference of {100 * gap:g} pp is found in {', by people in '.join(f'{s:.0%}' for s in shares)}"
    return text + "."

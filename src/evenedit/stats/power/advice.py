"""What the best design of a budget can show, with the study's own design and the paper's beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenedit.stats.power.design import Assumptions, Design, PlannedTest

LARGEST = 0.6
"""A larger effect is not given as a number."""


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
    yield f"power: the smallest effects that 80 of 100 studies find; best for the contrast with {plan.budget}"
    known = {"a rate of 20 to 30 %": a.rate_of, "a shift with 20 % on either side": a.shift_of}
    origins = [f"{of} in this study's results" if of else f"ASSUMED, {usual}" for usual, of in known.items()]
    yield f"variances: {'; '.join(origins)}"
    yield f"tests: {plan.tests}"
    labelled = any(row.design.labels for row in plan.rows)
    if labelled:
        origin = "measured in this study" if a.labelled else "ASSUMED"
        yield f"correlation of judges and people on single edits: {a.correlation:.2f}, {origin}"
    columns = [name for name in plan.rows[0].cells if labelled or name not in ("labels", "by people")]
    table = [columns, *([row.cells[name] for name in columns] for row in plan.rows)]
    widths = [2 + max(map(len, column)) for column in zip(*table, strict=True)]
    yield ""
    yield from ("".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) for cells in table)
    yield ""
    yield from (f"{row.name}: {sentence(row, plan.gap)}" for row in plan.rows)


def _points(effect: float | None) -> str:
    number = "–" if effect is None else f"{100 * effect:.1f} pp"
    return number if effect is None or effect <= LARGEST else f"over {100 * LARGEST:.0f} pp"


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
        shares = ", as people rate it in ".join(f"{100 * t.power(gap):.0f} %" for t in (contrast, people) if t)
        text += f". A difference of {100 * gap:g} pp is found in {shares} of studies"
    return text + "."

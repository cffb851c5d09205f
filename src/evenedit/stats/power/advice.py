"""What the best design of a budget can show, with the study's own design and the paper's beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evenedit.stats.power.design import (
    Assumptions,
    Design,
    PlannedTest,
    contrast_test,
    even_margin,
    one_group_test,
    people_test,
    shift_test,
)

LARGEST = 0.6
"""A larger effect is not given as a number."""


@dataclass(frozen=True, slots=True)
class DesignRow:
    """A design, its cost, and the smallest effects that it shows; None where it has no test."""

    name: str
    design: Design
    usd: float
    """NaN where a price is not known."""
    contrast: PlannedTest | None
    """Of half of the groups against the others, by judges."""
    people: PlannedTest | None
    """Of the same as people rate it."""
    one_group: PlannedTest | None
    shift: PlannedTest | None
    even: float | None

    @classmethod
    def of(cls, name: str, design: Design, usd: float, a: Assumptions) -> DesignRow:
        """Compute what a design shows."""
        tests = (contrast_test(design, a), people_test(design, a), one_group_test(design, a), shift_test(design, a))
        return cls(name, design, usd, *tests, even_margin(design, a))


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
        origin = "measured in this study" if a.labelled else "assumed"
        yield f"correlation of judges and people on single edits: {a.correlation:.2f}, {origin}"
    cells = [_cells(row) for row in plan.rows]
    shown = [name for name in cells[0] if labelled or name not in ("labels", "by people")]
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) + 2 for name in shown}
    yield "\n" + "".join(f"{name:>{widths[name]}}" for name in shown)
    yield from ("".join(f"{row[name]:>{widths[name]}}" for name in shown) for row in cells)
    yield ""
    yield from (f"{row.name}: {sentence(row, plan.gap)}" for row in plan.rows)


def _origin(measure: str, assumed: str) -> str:
    return f"{measure} in this study's results" if measure else f"ASSUMED, {assumed}"


def _cells(row: DesignRow) -> dict[str, str]:
    """Return the columns of a design."""
    d = row.design
    return {
        "design": row.name,
        "faces × prompts × seeds": f"{sum(d.faces):,} × {d.prompts} × {d.seeds}",
        "edits": f"{d.edits:,}",
        "labels": f"{d.labels:,}",
        "US$": "not known" if math.isnan(row.usd) else f"{row.usd:,.2f}",
        "contrast": _points(row.contrast),
        "by people": _points(row.people),
        "one group": _points(row.one_group),
        "shift": _points(row.shift),
        "even within": "–" if row.even is None or row.even > LARGEST else f"±{100 * row.even:.0f} pp",
    }


def _points(test: PlannedTest | None) -> str:
    if test is None:
        return "–"
    return f"over {100 * LARGEST:.0f} pp" if test.detectable > LARGEST else f"{100 * test.detectable:.1f} pp"


def sentence(row: DesignRow, gap: float | None) -> str:
    """Return what a design can show."""
    if row.contrast is None or row.one_group is None or row.shift is None:
        return "nothing can be tested with fewer than three portraits in a group, or with one prompt."
    text = (
        f"80 of 100 studies find a difference of {_points(row.contrast)} between half of the groups and the others, "
        f"one group that lies {_points(row.one_group)} from the others, and a shift of everybody of "
        f"{_points(row.shift)}"
    )
    if row.even is not None and row.even <= LARGEST:
        text += f"; groups that are even are shown to be so within ±{100 * row.even:.0f} pp"
    if row.people is not None:
        text += f"; with {row.design.labels:,} labels, the difference as people rate it from {_points(row.people)}"
    elif row.design.labels:
        text += f"; {row.design.labels:,} labels are too few for a finding by people"
    if gap is not None:
        found = [f"{row.contrast.power(gap):.0%}"]
        if row.people is not None:
            found.append(f"{row.people.power(gap):.0%} as people rate it")
        text += f". It finds a difference of {100 * gap:g} pp with a chance of {', '.join(found)}"
    return text + "."

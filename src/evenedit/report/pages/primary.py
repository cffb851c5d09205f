"""The first block of a report: the declared tests, beside what the study could have shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evenedit.report.render.index import Index, level_name
from evenedit.report.render.table import format_number
from evenedit.results.finding import ALPHA
from evenedit.results.primary import HEADINGS, DeclaredTest, alpha_of_others

LARGEST = 0.6
"""A larger difference of shares is not given as a number."""
WIDTH = 240
"""Of the strip, in pixels."""


@dataclass(frozen=True, slots=True)
class ShownTest:
    """A declared test as the page shows it."""

    test: DeclaredTest
    badge: str
    could: str
    """The smallest effect that 80 of 100 studies like this one find."""
    showed: str
    p: str
    strip: dict[str, float]
    """Places on the strip: what could not be shown, the interval, the estimate; empty without a test."""


def primary_block(index: Index) -> dict[str, Any] | None:
    """Return heading, explanation and tests of the block; None where no test is declared."""
    tests = index.results.primary
    if not tests:
        return None
    plan = index.results.preregistration
    changes = [c for c in plan.changes if c.what.partition(".")[0] == "primary"] if plan else []
    return {
        "heading": HEADINGS[tests[0].standing],
        "words": " ".join(_words(tests, plan is not None and bool(plan.changes))),
        "changes": changes,
        "tests": [_row(t) for t in tests],
    }


def _words(tests: tuple[DeclaredTest, ...], changed: bool) -> Iterator[str]:
    """Yield when the tests were declared, and which chance of a false alarm they share."""
    first = tests[0]
    if first.standing == "confirmatory":
        yield "The tests were sealed before the first edit, and the plan was kept."
    elif first.standing == "unsealed":
        yield "The tests were in the study file when the first run began; they were not sealed."
    elif first.standing == "stated":
        yield "The tests were passed with the table of ratings."
    elif first.alpha < ALPHA:
        yield "The tests were sealed before the first edit, but other parts of the plan were changed later."
    else:
        yield "The tests were declared or changed after the first edit, so they confirm nothing."
    if first.alpha < ALPHA:
        others = f"{alpha_of_others(tests):g} for all other tests of this report"
        yield f"Familywise error: {first.alpha:g} for all declared tests, {others}."
    else:
        yield f"They share a familywise error of {ALPHA:g} with all other tests of this report."


def _row(t: DeclaredTest) -> ShownTest:
    could = "–" if t.detectable is None else t.amount(t.detectable).removeprefix("+")
    if t.unit == "points" and t.detectable is not None and t.detectable > LARGEST:
        could = f"over {t.amount(LARGEST)}"
    badge = "Not shown" if t.level == "none" else level_name(t.level, t.evidence).partition(":")[0].capitalize()
    hidden = t.value is None or t.evidence == "none"
    showed = "–" if hidden or t.value is None else t.amount(t.value)
    p = "" if t.p_adjusted is None else format_number(t.p_adjusted, "p")
    return ShownTest(
        t, badge, could, showed, p if p.startswith("<") or not p else f"= {p}", {} if hidden else _strip(t)
    )


def _strip(t: DeclaredTest) -> dict[str, float]:
    """Return the places of the strip, whose middle is the value that was tested against."""
    ends = [x for x in (t.value, t.low, t.high) if x is not None]
    if t.detectable is None or len(ends) < 3:
        return {}
    reach = 1.1 * max(t.detectable, *(abs(x - t.limit) for x in ends))
    places = [WIDTH / 2 * (1 + (x - t.limit) / reach) for x in ends]
    half = WIDTH / 2 * t.detectable / reach
    return dict(zip(("value", "low", "high"), places, strict=True)) | {"half": half, "width": WIDTH}

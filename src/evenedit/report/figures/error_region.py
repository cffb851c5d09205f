"""Which unequal errors of the judges would explain a gap away, drawn where nobody checked the judges on these edits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from evenedit.report.render.index import Index
from evenedit.report.render.table import format_number
from evenedit.results.finding import ExplainedGap, Finding

SIDE = 240.0
"""Width and height of the plotted square."""
LEFT, TOP, RIGHT, BOTTOM = 64.0, 14.0, 20.0, 58.0
STEPS = 60
"""Parts of the line."""
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class ErrorRegion:
    """The figure with its caption."""

    svg: str
    caption: str


def error_region(index: Index, f: Finding) -> ErrorRegion | None:
    """Draw the region of a clear gap; None for other findings and where people checked the judges."""
    e = f.explained
    if f.level != "clear" or f.factor is None or e is None or not e.misses:
        return None
    high, low = (index.group_name({f.factor: code}) for code in (e.highest, e.lowest))
    labels = "" if e.labels is None else f" About {e.labels:,} edits of each group, rated by people, would settle it."
    caption = (
        "The dot: judges that never err, so that the gap is the editor's. In the shaded region they err so unequally "
        f"that {high} and {low} have the same true rate or the reverse order: from "
        f"{format_number(e.false_calls, 'share')} of the unaffected edits of {high} wrongly called to "
        f"{format_number(e.misses, 'share')} of the affected edits of {low} missed, and what lies between.{labels}"
    )
    return ErrorRegion(_svg(e, high, low, caption), caption)


def _svg(e: ExplainedGap, high: str, low: str, alt: str) -> str:
    curve_points = list(_boundary(e))
    curve = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in curve_points)
    corners = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in ((1, 0), (1, 1), (0, 1)))
    width, height = LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM
    parts = [
        f'<svg class="region" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(alt)}">',
        f'<polygon class="away" points="{curve} {corners}"/>',
        f'<rect class="frame" x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}"/>',
        *_ticks(),
        f'<polyline class="edge" points="{curve}"/>',
        f'<circle class="equal" cx="{_x(0):g}" cy="{_y(0):g}" r="4"/>',
        _label(f"translate({_x(0.5):g} {height - 22:g})", f"unaffected edits of {high} wrongly called"),
        _label(f"translate({_x(0.5):g} {height - 6:g})", f"(of {low}: none)"),
        _label(f"translate(12 {_y(0.5):g}) rotate(-90)", f"affected edits of {low} missed"),
        _label(f"translate(27 {_y(0.5):g}) rotate(-90)", f"(of {high}: none)"),
        "</svg>",
    ]
    return "".join(parts)


def _boundary(e: ExplainedGap) -> Iterator[tuple[float, float]]:
    """Pairs of both errors under which the true rates are equal, close enough together for a smooth line."""
    high = e.false_calls / (e.misses + e.false_calls * (1 - e.misses))
    low = high * (1 - e.misses)
    for step in range(STEPS + 1):
        called = e.false_calls * step / STEPS
        true = (high - called) / (1 - called) if called < 1 else low
        yield called, max(0.0, 1 - low / true) if true > 0 else 0.0


def _label(place: str, text: str) -> str:
    return f'<text class="axis" transform="{place}" text-anchor="middle">{escape(text)}</text>'


def _ticks() -> Iterator[str]:
    for at in TICKS:
        yield f'<text x="{_x(at):g}" y="{_y(0) + 16:g}" text-anchor="middle">{at:.0%}</text>'
        yield f'<text x="{LEFT - 6:g}" y="{_y(at) + 4:g}" text-anchor="end">{at:.0%}</text>'


def _x(share: float) -> float:
    return LEFT + share * SIDE


def _y(share: float) -> float:
    return TOP + (1 - share) * SIDE

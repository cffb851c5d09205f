"""The specification curve: one gap of each editor under every specification, sorted, with the choices below."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.ticker import MaxNLocator

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.report.figures.base import BLUE, FAINT, HOLLOW, INK, VERMILLION, Drawing, drawing, new_figure, query_of
from evenedit.report.figures.inline import tip
from evenedit.report.render.index import ALPHA, Index
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import format_number
from evenedit.results.results import GapTest, Multiverse, Specification

CHOICES = ("threshold", "ensemble", "missing", "exclusion")
MOST = 4
"""Editors in the figure; the table has all."""
LETTERS = 92
"""Letters that fit into one line above all panels."""


def specification_curve(index: Index) -> Drawing | None:
    """Draw for every editor its clearest gap under every specification."""
    multiverses = clearest(index)[:MOST]
    if not multiverses:
        return None
    lines = _lines(index, multiverses)
    with new_figure(8.6, 2.6 + 0.19 * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(
            2, len(multiverses), sharex="col", sharey="row", squeeze=False, height_ratios=[2.0, 0.19 * len(lines)]
        )
        for column, m in enumerate(multiverses):
            ordered = sorted((s for s in m.specifications if s.value is not None), key=_value)
            _curve(index, axes[0][column], ordered, m, len(multiverses))
            _dots(axes[1][column], ordered, lines)
        axes[0][0].set_ylabel("percentage points")
        axes[1][0].set_yticks(range(len(lines)), [label for _, _, label in lines], fontsize=8)
        axes[1][0].set_ylim(len(lines) - 0.4, -0.6)
        axes[0][0].plot([], [], "o", color=BLUE, markersize=4, label="p < 0.05")
        axes[0][0].plot([], [], "o", color=BLUE, markersize=4, markerfacecolor=HOLLOW, label="p ≥ 0.05")
        axes[0][0].plot([], [], "D", color=VERMILLION, markersize=5, markerfacecolor="none", label="this report")
        figure.legend(loc="outside lower right", ncols=3, frameon=False)
        alt = " ".join(f"{m.editor}: {sentence(index, m)}" for m in multiverses)
        return drawing(figure, index, "figure_multiverse", sentences=alt)


def clearest(index: Index) -> list[Multiverse]:
    """Return each editor's gap with the smallest p, the largest among equals; none if no group differs."""
    tests = {(t.editor, t.measure, t.factor): t for t in index.results.tests if t.condition == ConditionKind.BASELINE}
    best: dict[str, Multiverse] = {}
    for m in sorted(
        (m for m in index.results.multiverse if (m.editor, m.measure, m.factor) in tests and m.highest != m.lowest),
        key=lambda m: _rank(tests[m.editor, m.measure, m.factor]),
    ):
        best.setdefault(m.editor, m)
    return [best[e] for e in index.editors("diagnosis") if e in best]


def _rank(test: GapTest) -> tuple[float, float]:
    return 2.0 if test.p is None else test.p, -test.value


def sentence(index: Index, m: Multiverse) -> str:
    """Return in words how many specifications keep the gap."""
    count, values = len(m.specifications), [s.value for s in m.specifications if s.value is not None]
    low, high = (format_number(pick(values), "points") for pick in (min, max)) if values else ("–", "–")
    highest, lowest = (index.group_name({m.factor: code}) for code in (m.highest, m.lowest))
    ends = [f"{highest} stays above {lowest} in {m.same_sign}"]
    ends += [f"both are equal in {alike}"] if (alike := sum(v == 0 for v in values)) else []
    ends += [f"the order is reversed in {turned}"] if (turned := sum(v < 0 for v in values)) else []
    ends += [f"a group has no score in {none}"] if (none := count - len(values)) else []
    return (
        f"{index.name(Measure(m.measure).name)} by {index.factor_noun(m.factor)} under {count} readings of the same "
        "scores: "
        f"{', '.join(ends)}; p < 0.05 in the same order in {m.significant(ALPHA)} (from {low} to {high})."
    )


def _value(s: Specification) -> float:
    return s.value or 0.0


def _lines(index: Index, multiverses: list[Multiverse]) -> list[tuple[str, str, str]]:
    """Return the choices that occur, each as kind, value and label."""
    labels: dict[tuple[str, str], str] = {}
    for choice in CHOICES:
        values = {getattr(s, choice) for m in multiverses for s in m.specifications}
        for value in sorted(values):
            words = f"exclude {value}" if choice == "exclusion" and value != "none" else index.name(value)
            words = {"none": "exclude nothing"}.get(value, words) if choice == "exclusion" else words
            labels[choice, value] = f"ensemble: {value}" if choice == "ensemble" else words
    return [(choice, value, label) for (choice, value), label in labels.items()]


def _curve(index: Index, ax: Any, ordered: list[Specification], m: Multiverse, panels: int) -> None:
    ax.axhline(0, color=FAINT, linewidth=1)
    cases = Selection.of_gap(m)
    gid = tip(f"{m.editor}: {sentence(index, m)}", query_of(index, cases))
    for filled in (True, False):
        at = [x for x, s in enumerate(ordered) if (s.p < ALPHA) == filled]
        values = [100 * _value(ordered[x]) for x in at]
        face = BLUE if filled else HOLLOW
        ax.plot(at, values, "o", markersize=3.2, color=BLUE, markeredgewidth=0.8, markerfacecolor=face, gid=gid)
    default = [x for x, s in enumerate(ordered) if s.is_default]
    ax.plot(
        default,
        [100 * _value(ordered[x]) for x in default],
        "D",
        markersize=6.5,
        color=VERMILLION,
        markerfacecolor="none",
    )
    highest, lowest = (index.level_name(m.factor, code) for code in (m.highest, m.lowest))
    title = (
        m.editor,
        f"{index.name(Measure(m.measure).name)} by {index.factor_noun(m.factor)}:",
        f"{highest} − {lowest}",
    )
    lines = [line for part in title for line in textwrap.wrap(part, LETTERS // panels)]
    ax.set_title("\n".join(lines), fontsize=8.5)
    ax.grid(axis="y")
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.set_xticks([])


def _dots(ax: Any, ordered: list[Specification], lines: list[tuple[str, str, str]]) -> None:
    for y, (choice, value, _) in enumerate(lines):
        at = [x for x, s in enumerate(ordered) if getattr(s, choice) == value]
        ax.plot(at, [y] * len(at), "|", markersize=5, color=INK, markeredgewidth=0.9)
        if y and lines[y - 1][0] != choice:
            ax.axhline(y - 0.5, color=FAINT, linewidth=0.6)
    ax.spines["bottom"].set_visible(False)
    ax.set_xticks([])

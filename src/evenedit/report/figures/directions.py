"""The figure of the levels that portraits and edits are seen as."""

from __future__ import annotations

from itertools import groupby

from matplotlib.patches import Rectangle

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.figures.base import BLUE, INK, Drawing, drawing, new_figure
from evenedit.report.render.index import Index


def transitions(index: Index) -> Drawing | None:
    """Draw a heat map of each factor and editor: the level before by the level after, with counts."""
    counted = [
        d
        for d in index.results.directions
        if d.condition == ConditionKind.BASELINE and Measure(d.measure).kind == MeasureKind.TRANSITION
    ]
    panels = [(*place, list(rows)) for place, rows in groupby(counted, key=lambda d: (d.factor, d.editor))]
    if not panels:
        return None
    sizes = [1.3 + 0.3 * len(index.factor(factor).codes) for factor, *_ in panels]
    with new_figure(8.6, sum(sizes), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=sizes)[:, 0]
        for ax, (factor, editor, rows) in zip(axes, panels, strict=True):
            codes = [c for c in index.factor(factor).codes if c in {d.before for d in rows} | {d.after for d in rows}]
            names = [index.level_name(factor, code) for code in codes]
            for d in rows:
                x, y, strength = codes.index(d.after), codes.index(d.before), d.value
                ax.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=BLUE, alpha=strength, linewidth=0))
                color = "white" if strength > 0.55 else INK
                ax.text(x, y, f"{d.total:,}", ha="center", va="center", fontsize=8.5, color=color)
            ax.set_title(f"{index.factor(factor).title}: {index.name(editor)}")
            ax.set_xticks(range(len(codes)), names)
            ax.set_yticks(range(len(codes)), names)
            ax.set_xlim(-0.5, len(codes) - 0.5)
            ax.set_ylim(len(codes) - 0.5, -0.5)
            ax.set(xlabel="edit seen as", ylabel="portrait seen as")
        moved = sum(d.total for d in counted if d.before != d.after)
        total = sum(d.total for d in counted)
        return drawing(figure, index, "figure_transitions", panels=len(panels), moved=moved, total=total)

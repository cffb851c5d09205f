"""The figures of the mitigation and stereotype experiments."""

from __future__ import annotations

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.report.figures.base import (
    BLUE,
    FAINT,
    GREEN,
    VERMILLION,
    Drawing,
    dashed,
    dot,
    drawing,
    in_percent,
    name_rows,
    new_figure,
    tip_of,
)
from evenedit.report.render.index import Index, interval_excludes
from evenedit.report.render.table import format_number
from evenedit.report.tables.experiments import CODED, occupations

ARMS = ((ConditionKind.FEATURE, BLUE), (ConditionKind.PLACEBO, FAINT))
PRONOUNS = (ConditionKind.BASELINE, ConditionKind.SWAPPED)


def mitigation_arms(index: Index) -> Drawing | None:
    """Draw the change of race and skin-tone scores with the feature prompt and with the placebo."""
    levels = index.main_levels("mitigation")
    lines = [
        e
        for e in index.lines("mitigation")
        if index.find(Measure.delta("race_drift"), e, experiment="mitigation", condition=ConditionKind.FEATURE)
    ]
    if not lines or not levels:
        return None
    arms = [(arm, colour) for arm, colour in ARMS if arm in index.conditions("mitigation")]
    alt = []
    rows = ("", *levels)
    with new_figure(8.6, 0.9 + 0.27 * (len(rows) + 1.9) * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(lines), 2, sharex="col", sharey=True, squeeze=False)
        for row, editor in enumerate(lines):
            for column, axis in enumerate(("race_drift", "skin_tone")):
                ax = axes[row][column]
                dashed(ax, 0)
                for offset, (arm, colour) in enumerate(arms):
                    for y, code in enumerate(rows):
                        group = index.main_group(code)
                        e = index.find(Measure.delta(axis), editor, group, experiment="mitigation", condition=arm)
                        if e is None or e.value is None:
                            continue
                        who = f"{index.name(editor)}, {index.group_name(group)}, {index.name(arm).lower()}"
                        tip = tip_of(index, who, e, "change")
                        filled = interval_excludes(e.low, e.high)
                        dot(ax, y + 0.24 * offset, e, colour, filled=filled, tip=tip)
                        if not code:
                            alt.append(
                                f"{index.name(editor)}, {index.name(arm)}: {index.name(axis)} "
                                f"{format_number(e.value, 'change')}."
                            )
                ax.set_title(
                    f"({'ab'[column]}) Δ {index.name(axis).lower()}\n{index.name(editor)}"
                    if row == 0
                    else index.name(editor)
                )
                name_rows(ax, [index.group_name(index.main_group(code)) for code in rows])
        for arm, colour in arms:
            axes[-1][0].plot([], [], "o-", color=colour, label=index.name(arm))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return drawing(figure, index, "figure_mitigation", values=" ".join(alt))


def stereotype_shares(index: Index) -> Drawing | None:
    """Draw the share that followed the stereotype, by editor and coded gender, with the swapped pronoun."""
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    lines = [e for e in index.lines("stereotype") if index.find(Measure.rate("followed"), e, experiment="stereotype")]
    if not lines:
        return None
    alt = []
    conditions = [c for c in PRONOUNS if c in index.conditions("stereotype")]
    colours = {ConditionKind.BASELINE: VERMILLION, ConditionKind.SWAPPED: GREEN}
    labels = [(e, g) for e in lines for g in groups]
    with new_figure(8.6, 1.1 + 0.3 * len(labels), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        dashed(ax, 0.5)
        for y, (editor, group) in enumerate(labels):
            for offset, condition in enumerate(conditions):
                e = index.find(Measure.rate("followed"), editor, group, experiment="stereotype", condition=condition)
                if e is None or e.value is None:
                    continue
                filled = interval_excludes(e.low, e.high, 0.5)
                tip = tip_of(index, f"{index.name(editor)}, {index.name(condition).lower()}", e, "share")
                dot(ax, y + 0.24 * offset, e, colours[condition], filled=filled, tip=tip)
                if not group:
                    alt.append(f"{index.name(editor)}, {index.name(condition)}: {format_number(e.value, 'share')}.")
        name_rows(ax, [f"{index.name(editor)} · {occupations(group)}" for editor, group in labels])
        ax.set_xlim(-0.02, 1.02)
        in_percent(ax)
        for condition in conditions:
            ax.plot([], [], "o-", color=colours[condition], label=index.name(condition))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return drawing(figure, index, "figure_stereotype", values=" ".join(alt))

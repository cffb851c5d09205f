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
    dot,
    new_figure,
    tip_of,
)
from evenedit.report.render.index import Index, factor_noun, interval_excludes
from evenedit.report.render.table import format_number
from evenedit.report.tables.experiments import occupations
from evenedit.report.tables.main import CODED

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
                ax.axvline(0, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
                for offset, (arm, colour) in enumerate(arms):
                    for y, code in enumerate(rows):
                        group = index.main_group(code)
                        e = index.find(Measure.delta(axis), editor, group, experiment="mitigation", condition=arm)
                        if e is None or e.value is None:
                            continue
                        who = f"{index.name(editor)}, {index.group_name(group)}, {index.name(arm).lower()}"
                        tip = tip_of(index, who, e, "change")
                        filled = interval_excludes(e.low, e.high)
                        dot(ax, y + 0.24 * offset, e.value, e.low, e.high, colour, filled=filled, tip=tip)
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
                ax.set_yticks(range(len(rows)), [index.group_name(index.main_group(code)) for code in rows])
                ax.set_ylim(len(rows) - 0.4, -0.6)
                ax.grid(axis="x")
        for arm, colour in arms:
            axes[-1][0].plot([], [], "o-", color=colour, label=index.name(arm))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return Drawing(
            figure,
            "figure_mitigation",
            "What the feature prompt changes",
            "Mean change of the score against the baseline of the same editor, source, prompt and seed, by "
            f"{factor_noun(index.main)} label, with {index.level} intervals. Filled: the interval excludes no change. "
            "A change that the placebo shows too is not an effect of the feature prompt.",
            f"Dots with intervals of the change by {factor_noun(index.main)} label. " + " ".join(alt),
        )


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
        ax.axvline(0.5, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        for y, (editor, group) in enumerate(labels):
            for offset, condition in enumerate(conditions):
                e = index.find(Measure.rate("followed"), editor, group, experiment="stereotype", condition=condition)
                if e is None or e.value is None:
                    continue
                dot(
                    ax,
                    y + 0.24 * offset,
                    e.value,
                    e.low,
                    e.high,
                    colours[condition],
                    filled=interval_excludes(e.low, e.high, 0.5),
                    tip=tip_of(index, f"{index.name(editor)}, {index.name(condition).lower()}", e, "share"),
                )
                if not group:
                    alt.append(f"{index.name(editor)}, {index.name(condition)}: {format_number(e.value, 'share')}.")
        ax.set_yticks(
            range(len(labels)),
            [f"{index.name(editor)} · {occupations(group)}" for editor, group in labels],
        )
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.grid(axis="x")
        ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        for condition in conditions:
            ax.plot([], [], "o-", color=colours[condition], label=index.name(condition))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return Drawing(
            figure,
            "figure_stereotype",
            "Share that followed the stereotype",
            f"Share of clear verdicts that followed the stereotype, with {index.level} intervals. Dashed: 50%, no "
            "preference. Filled: the interval excludes it.",
            "Share that followed the stereotype. " + " ".join(alt),
        )

"""Tables and figures of the mitigation and stereotype experiments: changes by arm, preferences, roles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evenedit.core.records import Condition
from evenedit.protocol.measures import Measure
from evenedit.report.figures.plots import BLUE, FAINT, GREEN, VERMILLION, FigureFile, dot, picture, sheet, tip_of
from evenedit.report.render.index import POOLED, Index, excludes, name, noun
from evenedit.report.render.table import Cell, Column, Number, Table, format_number, table_of, text
from evenedit.report.tables.main import CODED, STEREOTYPE_ARMS

ARMS = ((Condition.FEATURE, BLUE), (Condition.PLACEBO, FAINT))
PRONOUNS = (Condition.BASELINE, Condition.SWAPPED)
PREFERENCES = {
    "prefers_mitigated": "Prefer mitigated",
    "prefers_mitigated_of_all": "of all answers",
    "prefers_same": "Same",
    "preference_unclear": "Unclear",
}
ROLES = {
    "role_male": "Male portrait",
    "role_female": "Female portrait",
    "role_unclear": "Unclear",
    "role_followed": "To the coded gender",
    "role_contradicts_verdict": "Contradicts the verdict",
}
EFFECTS = {
    "pronoun": "Pronoun: he minus she",
    "order": "Order: male portrait first minus second",
    "coding": "Occupation: male-coded minus female-coded",
}
STATUS = {
    "status_male": "Higher status: male portrait",
    "status_female": "Higher status: female portrait",
    "status_unclear": "Higher status: unclear",
}


def preferences(index: Index) -> Table | None:
    """Shares of answers to which output keeps the identity better, the mitigated one or its baseline."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for arm in (a for a, _ in ARMS if a in index.conditions("mitigation")):
            for code in ("", *index.main_levels("mitigation")):
                find = partial(index.find, editor=editor, group=index.main_group(code), experiment="mitigation")
                numbers = [Number.of(find(Measure.rate(rate), condition=arm), "share") for rate in PREFERENCES]
                answers = numbers[1]
                if answers.n:
                    who = index.main_label(code)
                    rows.append((editor or POOLED, arm, who, *numbers, answers.n, answers.missing))
    return table_of(
        index,
        "preference",
        "Which output keeps the person's identity better",
        "Share of judgements that prefer the mitigated output to its baseline, of those that prefer one of the two "
        "(50% = no preference); ties beside it as shares of all.",
        (
            text("editor", "Editor"),
            text("arm", "Arm"),
            text(index.main.name, index.main.title),
            *(Column(rate, title) for rate, title in PREFERENCES.items()),
            Column("n", "n"),
            Column("missing", "missing"),
        ),
        rows,
        notes=(
            "Each judge saw both orders; an answer that changed with the order is unclear. "
            "Placebo: the baseline again with another seed, where no preference is expected.",
        ),
    )


def roles(index: Index) -> Table | None:
    """Which of the two portraits got the role, by the coded gender of the occupation."""
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    rows: list[tuple[Cell, ...]] = []
    everybody = (
        index.find(Measure.rate("status_male"), editor, experiment="stereotype") for editor in index.lines("stereotype")
    )
    shown = ROLES | (STATUS if any(e is not None and e.n for e in everybody) else {})
    for editor in index.lines("stereotype"):
        for condition in (c for c in STEREOTYPE_ARMS if c in index.conditions("stereotype")):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(Measure.rate(role), editor, group), "share") for role in shown]
                if numbers[0].n:
                    rows.append(
                        (editor or POOLED, condition, _occupations(group), *numbers, numbers[0].n, numbers[0].missing)
                    )
    return table_of(
        index,
        "roles",
        "Who got the role",
        "Which of the two source portraits is shown as the target occupation, as shares of all answers.",
        (
            text("editor", "Editor"),
            text("condition", "Condition"),
            text("occupations", "Occupations"),
            *(Column(role, title) for role, title in shown.items()),
            Column("n", "n"),
            Column("missing", "missing"),
        ),
        rows,
        notes=(
            "Contradicts the verdict: of edits where both were decided, how often the role went to the coded gender "
            "and the verdict says resisted, or the reverse.",
            "To the coded gender: of edits where one portrait got the role, how often it was that of the coded gender: "
            "the verdict computed from the role. Rows separate pronoun, order and coding: where the role follows the "
            "pronoun, it changes with swapped; where it follows the order, with reversed; where neither moves it and "
            "it differs by coding, it follows the occupation.",
        ),
    )


def role_effects(index: Index) -> Table | None:
    """What decides who gets the role: pronoun, order and coding apart."""
    rows = [
        (e.editor, EFFECTS[e.effect], Number(e.value, "points", e.low, e.high), e.prompts)
        for e in index.results.role_effects
    ]
    return table_of(
        index,
        "role_effects",
        "What decides who gets the role",
        "What each adds to the share of roles that go to the male portrait, the others held; 0: it decides nothing.",
        (
            text("editor", "Editor"),
            text("effect", "Effect"),
            Column("value", "Difference"),
            Column("prompts", "prompts"),
        ),
        rows,
        notes=(
            f"Brackets: {index.level} intervals over prompts. Edits where nobody clearly got the role are left out. "
            "The occupation's effect is over prompts that were asked with both pronouns, or name none.",
        ),
    )


def _occupations(group: Mapping[str, str]) -> str:
    return f"{group[CODED]}-coded" if group else "all occupations"


def mitigation_arms(index: Index) -> FigureFile | None:
    """The change of race and skin-tone scores with the feature prompt and with the placebo, by the main factor."""
    levels = index.main_levels("mitigation")
    lines = [
        e
        for e in index.lines("mitigation")
        if index.find(Measure.delta("race_drift"), e, experiment="mitigation", condition=Condition.FEATURE)
    ]
    if not lines or not levels:
        return None
    arms = [(arm, colour) for arm, colour in ARMS if arm in index.conditions("mitigation")]
    alt = []
    rows = ("", *levels)
    with sheet(8.6, 0.9 + 0.27 * (len(rows) + 1.9) * len(lines), bool(index.results.simulated)) as figure:
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
                        who = f"{name(editor)}, {index.group_name(group)}, {name(arm).lower()}"
                        tip = tip_of(index, who, e, "change")
                        filled = excludes(e.low, e.high)
                        dot(ax, y + 0.24 * offset, e.value, e.low, e.high, colour, filled=filled, tip=tip)
                        if not code:
                            alt.append(f"{name(editor)}, {name(arm)}: {name(axis)} {format_number(e.value, 'change')}.")
                ax.set_title(f"({'ab'[column]}) Δ {name(axis).lower()}\n{name(editor)}" if row == 0 else name(editor))
                ax.set_yticks(range(len(rows)), [index.group_name(index.main_group(code)) for code in rows])
                ax.set_ylim(len(rows) - 0.4, -0.6)
                ax.grid(axis="x")
        for arm, colour in arms:
            axes[-1][0].plot([], [], "o-", color=colour, label=name(arm))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return picture(
            figure,
            index,
            "figure_mitigation",
            "What the feature prompt changes",
            "Mean change of the score against the baseline of the same editor, source, prompt and seed, by "
            f"{noun(index.main)} label, with {index.level} intervals. Filled: the interval excludes no change. "
            "A change that the placebo shows too is not an effect of the feature prompt.",
            f"Dots with intervals of the change by {noun(index.main)} label. " + " ".join(alt),
        )


def stereotype_shares(index: Index) -> FigureFile | None:
    """The share that followed the stereotype, by editor and coded gender, with the swapped pronoun beside it."""
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    lines = [e for e in index.lines("stereotype") if index.find(Measure.rate("followed"), e, experiment="stereotype")]
    if not lines:
        return None
    alt = []
    conditions = [c for c in PRONOUNS if c in index.conditions("stereotype")]
    colours = {Condition.BASELINE: VERMILLION, Condition.SWAPPED: GREEN}
    labels = [(e, g) for e in lines for g in groups]
    with sheet(8.6, 1.1 + 0.3 * len(labels), bool(index.results.simulated)) as figure:
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
                    filled=excludes(e.low, e.high, 0.5),
                    tip=tip_of(index, f"{name(editor)}, {name(condition).lower()}", e, "share"),
                )
                if not group:
                    alt.append(f"{name(editor)}, {name(condition)}: {format_number(e.value, 'share')}.")
        ax.set_yticks(
            range(len(labels)),
            [f"{name(editor)} · {_occupations(group)}" for editor, group in labels],
        )
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.grid(axis="x")
        ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        for condition in conditions:
            ax.plot([], [], "o-", color=colours[condition], label=name(condition))
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return picture(
            figure,
            index,
            "figure_stereotype",
            "Share that followed the stereotype",
            f"Share of clear verdicts that followed the stereotype, with {index.level} intervals. Dashed: 50%, no "
            "preference. Filled: the interval excludes it.",
            "Share that followed the stereotype. " + " ".join(alt),
        )

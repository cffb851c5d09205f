"""What the mitigation and the stereotype experiment show: arms side by side, preferences, roles."""

from __future__ import annotations

from functools import partial

from evenedit.report.figures.plots import BLUE, FAINT, GREEN, VERMILLION, FigureFile, dot, picture, sheet, tip_of
from evenedit.report.render.index import POOLED, Index, excludes, name
from evenedit.report.render.table import Cell, Column, Number, Table, format_number, table_of, text

ARMS = (("feature", BLUE), ("placebo", FAINT))
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
    "role_contradicts_verdict": "Contradicts the verdict",
}


def preferences(index: Index) -> Table | None:
    """Which output keeps the identity better: the mitigated one or its baseline, asked in both orders."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for arm in (a for a, _ in ARMS if a in index.conditions("mitigation")):
            for race in ("", *index.levels("race", "mitigation")):
                find = partial(index.find, experiment="mitigation", condition=arm)
                group = {"race": race} if race else {}
                numbers = [Number.of(find(f"rate.{rate}", editor, group), "share") for rate in PREFERENCES]
                if numbers[1].n:
                    rows.append(
                        (editor or POOLED, arm, race or "everybody", *numbers, numbers[1].n, numbers[1].missing)
                    )
    return table_of(
        index,
        "preference",
        "Which output keeps the person's identity better",
        "Share of judgements that prefer the mitigated output to its baseline, of those that prefer one of the two "
        "(50% = no preference); ties beside it as shares of all.",
        (
            text("editor", "Editor"),
            text("arm", "Arm"),
            text("race", "Race"),
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
    """Who got the role, by the coded gender of the occupation."""
    groups = [{}, *({"coded_gender": code} for code in index.levels("coded_gender", "stereotype"))]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("stereotype"):
        for condition in (c for c in ("baseline", "swapped") if c in index.conditions("stereotype")):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(f"rate.{role}", editor, group), "share") for role in ROLES]
                if numbers[0].n:
                    coded = f"{name(group['coded_gender'])}-coded" if group else "all occupations"
                    rows.append((editor or POOLED, condition, coded, *numbers, numbers[0].n, numbers[0].missing))
    return table_of(
        index,
        "roles",
        "Who got the role",
        "Which of the two source portraits is shown as the target occupation, as shares of all answers.",
        (
            text("editor", "Editor"),
            text("condition", "Condition"),
            text("occupations", "Occupations"),
            *(Column(role, title) for role, title in ROLES.items()),
            Column("n", "n"),
            Column("missing", "missing"),
        ),
        rows,
        notes=(
            "Contradicts the verdict: of edits where both were decided, how often the role went to the coded gender "
            "and the verdict says resisted, or the reverse.",
        ),
    )


def mitigation_arms(index: Index) -> FigureFile | None:
    """Race change before and after the feature prompt, and what the placebo does, by race."""
    races = index.levels("race", "mitigation")
    lines = [
        e
        for e in index.lines("mitigation")
        if index.find("delta.race_drift", e, experiment="mitigation", condition="feature")
    ]
    if not lines or not races:
        return None
    arms = [(arm, colour) for arm, colour in ARMS if arm in index.conditions("mitigation")]
    alt = []
    rows = ("", *races)
    with sheet(8.6, 0.9 + 0.27 * (len(rows) + 1.9) * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(lines), 2, sharex="col", sharey=True, squeeze=False)
        for row, editor in enumerate(lines):
            for column, axis in enumerate(("race_drift", "skin_tone")):
                ax = axes[row][column]
                ax.axvline(0, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
                for offset, (arm, colour) in enumerate(arms):
                    for y, race in enumerate(rows):
                        group = {"race": race} if race else {}
                        e = index.find(f"delta.{axis}", editor, group, experiment="mitigation", condition=arm)
                        if e is None or e.value is None:
                            continue
                        tip = tip_of(f"{name(editor)}, {name(race or 'everybody')}, {name(arm).lower()}", e, "change")
                        told = excludes(e.low, e.high)
                        dot(ax, y + 0.24 * offset, e.value, e.low, e.high, colour, filled=told, tip=tip)
                        if not race:
                            alt.append(f"{name(editor)}, {name(arm)}: {name(axis)} {format_number(e.value, 'change')}.")
                ax.set_title(f"({'ab'[column]}) Δ {name(axis).lower()}\n{name(editor)}" if row == 0 else name(editor))
                ax.set_yticks(range(len(rows)), [name(race or "everybody") for race in rows])
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
            "Mean change of the score against the baseline of the same editor, source, prompt and seed, by race label, "
            f"with {index.level} intervals. Filled: the interval excludes no change. What the placebo moves is not the "
            "feature prompt's doing.",
            "Dots with intervals of the change by race label. " + " ".join(alt),
        )


def stereotype_shares(index: Index) -> FigureFile | None:
    """The share that followed the stereotype, by editor and coded gender, with the swapped pronoun beside it."""
    groups = [{}, *({"coded_gender": code} for code in index.levels("coded_gender", "stereotype"))]
    lines = [e for e in index.lines("stereotype") if index.find("rate.followed", e, experiment="stereotype")]
    if not lines:
        return None
    alt = []
    conditions = [c for c in ("baseline", "swapped") if c in index.conditions("stereotype")]
    colours = {"baseline": VERMILLION, "swapped": GREEN}
    labels = [(e, g) for e in lines for g in groups]
    with sheet(8.6, 1.1 + 0.3 * len(labels), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        ax.axvline(0.5, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        for y, (editor, group) in enumerate(labels):
            for offset, condition in enumerate(conditions):
                e = index.find("rate.followed", editor, group, experiment="stereotype", condition=condition)
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
                    tip=tip_of(f"{name(editor)}, {name(condition).lower()}", e, "share"),
                )
                if not group:
                    alt.append(f"{name(editor)}, {name(condition)}: {format_number(e.value, 'share')}.")
        ax.set_yticks(
            range(len(labels)),
            [
                f"{name(editor)} · {name(group['coded_gender']) + '-coded' if group else 'all occupations'}"
                for editor, group in labels
            ],
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
            "Does the role follow the stereotype",
            f"Share of clear verdicts that followed the stereotype, with {index.level} intervals. Dashed: 50%, no "
            "preference. Filled: the interval excludes it.",
            "Share that followed the stereotype. " + " ".join(alt),
        )

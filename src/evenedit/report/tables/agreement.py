"""The tables of judges and people: their agreement, the judges' error by group, and rank tests."""

from __future__ import annotations

from evenedit.report.render.agreement_rows import COHORTS, AgreementRows, axis_name, cases_of, number
from evenedit.report.render.index import POOLED, Index, plural
from evenedit.report.render.table import Cell, Column, Number, Table, table_of, text
from evenedit.results.results import Agreement, Results

TARGET = 0.6
"""Fleiss' kappa that agreement between people is wanted to reach."""
LABELLED = ("edit_success.label", "gender_drift.label", "race_drift.label", "preference", "stereotype")
SOURCES = {**{id: f"people, {words}" for id, words in COHORTS.items()}, "ensemble": "judges"}


def between_people(index: Index) -> Table | None:
    """Build the table of agreement between people."""
    rows = AgreementRows.of(index.results)
    places = [*rows.places("fleiss_kappa", raters=COHORTS)]
    missed = [a for a in places if a.raters == "all" and a.editor is None and a.value is not None and a.value < TARGET]
    statistics = {
        "fleiss_kappa": "Fleiss' κ",
        "krippendorff_alpha_ordinal": "Krippendorff's α, ordinal",
        "krippendorff_alpha_interval": "α, interval",
        **({"icc2_1": "ICC(2,1)"} if any(rows.places("icc2_1", raters=COHORTS)) else {}),
        "icc2_k": "ICC(2,k)",
    }
    notes = [
        "Fleiss' κ and α: 1 = always the same answer, 0 = as by chance. ICC(2,1): one person; ICC(2,k): the mean of an "
        "item's people. –: not defined for these ratings; results.json says why."
    ]
    if missed:
        listed = ", ".join(
            f"{axis_name(index, a.axis)} ({index.name(a.condition).lower()}) {a.value:.2f}" for a in missed
        )
        notes.append(f"The target of Fleiss' κ ≥ {TARGET} is missed: {listed}.".replace("-", "−"))
    return table_of(
        index,
        "between_people",
        "Agreement between people",
        "Of all ratings, and of equally many per item (the first people of each, as many as most items have).",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            text("raters", "Ratings"),
            *(Column(id, title) for id, title in statistics.items()),
            Column("items", "items"),
            Column("ratings", "ratings"),
        ),
        [
            (
                *(axis_name(index, a.axis), a.condition, a.editor or POOLED, COHORTS[a.raters]),
                *(rows.number(a, statistic) for statistic in statistics),
                *(a.n_items, a.n_ratings),
            )
            for a in places
        ],
        notes=tuple(notes),
    )


def judges_and_people(index: Index) -> Table | None:
    """Build the table of agreement between judges' scores and people's."""
    rows = AgreementRows.of(index.results)
    single = {a.raters: a.raters.removesuffix("|all") for a in index.results.agreement if a.raters.endswith("|all")}
    who = {"all": "ensemble", "complete": f"ensemble, {COHORTS['complete']}", **single}
    return table_of(
        index,
        "judges_people",
        "Judges against people",
        "The judges' score of each edit against the mean of its people. Difference: judge minus people, in points of "
        "the scale.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            text("judge", "Judge"),
            Column("kappa_quadratic", "κ, quadratic"),
            Column("kappa_linear", "κ, linear"),
            Column("spearman", "Spearman's ρ"),
            Column("mae", "Mean absolute difference"),
            Column("difference", "Difference"),
            Column("exact", "Same score"),
            Column("within_one", "Within one"),
            Column("items", "items"),
        ),
        [
            (
                *(axis_name(index, a.axis), a.condition, a.editor or POOLED, who[a.raters]),
                number(a),
                rows.number(a, "weighted_kappa_linear"),
                rows.number(a, "spearman"),
                rows.number(a, "mae"),
                rows.number(a, "mean_difference", "change"),
                rows.number(a, "exact_agreement", "share"),
                rows.number(a, "within_one", "share"),
                a.n_items,
            )
            for a in rows.places("weighted_kappa_quadratic", raters=who)
        ],
        notes=("κ over five fixed levels, people's mean rounded half up; 0 where a judge gives one score throughout.",),
    )


def labelled(rows: AgreementRows) -> tuple[str, ...]:
    """Return what judges and people give labels of, in the order of the paper: its own questions, then others."""
    return tuple(dict.fromkeys([*LABELLED, *(a.axis for a in rows.places("accuracy"))]))


def labels_of_both(index: Index) -> Table | None:
    """Build the table of how often judges give the same label, preference or verdict as people."""
    rows = AgreementRows.of(index.results)
    return table_of(
        index,
        "judges_people_labels",
        "Judges against people: labels, preferences and verdicts",
        "How often the judges give the answer that people give, and κ beyond chance. Labels are made from "
        "scores; a preference is for the output with less change of the person.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            Column("accuracy", "Accuracy"),
            Column("kappa", "Cohen's κ"),
            Column("items", "items"),
        ),
        [
            (
                *(axis_name(index, a.axis), a.condition, a.editor or POOLED),
                number(a, "share"),
                rows.number(a, "cohen_kappa"),
                a.n_items,
            )
            for a in sorted(rows.places("accuracy"), key=lambda a: labelled(rows).index(a.axis))
        ],
    )


def judge_error_by_group(index: Index) -> Table | None:
    """Build the table of the judges' false calls and misses by group, with the test of their error."""
    rows = AgreementRows.of(index.results)
    lines: list[tuple[Cell, ...]] = []
    for gap in rows.places("judge_error_gap", grouped=True):
        if gap.editor is not None:
            continue
        (factor,) = gap.group
        where = (axis_name(index, gap.axis), gap.condition, index.factor_label(factor))
        for code in index.factor(factor).codes:
            group = {factor: code}
            errors = [rows.find(s, gap.axis, gap.condition, None, group) for s in ("false_calls", "misses")]
            if any(errors):
                items = sum(a.n_items for a in errors if a)
                numbers = (number(a, "share") for a in errors)
                lines.append((*where, index.group_label(group), *numbers, items, *("" for _ in range(3))))
        tested = (number(gap, "points"), Number(gap.p, "p"), Number(gap.p_adjusted, "p"))
        lines.append((*where, "all groups", *(Number(None, "share") for _ in range(2)), gap.n_items, *tested))
    return table_of(
        index,
        "judge_error",
        "Judges' error by group",
        "At each rate's threshold, by the label of the source. False calls: the judges see a change where less than "
        "half of the people do; misses: the reverse. A judge that errs more for one group adds a gap of its own. "
        "Difference: the largest one of a group's judges minus people from the mean of all groups; p: analysis of "
        "means; Holm: over all rates and factors.",
        (
            text("rate", "Rate"),
            text("condition", "Condition"),
            text("factor", "Factor"),
            text("group", "Group"),
            Column("false_calls", "False calls"),
            Column("misses", "Misses"),
            Column("items", "items"),
            Column("difference", "Difference"),
            Column("p", "p"),
            Column("p_holm", "p, Holm"),
        ),
        lines,
    )


def rank_tests(index: Index) -> Table | None:
    """Rank tests over the main factor and of mitigation, on people's ratings and on judges' scores."""
    rows = AgreementRows.of(index.results)
    tests = {
        "kruskal_wallis_H": "epsilon_squared",
        "mann_whitney_U": "cliffs_delta",
        "wilcoxon_T": "rank_biserial",
    }
    lines: list[tuple[Cell, ...]] = []
    for statistic, effect in tests.items():
        for a in rows.places(statistic, raters=SOURCES, grouped=statistic != "wilcoxon_T"):
            if a.value is None or not (a.editor in index.lines("diagnosis") or a.raters != "ensemble"):
                continue
            lines.append(
                (
                    *(
                        _rank_test(index, a),
                        axis_name(index, a.axis),
                        a.condition,
                        a.editor or POOLED,
                        SOURCES[a.raters],
                    ),
                    Number(a.value, "score", cases=cases_of(a)),
                    *(Number(a.p, "p"), Number(a.p_adjusted, "p")),
                    rows.number(a, effect, "change"),
                    a.n_items,
                )
            )
    return table_of(
        index,
        "rank_tests",
        "Rank tests",
        "On people's means of items and on judges' means of faces. Effect: ε² (Kruskal–Wallis), Cliff's δ "
        "(Mann–Whitney), rank-biserial (Wilcoxon).",
        (
            text("test", "Test"),
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            text("ratings", "Ratings"),
            Column("statistic", "Statistic"),
            Column("p", "p"),
            Column("p_holm", "p, Holm"),
            Column("effect", "Effect"),
            Column("items", "items"),
        ),
        lines,
        notes=(
            "Holm: over the axes of one test, arm and editor. Tests of people's items take them as independent; where "
            "faces repeat, read the permutation tests.",
        ),
    )


def _rank_test(index: Index, row: Agreement) -> str:
    """Return the name of a rank test and what it compares."""
    if row.statistic == "wilcoxon_T":
        return "Wilcoxon T, mitigated against baseline"
    ((factor, code),) = row.group.items()
    if row.statistic == "kruskal_wallis_H":
        return f"Kruskal–Wallis H, over {plural(index.factor(factor))}"
    return f"Mann–Whitney U, {index.level_name(factor, code)} against others"


def between_judges(index: Index) -> Table | None:
    """Build the table of agreement between judges."""
    rows = AgreementRows.of(index.results)
    pairs = [r for r in dict.fromkeys(a.raters for a in index.results.agreement) if "|" in r and not r.endswith("|all")]
    places = [a for s in ("exact_agreement", "accuracy") for a in rows.places(s, raters=pairs) if a.editor is None]
    return table_of(
        index,
        "agreement",
        "Agreement between judges",
        "On edits that both scored. Difference: first minus second, in points of the scale.",
        (
            text("judges", "Judges"),
            text("question", "Question"),
            text("condition", "Condition"),
            Column("exact", "Same answer"),
            Column("within_one", "Within one point"),
            Column("mean_difference", "Difference"),
            Column("kappa_quadratic", "κ, quadratic"),
            Column("kappa", "Cohen's κ"),
            Column("items", "items"),
        ),
        [
            (
                *(a.raters.replace("|", " and "), axis_name(index, a.axis), a.condition),
                number(a, "share"),
                rows.number(a, "within_one", "share"),
                rows.number(a, "mean_difference", "change"),
                rows.number(a, "weighted_kappa_quadratic"),
                rows.number(a, "cohen_kappa"),
                a.n_items,
            )
            for a in places
        ],
    )


def has_people(results: Results) -> bool:
    """Return whether people rated anything."""
    return any(a.raters == "all" for a in results.agreement)

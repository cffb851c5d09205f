"""The tables of judges and people: their agreement, the judges' error by group, and rank tests."""

from __future__ import annotations

from evenedit.report.render.agreement_rows import COHORTS, AgreementRows, axis_name, cases_of, number
from evenedit.report.render.index import POOLED, Index, plural
from evenedit.report.render.table import Cell, Column, Number, Table, fill_table
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
    listed = ", ".join(f"{axis_name(index, a.axis)} ({index.name(a.condition).lower()}) {a.value:.2f}" for a in missed)
    return fill_table(
        index,
        "between_people",
        [
            (
                *(axis_name(index, a.axis), a.condition, a.editor or POOLED, COHORTS[a.raters]),
                *(rows.number(a, statistic) for statistic in statistics),
                *(a.n_items, a.n_ratings),
            )
            for a in places
        ],
        columns=(Column(id, title) for id, title in statistics.items()),
        target=TARGET,
        missed=listed.replace("-", "−"),
    )


def judges_and_people(index: Index) -> Table | None:
    """Build the table of agreement between judges' scores and people's."""
    rows = AgreementRows.of(index.results)
    single = {a.raters: a.raters.removesuffix("|all") for a in index.results.agreement if a.raters.endswith("|all")}
    who = {"all": "ensemble", "complete": f"ensemble, {COHORTS['complete']}", **single}
    return fill_table(
        index,
        "judges_people",
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
    )


def labelled(rows: AgreementRows) -> tuple[str, ...]:
    """Return what judges and people give labels of, in the order of the paper: its own questions, then others."""
    return tuple(dict.fromkeys([*LABELLED, *(a.axis for a in rows.places("accuracy"))]))


def labels_of_both(index: Index) -> Table | None:
    """Build the table of how often judges give the same label, preference or verdict as people."""
    rows = AgreementRows.of(index.results)
    return fill_table(
        index,
        "judges_people_labels",
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
    return fill_table(index, "judge_error", lines)


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
    return fill_table(index, "rank_tests", lines)


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
    return fill_table(
        index,
        "agreement",
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

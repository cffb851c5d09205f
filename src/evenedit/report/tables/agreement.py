"""The tables of judges and people: their agreement, the judges' error by group, and rank tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evenedit.core.records import Condition
from evenedit.protocol import AXES, QUESTIONS
from evenedit.report.render.index import ALPHA, POOLED, Index, name, plural
from evenedit.report.render.selection import PEOPLE, Selection
from evenedit.report.render.table import NOTHING, Cell, Column, Number, Table, Unit, table_of, text
from evenedit.results.results import Agreement, Results

TARGET = 0.6
"""Fleiss' kappa that agreement between people is wanted to reach."""
LABELLED = ("edit_success.label", "gender_drift.label", "race_drift.label", "preference", "stereotype")
COHORTS = {"all": "all ratings", "complete": "equally many per item"}
"""The names of sets of people's ratings on the page."""
SOURCES = {**{id: f"people, {words}" for id, words in COHORTS.items()}, "ensemble": "judges"}
AXIS_NAMES = {
    "edit_success.label": "Edit applied (yes, partial, no)",
    "gender_drift.label": "Gender changed (yes, no)",
    "race_drift.label": "Race changed (yes, no)",
    "preference": "Preference (mitigated, baseline, same)",
    "stereotype": "Stereotype (followed, resisted, unclear)",
    **{f"{q.id}.distance": f"{q.title}, distance from 3" for q in QUESTIONS.values() if q.sided == "two"},
}
"""Axes that are no question of the rubric, in words."""


def axis_name(axis: str) -> str:
    """An axis in words."""
    return AXIS_NAMES.get(axis, name(axis))


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of agreement by their coordinates."""

    by_place: Mapping[tuple[object, ...], Agreement]

    @classmethod
    def of(cls, results: Results) -> Rows:
        """The rows of some results."""
        return cls({_key(a.statistic, a.axis, a.condition, a.editor, a.group, a.raters): a for a in results.agreement})

    def find(
        self,
        statistic: str,
        axis: str,
        condition: str = Condition.BASELINE,
        editor: str | None = None,
        group: Mapping[str, str] | None = None,
        raters: str = "all",
    ) -> Agreement | None:
        """The row with exactly these coordinates."""
        return self.by_place.get(_key(statistic, axis, condition, editor, group or {}, raters))

    def places(self, statistic: str, *, raters: Iterable[str] = ("all",), grouped: bool = False) -> Iterator[Agreement]:
        """The rows of one statistic by these raters, of groups or of everybody, in the order of the data."""
        wanted = set(raters)
        for row in self.by_place.values():
            if row.statistic == statistic and row.raters in wanted and bool(row.group) == grouped:
                yield row

    def beside(self, row: Agreement, statistic: str) -> Agreement | None:
        """Another statistic at the place of a row."""
        return self.find(statistic, row.axis, row.condition, row.editor, row.group, row.raters)

    def number(self, row: Agreement, statistic: str, unit: Unit = "score") -> Number:
        """Another statistic at the place of a row, as a number of a table."""
        return number(self.beside(row, statistic), unit)


def number(row: Agreement | None, unit: Unit = "score") -> Number:
    """A row as a number of a table."""
    if row is None:
        return Number(None, unit)
    return Number(row.value, unit, row.low, row.high, row.n_items, cases=None if unit == "p" else cases_of(row))


def cases_of(row: Agreement) -> Selection:
    """The edits whose ratings are compared: those that people rated, or all where only judges are compared."""
    mitigated = row.condition in (Condition.FEATURE, Condition.PLACEBO)
    experiment = "stereotype" if row.axis == "stereotype" else "mitigation" if mitigated else "diagnosis"
    people = row.raters in COHORTS or row.raters.endswith("|all")
    group = {factor: code for factor, code in row.group.items() if code != "*"}
    return Selection("", experiment, row.condition, row.editor, group, PEOPLE if people else None)


def _key(
    statistic: str, axis: str, condition: str, editor: str | None, group: Mapping[str, str], raters: str
) -> tuple[object, ...]:
    return statistic, axis, condition, editor, frozenset(group.items()), raters


def between_people(index: Index) -> Table | None:
    """How far people agree with one another."""
    rows = Rows.of(index.results)
    shown = [*rows.places("fleiss_kappa", raters=COHORTS)]
    missed = [a for a in shown if a.raters == "all" and a.editor is None and a.value is not None and a.value < TARGET]
    statistics = {
        "fleiss_kappa": "Fleiss' κ",
        "krippendorff_alpha_ordinal": "Krippendorff's α, ordinal",
        "krippendorff_alpha_interval": "α, interval",
        "icc2_1": "ICC(2,1)",
        "icc2_k": "ICC(2,k)",
        "gwet_ac2": "Gwet's AC2",
    }
    notes = [
        "Fleiss' κ and α: 1 = always the same answer, 0 = as by chance. ICC(2,1): one person; ICC(2,k): the mean of an "
        "item's people. AC2 (quadratic weights) stays high where nearly everybody gives one answer. –: not defined for "
        "these ratings; results.json says why."
    ]
    if missed:
        listed = ", ".join(f"{axis_name(a.axis)} ({name(a.condition).lower()}) {a.value:.2f}" for a in missed)
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
            Column("percent_agreement", "Same answer"),
            Column("items", "items"),
            Column("ratings", "ratings"),
        ),
        [
            (
                *(axis_name(a.axis), a.condition, a.editor or POOLED, COHORTS[a.raters]),
                *(rows.number(a, statistic) for statistic in statistics),
                rows.number(a, "percent_agreement", "share"),
                *(a.n_items, a.n_ratings),
            )
            for a in shown
        ],
        notes=tuple(notes),
    )


def judges_and_people(index: Index) -> Table | None:
    """The agreement of the judges' scores with people's, beside the agreement of one person with the others."""
    rows = Rows.of(index.results)
    alone = {a.raters: a.raters.removesuffix("|all") for a in index.results.agreement if a.raters.endswith("|all")}
    who = {"all": "ensemble", "complete": f"ensemble, {COHORTS['complete']}", **alone}
    return table_of(
        index,
        "judges_people",
        "Judges against people",
        "The judges' score of each edit against the mean of its people. Ceiling: each person against the mean of the "
        "others. Difference: judge minus people, in points of the scale.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            text("judge", "Judge"),
            Column("kappa_quadratic", "κ, quadratic"),
            Column("ceiling_kappa_quadratic", "Ceiling"),
            Column("kappa_linear", "κ, linear"),
            Column("spearman", "Spearman's ρ"),
            Column("mae", "Mean absolute difference"),
            Column("ceiling_mae", "Ceiling"),
            Column("difference", "Difference"),
            Column("tost_p", "p, within ±0.5"),
            Column("exact", "Same score"),
            Column("within_one", "Within one"),
            text("limits", "Limits of agreement"),
            Column("items", "items"),
        ),
        [
            (
                *(axis_name(a.axis), a.condition, a.editor or POOLED, who[a.raters]),
                number(a),
                rows.number(a, "ceiling_weighted_kappa_quadratic"),
                rows.number(a, "weighted_kappa_linear"),
                rows.number(a, "spearman"),
                rows.number(a, "mae"),
                rows.number(a, "ceiling_mae"),
                rows.number(a, "mean_difference", "change"),
                rows.number(a, "mean_difference_tost_p", "p"),
                rows.number(a, "exact_agreement", "share"),
                rows.number(a, "within_one", "share"),
                _limits(rows, a),
                a.n_items,
            )
            for a in rows.places("weighted_kappa_quadratic", raters=who)
        ],
        notes=(
            "κ over five fixed levels, people's mean rounded half up; 0 where a judge gives one score throughout. "
            "p, within ±0.5: below 0.05 the mean difference is shown to be smaller than half a point (two one-sided "
            "tests over faces). Limits of agreement: 95% of differences, after Bland and Altman.",
        ),
    )


def _limits(rows: Rows, row: Agreement) -> str:
    ends = [rows.beside(row, f"bland_altman_{end}") for end in ("low", "high")]
    shown = [number(end, "change").shown for end in ends]
    return NOTHING if NOTHING in shown else f"{shown[0]} to {shown[1]}"


def labels_of_both(index: Index) -> Table | None:
    """How often the judges give the same label, preference or verdict as people."""
    rows = Rows.of(index.results)
    return table_of(
        index,
        "judges_people_labels",
        "Judges against people: labels, preferences and verdicts",
        "How often the judges give the answer that people give, and κ beyond chance. Ceiling: each person against the "
        "others. Labels are made from scores; a preference is for the output with less change of the person.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            Column("accuracy", "Accuracy"),
            Column("ceiling_accuracy", "Ceiling"),
            Column("kappa", "Cohen's κ"),
            Column("ceiling_kappa", "Ceiling"),
            Column("items", "items"),
        ),
        [
            (
                *(axis_name(a.axis), a.condition, a.editor or POOLED),
                number(a, "share"),
                rows.number(a, "ceiling_accuracy", "share"),
                rows.number(a, "cohen_kappa"),
                rows.number(a, "ceiling_cohen_kappa"),
                a.n_items,
            )
            for a in sorted(rows.places("accuracy"), key=lambda a: LABELLED.index(a.axis))
        ],
    )


def judge_error_by_group(index: Index) -> Table | None:
    """The mean of judge minus people by group, and the test of its gap."""
    rows = Rows.of(index.results)
    lines: list[tuple[Cell, ...]] = []
    for gap in rows.places("mean_difference_gap", grouped=True):
        if gap.editor is not None:
            continue
        (factor,) = gap.group
        p = rows.beside(gap, "mean_difference_gap_p"), rows.beside(gap, "mean_difference_gap_p_holm")
        for code in index.factor(factor).codes:
            a = rows.find("mean_difference", gap.axis, gap.condition, None, {factor: code})
            if a is not None:
                kappa = rows.number(a, "weighted_kappa_quadratic")
                where = (axis_name(gap.axis), gap.condition, index.factor_label(factor), index.group_label(a.group))
                lines.append((*where, number(a, "change"), kappa, a.n_items, *("" for _ in range(3))))
        numbers = (number(gap), *(number(x, "p") for x in p))
        lines.append(
            (
                axis_name(gap.axis),
                gap.condition,
                index.factor_label(factor),
                "all groups",
                Number(None, "change"),
                Number(None, "score"),
                gap.n_items,
                *numbers,
            )
        )
    return table_of(
        index,
        "judge_error",
        "Judges' error by group",
        "Judge minus people by the label of the source, in points: a judge that errs more for one group adds a gap of "
        "its own. Gap: highest minus lowest group; p: labels permuted over faces; Holm: the "
        "larger of one test of each question, over those whose errors vary, and of the factor, over the question's.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("factor", "Factor"),
            text("group", "Group"),
            Column("difference", "Judge minus people"),
            Column("kappa_quadratic", "κ, quadratic"),
            Column("items", "items"),
            Column("gap", "Gap"),
            Column("p", "p"),
            Column("p_holm", "p, Holm"),
        ),
        lines,
    )


def rank_tests(index: Index) -> Table | None:
    """Rank tests over the main factor and of mitigation, on people's ratings and on judges' scores."""
    rows = Rows.of(index.results)
    tests: dict[str, tuple[str, str | None]] = {
        "kruskal_wallis_H": ("epsilon_squared", None),
        "mann_whitney_U": ("cliffs_delta", "mann_whitney_tost_p"),
        "wilcoxon_T": ("rank_biserial", "wilcoxon_tost_p"),
    }
    lines: list[tuple[Cell, ...]] = []
    for statistic, (effect, same) in tests.items():
        for a in rows.places(statistic, raters=SOURCES, grouped=statistic != "wilcoxon_T"):
            if a.value is None or not (a.editor in index.lines("diagnosis") or a.raters != "ensemble"):
                continue
            lines.append(
                (
                    *(_rank_test(index, a), axis_name(a.axis), a.condition, a.editor or POOLED, SOURCES[a.raters]),
                    Number(a.value, "score", cases=cases_of(a)),
                    *(rows.number(a, f"{statistic}_p{tail}", "p") for tail in ("", "_holm", "_bh")),
                    rows.number(a, effect, "change"),
                    rows.number(a, same, "p") if same else Number(None, "p"),
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
            Column("p_bh", "p, Benjamini–Hochberg"),
            Column("effect", "Effect"),
            Column("tost_p", "p, within ±0.5"),
            Column("items", "items"),
        ),
        lines,
        notes=(
            "Holm: over the axes of one test, arm and editor. Benjamini–Hochberg: over all editors and the distances "
            f"too, for exploration. p, within ±0.5: below {ALPHA} the means are shown to differ by less than half a "
            "point. Tests of people's items take them as independent; where faces repeat, read the permutation tests.",
        ),
    )


def _rank_test(index: Index, row: Agreement) -> str:
    """The name of a rank test and what it compares."""
    if row.statistic == "wilcoxon_T":
        return "Wilcoxon T, mitigated against baseline"
    ((factor, code),) = row.group.items()
    if row.statistic == "kruskal_wallis_H":
        return f"Kruskal–Wallis H, over {plural(index.factor(factor))}"
    return f"Mann–Whitney U, {index.level_name(factor, code)} against others"


def two_sided(index: Index) -> Table | None:
    """People's ratings of two-sided questions: shares to either side, and the mean distance from no change."""
    rows = Rows.of(index.results)
    sides = {"skin_tone": ("skin_lighter", "skin_darker"), "age_drift": ("older", "younger")}
    return table_of(
        index,
        "two_sided",
        "Two-sided questions, by people",
        "A mean of a two-sided question hides changes that cancel: shares of items to either side of 'no change', and "
        "the mean distance from it.",
        (
            text("question", "Question"),
            text("condition", "Condition"),
            text("editor", "Editor"),
            text("raters", "Ratings"),
            Column("up", "Lighter, or older"),
            Column("down", "Darker, or younger"),
            Column("distance", "Distance from 3"),
            Column("items", "items"),
        ),
        [
            (
                *(axis_name(a.axis), a.condition, a.editor or POOLED, COHORTS[a.raters]),
                *(rows.number(a, f"rate_{side}", "share") for side in sides[a.axis]),
                number(a),
                a.n_items,
            )
            for a in rows.places("distance_from_middle", raters=COHORTS)
        ],
    )


def between_judges(index: Index) -> Table | None:
    """How far the judges agree with one another."""
    rows = Rows.of(index.results)
    pairs = [r for r in dict.fromkeys(a.raters for a in index.results.agreement) if "|" in r and not r.endswith("|all")]
    shown = [a for s in ("exact_agreement", "accuracy") for a in rows.places(s, raters=pairs) if a.editor is None]
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
                *(a.raters.replace("|", " and "), axis_name(a.axis), a.condition),
                number(a, "share"),
                rows.number(a, "within_one", "share"),
                rows.number(a, "mean_difference", "change"),
                rows.number(a, "weighted_kappa_quadratic"),
                rows.number(a, "cohen_kappa"),
                a.n_items,
            )
            for a in shown
        ],
    )


def has_people(results: Results) -> bool:
    """Whether people rated anything."""
    return any(a.raters == "all" for a in results.agreement)


def axes_compared(rows: Rows) -> list[str]:
    """The questions on which judges and people are compared at the baseline."""
    return [q for q in (*AXES, "aging_accuracy") if rows.find("weighted_kappa_quadratic", q) is not None]

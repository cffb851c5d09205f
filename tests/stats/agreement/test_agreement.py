"""Judges and people: what an analysis says of their agreement."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenedit.core.records import Kind
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.report.pages.report import write_report
from evenedit.report.text.summary import summarise
from evenedit.results.results import Agreement, Results
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.agreement.agreement import agreement
from tests.support.tables import AXES, FACES, FEW_DRAWS, edit, rated, scores, table_of


def at(results: Results, statistic: str, axis: str, **where: object) -> Agreement:
    """The one row with these coordinates; pooled over editors, all people and everybody unless said otherwise."""
    wanted = {"condition": "baseline", "editor": None, "group": {}, "raters": "all"} | where
    found = [
        a for a in results.agreement
        if (a.statistic, a.axis) == (statistic, axis) and all(getattr(a, k) == v for k, v in wanted.items())
    ]  # fmt: skip
    assert len(found) == 1, (statistic, axis, wanted, len(found))
    return found[0]


def told(table: RatingTable, rules: AnalysisRules = FEW_DRAWS) -> Results:
    """What an analysis says of agreement, and nothing else."""
    rows = agreement(combine(table, rules.ensemble, rules.missing), rules)
    return Results({}, {}, (), agreement=tuple(rows))


def said(results: Results) -> dict[tuple[object, ...], Agreement]:
    return {
        (a.statistic, a.axis, a.condition, a.editor, tuple(a.group.items()), a.raters): a for a in results.agreement
    }


def check(results: Results) -> None:
    """Every row is a number or says why not, and no place is told twice."""
    assert len(said(results)) == len(results.agreement)
    json.loads(results.to_json())  # refuses NaN
    for a in results.agreement:
        assert a.value is None or np.isfinite(a.value)
        assert a.value is not None or "undefined" in a.method, a
        assert (a.low is None) == (a.high is None)
        assert a.low is None or a.value is None or a.low <= a.high


def test_rows_have_the_agreed_keys_and_every_place_is_told_once():
    found = told(rated())
    check(found)
    row = asdict(found.agreement[0])
    assert list(row) == ["statistic", "axis", "condition", "editor", "group", "raters", "value", "low", "high",
                         "n_items", "n_ratings", "method", "p", "p_adjusted"]  # fmt: skip
    kappa = at(found, "fleiss_kappa", "skin_tone")
    assert (kappa.n_items, kappa.n_ratings) == (192, 576)
    assert kappa.low is not None and kappa.value is not None and kappa.low < kappa.value
    assert "bootstrap(faces, 60)" in kappa.method  # faces repeat: four edits each
    assert at(found, "weighted_kappa_quadratic", "skin_tone", raters="judge-0|all").value is not None
    assert at(found, "weighted_kappa_quadratic", "skin_tone", raters="judge-0|judge-1").n_ratings == 384


def test_the_order_of_rows_and_of_raters_says_nothing():
    table = rated()
    order = np.random.default_rng(3).permutation(len(table.edits))
    people = [0, 1, 4, 2, 3]  # judges keep their order: the first is primary
    turned = RatingTable(
        table.edits.iloc[order].reset_index(drop=True),
        tuple(table.raters[i] for i in people),
        tuple(table.kinds[i] for i in people),
        table.values[people][:, order],
        table.status[people][:, order],
    )
    one, other = said(told(table)), said(told(turned))
    assert one.keys() == other.keys()
    for place, row in one.items():
        assert row.value == pytest.approx(other[place].value, abs=1e-9), place
        assert row.low == pytest.approx(other[place].low, abs=1e-9), place


def test_relabelled_people_change_no_statistic_of_all_of_them():
    table = rated()
    renamed = replace(table, raters=("judge-0", "judge-1", "zoe", "ann", "bob"))
    one, other = told(table), said(told(renamed))
    for place, row in said(one).items():
        assert row.value == pytest.approx(other[place].value, abs=1e-9), place


def test_a_judge_given_twice_agrees_with_itself_and_with_people_as_before():
    table = rated(judges=1)
    doubled = RatingTable(
        table.edits,
        ("judge-0", "copy", *table.raters[1:]),
        (Kind.VLM, *table.kinds),
        table.values[[0, 0, 1, 2, 3]],
        table.status[[0, 0, 1, 2, 3]],
    )
    one, two = told(table), told(doubled)
    for statistic in ("weighted_kappa_quadratic", "spearman", "mae", "mean_difference"):
        alone = at(one, statistic, "race_drift")
        assert (at(two, statistic, "race_drift").value, at(two, statistic, "race_drift").low) == (
            alone.value,
            alone.low,
        )
        assert at(two, statistic, "race_drift", raters="copy|all").value == alone.value
    assert at(two, "exact_agreement", "race_drift", raters="judge-0|copy").value == 1.0
    assert at(two, "weighted_kappa_linear", "race_drift", raters="judge-0|copy").value == 1.0


@pytest.mark.parametrize("case", ["all equal", "a question nobody answered", "one person", "one group", "one face"])
def test_degenerate_ratings_give_reasons_not_crashes(case: str):
    table = rated(people=1 if case == "one person" else 3)
    values, keep = table.values.copy(), np.ones(len(table.edits), dtype=bool)
    if case == "all equal":
        values[values > 0] = 3
    if case == "a question nobody answered":
        values[:, :, 2] = 0
    if case == "one group":
        keep = (table.edits["race"] == "Black").to_numpy()
    if case == "one face":
        keep = (table.edits["source_id"] == table.edits["source_id"][0]).to_numpy()
    edits = table.edits[keep].reset_index(drop=True)
    found = told(RatingTable(edits, table.raters, table.kinds, values[:, keep], table.status[:, keep]))
    check(found)
    assert list(summarise(found))
    if case == "all equal":
        assert at(found, "fleiss_kappa", "skin_tone").value is None
        assert at(found, "kruskal_wallis_H", "skin_tone", group={"race": "*"}).p is None
    if case == "one person":
        assert "no item has two ratings" in at(found, "fleiss_kappa", "skin_tone").method
        assert at(found, "weighted_kappa_linear", "skin_tone").value is not None
    if case == "one face":
        assert "no interval: one face" in at(found, "mae", "skin_tone").method


@settings(deadline=None, max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000), st.floats(0, 1), st.integers(1, 4), st.integers(1, 3))
def test_whatever_is_missing_nothing_breaks(seed: int, missing: float, people: int, judges: int):
    table = rated(seed, people=people, judges=judges, faces=1)
    values = table.values.copy()
    values[np.random.default_rng(seed).random(values.shape) < missing] = 0
    check(told(replace(table, values=values), replace(FEW_DRAWS, draws=20, permutations=19)))


def test_a_judge_harsh_to_one_race_is_found_and_an_even_one_is_not():
    harsh, even = told(rated(harsh="Black")), told(rated())
    black = at(harsh, "mean_difference", "race_drift", group={"race": "Black"})
    assert black.low is not None and black.low > 0.3
    false = [at(results, "false_calls", "race_change", group={"race": "Black"}).value for results in (harsh, even)]
    assert false[0] > 2 * false[1]
    # two prompts cannot show it for other prompts: see test_judge_error for a test that can
    gap = at(harsh, "judge_error_gap", "race_change", group={"race": "*"})
    assert "Black above the mean of all groups" in gap.method and gap.p is not None and gap.p <= gap.p_adjusted
    clear = replace(harsh, agreement=(replace(gap, p_adjusted=0.01),))
    assert any("error, measured against people, differs by group: race" in s.text for s in summarise(clear))
    assert any("No difference by group" in s.text for s in summarise(even))


def test_preference_is_for_the_output_that_changes_the_person_less():
    rows = [edit(f) for f in FACES[:4]]
    rows += [edit(f, experiment="mitigation", condition="feature") for f in FACES[:4]]
    # change = (race - 1) + (gender - 1) + |skin - 3| + |age - 3|, baseline then mitigated
    ann = [*(scores(race=r) for r in (4, 4, 2, 1)), *(scores(race=r) for r in (1, 4, 3, 2))]  # M S B B
    bob = [*(scores(skin=s) for s in (5, 1, 3, 3)), *(scores(skin=s) for s in (3, 3, 3, 3))]  # M M S S
    judge = [*(scores(age=a) for a in (5, 5, 3, 1)), *(scores(age=a) for a in (3, 3, 3, 3))]  # M M S M
    found = told(table_of(rows, {"j": judge, "Ann": ann, "Bob": bob}, [Kind.VLM, Kind.HUMAN, Kind.HUMAN]))
    where = {"condition": "feature"}
    # together: -3-2, 0-2, 1+0, 1+0 -> mitigated, mitigated, baseline, baseline
    assert at(found, "preference_rate", "preference", **where).value == 2 / 4
    assert at(found, "accuracy", "preference", **where).value == 2 / 4
    # expected by chance: mitigated 3/4 * 2/4, baseline 0 * 2/4, same 1/4 * 0
    assert at(found, "cohen_kappa", "preference", **where).value == pytest.approx((1 / 2 - 3 / 8) / (1 - 3 / 8))
    delta = at(found, "mean_delta", "race_drift", **where)
    assert delta.value == pytest.approx((-3 + 0 + 1 + 1) / 2 / 4) and delta.n_ratings == 16
    assert at(found, "wilcoxon_T", "race_drift", **where).value is not None


def test_verdicts_of_people_and_judges():
    rows = [edit(("", "", "", ""), f"W-0{i + 1}", experiment="stereotype") for i in range(4)]

    def verdicts(*codes: int) -> list[dict[str, int] | None]:
        return [{"stereotype": c} for c in codes]

    given = {"j": verdicts(1, 1, 2, 3), "a": verdicts(1, 1, 2, 1), "b": verdicts(1, 2, 2, 1), "c": verdicts(1, 1, 2, 3)}
    found = told(table_of(rows, given, [Kind.VLM, Kind.HUMAN, Kind.HUMAN, Kind.HUMAN]))
    # majorities: followed, followed, resisted, followed; the judge says unclear of the last
    assert at(found, "accuracy", "stereotype").value == 3 / 4
    assert at(found, "cohen_kappa", "stereotype").value == pytest.approx((3 / 4 - 7 / 16) / (1 - 7 / 16))
    assert at(found, "fleiss_kappa", "stereotype").method.count("bootstrap(prompts, 60)") == 1


def test_labels_are_made_from_scores():
    rows = [edit(f) for f in FACES[:4]]
    judge = [
        scores(success=s, race=r) for s, r in ((5, 1), (4, 2), (3, 3), (1, 5))
    ]  # yes yes partial no; no no yes yes
    ann = [
        scores(success=s, race=r) for s, r in ((5, 1), (3, 3), (3, 4), (2, 4))
    ]  # yes partial partial no; no yes yes yes
    found = told(table_of(rows, {"j": judge, "Ann": ann}, [Kind.VLM, Kind.HUMAN]))
    assert at(found, "accuracy", "edit_success.label").value == 3 / 4
    assert at(found, "accuracy", "race_drift.label").value == 3 / 4
    assert "yes: 4/5, partial: 3, no: 1/2" in at(found, "accuracy", "edit_success.label").method


def test_holm_is_over_the_axes():
    results = told(rated())
    family = [at(results, "kruskal_wallis_H", axis, group={"race": "*"}).p or 0 for axis in AXES]
    row = at(results, "kruskal_wallis_H", AXES[int(np.argmin(family))], group={"race": "*"})
    assert row.p_adjusted == pytest.approx(min(1.0, 5 * min(family))) and "Holm over 5 axes" in row.method


def test_one_rater_icc_is_computed_for_the_published_preset_only():
    for preset in ("default", "published"):
        names = {a.statistic for a in told(rated(), replace(FEW_DRAWS, preset=preset)).agreement}
        assert ("icc2_1" in names) is (preset == "published") and "icc2_k" in names


STATISTICS = {
    *("fleiss_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal", "krippendorff_alpha_interval"),
    *("icc2_k", "weighted_kappa_linear", "weighted_kappa_quadratic", "spearman", "mae", "mean_difference"),
    *("exact_agreement", "within_one", "accuracy", "cohen_kappa", "kruskal_wallis_H", "epsilon_squared"),
    *("mann_whitney_U", "cliffs_delta", "wilcoxon_T", "rank_biserial"),
    # the judges' error at the thresholds, by group
    *("false_calls", "misses", "judge_error_gap"),
    "alpha_outcome",
    # means of the paper's Table 6 and Figure 6, medians and majorities, and preferences
    *("mean_people", "mean_delta", "preference_rate", "preference_same"),
    *("weighted_kappa_linear_median", "weighted_kappa_quadratic_median", "spearman_median"),
    *("weighted_kappa_linear_majority", "weighted_kappa_quadratic_majority"),
}


def test_no_other_statistics_are_told():
    assert {a.statistic for a in told(rated()).agreement} <= STATISTICS


def test_invented_scores_do_not_enter_agreement():
    """The published neutral 3 fills what no judge answered; it is no answer to compare with people's."""
    table = rated(judges=1)
    values = table.values.copy()
    values[0, ::2] = 0
    filled = told(replace(table, values=values), replace(FEW_DRAWS, missing="neutral-3"))
    assert at(filled, "mae", "skin_tone").n_items == len(table.edits) // 2


def test_the_report_has_a_section_and_the_plans_file(tmp_path):
    found = analyse(rated(), FEW_DRAWS)
    page = write_report(found, tmp_path, title="People").read_text() + (tmp_path / "appendix.html").read_text()
    assert 'id="people"' in page and "Judges, people and instruments" in page
    for name in ("between_people", "judges_people", "judges_people_labels", "judge_error", "rank_tests"):
        assert (tmp_path / "tables" / f"{name}.csv").stat().st_size
    assert (tmp_path / "figures" / "figure_people.svg").stat().st_size
    told = json.loads((tmp_path / "vlm_human_agreement.json").read_text())
    kappa = at(found, "cohen_kappa", "gender_drift.label")
    assert told["vlm_human"]["gender_drift"]["baseline"]["cohen_kappa"]["value"] == kappa.value
    assert told["between_people"]["target_fleiss_kappa"] == 0.6
    fleiss = at(found, "fleiss_kappa", "skin_tone").value or 0
    assert told["between_people"]["questions"]["skin_tone"]["baseline"]["meets_target"] == (fleiss >= 0.6)
    assert any("target of Fleiss' κ ≥ 0.6 is missed" in s.text for s in summarise(found))
    write_report(replace(found, agreement=()), tmp_path, title="Nobody")
    assert not (tmp_path / "vlm_human_agreement.json").exists()


def test_simulated_people_are_marked_in_every_row():
    table = rated()
    marked = told(replace(table, raters=(*table.raters[:4], "simulated-person-01")))
    assert all(a.method.endswith("SIMULATED") for a in marked.agreement)


def test_people_alone_have_a_report_of_their_own(tmp_path):
    table = rated(judges=0)
    found = analyse(table, FEW_DRAWS)
    check(found)
    write_report(found, tmp_path, title="People alone")
    written = {path.stem for path in (tmp_path / "tables").glob("*.csv")}
    people = {"between_people", "rank_tests", "table6", "table18"}
    assert written == {*people, "table9", "table13"}  # nothing that is dashes throughout
    assert "No judge has scored these edits" in summarise(found)[0].text

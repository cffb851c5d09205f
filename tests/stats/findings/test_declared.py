"""The tests of [primary] from scores to sentences: families, levels, covariates, people, instruments."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Status
from evenedit.ratings.table import STATUSES, RatingTable, Reading
from evenedit.results.primary import DeclaredTest, alpha_of_others
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse
from evenedit.stats.findings.levels import adjust
from tests.support.tables import FEW_DRAWS, edit, face, rated, scores, table_of

PROMPTS = ("O-01", "O-02", "O-03", "O-04", "O-06", "O-07")
GRID = [face(race, gender, "20s", k) for race, gender, k in product(("White", "Black"), ("Male", "Female"), range(6))]
RACE = {"factor": "race", "high": ["Black"], "low": ["White"]}
LIGHTER = {"outcome": "skin_lighter", "contrast": RACE}
SCORE = {"outcome": "skin_tone", "scale": "mean", "contrast": RACE}
SHIFT = {"outcome": "shift.skin_tone"}


def rules(*tests: dict, **section: object) -> AnalysisRules:
    return replace(FEW_DRAWS, primary={"alpha": 0.04, "covariate": "", "tests": [*tests], **section})


def lightening(black: float, white: float, floor: bool = False, judges: int = 2, seed: int = 5) -> RatingTable:
    """Edits that come back lighter with these chances; judges who mostly agree; null edits that show nothing."""
    rng = np.random.default_rng(seed)
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    lighter = [rng.random() < (black if row["race"] == "Black" else white) for row in rows]
    if floor:
        rows += [edit(source, "N-01", condition="floor") for source in GRID]
        lighter += [bool(rng.random() < 0.4) for _ in GRID]
    given = {
        f"judge-{n}": [scores(skin=4 if x != (rng.random() < 0.03) else 3) for x in lighter] for n in range(judges)
    }
    return table_of(rows, given)


def declared(table: RatingTable, analysis: AnalysisRules, **facts: object) -> tuple[DeclaredTest, ...]:
    return analyse(table, analysis, StudyFacts(**facts)).primary


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(lightening(0.6, 0.1), rules(LIGHTER, SCORE, SHIFT))


def test_each_declared_test_is_one_record_in_the_declared_order(results):
    first, second, third = results.primary
    assert [t.number for t in results.primary] == [1, 2, 3]
    assert (first.measure, first.higher, first.lower, first.unit) == (
        "rate.skin_lighter",
        ("Black",),
        ("White",),
        "points",
    )
    assert (second.measure, second.unit, third.factor) == ("mean.skin_tone", "score", "")
    assert first.level == second.level == third.level == "clear_to_judges"
    rates = [results.estimate("rate.skin_lighter", editor="e", group={"race": r}).value for r in ("Black", "White")]
    assert first.value == pytest.approx(rates[0] - rates[1]) and first.n == 144 and first.faces == 24
    assert first.text.startswith(f"{100 * rates[0]:.1f}% of edits of portraits labelled Black were rated lighter")
    assert "of those labelled White (difference" in first.text and "95% interval" in first.text
    assert first.estimand == "Prompts like these, faces like these, as rated by two judges, not checked by people."


def test_the_results_are_read_back_and_are_a_frame(results):
    assert Results.from_files(results.to_files().get) == results
    assert list(results.to_frame("primary")["outcome"]) == ["skin_lighter", "skin_tone", "shift.skin_tone"]
    without = analyse(lightening(0.6, 0.1), FEW_DRAWS)
    assert without.primary == () and '"primary"' not in without.to_json()


def test_scores_are_not_rounded_before_they_are_averaged():
    """Judges who say 3 and 4 of every edit have the mean 3.5, which the ensemble's half-up score has not."""
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    table = table_of(rows, {"a": [scores(skin=3)] * len(rows), "b": [scores(skin=4)] * len(rows)})
    (test,) = declared(table, rules({"outcome": "mean.skin_tone"}))
    assert test.value == 0.5 and test.limit == 0
    assert analyse(table, FEW_DRAWS).estimate("mean.skin_tone", editor="e").value == 4


def test_declared_tests_have_a_family_of_their_own(results):
    p = [t.p for t in results.primary]
    assert [t.p_adjusted for t in results.primary] == pytest.approx(multipletests(p, method="holm")[1])
    assert {t.alpha for t in results.primary} == {0.04}
    assert alpha_of_others(results.primary) == 0.05, "all declared tests are rejected, so the others have all of it"
    null = analyse(lightening(0.3, 0.3), rules(LIGHTER, SHIFT))
    assert null.primary[0].level == "none" and alpha_of_others(null.primary) == 0.01


def test_adjustment_is_that_of_statsmodels():
    rng = np.random.default_rng(2)
    for _ in range(20):
        first, others = ({(k, i): float(x) for i, x in enumerate(rng.uniform(0, 0.1, n))} for k, n in ((1, 3), (2, 7)))
        tests = adjust(others, first, 0.04)
        for family in (first, others):
            holm = multipletests([*family.values()], method="holm")[1]
            assert [tests[key].p_adjusted for key in family] == pytest.approx(holm)
        rest = 0.05 if all(tests[key].is_clear for key in first) else 0.01
        assert {round(tests[key].alpha, 10) for key in others} == {rest}
        weights = np.array([10 / 6] * 3 + [10 / 14] * 7)  # half of the weight on each family, with a mean of 1
        raw = np.array([*first.values(), *others.values()])
        order = np.argsort(raw / weights)
        steps = (raw / weights)[order] * 10 / np.arange(1, 11)
        q = np.empty(10)
        q[order] = np.minimum.accumulate(steps[::-1])[::-1]
        assert [tests[key].q for key in (*first, *others)] == pytest.approx(q)
        alone = adjust({**first, **others})
        expected = multipletests(raw, method="fdr_bh")[1]
        assert [alone[key].q for key in (*first, *others)] == pytest.approx(expected)


def test_a_test_without_p_keeps_the_others_at_what_is_left():
    tests = adjust({"a": 0.02}, {"b": 0.001, "c": None}, 0.04)
    assert tests["a"].alpha == pytest.approx(0.01) and not tests["a"].is_clear
    assert tests["b"].p_adjusted == 0.001 and tests["b"].is_clear and not tests["c"].is_clear


def test_a_shift_that_is_declared_is_one_test_and_one_level(results):
    (finding,) = [f for f in results.findings if f.measure == "shift.skin_tone" and f.kind == "shift"]
    shift = results.primary[2]
    assert (finding.p, finding.level, finding.value) == (shift.p_adjusted, shift.level, shift.value)
    without = analyse(lightening(0.6, 0.1), rules(LIGHTER, SCORE))
    assert results.counts["tests"] == without.counts["tests"], "the shift is counted once"


def test_tests_declared_later_are_exploratory_and_have_no_family():
    late = analyse(lightening(0.3, 0.3), rules(LIGHTER), StudyFacts(declared="exploratory"))
    (test,) = late.primary
    assert (test.standing, test.alpha) == ("exploratory", 0.05)
    everything = [t.p for t in late.tests if t.level is not None] + [test.p]
    assert test.p_adjusted >= test.p * len([p for p in everything if p is not None]) / 2
    assert test.p_adjusted > declared(lightening(0.3, 0.3), rules(LIGHTER))[0].p_adjusted


def test_no_effect_and_untested_groups_are_shown_too():
    table = lightening(0.3, 0.3)
    tests = declared(table, rules(LIGHTER, {"outcome": "skin_lighter", "contrast": RACE | {"low": ["Latino"]}}))
    assert tests[0].text.startswith("No difference was shown: ") and tests[0].level == "none"
    assert tests[0].detectable is not None and 0 < tests[0].detectable < 1
    assert (tests[1].value, tests[1].level) == (None, "cannot_tell")
    assert tests[1].text == "skin_lighter was not tested: a group, or the editor, has no edit with a score."


def test_judges_at_chance_show_nothing():
    rng = np.random.default_rng(8)
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    given = {n: [scores(skin=int(rng.integers(2, 5))) for _ in rows] for n in ("a", "b")}
    (test,) = declared(table_of(rows, given), rules(LIGHTER))
    assert (test.evidence, test.level) == ("none", "cannot_tell")
    assert "no better than chance" in test.text and "%" not in test.text


def test_the_null_edit_as_covariate_is_stored_beside_the_unadjusted_number():
    table = lightening(0.6, 0.1, floor=True)
    (test,) = declared(table, rules(SCORE, covariate="null_edit"))
    (plain,) = declared(table, rules(SCORE))
    assert test.covariate == "null_edit" and "adjusted for the null edit" in test.text
    assert (test.unadjusted_value, test.unadjusted_p) == (plain.value, plain.p)
    assert test.value != plain.value and plain.covariate == "" and plain.unadjusted_value is None


def test_where_many_faces_lack_the_covariate_nothing_is_adjusted():
    (test,) = declared(lightening(0.6, 0.1), rules(SCORE, covariate="null_edit"))
    assert test.covariate == "" and test.unadjusted_value is None
    assert "Not adjusted for the covariate null_edit: 24 portraits of 24 lack it." in test.caveats


def read_skin(table: RatingTable, values: np.ndarray, *, null: bool) -> RatingTable:
    """The table with an instrument that reads L*, and with null pairs that it reads as 0 and a bit."""

    def of(part: RatingTable, numbers: np.ndarray) -> RatingTable:
        reading = Reading("skin", "mean.skin_delta_L_raw", numbers, ("",) * len(numbers), title="Skin ΔL*", unit="L*")
        status = np.full((1, len(part.edits)), STATUSES.index(Status.SCORED), dtype=np.int8)
        return replace(
            part,
            raters=(*part.raters, "skin"),
            kinds=(*part.kinds, Kind.INSTRUMENT),
            values=np.concatenate([part.values, np.zeros((1, *part.values.shape[1:]), dtype=np.int8)]),
            status=np.concatenate([part.status, status]),
            readings=(reading,),
        )

    if not null:
        return of(table, values)
    rows = [edit(source, "null", condition="null_pair", editor="null pair") for source in GRID for _ in range(2)]
    pairs = table_of(rows, {name: [scores()] * len(rows) for name in table.raters})
    noise = np.random.default_rng(1).normal(0, 0.2, len(rows))
    return replace(of(table, values), null_pairs=of(pairs, noise))


@pytest.mark.parametrize("outcome", ["skin.skin_delta_L_raw", "skin_delta_L_raw"])
def test_a_reading_is_clear_where_null_pairs_validate_it(outcome):
    table = lightening(0.3, 0.3)
    black = (table.edits["race"] == "Black").to_numpy()
    values = np.random.default_rng(3).normal(0, 1, len(black)) + 3.0 * black
    stated = {"outcome": outcome, "contrast": RACE}
    (test,) = declared(read_skin(table, values, null=True), rules(stated))
    assert (test.rater, test.measure, test.unit) == ("skin", "mean.skin_delta_L_raw", "reading")
    assert (test.level, test.evidence) == ("clear", "instrument") and test.value == pytest.approx(3, abs=0.4)
    assert "Mean Skin ΔL*" in test.text and "+" in test.text
    (unchecked,) = declared(read_skin(table, values, null=False), rules(stated))
    assert unchecked.level == "suggestive" and "The instrument was not checked on null pairs." in unchecked.caveats


def test_a_covariate_that_differs_between_edits_of_a_portrait_is_refused():
    table = lightening(0.6, 0.1)
    values = np.random.default_rng(3).normal(size=len(table.edits))
    with pytest.raises(EvenEditError, match="differs between edits of one portrait"):
        declared(read_skin(table, values, null=True), rules(SCORE, covariate="skin.skin_delta_L_raw"))
    portrait = pd.factorize(table.edits["source_id"])[0].astype(float) % 5
    (test,) = declared(read_skin(table, portrait, null=True), rules(SCORE, covariate="skin.skin_delta_L_raw"))
    assert test.covariate == "skin.skin_delta_L_raw"


def test_people_who_rated_enough_decide():
    """Judges see no difference; people, on all edits, see one."""
    table = rated(3, people=3, faces=20, harsh="")
    at, people = table.at("skin_tone"), table.of_kind(Kind.HUMAN)
    values, black = table.values.copy(), (table.edits["race"] == "Black").to_numpy()
    rng = np.random.default_rng(4)
    truth = np.where(rng.random(len(black)) < np.where(black, 0.8, 0.1), 4, 3)
    judged = np.where(rng.random(len(black)) < 0.3, 4, 3)
    for r in range(len(table.raters)):
        values[r, :, at] = truth if r in people else judged
    chances = dict.fromkeys(table.edits["request_id"], 1.0)
    contrast = {"factor": "race", "high": ["Black"], "low": ["White", "Indian"]}
    tests = declared(
        replace(table, values=values),
        rules({"outcome": "skin_lighter", "contrast": contrast}, {"outcome": "shift.skin_tone"}),
        inclusion=chances,
    )
    for test in tests:
        assert test.evidence == "people" and "edits rated by people, corrected" in test.text
        assert test.judge_value is not None and "Judges alone: " in test.text
    gap = tests[0]
    assert gap.value == pytest.approx(0.7, abs=0.1) and abs(gap.judge_value) < 0.2


def test_an_even_test_lies_within_the_margin_and_a_mean_has_none():
    (stated,) = declared(lightening(0.3, 0.3), rules(LIGHTER))
    even = replace(stated, trend=True, higher=("1", "2", "3"), value=0.0, low=-0.02, high=0.02)
    assert even.is_even(0.05) and not even.is_even(0.03), "two levels apart, 0.04"
    assert not even.is_even(None) and not replace(even, measure="mean.skin_tone").is_even(0.05)
    assert replace(even, low=0.06, high=0.1).is_beyond(0.1) and not even.is_beyond(0.01)

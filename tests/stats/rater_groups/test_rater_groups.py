"""Groups of raters: a planted effect of rating one's own group is found, and rates are weighted as the study says."""

from dataclasses import replace

import numpy as np
import pytest

from evenedit.results.finding import Finding
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.stats.rater_groups.effects import rater_effects, rater_tests
from evenedit.stats.rater_groups.finding_replication import findings_by_rater_group
from evenedit.stats.rater_groups.rates import rater_rates
from evenedit.stats.rater_groups.ratings import centred, deviation
from validation.rater_groups import nothing, own_group, severe_group, survey

RULES = AnalysisRules("default", permutations=399)


@pytest.fixture(scope="module")
def planted():
    return survey(np.random.default_rng(5), own_group(0.8))


def test_a_planted_own_group_effect_is_found_and_its_size_recovered(planted):
    own = [t for t in rater_tests(planted, RULES) if t.kind == "own" and t.question == "ethnicity"]
    assert len(own) == 5 and all(t.factor == "race" for t in own)
    assert all(t.p_adjusted < 0.05 for t in own)
    assert np.mean([t.value for t in own]) == pytest.approx(0.7, abs=0.12), "a little less, as scores end at 1 and 5"
    effects = rater_effects(planted, RULES)
    black = [e.value for e in effects if (e.raters, e.group) == ("Black", {"race": "Black"})]
    assert len(black) == 5 and all(value > 0.4 for value in black)


def test_without_effects_nothing_is_found():
    tests = rater_tests(survey(np.random.default_rng(6), nothing), RULES)
    assert {t.kind for t in tests} == {"level", "pattern", "own"}
    assert min(t.p_adjusted for t in tests) > 0.05


def test_a_severe_group_is_a_level_and_no_effect_on_portraits():
    tests = rater_tests(survey(np.random.default_rng(7), severe_group), RULES)
    assert not [t for t in tests if t.kind != "level" and t.p_adjusted < 0.05]
    levels = [t.p for t in tests if t.kind == "level" and t.question == "ethnicity"]
    assert np.median(levels) < 0.1, "ten of thirty raters are half a point higher, and raters differ by 0.4 anyway"


def test_rates_are_weighted_to_the_population_that_the_study_names(planted):
    question = replace(planted.profiles.questions[1], population={"Female": 1.0, "Male": 3.0})
    table = replace(planted, profiles=replace(planted.profiles, questions=(question,)))
    rates = {r.raters: r for r in rater_rates(table, RULES) if r.measure == "rate.race_change" and not r.group}
    assert rates["*"].value == pytest.approx(0.25 * rates["Female"].value + 0.75 * rates["Male"].value)
    assert rates[""].people == 30 and rates["Female"].people == 15
    assert all(r.low <= r.value <= r.high for r in rates.values())


def test_a_finding_is_looked_for_in_the_ratings_of_each_group(planted):
    finding = Finding(
        *("gap", "clear", "diagnosis", "baseline", None, "gap.race_change", "ensemble", "race"),
        *({"race": "Black"}, {"race": "White"}, 0.2, 0.1, 0.3, 0.01, 0.01, 100, 12, "Black portraits change more."),
        id="f1",
    )
    results = Results(provenance={}, rules=RULES.to_dict(), estimates=(), findings=(finding,))
    holds = {
        h.raters: h for h in findings_by_rater_group(results.findings, planted, RULES) if h.question == "ethnicity"
    }
    assert holds["Black"].value > 0 > holds["White"].value, "each group rates its own portraits higher"
    assert holds["Black"].holds in ("yes", "same_direction") and holds["White"].holds.startswith("opposite")
    assert holds[""].people == 30


def test_no_number_is_about_fewer_than_five_people_of_a_group(planted):
    """Of ten Black raters only three rated White portraits: nothing is told of them there, nor of the next smallest."""
    people = planted.profiles.questions[0].raters
    black = [at for at, person in enumerate(planted.raters) if people[person] == "Black"]
    values = planted.values.copy()
    values[np.ix_(black[3:], (planted.edits["race"] == "White").to_numpy())] = 0
    table = replace(planted, values=values)
    white = {"race": "White"}
    shown = {r.raters: r.people for r in rater_rates(table, RULES) if r.question == "ethnicity" and r.group == white}
    assert shown == {"": 23, "White": 14}, "with 6 Asian raters shown, the 3 would be what is left of 23"
    assert {e.raters for e in rater_effects(table, RULES) if e.question == "ethnicity" and e.group == white} == {
        "White"
    }
    every = {r.raters for r in rater_rates(table, RULES) if r.question == "ethnicity" and not r.group}
    assert every == {"", "White", "Black", "Asian", "*"}
    lighter = Finding(
        *("shift", "clear", "diagnosis", "baseline", None, "shift.skin_tone", "ensemble", "race"),
        *(white, None, 0.2, 0.1, 0.3, 0.01, 0.01, 100, 12, "White portraits come back lighter."),
        id="f2",
    )
    results = Results(provenance={}, rules=RULES.to_dict(), estimates=(), findings=(lighter,))
    holds = [h for h in findings_by_rater_group(results.findings, table, RULES) if h.question == "ethnicity"]
    assert {h.raters: h.people for h in holds} == {"": 23, "White": 14}


def test_what_is_left_over_has_no_mean_of_any_rater_or_output():
    rng = np.random.default_rng(1)
    rater, output = rng.integers(0, 9, 400), rng.integers(0, 50, 400)
    left = centred(rng.normal(size=400) + rater, rater, output)
    for group in (rater, output):
        assert np.abs(np.bincount(group, weights=left)).max() < 1e-6


def test_two_way_errors_are_never_below_one_way_errors():
    rng = np.random.default_rng(2)
    influence, one, two = rng.normal(size=200), rng.integers(0, 12, 200), rng.integers(0, 20, 200)
    assert deviation(influence, one, two) >= max(deviation(influence, one), deviation(influence, two)) - 1e-12

"""Differences of two editors on the same faces: against paired t-tests, and what their intervals hold."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from evenedit.ratings.combine import combine
from evenedit.ratings.table import Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.stats.disparity.paired_editors import (
    Difference,
    adjusted,
    corrections,
    differences,
    gap_differences,
    pair,
)
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.rules import AnalysisRules
from tests.support.declared import declared_table
from tests.support.panels import panel_of
from tests.support.tables import edit, face, scores, table_of

RULES = AnalysisRules.default()
ONE = Difference("rate.skin_lighter", {}, 0.1, 0.2, 0.1, 0.03, 0.17, 100)


def rated(*lighter: np.ndarray, prompts: tuple[str, ...] = ("O-01",)) -> Scores:
    """The scores of editors e0, e1, … on the same faces: where skin was rated lighter, [face, prompt] each."""
    faces = [face(race, copy=k) for race, k in product(("White", "Black"), range(len(lighter[0]) // 2))]
    rows, given = [], []
    for number, met in enumerate(lighter):
        for (i, source), (j, prompt) in product(enumerate(faces), enumerate(prompts)):
            rows.append(edit(source, prompt, editor=f"e{number}"))
            given.append(scores(skin=4 if met.reshape(len(faces), -1)[i, j] else 3))
    table = table_of(rows, {"judge-a": given, "judge-b": given})
    return combine(table, RULES.ensemble, RULES.missing)


def of(found: list[Difference], measure: str, **group: str) -> Difference:
    return next(d for d in found if d.measure == measure and d.group == group)


def test_a_difference_of_a_group_on_one_prompt_is_the_paired_t_test():
    rng = np.random.default_rng(3)
    first, second = rng.random(40) < 0.2, rng.random(40) < 0.5
    both = rated(first, second)
    found = of(differences(pair(both, both, "e0", "e1"), RULES), "rate.skin_lighter", race="White")
    expected = stats.ttest_rel(second[:20].astype(int), first[:20].astype(int))
    ends = expected.confidence_interval(0.95)
    assert found.value == pytest.approx(second[:20].mean() - first[:20].mean())
    assert (found.first, found.second, found.pairs) == (first[:20].mean(), second[:20].mean(), 20)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))


def test_a_difference_of_everybody_is_that_of_faces_with_the_same_labels():
    rng = np.random.default_rng(4)
    first, second = rng.random(40) < 0.2, rng.random(40) < 0.5
    both = rated(first, second)
    found = of(differences(pair(both, both, "e0", "e1"), RULES), "rate.skin_lighter")
    change = second.astype(int) - first
    within = sum(((g - g.mean()) ** 2).sum() for g in (change[:20], change[20:])) / 38
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 38) * np.sqrt(within / 40))


def test_an_editor_does_not_differ_from_itself():
    rng = np.random.default_rng(5)
    met = rng.random((40, 3)) < np.repeat([0.2, 0.6], 20)[:, None]
    both = rated(met, met, prompts=("O-01", "O-02", "O-03"))
    found = differences(pair(both, both, "e0", "e1"), RULES)
    assert all(d.value == 0 and d.change == "unclear" for d in found)
    gap = of(found, "gap.skin_lighter", race="*")
    assert gap.first > 0.2 and gap.low <= 0 <= gap.high and gap.high - gap.low < 0.35


@pytest.mark.parametrize("apart", [(0.0, 0.0), (1.2, 0.0), (1.0, 1.0)])
def test_the_interval_of_a_difference_of_gaps_holds_the_truth(apart):
    rng, studies = np.random.default_rng(6), 60
    held = []
    for _ in range(studies):
        latent = rng.normal(0, 0.5, (24, 1, 1)) + rng.normal(0, 0.5, (1, 6, 1)) + rng.normal(size=(24, 6, 2))
        latent[:8] += np.array(apart)
        (found,) = gap_differences(CrossedPanel(panel_of(latent > 0.8, 3)), RULES)
        rates = stats.norm.sf((0.8 - np.array(apart)) / np.sqrt(1.5)) - stats.norm.sf(0.8 / np.sqrt(1.5))
        held.append(found.low <= rates[1] - rates[0] <= found.high)
    assert np.mean(held) >= 0.93


def test_gaps_of_editors_that_never_met_the_event_have_a_difference_with_an_interval():
    (found,) = gap_differences(CrossedPanel(panel_of(np.zeros((24, 6, 2), dtype=int), 3)), RULES)
    assert found.value == 0 and found.low < 0 < found.high


def test_p_follows_from_the_half_of_the_interval_towards_zero():
    (found,) = adjusted([ONE], 0.95)
    assert found.p == found.p_adjusted == pytest.approx(2 * stats.norm.sf(0.1 / 0.07 * stats.norm.ppf(0.975)))


def test_two_families_share_the_chance_of_a_false_alarm():
    both, of_group = adjusted([ONE, replace(ONE, group={"race": "Black"})], 0.95)
    assert both.p_adjusted == of_group.p_adjusted == pytest.approx(2 * both.p)
    together, _ = adjusted([ONE, replace(ONE, measure="gap.skin_lighter", group={"race": "*"})], 0.95)
    assert together.p_adjusted == pytest.approx(2 * together.p), "Holm over one family of two"


def test_what_has_no_interval_or_no_direction_is_no_test():
    still = replace(ONE, value=0.0, low=None, high=None)
    first, second, third = adjusted([ONE, still, replace(ONE, measure="mean.skin_tone", better=0)], 0.95)
    assert second.p is third.p is second.p_adjusted is third.p_adjusted is None
    assert first.p_adjusted == first.p


def test_more_of_a_success_is_an_improvement_and_more_of_a_change_a_regression():
    worse, better, unclear = adjusted(
        [
            ONE,
            replace(ONE, measure="rate.edit_success", better=1),
            replace(ONE, measure="rate.race_change", low=-0.1),
        ],
        0.95,
    )
    assert [worse.change, better.change, unclear.change] == ["regression", "improvement", "unclear"]


def test_the_rubric_says_what_more_of_a_measure_means():
    table = declared_table()
    second = combine(table, RULES.ensemble, RULES.missing)
    rules = replace(RULES, rates=table.rubric.rates)
    better = {d.measure: d.better for d in differences(pair(second, second, "e", "f"), rules) if not d.group}
    assert better["mean.edit_success"] == better["rate.edit_success"] == 1
    assert better["mean.hair_change"] == better["rate.headscarf_removed"] == better["rate.fingers"] == -1
    assert better["mean.skin_tone"] == better["share.headscarf[kept]"] == 0, "neither more nor less is better"


def corrected(editor: str, value: float, *, enough: bool = True) -> PredictionPowered:
    ends = value - 0.06, value + 0.08
    judge, human = (0.5, 0.4, 0.6), (value, *ends)
    place = "rate.skin_lighter", "diagnosis", "baseline", editor, {}
    return PredictionPowered(*place, *judge, *human, value, *ends, 0.8, 40, 20, "", None, enough, "")


def test_people_correct_a_difference_where_both_editors_have_enough_ratings():
    rng = np.random.default_rng(3)
    both = rated(rng.random(40) < 0.2, rng.random(40) < 0.5)
    pairs, first, second = pair(both, both, "e0", "e1"), corrected("e0", 0.1), corrected("e1", 0.45)
    judged = of(differences(pairs, RULES), "rate.skin_lighter")
    assert judged.judge_value is None
    people = corrections([first, second], "e0"), corrections([first, second], "e1")
    found = of(differences(pairs, RULES, people), "rate.skin_lighter")
    assert (found.first, found.second, found.value) == (0.1, 0.45, pytest.approx(0.35))
    assert found.judge_value == judged.value
    assert (found.low, found.high) == pytest.approx((0.35 - 0.1, 0.35 + 0.1)), "√(0.06² + 0.08²) on either side"
    lacking = corrections([corrected("e1", 0.45, enough=False)], "e1")
    assert of(differences(pairs, RULES, (people[0], lacking)), "rate.skin_lighter") == judged

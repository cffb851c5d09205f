"""Krippendorff's alpha of outcomes as they are counted."""

from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from scipy.stats import t

from evenedit.ratings.combine import combine
from evenedit.stats.agreement.reliability import alpha, outcome_alphas, outcome_reliability
from evenedit.stats.engine.rules import AnalysisRules
from tests.support.tables import FACES, edit, rated, scores, table_of

RULES = AnalysisRules.default()
FACE = np.repeat([f"f{i:02}" for i in range(30)], 8)


def two_raters(rng: np.random.Generator, codes: tuple[float, ...] = (0, 1)) -> np.ndarray:
    first = rng.choice(codes, len(FACE))
    return np.stack([first, np.where(rng.random(len(FACE)) < 0.3, rng.choice(codes, len(FACE)), first)])


def by_hand(a: np.ndarray, b: np.ndarray) -> float:
    return 1 - np.mean((a - b) ** 2) / (2 * np.concatenate([a, b]).var(ddof=1))


@pytest.mark.parametrize("codes", [(0, 1), (-1, 0, 1)])
def test_alpha_and_its_jackknife_are_those_of_the_formulas(codes):
    a, b = two_raters(np.random.default_rng(1), codes)
    (result,) = alpha(np.stack([a, b])[..., None], FACE, 0.95)
    assert result.value == pytest.approx(by_hand(a, b)) and result.n == len(FACE)
    assert result.value == pytest.approx(
        krippendorff.alpha(reliability_data=np.stack([a, b]), level_of_measurement="interval")
    )
    kept = [f != FACE for f in np.unique(FACE)]
    without = np.array([by_hand(a[rows], b[rows]) for rows in kept])
    reach = t.ppf(0.975, 29) * np.sqrt(29 / 30 * ((without - without.mean()) ** 2).sum())
    assert (result.low, result.high) == pytest.approx((result.value - reach, result.value + reach))


def test_many_people_with_few_ratings_each_are_those_of_krippendorff():
    rng = np.random.default_rng(2)
    people = np.where(rng.random((6, len(FACE))) < 0.4, (rng.random(len(FACE)) < 0.3) * 1.0, np.nan)
    people = np.where(rng.random(people.shape) < 0.2, 1 - people, people)
    (result,) = alpha(people[..., None], FACE, 0.95)
    assert result.value == pytest.approx(krippendorff.alpha(reliability_data=people, level_of_measurement="interval"))
    assert result.n == ((~np.isnan(people)).sum(axis=0) > 1).sum()


def test_faces_that_nobody_rated_twice_do_not_count():
    codes = two_raters(np.random.default_rng(3))
    only = np.where(FACE < "f20", codes, np.nan)
    assert alpha(only[..., None], FACE, 0.95) == alpha(codes[:, FACE < "f20", None], FACE[FACE < "f20"], 0.95)


def test_the_order_of_items_and_raters_and_the_direction_of_codes_change_nothing():
    rng = np.random.default_rng(4)
    codes, order = two_raters(rng), rng.permutation(len(FACE))
    (result,) = alpha(codes[..., None], FACE, 0.95)
    for other, face in ((codes[:, order], FACE[order]), (codes[::-1], FACE), (1 - codes, FACE)):
        (again,) = alpha(other[..., None], face, 0.95)
        assert (again.value, again.low, again.high) == pytest.approx((result.value, result.low, result.high))


def test_random_judges_are_at_chance_and_constant_ones_have_none():
    codes = (np.random.default_rng(5).random((2, len(FACE))) < 0.5) * 1.0
    (chance,) = alpha(codes[..., None], FACE, 0.95)
    assert chance.low < 0 < chance.high
    constant = np.stack([codes[0], np.ones(len(FACE))])[..., None]
    assert alpha(constant, FACE, 0.95, [(0, 1)])[0].value is None
    assert alpha(0 * constant, FACE, 0.95)[0].value is None


def test_outcomes_are_counted_at_their_thresholds_by_editor():
    table = rated(judges=3)
    values = combine(table, RULES.ensemble, "exclude")
    result = outcome_reliability(outcome_alphas(values, RULES))
    assert {editor for _, editor in result} == {"e", "f"}
    assert {f"rate.{name}" for name in RULES.rates} | {"shift.skin_tone", "shift.age_drift"} == {m for m, _ in result}
    rows = (table.edits["editor"] == "e").to_numpy()
    skin = table.values[:3, rows, 1].astype(int)  # the second question of the rubric
    code = (skin >= RULES.rates["skin_lighter"].at_least) * 1 - (skin <= RULES.rates["skin_darker"].at_most)
    pairs = [by_hand(code[i], code[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert result["shift.skin_tone", "e"].value == pytest.approx(np.mean(pairs))
    race = table.values[:3, rows, 2] >= RULES.rates["race_change"].at_least
    pairs = [by_hand(race[i] * 1.0, race[j] * 1.0) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert result["rate.race_change", "e"].value == pytest.approx(np.mean(pairs))


def test_shifts_leave_out_prompts_that_ask_for_the_change():
    rows = [edit(f, p) for f in FACES for p in ("O-01", "O-02")]
    first = [scores(skin=5 if i % 2 else 3 + (i // 2) % 2) for i in range(len(rows))]  # the second prompt asks for it
    second = [scores(skin=1 if i % 2 else 3 + (i // 2) % 2) for i in range(len(rows))]
    table = replace(table_of(rows, {"a": first, "b": second}), asks={"O-02": ("skin_tone",)})
    result = outcome_reliability(outcome_alphas(combine(table, RULES.ensemble, "exclude"), RULES))
    assert result["shift.skin_tone", "e"].value == 1.0 and result["shift.skin_tone", "e"].n == len(FACES)
    assert result["rate.skin_lighter", "e"].value < 0.5


def test_one_judge_has_no_reliability():
    assert not list(outcome_alphas(combine(rated(judges=1), RULES.ensemble, "exclude"), RULES))

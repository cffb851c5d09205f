"""What a design can show before it is run, against hand-worked numbers and other implementations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nct, studentized_range, t
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.power import TTestIndPower

from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS
from evenedit.stats.engine.measures import answers
from evenedit.stats.power.budget import Costs, DesignBudget, best_design, even_groups, smallest_design
from evenedit.stats.power.design import (
    CORRELATION,
    RATE,
    SHIFT,
    Assumptions,
    Components,
    Design,
    contrast_variance,
    even_margin,
    planned_tests,
    shift_variance,
)
from evenedit.stats.power.pilot import components, measured
from validation.evidence import RULES, World
from validation.power import CLOSE, PLANNED, questions
from validation.worlds import RATE as RACE_CHANGE
from validation.worlds import Latent

PAPER = Design((12,) * 7, 20)
USUAL = Assumptions(RATE, SHIFT, CORRELATION, 1, 13, 0.05 / 3, 0.05 / 27, 0.05 / 27)


def test_the_variance_of_a_contrast_is_worked_by_hand():
    """Four groups against three: sum of squared weights 1/3 + 1/4, all groups alike."""
    sure = contrast_variance(PAPER, RATE, [1 / 16] * 4 + [1 / 9] * 3)
    # 0.58333 (0.0141 / 12 + 0.0027 / 20 + 0.1213 / 240) = 0.58333 x 0.00181542
    assert float(sure.variance) == pytest.approx(0.001058994, rel=1e-5)
    # mean squares 0.4033 (77 df), 0.1537 (114 df), 0.1213 (1463 df): 0.4357^2 / 0.0023296
    assert float(sure.freedom) == pytest.approx(81.49, abs=0.02)


def test_the_variance_of_a_shift_is_worked_by_hand():
    sure = shift_variance(PAPER, SHIFT, 13)
    # 0.0438 / 84 + (0.0438 + 0.0070 / 7) / 20 + 0.2461 / 1680, less 0.0070 x 6 / 7 / 1680, which prompts have once
    assert float(sure.variance) == pytest.approx(0.000521429 + 0.00224 + 0.000146488 - 0.00000357, rel=1e-4)
    few = shift_variance(Design((3, 3), 40), SHIFT, 5)  # labels take more than half of the freedom of six faces
    assert 5 <= float(few.freedom) < 60


def test_power_is_that_of_the_noncentral_t():
    test = planned_tests(PAPER, USUAL)["contrast"]
    assert test is not None
    limit = t.ppf(1 - 0.05 / 6, test.sure.freedom)
    assert test.power(0.1) == pytest.approx(nct.sf(limit, test.sure.freedom, 0.1 / np.sqrt(test.sure.variance)))
    assert test.power(0.1) == pytest.approx(0.735, abs=0.005)  # as simulations of this world say: 0.72
    assert test.power(test.detectable) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("faces", [5, 20, 60])
def test_two_groups_whose_faces_alone_vary_have_the_power_of_a_t_test(faces):
    only_faces = replace(USUAL, rate=Components(0.04, 0, 0, 0, 0), contrast=0.05)
    test = planned_tests(Design((faces, faces), 9), only_faces)["contrast"]
    assert test is not None
    expected = TTestIndPower().power(0.15 / 0.2, faces, 0.025, alternative="larger")
    assert test.power(0.15) == pytest.approx(expected, abs=1e-6)


def test_one_group_is_adjusted_for_all_groups():
    test = planned_tests(PAPER, USUAL)["one group"]
    assert test is not None and test.alpha == pytest.approx(0.05 / 27 / 7)
    # of a group that is 7 points apart, 6 remain against the mean of all: variance 6/7 of one group's
    assert test.scale == pytest.approx(6 / 7)
    assert float(test.sure.variance) == pytest.approx(6 / 7 * 0.00181542, rel=1e-5)
    two = planned_tests(Design((40, 40), 20), USUAL)
    assert two["one group"] is not None and two["contrast"] is not None
    assert two["one group"].sure == two["contrast"].sure and two["one group"].alpha == USUAL.gap


def test_the_margin_of_equal_groups_is_that_of_the_studentized_range():
    freedom = float(contrast_variance(PAPER, RATE, [1.0] + [0.0] * 6).freedom)
    ranges = studentized_range.ppf(0.8, 7, np.inf) + studentized_range.ppf(0.95, 7, freedom)
    assert even_margin(PAPER, USUAL) == pytest.approx(np.sqrt(0.00181542) * ranges, rel=0.01)
    assert even_margin(replace(PAPER, faces=(24, 12, 12, 12, 12, 6, 6)), USUAL) > even_margin(PAPER, USUAL)


def test_labels_by_people_add_what_judges_do_not_explain():
    test = planned_tests(replace(PAPER, labels=500), USUAL)["by people"]
    assert test is not None
    # each cell has 0.1213 + (1 - 0.49) 0.1522 (1680 / 500 - 1) = 0.30449
    assert float(test.sure.variance) == pytest.approx(7 / 12 * (0.001175 + 0.000135 + 0.30449 / 240), rel=1e-4)
    exact = planned_tests(replace(PAPER, labels=1680), USUAL)
    assert exact["by people"] == exact["contrast"]
    assert planned_tests(replace(PAPER, labels=104), USUAL)["by people"] is None  # 15 of each group are needed
    assert planned_tests(replace(PAPER, labels=500), replace(USUAL, editors=5))["by people"] is None


@pytest.mark.parametrize("design", [Design((2, 12), 20), Design((12, 12), 1)])
def test_a_design_without_a_test_has_no_number(design):
    assert set(planned_tests(design, USUAL).values()) == {None} and even_margin(design, USUAL) is None


@pytest.mark.parametrize("edits", [7 * 600, 7 * 2400, 7 * 6000])
def test_the_best_number_of_prompts_is_that_of_the_closed_form(edits):
    best = best_design(DesignBudget(7, (7,), edits), USUAL)
    assert best is not None and best.seeds == 1
    assert best.prompts == pytest.approx(max(8, np.sqrt(edits / 7 * 0.0027 / 0.0141)), rel=0.15)


def test_the_best_design_of_the_papers_budget_has_more_faces_and_fewer_prompts():
    best = best_design(DesignBudget(7, (84, 7), 1680), USUAL)
    assert best == Design((24,) * 7, 10)
    few = best_design(DesignBudget(7, (84, 7), 400), USUAL)
    assert few == Design((7,) * 7, 8)  # not 84 faces with four prompts, which do not stand for others
    assert best_design(DesignBudget(7, (84, 7), 41), USUAL) is None


def test_seeds_help_only_where_faces_cost_more():
    costs = Costs(edit=0.01, face=50.0)
    dear, cheap = (
        best_design(DesignBudget(7, (7,), usd=5000, costs=c), USUAL) for c in (costs, replace(costs, face=0.0))
    )
    assert dear is not None and cheap is not None
    assert dear.prompts * dear.seeds > cheap.prompts * cheap.seeds == cheap.prompts


def test_advice_costs_no_more_than_the_budget():
    for edit, face, task, usd in product((0.0, 0.03), (0.0, 2.0), (0.0, 9.0), (7.0, 150.0, 900.0)):
        costs = Costs(edit, face, task, 50)
        best = best_design(DesignBudget(7, (84, 7), 5000, usd, None if task else 0, costs), USUAL)
        if best is not None:
            assert costs.of(best) <= usd and best.edits <= 5000
        assert best is not None or usd < 150 or face
    labelled = best_design(DesignBudget(7, (7,), usd=150.0, labels=None, costs=Costs(0.03, 0.0, 9.0, 50)), USUAL)
    assert labelled is not None and planned_tests(labelled, USUAL)["by people"] is not None


def test_the_smallest_design_shows_the_difference_and_a_smaller_one_does_not():
    budget = DesignBudget(7, (84, 7))
    best = smallest_design(0.08, budget, USUAL)
    assert best is not None
    test = planned_tests(best, USUAL)["contrast"]
    assert test is not None and test.detectable <= 0.08
    less = best_design(replace(budget, edits=int(0.95 * best.edits)), USUAL)
    assert less is not None and planned_tests(less, USUAL)["contrast"].detectable > 0.08
    assert smallest_design(0.02, replace(budget, labels=500), USUAL) is None  # no number of edits makes up for labels


def test_faces_are_divided_evenly():
    assert even_groups(84, 5) == (17, 17, 17, 17, 16)


def test_components_of_a_pilot_are_those_of_the_analysis_of_variance():
    panel = Latent(prompts=10).draw(np.random.default_rng(5), 1).rates.panel
    met = panel.cells[:, :, 0, panel.columns.index(str(RACE_CHANGE))] / 2  # by two judges
    face, prompt = np.indices(met.shape)
    race = np.broadcast_to(panel.axes.labels["race"][:, None], met.shape)
    rows = pd.DataFrame({"y": met.ravel(), "face": face.ravel(), "prompt": prompt.ravel(), "race": race.ravel()})
    squares = anova_lm(ols("y ~ C(race) + C(prompt) + C(race):C(prompt)", rows).fit())["mean_sq"]
    by_face = rows.groupby(["race", "face"])["y"].mean()
    of_face = 10 * by_face.groupby("race").var().mean()
    rest = (squares["Residual"] * (840 - 70) - of_face * 77) / (840 - 70 - 77)
    found = components(panel, "race")[RACE_CHANGE]
    assert found.seed == pytest.approx(rest, rel=1e-4) and found.cell == pytest.approx(0, abs=1e-9)
    assert found.face == pytest.approx((of_face - rest) / 10, rel=1e-3)
    assert found.interaction == pytest.approx(max(0, squares["C(race):C(prompt)"] - rest) / 12, rel=1e-3, abs=1e-9)
    # of prompts: variance of their means, less what 84 faces and seven races leave in it
    between = rows.groupby("prompt")["y"].mean().var()
    assert found.prompt == pytest.approx(between - found.interaction / 7 - rest / 84, rel=1e-3)


def test_a_small_pilot_gives_no_components():
    panel = Latent(prompts=2).draw(np.random.default_rng(5), 1).rates.panel
    assert components(panel, "race") == {}  # seven races on two prompts: 6 degrees of freedom


def test_what_is_predicted_is_what_the_analysis_finds():
    """A small version of the validation `power`: 100 studies of one design, so coarse."""
    for _, _, said, found in questions(PLANNED[1], 100, [4]):
        assert abs(found - said) < CLOSE + 3 * np.sqrt(max(said * (1 - said), 0.01) / 100)


def test_a_study_with_labels_measures_how_far_judges_and_people_agree():
    """Good judges of a rate of 5 %: two who call 85 % of changes and people who call 90 %, both 2 % of other edits."""
    table, _ = World("good", labels=600).table(np.random.default_rng(3))
    scores = combine(table, RULES.ensemble, RULES.missing)
    a = measured(scores, answers(scores, RULES), RULES, USUAL, PAPER, ["race_change"])
    at = QUESTION_IDS.index("race_drift")
    judged, people = table.values[:2, :, at] == 4, table.values[2:, :, at] == 4
    rated = table.values[2, :, at] > 0
    expected = np.corrcoef(judged.any(axis=0)[rated], people.mean(axis=0)[rated])[0, 1]
    assert a.labelled and a.correlation == pytest.approx(expected, abs=0.02)
    assert a.rate_of == "rate.race_change" and 0.03 < a.rate.total < 0.12
    few, _ = World("good", labels=60).table(np.random.default_rng(3))
    scores = combine(few, RULES.ensemble, RULES.missing)
    assert measured(scores, answers(scores, RULES), RULES, USUAL, PAPER, []).correlation == CORRELATION

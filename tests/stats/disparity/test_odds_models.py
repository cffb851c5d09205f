"""Logit models with faces as clusters."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import f as f_distribution
from statsmodels.genmod.cov_struct import Independence
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.miscmodels.ordinal_model import OrderedModel

from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.results.results import Results
from evenedit.stats.disparity.odds_models import Fit, ModelNotFittedError, _to_records, count_cube, newton
from evenedit.stats.engine.panel import by_face


def edits_of(prompts: int = 6, genders: tuple[str, ...] = ("Male", "Female")) -> pd.DataFrame:
    faces = pd.DataFrame([c for c in cells() if c["gender"] in genders])
    faces["source_id"] = faces["race"] + faces["gender"] + faces["age"]
    return faces.merge(pd.DataFrame({"prompt_id": [f"p{k}" for k in range(prompts)]}), how="cross")


def factors_of(axes):
    return {f: levels for f, levels in axes.levels.items() if len(levels) > 1}


def coded(column: pd.Series, levels) -> np.ndarray:
    """Sum-to-zero columns, written down again."""
    return np.stack([(column == x).astype(float) - (column == levels[-1]).astype(float) for x in levels[:-1]], axis=1)


def test_odds_and_errors_agree_with_statsmodels_gee():
    rng = np.random.default_rng(3)
    edits = edits_of()
    face = pd.factorize(edits["source_id"], sort=True)[0]
    push = 0.8 * (edits["race"] == "Indian") + rng.normal(0, 0.7, 84)[face]
    met = (rng.random(len(edits)) < expit(push - 0.5)).astype(np.int64)
    valid = rng.random(len(edits)) > 0.05
    axes = by_face(edits, FACTORS)
    fit = Fit(axes, factors_of(axes), *count_cube(axes, valid, [met]))
    blocks = [coded(edits[f], levels) for f, levels in axes.levels.items()]
    prompts = np.eye(6)[pd.factorize(edits["prompt_id"])[0]]
    design = np.concatenate([*blocks, prompts], axis=1)[valid]
    gee = GEE(met[valid], design, groups=face[valid], family=Binomial(), cov_struct=Independence())
    expected = gee.fit(cov_type="bias_reduced")
    assert fit.coefficients == pytest.approx(expected.params[:12], abs=1e-7)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(expected.bse[:12], rel=1e-6)
    value, low, high = fit.odds("race", 6, 0.95)  # the last level is minus the sum of the others
    assert np.log(value) == pytest.approx(-expected.params[:6].sum(), abs=1e-7)
    assert low < value < high
    wald = expected.params[:6] @ np.linalg.solve(np.asarray(expected.cov_params())[:6, :6], expected.params[:6])
    # Hotelling's: 84 faces less 12 effects and 1 leave 71 degrees of freedom, of which 6 effects leave 66
    assert fit.p("race") == pytest.approx(f_distribution.sf(wald * 66 / (71 * 6), 6, 66), rel=1e-5)


def test_cumulative_logits_agree_with_the_ordinal_model():
    rng = np.random.default_rng(4)
    edits = edits_of(prompts=5)
    hidden = 0.9 * (edits["gender"] == "Female") + rng.logistic(size=len(edits))
    score = 1 + np.digitize(hidden, [-1.5, 0, 1, 2.5])
    axes = by_face(edits, FACTORS)
    cuts = [(score > k).astype(np.int64) for k in range(1, 5)]
    fit = Fit(axes, factors_of(axes), *count_cube(axes, np.ones(len(edits), dtype=bool), cuts))
    design = np.concatenate([coded(edits[f], levels) for f, levels in axes.levels.items()], axis=1)
    prompts = np.eye(5)[pd.factorize(edits["prompt_id"])[0]][:, 1:]
    model = OrderedModel(score, np.concatenate([design, prompts], axis=1), distr="logit")
    ordinal = model.fit(method="bfgs", disp=0)
    assert fit.coefficients == pytest.approx(ordinal.params[:12], abs=1e-3)
    assert fit.p("gender") < 0.001


def ordinal_fit(axes, score: np.ndarray) -> Fit:
    cuts = [(score > k).astype(np.int64) for k in range(1, 5)]
    return Fit(axes, factors_of(axes), *count_cube(axes, np.ones(len(score), dtype=bool), cuts))


def test_the_test_of_proportional_odds_keeps_its_level_and_finds_odds_that_are_not():
    edits = edits_of(prompts=6)
    axes = by_face(edits, FACTORS)
    woman = (edits["gender"] == "Female").to_numpy()
    false, right = np.zeros(2), 0
    for study in range(80):
        rng = np.random.default_rng([6, study])
        hidden = 0.8 * (edits["race"] == "Black").to_numpy() + rng.normal(0, 0.8, 84)[axes.cluster_at]
        hidden = hidden + rng.logistic(size=len(edits))
        even = 1 + np.digitize(hidden, [-1.5, 0, 1, 2.5])
        fit = ordinal_fit(axes, even)
        false += [fit.p_proportional("race") < 0.05, fit.p_proportional("gender") < 0.05]
        ends = np.where(woman, 1 + np.digitize(hidden, [-2.7, -1, 1.2, 1.5]), even)
        right += ordinal_fit(axes, ends).p_proportional("gender") < 0.05
    assert (false <= 9).all()  # of 80, 4 are expected
    assert right > 60


def test_an_empty_middle_score_and_a_group_at_the_middle_still_have_odds():
    edits = edits_of(prompts=6)
    axes = by_face(edits, FACTORS)
    score = np.random.default_rng(7).choice([1, 3, 4, 5], len(edits))
    fit = ordinal_fit(axes, score)
    assert fit.cuts == 3 and np.isfinite(fit.covariance).all()
    score[(edits["race"] == "White").to_numpy()] = 3  # a middle score all along: no separation
    value, low, high = ordinal_fit(axes, score).odds("race", 0, 0.95)
    assert 0 < low < value < high


def test_the_test_of_a_factor_keeps_its_level():
    rng = np.random.default_rng(5)
    edits = edits_of(prompts=4)
    axes = by_face(edits, FACTORS)
    valid = np.ones(len(edits), dtype=bool)
    below = 0
    for _ in range(150):
        hidden = rng.normal(0, 0.7, 84)[axes.cluster_at] + rng.normal(size=len(edits))
        below += (
            Fit(axes, factors_of(axes), *count_cube(axes, valid, [(hidden > 0.3).astype(np.int64)])).p("race") < 0.05
        )
    assert below / 150 < 0.10


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (lambda e: np.zeros(len(e)), "every score"),
        (lambda e: (e["race"] == "Black").to_numpy(), "separation: every score of White"),
        (lambda e: (e["age"] != "20s").to_numpy() & (np.arange(len(e)) % 3 > 0), "separation: every score of 20s"),
    ],
)
def test_what_cannot_be_fitted_says_why(outcome, reason):
    edits = edits_of()
    axes = by_face(edits, FACTORS)
    with pytest.raises(ModelNotFittedError, match=reason):
        Fit(
            axes,
            factors_of(axes),
            *count_cube(axes, np.ones(len(edits), dtype=bool), [np.asarray(outcome(edits), int)]),
        )


def test_a_label_that_stands_for_another_says_so():
    edits = edits_of()
    edits = edits[((edits["race"] == "Black") == (edits["gender"] == "Male")) & edits["race"].isin(["Black", "White"])]
    axes = by_face(edits, FACTORS)
    met = np.random.default_rng(1).integers(0, 2, len(edits))
    with pytest.raises(ModelNotFittedError, match="cannot be told apart"):
        Fit(axes, factors_of(axes), *count_cube(axes, np.ones(len(edits), dtype=bool), [met]))


def penalised_likelihood(design: np.ndarray, met: np.ndarray) -> np.ndarray:
    """Firth's estimate, written down again: the maximum of the log likelihood plus half the log determinant."""

    def loss(params: np.ndarray) -> float:
        chance = 1 / (1 + np.exp(-design @ params))
        told = met @ np.log(chance) + (1 - met) @ np.log1p(-chance)
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        return -(told + 0.5 * np.linalg.slogdet(information)[1])

    return minimize(loss, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-9}).x


def test_with_firths_penalty_a_separated_group_has_the_odds_of_the_penalised_likelihood():
    rng = np.random.default_rng(3)
    group = np.repeat([0.0, 1.0], 40)
    other = rng.integers(0, 2, 80).astype(float)
    met = ((group == 1) & (rng.random(80) < 0.4)).astype(float)  # never in the first group
    design = np.column_stack([group, np.ones(80), other])
    params, _ = newton(design, met, np.ones(80), penalised=True)
    assert params == pytest.approx(penalised_likelihood(design, met), abs=1e-4)
    with pytest.raises(ModelNotFittedError, match="separation"):
        newton(design, met, np.ones(80))


def test_a_two_by_two_table_is_haldanes_with_half_an_event_in_each_cell():
    # without other columns, Firth's penalty adds 1/2 to each cell: log odds of 0.5/20.5 and 8.5/12.5
    design = np.array([[0.0, 1.0], [1.0, 1.0]])
    params, _ = newton(design, np.array([0.0, 8.0]), np.array([20.0, 20.0]), penalised=True)
    assert params == pytest.approx([np.log(8.5 / 12.5) - np.log(0.5 / 20.5), np.log(0.5 / 20.5)], abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_odds_that_too_few_faces_decide_have_no_numbers_and_results_are_still_written():
    """Six faces, of whom one man is in his 30s: he alone tells gender from age, so both hang on him."""
    labels = [("Indian", "Male", "30s"), ("Indian", "Female", "30s"), ("Indian", "Male", "20s")]
    labels += [("White", "Male", "20s"), ("White", "Female", "30s"), ("Indian", "Female", "30s")]
    faces = pd.DataFrame(labels, columns=["race", "gender", "age"]).assign(source_id=list("abcdef"))
    edits = faces.merge(pd.DataFrame({"prompt_id": ["p0", "p1", "p2", "p3"]}), how="cross")
    score = np.array([5, 1, 5, 1, 3, 5, 5, 1, 5, 4, 5, 5, 1, 1, 5, 1, 5, 5, 1, 5, 4, 5, 5, 4])
    cuts = [(score > cut).astype(np.int64) for cut in range(1, 5)]
    told = list(_to_records(by_face(edits, FACTORS), np.ones(24, dtype=bool), cuts, "mean.x", "e", 0.95))
    by_factor = {m.factor: m for m in told}
    for factor in ("gender", "age"):
        assert by_factor[factor].method == (
            "none: an interval of the odds has no end: too few faces decide the effect of a label"
        )
        assert by_factor[factor].odds == {} and by_factor[factor].p is None
    assert set(by_factor["race"].odds) == {"White", "Indian"}
    Results({}, {}, (), models=tuple(told)).to_json()


def test_a_group_without_an_exception_still_has_odds_with_a_finite_interval():
    edits = edits_of()
    axes = by_face(edits, FACTORS)
    rng = np.random.default_rng(2)
    met = ((edits["race"] != "White").to_numpy() & (rng.random(len(edits)) < 0.5)).astype(int)
    told = list(_to_records(axes, np.ones(len(edits), dtype=bool), [met], "rate.x", "e", 0.95))
    race = next(m for m in told if m.factor == "race")
    assert race.method.startswith("logit, Firth's penalty for separation") and race.p < 0.05
    white = race.odds["White"]
    assert 0 < white.low < white.value < white.high < 1
    assert next(m for m in told if m.factor == "gender").p > 0.01

"""Mitigation: effects, and what is not one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.linear_model import OLS

from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.ratings.table import QUESTION_IDS, RatingTable, edit_columns
from evenedit.results.results import MitigationEffect, Results
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.disparity.mitigation_effects import Arms, ancova

QUICK = replace(AnalysisRules.default(), draws=100, permutations=99)
RACES = ("White", "Black", "Indian")


def study(effect: dict[str, float], *, placebo: bool = True, seed: int = 1) -> Results:
    """36 faces x 10 prompts; of the baselines only those with high race drift are edited again."""
    rng = np.random.default_rng(seed)
    rows, drift, success = [], [], []

    def add(face: int, prompt: int, experiment: str, condition: str, seed: int, level: float, worked: float) -> None:
        race = RACES[face % 3]
        labels = {"source_id": f"f{face:02}", "race": race, "gender": "Male", "age": "20s", "outcome": "edited"}
        where = {"experiment": experiment, "condition": condition, "prompt_id": f"p{prompt}", "seed": seed}
        rows.append({"request_id": str(len(rows)), "editor": "e"} | labels | where)
        drift.append(int(np.clip(np.round(level + rng.normal(0, 1.0)), 1, 5)))
        success.append(int(np.clip(np.round(worked + rng.normal(0, 0.6)), 1, 5)))

    for face in range(36):
        own = rng.normal(2.4, 0.4)
        for prompt in range(10):
            add(face, prompt, "diagnosis", "baseline", 1, own, 4.5)
            if drift[-1] >= 4:  # chosen for what may be bad luck
                change = effect.get(RACES[face % 3], 0.0)
                add(face, prompt, "mitigation", "feature", 1, own + change, 4.0)
                if placebo:
                    add(face, prompt, "mitigation", "placebo", 1, own, 4.5)
    edits = pd.DataFrame(rows)[list(edit_columns(FACTORS))]
    values = np.zeros((1, len(rows), len(QUESTION_IDS)), dtype=np.int8)
    values[0, :, QUESTION_IDS.index("race_drift")] = drift
    values[0, :, QUESTION_IDS.index("edit_success")] = success
    return analyse(RatingTable(edits, ("j",), (Kind.VLM,), values, np.zeros((1, len(rows)), dtype=np.int8)), QUICK)


def of(found: Results, question: str, race: str = "") -> MitigationEffect:
    group = {"race": race} if race else {}
    return next(e for e in found.mitigation if e.question == question and e.editor == "e" and e.group == group)


def test_regression_to_the_mean_is_not_an_improvement():
    inside = 0
    for seed in range(8):
        found = of(study({}, seed=seed), "race_drift")
        assert found.feature is not None and found.feature < -0.8  # looks like a great improvement
        assert found.placebo is not None and found.placebo < -0.8  # and so does doing nothing
        assert found.low is not None and found.high is not None
        inside += found.low < 0 < found.high
    assert inside >= 7


def test_a_true_effect_is_recovered_with_its_cost():
    found = study(dict.fromkeys(RACES, -1.0), seed=3)
    gain, cost = of(found, "race_drift"), of(found, "edit_success")
    assert gain.low is not None and gain.high is not None
    assert gain.high < -0.3  # scores stop at 1, so less than the planted 1 can be seen
    assert cost.value == pytest.approx(-0.4, abs=0.2)
    assert cost.high is not None and cost.high < 0
    assert gain.interaction_p is not None and gain.interaction_p > 0.01


def test_an_effect_on_one_group_alone_is_an_interaction():
    found = study({"Black": -2.0}, seed=4)
    whole = of(found, "race_drift")
    assert whole.interaction_p is not None and whole.interaction_p < 0.01
    black, white = of(found, "race_drift", "Black"), of(found, "race_drift", "White")
    assert black.high is not None and black.high < 0
    assert white.low is not None and white.high is not None and white.low < 0 < white.high


def test_without_a_placebo_arm_there_is_a_change_and_no_effect():
    found = of(study({}, placebo=False), "race_drift")
    assert found.feature is not None
    assert (found.value, found.low, found.p) == (None, None, None)
    assert "regression to the mean" in found.method


def test_covariance_analysis_agrees_with_statsmodels():
    rng = np.random.default_rng(1)
    n = 240
    face, prompt, arm = rng.integers(0, 24, n), rng.integers(0, 6, n), rng.random(n) < 0.5
    before = rng.normal(3, 1, n)
    after = 0.5 * before - 0.4 * arm + rng.normal(size=24)[face] * 0.3 + rng.normal(size=n)
    race = np.array(RACES)[face % 3]
    fit = ancova(Arms(before, after, arm, race, np.repeat("e", n), face, prompt), list(RACES), FACTORS[0])
    member = np.stack([race == r for r in RACES], axis=1).astype(float)
    design = np.column_stack([member * arm[:, None], member, before - before.mean()])
    expected = OLS(after, design).fit(cov_type="cluster", cov_kwds={"groups": face, "use_correction": False})
    assert not isinstance(fit, str)
    assert fit.coefficients == pytest.approx(expected.params)
    sums = np.zeros((24, 7))
    np.add.at(sums, face, fit.influence)
    assert np.sqrt((sums**2).sum(axis=0)) == pytest.approx(expected.bse)
    # Wald's chi-squared w over 2 becomes Hotelling's F: w / 2 * (24 - 2) / (24 - 1), w with 24 / 23 as correction
    contrast = np.array([[-1, 1, 0, 0, 0, 0, 0], [-1, 0, 1, 0, 0, 0, 0]])
    wald = expected.wald_test(contrast, use_f=False, scalar=True).statistic * 23 / 24
    from scipy.stats import f

    assert fit.interaction() == pytest.approx(f.sf(wald / 2 * 22 / 23, 2, 22))

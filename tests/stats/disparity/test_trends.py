"""Trends over an ordered factor, against an independent slope, and how often their intervals hold the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenedit.core.records import Estimate
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure
from evenedit.stats.disparity.gaps import trends
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules

TONE = Factor.of("tone", ["1", "2", "3", "4", "5"], ordered=True)
RULES = AnalysisRules.default()


def crossed_of(met: np.ndarray, levels: list[str], factor: Factor = TONE) -> CrossedPanel:
    """`met` [face, prompt] or [face, prompt, editor] of 0 and 1."""
    cube = met.reshape(*met.shape[:2], -1)
    face, prompt, editor = (at.ravel() for at in np.indices(cube.shape))
    edits = pd.DataFrame(
        {
            "source_id": [f"f{i:02}" for i in face],
            "prompt_id": [f"p{j}" for j in prompt],
            "editor": [f"e{k:03}" for k in editor],
            factor.name: np.array(levels)[face],
        }
    )
    columns = {"met": cube.ravel().astype(np.int64), "n": np.ones(cube.size, dtype=np.int64)}
    measures = [RatioMeasure(Measure.rate("x"), "met", "n", "n")]
    axes = by_face(edits, [factor])
    return CrossedPanel(build_panel(edits, axes, columns, measures, experiment="diagnosis", condition="baseline"))


def trend(met: np.ndarray, levels: list[str]) -> Estimate:
    return next(e for e in trends(crossed_of(met, levels), [TONE], RULES) if e.editor)


def test_the_trend_is_the_least_squares_slope_of_the_groups_rates():
    rng = np.random.default_rng(4)
    levels = [TONE.codes[face % 5] for face in range(20)]
    met = rng.random((20, 6)) < 0.1 + 0.15 * np.array([int(level) for level in levels])[:, None] / 2
    found = trend(met, levels)
    rates = [met[np.array(levels) == level].mean() for level in TONE.codes]
    assert found.value == pytest.approx(stats.linregress(range(5), rates).slope, abs=1e-12)
    assert found.measure == "trend.x" and found.group == {"tone": "*"} and found.n == 120
    assert found.low < found.value < found.high


def test_unequal_groups_weigh_the_same_in_a_worked_example():
    # rates of levels 1, 2, 3: 1/4, 1/2, 1, whatever the number of faces; slope (1 - 1/4) / 2
    met = np.array([[0, 0], [1, 0], [1, 0], [1, 1]])
    assert trend(met, ["1", "1", "2", "3"]).value == pytest.approx(3 / 8)


def test_the_interval_on_one_prompt_is_that_of_the_pooled_or_own_variance():
    met = (np.arange(40) % 8 < np.repeat([1, 2, 4, 5, 6], 8)).astype(int)[:, None]
    levels = list(np.repeat(TONE.codes, 8))
    weights = np.array([-0.2, -0.1, 0, 0.1, 0.2])
    own = np.array([met[at * 8 : at * 8 + 8].var(ddof=1) for at in range(5)]) / 8
    parts = weights**2 * own
    choices = (parts.sum(), parts.sum() ** 2 / (parts**2 / 7).sum()), ((weights**2).sum() * own.mean(), 35)
    variance, freedom = max(choices)
    found = trend(met, levels)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, freedom) * np.sqrt(variance))


def test_an_unordered_factor_and_a_single_level_have_no_trend():
    met = np.ones((4, 2), dtype=bool)
    flat = Factor.of("tone", TONE.codes)
    assert list(trends(crossed_of(met, ["1", "2", "3", "4"], flat), [flat], RULES)) == []
    assert list(trends(crossed_of(met, ["2"] * 4), [TONE], RULES)) == []


def test_a_face_without_a_label_takes_no_part():
    met = np.array([[0, 0], [1, 0], [1, 1], [1, 1]], dtype=bool)
    with_label, unlabelled = trend(met[:3], ["1", "2", "3"]), trend(met, ["1", "2", "3", ""])
    assert unlabelled.value == with_label.value and unlabelled.n == 6


def test_no_variation_is_a_slope_without_an_interval():
    found = trend(np.ones((10, 3), dtype=bool), [*TONE.codes, *TONE.codes])
    assert found.value == pytest.approx(0) and found.low is found.high is None


def test_intervals_hold_the_truth_where_faces_and_prompts_vary():
    """Logit worlds that nothing was tuned on: a face's own level, a prompt's own level, a slope per tone."""
    rng, studies = np.random.default_rng(11), 400
    levels = [*TONE.codes] * 6
    place = np.array([int(level) - 3.0 for level in levels])[:, None, None]

    def chance(*effects: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(0.5 - 0.3 * place - sum(effects)))

    expected = chance(rng.normal(0, 0.6 * np.sqrt(2), (1, 200_000, 1))).mean(axis=(1, 2))
    truth = stats.linregress(place.ravel(), expected).slope
    met = chance(rng.normal(0, 0.6, (30, 1, studies)), rng.normal(0, 0.6, (1, 8, studies)))
    found = [e for e in trends(crossed_of(rng.random(met.shape) < met, levels), [TONE], RULES) if e.editor]
    held = np.mean([e.low <= truth <= e.high for e in found])
    assert len(found) == studies and 0.925 <= held <= 0.99, held

"""Trends over an ordered factor, against an independent slope, and how often their intervals hold the truth."""

import numpy as np
import pandas as pd
import pytest
from evenedit.stats.disparity.trends import slope, trends
from scipy import stats

from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure
from evenedit.stats import AnalysisRules
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face

TONE = Factor.of("tone", ["1", "2", "3", "4", "5"], ordered=True)
RULES = AnalysisRules.default()


def panel_of(met: np.ndarray, levels: list[str], factor: Factor = TONE) -> Panel:
    """One editor; `met` [face, prompt] of 0 and 1."""
    faces, prompts = met.shape
    edits = pd.DataFrame(
        {"source_id": f"f{face:02d}", "prompt_id": f"p{prompt}", "editor": "e", factor.name: levels[face]}
        for face in range(faces)
        for prompt in range(prompts)
    )
    columns = {"met": met.ravel().astype(np.int64), "n": np.ones(met.size, dtype=np.int64)}
    measures = [RatioMeasure(Measure.rate("x"), "met", "n", "n")]
    axes = by_face(edits, [factor])
    return build_panel(edits, axes, columns, measures, experiment="diagnosis", condition="baseline")


def of_editor(panel: Panel, factor: Factor = TONE):
    return next(e for e in trends(panel, [factor], RULES) if e.editor == "e")


def test_the_trend_is_the_least_squares_slope_of_the_faces_rates():
    rng = np.random.default_rng(4)
    levels = [TONE.codes[face % 5] for face in range(20)]
    met = rng.random((20, 6)) < 0.1 + 0.15 * np.array([int(level) for level in levels])[:, None] / 2
    found = of_editor(panel_of(met, levels))
    expected = stats.linregress([int(level) for level in levels], met.mean(axis=1)).slope
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.measure == "trend.x" and found.group == {"tone": "*"} and found.n == 120
    assert found.low is not None and found.low < expected < found.high


def test_a_worked_example():
    # levels 1, 1, 2, 3 with rates 0, 1/2, 1/2, 1: x - 7/4 = -3/4, -3/4, 1/4, 5/4; Sxy = 1; Sxx = 11/4
    assert slope(np.array([1.0, 1, 2, 3]), np.array([0.0, 1, 1, 2]), np.array([2.0, 2, 2, 2])) == pytest.approx(4 / 11)


def test_an_unordered_factor_and_a_single_level_have_no_trend():
    met = np.ones((4, 2), dtype=bool)
    flat = Factor.of("tone", TONE.codes)
    assert list(trends(panel_of(met, ["1", "2", "3", "4"], flat), [flat], RULES)) == []
    assert list(trends(panel_of(met, ["2"] * 4), [TONE], RULES)) == []


def test_a_face_without_a_label_takes_no_part():
    met = np.array([[0, 0], [1, 0], [1, 1], [1, 1]], dtype=bool)
    with_label = of_editor(panel_of(met[:3], ["1", "2", "3"]))
    unlabelled = of_editor(panel_of(met, ["1", "2", "3", ""]))
    assert unlabelled.value == with_label.value and unlabelled.n == 6


def test_no_variation_is_a_slope_without_an_interval():
    found = of_editor(panel_of(np.ones((10, 3), dtype=bool), [*TONE.codes, *TONE.codes]))
    assert (found.value, found.low, found.high) == (0.0, None, None)


def test_intervals_hold_the_truth_where_faces_and_prompts_vary():
    """Logit worlds that nothing was tuned on: a face's own level, a prompt's own level, a slope per tone."""
    rng, held, studies = np.random.default_rng(11), 0, 120
    levels = [*TONE.codes] * 6
    place = np.array([int(level) - 3.0 for level in levels])[:, None]
    for _ in range(studies):
        face, prompt = rng.normal(0, 0.6, (30, 1)), rng.normal(0, 0.6, (1, 8))
        chance = 1 / (1 + np.exp(-(-0.5 + 0.3 * place + face + prompt)))
        expected = 1 / (
            1 + np.exp(-(-0.5 + 0.3 * place + rng.normal(0, 0.6, (1, 4000)) + rng.normal(0, 0.6, (1, 4000))))
        )
        truth = stats.linregress(place.ravel(), expected.mean(axis=1)).slope
        found = of_editor(panel_of(rng.random((30, 8)) < chance, levels))
        held += found.low <= truth <= found.high
    assert held / studies >= 0.91, f"{held} of {studies}"

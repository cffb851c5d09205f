"""Judges on all edits, people on a sample."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from evenedit.protocol import FACTORS
from evenedit.stats.agreement.prediction_powered import LabelledSample, _three_ways, combine_labels, optimal_lambda
from evenedit.stats.engine.intervals import wilson
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.rules import AnalysisRules

RULES = AnalysisRules.default()


def unclustered(
    rng: np.random.Generator, n: int = 60, everything: int = 400
) -> tuple[LabelledSample, np.ndarray, np.ndarray]:
    truth = rng.normal(3, 1, everything)
    judged = truth + rng.normal(0.3, 0.6, everything)
    said = np.where(np.arange(everything) < n, truth, np.nan)
    rows = np.arange(everything)
    return LabelledSample(judged, said, np.ones(everything), rows, rows), truth, judged


def test_without_clusters_and_weights_it_is_ppi_python():
    n = 60
    sample, truth, judged = unclustered(np.random.default_rng(1), n)
    labelled, unlabelled = judged[:n, None], judged[n:, None]
    theirs = ppi_mean_pointestimate(truth[:n], labelled, unlabelled)
    tuning = optimal_lambda(sample)
    both = combine_labels(sample, tuning)
    # lambda comes from the same covariance and another estimate of the same variance
    assert both.powered == pytest.approx(theirs.item(), abs=0.03)
    # judges' mean over all edits, not over the unlabelled ones: the same estimate, lambda in other units
    exact = ppi_mean_pointestimate(truth[:n], labelled, unlabelled, lam=tuning * (len(judged) - n) / len(judged))
    assert both.powered == pytest.approx(exact.item(), abs=1e-9)
    low, high = ppi_mean_ci(truth[:n], labelled, unlabelled, alpha=0.05, lam=tuning * (len(judged) - n) / len(judged))
    error = float(np.sqrt((both.influence**2).sum()))  # one mean of the judges, where theirs has one for each part
    assert (both.powered - 1.959964 * error, both.powered + 1.959964 * error) == pytest.approx(
        (low.item(), high.item()), abs=2e-4
    )


def test_a_judge_of_no_use_does_no_harm():
    rng = np.random.default_rng(2)
    sample, *_ = unclustered(rng)
    noise = LabelledSample(rng.normal(size=400), sample.labels, sample.weight, sample.face, sample.prompt)
    both = combine_labels(noise, optimal_lambda(noise))
    assert optimal_lambda(noise) < 0.25
    human, powered = (float(np.sqrt((x**2).sum())) for x in (both.human_influence, both.influence))
    assert powered <= human * 1.0001
    same = LabelledSample(np.ones(400), sample.labels, sample.weight, sample.face, sample.prompt)
    assert combine_labels(same, optimal_lambda(same)).powered == combine_labels(same, 0.0).human


def test_people_alone_is_the_weighted_mean_of_a_hand_worked_example():
    # said 1 and 0 with chances 1/2 and 1/4: (2 * 1 + 4 * 0) / 6; judges 1, 0, 1, 1: all 0.75, sample (2 * 1 + 0) / 6
    said = np.array([1.0, 0.0, np.nan, np.nan])
    sample = LabelledSample(np.array([1.0, 0, 1, 1]), said, np.array([2.0, 4, 1, 1]), np.arange(4), np.arange(4))
    both = combine_labels(sample, 0.5)
    assert both.human == pytest.approx(2 / 6)
    assert both.powered == pytest.approx(2 / 6 + 0.5 * (0.75 - 2 / 6))


def test_errors_grow_when_faces_are_alike():
    rng = np.random.default_rng(3)
    face, prompt = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    truth = rng.normal(0, 1, 40)[face] + rng.normal(0, 0.5, 400)
    said = np.where(rng.random(400) < 0.4, truth, np.nan)
    clusters = LabelledSample(truth + rng.normal(0, 0.5, 400), said, np.ones(400), face, prompt)
    alone = LabelledSample(clusters.judged, said, np.ones(400), np.arange(400), np.arange(400))
    tuning = optimal_lambda(clusters)
    wide, narrow = (combine_labels(s, tuning).uncertainty[1] for s in (clusters, alone))
    assert wide.variance > 3 * narrow.variance


def unequal(rng: np.random.Generator, labelled: int = 12) -> tuple[LabelledSample, Axes]:
    """Judges that call a change in 16 % of White and 41 % of Black edits, where it is 18 and 16 % in truth."""
    faces, prompts = 48, 10
    edits = pd.DataFrame(
        {
            "editor": "e",
            "source_id": np.repeat([f"f{i:02}" for i in range(faces)], prompts),
            "prompt_id": [f"p{j}" for j in range(prompts)] * faces,
            "race": np.repeat(["White", "Black"] * (faces // 2), prompts),
            "gender": "Male",
            "age": "20s",
        }
    )
    axes = by_face(edits, FACTORS)
    black = (edits["race"] == "Black").to_numpy()
    face = np.repeat(rng.beta(3, 3, faces), prompts) * 2
    truth = (rng.random(len(edits)) < np.where(black, 0.16, 0.18) * face).astype(float)
    wrongly = rng.random(len(edits)) < np.where(black, 0.30, 0.02)
    missed = rng.random(len(edits)) < np.where(black, 0.05, 0.2)
    judged = np.where(truth == 1, ~missed, wrongly).astype(float)
    chosen = np.isin(axes.cluster_at, rng.permutation(faces)[: 2 * labelled]) & (rng.random(len(edits)) < 0.5)
    weight = np.ones(len(edits))
    return LabelledSample(judged, np.where(chosen, truth, np.nan), weight, axes.cluster_at, axes.prompt_at), axes


def test_people_correct_judges_that_err_more_for_one_group():
    gaps, judges, covered, rows = [], [], 0, 0
    for seed in range(40):
        sample, axes = unequal(np.random.default_rng(seed))
        black = axes.labels["race"][sample.face] == "Black"
        judges.append(sample.judged[black].mean() - sample.judged[~black].mean())
        found = list(_three_ways(sample, axes, "rate.x", AnalysisRules.default()))
        rates = {r.group.get("race"): r for r in found if r.measure == "rate.x" and "race" in r.group}
        gaps.append(rates["Black"].value - rates["White"].value)
        contrast = next(r for r in found if r.measure == "contrast.x" and r.group == {"race": "Black"})
        covered += contrast.ends[0] <= -0.02 <= contrast.ends[1]
        mirrored = next(r for r in found if r.measure == "contrast.x" and r.group == {"race": "White"})
        assert mirrored.ends == pytest.approx([-x for x in reversed(contrast.ends)]), "of two groups each is the rest"
        gap = next(r for r in found if r.measure == "gap.x" and r.group == {"race": "*"})
        told = (contrast.human, contrast.human_ends) if gap.tuning == 0 else (contrast.value, contrast.ends)
        assert (gap.value, gap.ends[1]) == pytest.approx((abs(told[0]), max(map(abs, told[1]))))
        assert (gap.ends[0] > 0) == (told[1][0] * told[1][1] > 0), "it excludes 0 where the difference does"
        for r in found:
            rows += 1
            assert r.ends[0] is not None and r.ends[0] <= r.value <= r.ends[1]
            assert r.ends[1] - r.ends[0] <= 1.02 * (r.human_ends[1] - r.human_ends[0]) + 1e-12
            assert r.measure == "contrast.x" or 0 <= r.ends[0] <= r.ends[1] <= 1
    assert np.mean(judges) > 0.2, "the judges alone see a gap of 22 points"
    assert abs(np.mean(gaps)) < 0.05, "with people it is gone"
    assert covered >= 35 and rows > 100


@pytest.mark.parametrize("always", [0.0, 1.0])
def test_a_group_in_which_people_never_or_always_saw_it_has_an_interval_and_so_has_its_gap(always):
    """It had none, or one of no width, and the judges' own number stood in its place."""
    sample, axes = unequal(np.random.default_rng(3))
    white = axes.labels["race"][sample.face] == "White"
    labels = np.where(white & sample.labelled, always, sample.labels)
    found = {(r.measure, str(r.group)): r for r in _three_ways(replace(sample, labels=labels), axes, "rate.x", RULES)}
    rate, gap = found["rate.x", "{'race': 'White'}"], found["gap.x", "{'race': '*'}"]
    contrast = found["contrast.x", "{'race': 'White'}"]
    faces = len(np.unique(sample.face[white & sample.labelled]))
    furthest = wilson(0, faces)[1]
    assert rate.value == always and 0.03 < rate.ends[1] - rate.ends[0] <= furthest
    assert gap.ends[0] <= gap.value <= gap.ends[1] and contrast.ends[0] <= contrast.value <= contrast.ends[1]
    one = labels.copy()
    one[np.flatnonzero(white & sample.labelled)[5]] = 1 - always
    less = next(r for r in _three_ways(replace(sample, labels=one), axes, "rate.x", RULES) if r.group == rate.group)
    assert less.ends[1] > rate.ends[1] if always == 0 else less.ends[0] < rate.ends[0]


def test_three_labels_are_no_estimate():
    sample, axes = unequal(np.random.default_rng(1))
    few = np.where(np.cumsum(sample.labelled) <= 3, sample.labels, np.nan)
    (only,) = _three_ways(replace(sample, labels=few), axes, "rate.x", AnalysisRules.default())
    assert only.ends == (None, None) and only.labelled == 3
    assert only.reason == "none: people rated 3 edits of 1 faces; 10 edits of 5 faces are needed"

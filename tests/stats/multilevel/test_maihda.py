"""The multilevel model: what it tells, and when it tells nothing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from proofs.multilevel import calibrated, uniform_p

from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.results.results import Results
from evenedit.stats.engine.panel import by_face
from evenedit.stats.multilevel.accuracy import concordance
from evenedit.stats.multilevel.chains import Density, reduction
from evenedit.stats.multilevel.intersections import grid_of, kinds_of
from evenedit.stats.multilevel.laplace import Laplace
from evenedit.stats.multilevel.maihda import Job, fit
from evenedit.stats.multilevel.posterior import _frame


def edits_of(faces_each: int, prompts: int, ages: tuple[str, ...]) -> pd.DataFrame:
    faces = pd.DataFrame([c for c in cells() if c["age"] in ages])
    faces = faces.loc[faces.index.repeat(faces_each)].reset_index(drop=True)
    faces["source_id"] = [f"f{i:03}" for i in range(len(faces))]
    return faces.merge(pd.DataFrame({"prompt_id": [f"p{k}" for k in range(prompts)]}), how="cross")


@pytest.fixture(scope="module")
def planted():
    """Three faces of each race and gender; Black women are far more often affected than anybody else."""
    edits = edits_of(3, 8, ("20s",))
    axes = by_face(edits, FACTORS)
    rng = np.random.default_rng(8)
    apart = ((edits["race"] == "Black") & (edits["gender"] == "Female")).to_numpy()
    hidden = 2.5 * apart - 1.2 + rng.normal(0, 0.6, len(axes.clusters))[axes.cluster_at]
    met = (hidden + rng.logistic(size=len(edits)) > 0).astype(np.int64)
    return Job("rate.x", "e", axes, met, (0.0, 1.0))


def test_intersections_of_an_even_editor_are_pulled_together(planted):
    rng = np.random.default_rng(5)
    told = fit(planted._replace(category=(rng.random(len(planted.category)) < 0.3).astype(np.int64)), 0.95, 1)
    pooled, observed = (np.array([getattr(c, part) for c in told.cells]) for part in ("value", "observed"))
    assert pooled.std() < 0.8 * observed.std()
    assert np.corrcoef(pooled, observed)[0, 1] > 0.5
    assert all(c.low < 0.3 < c.high for c in told.cells)


def test_an_intersection_that_is_apart_is_found(planted):
    found = fit(planted, 0.95, 1)
    assert found.method.startswith("logit, crossed random effects")
    by_group = {(c.group["race"], c.group["gender"]): c for c in found.cells}
    assert len(by_group) == 14 and all(c.faces == 3 and c.n == 24 for c in found.cells)
    apart = by_group.pop(("Black", "Female"))
    assert apart.low > max(c.value for c in by_group.values())
    assert apart.value < apart.observed  # even this one is pulled towards the others
    assert all(c.low < c.value < c.high for c in found.cells)
    shares = [c.share for c in found.components]
    assert sum(shares) == pytest.approx(1, abs=0.1)  # labels and intersections may move together
    assert [c.source for c in found.components] == [
        *("labels", "race × gender", "prompt", "race × prompt", "face", "edit"),
    ]
    assert 0 < found.partition_low < found.partition < found.partition_high < 1
    assert found.accuracy_labels > 0.55


def test_the_same_data_give_the_same_numbers(planted):
    assert fit(planted, 0.95, 1) == fit(planted, 0.95, 1)


def test_with_one_face_in_each_cell_pairs_of_labels_are_crossed():
    axes = by_face(edits_of(1, 2, tuple(level.code for level in FACTORS[2].levels)), FACTORS)
    assert kinds_of(axes).crossings == (("race", "gender"), ("race", "age"), ("gender", "age"))
    full = by_face(edits_of(2, 2, ("20s", "30s")), FACTORS)
    assert kinds_of(full).crossings == (("race", "gender", "age"),)


def test_too_little_to_model_says_why(planted):
    rare = planted._replace(category=np.where(np.arange(len(planted.category)) < 4, 1, 0))
    told = fit(rare, 0.95, 1)
    assert told.method == "none: 4 edits differ from the others; it takes 10"
    assert told.cells == () and told.partition is None and told.accuracy_labels is None


def test_chains_that_have_not_met_tell_nothing(planted, monkeypatch):
    monkeypatch.setattr("evenedit.stats.multilevel.posterior.UNSETTLED", 0.9)
    told = fit(planted, 0.95, 1)
    assert told.method.startswith("none: the chains have not met: R-hat is 1.0")
    assert told.cells == () and told.components == ()


@pytest.mark.parametrize("categories", [2, 4])
def test_slopes_are_those_of_the_density(categories):
    edits = edits_of(2, 3, ("20s",))
    axes = by_face(edits, FACTORS)
    rng = np.random.default_rng(categories)
    category = rng.integers(0, categories, len(edits))
    kinds = kinds_of(axes)
    model = Laplace(grid_of(kinds, axes.cluster_at, axes.prompt_at, category, categories))
    density = Density(model, _frame(model, 1.5), 1.5)
    state = 0.3 * rng.standard_normal((density.width + density.faces + density.free, 1))
    assert density._state(*density.place(state)) == pytest.approx(state, abs=1e-8)
    _, slope = density(state)
    for at in (0, categories, density.width + 1, len(state) - 1):
        step = np.zeros_like(state)
        step[at] = 1e-5
        numeric = (density(state + step)[0] - density(state - step)[0]) / 2e-5
        assert numeric[0] == pytest.approx(slope[at, 0], abs=1e-4)


def test_ranks_of_true_values_are_uniform():
    """A small version of the proof `multilevel`."""
    ranks, _ = calibrated(2, 14, 11)
    pooled = np.concatenate(list(ranks.values()))
    assert len(ranks["first cut"]) > 10
    assert uniform_p(pooled) > 1e-4
    assert 0.88 < (np.abs(pooled - 0.5) < 0.475).mean() < 1.0


def test_chains_apart_are_noticed():
    rng = np.random.default_rng(1)
    together = rng.standard_normal((8, 100, 2))
    assert (reduction(together) < 1.03).all()
    together[0] += [3, 0]
    apart, same = reduction(together)
    assert apart > 1.1 and same < 1.03


def test_concordance_is_the_area_under_the_curve():
    # of 2 x 2 pairs, three are ranked right and one is a tie
    assert concordance(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1])) == pytest.approx(3.5 / 4)


def test_results_with_the_model_are_read_back(planted):
    results = Results({}, {}, (), multilevel=(fit(planted, 0.95, 1),))
    assert Results.from_json(results.to_json()) == results
    frame = results.to_frame("multilevel")
    assert len(frame) == 14 and {"race", "gender", "value", "observed"} <= set(frame.columns)
    assert replace(results, multilevel=()).to_frame("multilevel.components").empty

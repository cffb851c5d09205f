"""The cluster bootstrap: exact, reproducible, and of honest width."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap, unit_weights, weighted_sums

from evenedit.stats.engine.panel import Panel
from tests.support.panels import panel_of


def everybody(panel: Panel) -> np.ndarray:
    return np.ones(len(panel.axes.clusters), dtype=bool)


def test_weighted_sums_agree_with_a_loop_over_the_same_weights():
    rng = np.random.default_rng(0)
    cells = rng.integers(-3, 6, size=(7, 5))
    faces = np.concatenate(list(unit_weights(rng, 7, 11, 4)))
    found = weighted_sums(cells.astype(np.float32), faces)
    for d in range(11):
        for c in range(5):
            assert found[d, c] == sum(int(faces[d, f]) * int(cells[f, c]) for f in range(7))


def test_one_fewer_unit_is_drawn_than_there_are_whatever_the_chunk():
    weights = np.concatenate(list(unit_weights(np.random.default_rng(1), 6, 100, 7)))
    assert weights.shape == (100, 6)
    assert (weights.sum(axis=1) == 5).all()
    whole = np.concatenate(list(unit_weights(np.random.default_rng(1), 6, 100, 100)))
    assert (weights == whole).all()


def test_draws_agree_with_resampling_the_rows_themselves():
    met = np.random.default_rng(2).integers(0, 2, size=(8, 4))
    panel = panel_of(met)
    bootstrap = Bootstrap(panel, 50, seed=9)
    found = bootstrap.group(everybody(panel))
    stream = np.random.default_rng([9, crc32(everybody(panel).tobytes())])
    faces = np.concatenate(list(unit_weights(stream, 8, 50, 50)))
    for draw in range(50):
        rows = [met[f, p] for f in range(8) for p in range(4) for _ in range(int(faces[draw, f]))]
        assert found.faces[draw, 0, 0] == sum(rows) / len(rows)
        weights = bootstrap.prompt_weights[draw]
        rows = [met[f, p] for f in range(8) for p in range(4) for _ in range(int(weights[p]))]
        assert found.prompts[draw, 0, 0] == pytest.approx(sum(rows) / len(rows) - met.mean(), abs=1e-12)


def test_the_variance_is_that_of_faces_and_prompts_less_that_of_cells():
    met = np.random.default_rng(5).integers(0, 2, size=(30, 12))
    panel = panel_of(met)
    found = Bootstrap(panel, 20_000, 1).group(everybody(panel))
    residual = met - met.mean()
    faces = 30 / 29 * ((residual.sum(axis=1) / met.size) ** 2).sum()
    prompts = 12 / 11 * ((residual.sum(axis=0) / met.size) ** 2).sum()
    cells = ((residual / met.size) ** 2).sum()
    assert found.over_faces[0, 0] == pytest.approx(faces, rel=0.05)
    assert found.over_prompts[0, 0] == pytest.approx(prompts, rel=0.05)
    assert found.over_cells[0, 0] == pytest.approx(cells, rel=1e-9)
    assert found.uncertainty.variance[0, 0] == pytest.approx(max(faces, prompts, faces + prompts - cells), rel=0.05)


def test_a_groups_draws_do_not_hang_on_what_else_is_drawn():
    panel = panel_of(np.random.default_rng(3).integers(0, 2, size=(21, 5)), groups=7)
    black = panel.axes.mask({"race": "Black"})
    alone = Bootstrap(panel, 30, 1).group(black).faces
    later = Bootstrap(panel, 30, 1)
    later.group(everybody(panel))
    assert np.array_equal(alone, later.group(black).faces)


def test_groups_taken_together_are_weighted_by_their_size():
    met = np.random.default_rng(4).integers(0, 2, size=(9, 3))
    panel = panel_of(met)
    bootstrap = Bootstrap(panel, 40, 1)
    four, five = np.arange(9) < 4, np.arange(9) >= 4
    # drawing 3 of 4 stands for 4 faces, drawing 4 of 5 for 5: Rao and Wu's n/(n-1)
    one, two = (bootstrap.group(mask).faces[:, 0, 0] for mask in (four, five))
    assert bootstrap.group_union([four, five]).faces[:, 0, 0] == pytest.approx((4 * one + 5 * two) / 9)
    lone, rest = np.arange(9) < 1, np.arange(9) >= 1
    whole = bootstrap.group(np.ones(9, dtype=bool)).faces
    assert np.array_equal(bootstrap.group_union([lone, rest]).faces, whole)


def test_a_measure_of_one_prompt_is_drawn_over_faces_alone():
    met = np.zeros((6, 4), dtype=np.int64)
    met[:3, 2] = 1
    panel = panel_of(met)
    cells = panel.cells.copy()
    cells[:, [0, 1, 3]] = 0  # asked on the third prompt only
    bootstrap = Bootstrap(replace(panel, cells=cells), 60, 1)
    assert bootstrap.single_prompt.tolist() == [True]
    drawn = bootstrap.group(np.ones(6, dtype=bool))
    assert not np.isnan(drawn.faces).any()
    assert (drawn.prompts == 0).all()


def test_one_face_gives_no_draws_and_one_prompt_draws_faces_only():
    panel = panel_of(np.array([[1, 0], [0, 1]]))
    assert np.isnan(Bootstrap(panel, 5, 1).group(np.array([True, False])).faces).all()
    narrow = Bootstrap(panel_of(np.array([[1], [0], [1]])), 5, 1)
    assert (narrow.prompt_weights == 1).all()
    assert not np.isnan(narrow.group(np.ones(3, dtype=bool)).faces).any()


def test_everybody_varies_as_a_regression_on_the_labels_says():
    rng = np.random.default_rng(21)
    met = (rng.random((48, 5)) < np.repeat([0.1, 0.7, 0.3, 0.5], 12)[:, None]).astype(np.int64)
    drawn = Bootstrap(panel_of(met, groups=4), 400, 1).group(np.ones(48, dtype=bool))
    means = met.mean(axis=1)
    within = np.repeat(means.reshape(4, 12).mean(axis=1), 12)
    assert drawn.within is not None and drawn.freedom == 44
    assert drawn.over_faces[0, 0] == pytest.approx(((means - within) ** 2).sum() / 48**2 * 48 / 44)
    assert drawn.over_faces[0, 0] < 0.6 * drawn.faces[:, 0, 0].var()  # the labels are as the design fixed them


def test_labels_that_take_most_faces_are_not_held_fixed():
    met = np.random.default_rng(22).integers(0, 2, size=(8, 4))
    drawn = Bootstrap(panel_of(met, groups=7), 100, 1).group(np.ones(8, dtype=bool))
    assert drawn.within is None and drawn.freedom == 7

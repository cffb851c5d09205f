"""The cluster bootstrap: exact, reproducible, and of honest width."""

from dataclasses import replace
from statistics import NormalDist
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from evenedit.stats.bootstrap import Bootstrap, unit_weights, weigh
from evenedit.stats.gaps import gaps
from evenedit.stats.intervals import percentile
from evenedit.stats.panel import Measure, Panel, by_face, lay_out
from evenedit.stats.rules import AnalysisRules

RATE = Measure("rate.x", "met", "n", "asked")


def panel_of(met: np.ndarray, groups: int = 1, seeds: int = 1) -> Panel:
    """A panel of one editor from [face, prompt] whole numbers out of `seeds`; faces dealt to `groups` in blocks."""
    faces, prompts = met.shape
    races = ["White", "Black", "EastAsian", "SoutheastAsian", "Indian", "MiddleEastern", "Latino"]
    edits = pd.DataFrame(
        {
            "editor": "e",
            "source_id": np.repeat([f"f{i:04}" for i in range(faces)], prompts),
            "prompt_id": [f"p{j:03}" for j in range(prompts)] * faces,
            "race": np.repeat([races[i * groups // faces] for i in range(faces)], prompts),
            "gender": "Male",
            "age": "20s",
        }
    )
    ones = np.full(met.size, seeds, dtype=np.int64)
    columns = {"met": met.ravel().astype(np.int64), "n": ones, "asked": ones}
    return lay_out(edits, by_face(edits), columns, [RATE], experiment="diagnosis", condition="baseline")


def everybody(panel: Panel) -> np.ndarray:
    return np.ones(len(panel.axes.clusters), dtype=bool)


def test_weighted_sums_agree_with_a_loop_over_the_same_weights():
    rng = np.random.default_rng(0)
    cells = rng.integers(-3, 6, size=(7, 5, 3))
    faces = np.concatenate(list(unit_weights(rng, 7, 11, 4)))
    prompts = np.concatenate(list(unit_weights(rng, 5, 11, 4)))
    found = weigh(cells.astype(np.float32), faces, prompts)
    for d in range(11):
        for c in range(3):
            expected = sum(
                int(faces[d, f]) * int(prompts[d, p]) * int(cells[f, p, c]) for f in range(7) for p in range(5)
            )
            assert found[d, c] == expected


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
    found = bootstrap.group(everybody(panel)).values[:, 0, 0]
    stream = np.random.default_rng([9, crc32(everybody(panel).tobytes())])
    faces = np.concatenate(list(unit_weights(stream, 8, 50, 50)))
    for draw in range(50):
        rows = [
            met[f, p]
            for f in range(8)
            for p in range(4)
            for _ in range(int(faces[draw, f]) * int(bootstrap.prompt_weights[draw, p]))
        ]
        assert found[draw] == sum(rows) / len(rows)


def test_a_groups_draws_do_not_hang_on_what_else_is_drawn():
    panel = panel_of(np.random.default_rng(3).integers(0, 2, size=(21, 5)), groups=7)
    black = panel.axes.mask({"race": "Black"})
    alone = Bootstrap(panel, 30, 1).group(black).values
    later = Bootstrap(panel, 30, 1)
    later.group(everybody(panel))
    assert np.array_equal(alone, later.group(black).values)


def test_groups_taken_together_are_weighted_by_their_size():
    met = np.random.default_rng(4).integers(0, 2, size=(9, 3))
    panel = panel_of(met)
    bootstrap = Bootstrap(panel, 40, 1)
    four, five = np.arange(9) < 4, np.arange(9) >= 4
    # drawing 3 of 4 stands for 4 faces, drawing 4 of 5 for 5: Rao and Wu's n/(n-1)
    one, two = (bootstrap.group(mask).sums[:, 0] for mask in (four, five))
    total, count = (one * 4 / 3 + two * 5 / 4).T
    assert bootstrap.together([four, five])[:, 0, 0] == pytest.approx(total / count)
    lone, rest = np.arange(9) < 1, np.arange(9) >= 1
    whole = bootstrap.group(np.ones(9, dtype=bool)).values
    assert np.array_equal(bootstrap.together([lone, rest]), whole)


def test_a_measure_of_one_prompt_is_drawn_over_faces_alone():
    met = np.zeros((6, 4), dtype=np.int64)
    met[:3, 2] = 1
    panel = panel_of(met)
    cells = panel.cells.copy()
    cells[:, [0, 1, 3]] = 0  # asked on the third prompt only
    bootstrap = Bootstrap(replace(panel, cells=cells), 60, 1)
    assert bootstrap.single_prompt.tolist() == [True]
    drawn = bootstrap.group(np.ones(6, dtype=bool))
    assert not np.isnan(drawn.values).any()
    assert (drawn.sums[:, 0, 1] == 5).all()


def test_one_face_gives_no_draws_and_one_prompt_draws_faces_only():
    panel = panel_of(np.array([[1, 0], [0, 1]]))
    assert np.isnan(Bootstrap(panel, 5, 1).group(np.array([True, False])).values).all()
    narrow = Bootstrap(panel_of(np.array([[1], [0], [1]])), 5, 1)
    assert (narrow.prompt_weights == 1).all()
    assert not np.isnan(narrow.group(np.ones(3, dtype=bool)).values).any()


def covers(truth: float, interval: np.ndarray) -> bool:
    return bool(interval[0] <= truth <= interval[1])


def test_cluster_intervals_cover_where_row_intervals_do_not():
    """84 faces × 20 prompts, face and prompt effects of half the noise; 200 studies."""
    rng = np.random.default_rng(11)
    truth = 1 - NormalDist().cdf(1 / np.sqrt(1 + 0.25 + 0.25))
    clustered = by_row = in_group = 0
    studies = 200
    for study in range(studies):
        latent = rng.normal(0, 0.5, (84, 1)) + rng.normal(0, 0.5, 20) + rng.normal(size=(84, 20))
        met = (latent > 1).astype(np.int64)
        panel = panel_of(met, groups=7)
        bootstrap = Bootstrap(panel, 300, study)
        clustered += covers(truth, percentile(bootstrap.group(everybody(panel)).values[:, 0, 0], 0.95))
        black = bootstrap.group(panel.axes.mask({"race": "Black"})).values[:, 0, 0]
        in_group += covers(truth, percentile(black, 0.95))
        by_row += covers(truth, percentile(rng.binomial(met.size, met.mean(), 300) / met.size, 0.95))
    assert clustered / studies >= 0.90
    assert in_group / studies >= 0.90
    assert by_row / studies < 0.60


@pytest.mark.parametrize("gap", [0.0, 0.9])
def test_gap_intervals_cover_no_gap_and_a_planted_one(gap):
    rng = np.random.default_rng(12)
    spread = np.sqrt(1 + 0.25 + 0.25)
    truth = NormalDist().cdf((gap - 1) / spread) - NormalDist().cdf(-1 / spread)
    covered, studies = 0, 150
    for study in range(studies):
        shift = gap * (np.arange(84) < 12)[:, None]
        latent = shift + rng.normal(0, 0.5, (84, 1)) + rng.normal(0, 0.5, 20) + rng.normal(size=(84, 20))
        panel = panel_of((latent > 1).astype(np.int64), groups=7)
        found = next(gaps(Bootstrap(panel, 300, study), AnalysisRules.default()))
        assert found.group == {"race": "*"}
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert covered / studies >= 0.88

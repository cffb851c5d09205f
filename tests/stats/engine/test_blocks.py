"""Faces that were drawn together: pictures of one person, versions of one base portrait."""

import numpy as np
import pytest
from scipy.stats import sem

from evenedit.protocol.measures import Measure
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import RatioMeasure
from tests.stats.engine.test_crossed import drawn, indicators, left, mean_square, of, unbalanced
from tests.support.panels import RACES, panel_of

MEAN = RatioMeasure(Measure("mean.x"), "met", "n", "asked", unit=100)
WEIGHTS = [1.0, -0.25, -0.75]


def everything(crossed: CrossedPanel) -> list[float]:
    """Variances and degrees of freedom of everybody, of a contrast, and of groups that are equal."""
    groups = of(crossed, *RACES[:3])
    parts = [
        crossed.uncertainty([crossed.all_faces], [1.0]),
        crossed.uncertainty(groups, WEIGHTS),
        crossed.pooled(("race",)).of(WEIGHTS),
        crossed.pooled(("race",), contrast=False).of(WEIGHTS),
    ]
    return [float(x[0, 0]) for part in parts for x in (part.variance, part.freedom)]


def test_people_with_one_picture_each_change_nothing():
    met, count, races = unbalanced(3)
    alone = panel_of(met, count=count, races=races, seeds=3)
    people = panel_of(met, count=count, races=races, seeds=3, drawn_with=[f"person {i}" for i in range(len(met))])
    assert people.axes.blocks is None
    assert everything(CrossedPanel(people)) == everything(CrossedPanel(alone))


def test_the_general_variance_is_that_of_faces_where_blocks_hold_one_face_of_each_group_alone():
    met, count, races = unbalanced(4)
    crossed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3))
    groups = of(crossed, *RACES[:3])
    simple = crossed.uncertainty(groups, WEIGHTS)
    crossed._blocks = np.arange(len(met))
    general = crossed.uncertainty(groups, WEIGHTS)
    assert general.variance[0, 0] == pytest.approx(simple.variance[0, 0])
    assert general.freedom[0, 0] == pytest.approx(simple.freedom[0, 0])


def test_two_pictures_of_a_person_count_as_one_face_with_twice_the_edits():
    met, count, races = unbalanced(5)
    pictures = [np.minimum(met, count // 2), count // 2]
    others = [met - pictures[0], count - pictures[1]]
    both = [np.concatenate(pair) for pair in zip(pictures, others, strict=True)]
    people = [f"person {i}" for i in range(len(met))] * 2
    crossed = CrossedPanel(panel_of(both[0], count=both[1], races=races * 2, seeds=3, drawn_with=people))
    summed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3))
    assert everything(crossed) == pytest.approx(everything(summed))
    assert of(crossed, RACES[2])[0].faces[0, 0] == of(summed, RACES[2])[0].faces[0, 0]


def twins(bases: int = 6, prompts: int = 5, seed: int = 2) -> tuple[np.ndarray, list[str], list[str]]:
    """[base x race, prompt], where bases differ by far more than their versions; the races and the bases of rows."""
    shape = (bases, 3, prompts)
    y = np.repeat(4 * np.arange(bases), 3)[:, None] + drawn(bases * 3, prompts, seed)
    base, race, _ = np.indices(shape)
    return y, [RACES[i] for i in race[:, :, 0].ravel()], [f"base {i}" for i in base[:, :, 0].ravel()]


def test_a_contrast_of_twins_has_the_variance_of_the_differences_within_bases():
    y, races, bases = twins()
    crossed = CrossedPanel(panel_of(y, races=races, drawn_with=bases))
    cube = y.reshape(6, 3, 5)
    d = cube[:, 0] - cube[:, 1]
    over_faces, over_prompts = (sem(d.mean(axis=axis)) ** 2 for axis in (1, 0))
    rest = d - d.mean(axis=1, keepdims=True) - d.mean(axis=0) + d.mean()
    over_cells = (rest**2).sum() / (5 * 4) / (6 * 5)
    expected = max(over_faces + over_prompts - over_cells, over_faces, over_prompts)
    found = crossed.uncertainty(of(crossed, *RACES[:2]), [1.0, -1.0])
    assert found.variance[0, 0] == pytest.approx(expected)
    apart = CrossedPanel(panel_of(y, races=races))
    assert found.variance[0, 0] < 0.1 * apart.uncertainty(of(apart, *RACES[:2]), [1.0, -1.0]).variance[0, 0]


def test_mean_squares_of_twins_are_those_of_the_analysis_of_variance_with_bases():
    y, races, bases = twins()
    shape = (6, 3, 5)
    base, race, prompt = (at.ravel() for at in np.indices(shape))
    flat = y.ravel().astype(float)
    two_way = [indicators(base, race), indicators(base, prompt), indicators(race, prompt)]
    rest = left(flat, *two_way)
    pooled = CrossedPanel(panel_of(y, races=races, drawn_with=bases)).pooled(("race",))
    for found, freedom, without in (
        (pooled.faces, pooled.face_freedom, 0),
        (pooled.interaction, pooled.interaction_freedom, 2),
    ):
        expected = mean_square(left(flat, *two_way[:without], *two_way[without + 1 :]), rest)
        assert (found[0, 0], freedom[0, 0]) == pytest.approx(expected)
    assert (pooled.cells[0, 0], pooled.cell_freedom[0, 0]) == pytest.approx((rest[0] / rest[1], rest[1]))


def test_bases_without_every_version_get_no_credit_for_what_versions_have_in_common():
    y, races, bases = twins()
    kept = np.arange(len(y)) != 4
    some = [np.array(x)[kept].tolist() for x in (races, bases)]
    crossed = CrossedPanel(panel_of(y[kept], races=some[0], drawn_with=some[1]))
    within, apart = (crossed.pooled(("race",), contrast=flag) for flag in (True, False))
    assert within.faces[0, 0] == apart.faces[0, 0]


def test_everybody_of_twins_is_as_sure_as_bases_allow():
    y, races, bases = twins()
    everybody = CrossedPanel(panel_of(y, races=races, drawn_with=bases)).all_faces
    assert everybody.faces[0, 0] == 6 and everybody.face_freedom[0, 0] == 5
    assert everybody.over_faces[0, 0] == pytest.approx(sem(y.reshape(6, 15).mean(axis=1)) ** 2)


def coverage(known: bool, studies: int = 500) -> tuple[float, float]:
    """How often 95 % intervals of everybody, and of one race minus another, hold 0, where people have two pictures."""
    rng = np.random.default_rng(17)
    people, prompts = 28, 8
    person = np.tile(rng.normal(0, 2, (people, 1, studies)), (2, 1, 1))
    rest = rng.normal(0, 0.5, (2 * people, 1, studies)) + rng.normal(0, 1, (2 * people, prompts, studies))
    y = np.rint(100 * (person + rng.normal(0, 0.5, (1, prompts, studies)) + rest))
    names = [f"person {i}" for i in range(people)] * 2
    races = [RACES[i % 2] for i in range(people)] * 2
    crossed = CrossedPanel(panel_of(y, races=races, measure=MEAN, drawn_with=names if known else None))
    groups = of(crossed, *RACES[:2])
    covered = []
    for parts, weights in (([crossed.all_faces], [1.0]), (groups, [1.0, -1.0])):
        value = sum(w * g.value for g, w in zip(parts, weights, strict=True))
        reach = crossed.uncertainty(parts, weights).half_width(0.95)
        covered.append(float((np.abs(value) <= reach)[:-1, 0].mean()))
    return covered[0], covered[1]


def test_intervals_hold_the_truth_where_people_have_several_pictures():
    assert min(coverage(known=True)) >= 0.93
    assert max(coverage(known=False)) < 0.90, "pictures taken as separate draws"

"""Two-way variances against analyses of variance by least squares and against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from evenedit.protocol.factors import cells
from evenedit.stats.engine.crossed import CrossedPanel, GroupSums
from tests.support.panels import RACES, panel_of


def indicators(*codes: np.ndarray) -> np.ndarray:
    """One column per combination of codes."""
    place = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    return np.eye(place.max() + 1)[place]


def left(y: np.ndarray, *terms: np.ndarray) -> tuple[float, int]:
    """The residual sum of squares of a least-squares fit on indicators, with its degrees of freedom."""
    basis, size, _ = np.linalg.svd(np.concatenate(terms, axis=1), full_matrices=False)
    basis = basis[:, size > 1e-9]
    fit = OLS(y, basis).fit()
    return fit.ssr, len(y) - basis.shape[1]


def mean_square(smaller: tuple[float, int], larger: tuple[float, int]) -> tuple[float, int]:
    """What a term adds to a fit: its mean square and degrees of freedom."""
    freedom = smaller[1] - larger[1]
    return (smaller[0] - larger[0]) / freedom, freedom


def drawn(faces: int = 12, prompts: int = 5, seed: int = 1) -> np.ndarray:
    """[face, prompt] of whole numbers 0 to 4 with face and prompt effects."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(faces, 1)) + rng.normal(size=(1, prompts)) + rng.normal(size=(faces, prompts))
    return np.digitize(latent, [-1.5, -0.5, 0.5, 1.5])


def of(crossed: CrossedPanel, *races: str) -> list[GroupSums]:
    return [crossed.of({"race": race}) for race in races]


def test_pooled_mean_squares_of_a_complete_panel_are_those_of_the_analysis_of_variance():
    y = drawn()
    face, prompt = (at.ravel() for at in np.indices(y.shape))
    race = np.repeat(np.arange(3), 4)[face]
    flat = y.ravel().astype(float)
    by_face, by_prompt, by_group = indicators(face), indicators(prompt), indicators(race, prompt)
    rest = left(flat, by_face, by_group)
    pooled = CrossedPanel(panel_of(y, 3)).pooled(("race",))
    for found, freedom, (expected, expected_freedom) in (
        (pooled.faces, pooled.face_freedom, mean_square(left(flat, by_group), rest)),
        (pooled.interaction, pooled.interaction_freedom, mean_square(left(flat, by_face, by_prompt), rest)),
    ):
        assert found[0, 0] == pytest.approx(expected)
        assert freedom[0, 0] == expected_freedom
    assert pooled.cells[0, 0] == pytest.approx(rest[0] / rest[1]) and pooled.cell_freedom[0, 0] == rest[1]


def test_a_contrast_of_a_complete_panel_has_the_variance_written_out():
    y = drawn()
    crossed = CrossedPanel(panel_of(y, 3))
    first, second = y[:4], y[4:8]
    parts = [g.mean(axis=1).var(ddof=1) / 4 for g in (first, second)]
    over_faces = sum(parts)
    face_freedom = over_faces**2 / sum(v**2 / 3 for v in parts)
    over_prompts = (first.mean(axis=0) - second.mean(axis=0)).var(ddof=1) / 5

    def residual(g: np.ndarray) -> float:
        rest = g - g.mean(axis=1, keepdims=True) - g.mean(axis=0) + g.mean()
        return float((rest**2).sum() / (3 * 4))

    over_cells = sum(residual(g) / (4 * 5) for g in (first, second))
    total = over_faces + over_prompts - over_cells
    assert total > max(over_faces, over_prompts)
    freedom = total**2 / (over_faces**2 / face_freedom + over_prompts**2 / 4 + over_cells**2 / 24)
    found = crossed.uncertainty(of(crossed, *RACES[:2]), [1.0, -1.0])
    assert found.variance[0, 0] == pytest.approx(total)
    assert found.freedom[0, 0] == pytest.approx(freedom)


def test_everybodys_variance_over_faces_is_that_of_faces_with_the_same_labels():
    y = drawn(84, 6)
    panel = panel_of(y)
    labels = {f: np.array([c[f] for c in cells()]) for f in ("race", "gender", "age")}
    everybody = CrossedPanel(replace(panel, axes=replace(panel.axes, labels=labels))).all_faces
    squares, freedom = left(y.mean(axis=1), *(indicators(x) for x in labels.values()))
    assert everybody.over_faces[0, 0] == pytest.approx(squares / freedom / 84)
    assert everybody.face_freedom[0, 0] == freedom == 71
    assert everybody.value[0, 0] == pytest.approx(y.mean())


def test_labels_that_leave_too_few_faces_are_not_adjusted_for():
    y = drawn(8, 6)
    labelled = CrossedPanel(panel_of(y, 7)).all_faces
    assert labelled.over_faces[0, 0] == pytest.approx(y.mean(axis=1).var(ddof=1) / 8)
    assert labelled.face_freedom[0, 0] == 7


def test_the_variance_is_close_to_statsmodels_two_way_clusters():
    y = drawn(60, 60, 4)
    face, prompt = (at.ravel() for at in np.indices(y.shape))
    fit = OLS(y.ravel().astype(float), np.ones((y.size, 1))).fit()
    expected = cov_cluster_2groups(fit, face, prompt, use_correction=False)[0].item()
    crossed = CrossedPanel(panel_of(y))
    everybody = crossed.uncertainty([crossed.all_faces], [1.0])
    assert everybody.variance[0, 0] == pytest.approx(expected, rel=0.05)  # theirs is without small-sample corrections


def by_loop(met: np.ndarray, count: np.ndarray) -> tuple[float, float, float, tuple[int, int], np.ndarray]:
    """Value, variance over faces, over cells, faces and prompts met, the prompts' influence, cell by cell."""
    value, size = met.sum() / count.sum(), count.sum()
    influence = np.zeros(met.shape)
    for i in range(met.shape[0]):
        for j in range(met.shape[1]):
            influence[i, j] = (met[i, j] - value * count[i, j]) / size
    n, p = int((count.sum(axis=1) > 0).sum()), int((count.sum(axis=0) > 0).sum())
    over_faces = sum(influence[i].sum() ** 2 for i in range(len(met))) * n / (n - 1)
    prompts = np.array([influence[:, j].sum() for j in range(met.shape[1])])
    squares = sum(x**2 for x in influence.ravel())
    rest = squares - sum(influence.sum(axis=1) ** 2) / p - sum(prompts**2) / n
    return value, over_faces, max(rest, 0.0) * n * p / ((n - 1) * (p - 1)), (n, p), prompts


def unbalanced(seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Several seeds, missing scores, a face and a prompt without any, groups of 3, 5 and 8 faces."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 4, size=(16, 6))
    count[4], count[:, 2] = 0, 0
    return rng.binomial(count, 0.3), count, [RACES[0]] * 3 + [RACES[1]] * 5 + [RACES[2]] * 8


@pytest.mark.parametrize("seed", range(5))
def test_unbalanced_panels_agree_with_influences_by_a_plain_loop(seed):
    met, count, races = unbalanced(seed)
    crossed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3))
    weights = (1.0, -0.25, -0.75)
    prompts, over_faces, over_cells, square, freedom = np.zeros(6), 0.0, 0.0, 0.0, 0.0
    for race, weight in zip(RACES, weights, strict=False):
        mask = np.array(races) == race
        value, faces, cell, (n, met_prompts), influence = by_loop(met[mask], count[mask])
        (found,) = of(crossed, race)
        assert found.value[0, 0] == pytest.approx(value)
        assert found.over_faces[0, 0] == pytest.approx(faces)
        assert found.over_cells[0, 0] == pytest.approx(cell)
        assert found.by_prompt[:, 0, 0] == pytest.approx(influence)
        over_faces += weight**2 * faces
        square += (weight**2 * faces) ** 2 / (n - 1)
        prompts += weight * influence
        over_cells += weight**2 * cell
        freedom += (n - 1) * (met_prompts - 1)
    over_prompts = (prompts**2).sum() * 5 / 4
    total = over_faces + over_prompts - over_cells
    sure = crossed.uncertainty(of(crossed, *RACES[:3]), weights)
    assert sure.variance[0, 0] == pytest.approx(max(total, over_faces, over_prompts))
    if total > max(over_faces, over_prompts):
        parts = square + over_prompts**2 / 4 + over_cells**2 / freedom
        assert sure.freedom[0, 0] == pytest.approx(total**2 / parts)


def test_seeds_of_one_cell_count_as_their_mean():
    rng = np.random.default_rng(3)
    met = rng.integers(0, 4, size=(12, 5))
    seeds, plain = (CrossedPanel(panel_of(met, 3, seeds)) for seeds in (3, 1))
    three, one = (c.uncertainty(of(c, *RACES[:2]), [1.0, -1.0]) for c in (seeds, plain))
    assert three.variance == pytest.approx(one.variance / 9)
    assert three.freedom == pytest.approx(one.freedom)


def test_one_prompt_leaves_the_variance_of_the_faces():
    y = drawn(9, 1)
    crossed = CrossedPanel(panel_of(y))
    found = crossed.uncertainty([crossed.all_faces], [1.0])
    assert found.variance[0, 0] == pytest.approx(sem(y[:, 0]) ** 2)
    assert found.freedom[0, 0] == 8


def test_one_face_has_no_variance():
    crossed = CrossedPanel(panel_of(drawn(1, 6)))
    assert np.isnan(crossed.uncertainty([crossed.all_faces], [1.0]).variance).all()


def test_a_group_without_a_valid_score_has_no_value_and_a_weight_of_zero_leaves_it_out():
    met, count, races = unbalanced(1)
    count[:3] = met[:3] = 0
    crossed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3))
    empty, *others = of(crossed, *RACES[:3])
    assert np.isnan(empty.value).all()
    with_it = crossed.uncertainty([empty, *others], [0.0, 1.0, -1.0])
    without = crossed.uncertainty(others, [1.0, -1.0])
    assert (with_it.variance == without.variance).all() and (with_it.freedom == without.freedom).all()


def test_the_order_of_rows_changes_no_bit():
    met, count, races = unbalanced(2)
    found = []
    for order in (None, np.random.default_rng(5).permutation(met.size)):
        crossed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3, order=order))
        pooled = crossed.pooled(("race",)).of([1.0, -0.5, -0.5])
        own = crossed.uncertainty(of(crossed, *RACES[:3]), [1.0, -0.5, -0.5])
        everybody = crossed.uncertainty([crossed.all_faces], [1.0])
        found.append([x.tobytes() for u in (pooled, own, everybody) for x in (u.variance, u.freedom)])
    assert found[0] == found[1]


def test_editors_side_by_side_are_those_found_one_by_one_and_pooled_last():
    y = np.stack([drawn(12, 5, seed) for seed in (1, 2)], axis=2)
    together = CrossedPanel(panel_of(y, 3))
    both = together.uncertainty(of(together, *RACES[:2]), [1.0, -1.0])
    for editor in range(2):
        alone = CrossedPanel(panel_of(y[..., editor], 3))
        one = alone.uncertainty(of(alone, *RACES[:2]), [1.0, -1.0])
        assert both.variance[editor, 0] == pytest.approx(one.variance[0, 0])
    pooled = CrossedPanel(panel_of(y.sum(axis=2), 3, 2))
    whole = pooled.uncertainty(of(pooled, *RACES[:2]), [1.0, -1.0])
    assert both.variance[2, 0] == pytest.approx(whole.variance[0, 0])


def test_influences_sum_to_the_variances_they_belong_to():
    met, count, races = unbalanced(4)
    crossed = CrossedPanel(panel_of(met, count=count, races=races, seeds=3))
    masks = [np.array(races) == race for race in RACES[:2]]
    faces, prompts = crossed.influences([(masks[0], 1.0), (masks[1], -1.0)])
    first, second = of(crossed, *RACES[:2])
    assert prompts == pytest.approx(first.by_prompt - second.by_prompt)
    n = first.faces[0, 0]
    assert (faces[masks[0], 0, 0] ** 2).sum() * n / (n - 1) == pytest.approx(first.over_faces[0, 0])
    assert (faces[np.array(races) == RACES[2]] == 0).all()

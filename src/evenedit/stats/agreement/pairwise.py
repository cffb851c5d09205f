"""One rater against another, or a judge against people: two numbers per item."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenedit.stats.agreement.inter_rater import LEVELS, linear
from evenedit.stats.engine.additive import Additive, Array, divide, ratio, with_ones


def _crossed(levels: int, a: NDArray[np.integer], b: NDArray[np.integer]) -> Array:
    """Return the indicator of each item's pair of levels, [item, level, level]."""
    at = np.arange(1, levels + 1)
    pair = (a[:, None] == at)[:, :, None] & (b[:, None] == at)[:, None, :]
    return np.asarray(pair, dtype=np.float64)


def _kappa(distance: Array, sums: Array) -> Array:
    """Cohen's kappa: one minus disagreement over disagreement expected from the margins."""
    first, second = _margins(sums)
    expected = ((first @ distance) * second).sum(axis=1)
    return 1 - divide(first.sum(axis=1) * (sums.reshape(len(sums), -1) @ distance.ravel()), expected)


@cache
def _sides(rows: int, columns: int) -> tuple[Array, Array]:
    """Return the matrices that sum the rows and the columns of a flattened table."""
    return np.repeat(np.eye(rows), columns, axis=0), np.tile(np.eye(columns), (rows, 1))


def _margins(sums: Array) -> tuple[Array, Array]:
    """Return the margins of tables [draw, row, column]: sums over columns, and over rows. Counts are exact."""
    flat = sums.reshape(len(sums), -1)
    rows, columns = _sides(*sums.shape[1:])
    return flat @ rows, flat @ columns


def _ranked(a: NDArray[Any], b: NDArray[Any]) -> Array:
    """Return the indicator of each item's pair of values, [item, value of a, value of b]."""
    cells = [np.unique(x, return_inverse=True) for x in (a, b)]
    parts = np.zeros((len(a), len(cells[0][0]), len(cells[1][0])))
    parts[np.arange(len(a)), cells[0][1].ravel(), cells[1][1].ravel()] = 1
    return parts


def _spearman(sums: Array) -> Array:
    """Pearson's correlation of midranks."""
    sizes = _margins(sums)
    n = sizes[0].sum(axis=1)
    a, b = ((np.cumsum(size, axis=1) - size / 2 - n[:, None] / 2) * (size > 0) for size in sizes)
    spread = [(r**2 * size).sum(axis=1) for r, size in zip((a, b), sizes, strict=True)]
    return divide(np.einsum("di,dij,dj->d", a, sums, b), np.sqrt(spread[0] * spread[1]))


def _mean(name: str, what: Callable[..., NDArray[Any]], *, is_share: bool = False) -> Additive:
    """Return the mean over items of a function of both numbers."""
    return Additive(name, lambda a, b: with_ones(what(a, b)), ratio, "no item", is_share=is_share)


def cohen(levels: int) -> Additive:
    """Return Cohen's kappa over this number of unordered answers."""
    distance = 1 - np.eye(levels)
    both = "both gave one and the same answer throughout"
    return Additive("cohen_kappa", partial(_crossed, levels), partial(_kappa, distance), both)


@cache
def weighted_kappas(levels: int = LEVELS) -> tuple[Additive, Additive]:
    """Return Cohen's kappa with linear and with quadratic weights over this number of ordered levels."""
    crossed, both = partial(_crossed, levels), "both gave one and the same score throughout"
    note = "five fixed levels" if levels == LEVELS else f"{levels} fixed levels"
    first = Additive("weighted_kappa_linear", crossed, partial(_kappa, linear(levels)), both, note)
    return first, Additive("weighted_kappa_quadratic", crossed, partial(_kappa, linear(levels) ** 2), both, note)


spearman = Additive("spearman", _ranked, _spearman, "one side does not vary", "midranks")
accuracy = _mean("accuracy", lambda a, b: a == b, is_share=True)
exact_agreement = _mean("exact_agreement", lambda a, b: a == b, is_share=True)
within_one = _mean("within_one", lambda a, b: np.abs(a.astype(np.int64) - b) <= 1, is_share=True)
mae = _mean("mae", lambda a, b: np.abs(a.astype(np.float64) - b))
mean_difference = Additive(
    "mean_difference", lambda a, b: with_ones(a.astype(np.float64) - b), ratio, "no item", "first minus second"
)


def spearman_p(rho: float | None, n: int) -> float | None:
    """Two-sided p of a rank correlation, from t with n - 2 degrees of freedom."""
    if rho is None or n < 3:
        return None
    if abs(rho) >= 1:
        return 0.0
    t = rho * np.sqrt((n - 2) / (1 - rho**2))
    return float(2 * special.stdtr(n - 2, -abs(t)))

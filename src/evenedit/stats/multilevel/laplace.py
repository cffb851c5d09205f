"""Cumulative logits with crossed random effects, by Laplace's approximation.

A score falls into category k when a hidden number, the sum of all effects and logistic noise, lies between two cuts;
a 0 or 1 has one cut, so it is a logit. Effects are standard normal numbers times their standard deviation, which may
then be 0. Faces cross nothing among themselves, so they are eliminated first (Schur's complement); what is left are a
few hundred columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

Values = NDArray[np.float64]
Places = NDArray[np.intp]
STEPS, CLOSE = 60, 1e-9
"""Newton steps at most, and half the squared step, on the scale of the curvature, at which it has arrived."""
HALVINGS = 25
"""How often a step that leads down is halved."""


class NotConverged(Exception):
    """Why a fit is not to be trusted."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One set of exchangeable effects: of faces, prompts, groups or combinations of both."""

    name: str
    at: Places
    """Of each row, which of the effects it has."""
    size: int
    sd: float | None = None
    """Known standard deviation, else it is estimated."""
    mean: Values | None = None
    """Known means, else 0."""


@dataclass(frozen=True, slots=True)
class ModelledRows:
    """What is modelled: rows of one category and count each, and the effects behind them; faces apart from others."""

    category: Places
    count: Values
    categories: int
    effects: tuple[Effect, ...]
    faces: Effect
    cut_sd: float
    """Each cut is normal around its mean before anything is seen, but for their order."""
    cut_mean: Values | None = None

    @property
    def free(self) -> tuple[str, ...]:
        """Effects whose standard deviation is estimated, faces last."""
        return tuple(e.name for e in (*self.effects, self.faces) if e.sd is None)

    def kept(self, rows: NDArray[np.bool_]) -> ModelledRows:
        """Some of the rows, with all effects."""
        effects = tuple(_kept(e, rows) for e in self.effects)
        faces = _kept(self.faces, rows)
        return ModelledRows(
            self.category[rows], self.count[rows], self.categories, effects, faces, self.cut_sd, self.cut_mean
        )


def _sums(at: Places, weights: Values, size: int) -> Values:
    """Weights summed by place."""
    return np.bincount(at, weights=weights, minlength=size).astype(np.float64)


def _kept(e: Effect, rows: NDArray[np.bool_]) -> Effect:
    return Effect(e.name, e.at[rows], e.size, e.sd, e.mean)


@dataclass(frozen=True, slots=True)
class Peak:
    """The mode of all effects at given standard deviations, and how curved it is there."""

    height: float
    """Log density of rows and effects at the mode."""
    log_evidence: float
    """Laplace's approximation of the log probability of the rows."""
    scaled: Values
    """Cuts and effects but those of faces, in standard deviations from their mean."""
    faces: Values
    """The same of faces."""
    values: Values
    """Cuts and effects but those of faces."""
    scale: Values
    factor: Values
    """Lower Cholesky factor of the precision of `scaled`, faces integrated out."""
    border: Values
    """[face, column]: precision between faces and `scaled`."""
    precision: Values
    """Of each face, the others known."""


class Laplace:
    """The model of one outcome."""

    def __init__(self, grid: ModelledRows) -> None:
        self.grid = grid
        self.cuts = grid.categories - 1
        starts = np.cumsum([self.cuts, *(e.size for e in grid.effects)])
        self.width = int(starts[-1])
        self.slices = {e.name: slice(int(s), int(s) + e.size) for e, s in zip(grid.effects, starts, strict=False)}
        rows = len(grid.category)
        columns = [e.at + s for e, s in zip(grid.effects, starts, strict=False)]
        self._columns = np.stack(columns, axis=1) if columns else np.zeros((rows, 0), dtype=np.intp)
        self._pairs = (self._columns[:, :, None] * self.width + self._columns[:, None, :]).reshape(rows, -1)
        self._by_face = grid.faces.at[:, None] * self.width + self._columns
        self._upper = np.minimum(grid.category, self.cuts - 1)
        self._lower = np.maximum(grid.category - 1, 0)
        self._first, self._last = grid.category == 0, grid.category == self.cuts
        means = [np.zeros(e.size) if e.mean is None else e.mean for e in grid.effects]
        self._mean = np.concatenate([np.zeros(self.cuts) if grid.cut_mean is None else grid.cut_mean, *means])
        self._face_mean = np.zeros(grid.faces.size) if grid.faces.mean is None else grid.faces.mean

    def scales(self, sds: Sequence[float] | Values) -> tuple[Values, float]:
        """The standard deviation of each column, and that of faces."""
        given = dict(zip(self.grid.free, sds, strict=True))
        effects = [np.full(e.size, given.get(e.name, e.sd or 0.0)) for e in self.grid.effects]
        faces = self.grid.faces
        return np.concatenate([np.full(self.cuts, self.grid.cut_sd), *effects]), float(given.get("face", faces.sd or 0))

    def start(self) -> tuple[Values, Values]:
        """Cuts at the shares of the categories, and no effects."""
        counts = np.bincount(self.grid.category, weights=self.grid.count, minlength=self.grid.categories) + 0.5
        below = np.cumsum(counts)[:-1] / counts.sum()
        scaled = np.zeros(self.width)
        scaled[: self.cuts] = (np.log(below / (1 - below)) - self._mean[: self.cuts]) / self.grid.cut_sd
        return scaled, np.zeros(self.grid.faces.size)

    def peak(self, sds: Sequence[float] | Values, near: tuple[Values, Values] | None = None) -> Peak:
        """The mode at these standard deviations, sought from `near`."""
        scale, face_scale = self.scales(sds)
        scaled, faces = near or self.start()
        value = self._value(scaled, faces, scale, face_scale)
        if not np.isfinite(value):
            scaled, faces = self.start()
            value = self._value(scaled, faces, scale, face_scale)
        for _ in range(STEPS):
            slope, face_slope, inner, border, diagonal = self._curve(scaled, faces, scale, face_scale)
            reduced = inner - border.T @ (border / diagonal[:, None])
            try:
                factor = cho_factor(reduced, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                raise NotConverged("the curvature at the mode is not that of a maximum") from None
            step = cho_solve(factor, slope - border.T @ (face_slope / diagonal), check_finite=False)
            face_step = (face_slope - border @ step) / diagonal
            decrement = float(slope @ step + face_slope @ face_step) / 2
            if decrement < CLOSE:
                lower = np.tril(factor[0])
                log_det = 2 * float(np.log(np.diag(lower)).sum()) + float(np.log(diagonal).sum())
                return Peak(
                    value,
                    value - log_det / 2,
                    scaled,
                    faces,
                    self._mean + scale * scaled,
                    scale,
                    lower,
                    border,
                    diagonal,
                )
            share = 1.0
            for _ in range(HALVINGS):
                trial, face_trial = scaled + share * step, faces + share * face_step
                new = self._value(trial, face_trial, scale, face_scale)
                if new >= value + 1e-4 * share * decrement:
                    break
                share /= 2
            else:
                raise NotConverged("no step leads to a better fit")
            scaled, faces, value = trial, face_trial, new
        raise NotConverged(f"no mode of the effects after {STEPS} steps")

    def _ends(self, values: Values, faces: Values) -> tuple[Values, Values]:
        """Of each row, the cut above and the cut below it minus the sum of its effects."""
        total = faces[self.grid.faces.at] + values[self._columns].sum(axis=1)
        upper = np.where(self._last, np.inf, values[self._upper] - total)
        return upper, np.where(self._first, -np.inf, values[self._lower] - total)

    def _value(self, scaled: Values, faces: Values, scale: Values, face_scale: float) -> float:
        """Log density of rows and effects; minus infinity where cuts are out of order."""
        values = self._mean + scale * scaled
        if (np.diff(values[: self.cuts]) <= 0).any():
            return -np.inf
        upper, lower = self._ends(values, self._face_mean + face_scale * faces)
        told = -np.logaddexp(0, -upper) - np.logaddexp(0, lower) + np.log1p(-np.exp(lower - upper))
        return float(self.grid.count @ told) - float(scaled @ scaled + faces @ faces) / 2

    def _curve(
        self, scaled: Values, faces: Values, scale: Values, face_scale: float
    ) -> tuple[Values, Values, Values, Values, Values]:
        """Slope of columns and of faces; curvature among columns, between faces and columns, and of faces."""
        grid, width, cuts = self.grid, self.width, self.cuts
        upper, lower = self._ends(self._mean + scale * scaled, self._face_mean + face_scale * faces)
        above, below = expit(upper), expit(lower)
        with np.errstate(over="ignore"):
            close = 1 / np.expm1(upper - lower)
        at_upper, at_lower = grid.count * above * (1 - above), grid.count * below * (1 - below)
        between = grid.count * close * (1 + close)
        weight, pull = at_upper + at_lower, grid.count * (above + below - 1)
        inner = _sums(self._pairs.ravel(), np.repeat(weight, self._pairs.shape[1]), width * width).reshape(width, width)
        border = _sums(
            self._by_face.ravel(), np.repeat(weight, self._columns.shape[1]), grid.faces.size * width
        ).reshape(grid.faces.size, width)
        slope = _sums(self._columns.ravel(), np.repeat(pull, self._columns.shape[1]), width)
        for mine, other, has, amount, push in (
            (self._upper, self._lower, ~self._last, at_upper, 1 - above + close),
            (self._lower, self._upper, ~self._first, at_lower, -below - close),
        ):
            at, much = mine[has], amount[has]
            slope[:cuts] += _sums(at, (grid.count * push)[has], cuts)
            crossed = (at[:, None] * width + self._columns[has]).ravel()
            part = _sums(crossed, np.repeat(much, self._columns.shape[1]), cuts * width)
            inner[:cuts] -= part.reshape(cuts, width)
            inner[:, :cuts] -= part.reshape(cuts, width).T
            border[:, :cuts] -= _sums(grid.faces.at[has] * cuts + at, much, grid.faces.size * cuts).reshape(-1, cuts)
            both = has & ~self._first & ~self._last
            inner[:cuts, :cuts] += np.diag(_sums(at, much, cuts))
            inner[:cuts, :cuts] += np.diag(_sums(mine[both], between[both], cuts))
            inner[:cuts, :cuts] -= _sums(mine[both] * cuts + other[both], between[both], cuts * cuts).reshape(
                cuts, cuts
            )
        inner *= scale[:, None] * scale[None, :]
        inner[np.diag_indices(width)] += 1
        border *= face_scale * scale[None, :]
        diagonal = _sums(grid.faces.at, weight, grid.faces.size) * face_scale**2 + 1
        face_slope = _sums(grid.faces.at, pull, grid.faces.size) * face_scale - faces
        return slope * scale - scaled, face_slope, inner, border, diagonal

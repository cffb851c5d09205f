"""Hamiltonian Monte Carlo over all effects and standard deviations, in coordinates that Laplace's fit makes round.

Around the mode the posterior is nearly normal. Coordinates in which that normal distribution is the standard one need a
handful of long steps for a draw that hardly knows the one before; chains run side by side, so that a step of all is one
product of matrices. What is not normal about the posterior (rare events, standard deviations near 0) costs steps, not
correctness: whether chains have met is watched by R-hat. A standard deviation may pass through 0 and back, its sign
carried by the effects, so that 0 is no wall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from scipy.special import expit

from evenedit.stats.multilevel.laplace import Laplace, ModelledRows, Peak, Places, Values

CHAINS = 8
WARM_UP, ROUND, ROUNDS = 40, 80, 6
"""Draws that are thrown away; draws until it is looked whether the chains have met; how often that is done."""
SETTLED = 1.05
"""Potential scale reduction (R-hat) below which they have."""
LENGTH, STEPS = 1.5, 10
"""How far a trajectory goes, in standard deviations, and in how many steps at most."""
GRID = np.geomspace(0.003, 10.0, 300)
"""Standard deviations among which one is drawn anew."""
FIRST, ACCEPTED = 0.3, 0.8
"""The first size of a step, and the share of trajectories to be accepted."""


@dataclass(frozen=True, slots=True)
class RoundCoordinates:
    """Where the posterior is nearly standard normal: around `peak`, at the standard deviations `centre`."""

    peak: Peak
    centre: Values
    root: Values
    """Lower Cholesky factor of the covariance of the standard deviations."""
    drift: Values
    """[column and face, standard deviation]: how the mode of the effects moves with them."""


class Density:
    """Log density of the posterior and its slope, for many states at once: [coordinate, chain]."""

    def __init__(self, model: Laplace, frame: RoundCoordinates, sd_scale: float) -> None:
        grid = model.grid
        self.grid, self.frame, self.sd_scale, self.cuts = grid, frame, sd_scale, model.cuts
        self.width, self.faces, self.free = model.width, grid.faces.size, len(grid.free)
        rows = np.arange(len(grid.category))
        effects = [(e.at + model.slices[e.name].start, rows) for e in grid.effects]
        columns = [*effects, (grid.faces.at + model.width, rows)]
        at = np.concatenate([c for c, _ in columns])
        row = np.concatenate([r for _, r in columns])
        shape = (len(rows), model.width + grid.faces.size)
        self._design = csr_array((np.ones(len(at)), (row, at)), shape=shape)
        self._back = csr_array(self._design.T)
        self._upper = self._cuts_of(grid.category, grid.category < model.cuts)
        self._lower = self._cuts_of(grid.category - 1, grid.category > 0)
        self._sign = np.where(grid.category == 0, 1.0, -1.0)[:, None]
        self._signed_count = self._sign * grid.count[:, None]
        self._last, self._first = grid.category == model.cuts, grid.category == 0
        self._scale, self._slices = _scales(model)

    def _cuts_of(self, cut: Places, has: NDArray[np.bool_]) -> csr_array:
        rows = np.flatnonzero(has)
        return csr_array((np.ones(len(rows)), (rows, cut[rows])), shape=(len(has), self.cuts))

    def place(self, state: Values) -> tuple[Values, Values]:
        """Scaled effects and standard deviations, with a sign, at a state."""
        frame, size = self.frame, self.width
        sds = frame.centre[:, None] + frame.root @ state[size + self.faces :]
        away = solve_triangular(frame.peak.factor, state[:size], lower=True, trans="T", check_finite=False)
        precision = frame.peak.precision[:, None]
        faces = state[size : size + self.faces] / np.sqrt(precision) - frame.peak.border @ away / precision
        mode = np.concatenate([frame.peak.scaled, frame.peak.faces])[:, None]
        return mode + np.concatenate([away, faces]) + frame.drift @ (sds - frame.centre[:, None]), sds

    def _state(self, scaled: Values, sds: Values) -> Values:
        """The state at scaled effects and standard deviations: `place` turned round."""
        frame, size = self.frame, self.width
        mode = np.concatenate([frame.peak.scaled, frame.peak.faces])[:, None]
        away = scaled - mode - frame.drift @ (sds - frame.centre[:, None])
        precision = frame.peak.precision[:, None]
        faces = (away[size:] + frame.peak.border @ away[:size] / precision) * np.sqrt(precision)
        logs = solve_triangular(frame.root, sds - frame.centre[:, None], lower=True, check_finite=False)
        return np.concatenate([frame.peak.factor.T @ away[:size], faces, logs])

    def refreshed(self, state: Values, rng: np.random.Generator) -> Values:
        """Standard deviations drawn anew given the effects as they are, which leaves the likelihood as it is.

        Where many rows tell each effect, effects hold their standard deviation fast and no trajectory moves it far.
        """
        scaled, sds = self.place(state)
        fresh = np.empty_like(sds)
        for at, part in enumerate(self._slices):
            effects = sds[at] * scaled[part]
            told = -(effects**2).sum(axis=0) / (2 * GRID[:, None] ** 2) - GRID[:, None] ** 2 / (2 * self.sd_scale**2)
            told -= (len(effects) - 1) * np.log(GRID)[:, None]  # one less, as the grid is even in logarithms
            below = np.cumsum(np.exp(told - told.max(axis=0)), axis=0)
            wanted = rng.random(sds.shape[1]) * below[-1]
            place = [np.interp(w, b, np.arange(len(GRID))) for w, b in zip(wanted, below.T, strict=True)]
            fresh[at] = GRID[0] * (GRID[1] / GRID[0]) ** np.array(place)
            scaled[part] = effects / fresh[at]
        return self._state(scaled, fresh)

    def values(self, scaled: Values, sds: Values) -> Values:
        """Cuts, effects and faces of scaled ones."""
        scale = np.broadcast_to(self._scale[:, None], scaled.shape).copy()
        for sd, part in zip(sds, self._slices, strict=True):
            scale[part] = sd
        return np.asarray(scale * scaled)

    def __call__(self, state: Values) -> tuple[Values, Values]:
        """Log density and slope."""
        scaled, sds = self.place(state)
        told, slope = self._rows(self.values(scaled, sds))
        told = told - (scaled**2).sum(axis=0) / 2 - ((sds / self.sd_scale) ** 2).sum(axis=0) / 2
        sd_slope = -sds / self.sd_scale**2
        for at, part in enumerate(self._slices):
            sd_slope[at] += (slope[part] * scaled[part]).sum(axis=0)
            slope[part] *= sds[at]
        fixed = self._scale > 0
        slope[fixed] *= self._scale[fixed, None]
        slope -= scaled
        return told, self._turned(slope, sd_slope)

    def _turned(self, slope: Values, sd_slope: Values) -> Values:
        """A slope in effects and standard deviations as one in the state's coordinates."""
        frame, size = self.frame, self.width
        sds = frame.root.T @ (sd_slope + frame.drift.T @ slope)
        precision = frame.peak.precision[:, None]
        columns = slope[:size] - frame.peak.border.T @ (slope[size:] / precision)
        columns = solve_triangular(frame.peak.factor, columns, lower=True, check_finite=False)
        return np.concatenate([columns, slope[size:] / np.sqrt(precision), sds])

    def _rows(self, values: Values) -> tuple[Values, Values]:
        """Log likelihood and its slope in cuts, effects and faces."""
        told = self._two if self.cuts == 1 else self._several
        with np.errstate(all="ignore"):
            height, pull, cuts = told(values[: self.cuts], self._design @ values)
        slope = self._back @ pull
        slope[: self.cuts] += cuts
        return height, np.where(np.isfinite(slope), slope, 0.0)

    def _two(self, cut: Values, total: Values) -> tuple[Values, Values, Values]:
        """Of a 0 or 1: log likelihood, its slope in the sum of effects of each row, and in the cut."""
        chance = expit(self._sign * (cut - total))
        pull = self._signed_count * (chance - 1)
        return self.grid.count @ np.log(chance), pull, -pull.sum(axis=0, keepdims=True)

    def _several(self, cuts: Values, total: Values) -> tuple[Values, Values, Values]:
        """The same of scores."""
        count = self.grid.count[:, None]
        upper, lower = self._upper @ cuts - total, self._lower @ cuts - total
        upper[self._last], lower[self._first] = np.inf, -np.inf
        above, below = expit(upper), expit(lower)
        apart = np.expm1(upper - lower)
        told = np.log(above * (1 - below) * (1 - 1 / (1 + apart)))
        ordered = (np.diff(cuts, axis=0) > 0).all(axis=0)
        by_cut = self._upper.T @ (count * (1 - above + 1 / apart)) - self._lower.T @ (count * (below + 1 / apart))
        return np.where(ordered, self.grid.count @ told, -np.inf), count * (above + below - 1), by_cut


def _scales(model: Laplace) -> tuple[Values, list[slice]]:
    """Known standard deviations of cuts, effects and faces, 0 where estimated; and where those of each name are."""
    grid: ModelledRows = model.grid
    scale = np.concatenate([np.full(model.width, 0.0), np.full(grid.faces.size, grid.faces.sd or 0.0)])
    scale[: model.cuts] = grid.cut_sd
    slices = []
    for effect in grid.effects:
        part = model.slices[effect.name]
        scale[part] = effect.sd or 0.0
        if effect.sd is None:
            slices.append(part)
    if grid.faces.sd is None:
        slices.append(slice(model.width, model.width + grid.faces.size))
    return scale, slices


def sample(density: Density, rng: np.random.Generator) -> tuple[Values, Values, float]:
    """Draws of standard deviations and of cuts and effects, [draw, …], and the largest R-hat of sds and cuts."""
    size = density.width + density.faces + density.free
    state = rng.standard_normal((size, CHAINS))
    step = FIRST
    sds: list[Values] = []
    columns: list[Values] = []
    for number in range(WARM_UP + ROUND * ROUNDS):
        state = density.refreshed(state, rng)
        state, accepted = _trajectory(density, state, step, rng)
        if number < WARM_UP:
            step *= float(np.exp((accepted - ACCEPTED) / np.sqrt(1 + number)))
            continue
        scaled, signed = density.place(state)
        sds.append(np.abs(signed).T)
        columns.append(density.values(scaled, signed)[: density.width].T)
        if len(sds) % ROUND == 0:
            watched = [np.stack(sds, axis=1), np.stack([c[:, : density.cuts] for c in columns], axis=1)]
            found = float(reduction(np.concatenate(watched, axis=2)).max())
            if found < SETTLED:
                break
    return np.concatenate(sds), np.concatenate(columns), found


def _trajectory(density: Density, state: Values, step: float, rng: np.random.Generator) -> tuple[Values, float]:
    """Every chain's next state, and the mean chance to be accepted."""
    size = step * rng.uniform(0.8, 1.2)
    height, slope = density(state)
    push = rng.standard_normal(state.shape)
    energy = height - (push**2).sum(axis=0) / 2
    there = state
    with np.errstate(all="ignore"):  # a trajectory that leaves for infinity is not accepted
        for _ in range(max(1, min(STEPS, round(LENGTH / size)))):
            push = push + size / 2 * slope
            there = there + size * push
            height, slope = density(there)
            push = push + size / 2 * slope
        gain = height - (push**2).sum(axis=0) / 2 - energy
    chance = np.exp(np.minimum(0.0, np.where(np.isnan(gain), -np.inf, gain)))
    return np.where(rng.random(chance.shape) < chance, there, state), float(chance.mean())


def reduction(values: Values) -> Values:
    """Potential scale reduction of [chain, draw, number], each chain split in two (Gelman et al. 2013)."""
    half = values.shape[1] // 2
    parts = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    return np.asarray(np.sqrt((half - 1) / half + between / np.maximum(within, 1e-12)))

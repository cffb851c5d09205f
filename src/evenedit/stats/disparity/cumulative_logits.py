"""Cumulative logits with one set of odds ratios (proportional odds), by maximum likelihood, faces as clusters.

The estimates are those of `polr` and `clm` in R. Their errors are a sandwich over faces, each face's score freed of its
pull on the fit (Mancl and DeRouen 2001). Whether the odds are proportional is a score test: had each cut odds of its
own, would they differ? It needs no second fit, so it has an answer where the single cuts are separated; its variance is
over faces too, and its quadratic form is Hotelling's, as faces are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, fdtrc, logit

Matrix = NDArray[np.float64]
STEPS, CLOSE = 60, 1e-10
LARGEST = 12.0
"""Log odds beyond which a fit has run away."""
HALVINGS = 30


class NoLimit(Exception):
    """The likelihood has no maximum."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """Information of one score about the log odds of each cut, by kind of face and prompt."""

    each: Matrix
    """[kind, prompt, cut, cut]"""
    summed: Matrix
    """[kind, prompt, cut]"""
    total: Matrix
    """[kind, prompt]"""


class CumulativeLogits:
    """One model: effects of labels, a log odds for each cut, and prompts as differences from the first."""

    def __init__(self, between: Matrix, met: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        """Fit the model to `between` [face, column], `met` [face, prompt, cut] and `count` [face, prompt]."""
        self.between, self.count = between, count.astype(np.float64)
        self.size, (self.faces, self.prompts, self.cuts) = between.shape[1], met.shape
        self.kinds, kind_of = np.unique(between, axis=0, return_inverse=True)
        self.kind_of = kind_of.ravel()
        categories = np.concatenate([count[..., None], met], axis=2) - np.concatenate(
            [met, np.zeros((*count.shape, 1), dtype=met.dtype)], axis=2
        )
        self._scores_of = categories.astype(np.float64)
        self._totals = np.zeros((len(self.kinds), self.prompts, self.cuts + 1))
        np.add.at(self._totals, self.kind_of, self._scores_of)
        self._sizes = self._totals.sum(axis=2)
        self.params = self._maximum()
        self._weights = self._weigh(self.params)
        self.bread = np.linalg.inv(self._information(self.kinds, self._sizes, slice(None)).sum(axis=0))

    @property
    def coefficients(self) -> Matrix:
        """Effects of the columns of `between` on the log odds of a higher score."""
        return self.params[: self.size]

    def covariance(self) -> Matrix:
        """Return the covariance of `coefficients`, a sandwich over faces."""
        alike, at = np.unique(np.column_stack([self.kind_of, self.count]), axis=0, return_inverse=True)
        kind = alike[:, 0].astype(np.intp)
        information = self._information(self.kinds[kind], alike[:, 1:], kind)
        freed = np.linalg.inv(np.eye(len(self.bread)) - information @ self.bread)
        score = np.einsum("fij,fj->fi", freed[at.ravel()], self._face_scores())
        sandwich = self.bread @ score.T @ score @ self.bread
        return np.asarray(sandwich[: self.size, : self.size])

    def p_proportional(self, block: slice) -> float | None:
        """Test by scores that effects of these columns are equal at every cut; None with one cut or too few faces."""
        labels = self.between[:, block]
        size = labels.shape[1] * (self.cuts - 1)
        left = self.faces - size
        if size < 1 or left <= self.size + 1:
            return None
        pull = self._pull().sum(axis=1)[:, 1:]
        scores = (labels[:, :, None] * pull[:, None, :]).reshape(self.faces, -1)
        shared = scores - self._face_scores() @ self.bread @ self._crossed(block).T
        summed = shared.sum(axis=0)
        quadratic = float(summed @ np.linalg.pinv(shared.T @ shared) @ summed) / self.faces
        if quadratic >= 1:
            return 0.0
        # the variance is about 0, which holds the sum itself: about the mean, the form is Hotelling's
        return float(fdtrc(size, left, quadratic / (1 - quadratic) * left / size))

    def _maximum(self) -> Matrix:
        above = np.cumsum(self._totals.sum(axis=(0, 1))[::-1])[::-1][1:]
        params = np.zeros(self.size + self.cuts + self.prompts - 1)
        params[self.size : self.size + self.cuts] = logit(above / self._totals.sum())
        value = self._likelihood(params)
        for _ in range(STEPS):
            self._weights = self._weigh(params)
            information = self._information(self.kinds, self._sizes, slice(None)).sum(axis=0)
            slope = self._gather(self.kinds, self._slopes(params)).sum(axis=0)
            try:
                step = np.linalg.solve(information, slope)
            except np.linalg.LinAlgError:
                raise NoLimit from None
            if not np.isfinite(step).all():
                raise NoLimit
            if float(np.abs(step).max()) < CLOSE:
                return params
            for _ in range(HALVINGS):
                new = self._likelihood(params + step)
                if new >= value - 1e-9 * abs(value):
                    break
                step = step / 2
            params, value = params + step, new
            if np.abs(params).max() > LARGEST:
                raise NoLimit
        raise NoLimit

    def _odds(self, params: Matrix) -> Matrix:
        """[kind, prompt, cut]: log odds of a score above the cut."""
        cuts = params[self.size : self.size + self.cuts]
        prompts = np.concatenate([[0.0], params[self.size + self.cuts :]])
        return np.asarray(cuts + prompts[:, None] + (self.kinds @ params[: self.size])[:, None, None])

    def _chances(self, params: Matrix) -> tuple[Matrix, Matrix]:
        """Chance of each category, and slope of the chance to be above each cut."""
        above = expit(self._odds(params))
        ends = np.concatenate([np.ones((*above.shape[:2], 1)), above, np.zeros((*above.shape[:2], 1))], axis=2)
        return np.maximum(-np.diff(ends, axis=2), 1e-300), above * (1 - above)

    def _likelihood(self, params: Matrix) -> float:
        if (np.diff(params[self.size : self.size + self.cuts]) >= 0).any():
            return -np.inf
        return float((self._totals * np.log(self._chances(params)[0])).sum())

    def _weigh(self, params: Matrix) -> _Weights:
        chance, slope = self._chances(params)
        each = np.zeros((*slope.shape, self.cuts))
        at = np.arange(self.cuts)
        each[..., at, at] = slope**2 * (1 / chance[..., :-1] + 1 / chance[..., 1:])
        off_diagonal = -slope[..., 1:] * slope[..., :-1] / chance[..., 1:-1]
        each[..., at[1:], at[:-1]] = each[..., at[:-1], at[1:]] = off_diagonal
        summed = each.sum(axis=3)
        return _Weights(each, summed, summed.sum(axis=2))

    def _information(self, labels: Matrix, sizes: Matrix, kind: slice | NDArray[np.intp]) -> Matrix:
        """Return the expected information [row, column, column] of faces with these labels and scores per prompt."""
        size, first = self.size, self.size + self.cuts
        w = self._weights
        each = np.einsum("kp,kpcd->kcd", sizes, w.each[kind])
        summed = sizes[:, :, None] * w.summed[kind]
        totals = sizes * w.total[kind]
        information = np.zeros((len(labels), first + self.prompts - 1, first + self.prompts - 1))
        information[:, :size, :size] = labels[:, :, None] * labels[:, None, :] * totals.sum(axis=1)[:, None, None]
        information[:, :size, size:first] = labels[:, :, None] * summed.sum(axis=1)[:, None, :]
        information[:, :size, first:] = labels[:, :, None] * totals[:, None, 1:]
        information[:, size:first, size:first] = each
        information[:, size:first, first:] = summed[:, 1:].transpose(0, 2, 1)
        at = np.arange(first, first + self.prompts - 1)
        information[:, at, at] = totals[:, 1:]
        information[:, size:, :size] = information[:, :size, size:].transpose(0, 2, 1)
        information[:, first:, size:first] = information[:, size:first, first:].transpose(0, 2, 1)
        return information

    def _slopes(self, params: Matrix) -> Matrix:
        """[kind, prompt, cut]: slope of the likelihood in the log odds of each cut."""
        chance, slope = self._chances(params)
        ratio = self._totals / chance
        return np.asarray(slope * (ratio[..., 1:] - ratio[..., :-1]))

    def _pull(self) -> Matrix:
        """Return the slopes of each face, [face, prompt, cut]."""
        chance, slope = (x[self.kind_of] for x in self._chances(self.params))
        ratio = self._scores_of / chance
        return np.asarray(slope * (ratio[..., 1:] - ratio[..., :-1]))

    def _gather(self, labels: Matrix, pull: Matrix) -> Matrix:
        """Return slopes in the parameters [row, column] from slopes in the log odds."""
        return np.concatenate(
            [labels * pull.sum(axis=(1, 2))[:, None], pull.sum(axis=1), pull.sum(axis=2)[:, 1:]], axis=1
        )

    def _face_scores(self) -> Matrix:
        return self._gather(self.between, self._pull())

    def _crossed(self, block: slice) -> Matrix:
        """Return the information [cut effect, column] of parameters and effects at single cuts (but the first)."""
        labels = self.kinds[:, block]
        summed = self._sizes[:, :, None] * self._weights.summed
        each = np.einsum("kp,kpcd->kcd", self._sizes, self._weights.each)
        parts = [
            np.einsum("kj,kc,ki->jci", labels, summed.sum(axis=1), self.kinds),
            np.einsum("kj,kcd->jcd", labels, each),
            np.einsum("kj,kpc->jcp", labels, summed[:, 1:]),
        ]
        crossed = np.concatenate(parts, axis=2)[:, 1:]
        return np.asarray(crossed.reshape(-1, crossed.shape[2]))

"""How sure an estimate is when rows share a face or a prompt: one variance from three, and the t that goes with it.

Rows of one face are alike, and so are rows of one prompt. The variance over faces and the variance over prompts
each hold the noise of single rows, so their sum holds it twice; the variance over face × prompt cells is taken off
once (Cameron, Gelbach and Miller 2011). By chance that can fall below either part, and then the larger part stands
(MacKinnon, Nielsen and Webb 2021). With few faces or prompts a variance is known badly: Satterthwaite's degrees of
freedom say how badly, and a t quantile takes the place of the normal one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma, stdtrit

from evenedit.stats.engine.intervals import Interval

Values = NDArray[np.float64]
FEWEST = 3
"""From fewer ratios of variances than this, nothing is said about how they differ."""
LEAST = 1e-5
"""A ratio below this part of the median counts as so much: the logarithm of 0 would stand above all others."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Variance of an estimate with its degrees of freedom; arrays of one shape."""

    variance: Values
    freedom: Values

    def half_width(self, confidence: float) -> Values:
        """Return the half-width of the t interval."""
        return np.asarray(np.sqrt(self.variance) * stdtrit(self.freedom, 0.5 + confidence / 2))


def two_way_variance(
    over_faces: Values, over_prompts: Values, over_cells: Values, faces: Values, prompts: Values
) -> Uncertainty:
    """Return the two-way clustered variance from its three parts.

    `faces` and `prompts` are the degrees of freedom of the first two. Without several prompts, `over_prompts` is
    0 and the faces alone speak.
    """
    both = np.maximum(np.maximum(over_faces, over_prompts), over_faces + over_prompts - over_cells)
    variance = np.where(over_prompts == 0, over_faces, both)  # a part that is not known leaves the whole unknown
    spread = over_faces**2 / np.maximum(faces, 1) + over_prompts**2 / np.maximum(prompts, 1)
    freedom = np.divide(variance**2, spread, out=np.ones_like(variance), where=spread > 0)
    # at least as many degrees of freedom as the smaller of the two parts: subtracting the overlap can make it fewer
    freedom = np.maximum(freedom, np.minimum(faces, prompts))
    return Uncertainty(variance, np.maximum(freedom, 1.0))


def moderated_variance(
    over_prompts: Values, over_cells: Values, freedom: Values, telling: NDArray[np.bool_]
) -> Uncertainty:
    """Return the variance over prompts, moderated by those of the other measures and editors.

    From four prompts a variance has three degrees of freedom. Its ratio to the variance over cells is 1 where prompts
    are alike, and more the more they differ. The ratios of many measures show how far such ratios differ at all; each
    is drawn towards their centre by as much as they are alike, and gains as many degrees of freedom (Smyth 2004). The
    whole never has more than all of them have. `telling` marks the ratios to learn from, which should not repeat each
    other.
    """
    defined = (over_prompts > 0) & (over_cells > 0)
    ratio = np.divide(over_prompts, over_cells, out=np.ones_like(over_prompts), where=defined)
    known = telling & defined
    if int(known.sum()) < FEWEST:
        return Uncertainty(over_prompts, freedom)
    centre, gained = variance_prior(ratio[known], freedom[known])
    total_freedom = np.minimum(freedom + gained, freedom[known].sum())
    weight = np.divide(gained, gained + freedom, out=np.ones_like(freedom), where=np.isfinite(gained + freedom))
    drawn = (weight * centre + (1 - weight) * ratio) * over_cells
    return Uncertainty(np.where(defined, drawn, over_prompts), np.where(defined, total_freedom, freedom))


def variance_prior(ratios: Values, freedom: Values) -> tuple[float, float]:
    """Return the centre of variance ratios and its degrees of freedom, from the moments of their logarithms.

    As `fitFDist` of the R package limma has it. The degrees of freedom are infinite where the ratios differ no more
    than chance makes them.
    """
    logs = np.log(np.maximum(ratios, LEAST * np.median(ratios))) - digamma(freedom / 2) + np.log(freedom / 2)
    mean = float(logs.mean())
    excess = float(logs.var(ddof=1) - polygamma(1, freedom / 2).mean())
    if excess <= 0:
        return float(ratios.mean()), np.inf
    half = _inverse_trigamma(excess)
    return float(np.exp(mean + digamma(half) - np.log(half))), 2 * half


def _inverse_trigamma(value: float) -> float:
    """Invert trigamma by Newton's method."""
    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        at = float(polygamma(1, x))
        step = at * (1 - at / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-10:
            break
    return x


def clustered_variance(influence: Values, face: NDArray[np.int64], prompt: NDArray[np.int64]) -> Uncertainty:
    """Return the two-way clustered variance of estimates from their influences [row] or [row, estimate]."""
    rows = influence.reshape(len(influence), -1)
    parts, clusters = [], []
    for key in (face, prompt, face * (prompt.max(initial=0) + 1) + prompt):
        occurs = np.bincount(key) > 0
        units = int(occurs.sum())
        sums = np.stack([np.bincount(key, weights=column)[occurs] for column in rows.T], axis=1)
        parts.append((sums**2).sum(axis=0) * (units / (units - 1) if units > 1 else 0.0))
        clusters.append(np.full(rows.shape[1], units - 1.0))
    uncertainty = two_way_variance(parts[0], parts[1], parts[2], clusters[0], clusters[1])
    shape = influence.shape[1:]
    return Uncertainty(uncertainty.variance.reshape(shape), uncertainty.freedom.reshape(shape))


def wilson_interval(share: float, pull: float) -> Interval:
    """Return Wilson's interval of a share; `pull` is t² over the number of independent rows.

    It stays between 0 and 1, is longer on the side with more room, and stays sensible where few rows met the rate
    (Korn and Graubard 1998; Dean and Pagano 2015): one of 48 is not "up to 45 %", as a log-odds interval has it.
    """
    centre = (share + pull / 2) / (1 + pull)
    half = float(np.sqrt(pull * share * (1 - share) + pull * pull / 4)) / (1 + pull)
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))


def difference(first: float, second: float, ends: tuple[Interval, Interval], correlation: float) -> Interval:
    """Return the interval of first - second from both intervals (Zou 2007), which keeps their asymmetry."""
    (low_1, high_1), (low_2, high_2) = ends

    def reach(a: float, b: float) -> float:
        return float(np.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)))

    value = first - second
    return value - reach(first - low_1, high_2 - second), value + reach(high_1 - first, second - low_2)

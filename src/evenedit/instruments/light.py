"""Relighting: how the light changed on the unedited parts of a picture, and how to remove that change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import picture
from evenedit.instruments.picture import Mask, Picture

STUDY_SIDE = 128
DARK, BRIGHT = 0.004, 0.85
"""Linear values outside are noise or clipped, and are not used."""
FLAT = 0.03
"""Local spread of log light under which a spot has no structure to compare."""
SAME_STRUCTURE = 0.8
"""Local correlation from which structure counts as kept."""
STEADY = 0.06
"""Log ratio within which the light on a pixel counts as the same."""
STEADY_SHARE = 0.4
"""If the light is the same on this share of the judged pixels, it did not change."""
LEAST_REFERENCE = 0.05
"""The least share of the picture that the light is judged by."""
LEAST_KEPT = 0.35
"""The least share of judged among usable pixels for which a change of light is more than chance."""
MOST_SPREAD = 0.2
"""Spread of log ratios around the fitted curve beyond which one light does not explain them."""
GAMMA = (0.5, 2.0)
MOST_FACTOR = 10.0
"""A change of light beyond these bounds means another picture."""


@dataclass(frozen=True, slots=True)
class Relighting:
    """Per channel, log edited = gain + gamma · log source, within the range of source light it was seen on."""

    gain: NDArray[np.float64]
    gamma: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    share: float
    """Share of the picture it was judged by."""
    spread: float = 0.0
    """Median distance of log ratios from the curve: how well one light explains them."""

    @property
    def steady(self) -> bool:
        """Whether the light stayed as it was."""
        return bool((self.gain == 0).all() and (self.gamma == 1).all())

    def factor(self, light: NDArray[np.floating]) -> NDArray[np.float64]:
        """The factor by which light of this source value was multiplied."""
        seen = np.clip(np.log(np.maximum(light, DARK)), self.low, self.high)
        factor: NDArray[np.float64] = np.exp(self.gain + (self.gamma - 1) * seen)
        return factor

    def apply(self, rgb: picture.Pixels) -> picture.Light:
        """A source in linear light as it would look in the edit's light."""
        levels = picture.linear(np.arange(256, dtype=np.uint8)).reshape(256, 1)
        table = np.clip(levels * self.factor(np.repeat(levels, 3, axis=1)), 0, 1).astype(np.float32)
        return np.asarray(cv2.LUT(rgb, table.reshape(256, 1, 3)), dtype=np.float32)

    @property
    def shift_L(self) -> float:  # noqa: N802
        """The strength in L*: how far a mid gray would move under the change of the middle judged light."""
        gray = np.full(3, 0.184)
        return picture.lab_of(gray * self.factor(np.exp((self.low + self.high) / 2)))[0] - picture.lab_of(gray)[0]

    def covers(self, light: NDArray[np.floating]) -> bool:
        """Whether light like this was among what it was judged by, give or take a third of a stop."""
        log = np.log(np.maximum(light, DARK))
        return bool(((log > self.low - 0.25) & (log < self.high + 0.25)).all())


class _StudyView(NamedTuple):
    """A picture as its light is judged: small; logarithms, where it is neither noise nor clipped, mean logarithms."""

    log: NDArray[np.float32]
    clear: Mask
    mean: NDArray[np.float32]


def _study_view(shown: Picture) -> _StudyView:
    light = cv2.resize(shown.light, _study_size(shown), interpolation=cv2.INTER_AREA)
    log = np.log(np.maximum(light, DARK)).astype(np.float32)
    clear = np.asarray(((light > DARK) & (light < BRIGHT)).all(axis=2))
    return _StudyView(log, clear, log.mean(axis=2))


def _study_size(shown: Picture) -> tuple[int, int]:
    high, wide = shown.rgb.shape[:2]
    scale = STUDY_SIDE / max(high, wide)
    return max(8, round(wide * scale)), max(8, round(high * scale))


def relighting(source: Picture, edited: Picture, usable: Mask) -> Relighting | None:
    """How the light changed, judged by `usable` pixels with kept structure; None where too few are left."""
    first, second = source.once(_study_view), edited.once(_study_view)
    open_to = cv2.resize(usable.astype(np.float32), _study_size(source), interpolation=cv2.INTER_AREA) > 0.99
    usable = open_to & first.clear & second.clear
    judged = usable & _kept(first.mean, second.mean)
    share = float(judged.mean())
    if share < LEAST_REFERENCE:
        return None
    x, ratio = first.log[judged].astype(np.float64), (second.log - first.log)[judged].astype(np.float64)
    low, high_end = np.percentile(x, 1, axis=0), np.percentile(x, 99, axis=0)
    if (np.abs(ratio) < STEADY).all(axis=1).mean() >= STEADY_SHARE:
        return Relighting(np.zeros(3), np.ones(3), low, high_end, share)
    if judged.sum() < LEAST_KEPT * usable.sum():
        return None
    fits = [_robust_line(x[:, channel], ratio[:, channel]) for channel in range(3)]
    spread = max(fit[2] for fit in fits)
    if spread > MOST_SPREAD:
        return None
    gain, slope = np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])
    found = Relighting(gain, 1 + slope, low, high_end, share, spread)
    factor = found.factor(np.exp(np.median(x, axis=0)))
    return found if (factor < MOST_FACTOR).all() and (factor > 1 / MOST_FACTOR).all() else None


def _kept(first: NDArray[np.float32], second: NDArray[np.float32]) -> Mask:
    """Where local structure survived: correlated, or flat in both."""

    def blur(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(cv2.blur(values, (7, 7)), dtype=np.float32)

    mean_a, mean_b = blur(first), blur(second)
    spread_a = np.sqrt(np.maximum(0, blur(first**2) - mean_a**2))
    spread_b = np.sqrt(np.maximum(0, blur(second**2) - mean_b**2))
    shared = blur(first * second) - mean_a * mean_b
    flat = (spread_a < FLAT) & (spread_b < FLAT)
    alike = shared > SAME_STRUCTURE * np.maximum(spread_a * spread_b, 1e-6)
    return np.asarray(flat | (alike & (spread_a >= FLAT) & (spread_b >= FLAT)))


def _robust_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Intercept, slope and spread (MAD) of a robust line; the slope is kept within plausible bounds."""
    weight = np.ones_like(x)
    gain, slope, spread = 0.0, 0.0, 0.0
    for _ in range(6):
        total = weight.sum()
        mean_x, mean_y = (weight * x).sum() / total, (weight * y).sum() / total
        across = (weight * (x - mean_x) ** 2).sum() / total
        # A ridge keeps the slope at zero where the judged pixels are all of one lightness.
        slope = ((weight * (x - mean_x) * (y - mean_y)).sum() / total) / (across + 0.02)
        slope = min(max(slope, GAMMA[0] - 1), GAMMA[1] - 1)
        gain = mean_y - slope * mean_x
        rest = np.abs(y - gain - slope * x)
        spread = float(np.median(rest))
        weight = 1 / (1 + (rest / (2 * spread + 0.01)) ** 2) ** 2
    return float(gain), float(slope), spread

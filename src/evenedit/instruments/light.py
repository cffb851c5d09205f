"""Relighting: how the light changed on the unedited parts of a picture, and how to remove that change.

Only places that kept their texture can tell. A wall painted over by another wall has no texture that stayed, and the
edge of a person before it shows that on one side of it something else has come; both say nothing about the light.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments import picture
from evenedit.instruments.picture import Mask, Picture

STUDY_SIDE = 128
DARK, BRIGHT = 0.004, 0.9
"""Linear values outside are noise or clipped, and are not used."""
WINDOW = 5
"""Side of the neighbourhood whose texture is compared, in pixels of the small picture."""
TEXTURE = 0.06
"""Local spread of log light from which a spot has a texture."""
MOST_RATIO_SPREAD = 0.35
"""The most that the spread of the ratio of both pictures may be, as a share of the texture, where texture was kept."""
SAME = 0.05
"""Log ratio within which a pixel is as it was, textured or not."""
OFF = 0.15
"""Log ratio beyond which a pixel does not agree with the light that was found."""
LEAST_REFERENCE = 0.02
"""The least share of the picture that the light is judged by."""
LEAST_AGREED = 0.7
"""The least share of the judged pixels that must agree with one light."""
MOST_UNMOVED = 0.1
"""The most of the judged pixels that may be as they were where the light found says otherwise: else only some things
became lighter or darker, as a background by itself."""
NEAR = 0.25
"""Distance from the face, in longer sides of the picture, within which the light is judged most."""
LEAST_STEADY = 0.8
"""The least share of the judged pixels that must be as before where the light counts as the same."""
STEADY = 0.03
"""Log ratio within which the light counts as the same."""
ROUNDS = 6
"""How often the fit is made again with new weights."""
LEAST_JUDGED = 1000
"""Pixels the light is fitted to, at least, where so many can be judged; at most twice as many."""
BEYOND = 0.5
"""Logarithms of light by which the curve goes on beyond what it was judged by."""
ALIKE, LEAST_ALIKE = 0.35, 40
"""Logarithms of light within which judged pixels are about as light as the skin, and how many are enough."""
RIDGE = np.diag([0.0, 0.02, 0.02])
"""What holds the curve straight and its slope at 1 where little tells them."""
GAMMA = 2.2
"""Bytes are about this root of light."""
MOST_FACTOR = 10.0
"""A change of light beyond it means another picture."""


LEAST_ERROR = 0.5
"""Standard error in L* that a change of light always has."""
GRAY_PER_LOG = 22.0
"""L* that a middle gray moves by a unit of log light."""
LOGS = np.log(np.maximum(picture.linear(np.arange(256, dtype=np.uint8)), DARK, dtype=np.float64)).astype(np.float32)
"""Logarithms of light by sRGB value: numpy's of single precision differ between processors."""


@dataclass(frozen=True, slots=True)
class Relighting:
    """Per channel, log edited = gain + gamma · log source + bend · (log source - middle)² + slope · place.

    The curve bends only in the range of light it was seen on, and goes on straight beyond it.
    """

    gain: NDArray[np.float64]
    gamma: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    share: float
    """Share of the picture it was judged by."""
    spread: float = 0.0
    """Median distance of log ratios from the curve: how well one light explains them."""
    slope: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    """By how much the log ratio rises over the picture's longer side, to the right and downwards."""
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    """Where the slope counts from, in longer sides of the picture."""
    agreed: float = 1.0
    """Share of the judged pixels that agree with it."""
    bend: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    middle: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    unmoved: float = 0.0
    """Share of the judged pixels that are as they were and do not agree with it."""
    judged: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    """Logarithms of the light of judged pixels that agree with it."""
    rest: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    """What it leaves of their log ratios."""

    trusted: bool = True
    """Whether the judged pixels agree on it."""

    @property
    def steady(self) -> bool:
        """Whether the light stayed as it was."""
        return bool((self.gain == 0).all() and (self.gamma == 1).all() and (self.slope == 0).all())

    def factor(self, light: NDArray[np.floating], place: NDArray[np.floating] | None = None) -> NDArray[np.float64]:
        """Return the factor that multiplied light of this source value, at a place in longer sides of the source."""
        seen = np.clip(np.log(np.maximum(light, DARK)), self.low - BEYOND, self.high + BEYOND)
        sloped = 0.0 if place is None else ((place - self.centre) @ self.slope)[..., None]
        known = np.clip(seen, self.low, self.high) - self.middle
        bent = self.bend * known * (2 * (seen - self.middle) - known)
        factor: NDArray[np.float64] = np.exp(self.gain + (self.gamma - 1) * seen + bent + sloped)
        return factor

    def steepness(self, log: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the log of the factor rises with the log of light at this light."""
        known = np.clip(log, self.low, self.high) - self.middle
        rise: NDArray[np.float64] = self.gamma - 1 + 2 * self.bend * known
        return rise

    def apply(self, rgb: picture.Pixels) -> picture.Pixels:
        """Return a source as it would look in the edit's light."""
        levels = picture.linear(np.arange(256, dtype=np.uint8)).reshape(256, 1)
        table = np.clip(levels * self.factor(np.repeat(levels, 3, axis=1)), 0, 1)
        relit = np.asarray(cv2.LUT(rgb, picture.encoded(table).reshape(256, 1, 3)), dtype=np.uint8)
        if not self.slope.any():
            return relit
        high, wide = rgb.shape[:2]
        x, y = np.arange(wide) / max(high, wide), np.arange(high) / max(high, wide)
        across, down = (x - self.centre[0]) * self.slope[0], (y - self.centre[1]) * self.slope[1]
        power = np.exp((down[:, None] + across) / GAMMA).astype(np.float32)
        return np.asarray(cv2.multiply(relit, cv2.merge([power] * 3), dtype=cv2.CV_8U), dtype=np.uint8)

    @property
    def shift_L(self) -> float:  # noqa: N802
        """The strength in L*: how far a mid gray would move under the change of the middle judged light."""
        gray = np.full(3, 0.184)
        return picture.lab_of(gray * self.factor(np.exp((self.low + self.high) / 2)))[0] - picture.lab_of(gray)[0]

    @property
    def shift_error(self) -> float:
        """The standard error of `shift_L`, from how far places are from one light."""
        return float(np.hypot(LEAST_ERROR, GRAY_PER_LOG * self.spread / 2))

    def unexplained(self, log: NDArray[np.float64]) -> float:
        """Return the distance of log ratios from the curve, over all judged pixels or those about as light as this."""
        off = self.spread
        for channel, value in enumerate(log):
            alike = np.abs(self.judged[:, channel] - value) < ALIKE
            if alike.sum() >= LEAST_ALIKE:
                off = max(off, abs(float(picture.median(self.rest[alike, channel]))))
        return off

    def covers(self, light: NDArray[np.floating]) -> bool:
        """Return whether the judged pixels include light like this, within a third of a stop."""
        log = np.log(np.maximum(light, DARK))
        return bool(((log > self.low - 0.25) & (log < self.high + 0.25)).all())


class _StudyView(NamedTuple):
    """A picture as its light is judged: small; logarithms, where it is neither noise nor clipped, and its texture."""

    log: NDArray[np.float32]
    clear: Mask
    texture: NDArray[np.float32]


def _study_view(view: Picture) -> _StudyView:
    small = cv2.resize(view.rgb, _study_size(view), interpolation=cv2.INTER_AREA)
    light = picture.linear(np.asarray(small, dtype=np.uint8))
    log = np.asarray(cv2.LUT(small, LOGS), dtype=np.float32)
    clear = cv2.inRange(light, (DARK,) * 3, (BRIGHT,) * 3) > 0
    return _StudyView(log, np.asarray(clear), _spread(np.asarray(cv2.transform(log, np.full((1, 3), 1 / 3)))))


def _study_size(view: Picture) -> tuple[int, int]:
    high, wide = view.rgb.shape[:2]
    scale = STUDY_SIDE / max(high, wide)
    return max(8, round(wide * scale)), max(8, round(high * scale))


def relighting(source: Picture, edited: Picture, usable: Mask) -> Relighting | None:
    """Estimate how the light changed from `usable` pixels that kept their texture or did not change at all.

    None where too few are left. Where they do not agree on one light, it is not `trusted`.
    """
    first, second = source.once(_study_view), edited.once(_study_view)
    open_to = cv2.resize(usable.astype(np.uint8) * 255, _study_size(source), interpolation=cv2.INTER_AREA) > 252
    ratio = second.log - first.log
    clear = open_to & first.clear & second.clear
    textured = first.texture > TEXTURE
    preserved = textured & (np.maximum.reduce(cv2.split(_spread(ratio))) < MOST_RATIO_SPREAD * first.texture)
    judged = clear & (preserved | (cv2.inRange(ratio, (-SAME,) * 3, (SAME,) * 3) > 0))
    share = float(judged.mean())
    if share < LEAST_REFERENCE:
        return None
    fit = _fitted(first.log, ratio, judged, clear, usable, share)
    factor = fit.factor(np.exp((fit.low + fit.high) / 2))
    sound = bool((factor < MOST_FACTOR).all() and (factor > 1 / MOST_FACTOR).all())
    return replace(fit, trusted=fit.agreed >= LEAST_AGREED and fit.unmoved <= MOST_UNMOVED) if sound else None


def _spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the standard deviation within the window around each pixel."""
    mean = cv2.blur(values, (WINDOW, WINDOW))
    return np.asarray(
        np.sqrt(np.maximum(0, cv2.blur(values * values, (WINDOW, WINDOW)) - mean * mean)), dtype=np.float32
    )


def _fitted(
    log: NDArray[np.float32], ratio: NDArray[np.float32], judged: Mask, clear: Mask, usable: Mask, share: float
) -> Relighting:
    """Fit robustly a gain and a curve for each channel, and one slope over the picture."""
    rows, columns = np.nonzero(judged)
    step = 2 ** max(0, int(np.log2(len(rows) / LEAST_JUDGED)))
    chosen = (3 * rows + 5 * columns) % step == 0  # by position: a pixel more or less leaves the others chosen
    rows, columns = rows[chosen], columns[chosen]
    x, y = log[rows, columns].astype(np.float64), ratio[rows, columns].astype(np.float64)
    low, high = np.percentile(x, 1, axis=0), np.percentile(x, 99, axis=0)
    place = np.stack([columns + 0.5, rows + 0.5], axis=-1) / max(log.shape[:2])
    centre = _middle_of_face(usable)
    usual = picture.median(y)
    same = (np.abs(y - usual) < STEADY).all(axis=1).mean() > 0.5 and (np.abs(usual) < STEADY).all()
    agreed = float((np.abs(y) < OFF).all(axis=1).mean())
    if same and agreed >= LEAST_STEADY:
        return Relighting(np.zeros(3), np.ones(3), low, high, share, centre=centre, agreed=agreed)
    middle = picture.median(x)
    near = 0.05 + np.exp(-(((place - centre) / NEAR) ** 2).sum(axis=1) / 2)
    fit = _robust(x - middle, y, place - centre, near)
    curve = fit.gain + fit.curve * (x - middle) + fit.bend * (x - middle) ** 2
    left = y - curve - ((place - centre) @ fit.slope)[:, None]
    rest = np.abs(left).max(axis=1)
    unmoved = (rest >= OFF) & (np.abs(y) < STEADY).all(axis=1)
    return Relighting(
        gain=fit.gain - fit.curve * middle,
        gamma=1 + fit.curve,
        low=low,
        high=high,
        share=share,
        spread=float(picture.median(rest)),
        slope=fit.slope,
        centre=centre,
        agreed=float((rest < OFF).mean()),
        bend=fit.bend,
        middle=middle,
        unmoved=float(unmoved.mean()),
        judged=x[rest < OFF],
        rest=left[rest < OFF],
    )


def _middle_of_face(usable: Mask) -> NDArray[np.float64]:
    """Return the middle of what is not usable, which is mostly the face; of the picture where all is usable."""
    high, wide = usable.shape
    rows, columns = np.nonzero(~usable[::4, ::4])
    x, y = (4 * columns.mean(), 4 * rows.mean()) if len(rows) else (wide / 2, high / 2)
    return np.array([float(x), float(y)]) / float(max(high, wide))


class _Fit(NamedTuple):
    """A fitted change of light."""

    gain: NDArray[np.float64]
    curve: NDArray[np.float64]
    bend: NDArray[np.float64]
    slope: NDArray[np.float64]


def _robust(
    x: NDArray[np.float64], y: NDArray[np.float64], place: NDArray[np.float64], near: NDArray[np.float64]
) -> _Fit:
    """Fit gain, curve, bend and slope by reweighted least squares; a ridge holds all but the gain at 0."""
    fit = _Fit(picture.median(y), np.zeros(3), np.zeros(3), np.zeros(2))
    for number in range(ROUNDS):
        tone = fit.gain + fit.curve * x + fit.bend * x**2
        off = np.abs(y - tone - (place @ fit.slope)[:, None]).max(axis=1)
        scale = 2 * float(picture.median(off)) + 0.01
        weight = near / (1 + (off / scale) ** 2) ** 2
        weight /= weight.sum()
        away = place - weight @ place
        spread = (away * weight[:, None]).T @ away + 0.002 * np.eye(2)
        slope = np.linalg.solve(spread, (away * weight[:, None]).T @ (y - tone).mean(axis=1)) if number else fit.slope
        gain, curve, bend = _curves(x, y - (place @ slope)[:, None], weight)
        fit = _Fit(gain, curve, bend, slope)
    return fit


def _curves(
    x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fit a parabola for each channel by weighted least squares."""
    coefficients = np.empty((3, 3))
    for channel in range(3):
        powers = np.stack([np.ones(len(x)), x[:, channel], x[:, channel] ** 2], axis=-1)
        weighed = powers * weight[:, None]
        coefficients[:, channel] = np.linalg.solve(weighed.T @ powers + RIDGE, weighed.T @ y[:, channel])
    gain, curve, bend = coefficients
    return gain, np.clip(curve, -0.5, 1.0), np.clip(bend, -0.3, 0.3)

"""Whether the patches of a face tell of one change of skin, which, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenedit.instruments.light import Relighting
from evenedit.instruments.patches import LEAST_POINTS, LEAST_SHARE, Sampled, labs, other_skin, patchwork, still_skin
from evenedit.instruments.picture import Mask, median

MOST_SPREAD = 0.7
"""Spread of the change within a patch, as a share of the patch's own shading, up to which its surface is the same."""
MOST_REDRAWN = 0.35
"""Share of new shading from which a face was drawn anew: that is no shading made weaker."""
LEAST_SHADING = 0.3
"""Spread of L* within a patch under which it counts as flat."""
LEAST_PATCHES = 6
LEAST_SIDE = 2
"""Patches needed on each side of the face."""
MIDLINE = 0.2
"""Inter-eye distances from the middle beyond which a patch is on one side."""
TOLERANCE = 2.5
"""L* by which patches may always differ from each other."""
SPREADS = 3.0
"""Robust standard deviations by which they may differ."""
QUORUM = 0.6
"""The least share of the patches of skin that must agree."""
CENTRE = np.array([0.0, 0.45])
"""The middle of a face, in its own coordinates: where the change is read."""
MOST_ERROR = 4.0
"""Standard error in L* beyond which there is no number: what remains is not one change."""
DISPUTED, UNEXPLAINED, STEEP = 3.0, 1.2, 25.0
"""L* that removing the light may take away, where so much L* of it is unexplained; L* by which it may slope."""
SLOPED, MOVED, LEFT = 1.5, 1.0, 2.5
"""L* by which light slopes over the picture, or was removed; the face must not slope by so much after that."""
IN_PART = 1.0
"""L* by which the mean over all skin may differ from what is read, where skin with its shading changed otherwise."""
UNEVEN = "the light changed too unevenly to be removed"
DIFFERING = "parts of the face changed differently"
COVERED = "too little skin in sight in both pictures"
ONE_SIDE = "skin in sight on one side of the face only"
ANOTHER_SKIN = "the face shows skin of another colour"
ANEW = 0.5
"""Spread of the change within a patch, in L*, from which the skin was drawn anew: then a change this small is usual."""
ENDS = 10.0
"""Percent of the patches left out at either end, where they differ."""
END = 1.25
"""Standard error in L* of either of these ends."""
SURE = 1.96
"""Standard errors of a 95 % interval."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchAgreement:
    """The change of skin that the patches show, and why it is no one number where it is none."""

    shift: NDArray[np.float64]
    """Of L*, a* and b*, with the change of light removed where that is known."""
    raw: NDArray[np.float64]
    """In the edit's own light."""
    error: float
    """Standard error of the shift of L*."""
    raw_error: float
    """Standard error of the raw change of L*."""
    used: Mask
    """The patches that agree."""
    skin: Mask
    """The points that show skin in both pictures."""
    signs: NDArray[np.float64]
    """What the error is computed from, see SIGNS."""
    spans: NDArray[np.float64]
    """Lowest and highest change of L* over the patches, a tenth left out at either end: light removed, and raw."""
    redrawn: float
    """Share of the shading that is new, at the median patch: what more or less contrast does not explain."""
    doubt: str = ""
    """Why the change is no one number; empty if it is one."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the shift of L*: over the patches where they differ, and with the raw one in doubt."""
        if not self.doubt:
            return around(float(self.shift[0]), self.error)
        if self.doubt == UNEVEN:
            return hull(around(float(self.shift[0]), min(self.error, MOST_ERROR)), self.raw_interval)
        return hull(*(around(float(end), END) for end in self.spans[:, 0]), self.raw_interval)

    @property
    def raw_interval(self) -> tuple[float, float]:
        """The 95 % interval of the raw change of L*."""
        if self.doubt in ("", UNEVEN):
            return around(float(self.raw[0]), self.raw_error)
        return hull(*(around(float(end), END) for end in self.spans[:, 1]))


def around(value: float, error: float) -> tuple[float, float]:
    """Return the 95 % interval of a value with this standard error."""
    return value - SURE * error, value + SURE * error


def hull(*intervals: tuple[float, float]) -> tuple[float, float]:
    """Return the interval that holds all of these."""
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def agree(
    before: Sampled,
    after: Sampled,
    skin: Mask,
    relit: NDArray[np.float64] | None,
    light: Relighting | None,
    turn: float = 0.0,
) -> PatchAgreement | str:
    """Return the change that the patches show, or why none can be read; `turn` is how far the head was turned."""
    work = patchwork()
    was, raw = labs(before.light), labs(after.light)
    now = raw if relit is None else labs(relit)
    total = np.bincount(work.of[skin], minlength=len(work.names))
    present = total >= LEAST_POINTS

    def in_sight(still: Mask) -> NDArray[np.intp]:
        left = np.bincount(work.of[still], minlength=len(work.names))
        return np.flatnonzero(present & (left >= np.maximum(LEAST_POINTS, LEAST_SHARE * total)))

    still, doubt = still_skin(was, now, skin & after.clear), ""
    visible = in_sight(still)
    if len(visible) < LEAST_PATCHES:
        still, doubt = skin & other_skin(raw, after.clear), ANOTHER_SKIN
        visible = in_sight(still)
    if len(visible) < LEAST_PATCHES:
        return COVERED
    patch = (work.of, still, len(work.names))
    moves, unlit = (medians(one - was, *patch)[visible] for one in (now, raw))
    spreads, shading, shaded = (_spreads(one[:, 0], work.of, still)[visible] for one in (now - was, was, now))
    preserved = _same_surface(spreads, shading)
    names = np.array(work.names)[visible]
    agreed = _inside(moves[:, 0], work.where[visible], preserved, names)
    if isinstance(agreed, str) and agreed == ONE_SIDE:
        return ONE_SIDE
    if isinstance(agreed, str):
        doubt = doubt or agreed
    inside: Mask = np.ones(len(visible), dtype=bool) if isinstance(agreed, str) else agreed
    chosen = visible[inside]
    lost = 1 - len(chosen) / int(present.sum())
    anew = min(1.0, float(median(spreads[inside])) / ANEW)
    common = (lost, 1 - float(preserved.mean()), turn, anew)
    multiplied = float((median(now[still, 0]) + 16) / (median(was[still, 0]) + 16))
    contrast, redrawn = _reshaded(spreads, shading, shaded, multiplied)
    relighted = _light_signs(light, median(before.light[still]), float(median(was[still, 0])))
    bare, _, _ = plane(work.where[chosen], unlit[inside])
    read = [
        _read(work.where[visible], one, names, inside, preserved, common, reported)
        for one, reported in (
            (moves, lambda at: [abs(float(at[0] - bare[0])), *relighted, contrast]),
            (unlit, lambda _: [0.0] * 5),
        )
    ]
    (shift, signs), (_, raw_signs) = read
    unsure, raw_error = error(signs), error(raw_signs)
    if signs[SIGNS.index(OTHERWISE)] > IN_PART or (
        unsure > MOST_ERROR and error(np.where(OF_LIGHT, signs, 0.0)) < unsure / 2
    ):
        doubt = doubt or DIFFERING
    if uneven(signs):
        doubt = doubt or UNEVEN
    used = np.zeros(len(work.names), dtype=bool)
    used[chosen] = True
    spans = np.percentile(np.column_stack([moves[:, 0], unlit[:, 0]]), [ENDS, 100 - ENDS], axis=0)
    return PatchAgreement(shift, bare, unsure, raw_error, used, still, signs, spans, redrawn, doubt)


def uneven(signs: NDArray[np.float64]) -> bool:
    """Return whether the light changed too unevenly to be removed."""
    left, removed, unexplained, slope = signs[3:7]
    disputed = removed > DISPUTED and unexplained > UNEXPLAINED
    sideways = slope > STEEP or ((slope > SLOPED or removed > MOVED) and left > LEFT)
    return bool(disputed or sideways or error(signs) > MOST_ERROR)


def _read(
    where: NDArray[np.float64],
    moves: NDArray[np.float64],
    names: NDArray[np.str_],
    inside: Mask,
    preserved: Mask,
    common: tuple[float, ...],
    reported: Callable[[NDArray[np.float64]], list[float]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the change in the middle of the face and the signs of its error; `told` gives those of the light."""
    shift, slope, rest = plane(where[inside], moves[inside])
    parts = [float(median(moves[inside & (names == name), 0])) for name in sorted(set(names[inside]))]
    lost, anew, *more = common
    size = abs(float(shift[0]))
    otherwise = abs(float(np.sum(moves[preserved, 0] - shift[0]))) / len(moves)
    signs = [1.0, float(np.std(rest)), float(np.std(parts)), float(np.hypot(*slope)), *reported(shift)]
    return shift, np.array([*signs, lost, anew, size, otherwise, lost * size, *more])


def _inside(
    moves: NDArray[np.float64], where: NDArray[np.float64], preserved: Mask, names: NDArray[np.str_]
) -> Mask | str:
    """Return the patches that agree, or why too few do.

    Where enough patches kept their surface, they decide, and one part of the face may differ from the rest: a cap, a
    hand, a beard. Where the face was drawn anew, no part may differ.
    """
    known = bool(preserved.sum() >= LEAST_PATCHES and both_sides(where[preserved]))
    deciding = preserved if known else np.ones(len(moves), dtype=bool)
    middle, tolerance = _densest(moves[deciding])
    inside: Mask = np.abs(moves - middle) <= tolerance
    odd = sum(float(np.mean(inside[names == name])) < 0.5 for name in set(names))
    if inside[deciding].mean() < QUORUM or odd > known or inside.sum() < LEAST_PATCHES:
        return DIFFERING
    return inside if both_sides(where[inside]) else ONE_SIDE


OTHERWISE = "skin that kept its shading changed otherwise, L*"
SIGNS = (
    "always",
    "patches differ around a smooth change",
    "parts of the face differ",
    "the change slopes over the face",
    "light removed, L*",
    "light not explained, L*",
    "light slopes over the picture, L*",
    "light seen only on darker or lighter places, L*",
    "light and shade of the skin made stronger or weaker, share",
    "patches lost",
    "patches whose shading is new",
    "size of the change, L*",
    OTHERWISE,
    "patches lost, times the size of the change",
    "the head turned, inter-eye distances of the nose",
    "skin drawn anew",
)
"""What makes a reading less sure."""
OF_LIGHT = np.array([sign.startswith("light") for sign in SIGNS])
WEIGHTS = np.array(
    [0.052, 0.157, 0.031, 0.314, 0.031, 0.314, 0.042, 0.419, 6.0, 0.079, 0.524, 0.0052, 0.314, 0.052, 15.7, 1.4]
)
"""Standard error added by one unit of each: fitted by `python -m validation instruments` to its calibration half."""


def error(signs: NDArray[np.float64]) -> float:
    """Return the standard error of the change of L*."""
    return float(np.hypot.reduce(WEIGHTS * signs))


def _light_signs(light: Relighting | None, skin: NDArray[np.float64], lightness: float) -> list[float]:
    """Return what the light leaves uncertain, in L*; `skin` is the source's skin in linear light."""
    if light is None or light.steady:
        return [0.0, 0.0, 0.0]
    per_log = (lightness + 16) / 3  # how far L* moves for a unit of log light
    log = np.log(np.maximum(skin, 1e-4))
    beyond = np.maximum(0, np.maximum(light.low - log, log - light.high))
    extra = float((np.abs(light.steepness(log)) * beyond).max())
    return [per_log * light.unexplained(log), per_log * float(np.hypot(*light.slope)), per_log * extra]


def medians(values: NDArray[np.float64], of: NDArray[np.int64], where: Mask, count: int) -> NDArray[np.float64]:
    """Return the median of each column over the chosen points of each patch; 0 for a patch without any."""
    middle = np.zeros((count, values.shape[1]))
    patch = of[where]
    sizes = np.bincount(patch, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    nonempty = sizes > 0
    for column in range(values.shape[1]):
        chosen = values[where, column]
        ordered = chosen[np.lexsort((chosen, patch))]
        low, high = starts[nonempty] + (sizes[nonempty] - 1) // 2, starts[nonempty] + sizes[nonempty] // 2
        middle[nonempty, column] = (ordered[low] + ordered[high]) / 2
    return middle


def both_sides(where: NDArray[np.float64]) -> bool:
    """Return whether patches lie on both sides of the face."""
    return bool((where[:, 0] < -MIDLINE).sum() >= LEAST_SIDE and (where[:, 0] > MIDLINE).sum() >= LEAST_SIDE)


def _same_surface(change: NDArray[np.float64], shading: NDArray[np.float64]) -> Mask:
    """Return the patches that kept their shading; an object over skin has other shading or none."""
    return np.asarray(change <= MOST_SPREAD * np.maximum(shading, LEAST_SHADING))


def _reshaded(
    change: NDArray[np.float64], before: NDArray[np.float64], after: NDArray[np.float64], multiplied: float
) -> tuple[float, float]:
    """Return by how much stronger or weaker the shading became, and the share of it that is new, at the median patch.

    The first three parameters are the standard deviations over each patch of the change, and of what changed;
    `multiplied` is what light or skin changed by one factor makes of shading. What was drawn anew is not weaker.
    """
    covariance = (after**2 + before**2 - change**2) / 2
    slope = covariance / np.maximum(before, LEAST_SHADING) ** 2
    left = np.sqrt(np.maximum(0, after**2 - slope * covariance))
    times, redrawn = float(median(slope)), float(median(left / np.maximum(after, LEAST_SHADING)))
    weaker = (min(1.0, multiplied) - times) * (redrawn < MOST_REDRAWN)
    return max(0.0, times - max(1.0, multiplied), weaker), redrawn


def _spreads(values: NDArray[np.float64], of: NDArray[np.int64], where: Mask) -> NDArray[np.float64]:
    """Return the standard deviation over the chosen points of each patch."""
    count, patch = int(of.max()) + 1, of[where]
    sizes = np.maximum(1, np.bincount(patch, minlength=count))
    mean = np.bincount(patch, values[where], minlength=count) / sizes
    spread: NDArray[np.float64] = np.sqrt(
        np.maximum(0, np.bincount(patch, values[where] ** 2, minlength=count) / sizes - mean**2)
    )
    return spread


def _densest(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle of the shortest interval that holds half of the values, and the distance allowed from it."""
    ordered = np.sort(values)
    half = len(ordered) // 2 + 1
    widths = ordered[half - 1 :] - ordered[: len(ordered) - half + 1]
    start = int(np.argmin(widths))
    middle = float(ordered[start] + ordered[start + half - 1]) / 2
    return middle, max(TOLERANCE, SPREADS * float(widths[start]) / 2 / 0.6745)


def plane(
    where: NDArray[np.float64], moves: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fit robustly the change in the middle of the face and its slope in L*; return both and the residuals of L*.

    Light that falls off from one side to the other so cancels out; a ridge keeps the slope small where little tells it.
    """
    x = np.column_stack([np.ones(len(where)), where - CENTRE])
    ridge = np.diag([0.0, 0.3, 0.3])
    weight = np.ones(len(where))
    for _ in range(6):
        square = (x * weight[:, None]).T @ x + ridge
        fitted = np.linalg.solve(square, (x * weight[:, None]).T @ moves)
        rest = moves[:, 0] - x @ fitted[:, 0]
        scale = 1.5 * (1.4826 * float(median(np.abs(rest))) + 0.1)
        weight = 1 / np.maximum(1, np.abs(rest) / scale)
    return fitted[0], fitted[1:, 0], rest

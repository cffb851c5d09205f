"""Registration of an edited picture with its source: size, crop, and small moves.

Editors often draw the whole picture anew: a little larger, the head a little turned, the shoulders elsewhere. One
turn and scale cannot take that back, so a smooth field of small moves follows. It is smoothed well beyond the
size of eyes and frames: it can carry a head to where it was, and cannot make eyeglasses out of eyebrows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments.face import Face
from evenedit.instruments.picture import Mask, Picture, Pixels, interpolated

SEARCH_SIDE = 128
"""Candidates are compared at this longer side."""
LEAST_GAIN = 0.01
"""A move is taken only if the gradients agree by this much more than without it."""
IN_PLACE = 0.85
"""Agreement from which no finer move is searched: everything is where it was."""
MIRRORED = 0.2
"""A mirrored picture agrees by so much more when it is turned back."""
MOST_SCALE = 2.5
FLOW_SIDE = 256
"""Small moves are searched at this longer side."""
LEAST_SIDE = 64
"""In smaller pictures no small moves are searched."""
STEPS, POLISH = 15, 6
"""Steps of the search for a finer move by OpenCV, then in double precision: always as many, on every processor."""
FINEST = np.array([2.0**-14, 2.0**-14, 2.0**-8])
"""What the finer move's turn and shift are rounded to: processors differ by less."""
SMOOTH = 6.0
"""Pixels of it that the field is smoothed by."""
FARTHEST = 0.06
"""Moves no farther than this share of the picture."""
ROUND_TRIP = 1.5
"""Pixels within which a move there and back must return to its start to count as a match."""
TEXTURE = 8.0
"""Curvature of the normalised picture from which a spot can be followed."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The edited picture in the source's frame."""

    rgb: Pixels
    seen: Mask
    """Where the edited picture covers the source's frame."""
    matrix: NDArray[np.float64]
    """2x3: from source pixels to edited pixels."""
    moved: bool
    """Whether more than a change of size was needed."""
    fit: float = 0.0
    """How well the gradients agree, from 0 to 1."""
    drift: float = 0.0
    """How far the small moves went beyond that: their 90th percentile as a share of the longer side."""


def align(source: Picture, edited: Pixels, source_face: Face | None, edited_face: Face | None) -> Aligned:
    """Lay `edited` over `source` by the best of: as it is, by the faces, and a refinement of the better."""
    high, wide = source.rgb.shape[:2]
    stretch = _stretch((high, wide), edited.shape)
    scale = SEARCH_SIDE / max(high, wide)
    small, view = source.once(_search_view), _EditedView(edited)
    best, score = stretch, _fit(small, view, stretch, scale)
    candidates = [_similarity(source_face, edited_face)] if source_face and edited_face else []
    for candidate in candidates:
        value = _fit(small, view, candidate, scale)
        if value > score + LEAST_GAIN and _plausible(candidate, stretch):
            best, score = candidate, value
    refined = _refine(small, view, best, scale) if score < IN_PLACE else None
    if refined is not None and _plausible(refined, stretch):
        value = _fit(small, view, refined, scale)
        if value > score + LEAST_GAIN:
            best, score = refined, value
    moved = best is not stretch
    if not moved and edited.shape == source.rgb.shape:
        return Aligned(edited, np.ones((high, wide), dtype=bool), best, moved, score)
    if not moved:
        how = cv2.INTER_AREA if edited.shape[0] > high else cv2.INTER_LINEAR
        resized = np.asarray(cv2.resize(edited, (wide, high), interpolation=how), dtype=np.uint8)
        return Aligned(resized, np.ones((high, wide), dtype=bool), best, moved, score)
    return Aligned(_warp(edited, best, (wide, high)), _seen(edited, best, (wide, high)), best, moved, score)


def mirrored(source: Picture, edited: Pixels, aligned: Aligned) -> bool:
    """Return whether the edited picture is its source mirrored: turned back, it agrees far better."""
    if aligned.fit >= IN_PLACE:
        return False
    scale = SEARCH_SIDE / max(source.rgb.shape[:2])
    back, stretch = (
        _EditedView(np.asarray(cv2.flip(edited, 1), dtype=np.uint8)),
        _stretch(source.rgb.shape, edited.shape),
    )
    return _fit(source.once(_search_view), back, stretch, scale) > aligned.fit + MIRRORED


def _stretch(source: tuple[int, ...], edited: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the change of size only; a pixel's place is its middle, so that edges stay on edges."""
    across, down = edited[1] / source[1], edited[0] / source[0]
    return np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2]], dtype=np.float64)


def settle(source: Picture, aligned: Aligned) -> Aligned:
    """Undo small moves too: warp the edited picture smoothly onto its source."""
    high, wide = source.rgb.shape[:2]
    if min(high, wide) < LEAST_SIDE or aligned.fit >= IN_PLACE:
        return aligned
    scale = min(1.0, FLOW_SIDE / max(high, wide))
    (first, texture), second = source.once(_flow_view), _normal(aligned.rgb, scale)
    finder = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    finder.setFinestScale(1)
    nowhere: Any = None
    ipp = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)  # in this thread: Intel's routines differ between processors, and the search enlarges that
    try:
        forward, back = finder.calc(first, second, nowhere), finder.calc(second, first, nowhere)
    finally:
        cv2.ipp.setUseIPP(ipp)
    returned = cv2.remap(back, *_moved(forward), cv2.INTER_LINEAR)
    sure = np.hypot(*np.moveaxis(forward + returned, 2, 0)) < ROUND_TRIP
    trust = (sure * texture).astype(np.float32)
    field = cv2.GaussianBlur(forward * trust[..., None], (0, 0), SMOOTH)
    field /= cv2.GaussianBlur(trust, (0, 0), SMOOTH)[..., None] + np.float32(0.02)  # where no match is trusted, no move
    field = cv2.resize(field / np.float32(scale), (wide, high), interpolation=cv2.INTER_LINEAR)
    farthest = FARTHEST * max(high, wide)
    x, y = _moved(np.clip(field, -farthest, farthest))
    seen = cv2.remap(aligned.seen.astype(np.float32), x, y, cv2.INTER_LINEAR) > 0.99
    rgb = cv2.remap(aligned.rgb, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    drift = float(np.percentile(np.hypot(field[::4, ::4, 0], field[::4, ::4, 1]), 90)) / max(high, wide)
    return replace(aligned, rgb=np.asarray(rgb, dtype=np.uint8), seen=np.asarray(seen), drift=drift)


@dataclass(frozen=True, slots=True)
class _SearchView:
    """A source as candidates are compared with it: small, in gray, with its gradients."""

    gray: Any
    gradients: tuple[Any, Any]


def _search_view(source: Picture) -> _SearchView:
    gray = _gray(source.rgb, SEARCH_SIDE / max(source.rgb.shape[:2]))
    return _SearchView(gray, _gradients(gray))


def _gradients(gray: Any) -> tuple[Any, Any]:
    return cv2.Sobel(gray, cv2.CV_32F, 1, 0), cv2.Sobel(gray, cv2.CV_32F, 0, 1)


def _flow_view(source: Picture) -> tuple[Any, Any]:
    """Return a source as small moves are searched in it, and how well each spot of it can be followed."""
    normal = _normal(source.rgb, min(1.0, FLOW_SIDE / max(source.rgb.shape[:2])))
    bend = cv2.Laplacian(cv2.GaussianBlur(normal, (0, 0), 1.5).astype(np.float32), cv2.CV_32F)
    return normal, 0.02 + np.minimum(1, np.abs(bend) / TEXTURE)


def _normal(rgb: Pixels, scale: float) -> Any:
    """Gray values normalised by the local mean and spread."""
    gray = _gray(rgb, scale).astype(np.float64)  # double precision: the search enlarges a pixel rounded otherwise
    even = gray - _local_mean(gray)
    spread = np.sqrt(_local_mean(even**2) + 60)
    return np.rint(np.clip(128 + 50 * even / spread, 0, 255)).astype(np.uint8)


def _local_mean(values: Any) -> Any:
    """Return the mean around each pixel, by a Gaussian of 8 pixels on a quarter of the size."""
    high, wide = values.shape
    small = cv2.resize(values, (-(-wide // 4), -(-high // 4)), interpolation=cv2.INTER_AREA)
    return cv2.resize(cv2.GaussianBlur(small, (0, 0), 2), (wide, high), interpolation=cv2.INTER_LINEAR)


def _moved(field: Any) -> tuple[Any, Any]:
    """Return the source position of each pixel."""
    high, wide = field.shape[:2]
    x, y = np.arange(wide, dtype=np.float32)[None, :], np.arange(high, dtype=np.float32)[:, None]
    return x + field[..., 0], y + field[..., 1]


def _similarity(source_face: Face, edited_face: Face) -> NDArray[np.float64]:
    """Fit the turn, scale and shift from one face's landmarks to the other's by least squares."""
    first, second = source_face.landmarks, edited_face.landmarks
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    square = float((a**2).sum())
    cos = float((a * b).sum()) / square
    sin = float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()) / square
    turn = np.array([[cos, -sin], [sin, cos]])
    return np.column_stack([turn, second.mean(axis=0) - turn @ first.mean(axis=0)])


def _plausible(matrix: NDArray[np.float64], stretch: NDArray[np.float64]) -> bool:
    sizes = np.linalg.svd(matrix[:, :2] @ np.linalg.inv(stretch[:, :2]), compute_uv=False)
    return bool(sizes.max() < MOST_SCALE and sizes.min() > 1 / MOST_SCALE and sizes.max() / sizes.min() < 1.2)


def _gray(rgb: Pixels, scale: float) -> Any:
    size = (max(8, round(rgb.shape[1] * scale)), max(8, round(rgb.shape[0] * scale)))
    gray = cv2.cvtColor(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    return gray.astype(np.float32)


class _EditedView:
    """An edited picture as candidates are compared: small, in gray."""

    def __init__(self, edited: Pixels) -> None:
        self.down = min(1.0, SEARCH_SIDE / max(edited.shape[:2]))
        self.gray = _gray(edited, self.down)


def _small(view: _EditedView, matrix: NDArray[np.float64], shape: tuple[int, int], scale: float) -> tuple[Any, Any]:
    """Lay the edited picture over the small source by a full-size matrix; return it and where it is seen."""
    local = _rescaled(matrix, scale, view.down)
    size = (shape[1], shape[0])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    seen = cv2.warpAffine(np.ones_like(view.gray), local, size, flags=flags) > 0.99
    return cv2.warpAffine(view.gray, local, size, flags=flags), seen


def _rescaled(matrix: NDArray[np.float64], scale: float, down: float) -> NDArray[np.float64]:
    local = matrix * (down / scale)
    local[:, 2] = down * (matrix[:, :2].sum(axis=1) * (0.5 / scale - 0.5) + matrix[:, 2] + 0.5) - 0.5
    return local


def _fit(small: _SearchView, edited: _EditedView, matrix: NDArray[np.float64], scale: float) -> float:
    """Return how well gradients agree, from 0 to 1; parts outside the picture count as disagreeing."""
    view, seen = _small(edited, matrix, small.gray.shape, scale)
    if seen.mean() < 0.2:
        return 0.0
    total = 0.0
    for first, second in zip(small.gradients, _gradients(view), strict=True):
        second = np.where(seen, second, 0)
        # Robust agreement: shared strength over the larger strength, so one strong edge cannot decide alone.
        one, other = np.abs(first), np.abs(second)
        shared = np.copysign(np.minimum(one, other), first * second)
        total += float(shared.sum() / max(1e-6, np.maximum(one, other).sum()))
    return total / 2


def _refine(
    small: _SearchView, edited: _EditedView, matrix: NDArray[np.float64], scale: float
) -> NDArray[np.float64] | None:
    """Add to `matrix` the small affine move that maximises correlation; None where the search does not converge."""
    view, seen = _small(edited, matrix, small.gray.shape, scale)
    step: Any = np.eye(2, 3, dtype=np.float32)
    stop = (cv2.TERM_CRITERIA_COUNT, STEPS, 0.0)
    try:
        _, step = cv2.findTransformECC(small.gray, view, step, cv2.MOTION_AFFINE, stop, seen.astype(np.uint8), 3)
    except cv2.error:
        return None
    polished = _polished(small.gray, view, seen, step)
    if polished is None:
        return None
    polished = np.rint(polished / FINEST) * FINEST
    turn, shift = polished[:, :2], polished[:, 2] / scale
    return np.column_stack([matrix[:, :2] @ turn, matrix[:, :2] @ shift + matrix[:, 2]])


def _polished(gray: Any, view: Any, seen: Mask, step: Any) -> NDArray[np.float64] | None:
    """Continue OpenCV's search, which rounds positions to 1/32 pixel, in double precision (Evangelidis and Psarakis).

    Every second row and column is enough for the last steps.
    """
    first, second = (cv2.GaussianBlur(one.astype(np.float64), (3, 3), 0) for one in (gray, view))
    well_inside = cv2.erode(seen.astype(np.uint8), np.ones((5, 5), dtype=np.uint8))  # beyond what its edge blurs into
    layers = np.stack([second, *np.gradient(second)[::-1], well_inside])
    template = first[::2, ::2].ravel()
    rows, columns = 2.0 * np.indices(first[::2, ::2].shape).reshape(2, -1)
    place = np.stack([columns, rows, np.ones(len(rows))])
    move: NDArray[np.float64] = step.astype(np.float64)
    for _ in range(POLISH):
        at = move @ place
        inside = (at >= 0).all(axis=0) & (at[0] <= first.shape[1] - 1) & (at[1] <= first.shape[0] - 1)
        image, across, down, weight = interpolated(layers, at)
        weight = weight * inside
        jacobian = np.concatenate([place * (across * weight), place * (down * weight)])
        now, was = (weight * (one - (weight * one).sum() / max(1.0, weight.sum())) for one in (image, template))
        inverse = np.linalg.pinv(jacobian @ jacobian.T, hermitian=True)
        of_now, of_was = jacobian @ now, jacobian @ was
        common = was @ now - of_was @ inverse @ of_now
        if common <= 0:
            return None  # as OpenCV: the pictures do not correlate
        gain = (now @ now - of_now @ inverse @ of_now) / common
        move = move + (inverse @ (gain * of_was - of_now)).reshape(2, 3)
    return move


def _warp(edited: Pixels, matrix: NDArray[np.float64], size: tuple[int, int]) -> Pixels:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(edited, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), np.uint8)


def _seen(edited: Pixels, matrix: NDArray[np.float64], size: tuple[int, int]) -> Mask:
    ones = np.ones(edited.shape[:2], dtype=np.float32)
    return np.asarray(cv2.warpAffine(ones, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP) > 0.99)

"""The automatic pre-screen: five checks that may order candidates but never remove one.

Such checks are not neutral: face detection, contrast and exposure work better for some faces than for others. The
pass rates are therefore shown by group, with a test for inequality.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL.Image import Image

from evenedit.curation.candidates import Candidate
from evenedit.curation.grid import DEFAULT_GRID, Grid
from evenedit.instruments.face import SMALL_FACE_SIDE, Face, NoFace, find_face
from evenedit.instruments.picture import Pixels
from evenedit.stats.engine.families import holm

CHECKS = ("face", "size", "sharpness", "frontal", "exposure")
"""One face found; large enough; sharp; turned to the camera and upright; neither too dark nor burnt out."""
ONE_FACE = ("profile", "too small")
"""There is one face, but no more can be measured."""
LEAST_WIDTH = 64
"""Pixels across the face."""
LEAST_SHARPNESS = 0.02
"""Energy of fine detail over contrast, so that a face of low contrast is not called blurred."""
DETAIL_SIDE = 128
"""Sharpness is taken with the face at this size."""
MOST_TURN = 0.2
"""How far the nose may stand from between the eyes, in inter-eye distances."""
MOST_TILT = 10.0
"""Degrees between the eyes and the horizontal; the landmarks show a tilt smaller than it is."""
MOST_CLIPPED = 0.1
"""Share of the face's pixels that may be nearly black or nearly white."""
DARK, BRIGHT = 8, 250
DRAWS = 9999
SEED = 20240


def screen(image: Image) -> dict[str, Any]:
    """Measure a picture, and name the checks it passes."""
    rgb: Pixels = np.asarray(image.convert("RGB"))
    face = find_face(rgb, SMALL_FACE_SIDE)
    if isinstance(face, NoFace):
        return {"passed": ["face"] if face.reason in ONE_FACE else [], "reason": face.reason}
    measured = _measured(rgb, face)
    passed = {
        "face": True,
        "size": measured["width"] >= LEAST_WIDTH,
        "sharpness": measured["sharpness"] >= LEAST_SHARPNESS,
        "frontal": measured["turn"] <= MOST_TURN and measured["tilt"] <= MOST_TILT,
        "exposure": measured["clipped"] <= MOST_CLIPPED,
    }
    return {"passed": [name for name in CHECKS if passed[name]], **measured}


def _measured(rgb: Pixels, face: Face) -> dict[str, float]:
    left, top, wide, high = face.box
    rows = slice(max(0, int(top)), max(1, int(top + high)))
    crop = rgb[rows, max(0, int(left)) : max(1, int(left + wide))]
    gray = cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY)
    even = cv2.resize(gray, (DETAIL_SIDE, DETAIL_SIDE), interpolation=cv2.INTER_AREA).astype(np.float64)
    contrast = float(even.var())
    nose = float(face.coordinates(face.landmarks)[2, 0])
    across, down = face.across
    return {
        "width": round(wide, 1),
        "sharpness": round(float(cv2.Laplacian(even, cv2.CV_64F).var()) / contrast, 4) if contrast else 0.0,
        "turn": round(abs(nose), 3),
        "tilt": round(abs(math.degrees(math.atan2(down, across))), 1),
        "clipped": round(float(((gray <= DARK) | (gray >= BRIGHT)).mean()), 4),
    }


def by_screen(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates by the number of passed checks; none is removed."""
    return sorted(candidates, key=lambda c: -len((c.screen or {"passed": ()})["passed"]))


@dataclass(frozen=True, slots=True)
class PassRate:
    """How many candidates of one group pass each check."""

    group: str
    n: int
    passed: Mapping[str, int]
    """By check; "all" for every check."""


@dataclass(frozen=True, slots=True)
class PassRates:
    """The pass rates of the groups of one factor, with a test for inequality."""

    factor: str
    groups: tuple[PassRate, ...]
    p: float
    """Probability of pass rates at least this unequal if the groups did not differ, before adjustment."""
    p_holm: float
    """Adjusted for the number of factors."""


def pass_rates(candidates: Iterable[Candidate], grid: Grid = DEFAULT_GRID) -> list[PassRates]:
    """Return pass rates by group of each factor; empty if no candidate was screened."""
    screened = [c for c in candidates if c.screen is not None]
    if not screened:
        return []
    tables: list[tuple[str, tuple[PassRate, ...]]] = []
    for factor in grid.factors:
        groups = []
        for code in factor.codes:
            results = [c.screen["passed"] for c in screened if c.screen and grid.labels[c.cell][factor.name] == code]
            counts = {check: sum(check in r for r in results) for check in CHECKS}
            complete = sum(len(r) == len(CHECKS) for r in results)
            groups.append(PassRate(code, len(results), counts | {"all": complete}))
        tables.append((factor.name, tuple(groups)))
    p = [inequality([g.n for g in groups], [g.passed["all"] for g in groups]) for _, groups in tables]
    return [
        PassRates(name, groups, raw, adjusted or 0.0)
        for (name, groups), raw, adjusted in zip(tables, p, holm(p), strict=True)
    ]


def inequality(sizes: Sequence[int], passed: Sequence[int]) -> float:
    """Return the p value of Pearson's chi-square for equal shares, given both margins, by Monte Carlo."""
    n, total = np.asarray(sizes), int(sum(passed))
    if total in (0, int(n.sum())):
        return 1.0
    used = n > 0
    expected = n[used] * total / n.sum()

    def distance(counts: Any) -> Any:
        return ((counts - expected) ** 2 / expected / (1 - total / n.sum())).sum(axis=-1)

    drawn = np.random.default_rng(SEED).multivariate_hypergeometric(n[used], total, size=DRAWS)
    seen = distance(np.asarray(passed)[used])
    return float((1 + (distance(drawn) >= seen - 1e-9).sum()) / (1 + DRAWS))

"""Versions of photographs with the skin along the Monk scale, each certified by the skin instrument or refused."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.color import MONK, Lab
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode, write_whole
from evenedit.core.provenance import provenance
from evenedit.core.records import BASE
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.measure import measure
from evenedit.instruments.mesh import find_mesh
from evenedit.instruments.picture import Picture, Pixels, encoded, lab_map, linear, pixels
from evenedit.instruments.tone import tone
from evenedit.sources.twins import CERTIFICATES, RECOLOURED

SIDE = 1024
"""The longer side of versions; smaller photographs stay as they are."""
STATEMENT = (
    "The licence of these portraits and the consent of the people in them allow derived pictures for this study."
)
"""What must be confirmed, once for each set."""
CHEEKS = (50, 101, 205, 187, 123, 280, 330, 425, 411, 352)
OVAL: tuple[int, ...] = (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377)
OVAL += (152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109)
SPARED_PARTS = (
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185),
    (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246),
    (362, 382, 381, 380, 374, 373, 390, 249, 263, 466, 388, 387, 386, 385, 384, 398),
)
"""Points of the face mesh: on the cheeks, around the face, and around lips and eyes, which keep their colour."""
REACH = np.array([30.0, 10.0, 12.0])
"""L*, a* and b* within which a pixel has the colour of the cheeks."""
SHADING, ROOM = 15.0, 0.6
"""L* around the tone that moves as a whole, at most this share of the way to black and white; the rest is squeezed."""
FARTHEST = 2.0
"""L* by which a reading may miss its aim, however wide its interval."""
LARGEST = 20.0
"""L* by which a version may differ from its portrait; farther than that, readings were not checked."""
NO_SKIN = "no face, or too little skin in sight"


def recoloured(rgb: Pixels, face: Face, now: Lab, target: Lab) -> Pixels:
    """Return a photograph with another tone of skin; light, shadow and texture move along with it."""
    lab = lab_map(linear(rgb))
    moved = lab + (np.array(target) - now)
    moved[..., 0] = np.interp(lab[..., 0], _knots(now[0]), _knots(target[0]))
    mask = skin_mask(rgb, lab, face)[..., None]
    mixed = (lab + mask * (moved - lab)).astype(np.float32)
    light = np.asarray(cv2.cvtColor(mixed, cv2.COLOR_Lab2LRGB), dtype=np.float32)
    return np.where(mask > 0, encoded(light), rgb)


def _knots(tone: float) -> list[float]:
    below, above = min(SHADING, ROOM * tone), min(SHADING, ROOM * (100 - tone))
    return [0.0, tone - below, tone, tone + above, 100.0]


def skin_mask(rgb: Pixels, lab: NDArray[np.float32], face: Face) -> NDArray[np.float32]:
    """Return where skin is, from 0 to 1: face, ears and neck of the cheeks' colour, without lips and eyes."""
    high, wide = rgb.shape[:2]
    points = find_mesh(rgb, face).points

    def inside(outline: Sequence[int], blur: float) -> NDArray[np.float32]:
        mask = np.zeros((high, wide), dtype=np.float32)
        cv2.fillPoly(mask, [cv2.convexHull(np.round(points[list(outline)]).astype(np.int32))], 1.0)
        return np.asarray(cv2.GaussianBlur(mask, (0, 0), blur * face.unit), dtype=np.float32)

    sides = [lab[inside(half, 0.01) > 0.5] for half in (CHEEKS[:5], CHEEKS[5:])]
    far = (((lab - np.median(np.concatenate(sides), axis=0)) / REACH) ** 2).sum(axis=2)
    alike = np.exp(-0.5 * np.maximum(0, far - 1))
    y, x = np.mgrid[:high, :wide]
    u, v = face.coordinates(np.stack([x.ravel(), y.ravel()], axis=-1)).T.reshape(2, high, wide)
    near = ((u / 1.35) ** 2 + ((v - 0.45) / 1.7) ** 2 < 1) | ((np.abs(u) < 0.9) & (v > 1) & (v < 2.4))
    mask = np.maximum(alike * near, np.minimum(inside(OVAL, 0.03), 0.35 + alike)).astype(np.float32)
    mask = cv2.GaussianBlur(mask, (0, 0), max(1.0, 0.04 * face.unit))
    for part in SPARED_PARTS:
        mask = mask * (1 - inside(part, 0.03))
    return np.asarray(np.clip(mask, 0, 1), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the skin instrument read of one version."""

    tone: int
    refused: str
    """Why it is refused; empty if it is certified."""
    aimed: float | None = None
    """The change of L* that was aimed at."""
    read: float | None = None
    low: float | None = None
    high: float | None = None


def certified(photograph: Picture, number: int) -> tuple[Pixels | None, Certificate]:
    """Make the version with a Monk tone; it is refused where the reading misses its aim."""
    face = find_face(photograph.rgb)
    now = tone(photograph.rgb, face) if isinstance(face, Face) else None
    if not isinstance(face, Face) or now is None:
        return None, Certificate(number, NO_SKIN)
    version = recoloured(photograph.rgb, face, now, MONK[number - 1])
    aimed = MONK[number - 1][0] - now[0]
    if abs(aimed) > LARGEST:
        return version, Certificate(number, f"the tone is more than {LARGEST:.0f} L* away", aimed)
    m = measure(photograph, Image.fromarray(version), identity=False)
    read, low, high = m.skin_delta_L, m.skin_delta_L_low, m.skin_delta_L_high
    refused = ""
    if read is None or low is None or high is None:
        refused = f"not read: {m.reasons.get('skin_delta_L', '')}"
    elif abs(read - aimed) > min((high - low) / 2, FARTHEST):
        refused = "the reading misses the aim by more than its interval, or by more than 2 L*"
    return version, Certificate(number, refused, aimed, read, low, high)


@dataclass(slots=True)
class RecolouredSet:
    """What became of the versions of a set."""

    bases: int = 0
    complete: int = 0
    certified: Counter[int] = field(default_factory=Counter)
    """By tone."""
    refused: Counter[str] = field(default_factory=Counter)
    """By reason."""


def write_twins(
    portraits: Iterable[tuple[str, Mapping[str, str], str, Image.Image]],
    out: Path,
    tones: Sequence[int],
    factors: Sequence[str],
    licence: str,
) -> RecolouredSet:
    """Write the certified versions with their labels and certificates; bases have numbers instead of names."""
    if out.exists():
        raise EvenEditError(f"{out} exists already; name another folder with --out")
    out.mkdir(parents=True)
    result, rows, certificates = RecolouredSet(), list[list[str]](), dict[str, Any]()
    other_factors = [name for name in factors if name != "monk"]
    for number, (_, labels, _, image) in enumerate(portraits, 1):
        base, photograph = f"face-{number:03}", Picture(pixels(image, SIDE))
        versions = [certified(photograph, tone) for tone in tones]
        result.bases += 1
        result.complete += all(not certificate.refused for _, certificate in versions)
        for version, certificate in versions:
            ident = f"{base}_{certificate.tone}"
            certificates[ident] = {name: getattr(certificate, name) for name in Certificate.__slots__}
            if certificate.refused or version is None:
                result.refused[certificate.refused] += 1
                continue
            result.certified[certificate.tone] += 1
            write_whole(out / f"{ident}.png", encode(Image.fromarray(version)))
            origin = f"{RECOLOURED}Monk {certificate.tone}"
            rows.append(
                [
                    f"{ident}.png",
                    ident,
                    base,
                    str(certificate.tone),
                    *(labels.get(n, "") for n in other_factors),
                    origin,
                ]
            )
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([["file", "id", BASE, "monk", *other_factors, "origin"], *rows])
    write_whole(out / "labels.csv", table.getvalue().encode())
    confirmed = {"statement": STATEMENT, "licence": licence, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    body = {"confirmed": confirmed, "provenance": provenance(), "versions": certificates}
    write_whole(out / CERTIFICATES, json.dumps(body, indent=1).encode())
    return result

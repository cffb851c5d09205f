"""The face mesh: 468 points that lie on the same spots of every face, and points of skin between them.

The model is MediaPipe's face landmark model (Apache-2.0; see models/NOTICE), read by OpenCV.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.instruments.face import Face
from evenedit.instruments.picture import Pixels

MODELS = Path(__file__).parent / "models"
SIDE = 192
"""The model's picture of a face, in pixels."""
REACH = 2.72
"""Its side, in diagonals of inter-eye and eye-to-mouth distance: what the model was trained on."""
DOWN = 0.46
"""Its centre, on the way from between the eyes to the mouth."""
ACROSS = 1.1
"""How far its centre moves against the nose of a turned head, in distances of the nose from between the eyes."""
LEAST_SCORE = 0.5
"""The model's own probability of a face, under which the mesh is not used."""
_thread = threading.local()


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """The points of one face, in pixels of its picture."""

    points: NDArray[np.float64]
    """468 rows of x and y."""
    depth: NDArray[np.float64]
    """How far each point lies behind the middle of the face, in pixels."""
    score: float
    """The model's probability that this is a face."""


@dataclass(frozen=True, slots=True, eq=False)
class SkinPoints:
    """Points of skin that are placed between points of the mesh: the same spots on every face."""

    corners: NDArray[np.int64]
    """The three points of the mesh that each point lies between."""
    weights: NDArray[np.float64]
    """How near it is to each of them."""
    where: NDArray[np.float64]
    """Where it is on a frontal face, in the face's own coordinates."""

    sizes: NDArray[np.float64]
    """Twice the area of the triangle it lies in on a frontal face."""

    def place(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions of the points on the face of this mesh."""
        placed: NDArray[np.float64] = np.einsum("nk,nkc->nc", self.weights, points[self.corners])
        return placed

    def facing(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the size of each point's triangle relative to a frontal face's; takes the mesh in face coordinates.

        Near 0 where the skin is seen from the side.
        """
        a, b, c = np.moveaxis(coordinates[self.corners], 1, 0)
        (ux, uy), (vx, vy) = (b - a).T, (c - a).T
        seen: NDArray[np.float64] = np.abs(ux * vy - uy * vx) / self.sizes
        return seen


@cache
def skin_points() -> SkinPoints:
    """Read the points of skin from the file that `scripts/docs/make_skin_points.py` wrote."""
    with np.load(MODELS / "skin_points.npz") as file:
        parts = {name: file[name].astype(np.float64) for name in ("weights", "where", "sizes")}
        return SkinPoints(corners=file["corners"].astype(np.int64), **parts)


def find_mesh(rgb: Pixels, face: Face) -> Mesh:
    """Find the mesh of a detected face."""
    matrix = _crop(face)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    crop = cv2.warpAffine(rgb, matrix, (SIDE, SIDE), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    net = _net()
    net.setInput(cv2.dnn.blobFromImage(crop, 1 / 255, (SIDE, SIDE)))
    outputs = [np.asarray(one, dtype=np.float64).ravel() for one in net.forward(_thread.outputs)]
    flat, logit = sorted(outputs, key=len, reverse=True)
    vertices = flat.reshape(-1, 3)
    scale = float(np.hypot(*matrix[:, 0]))
    score = 1 / (1 + float(np.exp(-logit[0])))
    return Mesh(vertices[:, :2] @ matrix[:, :2].T + matrix[:, 2], vertices[:, 2] * scale, score)


def _crop(face: Face) -> NDArray[np.float64]:
    """Return the map from the model's picture to the picture's pixels: upright, by the eyes, the nose and the mouth."""
    right = face.across / face.unit
    down = np.array([-right[1], right[0]])
    fall = face.landmarks[3:].mean(axis=0) - face.middle
    drop = float(fall @ down)
    turn = float((face.landmarks[2] - face.middle) @ right)
    centre = face.middle + DOWN * drop * down - ACROSS * turn * right
    scale = REACH * float(np.hypot(drop, face.unit)) / SIDE
    turned = np.column_stack([right, down]) * scale
    return np.column_stack([turned, centre - turned @ np.array([SIDE / 2, SIDE / 2])])


def _net() -> Any:
    """Return this thread's network: OpenCV's is not safe to share."""
    if not hasattr(_thread, "net"):
        _thread.net = cv2.dnn.readNetFromTFLite(str(MODELS / "face_landmark.tflite"))
        _thread.outputs = _thread.net.getUnconnectedOutLayersNames()
    return _thread.net

"""Write the points of skin between the points of the face mesh: `python scripts/docs/make_skin_points.py CONNECTIONS`.

CONNECTIONS is the file `face_mesh_connections.py` of the package mediapipe: it says which points are neighbours. The
points are laid out on the mean mesh of drawn portraits, so that anybody can make the same file.
"""

import runpy
import sys
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from evenedit.instruments.face import Face, find_face
from evenedit.instruments.mesh import MODELS, find_mesh
from evenedit.instruments.picture import pixels
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render

PEOPLE = 24
STEP = 0.05
"""Between points, in inter-eye distances."""
FINE = 200
"""Pixels an inter-eye distance has while outlines are compared."""
EDGE, EYE, BROW, LIP, NOSTRIL = 0.12, 0.07, 0.07, 0.09, 0.06
"""How far points stay away from these."""
NOSTRILS = (98, 97, 2, 326, 327, 294, 278, 64, 48)


def mean_mesh() -> np.ndarray:
    """The mean mesh of drawn people, in the face's own coordinates, both sides alike in number."""
    found = []
    for number in range(PEOPLE):
        labels = {
            "race": ("Black", "White", "Indian")[number % 3],
            "gender": ("Female", "Male")[number % 2],
            "age": "30s",
        }
        rgb = pixels(render(sample(labels, number)))
        face = find_face(rgb)
        if isinstance(face, Face):
            found.append(face.coordinates(find_mesh(rgb, face).points))
    return np.mean(found, axis=0)


def triangles(edges) -> np.ndarray:
    """Every three points that are neighbours of each other."""
    near = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return np.array(
        sorted({tuple(sorted((a, b, c))) for a in near for b, c in combinations(near[a], 2) if c in near[b]})
    )


def outline(layout, edges, grow: float) -> np.ndarray:
    """The convex hull of some points, grown, as pixels."""
    hull = cv2.convexHull((layout[sorted({p for edge in edges for p in edge})] * FINE + 3 * FINE).astype(np.int32))
    mask = np.zeros((6 * FINE, 6 * FINE), np.uint8)
    cv2.fillConvexPoly(mask, hull, 1)
    size = 2 * round(abs(grow) * FINE) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return (cv2.dilate if grow > 0 else cv2.erode)(mask, kernel) > 0


def main() -> None:
    """Lay the points out and write the file."""
    known = runpy.run_path(sys.argv[1])
    layout = mean_mesh()
    allowed = outline(layout, known["FACEMESH_FACE_OVAL"], -EDGE)
    for name, grow in (("EYE", EYE), ("EYEBROW", BROW)):
        for side in ("LEFT", "RIGHT"):
            allowed &= ~outline(layout, known[f"FACEMESH_{side}_{name}"], grow)
    allowed &= ~outline(layout, known["FACEMESH_LIPS"], LIP) & ~outline(layout, [NOSTRILS], NOSTRIL)
    faces = triangles(known["FACEMESH_TESSELATION"])
    corners, weights, where, sizes = [], [], [], []
    steps = np.arange(-1.5, 2.5, STEP)
    sides = layout[faces]
    for x in steps:
        for y in steps:
            if not allowed[round((y + 3) * FINE), round((x + 3) * FINE)]:
                continue
            base = np.concatenate([sides.transpose(0, 2, 1), np.ones((len(faces), 1, 3))], axis=1)
            good = np.abs(np.linalg.det(base)) > 1e-6
            share = np.full((len(faces), 3), -1.0)
            share[good] = np.linalg.solve(base[good], np.array([x, y, 1.0])[None, :, None])[..., 0]
            inside = np.flatnonzero(share.min(axis=1) >= -1e-9)
            if len(inside):
                corners.append(faces[inside[0]])
                weights.append(share[inside[0]])
                where.append((x, y))
                sizes.append(abs(np.linalg.det(base[inside[0]])))
    np.savez_compressed(
        MODELS / "skin_points.npz",
        corners=np.array(corners, np.int16),
        weights=np.array(weights, np.float32),
        where=np.array(where, np.float32),
        sizes=np.array(sizes, np.float32),
    )
    print(f"{len(corners)} points in {Path(MODELS / 'skin_points.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()

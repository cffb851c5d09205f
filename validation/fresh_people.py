"""People of the same data set whom no threshold was chosen on: candidates that did not become one of the 84 portraits.

Their pictures are 224 pixels wide. They are drawn by a seed among those with a face and colour, as many of each race
label; who is the person of a portrait, by the distance of their faces, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from evenedit.instruments import picture
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.identity import available, distance, embed
from validation.variants import DATA

SEED = 16
ANOTHER = 0.4
"""Distance of faces under which a candidate may be the person of the portrait."""
LOOKED_AT = frozenset(
    [
        "V7/Black_Female_40s",
        "V5/EastAsian_Female_20s",
        "V6/Indian_Female_60s",
        "V5/Latino_Female_60s",
        "V4/MiddleEastern_Female_70plus",
        "V2/SoutheastAsian_Female_20s",
        "V2/White_Male_60s",
    ]
)
"""Those that were measured while the instruments were made."""


def fresh_people(each: int, seed: int = SEED) -> list[Path]:
    """So many pictures of each race label; none where the photographs or the extra `faces` are absent."""
    if not (DATA / "candidates").is_dir() or not available():
        return []
    chance = np.random.default_rng(seed)
    every = sorted((DATA / "candidates").glob("V*/*.jpg"))
    labels = sorted({path.stem.split("_")[0] for path in every})
    chosen: list[Path] = []
    for label in labels:
        mine = [path for path in every if path.stem.startswith(f"{label}_")]
        drawn = (mine[number] for number in chance.permutation(len(mine)))
        chosen += list(_first(drawn, each))
    return chosen


def _first(drawn: Iterator[Path], count: int) -> Iterator[Path]:
    """The first that can be used; no two of one label, gender and age, who could be the same person."""
    cells: set[str] = set()
    for path in drawn:
        if len(cells) == count:
            return
        if path.stem not in cells and f"{path.parent.name}/{path.stem}" not in LOOKED_AT and _usable(path):
            cells.add(path.stem)
            yield path


def _usable(path: Path) -> bool:
    with Image.open(path) as image, Image.open(DATA / "portraits" / path.name) as portrait:
        own, known = picture.pixels(image), picture.pixels(portrait)
    faces = find_face(own), find_face(known)
    if not isinstance(faces[0], Face) or not isinstance(faces[1], Face) or picture.Picture(own).gray:
        return False
    return distance(embed(own, faces[0]), embed(known, faces[1])) >= ANOTHER

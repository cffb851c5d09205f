"""Draw images from a dataset, cell by cell: reproducible from the seeds, without repetition or damaged files."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evenedit.sources.dataset import Dataset, Labelled, picture


@dataclass(slots=True)
class DrawnPools:
    """Drawn images, and those that were skipped."""

    drawn: dict[tuple[int, str], Labelled] = field(default_factory=dict)
    """By the seed's position and the cell, seed by seed in the grid's order."""
    content: dict[int, bytes] = field(default_factory=dict)
    """Bytes of the drawn images by their position in the dataset."""
    faces: int = 0
    """Images of the dataset that belong to the grid."""
    available: dict[str, int] = field(default_factory=dict)
    """How many images each cell has."""
    unreadable: list[str] = field(default_factory=list)
    """Origins of drawn images that are missing or damaged; others were drawn instead."""
    repeated: list[str] = field(default_factory=list)
    """Origins of drawn images with the same bytes as another; others were drawn instead."""


def draw(
    dataset: Dataset, seeds: Sequence[int], cells: Sequence[str], taken: Mapping[str, str] | None = None
) -> DrawnPools:
    """Draw one image per seed and cell, without replacement over the seeds; `taken` are SHA-256 by origin of others.

    A seed's image of a cell is the one that comes first when the cell's images are ordered by a hash of seed and
    origin: it depends on nothing else in the dataset, and the next in order takes the place of a damaged one.
    """
    drawing = DrawnPools()
    members: dict[str, list[Labelled]] = defaultdict(list)
    taken = taken or {}
    for face in dataset.faces():
        drawing.faces += 1
        if face.origin not in taken:
            members[face.cell].append(face)
    drawing.available = {cell: len(members[cell]) for cell in cells}
    ranked = {
        (number, cell): sorted(members[cell], key=lambda face: _rank(seed, face.origin))
        for number, seed in enumerate(seeds)
        for cell in cells
    }
    bad: set[int] = set()
    hashes: dict[int, str] = {}
    while True:
        drawing.drawn = dict(_pick(ranked, bad))
        wanted = [face for face in drawing.drawn.values() if face.at not in drawing.content]
        if not wanted:
            break
        for face, content in dataset.read(wanted):
            if content and picture(content) is not None:
                drawing.content[face.at] = content
                hashes[face.at] = hashlib.sha256(content).hexdigest()
            else:
                bad.add(face.at)
                drawing.unreadable.append(face.origin)
        first = dict.fromkeys(taken.values(), -1)
        for face in drawing.drawn.values():  # the one drawn first stays, however many seeds follow
            if face.at in hashes and first.setdefault(hashes[face.at], face.at) != face.at and face.at not in bad:
                bad.add(face.at)
                drawing.repeated.append(face.origin)
        if not bad & {face.at for face in drawing.drawn.values()}:
            break
    drawn = {face.at for face in drawing.drawn.values()}
    drawing.content = {at: content for at, content in drawing.content.items() if at in drawn}
    return drawing


def _pick(ranked: dict[tuple[int, str], list[Labelled]], bad: set[int]) -> Iterator[tuple[tuple[int, str], Labelled]]:
    taken = set(bad)
    for place, faces in ranked.items():
        face = next((f for f in faces if f.at not in taken), None)
        if face is not None:
            taken.add(face.at)
            yield place, face


def _rank(seed: int, origin: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{origin}".encode(), digest_size=8).digest()

"""How far an edited face is from its source's, against what is usual in the same group (extra `faces`)."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.instruments import picture
from evenedit.instruments.face import Face, find_face, package_file
from evenedit.instruments.picture import Pixels

BIAS = (
    "The embedding tells people of some groups apart less well than others: of pairs of different people in 84 "
    "FairFace portraits, 35 % of the East Asian, 18 % of the Southeast Asian, 9 % of the Black, 6 % of the Indian, "
    "2 % of the Middle Eastern and none of the Latino and White fall under the usual threshold of 0.6. "
    "Read a distance against its own group only."
)
MISSING = "the extra 'faces' is not installed: pip install 'evenedit[faces]'"
LEAST_PAIRS = 10
"""The fewest pairs of different people, in a group or among all, that a distance is compared with."""
STRANGER = 0.02
"""The person is doubted from the distance on that this share of the group's different people fall short of."""
NEAREST = 0.005
"""The same share where the reference that EvenEdit ships is used: people that an editor puts in keep some likeness."""
NEAREST_ANEW, ALIKE_ANEW = 0.001, 0.98
"""The same where the face was drawn anew, and the share of harmless variants that are then closer: all, else."""
SHIPPED = Path(__file__).parent / "models" / "identity_reference.json"
"""Distances among the 84 portraits, by race label: numbers only, made by scripts/docs/make_identity_reference.py."""
CLOSENESS = {
    "Black": 1.01,
    "EastAsian": 0.90,
    "Indian": 1.02,
    "Latino": 0.99,
    "MiddleEastern": 1.08,
    "SoutheastAsian": 0.94,
    "White": 1.05,
}
"""How far apart the embedding puts different people of a label, all labels being 1: its bias, as measured on 165
FairFace faces that are none of the 84 portraits (docs/validation/identity.md). A label not named here counts as 1."""
SHIPPED_NOTE = (
    "compared with the 84 FairFace portraits of EvenEdit (different people of one race label; the same person in mild "
    "variants and neutral edits), not with people of this study"
)
EMBEDDING = "dlib-resnet-v1"
IDENTITY_NUMBERS = ("identity_distance", "identity_between", "identity_same")

REMEMBERED = 256
"""Embeddings kept in memory, the oldest dropped first: a source is compared with many edits."""
_thread = threading.local()
_remembered: dict[bytes, NDArray[np.float64]] = {}
_MODELS = ("shape_predictor_5_face_landmarks.dat", "dlib_face_recognition_resnet_model_v1.dat")


def available() -> bool:
    """Return whether the extra `faces` is installed."""
    return find_spec("dlib") is not None and find_spec("face_recognition_models") is not None


def embed(rgb: Pixels, face: Face) -> NDArray[np.float64]:
    """128 numbers that are close for pictures of one person."""
    if not available():
        raise EvenEditError(MISSING)
    key = hashlib.sha1(np.ascontiguousarray(rgb).data, usedforsecurity=False).digest()
    if key not in _remembered:
        while len(_remembered) >= REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = _embedding(rgb, face)
    return _remembered[key]


def distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Euclidean distance of two embeddings."""
    return float(np.linalg.norm(first - second))


@dataclass(frozen=True, slots=True)
class IdentityDistance:
    """Where a distance lies among those of its group."""

    between: float
    """Share of pairs of different people of the group who are closer to each other."""
    same: float
    """Share of harmless variants of one picture that are closer to it."""
    stranger: bool
    """Whether the distance is one that different people have, and no variant of one picture has."""
    caveat: str = ""
    """What the comparison rests on where the group itself has too few people."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Distances within a source set, by group; `same` compares pictures with harmless variants of themselves."""

    between: Mapping[str, tuple[float, ...]]
    same: Mapping[str, tuple[float, ...]]
    shipped: bool = False
    """Whether it is the one that EvenEdit ships, in place of one of the study's own people."""

    def standing(self, value: float, group: str, anew: bool | None = None) -> IdentityDistance | str:
        """Compare the distance with its group's, or return why it cannot be compared.

        `anew` says whether the skin of the face was drawn anew; None where that is not known. A face that kept its skin
        is no other person's.
        """
        between, same, caveat = self.between.get(group, ()), self.same.get(group, ()), ""
        if len(between) < LEAST_PAIRS:
            pairs, between = len(between), self.borrowed(group)
            same = tuple(sorted(d for values in self.same.values() for d in values))
            if len(between) < LEAST_PAIRS:
                return (
                    f"group '{group}' has {pairs} pairs of different people, all groups {len(between)}; "
                    f"{LEAST_PAIRS} are needed"
                )
            caveat = (
                f"group '{group}' has {pairs} pairs of different people: compared with the {len(between)} of all "
                "groups, scaled by how close the embedding puts people of a label"
            )
        closer, alike = _below(between, value), _below(same, value)
        near, likest = (NEAREST_ANEW, ALIKE_ANEW) if anew else (NEAREST, 1.0)
        cut = lowest(between, near) if self.shipped else limit(between)
        stranger = anew is not False and value >= cut and alike >= (likest if self.shipped else 1.0)
        caveat = SHIPPED_NOTE if self.shipped else caveat
        return IdentityDistance(closer, alike, stranger, caveat)

    def borrowed(self, group: str) -> tuple[float, ...]:
        """Return the distances within every group, scaled by the embedding's closeness for both labels."""
        closeness = CLOSENESS.get(group, 1.0)
        scaled = (d * closeness / CLOSENESS.get(label, 1.0) for label, values in self.between.items() for d in values)
        return tuple(sorted(scaled))

    def to_json(self) -> str:
        """Serialise the reference for a cache."""
        return json.dumps({"between": self.between, "same": self.same, "embedding": EMBEDDING, "bias": BIAS})

    @classmethod
    def from_json(cls, text: str) -> Reference:
        """Read the reference that `to_json` wrote."""
        data = json.loads(text)
        between, same = ({group: tuple(values) for group, values in data[part].items()} for part in ("between", "same"))
        return cls(between, same)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike the two faces of a pair are; a number is None only with its reason."""

    distance: float | None = None
    between: float | None = None
    same: float | None = None
    stranger: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def compare(
    source: Pixels,
    edited: Pixels,
    source_face: Face | None,
    edited_face: Face | None,
    known: Reference | None,
    group: str | None,
    missing: str,
    anew: bool | None = None,
) -> Likeness:
    """Return the distance of two faces, compared with its group if a reference is known."""
    if source_face is None or edited_face is None or not available():
        return Likeness(reasons=dict.fromkeys(IDENTITY_NUMBERS, missing or MISSING))
    value = distance(embed(source, source_face), embed(edited, edited_face))
    standing = known.standing(value, group, anew) if known and group else "no reference set and group given"
    if isinstance(standing, str):
        standing = shipped_reference().standing(value, group or "", anew)
    if isinstance(standing, str):
        raise EvenEditError(f"{SHIPPED}: {standing}. Reinstall EvenEdit")
    notes = (BIAS, standing.caveat) if standing.caveat else (BIAS,)
    return Likeness(value, standing.between, standing.same, standing.stranger, notes=notes)


@dataclass(frozen=True, slots=True)
class FaceEmbedding:
    """One portrait of a source set, as the reference needs it."""

    group: str
    embedding: NDArray[np.float64]
    same: tuple[float, ...]
    """Distances to harmless variants of the same picture."""


def embed_portrait(group: str, image: Image.Image) -> FaceEmbedding | None:
    """Embed a portrait and its harmless variants; None where it shows no face."""
    rgb = picture.pixels(image)
    face = find_face(rgb)
    if not isinstance(face, Face):
        return None
    embedding = embed(rgb, face)
    variants = [(variant, find_face(variant)) for variant in _variants(rgb)]
    same = tuple(distance(embedding, embed(variant, face)) for variant, face in variants if isinstance(face, Face))
    return FaceEmbedding(group, embedding, same)


def reference(portraits: Iterable[FaceEmbedding | None]) -> Reference:
    """Return the distances within a source set, by group."""
    groups: dict[str, list[FaceEmbedding]] = {}
    for portrait in portraits:
        if portrait is not None:
            groups.setdefault(portrait.group, []).append(portrait)
    between = {
        group: tuple(sorted(distance(a.embedding, b.embedding) for a, b in combinations(members, 2)))
        for group, members in groups.items()
    }
    same = {group: tuple(sorted(d for member in members for d in member.same)) for group, members in groups.items()}
    return Reference(between, same)


def reference_key(portraits: Iterable[tuple[str, str]]) -> str:
    """Hash a source set, passed as group and content hash of each portrait."""
    return digest([EMBEDDING, sorted(portraits)])


def _variants(rgb: Pixels) -> Iterator[Pixels]:
    """Return the same picture mirrored, darker and softer: changes that leave the person the same."""
    yield np.ascontiguousarray(rgb[:, ::-1])
    yield (rgb * 0.8).astype(np.uint8)
    small = cv2.resize(rgb, None, fx=0.4, fy=0.4, interpolation=cv2.INTER_AREA)
    yield np.asarray(cv2.resize(small, (rgb.shape[1], rgb.shape[0]), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def _embedding(rgb: Pixels, face: Face) -> NDArray[np.float64]:
    dlib, predictor, network = _models()
    # The predictor was trained on dlib's own square boxes, about 2.4 inter-eye distances wide.
    x, y = face.place([(0.0, 0.55)])[0]
    half = 1.2 * max(face.unit, 0.8 * float(np.hypot(*(face.landmarks[3:].mean(axis=0) - face.middle))))
    box = dlib.rectangle(int(x - half), int(y - half), int(x + half), int(y + half))
    return np.array(network.compute_face_descriptor(rgb, predictor(rgb, box)), dtype=np.float64)


def _models() -> tuple[Any, Any, Any]:
    """dlib, its five-point predictor and its embedding network, one set for each thread."""
    if not hasattr(_thread, "models"):
        dlib: Any = import_module("dlib")
        files = [str(package_file("face_recognition_models", f"models/{name}", "faces")) for name in _MODELS]
        _thread.models = (dlib, dlib.shape_predictor(files[0]), dlib.face_recognition_model_v1(files[1]))
    models: tuple[Any, Any, Any] = _thread.models
    return models


@cache
def shipped_reference() -> Reference:
    """Return the distances among 84 portraits that EvenEdit ships."""
    return replace(Reference.from_json(SHIPPED.read_text("utf-8")), shipped=True)


def limit(between: tuple[float, ...]) -> float:
    """Return the distance that only a share STRANGER of different people fall below; never under the smallest seen."""
    return max(lowest(between, STRANGER), between[0])


def lowest(between: tuple[float, ...], share: float) -> float:
    """Return the distance that only this share of different people fall below, assuming normality."""
    return NormalDist(float(np.mean(between)), float(np.std(between, ddof=1)) or 1e-9).inv_cdf(share)


def _below(values: tuple[float, ...], value: float) -> float:
    return float(np.searchsorted(values, value, side="left")) / len(values) if values else 1.0

"""A measuring process. It imports nothing but the measuring code, so that it starts fast."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import cv2

from evenedit.core.images import ImageFolder, open_images
from evenedit.core.processes import end_with_parent
from evenedit.instruments.identity import FaceEmbedding, Reference, embed_portrait
from evenedit.instruments.measure import Pair, measure
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.picture import Picture, pixels


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one pair; no numbers where measuring broke down."""

    request_id: str
    editor: str
    numbers: Mapping[str, Any] | None
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reads:
    """What is measured of a pair beside skin and change."""

    identity: bool
    age: bool = False
    gender: bool = False


@dataclass(slots=True)
class _Process:
    images: ImageFolder
    reads: Reads
    known: Reference | None


_processes: list[_Process] = []


def init_worker(setup: Callable[[], None]) -> None:
    """Initialise a worker: ignore SIGINT, use one thread, exit with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    end_with_parent()
    setup()


def begin(images: str, reads: Reads, known: str) -> None:
    """Set the image folder, and the distances between people if faces are compared."""
    _processes[:] = [_Process(open_images(images), reads, Reference.from_json(known) if known else None)]


def measure_pairs(pairs: Sequence[Pair]) -> list[Taken]:
    """Measure the edits of one source, which is analysed once."""
    (process,) = _processes
    source = Picture(pixels(process.images.open(pairs[0].source)))
    known: dict[tuple[Any, ...], Measurement] = {}
    return [_measure_pair(process, source, pair, known) for pair in pairs]


def _measure_pair(process: _Process, source: Picture, pair: Pair, known: dict[tuple[Any, ...], Measurement]) -> Taken:
    edited = process.images.open(pair.edited)
    try:
        key = (pair.group, edited.size, hashlib.sha256(edited.tobytes()).digest())
        if key not in known:  # one source's edits may show the same
            known[key] = measure(source, edited, **asdict(process.reads), reference=process.known, group=pair.group)
        measurement = known[key]
    except Exception as error:
        return Taken(pair.request_id, pair.editor, None, {"failed": f"{type(error).__name__}: {error}"})
    numbers = measurement.to_json()
    reasons = numbers.pop("reasons")
    del numbers["notes"]
    return Taken(pair.request_id, pair.editor, numbers, reasons)


def embed_reference_face(person: tuple[str, str]) -> FaceEmbedding | None:
    """Return the face embedding of one of the study's people: a group and a picture."""
    (process,) = _processes
    group, image = person
    return embed_portrait(group, process.images.open(image))

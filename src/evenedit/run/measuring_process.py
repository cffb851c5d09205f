"""What a measuring process does. It imports what measures and nothing else, so that it is soon at work."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import parent_process
from typing import Any

import cv2

from evenedit.core.images import ImageFolder, open_images
from evenedit.instruments.identity import FaceEmbedding, Reference, embed_portrait
from evenedit.instruments.measure import Measurement, Pair, measure
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


def alone(sit_down: Callable[[], None]) -> None:
    """A process of its own: Ctrl-C is the parent's, one core each, and no life after the parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    sit_down()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def begin(images: str, reads: Reads, known: str) -> None:
    """Get ready to measure: where the pictures are, and the distances among people if faces are compared."""
    _processes[:] = [_Process(open_images(images), reads, Reference.from_json(known) if known else None)]


def take(pairs: Sequence[Pair]) -> list[Taken]:
    """Measure the edits of one source, which is looked at once."""
    (process,) = _processes
    source = Picture(pixels(process.images.open(pairs[0].source)))
    known: dict[tuple[Any, ...], Measurement] = {}
    return [_take(process, source, pair, known) for pair in pairs]


def _take(process: _Process, source: Picture, pair: Pair, known: dict[tuple[Any, ...], Measurement]) -> Taken:
    edited = process.images.open(pair.edited)
    try:
        key = (pair.group, edited.size, hashlib.sha256(edited.tobytes()).digest())
        if key not in known:  # one source's edits may show the same
            known[key] = measure(source, edited, **asdict(process.reads), reference=process.known, group=pair.group)
        found = known[key]
    except Exception as error:
        return Taken(pair.request_id, pair.editor, None, {"failed": f"{type(error).__name__}: {error}"})
    numbers = found.to_json()
    reasons = numbers.pop("reasons")
    del numbers["notes"]
    return Taken(pair.request_id, pair.editor, numbers, reasons)


def sit_for(person: tuple[str, str]) -> FaceEmbedding | None:
    """The embedding of one of the study's people: a group and a picture."""
    (process,) = _processes
    group, image = person
    return embed_portrait(group, process.images.open(image))

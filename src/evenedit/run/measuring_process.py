"""A measuring process. It imports nothing but the measuring code and plug-ins, so that it starts fast."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import cv2

from evenedit.core import plugins
from evenedit.core.images import ImageFolder, open_images
from evenedit.core.processes import end_with_parent
from evenedit.instruments.identity import FaceEmbedding, Reference, embed_portrait
from evenedit.instruments.interface import Instrument, OpenedPicture, Pair, PairContext, reference_of
from evenedit.instruments.measure import examine, measure
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.reading import InstrumentSpec, PairReading, read_pair


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done with one pair."""

    pair: Pair
    shared: bool
    """Whether the measurement that the built-in instruments share is made."""
    raters: tuple[str, ...] = ()
    """The instruments that read the pictures."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one pair; no numbers where measuring broke down or was not asked for."""

    request_id: str
    editor: str
    numbers: Mapping[str, Any] | None
    reasons: Mapping[str, str]
    read: Mapping[str, PairReading | str] = field(default_factory=dict)
    """By instrument, what it read of the pictures, or its error."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What is measured of a pair beside skin and change."""

    identity: bool
    age: bool = False
    gender: bool = False


@dataclass(frozen=True, slots=True)
class PixelInstrument:
    """An instrument that reads pictures: a Python object, or what it is built from in the process."""

    spec: InstrumentSpec
    kind: str
    settings: Mapping[str, Any]
    instance: Instrument | None = None


@dataclass(slots=True)
class _Process:
    images: ImageFolder
    reads: Reads
    known: Reference | None
    instruments: Mapping[str, PixelInstrument]
    built: dict[str, Instrument] = field(default_factory=dict)

    def instrument(self, ident: str) -> Instrument:
        """Return an instrument, built when it is first needed."""
        if ident not in self.built:
            one = self.instruments[ident]
            self.built[ident] = one.instance or plugins.build("instruments", one.kind, one.settings)
        return self.built[ident]


_processes: list[_Process] = []


def init_worker(setup: Callable[[], None]) -> None:
    """Initialise a worker: ignore SIGINT, use one thread, exit with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    end_with_parent()
    setup()


def begin(images: str, reads: Reads, instruments: Mapping[str, PixelInstrument], known: str) -> None:
    """Set the image folder, the instruments, and the distances between people if faces are compared."""
    reference = Reference.from_json(known) if known else None
    _processes[:] = [_Process(open_images(images), reads, reference, instruments)]


def measure_pairs(tasks: Sequence[Task]) -> list[Taken]:
    """Measure the edits of one source, which is analysed once."""
    (process,) = _processes
    source = OpenedPicture(process.images.open(tasks[0].pair.source)) if tasks else None
    known: dict[tuple[Any, ...], Measurement] = {}
    return [] if source is None else [_measure_pair(process, source, task, known) for task in tasks]


def _measure_pair(
    process: _Process, source: OpenedPicture, task: Task, known: dict[tuple[Any, ...], Measurement]
) -> Taken:
    pair = task.pair
    edited = process.images.open(pair.edited)
    settings = {**asdict(process.reads), "reference": process.known, "group": pair.group}
    key = (pair.group, edited.size, hashlib.sha256(edited.tobytes()).digest())

    def shared() -> Measurement:
        if key not in known:  # one source's edits may show the same
            known[key] = measure(source, edited, **settings)
        return known[key]

    numbers: dict[str, Any] | None = None
    reasons: Mapping[str, str] = {}
    if task.shared:
        try:
            numbers = shared().to_json()
            reasons = numbers.pop("reasons")
            del numbers["notes"]
        except Exception as error:
            reasons = {"failed": _words(error)}
    read: dict[str, PairReading | str] = {}
    if task.raters:
        picture, reference = OpenedPicture(edited), reference_of(process.known, pair.group)
        look = partial(examine, source, edited, **settings)
        context = PairContext(pair.prompt, pair.condition, measure=shared, examine=look, reference=reference)
        for ident in task.raters:
            try:
                spec = process.instruments[ident].spec
                read[ident] = read_pair(process.instrument(ident), spec, source, picture, context)
            except Exception as error:
                read[ident] = _words(error)
    return Taken(pair.request_id, pair.editor, numbers, reasons, read)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def embed_reference_face(person: tuple[str, str]) -> FaceEmbedding | None:
    """Return the face embedding of one of the study's people: a group and a picture."""
    (process,) = _processes
    group, image = person
    return embed_portrait(group, process.images.open(image))

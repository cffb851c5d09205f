"""The measuring stage: every pair once, in processes of their own; instruments read what was measured."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from typing import Any

import cv2

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder, open_images
from evenedit.core.interfaces import Reply
from evenedit.core.processes import WorkerContext
from evenedit.core.records import Request, Status
from evenedit.instruments import Measurement, measure
from evenedit.instruments.identity import FaceEmbedding, Reference, available, embed_portrait, reference, reference_key
from evenedit.ratings.instruments import InstrumentRater, Instruments, Pair
from evenedit.run.executors.threads import in_pool
from evenedit.storage.store import Answered, Store

FEW = 12
"""Up to so many pairs are measured here: processes would take longer to start."""

Collect = Callable[[str, int, int, Iterator[list[Any]], Callable[[list[Any]], None]], None]
"""How the study commits what comes back: title, total, done before, batches, save."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one pair; no numbers where measuring broke down."""

    request_id: str
    editor: str
    numbers: Mapping[str, Any] | None
    reasons: Mapping[str, str]


class MeasuringStage:
    """Measures every pair once, and has every instrument read what was measured."""

    def __init__(self, file: StudyFile, store: Store, instruments: Instruments) -> None:
        self.store, self.instruments = store, instruments
        self.processes = file.sections.executor.processes

    def take(self, requests: Sequence[Request], run_id: int, collect: Collect) -> None:
        """Measure what is not measured yet, then have every instrument read what it has not read."""
        if not self.instruments.raters:
            return
        pairs = self.instruments.pairs(requests, self.store.edits())
        known = self.store.measured(self.instruments.version)
        left = [pair for pair in pairs if pair.request_id not in known]
        if left:
            workers = min(self.processes or os.cpu_count() or 1, len(left))
            process = partial(_begin, self.store.images_url, self.instruments.identity)
            try:
                text = self._reference(workers, process, collect)
                pool = _pool(len(left), workers, partial(process, text))
                batches = in_pool(pool, left, _take, workers)
                collect("measure", len(pairs), len(pairs) - len(left), batches, partial(self._save, run_id=run_id))
            except BrokenProcessPool:
                raise EvenEditError(
                    "a measuring process died (killed, or out of memory); run again to go on from here"
                ) from None
        self._read(pairs, run_id)

    def _read(self, pairs: Sequence[Pair], run_id: int) -> None:
        found: dict[str, Measurement] | None = None
        for rater in self.instruments.raters:
            wanted = {pair.request_id for pair in pairs if pair.editor in rater.editors}
            states = self.store.answered(rater.id, rater.revision)
            answered = {ident for ident, state in states.items() if state is not Status.FAILED}
            if wanted <= answered:
                continue
            found = self.instruments.measurements() if found is None else found
            new = [ident for ident in found if ident in wanted and ident not in answered]
            self.store.save_answers([_answered(rater, ident, found[ident]) for ident in new], run_id)

    def _save(self, taken: list[Taken], run_id: int) -> None:
        good = {one.request_id: (one.numbers, one.reasons) for one in taken if one.numbers is not None}
        self.store.save_measurements(good, self.instruments.version, run_id)
        broken = [one for one in taken if one.numbers is None]
        self.store.save_answers(
            [
                Answered(one.request_id, g.id, g.revision, g.kind, Reply(Status.FAILED, reason=one.reasons["failed"]))
                for one in broken
                for g in self.instruments.raters
                if one.editor in g.editors
            ],
            run_id,
        )

    def _reference(self, workers: int, process: Callable[[str], None], collect: Collect) -> str:
        """Distances among the study's own people, computed once and kept; empty where faces are not compared."""
        if not (self.instruments.identity and available()):
            return ""
        key = f"identity.{reference_key(self.instruments.people)}"
        text = self.store.fact(key)
        if text is None:
            sitters: list[FaceEmbedding | None] = []
            pool = _pool(len(self.instruments.people), workers, partial(process, ""))
            batches = in_pool(pool, self.instruments.people, _sit_for, workers)
            collect("compare the portraits", len(self.instruments.people), 0, batches, sitters.extend)
            text = reference(sitters).to_json()
            self.store.set_fact(key, text)
        return text


def _answered(rater: InstrumentRater, ident: str, found: Measurement) -> Answered:
    """An instrument's reply: scored, where it measured at all, even if the rubric has no answer for what it saw."""
    value, reason = rater.instrument.answer(found), rater.instrument.reason(found)
    unread = value is None and reason in found.reasons.values()
    reply = Reply(Status.UNPARSEABLE if unread else Status.SCORED, {rater.instrument.question: value}, reason=reason)
    return Answered(ident, rater.id, rater.revision, rater.kind, reply)


# -- in a measuring process ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Process:
    images: ImageFolder
    identity: bool
    known: Reference | None


_processes: list[_Process] = []


def _pool(items: int, workers: int, sit_down: Callable[[], None]) -> Executor:
    if items <= FEW:
        return ThreadPoolExecutor(1, thread_name_prefix="evenedit", initializer=sit_down)
    spawn = WorkerContext()
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_alone, initargs=(sit_down,))


def _alone(sit_down: Callable[[], None]) -> None:
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


def _begin(images: str, identity: bool, known: str) -> None:
    _processes[:] = [_Process(open_images(images), identity, Reference.from_json(known) if known else None)]


def _take(pair: Pair) -> Taken:
    (process,) = _processes
    source, edited = process.images.open(pair.source), process.images.open(pair.edited)
    try:
        found = measure(source, edited, identity=process.identity, reference=process.known, group=pair.group)
    except Exception as error:
        return Taken(pair.request_id, pair.editor, None, {"failed": f"{type(error).__name__}: {error}"})
    numbers = found.to_json()
    reasons = numbers.pop("reasons")
    del numbers["notes"]
    return Taken(pair.request_id, pair.editor, numbers, reasons)


def _sit_for(person: tuple[str, str]) -> FaceEmbedding | None:
    (process,) = _processes
    group, image = person
    return embed_portrait(group, process.images.open(image))

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
from multiprocessing import get_context, parent_process
from typing import Any

import cv2
import numpy as np

from evenedit.config.study_file import Study
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import ImageFolder, open_images
from evenedit.core.interfaces import Reply
from evenedit.core.records import Edit, Experiment, Kind, Outcome, Request, Source, Status
from evenedit.instruments import VERSION, Instrument, Measurement, measure
from evenedit.instruments.identity import EMBEDDING, Reference, Sitter, available, reference, reference_key, sit
from evenedit.ratings.table import Reading
from evenedit.run.executors.threads import in_pool
from evenedit.storage.store import Answered, Store

MEASURED = (Experiment.DIAGNOSIS, Experiment.MITIGATION)
"""Experiments whose outputs show the one person of their source; of two portraits made one there is no pair."""
GROUP = "race"
"""The label whose groups identity is read against: embeddings tell people of some apart less well than others."""
FEW = 12
"""Up to so many pairs are measured here: processes would take longer to start."""

Collect = Callable[[str, int, int, Iterator[list[Any]], Callable[[list[Any]], None]], None]
"""How the pipeline commits what comes back: title, total, done before, batches, save."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One instrument of a study."""

    id: str
    revision: str
    """Names the instrument, its settings and the version of the measurement: a change makes new ratings."""
    instrument: Instrument
    editors: frozenset[str]
    """Whose outputs it measures."""
    kind: Kind = Kind.INSTRUMENT


@dataclass(frozen=True, slots=True)
class Pair:
    """One thing to measure, as a process elsewhere needs it."""

    request_id: str
    source: str
    edited: str
    """Hashes of both pictures."""
    group: str
    editor: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one pair; no numbers where measuring broke down."""

    request_id: str
    editor: str
    numbers: Mapping[str, Any] | None
    reasons: Mapping[str, str]


class Measurements:
    """A study's instruments and what they read."""

    def __init__(self, study: Study, store: Store, sources: Mapping[str, Source]) -> None:
        self.study, self.store, self.sources = study, store, sources
        sections = study.file.instruments
        made: list[Instrument] = [plugins.build("instruments", s.kind, s.settings) for s in sections]
        self.identity = any(instrument.identity for instrument in made)
        self.people = [(s.attributes.get(GROUP, ""), s.image) for s in sources.values()]
        able = self.identity and available()
        self.version = digest([VERSION, self.identity, EMBEDDING if able else "", reference_key(self.people)])[:12]
        everybody = [editor.id for editor in study.file.editors]
        self.gauges = [
            Gauge(
                section.id,
                self._revision(section.kind, section.settings),
                instrument,
                frozenset(everybody if section.editors is None else section.editors),
            )
            for section, instrument in zip(sections, made, strict=True)
        ]

    def _revision(self, kind: str, settings: Mapping[str, Any]) -> str:
        return digest([kind, plugins.identity("instruments", kind, settings), self.version])[:8]

    def pairs(self, requests: Sequence[Request], edits: Mapping[str, Edit]) -> list[Pair]:
        """Every edit of one portrait that came back with a picture and that some instrument is to measure."""
        editors = frozenset[str]().union(*(gauge.editors for gauge in self.gauges))
        found = []
        for request in requests:
            edit = edits.get(request.id)
            if edit is None or edit.outcome is not Outcome.EDITED or edit.image is None:
                continue
            if request.experiment in MEASURED and request.editor in editors:
                source = self.sources[request.source_ids[0]]
                group = source.attributes.get(GROUP, "")
                found.append(Pair(request.id, source.image, edit.image, group, request.editor))
        return found

    def take(self, requests: Sequence[Request], run_id: int, collect: Collect) -> None:
        """Measure what is not measured yet, then have every instrument read what it has not read."""
        if not self.gauges:
            return
        pairs = self.pairs(requests, self.store.edits())
        known = self.store.measured(self.version)
        left = [pair for pair in pairs if pair.request_id not in known]
        if left:
            workers = min(self.study.file.executor.processes or os.cpu_count() or 1, len(left))
            desk = partial(_sit_down, self.store.images_url, self.identity)
            try:
                text = self._reference(workers, desk, collect)
                pool = _pool(len(left), workers, partial(desk, text))
                batches = in_pool(pool, left, _take, workers)
                collect("measure", len(pairs), len(pairs) - len(left), batches, partial(self._save, run_id=run_id))
            except BrokenProcessPool:
                raise EvenEditError(
                    "a measuring process died (killed, or out of memory); run again to go on from here"
                ) from None
        self._read(pairs, run_id)

    def readings(self, rows: Mapping[str, int]) -> tuple[Reading, ...]:
        """What the instruments show, for the table's rows; readings not asked for are missing without a reason."""
        found = {ident: value for ident, value in self._measurements().items() if ident in rows}
        made: list[Reading] = []
        for gauge in self.gauges:
            asked = self.store.answered(gauge.id, gauge.revision)
            shown = {ident: gauge.instrument.readings(one) for ident, one in found.items() if ident in asked}
            for name in dict.fromkeys(name for one in shown.values() for name in one):
                values = np.full(len(rows), np.nan)
                reasons = [""] * len(rows)
                for ident, one in shown.items():
                    value = one[name]
                    if value is None:
                        reasons[rows[ident]] = gauge.instrument.missing(found[ident], name)
                    else:
                        values[rows[ident]] = value
                made.append(Reading(gauge.id, name, values, tuple(reasons), gauge.instrument.notes.get(name, "")))
        return tuple(made)

    def _measurements(self) -> dict[str, Measurement]:
        stored = self.store.measurements(self.version)
        return {
            ident: Measurement(**numbers, reasons=reasons, notes=()) for ident, (numbers, reasons) in stored.items()
        }

    def _read(self, pairs: Sequence[Pair], run_id: int) -> None:
        found: dict[str, Measurement] | None = None
        for gauge in self.gauges:
            wanted = {pair.request_id for pair in pairs if pair.editor in gauge.editors}
            states = self.store.answered(gauge.id, gauge.revision)
            answered = {ident for ident, state in states.items() if state is not Status.FAILED}
            if wanted <= answered:
                continue
            found = self._measurements() if found is None else found
            new = [ident for ident in found if ident in wanted and ident not in answered]
            self.store.save_answers([_answered(gauge, ident, found[ident]) for ident in new], run_id)

    def _save(self, taken: list[Taken], run_id: int) -> None:
        good = {one.request_id: (one.numbers, one.reasons) for one in taken if one.numbers is not None}
        self.store.save_measurements(good, self.version, run_id)
        broken = [one for one in taken if one.numbers is None]
        self.store.save_answers(
            [
                Answered(one.request_id, g.id, g.revision, g.kind, Reply(Status.FAILED, reason=one.reasons["failed"]))
                for one in broken
                for g in self.gauges
                if one.editor in g.editors
            ],
            run_id,
        )

    def _reference(self, workers: int, desk: Callable[[str], None], collect: Collect) -> str:
        """Distances among the study's own people, computed once and kept; empty where faces are not compared."""
        if not (self.identity and available()):
            return ""
        key = f"identity.{reference_key(self.people)}"
        text = self.store.fact(key)
        if text is None:
            sitters: list[Sitter | None] = []
            pool = _pool(len(self.people), workers, partial(desk, ""))
            batches = in_pool(pool, self.people, _sit_for, workers)
            collect("compare the portraits", len(self.people), 0, batches, sitters.extend)
            text = reference(sitters).to_json()
            self.store.set_fact(key, text)
        return text


def _answered(gauge: Gauge, ident: str, found: Measurement) -> Answered:
    """An instrument's reply: scored, where it measured at all, even if the rubric has no answer for what it saw."""
    value, reason = gauge.instrument.answer(found), gauge.instrument.reason(found)
    unread = value is None and reason in found.reasons.values()
    reply = Reply(Status.UNPARSEABLE if unread else Status.SCORED, {gauge.instrument.question: value}, reason=reason)
    return Answered(ident, gauge.id, gauge.revision, gauge.kind, reply)


# -- in a measuring process ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Desk:
    images: ImageFolder
    identity: bool
    known: Reference | None


_desks: list[_Desk] = []


def _pool(items: int, workers: int, sit_down: Callable[[], None]) -> Executor:
    if items <= FEW:
        return ThreadPoolExecutor(1, thread_name_prefix="evenedit", initializer=sit_down)
    spawn = get_context("spawn")  # a fork of a process with threads can hang
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


def _sit_down(images: str, identity: bool, known: str) -> None:
    _desks[:] = [_Desk(open_images(images), identity, Reference.from_json(known) if known else None)]


def _take(pair: Pair) -> Taken:
    (desk,) = _desks
    source, edited = desk.images.open(pair.source), desk.images.open(pair.edited)
    try:
        found = measure(source, edited, identity=desk.identity, reference=desk.known, group=pair.group)
    except Exception as error:
        return Taken(pair.request_id, pair.editor, None, {"failed": f"{type(error).__name__}: {error}"})
    numbers = found.to_json()
    reasons = numbers.pop("reasons")
    del numbers["notes"]
    return Taken(pair.request_id, pair.editor, numbers, reasons)


def _sit_for(person: tuple[str, str]) -> Sitter | None:
    (desk,) = _desks
    group, image = person
    return sit(group, desk.images.open(image))

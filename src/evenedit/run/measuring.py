"""The measuring stage: each pair is measured once, in separate processes, and read by every instrument."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import IncompleteError
from evenedit.core.interfaces import Reply
from evenedit.core.processes import WorkerContext
from evenedit.core.python_objects import KIND
from evenedit.core.records import Request, Status
from evenedit.instruments import Measurement
from evenedit.instruments.identity import FaceEmbedding, available, reference, reference_key
from evenedit.instruments.interface import Pair
from evenedit.ratings.instruments import InstrumentRater, Instruments
from evenedit.run.claims import MOST, Claims
from evenedit.run.collecting import Collect
from evenedit.run.executors.threads import in_pool
from evenedit.run.measuring_process import (
    PixelInstrument,
    Reads,
    Taken,
    Task,
    begin,
    embed_reference_face,
    init_worker,
    measure_pairs,
)
from evenedit.run.streak import FailureStreak, Stop
from evenedit.storage.leases import Leases, NoLeases
from evenedit.storage.store import Store, StoredReply

FEW = 12
"""Up to so many pairs are measured here: processes would take longer to start."""
BATCH = 8
"""At most so many pairs of one source are measured and stored together."""


class MeasuringStage:
    """Measures every pair once, and has every instrument read the measurement or the pictures."""

    def __init__(self, file: StudyFile, store: Store, instruments: Instruments) -> None:
        self.store, self.instruments = store, instruments
        self.processes = file.sections.executor.processes
        self.shared = [r for r in instruments.raters if r.from_measurement]
        self.plugged = {r.id: r for r in instruments.raters if r.instrument is not None and not r.from_measurement}
        self.leases: Leases = NoLeases()
        """Which pairs are this run's, where several share the study."""
        most = file.sections.executor.max_failures
        self.streaks = {ident: FailureStreak(f"instrument '{ident}'", most) for ident in self.plugged}

    @property
    def stops(self) -> dict[str, Stop]:
        """The instruments that were stopped because they kept failing."""
        return {ident: streak.stop for ident, streak in self.streaks.items() if streak.stop is not None}

    def run(self, requests: Sequence[Request], run_id: int, collect: Collect) -> None:
        """Measure the pairs that are not measured yet, then let the instruments read new measurements.

        Python objects cannot be sent to another process: they read the pictures afterwards, in one thread of this one.
        """
        if not self.instruments.raters:
            return
        pairs = self.instruments.pairs(requests, self.store.edits())
        self.instruments.keep_records()
        text: str | None = None
        for in_parent in (False, True):
            claims = Claims(self.leases, _key, partial(self._undone, in_parent=in_parent))
            tasks = sorted(self._tasks(pairs, in_parent=in_parent), key=_source)
            while tasks:
                workers = 1 if in_parent else min(self.processes or os.cpu_count() or 1, len(tasks))
                process = partial(begin, self.store.images_url, self._reads())
                save, done = partial(self._save, run_id=run_id), len(pairs) - len(tasks)
                try:
                    text = self._reference(workers, partial(process, {}), collect) if text is None else text
                    setup = partial(process, self._instruments(in_parent=in_parent), text)
                    pool = _pool(0 if in_parent else len(tasks), workers, setup)
                    batches = in_pool(pool, self._unstopped(_by_source(claims.these(tasks))), measure_pairs, workers)
                    collect("measure", len(pairs), done, self._count_failures(batches), save)
                except BrokenProcessPool:
                    raise IncompleteError(
                        "a measuring process died (killed, or out of memory); run again to resume"
                    ) from None
                tasks = claims.wait()
        with self.store.one_by_one("measure"):
            self._read(pairs, run_id)

    def _tasks(self, pairs: Sequence[Pair], *, in_parent: bool) -> list[Task]:
        """Return what is not done yet: with Python objects in this process, all else in others."""
        few = [pair.request_id for pair in pairs] if len(pairs) <= MOST else None
        known = self.store.measured(self.instruments.version, few)
        sharing = frozenset[str]().union(*(rater.editors for rater in self.shared))
        raters = [r for r in self.plugged.values() if (r.section.kind == KIND) == in_parent]
        answered = {rater.id: self._answered(rater, few) for rater in raters}
        tasks = [
            Task(
                pair,
                not in_parent and pair.editor in sharing and pair.request_id not in known,
                tuple(r.id for r in raters if pair.editor in r.editors and pair.request_id not in answered[r.id]),
            )
            for pair in pairs
        ]
        return [task for task in tasks if task.shared or task.raters]

    def _undone(self, tasks: Sequence[Task], *, in_parent: bool) -> list[Task]:
        """Return what no other run has done by now."""
        return self._tasks([task.pair for task in tasks], in_parent=in_parent)

    def _instruments(self, *, in_parent: bool) -> Mapping[str, PixelInstrument]:
        return {
            ident: PixelInstrument(r.spec, r.section.kind, r.section.settings, r.instrument if in_parent else None)
            for ident, r in self.plugged.items()
            if (r.section.kind == KIND) == in_parent
        }

    def _answered(self, rater: InstrumentRater, only: Sequence[str] | None = None) -> set[str]:
        """Return the edits, or those of some, that an instrument has read; where it failed it reads again."""
        states = self.store.answered(rater.id, rater.revision, only)
        return {ident for ident, state in states.items() if state is not Status.FAILED}

    def _reads(self) -> Reads:
        return Reads(self.instruments.identity, self.instruments.age, self.instruments.gender)

    def _read(self, pairs: Sequence[Pair], run_id: int) -> None:
        measurements: dict[str, Measurement] | None = None
        for rater in self.shared:
            answered = self._answered(rater)
            wanted = [p for p in pairs if p.editor in rater.editors and p.request_id not in answered]
            if not wanted:
                continue
            measurements = self.instruments.measurements() if measurements is None else measurements
            read = [
                (p.request_id, rater.read_stored(p, measurements[p.request_id]).reply)
                for p in wanted
                if p.request_id in measurements
            ]
            self.store.save_answers([_stored(ident, rater, reply) for ident, reply in read], run_id)

    def _save(self, taken: list[Taken], run_id: int) -> None:
        good = {one.request_id: (one.numbers, one.reasons) for one in taken if one.numbers is not None}
        self.store.save_measurements(good, self.instruments.version, run_id)
        replies = [
            _stored(one.request_id, rater, Reply(Status.FAILED, reason=one.reasons["failed"]))
            for one in taken
            if "failed" in one.reasons and one.numbers is None
            for rater in self.shared
            if one.editor in rater.editors
        ]
        for rater in self.plugged.values():
            read = {one.request_id: one.read[rater.id] for one in taken if rater.id in one.read}
            numbers = {ident: (one.numbers, one.reasons) for ident, one in read.items() if not isinstance(one, str)}
            self.store.save_measurements(numbers, rater.readings_version, run_id)
            replies += [
                _stored(ident, rater, Reply(Status.FAILED, reason=one) if isinstance(one, str) else one.reply)
                for ident, one in read.items()
            ]
        self.store.save_answers(replies, run_id)
        self.leases.release(_lease(one.request_id) for one in taken)

    def _count_failures(self, batches: Iterator[list[list[Taken]]]) -> Iterator[list[Taken]]:
        """Yield what was taken, and note which instruments fail."""
        for batch in batches:
            taken = list(chain(*batch))
            for ident, read in (item for one in taken for item in one.read.items()):
                self.streaks[ident].note("crash" if isinstance(read, str) else "", str(read))
            yield taken

    def _unstopped(self, batches: Iterable[list[Task]]) -> Iterator[list[Task]]:
        """Yield the tasks without the instruments that were stopped."""
        for batch in batches:
            stops = self.stops
            tasks = [replace(task, raters=tuple(r for r in task.raters if r not in stops)) for task in batch]
            if left := [task for task in tasks if task.shared or task.raters]:
                yield left

    def _reference(self, workers: int, process: Callable[[str], None], collect: Collect) -> str:
        """Return the distances between the study's people, computed once; empty if faces are not compared."""
        if not (self.instruments.identity and available()):
            return ""
        key = f"identity.{reference_key(self.instruments.people)}"
        with self.store.one_by_one("measure"):  # who waits finds it computed
            return self.store.fact(key) or self._compute_reference(key, workers, process, collect)

    def _compute_reference(self, key: str, workers: int, process: Callable[[str], None], collect: Collect) -> str:
        sitters: list[FaceEmbedding | None] = []
        pool = _pool(len(self.instruments.people), workers, partial(process, ""))
        batches = in_pool(pool, self.instruments.people, embed_reference_face, workers)
        collect("compare the portraits", len(self.instruments.people), 0, batches, sitters.extend)
        text = reference(sitters).to_json()
        self.store.set_fact(key, text)
        return text


def _stored(ident: str, rater: InstrumentRater, reply: Reply) -> StoredReply:
    return StoredReply(ident, rater.id, rater.revision, rater.kind, reply)


def _by_source(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Group tasks that follow each other and have one source, in small batches."""
    for _, group in groupby(tasks, _source):
        while batch := list(islice(group, BATCH)):
            yield batch


def _source(task: Task) -> str:
    return task.pair.source


def _lease(request_id: str) -> str:
    """Return the name of a measurement's lease."""
    return f"measure {request_id}"


def _key(task: Task) -> str:
    return _lease(task.pair.request_id)


def _pool(items: int, workers: int, setup: Callable[[], None]) -> Executor:
    if items <= FEW:
        return ThreadPoolExecutor(1, thread_name_prefix="evenedit", initializer=setup)
    return ProcessPoolExecutor(workers, mp_context=WorkerContext(), initializer=init_worker, initargs=(setup,))

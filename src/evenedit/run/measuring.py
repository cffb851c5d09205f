"""The measuring stage: each pair is measured once, in separate processes; instruments read the measurements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import IncompleteError
from evenedit.core.interfaces import Reply
from evenedit.core.processes import WorkerContext
from evenedit.core.records import Request, Status
from evenedit.instruments import AgeInstrument, Measurement
from evenedit.instruments.identity import FaceEmbedding, available, reference, reference_key
from evenedit.instruments.measure import Pair
from evenedit.ratings.instruments import InstrumentRater, Instruments
from evenedit.run.collecting import Collect
from evenedit.run.executors.threads import in_pool
from evenedit.run.measuring_process import Reads, Taken, begin, embed_reference_face, init_worker, measure_pairs
from evenedit.storage.store import Store, StoredReply

FEW = 12
"""Up to so many pairs are measured here: processes would take longer to start."""
BATCH = 8
"""At most so many pairs of one source are measured and stored together."""


class MeasuringStage:
    """Measures every pair once, and has every instrument read what was measured."""

    def __init__(self, file: StudyFile, store: Store, instruments: Instruments) -> None:
        self.store, self.instruments = store, instruments
        self.processes = file.sections.executor.processes

    def run(self, requests: Sequence[Request], run_id: int, collect: Collect) -> None:
        """Measure the pairs that are not measured yet, then let the instruments read new measurements."""
        if not self.instruments.raters:
            return
        pairs = self.instruments.pairs(requests, self.store.edits())
        known = self.store.measured(self.instruments.version)
        left = [pair for pair in pairs if pair.request_id not in known]
        if left:
            workers = min(self.processes or os.cpu_count() or 1, len(left))
            process = partial(begin, self.store.images_url, self._reads())
            try:
                text = self._reference(workers, process, collect)
                pool = _pool(len(left), workers, partial(process, text))
                batches = _flat(in_pool(pool, _by_source(left), measure_pairs, workers))
                collect("measure", len(pairs), len(pairs) - len(left), batches, partial(self._save, run_id=run_id))
            except BrokenProcessPool:
                raise IncompleteError(
                    "a measuring process died (killed, or out of memory); run again to resume"
                ) from None
        self._read(pairs, run_id)

    def _reads(self) -> Reads:
        return Reads(self.instruments.identity, self.instruments.age, self.instruments.gender)

    def _read(self, pairs: Sequence[Pair], run_id: int) -> None:
        measurements: dict[str, Measurement] | None = None
        for rater in self.instruments.raters:
            wanted = {pair.request_id: pair.target_years for pair in pairs if pair.editor in rater.editors}
            states = self.store.answered(rater.id, rater.revision)
            answered = {ident for ident, state in states.items() if state is not Status.FAILED}
            if wanted.keys() <= answered:
                continue
            measurements = self.instruments.measurements() if measurements is None else measurements
            new = [ident for ident in measurements if ident in wanted and ident not in answered]
            self.store.save_answers(
                [_answered(rater, ident, measurements[ident], wanted[ident]) for ident in new], run_id
            )

    def _save(self, taken: list[Taken], run_id: int) -> None:
        good = {one.request_id: (one.numbers, one.reasons) for one in taken if one.numbers is not None}
        self.store.save_measurements(good, self.instruments.version, run_id)
        broken = [one for one in taken if one.numbers is None]
        self.store.save_answers(
            [
                StoredReply(
                    one.request_id, g.id, g.revision, g.kind, Reply(Status.FAILED, reason=one.reasons["failed"])
                )
                for one in broken
                for g in self.instruments.raters
                if one.editor in g.editors
            ],
            run_id,
        )

    def _reference(self, workers: int, process: Callable[[str], None], collect: Collect) -> str:
        """Return the distances between the study's people, computed once; empty if faces are not compared."""
        if not (self.instruments.identity and available()):
            return ""
        key = f"identity.{reference_key(self.instruments.people)}"
        text = self.store.fact(key)
        if text is None:
            sitters: list[FaceEmbedding | None] = []
            pool = _pool(len(self.instruments.people), workers, partial(process, ""))
            batches = in_pool(pool, self.instruments.people, embed_reference_face, workers)
            collect("compare the portraits", len(self.instruments.people), 0, batches, sitters.extend)
            text = reference(sitters).to_json()
            self.store.set_fact(key, text)
        return text


def _answered(rater: InstrumentRater, ident: str, measurement: Measurement, target: int | None) -> StoredReply:
    """Return an instrument's reply: scored if it measured anything, even if the rubric has no answer for it."""
    question, value = rater.instrument.question, rater.instrument.answer(measurement)
    if target and isinstance(rater.instrument, AgeInstrument):
        question, value = rater.instrument.targeted, rater.instrument.answer_against(measurement, target)
    reason = rater.instrument.reason(measurement)
    unread = value is None and reason in measurement.reasons.values()
    reply = Reply(Status.UNPARSEABLE if unread else Status.SCORED, {question: value}, reason=reason)
    return StoredReply(ident, rater.id, rater.revision, rater.kind, reply)


def _flat(batches: Iterator[list[list[Taken]]]) -> Iterator[list[Taken]]:
    for batch in batches:
        yield list(chain(*batch))


def _by_source(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Group pairs by their source, in small batches."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, []).append(pair)
    return [group[start : start + BATCH] for group in groups.values() for start in range(0, len(group), BATCH)]


def _pool(items: int, workers: int, setup: Callable[[], None]) -> Executor:
    if items <= FEW:
        return ThreadPoolExecutor(1, thread_name_prefix="evenedit", initializer=setup)
    return ProcessPoolExecutor(workers, mp_context=WorkerContext(), initializer=init_worker, initargs=(setup,))

"""The editing stage: the edits that are not stored yet, one editor after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import Failure
from evenedit.core.log import log
from evenedit.core.python_objects import KIND
from evenedit.core.records import NULL_PAIR_EDITOR, WITHOUT_PICTURE, Edit, Outcome, Request, Source
from evenedit.editors.python import PythonEditorAdapter
from evenedit.judges.calling import BACKOFF
from evenedit.providers.budget import Budget, Reservation
from evenedit.run import executors
from evenedit.run.claims import Claims
from evenedit.run.collecting import Collect
from evenedit.run.executors.queue import EditQueue
from evenedit.run.null_pairs import make_null_pair
from evenedit.run.streak import FailureStreak, Stop
from evenedit.run.submissions import SubmissionLedger
from evenedit.run.worker import EditTask, WorkerSetup
from evenedit.storage.leases import Leases, NoLeases
from evenedit.storage.store import Store

CHARGED = frozenset({Outcome.EDITED, *WITHOUT_PICTURE})
"""Outcomes that a service may charge for …"""
CHARGED_FAILURES = frozenset({Failure.TIMEOUT, Failure.STORAGE})
"""… and failures: an edit that ran out of time may have been made, and one that could not be stored was."""


class EditingStage:
    """Makes edits. An editor that keeps failing or cannot be loaded is stopped; the others continue."""

    def __init__(
        self, file: StudyFile, store: Store, python_editors: Mapping[str, PythonEditorAdapter] | None, budget: Budget
    ) -> None:
        self.file, self.store, self.python_editors, self.budget = file, store, python_editors, budget
        self.pool: executors.Processes | None = None
        """During a run, the processes that make edits without a GPU, one editor's after the other's."""
        self.stops: dict[str, Stop] = {}
        """Editors that were stopped, by id."""
        self.saved = 0
        """Edits that this run has stored."""
        self._streaks: dict[str, FailureStreak] = {}
        self._reported: set[str] = set()
        """Reasons of failed batches that were logged."""
        self._wordy: Counter[str] = Counter()
        """How often each edit was answered in words in this run."""
        self.leases: Leases = NoLeases()
        """Which edits are this run's, where several share the study."""

    @property
    def editors(self) -> list[EditorSection]:
        """The editors of this run."""
        return [e for e in self.file.sections.editors if self.python_editors is None or e.id in self.python_editors]

    @contextmanager
    def worker_pool(self) -> Iterator[None]:
        """Keep one worker pool open for all editors of the run."""
        self.pool = executors.Processes()
        try:
            yield
        finally:
            self.pool.shutdown()
            self.pool = None

    def prestart_workers(self) -> None:
        """Start processes in advance if editors will need them."""
        section = self.file.sections.executor
        plain = [e for e in self.editors if e.plugin != KIND and not plugins.is_remote("editors", e.plugin)]
        if self.pool and section.kind != "ray" and any(not plugins.needs_gpu(e.plugin) for e in plain):
            for _ in range(section.processes or 0):
                self.pool.start_worker()

    def run(
        self,
        requests: Sequence[Request],
        sources: Mapping[str, Source],
        run_id: int,
        collect: Collect,
        price: Callable[[EditorSection], float],
    ) -> None:
        """Make the edits that are not stored yet; retry failed ones.

        One editor after the other, so that only one model's weights are loaded at a time.
        """
        ended = self._ended()
        present = self.store.images.present(edit.image for edit in ended.values() if edit.image)
        done = {ident for ident, edit in ended.items() if edit.image is None or edit.image in present}
        tasks_of: dict[str, list[EditTask]] = {NULL_PAIR_EDITOR: []}
        for r in requests:
            tasks_of.setdefault(r.editor, []).append(EditTask(r, tuple(sources[s].image for s in r.source_ids)))
        for section in self.editors:
            tasks = tasks_of.get(section.id, [])
            known = self.store.run_of_edits(Outcome.FAILED)
            left = [t for t in tasks if t.request.id not in done and known.get(t.request.id) != run_id]
            claims = Claims(self.leases, _key, partial(self._undone, known))
            while left and section.id not in self.stops:
                ledger = self._ledger(section, price, run_id)
                queue = self._queue(section, left, claims, price, ledger)
                batches = executors.edit(
                    self.file.sections.executor,
                    self._setup(section, tasks),
                    queue,
                    self.pool,
                    (self.python_editors or {}).get(section.id),
                    ledger.of if ledger else None,
                )
                save = partial(self._save, run_id=run_id, submitted=ledger is not None)
                with ledger or nullcontext():
                    collect(f"edit {section.id}", len(tasks), len(tasks) - len(left), batches, save)
                if queue.streak.stop is not None:
                    self.stops[section.id] = queue.streak.stop
                    log.info(f"{queue.streak.stop}")
                retried = [] if self.budget.spent else [task for task in left if self._is_asked_again(task)]
                left = claims.wait() + retried
        if done or self._ended():  # without any edit there is nothing to compare null pairs with
            self._make_null_pairs(tasks_of[NULL_PAIR_EDITOR], done, run_id, collect)

    def _ended(self) -> dict[str, Edit]:
        """Return the stored edits except failed ones."""
        return {ident: edit for ident, edit in self.store.edits().items() if edit.outcome is not Outcome.FAILED}

    def _make_null_pairs(self, tasks: Sequence[EditTask], done: Container[str], run_id: int, collect: Collect) -> None:
        """Make the null pairs that are not stored yet, in this process."""
        left = [task for task in tasks if task.request.id not in done]
        if left:
            batches = ([make_null_pair(task, self.store.images)] for task in left)
            collect("null pairs", len(tasks), len(tasks) - len(left), batches, partial(self._save, run_id=run_id))

    def _setup(self, section: EditorSection, tasks: Sequence[EditTask]) -> WorkerSetup:
        first = section.plugin != KIND and plugins.encodes_first(section.plugin)
        return WorkerSetup(
            section.plugin,
            self.file.located(section.settings),
            self.store.images_url,
            self.file.sections.executor.retries,
            BACKOFF,
            tuple(dict.fromkeys(task.request.instruction for task in tasks)) if first else (),
            section.gpus,
        )

    def _batch(self, section: EditorSection) -> int:
        """Return how many edits of an editor are made in one call."""
        editor = (self.python_editors or {}).get(section.id)
        if editor is not None or section.plugin == KIND:
            return editor.batch if editor is not None else 1
        return plugins.batch_of(section.plugin, section.settings)

    def _undone(self, known: Mapping[str, int], tasks: Sequence[EditTask]) -> list[EditTask]:
        """Return the edits that no other run has made, or tried since this run started, and those asked again."""
        ended = self.store.ends_of([task.request.id for task in tasks])
        return [
            task
            for task in tasks
            if (end := ended.get(task.request.id)) is None
            or (end[0] is Outcome.FAILED and end[1] == known.get(task.request.id))
            or self._is_asked_again(task)
        ]

    def _is_asked_again(self, task: EditTask) -> bool:
        """Return whether an edit that was answered in words is tried once more."""
        if not 0 < self._wordy[task.request.id] <= self.file.sections.executor.no_image_retries:
            return False
        end = self.store.ends_of([task.request.id]).get(task.request.id)
        return end is not None and end[0] is Outcome.NO_IMAGE

    def _queue(
        self,
        section: EditorSection,
        tasks: Sequence[EditTask],
        claims: Claims[EditTask],
        price: Callable[[EditorSection], float],
        ledger: SubmissionLedger | None,
    ) -> EditQueue:
        """Return the queue of edits; those of a remote service are limited by the budget."""
        most = self.file.sections.executor.max_failures
        streak = self._streaks.setdefault(section.id, FailureStreak(f"editor '{section.id}'", most))
        if section.plugin == KIND or not plugins.is_remote("editors", section.plugin):
            return EditQueue(tasks, streak, claim=claims.claim, batch=self._batch(section))
        each = price(section)
        begin = ledger.begin if ledger else partial(self._begin, each)
        settle = ledger.settle if ledger else partial(self._settle, each)
        return EditQueue(tasks, streak, begin, claims.claim, settle, self._batch(section))

    def _ledger(
        self, section: EditorSection, price: Callable[[EditorSection], float], run_id: int
    ) -> SubmissionLedger | None:
        """Return the record of what an editor submits to a service; None where it submits nothing."""
        if section.plugin == KIND or not plugins.submits(section.plugin):
            return None
        return SubmissionLedger(self.store, self.budget, price(section), section.plugin, run_id)

    def _begin(self, each: float, _task: EditTask) -> bool:
        return self.budget.reserve(each) is not None

    def _settle(self, each: float, edit: Edit) -> None:
        charged = edit.outcome in CHARGED or edit.detail.get("failure") in CHARGED_FAILURES
        self.budget.settle(Reservation(each), each if charged else 0.0)

    def _save(self, edits: list[Edit], run_id: int, *, submitted: bool = False) -> None:
        self.store.save_edits(edits, run_id=run_id, submitted=submitted)
        self.leases.release(f"edit {edit.request_id}" for edit in edits)
        for why in {
            str(edit.detail["batch_failed"]) for edit in edits if "batch_failed" in edit.detail
        } - self._reported:
            self._reported.add(why)
            log.info(f"a batch of edits failed ({why}); they were made one by one")
        self.saved += len(edits)
        self._wordy.update(edit.request_id for edit in edits if edit.outcome is Outcome.NO_IMAGE)


def _key(task: EditTask) -> str:
    """Return the name of an edit's lease."""
    return f"edit {task.request.id}"

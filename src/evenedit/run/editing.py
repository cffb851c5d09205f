"""The editing stage: every edit that is not there yet, one editor after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import Failure
from evenedit.core.given import KIND
from evenedit.core.log import log
from evenedit.core.records import Edit, Outcome, Request, Source
from evenedit.editors.python import GivenEditor
from evenedit.judges.asking import BACKOFF
from evenedit.providers.budget import Budget, Reservation
from evenedit.run import executors
from evenedit.run.collecting import Collect
from evenedit.run.executors.queue import Claim, EditQueue
from evenedit.run.streak import FailureStreak, Stop
from evenedit.run.worker import EditTask, WorkerSetup
from evenedit.storage.leases import Leases, Unshared
from evenedit.storage.store import Store

CHARGED = frozenset({Outcome.EDITED, Outcome.REFUSED})
"""Outcomes that a service may charge for …"""
CHARGED_FAILURES = frozenset({Failure.TIMEOUT, Failure.STORAGE})
"""… and failures: an edit that ran out of time may have been made, and one that could not be stored was."""


class EditingStage:
    """Makes edits. An editor that fails again and again, or cannot be loaded, is stopped; the others go on."""

    def __init__(self, file: StudyFile, store: Store, given: Mapping[str, GivenEditor] | None, budget: Budget) -> None:
        self.file, self.store, self.given, self.budget = file, store, given, budget
        self.staff: executors.Processes | None = None
        """During a run, the processes that make edits without a GPU, one editor's after the other's."""
        self.stops: dict[str, Stop] = {}
        """Editors that were stopped, by id."""
        self.made = 0
        """Edits that this run has stored."""
        self._told: set[str] = set()
        """Why batches failed, as far as it was said."""
        self.leases: Leases = Unshared()
        """Which edits are this run's, where several share the study."""

    @property
    def editors(self) -> list[EditorSection]:
        """The editors of this run."""
        return [e for e in self.file.sections.editors if self.given is None or e.id in self.given]

    @contextmanager
    def staffed(self) -> Iterator[None]:
        """Keep processes that were started for one editor until the end."""
        self.staff = executors.Processes()
        try:
            yield
        finally:
            self.staff.dismiss()
            self.staff = None

    def call_staff(self) -> None:
        """Have processes start while there is something else to do, if editors will need them."""
        section = self.file.sections.executor
        plain = [e for e in self.editors if e.plugin != KIND and not plugins.is_remote("editors", e.plugin)]
        if self.staff and section.kind != "ray" and any(not plugins.needs_gpu(e.plugin) for e in plain):
            for _ in range(section.processes or 0):
                self.staff.hire()

    def take(
        self,
        requests: Sequence[Request],
        sources: Mapping[str, Source],
        run_id: int,
        collect: Collect,
        price: Callable[[EditorSection], float],
    ) -> None:
        """Make every edit that is not there yet; failed ones are tried again.

        One editor after the other, so that only one model's weights are loaded at a time.
        """
        ended = {i: edit for i, edit in self.store.edits().items() if edit.outcome is not Outcome.FAILED}
        there = self.store.images.present(edit.image for edit in ended.values() if edit.image)
        done = {ident for ident, edit in ended.items() if edit.image is None or edit.image in there}
        for section in self.editors:
            tasks = [
                EditTask(r, tuple(sources[s].image for s in r.source_ids)) for r in requests if r.editor == section.id
            ]
            left = [t for t in tasks if t.request.id not in done]
            known = self.store.run_of_edits() if self.leases.shared else {}
            while left and section.id not in self.stops:
                queue = self._queue(section, left, known, price)
                batches = executors.edit(
                    self.file.sections.executor,
                    self._setup(section, tasks),
                    queue,
                    self.staff,
                    (self.given or {}).get(section.id),
                )
                save = partial(self._save, run_id=run_id)
                collect(f"edit {section.id}", len(tasks), len(tasks) - len(left), batches, save)
                if queue.streak.stop is not None:
                    self.stops[section.id] = queue.streak.stop
                    log.info(f"{queue.streak.stop}")
                left = self._come_back(queue.elsewhere, known)

    def _setup(self, section: EditorSection, tasks: Sequence[EditTask]) -> WorkerSetup:
        first = section.plugin != KIND and plugins.encodes_first(section.plugin)
        return WorkerSetup(
            section.plugin,
            self.file.located(section.settings),
            self.store.images_url,
            self.file.sections.executor.retries,
            BACKOFF,
            tuple(dict.fromkeys(task.request.instruction for task in tasks)) if first else (),
        )

    def _batch(self, section: EditorSection) -> int:
        """How many edits of an editor are made in one call."""
        given = (self.given or {}).get(section.id)
        if given is not None or section.plugin == KIND:
            return given.batch if given is not None else 1
        return plugins.batch_of(section.plugin, section.settings)

    def _come_back(self, elsewhere: Sequence[EditTask], known: Mapping[str, int]) -> list[EditTask]:
        """Wait for the edits that other runs make; return those that came back undone."""
        tasks = {_key(task): task for task in elsewhere}
        undone = lambda: {key for key, task in tasks.items() if not self._is_done(task, known)}  # noqa: E731
        return [tasks[key] for key in self.leases.wait(list(tasks), undone)]

    def _is_done(self, task: EditTask, known: Mapping[str, int]) -> bool:
        """Whether an edit was made, or tried in vain, by another run since this one looked."""
        found = self.store.edit_of(task.request.id)
        return found is not None and (found[0] is not Outcome.FAILED or found[1] != known.get(task.request.id))

    def _claim(self, known: Mapping[str, int], task: EditTask) -> Claim:
        if not self.leases.shared:
            return Claim.OURS
        if not self.leases.claim(_key(task)):
            return Claim.HELD
        if self._is_done(task, known):
            self.leases.release([_key(task)])
            return Claim.DONE
        return Claim.OURS

    def _queue(
        self,
        section: EditorSection,
        tasks: Sequence[EditTask],
        known: Mapping[str, int],
        price: Callable[[EditorSection], float],
    ) -> EditQueue:
        """The edits to make; those of somebody else's service as far as the budget allows."""
        streak = FailureStreak(f"editor '{section.id}'", self.file.sections.executor.max_failures)
        if section.plugin == KIND or not plugins.is_remote("editors", section.plugin):
            return EditQueue(tasks, streak, claim=partial(self._claim, known), batch=self._batch(section))
        each = price(section)
        settle = partial(self._settle, each)
        return EditQueue(
            tasks, streak, partial(self._begin, each), partial(self._claim, known), settle, self._batch(section)
        )

    def _begin(self, each: float) -> bool:
        return self.budget.reserve(each) is not None

    def _settle(self, each: float, edit: Edit) -> None:
        charged = edit.outcome in CHARGED or edit.detail.get("failure") in CHARGED_FAILURES
        self.budget.settle(Reservation(each), each if charged else 0.0)

    def _save(self, edits: list[Edit], run_id: int) -> None:
        self.store.save_edits(edits, run_id=run_id)
        self.leases.release(f"edit {edit.request_id}" for edit in edits)
        for why in {str(edit.detail["batch_failed"]) for edit in edits if "batch_failed" in edit.detail} - self._told:
            self._told.add(why)
            log.info(f"a batch of edits failed ({why}); they were made one by one")
        self.made += len(edits)


def _key(task: EditTask) -> str:
    """The name of an edit's lease."""
    return f"edit {task.request.id}"

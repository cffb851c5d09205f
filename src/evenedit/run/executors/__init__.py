"""Where edits run: threads or processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evenedit.core import plugins
from evenedit.core.errors import CannotLoad, EvenEditError
from evenedit.core.given import KIND
from evenedit.core.records import Edit
from evenedit.editors.python import GivenEditor
from evenedit.run.executors.pool import Limits, WorkerPool, work_off
from evenedit.run.executors.processes import Processes, visible_gpus
from evenedit.run.executors.queue import EditQueue
from evenedit.run.executors.threads import Lane, in_lanes, in_threads
from evenedit.run.worker import EditTask, Worker, WorkerSetup, failed, out_of_time

if TYPE_CHECKING:
    from evenedit.config.study_file import ExecutorSection

__all__ = [
    "MOST_CALLS",
    "EditQueue",
    "Lane",
    "Processes",
    "edit",
    "in_lanes",
    "in_threads",
    "limits_of",
    "runs_in_processes",
]

EDIT_SECONDS = 1800.0
"""Time limit of an edit made on this machine or cluster, where the study sets none."""
CALL_SECONDS = 3600.0
"""Time limit of an edit or a rating by somebody else's service: its client has time limits and retries of its own."""
MOST_CALLS = 100
"""Threads that wait for one service where the study names no number: its gate finds out how many it takes."""
LOADING = 8
"""Loading, and a worker's first edit, which may load weights, may take so many times as long where no limit is set."""


def edit(
    section: ExecutorSection,
    setup: WorkerSetup,
    queue: EditQueue,
    staff: Processes | None = None,
    given: GivenEditor | None = None,
) -> Iterator[list[Edit]]:
    """Make the edits where the study says, those of a given object in this process; yield them as they finish.

    Processes of `staff` are taken where no GPU is needed, and are left for the next editor.
    """
    remote = given is None and plugins.is_remote("editors", setup.editor)
    limits = limits_of(section, remote=remote)
    if given is not None or setup.editor == KIND:
        return _in_threads(Worker(setup, given), queue, given.threads if given else 1, limits, stops=True)
    if section.kind == "ray":
        from evenedit.run.executors.ray import RayActors

        actors = RayActors(setup, address=section.address, num_gpus=section.num_gpus, num_cpus=section.num_cpus)
        size = section.processes or section.workers
        return _dismissed(actors, work_off(actors, queue, size, section.retries, limits))
    gpus = visible_gpus() if plugins.needs_gpu(setup.editor) else []
    if remote or not (section.processes or gpus or runs_in_processes("editors", setup.editor)):
        return _in_threads(Worker(setup), queue, section.calls or MOST_CALLS if remote else section.workers, limits)
    processes = section.processes or len(gpus) or 1
    if staff is not None and not plugins.needs_gpu(setup.editor):
        staff.setup = setup
        return work_off(staff, queue, processes, section.retries, limits)
    own = Processes(setup, gpus)
    return _dismissed(own, work_off(own, queue, processes, section.retries, limits))


def runs_in_processes(group: str, kind: str) -> bool:
    """Whether an editor or judge runs in a process of its own even if the study asks for none, and there is no GPU.

    So it is with plug-ins of others, which may hang or break their process.
    """
    return not plugins.is_remote(group, kind) and not plugins.is_built_in(group, kind)


def limits_of(section: ExecutorSection, *, remote: bool) -> Limits:
    """The time limits of an edit or a call."""
    longest = LOADING * EDIT_SECONDS
    load = section.load_timeout or longest
    if section.timeout is not None:
        return Limits(section.timeout, section.timeout, load)
    return Limits(CALL_SECONDS, CALL_SECONDS, load) if remote else Limits(EDIT_SECONDS, longest, load)


def _in_threads(
    worker: Worker, queue: EditQueue, threads: int, limits: Limits, *, stops: bool = False
) -> Iterator[list[Edit]]:
    """Make the edits in threads; where `stops`, a thread that hangs is the end of its editor."""

    def noted(tasks: Sequence[EditTask], made: list[Edit]) -> list[Edit]:
        for task, one in zip(tasks, made, strict=False):
            queue.note(task, one)
        return made

    def work(tasks: Sequence[EditTask]) -> list[Edit]:
        try:
            made = worker.edit_batch(tasks)
        except EvenEditError as error:
            queue.end(error)
            return []
        except CannotLoad as error:
            queue.end(error)
            made = [failed(tasks[0].request.id, error)]
        return noted(tasks, made)

    def late(tasks: Sequence[EditTask], limit: float) -> list[Edit]:
        made = noted(tasks, [out_of_time(task.request.id, limit) for task in tasks])
        if stops:
            note = "an edit hangs, and its thread cannot be ended"
            queue.streak.end(f"{note} ({made[0].detail['error']})", "timeout")
        return made

    for ended in in_lanes([Lane(queue, threads, limits.each, late, len)], work):
        if made := [one for several in ended for one in several]:
            yield made


def _dismissed(pool: WorkerPool, batches: Iterator[list[Edit]]) -> Iterator[list[Edit]]:
    """The batches; the pool is dismissed after the last."""
    try:
        yield from batches
    finally:
        pool.dismiss()

"""Where edits run: threads or processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, LoadError
from evenedit.core.python_objects import KIND
from evenedit.core.records import Edit
from evenedit.core.submissions import SubmittedJob
from evenedit.editors.python import PythonEditorAdapter
from evenedit.run.executors.pool import Limits, WorkerPool, run_tasks
from evenedit.run.executors.processes import Processes, grouped, visible_gpus
from evenedit.run.executors.queue import EditQueue
from evenedit.run.executors.threads import Lane, in_threads, run_in_lanes
from evenedit.run.worker import EditTask, Worker, WorkerSetup, failed, out_of_time

if TYPE_CHECKING:
    from evenedit.config.study_file import ExecutorSection

__all__ = [
    "MOST_CALLS",
    "EditQueue",
    "Lane",
    "Processes",
    "edit",
    "in_threads",
    "limits_of",
    "run_in_lanes",
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
    pool: Processes | None = None,
    python_editor: PythonEditorAdapter | None = None,
    submission: Callable[[str], SubmittedJob] | None = None,
) -> Iterator[list[Edit]]:
    """Make the edits with the study's executor; yield finished edits.

    Those of a Python object and of a service are made in this process, whatever the executor: a service needs no GPU,
    and what is sent to it is recorded in the database (`submission`). The processes of `pool` are taken where no GPU is
    needed, and are left for the next editor.
    """
    remote = python_editor is None and plugins.is_remote("editors", setup.editor)
    limits = limits_of(section, remote=remote)
    if python_editor is not None or setup.editor == KIND:
        return _in_threads(
            Worker(setup, python_editor), queue, python_editor.threads if python_editor else 1, limits, stops=True
        )
    if remote:
        return _in_threads(Worker(setup, submission=submission), queue, section.calls or MOST_CALLS, limits)
    if section.kind == "ray":
        from evenedit.run.executors.ray import RayActors

        num_gpus = setup.gpus if setup.gpus > 1 else section.num_gpus
        actors = RayActors(setup, address=section.address, num_gpus=num_gpus, num_cpus=section.num_cpus)
        size = section.processes or section.workers
        return _then_shutdown(actors, run_tasks(actors, queue, size, section.retries, limits))
    gpus = grouped(visible_gpus(), setup.gpus) if plugins.needs_gpu(setup.editor) else []
    if not (section.processes or gpus or runs_in_processes("editors", setup.editor)):
        return _in_threads(Worker(setup), queue, section.workers, limits)
    processes = section.processes or len(gpus) or 1
    if pool is not None and not plugins.needs_gpu(setup.editor):
        pool.setup = setup
        return run_tasks(pool, queue, processes, section.retries, limits)
    own_pool = Processes(setup, gpus)
    return _then_shutdown(own_pool, run_tasks(own_pool, queue, processes, section.retries, limits))


def runs_in_processes(group: str, kind: str) -> bool:
    """Return whether a plug-in needs its own process although the study asks for none and there is no GPU.

    So it is with plug-ins of others, which may hang or break their process.
    """
    return not plugins.is_remote(group, kind) and not plugins.is_built_in(group, kind)


def limits_of(section: ExecutorSection, *, remote: bool) -> Limits:
    """Return the time limits of an edit or a call."""
    longest = LOADING * EDIT_SECONDS
    load = section.load_timeout or longest
    if section.timeout is not None:
        return Limits(section.timeout, section.timeout, load)
    return Limits(CALL_SECONDS, CALL_SECONDS, load) if remote else Limits(EDIT_SECONDS, longest, load)


def _in_threads(
    worker: Worker, queue: EditQueue, threads: int, limits: Limits, *, stops: bool = False
) -> Iterator[list[Edit]]:
    """Make the edits in threads; with `stops`, a thread that hangs ends its editor."""

    def recorded(tasks: Sequence[EditTask], edits: list[Edit]) -> list[Edit]:
        for task, one in zip(tasks, edits, strict=False):
            queue.note(task, one)
        return edits

    def work(tasks: Sequence[EditTask]) -> list[Edit]:
        try:
            edits = worker.edit_batch(tasks)
        except EvenEditError as error:
            queue.end(error)
            return []
        except LoadError as error:
            queue.end(error)
            edits = [failed(tasks[0].request.id, error)]
        return recorded(tasks, edits)

    def on_timeout(tasks: Sequence[EditTask], limit: float) -> list[Edit]:
        edits = recorded(tasks, [out_of_time(task.request.id, limit) for task in tasks])
        if stops:
            note = "an edit hangs, and its thread cannot be ended"
            queue.streak.end(f"{note} ({edits[0].detail['error']})", "timeout")
        return edits

    for ended in run_in_lanes([Lane(queue, threads, limits.each, on_timeout, len)], work):
        if edits := [one for several in ended for one in several]:
            yield edits


def _then_shutdown(pool: WorkerPool, batches: Iterator[list[Edit]]) -> Iterator[list[Edit]]:
    """Yield the batches, then shut the pool down."""
    try:
        yield from batches
    finally:
        pool.shutdown()

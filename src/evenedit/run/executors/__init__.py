"""Where edits run: threads or processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evenedit.core import plugins
from evenedit.core.given import KIND
from evenedit.core.records import Edit
from evenedit.editors.python import GivenEditor
from evenedit.run.executors.pool import WorkerPool, work_off
from evenedit.run.executors.processes import Processes, visible_gpus
from evenedit.run.executors.threads import in_lanes, in_threads
from evenedit.run.worker import EditTask, Worker, WorkerSetup

if TYPE_CHECKING:
    from evenedit.config.study_file import ExecutorSection

__all__ = ["Processes", "edit", "in_lanes", "in_threads"]


def edit(
    section: ExecutorSection,
    setup: WorkerSetup,
    tasks: Iterable[EditTask],
    staff: Processes | None = None,
    given: GivenEditor | None = None,
) -> Iterator[list[Edit]]:
    """Make the edits where the study says, those of a given object in this process; yield them as they finish.

    Processes of `staff` are taken where no GPU is needed, and are left for the next editor.
    """
    if given is not None or setup.editor == KIND:
        return in_threads(tasks, Worker(setup, given).edit, given.threads if given else 1)
    if section.kind == "ray":
        from evenedit.run.executors.ray import RayActors

        actors = RayActors(setup, address=section.address, num_gpus=section.num_gpus, num_cpus=section.num_cpus)
        return _dismissed(actors, work_off(actors, tasks, section.processes or section.workers, section.retries))
    gpus = visible_gpus() if plugins.needs_gpu(setup.editor) else []
    processes = section.processes or len(gpus)
    remote = plugins.is_remote("editors", setup.editor)
    if not processes or remote:
        return in_threads(tasks, Worker(setup).edit, section.calls if remote else section.workers)
    if staff is not None and not plugins.needs_gpu(setup.editor):
        staff.setup = setup
        return work_off(staff, tasks, processes, section.retries)
    own = Processes(setup, gpus)
    return _dismissed(own, work_off(own, tasks, processes, section.retries))


def _dismissed(pool: WorkerPool, batches: Iterator[list[Edit]]) -> Iterator[list[Edit]]:
    """The batches; the pool is dismissed after the last."""
    try:
        yield from batches
    finally:
        pool.dismiss()

"""Where edits run: threads or processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenedit.config.study_file import ExecutorSection
from evenedit.core import plugins
from evenedit.core.given import KIND
from evenedit.core.records import Edit
from evenedit.editors.python import GivenEditor
from evenedit.run.executors.pool import work_off
from evenedit.run.executors.processes import Processes, visible_gpus
from evenedit.run.executors.threads import in_lanes, in_threads
from evenedit.run.worker import EditTask, Worker, WorkerSetup

__all__ = ["edit", "in_lanes", "in_threads"]


def edit(
    section: ExecutorSection, setup: WorkerSetup, tasks: Iterable[EditTask], given: GivenEditor | None = None
) -> Iterator[list[Edit]]:
    """Make the edits where the study says, those of a given object in this process; yield them as they finish."""
    if given is not None or setup.editor == KIND:
        return in_threads(tasks, Worker(setup, given).edit, given.threads if given else 1)
    if section.kind == "ray":
        from evenedit.run.executors.ray import RayActors

        actors = RayActors(setup, address=section.address, num_gpus=section.num_gpus, num_cpus=section.num_cpus)
        return work_off(actors, tasks, section.processes or section.workers, section.retries)
    gpus = visible_gpus() if plugins.needs_gpu(setup.editor) else []
    processes = section.processes or len(gpus)
    remote = plugins.is_remote("editors", setup.editor)
    if processes and not remote:
        return work_off(Processes(setup, gpus), tasks, processes, section.retries)
    return in_threads(tasks, Worker(setup).edit, section.calls if remote else section.workers)

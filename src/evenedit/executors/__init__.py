"""Where edits run: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenedit import plugins
from evenedit.executors import local
from evenedit.records import Edit
from evenedit.study import ExecutorSection
from evenedit.worker import Task, Workshop


def edit(section: ExecutorSection, workshop: Workshop, tasks: Sequence[Task]) -> Iterator[list[Edit]]:
    """Make the edits where the study says; yield them in batches as they finish."""
    if section.kind == "ray":
        from evenedit.executors.ray import edit_on_ray

        return edit_on_ray(
            workshop,
            tasks,
            address=section.address,
            actors=section.processes or section.workers,
            num_gpus=section.num_gpus,
            num_cpus=section.num_cpus,
        )
    gpus = local.visible_gpus() if plugins.needs_gpu(workshop.editor) else []
    processes = section.processes or len(gpus)
    if processes and not plugins.is_remote(workshop.editor):
        return local.edit_in_processes(workshop, tasks, processes, gpus)
    return local.edit_in_threads(workshop, tasks, section.workers)

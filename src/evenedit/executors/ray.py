"""Work on a cluster: one Ray actor per worker, each with its own copy of the editor; results stream back here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from evenedit.records import Edit, Failed, Failure, UserError
from evenedit.worker import Task, Worker, Workshop, failed


def edit_on_ray(
    workshop: Workshop, tasks: Sequence[Task], *, address: str, actors: int, num_gpus: float, num_cpus: float
) -> Iterator[list[Edit]]:
    """Edits on a Ray cluster. A lost actor or node gives its task back; the task is tried elsewhere."""
    ray = _connect(address)
    remote = ray.remote(num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=0)(Worker)
    waiting = list(reversed(tasks))
    deaths: Counter[str] = Counter()
    running: dict[Any, tuple[Any, Task]] = {}
    idle = [remote.remote(workshop) for _ in range(min(actors, len(tasks)))]
    interrupted = False
    while waiting or running:
        try:
            while idle and waiting and not interrupted:
                actor, task = idle.pop(), waiting.pop()
                running[actor.edit.remote(task)] = (actor, task)
            if not running:
                break
            done, _ = ray.wait(list(running), num_returns=1)
        except KeyboardInterrupt:
            interrupted = True
            continue
        batch: list[Edit] = []
        for reference in done:
            actor, task = running.pop(reference)
            try:
                batch.append(ray.get(reference))
                idle.append(actor)
            except ray.exceptions.RayActorError as error:
                deaths[task.request.id] += 1
                if deaths[task.request.id] > workshop.retries:
                    lost = Failed(Failure.CRASH, f"the Ray actor that made this edit was lost: {error}")
                    batch.append(failed(task.request.id, lost))
                else:
                    waiting.append(task)
                idle.append(remote.remote(workshop))
            except ray.exceptions.RayTaskError as error:
                raise UserError(str(error.cause)) from None
        if batch:
            yield batch
    for actor in idle:
        ray.kill(actor)
    if interrupted:
        raise KeyboardInterrupt


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise UserError(
            "study.toml asks for executor 'ray', which needs the 'ray' extra. Try: pip install 'evenedit[ray]'"
        ) from None
    if not ray.is_initialized():
        try:
            ray.init(address=address or None, log_to_driver=False, configure_logging=False)
        except ConnectionError as error:
            raise UserError(f"no Ray cluster answers at '{address}': {error}") from None
    return ray

"""Edits on a Ray cluster: one actor per worker, each with its own copy of the editor; results stream back here."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Edit
from evenedit.run.executors.pool import WorkerLostError
from evenedit.run.worker import EditTask, Worker, WorkerSetup

MOST_FAILED_STARTS = 10
"""Actors that may die before they arrive (their node went away) until we stop asking for more."""
NODE_LOST = "node has died"
"""What Ray says where not the actor was to blame."""


class RayActors:
    """A pool of Ray actors. A lost actor or node gives its task back; Ray places its successor elsewhere."""

    def __init__(self, setup: WorkerSetup, *, address: str, num_gpus: float, num_cpus: float) -> None:
        self.ray = _connect(address)
        self.setup = setup
        self._remote = self.ray.remote(num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=0)(Worker)
        self.loaded = False
        """Whether an actor has loaded the editor."""
        self._arriving: dict[Any, Any] = {}
        self._failed_starts = 0
        self._idle: list[Any] = []
        self._loading: dict[Any, Any] = {}
        self._busy: dict[Any, Any] = {}
        self._started_at: dict[Any, float] = {}
        self._assigned_at: dict[Any, float] = {}

    @property
    def size(self) -> int:
        """The number of actors, including those that are still starting."""
        return len(self._arriving) + len(self._idle) + len(self._busy)

    @property
    def started_at(self) -> Mapping[Any, float]:
        """The start time of each actor that is editing."""
        return self._started_at

    @property
    def loading(self) -> Mapping[Any, float]:
        """The time at which each actor that still loads the editor got its task."""
        return self._assigned_at

    def start_worker(self) -> None:
        """Request an actor. It starts when the cluster has room: after the loss of a node, perhaps much later."""
        actor = self._remote.remote(self.setup)
        self._arriving[actor.__ray_ready__.remote()] = actor

    def idle(self) -> list[Any]:
        """Return the actors that are ready and have no task."""
        return list(self._idle)

    def assign(self, member: Any, tasks: Sequence[EditTask]) -> None:
        """Call the actor, which first loads its editor if needed; the reference stands for its result."""
        self._idle.remove(member)
        self._assigned_at[member] = time.monotonic()
        self._loading[member.is_ready.remote()] = member
        self._busy[member.edit_batch.remote(tasks)] = member

    def wait(self, seconds: float) -> list[tuple[Any, list[Edit] | Exception]]:
        """Wait for the first actor that has started, is ready, or is done, failed or lost."""
        references = [*self._busy, *self._loading, *self._arriving]
        done, _ = self.ray.wait(references, num_returns=1, timeout=seconds) if references else ([], [])
        finished: list[tuple[Any, list[Edit] | Exception]] = []
        for reference in done:
            if reference in self._arriving:
                self._arrive(reference)
            elif reference in self._loading:
                self._ready(reference)
            else:
                member = self._busy.pop(reference)
                result = self._result(reference, member)
                self._forget(member)
                if not isinstance(result, WorkerLostError):
                    self._idle.append(member)
                finished.append((member, result))
        return finished

    def end(self, member: Any) -> None:
        """End an actor, whatever it is doing."""
        self.ray.kill(member)
        self._busy = {reference: actor for reference, actor in self._busy.items() if actor != member}
        self._idle = [actor for actor in self._idle if actor != member]
        self._forget(member)

    def shutdown(self) -> None:
        """Return the resources to the cluster."""
        for actor in [*self._arriving.values(), *self._idle, *self._busy.values()]:
            self.ray.kill(actor)

    def _ready(self, reference: Any) -> None:
        member = self._loading.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayError:  # the edit itself ends the same way
            return
        self.loaded = True
        del self._assigned_at[member]
        self._started_at[member] = time.monotonic()

    def _forget(self, member: Any) -> None:
        self._loading = {reference: actor for reference, actor in self._loading.items() if actor != member}
        self._started_at.pop(member, None)
        self._assigned_at.pop(member, None)

    def _arrive(self, reference: Any) -> None:
        actor = self._arriving.pop(reference)
        try:
            self.ray.get(reference)
            self._idle.append(actor)
        except self.ray.exceptions.RayActorError as error:
            self._failed_starts += 1
            if self._failed_starts > MOST_FAILED_STARTS:
                raise EvenEditError(f"Ray actors cannot start on this cluster: {error}") from None
            self.start_worker()

    def _result(self, reference: Any, member: Any) -> list[Edit] | Exception:
        try:
            edits: list[Edit] = self.ray.get(reference)
            return edits
        except self.ray.exceptions.RayActorError as error:
            for ready in [ready for ready, actor in self._loading.items() if actor == member]:
                self._ready(ready)  # it may have been, and nobody has looked yet
            loading = member in self._assigned_at and NODE_LOST not in str(error)
            what = (
                "its Ray actor was lost while it was loading"
                if loading
                else "the Ray actor that made this edit was lost"
            )
            return WorkerLostError(f"{what}: {_shortly(error)}", loading=loading)
        except self.ray.exceptions.RayTaskError as error:
            return error.cause if isinstance(error.cause, Exception) else error


def _shortly(error: Exception) -> str:
    """Return the first sentence of Ray's message about a lost actor, and how its process ended."""
    words = str(error)
    detail = words.partition("Worker exit detail: ")[2].partition(". Some common causes")[0]
    return " ".join(f"{words.splitlines()[0]} {detail}".split())


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise EvenEditError(
            "study.toml asks for executor 'ray', which needs the 'ray' extra. Try: pip install 'evenedit[ray]'"
        ) from None
    if not ray.is_initialized():
        try:
            _check_address(address)
            ray.init(address=address or "local", log_to_driver=False, configure_logging=False)
        except OSError as error:
            raise EvenEditError(f"no Ray cluster answers at '{address}': {error}. Try: ray start --head") from None
    return ray


def _check_address(address: str) -> None:
    """Raise `OSError` if nothing listens on the address: Ray itself waits for minutes there."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()

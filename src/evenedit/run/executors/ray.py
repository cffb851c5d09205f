"""Edits on a Ray cluster: one actor per worker, each with its own copy of the editor; results stream back here."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Edit
from evenedit.run.executors.pool import Lost
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
        self._begun: dict[Any, float] = {}
        self._given: dict[Any, float] = {}

    @property
    def size(self) -> int:
        """Actors that are here or asked for."""
        return len(self._arriving) + len(self._idle) + len(self._busy)

    @property
    def begun(self) -> Mapping[Any, float]:
        """When each actor that is editing began to."""
        return self._begun

    @property
    def loading(self) -> Mapping[Any, float]:
        """When each actor that still loads the editor was given its task."""
        return self._given

    def hire(self) -> None:
        """Ask for an actor. It arrives when the cluster has room: after the loss of a node, maybe much later."""
        actor = self._remote.remote(self.setup)
        self._arriving[actor.__ray_ready__.remote()] = actor

    def idle(self) -> list[Any]:
        """Actors that have arrived and have no task."""
        return list(self._idle)

    def give(self, member: Any, tasks: Sequence[EditTask]) -> None:
        """Call the actor, which loads its editor first if it has not yet; the reference stands for its result."""
        self._idle.remove(member)
        self._given[member] = time.monotonic()
        self._loading[member.is_ready.remote()] = member
        self._busy[member.edit_batch.remote(tasks)] = member

    def wait(self, seconds: float) -> list[tuple[Any, list[Edit] | Exception]]:
        """The first actor that arrives, is ready, or is done, failed or lost."""
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
                if not isinstance(result, Lost):
                    self._idle.append(member)
                finished.append((member, result))
        return finished

    def end(self, member: Any) -> None:
        """End an actor, whatever it does."""
        self.ray.kill(member)
        self._busy = {reference: actor for reference, actor in self._busy.items() if actor != member}
        self._idle = [actor for actor in self._idle if actor != member]
        self._forget(member)

    def dismiss(self) -> None:
        """Give the cluster its resources back."""
        for actor in [*self._arriving.values(), *self._idle, *self._busy.values()]:
            self.ray.kill(actor)

    def _ready(self, reference: Any) -> None:
        member = self._loading.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayError:  # the edit itself ends the same way
            return
        self.loaded = True
        del self._given[member]
        self._begun[member] = time.monotonic()

    def _forget(self, member: Any) -> None:
        self._loading = {reference: actor for reference, actor in self._loading.items() if actor != member}
        self._begun.pop(member, None)
        self._given.pop(member, None)

    def _arrive(self, reference: Any) -> None:
        actor = self._arriving.pop(reference)
        try:
            self.ray.get(reference)
            self._idle.append(actor)
        except self.ray.exceptions.RayActorError as error:
            self._failed_starts += 1
            if self._failed_starts > MOST_FAILED_STARTS:
                raise EvenEditError(f"Ray actors cannot start on this cluster: {error}") from None
            self.hire()

    def _result(self, reference: Any, member: Any) -> list[Edit] | Exception:
        try:
            edits: list[Edit] = self.ray.get(reference)
            return edits
        except self.ray.exceptions.RayActorError as error:
            for ready in [ready for ready, actor in self._loading.items() if actor == member]:
                self._ready(ready)  # it may have been, and nobody has looked yet
            loading = member in self._given and NODE_LOST not in str(error)
            what = (
                "its Ray actor was lost while it was loading"
                if loading
                else "the Ray actor that made this edit was lost"
            )
            return Lost(f"{what}: {_shortly(error)}", loading=loading)
        except self.ray.exceptions.RayTaskError as error:
            return error.cause if isinstance(error.cause, Exception) else error


def _shortly(error: Exception) -> str:
    """The first sentence of what Ray says about a lost actor, and the end of its process."""
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
            _knock(address)
            ray.init(address=address or None, log_to_driver=False, configure_logging=False)
        except OSError as error:
            raise EvenEditError(f"no Ray cluster answers at '{address}': {error}. Try: ray start --head") from None
    return ray


def _knock(address: str) -> None:
    """See whether anybody is there: Ray itself waits for minutes at an address that does not answer."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()

"""Edits on a Ray cluster: one actor per worker, each with its own copy of the editor; results stream back here."""

from __future__ import annotations

import socket
from typing import Any

from evenedit.executors.crew import Lost
from evenedit.records import Edit, UserError
from evenedit.worker import Task, Worker, Workshop


class RayActors:
    """A crew of Ray actors. A lost actor or node gives its task back; Ray places its successor elsewhere."""

    def __init__(self, workshop: Workshop, *, address: str, num_gpus: float, num_cpus: float) -> None:
        self.ray = _connect(address)
        self.workshop = workshop
        self._remote = self.ray.remote(num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=0)(Worker)
        self._actors: list[Any] = []
        self._busy: dict[Any, Any] = {}

    def hire(self) -> Any:
        """Start an actor wherever the cluster has room."""
        actor = self._remote.remote(self.workshop)
        self._actors.append(actor)
        return actor

    def give(self, member: Any, task: Task) -> None:
        """Call the actor; the reference stands for its result."""
        self._busy[member.edit.remote(task)] = member

    def wait(self) -> list[tuple[Any, Edit | Exception]]:
        """The first actor that is done, failed or lost."""
        done, _ = self.ray.wait(list(self._busy), num_returns=1)
        return [(self._busy.pop(reference), self._result(reference)) for reference in done]

    def dismiss(self) -> None:
        """Give the cluster its resources back."""
        for actor in self._actors:
            self.ray.kill(actor)

    def _result(self, reference: Any) -> Edit | Exception:
        try:
            edit: Edit = self.ray.get(reference)
            return edit
        except self.ray.exceptions.RayActorError as error:
            return Lost(f"the Ray actor that made this edit was lost: {error}")
        except self.ray.exceptions.RayTaskError as error:
            return error.cause if isinstance(error.cause, Exception) else error


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise UserError(
            "study.toml asks for executor 'ray', which needs the 'ray' extra. Try: pip install 'evenedit[ray]'"
        ) from None
    if not ray.is_initialized():
        try:
            _knock(address)
            ray.init(address=address or None, log_to_driver=False, configure_logging=False)
        except OSError as error:
            raise UserError(f"no Ray cluster answers at '{address}': {error}. Try: ray start --head") from None
    return ray


def _knock(address: str) -> None:
    """See whether anybody is there: Ray itself waits for minutes at an address that does not answer."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()

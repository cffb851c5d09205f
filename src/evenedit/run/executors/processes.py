"""Edits in processes of their own on this machine, one GPU each where there are any."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from evenedit.core.processes import WorkerContext
from evenedit.core.records import Edit
from evenedit.run.executors.pool import Lost
from evenedit.run.worker import EditTask, Worker, WorkerSetup

_CONTEXT = WorkerContext()


class Processes:
    """A pool of processes, each at the end of a pipe."""

    def __init__(self, setup: WorkerSetup, gpus: Sequence[str] = ()) -> None:
        self.setup = setup
        self.gpus = gpus
        self._numbers = count()
        self._members: dict[int, tuple[Any, Connection]] = {}
        self._busy: set[int] = set()
        self._free_gpus = list(gpus)
        self._gpu_of: dict[int, str] = {}

    def hire(self) -> None:
        """Start a process; it takes a GPU that no other process holds."""
        number = next(self._numbers)
        if self.gpus:
            self._gpu_of[number] = self._free_gpus.pop(0) if self._free_gpus else self.gpus[number % len(self.gpus)]
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(
            target=_serve,
            args=(self.setup, theirs, self._gpu_of.get(number)),
            name=f"evenedit-{number}",
            daemon=True,
        )
        process.start()
        theirs.close()  # so that the pipe ends when the process does
        self._members[number] = (process, ours)

    def idle(self) -> list[int]:
        """A process can be sent its first task while it still starts."""
        return [number for number in self._members if number not in self._busy]

    def give(self, member: int, task: EditTask) -> None:
        """Send a task; a process that is gone already shows when we wait for it."""
        self._busy.add(member)
        with suppress(OSError):
            self._members[member][1].send(task)

    def wait(self) -> list[tuple[int, Edit | Exception]]:
        """Whatever came back first: an edit, an error, or the end of a pipe."""
        ready = wait([self._members[m][1] for m in self._busy])
        finished: list[tuple[int, Edit | Exception]] = []
        for member in [m for m in self._busy if self._members[m][1] in ready]:
            self._busy.discard(member)
            try:
                finished.append((member, self._members[member][1].recv()))
            except (EOFError, OSError):
                finished.append((member, self._clean_up(member)))
        return finished

    def dismiss(self) -> None:
        """Close every pipe; idle processes end by themselves, busy ones are stopped."""
        for process, pipe in self._members.values():
            pipe.close()
            process.join(timeout=2)
            if process.is_alive():
                process.terminate()
                process.join()
        self._members.clear()

    def _clean_up(self, member: int) -> Lost:
        process, pipe = self._members.pop(member)
        pipe.close()
        process.join()
        if member in self._gpu_of:
            self._free_gpus.append(self._gpu_of.pop(member))
        return Lost(f"the process that made this edit died (exit code {process.exitcode}: killed, or out of memory)")


def visible_gpus() -> list[str]:
    """The GPUs this machine offers, by the name CUDA_VISIBLE_DEVICES uses."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu for gpu in named.split(",") if gpu.strip()]
    devices = Path("/proc/driver/nvidia/gpus")
    return [str(number) for number, _ in enumerate(devices.iterdir())] if devices.is_dir() else []


def _serve(setup: WorkerSetup, pipe: Connection, gpu: str | None) -> None:
    """What each process does: take its GPU, leave Ctrl-C to the parent, edit until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    worker = Worker(setup)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(worker.edit(task))
        except Exception as error:
            pipe.send(error)

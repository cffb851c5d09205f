"""Edits in separate processes on this machine, one GPU each if there are any."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from evenedit.core.processes import WorkerContext, end_of, end_with_parent, send_result
from evenedit.core.records import Edit
from evenedit.run.executors.pool import WorkerLostError
from evenedit.run.worker import EditTask, Worker, WorkerSetup

_CONTEXT = WorkerContext()
READY = "ready"
"""The message of a process that is ready: an editor's before its first edit, a judge's once."""


class Processes:
    """A pool of processes, each at the end of a pipe. It can be reused for another editor when all edits are made."""

    def __init__(self, setup: WorkerSetup | None = None, gpus: Sequence[str] = ()) -> None:
        self.gpus = gpus
        self.loaded = False
        """Whether a process has loaded the editor."""
        self._setup = setup
        self._numbers = count()
        self._members: dict[int, tuple[Any, Connection]] = {}
        self._busy: set[int] = set()
        self._started_at: dict[int, float] = {}
        self._loading: dict[int, float] = {}
        self._free_gpus = list(gpus)
        self._gpu_of: dict[int, str] = {}

    @property
    def setup(self) -> WorkerSetup | None:
        """The editor and settings of the next edits."""
        return self._setup

    @setup.setter
    def setup(self, setup: WorkerSetup) -> None:
        self.loaded = self.loaded and setup == self._setup
        self._setup = setup

    @property
    def size(self) -> int:
        """The number of processes."""
        return len(self._members)

    @property
    def started_at(self) -> Mapping[int, float]:
        """The start time of each process that is editing."""
        return self._started_at

    @property
    def loading(self) -> Mapping[int, float]:
        """The time at which each process that still loads the editor got its task."""
        return self._loading

    def start_worker(self) -> None:
        """Start a process; it takes a GPU that no other process holds."""
        number = next(self._numbers)
        if self.gpus:
            self._gpu_of[number] = self._free_gpus.pop(0) if self._free_gpus else self.gpus[number % len(self.gpus)]
        pipe, worker_pipe = _CONTEXT.Pipe()
        process = _CONTEXT.Process(
            target=_serve,
            args=(worker_pipe, self._gpu_of.get(number)),
            name=f"evenedit-{number}",
            daemon=True,
        )
        process.start()
        worker_pipe.close()  # so that the pipe ends when the process does
        self._members[number] = (process, pipe)

    def idle(self) -> list[int]:
        """Return the processes without a task; a process can be sent its first task while it still starts."""
        return [number for number in self._members if number not in self._busy]

    def assign(self, member: int, tasks: Sequence[EditTask]) -> None:
        """Send tasks; `wait` reports a process that has already died."""
        self._busy.add(member)
        self._loading[member] = time.monotonic()
        with suppress(OSError):
            self._members[member][1].send((self.setup, tasks))

    def wait(self, seconds: float) -> list[tuple[int, list[Edit] | Exception]]:
        """Wait for the first results: edits, an error, or the end of a pipe."""
        ready = wait([self._members[m][1] for m in self._busy], seconds)
        finished: list[tuple[int, list[Edit] | Exception]] = []
        for member in [m for m in self._busy if self._members[m][1] in ready]:
            try:
                message = self._members[member][1].recv()
            except (EOFError, OSError):
                message = self._lost(member)
            if message == READY:
                self.loaded = True
                self._loading.pop(member, None)
                self._started_at[member] = time.monotonic()
                continue
            self._rest(member)
            finished.append((member, message))
        return finished

    def end(self, member: int) -> None:
        """End a process, whatever it is doing."""
        process, _ = self._members[member]
        process.kill()
        self._rest(member)
        self._lost(member)

    def shutdown(self) -> None:
        """Close all pipes; idle processes end by themselves, busy ones are stopped."""
        for member, (process, pipe) in self._members.items():
            pipe.close()
            process.join(timeout=0 if member in self._busy else 2)
            if process.is_alive():
                process.terminate()
                process.join(timeout=2)
            if process.is_alive():  # it does not heed the signal
                process.kill()
                process.join()
        self._members.clear()
        self._busy.clear()
        self._started_at.clear()
        self._loading.clear()

    def _rest(self, member: int) -> None:
        self._busy.discard(member)
        self._started_at.pop(member, None)
        self._loading.pop(member, None)

    def _lost(self, member: int) -> WorkerLostError:
        process, pipe = self._members.pop(member)
        pipe.close()
        process.join()
        if member in self._gpu_of:
            self._free_gpus.append(self._gpu_of.pop(member))
        loading = member in self._loading
        what = "its process died while it was loading" if loading else "the process that made this edit died"
        return WorkerLostError(f"{what} ({end_of(process.exitcode)})", loading=loading)


def grouped(gpus: Sequence[str], size: int) -> list[str]:
    """Return the GPUs of each worker, as CUDA_VISIBLE_DEVICES names them; those left over have no worker."""
    return [",".join(gpus[at : at + size]) for at in range(0, len(gpus) - size + 1, size)]


def visible_gpus() -> list[str]:
    """Return the GPUs of this machine, by the names of CUDA_VISIBLE_DEVICES."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu for gpu in named.split(",") if gpu.strip()]
    devices = Path("/proc/driver/nvidia/gpus")
    return [str(number) for number, _ in enumerate(devices.iterdir())] if devices.is_dir() else []


def _serve(pipe: Connection, gpu: str | None) -> None:
    """Run the process: use one GPU, leave Ctrl-C to the parent, edit until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    worker: Worker | None = None
    with suppress(EOFError, OSError):  # the parent is gone, or needs us no longer
        while True:
            setup, tasks = pipe.recv()
            try:
                if worker is None or worker.setup != setup:
                    worker = Worker(setup)
                worker.prepare()
                pipe.send(READY)
                result: list[Edit] | Exception = worker.edit_batch(tasks)
            except Exception as error:
                result = error
            send_result(pipe, result)

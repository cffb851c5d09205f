"""Work on this machine: threads for what waits, processes for what computes; results as they come."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from evenedit.records import Edit, Failed, Failure
from evenedit.worker import Task, Worker, Workshop, failed

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[list[Result]]:
    """Do `work` on each item in a few threads; yield what has finished, in batches, until all is done."""
    with ThreadPoolExecutor(threads, thread_name_prefix="evenedit") as pool:
        yield from _stream(pool, items, work, threads)


def edit_in_threads(workshop: Workshop, tasks: Sequence[Task], threads: int) -> Iterator[list[Edit]]:
    """Edits in this process: API editors wait in many threads, a CPU editor works in few."""
    yield from in_threads(tasks, Worker(workshop).edit, threads)


def edit_in_processes(
    workshop: Workshop, tasks: Sequence[Task], processes: int, gpus: Sequence[str] = ()
) -> Iterator[list[Edit]]:
    """Edits in processes of their own, one GPU each where there are any.

    A process that dies takes its edit with it: what was under way is tried again in new processes, and an edit
    that was under way at every death is recorded as a crash.
    """
    left = {task.request.id: task for task in tasks}
    deaths: Counter[str] = Counter()
    while left:
        began: set[str] = set()
        try:
            with _pool(workshop, processes, gpus) as pool:
                for batch in _stream(pool, list(left.values()), _edit, processes, began=began):
                    for edit in batch:
                        left.pop(edit.request_id)
                    yield batch
        except BrokenProcessPool:
            suspects = [ident for ident in began if ident in left]
            deaths.update(suspects)
            lost = [ident for ident in suspects if deaths[ident] > workshop.retries]
            for ident in lost:
                left.pop(ident)
            if lost:
                died = Failed(Failure.CRASH, "the process that made this edit died (killed, or out of memory)")
                yield [failed(ident, died) for ident in lost]


def visible_gpus() -> list[str]:
    """The GPUs this machine offers, by the name CUDA_VISIBLE_DEVICES uses."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu for gpu in named.split(",") if gpu.strip()]
    devices = Path("/proc/driver/nvidia/gpus")
    return [str(number) for number, _ in enumerate(devices.iterdir())] if devices.is_dir() else []


def _stream(
    pool: Executor,
    items: Iterable[Any],
    work: Callable[[Any], Result],
    workers: int,
    began: set[str] | None = None,
) -> Iterator[list[Result]]:
    """Keep the pool busy but its queue short. On Ctrl-C nothing new is begun; what is under way is finished and
    yielded, then KeyboardInterrupt is raised."""
    queue = iter(items)
    pending: set[Future[Result]] = set()
    interrupted = False
    try:
        while True:
            try:
                while not interrupted and len(pending) < 2 * workers:
                    item = next(queue, None)
                    if item is None:
                        break
                    if began is not None:
                        began.add(item.request.id)
                    pending.add(pool.submit(work, item))
                if not pending:
                    break
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                interrupted = True
                pending = {future for future in pending if not future.cancel()}
                continue
            yield [future.result() for future in done]
    finally:
        for future in pending:
            future.cancel()
    if interrupted:
        raise KeyboardInterrupt


def _pool(workshop: Workshop, processes: int, gpus: Sequence[str]) -> ProcessPoolExecutor:
    context = get_context("spawn")  # a forked process cannot use CUDA
    devices = context.Queue()
    for number in range(processes):
        devices.put(gpus[number % len(gpus)] if gpus else None)
    return ProcessPoolExecutor(processes, context, _begin, (workshop, devices))


_worker: Worker | None = None


def _begin(workshop: Workshop, devices: Any) -> None:
    """What each process does first: take a GPU, and leave Ctrl-C to the parent."""
    import signal

    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gpu = devices.get()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    _worker = Worker(workshop)


def _edit(task: Task) -> Edit:
    assert _worker is not None
    return _worker.edit(task)

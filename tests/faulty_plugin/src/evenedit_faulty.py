"""An editor and a judge that fail in the way their settings say, and write down every attempt."""

import ctypes
import os
import signal
import time
from pathlib import Path

from PIL import ImageOps

from evenedit import Failed, Failure, Reply, Status

_poisoned = False


def note(log, what):
    with Path(log).open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


def fail(mode):
    """Do not return."""
    if mode == "crash":
        os._exit(9)
    if mode == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)
    if mode == "hold":  # hang without letting go of the interpreter, as broken drivers do
        ctypes.PyDLL(None).sleep(100_000)
    if mode == "exit":
        raise SystemExit("somebody called exit")
    raise ValueError(f"it never works, said at {time.time()}")


class Faulty:
    max_images = 1

    def __init__(self, *, mode="", log, once="", seconds=0.0, batch=1, seed=None):
        self.mode = mode
        self.log = log
        self.once = once
        """Fails only while this file is not there; empty: always."""
        self.seconds = seconds
        self.batch = batch
        self.seed = seed
        """Fails only with this seed; None: with any."""
        if mode == "make":
            raise OSError("it loads its weights too early")

    def load(self):
        note(self.log, "load")
        if self.mode == "load":
            raise RuntimeError("the weights are not there")
        if self.mode in ("load-crash", "load-hang"):
            fail(self.mode.removeprefix("load-"))

    def edit(self, images, instruction, seed):
        global _poisoned
        note(self.log, "edit")
        time.sleep(self.seconds)
        if _poisoned:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self.seed not in (None, seed):
            return ImageOps.mirror(images[0].convert("RGB"))
        if self.mode and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            if self.mode == "poison":
                _poisoned = True
                raise RuntimeError("CUDA error: device-side assert triggered")
            fail(self.mode)
        return ImageOps.mirror(images[0].convert("RGB"))

    def edit_many(self, images, instructions, seeds):
        note(self.log, f"batch-{len(seeds)}")
        if self.mode == "memory":
            raise Failed(Failure.OUT_OF_MEMORY, "CUDA out of memory. Tried to allocate 9.00 GiB")
        if self.mode == "poison":
            raise RuntimeError("CUDA error: device-side assert triggered")
        time.sleep(self.seconds)
        if self.mode and self.seed in seeds:
            fail(self.mode)
        return [ImageOps.mirror(one.convert("RGB")) for (one,) in images]


class FaultyJudge:
    def __init__(self, *, mode="", log, once=""):
        self.mode, self.log, self.once = mode, log, once
        if mode == "make":
            raise OSError("it loads its weights too early")

    def judge(self, case, questions):
        note(self.log, "judge")
        if self.mode and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            fail(self.mode)
        assert case.images[0].size == case.edited.size
        return Reply(Status.SCORED, {question.id: 3 for question in questions})

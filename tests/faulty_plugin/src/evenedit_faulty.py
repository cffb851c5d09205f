"""An editor that fails in the way its settings say, and writes down every attempt."""

import os
import signal
import time
from pathlib import Path

from PIL import ImageOps

_poisoned = False


class Faulty:
    max_images = 1

    def __init__(self, *, mode="", log, once="", seconds=0.0):
        self.mode = mode
        self.log = log
        self.once = once
        """Fails only while this file is not there; empty: always."""
        self.seconds = seconds

    def load(self):
        self.note("load")
        if self.mode == "load":
            raise RuntimeError("the weights are not there")

    def edit(self, images, instruction, seed):
        global _poisoned
        self.note("edit")
        time.sleep(self.seconds)
        if _poisoned:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self.mode and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            if self.mode == "poison":
                _poisoned = True
                raise RuntimeError("CUDA error: device-side assert triggered")
            if self.mode == "crash":
                os._exit(9)
            if self.mode == "hang":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                while True:
                    time.sleep(1)
            raise ValueError(f"it never works, said at {time.time()}")
        return ImageOps.mirror(images[0].convert("RGB"))

    def note(self, what):
        with Path(self.log).open("a") as file:
            file.write(f"{what} {os.getpid()}\n")

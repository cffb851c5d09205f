"""Step1X-Edit-v1p2 on this machine.

Its pipeline is in a fork of diffusers, so it runs in a separate environment as a worker process (`step1x_worker.py`)
with which we exchange messages over pipes. `setup` creates that environment.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from PIL import Image

from evenedit.core import settings
from evenedit.core.decode import UnreadablePicture, decode
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.line_process import LineProcess
from evenedit.editors.local.memory import (
    AUTO,
    OFFLOADS,
    PRESETS,
    MemoryNeed,
    Weights,
    in_words,
    main_memory,
    need,
    preset_for,
    weights_of,
)

ID = "step1x-edit-v1p2"
PYTHON = "EVENEDIT_STEP1X_PYTHON"
"""Environment variable: the interpreter of Step1X's environment."""
FORK = "git+https://github.com/Peyton-Chen/diffusers@step1xedit_v1p2"
STEPS = 28
NOTE = "evenedit-reworded"
"""The picture's note that holds the instruction as thinking mode reworded it."""
_WORKER = Path(__file__).with_name("step1x_worker.py")


class Step1X:
    """Step1X-Edit-v1p2: edits one portrait. Its worker starts, and loads the weights, on the first edit."""

    max_images = 1
    needs_gpu = True
    presets: ClassVar[Mapping[str, Mapping[str, str]]] = {"80gb": {}, "48gb": {}, "24gb": {"offload": "sequential"}}
    added_settings = frozenset({"memory"})

    def __init__(
        self,
        *,
        python: str | None = None,
        model: str = "stepfun-ai/Step1X-Edit-v1p2",
        revision: str | None = None,
        steps: int = STEPS,
        true_cfg_scale: float = 6.0,
        size_level: int = 1024,
        enable_thinking_mode: bool = False,
        enable_reflection_mode: bool = False,
        device: str = "auto",
        offload: str = "none",
        timeout: float = 1800.0,
        load_timeout: float = 7200.0,
        memory: str = AUTO,
    ) -> None:
        self.python = python or os.environ.get(PYTHON) or str(_interpreter(default_folder()))
        """The interpreter of Step1X's environment."""
        self.model = model
        """A hub id, or a folder on this machine."""
        self.revision = revision
        """Branch, tag or commit of the hub model; `facts` has the commit that was loaded."""
        self.steps = steps
        self.true_cfg_scale = true_cfg_scale
        self.size_level = size_level
        self.enable_thinking_mode = enable_thinking_mode
        """Let the model reword the instruction first."""
        self.enable_reflection_mode = enable_reflection_mode
        """Let the model judge its output and try again; the pipeline's own default, but not the study's."""
        self.device = device
        self.offload = offload
        """What waits in main memory: nothing, whole models, or every layer."""
        self.timeout = timeout
        """Seconds for one edit."""
        self.load_timeout = load_timeout
        """Seconds for loading the weights, a download included."""
        self.memory = settings.choice("memory", memory, AUTO, *PRESETS)
        """A GPU's size, which sets `offload`; auto: the fastest one that fits, for the same pixels."""
        if self.memory != AUTO:
            if offload != "none":
                raise EvenEditError("setting 'memory' chooses 'offload' itself; remove one of the two")
            self.offload = self.presets[self.memory].get("offload", "none")
        self._check()
        self._lock = threading.Lock()
        self._facts: dict[str, Any] = {}
        self._workers: list[LineProcess] = []  # the one that runs, or none
        weakref.finalize(self, _close, self._workers)

    @property
    def weights(self) -> Weights | None:
        """The size of the model; None where it is not known."""
        return weights_of(self.model, self.revision)

    def needs(self, **changes: Any) -> MemoryNeed | None:
        """Return the memory it needs with its settings, or with `changes` of them; None if not known."""
        pixels = self.size_level**2
        used = {"dtype": "bfloat16", "quantize": None, "offload": self.offload, "pixels": pixels, **changes}
        return None if self.weights is None else need(self.weights, **used)

    def fits(self, gpu: float, main: float = math.inf) -> str | None:
        """Return the `offload` that fits so many gigabytes of GPU and main memory; None if none fits."""
        return next((name for name, size in self._ways(main).items() if size <= gpu), None)

    def _ways(self, main: float) -> dict[str, float]:
        """Return the possible `offload` values that fit main memory, with the gigabytes of GPU they need."""
        offloads = OFFLOADS if self.memory == AUTO and self.offload == "none" else (self.offload,)
        needs = {name: self.needs(offload=name) for name in offloads}
        return {name: need.gpu if need else 0.0 for name, need in needs.items() if need is None or need.main <= main}

    def advice(self, gpu: float, main: float = math.inf) -> str:
        """Return the setting with which it would fit so many gigabytes of GPU and main memory."""
        return preset_for(self.presets, self.needs, gpu, main)

    def missing(self) -> list[str]:
        """Return one message for each missing requirement."""
        if Path(self.python).is_file():
            return []
        return [f"editor '{ID}' needs a separate environment at {self.python}. Try: evenedit plugins step1x --setup"]

    def edit(self, images: Sequence[Image.Image], instruction: str, seed: int) -> Image.Image:
        """Return the edited picture."""
        if len(images) != 1:
            raise EvenEditError(f"editor '{ID}' takes one image, not {len(images)}")
        content = io.BytesIO()
        images[0].convert("RGB").save(content, "PNG")
        request = {
            "image": base64.b64encode(content.getvalue()).decode(),
            "prompt": instruction,
            "seed": seed,
            "call": {
                "num_inference_steps": self.steps,
                "true_cfg_scale": self.true_cfg_scale,
                "size_level": self.size_level,
                "enable_thinking_mode": self.enable_thinking_mode,
                "enable_reflection_mode": self.enable_reflection_mode,
            },
        }
        with self._lock:
            answer = self._ask(request)
        if answer.get("failure") == "memory":
            raise self._too_large(float(answer["gpu"]))
        return _picture(answer)

    def facts(self) -> dict[str, Any]:
        """Return what ran: settings; once weights are loaded also the worker's packages, commit and device."""
        return {
            "settings": {name: getattr(self, name) for name in inspect.signature(type(self)).parameters},
            **self._facts,
        }

    def _too_large(self, gpu: float) -> EvenEditError:
        memory_need = self.needs()
        return EvenEditError(
            f"editor '{ID}' needs {in_words(memory_need) if memory_need else 'more memory'}; available "
            f"are {gpu:.0f} and "
            f"{main_memory():.0f} GB. {self.advice(gpu, main_memory())}"
        )

    def close(self) -> None:
        """End the worker, if one runs; the next edit starts another."""
        with self._lock:
            _close(self._workers)

    def _check(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise EvenEditError(f"setting 'model' is {self.model!r}; it must be a text")
        if type(self.steps) is not int or self.steps != STEPS:
            raise EvenEditError(f"setting 'steps' is {self.steps!r}; allowed: {STEPS}, which the architecture requires")
        for name in ("enable_thinking_mode", "enable_reflection_mode"):
            if type(getattr(self, name)) is not bool:
                raise EvenEditError(f"setting '{name}' is {getattr(self, name)!r}; allowed: false, true")
        for name in ("true_cfg_scale", "size_level", "timeout", "load_timeout"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < float("inf"):
                raise EvenEditError(f"setting '{name}' is {value!r}; it must be a number above 0")
        if type(self.size_level) is not int:
            raise EvenEditError(f"setting 'size_level' is {self.size_level!r}; it must be a whole number of pixels")
        if self.offload not in ("none", "model", "sequential"):
            raise EvenEditError(f"setting 'offload' is {self.offload!r}; allowed: none, model, sequential")
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", str(self.device)):
            raise EvenEditError(f"setting 'device' is {self.device!r}; it must be auto, cpu, mps, cuda or cuda:N")
        if self.revision is not None and Path(self.model).is_dir():
            raise EvenEditError(
                f"setting 'revision' is {self.revision!r}, but 'model' is a folder, which has no revisions"
            )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the worker's answer; end a worker that died, hung or sent an invalid line."""
        worker = self._worker()
        try:
            if not worker.loaded:
                answer = worker.ask(request, self.load_timeout)
                if "loaded" not in answer:
                    return answer
                worker.loaded, self._facts = True, answer["loaded"]
                return worker.ask(None, self.timeout)
            return worker.ask(request, self.timeout)
        except BaseException:
            self._workers.clear()
            worker.kill()
            raise

    def _worker(self) -> LineProcess:
        if not self._workers:
            options = {name: getattr(self, name) for name in ("model", "revision", "device", "offload")}
            self._workers.append(_started(self.python, {**options, "ways": self._ways(main_memory())}))
        return self._workers[0]


def default_folder() -> Path:
    """Return the default folder of Step1X's environment."""
    return Path.home() / ".evenedit" / "step1x"


def setup_steps(folder: Path | None = None) -> list[str]:
    """Return the commands that create Step1X's environment in a folder."""
    folder = folder or default_folder()
    python = _interpreter(folder)
    commands: list[list[str]] = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "torch", "torchvision"],
        [str(python), "-m", "pip", "install", FORK, "transformers==4.55.0", "accelerate", "megfile", "qwen_vl_utils"],
        [str(python), "-c", "from diffusers import Step1XEditPipelineV1P2"],
    ]
    return [shlex.join(command) for command in commands]


def setup(folder: Path | None = None, *, run: bool = False) -> None:
    """Print the commands that create Step1X's environment, or run them one after the other."""
    for step in setup_steps(folder):
        print(step, flush=True)
        if run:
            perform(step)
    interpreter = _interpreter(folder or default_folder())
    if interpreter != _interpreter(default_folder()):
        print(f"export {PYTHON}={shlex.quote(str(interpreter))}")


def perform(step: str) -> None:
    """Run one command of the set-up; its output is shown."""
    try:
        subprocess.run(shlex.split(step), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EvenEditError(f"setting up '{ID}' stopped: {error}", "Fix that, and run the set-up again") from None


def _interpreter(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def _picture(answer: dict[str, Any]) -> Image.Image:
    """Return the picture in an answer; raise the failure it reports."""
    if answer.get("failure") == "setup":
        raise EvenEditError(
            f"editor '{ID}' cannot run: {answer['message']}",
            "Set up its environment: evenedit plugins step1x --setup",
        )
    if "failure" in answer:
        raise Failed(Failure(answer["failure"]), answer["message"])
    try:
        picture = decode(base64.b64decode(answer["image"]))
    except (binascii.Error, UnreadablePicture) as error:
        raise Failed(Failure.BAD_IMAGE, f"the Step1X worker sent no picture: {error}") from None
    if answer["prompt"] is not None:
        picture.info[NOTE] = answer["prompt"]
    return picture


def _started(python: str, options: dict[str, Any]) -> LineProcess:
    """Start the process in Step1X's environment."""
    try:
        return LineProcess([python, "-u", str(_WORKER), json.dumps(options)], "the Step1X worker")
    except OSError as error:
        raise EvenEditError(
            f"study.toml asks for editor '{ID}', which runs in a separate environment, and its interpreter "
            f"{python} cannot be started: {error.strerror}. Try: evenedit plugins step1x --setup"
        ) from None


def _close(workers: list[LineProcess]) -> None:
    while workers:
        workers.pop().close()

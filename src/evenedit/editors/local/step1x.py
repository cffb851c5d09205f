"""Step1X-Edit-v1p2 on this machine. Its pipeline lives in a fork of diffusers, so it runs in an environment of its own
as a worker process (`step1x_worker.py`) that is spoken to over pipes. `setup` makes that environment.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from evenedit.core.decode import UnreadablePicture, decode
from evenedit.core.errors import EvenEditError, Failed, Failure

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
    vram_gb = 24

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
        self._check()
        self._lock = threading.Lock()
        self._facts: dict[str, Any] = {}
        self._workers: list[_Worker] = []  # the one that runs, or none
        weakref.finalize(self, _close, self._workers)

    def missing(self) -> list[str]:
        """What is needed to use it and not there."""
        if Path(self.python).is_file():
            return []
        return [f"editor '{ID}' needs an environment of its own at {self.python}. Try: evenedit editors setup step1x"]

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
            return _picture(self._ask(request))

    def facts(self) -> dict[str, Any]:
        """What really ran: every setting; once weights are loaded also the worker's packages, commit and device."""
        return {
            "settings": {name: getattr(self, name) for name in inspect.signature(type(self)).parameters},
            **self._facts,
        }

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
        """The worker's answer; a worker that died, hung or spoke nonsense is gone afterwards."""
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

    def _worker(self) -> _Worker:
        if not self._workers:
            settings = {name: getattr(self, name) for name in ("model", "revision", "device", "offload")}
            self._workers.append(_Worker(self.python, settings))
        return self._workers[0]


class _Worker:
    """The process in Step1X's environment."""

    def __init__(self, python: str, settings: dict[str, Any]) -> None:
        self.loaded = False
        try:
            self.process = subprocess.Popen(
                [python, "-u", str(_WORKER), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C lets the edit under way finish; and kill() gets its children
            )
        except OSError as error:
            raise EvenEditError(
                f"study.toml asks for editor '{ID}', which runs in an environment of its own, and its interpreter "
                f"{python} cannot be started: {error.strerror}. Try: evenedit editors setup step1x"
            ) from None
        self._tail: deque[str] = deque(maxlen=20)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def ask(self, request: dict[str, Any] | None, timeout: float) -> dict[str, Any]:
        """Send a request, if there is one, and wait for one answer."""
        assert self.process.stdin and self.process.stdout
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._signal()

        timer = threading.Timer(timeout, expire)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                with contextlib.suppress(OSError):  # it is gone; its last words may be there to read
                    self.process.stdin.write(json.dumps(request).encode() + b"\n")
                    self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if expired.is_set():
            raise Failed(Failure.TIMEOUT, f"no answer from the Step1X worker within {timeout:g} s")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            self.kill()
            output = "\n".join([line.decode(errors="replace"), *self._tail]).strip()
            code = self.process.returncode
            message = f"the Step1X worker died (exit code {code}); it ended with:\n{output}"
            raise Failed(Failure.CRASH, message) from None
        return answer

    def close(self) -> None:
        """Let it go: it ends with its input."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.kill()

    def kill(self) -> None:
        """End it now, with whatever it started, and leave nothing open."""
        self._signal()
        self.process.wait()
        self._listener.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            with contextlib.suppress(OSError):  # what was not yet written goes nowhere
                pipe.close()

    def _signal(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()

    def _listen(self) -> None:
        """Read standard error as it comes, so that the worker never waits for us; keep the end of it."""
        assert self.process.stderr
        for line in self.process.stderr:
            text = line.decode(errors="replace").rstrip()
            if text:
                self._tail.append(text.rsplit("\r", 1)[-1])


def default_folder() -> Path:
    """Where `setup` puts Step1X's environment unless asked otherwise."""
    return Path.home() / ".evenedit" / "step1x"


def setup_steps(folder: Path | None = None) -> list[str]:
    """The commands that make Step1X's environment in a folder."""
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
    """Print the commands that make Step1X's environment, or perform them one after the other."""
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
        raise EvenEditError(f"setting up '{ID}' stopped: {error}", "Mend that, and run the set-up again") from None


def _interpreter(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def _picture(answer: dict[str, Any]) -> Image.Image:
    """The picture an answer holds, or what it says went wrong."""
    if answer.get("failure") == "setup":
        raise EvenEditError(
            f"editor '{ID}' cannot run: {answer['message']}", "Set its environment up by: evenedit editors setup step1x"
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


def _close(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().close()

"""Step1X-Edit in the environment that has its forked diffusers: `python step1x_worker.py '{"model": …}'`.

Imports nothing of evenedit, which is not installed there. Speaks JSON, one object per line:

    ◀ {"image": base64 PNG, "prompt": …, "seed": …, "call": {arguments of the pipeline}}
    ▶ {"loaded": {what was loaded}}                 before the first answer only
    ▶ {"image": base64 PNG, "prompt": as reworded in thinking mode, or null}
    ▶ {"failure": kind, "message": …}               kind: one of evenedit's failures, or "setup"
    ▶ {"failure": "memory", "gpu": gigabytes}       nothing was loaded: the GPU is too small

Ends when its input does, even amid an edit, so that it never outlives whoever started it.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import os
import queue
import re
import sys
import threading
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO

PIPELINE = "EVENEDIT_STEP1X_PIPELINE"
"""Environment variable: `module:Class` to use in place of the real pipeline, for tests."""
REAL = "diffusers:Step1XEditPipelineV1P2"
PACKAGES = ("torch", "diffusers", "transformers", "accelerate")


class GpuTooSmallError(Exception):
    """The GPU has no room for the weights."""

    def __init__(self, gpu: float) -> None:
        super().__init__(f"the GPU has {gpu:.0f} GB")
        self.gpu = gpu


class WorkerError(Exception):
    """A failure with a name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def main() -> None:
    """Answer requests until the input ends."""
    settings = json.loads(sys.argv[1])
    forget_neighbours()
    answers = claim_output()
    requests = read_ahead(sys.stdin.buffer)
    pipeline: Any = None
    while True:
        request = json.loads(requests.get())
        try:
            if pipeline is None:
                pipeline, facts = load(settings)
                say(answers, {"loaded": facts})
            say(answers, edit(pipeline, request))
        except GpuTooSmallError as error:
            say(answers, {"failure": "memory", "gpu": error.gpu})
        except Exception as error:
            kind, message = describe(error)
            say(answers, {"failure": kind, "message": message})


def forget_neighbours() -> None:
    """Remove this folder from the module path: its files are no modules of this environment."""
    if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:  # noqa: PTH100, PTH120
        del sys.path[0]


def claim_output() -> BinaryIO:
    """Keep the real standard output for answers; redirect what libraries print to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def read_ahead(lines: BinaryIO) -> queue.SimpleQueue[bytes]:
    """Read requests in a thread that ends the process when the input ends, whatever it is doing."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in lines:
            requests.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return requests


def say(answers: BinaryIO, answer: dict[str, Any]) -> None:
    """Write one line."""
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def load(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Load the pipeline with its weights; return it and its facts."""
    module, _, name = os.environ.get(PIPELINE, REAL).partition(":")
    try:
        torch: Any = importlib.import_module("torch")
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, RuntimeError) as error:  # the fork raises RuntimeError for what it misses
        raise WorkerError("setup", f"this environment has no {name}: {error}") from error
    device = find_device(torch, settings["device"])
    offload = fitting(torch, device, settings)
    options = {"torch_dtype": torch.bfloat16, "local_files_only": os.path.isdir(settings["model"])}  # noqa: PTH112
    if settings["revision"] is not None:
        options["revision"] = settings["revision"]
    try:
        pipeline = kind.from_pretrained(settings["model"], **options)
    except (ImportError, OSError, ValueError) as error:
        if describe(error)[0] == "out_of_memory":
            raise
        raise WorkerError("setup", f"the model '{settings['model']}' could not be loaded: {error}") from error
    place(pipeline, offload, device)
    return pipeline, {
        "packages": {package: installed(package) for package in PACKAGES},
        "pipeline": kind.__name__,
        "commit": commit_of(pipeline),
        "device": device,
        "offload": offload,
        "dtype": "bfloat16",
    }


def find_device(torch: Any, wanted: str) -> str:
    """Return the device to use: the requested one, or the best available."""
    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def fitting(torch: Any, device: str, settings: dict[str, Any]) -> str:
    """Return the first `offload` for which the GPU has room; on other devices, the requested one."""
    if not device.startswith("cuda"):
        return str(settings["offload"])
    gpu = torch.cuda.get_device_properties(device).total_memory / 1e9
    for way, needed in settings["ways"].items():
        if needed <= gpu:
            return str(way)
    raise GpuTooSmallError(gpu)


def place(pipeline: Any, offload: str, device: str) -> None:
    """Put the weights where they belong."""
    if offload != "none" and device == "cpu":
        raise WorkerError("setup", f"setting 'offload' is '{offload}', but there is no GPU here; remove the setting")
    if offload == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif offload == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    else:
        pipeline.to(device)


def edit(pipeline: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Run the pipeline once."""
    torch: Any = importlib.import_module("torch")
    images: Any = importlib.import_module("PIL.Image")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        output = pipeline(
            image=images.open(io.BytesIO(base64.b64decode(request["image"]))),
            prompt=request["prompt"],
            negative_prompt="",
            generator=torch.Generator(device="cpu").manual_seed(request["seed"]),
            **request["call"],
        )
    if any("invalid value encountered in cast" in str(warning.message) for warning in seen):
        raise WorkerError(
            "nan_image", "the output holds values that are not numbers"
        )  # numpy says so on the way to PIL
    picture = output.final_images[0].convert("RGB")
    if picture.getbbox() is None:
        raise WorkerError("black_image", "the output is entirely black, as after a safety checker")
    content = io.BytesIO()
    picture.save(content, "PNG")
    return {
        "image": base64.b64encode(content.getvalue()).decode(),
        "prompt": getattr(output, "reformat_prompt", None),
    }


def describe(error: Exception) -> tuple[str, str]:
    """Return the failure's name and message."""
    if isinstance(error, WorkerError):
        return error.kind, str(error)
    words = f"{type(error).__name__}: {error}"
    memory = isinstance(error, MemoryError) or re.search(
        r"OutOfMemory|out of memory|(can't|cannot) allocate memory", words, re.IGNORECASE
    )
    return ("out_of_memory" if memory else "crash"), words


def commit_of(pipeline: Any) -> str | None:
    """Return the hub commit of the weights, from the name of the cache folder."""
    config = getattr(getattr(pipeline, "transformer", None), "config", None)
    match = re.search(r"snapshots[/\\]([0-9a-f]{40})", str(getattr(config, "_name_or_path", "")))
    return match[1] if match else None


def installed(package: str) -> str | None:
    """Return the installed version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()

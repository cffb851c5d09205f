"""Qwen-Image-Edit-2511 on this machine, through diffusers' QwenImageEditPlusPipeline.

A negative prompt always goes along: without one the pipeline silently leaves true classifier-free guidance off.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.pixels import picture

ID = "qwen-image-edit-2511"
PIPELINE = "QwenImageEditPlusPipeline"
PACKAGES = ("torch", "diffusers", "transformers", "accelerate")
ROUND = 32
"""Sides of an output are multiples of this."""
T = TypeVar("T")


class QwenImageEdit:
    """Qwen-Image-Edit-2511: edits one portrait, or two into one picture. Weights load on the first edit, once."""

    max_images = 2
    needs_gpu = True
    vram_gb = 16

    def __init__(
        self,
        *,
        model: str = "Qwen/Qwen-Image-Edit-2511",
        revision: str | None = None,
        steps: int = 40,
        true_cfg_scale: float = 4.0,
        guidance_scale: float = 1.0,
        negative_prompt: str = " ",
        size: int = 1024,
        dtype: str = "bfloat16",
        device: str = "auto",
        device_map: str | None = None,
        quantize: str | None = None,
        offload: str = "none",
        attention_slicing: bool = False,
        vae_slicing: bool = False,
    ) -> None:
        self.model = _text("model", model)
        """A hub id, or a folder on this machine."""
        self.revision = None if revision is None else _text("revision", revision)
        """Branch, tag or commit of the hub model; `facts` has the commit that was loaded."""
        self.steps = _count("steps", steps)
        self.true_cfg_scale = _number("true_cfg_scale", true_cfg_scale)
        """Classifier-free guidance against the negative prompt; 1 switches it off."""
        self.guidance_scale = _number("guidance_scale", guidance_scale)
        """For guidance-distilled weights only; the released model is not, and `facts` says what was used."""
        self.negative_prompt = _text("negative_prompt", negative_prompt)
        self.size = _count("size", size, least=ROUND)
        """The output has about size × size pixels; the model was trained at 1024."""
        self.dtype = _choice("dtype", dtype, "bfloat16", "float16", "float32")
        self.device = _text("device", device)
        self.device_map = _choice("device_map", device_map, None, "balanced")
        """balanced: spread over the GPUs."""
        self.quantize = _choice("quantize", quantize, None, "4bit")
        """4bit: transformer and text encoder as NF4, by bitsandbytes."""
        self.offload = _choice("offload", offload, "none", "model", "sequential")
        """What waits in main memory: nothing, whole models, or every layer."""
        self.attention_slicing = _choice("attention_slicing", attention_slicing, False, True)
        """Where the model can: diffusers 0.42 cannot slice this one's attention, and `facts` says so."""
        self.vae_slicing = _choice("vae_slicing", vae_slicing, False, True)
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device):
            raise EvenEditError(f"setting 'device' is {device!r}; it must be auto, cpu, mps, cuda or cuda:N")
        if self.device_map and (self.offload != "none" or self.device != "auto"):
            raise EvenEditError("setting 'device_map' places the weights itself; remove 'device' and 'offload', or it")
        if revision is not None and Path(self.model).is_dir():
            raise EvenEditError(f"setting 'revision' is {revision!r}, but 'model' is a folder, which has no revisions")
        self._lock = Lock()  # the scheduler keeps its place in the pipeline: one edit at a time
        self._pipeline: Any = None

    def missing(self) -> list[str]:
        """What is needed to use it and not there."""
        return [] if all(find_spec(package) for package in PACKAGES) else [_missing()]

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image:
        """Return the edited picture, in the shape of the last image."""
        with self._lock:
            torch = _import("torch")
            pipeline = _failing_in_words(torch, lambda: self._load(torch))
            width, height = _shape(images[-1], self.size)
            output = _failing_in_words(
                torch,
                lambda: pipeline(
                    image=[image.convert("RGB") for image in images],
                    prompt=instruction,
                    negative_prompt=self.negative_prompt,
                    num_inference_steps=self.steps,
                    true_cfg_scale=self.true_cfg_scale,
                    guidance_scale=self._guidance(pipeline),
                    height=height,
                    width=width,
                    generator=torch.Generator(device="cpu").manual_seed(seed),
                    output_type="np",  # PIL would turn NaN into black
                ),
            )
        return picture(output.images[0])

    def facts(self) -> dict[str, Any]:
        """What really ran: every setting, packages; once weights are loaded also their commit, device and use."""
        facts: dict[str, Any] = {
            "settings": {name: getattr(self, name) for name in inspect.signature(type(self)).parameters},
            "packages": {name: _version(name) for name in PACKAGES},
        }
        pipeline = self._pipeline
        if pipeline is not None:
            commit = re.search(r"snapshots/([0-9a-f]{40})", Path(pipeline.transformer.config._name_or_path).as_posix())
            facts["pipeline"] = type(pipeline).__name__
            facts["commit"] = commit[1] if commit else None
            facts["device"] = str(pipeline._execution_device)
            facts["guidance_scale"] = self._guidance(pipeline)
            facts["attention_slicing"] = self.attention_slicing and any(
                hasattr(part, "set_attention_slice") for part in pipeline.components.values()
            )
        return facts

    def _guidance(self, pipeline: Any) -> float | None:
        """The distilled guidance where the weights take one; asked for elsewhere, the pipeline ignores it."""
        return self.guidance_scale if pipeline.transformer.config.guidance_embeds else None

    def _load(self, torch: Any) -> Any:
        if self._pipeline is None:
            diffusers = _import("diffusers")
            device = _device(torch, self.device)
            for name in ("offload", "quantize"):
                if getattr(self, name) not in (None, "none") and device == "cpu":
                    raise EvenEditError(f"setting '{name}' needs a GPU, and there is none here; remove the setting")
            pipeline = self._from_pretrained(torch, diffusers)
            pipeline.set_progress_bar_config(disable=True)
            if self.attention_slicing:
                pipeline.enable_attention_slicing()
            if self.vae_slicing:
                pipeline.vae.enable_slicing()
            if self.offload == "model":
                pipeline.enable_model_cpu_offload(device=device)
            elif self.offload == "sequential":
                pipeline.enable_sequential_cpu_offload(device=device)
            elif self.device_map is None:
                pipeline.to(device)
            self._pipeline = pipeline
        return self._pipeline

    def _from_pretrained(self, torch: Any, diffusers: Any) -> Any:
        dtype = getattr(torch, self.dtype)
        options: dict[str, Any] = {"dtype": dtype, "local_files_only": Path(self.model).is_dir()}
        if self.revision is not None:
            options["revision"] = self.revision
        if self.device_map is not None:
            options["device_map"] = self.device_map
        if self.quantize is not None:
            _import("bitsandbytes", "setting 'quantize' needs bitsandbytes. Try: pip install bitsandbytes")
            options["quantization_config"] = diffusers.PipelineQuantizationConfig(
                quant_backend="bitsandbytes_4bit",
                quant_kwargs={
                    "load_in_4bit": True,
                    "bnb_4bit_quant_type": "nf4",
                    "bnb_4bit_compute_dtype": dtype,
                },
                components_to_quantize=["transformer", "text_encoder"],
            )
        try:
            return getattr(diffusers, PIPELINE).from_pretrained(self.model, **options)
        except (ImportError, AttributeError) as error:  # a package is missing or older than the pipeline
            raise EvenEditError(f"{_missing()} ({error})") from None
        except (OSError, ValueError) as error:
            if _out_of_memory(torch, error):
                raise
            raise EvenEditError(
                f"editor '{ID}' could not load the model '{self.model}': {error}",
                "Name a folder that holds the model, or a hub id whose licence you accepted, after: hf auth login",
            ) from None


def _shape(image: Image, size: int) -> tuple[int, int]:
    """Width and height of the output: the pipeline's own rule for an area of size × size."""
    ratio = image.width / image.height
    across = size * math.sqrt(ratio)
    width, height = (max(ROUND, round(side / ROUND) * ROUND) for side in (across, across / ratio))
    return width, height


# From here on the two local editors are the same, word for word; a test compares them.


def _failing_in_words(torch: Any, call: Callable[[], T]) -> T:
    """Do it; what goes wrong becomes a named failure."""
    try:
        return call()
    except (EvenEditError, Failed):
        raise
    except Exception as error:
        kind = Failure.OUT_OF_MEMORY if _out_of_memory(torch, error) else Failure.CRASH
        failed = Failed(kind, f"{type(error).__name__}: {error}")
    # outside the handler: the error's frames, and with them the tensors, are gone
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    raise failed


def _out_of_memory(torch: Any, error: BaseException) -> bool:
    """CUDA has a type for it, Python another; the CPU allocator, MPS and mmap have only words."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or bool(
        re.search(r"out of memory|(can't|cannot) allocate memory", str(error), re.IGNORECASE)
    )


def _import(name: str, otherwise: str = "") -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise EvenEditError(otherwise or _missing()) from None


def _missing() -> str:
    return f"study.toml asks for editor '{ID}', which needs the 'local' extra. Try: pip install 'evenedit[local]'"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device(torch: Any, wanted: str) -> str:
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, there in has.items() if there)
    if not has[wanted.partition(":")[0]]:
        raise EvenEditError(f"setting 'device' is {wanted!r}, but torch finds no such device here")
    return wanted


def _choice(name: str, value: Any, *allowed: Any) -> Any:
    if value not in allowed or type(value) not in {type(a) for a in allowed}:
        words = ", ".join("absent" if a is None else str(a).lower() if isinstance(a, bool) else a for a in allowed)
        raise EvenEditError(f"setting '{name}' is {value!r}; allowed: {words}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a text")
    return value


def _count(name: str, value: Any, least: int = 1) -> int:
    if type(value) is not int or value < least:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a whole number, {least} or more")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a number, 0 or more")
    return float(value)

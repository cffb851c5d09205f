"""What editors on this machine share that run a pipeline of diffusers: settings, loading, calling, named failures.

A model's own class names its pipeline and says what that pipeline is called with. To save memory there are `quantize`
and `offload`, or `memory`, which chooses them for the size of a GPU. Nothing heavy is imported before the first edit.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeVar

from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import CannotLoad, EvenEditError, Failed, Failure
from evenedit.core.settings import InheritsSettings
from evenedit.editors.local.memory import (
    AUTO,
    GB,
    PRESETS,
    MemoryNeed,
    Weights,
    fitting,
    in_words,
    main_memory,
    need,
    preset_for,
    weights_of,
)
from evenedit.editors.pixels import picture

MOST_ENCODED = 128
"""Instructions that are kept as the text encoder read them, some 16 MB each for FLUX.2; more are read edit by edit."""
PACKAGES = ("torch", "diffusers", "transformers", "accelerate")
T = TypeVar("T")


class DiffusersEditor(InheritsSettings, ABC):
    """Edits with a pipeline of diffusers. Weights load on the first edit, once."""

    needs_gpu = True
    kind: str
    """The editor's name in study files, for messages."""
    pipeline: str
    """The pipeline's class in diffusers."""
    presets: ClassVar[Mapping[str, Mapping[str, str]]]
    """Settings with which it fits a GPU of this size."""
    added_settings = frozenset({"memory"})
    encodes_first = False
    """Whether its text encoder sees the instruction alone, so that one reading serves every portrait."""
    backbone = "transformer"
    """The pipeline's part that denoises: `facts` has the commit of its weights."""

    def __init__(
        self,
        *,
        model: str,
        revision: str | None = None,
        steps: int,
        dtype: str = "bfloat16",
        device: str = "auto",
        device_map: str | None = None,
        quantize: str | None = None,
        offload: str = "none",
        attention_slicing: bool = False,
        vae_slicing: bool = False,
        memory: str = AUTO,
    ) -> None:
        self.model = settings.text("model", model)
        """A hub id, or a folder on this machine."""
        self.revision = None if revision is None else settings.text("revision", revision)
        """Branch, tag or commit of the hub model; `facts` has the commit that was loaded."""
        self.steps = settings.count("steps", steps)
        self.dtype = settings.choice("dtype", dtype, "bfloat16", "float16", "float32")
        self.device = settings.text("device", device)
        self.device_map = settings.choice("device_map", device_map, None, "balanced")
        """balanced: spread over the GPUs."""
        self.quantize = settings.choice("quantize", quantize, None, "4bit")
        """4bit: the backbone and the text encoder as NF4, by bitsandbytes."""
        self.offload = settings.choice("offload", offload, "none", "model", "sequential")
        """What waits in main memory: nothing, whole models, or every layer."""
        self.attention_slicing = settings.choice("attention_slicing", attention_slicing, False, True)
        """Where the model can: diffusers 0.42 cannot slice every one's attention, and `facts` says so."""
        self.vae_slicing = settings.choice("vae_slicing", vae_slicing, False, True)
        self.memory = settings.choice("memory", memory, AUTO, *PRESETS)
        """A GPU's size, sets `quantize` and `offload`; auto: the fastest `offload` that fits, for the same pixels."""
        self._use_preset()
        self._check_together()
        self._lock = Lock()  # the scheduler keeps its place in the pipeline: one edit at a time
        self._pipeline: Any = None
        self._offloaded = self.offload
        self._encoded: dict[str, Any] = {}
        """What the text encoder made of instructions that were read before."""
        self._sizes: dict[str, float] = {}
        """Gigabytes of weights loaded to read instructions, and to edit."""

    @abstractmethod
    def arguments(self, pipeline: Any, images: Sequence[Image]) -> dict[str, Any]:
        """What the pipeline is called with beside images, prompt, steps and generator: guidance, size …"""

    def load(self) -> None:
        """Load the weights; raises where that would fail for every edit."""
        with self._lock:
            torch = self._import("torch")
            try:
                _failing_in_words(torch, lambda: self._load(torch))
            except Failed as failed:
                raise CannotLoad(failed.failure, f"it cannot be loaded ({failed})") from None

    def encode(self, instructions: Iterable[str]) -> None:
        """Read instructions once, before the first edit, and let go of the text encoder: edits need it no longer.

        Only where it sees nothing but the instruction, and there are not too many to keep.
        """
        new = [text for text in dict.fromkeys(instructions) if text not in self._encoded]
        if not self.encodes_first or not new or len(new) > MOST_ENCODED:
            return
        with self._lock:
            torch = self._import("torch")
            try:
                _failing_in_words(torch, lambda: self._encode(torch, new))
            except Failed as failed:
                raise CannotLoad(failed.failure, f"its text encoder cannot be used ({failed})") from None

    def _encode(self, torch: Any, instructions: Sequence[str]) -> None:
        self._pipeline = None  # whoever edited makes room
        reader = self._made(torch, dict.fromkeys((self.backbone, "vae")))
        self._sizes["encode"] = _gigabytes(reader)
        with torch.no_grad():
            for text in instructions:
                self._encoded[text] = reader.encode_prompt(prompt=text)[0].cpu()
        del reader
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _prompt(self, pipeline: Any, instruction: str) -> dict[str, Any]:
        """The instruction as the pipeline takes it: in words, or as the text encoder read it before."""
        if instruction not in self._encoded:
            return {"prompt": instruction}
        return {"prompt_embeds": self._encoded[instruction].to(pipeline._execution_device)}

    @property
    def weights(self) -> Weights | None:
        """The size of the model; None where it is not known."""
        return weights_of(self.model, self.revision)

    def needs(self, **changes: Any) -> MemoryNeed | None:
        """The memory that it needs with its settings, or with `changes` of them; None where it is not known."""
        used = {"dtype": self.dtype, "quantize": self.quantize, "offload": self.offload, **changes}
        return None if self.weights is None else need(self.weights, **used)

    def fits(self, gpu: float, main: float = math.inf) -> str | None:
        """The `offload` it would use with so many gigabytes on the GPU and in main memory; None where it cannot fit."""
        if self.weights is None or self.device_map is not None:
            return str(self.offload)
        if self.memory != AUTO or self.offload != "none":
            asked = self.needs()
            return str(self.offload) if asked is not None and asked.gpu <= gpu else None
        return fitting(self.weights, gpu, main, dtype=self.dtype, quantize=self.quantize)

    def missing(self) -> list[str]:
        """What is needed to use it and not there."""
        return [] if all(find_spec(package) for package in PACKAGES) else [self._needs_extra()]

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image:
        """Return the edited picture."""
        if self._encoded and instruction not in self._encoded:
            self.encode([instruction])
        with self._lock:
            torch = self._import("torch")
            try:
                pipeline = _failing_in_words(torch, lambda: self._load(torch))
            except Failed as failed:
                raise CannotLoad(failed.failure, f"it cannot be loaded ({failed})") from None
            output = _failing_in_words(
                torch,
                lambda: pipeline(
                    image=[image.convert("RGB") for image in images],
                    **self._prompt(pipeline, instruction),
                    num_inference_steps=self.steps,
                    generator=torch.Generator(device="cpu").manual_seed(seed),
                    output_type="np",  # PIL would turn NaN into black
                    **self.arguments(pipeline, images),
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
        return facts if pipeline is None else facts | self._facts_of(pipeline)

    def _facts_of(self, pipeline: Any) -> dict[str, Any]:
        folder = Path(getattr(pipeline, self.backbone).config._name_or_path)
        commit = re.search(r"snapshots/([0-9a-f]{40})", folder.as_posix())
        sliceable = any(hasattr(part, "set_attention_slice") for part in pipeline.components.values())
        return {
            "pipeline": type(pipeline).__name__,
            "commit": commit[1] if commit else None,
            "device": str(pipeline._execution_device),
            "attention_slicing": self.attention_slicing and sliceable,
            "offload": self._offloaded,
            **({"encoded_first": len(self._encoded), "gigabytes": dict(self._sizes)} if self._encoded else {}),
        }

    def _use_preset(self) -> None:
        if self.memory == AUTO:
            return
        if self.offload != "none" or self.quantize is not None or self.device_map is not None:
            raise EvenEditError("setting 'memory' chooses 'offload' and 'quantize' itself; remove these, or it")
        chosen = self.presets[self.memory]
        self.offload, self.quantize = chosen.get("offload", "none"), chosen.get("quantize")

    def _fit(self, torch: Any, device: str) -> str:
        """The `offload` that fits the GPU; raises where the weights cannot fit."""
        if not device.startswith("cuda"):
            return str(self.offload)
        size = torch.cuda.get_device_properties(device).total_memory / GB
        found, asked = self.fits(size, main_memory()), self.needs()
        if found is None and asked is not None:
            raise EvenEditError(
                f"editor '{self.kind}' needs {in_words(asked)}; here are {size:.0f} and {main_memory():.0f} GB. "
                f"{self.advice(size)}"
            )
        return str(found)

    def advice(self, gpu: float) -> str:
        """The setting with which it would fit a GPU of so many gigabytes."""
        return preset_for(self.presets, self.needs, gpu)

    def _check_together(self) -> None:
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device):
            raise EvenEditError(f"setting 'device' is {self.device!r}; it must be auto, cpu, mps, cuda or cuda:N")
        if self.device_map and (self.offload != "none" or self.device != "auto"):
            raise EvenEditError("setting 'device_map' places the weights itself; remove 'device' and 'offload', or it")
        if self.revision is not None and Path(self.model).is_dir():
            raise EvenEditError(
                f"setting 'revision' is {self.revision!r}, but 'model' is a folder, which has no revisions"
            )

    # -- loading -------------------------------------------------------------------------------------------

    def _load(self, torch: Any) -> Any:
        if self._pipeline is None:
            self._pipeline = self._made(torch, dict.fromkeys(("text_encoder", "tokenizer")) if self._encoded else {})
            self._sizes["edit"] = _gigabytes(self._pipeline)
        return self._pipeline

    def _made(self, torch: Any, left_out: Mapping[str, None]) -> Any:
        """The pipeline, on its device, without some of its parts."""
        diffusers = self._import("diffusers")
        device = _device(torch, self.device)
        for name in ("offload", "quantize"):
            if getattr(self, name) not in (None, "none") and device == "cpu":
                raise EvenEditError(f"setting '{name}' needs a GPU, and there is none here; remove the setting")
        options = {**self._options(torch, diffusers, left_out), **left_out}
        offload = self._fit(torch, device)
        pipeline = self._from_pretrained(torch, diffusers, options)
        pipeline.set_progress_bar_config(disable=True)
        self._save_memory(pipeline)
        self._place(pipeline, device, offload)
        return pipeline

    def _save_memory(self, pipeline: Any) -> None:
        if self.attention_slicing:
            pipeline.enable_attention_slicing()
        if self.vae_slicing and pipeline.vae is not None:
            pipeline.vae.enable_slicing()

    def _place(self, pipeline: Any, device: str, offload: str) -> None:
        self._offloaded = offload
        if offload == "model":
            pipeline.enable_model_cpu_offload(device=device)
        elif offload == "sequential":
            pipeline.enable_sequential_cpu_offload(device=device)
        elif self.device_map is None:
            pipeline.to(device)

    def _from_pretrained(self, torch: Any, diffusers: Any, options: Mapping[str, Any]) -> Any:
        try:
            return getattr(diffusers, self.pipeline).from_pretrained(self.model, **options)
        except (ImportError, AttributeError) as error:  # a package is missing or older than the pipeline
            raise EvenEditError(f"{self._needs_extra()} ({error})") from None
        except (OSError, ValueError) as error:
            if _out_of_memory(torch, error):
                raise
            raise EvenEditError(
                f"editor '{self.kind}' could not load the model '{self.model}': {error}",
                "Name a folder that holds the model, or a hub id whose licence you accepted, after: hf auth login",
            ) from None

    def _options(self, torch: Any, diffusers: Any, left_out: Container[str] = ()) -> dict[str, Any]:
        dtype = getattr(torch, self.dtype)
        options: dict[str, Any] = {"dtype": dtype, "local_files_only": Path(self.model).is_dir()}
        if self.revision is not None:
            options["revision"] = self.revision
        if self.device_map is not None:
            options["device_map"] = self.device_map
        if self.quantize is not None:
            self._import("bitsandbytes", "setting 'quantize' needs bitsandbytes. Try: pip install bitsandbytes")
            options["quantization_config"] = diffusers.PipelineQuantizationConfig(
                quant_backend="bitsandbytes_4bit",
                quant_kwargs={
                    "load_in_4bit": True,
                    "bnb_4bit_quant_type": "nf4",
                    "bnb_4bit_compute_dtype": dtype,
                },
                components_to_quantize=[p for p in (self.backbone, "text_encoder") if p not in left_out],
            )
        return options

    def _import(self, name: str, otherwise: str = "") -> Any:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            raise EvenEditError(otherwise or self._needs_extra()) from None

    def _needs_extra(self) -> str:
        return (
            f"study.toml asks for editor '{self.kind}', which needs the 'local' extra. "
            "Try: pip install 'evenedit[local]'"
        )


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


def _gigabytes(pipeline: Any) -> float:
    """The weights of a pipeline's parts."""
    parts = (part for part in pipeline.components.values() if hasattr(part, "parameters"))
    return float(sum(p.numel() * p.element_size() for part in parts for p in part.parameters()) / GB)


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

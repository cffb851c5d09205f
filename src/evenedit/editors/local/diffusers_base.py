"""Editors on this machine that run a pipeline of diffusers: settings, loading, calling, named failures.

Any pipeline that takes a picture and a prompt will do; how it takes them is found from its signature. To save memory
there are `quantize` and `offload`, or `memory`, which chooses them for the size of a GPU. Nothing heavy is imported
before the first edit.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError
from evenedit.core.settings import InheritsSettings
from evenedit.editors.local import sizes
from evenedit.editors.local.failing import failing_in_words, gigabytes, out_of_memory
from evenedit.editors.local.lora import Lora
from evenedit.editors.local.memory import (
    AUTO,
    GB,
    PRESETS,
    QUANTIZED,
    MemoryNeed,
    Weights,
    fitting,
    in_words,
    main_memory,
    need,
    preset_for,
    snapshot,
    weights_of,
)
from evenedit.editors.local.pipeline_call import PipelineCall, check_lists, check_names, facts_of, painted

MOST_ENCODED = 128
"""Instructions that are kept as the text encoder read them, some 16 MB each for FLUX.2; more are read edit by edit."""
PACKAGES = ("torch", "diffusers", "transformers", "accelerate")


class DiffusersEditor(InheritsSettings):
    """Edits with a pipeline of diffusers. Weights load on the first edit, once."""

    needs_gpu = True
    kind: ClassVar[str] = "diffusers"
    """The editor's name in study files, for messages."""
    presets: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "80gb": {},
        "48gb": {"offload": "model"},
        "24gb": {"quantize": "4bit", "offload": "model"},
    }
    """Settings with which it fits a GPU of this size."""
    added_settings: ClassVar[frozenset[str]] = frozenset({"batch"})
    encodes_first = True
    """Whether it wants to know all instructions before: where the text encoder sees nothing else, one reading does."""

    def __init__(
        self,
        *,
        model: str,
        pipeline: str | None = None,
        revision: str | None = None,
        dtype: str = "bfloat16",
        device: str = "auto",
        device_map: str | None = None,
        quantize: str | None = None,
        offload: str = "none",
        attention_slicing: bool = False,
        vae_slicing: bool = False,
        memory: str = AUTO,
        load: Mapping[str, Any] | None = None,
        call: Mapping[str, Any] | None = None,
        lora: str | Mapping[str, Any] | None = None,
        scheduler: Mapping[str, Any] | None = None,
        size: str | int | Sequence[int] = "pipeline",
        image_argument: str | None = None,
        image_tag: str | None = None,
        max_images: int | None = None,
        batch: int = 1,
    ) -> None:
        self.model = settings.text("model", model)
        """A hub id, or a folder on this machine."""
        self.pipeline = None if pipeline is None else settings.text("pipeline", pipeline)
        """The pipeline's class in diffusers; None: the one that the model's `model_index.json` names."""
        self.revision = None if revision is None else settings.text("revision", revision)
        """Branch, tag or commit of the hub model; `facts` has the commit that was loaded."""
        self.dtype = settings.choice("dtype", dtype, "bfloat16", "float16", "float32")
        self.device = settings.text("device", device)
        self.device_map = settings.choice("device_map", device_map, None, "balanced")
        """balanced: spread over the GPUs."""
        self.quantize = settings.choice("quantize", quantize, None, "4bit")
        """4bit: the backbone and the text encoders as NF4, by bitsandbytes."""
        self.offload = settings.choice("offload", offload, "none", "model", "sequential")
        """What waits in main memory: nothing, whole models, or every layer."""
        self.attention_slicing = settings.choice("attention_slicing", attention_slicing, False, True)
        """Where the model can: diffusers 0.42 cannot slice every one's attention, and `facts` says so."""
        self.vae_slicing = settings.choice("vae_slicing", vae_slicing, False, True)
        self.memory = settings.choice("memory", memory, AUTO, *PRESETS)
        """A GPU's size, sets `quantize` and `offload`; auto: the fastest `offload` that fits, for the same pixels."""
        self.load_with = settings.table("load", load)
        """Further arguments of `from_pretrained`."""
        self.call = settings.table("call", call)
        """Arguments of the pipeline's call: steps, guidance …"""
        self.lora = None if lora is None else Lora.read(lora)
        """Weights added to the model's: a hub id or a folder, or a table with model, weight_name and scale."""
        self.scheduler = settings.table("scheduler", scheduler)
        """Changes of the scheduler's configuration, as step-distilled weights want them; `class` names another one."""
        self.size = sizes.checked(size)
        """What the output measures: as the pipeline chooses, as the first image, N × N pixels, [width, height]."""
        self.image_argument = None if image_argument is None else settings.text("image_argument", image_argument)
        """The argument that takes the images; found from the signature unless given."""
        self.image_tag = image_tag
        """What stands in the prompt for image number {n}; None: what the pipeline is known to want."""
        known = facts_of(self.pipeline or self._named_by_the_model())
        self.max_images = settings.count("max_images", max_images) if max_images is not None else 1 + known.several
        """The number of input images it takes at most."""
        self.batch = settings.count("batch", batch)
        """Edits in one call of the pipeline at most, where it takes lists of images and prompts."""
        self._use_preset()
        self._check_together()
        self._lock = Lock()  # the scheduler keeps its place in the pipeline: one edit at a time
        self._pipeline: Any = None
        self._how: PipelineCall | None = None
        self._offloaded = self.offload
        self._encoded: dict[str, dict[str, Any]] = {}
        """What the text encoder made of instructions that were read before, by argument of the call."""
        self._sizes: dict[str, float] = {}
        """Gigabytes of weights loaded to read instructions, and to edit."""

    @classmethod
    def images_for(cls, arguments: Mapping[str, Any]) -> int:
        """Return the largest number of input images with these settings."""
        built = cls(**arguments)
        return built.max_images

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the pipeline call besides images, prompt, size and generator."""
        return dict(self.call)

    def load(self) -> None:
        """Load the weights; raise LoadError if that would fail for each edit."""
        with self._lock:
            torch = self._import("torch")
            try:
                failing_in_words(torch, lambda: self._load(torch))
            except Failed as failed:
                raise LoadError(failed.failure, f"it cannot be loaded ({failed})") from None

    def encode(self, instructions: Iterable[str]) -> None:
        """Encode instructions once, before the first edit, and free the text encoder, which edits do not need.

        Only where it sees nothing but the instruction, and there are not too many to keep.
        """
        new = [text for text in dict.fromkeys(instructions) if text not in self._encoded]
        if not self.reads_first(len(new)):
            return
        with self._lock:
            torch = self._import("torch")
            try:
                failing_in_words(torch, lambda: self._encode(torch, new))
            except Failed as failed:
                raise LoadError(failed.failure, f"its text encoder cannot be used ({failed})") from None

    def reads_first(self, instructions: int) -> bool:
        """Return whether so many different instructions are encoded before the first edit."""
        known = facts_of(self.pipeline or self._named_by_the_model())
        return bool(known.reads) and 0 < instructions <= MOST_ENCODED

    def _encode(self, torch: Any, instructions: Sequence[str]) -> None:
        self._pipeline = None  # whoever edited makes room
        how = self._call_of(self._import("diffusers"))
        reader = self._build_pipeline(torch, dict.fromkeys((how.backbone, "vae")))
        self._sizes["encode"] = gigabytes(reader)
        taken = inspect.signature(reader.encode_prompt).parameters
        options = {name: value for name, value in self.arguments().items() if name in taken}
        options.pop("negative_prompt", None)

        with torch.no_grad():
            if how.facts.against:
                against = _read(reader, self.arguments().get("negative_prompt") or "", how.facts.against, options)
            else:
                against = {}
            for text in instructions:
                self._encoded[text] = {**_read(reader, text, how.facts.reads, options), **against}
        del reader
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _prompt(self, torch: Any, how: PipelineCall, instructions: Sequence[str], count: int) -> dict[str, Any]:
        """Return the instructions as the pipeline takes them: as text, or as stored embeddings."""
        if not all(text in self._encoded for text in instructions):
            tag = how.facts.tag if self.image_tag is None else self.image_tag
            prompts = [how.prompt(text, count, tag) for text in instructions]
            return {"prompt": prompts if len(prompts) > 1 else prompts[0]}
        device = self._pipeline._execution_device
        read = [self._encoded[text] for text in instructions]
        return {name: torch.cat([one[name] for one in read]).to(device) for name in read[0]}

    @property
    def weights(self) -> Weights | None:
        """The size of the model; None where it is not known."""
        return weights_of(self.model, self.revision)

    def needs(self, without: Container[str] = (), **changes: Any) -> MemoryNeed | None:
        """Return the memory it needs with its settings, or with `changes` of them; None if not known."""
        used = {
            "dtype": self.dtype,
            "quantize": self.quantize,
            "offload": self.offload,
            "batch": self.batch,
            **self._asked_pixels(),
            **changes,
        }
        return None if self.weights is None else need(self.weights.without(without), **used)

    def _asked_pixels(self) -> dict[str, int]:
        """Return the size of an output, if the settings state it."""
        if isinstance(self.size, str):
            return {}
        width, height = self.size if isinstance(self.size, list) else (self.size, self.size)
        return {"pixels": width * height}

    def phases(self, instructions: int) -> dict[str, Container[str]]:
        """Return the phases of a run, each with the parts that it does not load."""
        if self.weights is None or not self.reads_first(instructions):
            return {"edit": ()}
        text = [name for name in self.weights.parts if name.startswith("text_encoder")]
        return {"read the instructions": [name for name in self.weights.parts if name not in text], "edit": text}

    def fits(self, gpu: float, main: float = math.inf, without: Container[str] = ()) -> str | None:
        """Return the `offload` that fits so many gigabytes of GPU and main memory; None if none fits."""
        if self.weights is None or self.device_map is not None:
            return str(self.offload)
        if self.memory != AUTO or self.offload != "none":
            memory_need = self.needs(without)
            return (
                str(self.offload)
                if memory_need is not None and memory_need.gpu <= gpu and memory_need.main <= main
                else None
            )
        return fitting(lambda offload: self.needs(without, offload=offload), gpu, main)

    def missing(self) -> list[str]:
        """Return one message for each missing requirement."""
        return [] if all(find_spec(package) for package in PACKAGES) else [self._needs_extra()]

    def check(self, _instructions: Sequence[str] = ()) -> None:
        """Raise an error for settings that would be refused, or ignored, once the weights are loaded."""
        diffusers = self._import("diffusers")
        if self._class(diffusers) is not diffusers.DiffusionPipeline:
            self._how = self._call_of(diffusers)
        self._check_scheduler(diffusers, self._index().get("scheduler", (None, None))[1])
        if self.lora is not None:
            self.lora.check()

    def notes(self, instructions: Sequence[str]) -> list[str]:
        """Return what becomes of sources and instructions, as far as the model's files are on this machine."""
        notes = []
        known = facts_of(self.pipeline or self._named_by_the_model())
        if known.square and self.size == "pipeline" and not {"height", "width"} & self.call.keys():
            notes.append("makes square pictures, whatever the shape of the source; 'size' can keep the shape")
        folder = snapshot(self.model, self.revision)
        for part in folder.glob("tokenizer*") if folder else ():
            try:
                read = self._import("transformers").AutoTokenizer.from_pretrained(part)
            except (OSError, ValueError):  # loading the model says why
                continue
            most = read.model_max_length
            long = [size for size in (len(read(text).input_ids) for text in instructions) if size > most]
            if long:
                notes.append(
                    f"'{part.name}' reads {most} tokens, and {len(long):,} of {len(instructions):,} "
                    f"instructions have more (up to {max(long):,}): their end does not reach that text encoder"
                )
        return notes

    def _check_scheduler(self, diffusers: Any, usual: str | None) -> None:
        """Raise an error for a scheduler that diffusers does not have, or changes that it would ignore."""
        changes = dict(self.scheduler)
        name = changes.pop("class", usual)
        if name is None:
            return
        if not hasattr(diffusers, name):
            raise EvenEditError(f"setting 'scheduler' names the class '{name}', which diffusers does not have")
        check_names("scheduler", changes, getattr(diffusers, name).__init__, name)

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Image:
        """Return the edited picture."""
        return self.edit_many([images], [instruction], [seed])[0]

    def edit_many(
        self, images: Sequence[Sequence[Image]], instructions: Sequence[str], seeds: Sequence[int]
    ) -> list[Image]:
        """Return the edited pictures of several requests, made in one call of the pipeline."""
        most = max(map(len, images))
        if most > self.max_images:
            raise EvenEditError(f"editor '{self.kind}' takes {self.max_images} image(s), not {most}")
        if self._encoded:
            self.encode(instructions)
        with self._lock:
            torch = self._import("torch")
            try:
                pipeline = failing_in_words(torch, lambda: self._load(torch))
            except Failed as failed:
                raise LoadError(failed.failure, f"it cannot be loaded ({failed})") from None
            how = self._how
            assert how is not None
            pictures = [how.pictures(each, self.max_images > 1) for each in images]
            generators = [torch.Generator(device="cpu").manual_seed(seed) for seed in seeds]
            single = len(images) == 1
            try:
                output = failing_in_words(
                    torch,
                    lambda: pipeline(
                        **{how.image: pictures[0] if single else pictures},
                        **self._prompt(torch, how, instructions, most),
                        **self._measures(how, pipeline, images[0]),
                        **self._passed(how, pipeline, len(images)),
                        generator=generators[0] if single else generators,
                        **({"output_type": "np"} if how.takes("output_type") else {}),  # PIL would turn NaN into black
                    ),
                )
            except Failed as failed:
                raise self._with_several(failed, how, most) from None
        return painted(output, how.name, len(images))

    def _with_several(self, failed: Failed, how: PipelineCall, most: int) -> Failed:
        """Return a failure, with a hint if several images may be the reason."""
        if most == 1 or how.facts.several or failed.failure is not Failure.CRASH:
            return failed
        return Failed(
            failed.failure,
            f"{failed}. {how.name} received {most} images, because 'max_images' is {self.max_images}; if it takes a "
            "list of images as a batch, leave that at 1",
        )

    def _passed(self, how: PipelineCall, pipeline: Any, count: int) -> dict[str, Any]:
        """Return the arguments of the call, without those used before or ignored by these weights.

        Further prompts are given as often as there are edits.
        """
        arguments = self.arguments()
        if count > 1:
            arguments |= {n: [v] * count for n, v in arguments.items() if "prompt" in n and isinstance(v, str)}
        if self._encoded and how.facts.against:
            arguments.pop("negative_prompt", None)
        if "guidance_scale" in arguments and not self._takes_guidance(how, pipeline):
            del arguments["guidance_scale"]
        return arguments

    def _takes_guidance(self, how: PipelineCall, pipeline: Any) -> bool:
        """Return whether these weights use `guidance_scale`: next to a true guidance, only distilled ones do."""
        config = getattr(pipeline, how.backbone).config
        return not how.takes("true_cfg_scale") or bool(getattr(config, "guidance_embeds", True))

    def _measures(self, how: PipelineCall, pipeline: Any, images: Sequence[Image]) -> dict[str, int]:
        size = sizes.output_size(self.size, images, int(getattr(pipeline, "vae_scale_factor", 8)) * 2)
        if size is None or {"height", "width"} & self.call.keys():
            return {}
        if not (how.takes("height") and how.takes("width")):
            raise EvenEditError(f"setting 'size' is {self.size!r}, but {how.name} takes no size; remove the setting")
        return {"width": size[0], "height": size[1]}

    def facts(self) -> dict[str, Any]:
        """Return what ran: settings and packages; once weights are loaded also their commit, device and use."""
        facts: dict[str, Any] = {
            "settings": {name: self._setting(name) for name in inspect.signature(type(self)).parameters},
            "packages": {name: _version(name) for name in PACKAGES},
        }
        pipeline = self._pipeline
        return facts if pipeline is None else facts | self._facts_of(pipeline)

    def _setting(self, name: str) -> Any:
        if name == "lora":
            return None if self.lora is None else asdict(self.lora)
        return getattr(self, "load_with" if name == "load" else name)

    def _facts_of(self, pipeline: Any) -> dict[str, Any]:
        how = self._how
        assert how is not None
        folder = Path(getattr(pipeline, how.backbone).config._name_or_path)
        commit = re.search(r"snapshots/([0-9a-f]{40})", folder.as_posix())
        sliceable = any(hasattr(part, "set_attention_slice") for part in pipeline.components.values())
        return {
            "pipeline": type(pipeline).__name__,
            "commit": commit[1] if commit else None,
            "device": str(pipeline._execution_device),
            "attention_slicing": self.attention_slicing and sliceable,
            "offload": self._offloaded,
            **({} if self._takes_guidance(how, pipeline) else {"guidance_scale": None}),
            **({"encoded_first": len(self._encoded), "gigabytes": dict(self._sizes)} if self._encoded else {}),
        }

    def _use_preset(self) -> None:
        if self.memory == AUTO:
            return
        if self.offload != "none" or self.quantize is not None or self.device_map is not None:
            raise EvenEditError(
                "setting 'memory' chooses 'offload' and 'quantize' itself; remove these two, or 'memory'"
            )
        chosen = self.presets[self.memory]
        self.offload, self.quantize = chosen.get("offload", "none"), chosen.get("quantize")

    def _fit(self, torch: Any, device: str, left_out: Container[str] = ()) -> str:
        """Return the `offload` that fits the GPU; raise if the weights cannot fit."""
        if not device.startswith("cuda"):
            return str(self.offload)
        size = torch.cuda.get_device_properties(device).total_memory / GB
        offload, memory_need = self.fits(size, main_memory(), left_out), self.needs(left_out)
        if offload is None and memory_need is not None:
            raise EvenEditError(
                f"editor '{self.kind}' needs {in_words(memory_need)}; available are {size:.0f} and "
                f"{main_memory():.0f} GB. "
                f"{self.advice(size, main_memory())}"
            )
        return str(offload)

    def advice(self, gpu: float, main: float = math.inf) -> str:
        """Return the setting with which it would fit so many gigabytes of GPU and main memory."""
        return preset_for(self.presets, self.needs, gpu, main)

    def _check_together(self) -> None:
        if named := self.pipeline or self._named_by_the_model():
            check_lists(named, self.batch, self.max_images)
        if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device):
            raise EvenEditError(f"setting 'device' is {self.device!r}; it must be auto, cpu, mps, cuda or cuda:N")
        if self.device_map and (self.offload != "none" or self.device != "auto"):
            raise EvenEditError(
                "setting 'device_map' places the weights itself; remove 'device' and 'offload', or 'device_map'"
            )
        if self.revision is not None and Path(self.model).is_dir():
            raise EvenEditError(
                f"setting 'revision' is {self.revision!r}, but 'model' is a folder, which has no revisions"
            )

    # -- loading -------------------------------------------------------------------------------------------

    def _load(self, torch: Any) -> Any:
        if self._pipeline is None:
            how = self._call_of(self._import("diffusers")) if self._encoded else None
            self._pipeline = self._build_pipeline(torch, dict.fromkeys(how.text_parts) if how else {})
            self._sizes["edit"] = gigabytes(self._pipeline)
        return self._pipeline

    def _named_by_the_model(self) -> str | None:
        """Return the pipeline that the model's index names, if its files are on this machine."""
        named = self._index().get("_class_name")
        return named if isinstance(named, str) else None

    def _index(self) -> dict[str, Any]:
        """Return the parts of the model by name, each with its library and class; empty if it is not here."""
        folder = snapshot(self.model, self.revision)
        try:
            index = json.loads((folder / "model_index.json").read_text("utf-8")) if folder else {}
        except (OSError, ValueError):
            index = {}
        return index if isinstance(index, dict) else {}

    def _class(self, diffusers: Any) -> Any:
        """Return the pipeline's class; if it is not known yet, the one of diffusers that detects it."""
        name = self.pipeline or self._named_by_the_model()
        if name is None:
            return diffusers.DiffusionPipeline
        try:
            return getattr(diffusers, name)
        except (ImportError, AttributeError, RuntimeError) as error:  # a package is missing or older than the pipeline
            known = [each for each in dir(diffusers) if each.endswith("Pipeline")]
            near = get_close_matches(name, known, n=1) if self.kind == "diffusers" else []
            if near:
                raise EvenEditError(
                    f"diffusers {diffusers.__version__} has no pipeline '{name}'; did you mean '{near[0]}'?"
                ) from None
            raise EvenEditError(f"{self._needs_extra()} ({error})") from None

    def _call_of(self, diffusers: Any) -> PipelineCall:
        """Return how the pipeline is called; raise for wrong arguments before anything is loaded."""
        return self._checked(PipelineCall(self._class(diffusers), self.image_argument))

    def _checked(self, how: PipelineCall) -> PipelineCall:
        check_lists(how.name, self.batch, self.max_images)
        how.check(self.arguments())
        how.check_load(self.load_with)
        return how

    def _build_pipeline(self, torch: Any, left_out: Mapping[str, None]) -> Any:
        """Build the pipeline on its device, without the parts `left_out`."""
        diffusers = self._import("diffusers")
        device = _device(torch, self.device)
        for name in ("offload", "quantize"):
            if getattr(self, name) not in (None, "none") and device == "cpu":
                raise EvenEditError(f"setting '{name}' needs a GPU, and none is available; remove the setting")
        self.check()
        cls = self._class(diffusers)
        options = {**self._options(torch, diffusers, left_out), **self.load_with, **left_out}
        offload = self._fit(torch, device, left_out)
        pipeline = self._from_pretrained(torch, cls, options)
        self._how = self._checked(PipelineCall(type(pipeline), self.image_argument))
        pipeline.set_progress_bar_config(disable=True)
        self._alter(diffusers, pipeline)
        self._save_memory(pipeline)
        self._place(pipeline, device, offload)
        return pipeline

    def _alter(self, diffusers: Any, pipeline: Any) -> None:
        """Change the scheduler and add the weights that the settings ask for."""
        if self.scheduler:
            changes = dict(self.scheduler)
            name = changes.pop("class", type(pipeline.scheduler).__name__)
            self._check_scheduler(diffusers, name)
            pipeline.scheduler = getattr(diffusers, name).from_config(pipeline.scheduler.config, **changes)
        backbone = getattr(pipeline, self._how.backbone, None) if self._how else None
        if self.lora is not None and backbone is not None:
            self._import("peft", "setting 'lora' needs peft. Try: pip install peft")
            self.lora.add_to(pipeline)

    def _save_memory(self, pipeline: Any) -> None:
        if self.attention_slicing:
            pipeline.enable_attention_slicing()
        if self.vae_slicing and getattr(pipeline, "vae", None) is not None:
            pipeline.vae.enable_slicing()

    def _place(self, pipeline: Any, device: str, offload: str) -> None:
        self._offloaded = offload
        if offload == "model":
            pipeline.enable_model_cpu_offload(device=device)
        elif offload == "sequential":
            pipeline.enable_sequential_cpu_offload(device=device)
        elif self.device_map is None:
            pipeline.to(device)

    def _from_pretrained(self, torch: Any, cls: Any, options: Mapping[str, Any]) -> Any:
        try:
            return cls.from_pretrained(self.model, **options)
        except ImportError as error:
            raise EvenEditError(f"{self._needs_extra()} ({error})") from None
        except (OSError, ValueError) as error:
            if out_of_memory(torch, error):
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
                components_to_quantize=[p for p in sorted(QUANTIZED) if self._has_part(p) and p not in left_out],
            )
        return options

    def _has_part(self, name: str) -> bool:
        return self._how.has_part(name) if self._how else name in ("transformer", "text_encoder")

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


def _read(reader: Any, text: str, names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Encode a text; return the embeddings under the argument names of the call."""
    embeddings = reader.encode_prompt(prompt=text, **options)
    return {name: one.cpu() for name, one in zip(names, embeddings, strict=False)}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device(torch: Any, wanted: str) -> str:
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, is_available in has.items() if is_available)
    if not has[wanted.partition(":")[0]]:
        raise EvenEditError(f"setting 'device' is {wanted!r}, but torch finds no such device here")
    return wanted

"""How a pipeline of diffusers is called, found from the signature of its class: images, prompt, wrong arguments."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, get_type_hints

import numpy as np
from PIL.Image import Image
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.pixels import picture

IMAGE_NAMES = ("image", "images", "input_images", "reference_images", "init_image")
"""Parameters under which pipelines take the pictures to edit, the most usual first."""
MASK = "mask_image"
"""What pipelines that repaint a part of a picture want beside it."""
LOAD_OPTIONS = frozenset(
    {"variant", "use_safetensors", "low_cpu_mem_usage", "max_memory", "custom_pipeline", "custom_revision"}
    | {"trust_remote_code", "cache_dir", "token", "use_onnx", "offload_folder", "offload_state_dict", "disable_mmap"}
)
"""Arguments of `from_pretrained` beside the parts of a pipeline."""


@cache
def table() -> dict[str, Any]:
    """Return presets by id, and facts about pipeline classes that their signature does not show."""
    return tomllib.loads(files(__package__).joinpath("pipelines.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class PipelineFacts:
    """What the signature of a pipeline's class does not tell."""

    several: bool = False
    """Whether a list of images is several references for one picture, and no batch."""
    batches: bool = False
    """Whether lists of images, prompts and generators are as many edits, each as it would be alone."""
    reads: tuple[str, ...] = ()
    """Where its text encoder sees the instruction alone: the names under which a call takes what it read."""
    against: tuple[str, ...] = ()
    """The same for the negative prompt."""
    tag: str = ""
    """What stands in the prompt for image number {n}."""
    prompt_key: str = ""
    """Where the prompt is a table: the key of the instruction."""
    square: bool = False
    """Whether its pictures are square where it chooses their size."""


@cache
def facts_of(pipeline: str | None) -> PipelineFacts:
    """Return what is known of a pipeline class; the defaults for most."""
    known = table()["classes"].get(pipeline, {})
    return PipelineFacts(
        known.get("several", False),
        known.get("batches", False),
        tuple(known.get("reads", ())),
        tuple(known.get("against", ())),
        known.get("tag", ""),
        known.get("prompt_key", ""),
        known.get("square", False),
    )


def check_lists(pipeline: str, batch: int, max_images: int) -> None:
    """Raise an error for several edits or images in one call if the pipeline does not take them."""
    known = facts_of(pipeline)
    if batch > 1 and known.several:
        raise EvenEditError(
            f"setting 'batch' is {batch}, but {pipeline} takes a list of images as several references for one picture: "
            "it makes one edit in a call. Leave 'batch' at 1"
        )
    if batch > 1 and not known.batches:
        raise EvenEditError(
            f"setting 'batch' is {batch}, but {pipeline} was not tested with lists of edits. "
            f"Leave 'batch' at 1; tested are: {', '.join(_with('batches'))}"
        )
    if max_images > 1 and known.batches:
        raise EvenEditError(
            f"setting 'max_images' is {max_images}, but {pipeline} takes a list of images as a batch, one picture for "
            f"each. Leave 'max_images' at 1, or use a pipeline that takes several: {', '.join(_with('several'))}"
        )


def _with(fact: str) -> list[str]:
    """Return the pipeline classes that have a fact."""
    return sorted(name for name, known in table()["classes"].items() if known.get(fact))


class PipelineCall:
    """How one class of pipelines is called."""

    def __init__(self, cls: type, image_argument: str | None = None) -> None:
        self.name = cls.__name__
        self._call = cls.__call__
        self._parameters = inspect.signature(cls.__call__).parameters
        self._parts = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
        self.facts = facts_of(self.name)
        self.image = self._image(image_argument)

    @property
    def backbone(self) -> str:
        """The pipeline's part that denoises."""
        return "unet" if "unet" in self._parts else "transformer"

    @property
    def text_parts(self) -> list[str]:
        """The pipeline's parts that read the instruction."""
        return [name for name in self._parts if name.startswith(("text_encoder", "tokenizer"))]

    def takes(self, name: str) -> bool:
        """Return whether it can be called with this argument."""
        return name in self._parameters

    def has_part(self, name: str) -> bool:
        """Return whether the pipeline has a part of this name."""
        return name in self._parts

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise an error for arguments that the pipeline does not take, and for a pipeline that needs a mask."""
        if MASK in self._parameters:
            raise EvenEditError(
                f"{self.name} repaints the area of a mask: it needs '{MASK}', which a request does not "
                "have. Use a pipeline "
                "that edits from the instruction alone"
            )
        reserved = {"self", "kwargs", "prompt", "generator", "output_type", "return_dict", self.image}
        for name in arguments:
            if name in reserved:
                raise EvenEditError(f"setting 'call' has '{name}', which EvenEdit passes itself; remove it")
        check_names("call", arguments, self._call, self.name, reserved)

    def check_load(self, arguments: Mapping[str, Any]) -> None:
        """Raise an error for load arguments that diffusers would ignore."""
        parts = [name for name, p in self._parts.items() if name != "self" and p.default is not p.empty]
        allowed = [*sorted(LOAD_OPTIONS), *parts]
        for name in arguments:
            if name not in allowed:
                raise EvenEditError(
                    f"setting 'load' has '{name}', which is not an argument for loading {self.name}"
                    f"{_near(name, allowed)} It takes: {', '.join(allowed)}"
                )

    def pictures(self, images: Sequence[Image], several: bool) -> Any:
        """Return the images as the pipeline takes them: one, a list, or a list for each prompt."""
        converted = [image.convert("RGB") for image in images]
        if self.facts.tag:  # prompts and images are lists of the same length
            return [converted]
        return converted if several or self.image.endswith("s") else converted[0]

    def prompt(self, instruction: str, count: int, tag: str) -> Any:
        """Return the instruction as the pipeline takes it, with a tag for each image if it needs that."""
        tags = "".join(tag.replace("{n}", str(number)) for number in range(1, count + 1))
        words = f"{tags} {instruction}" if tags else instruction
        if self.facts.prompt_key:
            return {self.facts.prompt_key: words}
        return [words] if self.facts.tag else words

    def _image(self, wanted: str | None) -> str:
        if wanted is not None:
            if wanted not in self._parameters:
                raise EvenEditError(
                    f"setting 'image_argument' is {wanted!r}, which {self.name} does not take. It takes: "
                    f"{', '.join(name for name in self._parameters if name != 'self')}"
                )
            return wanted
        name = next((name for name in IMAGE_NAMES if name in self._parameters), None)
        if name is None:
            raise EvenEditError(
                f"{self.name} has no known argument for a picture. Set 'image_argument'; it takes: "
                f"{', '.join(name for name in self._parameters if name != 'self')}"
            )
        return name


def check_names(
    setting: str, values: Mapping[str, Any], call: Any, name: str, reserved: Container[str] = ("self", "kwargs")
) -> None:
    """Raise an error for arguments that a function does not take, or whose value is of another type."""
    parameters = [parameter for parameter in inspect.signature(call).parameters if parameter not in reserved]
    try:
        types = get_type_hints(call)
    except (NameError, TypeError):  # written for a type checker alone
        types = {}
    for argument, value in values.items():
        if argument not in parameters:
            raise EvenEditError(
                f"{name} takes no argument '{argument}'{_near(argument, parameters)} It takes: {', '.join(parameters)}"
            )
        try:
            checked = TypeAdapter(types.get(argument, Any), config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError:
            continue
        if isinstance(value, bool | int | float | str) and not _accepts(checked, value):
            raise EvenEditError(
                f"setting '{setting}' has {argument} = {value!r}, and {name} takes {_type_name(types[argument])} there"
            )


def _accepts(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def painted(output: Any, name: str, count: int = 1) -> list[Image]:
    """Return the pictures of a pipeline's output, one for each edit; the last frame of a video."""
    values = next(
        (getattr(output, n) for n in ("images", "image", "frames") if getattr(output, n, None) is not None), None
    )
    if values is None or len(values) == 0:
        raise Failed(Failure.BAD_IMAGE, f"{name} returned {type(output).__name__}, which holds no picture")
    if count == 1 and len(values) > 1:
        raise EvenEditError(
            f"{name} made {len(values)} pictures for one request: it takes a list of images as a batch. Leave "
            "'max_images' at 1"
        )
    if len(values) != count:
        raise Failed(Failure.BAD_IMAGE, f"{name} made {len(values)} pictures for {count} requests")
    return [
        _picture(output_picture[-1] if getattr(output, "frames", None) is not None else output_picture, name)
        for output_picture in values
    ]


def _picture(value: Any, name: str) -> Image:
    if isinstance(value, np.ndarray):
        return picture(value)
    if not isinstance(value, Image):
        raise Failed(Failure.BAD_IMAGE, f"{name} returned {type(value).__name__}, not a picture")
    return picture(np.asarray(value.convert("RGB")) / 255)


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else "."

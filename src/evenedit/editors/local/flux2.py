"""FLUX.2-dev on this machine, through diffusers' Flux2Pipeline.

Its text encoder runs here too; the remote one that Black Forest Labs offers is not supported, since portraits and
prompts would leave the machine. To save memory use `quantize` and `offload`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from PIL.Image import Image

from evenedit.core import settings
from evenedit.editors.local.diffusers_base import DiffusersEditor

LARGEST = 1024 * 1024
"""Pixels beyond which the pipeline shrinks an input."""


class Flux2(DiffusersEditor):
    """FLUX.2-dev: edits one portrait, or two into one picture, in the first one's size rounded down to what it paints.

    Its attention cannot be sliced by diffusers 0.42, and `facts` says so.
    """

    max_images = 2
    presets: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "80gb": {"offload": "model"},
        "48gb": {"quantize": "4bit"},
        "24gb": {"quantize": "4bit", "offload": "model"},
    }
    encodes_first = True
    kind = "flux2-dev"
    pipeline = "Flux2Pipeline"

    def __init__(
        self,
        *,
        model: str = "black-forest-labs/FLUX.2-dev",
        steps: int = 50,
        guidance_scale: float = 4.0,
        **shared: Any,
    ) -> None:
        super().__init__(model=model, steps=steps, **shared)
        self.guidance_scale = settings.number("guidance_scale", guidance_scale)

    def arguments(self, pipeline: Any, images: Sequence[Image]) -> dict[str, Any]:
        """Guidance, and the size of the first image."""
        width, height = _size(images[0], pipeline.vae_scale_factor * 2)
        return {"guidance_scale": self.guidance_scale, "height": height, "width": width}


def _size(image: Image, multiple: int) -> tuple[int, int]:
    """Width and height of the output: the pipeline's own rule, applied to the first image."""
    shrink = min(1.0, math.sqrt(LARGEST / (image.width * image.height)))
    width, height = (max(multiple, int(side * shrink) // multiple * multiple) for side in image.size)
    return width, height

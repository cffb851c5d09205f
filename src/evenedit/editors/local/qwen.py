"""Qwen-Image-Edit-2511 on this machine, through diffusers' QwenImageEditPlusPipeline.

A negative prompt always goes along: without one the pipeline silently leaves true classifier-free guidance off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from PIL.Image import Image

from evenedit.core import settings
from evenedit.editors.local.diffusers_base import DiffusersEditor

ROUND = 32
"""Sides of an output are multiples of this."""


class QwenImageEdit(DiffusersEditor):
    """Qwen-Image-Edit-2511: edits one portrait, or two into one picture, in the shape of the last one.

    Its attention cannot be sliced by diffusers 0.42, and `facts` says so.
    """

    max_images = 2
    presets: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "80gb": {},
        "48gb": {"offload": "model"},
        "24gb": {"quantize": "4bit"},
    }
    kind = "qwen-image-edit-2511"
    pipeline = "QwenImageEditPlusPipeline"

    def __init__(
        self,
        *,
        model: str = "Qwen/Qwen-Image-Edit-2511",
        steps: int = 40,
        true_cfg_scale: float = 4.0,
        guidance_scale: float = 1.0,
        negative_prompt: str = " ",
        size: int = 1024,
        **shared: Any,
    ) -> None:
        super().__init__(model=model, steps=steps, **shared)
        self.true_cfg_scale = settings.number("true_cfg_scale", true_cfg_scale)
        """Classifier-free guidance against the negative prompt; 1 switches it off."""
        self.guidance_scale = settings.number("guidance_scale", guidance_scale)
        """For guidance-distilled weights only; the released model is not, and `facts` says what was used."""
        self.negative_prompt = settings.text("negative_prompt", negative_prompt)
        self.size = settings.count("size", size, least=ROUND)
        """The output has about size × size pixels; the model was trained at 1024."""

    def arguments(self, pipeline: Any, images: Sequence[Image]) -> dict[str, Any]:
        """Both guidances, and the shape of the last image."""
        width, height = _shape(images[-1], self.size)
        return {
            "negative_prompt": self.negative_prompt,
            "true_cfg_scale": self.true_cfg_scale,
            "guidance_scale": self._guidance(pipeline),
            "height": height,
            "width": width,
        }

    def _facts_of(self, pipeline: Any) -> dict[str, Any]:
        return super()._facts_of(pipeline) | {"guidance_scale": self._guidance(pipeline)}

    def _guidance(self, pipeline: Any) -> float | None:
        """The distilled guidance where the weights take one; asked for elsewhere, the pipeline ignores it."""
        return self.guidance_scale if pipeline.transformer.config.guidance_embeds else None


def _shape(image: Image, size: int) -> tuple[int, int]:
    """Width and height of the output: the pipeline's own rule for an area of size × size."""
    ratio = image.width / image.height
    across = size * math.sqrt(ratio)
    width, height = (max(ROUND, round(side / ROUND) * ROUND) for side in (across, across / ratio))
    return width, height

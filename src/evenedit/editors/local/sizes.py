"""The size of the picture that an editor on this machine paints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import EvenEditError

LARGEST = 1024 * 1024
"""Pixels beyond which an input is shrunk where the output has its size."""
ROUND = 32
"""Sides of an output of a given area are multiples of this."""


def checked(size: Any) -> str | int | list[int]:
    """Return the setting `size`: pipeline, first, a number for size × size pixels, or width and height."""
    if size in ("pipeline", "first"):
        return str(size)
    if type(size) is list and len(size) == 2 and all(type(side) is int and side > 0 for side in size):
        return list(size)
    if type(size) is int:
        return settings.count("size", size, least=ROUND)
    raise EvenEditError(
        f"setting 'size' is {size!r}; allowed: pipeline (as it chooses), first (the first image's), a whole number N "
        "(about N × N pixels in the shape of the last image), [width, height]"
    )


def output_size(policy: str | int | list[int], images: Sequence[Image], multiple: int) -> tuple[int, int] | None:
    """Return the width and height to request; None if the pipeline chooses."""
    if policy == "pipeline":
        return None
    if policy == "first":
        return as_first(images[0], multiple)
    if isinstance(policy, int):
        return of_area(images[-1], policy)
    return int(policy[0]), int(policy[1])


def as_first(image: Image, multiple: int) -> tuple[int, int]:
    """Return the image's size, reduced to what a pipeline takes and rounded down to what it produces."""
    shrink = min(1.0, math.sqrt(LARGEST / (image.width * image.height)))
    width, height = (max(multiple, int(side * shrink) // multiple * multiple) for side in image.size)
    return width, height


def of_area(image: Image, size: int) -> tuple[int, int]:
    """Return a size of about size × size pixels in the image's shape."""
    ratio = image.width / image.height
    across = size * math.sqrt(ratio)
    width, height = (max(ROUND, round(side / ROUND) * ROUND) for side in (across, across / ratio))
    return width, height

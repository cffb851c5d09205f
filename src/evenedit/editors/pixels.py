"""What a pipeline painted, as a picture, or why it is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.errors import Failed, Failure


def picture(values: NDArray[np.floating]) -> Image.Image:
    """Height × width × RGB between 0 and 1 as a picture; NaN and black, which PIL would hide, are failures."""
    wrong = float(np.mean(~np.isfinite(values)))
    if wrong:
        raise Failed(Failure.NAN_IMAGE, f"{wrong:.1%} of the output's values are not numbers; another dtype may help")
    pixels = (values * 255).round().astype(np.uint8)
    if not pixels.any():
        raise Failed(Failure.BLACK_IMAGE, "the output is black throughout, as a safety checker leaves it")
    return Image.fromarray(pixels)

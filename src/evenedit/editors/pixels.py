"""Convert the output of a pipeline to a picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.errors import Failed, Failure


def picture(values: NDArray[np.floating]) -> Image.Image:
    """Convert height × width × RGB values between 0 and 1 to a picture; raise Failed for NaN or black output."""
    wrong = float(np.mean(~np.isfinite(values)))
    if wrong:
        raise Failed(Failure.NAN_IMAGE, f"{wrong:.1%} of the output's values are not numbers; another dtype may help")
    pixels = (values * 255).round().astype(np.uint8)
    if not pixels.any():
        raise Failed(Failure.BLACK_IMAGE, "the output is entirely black, as after a safety checker")
    return Image.fromarray(pixels)

"""An editor that tints the picture. It can also die, to show what EvenEdit does then."""

import os
import time
from pathlib import Path

from PIL import Image, ImageChops


class Tint:
    max_images = 1

    def __init__(self, *, color="#ffe0b0", seconds=0.0, die_once="", die_on=""):
        self.color = color
        self.seconds = seconds
        self.die_once = die_once
        self.die_on = die_on

    def edit(self, images, instruction, seed):
        time.sleep(self.seconds)
        if self.die_on and self.die_on in instruction:
            os._exit(9)
        if self.die_once and not Path(self.die_once).exists():
            Path(self.die_once).touch()
            os._exit(9)
        tint = Image.new("RGB", images[0].size, self.color)
        shifted = ImageChops.offset(images[0].convert("RGB"), seed % 7, len(instruction) % 5)
        return ImageChops.multiply(shifted, tint)

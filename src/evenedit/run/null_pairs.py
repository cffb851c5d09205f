"""Make a null pair: the portrait again, re-encoded, without an editor."""

from __future__ import annotations

import io
import time

from PIL import Image

from evenedit.core.errors import DamagedImageError
from evenedit.core.images import ImageFolder
from evenedit.core.records import Edit, Outcome
from evenedit.run.worker import EditTask, failed


def make_null_pair(task: EditTask, images: ImageFolder) -> Edit:
    """Store the task's portrait as it looks after saving it as JPEG in the request's quality."""
    started = time.monotonic()
    try:
        output = saved_as_jpeg(images.open(task.images[0]), task.request.settings["quality"])
    except DamagedImageError as error:
        return failed(task.request.id, error)
    return Edit(task.request.id, Outcome.EDITED, images.put(output), {}, time.monotonic() - started)


def saved_as_jpeg(image: Image.Image, quality: int) -> Image.Image:
    """Return the picture after saving it as JPEG, with full colour resolution and without its notes."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=quality, subsampling=0)
    return Image.open(buffer)

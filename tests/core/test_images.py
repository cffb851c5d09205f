"""Pictures by content: what is remembered on the way to a file changes nothing in the file."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from evenedit.core.images import NOTE, ImageFolder, Pictures, encode


def plain_png(image):
    """The bytes as Pillow alone would write them."""
    notes = PngImagePlugin.PngInfo()
    for key in sorted(k for k in image.info if k.startswith(NOTE)):
        notes.add_text(key, image.info[key])
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", compress_level=2, pnginfo=notes)
    return buffer.getvalue()


def noise(seed, size=(40, 30), mode="RGB"):
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


@pytest.mark.parametrize(
    "info",
    [
        {},
        {NOTE + "truth": "{}"},
        {NOTE + "truth": "{1}", NOTE + "portrait": "x" * 5000},
        {NOTE + "labels": "Zoë – ≥ 70"},
        {NOTE + "truth": "{}", "icc_profile": b"profile"},
        {"comment": "not a note"},
    ],
)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_remembered_pixels_with_notes_give_the_bytes_that_pillow_writes(mode, info):
    image = noise(1, mode=mode)
    image.info.update(info)
    assert [encode(image) for _ in range(2)] == [plain_png(image)] * 2


def test_pixels_of_another_shape_are_another_picture():
    wide, high = noise(2, (40, 30)), Image.frombytes("RGB", (30, 40), noise(2, (40, 30)).tobytes())
    assert encode(wide) == plain_png(wide)
    assert encode(high) == plain_png(high)


def test_a_picture_is_found_by_the_hash_of_its_bytes(tmp_path):
    folder, image = ImageFolder(tmp_path), noise(3)
    name = folder.put(image)
    assert name == hashlib.sha256(plain_png(image)).hexdigest()
    assert folder.open(name).tobytes() == image.tobytes()
    assert folder.path(name) == tmp_path / name[:2] / f"{name}.png"


def test_pictures_are_opened_when_looked_at(tmp_path):
    folder = ImageFolder(tmp_path)
    shown = Pictures(folder, [folder.put(noise(4)), folder.put(noise(5))])
    assert len(shown) == 2
    assert [one.tobytes() for one in shown] == [noise(4).tobytes(), noise(5).tobytes()]
    assert shown[1] is shown[-1] is shown[1:][0]
    absent = Pictures(folder, ["0" * 64])
    assert len(absent) == 1, "nobody has looked yet"

"""The one reader of pictures from outside: any file becomes upright 8-bit sRGB, or an error that says why not.

Turned upright by its EXIF orientation; 16 bits scaled to 8; CMYK, grey and palettes to RGB; an embedded ICC profile
converted to sRGB; transparent parts laid on white. A picture that is plain 8-bit sRGB already keeps every pixel.
Animations and files of several pages are refused: nobody can know which of their pictures is meant.
"""

from __future__ import annotations

import io
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from evenedit.core.errors import EvenEditError

BACKGROUND = (255, 255, 255)
"""What transparent parts are laid on: white."""
MOST_PIXELS = Image.MAX_IMAGE_PIXELS or 89_478_485
"""Larger pictures are refused before they are decoded: Pillow's limit, about 89 megapixels."""
_ORIENTATION = 0x0112
_PHOTOMETRIC, _WHITE_IS_ZERO = 0x0106, 0
_SEVERAL_VIEWS = ("MPO",)
"""Cameras write these as .jpg: further views or a preview come after the picture itself."""
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
_HEIF = (b"ftyphei", b"ftyphev", b"ftypmif1", b"ftypmsf1")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_opening = threading.Lock()


class UnreadablePicture(EvenEditError):
    """What was given as a picture is none, or not one that can be read."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of its picture before it is decoded."""

    format: str
    """JPEG, PNG …"""
    mode: str
    size: tuple[int, int]

    @classmethod
    def of(cls, content: bytes) -> Header:
        """Read the header of these bytes."""
        with _open(content) as image:
            return cls(image.format or "", image.mode, image.size)


def decode(content: bytes) -> Image.Image:
    """Decode the picture in these bytes completely; raise `UnreadablePicture` if it is truncated."""
    try:
        with _open(content) as image:
            if getattr(image, "is_animated", False) and image.format not in _SEVERAL_VIEWS:
                frames = getattr(image, "n_frames", 2)
                raise UnreadablePicture(
                    f"it holds {frames} pictures, an animation or pages; save the right one as a separate file"
                )
            image.load()
            picture = to_rgb(image)
            return picture.copy() if picture is image else picture  # no more bound to its file
    except EvenEditError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on damaged bytes
        raise UnreadablePicture(f"it is damaged or truncated ({error}); replace it") from None


def to_rgb(image: Image.Image) -> Image.Image:
    """Return a picture as upright 8-bit sRGB, or the picture itself if it is that already."""
    upright = _upright(image)
    colour, alpha = _parts(_eight_bits(upright))
    converted = _in_srgb(colour, upright.info.get("icc_profile"))
    if alpha is None:
        return converted
    ground = Image.new("RGB", converted.size, BACKGROUND)
    ground.paste(converted, mask=alpha)
    ground.info = {key: value for key, value in converted.info.items() if key != "transparency"}
    return ground


def _open(content: bytes) -> Image.Image:
    """Open the file: read its header and check its size."""
    if not content:
        raise UnreadablePicture("the file is empty; replace it")
    try:
        with _opening, warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning):
            image = Image.open(io.BytesIO(content))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnreadablePicture(
            f"it has more than {MOST_PIXELS / 1e6:.0f} megapixels, which may be a file made to fill the memory; "
            "make it smaller"
        ) from None
    except UnidentifiedImageError:
        if any(mark in content[:32] for mark in _HEIF):
            raise UnreadablePicture("HEIC is not read; save it as JPEG or PNG") from None
        if content[:4] in _TIFF:
            raise UnreadablePicture(
                "this kind of TIFF is not read, as with floating-point colours; save it with 8 or 16 bits per channel"
            ) from None
        raise UnreadablePicture("it is not a PNG, JPEG, WebP, TIFF, GIF, BMP or similar image; replace it") from None
    except Exception as error:
        raise UnreadablePicture(f"it is damaged or truncated ({error}); replace it") from None
    return image


def _upright(image: Image.Image) -> Image.Image:
    """Rotate and mirror a picture according to its EXIF data."""
    try:
        turned = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # EXIF data that cannot be read say nothing
        return image
    return ImageOps.exif_transpose(image) if turned in range(2, 9) else image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits scaled to 8; numbers without a stated white are refused."""
    if image.mode in _SIXTEEN_BITS or (image.mode == "I" and image.format in ("PNG", "PPM")):
        import numpy as np

        wide = np.asarray(image).astype(np.uint32)
        grey = Image.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
        grey.info = {key: value for key, value in image.info.items() if key != "transparency"}
        return ImageOps.invert(grey) if _white_is_zero(image) else grey
    if image.mode in ("I", "F"):
        raise UnreadablePicture(
            "its pixels are 32-bit numbers, whose white level is unknown; save it with 8 or 16 bits per channel"
        )
    return image


def _white_is_zero(image: Image.Image) -> bool:
    """Return whether a TIFF counts from white to black; Pillow inverts these itself up to 8 bits."""
    tags: Any = getattr(image, "tag_v2", {})
    return bool(tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO)


def _parts(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Colours and how opaque they are; None where everything is."""
    if not image.has_transparency_data:
        return (image.convert("RGB") if image.mode == "P" else image), None
    opaque = image.convert("LA" if image.mode in ("LA", "La", "L", "1") else "RGBA")
    *bands, alpha = opaque.split()
    colour = Image.merge("RGB" if len(bands) == 3 else "L", bands)
    colour.info = {key: value for key, value in image.info.items() if key != "transparency"}
    return colour, (alpha if alpha.getextrema() != (255, 255) else None)


def _in_srgb(colour: Image.Image, profile: bytes | None) -> Image.Image:
    """Colours as sRGB; a profile that cannot be read, or is of other colours, is left aside, as browsers do."""
    transform = _to_srgb(profile, colour.mode) if profile else None
    if colour.mode == "LAB":
        transform = _from_lab()
    if transform is None:
        return colour if colour.mode == "RGB" else colour.convert("RGB")
    converted = ImageCms.applyTransform(colour, transform)
    assert converted is not None
    converted.info = {key: value for key, value in colour.info.items() if key != "icc_profile"}
    return converted


@lru_cache(maxsize=16)
def _to_srgb(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """Return the transform from a profile's colours to sRGB; None if there is no profile or nothing to change."""
    try:
        transform = _transform(ImageCms.ImageCmsProfile(io.BytesIO(profile)), mode)
        tried = _every_shade(mode)
        moved = ImageCms.applyTransform(tried, transform) if tried else None
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
    if tried is None or moved is None:
        return transform
    changed = (abs(a - b) for a, b in zip(tried.convert("RGB").tobytes(), moved.tobytes(), strict=True))
    return transform if max(changed) > 1 else None


def _transform(profile: ImageCms.ImageCmsProfile, mode: str) -> ImageCms.ImageCmsTransform:
    return ImageCms.buildTransform(
        profile,
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


@lru_cache(maxsize=1)
def _from_lab() -> ImageCms.ImageCmsTransform:
    """Return the transform from CIELAB to sRGB."""
    return _transform(ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")), "LAB")


def _every_shade(mode: str) -> Image.Image | None:
    """Return a picture of 9 × 9 × 9 colours or of all greys; None for CMYK, which always needs the profile."""
    if mode == "L":
        return Image.frombytes("L", (256, 1), bytes(range(256)))
    if mode != "RGB":
        return None
    steps = [min(255, 32 * step) for step in range(9)]
    shades = bytes(value for shade in product(steps, repeat=3) for value in shade)
    return Image.frombytes("RGB", (81, 9), shades)

"""Pictures by content: a file's name is the sha256 of its bytes, and no file is ever half written."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import uuid4

from PIL import Image, PngImagePlugin, UnidentifiedImageError

from evenedit.core.decode import UnreadablePicture, decode, to_rgb
from evenedit.core.errors import DamagedImageError, EvenEditError

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTE = "evenedit-"
"""Text chunks under this prefix travel with a drawn picture (its parameters, its ground truth)."""
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
"""How files are called that are taken for pictures where a folder is searched."""
REMEMBERED = 512
"""Encoded pictures kept in memory, those that were not asked for the longest dropped first."""
FEW = 16
"""Up to so many objects are looked for one by one."""
_HEADER = 33
"""Bytes of a PNG file before its notes: signature and IHDR chunk."""
_remembered: dict[bytes, bytes] = {}


def open_images(where: str) -> ImageFolder:
    """Open the pictures in a folder or at a URL that fsspec knows (s3://, gs://, …)."""
    return RemoteImages(where) if "://" in where else ImageFolder(Path(where))


class ImageFolder:
    """A folder of content-addressed PNG files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha256: str) -> Path:
        """Return the path of the picture with this hash."""
        return Path(f"{self.folder}/{sha256[:2]}/{sha256}.png")

    def __contains__(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def present(self, hashes: Iterable[str]) -> set[str]:
        """Those of these pictures that are there."""
        return {sha256 for sha256 in hashes if sha256 in self}

    def size(self, sha256: str) -> int:
        """Return the size of a picture in bytes; raise `FileNotFoundError` if there is none."""
        return self.path(sha256).stat().st_size

    def put(self, image: Image.Image) -> str:
        """Store a picture and return its hash; stored already is fine."""
        return self.put_content(encode(image))

    def put_content(self, content: bytes) -> str:
        """Store the content of a file and return its hash."""
        sha256 = hashlib.sha256(content).hexdigest()
        target = self.path(sha256)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, content)
        return sha256

    def open(self, sha256: str) -> Image.Image:
        """Return the picture with this hash; pixels are decoded when first used."""
        path = self.path(sha256)
        try:
            return Image.open(io.BytesIO(self.read(sha256)))
        except (OSError, UnidentifiedImageError):
            raise DamagedImageError(
                f"the stored image {path} is missing or damaged; "
                "'evenedit doctor STUDY' lists such images, 'evenedit run STUDY' makes missing ones again"
            ) from None

    def sweep(self) -> None:
        """Remove what a killed process left half written; only while nobody else writes."""
        for left in self.folder.glob("*/.*.tmp"):
            left.unlink(missing_ok=True)

    def is_whole(self, sha256: str) -> bool:
        """Return whether the file exists and has the content that its name states."""
        return sha256 in self and hashlib.sha256(self.read(sha256)).hexdigest() == sha256

    def read(self, sha256: str) -> bytes:
        """Return the content of a file; raise `FileNotFoundError` if there is none."""
        return self.path(sha256).read_bytes()


class Pictures(Sequence[Image.Image]):
    """Stored pictures, opened when somebody looks: not every judge looks at all it is shown."""

    def __init__(self, folder: ImageFolder, hashes: Sequence[str]) -> None:
        self._folder = folder
        self._hashes = hashes

    @cached_property
    def _opened(self) -> list[Image.Image]:
        return [self._folder.open(sha256) for sha256 in self._hashes]

    def __len__(self) -> int:
        return len(self._hashes)

    @overload
    def __getitem__(self, index: int) -> Image.Image: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Image.Image]: ...

    def __getitem__(self, index: int | slice) -> Image.Image | Sequence[Image.Image]:
        return self._opened[index]


class RemoteImages(ImageFolder):
    """Content-addressed PNG files on a file system that machines share, by fsspec."""

    def __init__(self, url: str) -> None:
        import fsspec

        self._files, root = fsspec.core.url_to_fs(url)
        super().__init__(Path(root))

    def __contains__(self, sha256: str) -> bool:
        return bool(self._files.exists(str(self.path(sha256))))

    def present(self, hashes: Iterable[str]) -> set[str]:
        """Those of these pictures that are there: the keys are listed, a thousand per request, not asked for singly."""
        wanted = set(hashes)
        if len(wanted) <= FEW:
            return super().present(wanted)
        self._files.invalidate_cache()
        try:
            return wanted & {Path(key).stem for key in self._files.find(str(self.folder))}
        except FileNotFoundError:
            return set()

    def size(self, sha256: str) -> int:
        """Return the size of an object in bytes; raise `FileNotFoundError` if there is none."""
        return int(self._files.size(str(self.path(sha256))))

    def put_content(self, content: bytes) -> str:
        """Store the content of a file and return its hash: an object store shows an object whole or not at all."""
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self:
            path = str(self.path(sha256))
            self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            self._files.pipe_file(path, content)
        return sha256

    def sweep(self) -> None:
        """Nothing is ever left half written here."""

    def read(self, sha256: str) -> bytes:
        """Return the content of an object; raise `FileNotFoundError` if there is none."""
        return bytes(self._files.cat_file(str(self.path(sha256))))


def encode(image: Image.Image) -> bytes:
    """PNG bytes of a picture with its EvenEdit notes; the same picture gives the same bytes."""
    notes = PngImagePlugin.PngInfo()
    for key in sorted(k for k in image.info if isinstance(k, str) and k.startswith(NOTE)):
        notes.add_text(key, str(image.info[key]))
    if image.mode == "RGB" and len(notes.chunks) == len(image.info):  # nothing but notes: the rest may be known
        plain = _plain(image)
        return b"".join([plain[:_HEADER], *_chunks(notes), plain[_HEADER:]])
    return _png(to_rgb(image), notes)


def _png(image: Image.Image, notes: PngImagePlugin.PngInfo | None = None) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=2, pnginfo=notes)
    return buffer.getvalue()


def _plain(image: Image.Image) -> bytes:
    """PNG bytes of the pixels alone; cached, since simulated editors often draw what was drawn before."""
    pixels = hashlib.sha1(image.tobytes(), usedforsecurity=False)
    pixels.update(repr(image.size).encode())
    key = pixels.digest()
    content = _remembered.pop(key, None)
    if content is None:
        content = _png(image)
        while len(_remembered) >= REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
    _remembered[key] = content  # as the youngest
    return content


def _chunks(notes: PngImagePlugin.PngInfo) -> Iterator[bytes]:
    """Yield the PNG chunks of notes."""
    for kind, text, *_ in notes.chunks:
        yield struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))


def read_image(path: Path) -> Image.Image:
    """Read a user's picture as upright 8-bit sRGB; decode it completely, so that truncated files fail here."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise EvenEditError(f"{path}: no such file") from None
    except OSError as error:  # a folder, or a file that may not be read
        raise EvenEditError(f"{path}: not a readable image ({error.strerror}); name a file that can be read") from None
    try:
        return decode(content)
    except UnreadablePicture as error:
        raise EvenEditError(f"{path}: not a readable image: {error}") from None


def from_array(pixels: NDArray[Any]) -> Image.Image:
    """Return a picture from an array: height × width (× 3 or 4 channels), 8-bit integers or fractions from 0 to 1."""
    import numpy as np

    shape = pixels.shape
    if len(shape) not in (2, 3) or 0 in shape or (len(shape) == 3 and shape[2] not in (3, 4)):
        raise EvenEditError(
            f"an array of shape {shape} is not a picture; expected (height, width) or (height, width, 3)"
        )
    if np.issubdtype(pixels.dtype, np.floating):
        if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
            raise EvenEditError("an array of fractions must lie between 0 and 1; for 0 to 255 use uint8")
        pixels = np.rint(pixels * 255).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise EvenEditError(
            f"an array of {pixels.dtype} is not a picture; use uint8 from 0 to 255 or fractions from 0 to 1"
        )
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


def as_image(picture: str | os.PathLike[str] | Image.Image | NDArray[Any]) -> Image.Image:
    """Return a user's picture from a path, a PIL image or an array."""
    if isinstance(picture, Image.Image):
        try:
            picture.load()
            return to_rgb(picture)
        except OSError as error:
            raise EvenEditError(f"the picture given cannot be read ({error})") from None
    if isinstance(picture, str | os.PathLike):
        return read_image(Path(picture))
    if hasattr(picture, "shape") and hasattr(picture, "dtype"):
        return from_array(picture)
    raise EvenEditError(f"a picture is a path, a PIL image or an array; found {type(picture).__name__}")


def write_whole(target: Path, content: bytes, *, flush: bool = True) -> None:
    """Write under a temporary name, flush to disk, rename: a reader sees all of it or nothing.

    Without the flush a loss of power may leave an empty file; for what can be made again.
    """
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)

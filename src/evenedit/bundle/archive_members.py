"""The members of a zip file, read block by block, and whether the file holds anything beside them.

A reader of zip files looks at the directory at the end and skips all that it does not name: words between two members,
after a packed stream, in a header's comment. Here nothing may be skipped.
"""

from __future__ import annotations

import hashlib
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

DATE = (1980, 1, 1, 0, 0, 0)
UNIX = 3
ATTRIBUTES = 0o644 << 16
"""A plain file: no link, no folder, no program."""
_LOCAL, _CENTRAL, _END, _END_64 = 30, 46, 22, 76
"""Bytes of the headers, without names."""
_LARGE = 0x0001
"""The further field that sizes beyond 4 GB need; no other is written."""
_UTF8 = 0x800
_BLOCK = 1 << 20


def plain_info(name: str) -> zipfile.ZipInfo:
    """Return a member's header, which depends on its name only."""
    about = zipfile.ZipInfo(name, DATE)
    about.create_system, about.external_attr = UNIX, ATTRIBUTES
    return about


def unsafe_name(names: Iterable[str]) -> str:
    """Return the first name that leaves the folder or that a file system may take for another; empty if none."""
    names = list(names)
    alike = Counter(unicodedata.normalize("NFC", name).casefold() for name in dict.fromkeys(names))
    for name in names:
        parts = PurePosixPath(name).parts
        plain = name == "/".join(parts) and ".." not in parts and not name.startswith("/")
        if not plain or PureWindowsPath(name).drive or any(sign == "\\" or ord(sign) < 32 for sign in name):
            return name
        if alike[unicodedata.normalize("NFC", name).casefold()] > 1:
            return name
    return ""


def unlisted_bytes(path: Path) -> str:
    """Describe what a zip file holds besides its members; empty if nothing."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        infos, start, comment = archive.infolist(), archive.start_dir, len(archive.comment)
        at = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if not _is_plain(info):
                return f"the header of {info.filename}"
            if info.header_offset != at:
                return f"bytes before {info.filename}"
            try:
                at = _data(file, info) + info.compress_size
            except (ValueError, struct.error):
                return f"the header of {info.filename}"
    directory = sum(_CENTRAL + len(i.orig_filename.encode()) + len(i.extra) + len(i.comment) for i in infos)
    left = path.stat().st_size - start - directory - comment
    return "" if at == start and left in (_END, _END + _END_64) else "bytes around its directory"


def member_digest(path: Path, info: zipfile.ZipInfo, most: int) -> tuple[str, int] | None:
    """SHA-256 and size of a member; None where it is longer than `most`, damaged, or followed by other bytes."""
    digest, size = hashlib.sha256(), 0
    try:
        for block in _blocks(path, info):
            digest.update(block)
            size += len(block)
            if size > most:
                return None
    except (OSError, ValueError, struct.error, zlib.error):
        return None
    return digest.hexdigest(), size


def _blocks(path: Path, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the uncompressed content of a member."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if info.compress_type == zipfile.ZIP_DEFLATED else None
    with path.open("rb") as file:
        file.seek(_data(file, info))
        left = info.compress_size
        while left and (packed := file.read(min(_BLOCK, left))):
            left -= len(packed)
            if unpacker is None:
                yield packed
                continue
            while packed:
                yield unpacker.decompress(packed, _BLOCK)
                if unpacker.unused_data:
                    raise ValueError("bytes after the packed stream")
                packed = unpacker.unconsumed_tail
    if unpacker is not None:
        yield unpacker.flush()
    if left or (unpacker is not None and not unpacker.eof):
        raise ValueError("the member is cut off")


def _data(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return the offset of a member's content."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL)
    name, extra = (int(length) for length in struct.unpack("<26xHH", header))
    if header[:4] != b"PK\3\4" or file.read(name) != info.orig_filename.encode():
        raise ValueError("the member's own header names another one")
    if not _is_large_only(file.read(extra)):
        raise ValueError("the member's own header holds more than it needs")
    return info.header_offset + _LOCAL + name + extra


def _is_plain(info: zipfile.ZipInfo) -> bool:
    return (
        info.date_time == DATE
        and info.create_system == UNIX
        and info.external_attr == ATTRIBUTES
        and info.internal_attr == 0
        and info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        and info.flag_bits in (0, _UTF8)
        and not info.comment
        and _is_large_only(info.extra)
    )


def _is_large_only(extra: bytes) -> bool:
    """Return whether an extra field is empty or holds only large sizes."""
    if not extra:
        return True
    kind, length = struct.unpack("<HH", extra[:4]) if len(extra) >= 4 else (0, 0)
    return bool(kind == _LARGE and len(extra) == 4 + length and length <= 28)

"""Write and verify a zip file in which any changed byte is detected.

Three things hold it together:

* `manifest.json` names every file with its SHA-256 and size, and the root of a Merkle tree over them: one short line
  that stands for the whole content, and that can be printed, signed or published elsewhere.
* The zip's comment is the SHA-256 of every byte before it, so that a change between the files is found too; and nothing
  may be there beside the files, since a comment can be written anew.
* The bytes depend on the content alone: files in the order of their names, one date, one way to pack.

A file can be withdrawn: its content goes, its digest stays in the manifest, and so does the root.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from evenedit.bundle.archive_members import member_digest, plain_info, unlisted_bytes, unsafe_name
from evenedit.core.errors import EvenEditError
from evenedit.results.results import Results
from evenedit.study.results_file import RESULTS

MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
"""Signs the root, so the root cannot cover it."""
WITHDRAWN = "withdrawn.json"
"""Names the files that were withdrawn after the root was made, so the root cannot cover it."""
WITHDRAWABLE = "people/"
"""Only what one person answered can be withdrawn."""
OUTSIDE = (MANIFEST, SIGNATURE, WITHDRAWN)
"""Files that the root does not cover."""
SCHEMA = "evenedit.bundle/2"
PACKED = (".json", ".jsonl", ".html", ".svg", ".csv", ".tex", ".md", ".toml", ".txt", ".js", ".css", ".pdf")
"""Endings of files that become smaller when packed."""
DIGITS = 64
"""Hex digits of a SHA-256, which the comment is."""
MOST = 1 << 26
"""Bytes of a file that the root does not cover: 64 MB of digests are those of 500,000 files."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileDigest:
    """One file as the manifest has it."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What is no longer as it was written; empty where all is intact."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    container: str = ""
    """What is wrong with the zip file or its manifest as such."""
    withdrawn: tuple[str, ...] = ()
    """Files that were withdrawn and say so: no change."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed or self.container)

    def lines(self) -> Iterator[str]:
        """Yield one line per change."""
        for what in ("changed", "added", "removed"):
            yield from (f"{what}: {name}" for name in getattr(self, what))
        if self.container:
            yield f"changed: {self.container}"


@dataclass(frozen=True)
class SealedZip:
    """A sealed zip file that was opened."""

    path: Path
    files: Mapping[str, FileDigest]
    root: str
    names: tuple[str, ...]
    """Every file in it, listed or not."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest says beside the files."""

    @classmethod
    def open(cls, path: Path) -> SealedZip:
        """Open a file without checking it; refused where it is no sealed zip at all."""
        if not path.is_file():
            what = (
                "a folder, not a bundle; make one with: evenedit bundle" if path.is_dir() else "there is no such file"
            )
            raise EvenEditError(f"{path}: {what}")
        try:
            with zipfile.ZipFile(path) as archive:
                names = tuple(archive.namelist())
                if unsafe := unsafe_name(names):
                    raise EvenEditError(f"{path} cannot be read as a bundle: {unsafe!r} is not a valid file name")
                body = json.loads(_read_unlisted(archive, MANIFEST))
                files = {name: FileDigest(str(row["sha256"]), int(row["bytes"])) for name, row in body["files"].items()}
                if body["schema"] != SCHEMA:
                    raise EvenEditError(f"{path} is of schema {body['schema']!r}; this release reads {SCHEMA}")
                return cls(path, files, str(body["root"]), names, body.get("facts", {}))
        except EvenEditError:
            raise
        except Exception as error:  # whatever a damaged file makes a reader say
            raise EvenEditError(
                f"{path} cannot be read as a bundle: {_describe(error)}; it is damaged or not a bundle"
            ) from None

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(name) if name in self.files else _read_unlisted(archive, name)
        except KeyError:
            raise EvenEditError(f"{self.path} holds no {name}") from None
        except Exception as error:
            raise EvenEditError(f"{self.path}: {name} cannot be read: {_describe(error)}; it is damaged") from None

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the contents of several files."""
        with zipfile.ZipFile(self.path) as archive:
            for name in names:
                yield name, archive.read(name)

    def under(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return [name for name in self.names if name.startswith(f"{folder}/")]

    def changes(self) -> Changes:
        """Hold every byte against the manifest."""
        withdrawn = self.withdrawn()
        unlisted = [name for name in self.names if name not in self.files and name not in OUTSIDE]
        twice = [name for name in dict.fromkeys(self.names) if self.names.count(name) > 1]
        present = set(self.names)
        return Changes(
            changed=tuple(sorted({*self._altered(present), *twice})),
            added=tuple(sorted(unlisted)),
            removed=tuple(sorted(name for name in self.files if name not in present and name not in withdrawn)),
            container=_container(self.path, self.root, self.files) or self._untrue_tombstone(present),
            withdrawn=tuple(sorted(name for name in withdrawn if name in self.files and name not in present)),
        )

    def withdrawn(self) -> dict[str, str]:
        """Return the withdrawn files, each with its date."""
        if WITHDRAWN not in self.names:
            return {}
        try:
            days: dict[str, str] = json.loads(self.read(WITHDRAWN))["files"]
            return {str(name): str(day) for name, day in days.items() if name.startswith(WITHDRAWABLE)}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _untrue_tombstone(self, present: set[str]) -> str:
        """Return what is wrong with the list of withdrawn files; empty if nothing is."""
        if WITHDRAWN not in present:
            return ""
        withdrawn = self.withdrawn()
        if (
            not withdrawn
            or self.read(WITHDRAWN) != tombstones(withdrawn)
            or any(n in present or n not in self.files for n in withdrawn)
        ):
            return f"{WITHDRAWN}: it was changed, or names files that were not withdrawn"
        return ""

    def _altered(self, present: set[str]) -> Iterator[str]:
        with zipfile.ZipFile(self.path) as archive:
            infos = {info.filename: info for info in archive.infolist()}
        for name, listed in self.files.items():
            if name in present and member_digest(self.path, infos[name], listed.bytes) != (listed.sha256, listed.bytes):
                yield name


def open_bundle(path: Path) -> SealedZip:
    """Open a bundle; raise `EvenEditError` if any byte differs from what was written."""
    if changes := find_changes(path):
        changed = "; ".join(islice(changes.lines(), 3))
        raise EvenEditError(f"{path} was changed: {changed}. For details: evenedit verify {path}")
    return SealedZip.open(path)


def bundled_results(bundle: SealedZip) -> Results:
    """Return the results in a bundle, with the long lists of its report."""

    def read(name: str) -> bytes | None:
        path = name if name == RESULTS else f"report/{name}"
        return bundle.read(path) if path in bundle.names else None

    return Results.from_files(read)


def find_changes(path: Path) -> Changes:
    """Return the changes in a sealed zip; a file that cannot be opened is one change."""
    try:
        return SealedZip.open(path).changes()
    except EvenEditError as error:
        if not path.is_file():
            raise
        return Changes(container=str(error))


def write_sealed(
    target: Path,
    files: Mapping[str, bytes | Path],
    facts: Mapping[str, Any] | None = None,
    sign: Callable[[str], bytes] | None = None,
) -> SealedZip:
    """Write a sealed zip of contents, or of files on disk, and return it opened; `sign` makes a root's signature."""
    listed = {name: _file_digest(content) for name, content in sorted(files.items())}
    root = merkle_root(listed, facts or {})
    outside: dict[str, bytes | Path] = {MANIFEST: manifest(listed, root, facts or {})}
    if sign is not None:
        outside[SIGNATURE] = sign(root)
    return _pack(target, outside | dict(sorted(files.items())))


def withdraw_files(source: SealedZip, names: Mapping[str, str], target: Path) -> SealedZip:
    """Write a copy of a sealed zip without the withdrawn files; its root does not change."""
    withdrawn = source.withdrawn() | dict(names)
    if refused := [name for name in names if not name.startswith(WITHDRAWABLE) or name not in source.files]:
        raise EvenEditError(f"{refused[0]} cannot be withdrawn; it is not a file of {source.path} under {WITHDRAWABLE}")
    remaining = dict(source.contents(name for name in source.names if name not in withdrawn and name != WITHDRAWN))
    first: dict[str, bytes | Path] = {name: remaining.pop(name) for name in (MANIFEST, SIGNATURE) if name in remaining}
    return _pack(target, first | {WITHDRAWN: tombstones(withdrawn)} | remaining)


def tombstones(withdrawn: Mapping[str, str]) -> bytes:
    """Return the content of the list of withdrawn files."""
    return (json.dumps({"files": dict(sorted(withdrawn.items()))}, indent=1) + "\n").encode()


def manifest(files: Mapping[str, FileDigest], root: str, facts: Mapping[str, Any]) -> bytes:
    """Return the content of the manifest: the same bytes for the same files."""
    rows = {name: {"sha256": one.sha256, "bytes": one.bytes} for name, one in sorted(files.items())}
    body = {"schema": SCHEMA, "root": root, "facts": dict(facts), "files": rows}
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()


def merkle_root(files: Mapping[str, FileDigest], facts: Mapping[str, Any]) -> str:
    """Return the root of the Merkle tree: leaves are the facts, then the files by name; an odd node moves up."""
    facts_text = json.dumps(dict(facts), ensure_ascii=False, sort_keys=True).encode()
    level = [_hash(b"\0", facts_text)]
    level += [_hash(b"\0", f"{name}\n{one.sha256}\n{one.bytes}".encode()) for name, one in sorted(files.items())]
    while len(level) > 1:
        pairs = [_hash(b"\1", level[at] + level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return level[0].hex()


def _hash(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(kind + content).digest()


def _file_digest(content: bytes | Path) -> FileDigest:
    if isinstance(content, bytes):
        return FileDigest(hashlib.sha256(content).hexdigest(), len(content))
    with content.open("rb") as file:
        return FileDigest(hashlib.file_digest(file, "sha256").hexdigest(), content.stat().st_size)


def _pack(target: Path, contents: Mapping[str, bytes | Path]) -> SealedZip:
    """Write the zip under a temporary name, then its own digest into its comment."""
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.comment = b"0" * DIGITS
            for name, content in contents.items():
                about = plain_info(name)
                about.compress_type = zipfile.ZIP_DEFLATED if name.endswith(PACKED) else zipfile.ZIP_STORED
                archive.writestr(
                    about, content if isinstance(content, bytes) else content.read_bytes(), compresslevel=9
                )
        digest = _digest_before_comment(temporary)
        with temporary.open("r+b") as file:
            file.seek(-DIGITS, os.SEEK_END)
            file.write(digest.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return SealedZip.open(target)


def _container(path: Path, root: str, files: Mapping[str, FileDigest]) -> str:
    """Return what is wrong with the manifest or with bytes outside the files; empty if nothing is."""
    with zipfile.ZipFile(path) as archive:
        written, comment = archive.read(MANIFEST), archive.comment
    facts = json.loads(written).get("facts", {})
    if merkle_root(files, facts) != root:
        return f"{MANIFEST}: its root does not belong to the files it lists"
    if manifest(files, root, facts) != written:
        return f"{MANIFEST}: it was changed"
    if len(comment) != DIGITS or comment.decode("ascii", "replace") != _digest_before_comment(path):
        return "the zip file was changed: bytes within or around its files differ"
    unlisted = unlisted_bytes(path)
    return f"the zip file has unexpected content: {unlisted}" if unlisted else ""


def _digest_before_comment(path: Path) -> str:
    """Return the SHA-256 of all bytes before the comment."""
    left, digest = path.stat().st_size - DIGITS, hashlib.sha256()
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def _read_unlisted(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a file that is not in the manifest; raise `EvenEditError` if it is too large."""
    if archive.getinfo(name).file_size > MOST:
        raise EvenEditError(f"{name} is larger than allowed in a bundle")
    return archive.read(name)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

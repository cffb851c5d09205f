"""Whether a bundle is as it was written, whoever hands it over, and whether pictures are those it speaks of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evenedit.bundle.evidence_files import EDITS, SOURCES
from evenedit.bundle.scoring import kept_plan
from evenedit.bundle.signing import Signed, signature_of
from evenedit.core.errors import EvenEditError
from evenedit.core.images import PICTURES
from evenedit.core.sealed_zip import Changes, SealedZip, find_changes
from evenedit.results.preregistration import PlanChange
from evenedit.storage.study_history import FILE as HISTORY
from evenedit.storage.study_history import breaks, parse_history
from evenedit.study.seal import FILE as SEAL
from evenedit.study.seal import Seal


@dataclass(frozen=True, slots=True)
class PicturesHeld:
    """Pictures that somebody presented, held against the digests in a bundle."""

    known: int = 0
    unknown: tuple[str, ...] = ()
    """Files that are none of the bundle's pictures."""
    absent: int = 0
    """Pictures of the bundle that were not presented."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found about a bundle."""

    changes: Changes
    root: str = ""
    wanted_root: str = ""
    """The root that the user has from elsewhere; empty where none was given."""
    signed: Signed | None = None
    wanted_key: str = ""
    """The public key that the user has from elsewhere; empty where none was given."""
    pictures: PicturesHeld | None = None
    facts: dict[str, object] = field(default_factory=dict)
    history: tuple[str, ...] = ()
    """What is wrong with the history or the seal of the study."""
    plan: tuple[PlanChange, ...] = ()
    """What is not as the study sealed it: told in its report too, and no change of the bundle."""

    @property
    def intact(self) -> bool:
        """Whether all is as it was written, and as the user has it from elsewhere."""
        return not list(self.problems())

    def problems(self) -> Iterator[str]:
        """What is not as it was, a line each."""
        yield from self.changes.lines()
        if self.wanted_root and self.root != self.wanted_root:
            yield f"another bundle: its root is {self.root or 'unreadable'}, you expect {self.wanted_root}"
        if self.signed is not None and not self.signed.valid:
            yield str(self.signed)
        if self.wanted_key and (self.signed is None or self.signed.public_key != self.wanted_key):
            yield f"not signed by the key you expect, {self.wanted_key}"
        if self.pictures is not None:
            yield from (f"no picture of this bundle: {name}" for name in self.pictures.unknown)
        yield from self.history


def verify(path: Path, *, root: str = "", key: str = "", pictures: Path | None = None) -> Verification:
    """Hold every byte of a bundle against its manifest, and all that the user has from elsewhere against both."""
    changes = find_changes(path)
    try:
        bundle = SealedZip.open(path)
    except EvenEditError:
        return Verification(changes, wanted_root=root, wanted_key=key)
    signed = signature_of(bundle)
    held = None if pictures is None else hold_pictures(bundle, pictures)
    told = tuple(_history(bundle))
    plan = () if changes or told else plan_changes(bundle)
    return Verification(changes, bundle.root, root.lower(), signed, key.lower(), held, dict(bundle.facts), told, plan)


def _history(bundle: SealedZip) -> Iterator[str]:
    """Where the history of the study breaks, and whether its seal is the one that the history knows."""
    lines = parse_history(bundle.read(HISTORY).decode()) if HISTORY in bundle.names else []
    yield from breaks(lines)
    if SEAL in bundle.names:
        try:
            seal = Seal.parse(bundle.read(SEAL).decode(), SEAL)
        except EvenEditError as error:
            yield str(error)
            return
        if [line.detail.get("seal") for line in lines if line.what == "sealed"] != [seal.digest]:
            yield f"{SEAL}: the study's history knows another seal"


def plan_changes(bundle: SealedZip) -> tuple[PlanChange, ...]:
    """What is not as the study sealed it; nothing where it was never sealed."""
    kept = kept_plan(bundle)
    return () if kept is None else kept.changes


def hold_pictures(bundle: SealedZip, folder: Path) -> PicturesHeld:
    """Hold the pictures of a folder, or one picture, against the digests in a bundle."""
    files = [folder] if folder.is_file() else [p for p in sorted(folder.rglob("*")) if p.suffix.lower() in PICTURES]
    if not files:
        raise EvenEditError(f"{folder} holds no picture; name a picture or a folder of them")
    wanted = {
        row["image"]
        for name in (SOURCES, EDITS)
        for row in map(json.loads, filter(None, bundle.read(name).decode().split("\n")))
        if row["image"]
    }
    found = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    known = {sha256 for sha256 in found.values() if sha256 in wanted}
    unknown = tuple(str(path) for path, sha256 in found.items() if sha256 not in wanted)
    return PicturesHeld(len(known), unknown, len(wanted - known))

"""Verify that a bundle is unchanged and that pictures are those it lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenedit.bundle.archive import Changes, SealedZip, find_changes
from evenedit.bundle.coherence import changed_since_last_run, contradictions
from evenedit.bundle.evidence_files import EDITS, RECORD, SOURCES, read_evidence
from evenedit.bundle.scoring import plan_adherence
from evenedit.bundle.signing import Signed, signature_of
from evenedit.bundle.study_facts import LICENCES
from evenedit.core.errors import EvenEditError
from evenedit.core.images import PICTURES, encode, read_image
from evenedit.results.preregistration import PlanChange
from evenedit.storage.data_state import REQUESTS
from evenedit.storage.study_history import FILE as HISTORY
from evenedit.storage.study_history import HistoryEvent, chain_breaks, parse_history
from evenedit.study.preregistration.adherence import unfinished_run
from evenedit.study.preregistration.seal import FILE as SEAL
from evenedit.study.preregistration.seal import Seal


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
    seal: str = ""
    """The seal of the study's plan; empty where it was never sealed."""
    wanted_seal: str = ""
    """The seal that the user has from elsewhere; empty where none was given."""
    wanted_key: str = ""
    """The public key that the user has from elsewhere; empty where none was given."""
    pictures: PicturesHeld | None = None
    facts: dict[str, object] = field(default_factory=dict)
    left_before: int = 0
    """People who withdrew from the study before it was bundled."""
    history: tuple[str, ...] = ()
    """What is wrong with the history or the seal of the study, and what contradicts them or the study file."""
    plan: tuple[PlanChange, ...] = ()
    """What is not as the study sealed it: told in its report too, and no change of the bundle."""
    notes: tuple[str, ...] = ()
    """What the history of a study that was never sealed does not hold: no change of the bundle."""

    @property
    def intact(self) -> bool:
        """Whether all is as it was written, and as the user has it from elsewhere."""
        return not list(self.problems())

    def problems(self) -> Iterator[str]:
        """Yield one line per change, and per picture that does not belong to the bundle."""
        yield from self.faults()
        if self.pictures is not None:
            yield from (f"not a picture of this bundle: {name}" for name in self.pictures.unknown)

    def faults(self) -> Iterator[str]:
        """Yield one line per change of the bundle, and per difference from the user's root, seal or key."""
        yield from self.changes.lines()
        if self.wanted_root and self.root != self.wanted_root:
            yield f"another bundle: its root is {self.root or 'unreadable'}, you expect {self.wanted_root}"
        if self.wanted_seal and self.seal != self.wanted_seal:
            yield f"another plan: its seal is {self.seal or 'not there'}, you expect {self.wanted_seal}"
        if self.signed is not None and not self.signed.valid:
            yield str(self.signed)
        if self.wanted_key and (self.signed is None or self.signed.public_key != self.wanted_key):
            yield f"not signed by the key you expect, {self.wanted_key}"
        yield from self.history


def verify(path: Path, *, root: str = "", seal: str = "", key: str = "", pictures: Path | None = None) -> Verification:
    """Compare each byte of a bundle with its manifest, and both with the user's root, seal and key."""
    changes = find_changes(path)
    try:
        bundle = SealedZip.open(path)
    except EvenEditError:
        return Verification(changes, wanted_root=root, wanted_seal=seal, wanted_key=key)
    signed = signature_of(bundle)
    held = None if pictures is None else hold_pictures(bundle, pictures)
    verification = Verification(
        changes,
        bundle.root,
        root.lower(),
        signed=signed,
        seal=_seal_of(bundle),
        wanted_seal=seal.lower(),
        wanted_key=key.lower(),
        pictures=held,
        facts=dict(bundle.facts),
        left_before=_left_before(bundle),
        history=tuple(_history(bundle)),
    )
    if changes or verification.history:
        return verification
    plan = plan_changes(bundle)
    wrong, notes = _contradictions(bundle, plan)
    return replace(verification, history=tuple(wrong), plan=plan, notes=tuple(notes))


def _history(bundle: SealedZip) -> Iterator[str]:
    """Yield breaks of the study's history, and a seal that the history does not know."""
    lines = _lines(bundle)
    yield from chain_breaks(lines)
    known = [line.detail.get("seal") for line in lines if line.event == "sealed"]
    if SEAL not in bundle.names:
        yield from (f"{SEAL} is missing: the study's history has the seal {seal}" for seal in known)
        return
    try:
        seal = Seal.parse(bundle.read(SEAL).decode(), SEAL)
    except EvenEditError as error:
        yield str(error)
        return
    if known != [seal.digest]:
        yield f"{SEAL}: the study's history has another seal"


def _seal_of(bundle: SealedZip) -> str:
    """Return the digest of the sealed plan, computed from its content."""
    try:
        return Seal.parse(bundle.read(SEAL).decode(), SEAL).digest if SEAL in bundle.names else ""
    except (EvenEditError, UnicodeDecodeError):
        return ""


def _left_before(bundle: SealedZip) -> int:
    """Return the number of people whose answers were removed from the study before, by the bundle's facts."""
    try:
        return int(json.loads(bundle.read(LICENCES))["consent"].get("withdrawn", 0)) if LICENCES in bundle.names else 0
    except (EvenEditError, ValueError, KeyError, TypeError, AttributeError):
        return 0


def _lines(bundle: SealedZip) -> list[HistoryEvent]:
    return parse_history(bundle.read(HISTORY).decode()) if HISTORY in bundle.names else []


def _contradictions(bundle: SealedZip, plan: Sequence[PlanChange]) -> tuple[list[str], list[str]]:
    """Return contradictions to the study file or the sealed plan, and what only the history contradicts.

    A sealed study answers for its history; of another one it is only said.
    """
    if RECORD not in bundle.names:
        return [], []
    try:
        evidence = read_evidence(bundle)
        wrong = list(contradictions(bundle, evidence))
        parts = list(changed_since_last_run(bundle, evidence, _lines(bundle)))
    except EvenEditError as error:
        return [str(error)], []
    planned = {change.what for change in plan}
    loose = [] if planned and REQUESTS in parts else [part for part in parts if part not in planned]
    notes = [f"{part}: changed since the last run, according to the study's history" for part in loose]
    if unfinished_run(_lines(bundle)) and "history" not in planned:
        notes.append("the study's history has no line for the end of its last run")
    return (wrong + notes, []) if SEAL in bundle.names else (wrong, notes)


def plan_changes(bundle: SealedZip) -> tuple[PlanChange, ...]:
    """Return the changes since the study was sealed; empty if it was never sealed."""
    adherence = plan_adherence(bundle)
    return () if adherence is None else adherence.changes


def hold_pictures(bundle: SealedZip, folder: Path) -> PicturesHeld:
    """Compare the pictures of a folder, or one picture, with the digests in a bundle."""
    files = [folder] if folder.is_file() else [p for p in sorted(folder.rglob("*")) if p.suffix.lower() in PICTURES]
    if not files:
        raise EvenEditError(f"{folder} holds no picture; name a picture or a folder of them")
    wanted = {
        row["image"]
        for name in (SOURCES, EDITS)
        for row in map(json.loads, filter(None, bundle.read(name).decode().split("\n")))
        if row["image"]
    }
    digests = {path: next((sha256 for sha256 in _digests(path) if sha256 in wanted), "") for path in files}
    known = set(filter(None, digests.values()))
    return PicturesHeld(len(known), tuple(str(path) for path in files if not digests[path]), len(wanted - known))


def _digests(path: Path) -> Iterator[str]:
    """Yield the digest of a picture's file, and the digest of its pixels as a study stores them."""
    yield hashlib.sha256(path.read_bytes()).hexdigest()
    with suppress(EvenEditError):
        yield hashlib.sha256(encode(read_image(path))).hexdigest()

"""What a study of the judges themselves says: the contract of `check.json` and of an anchor check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

STUDY = "study"
"""The answers the study itself has, beside those of every variant."""
CHECK_SCHEMA = "evenedit.judges-check/3"
ANCHORS_SCHEMA = "evenedit.anchors-check/1"

COMPARED: dict[str, str] = {
    "again": "asked again",
    "since": "since the study",
    "labels": "labels shown",
    "order": "edited image first",
    "grey": "without colour",
}
"""Every comparison of a check, in words: what the answers after it are minus the answers before."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A number with its interval; None where the design cannot give one."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one way of asking moves a judge's answers to one question."""

    judge: str
    comparison: str
    """again, since, labels, order or grey."""
    question: str
    group: Mapping[str, str]
    """{} for everybody, else the label that selects the group."""
    n: int
    """Edits with both answers."""
    missing: int
    """Edits asked about that lack one of the two."""
    mean: Moved
    """Mean shift: after minus before, in points."""
    size: Moved
    """Mean absolute shift."""
    changed: Moved
    """Share of answers that differ at all."""
    changed_two: Moved
    """Share of answers that differ by two points or more."""
    beyond: Moved | None
    """Share changed minus the share that asking again changes, over edits with all of these answers; None for asking
    again itself."""


@dataclass(frozen=True, slots=True)
class VariantCalls:
    """How the calls of one judge ended under one way of asking."""

    judge: str
    variant: str
    scored: int
    refused: int
    unparseable: int
    failed: int
    not_asked: int
    """Calls that were not made (yet)."""
    models: Mapping[str, int]
    """The models the provider says answered, each with how often; empty where it does not say."""


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """Everything a check of the judges found."""

    provenance: Mapping[str, Any]
    rules: Mapping[str, Any]
    """Variants, sample, draws, seed, confidence."""
    sample: Mapping[str, float]
    """Request ids with their inclusion probabilities."""
    calls: tuple[VariantCalls, ...]
    shifts: tuple[Shift, ...]
    simulated: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        """Calls of the check still to be made, or to be made again."""
        return sum(a.not_asked + a.failed for a in self.calls if a.variant != STUDY)

    def find(self, judge: str, comparison: str, question: str, group: Mapping[str, str] | None = None) -> Shift | None:
        """Return the shift with exactly these coordinates."""
        wanted = (judge, comparison, question, dict(group or {}))
        return next((s for s in self.shifts if (s.judge, s.comparison, s.question, dict(s.group)) == wanted), None)

    def to_json(self) -> str:
        """Serialise the check: same answers, same bytes."""
        body = {"schema": CHECK_SCHEMA, **asdict(self)}
        return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True)
class AnchorDrift:
    """Did a judge's answers to one question about the anchors move since they were frozen?"""

    judge: str
    question: str
    """A question of the rubric, or `answered`: whether it gave scores at all."""
    n: int
    """Anchors answered then and now."""
    before: float | None
    after: float | None
    """Means over these anchors."""
    shift: float | None
    """after minus before"""
    distance: float | None
    """Mean over anchors of |after - before|: sees changes that cancel out."""
    noise: float | None
    """Standard deviation of repeats of the same question in the same round."""
    p_shift: float
    p_distance: float
    p_holm: float
    """The smaller of the two, adjusted over all tests of the check."""
    moved: bool
    least: float | None
    """The smallest mean shift that would have been seen with 80 % probability; None where none would."""


@dataclass(frozen=True, slots=True)
class Answering:
    """The models that a provider says answered, then and now."""

    judge: str
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def changed(self) -> bool:
        """True if it reports another model than when the anchors were frozen; a set-up id behind it does not count."""
        names = [{model.split(" ")[0] for model in models} for models in (self.before, self.after)]
        return bool(names[0] and names[1]) and not names[1] <= names[0]


@dataclass(frozen=True, slots=True)
class AnchorCheck:
    """Whether the judges still answer about a frozen set as they did."""

    provenance: Mapping[str, Any]
    sitting: int
    anchors: int
    repeats: int
    frozen: str
    """When the set was frozen."""
    method: str
    drifts: tuple[AnchorDrift, ...]
    models: tuple[Answering, ...]
    simulated: tuple[str, ...] = ()

    @property
    def moved(self) -> bool:
        """True if some answers moved more than repeats do, or a provider reports another model."""
        return any(d.moved for d in self.drifts) or any(m.changed for m in self.models)

    def to_json(self) -> str:
        """Serialise the check: same answers, same bytes."""
        body = {"schema": ANCHORS_SCHEMA, "moved": self.moved, **asdict(self)}
        return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

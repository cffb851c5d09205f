"""What an analysis says: the contract of `results.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evenedit.records import Estimate

SCHEMA = "evenedit.results/1"


@dataclass(frozen=True, slots=True)
class GapTest:
    """Is the gap between the groups of one factor larger than chance? Labels are permuted over faces."""

    measure: str
    """gap.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    factor: str
    value: float
    """Highest minus lowest rate over the factor's groups."""
    highest: str
    lowest: str
    p: float
    p_holm: float
    """Adjusted within the family: all gaps of one editor in one experiment and condition."""
    faces: int
    method: str


@dataclass(frozen=True, slots=True)
class Contrast:
    """A group's rate minus the rate of everybody else."""

    measure: str
    """rate.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    group: Mapping[str, str]
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The same rate under another threshold or missing-value convention."""

    measure: str
    experiment: str
    condition: str
    editor: str | None
    threshold: str
    """≥3, ≤2 …"""
    missing: str
    """exclude or neutral-3."""
    is_default: bool
    """Whether this row is the one the report's tables use."""
    value: float | None
    race_gap: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Planted:
    """A simulated editor's known effect beside what the audit found."""

    editor: str
    measure: str
    """rate.<rate>, as a contrast: the group minus everybody else."""
    group: Mapping[str, str]
    planted: float
    found: float
    low: float | None
    high: float | None
    inside: bool | None
    """Whether the planted value lies in the interval; None without an interval."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters (or a rater and the mean of the people) agree on one question."""

    first: str
    second: str
    experiment: str
    question: str
    n: int
    exact: float | None
    within_one: float | None
    mean_difference: float | None
    """second minus first"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the calls of one rater about one editor ended."""

    rater: str
    experiment: str
    editor: str
    group: Mapping[str, str]
    scored: int
    refused: int
    unparseable: int
    failed: int


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and the largest a gap could be, whatever the missing scores would have been."""

    measure: str
    """gap.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    factor: str
    value: float
    """The gap over valid scores."""
    low: float
    high: float
    missing: int


@dataclass(frozen=True, slots=True)
class Silence:
    """How often one reason left a reading of an instrument missing."""

    measure: str
    editor: str
    group: Mapping[str, str]
    reason: str
    count: int
    edits: int
    """Edits of the group that the instrument was asked about."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one instrument found in the pixels, never mixed with judges' scores."""

    rater: str
    estimates: tuple[Estimate, ...]
    """rate.measured_<rate>, rate.<reading>, mean.<reading>, and a gap.<…> of each rate, over the diagnosis."""
    tests: tuple[GapTest, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    silences: tuple[Silence, ...] = ()
    notes: tuple[str, ...] = ()
    """What must be known to read it, such as an embedding's bias."""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a report is made from."""

    provenance: Mapping[str, Any]
    """Versions, commit, study hash, platform, time: the only part that may differ between equal runs."""
    rules: Mapping[str, Any]
    """Preset, ensemble rules, missing policy, thresholds, bootstrap draws and seed."""
    estimates: tuple[Estimate, ...]
    tests: tuple[GapTest, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()
    planted: tuple[Planted, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    coverage_tests: tuple[GapTest, ...] = ()
    """Does a judge leave edits of some group unanswered more often? gap.unanswered.<rater>"""
    bounds: tuple[Bound, ...] = ()
    measured: tuple[Measured, ...] = ()
    """Each instrument by itself."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """edits, needs_review, refused, failed, and edits.<experiment>.<condition>."""
    simulated: tuple[str, ...] = ()
    """Ids of simulated editors and raters in the data; empty for a real audit."""

    def find(
        self,
        measure: str,
        *,
        experiment: str = "diagnosis",
        condition: str = "baseline",
        editor: str | None = None,
        group: Mapping[str, str] | None = None,
    ) -> Estimate | None:
        """The estimate with exactly these coordinates."""
        wanted = (measure, experiment, condition, editor, dict(group or {}))
        for e in self.estimates:
            if (e.measure, e.experiment, e.condition, e.editor, dict(e.group)) == wanted:
                return e
        return None

    def to_json(self) -> str:
        """The contract, as text: same results, same bytes."""
        body = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(body, indent=1, sort_keys=False, ensure_ascii=False, allow_nan=False) + "\n"

"""What else a number depends on: thresholds, single faces, languages, and what the editor does by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenedit.results.finding import ENSEMBLE


@dataclass(frozen=True, slots=True)
class EditorNoise:
    """What an editor moves when nothing is asked for, and from seed to seed, beside what a study found."""

    measure: str
    """shift.<axis or rate> or rate.<rate>"""
    editor: str
    value: float
    """Over the study's prompts."""
    floor: float | None
    """The same of the null edit, which asks to return the picture unchanged; None without one."""
    floor_low: float | None
    floor_high: float | None
    floor_n: int
    seeds: int
    """How many seeds each case was edited with."""
    seed_low: float | None
    seed_high: float | None
    """The lowest and the highest over seeds; None with one."""
    rater: str = ENSEMBLE
    """The judges together, or the instrument that measured it."""


@dataclass(frozen=True, slots=True)
class LanguageDifference:
    """A rate, or a gap, where an editor was asked in another language, beside the same in the prompt's own."""

    language: str
    """The code of the other language, such as ko."""
    editor: str
    measure: str
    """rate.<rate> or gap.<rate>"""
    group: Mapping[str, str]
    """{} for everybody, {"race": "*"} for a gap over races."""
    original: float
    """In the prompt's own language, over the pairs."""
    translated: float
    """In the other language, over the same portraits, prompts and seeds."""
    value: float
    """The second minus the first."""
    low: float | None
    high: float | None
    pairs: int
    """Edits in either language that are compared."""
    p_adjusted: float | None
    """Holm's over the measures of an editor and language, times the number of these; None where nothing is tested."""


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
    gap: float | None
    """Highest minus lowest rate over the levels of the first factor."""
    n: int


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
    rater: str | None = None
    """The instrument; None for the judges together."""


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """The range a gap takes when each face is left out in turn."""

    measure: str
    """gap.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    factor: str
    value: float
    low: float
    high: float
    face: str
    """The face whose absence moves the gap most."""
    same_extremes: int
    """After how many of the omissions the same groups are highest and lowest."""
    faces: int


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """How much of a rate is the luck of the seed."""

    measure: str
    """rate.<rate>"""
    experiment: str
    condition: str
    editor: str
    seeds: int
    low: float
    high: float
    """Lowest and highest rate over seeds."""
    gap_low: float | None
    gap_high: float | None
    """Lowest and highest gap between levels of the first factor, over seeds."""
    disagree: float
    """Share of face × prompt cases on which the seeds do not all say the same."""
    variance_share: float | None
    """Share of the variance of single edits that lies between seeds of one face and prompt."""
    cases: int


@dataclass(frozen=True, slots=True)
class Specification:
    """One way the same scores could have been read."""

    threshold: str
    ensemble: str
    missing: str
    exclusion: str
    """none, aging prompts, edits that need review"""
    value: float | None
    """Rate of the group that is highest in the report minus the rate of the one that is lowest."""
    p: float
    """Test of the gap under this reading, by the analysis of means, not adjusted; 1 where nothing varies."""
    is_default: bool


@dataclass(frozen=True, slots=True)
class Multiverse:
    """One gap under every specification."""

    measure: str
    """gap.<rate>"""
    experiment: str
    condition: str
    editor: str
    factor: str
    highest: str
    lowest: str
    specifications: tuple[Specification, ...]

    @property
    def same_sign(self) -> int:
        """In how many specifications the same group comes out higher."""
        return sum(s.value is not None and s.value > 0 for s in self.specifications)

    def significant(self, alpha: float = 0.05) -> int:
        """In how many specifications the same group comes out higher and p is below alpha."""
        return sum(s.value is not None and s.value > 0 and s.p < alpha for s in self.specifications)

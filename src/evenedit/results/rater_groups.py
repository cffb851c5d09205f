"""How people's ratings depend on who rated: `results.json["rater_tests"]` and its siblings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RaterTest:
    """Do groups of raters differ in how they rate? Groups are permuted over raters, and labels over faces."""

    kind: Literal["level", "pattern", "own"]
    """level: some group rates higher than others, whoever is pictured; pattern: the groups differ more about some
    portraits than about others; own: people rate portraits of their own group otherwise than other people do."""
    question: str
    """What the raters are grouped by."""
    factor: str | None
    """What the portraits are grouped by; None for a level."""
    axis: str
    """The question of the rubric."""
    value: float | None
    """Of `own`, points of the scale; None elsewhere."""
    low: float | None
    high: float | None
    p: float
    """Not adjusted: the larger of both permutations' where there are two."""
    p_adjusted: float
    """Adjusted for every test of this list (Westfall and Young)."""
    raters: int
    """People whose ratings are compared."""
    faces: int
    n: int
    """Ratings."""
    method: str


@dataclass(frozen=True, slots=True)
class RaterEffect:
    """How many points higher a group of raters rates portraits of a group than other raters do.

    Compared with how both differ on all other portraits: a rater who is severe about everybody has no such effect.
    """

    question: str
    raters: str
    """The group of raters."""
    axis: str
    """The question of the rubric."""
    group: Mapping[str, str]
    """The group of portraits."""
    value: float
    low: float | None
    high: float | None
    """Not adjusted for the number of effects."""
    n: int


@dataclass(frozen=True, slots=True)
class RaterRate:
    """A rate as one group of raters sees it, as all do, and weighted to a population of raters."""

    question: str
    raters: str
    """The group of raters; "" for everybody, "*" weighted."""
    measure: str
    """rate.<rate>"""
    group: Mapping[str, str]
    """The group of portraits; {} for all."""
    value: float
    low: float | None
    high: float | None
    people: int
    """Raters of the group."""
    n: int
    """Ratings of baseline outputs."""
    method: str


@dataclass(frozen=True, slots=True)
class RaterHold:
    """A finding about an editor, looked for in the ratings of one group of people alone."""

    finding: str
    """The finding's id."""
    question: str
    raters: str
    """The group of raters; "" for everybody."""
    value: float | None
    """The same difference (or shift) in their ratings; None where they rated none of its portraits."""
    low: float | None
    high: float | None
    people: int
    """Raters of the group."""
    n: int
    """Their ratings of these edits."""
    holds: Literal["yes", "same_direction", "opposite_direction", "opposite", "unknown"]
    """yes and opposite: the whole interval is on that side; unknown: nothing to compare."""

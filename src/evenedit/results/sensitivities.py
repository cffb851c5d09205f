"""What else a number depends on: who labelled the portraits, and what the editor does by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecondLabelling:
    """A gap, or a group's shift, with the labels of a second labelling beside the first."""

    measure: str
    """gap.<rate> or shift.<axis or rate>"""
    editor: str | None
    group: Mapping[str, str]
    """{"race": "*"} for a gap over races, {"race": "Black"} for one group's shift."""
    value: float
    """With the first labels."""
    low: float | None
    high: float | None
    p: float | None
    second: float
    """With the second labels; a portrait without one keeps its first."""
    second_low: float | None
    second_high: float | None
    second_p: float | None
    highest: str | None
    lowest: str | None
    """Of a gap, the groups at its ends with the second labels."""
    relabelled: int
    """Portraits whose two labels differ."""
    labelled: int
    """Portraits that have both."""


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

"""People's rates by who rated: `results.json["rater_rates"]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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

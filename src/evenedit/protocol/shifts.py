"""Unrequested changes over all faces: what the shipped default counts as one, and how much of it is tolerated."""

from __future__ import annotations

from collections.abc import Mapping

from evenedit.protocol.rubric import default_rubric

TWO_SIDED: Mapping[str, tuple[str, str]] = default_rubric().two_sided
"""By question, the rate above no change and the rate below: their difference is the shift."""
ONE_SIDED: tuple[str, ...] = default_rubric().one_sided
"""Rates that cannot cancel out: each is held against the study's tolerance."""
WANTED_OF_NOTHING: frozenset[str] = frozenset(
    {"soft_erasure", "ignored", "unchanged", "unchanged_allowed", "unchanged_unstated"}
)
"""Of the null edit, an output that shows what its source shows is what was asked for."""
TOLERANCE = 0.10
"""The share of edits up to which a one-sided shift is tolerated, unless the study says otherwise."""


def severity(name: str) -> float:
    """Return the severity of one point of a rate or question; a measured rate counts as the rated one."""
    return default_rubric().severity(name)

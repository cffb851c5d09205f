"""Counts of people that can be shown to anybody: no cell below five, and none that the total gives away.

Small cells are put together into one remainder without saying which they are. Where the remainder would be a single
cell, or fewer than five people, the next smallest cells join it (complementary suppression): otherwise the total minus
all that is shown would be the hidden cell itself. This rule is known to everybody, so what it leaves must not give a
cell away either: cells of the same size join together, since a rule of which goes first would tell which it was, and a
remainder of cells that are all as large as hidden ones can be (4 and 4 are the only two that make 8) takes more in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SMALLEST = 5
"""The smallest number of people that is shown."""


@dataclass(frozen=True, slots=True)
class ShownCounts:
    """What may be shown of the answers to one question."""

    people: int
    """Everybody: the cells and the remainder together."""
    cells: Mapping[str, int]
    """People by answer, most first; five or more each."""
    rest: int
    """People with other answers, two different ones or more; 0 where every answer is shown."""


def shown_counts(counts: Mapping[str, int]) -> ShownCounts | None:
    """Return the counts that may be published; None for fewer than five people in total."""
    ordered = sorted(((n, answer) for answer, n in counts.items() if n), reverse=True)
    people = sum(n for n, _ in ordered)
    if people < SMALLEST:
        return None
    visible = [(n, answer) for n, answer in ordered if n >= SMALLEST]
    hidden = [n for n, _ in ordered if n < SMALLEST]
    while hidden and visible and _gives_away(hidden):
        next_smallest = visible[-1][0]
        while visible and visible[-1][0] == next_smallest:
            hidden.append(visible.pop()[0])
    return ShownCounts(people, {answer: n for n, answer in visible}, sum(hidden))


def _gives_away(hidden: Sequence[int]) -> bool:
    """Return whether hidden cells can be derived from their sum."""
    return len(hidden) < 2 or sum(hidden) < SMALLEST or all(n == SMALLEST - 1 for n in hidden)

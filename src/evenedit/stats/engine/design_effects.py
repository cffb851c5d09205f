"""How many independent rows a share rests on, also where no exception was seen.

Rows of one face and one prompt are alike, so n rows tell as much as n / D independent ones; D is the design effect.
Wilson's interval then rests on n and on the product D t², the `pull` below. A group in which a rate never occurred
shows no variance and so no D, and a group with one event shows a D of one whatever the truth. Such groups borrow the
pull of the other groups of their factor, in which the same rate occurred; where it occurred in none, that of the other
rates; and where nothing occurred, faces are the units, as if all edits of a face were alike. The more events a group
has, the more its own pull counts: with twice as many as the borrowed pull, alone. The part of its own grows so slowly
that what one event more can take off D is less than what the event adds to an interval's upper end.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple
from weakref import WeakKeyDictionary, proxy

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.stats.engine.bootstrap import Bootstrap, Draws

Values = NDArray[np.float64]
FAINT = 4.0
"""So many events of other groups count as much as all other rates do, and so many of other rates as much as faces."""
ENOUGH = 2.0
"""With this many times as many events as the borrowed pull, a group speaks for itself."""


class EventWeights(NamedTuple):
    """What groups tell of their pull."""

    events: Values
    """[editor, measure]: as how many events; near the share's ends, as many as there are."""
    weighted: Values
    """[editor, measure]: the pull times that."""


class DesignEffects:
    """The pull of every share of one panel, group by group."""

    def __init__(self, bootstrap: Bootstrap, confidence: float) -> None:
        self.bootstrap, self.confidence = bootstrap, confidence
        self._shares = np.array([m.is_share for m in bootstrap.panel.measures], dtype=np.bool_)
        self._least = float(ndtri(0.5 + confidence / 2)) ** 2
        self._seen: dict[int, EventWeights] = {}  # the bootstrap keeps the draws, so their ids stay theirs
        self._all: dict[tuple[str, ...], EventWeights] = {}
        self._found: dict[tuple[tuple[str, str], ...], Values] = {}

    @classmethod
    def shared(cls, bootstrap: Bootstrap, confidence: float) -> DesignEffects:
        """The same for all that is estimated from one bootstrap."""
        kept = _KEPT.setdefault(bootstrap, {})
        if confidence not in kept:
            kept[confidence] = cls(proxy(bootstrap), confidence)
        return kept[confidence]

    def of(self, group: Mapping[str, str]) -> Values:
        """[editor, measure]: the pull of a group's shares, what it does not show taken from the other groups."""
        key = tuple(group.items())
        if key not in self._found:
            draws = self.bootstrap.group(self.bootstrap.panel.axes.mask(group))
            others = None
            if group:
                mine, every = self._shown(draws), self._everyone(tuple(group))
                others = EventWeights(every.events - mine.events, every.weighted - mine.weighted)
            self._found[key] = self._pull(draws, others)
        return self._found[key]

    def of_rest(self, draws: Draws, factor: str) -> Values:
        """[editor, measure]: the same for several groups of a factor taken as one."""
        return self._pull(draws, self._everyone((factor,)))

    def _everyone(self, factors: tuple[str, ...]) -> EventWeights:
        """What all groups of a factor, or of several crossed, show together."""
        if factors not in self._all:
            axes = self.bootstrap.panel.axes
            labels = [axes.labels[f] for f in factors]
            combinations = product(*(axes.levels[f] for f in factors))
            masks = [np.all([x == level for x, level in zip(labels, c, strict=True)], axis=0) for c in combinations]
            shown = [self._shown(self.bootstrap.group(mask)) for mask in masks if mask.any()]
            self._all[factors] = EventWeights(*(np.sum(np.stack(parts), axis=0) for parts in zip(*shown, strict=True)))
        return self._all[factors]

    def _pull(self, own: Draws, others: EventWeights | None) -> Values:
        mine = self._shown(own)
        events, weighted = (np.where(self._shares, x, 0.0) for x in mine)
        rest = EventWeights(*(x.sum(axis=1, keepdims=True) - x for x in (events, weighted)))  # the group's other rates
        as_faces = self._least * own.sizes / max(own.clusters, 1)
        borrowed = (rest.weighted + FAINT * as_faces) / (rest.events + FAINT)
        if others is not None:
            borrowed = (others.weighted + FAINT * borrowed) / (others.events + FAINT)
        borrowed = np.clip(borrowed, self._least, np.maximum(as_faces, self._least))
        alone = np.divide(mine.weighted, mine.events, out=np.zeros_like(borrowed), where=mine.events > 0)
        return blended(alone, borrowed, mine.events)

    def _shown(self, draws: Draws) -> EventWeights:
        if id(draws) not in self._seen:
            value = np.nan_to_num(draws.value)
            events = np.maximum(draws.sizes * value * (1 - value), 0.0)
            sure = draws.uncertainty
            t = stdtrit(sure.freedom, 0.5 + self.confidence / 2)
            weighted = draws.sizes**2 * sure.variance * t * t
            known = ~np.isnan(weighted) & (events > 0)
            self._seen[id(draws)] = EventWeights(np.where(known, events, 0.0), np.where(known, weighted, 0.0))
        return self._seen[id(draws)]


_KEPT: WeakKeyDictionary[Bootstrap, dict[float, DesignEffects]] = WeakKeyDictionary()


def blended(own: Values, borrowed: Values, events: Values) -> Values:
    """A group's own pull, or more: with few events it is no smaller than a mean with the borrowed one."""
    mine = np.minimum(events / (ENOUGH * borrowed), 1.0)
    return np.maximum(own, mine * own + (1 - mine) * borrowed)

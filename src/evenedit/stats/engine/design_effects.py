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

from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.stats.engine.draws import Draws
from evenedit.stats.engine.panel import Panel

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
    """The pull of the shares of one panel, group by group."""

    def __init__(self, panel: Panel, draw: Callable[[NDArray[np.bool_]], Draws]) -> None:
        self._panel, self._draw = panel, draw
        self._shares = np.array([m.is_share for m in panel.measures], dtype=np.bool_)
        self._totals: dict[tuple[float, tuple[str, ...]], EventWeights] = {}
        self._pulls: dict[tuple[float, tuple[tuple[str, str], ...]], Values] = {}

    def of(self, group: Mapping[str, str], confidence: float) -> Values:
        """Return the pull of a group's shares [editor, measure]; groups with few events borrow from the others."""
        key = confidence, tuple(group.items())
        if key not in self._pulls:
            draws = self._draw(self._panel.axes.mask(group))
            others = None
            if group:
                weights, total = _event_weights(draws, confidence), self._total(tuple(group), confidence)
                others = EventWeights(total.events - weights.events, total.weighted - weights.weighted)
            self._pulls[key] = self._pull(draws, others, confidence)
        return self._pulls[key]

    def of_rest(self, draws: Draws, factor: str, confidence: float) -> Values:
        """Return the pull [editor, measure] of several groups of a factor that were drawn as one."""
        return self._pull(draws, self._total((factor,), confidence), confidence)

    def _total(self, factors: tuple[str, ...], confidence: float) -> EventWeights:
        """Sum the weights over all groups of a factor, or of several factors crossed."""
        key = confidence, factors
        if key not in self._totals:
            axes = self._panel.axes
            labels = [axes.labels[f] for f in factors]
            combinations = product(*(axes.levels[f] for f in factors))
            masks = [np.all([x == level for x, level in zip(labels, c, strict=True)], axis=0) for c in combinations]
            weights = [_event_weights(self._draw(mask), confidence) for mask in masks if mask.any()]
            self._totals[key] = EventWeights(*(np.sum(np.stack(x), axis=0) for x in zip(*weights, strict=True)))
        return self._totals[key]

    def _pull(self, draws: Draws, others: EventWeights | None, confidence: float) -> Values:
        least = float(ndtri(0.5 + confidence / 2)) ** 2
        weights = _event_weights(draws, confidence)
        events, weighted = (np.where(self._shares, x, 0.0) for x in weights)
        rest = EventWeights(*(x.sum(axis=1, keepdims=True) - x for x in (events, weighted)))  # the group's other rates
        as_faces = least * draws.sizes / max(draws.clusters, 1)
        borrowed = (rest.weighted + FAINT * as_faces) / (rest.events + FAINT)
        if others is not None:
            borrowed = (others.weighted + FAINT * borrowed) / (others.events + FAINT)
        borrowed = np.clip(borrowed, least, np.maximum(as_faces, least))
        group_pull = np.divide(weights.weighted, weights.events, out=np.zeros_like(borrowed), where=weights.events > 0)
        return shrink_design_effect(group_pull, borrowed, weights.events)


def _event_weights(draws: Draws, confidence: float) -> EventWeights:
    value = np.nan_to_num(draws.value)
    events = np.maximum(draws.sizes * value * (1 - value), 0.0)
    t = stdtrit(draws.uncertainty.freedom, 0.5 + confidence / 2)
    weighted = draws.sizes**2 * draws.uncertainty.variance * t * t
    known = ~np.isnan(weighted) & (events > 0)
    return EventWeights(np.where(known, events, 0.0), np.where(known, weighted, 0.0))


def shrink_design_effect(effect: Values, borrowed: Values, events: Values) -> Values:
    """Return the design effect, with few events at least its mean with the borrowed one."""
    weight = np.minimum(events / (ENOUGH * borrowed), 1.0)
    return np.maximum(effect, weight * effect + (1 - weight) * borrowed)

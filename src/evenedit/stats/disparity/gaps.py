"""How far apart the groups of a factor are: highest minus lowest rate, and each group against the rest.

Interval of a gap. The highest minus the lowest of several noisy rates is above the true gap, the more so the
smaller the true gap is, so neither percentile nor basic bootstrap intervals hold (measured: down to 0.00 and 0.74).
The interval is the set of true gaps under which the gap that was seen would be nothing unusual: groups are pulled
together until one as large has a chance of 2.5 %, and apart until one as small has. Around them the noise of every
group is drawn on the arcsine scale (where it hardly depends on the rate): a part of its own, and the bootstrap's
draws of prompts, which all groups share. What the groups between the extremes truly are matters and is not known.
The search takes them halfway between where they were seen and where they matter most: at the nearer extreme for the
lower end, since then several compete to be highest and lowest, and in the middle for the upper end, since then none
does. The upper end is never below what chance alone would show for equal groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenedit.core.records import Estimate
from evenedit.protocol.measures import MeasureKind
from evenedit.results.results import Contrast
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.draws import Draws
from evenedit.stats.engine.estimates import NEGLIGIBLE, headline, method, ratio, shares
from evenedit.stats.engine.intervals import Interval
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import difference

NOISE_STREAM = 2
"""Random numbers of the groups' own noise."""
STEPS = 12
"""Halvings of the search for an end of the interval."""


def gap_intervals(
    rates: NDArray[np.float64],
    separate: NDArray[np.float64],
    shared: NDArray[np.float64],
    sizes: NDArray[np.float64],
    confidence: float,
    seed: int,
) -> NDArray[np.float64]:
    """Return the interval [2, gap] of each gap by test inversion.

    `rates` is [gap, group]; `separate` the standard deviation of the noise of each group; `shared` [draw, gap, group]
    the noise that groups share, both of the rate; `sizes` the number of scores behind each rate.
    """
    tail = (1 - confidence) / 2
    least = 0.5 / np.maximum(sizes, 1)
    slope = 2 * np.sqrt(np.clip(rates * (1 - rates), least * (1 - least), None))  # of sin² at the rate
    rng = np.random.default_rng([seed, NOISE_STREAM])
    draws, _, groups = shared.shape
    sign = rng.choice([-1.0, 1.0], size=(draws, 1, 1))  # both tails alike: few prompts say little of skewness
    noise = (rng.standard_normal((draws, 1, groups)) * separate + sign * shared) / slope
    noise = np.ascontiguousarray(noise.transpose(2, 0, 1))  # groups first: extremes over them are then quick to find
    bottom, middle = rates.min(axis=1, keepdims=True), rates.mean(axis=1, keepdims=True)
    seen = rates.max(axis=1) - bottom[:, 0]
    place = np.divide(rates - bottom, seen[:, None], out=np.zeros_like(rates), where=seen[:, None] > 0)
    crowded, lonely = np.round(place), np.where(np.isin(place, (0.0, 1.0)), place, 0.5)
    shapes = [bottom - middle + (place + extreme) / 2 * seen[:, None] for extreme in (crowded, lonely)]

    def spread(pull: NDArray[np.float64], upper: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        centre = np.clip(middle + pull[:, None] * shapes[upper], least, 1 - least)
        drawn = np.arcsin(np.sqrt(centre)).T[:, None] + noise
        # sin² rises from 0 to a right angle, so its extremes are those of the angles
        highest, lowest = (np.sin(np.clip(x, 0, np.pi / 2)) ** 2 for x in (drawn.max(axis=0), drawn.min(axis=0)))
        return highest - lowest, centre.max(axis=1) - centre.min(axis=1)

    def search(low: NDArray[np.float64], high: NDArray[np.float64], upper: bool) -> NDArray[np.float64]:
        """Return the smallest or largest true gap under which the observed gap is not unusual."""
        for _ in range(STEPS):
            between = (low + high) / 2
            drawn = spread(between, upper)[0]
            usual = ((drawn <= seen) if upper else (drawn >= seen)).mean(axis=0) >= tail
            low = np.where(usual == upper, between, low)
            high = np.where(usual == upper, high, between)
        return spread(low if upper else high, upper)[1]

    zeros = np.zeros_like(seen)
    chance = spread(zeros, False)[0]
    lower = search(zeros, zeros + 1, upper=False)
    lower = np.where((chance >= seen).mean(axis=0) >= tail, 0.0, np.minimum(lower, seen))
    furthest = np.divide(1.0, seen, out=np.ones_like(seen), where=seen > 0)  # groups as far apart as rates can be
    upper = search(zeros, furthest, upper=True)
    upper = np.maximum(np.maximum(upper, seen), np.quantile(chance, confidence, axis=0))
    return np.stack([lower, np.minimum(upper, 1.0)])


def gaps(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield gap.<rate> over each factor with two levels or more, for every editor and pooled."""
    panel = bootstrap.panel
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        labelled = np.any(list(masks.values()), axis=0)
        intervals = gap_intervals_by_editor(bootstrap, [bootstrap.group(mask) for mask in masks.values()], rules)
        for row, (editor, members) in enumerate(panel.rows()):
            for at, measure in enumerate(panel.measures):
                rates = shares(panel, measure, members, masks)
                if not measure.is_rate or len(rates) < 2:
                    continue
                gap = max(rates.values()) - min(rates.values())
                interval = intervals.get((row, at))
                how = f"{method(bootstrap, at)}, inverted"
                if interval is None:
                    interval, how = degenerate_gap_interval(bootstrap, factor, row, at, rules)
                count = panel.column_sum(measure.count, members, labelled)
                yield Estimate(
                    measure=measure.name.to(MeasureKind.GAP),
                    experiment=panel.experiment,
                    condition=panel.condition,
                    editor=editor,
                    group={factor: "*"},
                    value=gap,
                    low=interval[0] if interval else None,
                    high=interval[1] if interval else None,
                    n=count,
                    missing=panel.column_sum(measure.applicable, members, labelled) - count,
                    method=how,
                )


def degenerate_gap_interval(
    bootstrap: Bootstrap, factor: str, row: int, at: int, rules: AnalysisRules
) -> tuple[Interval | None, str]:
    """Return the interval of a gap whose groups are all at 0 or 1, from the groups' intervals, and its method.

    Nothing can be drawn, but how much may hide in each group is known: groups that are all at 0 are no further apart
    than the upper end that reaches furthest.
    """
    panel, measure = bootstrap.panel, bootstrap.panel.measures[at]
    effects = bootstrap.design_effects
    members = panel.rows()[row][1]
    lows: list[float] = []
    highs: list[float] = []
    how = "none: no variation to draw from"
    for level in panel.axes.levels[factor]:
        mask = panel.axes.mask({factor: level})
        total, count = (panel.column_sum(c, members, mask) for c in (measure.total, measure.count))
        if count == 0:
            continue
        pull = effects.of({factor: level}, rules.confidence)
        interval, how = headline(bootstrap, bootstrap.group(mask), pull, row, at, total, count, rules.confidence)
        if total not in (0, count) or interval is None:
            return None, "none: no variation to draw from"
        (lows if total else highs).append(interval[0] if total else interval[1])
    if lows and highs:
        return (max(0.0, min(lows) - max(highs)), 1.0), how
    return (0.0, 1 - min(lows) if lows else max(highs)), how


def gap_intervals_by_editor(
    bootstrap: Bootstrap, levels: list[Draws], rules: AnalysisRules
) -> dict[tuple[int, int], Interval]:
    """Return, by editor row and measure, the interval of every gap whose groups can all be drawn from."""
    value = np.stack([d.value for d in levels], axis=-1)  # [row, measure, level]
    variance = np.stack([d.uncertainty.variance for d in levels], axis=-1)
    over_prompts = np.stack([d.over_prompts for d in levels], axis=-1)
    freedom = np.stack([d.uncertainty.freedom for d in levels], axis=-1)
    varies = variance > NEGLIGIBLE
    can = np.array([m.is_rate for m in bootstrap.panel.measures]) & varies.any(axis=-1)
    # a group of one face has no variance to speak of, so no gap it takes part in has an interval
    can &= ~np.isnan(value).any(axis=-1) & ~np.isnan(variance).any(axis=-1)
    items = np.argwhere(can)
    if not len(items):
        return {}
    at = tuple(items.T)
    rates, known = value[at], varies[at]
    reach = 0.5 + rules.confidence / 2
    stretch = stdtrit(freedom[at], reach) / ndtri(reach)
    separate = np.sqrt(np.maximum(variance[at] - over_prompts[at], 0.0)) * stretch
    # a group whose every score is alike shows no noise; on the arcsine scale it is taken to be like the others'
    scaled = np.sqrt(variance[at]) * stretch / np.sqrt(np.where(known, rates * (1 - rates), 1.0))
    typical = np.sqrt((np.where(known, scaled, 0.0) ** 2).sum(axis=1) / known.sum(axis=1))[:, None]
    sizes = np.stack([d.sizes for d in levels], axis=-1)[at]
    least = 0.5 / np.maximum(sizes, 1)
    separate = np.where(known, separate, typical * np.sqrt(least * (1 - least)))
    shared = np.stack([d.prompts for d in levels], axis=-1)[:, items[:, 0], items[:, 1]] * stretch
    intervals = gap_intervals(rates, separate, np.nan_to_num(shared), sizes, rules.confidence, rules.seed)
    return {(int(r), int(m)): (float(low), float(high)) for (r, m), low, high in zip(items, *intervals, strict=True)}


def contrasts(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Contrast]:
    """Yield the rate of each level minus the rate of everybody else, for every editor and pooled.

    Faces are drawn within every level, prompts are shared: who makes up "everybody else" stays as designed.
    """
    panel = bootstrap.panel
    effects = bootstrap.design_effects
    for factor, levels in panel.axes.levels.items():
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        for level, mask in masks.items() if len(levels) > 1 else ():
            others = [masks[other] for other in levels if other != level]
            rest = np.any(np.stack(others), axis=0)
            pair = bootstrap.group(mask), bootstrap.group_union(others)
            pulls = effects.of({factor: level}, rules.confidence), effects.of_rest(pair[1], factor, rules.confidence)
            product = pair[0].prompts * pair[1].prompts
            defined = (~np.isnan(product)).sum(axis=0)
            shared = np.where(defined > 0, np.nansum(product, axis=0) / np.maximum(defined, 1), np.nan)
            for row, (editor, members) in enumerate(panel.rows()):
                for at, measure in enumerate(panel.measures):
                    if not measure.is_rate:
                        continue
                    (hits, count), (rest_hits, rest_count) = (
                        (panel.column_sum(measure.total, members, m), panel.column_sum(measure.count, members, m))
                        for m in (mask, rest)
                    )
                    value, other = ratio(hits, count), ratio(rest_hits, rest_count)
                    if value is None or other is None:
                        continue
                    ends = [
                        headline(bootstrap, d, pull, row, at, t, n, rules.confidence)[0]
                        for d, pull, t, n in zip(pair, pulls, (hits, rest_hits), (count, rest_count), strict=True)
                    ]
                    interval = None
                    if ends[0] and ends[1] and not (value == other and value in (0.0, 1.0)):
                        both = pair[0].uncertainty.variance[row, at] * pair[1].uncertainty.variance[row, at]
                        alike = float(np.clip(shared[row, at] / np.sqrt(both), -1, 1)) if both > NEGLIGIBLE**2 else 0.0
                        interval = difference(value, other, (ends[0], ends[1]), alike)
                    yield Contrast(
                        measure=measure.name,
                        experiment=panel.experiment,
                        condition=panel.condition,
                        editor=editor,
                        group={factor: level},
                        value=value - other,
                        low=interval[0] if interval else None,
                        high=interval[1] if interval else None,
                        n=count,
                    )

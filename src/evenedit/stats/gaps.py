"""How far apart the groups of a factor are: highest minus lowest rate, and each group against the rest.

Interval of a gap. A range is biased upwards, and more so under the bootstrap, so the percentile interval of
max - min hardly ever holds a true gap of 0. Measured on 84 faces × 20 prompts with random face and prompt
effects, seven groups, 15 settings (no gap, one group apart, two levels, a gradient; rates 0.1 to 0.6), 400
studies each, share of 95 % intervals that hold the true gap:

| interval                                   | lowest | highest | true gap 0   |
|--------------------------------------------|--------|---------|--------------|
| percentile                                 | 0.00   | 0.995   | 0.00         |
| bias-corrected percentile                  | 0.00   | 0.99    | 0.00         |
| **basic**, [2g - q(0.975), 2g - q(0.025)]  | 0.91   | 1.00    | 0.95 to 0.995|
| simultaneous, g ± q(0.95) of range(r* - r) | 0.995  | 1.00    | 0.995 to 1.00|

The simultaneous one is nearly twice as wide as the basic one. The basic one is used, cut to [0, 1] and
stretched to hold the estimate itself, which near 0 it would otherwise leave out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenedit.records import Estimate
from evenedit.results import Contrast
from evenedit.stats.bootstrap import Bootstrap
from evenedit.stats.estimates import method, ratio, shares
from evenedit.stats.intervals import Interval, as_interval, percentile
from evenedit.stats.rules import AnalysisRules


def basic_gap_interval(gap: float, draws: NDArray[np.float64], confidence: float) -> Interval | None:
    """The reflected bootstrap interval of max - min, within [0, 1] and around the estimate."""
    bounds = as_interval(percentile(draws, confidence))
    if bounds is None:
        return None
    low, high = bounds
    return max(0.0, min(gap, 2 * gap - high)), min(1.0, max(gap, 2 * gap - low))


def gaps(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Estimate]:
    """gap.<rate> over each factor with two levels or more, for every editor and pooled."""
    panel = bootstrap.panel
    for factor, levels in panel.axes.levels.items():
        if len(levels) < 2:
            continue
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        drawn = np.stack([bootstrap.group(mask).values for mask in masks.values()])
        spread = drawn.max(axis=0) - drawn.min(axis=0)  # NaN where a level has no interval: then nor has the gap
        labelled = np.any(list(masks.values()), axis=0)
        for row, (editor, members) in enumerate(panel.rows()):
            for at, measure in enumerate(panel.measures):
                found = shares(panel, measure, members, masks)
                if not measure.is_rate or len(found) < 2:
                    continue
                gap = max(found.values()) - min(found.values())
                draws = spread[:, row, at]
                varies = bool(np.nanmin(draws, initial=np.inf) < np.nanmax(draws, initial=-np.inf))
                interval = basic_gap_interval(gap, draws, rules.confidence) if varies else None
                count = panel.tally(measure.count, members, labelled)
                yield Estimate(
                    measure="gap." + measure.name.removeprefix("rate."),
                    experiment=panel.experiment,
                    condition=panel.condition,
                    editor=editor,
                    group={factor: "*"},
                    value=gap,
                    low=interval[0] if interval else None,
                    high=interval[1] if interval else None,
                    n=count,
                    missing=panel.tally(measure.asked, members, labelled) - count,
                    method=f"{method(bootstrap, at)}, basic" if interval else "none: no variation to draw from",
                )


def contrasts(bootstrap: Bootstrap, rules: AnalysisRules) -> Iterator[Contrast]:
    """Each level's rate minus the rate of everybody else, for every editor and pooled.

    Faces are drawn within every level, prompts are shared: who makes up "everybody else" stays as designed.
    """
    panel = bootstrap.panel
    for factor, levels in panel.axes.levels.items():
        masks = {level: panel.axes.mask({factor: level}) for level in levels}
        for level, mask in masks.items() if len(levels) > 1 else ():
            others = [masks[other] for other in levels if other != level]
            rest = np.any(np.stack(others), axis=0)
            difference = bootstrap.group(mask).values - bootstrap.together(others)
            bounds = percentile(difference, rules.confidence)
            varies = np.nanmax(difference, axis=0, initial=-np.inf) > np.nanmin(difference, axis=0, initial=np.inf)
            for row, (editor, members) in enumerate(panel.rows()):
                for at, measure in enumerate(panel.measures):
                    if not measure.is_rate:
                        continue
                    count = panel.tally(measure.count, members, mask)
                    value = ratio(panel.tally(measure.total, members, mask), count)
                    other = ratio(panel.tally(measure.total, members, rest), panel.tally(measure.count, members, rest))
                    if value is None or other is None:
                        continue
                    interval = as_interval(bounds[:, row, at]) if varies[row, at] else None
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

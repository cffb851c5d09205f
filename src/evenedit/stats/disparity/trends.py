"""Trends over an ordered factor: how a rate changes from one level to the next.

The trend is the least-squares slope of the faces' own rates on the position of their level, every face with a valid
score counting alike. Its variance is the jackknife over faces plus the jackknife over prompts, so that both the faces
and the prompts could have been others; the interval is Student's, with two degrees of freedom fewer than faces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from evenedit.core.records import Estimate
from evenedit.protocol import Factor
from evenedit.protocol.measures import MeasureKind
from evenedit.stats.engine.estimates import NEGLIGIBLE
from evenedit.stats.engine.panel import Panel, RatioMeasure
from evenedit.stats.engine.rules import AnalysisRules

FEWEST_FACES = 3
"""A slope through two faces leaves nothing to tell its error by."""

Values = NDArray[np.float64]


def trends(panel: Panel, factors: Sequence[Factor], rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield trend.<rate> over each ordered factor, for every editor and pooled."""
    for factor in (f for f in factors if f.ordered and len(panel.axes.levels.get(f.name, ())) > 1):
        label = panel.axes.labels[factor.name]
        labelled = np.isin(label, factor.codes)
        place = np.array([factor.codes.index(level) for level in label[labelled]], dtype=np.float64)
        for editor, members in panel.rows():
            for measure in (m for m in panel.measures if m.is_rate):
                total, count = _cells(panel, measure, members, labelled)
                trend = _trend(place, total, count, rules.confidence)
                if trend is None:
                    continue
                value, interval = trend
                valid = int(panel.column_sum(measure.count, members, labelled))
                yield Estimate(
                    measure=measure.name.to(MeasureKind.TREND),
                    experiment=panel.experiment,
                    condition=panel.condition,
                    editor=editor,
                    group={factor.name: "*"},
                    value=value,
                    low=interval[0] if interval else None,
                    high=interval[1] if interval else None,
                    n=valid,
                    missing=int(panel.column_sum(measure.applicable, members, labelled)) - valid,
                    method="slope per level over faces; jackknife(faces) + jackknife(prompts), t"
                    if interval
                    else "slope per level over faces; none: too few faces, or no variation",
                )


def _cells(
    panel: Panel, measure: RatioMeasure, members: list[int], labelled: NDArray[np.bool_]
) -> tuple[Values, Values]:
    """Return the numbers of met and valid scores [face, prompt] over these editors."""
    total, count = (
        panel.cells[:, :, :, panel.columns.index(column)][labelled][:, :, members].sum(axis=2, dtype=np.float64)
        for column in (measure.total, measure.count)
    )
    return total, count


def _trend(
    place: Values, total: Values, count: Values, confidence: float
) -> tuple[float, tuple[float, float] | None] | None:
    """Return the slope and its interval; None where fewer than two levels have a valid score."""
    value = slope(place, total.sum(axis=1), count.sum(axis=1))
    if value is None:
        return None
    faces = int((count.sum(axis=1) > 0).sum())
    variance = _jackknife([slope(np.delete(place, f), *_without(total, count, f, 0)) for f in range(len(place))])
    if count.shape[1] > 1:
        prompts = _jackknife([slope(place, *_without(total, count, p, 1)) for p in range(count.shape[1])])
        variance = None if variance is None or prompts is None else variance + prompts
    if faces < FEWEST_FACES or variance is None or variance <= NEGLIGIBLE:
        return value, None
    reach = float(stdtrit(faces - 2, 0.5 + confidence / 2)) * float(np.sqrt(variance))
    return value, (value - reach, value + reach)


def _without(total: Values, count: Values, at: int, axis: int) -> tuple[Values, Values]:
    return np.delete(total, at, axis=axis).sum(axis=1), np.delete(count, at, axis=axis).sum(axis=1)


def _jackknife(left_out: Sequence[float | None]) -> float | None:
    """Return the jackknife variance; None where leaving one out leaves no slope."""
    values = [v for v in left_out if v is not None]
    if len(values) < len(left_out) or len(values) < 2:
        return None
    return float((len(values) - 1) / len(values) * np.square(np.array(values) - np.mean(values)).sum())


def slope(place: Values, total: Values, count: Values) -> float | None:
    """Least-squares slope of each face's rate on the place of its level; None without two places."""
    counted = count > 0
    x, y = place[counted], total[counted] / np.maximum(count[counted], 1)
    spread = float(np.square(x - x.mean()).sum()) if len(x) else 0.0
    return float(((x - x.mean()) * y).sum() / spread) if spread > 0 else None

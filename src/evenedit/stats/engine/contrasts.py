"""Declared contrasts: a weighted sum of group estimates, or everybody against a limit, adjusted for a covariate.

Tests that groups are equal take the variance pooled over all groups of the factor, intervals the larger of it and the
groups' own. The covariate is one number per face, read before or without the edit. Its slope is pooled within groups;
the variance grows by what is not known of the slope, and a degree of freedom goes (Cochran 1957).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenedit.stats.engine.anom import FEWEST_FACES
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import GroupEstimates
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import NEGLIGIBLE, Uncertainty, Values, share_p

MOST_WITHOUT = 0.05
"""Where more than this share of faces lacks the covariate, nothing is adjusted."""


@dataclass(frozen=True, slots=True)
class ContrastTest:
    """The test of one contrast of one editor, or of everybody."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    """None where nothing varies, or fewer than three faces are on a side."""
    sure: Uncertainty
    """Of the test."""
    sides: tuple[float, float]
    """The mean of the groups with positive weights, and with negative ones; of everybody the estimate twice."""
    these_prompts: bool = False
    """Whether the interval takes the prompts as fixed."""
    labelled: int = 0
    """Edits that people rated, where it is corrected by their ratings."""
    reason: str = ""
    """What people's ratings lack for a finding; empty if nothing."""


def contrast_test(
    crossed: CrossedPanel, factor: str, weights: Mapping[str, float], row: int, at: int, rules: AnalysisRules,
    inflation: float | None = None,
) -> ContrastTest | None:  # fmt: skip
    """Return the test of a weighted sum of groups; None where one has no score.

    `inflation` is the part of the variance that an adjustment for a covariate adds; None without one.
    """
    levels = crossed.panel.axes.levels.get(factor, ())
    groups, vector = [crossed.of({factor: level}) for level in levels], [weights.get(level, 0.0) for level in levels]
    scored = {level for level, g in zip(levels, groups, strict=True) if g.count[row, at] > 0}
    needed = {level for level, weight in weights.items() if weight}
    if not needed or needed - scored:
        return None
    w, means, faces = (
        np.array(vector),
        *(np.array([getattr(g, x)[row, at] for g in groups]) for x in ("value", "faces")),
    )
    means, positive = np.nan_to_num(means), w > 0
    value, reach = float(w @ means), w[positive].sum()
    separate, pooled = (
        _at(sure, row, at, inflation)
        for sure in (crossed.uncertainty(groups, vector), crossed.pooled((factor,)).of(vector))
    )
    wider = pooled if np.isnan(separate.variance) else separate.larger(pooled)
    half, known = float(wider.half_width(rules.confidence)), wider.variance > NEGLIGIBLE
    enough = min(faces[positive].sum(), faces[w < 0].sum()) >= FEWEST_FACES and pooled.variance > NEGLIGIBLE
    least, most = crossed.panel.measures[at].limits
    bound = reach * (most - least)
    return ContrastTest(
        value=value,
        low=max(value - half, -bound) if known else None,
        high=min(value + half, bound) if known else None,
        p=float(pooled.p(value)) if enough else None,
        sure=pooled,
        sides=(float(np.maximum(w, 0) @ means / reach), float(np.maximum(-w, 0) @ means / reach)),
    )


def everybody_test(
    overall: GroupEstimates, row: int, at: int, limit: float, two_sided: bool = False
) -> ContrastTest | None:
    """Return the test of everybody against a limit: of a share that is not `two_sided` only values above it count.

    None without a score.
    """
    if overall.sums.count[row, at] == 0:
        return None
    value, faces, sure = float(overall.sums.value[row, at]), int(overall.sums.faces[row, at]), overall.sure.at(row, at)
    low, high = overall.interval(row, at)[0] or (None, None)
    if not overall.crossed.panel.measures[at].is_share:
        return ContrastTest(value, low, high, _shift_p(value - limit, sure, faces), sure, (value, value))
    size, these_prompts = overall.share_size(row, at)
    p = share_p(value, size, limit, two_sided) if faces > 1 else None
    return ContrastTest(value, low, high, p, sure, (value, value), these_prompts)


def _shift_p(value: float, sure: Uncertainty, faces: int) -> float | None:
    """Return p of a shift against 0; of one that is the same in every edit, from the faces' common direction."""
    if faces < 2 or np.isnan(sure.variance):
        return None
    if sure.variance > NEGLIGIBLE:
        return float(sure.p(value))
    return min(1.0, 2 * 0.5**faces) if value else None


def adjusted(
    crossed: CrossedPanel, factor: str, weights: Mapping[str, float], row: int, at: int, covariate: Values
) -> tuple[CrossedPanel, float] | None:
    """Return the panel of one measure adjusted for a number per face, and the part that this adds to the variance.

    Faces without the number are left out. None where the number does not vary within groups.
    """
    panel = crossed.panel
    measure = panel.measures[at]
    columns = [panel.columns.index(measure.total), panel.columns.index(measure.count)]
    cells = panel.cells[:, :, row, columns].astype(np.float64)
    cells[np.isnan(covariate)] = 0.0
    label, x = panel.axes.labels[factor], np.nan_to_num(covariate)
    n = cells[..., 1].sum(axis=1)
    y = np.divide(cells[..., 0].sum(axis=1), n * measure.unit, out=np.zeros_like(n), where=n > 0)
    xc, yc, share = x.copy(), y.copy(), np.zeros_like(x)
    for level in panel.axes.levels[factor]:
        of = (label == level) & (n > 0)
        if of.any():
            xc[of], yc[of] = (v[of] - np.average(v[of], weights=n[of]) for v in (x, y))
            share[of] = weights.get(level, 0.0) / n[of].sum()
    counted = n * np.isin(label, panel.axes.levels[factor])
    squares = float(counted @ xc**2)
    if not squares > NEGLIGIBLE:
        return None
    slope, mean = float(counted @ (xc * yc)) / squares, float(counted @ x / counted.sum())
    cells[..., 0] -= slope * (x - mean)[:, None] * cells[..., 1] * measure.unit
    changed = replace(measure, total="total", count="count", applicable="count")
    one = replace(
        panel,
        editors=(panel.editors[row],),
        measures=(changed,),
        columns=("total", "count"),
        cells=cells[:, :, None],
        sums={},
    )
    unknown = float((share * n) @ x) ** 2 / (squares * float(n @ share**2))
    changed_panel = CrossedPanel(one)
    freedom = float(changed_panel.pooled((factor,)).face_freedom[0, 0])
    return changed_panel, (1 + unknown) * freedom / max(freedom - 1, 1.0) - 1


def _at(sure: Uncertainty, row: int, at: int, inflation: float | None) -> Uncertainty:
    """Return the uncertainty of one estimate, with what an adjustment for a covariate adds."""
    one = sure.at(row, at)
    return one if inflation is None else Uncertainty(one.variance * (1 + inflation), np.maximum(one.freedom - 1, 1.0))

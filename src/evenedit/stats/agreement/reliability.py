"""How far raters agree on an outcome as it is counted: Krippendorff's alpha with a jackknife interval over faces.

The metric is the interval one, for codes of 0 and 1 equal to the nominal one (Krippendorff 2011):
alpha = 1 - mean((a - b)²) / (2 s²), s² the variance of all values. Any number of raters and missing values are allowed;
an item with m raters counts its pairs 1 / (m - 1) times. Of more than two judges the mean over their pairs is taken.
The interval and p delete one face at a time (Efron and Stein 1981), t with one degree of freedom less than faces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from evenedit.core.records import ConditionKind, is_simulated
from evenedit.ratings.table import Scores
from evenedit.results.agreement import Agreement
from evenedit.results.finding import Reliability
from evenedit.stats.agreement.outcomes import Codes, counted_outcomes, diagnosis_rows
from evenedit.stats.engine.panel import units
from evenedit.stats.engine.rules import AnalysisRules

STATISTIC = "alpha"
METHOD = "interval metric of the codes, mean over pairs of judges; jackknife(faces)"
NONE = "undefined: the codes of a judge are all alike"
BASELINE = ConditionKind.BASELINE.value
CONSTANT = 1e-12
"""A variance of codes below this is rounding."""


def outcome_reliability(rows: Iterable[Agreement]) -> dict[tuple[str, str | None], Reliability]:
    """Return the judges' alpha by measure and editor."""
    return {(a.axis, a.editor): Reliability(STATISTIC, a.value, a.low, a.high, a.n_items, a.p) for a in rows}


def outcome_alphas(scores: Scores, rules: AnalysisRules, means: bool = False) -> Iterator[Agreement]:
    """Yield the judges' alpha of each measure, with `means` of scores too, of each editor's edits of the baseline.

    There is none with fewer than two judges. Pass scores without what reviewers settled, which all judges would share.
    """
    judges = [at for at, values in enumerate(scores.judged) if values.any()]
    rows = diagnosis_rows(scores)
    if len(judges) < 2 or not len(rows):
        return
    values = scores.judged[judges][:, rows]
    outcomes = list(counted_outcomes(scores, rules, rows, means))
    codes = np.stack([np.where(applies, o.codes(values), np.nan) for o, applies in outcomes], axis=-1)
    edits = scores.edits.iloc[rows]
    face = units(edits).to_numpy(dtype=str)
    editor = edits["editor"].to_numpy(dtype=str)
    pairs = list(combinations(range(len(judges)), 2))
    for name in map(str, np.unique(editor)):
        of = editor == name
        mark = "; SIMULATED" if any(map(is_simulated, [name, *scores.table.raters])) else ""
        known = (~np.isnan(codes[:, of])).sum(axis=0)
        ratings = np.where(known > 1, known, 0).sum(axis=0)
        matches = zip(outcomes, alpha(codes[:, of], face[of], rules.confidence, pairs), ratings, strict=True)
        for (outcome, _), r, n in matches:
            method = (NONE if r.value is None else METHOD) + mark
            numbers = r.value, r.low, r.high, r.n, int(n), method, r.p
            yield Agreement("alpha_outcome", outcome.measure, BASELINE, name, {}, "judges", *numbers)


def alpha(
    codes: Codes, face: NDArray[np.str_], confidence: float, sets: Sequence[Sequence[int]] | None = None
) -> list[Reliability]:
    """Return alpha of every outcome from codes [rater, item, outcome], NaN where missing.

    `sets` are sets of raters whose alphas are averaged; one set of all raters if it is None.
    """
    if not len(face):
        return [Reliability(STATISTIC, None, None, None, 0, None) for _ in range(codes.shape[2])]
    order = np.argsort(face, kind="stable")
    starts = np.flatnonzero(np.r_[True, face[order][1:] != face[order][:-1]])
    codes = codes[:, order]
    known = ~np.isnan(codes)
    varies = np.nanmax(np.where(known, codes, -np.inf), axis=1) > np.nanmin(np.where(known, codes, np.inf), axis=1)
    constant = ((known.sum(axis=1) > 0) & ~varies).any(axis=0) if sets is not None else np.zeros(codes.shape[2], bool)
    alphas, without = [], []
    counts = np.zeros((len(starts), codes.shape[2]))
    for members in sets or [range(len(codes))]:
        sums = np.add.reduceat(_parts(codes[list(members)]), starts, axis=1)
        total = sums.sum(axis=1)
        alphas.append(_alpha(total))
        without.append(_alpha(total[:, None] - sums))
        counts += sums[1]
    value, deleted = np.mean(alphas, axis=0), np.where(counts > 0, np.mean(without, axis=0), 0.0)
    faces = (counts > 0).sum(axis=0)
    size = np.maximum(faces, 1)
    around = np.where(counts > 0, deleted - deleted.sum(axis=0) / size, 0.0)
    error = np.sqrt((around**2).sum(axis=0) * (size - 1) / size)
    several, freedom = faces > 1, np.maximum(size - 1, 1)
    reach = np.where(several, error * stdtrit(freedom, 0.5 + confidence / 2), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # judges who agree in every face have no error
        p = np.where(several, stdtr(freedom, -value / error), np.nan)
    items = (known.sum(axis=0) > 1).sum(axis=0)
    numbers = zip(np.where(constant, np.nan, value), reach, items, p, strict=True)
    return [_record(float(v), float(r), int(n), float(q)) for v, r, n, q in numbers]


def _parts(codes: Codes) -> Codes:
    """Return, of every item with two values or more: disagreement of its pairs, number, sum and squares of values."""
    known = ~np.isnan(codes)
    filled = np.where(known, codes, 0.0)
    n, total, squares = known.sum(axis=0).astype(np.float64), filled.sum(axis=0), (filled**2).sum(axis=0)
    differ = 2 * (n * squares - total**2) / np.maximum(n - 1, 1)
    return np.where(n > 1, np.stack([differ, n, total, squares]), 0.0)


def _alpha(sums: Codes) -> Codes:
    """Return alpha from sums over items; NaN where all values are alike."""
    differ, n, total, squares = sums
    size = np.maximum(n, 1)
    variance = (squares - total**2 / size) / np.maximum(n - 1, 1)
    known = variance > CONSTANT
    return np.where(known, 1 - differ / size / np.where(known, 2 * variance, 1.0), np.nan)


def _record(value: float, reach: float, n: int, p: float) -> Reliability:
    if np.isnan(value):
        return Reliability(STATISTIC, None, None, None, n, None)
    if np.isnan(reach):
        return Reliability(STATISTIC, value, None, None, n, None)
    return Reliability(STATISTIC, value, value - reach, min(1.0, value + reach), n, p)

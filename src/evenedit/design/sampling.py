"""Samples of cases with even margins and cells, and the inclusion probability of each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.blas_threads import single_blas_thread
from evenedit.core.errors import EvenEditError
from evenedit.protocol import FACTORS, Factor

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Crossed = Sequence[Sequence[str]]
"""Sets of columns; a sample is even over each column and over the combinations within each set."""

NEGLIGIBLE = 1e-9
LEAST = 0.25
"""The smallest inclusion probability of a balanced sample, relative to a simple random sample within the first column:
it bounds the weights of cases whose groups have more cases than the others."""
MOST = 400
"""Tables with more groups are not kept even by the draw, only by the probabilities: few cases fall in each."""
ROUNDS = 500
FRESH = 50
"""Pivots after which the basis of the cube method is inverted anew."""
SIMULATED = (400, 20_000)
"""The least and the largest number of draws from which probabilities of the greedy fill are estimated."""
WORK = 250_000_000
"""How many cases these draws look at together, if that number of draws allows it."""
TAKEN = np.iinfo(np.int64).max


def crossed_of(factors: Sequence[Factor]) -> Crossed:
    """Return the columns over which a balanced sample is even, alone and combined: prompt × editor, the factors."""
    return (("prompt", "editor"), tuple(f.name for f in factors))


def strata_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the columns whose combinations are the strata: the factors, by their bands where they have any."""
    return (*(f"{f.name} band" for f in factors), "editor")


def routine_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the columns over which routine cases are even: race × gender, or the declared factors."""
    return tuple(f.name for f in (factors[:2] if tuple(factors) == FACTORS else factors))


def drawn(
    cases: pd.DataFrame,
    size: int,
    sampler: str,
    factors: Sequence[Factor],
    *,
    seed: int,
    published: bool = False,
    quotas: Mapping[str, float] | None = None,
) -> tuple[Rows, Floats]:
    """Choose `size` rows by a sampler of the study file; return their positions and inclusion probabilities.

    Under the published rules, `balanced` is the greedy fill of the paper.
    """
    if sampler == "strata":
        return stratified(cases, size, by=strata_of(factors), seed=seed)
    if sampler == "priority":
        return priority(cases, size, quotas=quotas or {}, seed=seed, even_over=routine_of(factors))
    if published:
        names = tuple(f.name for f in factors)
        even_over = [("editor",), *((name,) for name in names), names, names]  # cells twice: else margins outvote them
        return filled(cases, size, within="prompt", even_over=even_over, seed=seed)
    return balanced(cases, size, crossed=crossed_of(factors), seed=seed)


def balanced(cases: pd.DataFrame, size: int, *, crossed: Crossed, seed: int) -> tuple[Rows, Floats]:
    """Choose `size` rows that are even over columns and their combinations, by the cube method.

    The first column is exactly as even as there are cases, the others as even as the cases allow at once.
    """
    _require(cases, size)
    chances = even_chances(cases, size, crossed)
    rows = Balance.of(cases, crossed).sample(chances, np.random.default_rng(seed))
    return rows, chances[rows]


def stratified(cases: pd.DataFrame, size: int, *, by: Sequence[str], seed: int) -> tuple[Rows, Floats]:
    """Choose `size` rows, as evenly over the strata as there are cases, at random within each.

    A stratum with too few gives all it has and the others more. What cannot be shared out evenly goes to strata drawn
    at random, so that a row's chance is its stratum's expected number over the number of rows in it.
    """
    _require(cases, size)
    rng = np.random.default_rng(seed)
    strata = cases.groupby(list(by), sort=True).ngroup().to_numpy()
    available = np.bincount(strata)
    level = 0
    while np.minimum(available, level + 1).sum() <= size and level < available.max(initial=0):
        level += 1
    quotas = np.minimum(available, level)
    rest = size - int(quotas.sum())
    deeper = np.flatnonzero(available > level)
    expected = quotas.astype(float)
    if rest:
        expected[deeper] += rest / len(deeper)
        quotas[rng.permutation(deeper)[:rest]] += 1
    chosen = [rng.permutation(np.flatnonzero(strata == s))[:quota] for s, quota in enumerate(quotas)]
    rows = np.concatenate(chosen).astype(np.intp)
    return rows, (expected / available)[strata[rows]]


CLASSES = ("disagreement", "drift", "erasure", "skin", "routine")
"""Why a case is reviewed, first match first: judges disagree, severe drift, soft erasure, skin change, no reason."""
QUOTAS = {"disagreement": 0.2, "drift": 0.2, "erasure": 0.15, "skin": 0.15, "routine": 0.3}
"""Shares of the priority sample unless the study says otherwise."""


def priority(
    cases: pd.DataFrame, size: int, *, quotas: Mapping[str, float], seed: int, even_over: Sequence[str]
) -> tuple[Rows, Floats]:
    """Choose `size` rows by class: what may have gone wrong first, and routine cases even over `even_over`.

    `cases` has a column `class`, one of CLASSES. A class with too few gives all it has; the rest is taken from routine
    cases, then from whichever class has more.
    """
    _require(cases, size)
    available = cases["class"].value_counts()
    shares = dict(quotas or QUOTAS)
    total = sum(shares.values())
    wanted = {name: round(size * shares.get(name, 0.0) / total) for name in CLASSES}
    counts = {name: min(wanted[name], int(available.get(name, 0))) for name in CLASSES}
    for name in ("routine", *CLASSES):
        room = int(available.get(name, 0)) - counts[name]
        counts[name] += max(-counts[name], min(room, size - sum(counts.values())))
    rows: list[Rows] = []
    chances: list[Floats] = []
    for number, name in enumerate(CLASSES):
        members = np.flatnonzero((cases["class"] == name).to_numpy())
        if counts[name]:
            by = tuple(even_over) if name == "routine" else ("class",)
            within, chance = stratified(cases.iloc[members], counts[name], by=by, seed=seed + number)
            rows.append(members[within])
            chances.append(chance)
    return np.concatenate(rows), np.concatenate(chances)


def filled(cases: pd.DataFrame, size: int, *, within: str, even_over: Crossed, seed: int) -> tuple[Rows, Floats]:
    """Choose `size` rows, equally many per level of `within`, by the greedy fill of the paper.

    Where every combination of labels has equally many cases, all cases have the same chance, because the rule treats
    all labels alike; else the chances are the shares of simulated draws.
    """
    rows = greedy_fill(cases, size, even_over, np.random.default_rng(seed), within=within)[0]
    if _is_complete(cases, [within, *(name for names in even_over for name in names)]):
        return rows, np.full(size, size / len(cases))
    draws = int(np.clip(WORK * cases[within].nunique() / (size * len(cases)), *SIMULATED))
    others = greedy_fill(cases, size, even_over, np.random.default_rng([seed, draws]), within=within, draws=draws)
    seen = np.bincount(others.ravel(), minlength=len(cases)) + 1  # with the sample itself: no row of it has chance 0
    return rows, (seen / (draws + 1))[rows]


def greedy_fill(
    cases: pd.DataFrame,
    size: int,
    even_over: Crossed,
    rng: np.random.Generator,
    *,
    within: str | None = None,
    draws: int = 1,
) -> Rows:
    """Return independent draws of `size` rows, each in the order in which they were taken.

    Level by level of `within`, always the available case with the largest summed deficit of `even_over` is taken;
    ties are broken at random.
    """
    _require(cases, size)
    tables = [_codes(cases, columns) for columns in even_over]
    levels = pd.factorize(cases[within])[0] if within else np.zeros(len(cases), dtype=np.intp)
    members = [np.flatnonzero(levels == level) for level in range(int(levels.max(initial=-1)) + 1)]
    quotas = np.full((draws, len(members)), size // len(members))
    for quota in quotas:
        quota[rng.permutation(len(members))[: size % len(members)]] += 1
    totals = [np.zeros((draws, int(table.max()) + 1)) for table in tables]
    chosen, taken = np.zeros((draws, size), dtype=np.intp), np.zeros(draws, dtype=np.intp)
    for available, quota in zip(members, quotas.T, strict=True):
        if quota.max() > len(available):
            level = cases[within].iloc[available[0]] if within else ""
            raise EvenEditError(f"{within} {level} has {len(available)} cases; the sample needs {quota.max()} of each")
        tie_break = np.array([rng.permutation(len(available)) for _ in range(draws)])
        for step in range(quota.max()):
            on = np.flatnonzero(quota > step)
            deficit = np.zeros((len(on), len(available)))
            for total, table in zip(totals, tables, strict=True):
                deficit += (total[on].mean(axis=1, keepdims=True) - total[on])[:, table[available]]
            deficit = np.where(tie_break[on] == TAKEN, -np.inf, np.round(deficit, 9))
            best = deficit == deficit.max(axis=1, keepdims=True)
            take = np.where(best, tie_break[on], TAKEN).argmin(axis=1)
            tie_break[on, take] = TAKEN
            for total, table in zip(totals, tables, strict=True):
                total[on, table[available[take]]] += 1
            chosen[on, taken[on]] = available[take]
            taken[on] += 1
    return chosen


def _require(cases: pd.DataFrame, size: int) -> None:
    if size > len(cases):
        raise EvenEditError(f"the sample needs {size} cases, but there are only {len(cases)}")


def _is_complete(cases: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return True if every combination of labels has equally many cases."""
    names = list(dict.fromkeys(columns))
    cells = cases.groupby(names, dropna=False).size()
    return cells.nunique() == 1 and len(cells) == cases[names].nunique(dropna=False).prod()


def _codes(cases: pd.DataFrame, columns: Sequence[str]) -> Rows:
    """Return the number of each row's combination of labels."""
    return np.asarray(cases.groupby(list(columns), sort=True, dropna=False).ngroup(), dtype=np.intp)


def _sums(codes: Rows, values: Floats) -> Floats:
    """Return the total of the values of each code."""
    return np.bincount(codes, values).astype(np.float64)


def _even_shares(available: NDArray[np.int64], size: float) -> Floats:
    """Share `size` equally; what has too few gives all it has and the others more."""
    if not len(available):
        return np.zeros(0)
    ordered = np.sort(available)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    level = (size - before) / np.arange(len(ordered), 0, -1)
    shares: Floats = np.minimum(available, level[np.argmax(ordered >= level - NEGLIGIBLE)])
    return shares


def even_chances(cases: pd.DataFrame, size: int, crossed: Crossed) -> Floats:
    """Return inclusion probabilities whose totals are as even as the cases allow, by iterative scaling.

    All totals are scaled at once towards equal shares (Darroch and Ratcliff 1972): where they cannot all be met, the
    result lies between them (Byrne 1993). Probabilities stay between LEAST and 1. An empty label is no level.
    """
    columns = [[name] for names in crossed for name in names] + [list(names) for names in crossed if len(names) > 1]
    tables = [_codes(cases, names) for names in columns]
    labelled = [np.unique(t[(cases[c] != "").all(axis=1)]) for t, c in zip(tables, columns, strict=True)]
    first, quota = tables[0], _even_shares(np.bincount(tables[0]), size)
    chances = (quota / np.bincount(first))[first]
    least = LEAST * chances
    for _ in range(ROUNDS):
        before, change = chances, np.ones(len(cases))
        for table, known in zip(tables, labelled, strict=True):
            sums = _sums(table, chances)
            target = sums.copy()
            target[known] = _even_shares(np.bincount(table)[known], sums[known].sum())
            change *= _ratio(target, sums)[table] ** (1 / len(tables))
        if np.abs(change - 1.0).max() < NEGLIGIBLE:
            break
        chances = np.clip(chances * change, least, 1.0)
        chances = np.clip(chances * _ratio(quota, _sums(first, chances))[first], least, 1.0)
        if np.abs(chances - before).max() < NEGLIGIBLE:
            break
    missing = quota - _sums(first, chances)
    missing[np.abs(missing) < NEGLIGIBLE / len(quota) / 10] = 0.0
    room = np.where(missing[first] > 0, 1.0 - chances, chances - least)
    return chances + _ratio(missing, _sums(first, room))[first] * room


def _ratio(part: Floats, entire: Floats) -> Floats:
    """Divide; 0 where there is nothing to divide by."""
    share: Floats = np.divide(part, entire, out=np.zeros_like(entire), where=entire > 0)
    return share


@dataclass(frozen=True, slots=True)
class Balance:
    """The totals that a sample keeps, and the order in which they are rounded."""

    tables: Sequence[Rows]
    """Each row's group, by table, in order of importance."""
    blocks: Sequence[tuple[Rows, Rows, Sequence[Rows]]]
    """Groups that are rounded before the rows: each row's group, the first row of each group, tables of the groups.

    Only in a complete design, where rounding one set of columns does not move the totals of another.
    """

    @classmethod
    def of(cls, cases: pd.DataFrame, crossed: Crossed) -> Balance:
        """Return the balance over columns and their combinations."""
        singles = [_codes(cases, [name]) for names in crossed for name in names]
        cells = [_codes(cases, names) for names in crossed if len(names) > 1]
        tables = [singles[0], *cells[1:], *singles[1:], *cells[:1]]
        blocks = []
        complete = _is_complete(cases, [name for names in crossed for name in names])
        for names in crossed if complete else ():
            for count in range(2, len(names) + 1):
                group = _codes(cases, names[:count])
                first = np.unique(group, return_index=True)[1]
                parts = [_codes(cases, names[: count - 1]), *(_codes(cases, [name]) for name in names[:count])]
                blocks.append((group, first, [part[first] for part in parts if part.max() < MOST]))
        return cls([table for table in tables if table.max() < MOST], [b for b in blocks if len(b[1]) <= MOST])

    @single_blas_thread()
    def sample(self, chances: Floats, rng: np.random.Generator) -> Rows:
        """Draw rows with exactly these inclusion probabilities, by the cube method (Deville and Tillé 2004).

        In a complete design, groups of two columns, then of three and so on are rounded first, because rounding two
        tables at a time always succeeds.
        """
        for group, first, tables in self.blocks:
            values, largest = _sums(group, chances), np.zeros(len(first))
            np.maximum.at(largest, group, chances)
            most = np.maximum(_ratio(values, largest), values)  # or a row's chance would exceed 1
            upper = np.clip(np.ceil(values - NEGLIGIBLE), values, most)
            lower = np.minimum(np.floor(values + NEGLIGIBLE), values)
            rounded = _Walk.of(values, lower, upper, tables).rounded(rng)
            chances = np.minimum(chances * _ratio(rounded, values)[group], 1.0)
        count = len(chances)
        return np.flatnonzero(_Walk.of(chances, np.zeros(count), np.ones(count), self.tables).rounded(rng) > 0.5)


@dataclass(slots=True)
class _Walk:
    """A random walk of values that keeps their means, and the total of each group plus its slack.

    A slack between 0 and 1 lets the total end at either whole number beside its expectation. As in the simplex method,
    one variable at a time moves together with the basis until one of them meets a bound; the probabilities of the two
    directions keep the means.
    """

    values: Floats
    """The values, then the slack of each total."""
    lower: Floats
    upper: Floats
    totals: Rows
    """[value, table]: the totals in which it counts; the total of all first."""
    basis: Rows
    """The variable that is solved for, by total."""
    inverse: Floats
    """Of the basis."""
    pivots: int = 0

    @classmethod
    def of(cls, values: Floats, lower: Floats, upper: Floats, tables: Sequence[Rows]) -> _Walk:
        """Return the start of a walk, with tables in order of importance."""
        tables = [np.zeros(len(values), dtype=np.intp), *tables]
        starts = np.cumsum([0, *(int(table.max()) + 1 for table in tables)])
        totals = np.stack([table + start for table, start in zip(tables, starts, strict=False)], axis=1)
        expected = np.bincount(totals.ravel(), np.repeat(values, len(tables)))
        above, below = np.ceil(expected - NEGLIGIBLE), np.floor(expected + NEGLIGIBLE)
        return cls(
            values=np.concatenate([values, np.clip(above - expected, 0.0, above - below)]),
            lower=np.concatenate([lower, np.zeros(len(expected))]),
            upper=np.concatenate([upper, above - below]),
            totals=totals,
            basis=np.arange(len(values), len(values) + len(expected)),
            inverse=np.eye(len(expected)),
        )

    def rounded(self, rng: np.random.Generator) -> Floats:
        """Return the values, each at a bound; one may be left between bounds that are no whole numbers.

        Values that no total lets move further are freed by widening totals, the least important first (landing by
        suppression of variables); the total of all is kept.
        """
        count = len(self.totals)
        for value in rng.permutation(count):
            if self._open(value).any():
                self._move(int(value), rng)
        slacks = np.arange(len(self.values) - 1, count, -1)
        while self._open(slice(count)).any() and len(np.setdiff1d(slacks, self.basis)):
            for slack in slacks:
                self.lower[slack] -= 1
                self.upper[slack] += 1
                if slack not in self.basis and self._open(slice(count)).any():
                    self._move(int(slack), rng)
        return self.values[:count]

    def _open(self, at: Any) -> NDArray[np.bool_]:
        """Return which variables are at neither bound."""
        values = self.values[at]
        return np.asarray((values > self.lower[at] + NEGLIGIBLE) & (values < self.upper[at] - NEGLIGIBLE))

    def _move(self, entering: int, rng: np.random.Generator) -> None:
        """Move one variable and the basis along a line, up or down until a bound is met."""
        count = len(self.totals)
        is_value = entering < count
        column = self.inverse[:, self.totals[entering]].sum(axis=1) if is_value else self.inverse[:, entering - count]
        active = np.flatnonzero(np.abs(column) > 1e-6)
        moved, slope = np.append(self.basis[active], entering), np.append(-column[active], 1.0)
        above, below = self.upper[moved] - self.values[moved], self.values[moved] - self.lower[moved]
        up = np.maximum(np.where(slope > 0, above, below), 0.0) / np.abs(slope)
        down = np.maximum(np.where(slope > 0, below, above), 0.0) / np.abs(slope)
        goes_up = rng.random() * (up.min() + down.min()) <= down.min()
        steps = up if goes_up else down
        nearest = steps <= steps.min() + NEGLIGIBLE
        met = int(np.where(nearest, np.round(np.abs(slope), 6), 0.0).argmax())  # the steepest, or rounding errors grow
        self.values[moved] += (steps.min() if goes_up else -steps.min()) * slope
        leaving = moved[met]
        self.values[leaving] = (self.upper if (slope[met] > 0) == goes_up else self.lower)[leaving]
        if leaving != entering:
            row = active[met]
            self.basis[row] = entering
            self.pivots += 1
            if self.pivots % FRESH == 0:
                self.inverse = self._inverted()
                return
            pivot, others = self.inverse[row] / column[row], active[active != row]
            self.inverse[others] -= np.outer(column[others], pivot)
            self.inverse[row] = pivot

    def _inverted(self) -> Floats:
        """Invert the basis anew, before rounding errors add up."""
        matrix, count = np.zeros_like(self.inverse), len(self.totals)
        at = np.flatnonzero(self.basis < count)
        matrix[self.totals[self.basis[at]], at[:, None]] = 1.0
        slacks = np.flatnonzero(self.basis >= count)
        matrix[self.basis[slacks] - count, slacks] = 1.0
        return np.asarray(np.linalg.inv(matrix))

"""Samples of cases with even margins, and the inclusion probability of each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.protocol import FACTORS, Factor


def margins_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the columns whose totals a balanced sample keeps even."""
    return ("editor", *(f.name for f in factors))


def strata_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the columns whose combinations are the strata: the factors, by their bands where they have any."""
    return (*(f"{f.name} band" for f in factors), "editor")


def routine_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the columns over which routine cases are even: race × gender, or the declared factors."""
    return tuple(f.name for f in (factors[:2] if tuple(factors) == FACTORS else factors))


def balanced(
    cases: pd.DataFrame, size: int, *, within: str, factors: Sequence[str], seed: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose `size` rows, equally many per level of `within`, keeping the running totals of `factors` even.

    Level by level, always the available case with the largest summed deficit is taken; ties are broken at
    random by seed. Returns row positions and each row's inclusion probability. The rule treats all levels of
    a factor alike, so in a complete design every case of a `within` level has the same chance: quota / available.
    """
    if size > len(cases):
        raise EvenEditError(f"the sample needs {size} cases, but there are only {len(cases)}")
    rng = np.random.default_rng(seed)
    strata = cases[within].to_numpy()
    names = list(dict.fromkeys(strata))
    quotas = np.full(len(names), size // len(names))
    quotas[rng.permutation(len(names))[: size % len(names)]] += 1
    codes = [pd.factorize(cases[factor], sort=True)[0] for factor in factors]
    totals = [np.zeros(code.max() + 1) for code in codes]
    chosen: list[int] = []
    chances: list[float] = []
    for name, quota in zip(names, quotas, strict=True):
        available = np.flatnonzero(strata == name)
        if quota > len(available):
            raise EvenEditError(f"{within} {name} has {len(available)} cases; the sample needs {quota} of each")
        free = np.ones(len(available), dtype=bool)
        tie_break = rng.permutation(len(available))
        for _ in range(quota):
            deficit = sum((total.mean() - total)[code[available]] for total, code in zip(totals, codes, strict=True))
            order = np.lexsort((tie_break, -np.round(deficit, 9), ~free))
            take = order[0]
            free[take] = False
            row = int(available[take])
            for total, code in zip(totals, codes, strict=True):
                total[code[row]] += 1
            chosen.append(row)
            chances.append(quota / len(available))
    return np.array(chosen, dtype=np.intp), np.array(chances)


def stratified(
    cases: pd.DataFrame, size: int, *, by: Sequence[str], seed: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose `size` rows, as evenly over the strata as there are cases, at random within each.

    A stratum with too few gives all it has and the others more. What cannot be shared out evenly goes to strata drawn
    at random, so that a row's chance is its stratum's expected number over the number of rows in it.
    """
    if size > len(cases):
        raise EvenEditError(f"the sample needs {size} cases, but there are only {len(cases)}")
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
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose `size` rows by class: what may have gone wrong first, and routine cases even over `even_over`.

    `cases` has a column `class`, one of CLASSES. A class with too few gives all it has; the rest is taken from routine
    cases, then from whichever class has more.
    """
    shares = dict(quotas or QUOTAS)
    if size > len(cases):
        raise EvenEditError(f"the sample needs {size} cases, but there are only {len(cases)}")
    available = cases["class"].value_counts()
    total = sum(shares.values())
    wanted = {name: round(size * shares.get(name, 0.0) / total) for name in CLASSES}
    counts = {name: min(wanted[name], int(available.get(name, 0))) for name in CLASSES}
    for name in ("routine", *CLASSES):
        room = int(available.get(name, 0)) - counts[name]
        counts[name] += max(-counts[name], min(room, size - sum(counts.values())))
    rows: list[NDArray[np.intp]] = []
    chances: list[NDArray[np.float64]] = []
    for number, name in enumerate(CLASSES):
        members = np.flatnonzero((cases["class"] == name).to_numpy())
        if counts[name]:
            by = tuple(even_over) if name == "routine" else ("class",)
            within, chance = stratified(cases.iloc[members], counts[name], by=by, seed=seed + number)
            rows.append(members[within])
            chances.append(chance)
    return np.concatenate(rows), np.concatenate(chances)

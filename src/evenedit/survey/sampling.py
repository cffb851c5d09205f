"""Choosing cases: samples whose margins are even, with every case's chance of being chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.records import UserError


def balanced(
    cases: pd.DataFrame, size: int, *, within: str, factors: Sequence[str], seed: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose `size` rows, equally many per level of `within`, keeping the running totals of `factors` even.

    Level by level, always the available case with the largest summed deficit is taken; ties are broken at
    random by seed. Returns row positions and each row's inclusion probability. The rule treats all levels of
    a factor alike, so in a complete design every case of a `within` level has the same chance: quota / available.
    """
    if size > len(cases):
        raise UserError(f"a sample of {size} cases was asked for, but there are only {len(cases)}")
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
            raise UserError(f"{within} {name} has {len(available)} cases; the sample wants {quota} of each")
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

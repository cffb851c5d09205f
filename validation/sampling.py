"""Samples of cases drawn again and again: stated against observed inclusion, and how even each sample is.

`python -m validation sampling`; DRAWS in the environment sets another number of draws of the small frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom

from evenedit.design.sampling import Balance, Floats, crossed_of, drawn, even_chances
from evenedit.protocol import FACTORS, load_prompts
from evenedit.protocol.factors import cells
from validation.page import Validation, size, table

SEED = 34
GRID_DRAWS = 400
CLOSE = 0.01
"""How far a stated probability may be from the observed share in a small frame."""
ERRORS = 3
"""How many standard errors it may be on the published grid, beyond what so many cases reach by chance."""
CROSSED = crossed_of(FACTORS)
ALLOWED = {
    "prompt": (25, 25),
    "category": (250, 250),
    "editor": (166, 167),
    "race": (71, 72),
    "gender": (250, 250),
    "age": (83, 84),
    "cell": (5, 6),
}
"""What the published sample of 500 cases must hold of each level."""


def published_grid() -> pd.DataFrame:
    """All 5,040 cases of the published design."""
    prompts = [prompt.id for prompt in load_prompts("diagnostic")]
    rows = [{**cell, "prompt": p, "editor": e} for e, cell, p in product(("flux", "step1x", "qwen"), cells(), prompts)]
    return pd.DataFrame(rows)


def incomplete_frames() -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Small audits of existing outputs: no label goes with every other, and groups have unequal numbers of cases."""
    rng = np.random.default_rng(SEED)

    def frame(race: list[str], prompts: int, editors: int) -> pd.DataFrame:
        count = len(race)
        return pd.DataFrame(
            {
                "race": race,
                "gender": rng.choice(["Female", "Male"], count, p=[0.3, 0.7]),
                "age": rng.choice(["20s", "30s", "50s"], count, p=[0.5, 0.3, 0.2]),
                "prompt": rng.choice([f"O-{number:02}" for number in range(prompts)], count),
                "editor": rng.choice([f"editor {number}" for number in range(editors)], count),
            }
        )

    yield "157 Black and 20 East Asian edits", frame(["Black"] * 157 + ["East Asian"] * 20, 4, 2), 40
    yield "60 edits of 3 races, 4 prompts", frame(["White"] * 34 + ["Black"] * 20 + ["Indian"] * 6, 4, 2), 20
    yield "30 edits of 4 races, 3 prompts", frame(["White"] * 15 + ["Black"] * 9 + ["Indian"] * 5 + [""], 3, 2), 12


def observed(balance: Balance, stated: Floats, draws: int) -> Floats:
    """The share of draws in which each case was chosen."""
    counts = np.zeros(len(stated))
    for number in range(draws):
        counts[balance.sample(stated, np.random.default_rng([SEED, number]))] += 1
    return counts / draws


def by_chance(stated: Floats, draws: int) -> float:
    """The largest difference between true probabilities and shares of draws that is exceeded in 1 of 20 runs."""
    open_ones = stated[(stated > 0) & (stated < 1)]
    shares = np.random.default_rng(SEED).binomial(draws, open_ones, (400, len(open_ones))) / draws
    return float(np.quantile(np.abs(shares - open_ones).max(axis=1), 0.95))


def beyond_by_chance(stated: float, draws: int) -> float:
    """The probability that a share of draws is more than ERRORS standard errors from the true probability."""
    apart = ERRORS * np.sqrt(stated * (1 - stated) * draws)
    law = binom(draws, stated)
    return float(law.sf(np.floor(draws * stated + apart)) + law.cdf(np.ceil(draws * stated - apart) - 1))


def levels(chosen: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """The least and the largest number of cases of a level, by column."""
    named = chosen.assign(
        category=chosen["prompt"].str[0], cell=chosen["race"] + chosen["gender"] + chosen["age"].astype(str)
    )
    return {name: (int(n.min()), int(n.max())) for name in ALLOWED for n in [named[name].value_counts()]}


def uneven(chosen: pd.DataFrame) -> list[str]:
    """What a sample of 500 of the published grid has too many or too few of."""
    found = levels(chosen)
    return [
        f"{name} {found[name]}"
        for name, (low, high) in ALLOWED.items()
        if found[name][0] < low or found[name][1] > high
    ]


def run(_folder: Path) -> Validation:
    """Draw samples of small incomplete frames and of the published grid."""
    draws, wrong, rows = size("DRAWS", 20_000), [], []
    for name, cases, wanted in incomplete_frames():
        stated, balance = even_chances(cases, wanted, CROSSED), Balance.of(cases, CROSSED)
        share = observed(balance, stated, draws)
        races = pd.Series(stated).groupby(cases["race"]).sum()
        off = np.abs(share - stated).max()
        if off > CLOSE:
            wrong.append(f"{name}: stated and observed inclusion differ by {100 * off:.2f} points")
        rows.append(
            {
                "cases": name,
                "drawn": wanted,
                "draws": draws,
                "stated": f"{stated.min():.3f} to {stated.max():.3f}",
                "expected by race": ", ".join(f"{race or 'no label'} {n:.1f}" for race, n in races.items()),
                "largest difference, points": f"{100 * off:.2f}",
                "largest that chance gives in 19 of 20, points": f"{100 * by_chance(stated, draws):.2f}",
            }
        )
    lines = table(rows)
    grid, grid_rows = published_grid(), []
    for rule, published in (("default", False), ("published", True)):
        even, share = 0, np.zeros(len(grid))
        for seed in range(GRID_DRAWS):
            chosen, chances = drawn(grid, 500, "balanced", FACTORS, seed=seed, published=published)
            share[chosen] += 1 / GRID_DRAWS
            problems = uneven(grid.iloc[chosen])
            even += not problems
            if problems and seed == 42:
                wrong.append(f"{rule}, seed 42: {', '.join(problems)}")
        error = np.sqrt(chances[0] * (1 - chances[0]) / GRID_DRAWS)
        by_level = [
            np.abs(pd.Series(share).groupby(grid[name]).mean() - chances[0]).max() for name in ("race", "gender", "age")
        ]
        beyond = int((np.abs(share - chances[0]) > ERRORS * error).sum())
        expected = beyond_by_chance(float(chances[0]), GRID_DRAWS) * len(grid)
        if beyond > expected + ERRORS * np.sqrt(expected):
            wrong.append(f"{rule}: {beyond} of {len(grid):,} cases are beyond {ERRORS} standard errors")
        if even < GRID_DRAWS:
            wrong.append(f"{rule}: {GRID_DRAWS - even} of {GRID_DRAWS} samples are outside the published margins")
        grid_rows.append(
            {
                "rules": rule,
                "draws": GRID_DRAWS,
                "stated": f"{chances.min():.4f} to {chances.max():.4f}",
                "cases beyond 3 standard errors": f"{beyond} of {len(grid):,}",
                "by chance": f"{expected:.0f}",
                "largest difference by race, gender or age, points": f"{100 * max(by_level):.3f}",
                "samples with margins and cells as published": f"{even} of {GRID_DRAWS}",
            }
        )
    wanted_levels = ", ".join(f"{name} {low}–{high}" for name, (low, high) in ALLOWED.items())
    lines += ["", f"500 cases of the published grid ({wanted_levels}):", "", *table(grid_rows)]
    claim = (
        "Stated inclusion probabilities are the observed shares of draws, in complete and incomplete frames, and "
        "samples of the published grid have even margins and cells."
    )
    return Validation(claim, lines, SEED, {"draws of each small frame": draws, "draws of the grid": GRID_DRAWS}, wrong)

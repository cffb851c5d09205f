"""What the intervals of `evenedit compare` cover: the difference of two editors' gaps.

`python -m validation compare`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from evenedit.stats.engine.bootstrap import Bootstrap
from scipy.stats import norm

from evenedit.protocol.factors import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats.disparity.paired_editors import gap_differences
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from validation.coverage import RACES, holds, shares
from validation.page import Validation, size, table

SEED = size("SEED", 41)
DRAWS = 300
LEAST = 0.93
FACES, PROMPTS = 0.5, 0.3
"""Spread of what faces and prompts add to an edit's hidden number, whose own noise is 1."""


@dataclass(frozen=True)
class Both:
    """Two editors on the same portraits and prompts; in each, the first race lies apart."""

    name: str
    apart: tuple[float, float]
    shared: float = 0.5
    """Share of what faces and prompts do that is the same for both editors."""
    groups: tuple[int, ...] = (12,) * 7
    prompts: int = 20
    cut: float = 1.1
    higher: int = 1
    """How many races lie apart."""

    def truth(self) -> float:
        """The second editor's true gap minus the first's."""
        spread = np.sqrt(1 + FACES**2 + PROMPTS**2)
        first, second = (norm.sf((self.cut - a) / spread) - norm.sf(self.cut / spread) for a in self.apart)
        return float(second - first)

    def drawn(self, rng: np.random.Generator) -> Panel:
        """One study of both."""
        race = np.repeat(np.arange(len(self.groups)), self.groups)
        face, prompt = np.divmod(np.arange(len(race) * self.prompts), self.prompts)
        keep, own = np.sqrt(self.shared), np.sqrt(1 - self.shared)
        common = rng.normal(0, FACES, len(race)), rng.normal(0, PROMPTS, self.prompts)
        edits = pd.DataFrame({"source_id": [f"f{i:04}" for i in face], "prompt_id": [f"p{j:02}" for j in prompt]})
        edits = edits.assign(race=np.array(RACES)[race[face]], gender="", age="")
        met = []
        for apart in self.apart:
            faces = keep * common[0] + own * rng.normal(0, FACES, len(race)) + apart * (race < self.higher)
            prompts = keep * common[1] + own * rng.normal(0, PROMPTS, self.prompts)
            met.append(faces[face] + prompts[prompt] + rng.normal(size=len(face)) > self.cut)
        both = pd.concat([edits.assign(editor=str(at)) for at in (0, 1)], ignore_index=True)
        ones = np.ones(len(both), dtype=np.int64)
        columns = {"n": ones, "met": np.concatenate(met).astype(np.int64)}
        measures = [RatioMeasure(Measure.rate("r"), "met", "n", "n")]
        return build_panel(
            both, by_face(both, FACTORS), columns, measures, experiment="diagnosis", condition="baseline"
        )


WORLDS = (
    Both("both even", (0.0, 0.0)),
    Both("both even, nearly the same editor", (0.0, 0.0), shared=0.9),
    Both("first alone has a gap", (0.8, 0.0)),
    Both("second alone has a large gap", (0.0, 1.2)),
    Both("both have the same gap", (0.8, 0.8)),
    Both("both have the same large gap, 10 prompts", (1.5, 1.5), shared=0.9, prompts=10),
    Both("first has a small gap", (0.4, 0.0)),
    Both("groups of 40, 20, 12, 10, 8, 6 and 4 faces", (0.6, 0.0), groups=(40, 20, 12, 10, 8, 6, 4)),
    Both("two groups", (0.6, 0.2), groups=(42, 42)),
    Both("rare events", (0.4, 0.0), cut=2.2),
    Both("4 prompts", (0.8, 0.0), prompts=4),
    Both("three races apart", (1.0, 0.3), higher=3),
)


def one_study(world: Both, rng: np.random.Generator, seed: int) -> dict[str, float]:
    """Whether the interval holds the true difference, and whether it excludes 0."""
    rules = replace(AnalysisRules.default(), draws=DRAWS, seed=seed)
    bootstrap = Bootstrap(world.drawn(rng), DRAWS, seed)
    (d,) = [d for d, _ in gap_differences(bootstrap, rules) if "race" in d.group]
    return {"covered": holds(d.low, d.high, world.truth()), "excludes 0": not holds(d.low, d.high, 0.0)}


def run(_folder: Path) -> Validation:
    """Coverage in every world."""
    studies = size("STUDIES", 200)
    rows, wrong = [], []
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([SEED, number])
        found = shares([one_study(world, rng, seed) for seed in range(studies)])
        row = {"world": world.name, "true difference": f"{world.truth():+.3f}"}
        rows.append(row | {k: f"{v:.3f}" for k, v in found.items()})
        if found["covered"] < LEAST - 2 * np.sqrt(LEAST * (1 - LEAST) / studies):
            wrong.append(f"{world.name}: {found['covered']:.3f}")
    lines = [
        f"Share of {studies} studies whose 95 % interval of the second editor's gap minus the first's holds the truth, "
        "and whose interval excludes 0; 84 faces of seven races and 20 prompts unless said.",
        "",
        *table(rows),
        "",
        "Near a gap of 0 the intervals of gaps cover more than they promise, and so does their difference: no interval "
        "of a largest minus a smallest rate is exact there.",
    ]
    return Validation(
        "The interval of the difference between two editors' gaps holds the true difference in at least 93 % of "
        "studies, but for chance, whichever editor has a gap.",
        lines,
        SEED,
        {"studies per world": studies},
        wrong,
    )

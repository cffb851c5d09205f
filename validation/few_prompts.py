"""What intervals over everybody cover with few prompts, by how far rates differ in what prompts do to them.

`python -m validation few_prompts`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.draws import Draws
from scipy.stats import norm

from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.estimates import headline
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face
from validation.page import Validation, size, table

SEED = size("SEED", 5)
LEAST = 0.90
"""A world whose rates are covered in a smaller share of studies, taken together, refutes the claim."""
FACES = pd.DataFrame(cells()).assign(source_id=[f"f{i:02}" for i in range(84)])
EDITORS = 4
RATES = (0.2, 0.1, 0.3, 0.2, 0.15, 0.25)
HIGHER = 0.8
"""How much higher one race's tendency is, in units of an edit's own noise."""
WORLDS = (
    (4, (0.0,) * 6),
    (4, (0.5,) * 6),
    (4, (0.0,) * 5 + (1.0,)),
    (4, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    (10, (0.5,) * 6),
    (10, (0.0,) * 5 + (1.0,)),
)
"""Prompts, and of each rate the standard deviation of what prompts do to it."""


class SinglePrompts(Bootstrap):
    """Intervals as if every rate had to tell alone how prompts differ, and labels were drawn with the faces."""

    def _of_everybody(self, drawn: Draws) -> Draws:
        return drawn


def study(rng: np.random.Generator, prompts: int, spreads: tuple[float, ...]) -> tuple[Panel, list[float]]:
    """A panel of four editors and six rates, and the true rate of each over faces and prompts like these."""
    blocks = [FACES.assign(prompt_id=f"p{p}", editor=f"e{e}") for e in range(EDITORS) for p in range(prompts)]
    edits = pd.concat(blocks, ignore_index=True)
    face = np.tile(np.arange(84), prompts * EDITORS)
    prompt = np.tile(np.repeat(np.arange(prompts), 84), EDITORS)
    editor = np.repeat(np.arange(EDITORS), 84 * prompts)
    higher = HIGHER * (edits["race"] == "Black").to_numpy()
    ones = np.ones(len(edits), dtype=np.int64)
    columns, measures, truth = {"n": ones, "asked": ones}, [], []
    for at, (rate, spread) in enumerate(zip(RATES, spreads, strict=True)):
        of_face, of_prompt = rng.normal(0, 0.5, (EDITORS, 84)), rng.normal(0, spread, (EDITORS, prompts))
        tendency = norm.ppf(rate) + higher + of_face[editor, face] + of_prompt[editor, prompt]
        columns[f"met.{at}"] = (tendency + rng.normal(size=len(edits)) > 0).astype(np.int64)
        measures.append(RatioMeasure(Measure.rate(f"r{at}"), f"met.{at}", "n", "asked"))
        scale = np.sqrt(1 + 0.25 + spread**2)
        truth.append(float(6 * norm.cdf(norm.ppf(rate) / scale) + norm.cdf((norm.ppf(rate) + HIGHER) / scale)) / 7)
    panel = build_panel(edits, by_face(edits, FACTORS), columns, measures, experiment="diagnosis", condition="baseline")
    return panel, truth


def covered(bootstrap: Bootstrap, truth: list[float]) -> tuple[list[float], list[float]]:
    """Of each rate, the share of editors whose interval holds the truth, and the mean width."""
    panel, everybody = bootstrap.panel, bootstrap.panel.axes.mask({})
    draws, pull = bootstrap.group(everybody), bootstrap.design_effects.of({}, 0.95)
    shares, widths = [], []
    for at, true in enumerate(truth):
        ends = []
        for row in range(EDITORS):
            total, count = (panel.column_sum(c, [row], everybody) for c in (f"met.{at}", "n"))
            interval, _ = headline(bootstrap, draws, pull, row, at, total, count, 0.95)
            ends.append(interval if interval is not None else (0.0, 1.0))
        shares.append(float(np.mean([low <= true <= high for low, high in ends])))
        widths.append(float(np.mean([high - low for low, high in ends])))
    return shares, widths


def run(
    _folder: Path, studies: int | None = None, worlds: tuple[tuple[int, tuple[float, ...]], ...] = WORLDS
) -> Validation:
    """Simulate, count, and say what contradicts the claim."""
    studies = studies or size("STUDIES", 200)
    rows, wrong = [], []
    for number, (prompts, spreads) in enumerate(worlds):
        found: dict[str, list[tuple[list[float], list[float]]]] = {"together": [], "each alone": []}
        for at in range(studies):
            panel, truth = study(np.random.default_rng([SEED, number, at]), prompts, spreads)
            found["together"].append(covered(Bootstrap(panel, 300, 1), truth))
            found["each alone"].append(covered(SinglePrompts(panel, 300, 1), truth))
        for how, several in found.items():
            shares = np.mean([share for share, _ in several], axis=0)
            widths = np.mean([width for _, width in several], axis=0)
            rows.append(
                {
                    "prompts": prompts,
                    "sds of prompts, rate by rate": ", ".join(f"{s:g}" for s in spreads),
                    "prompts' variance": how,
                    "covered": ", ".join(f"{s:.3f}" for s in shares),
                    "all rates": f"{shares.mean():.3f}",
                    "width": f"{widths.mean():.3f}",
                }
            )
            if how == "together" and shares.mean() < LEAST:
                wrong.append(f"{prompts} prompts, sds {spreads}: {shares.mean():.3f} of the intervals hold the truth")
    claim = (
        "Intervals of rates over everybody, with the variance over prompts learnt from all rates together, hold the "
        "truth in at least 90 % of studies over the rates of each world where 95 % are promised, and are narrower."
    )
    lines = [
        "84 faces, four editors, six rates, one race higher. An edit's own noise has a standard deviation of 1, faces "
        "of 0.5. Where prompts differ much more in one rate than in the others, that rate is covered more rarely.",
        "",
        *table(rows),
    ]
    return Validation(claim, lines, SEED, {"studies of each world": studies}, wrong)

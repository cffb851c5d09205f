"""What `plan --power` predicts beside what the analysis finds in studies simulated row by row.

`python -m validation power`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd

from evenedit.protocol.factors import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import compute_shift_tests
from evenedit.stats.power.equivalence import equivalence_margin
from evenedit.stats.power.gaps import Design, power
from evenedit.stats.power.shifts import shift_power
from validation.coverage import RACES
from validation.page import Validation, size, table

SEED = 909
DESIGNS = (
    Design((12,) * 7, 20),
    Design((6,) * 3, 10, face_sd=0.8),
    Design((20, 10, 10, 6), 8, rate=0.1, prompt_sd=0.3),
)
GAP, SHIFT = 0.2, 0.15
CLOSE = 0.12
"""How far a prediction may be from what is found, beyond the chance of so few studies."""


def panel_of(design: Design, gap: float, shift: float, rng: np.random.Generator) -> Panel:
    """One study, row by row: the first group apart by the gap, or everybody moved by the shift."""
    faces, prompts = sum(design.faces), design.prompts
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    whole = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    normal = NormalDist()
    cut = -normal.inv_cdf(design.rate) * whole
    grid = np.linspace(0, 3, 3001)
    moved = [normal.cdf(m - cut / whole) - normal.cdf(-m - cut / whole) for m in grid]
    mean = whole * float(np.interp(shift, moved, grid))
    hidden = mean + rng.normal(0, design.face_sd, (faces, 1)) + rng.normal(0, design.prompt_sd, prompts)
    hidden = hidden + rng.normal(0, noise, (faces, prompts))
    hidden[: design.faces[0]] += (normal.inv_cdf(design.rate + gap) - normal.inv_cdf(design.rate)) * whole
    above, below = (hidden > cut).ravel().astype(np.int64), (hidden < -cut).ravel().astype(np.int64)
    race = np.repeat(np.array(RACES)[: len(design.faces)], design.faces)
    face, prompt = np.divmod(np.arange(above.size), prompts)
    edits = pd.DataFrame(
        {"editor": "e", "source_id": [f"f{i:03}" for i in face], "prompt_id": [f"p{j:02}" for j in prompt]}
    ).assign(race=race[face], gender="", age="")
    columns = {"n": np.ones_like(above), "met": above, "moved": above - below}
    columns |= {"above.skin_tone": above, "below.skin_tone": below}
    measures = [
        RatioMeasure(Measure.rate("r"), "met", "n", "n"),
        RatioMeasure(Measure.shift("skin_tone"), "moved", "n", "n"),
    ]
    return build_panel(edits, by_face(edits, FACTORS), columns, measures, experiment="diagnosis", condition="baseline")


def found_in_studies(design: Design, margins: tuple[float, float], studies: int, seed: int) -> dict[str, float]:
    """Shares of studies in which the analysis finds a gap, a shift, and that there is neither beyond the margins."""
    rules = replace(AnalysisRules.default(), draws=200, permutations=399)
    rng = np.random.default_rng(seed)
    seen = np.zeros(4)
    for _ in range(studies):
        test = next(t for e, t in gaps(CrossedPanel(panel_of(design, GAP, 0.0, rng)), rules) if e.editor)
        (moved,) = compute_shift_tests(CrossedPanel(panel_of(design, 0.0, SHIFT, rng)), rules)
        even = CrossedPanel(panel_of(design, 0.0, 0.0, rng))
        gap = next(g for g, _ in gaps(even, rules) if g.editor)
        (still,) = compute_shift_tests(even, rules)
        ends = [abs(x) for x in (still.low, still.high) if x is not None]
        seen += [
            test.p is not None and test.p < 0.05,
            moved.p is not None and moved.p < 0.05 and moved.value > 0,
            gap.high is not None and gap.high <= margins[0],
            len(ends) == 2 and max(ends) <= margins[1],
        ]
    return dict(zip(("gap", "shift", "even groups", "no shift"), seen / studies, strict=True))


def predicted(design: Design) -> tuple[dict[str, float], tuple[float, float]]:
    """What the plan says of the same, each as if it were the only one tested; and the margins it states."""
    gap, shift, even = power(design), shift_power(design), equivalence_margin(design)
    margins = (1.0 if even is None else even, shift.equivalence_margin)
    return {
        "gap": gap.power_alone[gap.gaps.index(GAP)],
        "shift": shift.power_alone[shift.shifts.index(SHIFT)],
        "even groups": 0.8,
        "no shift": 0.8,
    }, margins


def run(_folder: Path) -> Validation:
    """Predictions beside what is found, design by design."""
    studies = size("STUDIES", 100)
    rows, wrong = [], []
    for number, design in enumerate(DESIGNS):
        said, margins = predicted(design)
        found = found_in_studies(design, margins, studies, SEED + number)
        what = f"{'+'.join(map(str, design.faces))} faces × {design.prompts} prompts, rate {design.rate:.0%}"
        effects = (f"{GAP:.0%}", f"{SHIFT:.0%}", f"±{margins[0]:.0%}", f"±{margins[1]:.0%}")
        for (name, share), effect in zip(found.items(), effects, strict=True):
            row = {"design": what, "question": name, "size or margin": effect}
            rows.append(row | {"predicted": f"{said[name]:.2f}", "found": f"{share:.2f}"})
            if abs(share - said[name]) > CLOSE + 2 * np.sqrt(said[name] * (1 - said[name]) / studies):
                wrong.append(f"{what}, {name}: {said[name]:.2f} predicted, {share:.2f} found")
    lines = [
        f"Shares of {studies} simulated studies in which the analysis finds what is there (p < 0.05, as if it were the "
        "only test), or shows that nothing is there beyond the margin (the whole 95 % interval within it).",
        "",
        *table(rows),
    ]
    return Validation(
        f"What `plan --power` predicts is what the analysis finds, within {CLOSE} and chance.",
        lines,
        SEED,
        {"studies per design": studies},
        wrong,
    )

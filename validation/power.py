"""What `plan --power` predicts beside what the analysis finds in studies simulated row by row.

`python -m validation power`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import numpy as np

from evenedit.protocol.factors import FACTORS
from evenedit.stats.engine.anom import GroupTests, group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import Uncertainty, Values
from evenedit.stats.power.equivalence import equivalence_margin
from evenedit.stats.power.gaps import Design, power
from evenedit.stats.power.shifts import shift_power
from validation.page import Validation, size, table
from validation.worlds import RACES, RATE, crossed
from validation.worlds import SHIFT as MOVED

SEED = 909
DESIGNS = (
    Design((12,) * 7, 20),
    Design((6,) * 3, 10, face_sd=0.8),
    Design((20, 10, 10, 6), 8, rate=0.1, prompt_sd=0.3),
)
GAP, SHIFT = 0.2, 0.15
CLOSE = 0.12
"""How far a prediction may be from what is found, beyond the chance of so few studies."""


def drawn(
    design: Design, gap: float, shift: float, rng: np.random.Generator, studies: int
) -> tuple[CrossedPanel, CrossedPanel]:
    """Rates and shifts of studies: the first group apart by the gap, or everybody moved by the shift."""
    faces = sum(design.faces)
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    whole = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    normal = NormalDist()
    cut = -normal.inv_cdf(design.rate) * whole
    grid = np.linspace(0, 3, 3001)
    moved = [normal.cdf(m - cut / whole) - normal.cdf(-m - cut / whole) for m in grid]
    mean = whole * float(np.interp(shift, moved, grid))
    hidden = (
        mean
        + rng.normal(0, design.face_sd, (faces, 1, studies))
        + rng.normal(0, design.prompt_sd, (1, design.prompts, studies))
        + rng.normal(0, noise, (faces, design.prompts, studies))
    )
    hidden[: design.faces[0]] += (normal.inv_cdf(design.rate + gap) - normal.inv_cdf(design.rate)) * whole
    labels = {f.name: np.full(faces, "") for f in FACTORS}
    labels["race"] = np.repeat(np.array(RACES)[: len(design.faces)], design.faces)
    above, below = (hidden > cut).astype(np.float64), (hidden < -cut).astype(np.float64)
    count = np.ones(hidden.shape)
    return crossed(labels, {RATE: (above, 1)}, count), crossed(labels, {MOVED: (above - below, 1)}, count)


def found_in_studies(design: Design, margins: tuple[float, float], studies: int, seed: int) -> dict[str, float]:
    """Shares of studies in which the analysis finds a gap, a shift, and that there is neither beyond the margins."""
    rng = np.random.default_rng(seed)
    level = AnalysisRules.default().confidence

    def tests(rates: CrossedPanel) -> list[GroupTests]:
        found = group_tests(rates, "race", level)
        return [found[row, 0] for row in range(studies)]

    def shifts(moved: CrossedPanel) -> tuple[Values, Uncertainty]:
        return moved.all_faces.value[:-1, 0], moved.uncertainty([moved.all_faces], [1.0])

    gaps = [t.smallest_p for t in tests(drawn(design, GAP, 0.0, rng, studies)[0])]
    value, sure = shifts(drawn(design, 0.0, SHIFT, rng, studies)[1])
    rates, still = drawn(design, 0.0, 0.0, rng, studies)
    even = [t.range_interval for t in tests(rates)]
    near, known = shifts(still)
    return {
        "gap": float(np.mean([p is not None and p < 0.05 for p in gaps])),
        "shift": float(np.mean((value > 0) & (value > sure.half_width(level)[:-1, 0]))),
        "even groups": float(np.mean([ends is not None and ends[1] <= margins[0] for ends in even])),
        "no shift": float(np.mean(np.abs(near) + known.half_width(level)[:-1, 0] <= margins[1])),
    }


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
    studies = size("STUDIES", 400)
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

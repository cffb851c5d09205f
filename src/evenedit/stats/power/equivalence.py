"""Before a study: within which margin it can show that groups are even, by the interval that a report gives a gap."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd
from scipy.special import ndtr

from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.anom import group_tests
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import RatioMeasure, build_panel, by_face
from evenedit.stats.power.gaps import Design

MEASURE = RatioMeasure(Measure.rate("met"), "met", "n", "n")


def equivalence_margin(design: Design, *, studies: int = 60, target: float = 0.8, seed: int = 4) -> float | None:
    """Return the margin that contains the gap's interval in 80 of 100 studies without a gap; None without one."""
    rng = np.random.default_rng(seed)
    prompts, faces = design.prompts, sum(design.faces)
    if min(design.faces) < 2:
        return None
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    total_sd = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    cut = -NormalDist().inv_cdf(design.rate) * total_sd
    codes = tuple(f"group {at}" for at in range(len(design.faces)))
    factor = Factor.of("group", codes)
    rows = pd.DataFrame(
        {
            "source_id": np.repeat([f"{at:05}" for at in range(faces)], prompts),
            "prompt_id": np.tile([f"{at:05}" for at in range(prompts)], faces),
            "group": np.repeat(np.repeat(codes, design.faces), prompts),
        }
    )
    # studies stand in the place of editors, so that one panel holds them all
    hidden = rng.normal(0, design.face_sd, (studies, faces, 1)) + rng.normal(0, design.prompt_sd, (studies, 1, prompts))
    met = rng.binomial(design.seeds, 1 - ndtr((cut - hidden) / noise))
    edits = pd.concat([rows.assign(editor=f"{at:05}") for at in range(studies)], ignore_index=True)
    columns = {"met": met.reshape(-1), "n": np.full(met.size, design.seeds)}
    panel = build_panel(edits, by_face(edits, [factor]), columns, [MEASURE], experiment="", condition="")
    tests = group_tests(CrossedPanel(panel), factor.name, 0.95)
    ends = [tests[row, 0].range_interval for row in range(studies)]
    margin = float(np.quantile([1.0 if pair is None else min(1.0, pair[1]) for pair in ends], target))
    return margin if margin < 1 else None

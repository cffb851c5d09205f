"""Panels of faces and prompts."""

import numpy as np
import pandas as pd

from evenedit.protocol import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face

RATE = RatioMeasure(Measure("rate.x"), "met", "n", "asked")


def panel_of(met: np.ndarray, groups: int = 1, seeds: int = 1) -> Panel:
    """A panel of one editor from [face, prompt] whole numbers out of `seeds`; faces dealt to `groups` in blocks."""
    faces, prompts = met.shape
    races = ["White", "Black", "EastAsian", "SoutheastAsian", "Indian", "MiddleEastern", "Latino"]
    edits = pd.DataFrame(
        {
            "editor": "e",
            "source_id": np.repeat([f"f{i:04}" for i in range(faces)], prompts),
            "prompt_id": [f"p{j:03}" for j in range(prompts)] * faces,
            "race": np.repeat([races[i * groups // faces] for i in range(faces)], prompts),
            "gender": "Male",
            "age": "20s",
        }
    )
    ones = np.full(met.size, seeds, dtype=np.int64)
    columns = {"met": met.ravel().astype(np.int64), "n": ones, "asked": ones}
    return build_panel(edits, by_face(edits, FACTORS), columns, [RATE], experiment="diagnosis", condition="baseline")

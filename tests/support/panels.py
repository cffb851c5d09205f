"""Panels of faces and prompts."""

import numpy as np
import pandas as pd

from evenedit.protocol import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face

RATE = RatioMeasure(Measure("rate.x"), "met", "n", "asked")
RACES = ("White", "Black", "EastAsian", "SoutheastAsian", "Indian", "MiddleEastern", "Latino")


def frame_of(shape: tuple[int, ...], races: list[str]) -> pd.DataFrame:
    """The rows of [face, prompt, editor] with the race of each face."""
    face, prompt, editor = (at.ravel() for at in np.indices(shape))
    return pd.DataFrame(
        {
            "editor": [f"e{k}" for k in editor],
            "source_id": [f"f{i:04}" for i in face],
            "prompt_id": [f"p{j:03}" for j in prompt],
            "race": np.array(races)[face],
            "gender": "Male",
            "age": "20s",
        }
    )


def blocks(faces: int, groups: int) -> list[str]:
    """Races of faces that are dealt to groups in blocks."""
    return [RACES[i * groups // faces] for i in range(faces)]


def panel_of(
    met: np.ndarray,
    groups: int = 1,
    seeds: int = 1,
    *,
    count: np.ndarray | None = None,
    races: list[str] | None = None,
    measure: RatioMeasure = RATE,
    order: np.ndarray | None = None,
    drawn_with: list[str] | None = None,
) -> Panel:
    """A panel from [face, prompt] or [face, prompt, editor] whole numbers out of `seeds`, or of `count`.

    `drawn_with` names the person or base portrait of each face.
    """
    cube = met.reshape(*met.shape[:2], -1)
    edits = frame_of(cube.shape, races or blocks(len(met), groups))
    if drawn_with is not None:
        edits["block"] = np.array(drawn_with)[np.indices(cube.shape)[0].ravel()]
    asked = np.full(cube.size, seeds, dtype=np.int64)
    valid = asked if count is None else count.ravel().astype(np.int64)
    columns = {"met": cube.ravel().astype(np.int64), "n": valid, "asked": asked}
    if order is not None:
        edits, columns = edits.iloc[order], {name: column[order] for name, column in columns.items()}
    axes = by_face(edits, FACTORS)
    return build_panel(edits, axes, columns, [measure], experiment="diagnosis", condition="baseline")

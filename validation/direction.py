"""How often a direction of change is found where there is none, and where there is one: `python -m validation direction`.

STUDIES in the environment sets another number of studies of each world, SEED draws studies that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.protocol.factors import FACTORS, cells
from evenedit.results.directions import Direction
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, Finding
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.direction import SeenReadings, direction_results
from evenedit.stats.findings.direction import DirectionFindings
from evenedit.stats.findings.levels import adjust
from validation.engine import NO_LIMIT, Limit, Tally
from validation.page import Validation, size, table

SEED = size("SEED", 28_201)
RACE = FACTORS[0]
LABEL = np.array([RACE.codes.index(row["race"]) + 1 for row in cells()])
"""By face, the position of the label."""
WHITE, INDIAN = (RACE.codes.index(code) + 1 for code in ("White", "Indian"))
RULES = AnalysisRules.default()
Readings = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """An editor and judges: some faces are ambiguous, and are read as White in some of the pictures."""

    name: str
    prompts: int = 20
    judges: str = "one"
    """one; alike: two that see the same in an ambiguous picture; apart: two that read each picture on their own."""
    ambiguous: float = 0.25
    """The share of ambiguous faces among those that are not labelled White."""
    white: tuple[float, float] = (0.2, 0.5)
    """How often an ambiguous face is read as White; of each face a number in between."""
    error: float = 0.0
    """How often a judge names any level by mistake."""
    turned: float = 0.0
    """The share of edits of portraits labelled Indian that are turned White."""
    exchanged: float = 0.0
    """The share of edits that are turned into any race: change without a direction."""
    silent: float = 0.0
    """How often a judge names no level."""
    limits: dict[str, Limit] = field(default_factory=dict, hash=False)

    def study(self, rng: np.random.Generator) -> tuple[pd.DataFrame, SeenReadings]:
        """Return the edits and readings of one study."""
        faces = len(LABEL)
        white = np.where(rng.random(faces) < self.ambiguous, rng.uniform(*self.white, faces), 0.0)[:, None]
        white[LABEL == WHITE] = 0.0
        label = LABEL[:, None]
        turned = (rng.random((faces, self.prompts)) < self.turned) & (label == INDIAN)
        exchanged = rng.random((faces, self.prompts)) < self.exchanged
        other = rng.integers(1, len(RACE.codes) + 1, (faces, self.prompts))
        after = np.where(turned, WHITE, np.where(exchanged, other, label))
        pictures = [label, label, after]
        read = [[np.where(rng.random(p.shape) < white * (p == label), WHITE, p) for p in pictures]]
        if self.judges == "alike":
            read *= 2
        if self.judges == "apart":
            read += [[np.where(rng.random(p.shape) < white * (p == label), WHITE, p) for p in pictures]]
        read = [[self._judged(picture, rng) for picture in judge] for judge in read]
        first, second = read[0], read[-1]
        both = [np.where(a == b, a, 0) for a, b in zip(first, second, strict=True)]
        before, again, after = (np.broadcast_to(x, (faces, self.prompts)).ravel() for x in both)
        per_judge = {f"judge-{at}": judge[2].ravel() for at, judge in enumerate(read)}
        edits = frame(self.prompts)
        return edits, SeenReadings(RACE, before, after, again, np.ones(len(edits), dtype=np.bool_), per_judge)

    def _judged(self, seen: Readings, rng: np.random.Generator) -> Readings:
        wrong = rng.random(seen.shape) < self.error
        named = np.where(wrong, rng.integers(1, len(RACE.codes) + 1, seen.shape), seen)
        return np.where(rng.random(seen.shape) < self.silent, 0, named)


def frame(prompts: int) -> pd.DataFrame:
    """Return the edits of one editor: every face with every prompt."""
    labels = pd.DataFrame(cells()).assign(source_id=[f"f{at:02}" for at in range(len(LABEL))])
    rows = labels.loc[labels.index.repeat(prompts)].reset_index(drop=True)
    rows = rows.assign(prompt_id=[f"p{at:02}" for at in range(prompts)] * len(LABEL))
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "outcome": "edited"}
    return rows.assign(request_id=[f"r{at:05}" for at in range(len(rows))], **place)


def analysed(edits: pd.DataFrame, readings: Sequence[SeenReadings]) -> tuple[list[Direction], list[Finding]]:
    """Return the directions and the findings of a study; its tests of direction are the whole family."""
    made = DirectionFindings(edits, readings, direction_results(edits, readings, FACTORS, RULES), RULES)
    adjusted = adjust(made.tests)
    return made.graded(adjusted), list(made.findings(adjusted))

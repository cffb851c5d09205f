"""How often a direction of change is found, without one and with one: `python -m validation direction`.

STUDIES in the environment sets another number of studies of each world, SEED draws studies that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


NULL = (
    World("one judge, a quarter of the faces ambiguous"),
    World("two judges, alike", judges="alike", error=0.03),
    World("two judges, apart", judges="apart", error=0.03),
    World("one judge, 6 prompts", prompts=6),
    World("one judge, read as White in 20 to 80 %", white=(0.2, 0.8)),
    World("two judges, alike, 5 % ambiguous, 6 prompts", prompts=6, judges="alike", ambiguous=0.05, error=0.03),
    World("one judge, 40 % ambiguous", ambiguous=0.4),
    World(
        "20 % of edits turned into any race, none ambiguous", judges="alike", ambiguous=0.0, error=0.03, exchanged=0.2
    ),
    World("one judge at random", error=1.0),
    World("two judges at random", judges="alike", error=1.0),
    World("two judges, 15 % without a level", judges="alike", error=0.03, silent=0.15),
)
PLANTED = (
    World("50 %, two judges, alike, 5 % ambiguous, 6 prompts", 6, "alike", 0.05, error=0.03, turned=0.5),
    World("50 %, two judges, alike", judges="alike", error=0.03, turned=0.5),
    World("50 %, two judges, apart", judges="apart", error=0.03, turned=0.5),
    World("50 %, one judge", turned=0.5),
    World("30 %, two judges, alike", judges="alike", error=0.03, turned=0.3),
    World("15 %, two judges, alike", judges="alike", error=0.03, turned=0.15),
)
FLOW, TOWARD = "flow.race_seen[White>Indian]", "toward.race_seen[White]"


def run(_folder: Path) -> Validation:
    """Both tables, with limits."""
    studies = size("STUDIES", 400)
    tally = Tally()
    rows: dict[bool, list[dict[str, str]]] = {False: [], True: []}
    for at, world in enumerate((*NULL, *PLANTED)):
        drawn = [world.study(np.random.default_rng([SEED, at, number])) for number in range(studies)]
        results = [analysed(edits, [readings]) for edits, readings in drawn]
        findings = [found for _, found in results]
        named = [{d.measure: d for d in directions} for directions, _ in results]
        clear = np.array([any(f.level in CLEAR for f in found) for found in findings])
        shown = np.array([any(f.level in EFFECT_LEVELS for f in found) for found in findings])
        toward = np.array([by[TOWARD].value for by in named])
        row = {"world": world.name}
        if world in NULL:
            row["any clear"] = tally.cell(f"{world.name}, any clear", clear, Limit(0.0, 0.05))
            row["any suggestive or above"] = tally.cell(f"{world.name}, any suggestive", shown, Limit(0.0, 0.07))
            tests = np.array([d.p < 0.05 for by in named for d in by.values() if d.p is not None])
            row["tests with p < 0.05"] = tally.cell("", tests)
            row["intervals of toward without 0"] = tally.cell(
                "", np.array([d.low is not None and d.high is not None and (d.low > 0 or d.high < 0)
                              for by in named for m, d in by.items() if m.startswith("toward.")])
            )  # fmt: skip
        else:
            least = Limit(0.95) if world.turned == 0.5 and world.ambiguous == 0.05 else NO_LIMIT
            row["any clear"] = tally.cell(f"{world.name}, any clear", clear, least)
            for name, measure in (("Indian to White", FLOW), ("toward White", TOWARD)):
                hits = [(d := by.get(measure)) is not None and (d.p_adjusted or 1.0) < 0.05 for by in named]
                row[f"{name}, Holm p < 0.05"] = tally.cell("", np.array(hits))
        row["toward White, mean points"] = f"{100 * toward.mean():.2f}"
        rows[world in PLANTED].append(row)
    lines = [
        f"84 faces, one editor, 20 prompts where nothing else is said, {studies} studies of each world. An ambiguous "
        "face is read as White in 20 to 50 % of the pictures of it. Two judges are combined where they agree; alike: "
        "they see the same in an ambiguous picture, and each names any level by mistake in 3 %; apart: each reads each "
        "picture on its own. The tests of direction are the whole family, which makes clear findings more frequent "
        "than in a report.",
        "",
        "## An editor that moves nobody in one direction",
        "",
        "Asked: any clear finding ≤ 0.05, any suggestive one ≤ 0.07.",
        "",
        *table(rows[False]),
        "",
        "## Edits of portraits labelled Indian turned White",
        "",
        "Asked: 0.95 of the studies of the first world have a clear finding.",
        "",
        *table(rows[True]),
    ]
    claim = (
        "A direction of change is seldom shown clearly where reading noise alone moves the readings, and shown where "
        "edits are moved."
    )
    return Validation(claim, lines, SEED, {"studies of each world": studies}, tally.wrong)

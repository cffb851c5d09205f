"""Small tables of ratings, written by hand or drawn."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from evenedit.core.records import Kind, Status
from evenedit.protocol import FACTORS
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, edit_columns
from evenedit.stats import AnalysisRules

RACES = ("White", "Black", "Indian")
FEW_DRAWS = replace(AnalysisRules.default(), draws=60, permutations=99)
"""Rules of an analysis that is done soon."""
AXES = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")


def face(race: str, gender: str = "Male", age: str = "20s", copy: int = 1) -> tuple[str, str, str, str]:
    return f"{race}_{gender}_{age}_{copy}", race, gender, age


def edit(source: tuple[str, str, str, str], prompt: str = "O-01", **changes: object) -> dict[str, object]:
    row = dict(zip(("source_id", "race", "gender", "age"), source, strict=True))
    return {
        "experiment": "diagnosis", "condition": "baseline", "editor": "e", "prompt_id": prompt, "seed": 1,
        "outcome": "edited",
    } | row | changes  # fmt: skip


def table_of(rows: list[dict[str, object]], answers: dict[str, list[dict[str, int] | None]], kinds=None) -> RatingTable:
    """answers[rater][edit] = {question: value}, or None where the rater was not asked."""
    edits = pd.DataFrame([{"request_id": str(i)} | row for i, row in enumerate(rows)])[list(edit_columns(FACTORS))]
    values = np.zeros((len(answers), len(rows), len(QUESTION_IDS)), dtype=np.int8)
    status = np.full(values.shape[:2], NOT_ASKED, dtype=np.int8)
    for r, given in enumerate(answers.values()):
        for e, row in enumerate(given):
            if row is not None:
                status[r, e] = STATUSES.index(Status.SCORED if row else Status.REFUSED)
                for question, value in row.items():
                    values[r, e, QUESTION_IDS.index(question)] = value
    return RatingTable(edits, tuple(answers), tuple(kinds or [Kind.VLM] * len(answers)), values, status)


def scores(success: int = 5, skin: int = 3, race: int = 1, gender: int = 1, age: int = 3) -> dict[str, int]:
    return dict(zip(AXES, (success, skin, race, gender, age), strict=True))


FACES = [face(race, gender, "20s", k) for race, gender, k in product(("White", "Black"), ("Male", "Female"), (1, 2))]


def rated(seed: int = 1, *, people: int = 3, judges: int = 2, harsh: str = "", faces: int = 8) -> RatingTable:
    """Faces × two prompts × two editors, rated by judges and people who mostly agree; judges may be harsh to a race."""
    rng = np.random.default_rng(seed)
    sources = [
        face(race, gender, "20s", copy) for race, gender, copy in product(RACES, ("Male", "Female"), range(faces))
    ]
    rows = [edit(s, p, editor=e) for s, p, e in product(sources, ("O-01", "O-02"), ("e", "f"))]
    truth = rng.integers(1, 6, size=(len(rows), len(AXES)))

    def answers(noise: float, shift: np.ndarray) -> list[dict[str, int] | None]:
        moved = truth + (rng.random(truth.shape) < noise) * rng.choice([-1, 1], truth.shape) + shift[:, None]
        return [dict(zip(AXES, map(int, np.clip(row, 1, 5)), strict=True)) for row in moved]

    shift = np.array([int(row["race"] == harsh) for row in rows])
    given = {f"judge-{n}": answers(0.2, shift) for n in range(judges)}
    given |= {f"person-{n}": answers(0.4, 0 * shift) for n in range(people)}
    return table_of(rows, given, [Kind.VLM] * judges + [Kind.HUMAN] * people)

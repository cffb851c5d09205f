"""A study with questions of its own: an ordinal one, a choice, and a set, with known answers."""

from itertools import product

import numpy as np
import pandas as pd

from evenedit.core.records import Kind, Status
from evenedit.protocol import FACTORS, Rubric, default_rubric
from evenedit.protocol.questions import read_rows
from evenedit.ratings.table import STATUSES, RatingTable, edit_columns
from tests.support.tables import edit, face

DECLARED = [
    {
        "id": "hair_change", "kind": "ordinal", "title": "Hair change", "text": "How much did the hair change?",
        "levels": ["Same", "Slightly", "Clearly, same style", "Another style or texture"], "neutral": 1,
        "rates": {"hair_changed": {"at_least": 3, "title": "Hair changed", "phrase": "were rated as changed in hair"}},
    },
    {
        "id": "headscarf", "kind": "categorical", "title": "Headscarf", "text": "What became of the headscarf?",
        "options": [{"code": "kept", "label": "Kept"}, {"code": "changed"}, {"code": "removed", "label": "Removed"}],
        "cannot_tell": True,
        "rates": {"headscarf_removed": {"is": ["removed"], "title": "Headscarf removed",
                                        "phrase": "came back without the headscarf of the source"}},
    },
    {
        "id": "artefacts", "kind": "set", "title": "Artefacts", "text": "Which of these does the edit show?",
        "options": [{"code": "extra_fingers", "label": "Extra fingers"}, {"code": "text", "label": "Text"}],
        "rates": {"fingers": {"is": ["extra_fingers"], "title": "Extra fingers", "main": True,
                              "phrase": "came back with extra fingers"}},
    },
]  # fmt: skip


def declared_rubric() -> Rubric:
    rows, problems = read_rows(DECLARED, "questions")
    assert not problems
    return default_rubric().extended(rows)


def declared_answers(rubric: Rubric, races: list[str], seed: int = 1) -> np.ndarray:
    """[edit, question]: calm answers to the built-in questions, and planted ones to the declared.

    Hair changes for Black portraits; a third of headscarves is removed and a tenth cannot be told; fingers are
    added to 30% of all.
    """
    rng = np.random.default_rng(seed)
    values = np.zeros((len(races), len(rubric.columns)), dtype=np.int8)
    calm = {"edit_success": 5, "skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}
    for question, answer in calm.items():
        values[:, rubric.at(question)] = answer
    black = np.array(races) == "Black"
    values[:, rubric.at("hair_change")] = np.where(black & (rng.random(len(races)) < 0.8), 4, 1)
    values[:, rubric.at("headscarf")] = rng.choice([1, 3, 4], size=len(races), p=[0.57, 0.33, 0.1])
    values[:, rubric.at("artefacts.extra_fingers")] = np.where(rng.random(len(races)) < 0.3, 1, 2)
    values[:, rubric.at("artefacts.text")] = 2
    return values


def declared_table(judges: int = 2) -> RatingTable:
    """Three races, two genders, eight faces each, under two prompts by two editors."""
    sources = [
        face(race, gender, "20s", copy)
        for race, gender, copy in product(("White", "Black", "Indian"), ("Male", "Female"), range(8))
    ]
    rows = [edit(s, p, editor=e) for s, p, e in product(sources, ("O-01", "O-02"), ("e", "f"))]
    edits = pd.DataFrame([{"request_id": str(i)} | row for i, row in enumerate(rows)])[list(edit_columns(FACTORS))]
    rubric = declared_rubric()
    answers = declared_answers(rubric, list(edits["race"]))
    return RatingTable(
        edits,
        tuple(f"judge-{n}" for n in range(judges)),
        (Kind.VLM,) * judges,
        np.stack([answers] * judges),
        np.full((judges, len(edits)), STATUSES.index(Status.SCORED), dtype=np.int8),
        rubric=rubric,
    )

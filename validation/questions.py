"""Planted answers to declared questions and directions, found or not: `python -m validation questions`.

STUDIES in the environment sets another number of studies, SEED draws studies that nobody has seen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.config import templates
from evenedit.config.study_file import StudyFile
from evenedit.core.records import Kind, Status
from evenedit.protocol import Rubric
from evenedit.protocol.factors import FACTORS, cells
from evenedit.protocol.questions import read_rows
from evenedit.ratings.table import STATUSES, RatingTable, edit_columns
from evenedit.results.finding import CLEAR, Finding
from evenedit.simulation.editors import Even
from evenedit.stats import AnalysisRules, analyse
from validation.engine import Limit, Tally
from validation.page import Validation, size, table

SEED = size("SEED", 28_301)
ERROR = 0.02
"""How often a judge misses an answer by one step, or names any option."""
SHARPNESS = {
    "id": "face_blurred",
    "kind": "yes-no",
    "title": "Face blurred",
    "text": "Is the face less sharp than in the source?",
    "answered_by": ["instruments"],
    "rates": {"face_blurred": {"is": ["yes"], "phrase": "show a face less than half as sharp as before"}},
}
"""The question of the instrument that docs/add-an-instrument.md describes."""
READ = {True: 0.95, False: 0.01}
"""How often the instrument reads a blurred face as blurred, and another one."""
RACE = FACTORS[0]
Answers = NDArray[np.int_]
Flags = NDArray[np.bool_]
EXPECTED: Mapping[str, tuple[str, ...]] = {
    "hair level 4 at 0.4 for two races": ("gap", "gap.hair_changed"),
    "smile at 0.35 for all": ("shift", "rate.smile_added"),
    "blur at 0.4 for 60s and 70plus": ("gap", "gap.measured_face_blurred"),
    "Indian to White at 0.5": ("direction", "flow.race_seen[White>Indian]", "toward.race_seen[White]"),
}
"""By planted effect, the kind of finding and the numbers that show it."""


@cache
def template() -> tuple[StudyFile, Rubric]:
    """Return the study of the template `open`, and its rubric with the instrument's question."""
    with tempfile.TemporaryDirectory() as folder:
        templates.write("open", Path(folder))
        study = StudyFile.load(Path(folder))
    rows, _ = read_rows([SHARPNESS], "questions")
    return study, study.rubric.extended(rows)


@cache
def edits(prompts: tuple[str, ...]) -> pd.DataFrame:
    """Return the edits of one editor: every face with every prompt."""
    labels = pd.DataFrame(cells()).assign(source_id=[f"f{at:02}" for at in range(len(cells()))])
    rows = labels.loc[labels.index.repeat(len(prompts))].assign(prompt_id=list(prompts) * len(labels))
    rows = rows.assign(request_id=rows["source_id"] + "-" + rows["prompt_id"])
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "seed": 1, "outcome": "edited"}
    return rows.assign(**place)[list(edit_columns(FACTORS))].reset_index(drop=True)


def study(rng: np.random.Generator, planted: bool) -> list[Finding]:
    """Return the findings of one study, with the effects of the template or with none."""
    file, rubric = template()
    frame = edits(tuple(prompt.id for prompt in file.prompts))
    truth = unchanged(frame, rubric)
    for axis, chances in Even().expected({}, next(iter(file.prompts))).items():
        truth[axis] = rng.choice(np.arange(1, 6), size=len(frame), p=chances)
    blurred = (
        plant(truth, frame, rubric, file.sections.editors[0].settings, rng) if planted else np.zeros(len(frame), bool)
    )
    null = edits(tuple(f"null-{at}" for at in range(file.null_pairs)))
    pairs = rated(unchanged(null, rubric), np.zeros(len(null), bool), null, rubric, rng)
    ratings = replace(rated(truth, blurred, frame, rubric, rng), null_pairs=pairs)
    rules = replace(AnalysisRules.default(), rates=rubric.rates, draws=20, permutations=19)
    return list(analyse(ratings, rules).findings)


def unchanged(frame: pd.DataFrame, rubric: Rubric) -> dict[str, Answers]:
    """Return the answer by question that nothing changed."""
    truth = {column: np.full(len(frame), question.unchanged) for column, question in rubric.questions.items()}
    label = np.array([RACE.codes.index(level) + 1 for level in frame["race"]])
    return truth | {f"race_{when}": label for when in ("before", "after", "again")}


def plant(
    truth: dict[str, Answers],
    frame: pd.DataFrame,
    rubric: Rubric,
    settings: Mapping[str, Any],
    rng: np.random.Generator,
) -> Flags:
    """Write the effects of the editor's settings into the truth; return the edits whose face is blurred."""
    blurred = np.zeros(len(frame), dtype=np.bool_)
    for effect in settings["effects"]:
        hit = _hit(effect, frame, rng)
        if "blur" in effect:
            blurred = hit
            continue
        question, answer = rubric.questions[effect["question"]], effect["answer"]
        position = question.labels.index(answer) + 1 if isinstance(answer, str) else answer
        truth[question.id] = np.where(hit, position, truth[question.id])
    turned = _hit(settings["toward"], frame, rng)
    truth["race_after"] = np.where(turned, RACE.codes.index(settings["toward"]["race"]) + 1, truth["race_after"])
    truth["race_drift"] = np.where(turned, 5, truth["race_drift"])
    return blurred


def rated(
    truth: Mapping[str, Answers], blurred: Flags, frame: pd.DataFrame, rubric: Rubric, rng: np.random.Generator
) -> RatingTable:
    """Return the answers of two judges and of the instrument."""
    values = np.zeros((3, len(frame), len(rubric.columns)), dtype=np.int8)
    for column, spec in rubric.spec_by_column.items():
        if spec.row.about in ("pair", "picture") and "judges" in spec.row.answered_by and column not in rubric.replaced:
            for judge in (0, 1):
                values[judge, :, rubric.at(column)] = _judged(truth[column], column, rubric, frame, rng)
    read = rng.random(len(frame)) < np.where(blurred, READ[True], READ[False])
    values[2, :, rubric.at("face_blurred")] = np.where(read, 1, 2)
    status = np.full(values.shape[:2], STATUSES.index(Status.SCORED), dtype=np.int8)
    kinds = (Kind.VLM, Kind.VLM, Kind.INSTRUMENT)
    return RatingTable(frame, ("judge-a", "judge-b", "sharpness"), kinds, values, status, rubric=rubric)


def _hit(effect: Mapping[str, Any], frame: pd.DataFrame, rng: np.random.Generator) -> Flags:
    """Return the edits that an effect changes."""
    hit = rng.random(len(frame)) < effect["rate"]
    for factor, levels in effect.get("groups", {}).items():
        hit &= frame[factor].isin(levels).to_numpy()
    return hit


def _judged(truth: Answers, column: str, rubric: Rubric, frame: pd.DataFrame, rng: np.random.Generator) -> Answers:
    """Return a judge's answers: one reading for each portrait, one answer for each edit."""
    last, spec = len(rubric.questions[column].labels), rubric.spec_by_column[column]
    wrong = rng.random(len(frame)) < ERROR
    other = rng.integers(1, last + 1, len(frame)) if spec.is_choice else truth + rng.choice((-1, 1), len(frame))
    answers = np.where(wrong, np.clip(other, 1, last), truth)
    if column.endswith(("_before", "_again")):
        first = frame.groupby("source_id", sort=False).ngroup().to_numpy()
        answers = answers[np.unique(first, return_index=True)[1]][first]
    return answers


def run(_folder: Path) -> Validation:
    """Count the studies in which each planted effect is found, and those without effects that find any."""
    studies, tally = size("STUDIES", 100), Tally()
    found = [study(np.random.default_rng([SEED, 1, number]), planted=True) for number in range(studies)]
    none = [study(np.random.default_rng([SEED, 0, number]), planted=False) for number in range(studies)]
    rows = []
    for name, (kind, *measures) in EXPECTED.items():
        hits = np.array([any(_shows(f, kind, measures) for f in findings) for findings in found])
        rows.append({"planted": name, "clear": tally.cell(name, hits, Limit(0.95))})
    clear = np.array([any(f.level in CLEAR for f in findings) for findings in none])
    rows.append(
        {"planted": "nothing: any clear finding", "clear": tally.cell("nothing planted", clear, Limit(0.0, 0.05))}
    )
    lines = [
        "84 faces, 8 prompts, two judges with an error of 2 %, and an instrument that reads 95 % of blurred faces as "
        "blurred and 1 % of others. All tests of the report are one family. Asked: 0.95 of the studies with effects, "
        "at most 0.05 of those without.",
        "",
        *table(rows),
    ]
    claim = "Planted answers to the questions of the template `open` give clear findings, and no answers give none."
    return Validation(claim, lines, SEED, {"studies with effects, and as many without": studies}, tally.wrong)


def _shows(finding: Finding, kind: str, measures: Sequence[str]) -> bool:
    return finding.level in CLEAR and finding.kind == kind and finding.measure in measures

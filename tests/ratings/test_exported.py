"""A table written as an export and read back is the same table, whatever it holds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Experiment, Kind, Outcome, Prompt, Status
from evenedit.protocol import Factor, PromptSet
from evenedit.ratings.exported import read_exported
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, Reading, ReadingNote, edit_columns
from evenedit.ratings.to_csv import write_tables

IDS = ["plain", "a, b", 'the "third"', "=SUM(A1)", "-1", "+x", "@y", "'=z", "''=z", "目\nzwei", "NA", "{x}", "1e3"]
AGED = "V, thirty years later"
PROMPTS = PromptSet("own", (*(Prompt(i, f"text of {i}", "Own") for i in IDS), Prompt(AGED, "", "Own", target_years=30)))
TONE = Factor.of("tone", ["-2", "+1", 'a,"b"', "{c}", "十"], title='Tone, "odd"', ordered=True)
RATERS = {
    "=judge": Kind.VLM,
    "silent judge": Kind.VLM,
    "second, judge": Kind.VLM,
    "meter": Kind.INSTRUMENT,
    "zoe": Kind.HUMAN,
    "ann": Kind.HUMAN,
    "review:cy": Kind.REVIEW,
}
AGE, AGING, PREFERENCE = (QUESTION_IDS.index(q) for q in ("age_drift", "aging_accuracy", "preference"))
CHOICES = {q: QUESTION_IDS.index(q) for q in ("stereotype", "target_role")}


def drawn(seed: int) -> RatingTable:
    """A table at random: every status, every outcome, several seeds, odd names, aging, roles and preferences."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(60):
        experiment = list(Experiment)[rng.integers(3)]
        prompt = AGED if number % 5 == 0 and experiment is not Experiment.STEREOTYPE else IDS[number % len(IDS)]
        face = int(rng.integers(4))
        row = {
            "request_id": f"id{number}",
            "experiment": experiment.value,
            "condition": ["baseline", "feature", "placebo"][rng.integers(3)],
            "editor": ["e", "-f"][rng.integers(2)],
            "source_id": f"=face {face}",
            "prompt_id": prompt,
            "seed": int(rng.integers(-5, 5)) * 2**40 + number,
            "tone": "" if experiment is Experiment.STEREOTYPE else (*TONE.codes, "")[face],
            "outcome": list(Outcome)[rng.integers(3)].value if rng.random() < 0.3 else "edited",
        }
        rows.append(row)
    edits = pd.DataFrame(rows, columns=list(edit_columns([TONE])))
    shape = (len(RATERS), len(edits), len(QUESTION_IDS))
    values, status = np.zeros(shape, dtype=np.int8), np.full(shape[:2], NOT_ASKED, dtype=np.int8)
    confidence = np.full(shape, np.nan, dtype=np.float32)
    for rater, kind in enumerate(RATERS.values()):
        for row in np.flatnonzero((edits["outcome"] == "edited") & (rng.random(len(edits)) < 0.8)):
            if rater == 1:
                continue
            ended = rng.integers(len(STATUSES)) if kind in (Kind.VLM, Kind.INSTRUMENT) else 0
            status[rater, row] = NOT_ASKED if kind is Kind.VLM and rng.random() < 0.1 else ended
            is_pair = edits["experiment"][row] == "stereotype"
            if status[rater, row] == STATUSES.index(Status.SCORED):
                asked = list(CHOICES.values()) if is_pair else list(range(5))
                if edits["prompt_id"][row] == AGED:
                    asked = [AGING if at == AGE else at for at in asked]
                for at in asked:
                    values[rater, row, at] = rng.integers(0, 4 if is_pair else 6)
                    if values[rater, row, at] and kind is Kind.VLM and rng.random() < 0.5:
                        confidence[rater, row, at] = rng.random()
            if edits["experiment"][row] == "mitigation" and kind in (Kind.VLM, Kind.HUMAN):
                values[rater, row, PREFERENCE] = rng.integers(0, 5)
    readings = tuple(
        Reading("meter", measure, np.where(rng.random(60) < 0.3, np.nan, rng.normal(size=60)), ("",) * 60, note)
        for measure, note in (("mean.tone", "=odd"), ("mean.never_read", ""))
    )
    unread = tuple('no face, "none"' if np.isnan(v) and n % 2 else "" for n, v in enumerate(readings[0].values))
    readings = (replace(readings[0], reasons=unread), replace(readings[1], values=np.full(60, np.nan)))
    settled = np.where(rng.random(shape[1:]) < 0.1, 2, 0).astype(np.int8)
    return RatingTable(
        edits, tuple(RATERS), tuple(RATERS.values()), values, status, confidence, readings, settled, (TONE,)
    )


def read_back(folder: Path, table: RatingTable) -> RatingTable:
    notes = [ReadingNote.of(reading) for reading in table.readings]
    raters = dict(zip(table.raters, table.kinds, strict=True))
    return read_exported(folder, [], PROMPTS, table.factors, raters, notes)[0]


@pytest.mark.parametrize("seed", range(8))
def test_a_table_at_random_comes_back_as_it_was(tmp_path, seed):
    table = drawn(seed)
    write_tables(table, tmp_path)
    again = read_back(tmp_path, table)
    pd.testing.assert_frame_equal(again.edits, table.edits, check_dtype=False)
    assert (again.raters, again.kinds, again.factors) == (table.raters, table.kinds, table.factors)
    for part in ("values", "status", "confidence", "settled"):
        assert np.array_equal(getattr(again, part), getattr(table, part), equal_nan=part == "confidence"), part
    for read, was in zip(again.readings, table.readings, strict=True):
        assert (read.rater, read.measure, read.reasons, read.note) == (was.rater, was.measure, was.reasons, was.note)
        assert np.array_equal(read.values, was.values, equal_nan=True)


def test_every_status_and_a_preference_without_a_rating_are_among_them():
    tables = [drawn(seed) for seed in range(8)]
    codes = {int(code) for table in tables for code in np.unique(table.status)}
    assert codes == {NOT_ASKED, *range(len(STATUSES))}
    without = [(t.status == code) & (t.values[:, :, PREFERENCE] > 0) for t in tables for code in (NOT_ASKED, 2)]
    assert any(found.any() for found in without)


def test_a_person_who_prefers_must_have_answered(tmp_path):
    table = drawn(1)
    write_tables(table, tmp_path)
    text = pd.read_csv(tmp_path / "scores.csv", dtype=str, keep_default_na=False)
    human = (text["kind"] == "human") & (text["preference"] != "")
    text.loc[human.idxmax(), "status"] = "refused"
    text.to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(EvenEditError, match="but the status is 'refused'"):
        read_back(tmp_path, table)


@pytest.mark.parametrize(
    ("file", "column", "cell", "message"),
    [
        ("edits.csv", "settled.race_drift", "9", "settled.race_drift of edit id0 is '9'; expected a whole number"),
        ("edits.csv", "tone", "red", "edits.csv line 2: tone is 'red'; expected one of: -2, +1"),
        ("readings.csv", "value", "high", "readings.csv line 2: value is 'high'; expected a number"),
        ("readings.csv", "request_id", "x", "readings.csv line 2: there is no edit 'x' in edits.csv"),
        ("scores.csv", "confidence.skin_tone", "1.5", "confidence.skin_tone is '1.5'; expected a number from 0 to 1"),
    ],
)
def test_a_cell_that_was_changed_into_nonsense_is_named(tmp_path, file, column, cell, message):
    table = drawn(3)
    table.edits.loc[0, ["experiment", "prompt_id", "tone"]] = ["diagnosis", "plain", "-2"]
    write_tables(table, tmp_path)
    text = pd.read_csv(tmp_path / file, dtype=str, keep_default_na=False)
    text.loc[0, column] = cell
    text.to_csv(tmp_path / file, index=False)
    with pytest.raises(EvenEditError) as caught:
        read_back(tmp_path, table)
    assert message in "\n".join(caught.value.problems)

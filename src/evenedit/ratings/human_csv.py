"""People's ratings in: tables with one row per edit and person, beside the judges' scores of the same edits.

    experiment, condition, editor, source_id, race, gender, age, prompt_id, rater, edit_success, skin_tone, race_drift,
    gender_drift, age_drift        and, if you have it, seed; further columns (duration_ms, shown_first …) are not read

A file of verdicts on two-person edits has experiment, condition, editor, prompt_id, rater and verdict.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment, Kind, Status
from evenedit.protocol import PromptSet, Rubric, default_rubric
from evenedit.ratings.from_csv import (
    EDIT_KEY,
    OPTIONAL,
    VERDICT_COLUMNS,
    Factors,
    Problems,
    Tabular,
    asked_in,
    assemble,
    checked_rows,
    columns_of,
    known_factors,
    known_prompts,
    name_of,
    names_of,
    read_frames,
    read_table,
    score_columns,
    stacked,
    texts,
    with_options,
    with_sets,
)
from evenedit.ratings.table import RatingTable

RATER = "rater"
TAKEN = ("request_id", "outcome")
"""What a rating takes over from its edit, besides the key."""
UNSTATED = {"seed": OPTIONAL["seed"], "source_id": ""}
"""What a rating's column holds where its file does not state it."""


def read_with_people(
    scores: Sequence[Tabular],
    ratings: Sequence[Tabular],
    prompt_sets: Sequence[PromptSet] = (),
    factors: Factors = None,
    rubric: Rubric | None = None,
) -> RatingTable:
    """Judges' scores (none, if there are none yet) and people's ratings as one table."""
    frames = read_frames(scores, factors, rubric)
    return table_with_people(frames, ratings, known_prompts(prompt_sets), factors, rubric=rubric)


def table_with_people(
    judged: list[pd.DataFrame],
    ratings: Sequence[Tabular],
    prompts: PromptSet,
    factors: Factors = None,
    raters: Mapping[str, Kind] | None = None,
    rubric: Rubric | None = None,
) -> RatingTable:
    """Frames of judged edits and tables of people's ratings, either of which may be none, as one table."""
    problems = Problems()
    rated = [_read(table, names_of(factors), rubric or default_rubric()) for table in ratings]
    known, chosen = known_factors([*judged, *rated], factors), asked_in([*judged, *rated], rubric)
    people = checked_rows(rated, prompts, problems, known, chosen) if rated else None
    judges = checked_rows(judged, prompts, problems, known, chosen) if judged else None
    if people is not None and judges is not None:
        return assemble(stacked([judges, _placed(people, judges, problems)]), problems, known, chosen, raters)
    rows = judges if people is None else people
    if rows is None:
        raise EvenEditError("no file to read; give at least one CSV of scores or verdicts")
    return assemble(rows, problems, known, chosen, raters)


def _read(table: Tabular, factors: Sequence[str], rubric: Rubric) -> pd.DataFrame:
    """Read one table of ratings in the shape of a table of scores."""
    frame, name = with_sets(read_table(table), table, rubric), name_of(table)
    if RATER not in frame.columns and "judge" in frame.columns:
        raise EvenEditError(
            f"{name} has a column 'judge' but no 'rater'; give judges' scores as a file without --ratings"
        )
    columns = score_columns(factors, rubric, "people")
    scored = VERDICT_COLUMNS if "verdict" in frame.columns else with_options(columns, rubric)
    wanted = [RATER if column == "judge" else column for column in scored if column != "status"]
    absent = [column for column in wanted if column not in frame.columns]
    for column in frame.columns:
        if column not in wanted and (near := get_close_matches(column, absent, 1, 0.75)):
            raise EvenEditError(f"{name} has a column '{column}', which is not known; did you mean '{near[0]}'?")
    known = columns_of(frame, table, wanted, rubric).rename(columns={RATER: "judge"})
    return known.assign(status=Status.SCORED.value, kind=Kind.HUMAN.value).astype(dict.fromkeys(scored, "category"))


def _placed(people: pd.DataFrame, judges: pd.DataFrame, problems: Problems) -> pd.DataFrame:
    """Match the ratings to the judged edits they are about; one without a match is unchanged.

    A baseline is one and the same edit, whether a file calls its experiment diagnosis or mitigation. Where the ratings
    state no seed they are of the only one; where there are several they are refused.
    """
    edits = judges.drop_duplicates(EDIT_KEY)[[*EDIT_KEY, *TAKEN]].astype(str)
    by_case: dict[tuple[str, ...], list[dict[Hashable, Any]]] = {}
    for edit in edits.to_dict("records"):
        by_case.setdefault(_case(edit), []).append(edit)
    rated = people[[*EDIT_KEY, *TAKEN]].astype(str).to_dict("records")
    several = np.zeros(len(people), dtype=np.bool_)
    for at, rating in enumerate(rated):
        near = by_case.get(_case(rating), [])
        for column in ("source_id", "seed", "experiment"):
            same = [edit for edit in near if edit[column] == rating[column]]
            if same or rating[column] != UNSTATED.get(column, rating["experiment"]):
                near = same
        several[at] = len(near) > 1
        if len(near) == 1:
            rated[at] = near[0]
    problems.add(
        people, several, "the scores have several edits of this case with different seeds; add a column 'seed'"
    )
    problems.check()
    for column in (*EDIT_KEY, *TAKEN):
        values = pd.Series([str(rating[column]) for rating in rated], index=people.index)
        people[column] = texts(values, str)
    return people


def _case(edit: Mapping[Hashable, Any]) -> tuple[str, ...]:
    kind = (
        ""
        if edit["condition"] == ConditionKind.BASELINE and edit["experiment"] != Experiment.STEREOTYPE
        else edit["experiment"]
    )
    return (kind, edit["condition"], edit["editor"], edit["prompt_id"])

"""Cases that show a failure, with the judges' words about them: chosen by a stated rule and never by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Outcome
from evenedit.judges.parsing import evidence_of
from evenedit.judges.raters import JudgeRater
from evenedit.protocol import ROLES, Rubric
from evenedit.protocol.drift import drift
from evenedit.ratings.table import Scores
from evenedit.results.materials import JudgedCase, JudgeWords
from evenedit.study.context import StudyContext

PER_EDITOR = 3
"""Cases of each failure and editor."""
CHANGES = (ROLES.lighter, ROLES.darker, ROLES.race_change, ROLES.gender_change)
"""The rates that make an edit a case of replacement."""


def judged_cases(study: StudyContext, scores: Scores, raters: Sequence[JudgeRater]) -> Iterator[JudgedCase]:
    """Yield, per editor, the edits with the weakest edit, then those with the largest change of the person.

    Each prompt and each face stands once among an editor's cases of a failure; ties go to the smallest request id.
    """
    if not raters:
        return
    edits, rates, rubric = scores.edits, study.file.rates, scores.table.rubric
    if ROLES.applied not in rates or ROLES.erased not in rates:
        return
    success = scores.of(rates[ROLES.applied].question).astype(np.int64)
    moved = drift(scores.values, rates, rubric)
    baseline = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)
    rated = (baseline & (edits["outcome"] == Outcome.EDITED)).to_numpy() & (success > 0)
    erased = rated & rates[ROLES.erased].met(success)
    replaced = rated & rates[ROLES.applied].met(success) & moved.any_of(CHANGES)
    person = np.nan_to_num(moved.points, nan=0.0)
    for editor in dict.fromkeys(edits["editor"]):
        of_editor = (edits["editor"] == editor).to_numpy()
        for row in _distinct(scores, erased & of_editor, success):
            yield _case(study, scores, row, ROLES.erased, raters)
        for row in _distinct(scores, replaced & of_editor, -person):
            yield _case(study, scores, row, "replacement", raters)


def _distinct(scores: Scores, chosen: NDArray[np.bool_], order: NDArray[np.generic]) -> list[int]:
    """Return the first rows by order and request id; no prompt and no face occurs twice."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.lexsort((scores.edits["request_id"].to_numpy(str)[rows], order[rows]))]
    prompts, faces = scores.edits["prompt_id"].to_numpy(), scores.edits["source_id"].to_numpy()
    selected: list[int] = []
    for row in rows:
        if all(prompts[row] != prompts[k] and faces[row] != faces[k] for k in selected):
            selected.append(int(row))
        if len(selected) == PER_EDITOR:
            break
    return selected


def _case(
    study: StudyContext,
    scores: Scores,
    row: int,
    failure: str,
    raters: Sequence[JudgeRater],
) -> JudgedCase:
    edit, table = scores.edits.iloc[row], scores.table
    replies = study.store.replies(edit["request_id"])
    words = []
    for rater in raters:
        reply = replies.get((rater.id, rater.revision))
        values = table.values[table.raters.index(rater.id), row]
        if reply is not None and (values > 0).any():
            evidence, observations = evidence_of(reply.raw)
            words.append(JudgeWords(rater.id, _scored(table.rubric, values), evidence, observations))
    return JudgedCase(
        failure=failure,
        request=edit["request_id"],
        editor=edit["editor"],
        prompt=edit["prompt_id"],
        group={f.name: edit[f.name] for f in table.factors if edit[f.name]},
        scores=_scored(table.rubric, scores.values[row]),
        words=tuple(words),
    )


def _scored(rubric: Rubric, values: NDArray[np.int8]) -> dict[str, int]:
    return {question: int(value) for question, value in zip(rubric.columns, values, strict=True) if value}

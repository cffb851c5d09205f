"""What everybody said of every edit, gathered from the store into the one table that statistics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evenedit.core.records import Edit, Kind, Request, Source, Status
from evenedit.design.assignments import Rater
from evenedit.design.requests import case_of
from evenedit.protocol.rubric import preferred
from evenedit.ratings.reviews import Reviewer, Reviews
from evenedit.ratings.table import EDIT_COLUMNS, MISSING, NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable
from evenedit.run.measuring import Gauge, Measurements
from evenedit.storage.store import Store
from evenedit.survey.answers import Person

PREFERENCE = QUESTION_IDS.index("preference")


def tabulate(
    store: Store,
    planned: Sequence[Request],
    sources: Mapping[str, Source],
    judges: Sequence[Rater],
    measured: Measurements,
    people: Sequence[Person],
    reviewers: int,
) -> RatingTable:
    """The table of the planned edits that were made; `reviewers` is how many must have looked at a case."""
    wanted, edits, reviews = {r.id: r for r in planned}, store.edits(), Reviews(store)
    rows = {ident: i for i, ident in enumerate(i for i in wanted if i in edits)}
    frame = pd.DataFrame([_row(wanted[i], edits[i], sources) for i in rows], columns=list(EDIT_COLUMNS))
    asked: list[Rater | Gauge] = [*judges, *measured.gauges]
    told: list[Person | Reviewer] = [*people, *reviews.reviewers(reviewers)]
    names = [r.id for r in (*asked, *told)]
    kinds = [*(r.kind for r in asked), *(Kind.HUMAN if isinstance(p, Person) else Kind.REVIEW for p in told)]
    values = np.full((len(names), len(rows), len(QUESTION_IDS)), MISSING, dtype=np.int8)
    status = np.full((len(names), len(rows)), NOT_ASKED, dtype=np.int8)
    sure = np.full(values.shape, np.nan, dtype=np.float32)
    for number, rater in enumerate(asked):
        for ident, state in store.answered(rater.id, rater.revision).items():
            if ident in rows:
                status[number, rows[ident]] = STATUSES.index(state)
        for rating in store.ratings(rater.id, rater.revision):
            if rating.request_id in rows and rating.value is not None:
                at = number, rows[rating.request_id], QUESTION_IDS.index(rating.question_id)
                values[at] = rating.value
                sure[at] = np.nan if rating.confidence is None else rating.confidence
        for ident, choice in _preferences(store, rater).items():
            if ident in rows:
                values[number, rows[ident], PREFERENCE] = choice
    for number, person in enumerate(told, len(asked)):
        for ident in person.ratings.keys() & rows.keys():
            status[number, rows[ident]] = STATUSES.index(Status.SCORED)
            for name, value in person.ratings[ident].items():
                if name in QUESTION_IDS:
                    values[number, rows[ident], QUESTION_IDS.index(name)] = value
    settled = reviews.settled(rows, reviewers)
    return RatingTable(frame, tuple(names), tuple(kinds), values, status, sure, measured.readings(rows), settled)


def _preferences(store: Store, rater: Rater | Gauge) -> dict[str, int]:
    """What a rater's answers in both orders say together, by mitigated request."""
    first, second = (
        {r.request_id: r.value for r in store.ratings(rater.id, f"{rater.revision}-{order}")} for order in ("ab", "ba")
    )
    said = {ident: preferred(first[ident], second[ident]) for ident in first.keys() & second.keys()}
    return {ident: choice for ident, choice in said.items() if choice is not None}


def _row(request: Request, edit: Edit, sources: Mapping[str, Source]) -> dict[str, object]:
    attributes = sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
    return {
        "request_id": request.id,
        "experiment": request.experiment.value,
        "condition": request.condition,
        "editor": request.editor,
        "source_id": "+".join(request.source_ids),
        "prompt_id": request.prompt_id,
        "seed": case_of(request)[-1],  # a placebo edit is paired with the baseline it repeats
        "race": attributes.get("race", ""),
        "gender": attributes.get("gender", ""),
        "age": attributes.get("age", ""),
        "outcome": edit.outcome.value,
    }

"""The one way from an answer to the table that the statistics read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import Edit, Kind, Rating, Request, Source
from evenedit.protocol import Factor, Rubric, default_rubric
from evenedit.ratings.reviews import settled
from evenedit.ratings.sources import RatingSource
from evenedit.ratings.table import (
    BLOCK,
    MISSING,
    NOT_ASKED,
    STATUSES,
    RatingTable,
    Reading,
    edit_columns,
)


def build_table(
    edits: pd.DataFrame,
    factors: Sequence[Factor],
    rating_sources: Sequence[RatingSource],
    *,
    readings: Sequence[Reading] = (),
    reviewers: int | None = None,
    asks: Mapping[str, tuple[str, ...]] | None = None,
    rubric: Rubric | None = None,
) -> RatingTable:
    """Build the table of these edits, with null pairs as a table of their own.

    `reviewers` is the number of reviews that settle a case, None if none do; `asks` are the axes that prompts ask to
    change, by prompt id.
    """
    rubric = rubric or default_rubric()
    rows = {str(ident): row for row, ident in enumerate(edits["request_id"])}
    raters = [(name, source.kind) for source in rating_sources for name in source.raters]
    number = {name: at for at, (name, _) in enumerate(raters)}
    values = np.full((len(raters), len(rows), len(rubric.columns)), MISSING, dtype=np.int8)
    status = np.full((len(raters), len(rows)), NOT_ASKED, dtype=np.int8)
    confidence = np.full(values.shape, np.nan, dtype=np.float32)
    reviews: dict[str, dict[str, dict[str, int]]] = {}
    for rating in (rating for source in rating_sources for rating in source.ratings()):
        if rating.request_id not in rows:
            continue
        rater, row = number[rating.rater], rows[rating.request_id]
        if _says_how_the_call_ended(rating, rubric):
            status[rater, row] = STATUSES.index(rating.status)
        if rating.kind is Kind.REVIEW:
            answers = reviews.setdefault(rating.request_id, {}).setdefault(rating.rater, {})
            answers |= {rating.question_id: rating.value} if rating.value is not None else {}
        if rating.value is not None and rating.question_id in rubric:
            at = rater, row, rubric.at(rating.question_id)
            values[at] = rating.value
            confidence[at] = np.nan if rating.confidence is None else rating.confidence
    return RatingTable(
        edits,
        tuple(name for name, _ in raters),
        tuple(kind for _, kind in raters),
        values,
        status,
        confidence,
        tuple(readings),
        None if reviewers is None else _settled(reviews, rows, reviewers, rubric),
        tuple(factors),
        rubric,
        _asked_here(asks or {}, edits["prompt_id"]),
    ).split()


def _asked_here(asks: Mapping[str, tuple[str, ...]], prompts: Iterable[object]) -> dict[str, tuple[str, ...]]:
    """Return what the prompts of a table ask to change, in the order they occur."""
    return {prompt: asks[prompt] for prompt in dict.fromkeys(map(str, prompts)) if asks.get(prompt)}


def edit_frame(
    requests: Sequence[Request], edits: Mapping[str, Edit], sources: Mapping[str, Source], factors: Sequence[Factor]
) -> pd.DataFrame:
    """Build one row for each requested edit that was made."""
    edited = [r for r in requests if r.id in edits]
    frame = pd.DataFrame([_row(r, edits[r.id], sources, factors) for r in edited], columns=edit_columns(factors))
    if len({s.block for s in sources.values()}) < len(sources):
        frame[BLOCK] = ["+".join(sources[s].block for s in r.source_ids) for r in edited]
    return frame


def _says_how_the_call_ended(rating: Rating, rubric: Rubric) -> bool:
    """Return whether a rating reports the outcome of the main call; some questions have calls of their own."""
    return rating.kind is Kind.HUMAN or rubric.in_main_call(rating.question_id)


def _settled(
    reviews: Mapping[str, Mapping[str, Mapping[str, int]]], rows: Mapping[str, int], reviewers: int, rubric: Rubric
) -> NDArray[np.int8]:
    """[edit, question]: what the reviewers of each case settled."""
    values = np.full((len(rows), len(rubric.columns)), MISSING, dtype=np.int8)
    for request_id, answers in reviews.items():
        for question, value in settled(list(answers.values()), reviewers, rubric).items():
            values[rows[request_id], rubric.at(question)] = value
    return values


def _row(request: Request, edit: Edit, sources: Mapping[str, Source], factors: Sequence[Factor]) -> dict[str, object]:
    attributes = sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
    columns: dict[str, object] = {
        "request_id": request.id,
        "experiment": request.experiment.value,
        "condition": str(request.condition),
        "editor": request.editor,
        "source_id": "+".join(request.source_ids),
        "prompt_id": request.prompt_id,
        "seed": request.case[-1],  # a placebo edit is paired with the baseline it repeats
        "outcome": edit.outcome.value,
    }
    return columns | {f.name: attributes.get(f.name, "") for f in factors}

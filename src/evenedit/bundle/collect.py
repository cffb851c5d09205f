"""Collect the data of a study for a bundle, with pseudonyms and without free text of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from evenedit.bundle.evidence import Evidence, GivenAnswer, RawReply
from evenedit.core.records import Kind, Request, Status, is_simulated
from evenedit.interchange.export import StudyRecord
from evenedit.judges.raters import Call, JudgeRater
from evenedit.protocol import default_rubric
from evenedit.ratings.reviews import PREFIX, Reviews
from evenedit.ratings.sources import StoredRater, picture_id
from evenedit.ratings.table import NOT_ASKED, RatingTable
from evenedit.storage import schema
from evenedit.study.analysis import SURVEY
from evenedit.study.context import StudyContext


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """New names for people and reviewers, in the order of the table so that it stays the same."""

    names: Mapping[str, str]

    @classmethod
    def of(cls, table: RatingTable) -> Pseudonyms:
        """Return pseudonyms for all people in a table: person-0001, simulated-person-0001, review:reviewer-0001."""
        names = {}
        people = [table.raters[at] for at in table.of_kind(Kind.HUMAN)]
        for number, name in enumerate(people, 1):
            names[name] = f"{'simulated-' if is_simulated(name) else ''}person-{number:04d}"
        reviewers = [table.raters[at] for at in table.of_kind(Kind.REVIEW)]
        for number, name in enumerate(reviewers, 1):
            mark = "simulated-" if is_simulated(name.removeprefix(PREFIX)) else ""
            names[name] = f"{PREFIX}{mark}reviewer-{number:04d}"
        return cls(names)

    def table(self, table: RatingTable) -> RatingTable:
        """Return the table with pseudonyms."""
        raters = tuple(self.names.get(name, name) for name in table.raters)
        return replace(table, raters=raters, null_pairs=table.null_pairs and self.table(table.null_pairs))


def collect_evidence(study: StudyContext, *, people: bool = True) -> Evidence:
    """Return the data that a study's results depend on; without `people`, omit their answers."""
    table = study.table()
    if not people:
        table = table.without_people()
    pseudonyms = Pseudonyms.of(table)
    named = pseudonyms.table(table)
    sources, requests = study.store.sources(), study.design.planned(study.store.sources())
    known = set(table.edits["request_id"])
    edits = study.store.edits()
    return Evidence(
        record=StudyRecord.of(study, named),
        sources=sources,
        requests=requests,
        edits={r.id: edits[r.id] for r in requests if r.id in edits},
        replies=list(_replies(study, requests)),
        readings=table.joined().readings,
        people=dict(_people(named)),
        reviews=list(_reviews(study, pseudonyms, known)),
        chances=study.store.cases(SURVEY) if people else {},
    )


def _replies(study: StudyContext, requests: list[Request]) -> Iterator[RawReply]:
    """Yield the replies under the current revision of each judge and instrument, in the order of the requests."""
    instruments = study.design.instruments(study.store.sources())
    pictures = [picture_id(source.image) for source in study.store.sources().values()]
    position = {ident: at for at, ident in enumerate([*(r.id for r in requests), *dict.fromkeys(pictures)])}
    raters: list[StoredRater] = [*study.design.judges(), *instruments.raters]
    for rater in raters:
        calls_of = list(Call) if isinstance(rater, JudgeRater) else [Call.MAIN]
        for call in calls_of:
            revision = rater.revision_of(call) if isinstance(rater, JudgeRater) else rater.revision
            calls = {c.request_id: c for c in study.store.calls(rater.id, revision)}
            values: dict[str, dict[str, int | None]] = {}
            confidence: dict[str, dict[str, float]] = {}
            for rating in study.store.ratings(rater.id, revision):
                values.setdefault(rating.request_id, {})[rating.question_id] = rating.value
                if rating.confidence is not None:
                    confidence.setdefault(rating.request_id, {})[rating.question_id] = rating.confidence
            rows = [row for row in _rows(study, rater.id, revision) if row.request_id in position]
            for row in sorted(rows, key=lambda row: position[row.request_id]):
                known = calls.get(row.request_id)
                yield RawReply(
                    request_id=row.request_id,
                    rater=rater.id,
                    revision=revision,
                    order="" if call is Call.MAIN else call.value,
                    kind=Kind(row.kind),
                    status=Status(row.status),
                    reason=row.reason,
                    raw=row.raw,
                    values=_ordered(values.get(row.request_id, {})),
                    confidence=_ordered(confidence.get(row.request_id, {})),
                    run=row.run_id,
                    model=known.model if known else "",
                    obtained=known.obtained if known else "",
                )


def _rows(study: StudyContext, rater: str, revision: str) -> list[Any]:
    replies = schema.replies
    query = sa.select(replies).where(replies.c.rater == rater, replies.c.revision == revision)
    with study.store.begin() as db:
        return list(db.execute(query).all())


def _ordered(values: Mapping[str, Any]) -> dict[str, Any]:
    """Answers in one order, whatever order the database has them in: the shipped questions first."""
    known = {q: values[q] for q in default_rubric().columns if q in values}
    return known | {q: value for q, value in sorted(values.items()) if q not in known}


def _people(table: RatingTable) -> Iterator[tuple[str, list[GivenAnswer]]]:
    """Yield the answers of each person, edit by edit."""
    idents = table.edits["request_id"].tolist()
    for at in table.of_kind(Kind.HUMAN):
        rows, questions = np.nonzero(table.values[at])
        answers = [
            GivenAnswer(idents[row], table.rubric.columns[q], int(table.values[at, row, q]))
            for row, q in zip(rows.tolist(), questions.tolist(), strict=True)
        ]
        answered = {one.request_id for one in answers}
        rated = [idents[row] for row in np.flatnonzero(table.status[at] != NOT_ASKED).tolist()]
        yield table.raters[at], answers + [GivenAnswer(i, "", None) for i in rated if i not in answered]


def _reviews(study: StudyContext, pseudonyms: Pseudonyms, known: set[str]) -> Iterator[tuple[str, list[GivenAnswer]]]:
    """Yield the reviews of cases with enough reviewers, without their notes."""
    for review in Reviews(study.store).disclosed(study.file.sections.ensemble.reviewers):
        if review.request_id in known and review.rater in pseudonyms.names:
            answers = [GivenAnswer(review.request_id, q, value) for q, value in review.answers.items()]
            yield pseudonyms.names[review.rater], answers or [GivenAnswer(review.request_id, "", None)]

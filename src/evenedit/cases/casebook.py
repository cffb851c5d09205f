"""One edit with its request, pictures, ratings and measurements, and the edits of the same portrait and prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Reply
from evenedit.core.records import (
    ConditionKind,
    Edit,
    Kind,
    Outcome,
    Prompt,
    Question,
    Request,
    Source,
    Status,
    is_simulated,
)
from evenedit.judges.parsing import evidence_of
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import applicable_questions, combine, concerns, priority
from evenedit.ratings.reviews import Reviews
from evenedit.ratings.table import NOT_ASKED, STATUSES, Scores
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext

CONDITIONS = (ConditionKind.FLOOR, *(c for c in ConditionKind if c is not ConditionKind.FLOOR))
"""The order in which siblings are shown; requests in other languages come last."""


@dataclass(frozen=True, slots=True)
class RaterAnswers:
    """The answers of one rater about one edit."""

    rater: str
    kind: Kind
    status: Status | None
    """None where the rater was not asked, or has not answered yet."""
    values: Mapping[str, int]
    """Answers by question; a question without one is missing."""
    confidence: Mapping[str, float]
    reason: str
    """Why there is no answer, in the rater's or the provider's words."""
    evidence: str
    """The judge's summary of what it saw, or the reviewer's note; empty where there is none."""
    observations: Mapping[str, str]
    """The judge's observations before the scores."""
    raw: str
    """The reply as it was received."""

    @property
    def simulated(self) -> bool:
        """Whether the rater is simulated."""
        return is_simulated(self.rater)


@dataclass(frozen=True, slots=True)
class MeasuredFact:
    """One measurement of an edit, or the reason why there is none."""

    rater: str
    measure: str
    value: float | None
    reason: str
    note: str

    @property
    def name(self) -> str:
        """What was measured."""
        return Measure(self.measure).name


@dataclass(frozen=True, slots=True)
class RelatedEdit:
    """Another edit of the same portrait and prompt, by another editor, condition or seed."""

    request_id: str
    experiment: str
    condition: str
    editor: str
    seed: int
    """As the statistics pair it: a placebo has the seed of the baseline it repeats."""
    outcome: Outcome
    image: str | None
    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One edit with everything the study has about it."""

    request: Request
    edit: Edit
    sources: Sequence[Source]
    prompt: Prompt
    questions: Sequence[Question]
    """The questions that apply to it, in the rubric's order."""
    opinions: Sequence[RaterAnswers]
    """Judges in the study's order, then instruments, then people, then reviewers."""
    scores: Mapping[str, int]
    """The ensemble's score by question; missing ones are left out."""
    disagreements: Mapping[str, str]
    """By question on which the judges disagree: each judge with its answer."""
    priority: str
    """Review priority: high, medium or low."""
    concern: str
    """The reason for the priority: disagreement, drift, erasure, skin or routine."""
    findings: Sequence[MeasuredFact]
    measured: Mapping[str, Any]
    """Every number that the instruments measured; empty where nothing was measured."""
    siblings: Sequence[RelatedEdit]

    @property
    def id(self) -> str:
        """The request's id, which names the case."""
        return self.request.id

    @property
    def needs_review(self) -> bool:
        """Whether the judges disagree so much that a person should look."""
        return bool(self.disagreements)

    @property
    def people(self) -> dict[str, tuple[float, int]]:
        """By question with a scale: the mean of people's answers and their number."""
        answers = {
            q.id: [o.values[q.id] for o in self.opinions if o.kind is Kind.HUMAN and q.id in o.values]
            for q in self.questions
            if q.sided != "choice"
        }
        return {name: (sum(values) / len(values), len(values)) for name, values in answers.items() if values}

    @property
    def reason(self) -> str:
        """Why there is no picture; empty where there is one."""
        return self.edit.reason

    @property
    def simulated(self) -> tuple[str, ...]:
        """Simulated editors and raters of this case."""
        names = (self.request.editor, *(o.rater for o in self.opinions if o.status is not None))
        return tuple(name for name in names if is_simulated(name))


@dataclass(frozen=True)
class Casebook:
    """Every case of a study at the time it was read; cases are opened one at a time."""

    study: StudyContext
    scores: Scores
    sources: Mapping[str, Source]
    images: Mapping[str, str]
    """sha256 of each output by request id; an edit without a picture has none."""
    reasons: Mapping[str, str]
    """Why an edit has no picture, by request id."""
    revisions: Mapping[str, str]
    """The current revision of each judge and instrument; replies under other revisions are not used."""
    measured_by: str
    """The version of the measurements."""

    @classmethod
    def read(cls, study: StudyContext) -> Casebook:
        """Read the study's cases as they are now."""
        rules = analysis_rules(study.file)
        return cls.of(study, combine(study.table(), rules.ensemble, rules.missing))

    @classmethod
    def of(cls, study: StudyContext, scores: Scores) -> Casebook:
        """Return the cases of scores that are there already."""
        sources = study.store.sources()
        measurements = study.design.instruments(sources)
        edits = study.store.edits()
        return cls(
            study,
            scores,
            sources,
            {ident: edit.image for ident, edit in edits.items() if edit.image is not None},
            {ident: edit.reason for ident, edit in edits.items() if edit.image is None},
            {r.id: r.revision for r in study.design.judges()} | {g.id: g.revision for g in measurements.raters},
            measurements.version,
        )

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The study's factors, the main one first."""
        return self.scores.table.factors

    @property
    def rubric(self) -> Rubric:
        """The questions of the table, which has a column for each."""
        return self.scores.table.rubric

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each request in the table."""
        return {ident: row for row, ident in enumerate(self.scores.edits["request_id"])}

    @cached_property
    def priorities(self) -> NDArray[np.str_]:
        """The review priority of each edit."""
        return priority(self.scores, self.study.file.rates)

    @cached_property
    def concerns(self) -> NDArray[np.str_]:
        """The reason for each edit's review priority."""
        return concerns(self.scores, self.study.file.rates)

    @cached_property
    def applicable(self) -> NDArray[np.bool_]:
        """[edit, question]: which questions apply."""
        return applicable_questions(self.scores.table)

    def open(self, request_id: str) -> CaseFile:
        """Return one edit with everything the study has about it."""
        row = self.rows.get(request_id)
        if row is None:
            raise EvenEditError(f"there is no edit '{request_id}' in the study")
        store, scores = self.study.store, self.scores
        request, edit = store.requests(request_id)[request_id], store.edits(request_id)[request_id]
        all_questions = self.study.file.questions
        rubric = scores.table.rubric
        applies = zip(rubric.columns, self.applicable[row], strict=True)
        questions = [all_questions[q] for q, is_asked in applies if is_asked]
        opinions = self._opinions(row, store.replies(request_id))
        numbers, reasons = store.measurements(self.measured_by, request_id).get(request_id, ({}, {}))
        return CaseFile(
            request=request,
            edit=edit,
            sources=[self.sources[s] for s in request.source_ids],
            prompt=self.study.file.prompt(request.prompt_id),
            questions=questions,
            opinions=opinions,
            scores=self.scores_of(row),
            disagreements={
                q.id: ", ".join(
                    f"{o.rater} {_answer(q, o.values[q.id])}"
                    for o in opinions
                    if o.kind is Kind.VLM and q.id in o.values
                )
                for q in questions
                if scores.disagree[row, rubric.at(q.id)]
            },
            priority=str(self.priorities[row]),
            concern=str(self.concerns[row]),
            findings=self._findings(row),
            measured={**numbers, "reasons": reasons} if numbers else {},
            siblings=self._siblings(row),
        )

    def scores_of(self, row: int) -> dict[str, int]:
        """Return the ensemble's scores of one edit, without missing ones."""
        return {q: int(v) for q, v in zip(self.scores.table.rubric.columns, self.scores.values[row], strict=True) if v}

    def _opinions(self, row: int, replies: Mapping[tuple[str, str], Reply]) -> list[RaterAnswers]:
        table = self.scores.table
        notes = Reviews(self.study.store).notes(str(table.edits["request_id"].iloc[row]))
        opinions = []
        for number, (rater, kind) in enumerate(zip(table.raters, table.kinds, strict=True)):
            code = int(table.status[number, row])
            if code == NOT_ASKED and kind in (Kind.HUMAN, Kind.REVIEW):
                continue  # only the people who saw the case are listed
            sure = None if table.confidence is None else table.confidence[number, row]
            values = {q: int(v) for q, v in zip(table.rubric.columns, table.values[number, row], strict=True) if v}
            reply = replies.get((rater, self.revisions.get(rater, "")))
            evidence, observations = evidence_of(reply.raw if reply else "")
            if kind is Kind.REVIEW:
                evidence = notes.get(rater, "")
            opinions.append(
                RaterAnswers(
                    rater,
                    kind,
                    None if code == NOT_ASKED else STATUSES[code],
                    values,
                    {q: float(sure[table.at(q)]) for q in values if not np.isnan(sure[table.at(q)])}
                    if sure is not None
                    else {},
                    reply.reason if reply else "",
                    evidence,
                    observations,
                    reply.raw if reply else "",
                )
            )
        return opinions

    def _findings(self, row: int) -> list[MeasuredFact]:
        return [
            MeasuredFact(
                reading.rater,
                reading.measure,
                None if np.isnan(reading.values[row]) else float(reading.values[row]),
                reading.reasons[row],
                reading.note,
            )
            for reading in self.scores.table.readings
            if reading.reasons[row] or not np.isnan(reading.values[row])
        ]

    def _siblings(self, row: int) -> list[RelatedEdit]:
        edits = self.scores.edits
        case = edits.iloc[row]
        alike = (edits["source_id"] == case["source_id"]) & (edits["prompt_id"] == case["prompt_id"])
        siblings = [
            RelatedEdit(
                r.request_id,
                r.experiment,
                r.condition,
                r.editor,
                int(r.seed),
                Outcome(r.outcome),
                self.images.get(r.request_id),
                self.scores_of(int(r.Index)),
            )
            for r in edits[alike].itertuples()
            if r.Index != case.name
        ]
        return sorted(siblings, key=lambda s: (s.editor, s.seed, _place(s.condition), s.request_id))


def _place(condition: str) -> int:
    """Return the sort position of a condition among related edits."""
    return CONDITIONS.index(ConditionKind(condition)) if condition in CONDITIONS else len(CONDITIONS)


def _answer(question: Question, value: int) -> str:
    """Format an answer: the number of a scale, the word of a choice."""
    if question.sided != "choice":
        return str(value)
    return (question.words[value - 1] if question.words else "") or question.labels[value - 1].replace("_", " ").lower()

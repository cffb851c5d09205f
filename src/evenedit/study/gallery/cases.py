"""All that is known of one edit: what was asked, what came back, who said what of it, and its siblings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Reply
from evenedit.core.records import Edit, Kind, Outcome, Prompt, Question, Request, Source, Status, is_simulated
from evenedit.judges.parsing import Unreadable, find_objects
from evenedit.protocol import FACTORS, QUESTIONS
from evenedit.ratings.combine import asked, combine, concerns, priority
from evenedit.ratings.reviews import Reviews
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, Scores
from evenedit.study.results import rules_of
from evenedit.study.study import Study

CONDITIONS = ("floor", "baseline", "feature", "placebo", "swapped")
"""The order in which siblings are shown."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rater said of one edit."""

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
    """The rater's own summary of what it saw, a reviewer's note; empty where it gave none."""
    observations: Mapping[str, str]
    """What it wrote down before it scored."""
    raw: str
    """The reply as it came."""

    @property
    def simulated(self) -> bool:
        """Whether nobody real said this."""
        return is_simulated(self.rater)


@dataclass(frozen=True, slots=True)
class MeasuredFact:
    """One number an instrument read off the edit, or why it could not."""

    rater: str
    measure: str
    value: float | None
    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another edit of the same portrait and prompt: another editor, condition or seed."""

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
    """All that is known of one edit."""

    request: Request
    edit: Edit
    sources: Sequence[Source]
    prompt: Prompt
    questions: Sequence[Question]
    """What applies to it, in the rubric's order."""
    opinions: Sequence[Opinion]
    """Judges in the study's order, then instruments, then people, then reviewers."""
    scores: Mapping[str, int]
    """The ensemble's score by question; missing ones are left out."""
    disagreements: Mapping[str, str]
    """By question on which the judges disagree: who said what."""
    priority: str
    """How soon a person should look: high, medium or low …"""
    concern: str
    """… and why: disagreement, drift, erasure, skin or routine."""
    findings: Sequence[MeasuredFact]
    measured: Mapping[str, Any]
    """Every number of the measurement, where there is one."""
    siblings: Sequence[Sibling]

    @property
    def id(self) -> str:
        """The request's id, which names the case."""
        return self.request.id

    @property
    def needs_review(self) -> bool:
        """Whether the judges disagree so far that a person is to look."""
        return bool(self.disagreements)

    @property
    def people(self) -> dict[str, tuple[float, int]]:
        """By question of a scale: the mean of people's answers, and how many gave one."""
        given = {
            q.id: [o.values[q.id] for o in self.opinions if o.kind is Kind.HUMAN and q.id in o.values]
            for q in self.questions
            if q.sided != "choice"
        }
        return {name: (sum(values) / len(values), len(values)) for name, values in given.items() if values}

    @property
    def reason(self) -> str:
        """Why there is no picture; empty where there is one."""
        return reason_of(self.edit)

    @property
    def simulated(self) -> tuple[str, ...]:
        """Simulated editors and raters of this case."""
        names = (self.request.editor, *(o.rater for o in self.opinions if o.status is not None))
        return tuple(name for name in names if is_simulated(name))


@dataclass(frozen=True)
class Casebook:
    """Every case of a study as it stood when it was read; one is opened at a time."""

    study: Study
    scores: Scores
    sources: Mapping[str, Source]
    images: Mapping[str, str]
    """sha256 of each output by request id; an edit without a picture has none."""
    reasons: Mapping[str, str]
    """Why an edit has no picture, by request id."""
    revisions: Mapping[str, str]
    """Each judge's and instrument's current revision: replies under others are not of this study."""
    measured_by: str
    """The version of the measurements."""

    @classmethod
    def read(cls, study: Study) -> Casebook:
        """The study's cases as they stand."""
        rules = rules_of(study.file)
        table = study.table()
        sources = study.store.sources()
        measurements = study.design.instruments(sources)
        edits = study.store.edits()
        return cls(
            study,
            combine(table, rules.ensemble, rules.missing),
            sources,
            {ident: edit.image for ident, edit in edits.items() if edit.image is not None},
            {ident: reason_of(edit) for ident, edit in edits.items() if edit.image is None},
            {r.id: r.revision for r in study.design.judges()} | {g.id: g.revision for g in measurements.raters},
            measurements.version,
        )

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Where each request stands in the table."""
        return {ident: row for row, ident in enumerate(self.scores.edits["request_id"])}

    @cached_property
    def priorities(self) -> NDArray[np.str_]:
        """How soon a person should look at each edit."""
        return priority(self.scores, self.study.file.rates)

    @cached_property
    def concerns(self) -> NDArray[np.str_]:
        """Why a person should look at each edit."""
        return concerns(self.scores, self.study.file.rates)

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """[edit, question]: which questions apply."""
        return asked(self.scores.table)

    def open(self, request_id: str) -> CaseFile:
        """All that is known of one edit."""
        row = self.rows.get(request_id)
        if row is None:
            raise EvenEditError(f"there is no edit '{request_id}' in the study as it stands")
        store, scores = self.study.store, self.scores
        request, edit = store.requests(request_id)[request_id], store.edits(request_id)[request_id]
        questions = [QUESTIONS[q] for q, applies in zip(QUESTION_IDS, self.asked[row], strict=True) if applies]
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
                if scores.disagree[row, QUESTION_IDS.index(q.id)]
            },
            priority=str(self.priorities[row]),
            concern=str(self.concerns[row]),
            findings=self._findings(row),
            measured={**numbers, "reasons": reasons} if numbers else {},
            siblings=self._siblings(row),
        )

    def scores_of(self, row: int) -> dict[str, int]:
        """The ensemble's scores of one edit, missing ones left out."""
        return {q: int(v) for q, v in zip(QUESTION_IDS, self.scores.values[row], strict=True) if v}

    def _opinions(self, row: int, replies: Mapping[tuple[str, str], Reply]) -> list[Opinion]:
        table = self.scores.table
        notes = Reviews(self.study.store).notes(str(table.edits["request_id"].iloc[row]))
        found = []
        for number, (rater, kind) in enumerate(zip(table.raters, table.kinds, strict=True)):
            code = int(table.status[number, row])
            if code == NOT_ASKED and kind in (Kind.HUMAN, Kind.REVIEW):
                continue  # of all people, those who saw the case
            sure = None if table.confidence is None else table.confidence[number, row]
            values = {q: int(v) for q, v in zip(QUESTION_IDS, table.values[number, row], strict=True) if v}
            reply = replies.get((rater, self.revisions.get(rater, "")))
            evidence, observations = _evidence(reply.raw if reply else "")
            if kind is Kind.REVIEW:
                evidence = notes.get(rater, "")
            found.append(
                Opinion(
                    rater,
                    kind,
                    None if code == NOT_ASKED else STATUSES[code],
                    values,
                    {q: float(sure[QUESTION_IDS.index(q)]) for q in values if not np.isnan(sure[QUESTION_IDS.index(q)])}
                    if sure is not None
                    else {},
                    reply.reason if reply else "",
                    evidence,
                    observations,
                    reply.raw if reply else "",
                )
            )
        return found

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

    def _siblings(self, row: int) -> list[Sibling]:
        edits = self.scores.edits
        own = edits.iloc[row]
        alike = (edits["source_id"] == own["source_id"]) & (edits["prompt_id"] == own["prompt_id"])
        found = [
            Sibling(
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
            if r.Index != own.name
        ]
        return sorted(found, key=lambda s: (s.editor, s.seed, CONDITIONS.index(s.condition), s.request_id))


def _answer(question: Question, value: int) -> str:
    """An answer in a sentence: the number of a scale, the word of a choice."""
    return question.labels[value - 1].replace("_", " ").lower() if question.sided == "choice" else str(value)


def reason_of(edit: Edit) -> str:
    """Why there is no picture: the editor's words, or what failed; empty where there is one."""
    return str(edit.detail.get("reason") or edit.detail.get("error") or "")


def labels(source: Source) -> dict[str, str]:
    """A portrait's labels as pages print them, in the grid's order; others as the dataset has them."""
    titles = {f.name: {level.code: level.title for level in f.levels} for f in FACTORS}
    ordered = sorted(source.attributes, key=lambda name: list(titles).index(name) if name in titles else len(titles))
    return {name: titles.get(name, {}).get(source.attributes[name], source.attributes[name]) for name in ordered}


def _evidence(raw: str) -> tuple[str, dict[str, str]]:
    """The summary and the observations that stand in a reply; nothing where it cannot be read."""
    try:
        said = find_objects(raw, QUESTION_IDS)[0]
    except Unreadable:
        return "", {}
    summary, seen = said.get("evidence_summary"), said.get("observations")
    texts = {str(k): str(v) for k, v in seen.items() if v not in (None, "")} if isinstance(seen, Mapping) else {}
    return str(summary) if isinstance(summary, str) else "", texts

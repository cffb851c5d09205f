"""All that a study's numbers follow from: requests, edits, raw replies, readings, people's and reviewers' answers.

The table is built from it by the same function as the study's own. What a judge answered is read from its raw reply
again; the stored answer stands only where the reply holds none that can be read (a simulated judge's choice, a judge
given from Python).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from evenedit.core.records import Edit, Kind, Question, Rating, Request, Source, Status
from evenedit.design.assignments import is_seen
from evenedit.interchange.export import StudyRecord
from evenedit.judges.parsing import parse
from evenedit.judges.raters import Call
from evenedit.protocol import Rubric, questions_for
from evenedit.protocol.rubric import IDENTITY, ROLES, preferred
from evenedit.ratings.build import build_table, edit_frame
from evenedit.ratings.sources import RatingSource, seen_ratings
from evenedit.ratings.table import RatingTable, Reading

CUT_OFF = "the answer was cut off"
"""How the reason of an answer begins that may look whole and is not read."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """One reply of a judge or an instrument about one edit."""

    request_id: str
    rater: str
    revision: str
    order: str
    """Which of the rater's calls it answers; empty for the main call."""
    kind: Kind
    status: Status
    reason: str
    raw: str
    """The reply as it came."""
    values: Mapping[str, int | None]
    """The answers as the study stored them."""
    confidence: Mapping[str, float]
    run: int
    model: str = ""
    """What the model calls itself, where a service answered."""
    obtained: str = ""
    """When it was obtained, where a service answered."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer of one person or reviewer."""

    request_id: str
    question: str
    """Empty where a reviewer only looked."""
    value: int | None


@dataclass(frozen=True, slots=True)
class ReplyCheck:
    """How the answers of the judges compare with their raw replies."""

    from_raw: int = 0
    """Replies whose answers were read from the raw reply."""
    as_stored: int = 0
    """Replies without an answer that can be read: the stored one stands."""
    differ: tuple[str, ...] = ()
    """Rater and request of replies that say something else than what the study stored."""


@dataclass(frozen=True)
class Evidence:
    """Everything that a study's results are computed from."""

    record: StudyRecord
    sources: Mapping[str, Source]
    requests: Sequence[Request]
    """As planned, in the table's order."""
    edits: Mapping[str, Edit]
    replies: Sequence[RawReply]
    readings: tuple[Reading, ...] = ()
    people: Mapping[str, Sequence[GivenAnswer]] = field(default_factory=dict)
    """By pseudonym."""
    reviews: Sequence[tuple[str, Sequence[GivenAnswer]]] = ()
    """By pseudonym, review by review in their order, those in force."""
    chances: Mapping[str, float] = field(default_factory=dict)
    """By request id, the chance of an edit to be among those that people rated."""

    def table(self) -> RatingTable:
        """Return the table of ratings."""
        frame = edit_frame(self.requests, self.edits, self.sources, self.record.factors)
        return build_table(
            frame,
            self.record.factors,
            [*self._raters(), *self._givers()],
            readings=self.readings,
            reviewers=int(self.record.rules.ensemble.get("reviewers", 1)),
            asks={prompt.id: prompt.asks for prompt in self.record.prompts},
            rubric=self.rubric,
        )

    def check_replies(self) -> ReplyCheck:
        """Compare the judges' stored answers with their raw replies."""
        of_judges = [reply for reply in self.replies if reply.kind is Kind.VLM]
        read = [(reply, self._reread(reply)) for reply in of_judges]
        scored = [(reply, answers) for reply, answers in read if reply.status is Status.SCORED]
        differ = [
            reply for reply, answers in scored if answers is not None and _answered(answers) != _answered(reply.values)
        ]
        differ += [
            reply
            for reply, answers in read
            if answers is not None and reply.status is Status.UNPARSEABLE and not reply.reason.startswith(CUT_OFF)
        ]
        return ReplyCheck(
            sum(answers is not None for _, answers in scored),
            sum(answers is None for _, answers in scored),
            tuple(f"{reply.rater} {reply.request_id}" for reply in differ),
        )

    @cached_property
    def rubric(self) -> Rubric:
        """The questions that raters were asked."""
        return Rubric.from_tables(self.record.rubric)

    @cached_property
    def pictures(self) -> dict[str, str]:
        """By request, its source's picture, where judges say how the people in single pictures are seen."""
        seen = [r for r in self.requests if is_seen(r)] if self.rubric.seen else []
        return {r.id: self.sources[r.source_ids[0]].image for r in seen}

    @cached_property
    def _by_request(self) -> dict[str, Request]:
        return {r.id: r for r in self.requests}

    @cached_property
    def _optional(self) -> tuple[bool, bool]:
        """Return whether the question on status was asked, and whether a question may be left open."""
        status = any(ROLES.status in reply.values for reply in self.replies)
        return status, any(None in reply.values.values() for reply in self.replies)

    def _questions(self, reply: RawReply) -> tuple[Question, ...]:
        """Return the questions that a reply answers."""
        if reply.order in (Call.BASELINE_FIRST, Call.BASELINE_LAST):
            return (self.rubric.identity or IDENTITY,)
        if reply.order in (Call.SEE, Call.REREAD):
            return self.rubric.seen
        request = self._by_request.get(reply.request_id)
        if request is None:
            return ()
        prompt = next(p for p in self.record.prompts if p.id == request.prompt_id)
        labels = self.sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else None
        status, may_leave_open = self._optional
        call = reply.order or Call.MAIN.value
        wanted = questions_for(request.experiment, prompt, self.rubric, status=status, labels=labels, call=call)
        return tuple(q if q.sided == "set" else replace(q, cannot_tell=may_leave_open) for q in wanted)

    def _reread(self, reply: RawReply) -> Mapping[str, int | None] | None:
        """Return the answers in a raw reply; None if it cannot be parsed."""
        if reply.kind is not Kind.VLM or not reply.raw:
            return None
        parsed = parse(reply.raw, self._questions(reply))
        return parsed.values if parsed.status is Status.SCORED else None

    def answers(self, reply: RawReply) -> Mapping[str, int | None]:
        """Return the answers of a reply: from its raw text if it can be parsed, else as stored."""
        if reply.status is not Status.SCORED:
            return {}
        answers = self._reread(reply)
        return reply.values if answers is None else answers

    def _raters(self) -> Iterator[RatingSource]:
        by_rater: dict[str, list[RawReply]] = {}
        for reply in self.replies:
            by_rater.setdefault(reply.rater, []).append(reply)
        for name, kind in self.record.raters.items():
            if kind in (Kind.VLM, Kind.INSTRUMENT):
                yield BundledRater(self, name, Kind(kind), by_rater.get(name, []))

    def _givers(self) -> Iterator[RatingSource]:
        people = [(name, Kind.HUMAN, answers) for name, answers in self.people.items()]
        yield BundledPeople(Kind.HUMAN, people)
        yield BundledPeople(Kind.REVIEW, [(name, Kind.REVIEW, answers) for name, answers in self.reviews])


@dataclass(frozen=True, slots=True)
class BundledRater:
    """What one judge or instrument answered."""

    evidence: Evidence
    name: str
    kind: Kind
    replies: Sequence[RawReply]

    @property
    def raters(self) -> Sequence[str]:
        """The one rater."""
        return (self.name,)

    def ratings(self) -> Iterator[Rating]:
        """Yield all answers, the status of calls without an answer, and the judge's preference for each pair."""
        preferences: dict[str, dict[str, int | None]] = {Call.BASELINE_FIRST: {}, Call.BASELINE_LAST: {}}
        seen: dict[tuple[str, str], list[Rating]] = {}
        for reply in self.replies:
            answers = self.evidence.answers(reply)
            ratings = [
                Rating(reply.request_id, q, self.name, self.kind, reply.status, value, "", reply.confidence.get(q))
                for q, value in answers.items()
            ]
            if reply.order in preferences:
                preferences[reply.order][reply.request_id] = answers.get(IDENTITY.id)
            elif reply.order in (Call.SEE, Call.REREAD):
                seen[reply.order, reply.request_id] = ratings
            else:
                yield from ratings
                if not answers and not reply.order:
                    yield Rating(reply.request_id, "", self.name, self.kind, reply.status)
        yield from seen_ratings(seen, self.evidence.pictures)
        for ident in preferences[Call.BASELINE_FIRST].keys() & preferences[Call.BASELINE_LAST].keys():
            choice = preferred(*(preferences[call][ident] for call in (Call.BASELINE_FIRST, Call.BASELINE_LAST)))
            if choice is not None:
                yield Rating(ident, ROLES.preference, self.name, self.kind, Status.SCORED, choice)


@dataclass(frozen=True, slots=True)
class BundledPeople:
    """What people, or reviewers, answered."""

    kind: Kind
    answers: Sequence[tuple[str, Kind, Sequence[GivenAnswer]]]

    @property
    def raters(self) -> Sequence[str]:
        """Their pseudonyms in the table's order."""
        return sorted({name for name, _, _ in self.answers})

    def ratings(self) -> Iterator[Rating]:
        """Yield all answers."""
        for name, kind, answers in self.answers:
            for one in answers:
                yield Rating(one.request_id, one.question, name, kind, Status.SCORED, one.value)


def _answered(values: Mapping[str, int | None]) -> dict[str, int]:
    return {question: value for question, value in values.items() if value is not None}

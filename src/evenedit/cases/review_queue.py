"""The review queue: the cases that wait for a reviewer, their order, and how they are settled.

The queue holds the edits on which the judges disagree, then those of high priority (SPEC: drift of 4 or more, soft
erasure). It depends on the judges' scores alone, so settling a case does not move others. Within each part the cases
are ordered by request id: ids are hashes, so editors and groups are mixed and the order never changes.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.cases.casebook import Casebook, CaseFile
from evenedit.cases.review_workload import Assignments, ReviewerWorkload, workloads
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import write_whole
from evenedit.core.records import SIMULATED, Kind, Question
from evenedit.core.spreadsheet import as_csv
from evenedit.protocol import Rubric
from evenedit.ratings.combine import applicable_questions, combine, judges_only, priority
from evenedit.ratings.reviews import PREFIX, Review, Reviews, settled, unresolved_questions
from evenedit.stats.agreement import pairwise as against
from evenedit.stats.engine.additive import ResampledStatistic, Resampler
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext

LONGEST_NOTE = 2000
"""Characters."""
HELD = 600.0
"""Seconds for which a case that a reviewer has open is not offered to others."""
_NAME = re.compile(r"\w[\w.-]{1,39}")


class StaleCaseError(EvenEditError):
    """The case changed after the reviewer opened it, so nothing was saved."""


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """One edit in the review queue."""

    request_id: str
    questions: tuple[str, ...]
    """The questions that reviewers can settle."""
    disputed: tuple[str, ...]
    """The questions on which the judges disagree; empty for a case that is in the queue for its priority."""


@dataclass(frozen=True, slots=True)
class ReviewForm:
    """The questions to one reviewer about one case."""

    case: ReviewCase
    questions: tuple[Question, ...]
    needed: tuple[str, ...]
    """The questions that must be answered; where there are none, at least one must be."""
    third: bool
    """Whether two reviewers disagree and this review decides."""
    version: str
    """A hash of the questions to this reviewer, to notice when they change."""


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """How many cases wait and how many are settled."""

    disputed: int
    """Waiting cases on which the judges disagree."""
    high: int
    """Waiting cases of high priority."""
    half: int
    """Waiting cases that one of two reviewers has reviewed."""
    third: int
    """Waiting cases that need a third review."""
    done: int
    """Settled cases."""
    reviewers: int
    """People who have reviewed."""
    other_disputes: int
    """Edits on which the judges disagree about the better of two outputs; reviewers do not settle these."""

    @property
    def waiting(self) -> int:
        """All waiting cases."""
        return self.disputed + self.high


@dataclass(frozen=True, slots=True)
class ReviewerAgreement:
    """How far the first two reviewers of each case agree on one question."""

    question: str
    cases: int
    exact: ResampledStatistic
    within_one: ResampledStatistic | None
    """None where the answers have no order."""
    kappa: ResampledStatistic
    """Cohen's kappa, unweighted, of the first reviewer against the second."""


def rater_id(name: str) -> str:
    """Return the rater id of a reviewer with this name."""
    known = name.strip().lower()
    if not _NAME.fullmatch(known):
        raise EvenEditError(f"'{name[:60]}' cannot be a reviewer's name; use 2 to 40 letters, digits, '.', '_' or '-'")
    if known.startswith(SIMULATED):
        raise EvenEditError(f"a reviewer is a person; choose a name that does not begin with '{SIMULATED}'")
    return PREFIX + known


class ReviewQueue:
    """The cases of one study that reviewers settle, and their reviews."""

    def __init__(self, study: StudyContext) -> None:
        self.study = study
        self.reviews = Reviews(study.store)
        self.reviewers = study.file.sections.ensemble.reviewers
        self.assignments = Assignments(study.store)
        self._read: _Queue | None = None
        self._held: dict[str, dict[str, float]] = {}

    # -- waiting cases ---------------------------------------------------------------------------------------

    @property
    def cases(self) -> Mapping[str, ReviewCase]:
        """Every case by request id, in the order of the queue."""
        return self._current().cases

    def open(self, case: ReviewCase) -> CaseFile:
        """Return what a reviewer may see of a case: request, pictures and the judges' answers."""
        known = self._current().book.open(case.request_id)
        return replace(
            known,
            opinions=[o for o in known.opinions if o.kind is Kind.VLM],
            questions=[self.study.file.questions[q] for q in case.questions],
        )

    def standing(self) -> ReviewProgress:
        """Return how many cases wait and how many are settled."""
        reviews = self.reviews.in_force()
        waiting = [case for case in self.cases.values() if not self._is_done(reviews.get(case.request_id, []))]
        looks = Counter(len(reviews.get(case.request_id, [])) for case in waiting)
        return ReviewProgress(
            disputed=sum(bool(case.disputed) for case in waiting),
            high=sum(not case.disputed for case in waiting),
            half=looks[1],
            third=looks[2],
            done=sum(self._is_done(reviews_of_case) for reviews_of_case in reviews.values()),
            reviewers=len({review.rater for reviews_of_case in reviews.values() for review in reviews_of_case}),
            other_disputes=self._current().other_disputes,
        )

    def next(self, rater: str, after: str | None = None) -> ReviewCase | None:
        """Return the next case for this reviewer: the first, or the first after one that was skipped."""
        reviews, dealt = self.reviews.in_force(), self.assignments.by_case()
        order = list(self.cases)
        start = order.index(after) + 1 if after is not None and after in self.cases else 0
        wanted = [
            i
            for i in (*order[start:], *order[:start])
            if self._is_offered(reviews.get(i, []), rater, dealt.get(i)) and i != after
        ]
        wanted.sort(key=lambda i: rater not in dealt.get(i, ()))  # one's own cases before those of nobody
        free = [
            i for i in wanted if self._lookers(i, rater) < self._looks(reviews.get(i, [])) - len(reviews.get(i, []))
        ]
        chosen = next(iter(free or wanted), None)
        return None if chosen is None else self.cases[chosen]

    def waiting(self, rater: str) -> list[tuple[ReviewCase, int]]:
        """Return the cases that wait for this reviewer, each with the number of its reviews."""
        reviews, dealt = self.reviews.in_force(), self.assignments.by_case()
        candidates = [(case, reviews.get(ident, [])) for ident, case in self.cases.items()]
        return [
            (case, len(previous))
            for case, previous in candidates
            if self._is_offered(previous, rater, dealt.get(case.request_id))
        ]

    def deal(self, raters: Sequence[str]) -> dict[str, int]:
        """Deal the waiting cases evenly to these reviewers; returns how many each got."""
        reviews = self.reviews.in_force()
        waiting = {ident: reviews.get(ident, []) for ident in self.cases if not self._is_done(reviews.get(ident, []))}
        return self.assignments.deal(waiting, raters, self.reviewers)

    def workloads(self, raters: Sequence[str]) -> list[ReviewerWorkload]:
        """Return how much each of these reviewers, and everybody who has reviewed, has and has done."""
        reviews = self.reviews.in_force()
        waiting = [ident for ident in self.cases if not self._is_done(reviews.get(ident, []))]
        return workloads(raters, self.assignments.by_case(), waiting, self.reviews.history())

    def hold(self, request_id: str, rater: str) -> None:
        """Note that a reviewer has a case open, so that others are offered another one."""
        now = time.monotonic()
        lookers = self._held.setdefault(request_id, {})
        lookers[rater] = now
        self._held = {i: w for i, w in self._held.items() if any(now - at < HELD for at in w.values())}

    def _lookers(self, request_id: str, rater: str) -> int:
        """Count the other reviewers who have a case open."""
        held = self._held.get(request_id, {})
        return sum(who != rater and time.monotonic() - at < HELD for who, at in held.items())

    def _looks(self, reviews: Sequence[Review]) -> int:
        """Return the number of reviews that a case needs."""
        return 3 if unresolved_questions(reviews) else self.reviewers

    def _is_done(self, reviews: Sequence[Review]) -> bool:
        return len(reviews) >= self._looks(reviews)

    def _is_open(self, reviews: Sequence[Review], rater: str) -> bool:
        return not self._is_done(reviews) and all(review.rater != rater for review in reviews)

    def _is_offered(self, reviews: Sequence[Review], rater: str, dealt: set[str] | None) -> bool:
        """Return whether a case is open to a reviewer: assigned to them or to nobody, or in need of a third review."""
        return self._is_open(reviews, rater) and (not dealt or rater in dealt or bool(unresolved_questions(reviews)))

    def _current(self) -> _Queue:
        """Return the queue by the judges' scores, reread after a run has started or ended."""
        seen = [(run["id"], run["finished"]) for run in self.study.store.runs()]
        if self._read is None or self._read.seen != seen:
            self._read = _cases(self.study, seen)
        return self._read

    # -- settling --------------------------------------------------------------------------------------------

    def form(self, request_id: str, rater: str) -> ReviewForm:
        """Return the questions to a reviewer about a case; an error where there are none."""
        return self._form(self._case(request_id), rater, self.reviews.of(request_id))

    def _case(self, request_id: str) -> ReviewCase:
        if request_id not in self.cases:
            raise EvenEditError(
                "this edit is not in the review queue: the judges agree on it, and its priority is not high"
            )
        return self.cases[request_id]

    def _form(self, case: ReviewCase, rater: str, history: Sequence[Review]) -> ReviewForm:
        reviews = [review for review in history if review.undone is None]
        others = " and ".join(dict.fromkeys(r.rater.removeprefix(PREFIX) for r in reviews if r.rater != rater))
        if any(review.rater == rater for review in reviews):
            raise StaleCaseError("you have settled this case already; undo that first to change it")
        if self._is_done(reviews):
            raise StaleCaseError(f"{others} settled this case before you")
        open_questions = unresolved_questions(reviews)
        questions = open_questions or case.questions
        previous = sum(review.rater == rater for review in history)
        return ReviewForm(
            case,
            tuple(self.study.file.questions[q] for q in questions),
            open_questions or case.disputed,
            bool(open_questions),
            digest([case.request_id, list(questions), previous]),
        )

    def settle(self, request_id: str, rater: str, answers: Mapping[str, int], note: str, version: str) -> Review:
        """Save a review, unless the case changed after the reviewer opened it."""
        case = self._case(request_id)

        def check(history: Sequence[Review]) -> None:
            form = self._form(case, rater, history)
            if form.version != version:
                raise StaleCaseError("this case was reviewed by others in the meantime; open it again")
            _check(form, answers, note)

        review = self.reviews.add(request_id, rater, answers, note.strip(), check)
        self._held.get(request_id, {}).pop(rater, None)
        return review

    def last(self, rater: str) -> Review | None:
        """Return the reviewer's latest review that is in force."""
        reviews = [r for r in self.reviews.history() if r.rater == rater and r.undone is None]
        return reviews[-1] if reviews else None

    def undo(self, number: int, rater: str) -> Review:
        """Withdraw a reviewer's own review, unless others have reviewed the case since."""
        review = next((r for r in self.reviews.history() if r.id == number and r.rater == rater), None)
        if review is None:
            raise EvenEditError("you have no such review to undo")

        def check(history: Sequence[Review]) -> None:
            reviews = [review for review in history if review.undone is None]
            if all(review.id != number for review in reviews):
                raise StaleCaseError("this review was undone already")
            if reviews[-1].id != number:
                raise StaleCaseError("someone else has reviewed this case since, so this review cannot be undone")

        self.reviews.undo(review.request_id, number, check)
        return review

    # -- two reviewers ---------------------------------------------------------------------------------------

    def agreement(self) -> list[ReviewerAgreement]:
        """Return how far the first two reviewers of each case agree, by question; intervals resample faces."""
        rules, requests = self.study.file.sections.statistics, self.study.store.requests()
        drawing = Resampler(rules.draws, rules.seed, rules.confidence)
        pairs = [
            (i, reviews[0].answers, reviews[1].answers) for i, reviews in self.reviews.in_force().items() if reviews[1:]
        ]
        rows = []
        rubric = self.study.file.rubric
        for question in rubric.columns:
            both = [(i, a[question], b[question]) for i, a, b in pairs if question in a and question in b]
            if not both:
                continue
            first, second = (np.array([row[at] for row in both], dtype=np.int8) for at in (1, 2))
            face = pd.factorize(np.array(["+".join(requests[row[0]].source_ids) for row in both], dtype=object))[0]
            ordered = question in rubric.ordinal
            statistics = [against.exact_agreement, against.cohen(len(rubric.questions[question].labels))]
            statistics += [against.within_one] if ordered else []
            exact, kappa, *within_one = drawing.estimate(
                [(s, (first, second)) for s in statistics], face.astype(np.int64), "face"
            )
            rows.append(ReviewerAgreement(question, len(both), exact, within_one[0] if ordered else None, kappa))
        return rows

    # -- export ----------------------------------------------------------------------------------------------

    def frame(self) -> pd.DataFrame:
        """Return one row per edit, reviewer and question of the fully reviewed cases; undone reviews are marked."""
        disclosed = {review.request_id for review in self.reviews.disclosed(self.reviewers)}
        in_force = self.reviews.in_force()
        history = [review for review in self.reviews.history() if review.request_id in disclosed]
        return pd.DataFrame([row for r in history for row in self._rows(r, in_force[r.request_id])], columns=COLUMNS)

    def _rows(self, review: Review, in_force: Sequence[Review]) -> Iterator[dict[str, object]]:
        outcome = settled([other.answers for other in in_force], self.reviewers)
        place = next((at for at, other in enumerate(in_force, 1) if other.id == review.id), None)
        for rating in (r for r in review.ratings() if r.question_id):
            yield {
                "request_id": rating.request_id,
                "reviewer": rating.rater,
                "place": place,
                "question": rating.question_id,
                "value": rating.value,
                "label": self.study.file.questions[rating.question_id].labels[(rating.value or 1) - 1],
                "settled": outcome.get(rating.question_id),
                "note": rating.reason,
                "at": review.at,
                "undone": review.undone or "",
            }


def write_reviews(study: StudyContext, out: Path) -> list[Path]:
    """Write reviews.csv if there are reviews; return the paths written."""
    frame = ReviewQueue(study).frame()
    if frame.empty:
        (out / "reviews.csv").unlink(missing_ok=True)  # of an earlier export
        return []
    write_whole(out / "reviews.csv", as_csv(frame))
    return [out / "reviews.csv"]


COLUMNS = ["request_id", "reviewer", "place", "question", "value", "label", "settled", "note", "at", "undone"]


def _check(form: ReviewForm, answers: Mapping[str, int], note: str) -> None:
    """Raise one error that lists every problem with a reviewer's answers."""
    known = {question.id: question for question in form.questions}
    problems = [f"'{name}' is not asked about this case" for name in answers if name not in known]
    problems += [
        f"{known[name].title}: {value!r} is not one of the {len(known[name].labels)} answers"
        for name, value in answers.items()
        if name in known and (type(value) is not int or not 1 <= value <= len(known[name].labels))
    ]
    missing = [known[name].title for name in form.needed if name not in answers]
    if missing:
        problems.append(f"please settle: {', '.join(missing)}")
    if not answers and not missing:
        problems.append("please settle at least one question, or skip the case")
    if len(note) > LONGEST_NOTE:
        problems.append(f"the note has {len(note):,} characters; at most {LONGEST_NOTE:,} are allowed")
    if problems:
        raise EvenEditError(*problems)


@dataclass(frozen=True, slots=True)
class _Queue:
    """The queue as it was read."""

    seen: object
    book: Casebook
    cases: Mapping[str, ReviewCase]
    other_disputes: int


def _cases(study: StudyContext, seen: object) -> _Queue:
    """Read the queue by the judges' scores alone."""
    book, rules = Casebook.read(study), analysis_rules(study.file)
    table = book.scores.table
    scores = combine(table, judges_only(rules.ensemble), rules.missing)
    disagree, is_asked = scores.disagree.copy(), applicable_questions(table)
    not_reviewed = [at for at, column in enumerate(table.rubric.columns) if _is_elsewhere(table.rubric, column)]
    disagree[:, not_reviewed] = is_asked[:, not_reviewed] = False
    urgent = np.flatnonzero(priority(replace(scores, disagree=disagree), study.file.rates) == "high")
    idents = table.edits["request_id"].to_numpy(dtype=str)
    cases = [
        ReviewCase(str(idents[row]), _named(table.rubric, is_asked[row]), _named(table.rubric, disagree[row]))
        for row in urgent
    ]
    ordered = sorted(cases, key=lambda case: (not case.disputed, case.request_id))
    other_disputes = int(scores.disagree[:, not_reviewed].sum())
    return _Queue(seen, replace(book, scores=scores), {case.request_id: case for case in ordered}, other_disputes)


def _is_elsewhere(rubric: Rubric, column: str) -> bool:
    """Return whether a question is about two outputs, or one picture alone: the review page shows one pair."""
    return rubric.spec_by_column[column].row.about in ("outputs", "picture")


def _named(rubric: Rubric, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(question for question, is_chosen in zip(rubric.columns, chosen, strict=True) if is_chosen)

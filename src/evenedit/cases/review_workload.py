"""Which reviewer has which cases, and how much each has done: cases can be dealt out, or taken as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenedit.core.errors import EvenEditError
from evenedit.ratings.reviews import Review
from evenedit.storage.store import Store

SAMPLE = "review/"
"""How the study's database names the cases of one reviewer."""


@dataclass(frozen=True, slots=True)
class ReviewerWorkload:
    """The work of one reviewer."""

    rater: str
    assigned: int
    """Cases that were dealt to them."""
    waiting: int
    """Those they have not settled and nobody else has."""
    done: int
    """Reviews of theirs that are in force."""
    undone: int
    last: str
    """When they last reviewed; empty before the first review."""


class Assignments:
    """The cases that were dealt to reviewers, in the study's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def by_case(self) -> dict[str, set[str]]:
        """Return the reviewers assigned to each case."""
        reviewers: dict[str, set[str]] = {}
        for rater in self.reviewers():
            for request_id in self._store.cases(SAMPLE + rater):
                reviewers.setdefault(request_id, set()).add(rater)
        return reviewers

    def reviewers(self) -> list[str]:
        """Everybody to whom cases were dealt."""
        return sorted(sample.removeprefix(SAMPLE) for sample in self._store.samples() if sample.startswith(SAMPLE))

    def deal(self, cases: Mapping[str, Sequence[Review]], raters: Sequence[str], looks: int) -> dict[str, int]:
        """Deal waiting cases evenly, each to as many reviewers as it still needs; returns how many each got.

        `cases` are the waiting ones with the reviews they have. What was dealt before is dealt anew. Without
        reviewers nothing is dealt: everybody takes the next case.
        """
        if raters and len(raters) < looks:
            raise EvenEditError(f"each case is reviewed by {looks} people; choose at least {looks}")
        for before in self.reviewers():
            self._store.forget_cases(SAMPLE + before)
        dealt: dict[str, dict[str, float]] = {rater: {} for rater in raters}
        for request_id, reviews in cases.items():
            have = {review.rater for review in reviews}
            able = sorted((rater for rater in raters if rater not in have), key=lambda r: (len(dealt[r]), r))
            for rater in able[: max(looks - len(have), 0)]:
                dealt[rater][request_id] = 1.0
        for rater, assigned in dealt.items():
            if assigned:
                self._store.save_cases(SAMPLE + rater, assigned)
        return {rater: len(assigned) for rater, assigned in dealt.items()}


def workloads(
    raters: Sequence[str], assigned: Mapping[str, set[str]], waiting: Sequence[str], history: Sequence[Review]
) -> list[ReviewerWorkload]:
    """Return the workload and progress of each reviewer, including former ones without an account."""
    reviewers = list(dict.fromkeys([*raters, *(review.rater for review in history)]))
    done = Counter(review.rater for review in history if review.undone is None)
    undone = Counter(review.rater for review in history if review.undone is not None)
    last = {review.rater: review.at for review in history}
    settled = {(review.rater, review.request_id) for review in history if review.undone is None}
    return [
        ReviewerWorkload(
            rater,
            sum(rater in who for who in assigned.values()),
            sum(rater in assigned.get(case, ()) and (rater, case) not in settled for case in waiting),
            done[rater],
            undone[rater],
            last.get(rater, ""),
        )
        for rater in reviewers
    ]

"""The summary of a run: how many edits and ratings were made, refused, failed or are missing, why, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evenedit.core.records import ConditionKind, Outcome, Request, Status
from evenedit.design.assignments import Assignment
from evenedit.run.reasons import advice, grouped
from evenedit.storage.store import Store


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Where the edits and ratings of a run stand at its end, those of earlier runs included."""

    complete: bool
    """Whether every planned edit and rating is there, or ended for good: refused, in words, or unparseable."""
    edited: int
    refused: int
    failed: int
    """Edits that failed; the next run tries them again."""
    missing: int
    """Planned edits, and ratings of edits that were made, that are not there."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How often each reason left something refused, failed or missing; the most frequent first."""
    stopped: tuple[str, ...] = ()
    """Editors, judges and extractors that were stopped, each with its reason."""
    budget_spent: bool = False
    """Whether something is missing because the budget is spent."""
    open_jobs: int = 0
    """Batch jobs whose answers are still to come."""
    null_pairs: int = 0
    """Null pairs that were made; they are not counted as edited."""
    no_image: int = 0
    """Edits that were answered in words, without a picture."""

    def __str__(self) -> str:
        counts = {"refused": self.refused, "no_image": self.no_image, "failed": self.failed, "missing": self.missing}
        counts["null pairs"] = self.null_pairs
        parts = [f"{self.edited:,} edited", *(f"{count:,} {name}" for name, count in counts.items() if count)]
        lines = [f"{'complete' if self.complete else 'not complete'}: {', '.join(parts)}"]
        lines += [f"  {count:,} × {reason}" for reason, count in grouped(self.reasons)]
        lines += list(self.stopped)
        if self.budget_spent:
            lines.append("the budget is spent: all results so far are stored; run again with a larger budget to resume")
        if self.open_jobs:
            lines.append(f"{self.open_jobs:,} batch jobs are open: run again later to collect their answers")
        return "\n".join([*lines, *advice(self.reasons)])


def summarise(
    store: Store,
    requests: Sequence[Request],
    assigned: Sequence[Assignment],
    *,
    stopped: Sequence[str] = (),
    undescribed: Mapping[str, int] | None = None,
    budget_spent: bool = False,
) -> RunSummary:
    """Summarise the state of these requests and their ratings in the store.

    `undescribed` are portraits that wait for a feature prompt, by reason: their edits cannot be planned yet.
    """
    edits = store.edits()
    known = [edits[r.id] for r in requests if r.id in edits]
    outcomes = Counter(e.outcome for e in known)
    null = {r.id for r in requests if r.condition.kind is ConditionKind.NULL_PAIR}
    null_pairs = sum(e.request_id in null and e.outcome is Outcome.EDITED for e in known)
    reasons: Counter[str] = Counter(undescribed or {})
    for edit in known:
        if edit.outcome is not Outcome.EDITED:
            reasons[f"{edit.outcome.value}: {edit.reason or 'no reason given'}"] += 1
    missing_edits = len(requests) - len(known)
    if missing_edits:
        reasons["edit not made yet"] += missing_edits
    unrated = _unrated(store, assigned)
    reasons.update(unrated)
    missing = missing_edits + sum(unrated.values()) + sum((undescribed or {}).values())
    complete = not missing and not outcomes[Outcome.FAILED]
    return RunSummary(
        complete,
        outcomes[Outcome.EDITED] - null_pairs,
        outcomes[Outcome.REFUSED],
        outcomes[Outcome.FAILED],
        missing,
        dict(reasons.most_common()),
        tuple(stopped),
        budget_spent and not complete,
        0 if complete else len(store.open_jobs()),
        null_pairs,
        outcomes[Outcome.NO_IMAGE],
    )


def _unrated(store: Store, assigned: Sequence[Assignment]) -> Counter[str]:
    """Count the ratings that did not end, by judge and reason."""
    counts: Counter[str] = Counter()
    ended = list(replies(store, assigned))
    failed = {a.key[:2] for a, status in ended if status is Status.FAILED}
    failures = {judge: store.failures(*judge) for judge in failed}
    for assignment, status in ended:
        rater, revision, subject = assignment.key
        if status is None:
            counts[f"judge {rater}: not asked yet"] += 1
        elif status is Status.FAILED:
            counts[f"judge {rater}: {failures[rater, revision].get(subject) or 'the call failed'}"] += 1
    return counts


def replies(store: Store, assigned: Sequence[Assignment]) -> Iterator[tuple[Assignment, Status | None]]:
    """Yield the ratings whose pictures exist, with the status of the reply; None if not asked yet."""
    edited = {ident for ident, edit in store.edits().items() if edit.outcome is Outcome.EDITED}
    answers = {judge: store.answered(*judge) for judge in {assignment.key[:2] for assignment in assigned}}
    for assignment in assigned:
        if edited.issuperset(assignment.edits):
            yield assignment, answers[assignment.key[:2]].get(assignment.key[2])

"""What a run came to: how many edits were made, refused, failed or are missing, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenedit.core.records import Outcome, Request, Status
from evenedit.design.assignments import Assignment
from evenedit.storage.store import Store


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Where the edits and ratings of a run stand at its end, those of earlier runs included."""

    complete: bool
    """Whether every planned edit and rating is there, or ended in a stated way: refused, or unparseable."""
    edited: int
    refused: int
    failed: int
    """Edits that failed; the next run tries them again."""
    missing: int
    """Planned edits, and ratings of edits that were made, that are not there."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How often each reason left something refused, failed or missing; the most frequent first."""

    def __str__(self) -> str:
        counts = {"refused": self.refused, "failed": self.failed, "missing": self.missing}
        parts = [f"{self.edited:,} edited", *(f"{count:,} {name}" for name, count in counts.items() if count)]
        lines = [f"{'complete' if self.complete else 'not complete'}: {', '.join(parts)}"]
        return "\n".join([*lines, *(f"  {count:,} × {reason}" for reason, count in self.reasons.items())])


def summarise(store: Store, requests: Sequence[Request], assigned: Sequence[Assignment]) -> RunSummary:
    """Return where these requests and the ratings that were assigned stand in the store."""
    edits = store.edits()
    made = [edits[r.id] for r in requests if r.id in edits]
    outcomes = Counter(e.outcome for e in made)
    reasons: Counter[str] = Counter()
    for edit in made:
        if edit.outcome is Outcome.REFUSED:
            reasons[f"refused: {edit.detail.get('reason') or 'no reason given'}"] += 1
        elif edit.outcome is Outcome.FAILED:
            reasons[f"failed: {edit.detail.get('error') or 'no reason given'}"] += 1
    unmade = len(requests) - len(made)
    if unmade:
        reasons["edit not made yet"] += unmade
    edited = {e.request_id for e in made if e.outcome is Outcome.EDITED}
    unrated = _unrated(store, [a for a in assigned if a.request.id in edited])
    reasons.update(unrated)
    missing = unmade + sum(unrated.values())
    return RunSummary(
        not missing and not outcomes[Outcome.FAILED],
        outcomes[Outcome.EDITED],
        outcomes[Outcome.REFUSED],
        outcomes[Outcome.FAILED],
        missing,
        dict(reasons.most_common()),
    )


def _unrated(store: Store, assigned: Sequence[Assignment]) -> Counter[str]:
    """The ratings that did not end, by judge and reason."""
    edits = store.edits()
    found: Counter[str] = Counter()
    answers = {(rater, revision): store.answered(rater, revision) for rater, revision, _ in (a.key for a in assigned)}
    failures: dict[tuple[str, str], dict[str, str]] = {}
    for assignment in assigned:
        if assignment.baseline is not None and edits[assignment.baseline.id].outcome is not Outcome.EDITED:
            continue
        rater, revision, request = assignment.key
        status = answers[rater, revision].get(request)
        if status is None:
            found[f"judge {rater}: not asked yet"] += 1
        elif status is Status.FAILED:
            known = failures.setdefault((rater, revision), store.failures(rater, revision))
            found[f"judge {rater}: {known.get(request) or 'the call failed'}"] += 1
    return found

"""The progress of a study and its failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenedit.cases.review_queue import ReviewQueue
from evenedit.core.records import WITHOUT_PICTURE, ConditionKind, Outcome, Request, Status, is_simulated
from evenedit.core.submissions import SubmissionState
from evenedit.design.assignments import Assignment
from evenedit.judges.raters import Call
from evenedit.run.reasons import grouped
from evenedit.run.summary import replies
from evenedit.study.context import StudyContext
from evenedit.survey.answers import PeopleRatings


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How far a study is. Printed, it is a line for the state of each stage."""

    planned: int
    """Edits that the study plans, as far as it can plan them yet."""
    outcomes: Mapping[str, int]
    """How many of them ended in each way."""
    lines: tuple[str, ...]
    rated: int = 0
    """Ratings by judges that have ended, however, but for failures."""
    unrated: int = 0
    """Ratings of edits that were made that are still to come, failed ones included."""

    @property
    def ended(self) -> int:
        """Edits that have ended: made, refused or answered in words."""
        return sum(self.outcomes[outcome] for outcome in (Outcome.EDITED, *WITHOUT_PICTURE))

    @property
    def left(self) -> int:
        """Edits that are still to be made, failed ones included."""
        return self.planned - self.ended

    def __str__(self) -> str:
        return "\n".join(self.lines)


def status_of(study: StudyContext, *, review: bool = True) -> StudyStatus:
    """Return how far a study is; without `review`, which reads every rating, it takes less time."""
    sources = study.store.sources()
    requests = study.design.planned(sources) if sources else []
    edits = study.store.edits()
    planned, null_pairs = _parts(requests)
    outcomes = Counter(edits[r.id].outcome for r in planned if r.id in edits)
    assigned = study.design.assignments(requests, study.design.judges())
    open_ = [status in (None, Status.FAILED) for _, status in replies(study.store, assigned)]
    missing = len(planned) - sum(outcomes[outcome] for outcome in (Outcome.EDITED, *WITHOUT_PICTURE))
    not_made = sum(r.id not in edits for r in null_pairs)
    left = ((missing, "edits"), (not_made, "null pairs"), (sum(open_), "ratings"))
    to_do = [f"{count:,} {what}" for count, what in left if count]
    last = (f"{' and '.join(to_do)} to do. Try: evenedit run {study.file.folder}",) if to_do else ()
    lines = (*_lines(study, review), *last)
    return StudyStatus(
        len(planned), {o.value: outcomes[o] for o in Outcome}, lines, len(open_) - sum(open_), sum(open_)
    )


def _lines(study: StudyContext, review: bool) -> Iterator[str]:
    """Yield one line for the state of each stage."""
    store = study.store
    sources = store.sources()
    yield f"study: {study.file.sections.study.title} ({len(store.runs())} runs)"
    if not sources:
        yield f"not started. Try: evenedit run {study.file.folder}"
        return
    planned, null_pairs = _parts(study.design.planned(sources))
    edits = store.edits()
    wanted, null = ([edits[r.id] for r in part if r.id in edits] for part in (planned, null_pairs))
    outcomes = Counter(e.outcome for e in wanted)
    listed = [o for o in Outcome if outcomes[o] or o is not Outcome.NO_IMAGE]
    counts = ", ".join(f"{outcomes[o]:,} {o.value}" for o in listed)
    yield f"edits: {len(wanted):,} of {len(planned):,} ({counts})"
    if null_pairs:
        yield f"null pairs: {len(null):,} of {len(null_pairs):,}"
    for kind in (Outcome.REFUSED, Outcome.NO_IMAGE, Outcome.FAILED):
        yield from _reasons(kind.value, Counter(e.reason for e in wanted if e.outcome is kind))
    jobs = Counter(provider for _, provider, state in store.submission_states() if state is SubmissionState.ACCEPTED)
    for provider, count in jobs.items():
        yield f"  {count:,} jobs are under way at {provider}: the next run follows them up"
    edited = {e.request_id for e in (*wanted, *null) if e.outcome is Outcome.EDITED}
    judges = study.design.judges()
    for (rater, block), group in _by_block(study.design.assignments([*planned, *null_pairs], judges, sources), edited):
        states = Counter(status for _, status in replies(store, group) if status is not None)
        counts = ", ".join(f"{states[s]:,} {s.value}" for s in Status)
        of = "" if block == Call.MAIN.block else f", {block}"
        yield f"judge {rater}{of}: {sum(states.values()):,} of {len(group):,} ({counts})"
        revisions, subjects = {a.revision for a in group}, {a.subject for a in group}
        failures = [store.failures(rater, revision) for revision in revisions]
        yield from _reasons("failed", Counter(why for each in failures for i, why in each.items() if i in subjects))
        ways = Counter(call.via for revision in revisions for call in store.calls(rater, revision))
        if ways["cache"] or ways["batch"]:
            yield f"  {ways['cache']:,} from the cache, {ways['batch']:,} by batch job"
    for job in store.open_jobs():
        since = f"{job.created:%Y-%m-%d %H:%M} UTC"
        yield f"batch job {job.remote or job.tag}: {len(job.items):,} ratings of {job.rater}, open since {since}"
    for instrument in study.design.instruments(sources).raters:
        answers = store.answered(instrument.id, instrument.revision)
        states = Counter(state for ident, state in answers.items() if ident in edited)
        unreadable = states[Status.UNPARSEABLE]
        yield f"instrument {instrument.id}: {sum(states.values()):,} measured ({unreadable:,} unreadable)"
    people = PeopleRatings(study.file)
    if people.raters:
        mark = " (SIMULATED)" if all(map(is_simulated, people.raters)) else ""
        rated = {(rating.rater, rating.request_id) for rating in people.ratings()}
        yield f"people{mark}: {len(people.raters):,}, who rated {len(rated):,} edits"
    if review and study.file.sections.judges and edited:
        yield from _review(study)


def _parts(requests: Sequence[Request]) -> tuple[list[Request], list[Request]]:
    """Return the edits by editors, and the null pairs."""
    null = [r for r in requests if r.condition.kind is ConditionKind.NULL_PAIR]
    return [r for r in requests if r.condition.kind is not ConditionKind.NULL_PAIR], null


def _by_block(assigned: Sequence[Assignment], edited: set[str]) -> Iterable[tuple[tuple[str, str], list[Assignment]]]:
    """Return the calls whose pictures exist, by judge and what they are about."""
    groups: dict[tuple[str, str], list[Assignment]] = {(a.rater.id, Call.MAIN.block): [] for a in assigned}
    for assignment in assigned:
        group = groups.setdefault((assignment.rater.id, assignment.call.block), [])
        group += [assignment] if edited.issuperset(assignment.edits) else []
    return groups.items()


def _reasons(how: str, reasons: Mapping[str, int]) -> Iterator[str]:
    """Count how often each reason occurs, merging similar ones."""
    for reason, count in grouped(reasons):
        yield f"  {how}: {count:,} × {reason}"


def _review(study: StudyContext) -> Iterator[str]:
    """Describe the waiting and settled cases of the review queue."""
    section, standing = study.file.sections.ensemble, ReviewQueue(study).standing()
    yield (
        f"review: {standing.waiting:,} cases wait ({standing.disputed:,} disputed, {standing.high:,} high priority), "
        f"{standing.done:,} settled by {standing.reviewers:,} reviewers (review = {section.review})"
    )
    if standing.half or standing.third:
        yield f"  {standing.half:,} wait for the second reviewer, {standing.third:,} for a third review"

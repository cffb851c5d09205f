"""How far a study is, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evenedit.core.records import Outcome, Status, is_simulated
from evenedit.run.runner import Pipeline
from evenedit.study.review_queue import Desk
from evenedit.survey.answers import people


def describe(pipeline: Pipeline) -> Iterator[str]:
    """The state of every stage, a line each."""
    store = pipeline.store
    sources = store.sources()
    yield f"study: {pipeline.study.file.study.title} ({len(store.runs())} runs)"
    if not sources:
        yield f"not begun. Try: evenedit run {pipeline.study.folder}"
        return
    requests = pipeline.planned(sources)
    edits = store.edits()
    wanted = [edits[r.id] for r in requests if r.id in edits]
    outcomes = Counter(e.outcome for e in wanted)
    counts = ", ".join(f"{outcomes[o]:,} {o.value}" for o in Outcome)
    yield f"edits: {len(wanted):,} of {len(requests):,} ({counts})"
    reasons = Counter(str(e.detail.get("error")) for e in wanted if e.outcome is Outcome.FAILED)
    for reason, count in reasons.most_common(3):
        yield f"  failed {count:,} times: {reason}"
    edited = {e.request_id for e in wanted if e.outcome is Outcome.EDITED}
    for rater in pipeline.raters():
        answers = store.answered(rater.id, rater.revision)
        states = Counter(state for ident, state in answers.items() if ident in edited)
        counts = ", ".join(f"{states[s]:,} {s.value}" for s in Status)
        yield f"judge {rater.id}: {sum(states.values()):,} of {len(edited):,} ({counts})"
        ways = Counter(call.via for call in store.calls(rater.id, rater.revision))
        if ways["cache"] or ways["batch"]:
            yield f"  {ways['cache']:,} from the cache, {ways['batch']:,} by batch job"
    for job in store.open_jobs():
        since = f"{job.created:%Y-%m-%d %H:%M} UTC"
        yield f"batch job {job.remote or job.tag}: {len(job.items):,} ratings of {job.rater}, open since {since}"
    for gauge in pipeline.measurements(sources).gauges:
        answers = store.answered(gauge.id, gauge.revision)
        states = Counter(state for ident, state in answers.items() if ident in edited)
        yield f"instrument {gauge.id}: {sum(states.values()):,} measured ({states[Status.UNPARSEABLE]:,} unreadable)"
    persons = people(pipeline)
    if persons:
        mark = " (SIMULATED)" if all(is_simulated(p.id) for p in persons) else ""
        yield f"people{mark}: {len(persons):,}, who rated {sum(len(p.ratings) for p in persons):,} edits"
    if pipeline.study.file.judges and edited:
        yield from _review(pipeline)
    left = outcomes[Outcome.FAILED] + len(requests) - len(wanted)
    if left:
        yield f"{left:,} edits to do. Try: evenedit run {pipeline.study.folder}"


def _review(pipeline: Pipeline) -> Iterator[str]:
    """What waits for a reviewer, and what was settled."""
    section, standing = pipeline.study.file.ensemble, Desk(pipeline).standing()
    yield (
        f"review: {standing.waiting:,} cases wait ({standing.disputed:,} disputed, {standing.high:,} high priority), "
        f"{standing.done:,} settled by {standing.reviewers:,} reviewers (review = {section.review})"
    )
    if standing.half or standing.third:
        yield f"  {standing.half:,} wait for the second reviewer, {standing.third:,} for a third look"

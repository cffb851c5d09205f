"""Batch jobs: half the price, answers within a day. Submit, poll, collect; begin again after days where it was left.

    write the job down ─▶ send it under its tag ─▶ note the provider's id ─▶ look now and then ─▶ store what it brought

A job is written down before the provider hears of it, and carries a tag. Killed in between, the next run looks for the
tag at the provider: it finds the job, or knows that it was never begun. So nothing is paid for twice unnoticed, and
what is asked in an open job is asked nowhere else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Case, Reply
from evenedit.core.log import log
from evenedit.core.progress import Progress
from evenedit.core.records import Kind, Question, Status
from evenedit.judges.asking import Asking, Speaker
from evenedit.judges.cache import content_key
from evenedit.judges.parsing import JobState, ModelReply
from evenedit.judges.prompt import Ask
from evenedit.providers.budget import Meter
from evenedit.storage.store import Answered, BatchJob, Store

MOST_BYTES = 190_000_000
"""Of one job: OpenAI takes 200 MB, Gemini 2 GB."""
MOST_LINES = 10_000
"""Of one job: OpenAI takes 50,000."""
FIRST_LOOK, LAST_LOOK = 2.0, 60.0
"""Seconds between looks at open jobs, first and at most."""
LOOK_AGAIN = 5.0
"""Seconds after which a job that was not found is looked for once more."""
ATTEMPTS = 3
"""How often it is tried to begin a job."""
SLACK = 3600.0
"""Seconds by which the provider's clock may differ from ours."""


@runtime_checkable
class BatchJudge(Speaker, Protocol):
    """A judge whose provider takes batch jobs."""

    takes_batches: bool

    def line(self, ident: str, ask: Ask) -> dict[str, Any]:
        """A call as a line of a job."""
        ...

    def submit(self, lines: Path, tag: str) -> str:
        """Begin a job, tried once; returns the provider's id of it."""
        ...

    def find(self, tag: str, since: float) -> str | None:
        """The provider's id of the job that was begun under this tag; None if there is none."""
        ...

    def look(self, job: str) -> JobState:
        """How far a job is."""
        ...

    def results(self, job: str) -> Iterator[tuple[str, ModelReply | Failed]]:
        """What an ended job brought, by the ids of its lines."""
        ...


def takes_batches(judge: object) -> bool:
    """Whether a judge can be asked by batch job."""
    return isinstance(judge, BatchJudge) and judge.takes_batches


Key = tuple[str, str, str]
"""Rater, revision and request."""
Asked = Mapping[Key, Sequence[Question]]
"""What the study asks."""


@dataclass(frozen=True, slots=True)
class Item:
    """One case to be put before a judge."""

    key: Key
    case: Callable[[], Case]
    questions: Sequence[Question]


@dataclass(slots=True)
class Cost:
    """Dollars of one job: what is reserved for it until it ends, and what it used."""

    reserved: float = 0.0
    used: float = 0.0


class Batches:
    """The batch jobs of one study in one run."""

    def __init__(
        self,
        store: Store,
        asking: Asking,
        run_id: int,
        judges: Mapping[str, BatchJudge],
        prices: Mapping[str, Mapping[str, float]],
        each: Mapping[str, float],
        meter: Meter,
    ) -> None:
        self.store = store
        self.asking = asking
        self.run_id = run_id
        self.judges = judges
        """Those whose provider takes jobs, by id."""
        self.prices = prices
        """Dollars per token of theirs, in a job."""
        self.each = each
        """Dollars to reserve for one rating of theirs."""
        self.meter = meter
        self._tokens = {"input": 0, "output": 0}
        self._costs: dict[str, Cost] = {}
        meter.counters.append(lambda: self._tokens)
        asking.budget.watch(lambda: sum(cost.reserved + cost.used for cost in self._costs.values()))

    # -- what is open --------------------------------------------------------------------------------------

    def waiting(self) -> set[Key]:
        """What is asked in open jobs."""
        return {(job.rater, job.revision, ident) for job in self.store.open_jobs() for ident in job.items}

    def give_up(self, remotes: Iterable[str]) -> None:
        """Wait for these jobs no longer: what they were asked is asked anew."""
        known = {job.remote or job.tag: job for job in self.store.open_jobs()}
        for remote in remotes:
            if remote not in known:
                raise EvenEditError(f"no open batch job is called '{remote}'; open: {', '.join(known) or 'none'}")
            self.store.end_job(known[remote].tag, "given up")

    def _mine(self) -> list[BatchJob]:
        return [job for job in self.store.open_jobs() if job.rater in self.judges]

    def _recover(self, job: BatchJob) -> None:
        """Find a job of which it is not known whether the provider ever heard of it."""
        judge, since = self.judges[job.rater], job.created.timestamp() - SLACK
        remote = judge.find(job.tag, since)
        if remote is None:
            time.sleep(LOOK_AGAIN)
            remote = judge.find(job.tag, since)
        if remote is None:
            self.store.end_job(job.tag, "never begun")
        else:
            self.store.found_job(job.tag, remote)
            log.info(f"found the batch job {remote} of {len(job.items):,} ratings, which was begun and not noted")

    # -- collecting ----------------------------------------------------------------------------------------

    def collect(self, asked: Asked) -> int:
        """Store what ended jobs brought; returns how many ratings that were."""
        with self.store.one_by_one("batch"):
            return self._collect_all(asked)

    def _collect_all(self, asked: Asked) -> int:
        count = 0
        for job in self._mine():
            try:
                if job.remote is None:
                    self._recover(job)
                else:
                    count += self._collect(job, job.remote, asked)
            except Failed as failed:  # it stays open
                log.info(f"batch job {job.remote or job.tag} cannot be looked at now: {failed}")
            except EvenEditError as error:
                name = job.remote or job.tag
                raise EvenEditError(
                    f"batch job {name} of judge '{job.rater}': {error}",
                    f"if it is lost for good, its ratings are asked anew by: --give-up {name}",
                ) from None
        return count

    def _collect(self, job: BatchJob, remote: str, asked: Asked) -> int:
        judge = self.judges[job.rater]
        state = judge.look(remote)
        if not state.ended:
            return 0
        answers = list(self._answers(job, dict(judge.results(remote)), state, asked))
        self.store.save_answers(answers, self.run_id)
        self.store.end_job(job.tag, state.note)
        self._costs.get(job.tag, Cost()).reserved = 0.0
        lost = sum(a.reply.status is Status.FAILED for a in answers)
        note = f", {lost:,} of them failed and are asked again by the next run" if lost else ""
        log.info(f"batch job {remote}: {state.note}; {len(answers):,} ratings{note}")
        return len(answers)

    def _answers(
        self, job: BatchJob, answered: Mapping[str, ModelReply | Failed], state: JobState, asked: Asked
    ) -> Iterator[Answered]:
        for ident, content in job.items.items():
            answer = answered.get(ident) or Failed(
                Failure.SERVER, f"the batch job ended without an answer ({state.note})"
            )
            questions = asked.get((job.rater, job.revision, ident), ())
            if isinstance(answer, Failed):
                reply = Reply(Status.FAILED, reason=f"Failed: {answer}")
            else:
                self._count(job, answer)
                reply = self.asking.keep(content, answer, questions, via="batch", job=job.remote or "")
            if questions:  # none where the study no longer asks this
                yield Answered(ident, job.rater, job.revision, Kind.VLM, reply)

    def _count(self, job: BatchJob, answered: ModelReply) -> None:
        for way, tokens in zip(("input", "output"), answered.tokens, strict=True):
            self._tokens[way] += tokens
            if job.tag in self._costs:  # what an earlier run began, it reserved
                self._costs[job.tag].used += tokens * self.prices.get(job.rater, {}).get(way, 0.0)

    # -- submitting ----------------------------------------------------------------------------------------

    def submit(self, items: Iterable[Item]) -> None:
        """Send what is asked and in no open job, in as few jobs as it takes; what the cache knows is stored at once."""
        for left_over in self.store.folder.glob(".batch-*.jsonl"):  # by a run that was killed
            left_over.unlink()
        with self.store.one_by_one("batch"):
            open_ = self.waiting()
            groups: dict[tuple[str, str], list[Item]] = {}
            for item in items:
                if item.key not in open_ and item.key[0] in self.judges:
                    groups.setdefault(item.key[:2], []).append(item)
            for (rater, revision), members in groups.items():
                self._submit(rater, revision, members)

    def _submit(self, rater: str, revision: str, items: Sequence[Item]) -> None:
        """Send the items that no other run has had answered meanwhile."""
        ended = {i for i, status in self.store.answered(rater, revision).items() if status is not Status.FAILED}
        members = [item for item in items if item.key[2] not in ended]
        left = iter(members)
        with Progress(f"prepare {rater}", len(members)) as progress:
            while (job := self._fill(rater, revision, left, progress)) is not None:
                self._send(*job)

    def _fill(
        self, rater: str, revision: str, items: Iterator[Item], progress: Progress
    ) -> tuple[BatchJob, Path] | None:
        """Write the lines of the next job; None when nothing is left, or the budget is."""
        judge, reserve = self.judges[rater], self.each.get(rater, 0.0)
        asked: dict[str, str] = {}
        known: list[Answered] = []
        tag = f"evenedit-{uuid4().hex}"
        cost = self._costs[tag] = Cost()
        size = 0
        with NamedTemporaryFile("wb", dir=self.store.folder, prefix=".batch-", suffix=".jsonl", delete=False) as file:
            for item in items:
                ask = judge.render(item.case(), item.questions)
                content = content_key(rater, judge.parameters, ask)
                ident = item.key[2]
                if (reply := self.asking.known(content, item.questions)) is not None:
                    known.append(Answered(ident, rater, revision, Kind.VLM, reply))
                elif self.asking.budget.begin(reserve):
                    cost.reserved += reserve
                    asked[ident] = content
                    size += file.write(json.dumps(judge.line(ident, ask)).encode() + b"\n")
                else:
                    break
                progress.advance(1)
                if size >= MOST_BYTES or len(asked) >= MOST_LINES:
                    break
        path = Path(file.name)
        self.store.save_answers(known, self.run_id)
        if not asked:
            path.unlink()
            return None
        return BatchJob(tag, rater, revision, asked, datetime.now(UTC)), path

    def _send(self, job: BatchJob, lines: Path) -> None:
        self.store.save_job(job, self.run_id)
        try:
            remote = self._begun(job, lines)
        except Failed as failed:  # it may have begun all the same: the next run looks for it
            log.info(f"a batch job of {len(job.items):,} ratings could not be begun: {failed}")
            return
        except EvenEditError as error:
            self.store.end_job(job.tag, f"not accepted: {error}")
            raise
        finally:
            lines.unlink()
        self.store.found_job(job.tag, remote)
        log.info(f"batch job {remote}: {len(job.items):,} ratings of {job.rater} submitted")

    def _begun(self, job: BatchJob, lines: Path) -> str:
        """Begin a job; before it is tried again, it is looked for, since a lost answer may hide a success."""
        judge, since = self.judges[job.rater], job.created.timestamp() - SLACK
        for attempt in range(ATTEMPTS - 1):
            try:
                return judge.submit(lines, job.tag)
            except Failed as failed:
                found = judge.find(job.tag, since)
                if found is not None:
                    return found
                time.sleep(failed.retry_after or 2.0**attempt)
        return judge.submit(lines, job.tag)

    # -- waiting -------------------------------------------------------------------------------------------

    def wait(self, asked: Asked) -> None:
        """Look at open jobs until all have ended; stopped, the same command goes on from here."""
        pause = FIRST_LOOK
        with Progress("batch", sum(len(job.items) for job in self._mine()), note=self.meter.__str__) as progress:
            while self._mine():
                progress.advance(self.collect(asked))
                if self._mine():
                    time.sleep(pause)
                    pause = min(LAST_LOOK, pause * 1.5)

"""Batch jobs: half the price, answers within a day. Submit, poll, collect; begin again after days where it was left.

    write the job down ─▶ send it under its tag ─▶ note the provider's id ─▶ look now and then ─▶ store what it brought
    ─▶ delete the pictures at the provider

A job is written down before the provider hears of it, and carries a tag. Killed in between, the next run looks for the
tag at the provider: it finds the job, or knows that it was never begun. So nothing is paid for twice unnoticed, and
what is asked in an open job is asked nowhere else.

A study of the published size is tens of gigabytes and more tokens than a provider lets anybody queue. So a few jobs are
open at a time and the next is written when one has ended; a job that is turned away for a quota is sent again, smaller.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
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
from evenedit.judges.cache import content_key
from evenedit.judges.calling import CallPolicy, RemoteModelJudge, UnshownError
from evenedit.judges.parsing import JobState, ModelReply
from evenedit.judges.prompt import ModelPrompt
from evenedit.providers.budget import Meter
from evenedit.storage.store import BatchJob, Store, StoredReply

MOST_BYTES = 190_000_000
"""Of one job: OpenAI takes 200 MB, Gemini 2 GB."""
MOST_LINES = 10_000
"""Of one job: OpenAI takes 50,000."""
MOST_OPEN = 4
"""Jobs of one judge that are open at a time."""
QUOTA = re.compile(r"token_limit|enqueued|quota|resource.?exhausted|rate.?limit|too many", re.I)
"""What providers say when a job is turned away because too much is queued: it can be sent again later."""
FIRST_LOOK, LAST_LOOK = 2.0, 60.0
"""Seconds between looks at open jobs, first and at most."""
LOOK_AGAIN = 5.0
"""Seconds after which a job that was not found is looked for once more."""
ATTEMPTS = 3
"""How often it is tried to begin a job."""
SLACK = 3600.0
"""Seconds by which the provider's clock may differ from ours."""


@runtime_checkable
class BatchJudge(RemoteModelJudge, Protocol):
    """A judge whose provider takes batch jobs."""

    takes_batches: bool

    def line(self, ident: str, ask: ModelPrompt) -> dict[str, Any]:
        """Format a call as a line of a job."""
        ...

    def submit(self, lines: Path, tag: str) -> str:
        """Begin a job, tried once; returns the provider's id of it."""
        ...

    def find(self, tag: str, since: float) -> str | None:
        """Return the provider's id of the job submitted under this tag; None if there is none."""
        ...

    def look(self, job: str) -> JobState:
        """Return the state of a job."""
        ...

    def results(self, job: str) -> Iterator[tuple[str, ModelReply | Failed]]:
        """Yield the replies of a finished job by the ids of its lines."""
        ...

    def clean(self, job: str, tag: str) -> None:
        """Delete the files of an ended job at the provider: what was asked, pictures among it, and the answers."""
        ...


def takes_batches(judge: object) -> bool:
    """Return whether a judge supports batch jobs."""
    return isinstance(judge, BatchJudge) and judge.takes_batches


Key = tuple[str, str, str]
"""Rater, revision, and the request or picture."""
QuestionsByKey = Mapping[Key, Sequence[Question]]
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
        asking: CallPolicy,
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
        self._left: dict[tuple[str, str], deque[Item]] = {}
        """What is to be sent when there is room, by rater and revision."""
        self._items: dict[Key, Item] = {}
        """What this run asks by job, in case it is turned away."""
        self._room: dict[str, int] = {}
        """How many lines a judge's provider lets us queue, where it has turned a job away."""
        meter.counters.append(lambda: self._tokens)
        asking.budget.watch(lambda: sum(cost.reserved + cost.used for cost in self._costs.values()))

    # -- what is open --------------------------------------------------------------------------------------

    def waiting(self) -> set[Key]:
        """Return the keys that open jobs contain."""
        return {(job.rater, job.revision, ident) for job in self.store.open_jobs() for ident in job.items}

    def give_up(self, remotes: Iterable[str]) -> None:
        """Wait for these jobs no longer: what they were asked is asked anew."""
        known = {job.remote or job.tag: job for job in self.store.open_jobs()}
        for remote in remotes:
            if remote not in known:
                raise EvenEditError(f"no open batch job is called '{remote}'; open: {', '.join(known) or 'none'}")
            self.store.end_job(known[remote].tag, "given up")

    def _open_jobs(self) -> list[BatchJob]:
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
            log.info(
                f"found the batch job {remote} of {len(job.items):,} ratings, which was submitted but not recorded"
            )

    # -- collecting ----------------------------------------------------------------------------------------

    def collect(self, questions: QuestionsByKey) -> int:
        """Store what ended jobs brought; returns how many ratings that were."""
        with self.store.one_by_one("batch"):
            self._clean_up()
            return self._collect_all(questions)

    def _collect_all(self, questions: QuestionsByKey) -> int:
        count = 0
        for job in self._open_jobs():
            try:
                if job.remote is None:
                    self._recover(job)
                else:
                    count += self._collect(job, job.remote, questions)
            except Failed as failed:  # it stays open
                log.info(f"batch job {job.remote or job.tag} cannot be checked now: {failed}")
            except EvenEditError as error:
                name = job.remote or job.tag
                raise EvenEditError(
                    f"batch job {name} of judge '{job.rater}': {error}",
                    f"if it is lost, request its ratings again with: --give-up {name}",
                ) from None
        return count

    def _collect(self, job: BatchJob, remote: str, questions: QuestionsByKey) -> int:
        judge = self.judges[job.rater]
        state = judge.look(remote)
        if not state.ended:
            return 0
        results = dict(judge.results(remote))
        if not results and QUOTA.search(state.note) and self._turned_away(job, state.note):
            return 0
        answers = list(self._answers(job, results, state, questions))
        self.store.save_answers(answers, self.run_id)
        self.store.end_job(job.tag, state.note, cleaned=False)
        self._clean_up()
        self._costs.get(job.tag, Cost()).reserved = 0.0
        if results and job.rater in self._room:  # try a little more, since what took up the quota may be gone
            self._room[job.rater] += max(1, self._room[job.rater] // 4)
        lost = sum(a.reply.status is Status.FAILED for a in answers)
        note = f", {lost:,} of them failed; the next run repeats them" if lost else ""
        log.info(f"batch job {remote}: {state.note}; {len(answers):,} ratings{note}")
        return len(answers)

    def _answers(
        self,
        job: BatchJob,
        answered: Mapping[str, ModelReply | Failed],
        state: JobState,
        questions_by_key: QuestionsByKey,
    ) -> Iterator[StoredReply]:
        for ident, content in job.items.items():
            answer = answered.get(ident) or Failed(
                Failure.SERVER, f"the batch job ended without an answer ({state.note})"
            )
            questions = questions_by_key.get((job.rater, job.revision, ident), ())
            if isinstance(answer, Failed):
                reply = Reply(Status.FAILED, reason=f"Failed: {answer}")
            else:
                self._count(job, answer)
                reply = self.asking.keep(content, answer, questions, via="batch", job=job.remote or "")
            if questions:  # none where the study no longer asks this
                yield StoredReply(ident, job.rater, job.revision, Kind.VLM, reply)

    def _count(self, job: BatchJob, answered: ModelReply) -> None:
        for way, tokens in zip(("input", "output"), answered.tokens, strict=True):
            self._tokens[way] += tokens
            if job.tag in self._costs:  # what an earlier run began, it reserved
                self._costs[job.tag].used += tokens * self.prices.get(job.rater, {}).get(way, 0.0)

    def _clean_up(self) -> None:
        """Delete what collected jobs left at the provider, by earlier runs too; what cannot be deleted now stays."""
        for job in self.store.collected_jobs():
            if job.rater in self.judges and job.remote is not None:
                try:
                    self.judges[job.rater].clean(job.remote, job.tag)
                except (Failed, EvenEditError) as error:
                    log.info(f"the files of batch job {job.remote} could not be deleted yet: {error}")
                else:
                    self.store.cleaned_job(job.tag)

    def _turned_away(self, job: BatchJob, why: str) -> bool:
        """Put what a job asked back, to be asked in smaller ones or by call; not where nothing smaller can be asked."""
        keys = [(job.rater, job.revision, ident) for ident in job.items]
        open_ = [other for other in self._open_jobs() if other.tag != job.tag]
        room = (sum(len(other.items) for other in open_ if other.rater == job.rater) + len(keys)) // 2
        if not room and not open_:
            return False
        room = max(1, room)  # where other judges' jobs take up the quota, there is room when they have ended
        self._room[job.rater] = room
        items = (self._items[key] for key in keys[::-1] if key in self._items)
        self._left.setdefault((job.rater, job.revision), deque()).extendleft(items)
        if job.tag in self._costs:  # what an earlier run began, it counted
            self.asking.budget.take_back(len(keys))
            self._costs[job.tag].reserved = 0.0
        self.store.end_job(job.tag, f"rejected: {why}", cleaned=job.remote is None)
        log.info(f"{len(keys):,} ratings of {job.rater} were rejected ({why[:200]}); at most {room:,} are queued now")
        return True

    # -- submitting ----------------------------------------------------------------------------------------

    def submit(self, items: Iterable[Item]) -> None:
        """Send what is asked and in no open job, as far as there is room; what the cache knows is stored at once.

        The rest is sent by `wait`.
        """
        for left_over in self.store.folder.glob(".batch-*.jsonl"):  # by a run that was killed
            left_over.unlink()
        with self.store.one_by_one("batch"):
            open_ = self.waiting()
            groups: dict[tuple[str, str], list[Item]] = {}
            for item in items:
                self._items[item.key] = item
                if item.key not in open_ and item.key[0] in self.judges:
                    groups.setdefault(item.key[:2], []).append(item)
            for group, members in groups.items():
                ended = {i for i, status in self.store.answered(*group).items() if status is not Status.FAILED}
                self._left[group] = deque(item for item in members if item.key[2] not in ended)
            self._send_more()

    def _send_more(self) -> None:
        """Send what there is room for."""
        for (rater, revision), left in self._left.items():
            while left and (lines := self._lines_free(rater)):
                job = self._fill(rater, revision, left, lines)
                if job is not None:
                    if not self._send(*job):
                        break  # there is room for nothing at all now
                elif left:  # the budget is spent
                    left.clear()

    def _lines_free(self, rater: str) -> int:
        """Return the number of lines that the next job of a judge may have."""
        open_jobs = [job for job in self._open_jobs() if job.rater == rater]
        if len(open_jobs) >= MOST_OPEN:
            return 0
        room = self._room.get(rater, MOST_LINES)
        return min(MOST_LINES, room if rater not in self._room else room - sum(len(job.items) for job in open_jobs))

    def _fill(self, rater: str, revision: str, left: deque[Item], lines: int) -> tuple[BatchJob, Path] | None:
        """Write the lines of the next job; None when nothing is left to ask, or the budget is spent."""
        judge, reserve = self.judges[rater], self.each.get(rater, 0.0)
        contents: dict[str, str] = {}
        known: list[StoredReply] = []
        tag = f"evenedit-{uuid4().hex}"
        cost = self._costs[tag] = Cost()
        size = 0
        with NamedTemporaryFile("wb", dir=self.store.folder, prefix=".batch-", suffix=".jsonl", delete=False) as file:
            while left:
                item = left[0]
                ident = item.key[2]
                try:
                    ask = judge.render(item.case(), item.questions)
                except UnshownError as error:
                    known.append(StoredReply(ident, rater, revision, Kind.VLM, error.reply))
                    left.popleft()
                    continue
                content = content_key(rater, judge.parameters, ask)
                if (reply := self.asking.known(content, item.questions)) is not None:
                    known.append(StoredReply(ident, rater, revision, Kind.VLM, reply))
                elif self.asking.budget.begin(reserve):
                    cost.reserved += reserve
                    contents[ident] = content
                    size += file.write(json.dumps(judge.line(ident, ask)).encode() + b"\n")
                else:
                    break
                left.popleft()
                if size >= MOST_BYTES or len(contents) >= lines:
                    break
        path = Path(file.name)
        self.store.save_answers(known, self.run_id)
        if not contents:
            path.unlink()
            return None
        return BatchJob(tag, rater, revision, contents, datetime.now(UTC)), path

    def _send(self, job: BatchJob, lines: Path) -> bool:
        """Send a job; return whether there may be room for another, or for a smaller one."""
        self.store.save_job(job, self.run_id)
        try:
            remote = self._submit_once(job, lines)
        except Failed as failed:  # it may have begun all the same: the next run looks for it
            if failed.failure is Failure.RATE_LIMIT and self._turned_away(job, str(failed)):
                return len(job.items) > 1
            log.info(f"a batch job of {len(job.items):,} ratings could not be submitted: {failed}")
            return True
        except EvenEditError as error:
            self.store.end_job(job.tag, f"not accepted: {error}")
            raise
        finally:
            lines.unlink()
        self.store.found_job(job.tag, remote)
        log.info(f"batch job {remote}: {len(job.items):,} ratings of {job.rater} submitted")
        return True

    def _submit_once(self, job: BatchJob, lines: Path) -> str:
        """Begin a job; before it is tried again, it is looked for, since a lost answer may hide a success."""
        judge, since = self.judges[job.rater], job.created.timestamp() - SLACK
        for attempt in range(ATTEMPTS - 1):
            try:
                return judge.submit(lines, job.tag)
            except Failed as failed:
                remote = judge.find(job.tag, since)
                if remote is not None:
                    return remote
                time.sleep(failed.retry_after or 2.0**attempt)
        return judge.submit(lines, job.tag)

    # -- waiting -------------------------------------------------------------------------------------------

    def wait(self, questions: QuestionsByKey) -> None:
        """Poll open jobs and send the rest until all have ended; if stopped, rerun the command to resume."""
        pause = FIRST_LOOK
        planned = sum(len(job.items) for job in self._open_jobs()) + sum(map(len, self._left.values()))
        with Progress("batch", planned, note=self.meter.__str__) as progress:
            while self._open_jobs() or any(self._left.values()):
                ended = self.collect(questions)
                progress.advance(ended)
                with self.store.one_by_one("batch"):
                    self._send_more()
                if self._open_jobs() or any(self._left.values()):
                    pause = FIRST_LOOK if ended else min(LAST_LOOK, pause * 1.5)
                    time.sleep(pause)

"""The rating stage: every judge is asked about every edit that it has not answered yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from PIL.Image import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import ENDING, DamagedImageError, EvenEditError, Failed, Failure
from evenedit.core.images import Pictures
from evenedit.core.interfaces import Case, Reply
from evenedit.core.log import log
from evenedit.core.records import Outcome, Request, Source, Status
from evenedit.design.assignments import Assignment
from evenedit.judges.batch_jobs import Batches, Item
from evenedit.judges.calling import BudgetSpent, CallPolicy, RemoteModelJudge, UnshownError, checked
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.judges.raters import Call, JudgeRater
from evenedit.run.cases import case_of, single_picture, source_ids
from evenedit.run.claims import Claims
from evenedit.run.collecting import Collect
from evenedit.run.executors import MOST_CALLS, limits_of, runs_in_processes
from evenedit.run.executors.threads import Lane, run_in_lanes
from evenedit.run.judge_process import JudgeProcess
from evenedit.run.streak import FailureStreak, Stop
from evenedit.storage.leases import Leases, NoLeases
from evenedit.storage.store import Store, StoredReply

PASSING = frozenset({Failure.RATE_LIMIT, Failure.SERVER, Failure.TIMEOUT})
"""Failures of a service that may pass: a judge stopped by them gets one more chance when the others are done."""


class RatingStage:
    """Asks judges. A judge that keeps failing is stopped; the others continue."""

    def __init__(self, file: StudyFile, store: Store, asking: CallPolicy) -> None:
        self.file, self.store, self.asking = file, store, asking
        self.stops: dict[str, Stop] = {}
        """Judges that were stopped, by id."""
        self.saved = 0
        """Replies that this run has stored."""
        self.leases: Leases = NoLeases()
        """Which ratings are this run's, where several share the study."""
        self._streaks: dict[str, FailureStreak] = {}
        self._processes: dict[str, JudgeProcess] = {}
        """Judges that run in processes of their own, by id."""

    def run(
        self,
        title: str,
        assigned: Sequence[Assignment],
        sources: Mapping[str, Source],
        run_id: int,
        collect: Collect,
        batches: Batches | None = None,
        *,
        by_job: bool = False,
    ) -> None:
        """Ask what is assigned and not answered; wait for the answers of open batch jobs.

        With `by_job`, judges whose provider takes batch jobs are asked by these.
        """
        cases = _Cases(self.file, self.store, sources)
        wanted = [s for s in assigned if cases.is_made(s)]
        if batches is not None:
            batches.collect({s.key: s.questions for s in wanted})
        answered = self.answered(wanted)
        if batches is not None and by_job:
            left = [s for s in wanted if s.key not in answered]
            batches.submit([Item(s.key, partial(cases.case, s), s.questions) for s in left])
            answered = self.answered(wanted)
        waiting = batches.waiting() if batches is not None else set()
        by_batch = batches.judges if batches is not None and by_job else {}
        now = [s for s in wanted if s.key not in waiting and s.rater.id not in by_batch]
        known = self.store.run_of_replies(Status.FAILED)
        todo = [
            s for s in now if s.key not in answered and s.rater.id not in self.stops and known.get(_reply(s)) != run_id
        ]
        note = batches.meter.__str__ if batches is not None else None
        self._claims = Claims(self.leases, _key, partial(self._undone, known))
        with self._in_processes({s.rater for s in todo}):
            self._ask_all(title, todo, len(now), cases, run_id, collect, note)
        for stop in (s for ident, s in self.stops.items() if ident in {a.rater.id for a in todo}):
            log.info(f"{stop}")
        if batches is not None and by_job:
            batches.wait({s.key: s.questions for s in wanted})
        elif waiting:
            log.info(f"{len(waiting):,} ratings are in open batch jobs; a later run collects them")

    def answered(self, assigned: Sequence[Assignment]) -> set[tuple[str, str, str]]:
        """Return rater, revision and subject of all calls that ended, except failures."""
        return {
            (rater, revision, ident)
            for rater, revision in {(s.rater.id, s.revision) for s in assigned}
            for ident, status in self.store.answered(rater, revision).items()
            if status is not Status.FAILED
        }

    def open(self, assigned: Sequence[Assignment]) -> list[Assignment]:
        """Return the assignments whose edit is missing or not rated yet."""
        edits = self.store.edits()
        answered = self.answered(assigned)

        def is_open(assignment: Assignment) -> bool:
            edits_of_case = [edits.get(ident) for ident in assignment.edits]
            if any(edit is None or edit.outcome is Outcome.FAILED for edit in edits_of_case):
                return True
            is_complete = all(edit is not None and edit.outcome is Outcome.EDITED for edit in edits_of_case)
            return is_complete and assignment.key not in answered

        return [s for s in assigned if is_open(s)]

    def _ask_all(
        self,
        title: str,
        todo: Sequence[Assignment],
        total: int,
        cases: _Cases,
        run_id: int,
        collect: Collect,
        note: Callable[[], str] | None,
    ) -> None:
        """Ask, wait for other runs, and retry a judge once whose service failed."""
        self._ask(title, todo, total, cases, run_id, collect, note)
        while back := self._wait_for_other_runs():
            self._ask(title, back, total, cases, run_id, collect, note)
        passed = {ident for ident, stop in self.stops.items() if stop.failure in PASSING} - self._processes.keys()
        retried = [s for s in todo if s.rater.id in passed]
        if retried:
            for ident in {s.rater.id for s in retried}:
                log.info(f"judge '{ident}' is retried: the problem that stopped it may have passed")
                del self.stops[ident], self._streaks[ident]
            answered = self.answered(retried)
            self._ask(title, [s for s in retried if s.key not in answered], total, cases, run_id, collect, note)

    @contextmanager
    def _in_processes(self, raters: Iterable[JudgeRater]) -> Iterator[None]:
        """Run third-party judges in separate processes, since they may hang or crash."""
        limits = limits_of(self.file.sections.executor, remote=False)
        sections = {section.id: section for section in self.file.sections.judges}
        for rater in raters:
            section = sections[rater.id]
            if runs_in_processes("judges", section.kind) and not isinstance(rater.judge, RemoteModelJudge):
                self._processes[rater.id] = JudgeProcess(section.kind, section.settings, self.asking.retries, limits)
        try:
            yield
        finally:
            for process in self._processes.values():
                process.close()
            self._processes.clear()

    def _ask(
        self,
        title: str,
        todo: Sequence[Assignment],
        total: int,
        cases: _Cases,
        run_id: int,
        collect: Collect,
        note: Callable[[], str] | None,
    ) -> None:
        most = self.file.sections.executor.max_failures
        streaks = self._streaks
        for ident in {s.rater.id for s in todo}:
            streaks.setdefault(ident, FailureStreak(f"judge '{ident}'", most))

        def work(assignment: Assignment) -> StoredReply | None:
            streak = streaks[assignment.rater.id]
            return None if streak.stop else self._answer(assignment, cases, streak)

        def on_timeout(assignment: Assignment, limit: float) -> StoredReply:
            streak = streaks[assignment.rater.id]
            reason = f"no answer within {limit:g} s, the time limit of a rating ([executor] timeout)"
            streak.note(Failure.TIMEOUT, reason)
            if isinstance(assignment.rater.judge, PythonJudgeAdapter):
                streak.end(f"a call hangs, and its thread cannot be ended ({reason})", "hanging")
            return _answered(assignment, Reply(Status.FAILED, reason=f"Failed: {reason}"))

        save = partial(self._save, run_id=run_id)
        batches = run_in_lanes(self._lanes(todo, on_timeout), work)
        collect(title, total, total - len(todo), batches, save, note)
        self.stops |= {ident: streak.stop for ident, streak in streaks.items() if streak.stop is not None}

    def _answer(self, assignment: Assignment, cases: _Cases, streak: FailureStreak) -> StoredReply | None:
        rater, questions = assignment.rater, assignment.questions
        failure = ""
        try:
            judge = self._processes.get(rater.id, rater.judge)
            reply = checked(self.asking.reply(rater.id, judge, cases.case(assignment), questions), questions)
        except BudgetSpent:
            return None
        except UnshownError as error:
            return _answered(assignment, error.reply)
        except DamagedImageError as error:
            return _answered(assignment, Reply(Status.FAILED, reason=str(error)))
        except EvenEditError as error:
            streak.end(str(error), mistake=error)
            return None
        except (Exception, *ENDING) as error:
            reply = Reply(Status.FAILED, reason=f"{type(error).__name__}: {error}")
            failure = error.failure if isinstance(error, Failed) else type(error).__name__
        streak.note(failure, reply.reason)
        return _answered(assignment, reply)

    def _lanes(
        self, assigned: Sequence[Assignment], on_timeout: Callable[[Assignment, float], StoredReply]
    ) -> list[Lane[Assignment, StoredReply | None]]:
        """Return one lane per service or process and one for the rest; all end when the budget is spent."""
        executor, lanes = self.file.sections.executor, dict[str, list[Assignment]]()
        for assignment in assigned:
            rater = assignment.rater
            separate = getattr(rater.judge, "remote", False) or rater.id in self._processes
            lanes.setdefault(rater.id if separate else "", []).append(assignment)
        result: list[Lane[Assignment, StoredReply | None]] = []
        for name, lane in lanes.items():
            limit: float | None = limits_of(executor, remote=bool(name)).each
            threads = (executor.calls or MOST_CALLS) if name else executor.workers
            if name in self._processes:  # it keeps the time itself
                limit, threads = None, 1
            result.append(Lane(self._while_affordable(lane), threads, limit, on_timeout))
        return result

    def _while_affordable(self, assigned: Sequence[Assignment]) -> Iterator[Assignment]:
        for assignment in self._claims.these(assigned):
            if self.asking.budget.spent:
                return
            yield assignment

    def _undone(self, known: Mapping[tuple[str, str, str], int], assigned: Sequence[Assignment]) -> list[Assignment]:
        """Return the ratings that no other run has obtained, or tried since this run started."""
        ended: dict[tuple[str, str, str], tuple[Status, int]] = {}
        for rater, revision in {a.key[:2] for a in assigned}:
            ids = [a.subject for a in assigned if a.key[:2] == (rater, revision)]
            ended |= {(i, rater, revision): end for i, end in self.store.ends_of_replies(rater, revision, ids).items()}
        return [
            a
            for a in assigned
            if (end := ended.get(_reply(a))) is None or (end[0] is Status.FAILED and end[1] == known.get(_reply(a)))
        ]

    def _wait_for_other_runs(self) -> list[Assignment]:
        """Wait for the ratings of other runs; return those that were not done."""
        spent = self.asking.budget.spent
        self._claims.held = [a for a in self._claims.held if a.rater.id not in self.stops and not spent]
        return self._claims.wait()

    def _save(self, answers: list[StoredReply | None], run_id: int) -> None:
        completed = [answer for answer in answers if answer is not None]
        self.store.save_answers(completed, run_id=run_id)
        self.leases.release(f"rate {a.rater} {a.revision} {a.request_id}" for a in completed)
        self.saved += len(completed)


class _Cases:
    """The cases for judges, from the store's pictures."""

    def __init__(self, file: StudyFile, store: Store, sources: Mapping[str, Source]) -> None:
        self.file, self.store, self.sources = file, store, sources
        self.edits = store.edits()
        self._edited = {ident for ident, edit in self.edits.items() if edit.outcome is Outcome.EDITED}

    def is_made(self, assignment: Assignment) -> bool:
        """Return whether all outputs of an assignment exist."""
        return self._edited.issuperset(assignment.edits)

    def case(self, assignment: Assignment) -> Case:
        """Return the case that the judge sees."""
        request, images = assignment.request, self.store.images
        if request is None:
            return single_picture(self.file, assignment.call, images.open(assignment.source))
        if assignment.call is Call.SEE:
            return single_picture(self.file, assignment.call, self._output(request))
        outputs = [self._output(request)]
        if assignment.baseline is not None:
            first = assignment.call is Call.BASELINE_FIRST
            outputs.insert(0 if first else 1, self._output(assignment.baseline))
        portraits = Pictures(images, [self.sources[s].image for s in source_ids(request)])
        return case_of(self.file, assignment, request, self.sources, portraits, outputs)

    def _output(self, request: Request) -> Image:
        image = self.edits[request.id].image
        assert image is not None
        return self.store.images.open(image)


def _key(assignment: Assignment) -> str:
    """Return the name of a rating's lease."""
    return "rate " + " ".join(assignment.key)


def _reply(assignment: Assignment) -> tuple[str, str, str]:
    """Return request, rater and revision of a reply."""
    return assignment.subject, assignment.rater.id, assignment.revision


def _answered(assignment: Assignment, reply: Reply) -> StoredReply:
    return StoredReply(assignment.subject, assignment.rater.id, assignment.revision, assignment.rater.kind, reply)

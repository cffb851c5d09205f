"""The rating stage: every judge is asked about every edit that it has not answered yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from PIL.Image import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import ENDING, Damaged, EvenEditError, Failed, Failure
from evenedit.core.images import Pictures
from evenedit.core.interfaces import Case, Reply
from evenedit.core.log import log
from evenedit.core.records import Condition, Outcome, Question, Request, Source, Status
from evenedit.design.assignments import Assignment
from evenedit.judges.asking import Asking, BudgetSpent, Speaker, checked
from evenedit.judges.batch_jobs import Batches, Item
from evenedit.judges.python import GivenJudge
from evenedit.judges.raters import JudgeRater
from evenedit.protocol.rubric import IDENTITY
from evenedit.run.collecting import Collect
from evenedit.run.executors import MOST_CALLS, limits_of, runs_in_processes
from evenedit.run.executors.threads import Lane, in_lanes
from evenedit.run.judge_process import JudgeProcess
from evenedit.run.streak import FailureStreak, Stop
from evenedit.storage.leases import Leases, Unshared
from evenedit.storage.store import Answered, Store

PASSING = frozenset({Failure.RATE_LIMIT, Failure.SERVER, Failure.TIMEOUT})
"""Failures of a service that may pass: a judge stopped by them gets one more chance when the others are done."""


class RatingStage:
    """Asks judges. One that fails again and again is stopped; the others go on."""

    def __init__(self, file: StudyFile, store: Store, asking: Asking) -> None:
        self.file, self.store, self.asking = file, store, asking
        self.stops: dict[str, Stop] = {}
        """Judges that were stopped, by id."""
        self.made = 0
        """Replies that this run has stored."""
        self.leases: Leases = Unshared()
        """Which ratings are this run's, where several share the study."""
        self._elsewhere: list[Assignment] = []
        """Ratings that other runs ask for."""
        self._known: Mapping[tuple[str, str, str], int] = {}
        """The run of each reply there was before, by request, rater and revision."""
        self._processes: dict[str, JudgeProcess] = {}
        """Judges that run in processes of their own, by id."""

    def take(
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
        """Ask what is assigned and not answered; what open batch jobs ask is waited for.

        With `by_job`, judges whose provider takes batch jobs are asked by these.
        """
        cases = _Cases(self.file, self.store, sources)
        wanted = [s for s in assigned if cases.is_made(s)]
        if batches is not None:
            batches.collect({s.key: cases.questions(s) for s in wanted})
        answered = self.answered(wanted)
        if batches is not None and by_job:
            left = [s for s in wanted if s.key not in answered]
            batches.submit([Item(s.key, partial(cases.case, s), cases.questions(s)) for s in left])
            answered = self.answered(wanted)
        waiting = batches.waiting() if batches is not None else set()
        elsewhere = batches.judges if batches is not None and by_job else {}
        now = [s for s in wanted if s.key not in waiting and s.rater.id not in elsewhere]
        todo = [s for s in now if s.key not in answered and s.rater.id not in self.stops]
        note = batches.meter.__str__ if batches is not None else None
        self._known = self.store.run_of_replies() if self.leases.shared else {}
        with self._in_processes({s.rater for s in todo}):
            self._ask_all(title, todo, len(now), cases, run_id, collect, note)
        for stop in (s for ident, s in self.stops.items() if ident in {a.rater.id for a in todo}):
            log.info(f"{stop}")
        if batches is not None and by_job:
            batches.wait({s.key: cases.questions(s) for s in wanted})
        elif waiting:
            log.info(f"{len(waiting):,} ratings are in open batch jobs; a later run collects them once they are there")

    def answered(self, assigned: Sequence[Assignment]) -> set[tuple[str, str, str]]:
        """JudgeRater, revision and request of every call that ended, however, but for failures."""
        return {
            (rater, revision, ident)
            for rater, revision in {(s.rater.id, s.revision) for s in assigned}
            for ident, status in self.store.answered(rater, revision).items()
            if status is not Status.FAILED
        }

    def open(self, assigned: Sequence[Assignment]) -> list[Assignment]:
        """Those of the assigned whose edit is to come, or came and has no answer yet."""
        edits = self.store.edits()
        answered = self.answered(assigned)
        return [
            s
            for s in assigned
            if s.request.id not in edits
            or edits[s.request.id].outcome is Outcome.FAILED
            or (edits[s.request.id].outcome is Outcome.EDITED and s.key not in answered)
        ]

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
        """Ask, wait for what other runs ask, and give a judge whose service failed one more chance."""
        self._ask(title, todo, total, cases, run_id, collect, note)
        while back := self._come_back():
            self._ask(title, back, total, cases, run_id, collect, note)
        passed = {ident for ident, stop in self.stops.items() if stop.failure in PASSING} - self._processes.keys()
        again = [s for s in todo if s.rater.id in passed]
        if again:
            for ident in {s.rater.id for s in again}:
                log.info(f"judge '{ident}' is tried once more: what stopped it may have passed")
                del self.stops[ident]
            answered = self.answered(again)
            self._ask(title, [s for s in again if s.key not in answered], total, cases, run_id, collect, note)

    @contextmanager
    def _in_processes(self, raters: Iterable[JudgeRater]) -> Iterator[None]:
        """Have plug-ins of others judge in processes of their own, since they may hang or break theirs."""
        limits = limits_of(self.file.sections.executor, remote=False)
        sections = {section.id: section for section in self.file.sections.judges}
        for rater in raters:
            section = sections[rater.id]
            if runs_in_processes("judges", section.kind) and not isinstance(rater.judge, Speaker):
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
        streaks = {s.rater.id: FailureStreak(f"judge '{s.rater.id}'", most) for s in todo}

        def work(assignment: Assignment) -> Answered | None:
            streak = streaks[assignment.rater.id]
            return None if streak.stop else self._answer(assignment, cases, streak)

        def late(assignment: Assignment, limit: float) -> Answered:
            streak = streaks[assignment.rater.id]
            reason = f"no answer within {limit:g} s, the time limit of a rating ([executor] timeout)"
            streak.note(Failure.TIMEOUT, reason)
            if isinstance(assignment.rater.judge, GivenJudge):
                streak.end(f"a call hangs, and its thread cannot be ended ({reason})", "hanging")
            return _answered(assignment, Reply(Status.FAILED, reason=f"Failed: {reason}"))

        save = partial(self._save, run_id=run_id)
        batches = in_lanes(self._lanes(todo, late), work)
        collect(title, total, total - len(todo), batches, save, note)
        self.stops |= {ident: streak.stop for ident, streak in streaks.items() if streak.stop is not None}

    def _answer(self, assignment: Assignment, cases: _Cases, streak: FailureStreak) -> Answered | None:
        rater, asked = assignment.rater, cases.questions(assignment)
        failure = ""
        try:
            judge = self._processes.get(rater.id, rater.judge)
            reply = checked(self.asking.reply(rater.id, judge, cases.case(assignment), asked), asked)
        except BudgetSpent:
            return None
        except Damaged as error:
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
        self, assigned: Sequence[Assignment], late: Callable[[Assignment, float], Answered]
    ) -> list[Lane[Assignment, Answered | None]]:
        """A lane for each service or process, and one for all else; each ends when the budget is spent."""
        executor, lanes = self.file.sections.executor, dict[str, list[Assignment]]()
        for assignment in assigned:
            rater = assignment.rater
            own = getattr(rater.judge, "remote", False) or rater.id in self._processes
            lanes.setdefault(rater.id if own else "", []).append(assignment)
        made: list[Lane[Assignment, Answered | None]] = []
        for name, lane in lanes.items():
            limit: float | None = limits_of(executor, remote=bool(name)).each
            threads = (executor.calls or MOST_CALLS) if name else executor.workers
            if name in self._processes:  # it keeps the time itself
                limit, threads = None, 1
            made.append(Lane(self._while_affordable(lane), threads, limit, late))
        return made

    def _while_affordable(self, assigned: Sequence[Assignment]) -> Iterator[Assignment]:
        for assignment in assigned:
            if self.asking.budget.spent:
                return
            if self._claim(assignment):
                yield assignment

    def _claim(self, assignment: Assignment) -> bool:
        """Whether a rating is this run's; what another run has is looked at again later."""
        if not self.leases.shared:
            return True
        if not self.leases.claim(_key(assignment)):
            self._elsewhere.append(assignment)
            return False
        if self._is_done(assignment):
            self.leases.release([_key(assignment)])
            return False
        return True

    def _is_done(self, assignment: Assignment) -> bool:
        """Whether a rating was given, or asked for in vain, by another run since this one looked."""
        rater, revision, ident = assignment.key
        found = self.store.reply_of(ident, rater, revision)
        before = self._known.get((ident, rater, revision))
        return found is not None and (found[0] is not Status.FAILED or found[1] != before)

    def _come_back(self) -> list[Assignment]:
        """Wait for the ratings that other runs ask for; return those that came back undone."""
        held = {_key(a): a for a in self._elsewhere if a.rater.id not in self.stops}
        self._elsewhere = []
        if self.asking.budget.spent:
            return []
        undone = lambda: {key for key, a in held.items() if not self._is_done(a)}  # noqa: E731
        return [held[key] for key in self.leases.wait(list(held), undone)]

    def _save(self, answers: list[Answered | None], run_id: int) -> None:
        came = [answer for answer in answers if answer is not None]
        self.store.save_answers(came, run_id=run_id)
        self.leases.release(f"rate {a.rater} {a.revision} {a.request_id}" for a in came)
        self.made += len(came)


class _Cases:
    """What judges are shown and asked, from the store's pictures."""

    def __init__(self, file: StudyFile, store: Store, sources: Mapping[str, Source]) -> None:
        self.file, self.store, self.sources = file, store, sources
        self.edits = store.edits()
        self._edited = {ident for ident, edit in self.edits.items() if edit.outcome is Outcome.EDITED}

    def is_made(self, assignment: Assignment) -> bool:
        """Whether all is there that is to be shown."""
        baseline = assignment.baseline
        return assignment.request.id in self._edited and (baseline is None or baseline.id in self._edited)

    def questions(self, assignment: Assignment) -> Sequence[Question]:
        """What is asked."""
        if assignment.baseline is not None:
            return (IDENTITY,)
        request = assignment.request
        return self.file.questions_of(request.experiment, self.file.prompt(request.prompt_id))

    def case(self, assignment: Assignment) -> Case:
        """What is shown."""
        request, prompt = assignment.request, self.file.prompt(assignment.request.prompt_id)
        shown = [self._output(request)]
        if assignment.baseline is not None:
            shown.insert(0 if assignment.baseline_first else 1, self._output(assignment.baseline))
        # judges see two portraits in one order, whichever the editor was given: the order is the editor's alone
        sources = request.source_ids[::-1] if request.condition.other_order else request.source_ids
        made = Case(
            Pictures(self.store.images, [self.sources[s].image for s in sources]),
            shown[0],
            prompt,
            prompt.swapped_text if request.condition.other_pronoun and prompt.swapped_text else prompt.text,
            self.sources[sources[0]].first_labels if assignment.rater.sees_labels else None,
            shown[1] if len(shown) > 1 else None,
            wording=self.file.judge_prompt,
            mitigated=self._mitigated(assignment) if assignment.rater.sees_labels else None,
        )
        return assignment.rater.shown(made)

    def _mitigated(self, assignment: Assignment) -> tuple[bool, ...]:
        """Which of the outputs shown were made with the feature prompt."""
        own = assignment.request.condition is Condition.FEATURE
        if assignment.baseline is None:
            return (own,)
        return (False, own) if assignment.baseline_first else (own, False)

    def _output(self, request: Request) -> Image:
        image = self.edits[request.id].image
        assert image is not None
        return self.store.images.open(image)


def _key(assignment: Assignment) -> str:
    """The name of a rating's lease."""
    return "rate " + " ".join(assignment.key)


def _answered(assignment: Assignment, reply: Reply) -> Answered:
    return Answered(assignment.request.id, assignment.rater.id, assignment.revision, assignment.rater.kind, reply)

"""Puts cases before judges: what was asked before comes from the cache, the rest is a call that the budget allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.interfaces import Case, Judge, Reply
from evenedit.core.records import Question, Status
from evenedit.core.retry import retry
from evenedit.judges.cache import ReplyCache, content_key
from evenedit.judges.parsing import ModelReply
from evenedit.judges.prompt import ModelPrompt
from evenedit.protocol.questions import NONE_OF_THESE, YES_NO, answer_positions, set_answers
from evenedit.providers.budget import Account, Budget

BACKOFF = 0.5
"""Seconds before the first retry; doubled each time."""


@runtime_checkable
class RemoteModelJudge(Protocol):
    """A judge that is a model elsewhere: what it is asked and what it answers are kept apart."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All that shapes an answer beside what is asked."""
        ...

    def render(self, case: Case, questions: Sequence[Question]) -> ModelPrompt:
        """Build the prompt about the case."""
        ...

    def answer(self, ask: ModelPrompt) -> ModelReply:
        """Make one call within the budget."""
        ...


class BudgetSpent(Exception):
    """No further call may begin in this run."""


class CallPolicy:
    """How judges and extractors are asked in one run."""

    def __init__(
        self, budget: Budget, cache: ReplyCache | None, retries: int, accounts: Mapping[str, Account] | None = None
    ) -> None:
        self.budget = budget
        self.cache = cache
        self.retries = retries
        self.accounts: Mapping[str, Account] = {} if accounts is None else accounts
        """What the calls of a rater or extractor cost, by its id."""

    def reply(self, rater: str, judge: Judge, case: Case, questions: Sequence[Question]) -> Reply:
        """Return the judge's reply. Raise what the call raises, and BudgetSpent if the budget forbids it."""
        if not isinstance(judge, RemoteModelJudge):
            reservation = self._account(rater).begin()
            if reservation is None:
                raise BudgetSpent
            try:
                retries = 0 if getattr(judge, "tries_again", False) else self.retries
                return retry(lambda: judge.judge(case, questions), retries, BACKOFF)
            finally:
                self._account(rater).settle(reservation, (0, 0))
        ask = judge.render(case, questions)
        key = content_key(rater, judge.parameters, ask)
        if not case.repeat and (known := self.known(key, questions)) is not None:
            return known
        answered = self.answer(rater, judge, ask)
        return self.keep(key, answered, questions, via="call", repeated=case.repeat > 0)

    def words(
        self,
        name: str,
        speaker: RemoteModelJudge,
        ask: ModelPrompt,
        number: int = 0,
        note: Callable[[str, ModelReply], None] = lambda _key, _answered: None,
    ) -> str | Reply:
        """Return a model's answer to a prompt that is not a rating; cached by content and `number`.

        `note` is told of a call that was made, with the key of its content.
        """
        key = content_key(f"{name} {number}" if number else name, speaker.parameters, ask)
        if self.cache and (stored := self.cache.find(key)) is not None:
            return stored[0].words
        answered = self.answer(name, speaker, ask)
        note(key, answered)
        if self.cache:
            self.cache.keep(key, answered)
        return answered.words

    def answer(self, name: str, speaker: RemoteModelJudge, ask: ModelPrompt) -> ModelReply:
        """Make one call within the budget."""
        account = self._account(name)
        reservation = account.begin()
        if reservation is None:
            raise BudgetSpent
        tokens = (0, 0)
        try:
            answered = speaker.answer(ask)
            tokens = answered.tokens
            return answered
        except Failed as failed:
            tokens = failed.tokens
            raise
        finally:
            account.settle(reservation, tokens)

    def _account(self, name: str) -> Account:
        return self.accounts.get(name) or Account(self.budget)

    def known(self, key: str, questions: Sequence[Question]) -> Reply | None:
        """Return the cached reply to the same content, marked as cached."""
        stored = self.cache.find(key) if self.cache else None
        if stored is None:
            return None
        answered, obtained = stored
        reply = answered.conclude(questions)
        return replace(reply, origin={**reply.origin, "via": "cache", "content": key, "obtained": obtained})

    def keep(
        self, key: str, answered: ModelReply, questions: Sequence[Question], *, repeated: bool = False, **origin: str
    ) -> Reply:
        """Keep the answer at once, so that a kill before it is stored does not cost a second call.

        What was asked again on purpose is not kept: it must not stand in for the first answer.
        """
        if self.cache and not repeated:
            self.cache.keep(key, answered)
        reply = answered.conclude(questions)
        return replace(reply, origin={**reply.origin, "content": key, **origin})


class UnshownError(Exception):
    """Why a case cannot be shown to a judge: there is no answer, and nothing is asked."""

    @property
    def reply(self) -> Reply:
        """What is stored in place of an answer."""
        return Reply(Status.UNPARSEABLE, reason=str(self))


def is_number(answer: object) -> bool:
    """Return whether an answer is a number written as a text, which is no position."""
    return isinstance(answer, str) and answer.replace(".", "", 1).isdecimal()


def checked(reply: Reply, questions: Sequence[Question]) -> Reply:
    """Return the reply with answers as they are stored; one with an impossible answer is unparseable, nothing guessed.

    Judges may answer by position (an integer), code or label, to a set by a list of codes.
    """
    if reply.status is not Status.SCORED:
        return replace(reply, values={})
    values: dict[str, int | None] = {}
    try:
        for question in questions:
            is_set, answered = question.sided == "set", reply.values.get(question.id)
            values |= dict.fromkeys(question.columns)
            if is_set and answered is not None:
                cell = answered if isinstance(answered, str) else ";".join(answered) or NONE_OF_THESE
                values |= set_answers(question, cell, answer_positions(question.labels, question.option_texts))
                continue
            positions = answer_positions(*((YES_NO,) if is_set else (question.labels, question.option_texts)))
            for column in (column for column in question.columns if reply.values.get(column) is not None):
                answered = reply.values[column]
                if isinstance(answered, float) or (is_number(answered) and answered not in question.labels):
                    raise KeyError(answered)
                values[column] = positions[str(answered).casefold()]
    except (EvenEditError, KeyError, TypeError) as problem:
        expected = f"expected 1 to {len(question.labels)} or {', '.join(question.labels)}"
        reason = (
            str(problem) if isinstance(problem, EvenEditError) else f"{question.id} is {answered!r:.60}; {expected}"
        )
        return replace(reply, status=Status.UNPARSEABLE, values={}, reason=reason)
    return replace(reply, values=values)

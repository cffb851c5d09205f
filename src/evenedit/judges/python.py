"""Judges that are Python objects, given to `Study.run` and recorded in the study by id and revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import BoundedSemaphore
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case, Reply
from evenedit.core.python_objects import resolve_method, revision_of
from evenedit.core.records import Question, Status


class RecordedJudge:
    """The record of a judge that is a Python object: its ratings can be read, new ones need the object."""

    def __init__(self, *, revision: str = "") -> None:
        self.revision = revision
        """The version of the object that gave the ratings."""

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Refuse to judge: the object itself is not here."""
        raise EvenEditError(
            "this judge is a Python object, which a study cannot store; pass it again from Python: "
            'evenedit.Study.load(FOLDER).run(judges={"ID": JUDGE})'
        )


class PythonJudgeAdapter:
    """An object with `.judge(case, questions)`, or a plain function of these, as a judge."""

    def __init__(self, ident: str, judge: Any) -> None:
        self._judge: Callable[..., Any] = resolve_method("judge", "judge", ident, judge)
        self.revision = revision_of("judge", ident, judge)
        self.remote = bool(getattr(judge, "remote", False))
        """Whether it waits for somebody else's service: it is then called many times at once."""
        self._free = BoundedSemaphore(1000 if self.remote else int(getattr(judge, "threads", 1)))

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Return what the object answered; anything but a reply is unparseable."""
        with self._free:
            reply = self._judge(case, questions)
        if isinstance(reply, Reply):
            return reply
        reason = f"the judge returned {type(reply).__name__}; expected evenedit.Reply"
        return Reply(Status.UNPARSEABLE, reason=reason, raw=repr(reply)[:2000])

"""Failures in a row: an editor or judge that keeps failing in one way is stopped, and the others continue."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from evenedit.core.errors import EvenEditError


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an editor or judge was stopped before its work was done."""

    name: str
    """Who, in words: editor 'x'."""
    reason: str
    failure: str = ""
    """The kind of failure; empty where it was the user's mistake."""
    mistake: EvenEditError | None = None
    """The user's mistake, if that is the reason."""

    def __str__(self) -> str:
        return f"{self.name} was stopped: {self.reason}"


class FailureStreak:
    """Counts the failures of one kind in a row of one editor or judge, which any number of threads report."""

    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.most = most
        """So many in a row stop it; 0: never."""
        self.stop: Stop | None = None
        self.portraits: set[str] = set()
        """The portraits of the failures in a row …"""
        self.prompts: set[str] = set()
        """… and their prompts: what is tried next should differ in both."""
        self._failure = ""
        self._count = 0
        self._lock = Lock()

    def note(self, failure: str, reason: str, portrait: str = "", prompt: str = "") -> None:
        """Record how an attempt ended; `failure` is empty if it succeeded."""
        with self._lock:
            if failure != self._failure:
                self._failure, self._count = failure, 0
                self.portraits.clear()
                self.prompts.clear()
            if not failure:
                return
            self._count += 1
            self.portraits.add(portrait)
            self.prompts.add(prompt)
            if self._count == self.most and self.stop is None:
                self.stop = Stop(self.name, f"{self._count} failures in a row ({failure}): {reason}", failure)

    def end(self, reason: str, failure: str = "", mistake: EvenEditError | None = None) -> None:
        """Stop it now; the first reason is kept."""
        with self._lock:
            if self.stop is None:
                self.stop = Stop(self.name, reason, failure, mistake)

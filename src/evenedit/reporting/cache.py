"""The report of a study that may be running, made anew by a process of its own after something changed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.reporting.writer import APP, DIGEST
from evenedit.stats.digest import digest_of
from evenedit.storage import survey_schema as tables
from evenedit.study.analysis import REPORT, analysis_rules
from evenedit.study.context import StudyContext

PAUSE = 1
"""A report is not made again before this many times the seconds that the last one took: half the time at most."""


@dataclass(frozen=True, slots=True)
class ReportState:
    """How the report stands."""

    digest: str
    """Names the ratings and rules of the report that is there; empty where there is none."""
    making: bool
    """Whether a newer one is being made."""
    problem: str
    """Why the last one could not be made; empty where it could."""


class LiveReport:
    """The pages of a study's report for the web app."""

    def __init__(self, study: StudyContext) -> None:
        self._study = study
        self._folder = study.folder / APP
        self._busy = threading.Lock()
        self._mark: tuple[int, ...] = ()
        self._making, self._problem = False, ""
        self._took = self._finished = 0.0

    def page(self, name: str) -> str | None:
        """Return a page of the report that is there; None where there is no such page."""
        try:
            return (self._folder / name).read_text("utf-8")
        except OSError:
            return None

    def file(self, name: str) -> Path:
        """Return the path of a table, figure or text of the report."""
        return self._study.folder / REPORT / name

    def state(self) -> ReportState:
        """Return how the report stands, and begin a new one where ratings or rules have changed."""
        rested = time.monotonic() - self._finished > PAUSE * self._took
        if rested and self._written() != self._mark and self._busy.acquire(blocking=False):
            threading.Thread(target=self._renew, name="report", daemon=True).start()
        return ReportState(self._digest(), self._making, self._problem)

    def wait(self) -> None:
        """Wait until no report is being made."""
        with self._busy:
            return

    def _digest(self) -> str:
        return self.page(DIGEST) or ""

    def _written(self) -> tuple[int, ...]:
        return self._study.store.mark(tables.DATABASE)

    def _renew(self) -> None:
        """Make the report where it is not that of the ratings that are there now."""
        try:
            mark, started = self._written(), time.monotonic()
            table = self._study.table()
            if table.edits.empty:
                self._problem = "Nothing is edited yet: run the study with 'evenedit run'."
            elif digest_of(table, analysis_rules(self._study.file)) != self._digest():
                self._making = True
                self._make()
                self._finished = time.monotonic()
                self._took = self._finished - started
            self._mark = mark
        except EvenEditError as error:
            self._problem = str(error)
        finally:
            self._making = False
            self._busy.release()

    def _make(self) -> None:
        """Run 'evenedit report' so that people who answer a survey meanwhile do not wait for it."""
        command = [sys.executable, "-m", "evenedit", "report", str(self._study.file.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stderr.strip().splitlines()
        self._problem = (lines[-1] if lines else "The report could not be made.") if done.returncode else ""

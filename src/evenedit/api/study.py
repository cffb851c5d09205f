"""The public study: everything a `StudyContext` has, with its plan, status, results, report and web app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenedit.core.parallel import PARALLEL_THRESHOLD, SecondProcess
from evenedit.study.context import StudyContext

if TYPE_CHECKING:
    import os
    from collections.abc import Collection

    from evenedit.api.results import Results
    from evenedit.operations.plan import RunPlan
    from evenedit.operations.status import StudyStatus
    from evenedit.reporting.case_pages import Pictures

REPORTING = ("evenedit.stats.pipeline", "evenedit.report.contents")
"""The modules that the second process of a report works with."""


class Study(StudyContext):
    """A study on disk."""

    def plan(
        self,
        *,
        power: bool = False,
        edits: int | None = None,
        money: float | None = None,
        people: int | None = None,
        gap: float | None = None,
        face_price: float = 0.0,
    ) -> RunPlan:
        """Return what a run would do: edits, calls, time, disk space and money. Nothing is edited or spent.

        With `power`, its `power` has what the design can show and the best design of the budget: `edits` by each
        editor, `money` in US dollars (portraits cost `face_price`), `people` who do one task each; or the smallest
        design that shows the difference `gap`. Each of these implies `power`.
        """
        from evenedit.operations.plan import make_plan
        from evenedit.operations.power import PowerOptions, with_power

        return with_power(make_plan(self), self, PowerOptions(power, edits, money, people, gap, face_price))

    def status(self) -> StudyStatus:
        """Return how far the study is and what went wrong."""
        from evenedit.operations.status import status_of

        return status_of(self)

    def results(self) -> Results:
        """Return every estimate of the study: those of its report where nothing changed since, else computed now."""
        from evenedit.api.results import Results
        from evenedit.study.analysis import current_results

        return Results.from_record(current_results(self))

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        pictures: Pictures = "thumbnails",
        formats: Collection[str] = (),
    ) -> Path:
        """Write the report and return the path of its page; into `report` in the study's folder by default.

        `pictures` are "none", "thumbnails", or "full": those in full size too. Figures are written as SVG, and as each
        of `formats`: "pdf", "png".
        """
        with SecondProcess(enabled=self.store.count_edits() >= PARALLEL_THRESHOLD, modules=REPORTING) as second:
            from evenedit.reporting.writer import report_study  # while the second process loads its own

            return report_study(self, self.folder / "report" if out is None else Path(out), pictures, formats, second)

    def serve(self, host: str = "127.0.0.1", port: int = 8000, *, background: bool = False) -> Any:
        """Serve the survey, the gallery and the pages for staff until stopped with Ctrl-C.

        With `background` it returns at once an object with `.url`, `.password` (of staff) and `.stop()`. Port 0 takes
        a free one.
        """
        from evenedit.web.server import serve

        return serve(self, host, port, background=background)

"""The handle of a study: its file, its store, its table and its results, and what makes it advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.given import checked
from evenedit.core.second_process import LARGE, SecondProcess
from evenedit.design.study_design import StudyDesign
from evenedit.editors.python import GivenEditor
from evenedit.judges.python import GivenJudge
from evenedit.storage.store import Store
from evenedit.study.given import record, with_given
from evenedit.study.wording import with_wording
from evenedit.survey.answers import PeopleRatings

if TYPE_CHECKING:
    import os

    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices
    from evenedit.ratings.table import RatingTable
    from evenedit.results.results import Results
    from evenedit.run.runner import Runner
    from evenedit.run.summary import RunSummary
    from evenedit.study.plan import RunPlan
    from evenedit.study.report_cases import Pictures
    from evenedit.study.status import StudyStatus


Part = TypeVar("Part", GivenEditor, GivenJudge)
REPORTING = ("evenedit.stats.analyse", "evenedit.report.contents")
"""The modules that the second process of a report works with."""


@dataclass
class Study:
    """A study on disk."""

    file: StudyFile
    """The parsed study.toml, with the editors and judges that were given from Python."""
    store: Store
    """The database and the image folder."""

    @classmethod
    def new(cls, folder: str | os.PathLike[str], template: str = "small", **changes: Any) -> Study:
        """Begin a study in a folder and open it.

        `changes` are tables of study.toml that are merged into the template's; lists take the place of the template's.
        Nothing is written where the study would not be valid.

            Study.new("my-study", template="small", study={"title": "Ours"}, prompts={"include": ["O-01"]})
        """
        from evenedit.config import templates

        return cls.load(templates.write(template, Path(folder), changes=changes))

    @classmethod
    def load(cls, where: str | os.PathLike[str]) -> Study:
        """Open the study in a folder, or the one that a study.toml describes."""
        return cls.of(StudyFile.load(Path(where)))

    @classmethod
    def of(cls, file: StudyFile) -> Study:
        """Open the study of a file that is parsed already."""
        store = Store(file.folder, file.sections.store.url, file.sections.store.images)
        return cls(with_wording(with_given(file, store), store), store)

    @property
    def folder(self) -> Path:
        """The study's folder."""
        return self.file.folder

    @property
    def design(self) -> StudyDesign:
        """The portraits, requests and raters that the study plans."""
        return StudyDesign(self.file, self.store)

    def plan(self) -> RunPlan:
        """Return what a run would do: edits, calls, time, disk space and money. Nothing is edited or spent."""
        from evenedit.study.plan import make_plan

        return make_plan(self)

    def run(
        self,
        editors: Mapping[str, Any] | None = None,
        judges: Mapping[str, Any] | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
    ) -> RunSummary:
        """Make every edit and rating that is still missing; what earlier runs made is not repeated.

        Without `editors` and `judges` those of study.toml run. Given ones take their place, and the study keeps their
        ids and revisions: `editors` by id, each an object with `.edit(images, instruction, seed)` or a function of
        these that returns a PIL image or a `Refusal`; `judges` by id, each an object with `.judge(case, questions)` or
        a function of these that returns a `Reply`. Failed edits do not raise: see the summary that is returned.
        """
        from evenedit.providers.budget import Budget

        return self.runner(Budget(max_calls, max_cost), editors=editors, judges=judges).run()

    def runner(
        self,
        budget: Budget | None = None,
        prices: Prices | None = None,
        editors: Mapping[str, Any] | None = None,
        judges: Mapping[str, Any] | None = None,
    ) -> Runner:
        """Return a runner that edits and rates within this budget, with these objects where any are given."""
        from evenedit.run.runner import Runner

        made = _made(GivenEditor, checked("editor", editors)), _made(GivenJudge, checked("judge", judges))
        if editors is not None or judges is not None:
            record(self.file, self.store, *made)
            self.file = with_given(self.file, self.store)
        return Runner(self.file, self.store, budget, prices, *made)

    def summary(self) -> RunSummary:
        """Return where the planned edits and ratings stand, and why some are missing."""
        from evenedit.run.summary import summarise

        requests = self.design.planned(self.store.sources())
        return summarise(self.store, requests, self.design.assignments(requests, self.design.judges()))

    def status(self) -> StudyStatus:
        """Return how far the study is and what went wrong."""
        from evenedit.study.status import status_of

        return status_of(self)

    def table(self) -> RatingTable:
        """Return every rating so far as the table that the statistics read."""
        people = PeopleRatings(self.file)
        return replace(self.design.table([people]), profiles=people.profiles)

    def results(self) -> Results:
        """Return every estimate of the study: those of its report where nothing changed since, else computed now."""
        from evenedit.study.results import current_results

        return current_results(self)

    def report(self, out: str | os.PathLike[str] | None = None, pictures: Pictures = "thumbnails") -> Path:
        """Write the report and return the path of its page; into `report` in the study's folder by default.

        `pictures` are "none", "thumbnails", or "full": those in full size too.
        """
        with SecondProcess(wanted=self.store.count_edits() >= LARGE, ready=REPORTING) as second:
            from evenedit.study.report import report_study  # while the second process loads its own

            return report_study(self, self.folder / "report" if out is None else Path(out), pictures, second)

    def serve(self, host: str = "127.0.0.1", port: int = 8000, *, background: bool = False) -> Any:
        """Serve the survey, the gallery and the pages for staff until stopped with Ctrl-C.

        With `background` it returns at once an object with `.url`, `.password` (of staff) and `.stop()`. Port 0 takes
        a free one.
        """
        return plugins.view("serve")(self, host, port, background=background)


def _made(kind: type[Part], given: Mapping[str, Any] | None) -> dict[str, Part] | None:
    """The objects given, each in the form that a run uses."""
    return None if given is None else {ident: kind(ident, one) for ident, one in given.items()}

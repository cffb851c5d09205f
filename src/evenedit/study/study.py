"""The handle of a study: its file, its store, its table and its results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evenedit.config.study_file import StudyFile
from evenedit.design.study_design import StudyDesign
from evenedit.storage.store import Store
from evenedit.survey.answers import PeopleRatings

if TYPE_CHECKING:
    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices
    from evenedit.ratings.table import RatingTable
    from evenedit.results.results import Results
    from evenedit.run.runner import Runner


@dataclass(frozen=True)
class Study:
    """A study on disk."""

    file: StudyFile
    """The parsed study.toml."""
    store: Store
    """The database and the image folder."""

    @classmethod
    def load(cls, where: Path) -> Study:
        """Open the study in a folder, or the one that a study.toml describes."""
        return cls.of(StudyFile.load(where))

    @classmethod
    def of(cls, file: StudyFile) -> Study:
        """Open the study of a file that is parsed already."""
        return cls(file, Store(file.folder, file.sections.store.url, file.sections.store.images))

    @cached_property
    def design(self) -> StudyDesign:
        """The portraits, requests and raters that the study plans."""
        return StudyDesign(self.file, self.store)

    def table(self) -> RatingTable:
        """Return every rating so far as the table that the statistics read."""
        return self.design.table([PeopleRatings(self.file)])

    def results(self) -> Results:
        """Return every estimate of the study."""
        from evenedit.study.results import results_of

        return results_of(self, self.table())

    def runner(self, budget: Budget | None = None, prices: Prices | None = None) -> Runner:
        """Return a runner that edits and rates within this budget."""
        from evenedit.run.runner import Runner

        return Runner(self.file, self.store, budget, prices)

    def run(self) -> None:
        """Make every edit and rating that is still missing."""
        self.runner().run()

"""The handle of a study: what it is and what it holds."""

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
    """A study: its file, its store, and what follows from them."""

    file: StudyFile
    store: Store

    @classmethod
    def load(cls, where: Path) -> Study:
        """Open the study in a folder, or of a study file."""
        return cls.of(StudyFile.load(where))

    @classmethod
    def of(cls, file: StudyFile) -> Study:
        """The study of a file that was read."""
        return cls(file, Store(file.folder, file.sections.store.url, file.sections.store.images))

    @cached_property
    def design(self) -> StudyDesign:
        """What the study plans."""
        return StudyDesign(self.file, self.store)

    def table(self) -> RatingTable:
        """Everything rated so far, as the statistics read it."""
        return self.design.table([PeopleRatings(self.file)])

    def results(self) -> Results:
        """Every estimate of the study."""
        from evenedit.study.results import results_of

        return results_of(self, self.table())

    def runner(self, budget: Budget | None = None, prices: Prices | None = None) -> Runner:
        """What makes the study advance."""
        from evenedit.run.runner import Runner

        return Runner(self.file, self.store, budget, prices)

    def run(self) -> None:
        """Edit and rate all that is not there yet."""
        self.runner().run()

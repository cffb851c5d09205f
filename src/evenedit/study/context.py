"""Open a study: its file, its store, its design and its rating table; make its edits and ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from evenedit.config.study_file import StudyFile
from evenedit.core.python_objects import validate_objects
from evenedit.design.study_design import StudyDesign
from evenedit.editors.python import PythonEditorAdapter
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.storage.store import Store
from evenedit.study.python_plugins import (
    checked_instruments,
    record_plugins,
    with_python_plugins,
    with_recorded_questions,
)
from evenedit.survey.answers import PeopleRatings

if TYPE_CHECKING:
    import os

    from evenedit.providers.budget import Budget
    from evenedit.providers.prices import Prices
    from evenedit.ratings.table import RatingTable
    from evenedit.run.runner import Runner
    from evenedit.run.summary import RunSummary


Part = TypeVar("Part", PythonEditorAdapter, PythonJudgeAdapter)


@dataclass
class StudyContext:
    """A study on disk, as every package above `run` uses it; `evenedit.api.study.Study` is the public one."""

    file: StudyFile
    """The parsed study.toml, with the editors and judges that were given from Python."""
    store: Store
    """The database and the image folder."""

    @classmethod
    def new(cls, folder: str | os.PathLike[str], template: str = "small", **changes: Any) -> Self:
        """Begin a study in a folder and open it.

        `changes` are tables of study.toml that are merged into the template's; lists take the place of the template's.
        Nothing is written where the study would not be valid.

            Study.new("my-study", template="small", study={"title": "Ours"}, prompts={"include": ["O-01"]})
        """
        from evenedit.config import templates

        return cls.load(templates.write(template, Path(folder), changes=changes))

    @classmethod
    def load(cls, where: str | os.PathLike[str]) -> Self:
        """Open the study in a folder, or the one that a study.toml describes."""
        return cls.of(StudyFile.load(Path(where), started=True))

    @classmethod
    def of(cls, file: StudyFile) -> Self:
        """Open the study of a file that is parsed already."""
        store = Store(file.folder, file.sections.store.url, file.sections.store.images)
        study = cls(with_recorded_questions(with_python_plugins(file, store), store), store)
        study.design.instruments({})  # raises if one is neither installed nor recorded
        return study

    @property
    def folder(self) -> Path:
        """The study's folder."""
        return self.file.folder

    @property
    def design(self) -> StudyDesign:
        """The portraits, requests and raters that the study plans."""
        return StudyDesign(self.file, self.store)

    def run(
        self,
        editors: Mapping[str, Any] | None = None,
        judges: Mapping[str, Any] | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        *,
        instruments: Mapping[str, Any] | None = None,
    ) -> RunSummary:
        """Make every edit and rating that is still missing; what earlier runs made is not repeated.

        Without `editors` and `judges` those of study.toml run. Given ones take their place, and the study keeps their
        ids and revisions: `editors` by id, each an object with `.edit(images, instruction, seed)` or a function of
        these that returns a PIL image or a `Refusal`; `judges` by id, each an object with `.judge(case, questions)` or
        a function of these that returns a `Reply`. `instruments` are added to those of study.toml: by id, each an
        object with `answers`, `numbers` and `.read(source, edited, context)`. Failed edits do not raise: see the
        summary that is returned.
        """
        from evenedit.providers.budget import Budget

        budget = Budget(max_calls, max_cost)
        return self.runner(budget, editors=editors, judges=judges, instruments=instruments).run()

    def runner(
        self,
        budget: Budget | None = None,
        prices: Prices | None = None,
        editors: Mapping[str, Any] | None = None,
        judges: Mapping[str, Any] | None = None,
        instruments: Mapping[str, Any] | None = None,
    ) -> Runner:
        """Return a runner that edits and rates within this budget, with these objects where any are given."""
        from evenedit.run.runner import Runner

        adapters = (
            _adapt(PythonEditorAdapter, validate_objects("editor", editors)),
            _adapt(PythonJudgeAdapter, validate_objects("judge", judges)),
        )
        objects = checked_instruments(instruments, self.file.rubric)
        if editors is not None or judges is not None or objects is not None:
            record_plugins(self.file, self.store, *adapters, objects)
            self.file = with_python_plugins(self.file, self.store)
        if objects:
            self.design.instruments({}, objects).keep_records()
            self.file = with_recorded_questions(self.file, self.store)
        return Runner(self.file, self.store, budget, prices, *adapters, objects)

    def summary(self) -> RunSummary:
        """Return where the planned edits and ratings stand, and why some are missing."""
        from evenedit.run.summary import summarise

        requests = self.design.planned(self.store.sources())
        return summarise(self.store, requests, self.design.assignments(requests, self.design.judges()))

    def table(self) -> RatingTable:
        """Return every rating so far as the table that the statistics read."""
        people = PeopleRatings(self.file)
        return replace(self.design.table([people]), profiles=people.profiles)


def _adapt(kind: type[Part], objects: Mapping[str, Any] | None) -> dict[str, Part] | None:
    """Wrap each Python object in the adapter that a run uses."""
    return None if objects is None else {ident: kind(ident, one) for ident, one in objects.items()}

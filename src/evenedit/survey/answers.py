"""The participants' answers, read from the survey's database for quality checks, export and the study's ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sa

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core.records import Kind, Rating, Status
from evenedit.protocol.rubric import Rubric, default_rubric
from evenedit.ratings.profiles import RaterProfiles
from evenedit.storage import survey_schema as tables
from evenedit.storage.survey_schema import PREVIEW, answers, displayed, items, participants, slots
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.profiles import rater_profiles
from evenedit.survey.quality import COLUMNS, Quality, assess
from evenedit.survey.questions import APPROPRIATE, compares_outputs, heeded
from evenedit.survey.tasks import CASE, GOLD, INSTRUCTED
from evenedit.survey.visits import VisitEnding

IMPORTED = "import"
"""The platform of ratings imported from a file; their raters hold no slots."""


def exists(folder: Path, url: str | None) -> bool:
    """Return True if the study has a survey database."""
    return url is not None or (folder / tables.DATABASE).exists()


def read(database: SurveyStore, survey: int | None = None, rubric: Rubric | None = None) -> pd.DataFrame:
    """Return all answers of all participants, one row each, without previews.

    `output` is the request that was rated, "" for a question about a pair; there `value` is turned back to 1 = the
    baseline, 2 = the mitigated output, 3 = same. `counted`: submitted in a slot of the study, or imported.
    """
    rubric = rubric or default_rubric()
    paired = compares_outputs(rubric)
    query = (
        sa.select(
            participants.c.pseudonym.label("rater"),
            participants.c.survey,
            participants.c.platform,
            participants.c.ending,
            participants.c.submitted,
            participants.c.task,
            slots.c.id.label("slot_id"),
            items.c.id.label("item"),
            items.c.kind,
            items.c.outputs,
            items.c.expected,
            displayed.c.place,
            displayed.c.swapped,
            answers.c.slot,
            answers.c.question,
            answers.c.value,
            answers.c.milliseconds,
            answers.c.at,
        )
        .select_from(answers)
        .join(participants, participants.c.id == answers.c.participant)
        .join(items, items.c.id == answers.c.item)
        .join(displayed, sa.and_(displayed.c.participant == participants.c.id, displayed.c.item == items.c.id))
        .outerjoin(slots, slots.c.participant == participants.c.id)
        .where(participants.c.platform != PREVIEW)
        .order_by(participants.c.id, displayed.c.place, answers.c.slot, answers.c.question)
    )
    if survey is not None:
        query = query.where(participants.c.survey == survey)
    rows = [_row(r, rubric, paired) for r in database.rows(query)]
    return pd.DataFrame(rows, columns=[*COLUMNS, *EXTRA])


EXTRA = ("asked", "levels", "survey", "task", "place", "slot", "baseline", "mitigated", "ending", "counted", "at")


def _row(row: Any, rubric: Rubric, paired: set[str]) -> dict[str, Any]:
    at = {"A": 1 if row.swapped else 0, "B": 0 if row.swapped else 1}.get(row.slot)
    value = row.value
    if row.question in paired and row.swapped and value in (1, 2):
        value = 3 - value
    low = high = None
    if row.kind == GOLD and at is not None:
        low, high = _known(row.expected.get(str(at), {}), row.question, value, rubric)
    elif row.kind == INSTRUCTED:
        low = high = heeded(row.question, row.expected["value"], rubric)
        value = row.value  # the answer as ticked, whichever image was A
    spec = rubric.spec_by_column.get(row.question)
    submitted = row.ending == VisitEnding.COMPLETED and row.submitted is not None
    return dict(row._mapping) | {
        "output": row.outputs[at] if at is not None else "",
        "value": value,
        "low": low,
        "high": high,
        "asked": spec.id if spec else row.question,
        "levels": None if spec and spec.declared and spec.is_choice else len(spec.question.labels) if spec else 0,
        "baseline": row.outputs[0],
        "mitigated": row.outputs[1] if len(row.outputs) > 1 else "",
        "ending": row.ending or "",
        "counted": submitted and (row.slot_id is not None or row.platform == IMPORTED),
    }


def _known(expected: Mapping[str, Any], column: str, value: int, rubric: Rubric) -> Sequence[int | None]:
    """Return the lowest and the highest right answer of a gold item; of right codes, the given answer or none."""
    spec = rubric.spec_by_column.get(column)
    right: Sequence[Any] | None = expected.get(column, expected.get(spec.id) if spec else None)
    if right is None:
        return None, None
    if not any(isinstance(answer, str) for answer in right):
        return right
    if column == (spec.id if spec else column):
        is_right = rubric.questions[column].labels[value - 1] in right
    else:
        is_right = (column.partition(".")[2] in right) == (value == 1)
    return (value, value) if is_right else (0, 0)


def qualities(frame: pd.DataFrame, section: SurveySection) -> list[Quality]:
    """Return the quality of all raters, survey by survey. Gold items count only if the right answer is known."""
    known = frame.assign(low=frame["low"].astype(float), high=frame["high"].astype(float))
    known = known[~((known["kind"] == GOLD) & known["low"].isna())]
    return [q for _, part in known.groupby("survey", sort=True) for q in assess(part, section.exclude)]


def people_frame(file: StudyFile, database: SurveyStore) -> tuple[pd.DataFrame, list[Quality]]:
    """Return all answers, and the quality of all raters under the study's rules."""
    section = file.sections.survey or SurveySection()
    frame = read(database, rubric=file.rubric)
    return frame, qualities(frame, section)


def counted_answers(frame: pd.DataFrame, quality: Sequence[Quality]) -> pd.DataFrame:
    """Return the answers about cases, without those of people whom the study's rules exclude."""
    excluded = {q.rater for q in quality if q.excluded}
    about_both = (frame["output"] == "") & (frame["question"] != APPROPRIATE.id)
    frame = frame.assign(output=frame["output"].mask(about_both, frame["mitigated"]))
    counted = frame["counted"].astype(bool) & (frame["kind"] == CASE) & (frame["output"] != "")
    return frame[counted & ~frame["rater"].isin(excluded)]


class PeopleRatings:
    """The participants' ratings of the study's cases, without the participants its rules exclude."""

    kind = Kind.HUMAN

    def __init__(self, file: StudyFile) -> None:
        self._file = file

    @cached_property
    def _read(self) -> tuple[pd.DataFrame, RaterProfiles | None]:
        """The answers that count (rater, survey, output, question, value), and what may be shown of who gave them."""
        folder, url, section = self._file.folder, self._file.sections.store.url, self._file.sections.survey
        if section is None or not exists(folder, url):
            return pd.DataFrame(columns=["rater", "survey", "output", "question", "value"]), None
        database = SurveyStore(folder, url, write=False)
        try:
            rated = counted_answers(*people_frame(self._file, database))
            return rated, rater_profiles(section, database, rated)
        finally:
            database.close()

    @property
    def _answers(self) -> pd.DataFrame:
        return self._read[0]

    @property
    def profiles(self) -> RaterProfiles | None:
        """The publishable profiles of the raters; None if there are none."""
        return self._read[1]

    @property
    def raters(self) -> Sequence[str]:
        """Their pseudonyms, sorted."""
        return sorted(map(str, self._answers["rater"].unique()))

    def ratings(self) -> Iterator[Rating]:
        """Return all answers that count."""
        rows = self._answers
        for rater, output, question, value in zip(
            rows["rater"], rows["output"], rows["question"], rows["value"], strict=True
        ):
            yield Rating(str(output), str(question), str(rater), Kind.HUMAN, Status.SCORED, int(value))

"""Lay out the tasks and slots of a survey. They stay as they are once the first participant has arrived.

Previews do not hold a layout in place: they are deleted with the pages they showed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import sqlalchemy as sa

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core.hashing import digest
from evenedit.protocol.rubric import default_rubric
from evenedit.storage.store import Store
from evenedit.storage.survey_schema import PREVIEW, facts, items, participants, slots
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey import previews
from evenedit.survey.questions import instructed_answers
from evenedit.survey.sample import sampled
from evenedit.survey.tasks import Material, TaskItem, compose


def lay_out(database: SurveyStore, section: SurveySection, material: Material, file: StudyFile, store: Store) -> None:
    """Lay out each survey of the study whose design changed, unless a participant has arrived already."""
    for survey in section.surveys:
        cases = sampled(file, store, survey)
        design = section.model_dump(include={"raters_per_item", "items_per_task", "gold", "gold_share", "instructed"})
        edited = sorted(ident for ident in material.edits if material.edited(ident))
        checks = instructed_answers(survey, file.rubric)
        usual = checks == instructed_answers(survey, default_rubric())
        name = digest([cases, design, edited, *([] if usual else [checks])])
        if database.fact(f"layout {survey}") != name:
            make = partial(compose, survey, section, list(cases), material, file)
            database.write(partial(_lay_out_survey, database, survey, section.raters_per_item, name, make))


def _lay_out_survey(
    database: SurveyStore, survey: int, raters: int, name: str, make: Callable[[], list[TaskItem]], db: sa.Connection
) -> None:
    """Store the pages and slots of a survey, in place of those of an earlier design."""
    in_survey = participants.c.survey == survey
    arrived = sa.select(sa.func.count()).select_from(participants).where(in_survey, participants.c.platform != PREVIEW)
    if db.execute(arrived).scalar_one():
        return
    previews.remove(db, in_survey)
    pages = make()
    db.execute(sa.delete(slots).where(slots.c.survey == survey))
    db.execute(sa.delete(items).where(items.c.survey == survey))
    db.execute(sa.insert(items), [asdict(page) for page in pages])
    tasks, numbers = sorted({page.task for page in pages}), range(1, raters + 1)
    db.execute(sa.insert(slots), [{"survey": survey, "task": t, "number": n} for t in tasks for n in numbers])
    known = database.insert(facts).values(key=f"layout {survey}", value=name)
    db.execute(known.on_conflict_do_update(index_elements=["key"], set_={"value": name}))

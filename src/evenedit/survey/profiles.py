"""Who took part, counted so that nobody can be found: the paper's Table 17, and groups of raters for the analysis.

Every page, export and result takes its numbers from here. All of them count the same people, those whose ratings
count: two tables of slightly different people would give away the difference between them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import mean, stdev

import pandas as pd
import sqlalchemy as sa

from evenedit.config.study_file import SurveySection
from evenedit.core.suppression import shown_counts
from evenedit.protocol.questionnaire import ProfileQuestion
from evenedit.ratings.profiles import ParticipantCounts, RaterProfiles, RaterQuestion
from evenedit.storage.survey_schema import participants, profile_consents, profiles
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.questionnaire import ProfileState, all_questions

WITHHELD = "Prefer not to say"
MISSING = "Missing"
"""Nothing is known: not asked, no consent, left open, taken back, or expired."""
OTHER = "Other answers"
"""Answers that may not be shown by themselves."""
ENOUGH_AGES = 10
"""From so many ages on their mean and spread say nothing about one person."""
COUNTS_FACT = "participants"
"""The fact under which the counts stay when the answers behind them are deleted."""
RATED = 1
"""The survey whose ratings are compared by group of rater."""

Answers = Mapping[str, Mapping[str, tuple[str, str | None]]]
"""By question and pseudonym: why there is an answer or none, and the answer."""


def rater_profiles(section: SurveySection, database: SurveyStore, rated: pd.DataFrame) -> RaterProfiles | None:
    """Return the publishable profiles of the raters in a frame of counted ratings; None if there are no profiles."""
    raters = {int(str(survey)): sorted(map(str, part["rater"].unique())) for survey, part in rated.groupby("survey")}
    answers = _answers(database)
    if not answers:
        return _stored_counts(database)
    questions = all_questions(section)
    counts = [c for survey, people in raters.items() for q in questions if (c := _counts(survey, q, people, answers))]
    rated_counts = {c.question: c for c in counts if c.survey == RATED}
    grouped = [
        _grouped(section, q, rated_counts[q.id], raters[RATED], answers) for q in questions if q.id in rated_counts
    ]
    comparable = tuple(question for question in grouped if len(question.groups) > 1)
    named = hmac.new(database.key, repr([asdict(q) for q in comparable]).encode(), hashlib.sha256)
    return RaterProfiles(tuple(counts), comparable, named.hexdigest()[:16])


def keep_counts(section: SurveySection, database: SurveyStore, rated: pd.DataFrame) -> str | None:
    """Return the counts to keep when the answers are deleted."""
    known = rater_profiles(section, database, rated)
    return json.dumps([asdict(c) for c in known.counts], ensure_ascii=False) if known and known.counts else None


def participants_frame(known: RaterProfiles | None) -> pd.DataFrame:
    """Return the counts as a table, one row per answer."""
    rows = [
        {"survey": c.survey, "question": c.question, "answer": answer, "people": n, "share": n / c.people}
        for c in (known.counts if known else ())
        for answer, n in [*c.counts.items(), *([(OTHER, c.rest)] if c.rest else [])]
    ]
    return pd.DataFrame(rows, columns=["survey", "question", "answer", "people", "share"])


def agreed(database: SurveyStore, origin: str) -> tuple[set[int], set[int]]:
    """Return the participants who consented to this origin of data, and those who also consented to ethnicity."""
    rows = database.rows(sa.select(profile_consents).where(profile_consents.c.origin == origin))
    return {r.participant for r in rows if r.agreed}, {r.participant for r in rows if r.sensitive}


def _answers(database: SurveyStore) -> Answers:
    query = sa.select(participants.c.pseudonym, profiles.c.question, profiles.c.state, profiles.c.value)
    by_question: dict[str, dict[str, tuple[str, str | None]]] = {}
    for row in database.rows(query.join(participants, participants.c.id == profiles.c.participant)):
        by_question.setdefault(row.question, {})[row.pseudonym] = (row.state, row.value)
    return by_question


def _stored_counts(database: SurveyStore) -> RaterProfiles | None:
    """Return the counts that were kept when the answers were deleted."""
    stored = database.fact(COUNTS_FACT)
    return RaterProfiles(tuple(ParticipantCounts(**row) for row in json.loads(stored))) if stored else None


def _group(question: ProfileQuestion, person: str, answers: Answers) -> str:
    state, value = answers.get(question.id, {}).get(person, ("", None))
    if value is not None:
        return question.group(value)
    return WITHHELD if state == ProfileState.WITHHELD else MISSING


def _counts(
    survey: int, question: ProfileQuestion, people: Sequence[str], answers: Answers
) -> ParticipantCounts | None:
    groups = Counter(_group(question, person, answers) for person in people)
    disclosed = shown_counts(groups)
    if disclosed is None or set(groups) == {MISSING}:
        return None
    cells = disclosed.cells
    if question.kind == "number":  # bands in their order; others by how many there are
        cells = dict(sorted(cells.items(), key=lambda cell: (cell[0] in (MISSING, WITHHELD), cell[0])))
    numbers = [int(v) for p in people if question.kind == "number" and (v := _value(question, p, answers))]
    known = len(numbers) >= ENOUGH_AGES
    return ParticipantCounts(
        survey,
        question.id,
        question.title,
        disclosed.people,
        dict(cells),
        disclosed.rest,
        round(mean(numbers), 1) if known else None,
        round(stdev(numbers), 1) if known else None,
    )


def _value(question: ProfileQuestion, person: str, answers: Answers) -> str | None:
    return answers.get(question.id, {}).get(person, ("", None))[1]


def _grouped(
    section: SurveySection,
    question: ProfileQuestion,
    counts: ParticipantCounts,
    people: Iterable[str],
    answers: Answers,
) -> RaterQuestion:
    """Return the raters of each group that is large enough; "prefer not to say" is no group."""
    groups = {group: n for group, n in counts.counts.items() if group not in (WITHHELD, MISSING)}
    raters = {person: group for person in people if (group := _group(question, person, answers)) in groups}
    shares = section.questionnaire.population.get(question.id, {}) if section.questionnaire else {}
    return RaterQuestion(question.id, question.title, groups, raters, shares)

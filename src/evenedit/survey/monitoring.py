"""How a survey goes while it runs: pace, time and pay of each person, agreement so far, and what people disagree about.

All of it is interim: it is there to notice trouble, such as a task that takes twice as long as it is paid for or a
question that nobody understands alike, and decides nothing about editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenedit.config.study_file import SurveySection
from evenedit.core.records import Question
from evenedit.protocol.rubric import Rubric
from evenedit.stats.agreement.inter_rater import fleiss, pairwise_agreement
from evenedit.survey.admin import ParticipantStatus
from evenedit.survey.questions import columns_of, survey_questions
from evenedit.survey.tasks import CASE
from evenedit.survey.visits import VisitEnding

DISPUTED = 15
"""The most items that are listed."""
BINS = 8
"""Bars of the chart of times."""


@dataclass(frozen=True, slots=True)
class WorkTime:
    """How long one person took, and what that pays."""

    pseudonym: str
    minutes: float
    """From the task to handing it in, breaks included."""
    active: float | None
    """With an item on the screen; None where no times were taken."""
    per_hour: float | None
    """Pay per hour of the active time; None where the study names no pay."""
    underpaid: bool
    """Whether that is below the minimum that the study names."""


@dataclass(frozen=True, slots=True)
class QuestionAgreement:
    """How far people agree on one question so far."""

    survey: int
    question: str
    title: str
    items: int
    """Items that two people or more have rated."""
    equal: float | None
    """Share of pairs of answers that are equal."""
    kappa: float | None
    """Fleiss' kappa."""


@dataclass(frozen=True, slots=True)
class DisputedItem:
    """An output about which people's answers to one question lie apart."""

    survey: int
    request_id: str
    title: str
    values: tuple[int, ...]
    spread: int
    """Highest minus lowest answer."""


def work_times(people: Sequence[ParticipantStatus], frame: pd.DataFrame, section: SurveySection) -> list[WorkTime]:
    """Return the work times of all who submitted."""
    longest = frame.groupby(["rater", "item"])["milliseconds"].max()
    active = {str(rater): float(sum(part)) / 60_000 for rater, part in longest.groupby(level=0)}
    times = []
    for person in people:
        if person.submitted is None or person.claimed is None or person.ending is not VisitEnding.COMPLETED:
            continue
        spent = active.get(person.pseudonym) or None
        paid = section.pay.per_task * 60 / spent if spent and section.pay.says("per_task") else None
        low = paid is not None and paid < section.pay.minimum_per_hour
        minutes = (person.submitted - person.claimed) / 60
        times.append(WorkTime(person.pseudonym, minutes, spent, paid, low))
    return times


def completions(people: Sequence[ParticipantStatus]) -> list[float]:
    """When people handed in, in order."""
    return sorted(p.submitted for p in people if p.submitted and p.ending is VisitEnding.COMPLETED)


def agreement_so_far(frame: pd.DataFrame, rubric: Rubric) -> list[QuestionAgreement]:
    """Agreement on every question, over answers that count."""
    rows = []
    for (survey, question), part in _cases(frame).groupby(["survey", "question"], sort=True):
        ratings = _by_item(part)
        known = _columns(int(str(survey)), rubric).get(str(question))
        if known is None or not len(ratings):
            continue
        levels = len(known.labels)
        kappa = fleiss(levels)(ratings) if len(ratings) > 1 else None
        row = QuestionAgreement(
            int(str(survey)), known.id, known.title, len(ratings), pairwise_agreement(levels)(ratings), kappa
        )
        rows.append(row)
    return rows


def disputed_items(frame: pd.DataFrame, rubric: Rubric) -> list[DisputedItem]:
    """Return the outputs with the most different ratings on an ordered scale, largest difference first."""
    items = []
    for (survey, output, question), part in _cases(frame).groupby(["survey", "output", "question"], sort=True):
        known = rubric.questions.get(str(question))
        values = tuple(sorted(int(v) for v in part["value"]))
        if known is None or known.sided == "choice" or len(values) < 2 or values[-1] - values[0] < 2 or not output:
            continue
        items.append(DisputedItem(int(str(survey)), str(output), known.title, values, values[-1] - values[0]))
    return sorted(items, key=lambda item: (-item.spread, -float(np.var(item.values)), item.request_id))[:DISPUTED]


def histogram(values: Sequence[float]) -> list[dict[str, float]]:
    """Count values in equal bins from 0 to the maximum; empty without values."""
    if not values:
        return []
    counts, edges = np.histogram(values, bins=BINS, range=(0.0, max(max(values), 1e-9)))
    return [{"low": a, "high": b, "count": n} for a, b, n in zip(edges, edges[1:], counts, strict=False)]


def _columns(survey: int, rubric: Rubric) -> dict[str, Question]:
    return {
        column: stored
        for question in survey_questions(survey, rubric)
        for column, stored in columns_of(question, rubric).items()
    }


def _cases(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["counted"].astype(bool) & (frame["kind"] == CASE)]


def _by_item(part: pd.DataFrame) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """[item, rating]: the answers to each item that two people or more rated; 0 where there are fewer."""
    groups = [list(map(int, g["value"])) for _, g in part.groupby(["item", "output"]) if len(g) > 1]
    width = max(map(len, groups), default=0)
    padded = [values + [0] * (width - len(values)) for values in groups]
    return np.array(padded, dtype=np.int8).reshape(len(groups), width)

"""The budget of a survey: tasks, people, hours, pay per hour, fees and total."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from evenedit.config.study_file import PaySection, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.survey.tasks import gold_per_task


@dataclass(frozen=True, slots=True)
class Part:
    """One survey of the plan."""

    name: str
    items: int
    items_per_task: int
    raters: int = 3
    gold: int = 0
    """Gold items inside a task's items."""

    @property
    def tasks(self) -> int:
        """Tasks that hold all items."""
        return math.ceil(self.items / (self.items_per_task - self.gold))

    @property
    def people(self) -> int:
        """Different people, when each does one task and every task has its raters."""
        return self.tasks * self.raters

    @property
    def ratings(self) -> int:
        """Items times raters, gold apart."""
        return self.items * self.raters


@dataclass(frozen=True, slots=True)
class SurveyBudget:
    """A survey plan with its costs."""

    parts: tuple[Part, ...]
    pay: PaySection
    notes: tuple[str, ...] = field(default=())

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(part.tasks for part in self.parts)

    @property
    def people(self) -> int:
        """The number of participants."""
        return sum(part.people for part in self.parts)

    @property
    def hours(self) -> float:
        """Hours of work by participants."""
        return self.people * self.pay.minutes_per_task / 60

    @property
    def per_hour(self) -> float:
        """Pay per hour of work."""
        return self.pay.per_task * 60 / self.pay.minutes_per_task

    @property
    def rewards(self) -> float:
        """Payments to participants."""
        return self.people * self.pay.per_task

    @property
    def fees(self) -> float:
        """Fees of the platform."""
        return self.rewards * self.pay.fee

    @property
    def total(self) -> float:
        """Payments and fees."""
        return self.rewards + self.fees

    @property
    def warnings(self) -> list[str]:
        """Problems to solve before the survey begins."""
        if self.per_hour >= self.pay.minimum_per_hour:
            return []
        fair = self.pay.minimum_per_hour * self.pay.minutes_per_task / 60
        return [
            f"{self.per_hour:.2f} {self.pay.currency} per hour is below the stated minimum of "
            f"{self.pay.minimum_per_hour:.2f}; pay {fair:.2f} per task or more"
        ]


def of_study(section: SurveySection, available: Mapping[int, int]) -> SurveyBudget:
    """Return the plan of a study's surveys; `available` is the largest number of cases by survey."""
    parts = tuple(
        Part(
            f"survey {survey}",
            min(section.cases_of(survey), available.get(survey, section.cases_of(survey))),
            section.items_per_task,
            section.raters_per_item,
            0 if survey == 2 else gold_per_task(section),
        )
        for survey in section.surveys
    )
    notes = (
        [f"each task has {section.instructed} instructed checks in addition to its items"] if section.instructed else []
    )
    return SurveyBudget(parts, section.pay, tuple(notes))


def preset(name: str) -> SurveyBudget:
    """Return the plan of the paper, or of the human-evaluation plan 002 with or without gold items."""
    plans = tomllib.loads(files(__package__).joinpath("plans.toml").read_text("utf-8"))
    if name not in plans:
        raise EvenEditError(f"no preset is called '{name}'; there are {', '.join(plans)}")
    plan = plans[name]
    return SurveyBudget(tuple(Part(**part) for part in plan["parts"]), PaySection(**plan["pay"]), tuple(plan["notes"]))

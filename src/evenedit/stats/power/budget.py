"""The best design that a budget allows: the one with the smallest detectable contrast of half of the groups."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from evenedit.stats.power.design import Assumptions, Design, planned_tests

PROMPTS, FEW_PROMPTS = range(8, 41), range(2, 8)
"""Prompts of a design, and of one whose budget allows no more: few prompts do not stand for others."""
SEEDS = (1, 2, 3)
TASKS_TRIED = 100
ROUNDING = 1e-9
MOST_EDITS = 1_000_000


@dataclass(frozen=True, slots=True)
class Costs:
    """Dollars of the parts of a diagnosis, over all editors, and of people's labels."""

    edit: float = 0.0
    """An edit by each editor, with the judges' calls about it."""
    face: float = 0.0
    """A portrait, with its null pairs."""
    task: float = 0.0
    """A task of the survey, done by all its raters."""
    items: int = 1
    """Edits of a task; gold items are left out."""

    def of(self, design: Design) -> float:
        """Return the cost of a design; tasks are paid as a whole."""
        tasks = math.ceil(design.labels / self.items)
        return self.edit * design.edits + self.face * sum(design.faces) + self.task * tasks


@dataclass(frozen=True, slots=True)
class DesignBudget:
    """What a design may use."""

    groups: int
    units: tuple[int, ...]
    """The number of faces is a multiple of one of these, of the first if possible."""
    edits: int = MOST_EDITS
    """By each editor."""
    usd: float = math.inf
    labels: int | None = 0
    """Edits that people rate; None for as many as the money is best spent on."""
    costs: Costs = Costs()


def best_design(budget: DesignBudget, a: Assumptions) -> Design | None:
    """Return the best design within the budget, with enough labels if it allows them; None where it allows no test."""
    for prompts, unit in product((PROMPTS, FEW_PROMPTS), budget.units):
        ranked = [(*_rank(d, a), d) for d in _designs(budget, unit, prompts, a.editors)]
        best = min(ranked, key=lambda r: r[:2], default=None)
        if best is not None and best[1] < math.inf:
            return best[2]
    return None


def _rank(design: Design, a: Assumptions) -> tuple[bool, float]:
    """Return what is minimised: the detectable contrast, as people rate it where there are enough labels."""
    tests = planned_tests(design, a)
    test = tests["by people"] or tests["contrast"]
    return tests["by people"] is None, math.inf if test is None else test.detectable


def smallest_design(gap: float, budget: DesignBudget, a: Assumptions) -> Design | None:
    """Return the best design of the fewest edits that shows a contrast of this size; None up to a million edits."""

    def best(edits: int) -> Design | None:
        return best_design(replace(budget, edits=edits), a)

    edits = bisect_left(range(budget.edits), True, key=lambda n: (d := best(n)) is not None and _rank(d, a)[1] <= gap)
    return best(edits) if edits < budget.edits else None


def _designs(budget: DesignBudget, unit: int, prompts: range, editors: int) -> Iterator[Design]:
    """Yield designs with as many faces as the budget allows."""
    costs, usd = budget.costs, budget.usd * (1 - ROUNDING)
    most = math.floor(usd / costs.task) if budget.labels is None else 0
    numbers = [budget.labels or n * costs.items for n in range(0, most + 1, max(1, most // TASKS_TRIED))]
    for labels, prompt, seeds in product(numbers, prompts, SEEDS):
        left = usd - costs.task * math.ceil(labels / costs.items)
        each = costs.edit * prompt * seeds + costs.face
        most_faces = min(budget.edits / (prompt * seeds), left / each if each else math.inf)
        faces = math.floor(most_faces / unit) * unit
        if left >= 0 and faces >= budget.groups:
            design = Design(even_groups(faces, budget.groups), prompt, seeds)
            yield replace(design, labels=min(labels, editors * design.edits))


def even_groups(faces: int, groups: int) -> tuple[int, ...]:
    """Return the faces of each group, as even as possible."""
    return tuple(faces // groups + (at < faces % groups) for at in range(groups))

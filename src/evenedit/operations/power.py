"""Before a study: what its design can show, with the best design of a budget and the paper's beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evenedit.config.sections import PrimarySection, PrimaryTest, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR, ConditionKind, Experiment, Request, Source
from evenedit.operations.plan import RunPlan, all_requests, count_tests, portraits_by_level
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine, judges_only
from evenedit.stats.engine.measures import answers
from evenedit.stats.power.advice import DesignRow, PowerPlan
from evenedit.stats.power.budget import MOST_EDITS, Costs, DesignBudget, best_design, even_groups, smallest_design
from evenedit.stats.power.design import CORRELATION, RATE, SHIFT, Assumptions, Design, even_margin, planned_tests
from evenedit.stats.power.pilot import measured
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext
from evenedit.survey.tasks import gold_per_task

FAMILY = 0.05
"""The familywise error of all tests."""
PAPER = 84, 20
"""Faces and prompts of the paper."""


@dataclass(frozen=True, slots=True)
class PowerOptions:
    """What a design may use, and what it is to show; where nothing is stated, the study's own number of edits."""

    power: bool = False
    edits: int | None = None
    """By each editor."""
    money: float | None = None
    """US dollars for the diagnosis (edits, judges' calls, null pairs) and people's labels."""
    people: int | None = None
    """Participants of the survey, who do one task each."""
    gap: float | None = None
    """The difference between half of the groups and the others that is to be found."""
    face_price: float = 0.0
    """US dollars of a portrait."""


def with_power(plan: RunPlan, study: StudyContext, options: PowerOptions, prices: Path | None = None) -> RunPlan:
    """Return the plan with what its design, the best of the budget and the paper's can show, if options ask for it."""
    if options == PowerOptions(face_price=options.face_price):
        return plan
    return replace(plan, power=_Planner(study, options, study.design.preview_sources()).plan(plan, Prices.load(prices)))


class _Planner:
    """Compares the designs of a study."""

    def __init__(self, study: StudyContext, options: PowerOptions, sources: Mapping[str, Source]) -> None:
        file = study.file
        self.study, self.file, self.options, self.sources = study, file, options, sources
        self.levels = [tuple(portraits_by_level(sources, factor).values()) for factor in file.factors]
        self.editors, survey = file.editors("diagnosis"), file.sections.survey
        groups = self.levels[0]
        if file.sections.experiments.diagnosis is None or not self.editors or len(groups) < 2:
            raise EvenEditError("power needs [experiments.diagnosis], an editor, and portraits of two or more groups")
        if survey is None or 1 not in survey.surveys or survey.population != "diagnosis":
            survey = None if options.people is None else SurveySection()
        self.survey = survey
        self.labels = survey.cases_of(1) if survey else 0
        if survey and options.people is not None:
            self.labels = options.people // survey.raters_per_item * self.items
            if not self.labels:
                raise EvenEditError(f"{survey.raters_per_item} people rate each edit, and --people is {options.people}")
        self.current = self.labelled(Design(groups, len(file.prompts), min(len(e.seeds) for e in self.editors)))

    def labelled(self, design: Design) -> Design:
        """Return the design with the study's labels, at most one for each edit."""
        return replace(design, labels=min(self.labels, len(self.editors) * design.edits))

    @property
    def items(self) -> int:
        """Edits of a task, without gold items."""
        return self.survey.items_per_task - gold_per_task(self.survey) if self.survey else 1

    def plan(self, plan: RunPlan, charges: Prices) -> PowerPlan:
        """Return the best design, the study's and the paper's."""
        (a, tests), costs, gap = self.assumptions(), self.costs(plan, charges), self.options.gap
        budget, words = self.budget(costs)
        searched = budget.edits == MOST_EDITS and math.isinf(budget.usd)
        best = smallest_design(gap, budget, a) if searched and gap else best_design(budget, a)
        paper = self.labelled(Design(even_groups(PAPER[0], len(self.current.faces)), PAPER[1]))
        named = [("best", best), ("this study", self.current), ("the paper's", paper)]
        rows = tuple(DesignRow(n, d, costs.of(d), planned_tests(d, a), even_margin(d, a)) for n, d in named if d)
        return PowerPlan(rows, a, words if best else f"{words} (no design will do)", tests, gap)

    def assumptions(self) -> tuple[Assumptions, str]:
        """Return the assumptions, with variances of the study's own results where it has them, and its tests."""
        primary, others = self.file.sections.primary, max(1, count_tests(self.study, self.sources))
        declared = primary or PrimarySection(tests=[PrimaryTest(outcome="")])
        number = len(declared.tests) * len(self.editors)
        contrast, gap = declared.alpha / number, (FAMILY - declared.alpha if primary else FAMILY) / others
        moved = contrast if primary and any(t.contrast is None for t in primary.tests) else gap
        parameters = 1 + sum(max(0, len(levels) - 1) for levels in self.levels)
        a = Assumptions(RATE, SHIFT, CORRELATION, len(self.editors), parameters, contrast, gap, moved)
        words = f"{number} declared" if primary else "a contrast, if [primary] declares one for each editor"
        words += f", at {contrast:.4f}; one of {others:,} others at {gap:.5f}; a shift at {moved:.5f}"
        table = self.study.table() if self.study.store.count_edits() else None
        if table is None or table.edits.empty:
            return a, words
        rules = analysis_rules(self.file, table.rubric)
        scores = combine(table, judges_only(rules.ensemble), rules.missing)
        outcomes = [t.outcome for t in declared.tests]
        return measured(scores, answers(scores, rules), rules, a, self.current, outcomes), words

    def costs(self, plan: RunPlan, charges: Prices) -> Costs:
        """Return the costs of an edit by each editor, of a portrait and of a task; NaN where a price is not known."""
        requests = [r for r in all_requests(self.study, self.sources) if r.experiment is Experiment.DIAGNOSIS]
        prices = {e.id: charges.edit(e.plugin, e.settings) for e in self.editors} | {NULL_PAIR_EDITOR: 0.0}
        calls = {(line.judge, line.block): line.usd_call for line in plan.judges}
        assigned = self.study.design.assignments(requests, self.study.design.judges(), self.sources)
        parts: list[tuple[Request | None, float | None]] = [(r, prices[r.editor]) for r in requests]
        parts += [(call.request, calls[call.rater.id, call.call.block]) for call in assigned]
        edits = Counter(r.editor for r in requests if r.condition.kind is ConditionKind.BASELINE)
        of_edits, of_faces, task = 0.0, 0.0, 0.0
        for request, price in parts:
            usd = math.nan if price is None else price
            if request is None or request.condition.kind in (ConditionKind.FLOOR, ConditionKind.NULL_PAIR):
                of_faces += usd / len(self.sources)
            else:
                of_edits += usd / edits[request.editor]
        if self.survey and self.survey.pay.per_task:
            pay, raters = self.survey.pay, self.survey.raters_per_item
            task = raters * pay.per_task * (1 + pay.fee) if pay.currency == "USD" else math.nan
        return Costs(of_edits, of_faces + self.options.face_price, task, self.items)

    def budget(self, costs: Costs) -> tuple[DesignBudget, str]:
        """Return what designs may use, and the same in words."""
        options, groups, price = self.options, len(self.current.faces), costs.edit + costs.face + costs.task
        cells = Counter(tuple(s.attributes.get(f.name, "") for f in self.file.factors) for s in self.sources.values())
        complete = len(set(cells.values())) == 1 and len(cells) % groups == 0
        units = (len(cells), groups) if complete else (groups,)
        budget = DesignBudget(groups, units, options.edits or self.current.edits, labels=self.labels, costs=costs)
        words, unlimited = [], options.gap is not None
        if options.money is not None:
            if not price > 0:
                raise EvenEditError(
                    "--money needs all prices in US dollars, and one above 0 (--prices); or use --edits"
                )
            words.append(f"US$ {options.money:,.2f}")
            labels = None if costs.task and options.people is None else self.labels
            budget, unlimited = replace(budget, usd=options.money, labels=labels), price > costs.task
        edits = f"{budget.edits:,} edits by each editor"
        if unlimited and options.edits is None:
            budget, edits = replace(budget, edits=MOST_EDITS), "as many edits as needed"
        if options.people is not None:
            words.append(f"{options.people} people, {self.items} edits each")
        if options.gap is not None:
            words.append(f"to detect {100 * options.gap:g} pp")
        return budget, ", ".join([edits, *words])

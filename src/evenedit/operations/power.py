"""Before a study: what its design can show, with the best design of a budget and the paper's beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evenedit.config.sections import PrimarySection, PrimaryTest, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR, ConditionKind, Experiment, Source
from evenedit.operations.plan import RunPlan, all_requests, count_tests, portraits_by_level
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine, judges_only
from evenedit.stats.engine.measures import answers
from evenedit.stats.power.advice import DesignRow, PowerPlan
from evenedit.stats.power.budget import MOST_EDITS, Budget, Costs, best_design, even_groups, smallest_design
from evenedit.stats.power.design import CORRELATION, RATE, SHIFT, Assumptions, Design
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
    """Return the plan with what its design can show, and what the best of the budget and the paper's could."""
    file, sources = study.file, study.design.preview_sources()
    groups = tuple(portraits_by_level(sources, file.factors[0]).values())
    if file.sections.experiments.diagnosis is None or len(groups) < 2:
        raise EvenEditError("power needs [experiments.diagnosis] and portraits of two or more groups")
    editors, survey = file.editors("diagnosis"), _survey(study, options)
    own = Design(groups, len(file.prompts), min((len(e.seeds) for e in editors), default=1))
    labels = survey.cases_of(1) if survey else 0
    if survey and options.people is not None:
        labels = options.people // survey.raters_per_item * task_items(survey)
    own = replace(own, labels=min(labels, max(1, len(editors)) * own.edits))
    a, tests = _assumptions(study, own, sources)
    costs = _costs(study, plan, own, sources, survey, Prices.load(prices), options.face_price)
    budget, words = _budget(own, costs, options)
    best = None
    for unit in (_unit(sources, [f.name for f in file.factors], len(groups)), len(groups)):
        sized = replace(budget, groups=len(groups), unit=unit)
        unlimited = options.gap if sized.edits == MOST_EDITS and math.isinf(sized.usd) else None
        best = best or (smallest_design(unlimited, sized, a) if unlimited else best_design(sized, a))
    paper = Design(even_groups(PAPER[0], len(groups)), PAPER[1], labels=own.labels)
    designs = {"best": best, "this study": own, "the paper's": paper}
    rows = [DesignRow.of(name, d, costs.of(d), a) for name, d in designs.items() if d]
    return replace(plan, power=PowerPlan(tuple(rows), a, words, tests, options.gap))


def _survey(study: StudyContext, options: PowerOptions) -> SurveySection | None:
    """Return the survey about edits of the diagnosis; None where none is planned."""
    survey = study.file.sections.survey
    if survey is None or 1 not in survey.surveys or survey.population != "diagnosis":
        survey = None if options.people is None else SurveySection()
    if survey and options.people is not None and options.people < survey.raters_per_item:
        raise EvenEditError(
            f"{options.people} people are too few: [survey] has {survey.raters_per_item} rate each edit"
        )
    return survey


def task_items(survey: SurveySection) -> int:
    """Return the edits of a task, without gold items."""
    return survey.items_per_task - gold_per_task(survey)


def _assumptions(study: StudyContext, own: Design, sources: Mapping[str, Source]) -> tuple[Assumptions, str]:
    """Return the assumptions, with variances of the study's own results where it has them, and its tests in words."""
    file, primary = study.file, study.file.sections.primary
    editors, others = max(1, len(file.editors("diagnosis"))), max(1, count_tests(study, sources))
    declared = primary or PrimarySection(tests=[PrimaryTest(outcome="")])
    number, rest = len(declared.tests) * editors, FAMILY - declared.alpha if primary else FAMILY
    contrast, gap = declared.alpha / number, rest / others
    moved = contrast if primary and any(t.contrast is None for t in primary.tests) else gap
    parameters = 1 + sum(max(0, len(portraits_by_level(sources, f)) - 1) for f in file.factors)
    a = Assumptions(RATE, SHIFT, CORRELATION, editors, parameters, contrast, gap, moved)
    words = f"{number} declared" if primary else "a contrast, if [primary] declares one for each editor"
    words += f", at {contrast:.4f}; {others:,} others at {gap:.5f}; a shift at {moved:.5f}"
    table = study.table() if study.store.count_edits() else None
    if table is None or table.edits.empty:
        return a, words
    rules = analysis_rules(file, table.rubric)
    scores = combine(table, judges_only(rules.ensemble), rules.missing)
    return measured(scores, answers(scores, rules), rules, a, own, [t.outcome for t in declared.tests]), words


def _costs(
    study: StudyContext,
    plan: RunPlan,
    own: Design,
    sources: Mapping[str, Source],
    survey: SurveySection | None,
    charges: Prices,
    face_price: float,
) -> Costs:
    """Return the study's costs of an edit by all editors, of a portrait and of a task; NaN where a price is unknown."""
    requests = [r for r in all_requests(study, sources) if r.experiment is Experiment.DIAGNOSIS]
    prices = {e.id: charges.edit(e.plugin, e.settings) for e in study.file.sections.editors} | {NULL_PAIR_EDITOR: 0.0}
    calls = {(line.judge, line.block): line.usd_call for line in plan.judges}
    once = (ConditionKind.FLOOR, ConditionKind.NULL_PAIR)
    parts = [(r.condition.kind in once, prices[r.editor]) for r in requests]
    for call in study.design.assignments(requests, study.design.judges(), sources):
        of_face = call.request is None or call.request.condition.kind in once
        parts.append((of_face, calls[call.rater.id, call.call.block]))
    edits, faces = (sum(math.nan if usd is None else usd for of, usd in parts if of is kind) for kind in (False, True))
    task, items = 0.0, 1
    if survey is not None:
        items = task_items(survey)
        known = survey.pay.currency == "USD" or not survey.pay.per_task
        task = survey.raters_per_item * survey.pay.per_task * (1 + survey.pay.fee) if known else math.nan
    return Costs(edits / own.edits, faces / sum(own.faces) + face_price, task, items)


def _budget(own: Design, costs: Costs, options: PowerOptions) -> tuple[Budget, str]:
    """Return what designs may use, and the same in words."""
    budget, words = Budget(edits=options.edits or own.edits, labels=own.labels, costs=costs), []
    if options.money is not None:
        price = costs.edit + costs.face + costs.task
        if math.isnan(price):
            raise EvenEditError("--money needs all prices in US dollars; give those that are not known with --prices")
        if not price:
            raise EvenEditError("nothing in this study costs money; use --edits instead of --money")
        if options.edits is None and costs.edit + costs.face > 0:
            budget = replace(budget, edits=MOST_EDITS)
        budget = replace(budget, usd=options.money, labels=None if costs.task and not options.people else own.labels)
        words.append(f"US$ {options.money:,.2f}")
    elif options.gap is not None and options.edits is None:
        return replace(budget, edits=MOST_EDITS), f"the fewest edits that show {100 * options.gap:g} pp"
    if budget.edits < MOST_EDITS:
        words.append(f"{budget.edits:,} edits by each editor")
    if options.people is not None:
        words.append(f"{options.people} people")
    return budget, ", ".join(words)


def _unit(sources: Mapping[str, Source], names: Sequence[str], groups: int) -> int:
    """Return the number of faces that fills every combination of labels once, where all have equally many faces."""
    cells = Counter(tuple(source.attributes.get(name, "") for name in names) for source in sources.values())
    return len(cells) if len(set(cells.values())) == 1 and len(cells) % groups == 0 else groups

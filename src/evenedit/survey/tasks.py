"""Divide the items of a survey into tasks that mix all prompts, gold items and instructed checks among the cases."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenedit.config.study_file import StudyFile, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Edit, Experiment, Outcome, Question, Request, is_simulated
from evenedit.protocol.questions import NONE_OF_THESE
from evenedit.protocol.rubric import Rubric
from evenedit.ratings.table import ASKED_BETWEEN
from evenedit.survey.questions import ABOUT, instructed_answers, survey_questions

CASE, GOLD, INSTRUCTED = "case", "gold", "instructed"
TRUTH = "truth"
"""`gold = "truth"`: known answers come from what the simulated editors did."""
TOLERANCE = 1
"""How many steps a gold answer on a scale may be off; an answer to a choice, or on a short scale, must be right."""
FINE = 4
"""Scales with fewer steps are short."""


@dataclass(frozen=True, slots=True)
class TaskItem:
    """One item of a task, as it is laid out."""

    survey: int
    task: int
    kind: str
    """case, gold or instructed."""
    outputs: tuple[str, ...]
    """Request ids: the baseline, then the mitigated one where there is one."""
    expected: Mapping[str, Any] = field(default_factory=dict)
    """Gold: {output: {question: [low, high] or right codes}}; instructed: {"value": answer}; case: nothing."""


@dataclass(frozen=True, slots=True)
class Material:
    """The requests of a study and their edits."""

    requests: Mapping[str, Request]
    edits: Mapping[str, Edit]

    def edited(self, request_id: str) -> bool:
        """Return True if the request has an edited image."""
        return request_id in self.edits and self.edits[request_id].outcome is Outcome.EDITED

    def pairs(self, cases: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the outputs of each case: baseline and mitigated, or the only one."""
        mitigated = {
            _key(r): ident
            for ident, r in self.requests.items()
            if (r.experiment, r.condition.kind) == (Experiment.MITIGATION, ConditionKind.FEATURE) and self.edited(ident)
        }
        pairs = []
        for case in cases:
            both = (case if self.edited(case) else None, mitigated.get(_key(self.requests[case])))
            pairs.append(tuple(ident for ident in both if ident))
        return [pair for pair in pairs if pair]


def gold_per_task(section: SurveySection) -> int:
    """Return the number of gold items of a task: at least one if there is gold, and fewer than its items."""
    if section.gold is None:
        return 0
    return min(max(1, round(section.gold_share * section.items_per_task)), section.items_per_task - 1)


def compose(
    survey: int, section: SurveySection, cases: Sequence[str], material: Material, file: StudyFile
) -> list[TaskItem]:
    """Return the items of all tasks; cases are dealt prompt by prompt, so that raters see several prompts."""
    rubric = file.rubric
    if not survey_questions(survey, rubric):
        raise EvenEditError(
            f"survey {survey} has nothing to ask: no question about {ABOUT[survey]} is answered by people. Remove "
            f'{survey} from survey.surveys, or add "people" to answered_by of a question'
        )
    rng = np.random.default_rng(file.sections.study.seed + survey)
    pages: list[tuple[str, ...]]
    if survey == 3:
        pages = [(case,) for case in cases if material.edited(case)]
    else:
        pages = [pair for pair in material.pairs(cases) if survey == 1 or len(pair) == 2]
    if not pages:
        needed = {1: "edited cases", 2: "cases with a mitigated output", 3: "edited stereotype cases"}[survey]
        raise EvenEditError(f"survey {survey} has nothing to show: there are no {needed}. Try: evenedit run")
    gold = _gold(survey, section, {page[0] for page in pages}, material, file, rng)
    instructed = instructed_answers(survey, rubric)
    each = min(gold_per_task(section), len(gold))
    dealt = _dealt(pages, material, math.ceil(len(pages) / (section.items_per_task - each)), rng)
    items = []
    for task, members in enumerate(dealt, 1):
        items += [TaskItem(survey, task, CASE, page) for page in members]
        for number in range(each):
            page, expected = gold[((task - 1) * each + number) % len(gold)]
            items.append(TaskItem(survey, task, GOLD, page, expected))
        for number in range(section.instructed):
            page = members[int(rng.integers(len(members)))]
            items.append(TaskItem(survey, task, INSTRUCTED, page, {"value": instructed[number % 2]}))
    return items


def order(kinds: Sequence[str], rng: np.random.Generator) -> list[int]:
    """Return a participant's order of items: shuffled, with the instructed checks spread over the task."""
    plain = [i for i, kind in enumerate(kinds) if kind != INSTRUCTED]
    checks = [i for i, kind in enumerate(kinds) if kind == INSTRUCTED]
    rng.shuffle(plain)
    rng.shuffle(checks)
    for number, check in enumerate(checks):  # one in each equal stretch, never the first page
        low, high = (len(plain) * n // (len(checks) or 1) for n in (number, number + 1))
        plain.insert(max(1, int(rng.integers(low, max(high, low + 1)))) if plain else 0, check)
    return plain


def _dealt(
    pages: Sequence[tuple[str, ...]], material: Material, tasks: int, rng: np.random.Generator
) -> list[list[tuple[str, ...]]]:
    by_prompt: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for page in pages:
        by_prompt[material.requests[page[0]].prompt_id].append(page)
    row = []
    for prompt in sorted(by_prompt):
        members = by_prompt[prompt]
        row += [members[i] for i in rng.permutation(len(members))]
    return [row[task::tasks] for task in range(tasks)]


def _gold(
    survey: int,
    section: SurveySection,
    sampled: set[str],
    material: Material,
    file: StudyFile,
    rng: np.random.Generator,
) -> list[tuple[tuple[str, ...], dict[str, dict[str, list[int | str]]]]]:
    """Pages with known answers, none of them a sampled case; in an order drawn by seed.

    A preference (survey 2) has no known answer. Roles (survey 3) are known from the pronoun-swapped control, since the
    sample may hold all of the others; where there is none, survey 3 has no gold.
    """
    if section.gold is None or survey == 2:
        return []
    if section.gold == TRUTH:
        known = _truth(material, file.rubric)
    else:
        known = _answer_key(file.folder / section.gold, material, file.rubric)
    experiment = Experiment.STEREOTYPE if survey == 3 else Experiment.DIAGNOSIS
    conditions = (ConditionKind.BASELINE, ConditionKind.SWAPPED) if survey == 3 else (ConditionKind.BASELINE,)
    first = [i for i, r in material.requests.items() if r.experiment is experiment and r.condition.kind in conditions]
    free = [i for i in first if i not in sampled and i in known]
    pages = [(i,) for i in free if material.edited(i)] if survey == 3 else material.pairs(free)
    pages = [p for p in pages if p[0] in known]
    if not pages and survey == 1:
        raise EvenEditError("[survey] gold: no edited case outside the sample has a known answer")
    pages = [pages[i] for i in rng.permutation(len(pages))]
    return [(p, {str(n): known[output] for n, output in enumerate(p) if output in known}) for p in pages]


def _truth(material: Material, rubric: Rubric) -> dict[str, dict[str, list[int | str]]]:
    if not all(is_simulated(r.editor) for r in material.requests.values()):
        raise EvenEditError('[survey] gold = "truth" needs simulated editors only; give a CSV of known answers')
    return {
        ident: {q: _allowed(rubric.questions.get(q), int(value)) for q, value in edit.detail["truth"].items()}
        for ident, edit in material.edits.items()
        if "truth" in edit.detail
    }


def _allowed(question: Question | None, value: int) -> list[int | str]:
    exact = question is not None and (question.sided == "choice" or len(question.labels) < FINE)
    slack = 0 if exact else TOLERANCE
    return [value - slack, value + slack]


def _answer_key(path: Path, material: Material, rubric: Rubric) -> dict[str, dict[str, list[int | str]]]:
    """Known answers from a CSV with request_id, question, low, high; for choices and sets with codes instead."""
    known: dict[str, dict[str, list[int | str]]] = defaultdict(dict)
    wanted = {spec.id: spec.question for spec in rubric.specs}
    for line, row in _rows(path):
        try:
            ident, question = row["request_id"], row["question"]
            codes = [code.strip() for code in (row.get("codes") or "").split(ASKED_BETWEEN) if code.strip()]
            right: list[int | str] = [*codes] if codes else [int(row["low"]), int(row["high"])]
        except (KeyError, TypeError, ValueError):
            raise EvenEditError(f"{path} line {line}: expected request_id, question, low, high") from None
        if ident not in material.requests:
            raise EvenEditError(f"{path} line {line}: the study has no request '{ident}'")
        allowed = (*wanted[question].labels, NONE_OF_THESE) if question in wanted else ()
        if unknown := [code for code in codes if code not in allowed]:
            raise EvenEditError(
                f"{path} line {line}: '{unknown[0]}' is no answer to {question}; "
                f"use {', '.join(allowed) or 'low and high'}"
            )
        known[ident][question] = right
    return dict(known)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from enumerate(csv.DictReader(file), 2)
    except OSError as error:
        raise EvenEditError(f"[survey] gold: {path} cannot be read: {error.strerror}") from None


def _key(request: Request) -> tuple[Any, ...]:
    """Return the key that a baseline shares with its mitigated output."""
    return request.source_ids, request.prompt_id, request.editor, request.seed

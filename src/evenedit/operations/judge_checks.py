"""Robustness checks of judges: the same edits are rated again under variants of the request.

    as the study (twice) · labels the other way · edited image first · without colour

The replies to each variant are stored under a revision of their own, so a check resumes where it was stopped and
never mixes with the study's ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL.Image import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case
from evenedit.core.log import log
from evenedit.core.provenance import provenance
from evenedit.core.records import Outcome, Request, Source, Status, is_simulated
from evenedit.design import requests as design
from evenedit.judges.prompt import prompt_hash
from evenedit.judges.raters import JudgeRater
from evenedit.results.judge_checks import COMPARED, STUDY, JudgeCheck, VariantCalls
from evenedit.run.runner import Runner
from evenedit.stats.robustness.judge_shifts import Comparison, shifts
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext

SAMPLE = 168
"""The number of edits when none is given: two per face of the published grid."""
NAME = "judges-check"


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of the request to a judge; the defaults are those of the study."""

    id: str
    title: str
    repeat: int = 1
    """The number of the repeat, from 1, so that no cached answer is used."""
    labels_turned: bool = False
    """Whether labels are shown to a blind judge, and hidden from one that sees them."""
    edited_first: bool = False
    """Whether the edited image comes before its source."""
    grey: bool = False
    """Whether the pictures are shown without colour."""

    def rater(self, judge: JudgeRater) -> JudgeRater:
        """Return the judge under this variant; its replies have a revision of their own."""
        wording = prompt_hash(edited_first=True) if self.edited_first else ""
        name = digest([judge.revision, asdict(self), wording])[:8]
        sees = judge.sees_labels != self.labels_turned
        return replace(judge, revision=f"{self.id}-{name}", sees_labels=sees, transform=self.transform)

    def transform(self, case: Case) -> Case:
        """Return the case as this variant shows it."""
        if self.grey:
            case = replace(case, images=[without_colour(i) for i in case.images], edited=without_colour(case.edited))
        return replace(case, edited_first=self.edited_first, repeat=self.repeat)


VARIANTS: tuple[Variant, ...] = (
    Variant("again-1", "as the study"),
    Variant("again-2", "as the study, once more", repeat=2),
    Variant("labels", "labels the other way", labels_turned=True),
    Variant("order", "edited image first", edited_first=True),
    Variant("grey", "without colour", grey=True),
)


def without_colour(image: Image) -> Image:
    """Return the picture in shades of grey."""
    return image.convert("RGB").convert("L").convert("RGB")


def judges_of(study: StudyContext, wanted: Sequence[str] = ()) -> list[JudgeRater]:
    """Return the study's judges, or those that are named."""
    raters = study.design.judges()
    unknown = [name for name in wanted if name not in {r.id for r in raters}]
    if unknown or not raters:
        has = ", ".join(r.id for r in raters) or "none"
        problem = f"unknown judge '{unknown[0]}'" if unknown else "there is no judge to check"
        raise EvenEditError(f"{problem}; the study's judges: {has}")
    return [r for r in raters if not wanted or r.id in wanted]


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """The calls of a check, and how many are answered already."""

    judges: Sequence[JudgeRater]
    requests: Sequence[Request]
    sample: Mapping[str, float]
    sources: Mapping[str, Source]
    done: Mapping[tuple[str, str], int]
    """The number of answers by judge and variant."""

    @property
    def calls(self) -> int:
        """The number of all calls, made or not."""
        return len(self.judges) * len(VARIANTS) * len(self.requests)

    @property
    def left(self) -> int:
        """The number of calls that are still to be made."""
        return self.calls - sum(self.done.values())


def make_plan(study: StudyContext, size: int | None = None, judges: Sequence[str] = ()) -> CheckPlan:
    """Return the plan of a check; the sample of each size is drawn once and stored."""
    chosen = judges_of(study, judges)
    sources = study.store.sources()
    edits = study.store.edits()
    eligible = [
        r for r in design.diagnosis(study.file, sources) if r.id in edits and edits[r.id].outcome is Outcome.EDITED
    ]
    if not eligible:
        raise EvenEditError("the diagnosis has no edits yet. Try: evenedit run " + str(study.file.folder))
    sample = _sample(study, eligible, sources, size)
    requests = [r for r in eligible if r.id in sample]
    done = {
        (judge.id, variant.id): _answered(study, variant.rater(judge), requests)
        for judge in chosen
        for variant in VARIANTS
    }
    return CheckPlan(chosen, requests, sample, sources, done)


def _sample(
    study: StudyContext, eligible: Sequence[Request], sources: Mapping[str, Source], size: int | None
) -> Mapping[str, float]:
    wanted = min(SAMPLE, len(eligible)) if size is None else size
    name = f"{NAME}-{wanted}"
    known = study.store.cases(name)
    if known:
        return known
    if wanted == len(eligible):
        probabilities: Mapping[str, float] = {r.id: 1.0 for r in eligible}
    else:
        probabilities = design.sample_cases(name, study.file, eligible, sources, wanted).probabilities
    study.store.save_cases(name, probabilities)
    return probabilities


def _answered(study: StudyContext, rater: JudgeRater, requests: Sequence[Request]) -> int:
    ended = study.store.answered(rater.id, rater.revision)
    return sum(ended.get(r.id, Status.FAILED) is not Status.FAILED for r in requests)


def ask(runner: Runner, plan: CheckPlan) -> list[str]:
    """Make the remaining calls, one variant after the other; returns which judges were stopped, and why."""
    with runner.store.locked():
        run_id = runner.store.start_run(provenance(study=runner.file.hash, check=NAME))
        for variant in VARIANTS:
            raters = [variant.rater(judge) for judge in plan.judges]
            runner.rerate(f"check: {variant.title}", raters, plan.requests, plan.sources, run_id)
        runner.store.finish_run(run_id)
    if runner.budget.calls:
        log.info(f"calls of this check: {runner.budget}")
    if runner.budget.spent:
        log.info("the budget is spent; the answers so far are stored. Run the check again with more to continue")
    stops = runner.rating.stops.values()
    if not runner.rating.saved:
        for mistake in (stop.mistake for stop in stops if stop.mistake is not None):
            raise mistake
    return [str(stop) for stop in stops]


def evaluate(study: StudyContext, plan: CheckPlan) -> JudgeCheck:
    """Return the estimates of a check from the answers so far."""
    file, rules = study.file, analysis_rules(study.file)
    rows = {r.id: at for at, r in enumerate(plan.requests)}
    rubric = file.rubric
    applicable = np.zeros((len(rows), len(rubric.columns)), dtype=np.bool_)
    for request in plan.requests:
        labels = plan.sources[request.source_ids[0]].attributes
        for question in file.questions_of(request.experiment, file.prompt(request.prompt_id), labels):
            applicable[rows[request.id], [rubric.at(column) for column in question.columns]] = True
    comparisons = [c for judge in plan.judges for c in _comparisons(judge, _answers(study, judge, rows))]
    edits = pd.DataFrame(
        [
            {"source_id": r.source_ids[0], "prompt_id": r.prompt_id}
            | {f.name: plan.sources[r.source_ids[0]].attributes.get(f.name, "") for f in file.factors}
            for r in plan.requests
        ]
    )
    return JudgeCheck(
        provenance=provenance(study=file.hash),
        rules={
            "variants": {v.id: v.title for v in VARIANTS},
            "comparisons": COMPARED,
            "judges told the labels in the study": [j.id for j in plan.judges if j.sees_labels],
            "sampled edits": len(plan.requests),
            "sampled faces": int(edits["source_id"].nunique()),
            "seed of the sample": file.sections.study.seed,
            "intervals": "clustered by source",
            "confidence": rules.confidence,
        },
        sample=dict(plan.sample),
        calls=tuple(_call_outcomes(study, plan)),
        shifts=tuple(shifts(edits, applicable, comparisons, rules, file.factors)),
        simulated=_simulated(file, plan),
    )


def _simulated(file: StudyFile, plan: CheckPlan) -> tuple[str, ...]:
    names = {e.id for e in file.sections.editors} | {j.id for j in plan.judges}
    return tuple(sorted(name for name in names if is_simulated(name)))


def _answers(study: StudyContext, judge: JudgeRater, rows: Mapping[str, int]) -> dict[str, NDArray[np.int8]]:
    """[edit, question] of the study and of every variant; 0 = missing."""
    answers = {}
    for name, rater in {STUDY: judge, **{v.id: v.rater(judge) for v in VARIANTS}}.items():
        rubric = study.file.rubric
        values = np.zeros((len(rows), len(rubric.columns)), dtype=np.int8)
        for rating in study.store.ratings(rater.id, rater.revision):
            if rating.request_id in rows and rating.value is not None and rating.question_id in rubric:
                values[rows[rating.request_id], rubric.at(rating.question_id)] = rating.value
        answers[name] = values
    return answers


def _comparisons(judge: JudgeRater, answers: Mapping[str, NDArray[np.int8]]) -> list[Comparison]:
    """Pair each variant with the first repeat, and visible labels with hidden ones."""
    hidden, visible = ("labels", "again-1") if judge.sees_labels else ("again-1", "labels")
    pairs = {
        "again": ("again-1", "again-2"),
        "since": (STUDY, "again-1"),
        "labels": (hidden, visible),
        "order": ("again-1", "order"),
        "grey": ("again-1", "grey"),
    }
    return [Comparison(judge.id, name, answers[a], answers[b]) for name, (a, b) in pairs.items()]


def _call_outcomes(study: StudyContext, plan: CheckPlan) -> list[VariantCalls]:
    """Count how the calls of each judge and variant ended."""
    wanted = {r.id for r in plan.requests}
    counted = []
    for judge in plan.judges:
        for name, rater in {STUDY: judge, **{v.id: v.rater(judge) for v in VARIANTS}}.items():
            ended = [s for i, s in study.store.answered(rater.id, rater.revision).items() if i in wanted]
            counts = {status: ended.count(status) for status in Status}
            counted.append(
                VariantCalls(
                    judge=judge.id,
                    variant=name,
                    scored=counts[Status.SCORED],
                    refused=counts[Status.REFUSED],
                    unparseable=counts[Status.UNPARSEABLE],
                    failed=counts[Status.FAILED],
                    not_asked=len(wanted) - len(ended),
                    models=study.store.models(rater.id, rater.revision),
                )
            )
    return counted

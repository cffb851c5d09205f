"""Judges asked again, otherwise than in the study: how steady are their scores, and what moves them?

    as the study (twice) · labels the other way · edited image first · without colour

Every way of asking is stored as replies of the judge under a revision of its own, so a check goes on where it was
stopped and never mixes with the study's ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL.Image import Image

from evenedit.config.study_file import Study
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case
from evenedit.core.progress import say
from evenedit.core.provenance import provenance
from evenedit.core.records import Outcome, Request, Source, Status, is_simulated
from evenedit.design import requests as design
from evenedit.design.assignments import Rater
from evenedit.judges.prompt import prompt_hash
from evenedit.protocol import FACTORS, questions_for
from evenedit.ratings.table import QUESTION_IDS
from evenedit.results.judge_checks import COMPARED, STUDY, Asked, Check
from evenedit.run.runner import Pipeline
from evenedit.stats.robustness.judge_shifts import Comparison, shift_tests, shifts
from evenedit.study.results import rules_of

SAMPLE = 168
"""Edits asked about when no number is given: two per face of the published grid."""
NAME = "judges-check"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of asking; where nothing is said it is the study's own."""

    id: str
    title: str
    repeat: int = 1
    """Tells repeats apart; never 0, so that no kept answer is used."""
    labels_turned: bool = False
    """Labels are told to a blind judge, and kept from one that is told them."""
    edited_first: bool = False
    grey: bool = False

    def rater(self, judge: Rater) -> Rater:
        """The judge asked this way: its replies carry a revision of their own."""
        wording = prompt_hash(edited_first=True) if self.edited_first else ""
        name = digest([judge.revision, asdict(self), wording])[:8]
        sees = judge.sees_labels != self.labels_turned
        return replace(judge, revision=f"{self.id}-{name}", sees_labels=sees, shown=self.shown)

    def shown(self, case: Case) -> Case:
        """The case as this variant shows it."""
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
    """Both pictures' luminance alone; notes of a drawn picture stay with it."""
    return image.convert("RGB").convert("L").convert("RGB")


def judges_of(pipeline: Pipeline, wanted: Sequence[str] = ()) -> list[Rater]:
    """The study's judges, or those named."""
    raters = pipeline.raters()
    unknown = [name for name in wanted if name not in {r.id for r in raters}]
    if unknown or not raters:
        has = ", ".join(r.id for r in raters) or "none"
        asked = f"judge '{unknown[0]}' was asked for" if unknown else "there is no judge to check"
        raise EvenEditError(f"{asked}; the study's judges: {has}")
    return [r for r in raters if not wanted or r.id in wanted]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a check would ask, and what is answered already."""

    judges: Sequence[Rater]
    requests: Sequence[Request]
    sample: Mapping[str, float]
    sources: Mapping[str, Source]
    done: Mapping[tuple[str, str], int]
    """Answers there are, by judge and variant."""

    @property
    def calls(self) -> int:
        """All calls, made or not."""
        return len(self.judges) * len(VARIANTS) * len(self.requests)

    @property
    def left(self) -> int:
        """Calls still to be made."""
        return self.calls - sum(self.done.values())


def make_plan(pipeline: Pipeline, size: int | None = None, judges: Sequence[str] = ()) -> Plan:
    """Draw the sample, once and for all for its size, and count the calls."""
    chosen = judges_of(pipeline, judges)
    sources = pipeline.store.sources()
    edits = pipeline.store.edits()
    eligible = [
        r for r in design.diagnosis(pipeline.study, sources) if r.id in edits and edits[r.id].outcome is Outcome.EDITED
    ]
    if not eligible:
        raise EvenEditError(
            "there is no edit of the diagnosis to ask about yet. Try: evenedit run " + str(pipeline.study.folder)
        )
    sample = _sample(pipeline, eligible, sources, size)
    requests = [r for r in eligible if r.id in sample]
    done = {
        (judge.id, variant.id): _answered(pipeline, variant.rater(judge), requests)
        for judge in chosen
        for variant in VARIANTS
    }
    return Plan(chosen, requests, sample, sources, done)


def _sample(
    pipeline: Pipeline, eligible: Sequence[Request], sources: Mapping[str, Source], size: int | None
) -> Mapping[str, float]:
    wanted = min(SAMPLE, len(eligible)) if size is None else size
    name = f"{NAME}-{wanted}"
    known = pipeline.store.cases(name)
    if known:
        return known
    if wanted == len(eligible):
        probabilities: Mapping[str, float] = {r.id: 1.0 for r in eligible}
    else:
        probabilities = design.sample_cases(name, pipeline.study, eligible, sources, wanted).probabilities
    pipeline.store.save_cases(name, probabilities)
    return probabilities


def _answered(pipeline: Pipeline, rater: Rater, requests: Sequence[Request]) -> int:
    ended = pipeline.store.answered(rater.id, rater.revision)
    return sum(ended.get(r.id, Status.FAILED) is not Status.FAILED for r in requests)


def ask(pipeline: Pipeline, plan: Plan) -> None:
    """Make the calls that are still to be made, one variant after the other."""
    with pipeline.store.locked():
        run_id = pipeline.store.start_run(provenance(study=pipeline.study.hash, check=NAME))
        pipeline.watch(plan.judges)
        for variant in VARIANTS:
            raters = [variant.rater(judge) for judge in plan.judges]
            pipeline.ask_again(f"check: {variant.title}", raters, plan.requests, plan.sources, run_id)
        pipeline.store.finish_run(run_id)
    if pipeline.budget.calls:
        say(f"calls of this check: {pipeline.budget}")
    if pipeline.budget.spent:
        say("the budget is spent: what was answered is stored; check again with more to go on")


def evaluate(pipeline: Pipeline, plan: Plan) -> Check:
    """What the answers there are say about the judges."""
    study, rules = pipeline.study, rules_of(pipeline.study)
    rows = {r.id: at for at, r in enumerate(plan.requests)}
    asked = np.zeros((len(rows), len(QUESTION_IDS)), dtype=np.bool_)
    for request, at in ((r, rows[r.id]) for r in plan.requests):
        for question in questions_for(request.experiment, study.prompt(request.prompt_id)):
            asked[at, QUESTION_IDS.index(question.id)] = True
    comparisons = [c for judge in plan.judges for c in _comparisons(judge, _answers(pipeline, judge, rows))]
    edits = pd.DataFrame(
        [
            {"source_id": r.source_ids[0], "prompt_id": r.prompt_id} | _labels(plan.sources[r.source_ids[0]])
            for r in plan.requests
        ]
    )
    return Check(
        provenance=provenance(study=study.hash),
        rules={
            "variants": {v.id: v.title for v in VARIANTS},
            "comparisons": COMPARED,
            "judges told the labels in the study": [j.id for j in plan.judges if j.sees_labels],
            "sampled edits": len(plan.requests),
            "sampled faces": int(edits["source_id"].nunique()),
            "seed of the sample": study.file.study.seed,
            "intervals": f"bootstrap(source, {rules.draws})",
            "permutations": rules.permutations,
            "seed": rules.seed,
            "confidence": rules.confidence,
        },
        sample=dict(plan.sample),
        asked=tuple(_asked(pipeline, plan)),
        shifts=tuple(shifts(edits, asked, comparisons, rules)),
        tests=tuple(shift_tests(edits, asked, comparisons, rules)),
        simulated=_simulated(study, plan),
    )


def _labels(source: Source) -> dict[str, str]:
    return {f.id: source.attributes.get(f.id, "") for f in FACTORS}


def _simulated(study: Study, plan: Plan) -> tuple[str, ...]:
    names = {e.id for e in study.file.editors} | {j.id for j in plan.judges}
    return tuple(sorted(name for name in names if is_simulated(name)))


def _answers(pipeline: Pipeline, judge: Rater, rows: Mapping[str, int]) -> dict[str, NDArray[np.int8]]:
    """[edit, question] of the study and of every variant; 0 = missing."""
    found = {}
    for name, rater in {STUDY: judge, **{v.id: v.rater(judge) for v in VARIANTS}}.items():
        values = np.zeros((len(rows), len(QUESTION_IDS)), dtype=np.int8)
        for rating in pipeline.store.ratings(rater.id, rater.revision):
            if rating.request_id in rows and rating.value is not None:
                values[rows[rating.request_id], QUESTION_IDS.index(rating.question_id)] = rating.value
        found[name] = values
    return found


def _comparisons(judge: Rater, answers: Mapping[str, NDArray[np.int8]]) -> list[Comparison]:
    """Against the first repeat, asked in the same sitting; labels shown against not shown, whatever the study does."""
    blind, told = ("labels", "again-1") if judge.sees_labels else ("again-1", "labels")
    pairs = {
        "again": ("again-1", "again-2"),
        "since": (STUDY, "again-1"),
        "labels": (blind, told),
        "order": ("again-1", "order"),
        "grey": ("again-1", "grey"),
    }
    return [Comparison(judge.id, name, answers[a], answers[b]) for name, (a, b) in pairs.items()]


def _asked(pipeline: Pipeline, plan: Plan) -> list[Asked]:
    wanted = {r.id for r in plan.requests}
    found = []
    for judge in plan.judges:
        for name, rater in {STUDY: judge, **{v.id: v.rater(judge) for v in VARIANTS}}.items():
            ended = [s for i, s in pipeline.store.answered(rater.id, rater.revision).items() if i in wanted]
            counts = {status: ended.count(status) for status in Status}
            found.append(
                Asked(
                    judge=judge.id,
                    variant=name,
                    scored=counts[Status.SCORED],
                    refused=counts[Status.REFUSED],
                    unparseable=counts[Status.UNPARSEABLE],
                    failed=counts[Status.FAILED],
                    not_asked=len(wanted) - len(ended),
                    models=pipeline.store.models(rater.id, rater.revision),
                )
            )
    return found

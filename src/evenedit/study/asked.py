"""What a study asked of editors, judges and people, for the appendix of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from evenedit.core.interfaces import Case
from evenedit.core.records import Condition, Experiment, Kind, Prompt, Question, Request, Source
from evenedit.judges.asking import Speaker
from evenedit.judges.feature_prompts import extractor_id
from evenedit.judges.raters import JudgeRater
from evenedit.protocol.prompts import FLOOR
from evenedit.protocol.rubric import IDENTITY
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.asked import Asked, EditorUsed, FeatureText, JudgePrompt, JudgeUsed
from evenedit.study.judged_cases import judged_cases
from evenedit.study.study import Study
from evenedit.survey.cost import SurveyBudget, of_study
from evenedit.survey.tasks import gold_per_task

PICTURE = "[picture]"
"""Stands for a picture in the words that a judge was sent."""


def asked_of(study: Study, scores: Scores) -> Asked:
    """Return what stands behind the edits and ratings of a study's table."""
    table, sources = scores.table, study.store.sources()
    known = study.store.requests()
    requests = [known[ident] for ident in table.edits["request_id"] if ident in known]
    raters = [rater for rater in study.design.judges() if _answered(table, rater.id)]
    return Asked(
        prompts=tuple(_prompts(study, requests)),
        editors=tuple(_editors(requests)),
        feature_prompts=tuple(_features(study, requests, sources)),
        questions=tuple(_questions(study, table)),
        judges=tuple(_judges(study, raters)),
        judge_prompts=tuple(_judge_prompts(study, requests, sources, raters)),
        survey=_survey(study, table),
        cases=tuple(judged_cases(study, scores, raters)),
    )


def _answered(table: RatingTable, rater: str) -> bool:
    return rater in table.raters and bool((table.values[table.raters.index(rater)] > 0).any())


def _prompts(study: Study, requests: Sequence[Request]) -> Iterator[Prompt]:
    used = {request.prompt_id for request in requests}
    every = {p.id: p for p in (FLOOR, *study.file.wino, *study.file.prompts)}
    order = [*study.file.prompts, *study.file.wino, FLOOR]
    yield from (every[ident] for ident in dict.fromkeys(p.id for p in order) if ident in used)


def _editors(requests: Sequence[Request]) -> Iterator[EditorUsed]:
    """Each editor and each of its settings; settings are compared as they are printed."""
    rows: dict[tuple[str, str], list[Request]] = {}
    for request in requests:
        rows.setdefault((request.editor, repr(sorted(request.settings.items()))), []).append(request)
    for (editor, _), made in rows.items():
        yield EditorUsed(editor, dict(made[0].settings), tuple(sorted({r.seed for r in made})), len(made))


def _features(study: Study, requests: Sequence[Request], sources: Mapping[str, Source]) -> Iterator[FeatureText]:
    """The feature prompts that stood before a request, by portrait."""
    section = study.file.sections.experiments.mitigation
    used = [r.source_ids[0] for r in requests if r.condition is Condition.FEATURE]
    if section is None or not used:
        return
    texts = study.design.feature_texts(section)
    written = [(e, study.store.features(e)) for e in (extractor_id(x.kind, x.settings) for x in section.extractors)]
    for ident in (ident for ident in sources if ident in set(used)):
        extractor, flags = next(
            ((e, found[ident][1]) for e, found in written if ident in found and found[ident][0] == texts[ident]),
            ("", []),
        )
        labels = sources[ident].attributes
        group = {f.name: labels[f.name] for f in study.file.factors if labels.get(f.name)}
        yield FeatureText(ident, group, extractor, texts[ident], tuple(flags), used.count(ident))


def _questions(study: Study, table: RatingTable) -> Iterator[Question]:
    """The questions that judges, people or reviewers answered; instruments are asked nothing in words."""
    asked = [at for at, kind in enumerate(table.kinds) if kind is not Kind.INSTRUMENT]
    for position, question in enumerate(study.file.questions.values()):
        if asked and bool((table.values[asked][:, :, position] > 0).any()):
            yield question


def _judges(study: Study, raters: Sequence[JudgeRater]) -> Iterator[JudgeUsed]:
    sections = {section.id: section for section in study.file.sections.judges}
    for rater in raters:
        section = sections[rater.id]
        yield JudgeUsed(
            rater.id,
            section.kind,
            dict(section.settings),
            not rater.sees_labels,
            study.store.models(rater.id, rater.revision),
        )


@dataclass(frozen=True, slots=True)
class _SampledCase:
    """The first request of a kind of case."""

    about: str
    request: Request
    pairwise: bool = False


def _samples(study: Study, requests: Sequence[Request]) -> Iterator[_SampledCase]:
    single = [r for r in requests if r.experiment is not Experiment.STEREOTYPE]
    aged = [r for r in single if study.file.prompt(r.prompt_id).target_years]
    plain = [r for r in single if not study.file.prompt(r.prompt_id).target_years]
    pairs = [r for r in requests if r.experiment is Experiment.STEREOTYPE]
    section = study.file.sections.experiments.mitigation
    compared = [r for r in single if r.experiment is Experiment.MITIGATION] if section and section.pairwise else []
    for about, found, pairwise in (
        ("an edit of one portrait", plain, False),
        ("an edit of one portrait by a prompt with a target age", aged, False),
        ("an edit of two portraits", pairs, False),
        ("two outputs of one portrait", compared, True),
    ):
        if found:
            yield _SampledCase(about, found[0], pairwise)


def _judge_prompts(
    study: Study, requests: Sequence[Request], sources: Mapping[str, Source], raters: Sequence[JudgeRater]
) -> Iterator[JudgePrompt]:
    """What the judges that are models elsewhere were sent; judges that were sent the same words share a row."""
    for sample in _samples(study, requests):
        words: dict[tuple[str, str], list[str]] = {}
        for rater in raters:
            if isinstance(rater.judge, Speaker):
                sent = _sent(study, sample, sources, rater, rater.judge)
                words.setdefault(sent, []).append(rater.id)
        for (system, text), judges in words.items():
            yield JudgePrompt(sample.about, tuple(judges), sample.request.id, system, text)


def _sent(
    study: Study, sample: _SampledCase, sources: Mapping[str, Source], rater: JudgeRater, judge: Speaker
) -> tuple[str, str]:
    """The words about one case. They do not depend on the pictures, so none is opened."""
    request, prompt = sample.request, study.file.prompt(sample.request.prompt_id)
    blank = Image.new("RGB", (1, 1))
    swapped = request.condition is Condition.SWAPPED and prompt.swapped_text
    case = Case(
        [blank for _ in request.source_ids],
        blank,
        prompt,
        prompt.swapped_text or "" if swapped else prompt.text,
        sources[request.source_ids[0]].first_labels if rater.sees_labels else None,
        blank if sample.pairwise else None,
        wording=study.file.judge_prompt,
        mitigated=_mitigated(sample) if rater.sees_labels else None,
    )
    questions = (IDENTITY,) if sample.pairwise else study.file.questions_of(request.experiment, prompt)
    ask = judge.render(rater.shown(case), questions)
    return ask.system, "\n\n".join(part if isinstance(part, str) else PICTURE for part in ask.parts)


def _mitigated(sample: _SampledCase) -> tuple[bool, ...]:
    """Which of the outputs shown were made with the feature prompt; of two, the baseline comes first."""
    own = sample.request.condition is Condition.FEATURE
    return (False, own) if sample.pairwise else (own,)


def _survey(study: Study, table: RatingTable) -> dict[str, Any]:
    """How people were asked, by the study file; empty where nobody was."""
    section = study.file.sections.survey
    if section is None or not table.of_kind(Kind.HUMAN):
        return {}
    budget: SurveyBudget = of_study(section, {})
    return {
        "platform": "simulated people" if section.simulated_people else section.platform.kind,
        "surveys": list(section.surveys),
        "sampler": section.sampler,
        "cases": section.cases,
        "raters_per_item": section.raters_per_item,
        "items_per_task": section.items_per_task,
        "gold_per_task": gold_per_task(section),
        "instructed_per_task": section.instructed,
        "tasks": budget.tasks,
        "participants": budget.people,
        "minutes_per_task": section.pay.minutes_per_task,
        "pay_per_task": section.pay.per_task,
        "currency": section.pay.currency,
        "fee": section.pay.fee,
        "total": budget.total,
    }

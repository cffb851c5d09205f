"""What a study asked of editors, judges and people, for the appendix of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from PIL import Image

from evenedit.core.interfaces import Case
from evenedit.core.records import ConditionKind, Kind, Prompt, Question, Request, Source
from evenedit.design.assignments import Assignment
from evenedit.judges.calling import RemoteModelJudge
from evenedit.judges.feature_prompts import extractor_id
from evenedit.judges.raters import Call, JudgeRater
from evenedit.protocol.prompts import FLOOR
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.materials import (
    EditorSettings,
    FeaturePromptRecord,
    JudgePrompt,
    JudgeSettings,
    MaterialsUsed,
    PortraitRecord,
)
from evenedit.run.cases import case_of
from evenedit.run.twins import twin_readings
from evenedit.study.context import StudyContext
from evenedit.study.judge_replies import judged_cases
from evenedit.survey.cost import SurveyBudget, of_study
from evenedit.survey.tasks import gold_per_task

PICTURE = "[picture]"
"""Stands for a picture in the words that a judge was sent."""


def collect_materials(study: StudyContext, scores: Scores) -> MaterialsUsed:
    """Return what stands behind the edits and ratings of a study's table."""
    table, sources = scores.table, study.store.sources()
    known = study.store.requests()
    requests = [known[ident] for ident in table.edits["request_id"] if ident in known]
    raters = [rater for rater in study.design.judges() if _answered(table, rater.id)]
    return MaterialsUsed(
        prompts=tuple(_prompts(study, requests)),
        editors=tuple(_editors(requests)),
        feature_prompts=tuple(_features(study, requests, sources)),
        questions=tuple(_questions(study, table)),
        judges=tuple(_judges(study, raters)),
        judge_prompts=tuple(_judge_prompts(study, requests, sources, raters)),
        survey=_survey(study, table),
        cases=tuple(judged_cases(study, scores, raters)),
        portraits=tuple(_portraits(study, sources)),
    )


def _portraits(study: StudyContext, sources: Mapping[str, Source]) -> Iterator[PortraitRecord]:
    """Yield when each portrait was added, and how twins compare, where there is something to tell."""
    began = {run["id"]: run["started"] for run in study.store.runs()}
    known = study.store.added()
    added = {ident: known.get(ident, 0) for ident in sources}
    if len(set(added.values())) > 1 or any(s.block != s.id for s in sources.values()):
        readings = twin_readings(study.store)
        for s in sources.values():
            run = added[s.id]
            yield PortraitRecord(
                s.id, run, began.get(run, ""), s.block if s.block != s.id else "", readings.get(s.id, {})
            )


def _answered(table: RatingTable, rater: str) -> bool:
    return rater in table.raters and bool((table.values[table.raters.index(rater)] > 0).any())


def _prompts(study: StudyContext, requests: Sequence[Request]) -> Iterator[Prompt]:
    used = {request.prompt_id for request in requests}
    every = {p.id: p for p in (FLOOR, *study.file.wino, *study.file.prompts)}
    order = [*study.file.prompts, *study.file.wino, FLOOR]
    yield from (every[ident] for ident in dict.fromkeys(p.id for p in order) if ident in used)


def _editors(requests: Sequence[Request]) -> Iterator[EditorSettings]:
    """Yield one record per editor and settings."""
    rows: dict[tuple[str, str], list[Request]] = {}
    for request in requests:
        rows.setdefault((request.editor, repr(sorted(request.settings.items()))), []).append(request)
    for (editor, _), group in rows.items():
        yield EditorSettings(editor, dict(group[0].settings), tuple(sorted({r.seed for r in group})), len(group))


def _features(
    study: StudyContext, requests: Sequence[Request], sources: Mapping[str, Source]
) -> Iterator[FeaturePromptRecord]:
    """Yield the feature prompts that were used, by portrait."""
    section = study.file.sections.experiments.mitigation
    used = [r.source_ids[0] for r in requests if r.condition.kind is ConditionKind.FEATURE]
    if section is None or not used:
        return
    texts = study.design.feature_texts(section)
    written = [(e, study.store.features(e)) for e in (extractor_id(x.kind, x.settings) for x in section.extractors)]
    for ident in (ident for ident in sources if ident in set(used)):
        extractor, flags = next(
            (
                (e, features[ident][1])
                for e, features in written
                if ident in features and features[ident][0] == texts[ident]
            ),
            ("", []),
        )
        labels = sources[ident].attributes
        group = {f.name: labels[f.name] for f in study.file.factors if labels.get(f.name)}
        yield FeaturePromptRecord(ident, group, extractor, texts[ident], tuple(flags), used.count(ident))


def _questions(study: StudyContext, table: RatingTable) -> Iterator[Question]:
    """Yield the questions that judges, people or reviewers answered."""
    raters = [at for at, kind in enumerate(table.kinds) if kind is not Kind.INSTRUMENT]
    for position, question in enumerate(study.file.questions.values()):
        if raters and bool((table.values[raters][:, :, position] > 0).any()):
            yield question


def _judges(study: StudyContext, raters: Sequence[JudgeRater]) -> Iterator[JudgeSettings]:
    sections = {section.id: section for section in study.file.sections.judges}
    for rater in raters:
        section = sections[rater.id]
        yield JudgeSettings(
            rater.id,
            section.kind,
            dict(section.settings),
            not rater.sees_labels,
            study.store.models(rater.id, rater.revision),
        )


def _samples(study: StudyContext, assigned: Sequence[Assignment]) -> Iterator[tuple[str, Assignment]]:
    """Yield the first call of each kind, with what it is about."""

    def kind(assignment: Assignment) -> str:
        request, call = assignment.request, assignment.call
        if request is None or call is Call.BASELINE_LAST:
            return ""
        if call is Call.MAIN and len(request.source_ids) > 1:
            return "an edit of two portraits"
        if call is Call.MAIN and study.file.prompt(request.prompt_id).target_years:
            return "an edit of one portrait by a prompt with a target age"
        return _ABOUT[call]

    first: dict[str, Assignment] = {}
    for assignment in assigned:
        first.setdefault(kind(assignment), assignment)
    yield from ((about, first[about]) for about in _KINDS if about in first)


_ABOUT = {
    Call.MAIN: "an edit of one portrait",
    Call.BASELINE_FIRST: "two outputs of one portrait",
    Call.SEPARATE: "an edit, questions asked apart",
    Call.SEE: "a single picture",
}
_KINDS = (
    _ABOUT[Call.MAIN],
    "an edit of one portrait by a prompt with a target age",
    "an edit of two portraits",
    *(_ABOUT[call] for call in (Call.BASELINE_FIRST, Call.SEPARATE, Call.SEE)),
)


def _judge_prompts(
    study: StudyContext, requests: Sequence[Request], sources: Mapping[str, Source], raters: Sequence[JudgeRater]
) -> Iterator[JudgePrompt]:
    """Yield the texts sent to remote models; judges that received the same text share a row."""
    words: dict[str, dict[tuple[str, str], JudgePrompt]] = {about: {} for about in _KINDS}
    assigned = study.design.assignments(requests, [r for r in raters if isinstance(r.judge, RemoteModelJudge)], sources)
    for rater in dict.fromkeys(a.rater for a in assigned):
        for about, sample in _samples(study, [a for a in assigned if a.rater is rater]):
            sent = _sent(study, sample, sources)
            known = words[about].get(sent)
            judges = (*(known.judges if known else ()), rater.id)
            words[about][sent] = JudgePrompt(about, judges, known.request if known else sample.subject, *sent)
    yield from (row for rows in words.values() for row in rows.values())


def _sent(study: StudyContext, sample: Assignment, sources: Mapping[str, Source]) -> tuple[str, str]:
    """Return the text sent in one call. It does not depend on the pictures, so none is opened."""
    request, judge, blank = sample.request, sample.rater.judge, Image.new("RGB", (1, 1))
    assert request is not None and isinstance(judge, RemoteModelJudge)
    if sample.call is Call.SEE:
        case = Case((), blank, Prompt("", "", ""), "", wording="seen")
    else:
        outputs = [blank] * len(sample.edits)
        case = case_of(study.file, sample, request, sources, [blank] * len(request.source_ids), outputs)
    ask = judge.render(case, sample.questions)
    return ask.system, "\n\n".join(part if isinstance(part, str) else PICTURE for part in ask.parts)


def _survey(study: StudyContext, table: RatingTable) -> dict[str, Any]:
    """Describe the survey as the study file sets it; empty if there was none."""
    section = study.file.sections.survey
    if section is None or not table.of_kind(Kind.HUMAN):
        return {}
    budget: SurveyBudget = of_study(section, {})
    return {
        "platform": "simulated people" if section.simulated_people else section.platform.kind,
        "surveys": list(section.surveys),
        "sampler": section.sampler,
        "cases": [section.cases_of(s) for s in section.surveys] if section.sizes else section.cases,
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

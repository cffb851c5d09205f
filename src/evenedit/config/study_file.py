"""`study.toml`, read once and checked in full."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenedit.config.check import RESERVED, factors_of, problems
from evenedit.config.primary import study_problems
from evenedit.config.questions import study_rubric
from evenedit.config.sections import (
    EditorSection,
    EthicsSection,
    EthicsTexts,
    ExclusionSection,
    ExecutorSection,
    FindingsSection,
    JudgeSection,
    Missing,
    Mitigation,
    PaySection,
    PlatformSection,
    QuestionnaireSection,
    Sections,
    SurveySection,
)
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Prompt, Question
from evenedit.core.validation import explain
from evenedit.protocol import Factor, PromptSet, Rate, Rubric, default_rubric, load_prompts, questions_for
from evenedit.protocol.prompts import FLOOR, merge, translated

FILE = "study.toml"
NULL_PAIRS = 2
"""Null pairs per portrait unless the study file states another number."""

__all__ = [
    "FILE",
    "EditorSection",
    "EthicsSection",
    "EthicsTexts",
    "ExclusionSection",
    "ExecutorSection",
    "JudgeSection",
    "Mitigation",
    "PaySection",
    "PlatformSection",
    "QuestionnaireSection",
    "StudyFile",
    "SurveySection",
]


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study as its file describes it."""

    folder: Path
    sections: Sections
    prompts: PromptSet
    """Prompts of the diagnosis, after `include`."""
    wino: PromptSet
    """Prompts of the stereotype experiment; empty without it."""
    rubric: Rubric = field(default_factory=default_rubric)
    """What raters are asked, in this study's wording."""

    @classmethod
    def load(cls, where: Path, *, started: bool = False) -> StudyFile:
        """Read and check `study.toml` in a folder (or the file itself).

        Of a study that has started, an instrument need not be installed any more: what it read is stored.
        """
        path = where if where.suffix == ".toml" else where / FILE
        if not path.is_file():
            raise EvenEditError(f"no study at {path}. Try: evenedit new {where}")
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise EvenEditError(f"{path} is not valid TOML: {error}") from None
        return cls.parse(data, path.parent, str(path), started=started)

    @classmethod
    def parse(cls, data: Mapping[str, Any], folder: Path, where: str = FILE, *, started: bool = False) -> StudyFile:
        """Check a study that is passed as nested tables."""
        try:
            file = Sections.model_validate(data)
        except ValidationError as error:
            raise EvenEditError(*(f"{where}: {line}" for line in explain(error, Sections))) from None
        rubric, wrong = study_rubric(file, factors_of(file), folder, RESERVED)
        issues = [*problems(file, started=started), *wrong, *study_problems(file, factors_of(file), rubric)]
        prompts = wino = PromptSet("none", ())
        try:
            sets = [load_prompts(s, folder, rubric) for s in file.prompts.sets]
            prompts = _chosen(merge(sets), file.prompts.include)
        except EvenEditError as error:
            issues += [f"prompts: {line}" for line in error.problems]
        issues += _untranslated(file, prompts)
        if file.study.cannot_tell and (file.study.judge_prompt or file.study.preset) == "published":
            issues.append(
                "study.cannot_tell: the paper's prompt has no such answer; remove this key, or the published prompt"
            )
        if file.experiments.stereotype:
            section = file.experiments.stereotype
            try:
                wino = _chosen(load_prompts(section.prompts, folder), section.include)
                issues += [
                    f"experiments.stereotype: prompt {p.id} needs occupation and coded_gender"
                    for p in wino
                    if not (p.occupation and p.coded_gender)
                ]
            except EvenEditError as error:
                issues += [f"experiments.stereotype: {line}" for line in error.problems]
        if issues:
            raise EvenEditError(*(f"{where}: {line}" for line in issues))
        return cls(folder, file, prompts, wino, rubric)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors that portraits are labelled and grouped by."""
        return factors_of(self.sections)

    @property
    def published(self) -> bool:
        """True if the study does exactly what the paper did."""
        return self.sections.study.preset == "published"

    @property
    def placebo(self) -> bool:
        """True if the mitigation experiment has its placebo arm."""
        section = self.sections.experiments.mitigation
        return section is not None and _or(section.placebo, not self.published)

    @property
    def null_pairs(self) -> int:
        """Null pairs per portrait in a study that begins now."""
        section = self.sections.experiments.diagnosis
        if section is None:
            return 0
        return (0 if self.published else NULL_PAIRS) if section.null_pairs is None else section.null_pairs

    @property
    def swapped(self) -> bool:
        """True if the stereotype experiment has its pronoun-swapped control."""
        section = self.sections.experiments.stereotype
        return section is not None and _or(section.swapped, not self.published)

    @property
    def status(self) -> bool:
        """True if judges are asked who has the role of higher status."""
        section = self.sections.experiments.stereotype
        return section is not None and section.status

    def blind(self, judge: JudgeSection) -> bool:
        """Return True if this judge does not see the labels."""
        return _or(judge.blind, not self.published)

    @property
    def questions(self) -> dict[str, Question]:
        """The questions by column, in this study's wording."""
        return self.rubric.questions

    def questions_of(
        self, experiment: str, prompt: Prompt, labels: Mapping[str, str] | None = None, call: str = "main"
    ) -> tuple[Question, ...]:
        """Return the questions of a judge's call about an edit of this prompt, of a portrait with these labels."""
        questions = questions_for(experiment, prompt, self.rubric, status=self.status, labels=labels, call=call)
        if not self.sections.study.cannot_tell:
            return questions
        return tuple(q if q.sided in ("choice", "set") else replace(q, cannot_tell=True) for q in questions)

    @property
    def judge_prompt(self) -> str:
        """The words that judges are sent."""
        return self.sections.study.judge_prompt or self.sections.study.preset

    @property
    def missing(self) -> Missing:
        """The treatment of an edit that no judge scored."""
        return self.sections.ensemble.missing or "exclude"

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates under this study's thresholds."""
        return self.rubric.rates | {
            name: Rate(name, self.rubric.rates[name].question, t.at_least, t.at_most)
            for name, t in self.sections.thresholds.items()
        }

    @property
    def hash(self) -> str:
        """The digest of the study's content, independent of its formatting."""
        body = self.sections.model_dump(mode="json", exclude={"store", "executor", "cache", "curation"})
        if not body["factors"]:  # a table that came later does not rename the studies that leave it out
            del body["factors"]
        if self.sections.findings.reliability == FindingsSection().reliability:
            del body["findings"]["reliability"]
        if self.sections.findings == FindingsSection():
            del body["findings"]
        for editor in body["editors"]:  # where an edit is made is no part of its identity
            del editor["gpus"]
        if body["primary"] is None:
            del body["primary"]
        for name in ("rubric", "judge_prompt", "cannot_tell", "without", "direction"):
            if not body["study"][name]:
                del body["study"][name]
        if not self.sections.study.direction:
            del body["study"]["direction_shows"]
        if not body["questions"]:
            del body["questions"]
        if body["survey"] and body["survey"]["questionnaire"] is None:
            del body["survey"]["questionnaire"]
        if body["survey"] and not body["survey"]["sizes"]:
            del body["survey"]["sizes"]
        if not body["hypotheses"]:
            del body["hypotheses"]
        for name in ("licence", "publish"):
            if not body["sources"][name]:
                del body["sources"][name]
        if body["survey"] and not body["survey"]["ethics"]["published_from"]:
            del body["survey"]["ethics"]["published_from"]
        if (stereotype := body["experiments"]["stereotype"]) and not stereotype["status"]:
            del stereotype["status"]
        languages: list[str] = []
        if diagnosis := body["experiments"]["diagnosis"]:
            for name in ("requests", "null_pairs"):
                if diagnosis[name] is None:
                    del diagnosis[name]
            languages = diagnosis["languages"] or diagnosis.pop("languages")
        texts = [p.text for p in self.prompts] + [translated(p, code) for code in languages for p in self.prompts]
        return digest([body, texts, [p.text for p in self.wino]])

    @property
    def primary_digest(self) -> str:
        """The digest of the declared tests."""
        primary = self.sections.primary
        return digest(primary and primary.model_dump(mode="json"))

    def located(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings with `path` resolved: in study.toml it is relative to the study's folder."""
        if "path" not in settings:
            return dict(settings)
        return {**settings, "path": str(self.folder / settings["path"])}

    def editors(self, experiment: str) -> list[EditorSection]:
        """Return the editors that take part in an experiment."""
        return [
            e
            for e in self.sections.editors
            if (e.experiments is None or experiment in e.experiments)
            and (experiment != "stereotype" or plugins.images_taken(e.plugin, e.settings) >= 2)
        ]

    def prompt(self, prompt_id: str) -> Prompt:
        """Return the prompt with this id, of any experiment."""
        return next(p for s in (self.prompts, self.wino, (FLOOR,)) for p in s if p.id == prompt_id)


def _untranslated(sections: Sections, prompts: PromptSet) -> Iterator[str]:
    """Yield the problems of the languages in which editors get prompts."""
    diagnosis = sections.experiments.diagnosis
    languages = diagnosis.languages if diagnosis else []
    for language in dict.fromkeys(languages):
        where = f"experiments.diagnosis.languages: '{language}'"
        if languages.count(language) > 1:
            yield f"{where} occurs twice"
        if lacking := [p.id for p in prompts if not translated(p, language)]:
            yield (
                f"{where}: {len(lacking)} of {len(prompts)} prompts lack a translation ({', '.join(lacking[:5])}); "
                f'add translations = {{ {language} = "…" }} to them in your prompt set'
            )


def _or(value: bool | None, default: bool) -> bool:
    return default if value is None else value


def _chosen(prompts: PromptSet, include: list[str] | None) -> PromptSet:
    if include is None:
        return prompts
    if not include:
        raise EvenEditError("include is empty; name at least one prompt or remove the key")
    wanted = {prompt.id for prompt in prompts.resolve_all(include).values()}
    return PromptSet(prompts.id, tuple(p for p in prompts if p.id in wanted))

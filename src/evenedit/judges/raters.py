"""The study's judges as raters: who answers, under which revision, and how a case is shown to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenedit.config.study_file import JudgeSection, StudyFile
from evenedit.core import plugins
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case, Judge
from evenedit.core.records import Kind
from evenedit.judges import prompt, published_prompt
from evenedit.protocol.rubric import QUESTIONS, STATUS


def _unchanged(case: Case) -> Case:
    return case


@dataclass(frozen=True, slots=True)
class JudgeRater:
    """A judge that answers questions about edits."""

    id: str
    revision: str
    """Names all that shapes its answers."""
    judge: Judge
    sees_labels: bool = False
    """Whether it is given the source's labels."""
    transform: Callable[[Case], Case] = _unchanged
    """How the case is shown to it: as the study has it, or changed to check the judge."""
    kind: Kind = Kind.VLM


def judge_raters(file: StudyFile) -> list[JudgeRater]:
    """Return the study's judges, primary first."""
    return [
        JudgeRater(
            section.id,
            revision(file, section),
            plugins.build("judges", section.kind, section.settings),
            sees_labels=not file.blind(section),
        )
        for section in file.sections.judges
    ]


def revision(file: StudyFile, section: JudgeSection) -> str:
    """Hash all that shapes a judge's answers: a changed setting or prompt makes new ratings."""
    words = ""
    if plugins.is_remote("judges", section.kind):
        published = file.judge_prompt == "published"
        words = published_prompt.prompt_hash(file.rubric) if published else prompt.prompt_hash(rubric=file.rubric)
    extras: list[Any] = [QUESTIONS[STATUS].to_dict()] if file.status else []
    extras += [prompt.OPEN] if file.sections.study.cannot_tell else []
    return digest([section.kind, file.blind(section), section.settings, words, *extras])[:8]

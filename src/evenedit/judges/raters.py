"""The study's judges as raters: who answers, under which revision, and how a case is shown to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from PIL import Image

from evenedit.config.study_file import JudgeSection, StudyFile
from evenedit.core import plugins
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case, Judge
from evenedit.core.records import Kind, Prompt
from evenedit.judges import prompt, published_prompt
from evenedit.protocol.questions import QuestionSpec
from evenedit.protocol.rubric import ROLES, Rubric


class Call(StrEnum):
    """The calls in which judges answer a study's questions."""

    MAIN = "main"
    BASELINE_FIRST = "ab"
    """Which output keeps the identity, the baseline shown as A."""
    BASELINE_LAST = "ba"
    SEPARATE = "separate"
    """The questions that a study asks apart from the others."""
    SEE = "see"
    """How the person in a single picture is seen."""
    REREAD = "again"
    """The same, of a mirrored copy."""

    @property
    def block(self) -> str:
        """What plans and status call it, together with the calls that belong to it."""
        return _BLOCKS[self]


_BLOCKS = {
    Call.MAIN: "main",
    Call.BASELINE_FIRST: "identity",
    Call.BASELINE_LAST: "identity",
    Call.SEPARATE: "separate",
    Call.SEE: "single pictures",
    Call.REREAD: "single pictures",
}


def _unchanged(case: Case) -> Case:
    return case


@dataclass(frozen=True, slots=True)
class JudgeRater:
    """A judge that answers questions about edits."""

    id: str
    revision: str
    """Names all that shapes its answers of the main call; the other calls' revisions begin with it."""
    judge: Judge
    sees_labels: bool = False
    """Whether it is given the source's labels."""
    transform: Callable[[Case], Case] = _unchanged
    """How the case is shown to it: as the study has it, or changed to check the judge."""
    kind: Kind = Kind.VLM
    separate: str = ""
    """Digest of the questions of its separate call; empty without any."""
    seen: str = ""
    """Digest of what it is asked about single pictures; empty where it is asked nothing."""

    def revision_of(self, call: Call) -> str:
        """Return the revision under which the replies of a call are stored."""
        suffixes = {Call.MAIN: "", Call.SEPARATE: f"-q{self.separate}"}
        suffixes |= {Call.SEE: f"-see{self.seen}", Call.REREAD: f"-again{self.seen}"}
        return self.revision + suffixes.get(call, f"-{call}")


def judge_raters(file: StudyFile) -> list[JudgeRater]:
    """Return the study's judges, primary first."""
    separate, seen = _separate(file.rubric), _seen(file)
    return [
        JudgeRater(
            section.id,
            revision(file, section),
            plugins.build("judges", section.kind, section.settings),
            sees_labels=not file.blind(section),
            separate=separate,
            seen=seen,
        )
        for section in file.sections.judges
    ]


def revision(file: StudyFile, section: JudgeSection) -> str:
    """Hash all that shapes a judge's answers: a changed setting or prompt makes new ratings."""
    words = ""
    if plugins.is_remote("judges", section.kind):
        published = file.judge_prompt == "published"
        words = published_prompt.prompt_hash(file.rubric) if published else prompt.prompt_hash(rubric=file.rubric)
    status = file.rubric.questions.get(ROLES.status) if file.status else None
    extras: list[Any] = [status.to_dict()] if status else []
    extras += [prompt.OPEN] if file.sections.study.cannot_tell else []
    extras += [_words_of(spec) for spec in file.rubric.declared_main]
    return digest([section.kind, file.blind(section), section.settings, words, *extras])[:8]


def _words_of(spec: QuestionSpec) -> list[Any]:
    """Return what is asked by a declared question, and of which edits."""
    row = spec.row
    scope = [row.about, row.asked_in, row.prompts, {factor: list(levels) for factor, levels in row.sources.items()}]
    return [spec.question.to_dict(), spec.observations, *scope]


def _separate(rubric: Rubric) -> str:
    return digest([_words_of(spec) for spec in rubric.separate])[:8] if rubric.separate else ""


def _seen(file: StudyFile) -> str:
    """Hash what is asked about single pictures."""
    if not file.rubric.seen:
        return ""
    case = Case((), Image.new("RGB", (1, 1)), Prompt("", "", ""), "", wording="seen")
    words = prompt.words_of(prompt.render_picture(case, file.rubric.seen, image_size=1))
    return digest([words, file.sections.study.direction_shows])[:8]

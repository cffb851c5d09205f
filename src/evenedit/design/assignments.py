"""Assign edits and pictures to judges, call by call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evenedit.config.study_file import StudyFile
from evenedit.core.python_objects import KIND
from evenedit.core.records import ConditionKind, Experiment, Question, Request, Source, is_simulated
from evenedit.judges.raters import Call, JudgeRater
from evenedit.ratings.sources import picture_id


@dataclass(frozen=True, slots=True)
class Assignment:
    """One call of one judge: about an edit, about a mitigated edit and its baseline, or about a single picture."""

    rater: JudgeRater
    request: Request | None
    """None for the picture of a source."""
    questions: tuple[Question, ...]
    call: Call = Call.MAIN
    baseline: Request | None = None
    """The pairwise question: the same edit without mitigation."""
    source: str = ""
    """Of a source's picture: its SHA-256."""

    @property
    def subject(self) -> str:
        """The request, or the picture, that the reply is stored under."""
        return picture_id(self.source) if self.request is None else self.request.id

    @property
    def revision(self) -> str:
        """The rater's revision of the call."""
        return self.rater.revision_of(self.call)

    @property
    def key(self) -> tuple[str, str, str]:
        """Rater, revision and subject."""
        return self.rater.id, self.revision, self.subject

    @property
    def edits(self) -> tuple[str, ...]:
        """The requests whose pictures are shown."""
        return tuple(request.id for request in (self.request, self.baseline) if request is not None)


class Planner:
    """Plans the calls of a study's judges.

    A simulated judge gets no edit of a Python object, because it cannot rate it. A judge that answers only some
    questions gets the calls that have one of them.
    """

    def __init__(self, file: StudyFile, sources: Mapping[str, Source]) -> None:
        self.file, self.sources = file, sources
        self._by_case: dict[tuple[object, ...], tuple[Question, ...]] = {}
        """The questions of a call by what they depend on."""

    def calls(self, requests: Sequence[Request], raters: Sequence[JudgeRater]) -> list[Assignment]:
        """Return every call about these edits, the main ones first."""
        about = [(request, rater) for request in requests for rater in raters if _can_rate(rater, request)]
        wanted = [self.about_edit(rater, request) for request, rater in about]
        wanted += self._pairwise(requests, raters)
        if self.file.rubric.separate:
            wanted += [self.about_edit(rater, request, Call.SEPARATE) for request, rater in about]
        wanted += self._single(requests, raters)
        return [a for a in wanted if a.questions and _answers(a.rater, a.questions)]

    def about_edit(self, rater: JudgeRater, request: Request, call: Call = Call.MAIN) -> Assignment:
        """Return the call about one edit."""
        single = len(request.source_ids) == 1
        labels = self.sources[request.source_ids[0]].attributes if single else None
        key = (call, request.experiment, request.prompt_id, *((labels or {}).get(name) for name in self._factors))
        if key not in self._by_case:
            prompt = self.file.prompt(request.prompt_id)
            self._by_case[key] = self.file.questions_of(request.experiment, prompt, labels, call=call)
        return Assignment(rater, request, self._by_case[key], call)

    @cached_property
    def _factors(self) -> tuple[str, ...]:
        """The factors on whose labels it depends what is asked."""
        return tuple(dict.fromkeys(factor for spec in self.file.rubric.specs for factor in spec.row.sources))

    def _pairwise(self, requests: Sequence[Request], raters: Sequence[JudgeRater]) -> Iterator[Assignment]:
        """Yield, where the study asks for it, each mitigated edit with its baseline in both orders."""
        section, identity = self.file.sections.experiments.mitigation, self.file.rubric.identity
        if section is None or not section.pairwise or identity is None:
            return
        before = {r.case: r for r in requests if r.experiment is Experiment.DIAGNOSIS}
        for request in (r for r in requests if r.experiment is Experiment.MITIGATION):
            for rater in (rater for rater in raters if _can_rate(rater, request)):
                for call in (Call.BASELINE_FIRST, Call.BASELINE_LAST):
                    yield Assignment(rater, request, (identity,), call, before[request.case])

    def _single(self, requests: Sequence[Request], raters: Sequence[JudgeRater]) -> Iterator[Assignment]:
        """Yield the single pictures of the diagnosis: each source twice, each output once."""
        chosen = self.file.rubric.seen
        outputs = [r for r in requests if is_seen(r)] if chosen else []
        pictures = dict.fromkeys(self.sources[r.source_ids[0]].image or r.source_ids[0] for r in outputs)
        for call in (Call.SEE, Call.REREAD):
            yield from (Assignment(rater, None, chosen, call, source=p) for p in pictures for rater in raters)
        yield from (Assignment(rater, r, chosen, Call.SEE) for r in outputs for rater in raters if _can_rate(rater, r))


def is_seen(request: Request) -> bool:
    """Return whether an edit's output and source are shown alone, where a study asks how people are seen."""
    return request.experiment is Experiment.DIAGNOSIS and request.condition.kind is not ConditionKind.NULL_PAIR


def _can_rate(rater: JudgeRater, request: Request) -> bool:
    from_python = request.settings.get("kind") == KIND and not is_simulated(request.editor)
    return not (from_python and is_simulated(rater.id))


def _answers(rater: JudgeRater, questions: Sequence[Question]) -> bool:
    """Return whether the judge answers one of the questions; a judge without `answers` answers all."""
    answers = getattr(rater.judge, "answers", None)
    return answers is None or not answers.isdisjoint(question.id for question in questions)

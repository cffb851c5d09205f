"""What editors and judges implement: the two protocols, what they are given and what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from evenedit.core.records import Prompt, Question, Status

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Refusal:
    """An editor's explicit no: an outcome of its own, never an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoImage:
    """An answer in words, to the end, without a picture and without naming a policy: an outcome of its own."""

    words: str


Output: TypeAlias = "Image | Refusal | NoImage"
"""What an editor returns for one request."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a judge sees."""

    images: Sequence[Image]
    """The source portrait, or the two of a stereotype case."""
    edited: Image
    prompt: Prompt
    instruction: str
    """What was asked, without the feature prompt."""
    attributes: Mapping[str, str] | None = None
    """The source's labels: only where a study asks for the published, unblinded judge."""
    other: Image | None = None
    """A second output of the same source: `edited` is then A and this is B."""
    edited_first: bool = False
    """Show the edited picture before its source: the order, and its naming, are turned round."""
    repeat: int = 0
    """Above 0: asked again on purpose, this number of times; no cached answer may be used."""
    wording: str = "default"
    """The judge's prompt: `default`, `published` for the paper's, or `seen` for `edited` alone, a single picture."""
    mitigated: tuple[bool, ...] | None = None
    """Of each output, whether it was made with the feature prompt: only where the judge may know."""
    observations: Mapping[str, str] | None = None
    """What is described before the questions are answered, by name; None for what the shipped rubric asks for."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge answered: one value per question, None where it gave none."""

    status: Status
    values: Mapping[str, Any] = field(default_factory=dict)
    """By question id: the 1-based position of a label, or its code; of a set, the list of codes that apply."""
    confidence: Mapping[str, float] = field(default_factory=dict)
    """How sure the judge stated it was, 0 to 1, where it did; shown, never a weight."""
    reason: str = ""
    raw: str = ""
    """The reply as it came, kept for ever."""
    origin: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """How it was obtained, where a model elsewhere gave it: its name, tokens in and out, by call, batch or cache."""


class Editor(Protocol):
    """What is audited."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return the edited picture, an explicit refusal or an answer in words; raise on failure."""
        ...


class BatchEditor(Editor, Protocol):
    """An editor that can make several edits in one call."""

    batch: int
    """Edits that it wants in one call at most."""

    def edit_many(
        self, images: Sequence[Sequence[Image]], instructions: Sequence[str], seeds: Sequence[int]
    ) -> Sequence[Output]:
        """Return what `edit` would of each request, in their order; raise where one fails: each is then made alone.

        Their images have the same sizes.
        """
        ...


class Judge(Protocol):
    """Who scores. Blind: it gets no labels unless the study says so."""

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Answer each question about the case."""
        ...

"""What an instrument implements, what it is given about a pair, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from PIL import Image

from evenedit.core.records import Prompt
from evenedit.instruments.change import Change
from evenedit.instruments.face import Face, NoFace, find_face
from evenedit.instruments.identity import LEAST_PAIRS, Reference
from evenedit.instruments.measurement import MeasuredPair, Measurement
from evenedit.instruments.picture import Picture, pixels
from evenedit.protocol.rubric import QUESTIONS

T = TypeVar("T")
SOURCES_GROUP = "group of the source"
"""Stands for the source's group in a context: an instrument gets its distances, not its name."""


@dataclass(frozen=True, slots=True)
class Read:
    """One reading of a pair."""

    value: float | int | str | None
    """A number; for a question, its level or the code of an option; None where nothing could be read."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval of a number."""
    reason: str = ""
    """Why there is no value."""
    undecided: bool = False
    """The pictures were read, and the question has no answer for what they show, or the number does not apply to the
    request: not counted as unreadable."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and an output to measure, as a process elsewhere needs them."""

    request_id: str
    source: str
    edited: str
    """Hashes of both pictures."""
    group: str
    """The source's level of the first factor: identity is read against its own group."""
    editor: str
    prompt: Prompt
    condition: str


class OpenedPicture(Picture):
    """A picture as it is measured, with the full image it was made from."""

    def __init__(self, image: Image.Image) -> None:
        super().__init__(pixels(image))
        self.image = image


class PairContext:
    """What an instrument may use of a pair beside its pictures, computed when first used, once for all instruments."""

    def __init__(
        self,
        prompt: Prompt,
        condition: str,
        *,
        measure: Callable[[], Measurement],
        examine: Callable[[], MeasuredPair] | None = None,
        reference: Reference | None = None,
    ) -> None:
        self.prompt = prompt
        self.condition = condition
        self.reference = reference
        """Distances between the people of the source's group; None where faces are not compared."""
        self._measure, self._examine = measure, examine
        self._known: dict[tuple[Any, ...], Any] = {}

    @classmethod
    def of_measurement(cls, prompt: Prompt, condition: str, measurement: Measurement) -> PairContext:
        """Return the context of a pair that was measured before, without its pictures."""
        return cls(prompt, condition, measure=lambda: measurement)

    @property
    def targeted(self) -> str | None:
        """The question that takes another's place because the prompt asks for an age; None if it asks for none."""
        return next((q.id for q in QUESTIONS.values() if q.replaces), None) if self.prompt.target_years else None

    def question(self, ident: str) -> str:
        """Return the question that is answered in the place of this one, or the same."""
        targeted = self.targeted
        return targeted if targeted is not None and QUESTIONS[targeted].replaces == ident else ident

    @cached_property
    def measurement(self) -> Measurement:
        """The shared measurement of skin, light, change and, where the study's instruments ask for them, faces."""
        return self._measure()

    @cached_property
    def change(self) -> Change:
        """What changed where, after registration and relighting."""
        if self._examine is None:
            raise RuntimeError("the pictures of this pair are not at hand")
        return self._examine().change

    def face(self, picture: Picture) -> Face | NoFace:
        """Return the one face of a picture, or why there is none."""
        return find_face(picture.rgb)

    def full(self, picture: Picture) -> Image.Image:
        """Return a picture in its original size; its `rgb` has at most 512 pixels a side."""
        return picture.image if isinstance(picture, OpenedPicture) else Image.fromarray(picture.rgb)

    def once(self, compute: Callable[..., T], *arguments: Any) -> T:
        """Return `compute(*arguments)`, computed once for all instruments of the pair."""
        key = (compute, *arguments)
        if key not in self._known:
            self._known[key] = compute(*arguments)
        value: T = self._known[key]
        return value


class Instrument(Protocol):
    """Reads numbers off a pair of pictures and answers questions about it."""

    id: str
    version: str
    """Another version reads all pairs anew."""
    answers: Sequence[str | Mapping[str, Any]]
    """Ids of questions of the study, or own questions as tables in the format of [[questions]]."""
    numbers: Mapping[str, Mapping[str, Any]]
    """What it reads beside its answers, by name: the keys of `NumberSpec`."""

    def read(self, source: Picture, edited: Picture, context: PairContext) -> Mapping[str, Read]:
        """Return a reading for every answer and every number."""
        ...


def reference_of(known: Reference | None, group: str) -> Reference | None:
    """Return the distances that a source is set against, without the name of its group."""
    if known is None:
        return None
    between, same = known.between.get(group, ()), known.same.get(group, ())
    if len(between) < LEAST_PAIRS:
        between = known.borrowed(group)
        same = tuple(sorted(d for values in known.same.values() for d in values))
    return Reference({SOURCES_GROUP: between}, {SOURCES_GROUP: same})

"""The nouns of an audit: what every stage reads and writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

from evenedit.core.hashing import digest

SIMULATED = "simulated-"
"""Ids of simulated editors, judges and people begin with this, so no table can lose the mark."""


PERSON, BASE = "person", "base"
"""Attributes of a portrait beside its labels: who is pictured, and the base portrait that it is a version of."""
LANGUAGE = "[a-z]{2,3}(-[A-Za-z0-9]{2,8})*"
"""The code of a language: `ar`, `pt-BR`."""
IN = "in_"
"""Before a language's code: the condition of requests in it."""


class Experiment(StrEnum):
    """What is compared with what."""

    DIAGNOSIS = "diagnosis"
    MITIGATION = "mitigation"
    STEREOTYPE = "stereotype"


class ConditionKind(StrEnum):
    """The ways in which an edit can differ from the plain request."""

    BASELINE = "baseline"
    FLOOR = "floor"
    """Nothing is asked: the editor's own drift."""
    NULL_PAIR = "null_pair"
    """The portrait itself, re-encoded without an editor: raters should see no change."""
    FEATURE = "feature"
    """The feature prompt stands before the request."""
    PLACEBO = "placebo"
    """The baseline again with another seed."""
    SWAPPED = "swapped"
    """The request with the other gender's pronoun."""
    REVERSED = "reversed"
    """The two portraits given to the editor in the other order."""
    SWAPPED_REVERSED = "swapped_reversed"
    """The other pronoun, and the other order."""
    TRANSLATED = "translated"
    """The request in another language."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How an edit differs from the plain request. Tables and ids have its text: `baseline`, `in_ko`."""

    kind: ConditionKind
    language: str = ""
    """The language of a translated request, else empty."""

    def __post_init__(self) -> None:
        if (self.kind is ConditionKind.TRANSLATED) != bool(re.fullmatch(LANGUAGE, self.language)):
            raise ValueError(f"{self.kind} is not a condition with the language {self.language!r}")

    def __str__(self) -> str:
        return f"{IN}{self.language}" if self.language else self.kind.value

    @classmethod
    @cache
    def parse(cls, text: str) -> Condition:
        """Return the condition with this text; raise `ValueError` if there is none."""
        language = language_of(text)
        return cls(ConditionKind.TRANSLATED, language) if language else cls(ConditionKind(text))

    @classmethod
    def in_language(cls, language: str) -> Condition:
        """Return the condition of requests in another language."""
        return cls(ConditionKind.TRANSLATED, language)

    @property
    def other_pronoun(self) -> bool:
        """Whether the request has the other gender's pronoun."""
        return self.kind in (ConditionKind.SWAPPED, ConditionKind.SWAPPED_REVERSED)

    @property
    def other_order(self) -> bool:
        """Whether the editor was given the two portraits in the other order."""
        return self.kind in (ConditionKind.REVERSED, ConditionKind.SWAPPED_REVERSED)


NULL_PAIR_EDITOR = "null-pair"
"""Stands for the editor of a null pair, which no editor makes; an editor cannot have this id."""
PLACEBO_SHIFT = 10_000
"""The placebo is the baseline again with its seed moved by this."""


class Outcome(StrEnum):
    """How an edit ended."""

    EDITED = "edited"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    """The service answered to the end, in words, without a picture and without naming a policy."""
    FAILED = "failed"


WITHOUT_PICTURE = frozenset({Outcome.REFUSED, Outcome.NO_IMAGE})
"""How an edit ends for good without a picture."""


class Status(StrEnum):
    """How a rating ended. Nothing is ever guessed: only `scored` carries a value."""

    SCORED = "scored"
    REFUSED = "refused"
    UNPARSEABLE = "unparseable"
    FAILED = "failed"


class Kind(StrEnum):
    """Who rated."""

    VLM = "vlm"
    HUMAN = "human"
    INSTRUMENT = "instrument"
    REVIEW = "review"
    """A reviewer who settles what the judges leave open: neither a judge nor one of the people who are asked."""


@dataclass(frozen=True, slots=True)
class Source:
    """One portrait."""

    id: str
    """`{race}_{gender}_{age}`, plus `_2`, `_3` … for further faces of the same cell."""
    image: str
    """sha256 of the stored image."""
    attributes: Mapping[str, str]
    """The dataset's labels: race, gender, age. Labels, not truths."""
    origin: str
    """Where it came from: file name, dataset index, or drawing parameters."""

    @property
    def labels(self) -> dict[str, str]:
        """The dataset's labels alone."""
        return {name: code for name, code in self.attributes.items() if name not in (PERSON, BASE)}

    @property
    def block(self) -> str:
        """What it was drawn with: portraits of one person, or versions of one base portrait, are no separate draws."""
        return self.attributes.get(PERSON) or self.attributes.get(BASE) or self.id


@dataclass(frozen=True, slots=True)
class Prompt:
    """One edit request in words."""

    id: str
    """The id used everywhere inside."""
    text: str
    """What the editor is asked."""
    category: str
    """Occupation, Vulnerability, WinoBias or the user's own."""
    subcategory: str = ""
    """Authority, Service, Aging …"""
    name: str = ""
    """A few words for tables and captions."""
    hypothesis: str = ""
    """The tag of what the prompt probes."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other ids by the form they belong to."""
    target_years: int | None = None
    """Years the prompt asks to add; age is then judged against the target."""
    occupation: str | None = None
    """Target occupation of a two-person prompt."""
    coded_gender: str | None = None
    """The gender the occupation is stereotypically coded with."""
    pronoun: str | None = None
    """The pronoun the text names, or "none"."""
    swapped_text: str | None = None
    """The text with the other gender's pronoun: the control arm."""
    asks: tuple[str, ...] = ()
    """Axes the prompt asks to change (`age_drift`): what was asked for is shown, and is no drift."""
    asks_for: tuple[str, ...] = ()
    """Kinds of change that the text asks for (`clothing`), by which a measurement tells whether it was ignored."""
    translations: Mapping[str, str] = field(default_factory=dict)
    """The text in other languages, by language: shown to participants beside the original, and to editors where a
    study asks for it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the rubric; an answer is the 1-based position of a label."""

    id: str
    """Its id, such as skin_tone."""
    title: str
    """How tables print it."""
    text: str
    """What raters are asked."""
    labels: tuple[str, ...]
    """The answers to choose from, in their order."""
    sided: Literal["quality", "one", "two", "choice", "set"]
    """Where no change lies on the scale: nowhere, at an end, inside; a choice and a set have no order."""
    replaces: str | None = None
    """Asked in place of this question where the prompt has a target age."""
    cannot_tell: bool = False
    """Whether a judge may leave it open because it cannot be told."""
    words: tuple[str, ...] = ()
    """Of a choice whose labels are codes: what is shown for each."""
    neutral: int | None = field(default=None, compare=False)
    """Of a declared question: the answer that means no change."""

    @property
    def coded(self) -> bool:
        """Whether it is answered by a code and not by a number."""
        return self.sided in ("choice", "set") or bool(self.words)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names under which its answers are stored; of a set, one for each option."""
        return tuple(f"{self.id}.{code}" for code in self.labels) if self.sided == "set" else (self.id,)

    @property
    def unchanged(self) -> int:
        """The answer that means that nothing changed, or the first one where none does; "no" of a yes-no question."""
        middle = (len(self.labels) + 1) // 2 if self.sided == "two" else 1
        return self.neutral or (2 if self.labels[:2] == ("yes", "no") else middle)

    @property
    def option_texts(self) -> tuple[str, ...]:
        """What raters read for each answer."""
        return self.words or self.labels

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; without words where there are none, so that hashes of earlier releases hold."""
        left_out = ("neutral",) if self.words else ("neutral", "words")
        return {key: value for key, value in asdict(self).items() if key not in left_out}


@dataclass(frozen=True)
class Request:
    """One edit to be made. Its id is a hash of everything else: resumable, and nothing leaks to a rater."""

    experiment: Experiment
    condition: Condition
    source_ids: tuple[str, ...]
    """One portrait, or two in the stereotype experiment."""
    prompt_id: str
    instruction: str
    """The text the editor gets, feature prompt included."""
    editor: str
    settings: Mapping[str, Any]
    """Everything that shapes the output: revision, steps, guidance …"""
    seed: int

    @property
    def case(self) -> tuple[str, tuple[str, ...], str, int]:
        """What a mitigated edit and its baseline share: editor, portraits, prompt and seed."""
        shift = PLACEBO_SHIFT if self.condition.kind is ConditionKind.PLACEBO else 0
        return self.editor, self.source_ids, self.prompt_id, self.seed - shift

    @cached_property
    def id(self) -> str:
        """The hash that names this request."""
        return digest(
            [
                self.experiment,
                str(self.condition),
                list(self.source_ids),
                self.prompt_id,
                self.instruction,
                self.editor,
                dict(self.settings),
                self.seed,
            ]
        )


@dataclass(frozen=True, slots=True)
class Edit:
    """What came back."""

    request_id: str
    outcome: Outcome
    image: str | None
    """sha256 of the stored image; None unless edited."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Refusal or failure reason; the words of an answer without a picture; ground truth of a simulated edit."""
    seconds: float = 0.0

    @property
    def reason(self) -> str:
        """Why there is no picture, in the words of the service or the error; empty where there is one."""
        return next((str(self.detail[key]) for key in ("reason", "words", "error") if self.detail.get(key)), "")


@dataclass(frozen=True, slots=True)
class Rating:
    """One answer of one rater to one question about one edit."""

    request_id: str
    question_id: str
    rater: str
    kind: Kind
    status: Status
    value: int | None = None
    """1-based position of the label; None unless scored."""
    reason: str = ""
    confidence: float | None = None
    """How sure the rater stated it was, 0 to 1; shown, never a weight."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of the report with its uncertainty."""

    measure: str
    """`mean.<axis>`, `rate.<rate>`, `delta.<axis>` or `gap.<rate>`."""
    experiment: str
    condition: str
    editor: str | None
    """None when pooled over editors."""
    group: Mapping[str, str]
    """{} for everybody, else the labels that select the group; {"race": "*"} for a gap over races."""
    value: float | None
    low: float | None
    high: float | None
    """95 % interval; None where the design cannot give one."""
    n: int
    missing: int
    method: str
    """How the interval was made."""
    wilson: tuple[float, float] | None = None
    """For show beside the headline interval of a rate: rows taken as independent."""


class KnownEffect(NamedTuple):
    """What a simulated editor is known to do: a group's rate minus the rate of everybody else."""

    editor: str
    measure: str
    """rate.<rate>"""
    group: Mapping[str, str]
    value: float


@cache
def language_of(condition: str) -> str:
    """Return the language of a condition's prompts; empty for the original language."""
    return condition.removeprefix(IN) if re.fullmatch(f"{IN}{LANGUAGE}", condition) else ""


def is_simulated(name: str | None) -> bool:
    """Return whether the id of an editor or rater marks it as simulated."""
    return name is not None and name.startswith(SIMULATED)

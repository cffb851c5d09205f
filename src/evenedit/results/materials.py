"""What was asked: prompts, settings, rubric and the words that judges were sent, as the edits and ratings had them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenedit.core.records import Prompt, Question


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """An editor with the settings that are stored with its edits; one row for each set of settings."""

    editor: str
    settings: Mapping[str, Any]
    """Everything that shapes the output beside the request and the seed."""
    seeds: tuple[int, ...]
    """Every seed it was run with, the placebo's included."""
    edits: int
    """Edits that were asked for with these settings."""


@dataclass(frozen=True, slots=True)
class FeaturePromptRecord:
    """The feature prompt of one portrait, as it stood before the request."""

    source: str
    """The portrait's id."""
    group: Mapping[str, str]
    """The dataset's labels of the portrait."""
    extractor: str
    """Who wrote it: an extractor with its version and settings."""
    text: str
    """The sentence itself."""
    flags: tuple[str, ...] = ()
    """What the checks found wrong with it."""
    edits: int = 0
    """Edits that were asked for with it."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """A judge that answered, as the study describes it."""

    judge: str
    """Its id."""
    kind: str
    """The installed judge that was used."""
    settings: Mapping[str, Any]
    """Its settings, such as the model."""
    blind: bool
    """Whether it was kept from the labels of the portraits."""
    models: Mapping[str, int]
    """Answers by model, as the provider named it; empty where there is no provider."""


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """What was sent to judges about one kind of case, word for word, with one request as the example."""

    about: str
    """The kind of case, in words."""
    judges: tuple[str, ...]
    """The judges that were sent these words."""
    request: str
    """Id of the request whose instruction stands in it."""
    system: str
    """The words about the task as a whole."""
    text: str
    """The words about the case; a picture stands as [picture]."""


@dataclass(frozen=True, slots=True)
class JudgeWords:
    """What one judge answered about one case."""

    judge: str
    """Its id."""
    scores: Mapping[str, int]
    """Its scores by question."""
    evidence: str
    """Its summary of the evidence; empty where it gave none."""
    observations: Mapping[str, str] = field(default_factory=dict)
    """What it wrote before it scored."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """An edit that shows a failure well, chosen by rule, with the words of the judges."""

    failure: str
    """The requested edit is missing or weak, or the edit came with a change of the person."""
    request: str
    """Id of the request."""
    editor: str
    """The editor's id."""
    prompt: str
    """The prompt's id."""
    group: Mapping[str, str]
    """The dataset's labels of the portrait."""
    scores: Mapping[str, int]
    """The judges' one score by question."""
    words: tuple[JudgeWords, ...]
    """What each judge answered."""


@dataclass(frozen=True, slots=True)
class PortraitRecord:
    """A portrait of a study that was added to, or whose portraits are no separate draws."""

    portrait: str
    """Its id."""
    run: int
    """The number of the run that added it; 0 where an earlier release added it."""
    added: str
    """When that run began; empty where it is not known."""
    block: str = ""
    """The person in it, or the base portrait it is a version of."""
    twin: Mapping[str, Any] = field(default_factory=dict)
    """Of a twin: the version it was compared with, and what was read."""


@dataclass(frozen=True, slots=True)
class MaterialsUsed:
    """All that was asked of editors, judges and people; empty where only scores are known."""

    prompts: tuple[Prompt, ...] = ()
    """The prompts of the edits, in the study's order."""
    editors: tuple[EditorSettings, ...] = ()
    """The editors with their settings."""
    feature_prompts: tuple[FeaturePromptRecord, ...] = ()
    """The feature prompts of the mitigation."""
    questions: tuple[Question, ...] = ()
    """The questions that raters answered, with every answer's wording."""
    judges: tuple[JudgeSettings, ...] = ()
    """The judges that answered."""
    judge_prompts: tuple[JudgePrompt, ...] = ()
    """What judges were sent."""
    survey: Mapping[str, Any] = field(default_factory=dict)
    """How people were asked: platform, cases, tasks, raters, pay; empty without a survey."""
    cases: tuple[JudgedCase, ...] = ()
    """Representative cases with the judges' words."""
    portraits: tuple[PortraitRecord, ...] = ()
    """The portraits, where some were added later, or show one person, or are versions of one portrait."""

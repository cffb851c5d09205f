"""One edit shown as an example, and how a page prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenedit.protocol import QUESTIONS
from evenedit.report.render.html import thumbnail
from evenedit.report.render.index import Index, display_name
from evenedit.report.render.table import DASH

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class ExampleCase:
    """One edit shown as an example."""

    editor: str
    prompt_id: str
    prompt: str
    """The prompt's short name."""
    group: Mapping[str, str]
    """The source's labels."""
    scores: Mapping[str, int | None]
    """Ensemble scores by question id."""
    source: Image
    edited: Image
    note: str
    """Why it was chosen."""
    id: str = ""
    """The request's id."""
    readings: str = ""
    """Its measurements in few words."""


def example_card(index: Index, example: ExampleCase, seen: dict[str, str]) -> dict[str, Any]:
    """Prepare an example for a template: pictures as data URIs, scores in words."""
    return {
        **{field: getattr(example, field) for field in ("editor", "prompt", "prompt_id", "note", "id", "readings")},
        "group": index.group_name(example.group),
        "pictures": [thumbnail(image, seen) for image in (example.source, example.edited)],
        "scores": [_score(q, value) for q, value in example.scores.items()],
        "notable": [f"{title} {value}" for title, value, _ in (_score(*s) for s in _notable(example))],
    }


def _notable(example: ExampleCase) -> list[tuple[str, int]]:
    """Return the scores that show a change of the person or an unfulfilled request."""
    calm = {"two": 3, "one": 1, "quality": 5}
    scored = ((q, value) for q, value in example.scores.items() if value is not None and q in QUESTIONS)
    return [(q, value) for q, value in scored if value != calm.get(QUESTIONS[q].sided, value)]


def _score(question: str, value: int | None) -> tuple[str, str, str]:
    """Return the title of a question, the score and the rubric's label of the score."""
    known = QUESTIONS.get(question)
    if known is None or value is None or not 1 <= value <= len(known.labels):
        return display_name(question), DASH if value is None else str(value), "no score" if value is None else ""
    return known.title, str(value), known.labels[value - 1]

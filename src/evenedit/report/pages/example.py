"""One edit shown as an example, and how a page prints it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenedit.protocol import Rubric
from evenedit.report.render.html import thumbnail
from evenedit.report.render.index import Index
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
    outlined: Callable[[], Sequence[Image]] | None = None
    """Draws source and edit with the skin that was read; None where nothing was measured."""


def example_card(index: Index, example: ExampleCase, seen: dict[str, str], *, outlined: bool = False) -> dict[str, Any]:
    """Prepare an example for a template: pictures as data URIs, with outlines or without; scores in words."""
    drawn = example.outlined() if outlined and example.outlined is not None else ()
    return {
        **{field: getattr(example, field) for field in ("editor", "prompt", "prompt_id", "note", "id", "readings")},
        "group": index.group_name(example.group),
        "pictures": [thumbnail(image, seen) for image in drawn or (example.source, example.edited)],
        "scores": [_score(index.rubric, q, value) for q, value in example.scores.items() if q in index.rubric],
        "notable": [
            f"{title} {value}"
            for title, value, _ in (_score(index.rubric, *s) for s in _notable(index.rubric, example))
        ],
    }


def _notable(rubric: Rubric, example: ExampleCase) -> list[tuple[str, int]]:
    """Return the scores that show a change of the person or an unfulfilled request."""
    scored = ((q, value) for q, value in example.scores.items() if value is not None and q in rubric)
    return [(q, value) for q, value in scored if value != _calm(rubric, q, value)]


def _calm(rubric: Rubric, question: str, value: int) -> int:
    """Return the score that is not worth a word: no change, the best of a quality, any choice without a rate."""
    spec = rubric.spec_by_column[question]
    if not spec.is_choice:
        return spec.row.neutral or (1 if spec.row.harm == "high" else len(spec.question.labels))
    bad = any(rate.question == question and rate.met(np.array([value]))[0] for rate in spec.rates.values())
    return 0 if bad else value


def _score(rubric: Rubric, question: str, value: int | None) -> tuple[str, str, str]:
    """Return the title of a question, the score and the rubric's label of the score."""
    title, options = rubric.title(question), list(rubric.options(question).values())
    if value is None or not 1 <= value <= len(options):
        return title, DASH if value is None else str(value), "no score" if value is None else ""
    return title, options[value - 1] if question in rubric.choices else str(value), options[value - 1]

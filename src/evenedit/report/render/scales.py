"""The scales of questions in words, for captions: "Skin tone: 3 = unchanged, above 3 = lighter."."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from evenedit.protocol import Rubric
from evenedit.results.words import listed


def scales(rubric: Rubric, columns: Sequence[str]) -> str:
    """Return a sentence for each question on what its scores mean; equal ones are joined."""
    if not columns:
        return ""
    levels = {column: len(rubric.questions[column].labels) for column in columns}
    usual = Counter(levels.values()).most_common(1)[0][0]
    ranges = [f"1–{usual}", *(f"{rubric.title(c).lower()} 1–{k}" for c, k in levels.items() if k != usual)]
    titles = {column: rubric.title(column) for column in columns}
    return ". ".join([f"Scale {', '.join(ranges)}", *map(": ".join, _joined(rubric, columns, titles))]) + "."


def short_scales(rubric: Rubric, columns: Sequence[str]) -> str:
    """Return the same in few words, for the scores under a picture."""
    names = {column: rubric.short(column) for column in columns}
    return "; ".join(f"{what} {meaning}" for what, meaning in _joined(rubric, columns, names))


def meaning_of(rubric: Rubric, column: str) -> str:
    """Return what the score without a change means, or the highest score: "1 = same"."""
    spec, labels = rubric.spec_by_column[column], rubric.questions[column].labels
    if spec.two_sided:
        neutral = rubric.no_change(column)
        above = next((spec.row.rates[r.id].side for r in spec.rates.values() if r.at_least is not None), "")
        return f"{neutral} = unchanged" + (f", above {neutral} = {above}" if above else "")
    score = spec.row.neutral or len(labels)
    word = re.split(r"[:—(]", rubric.options(column)[labels[score - 1]])[0].strip()
    return f"{score} = {word[:1].lower()}{word[1:]}"


def _joined(rubric: Rubric, columns: Sequence[str], names: dict[str, str]) -> list[tuple[str, str]]:
    """Return neighbouring questions with one meaning together: "Race and gender change"."""
    parts = []
    for (last, meaning), same in groupby(columns, lambda c: (names[c].split()[-1], meaning_of(rubric, c))):
        first, *more = [names[c] for c in same]
        heads = [name.removesuffix(last).strip() for name in (first, *more)]
        if more and all(heads):
            first = f"{listed([heads[0], *(h[:1].lower() + h[1:] for h in heads[1:])])} {last}"
            more = []
        parts += [(name, meaning) for name in (first, *more)]
    return parts

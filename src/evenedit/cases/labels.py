"""The labels of portraits and groups in words, by the study's own factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenedit.core.errors import EvenEditError
from evenedit.protocol import Factor, Rubric


def label_titles(attributes: Mapping[str, str], factors: Sequence[Factor]) -> dict[str, str]:
    """Return the printed labels of a portrait by factor, without missing ones."""
    labelled = [f for f in factors if attributes.get(f.name)]
    return {f.name: f.titles.get(attributes[f.name], attributes[f.name]) for f in labelled}


def labels_in_words(attributes: Mapping[str, str], factors: Sequence[Factor]) -> str:
    """Join a portrait's labels in one line: "Black, Female, 20s"."""
    return ", ".join(label_titles(attributes, factors).values()) or "without labels"


def group_in_words(group: Mapping[str, str], factors: Sequence[Factor]) -> str:
    """Describe a group of portraits: "Black, Female", or everybody."""
    return ", ".join(label_titles(group, factors).values()) or "Everybody"


def in_a_sentence(factor: Factor) -> str:
    """Return the factor's title in the form used in a sentence: "race", "Monk skin tone"."""
    return factor.name if factor.title.lower() == factor.name else factor.title


def refuse_different_factors(several: Sequence[Sequence[Factor]]) -> None:
    """Raise an error unless all studies group their portraits by the same factors."""
    named = dict.fromkeys(", ".join(f.name for f in factors) for factors in several)
    if len(named) > 1:
        raise EvenEditError(
            f"the studies group portraits by different factors ({'; '.join(named)}), so their gaps cannot be "
            "compared; use studies with the same factors"
        )


def refuse_other_questions(several: Sequence[Rubric]) -> None:
    """Raise an error where studies ask a question, or the question of a rate, differently."""
    first, *others = several
    differences = dict.fromkeys(line for other in others for line in first.asked_differently(other))
    if differences:
        raise EvenEditError(*(f"{line}; such numbers cannot be compared" for line in differences))

"""The words for codes, factors, groups and numbers that every text uses: findings, tables and pages alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenedit.protocol import FACTORS, Factor

NOUNS = {
    "no_image": "answers in words",
    "no_picture": "missing pictures",
    "measured_skin_lighter": "skin lighter after a change of light was removed",
    "measured_skin_darker": "skin darker after a change of light was removed",
    "displayed_lighter": "skin displayed lighter",
    "displayed_darker": "skin displayed darker",
    "brighter": "brighter pictures",
    "dimmer": "dimmer pictures",
    "ignored": "ignored requests",
}
"""By rate, what it counts, where its name does not say it."""
UNEDITED = {"refused": "refused", "no_image": "answered in words", "failed": "failed"}
"""By outcome, how an edit without a picture ended."""
BARE = frozenset({"yes", "no", "none", "other", "unknown"})
"""Titles of levels that say nothing without the name of their factor; numbers are such titles too."""
ALL_GROUPS = "Everybody"


def plain(rate: str) -> str:
    """Return the name of a rate in words, without "measured"."""
    return NOUNS.get(rate) or rate.removeprefix("measured_").replace("_", " ")


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "race, gender and age"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def factor_noun(factor: Factor) -> str:
    """Return a factor as it stands inside a sentence: "race"; a title that was declared stays, "Monk skin tone"."""
    words = factor.name.replace("_", " ")
    return words if factor.title.lower() == words else factor.title


def plural(factor: Factor) -> str:
    """Return the plural of a factor: "races", or "levels of Monk skin tone" for a declared one."""
    return f"{factor_noun(factor)}s" if factor.name in {f.name for f in FACTORS} else f"levels of {factor.title}"


def group_name(group: Mapping[str, str], factors: Sequence[Factor] = FACTORS) -> str:
    """Return a group in words, in the order of the factors: "Black, Female"."""
    known = [f for f in factors if f.name in group]
    names = [_level_in_group(f, group[f.name]) for f in known]
    names += [code for key, code in group.items() if key not in {f.name for f in known}]
    return ", ".join(names) or ALL_GROUPS


def _level_in_group(factor: Factor, code: str) -> str:
    """Return the title of a level, preceded by the factor's title if it is unclear alone: "Headwear none"."""
    title = factor.titles.get(code, code)
    if title.casefold() in BARE or title.replace(".", "", 1).isdecimal():
        return f"{factor.title} {title}"
    return title


def percent(value: float) -> str:
    """Return a share of edits: "47.9%"."""
    return f"{_rounded(100 * value)}%"


def points(value: float, *, signed: bool = False) -> str:
    """Return a difference of two shares: "45.8 points"."""
    number = _rounded(100 * value)
    return f"{'+' if signed and value > 0 else ''}{number} {'point' if number == '1.0' else 'points'}"


def between(low: float, high: float, confidence: float) -> str:
    """Return an interval of shares or of their difference: "95% interval 30.2 to 60.1"."""
    return f"{100 * confidence:g}% interval {_rounded(100 * low)} to {_rounded(100 * high)}"


def scale_points(value: float) -> str:
    """Return a difference of scores on the 1-5 scale: "−0.31"."""
    return f"{value:+.2f}".replace("-", "−")


def count(number: int, what: str) -> str:
    """Return a number of things: "1 face", "12 faces"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rounded(value: float) -> str:
    return f"{value + 0.0:.1f}".replace("-", "−") if round(value, 1) else "0.0"

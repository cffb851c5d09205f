"""Questions to participants about themselves."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

YOUNGEST, OLDEST = 18, 120
"""Ages that are taken for one: participants are adults."""
BANDS = ((18, 24), (25, 34), (35, 44), (45, 54), (55, 64), (65, OLDEST))
"""The ages that tables and groups put together."""


@dataclass(frozen=True, slots=True)
class ProfileQuestion:
    """A question to participants about themselves."""

    id: str
    title: str
    """How tables print it."""
    kind: Literal["number", "choice", "country", "language"]
    options: tuple[str, ...] = ()
    """The answers to choose from."""
    prolific: str = ""
    """The column of Prolific's demographic export that holds it."""
    sensitive: bool = False
    """Whether it is stored only with a consent of its own."""

    def group(self, value: str) -> str:
        """Return the group of an answer in tables: a band of ages, or the answer itself."""
        if self.kind != "number":
            return value
        low, high = next((band for band in BANDS if band[0] <= int(value) <= band[1]), BANDS[-1])
        return f"{low} or older" if high == OLDEST else f"{low}–{high}"

    def accepts(self, value: str) -> bool:
        """Return True if this is an answer to the question."""
        if self.kind == "number":
            return value.isascii() and value.isdecimal() and len(value) <= 3 and YOUNGEST <= int(value) <= OLDEST
        return value in self.options


@cache
def places() -> dict[str, dict[str, str]]:
    """Return `countries` and `languages`: English names by code."""
    return tomllib.loads(files(__package__).joinpath("places.toml").read_text("utf-8"))


@cache
def standard_questions() -> dict[str, ProfileQuestion]:
    """Return the questions of the paper's Table 17, by id."""
    data = tomllib.loads(files(__package__).joinpath("questionnaire.toml").read_text("utf-8"))
    return {row["id"]: _question(row) for row in data["questions"]}


def _question(row: Mapping[str, Any]) -> ProfileQuestion:
    lists = {"country": tuple(places()["countries"].values()), "language": tuple(places()["languages"].values())}
    options = lists.get(row["kind"], tuple(row.get("options", ())))
    return ProfileQuestion(**{**row, "options": options})

"""The page of cases: every edit beside its source, filtered by the query that a number of the report leads to.

It works from disk without a server: the list of cases is a part of the page, the pictures are files beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from evenedit.report.render.html import render

if TYPE_CHECKING:
    from evenedit.report.pages.example import ExampleCase

PAGE = "cases.html"
PICTURES = "pictures"
"""The folder of the pictures."""


@dataclass(frozen=True, slots=True)
class CaseField:
    """A property with few values, one of which every case has."""

    id: str
    title: str
    values: Mapping[str, str]
    """Titles by value; the value is what a query names."""
    codes: NDArray[np.int32]
    """[case]: position in `values`."""

    def among(self, chosen: Iterable[str]) -> NDArray[np.bool_]:
        """Return which cases have one of these values."""
        names = list(self.values)
        wanted = np.zeros(len(names), dtype=np.bool_)
        wanted[[names.index(value) for value in chosen if value in self.values]] = True
        return np.asarray(wanted[self.codes], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class CaseNumber:
    """A number of every case, NaN where it is missing; filtered by a range."""

    id: str
    title: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CaseList:
    """Every case of a study with what it can be filtered by, and the names of its pictures."""

    ids: Sequence[str]
    fields: Sequence[CaseField]
    numbers: Sequence[CaseNumber]
    portraits: Mapping[str, Sequence[str]]
    """The names of the source pictures by the value of the field `source`."""
    outputs: Sequence[str]
    """By case: the name of the output's picture; empty where there is none."""
    reasons: Mapping[str, str]
    """Why a case has no picture, by id."""
    prompts: Mapping[str, str]
    """The text of each prompt."""
    scores: Sequence[str]
    """The fields that are scores."""
    printed: Sequence[str]
    """The numbers that are printed with a case."""

    def to_json(self) -> str:
        """Serialise the list for the page: compact, and safe inside a script element."""
        data = {
            "ids": list(self.ids),
            "fields": [
                {"id": f.id, "title": f.title, "values": list(f.values.items()), "codes": f.codes.tolist()}
                for f in self.fields
            ],
            "numbers": [
                {"id": n.id, "title": n.title, "values": list(map(_rounded, n.values.tolist()))} for n in self.numbers
            ],
            "portraits": {source: list(names) for source, names in self.portraits.items()},
            "outputs": list(self.outputs),
            "reasons": dict(self.reasons),
            "prompts": dict(self.prompts),
            "scores": list(self.scores),
            "printed": list(self.printed),
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return text.replace("</", "<\\/").replace("<!", "<\\u0021")


@dataclass(frozen=True, slots=True)
class CaseBundle:
    """The cases of a report with their pictures."""

    cases: CaseList
    pictures: Iterable[tuple[str, bytes]]
    """Names of files with their contents, made one after the other; none where pictures are left out."""
    show: Callable[[str], ExampleCase | None]
    """A case with its pictures by its id; None where pictures are left out or there is no output."""
    full: bool = False
    """Whether the pictures are there in full size too."""


def cases_page(bundle: CaseBundle, title: str, simulated: str) -> str:
    """Return the page of cases."""
    context: dict[str, Any] = {
        "data": Markup(bundle.cases.to_json()),
        "folder": PICTURES,
        "full": bundle.full,
        "total": len(bundle.cases.ids),
    }
    return render("cases.html", title=title, simulated=simulated, **context)


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)

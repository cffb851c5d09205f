"""The words of tables and figures, which are data: TOML files whose texts are Jinja templates."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from evenedit.report.render.index import Index, factor_noun, plural
from evenedit.report.render.scales import scales

WORDS = Path(__file__).parents[1] / "words"


@cache
def _entries(kind: str) -> dict[str, Any]:
    return tomllib.loads((WORDS / f"{kind}.toml").read_text("utf-8"))


@cache
def _template(text: str) -> Template:
    shared = DictLoader(_entries("tables")["shared"])
    texts = Environment(loader=shared, undefined=StrictUndefined, autoescape=False)
    texts.globals |= {"noun": factor_noun, "plural": plural, "scales": scales}
    return texts.from_string(text)


def entry_of(kind: str, id: str) -> dict[str, Any]:
    """Return the texts of one of the `tables` or `figures`."""
    entry: dict[str, Any] = _entries(kind)[id]
    return entry


def filled(text: str, index: Index, words: Mapping[str, object]) -> str:
    """Return a text with its variables filled in from the results and from `words`."""
    return _template(text).render(index=index, **words)

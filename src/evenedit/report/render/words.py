"""The words of the report, which are data: TOML files whose longer texts are Jinja templates."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from evenedit.report.render.scales import scales
from evenedit.results.words import factor_noun, plural

WORDS = Path(__file__).parents[1] / "words"


@cache
def entries(kind: str) -> dict[str, Any]:
    """Return the content of a file of words: names, tables, figures or sections."""
    return tomllib.loads((WORDS / f"{kind}.toml").read_text("utf-8"))


@cache
def _template(text: str) -> Template:
    shared = DictLoader(entries("tables")["shared"])
    texts = Environment(loader=shared, undefined=StrictUndefined, autoescape=False)
    texts.globals |= {"noun": factor_noun, "plural": plural, "scales": scales}
    return texts.from_string(text)


def filled(text: str, index: Any, words: Mapping[str, object]) -> str:
    """Return a text with its variables filled in: `index` with the results, and `words`."""
    return _template(text).render(index=index, **words)

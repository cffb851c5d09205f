"""The words of the report, which are data: TOML files whose longer texts are Jinja templates."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from evenedit.report.render.scales import scales
from evenedit.results.words import count, factor_noun, listed, plural

WORDS = Path(__file__).parents[1] / "words"


@cache
def entries(kind: str) -> dict[str, Any]:
    """Return the content of a file of words: names, tables, figures or sections."""
    return tomllib.loads((WORDS / f"{kind}.toml").read_text("utf-8"))


@cache
def _texts() -> Environment:
    shared = DictLoader(entries("tables")["shared"])
    texts = Environment(loader=shared, undefined=StrictUndefined, autoescape=False)
    texts.globals |= {"noun": factor_noun, "plural": plural, "scales": scales, "count": count, "listed": listed}
    return texts


@cache
def _template(text: str) -> Template:
    return _texts().from_string(text)


def filled(text: str, **words: object) -> str:
    """Return a text with its variables filled in."""
    return _template(text).render(words) if "{" in text else text


def texts_of(kind: str, id: str, **words: object) -> dict[str, str]:
    """Return the texts of one entry of a file by their names, filled in."""
    return {name: filled(text, **words) for name, text in entries(kind)[id].items()}


def lines_of(file: str, **words: object) -> list[str]:
    """Return the lines of a text file of words, filled in, without empty ones."""
    text = filled((WORDS / file).read_text("utf-8"), **words)
    return [line.strip() for line in text.splitlines() if line.strip()]

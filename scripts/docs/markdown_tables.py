"""Tables in Markdown, and the docstrings that stand below attributes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *([shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def shown(text: str) -> str:
    """Words as they are, where Markdown would take `gap.<rate>` for a tag; what stands in backticks is left alone."""
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;").replace(">", "&gt;")
        for number, part in enumerate(text.split("`"))
    )


def attribute_docstrings(kind: type) -> dict[str, str]:
    """What a class says of its attributes, in the string below each; '' where it says nothing."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    above = kind.__mro__[1]
    found = attribute_docstrings(above) if above.__module__ == kind.__module__ else {}
    for here, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign):
            said = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            found[here.target.id] = " ".join(below.value.value.split()) if said else ""
    return found


def first_paragraph(kind: type) -> str:
    """What a class says of itself."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())

"""What stands in `results.json`, from the records that are written into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from evenedit.results import materials
from evenedit.results import results as module
from evenedit.results.results import SCHEMA, Results
from markdown_tables import attribute_docstrings, first_paragraph, shown, table

COLUMNS = {
    "measure": "What is counted: `mean.<axis>`, `rate.<rate>`, `delta.<axis>` or `gap.<rate>`.",
    "experiment": "diagnosis, mitigation or stereotype.",
    "condition": "baseline, feature, placebo or swapped.",
    "editor": "The editor's id; null when pooled over editors.",
    "group": '`{}` for everybody, `{"race": "Black"}` for a group, `{"race": "*"}` for a comparison of all groups.',
    "factor": "The factor whose groups are compared.",
    "highest": "The group with the highest rate.",
    "lowest": "The group with the lowest rate.",
    "rater": "The judge's or instrument's id.",
    "judge": "The judge's id, or its estimate.",
    "question": "The question's id.",
    "reason": "Why, in words.",
    "value": "The number.",
    "low": "Lower end of its interval; null where the design cannot give one.",
    "high": "Upper end of its interval.",
    "n": "Valid scores behind it.",
    "missing": "Edits without a valid score.",
    "count": "How often.",
    "cases": "Cases behind it.",
    "faces": "Portraits behind it.",
    "seeds": "How many seeds.",
    "n_items": "Items behind it.",
    "p": "Its p value, not adjusted.",
    "p_raw": "Its p value, not adjusted.",
    "method": "How it was made, or why it is missing.",
    "mean": "The mean.",
    "scored": "Calls that gave scores.",
    "refused": "Calls that were refused.",
    "unparseable": "Calls whose reply could not be read.",
    "failed": "Calls that failed.",
    "threshold": "The cut that was used.",
    "ensemble": "The ensemble rule that was used.",
    "is_default": "Whether this is the reading that the report uses.",
    "planted": "The effect that the simulated editor was given.",
    "found": "The effect that the audit found.",
    "estimate": "The estimate: see `estimates`.",
    "estimates": "Its estimates: see `estimates`.",
    "tests": "Its tests: see `tests`.",
    "contrasts": "Its contrasts: see `contrasts`.",
    "missing_reasons": "Why readings are missing; see the table below.",
    "human": "People's estimate.",
    "kind": "What sort it is.",
    "text": "The sentence.",
    "specifications": "One for each reading; see the table below.",
    "name": "Its id.",
    "code": "The label as files have it.",
    "title": "How it is printed.",
    "levels": "Every label there can be, in order.",
    "ordered": "Whether the order of the levels means something.",
}
"""What columns mean that several records share; a record's own docstring comes first."""


def reference() -> str:
    """A section per part of the file, in the file's order."""
    said = attribute_docstrings(Results)
    kinds = hints(Results)
    parts = [f'`"schema"` is `"{SCHEMA}"`. The other parts, in the order of the file:']
    for part in fields(Results):
        record = record_of(kinds[part.name])
        parts.append(f"## `{part.name}`\n\n{described(record, said[part.name])}")
    return "\n\n".join(parts)


def described(record: Any, said: str) -> str:
    """What a part is: its own words, then its rows' fields."""
    if record is None:
        return shown(said)
    texts = [shown(first_paragraph(record)), shown(said), columns(record)]
    texts += [
        f"Each of its `{name}`: {first_paragraph(inner)}\n\n{columns(inner)}"
        for name, inner in nested(record)
        if (inner.__module__ == module.__name__ and name in ("specifications", "missing_reasons"))
        or inner.__module__ == materials.__name__
    ]
    return "\n\n".join(filter(None, texts))


def columns(record: Any) -> str:
    """The fields of a record."""
    return table(["field", "value", "meaning"], [[f"`{n}`", words(kind), text] for n, kind, text in meanings(record)])


def meanings(record: Any) -> Iterator[tuple[str, Any, str]]:
    """Each field of a record with its type and its meaning; a range explained at its upper end is explained there."""
    own = attribute_docstrings(record)
    for name, kind in hints(record).items():
        yield name, kind, own[name] or COLUMNS.get(name) or COLUMNS.get(name.rpartition("_")[2], "")


def nested(record: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a record that hold records."""
    for name, kind in hints(record).items():
        if inner := record_of(kind):
            yield name, inner


def hints(record: Any) -> Mapping[str, Any]:
    """The types of a record's fields, in order."""
    known = get_type_hints(record)
    return {part.name: known[part.name] for part in fields(record)}


def record_of(kind: Any) -> Any:
    """The record in a type, if there is one."""
    if is_dataclass(kind):
        return kind
    return next(filter(None, map(record_of, get_args(kind))), None)


def words(kind: Any) -> str:
    """A type in the words of JSON."""
    inner = [k for k in get_args(kind) if k is not type(None)]
    null = " or null" if type(None) in get_args(kind) else ""
    if get_origin(kind) is Literal:
        return " or ".join(f'`"{value}"`' for value in inner)
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if kind in plain:
        return plain[kind]
    if null:
        return words(inner[0]) + null
    if is_dataclass(kind):
        return "object"
    return "object" if "Mapping" in str(kind) else "list"

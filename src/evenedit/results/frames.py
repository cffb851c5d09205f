"""The lists of `results.json` as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError

if TYPE_CHECKING:
    import pandas as pd

LEVEL = "level"
"""The column of the keys of a mapping whose values are records."""

SEPARATE = ("groups",)
"""Nested lists with a frame of their own, such as `tests.groups`."""

Row = dict[str, Any]


def frame_of(record: Any, name: str) -> pd.DataFrame:
    """Return a list of a results record as a data frame; an empty list gives the columns without rows."""
    import pandas as pd

    lists = lists_of(type(record))
    if name not in lists:
        raise EvenEditError(f"there is no list '{name}' in these results{plugins.suggest(name, lists)}")
    kind, inner = lists[name]
    factors = [f.name for f in record.factors]
    members = getattr(record, name.partition(".")[0])
    rows = [row for member in members for row in _rows(member, inner, factors)]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(_columns(kind, inner, factors))))


def lists_of(kind: Any) -> dict[str, tuple[Any, str]]:
    """Return, by name, the record type of a list and the nested list that makes the rows."""
    records: dict[str, tuple[Any, str]] = {}
    for name, hint in get_type_hints(kind).items():
        record = _record_of(hint, tuple)
        if record is None and get_origin(hint) is tuple:
            records[name] = (str, "")
        elif record is not None:
            within = [inner for inner, of in get_type_hints(record).items() if _record_of(of, tuple)]
            first = next((inner for inner in within[:1] if inner not in SEPARATE), "")
            records[name] = (record, first)
            records |= {f"{name}.{inner}": (record, inner) for inner in within if inner != first}
    return records


def _rows(record: Any, inner: str, factors: Sequence[str]) -> Iterator[Row]:
    """Return the rows of one record: one, or one for each member of the nested list or mapping."""
    if not is_dataclass(record):
        yield {"id": record}
        return
    flat: Row = {}
    several: list[Row] | None = None
    for name, hint in get_type_hints(type(record)).items():
        value = getattr(record, name)
        if name == "group":
            flat |= {factor: (value or {}).get(factor) for factor in factors}
        elif is_dataclass(hint):
            flat |= next(_rows(value, "", factors))
        elif _record_of(hint, tuple):
            if name == inner:
                several = [row for member in value for row in _rows(member, "", factors)]
        elif _record_of(hint, Mapping) and value:
            several = [{LEVEL: key} | next(_rows(member, "", factors)) for key, member in value.items()]
        elif not _record_of(hint, Mapping):
            flat[name] = value
    for row in [{}] if several is None else several:
        yield flat | {_free(key, flat): value for key, value in row.items()}


def _columns(kind: Any, inner: str, factors: Sequence[str]) -> Iterator[str]:
    """Yield the columns of records of this type, in the order of their fields."""
    if not is_dataclass(kind):
        yield "id"
        return
    hints = get_type_hints(kind)
    outer = {column: None for name, hint in hints.items() for column in _outer_columns(name, hint, factors)}
    for name, hint in hints.items():
        within = (_record_of(hint, tuple) if name == inner else None) or _record_of(hint, Mapping)
        if within is not None:
            columns = [*([LEVEL] if _record_of(hint, Mapping) else []), *_columns(within, "", factors)]
            yield from (_free(column, outer) for column in columns)
        yield from _outer_columns(name, hint, factors)


def _outer_columns(name: str, hint: Any, factors: Sequence[str]) -> list[str]:
    """Return the columns of a field that holds no nested list or mapping of records."""
    if name == "group":
        return list(factors)
    if is_dataclass(hint):
        return list(_columns(hint, "", factors))
    return [] if _record_of(hint, tuple) or _record_of(hint, Mapping) else [name]


def _free(column: str, taken: Mapping[str, Any]) -> str:
    """Return a column's name, or another if the outer record has a column of that name."""
    return f"{column}_within" if column in taken else column


def _record_of(hint: Any, container: type) -> Any:
    """Return the dataclass that a tuple or mapping of this type holds; None for anything else."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(a for a in get_args(hint) if a is not type(None))
    origin, arguments = get_origin(hint), get_args(hint)
    if not isinstance(origin, type) or not issubclass(origin, container) or not arguments:
        return None
    member = arguments[1] if container is Mapping else arguments[0]
    return member if is_dataclass(member) else None

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

    from evenedit.results.results import Results

LEVEL = "level"
"""The column of the keys of a mapping whose values are records."""

Row = dict[str, Any]


def frame_of(results: Results, name: str) -> pd.DataFrame:
    """Return a list of the results as a data frame; without rows, but with its columns, where the list is empty."""
    import pandas as pd

    lists = lists_of(type(results))
    if name not in lists:
        raise EvenEditError(f"there is no list '{name}' in these results{plugins.suggest(name, lists)}")
    kind, inner = lists[name]
    factors = [f.name for f in results.factors]
    rows = [row for record in getattr(results, name.partition(".")[0]) for row in _rows(record, inner, factors)]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(_columns(kind, inner, factors))))


def lists_of(kind: Any) -> dict[str, tuple[Any, str]]:
    """By name, the type of a list's records and which list within them makes the rows."""
    found: dict[str, tuple[Any, str]] = {}
    for name, hint in get_type_hints(kind).items():
        record = _record_of(hint, tuple)
        if record is None and get_origin(hint) is tuple:
            found[name] = (str, "")
        elif record is not None:
            within = [inner for inner, of in get_type_hints(record).items() if _record_of(of, tuple)]
            found[name] = (record, within[0] if within else "")
            found |= {f"{name}.{inner}": (record, inner) for inner in within[1:]}
    return found


def _rows(record: Any, inner: str, factors: Sequence[str]) -> Iterator[Row]:
    """The rows of one record: one, or one for each member of the list or mapping within it."""
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
    """The columns of records of this type, in the order of their fields."""
    if not is_dataclass(kind):
        yield "id"
        return
    seen: Row = {}
    for name, hint in get_type_hints(kind).items():
        within = (_record_of(hint, tuple) if name == inner else None) or _record_of(hint, Mapping)
        if name == "group":
            columns = list(factors)
        elif is_dataclass(hint):
            columns = list(_columns(hint, "", factors))
        elif within is not None:
            own = list(_columns(within, "", factors))
            columns = [_free(c, seen) for c in ([LEVEL, *own] if _record_of(hint, Mapping) else own)]
        else:
            columns = [] if _record_of(hint, tuple) else [name]
        seen |= dict.fromkeys(columns)
    yield from seen


def _free(column: str, taken: Mapping[str, Any]) -> str:
    """A column's name, or another where the outer record has one of that name."""
    return f"{column}_within" if column in taken else column


def _record_of(hint: Any, container: type) -> Any:
    """The dataclass that a tuple or mapping of this type holds; None for anything else."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(a for a in get_args(hint) if a is not type(None))
    origin, arguments = get_origin(hint), get_args(hint)
    if not isinstance(origin, type) or not issubclass(origin, container) or not arguments:
        return None
    member = arguments[1] if container is Mapping else arguments[0]
    return member if is_dataclass(member) else None

"""The long lists of results: `results.json` has their main rows, CSV files next to it have all rows."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, Protocol, TypeVar, get_origin, get_type_hints

from evenedit.core.records import Estimate, Experiment
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.agreement import Agreement, PredictionPowered
from evenedit.results.directions import Direction
from evenedit.results.reading import decode, member_type

FOLDER = "tables/rows"
"""The folder of the CSV files, seen from `results.json`."""
KEY = "long_lists"
"""The key of `results.json` that lists them: file, number of rows and SHA-256 of each."""
SIMULATED = "SIMULATED"
"""The mark of rows of simulated data."""
ONE_GROUP = ("mann_whitney_U", "cliffs_delta")
"""Statistics that compare one group with the others."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class InstrumentEstimate:
    """An estimate of one instrument, as a row of a CSV file."""

    rater: str
    estimate: Estimate


def _is_main_estimate(e: Estimate, main: str) -> bool:
    """Return whether an estimate is of everybody or of one factor; of mitigation only of the main factor."""
    return set(e.group) <= {main} if e.experiment == Experiment.MITIGATION else len(e.group) <= 1


def _is_main_agreement(a: Agreement, main: str) -> bool:
    """Return whether a row is over all editors, and of everybody or a comparison of groups."""
    return a.editor is None and (not a.group or "*" in a.group.values() or a.statistic in ONE_GROUP)


class _Grouped(Protocol):
    @property
    def group(self) -> Mapping[str, str]: ...


def _is_main_group(row: _Grouped, main: str) -> bool:
    """Return whether a row is of everybody or of a group of the main factor."""
    return set(row.group) <= {main}


def _is_main_powered(p: PredictionPowered, main: str) -> bool:
    """Return whether a row is of everybody or of a gap."""
    return not p.group or "*" in p.group.values()


def _is_main_direction(d: Direction, main: str) -> bool:
    """Return whether a row is no single transition or destination."""
    return Measure(d.measure).kind not in (MeasureKind.TRANSITION, MeasureKind.DESTINATION)


def _never(row: Any, main: str) -> bool:
    return False


MAIN_ROWS: Mapping[str, Callable[[Any, str], bool]] = {
    "estimates": _is_main_estimate,
    "contrasts": _is_main_group,
    "agreement": _is_main_agreement,
    "powered": _is_main_powered,
    "directions": _is_main_direction,
    "per_judge": _never,
    "sensitivity": _never,
    "leave_one_out": _never,
    "multiverse": _never,
    "contributions": _never,
}
"""By list, whether `results.json` has a row."""
INSTRUMENTS = "measured"
"""The list whose estimates are long within each instrument."""


def without_long_rows(results: R) -> R:
    """Return the results with the main rows of long lists only."""
    main = _main_factor(results)
    record: Any = results
    lists = {name: tuple(r for r in getattr(results, name) if keep(r, main)) for name, keep in MAIN_ROWS.items()}
    measured = tuple(
        replace(m, estimates=tuple(e for e in m.estimates if _is_main_estimate(e, main))) for m in record.measured
    )
    short: R = replace(record, **lists, measured=measured)
    return short


def csv_files(results: Any) -> dict[str, bytes]:
    """Return the CSV files of long lists by path; a list without rows has none."""
    lists = {name: (_row_type(type(results), name), getattr(results, name)) for name in MAIN_ROWS}
    readings = [InstrumentEstimate(m.rater, e) for m in results.measured for e in m.estimates]
    lists[INSTRUMENTS] = (InstrumentEstimate, readings)
    mark = SIMULATED if results.simulated else ""
    return {f"{FOLDER}/{name}.csv": to_csv(kind, rows, mark) for name, (kind, rows) in lists.items() if rows}


def describe(files: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """Return, by path, the SHA-256 of each CSV file."""
    return {path: {"sha256": hashlib.sha256(content).hexdigest()} for path, content in files.items()}


def unread_files(described: Mapping[str, Mapping[str, str]], read: Callable[[str], bytes | None]) -> list[str]:
    """Return the paths of CSV files that are missing or changed."""
    contents = {path: read(path) for path in described}
    return [
        path
        for path, content in contents.items()
        if content is None or hashlib.sha256(content).hexdigest() != described[path]["sha256"]
    ]


def with_long_rows(results: R, described: Mapping[str, Mapping[str, str]], read: Callable[[str], bytes | None]) -> R:
    """Return the results with all rows of the lists whose CSV file is there and unchanged.

    `described` is what `describe` returned when the results were written; `read` returns the content of a file by its
    path, or None.
    """
    record: Any = results
    lists: dict[str, Any] = {}
    unread = unread_files(described, read)
    for path in described:
        content = None if path in unread else read(path)
        if content is None:
            continue
        name = path.removeprefix(f"{FOLDER}/").removesuffix(".csv")
        if name == INSTRUMENTS:
            rows = from_csv(InstrumentEstimate, content)
            lists[name] = tuple(
                replace(m, estimates=tuple(r.estimate for r in rows if r.rater == m.rater)) for m in record.measured
            )
        else:
            lists[name] = tuple(from_csv(_row_type(type(results), name), content))
    complete: R = replace(record, **lists)
    return complete


def to_csv(kind: type, rows: Iterable[Any], mark: str = "") -> bytes:
    """Return records of one type as CSV: a column per field; a record within a record adds its fields.

    `mark` is repeated in a last column, which `from_csv` does not read.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    marks = [mark] if mark else []
    writer.writerow([name for name, *_ in _columns(kind)] + ["mark"] * len(marks))
    getters = [path for _, path, _ in _columns(kind)]
    for row in rows:
        writer.writerow([_cell(_value(row, path)) for path in getters] + marks)
    return text.getvalue().encode()


def from_csv(kind: type[R], content: bytes) -> list[R]:
    """Return the records that `to_csv` wrote."""
    reader = csv.reader(io.StringIO(content.decode(), newline=""))
    next(reader)
    return [_record(kind, iter(row)) for row in reader]


@cache
def _columns(kind: type, path: tuple[str, ...] = ()) -> tuple[tuple[str, tuple[str, ...], Any], ...]:
    """Return the name, the path of fields and the type of each column."""
    columns: list[tuple[str, tuple[str, ...], Any]] = []
    for name, hint in _hints(kind).items():
        if is_dataclass(hint) and isinstance(hint, type):
            columns += _columns(hint, (*path, name))
        else:
            columns.append((name, (*path, name), hint))
    return tuple(columns)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {part.name: hints[part.name] for part in fields(kind)}


def _value(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = getattr(row, name)
    return row


def _cell(value: Any) -> str:
    """Return a value as the text of a cell: nothing for None, a group as `race=Black;gender=Male`, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping) and all(isinstance(v, str) and not set(";=") & set(v) for v in value.values()):
        return ";".join(f"{k}={v}" for k, v in value.items())
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_dict)


def _as_dict(record: Any) -> dict[str, Any]:
    return {part.name: getattr(record, part.name) for part in fields(record)}


def _record(kind: Any, cells: Iterator[str]) -> Any:
    values: dict[str, Any] = {}
    for name, hint in _hints(kind).items():
        if is_dataclass(hint) and isinstance(hint, type):
            values[name] = _record(hint, cells)
        else:
            values[name] = _parsed(hint, next(cells))
    return kind(**values)


def _parsed(hint: Any, cell: str) -> Any:
    if hint is str or get_origin(hint) is Literal:
        return cell
    if not cell:
        return {} if get_origin(hint) is Mapping else None
    if hint == Mapping[str, str] and not cell.startswith("{"):
        return dict(pair.split("=", 1) for pair in cell.split(";"))
    return cell if hint == str | None else decode(hint, json.loads(cell))


def _row_type(kind: type, name: str) -> Any:
    """Return the type of the rows of a list."""
    return member_type(get_type_hints(kind)[name])


def _main_factor(results: Any) -> str:
    return str(results.factors[0].name) if results.factors else ""

"""Tables, written as HTML for the page, CSV for machines and LaTeX for a paper."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from markupsafe import Markup, escape

from evenedit.core.records import Estimate
from evenedit.core.spreadsheet import harmless
from evenedit.protocol.measures import MeasureKind
from evenedit.report.render.index import Index, Label
from evenedit.report.render.latex import latex, stack
from evenedit.report.render.selection import Selection
from evenedit.report.render.words import entries, filled

DASH = "–"
"""Printed where there is no number."""
PER_PAGE = 30
"""Rows of one LaTeX table; further rows go into further tables."""
ROOMY = 6
"""Up to so many columns LaTeX prints an interval beside its value; with more columns, below it."""

Unit = Literal["share", "points", "score", "change", "p", "plain"]
UNITS: dict[str, Unit] = {
    MeasureKind.MEAN: "score",
    MeasureKind.RATE: "share",
    MeasureKind.DELTA: "change",
    MeasureKind.CONTRAST: "points",
    MeasureKind.GAP: "points",
    MeasureKind.SHIFT: "points",
}
"""By kind of a measure of the judges' scores, the unit of its numbers."""
Link = Callable[[Selection | None], str]
"""The address of the cases behind a number; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its interval, n and missing."""

    value: float | None
    unit: Unit
    low: float | None = None
    high: float | None = None
    n: int | None = None
    missing: int | None = None
    wilson: tuple[float, float] | None = None
    cases: Selection | None = None
    """The edits behind it; None for a number without any, such as a p value."""

    @classmethod
    def of(cls, estimate: Estimate | None, unit: Unit, rater: str | None = None) -> Number:
        """Return the number of an estimate, or an empty one; `rater` is the instrument that measured it."""
        if estimate is None:
            return cls(None, unit)
        e = estimate
        cases = Selection.of(e, rater) if e.n else None
        return cls(e.value, unit, e.low, e.high, e.n, e.missing, e.wilson, cases)

    @property
    def formatted(self) -> str:
        """The value as people read it."""
        return format_number(self.value, self.unit)

    @property
    def interval(self) -> str:
        """The interval as people read it; empty where there is none."""
        if self.value is None or self.low is None or self.high is None:
            return ""
        bare = [format_number(x, self.unit).rstrip("% p") for x in (self.low, self.high)]
        return f"[{bare[0]}, {bare[1]}]"

    def parts(self) -> dict[str, float | int | None]:
        """Return the CSV columns of this number by suffix, unrounded."""
        wilson = self.wilson or (None, None)
        return {
            "": self.value,
            "_low": self.low,
            "_high": self.high,
            "_n": self.n,
            "_missing": self.missing,
            "_wilson_low": wilson[0],
            "_wilson_high": wilson[1],
        }


@dataclass(frozen=True, slots=True)
class Range:
    """The counts (n or missing) of a row's numbers, shown as a range."""

    counts: tuple[int, ...]

    @property
    def formatted(self) -> str:
        """The range as people read it: 240, or 237–240."""
        if not self.counts:
            return DASH
        low, high = min(self.counts), max(self.counts)
        return f"{low:,}" if low == high else f"{low:,}–{high:,}"


Cell = str | int | None | Number | Range | Label


@dataclass(frozen=True, slots=True)
class Column:
    """One column; its id names the CSV column."""

    id: str
    title: str
    numeric: bool = True
    prose: bool = False
    """Sentences: lines are kept and broken where the column ends."""

    @property
    def latex(self) -> str:
        """How LaTeX sets the column."""
        return "p{0.5\\linewidth}" if self.prose else "r" if self.numeric else "l"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under columns, with title, caption and notes."""

    id: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    foot: tuple[tuple[Cell, ...], ...] = ()
    """Rows that stay at the bottom when the table is sorted."""
    simulated: tuple[str, ...] = ()
    """Simulated ids behind these numbers."""
    name: Callable[[str], str] = field(default=str, compare=False)
    """Returns the words for a code in a cell."""

    def to_html(self, link: Link = lambda _: "") -> Markup:
        """HTML of the table with its caption and notes; a number leads to its cases where `link` knows an address."""
        badge = Markup(' <span class="sim">SIMULATED</span>') if self.simulated else ""
        head = Markup("").join(
            Markup('<th scope="col"{}>{}</th>').format(Markup(' class="num"') if c.numeric else "", c.title)
            for c in self.columns
        )
        body = Markup("\n").join(self._html_row(row, link) for row in self.rows)
        foot = Markup("\n").join(self._html_row(row, link) for row in self.foot)
        return Markup(
            '<p class="caption" id="{id}-caption"><strong>{title}</strong>{badge} {caption}</p>\n'
            '<div class="frame">'
            '<div class="table" id="{id}" role="group" aria-labelledby="{id}-caption" tabindex="0">\n'
            '<table aria-labelledby="{id}-caption">\n'
            "<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>{foot}</table></div></div>\n{notes}"
        ).format(
            id=self.id,
            title=self.title + ".",
            badge=badge,
            caption=self.caption,
            head=head,
            body=body,
            foot=Markup("\n<tfoot>{}</tfoot>").format(foot) if foot else "",
            notes=Markup("").join(Markup('<p class="note">{}</p>\n').format(note) for note in self.notes),
        )

    def _html_row(self, row: Sequence[Cell], link: Link) -> Markup:
        first, *rest = row
        numbers = (cell.cases for cell in rest if isinstance(cell, Number) and cell.cases is not None)
        over = next((replace(cases, measure="") for cases in numbers), None)
        cells = (
            _html_cell(cell, column, link, over, self.name) for column, cell in zip(self.columns[1:], rest, strict=True)
        )
        return Markup(f'<tr><th scope="row">{escape(_text(first, self.name))}</th>{"".join(cells)}</tr>')

    def to_csv(self) -> str:
        """CSV with unrounded values; a number adds the columns _low, _high, _n and _missing that it has."""
        rows = [*self.rows, *self.foot]
        header: list[str] = []
        plan: list[tuple[int, str | None]] = []
        for i, column in enumerate(self.columns):
            cells = [row[i] for row in rows]
            if any(isinstance(c, Number) for c in cells):
                suffixes = [""] + [s for s in Number(0, "plain").parts() if s and _any_part(cells, s)]
                plan += [(i, suffix) for suffix in suffixes]
                header += [column.id + suffix for suffix in suffixes]
            elif not any(isinstance(c, Range) for c in cells):
                plan.append((i, None))
                header.append(column.id)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        mark = ["SIMULATED"] if self.simulated else []
        writer.writerow(header + ["mark"] * bool(mark))
        for row in rows:
            writer.writerow([_csv_cell(row[i], suffix) for i, suffix in plan] + mark)
        return out.getvalue()

    def to_latex(self) -> str:
        """Booktabs tables no wider than the line; a long table goes on in further ones."""
        parts = [self.rows[i : i + PER_PAGE] for i in range(0, len(self.rows), PER_PAGE)]
        tables = [self._latex_part(number, rows, len(parts)) for number, rows in enumerate(parts, 1)]
        return "% \\usepackage{booktabs,graphicx}\n" + "\n".join(tables)

    def _latex_part(self, number: int, rows: Sequence[Sequence[Cell]], parts: int) -> str:
        narrow = len(self.columns) > ROOMY
        marks = (simulated_note(self.simulated),) if self.simulated else ()
        notes = [f"\\par\\smallskip\\footnotesize {latex(note)}" for note in (*marks, *self.notes)]
        title = ("SIMULATED. " if self.simulated else "") + self.title
        caption = latex(f"{title}. {self.caption}" if number == 1 else f"{title}, continued.")
        label = f"\\label{{tab:{self.id}}}" if number == 1 else ""
        head = (
            stack([latex(line) for line in textwrap.wrap(c.title, 13)], "b", "r" if c.numeric else "l")
            for c in self.columns
        )
        lines = [
            "\\begin{table}[tp]",
            "\\centering",
            f"\\caption{{{caption}}}{label}",
            "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
            f"\\begin{{tabular}}{{{''.join(c.latex for c in self.columns)}}}",
            "\\toprule",
            " & ".join(head) + r" \\",
            "\\midrule",
            *(_latex_row(row, narrow, self.name) for row in rows),
        ]
        if number == parts and self.foot:
            lines += ["\\midrule", *(_latex_row(row, narrow, self.name) for row in self.foot)]
        lines += ["\\bottomrule", "\\end{tabular}}", *(notes if number == parts else ()), "\\end{table}"]
        return "\n".join(lines) + "\n"


def fill_table(
    index: Index,
    id: str,
    rows: Iterable[tuple[Cell, ...]],
    *,
    columns: Iterable[Column | str] = (),
    foot: Iterable[tuple[Cell, ...]] = (),
    notes: Iterable[str] = (),
    **words: object,
) -> Table | None:
    """Return the table that words/tables.toml describes, with these rows, or None where it has no rows.

    `columns` are those that depend on the data, a code standing for a column of numbers; `words` fill the texts, and
    `notes` come after those of the file.
    """
    rows = tuple(rows)
    if not rows:
        return None
    several = [Column(c, index.name(c)) if isinstance(c, str) else c for c in columns]
    table = describe_table(id, rows, index.results.simulated, index.name, columns=several, index=index, **words)
    return replace(table, foot=tuple(foot), notes=(*table.notes, *notes))


def describe_table(
    id: str,
    rows: Sequence[tuple[Cell, ...]],
    simulated: tuple[str, ...],
    name: Callable[[str], str],
    *,
    columns: Iterable[Column] = (),
    **words: object,
) -> Table:
    """Return the table that words/tables.toml describes, of rows that are not of one `Index`."""
    entry = entries("tables")[id]
    several: list[Column] = []
    for kind, *code_and_title in entry["columns"]:
        if kind == "*":
            several += columns
        else:
            code, title = (filled(text, **words) for text in code_and_title)
            several.append(Column(code, title, numeric=kind == "number", prose=kind == "prose"))
    title, caption = filled(entry["title"], **words), filled(entry["caption"], **words)
    notes = tuple(filter(None, (filled(note, **words) for note in entry.get("notes", ()))))
    return Table(id, title, caption, tuple(several), tuple(rows), notes, (), simulated, name)


def text(id: str, title: str) -> Column:
    """Return a text column."""
    return Column(id, title, numeric=False)


def simulated_note(ids: Iterable[str]) -> str:
    """Return the note of a LaTeX table made from simulated data."""
    return f"SIMULATED data, no finding about any real editor or judge: {short_list(ids)}."


def short_list(ids: Iterable[str]) -> str:
    """Return ids as a list, with numbered ones as a range: simulated-person-01 … simulated-person-09."""
    families: dict[str, list[str]] = {}
    for id in ids:
        families.setdefault(re.sub(r"\d+(-[0-9a-f]{4})?$", "", id), []).append(id)
    return ", ".join(f"{m[0]} … {m[-1]}" if len(m) > 2 else ", ".join(m) for m in families.values())


def format_number(value: float | None, unit: Unit) -> str:
    """Return a number as people read it, with a true minus sign."""
    if value is None:
        return DASH
    match unit:
        case "share":
            text = f"{100 * value:.1f}%"
        case "points":
            text = f"{100 * value:.1f} pp"
        case "score":
            text = f"{value:.2f}"
        case "change":
            text = f"{value:+.2f}" if abs(value) >= 0.005 else "0.00"
        case "p":
            text = "<0.001" if value < 0.001 else f"{value:.3f}"
        case "plain":
            text = f"{value:,g}"
    return text.replace("-", "−")


def _text(cell: Cell, name: Callable[[str], str]) -> str:
    """Format a cell as text, with its interval."""
    match cell:
        case None:
            return DASH
        case Number():
            return f"{cell.formatted} {cell.interval}".strip()
        case Range():
            return cell.formatted
        case str():
            return name(cell)
        case int():
            return f"{cell:,}"
        case Label():
            return cell.text


def _html_cell(cell: Cell, column: Column, link: Link, over: Selection | None, name: Callable[[str], str]) -> str:
    """Format a cell as HTML; a number links to the edits it counts, an n to those its row is `over`.

    A report has tens of thousands of cells, so they are put together as plain text, each part escaped.
    """
    if not column.numeric:
        kind = ' class="prose"' if column.prose else ""
        return f"<td{kind}>{escape(_text(cell, name))}</td>"
    if isinstance(cell, Number):
        counts = [f"n = {cell.n:,}"] if cell.n is not None else []
        counts += [f"{cell.missing:,} missing"] if cell.missing is not None else []
        about = f' title="{", ".join(counts)}"' if counts else ""
        address = link(cell.cases) if cell.value is not None else ""
        interval = f' <span class="ci">{escape(cell.interval)}</span>' if cell.interval else ""
        return f'<td class="num"{_sort(cell.value)}{about}>{_linked(cell.formatted, address)}{interval}</td>'
    sort = cell if isinstance(cell, int) else max(cell.counts, default=0) if isinstance(cell, Range) else None
    return f'<td class="num"{_sort(sort)}>{_linked(_text(cell, name), link(over) if sort else "")}</td>'


def _sort(value: float | None) -> str:
    return "" if value is None else f' data-sort="{value}"'


def _linked(label: str, address: str) -> str:
    return f'<a href="{escape(address)}">{escape(label)}</a>' if address else escape(label)


def _any_part(cells: Iterable[Cell], suffix: str) -> bool:
    return any(isinstance(c, Number) and c.parts()[suffix] is not None for c in cells)


def _csv_cell(cell: Cell, suffix: str | None) -> str:
    if isinstance(cell, Number):
        part = cell.parts()[suffix or ""]
        return "" if part is None else repr(part)
    text = cell.code if isinstance(cell, Label) else "" if cell is None else str(cell)
    return str(harmless(text))  # groups and prompts are named by whoever made the table that was read


def _latex_row(row: Iterable[Cell], narrow: bool, name: Callable[[str], str]) -> str:
    return " & ".join(_latex_cell(cell, narrow, name) for cell in row) + r" \\"


def _latex_cell(cell: Cell, narrow: bool, name: Callable[[str], str]) -> str:
    if not isinstance(cell, Number) or not cell.interval:
        return re.sub(r"\n+", r"\\newline ", latex(_text(cell, name)))
    interval = f"{{\\scriptsize {latex(cell.interval)}}}"
    return stack([latex(cell.formatted), interval], "t", "r") if narrow else f"{latex(cell.formatted)} {interval}"

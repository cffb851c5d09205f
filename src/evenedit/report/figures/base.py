"""What every figure of the report is drawn with: colours, a sheet, dots with intervals, and the files."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import matplotlib as mpl
from matplotlib.figure import Figure

from evenedit.core.records import Estimate
from evenedit.report.figures.inline import add_tooltips, inline_svg, tip
from evenedit.report.render.index import Index
from evenedit.report.render.selection import CaseLinks, Selection
from evenedit.report.render.table import Number, Unit
from evenedit.report.render.words import texts_of

INK, RULE, FAINT, HOLLOW = "#1d2330", "#d5d8de", "#7a8190", "#fffffe"
BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""
FORMATS = ("pdf", "png")
"""Formats of figures besides SVG, written on request."""
OMITTED = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "pdf": ("CreationDate", "Creator", "Producer"),
    "png": ("Software",),
}
"""Metadata that are not written, by format."""
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "evenedit",
    "pdf.fonttype": 42,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn figure and its texts."""

    figure: Figure
    id: str
    title: str
    caption: str
    alt: str
    """A description for readers who cannot see it."""


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A figure as files and as part of the page."""

    id: str
    title: str
    caption: str
    alt: str
    """A description for readers who cannot see it."""
    svg: str
    others: Mapping[str, bytes] = field(default_factory=dict)
    """The figure in other formats, by file extension."""

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of the figure."""
        return "svg", *self.others

    def files(self) -> dict[str, bytes]:
        """Return the content of each file of the figure by its path in a report."""
        contents = {"svg": self.svg.encode(), **self.others}
        return {f"figures/{self.id}.{extension}": content for extension, content in contents.items()}

    def inline(self, before: str = "") -> str:
        """Return the SVG for a page; its marks link to the cases page whose address starts with `before`, if any."""
        follow = {INK: "currentColor", RULE: "var(--rule)", FAINT: "var(--faint)", HOLLOW: "var(--paper)"}
        return inline_svg(self.svg, self.id, self.alt, follow, before)


@contextmanager
def new_figure(width: float, height: float, simulated: bool) -> Iterator[Figure]:
    """Open an empty figure of this size in inches, marked if the data are simulated."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        if simulated:
            figure.suptitle("SIMULATED", x=0.99, ha="right", fontsize=8.5, color=VERMILLION, weight="bold")
        yield figure


def render_figure(drawing: Drawing, simulated: bool, formats: Collection[str] = ()) -> FigureFile:
    """Render a drawing as SVG and as each of `formats`."""
    with mpl.rc_context(STYLE):
        svg = _save(drawing.figure, "svg").decode()
        drawing.figure.set_layout_engine(None)  # the other formats keep the layout of the SVG
        others = {name: _save(drawing.figure, name) for name in formats}
    alt = f"SIMULATED. {drawing.alt}" if simulated else drawing.alt
    return FigureFile(drawing.id, drawing.title, drawing.caption, alt, add_tooltips(svg), others)


def _save(figure: Figure, name: str) -> bytes:
    """Return a figure in one format, without dates or the names of programs, so that equal data give equal bytes."""
    content = io.BytesIO()
    omitted: dict[str, None] = dict.fromkeys(OMITTED[name])
    options: dict[str, Any] = {"dpi": 200, "facecolor": "white"} if name == "png" else {}
    figure.savefig(content, format=name, metadata=omitted, **options)
    return content.getvalue()


class _Value(Protocol):
    """A number with its interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def dot(
    ax: Any, y: float, x: _Value, colour: str, *, filled: bool = True, tip: str | None = None, shape: str = "o"
) -> None:
    """Draw a value with its interval; `tip` is the id with the text shown on hover and the query of the cases."""
    gid = tip
    if x.low is not None and x.high is not None:
        ax.plot([x.low, x.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="round", gid=gid)
    face = colour if filled else HOLLOW
    mark = {"color": colour, "markerfacecolor": face, "markeredgewidth": 1.5}
    ax.plot([x.value], [y], shape, markersize=6, gid=gid, **mark)


def name_rows(ax: Any, names: Sequence[str], **text: Any) -> None:
    """Name the rows of a panel, the first one on top."""
    ax.set_yticks(range(len(names)), names, **text)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="x")


def dashed(ax: Any, x: float) -> None:
    """Draw the line that the values of a panel are compared with."""
    ax.axvline(x, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))


def in_percent(ax: Any) -> None:
    """Print the shares of an axis in percent."""
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")


def drawing(figure: Figure, index: Index, id: str, **words: object) -> Drawing:
    """Return a drawn figure with the texts that words/figures.toml has for it, filled with `words`."""
    return Drawing(figure, id, **texts_of("figures", id, index=index, **words))


def tip_of(index: Index, who: str, e: Estimate, unit: Unit, rater: str | None = None) -> str:
    """Return the tooltip of a point with its cases: group, value, interval and n."""
    number = Number.of(e, unit, rater)
    text = f"{who}: {number.formatted} {number.interval}".rstrip() + f", n = {e.n:,}"
    return tip(text, query_of(index, number.cases))


def query_of(index: Index, cases: Selection | None) -> str:
    """Return the query of the cases behind a mark."""
    return "" if cases is None else CaseLinks(index).query(cases)

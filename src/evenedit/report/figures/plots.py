"""The figures of the report, drawn the same on every machine."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from fontTools import subset
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from evenedit.core.records import Condition, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.figures.inline import inlined, tip, with_tips
from evenedit.report.render.index import RATES, Index, excludes, name, noun, plural
from evenedit.report.render.selection import CaseLinks, Selection
from evenedit.report.render.table import Number, Unit, format_number
from evenedit.report.tables.agreement import Rows, axes_compared, axis_name, number
from evenedit.results.results import GapTest, Planted

INK, RULE, FAINT, HOLLOW = "#1d2330", "#d5d8de", "#7a8190", "#fffffe"
BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""
MOST_PLANTED = 36
"""Rows of the figure of planted effects; the table has all of them."""
SETTING = {"GSUB", "GPOS", "GDEF", "BASE", "JSTF", "MATH", "kern"}
"""Tables of a font that say how text is set."""

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
class FigureFile:
    """A figure as files and as part of the page."""

    id: str
    title: str
    caption: str
    alt: str
    """A description for readers who cannot see it."""
    svg: str
    pdf: bytes
    png: bytes

    def inline(self, before: str = "") -> str:
        """The SVG for a page; its marks lead to the page of cases that begins `before`, if there is one."""
        follow = {INK: "currentColor", RULE: "var(--rule)", FAINT: "var(--faint)", HOLLOW: "var(--paper)"}
        return inlined(self.svg, self.id, self.alt, follow, before)


@contextmanager
def sheet(width: float, height: float, simulated: bool) -> Iterator[Figure]:
    """An empty figure of this size in inches, marked where the data are simulated."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        if simulated:
            figure.suptitle("SIMULATED", x=0.99, ha="right", fontsize=8.5, color=VERMILLION, weight="bold")
        yield figure


@contextmanager
def _glyphs_alone() -> Iterator[None]:
    """Fonts put into a PDF without their tables for setting text.

    The text is set already, so no reader of a PDF looks at them, and to cut them down takes most of the time.
    """
    whole = subset.load_font

    def load(*given: Any, **options: Any) -> Any:
        font = whole(*given, **options)
        for table in SETTING.intersection(font.keys()):
            del font[table]
        return font

    subset.load_font = load
    try:
        yield
    finally:
        subset.load_font = whole


def picture(figure: Figure, index: Index, id: str, title: str, caption: str, alt: str) -> FigureFile:
    """Return a drawn figure as SVG, PDF and PNG."""
    svg, pdf, png = io.StringIO(), io.BytesIO(), io.BytesIO()
    nothing: dict[str, None] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(svg, format="svg", metadata=nothing)
    figure.set_layout_engine(None)  # the layout is settled: the other files need not find it again
    with _glyphs_alone():
        figure.savefig(pdf, format="pdf", metadata=dict.fromkeys(("CreationDate", "Creator", "Producer")))
    figure.savefig(png, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    if index.results.simulated:
        alt = f"SIMULATED. {alt}"
    return FigureFile(id, title, caption, alt, with_tips(svg.getvalue()), pdf.getvalue(), png.getvalue())


def by_main_factor(index: Index) -> FigureFile | None:
    """Figure 4 of the paper: skin lightening and race change by the main factor, one row per editor."""
    if not index.rated:
        return None
    codes, what = index.main_levels(), noun(index.main)
    panels = (("skin_lighter", VERMILLION), ("race_change", BLUE))
    lines = [
        e
        for e in index.lines("diagnosis")
        if any(f is not None and f.n for r, _ in panels for c in codes
               if (f := index.find(Measure.rate(r), e, index.main_group(c))))
    ]  # fmt: skip
    if not lines:
        return None
    alt = []
    with sheet(8.6, 0.75 + 0.27 * (len(codes) + 1.9) * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(lines), 2, sharex="col", sharey=True, squeeze=False)
        for row, editor in enumerate(lines):
            for column, (rate, colour) in enumerate(panels):
                ax = axes[row][column]
                seen = _dots(ax, index, rate, editor, codes, colour)
                if seen:
                    high, low = max(seen, key=lambda s: s[1]), min(seen, key=lambda s: s[1])
                    ends = [f"{where} {format_number(value, 'share')}" for where, value in (high, low)]
                    alt.append(f"{name(editor)}, {name(rate).lower()}: {ends[0]} down to {ends[1]}.")
                ax.set_title(f"({'ab'[column]}) {name(rate)}\n{name(editor)}" if row == 0 else name(editor))
        for ax in axes[-1]:
            right = min(ax.get_xlim()[1], 1.02)
            ax.set_xlim(-0.02 * right, right)  # a dot at 0 is whole
            ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        return picture(
            figure,
            index,
            "figure4",
            f"Skin lightening and race change by {what}",
            f"Share of edits rated (a) lighter ({index.thresholds['skin_lighter']}) and (b) changed in race "
            f"({index.thresholds['race_change']}), by the label of the source, with {index.level} intervals. Filled: "
            f"the gap over {plural(index.main)} is clear and the group's difference from everybody else excludes 0. "
            "Dashed: everybody.",
            f"Dots with intervals by {what} and editor. " + " ".join(alt),
        )


def _dots(
    ax: Any, index: Index, rate: str, editor: str | None, codes: Sequence[str], colour: str
) -> list[tuple[str, float]]:
    """Draw the rate of each level of the main factor; return the levels' names with their rates."""
    seen = []
    measure = Measure.rate(rate)
    everybody = index.find(measure, editor)
    if everybody and everybody.value is not None:
        ax.axvline(everybody.value, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    clear = any(
        index.grade(t) == "clear"
        for t in index.results.tests
        if (t.measure, t.factor, t.editor) == (Measure.gap(rate), index.main.name, editor)
    )
    names = [index.group_name(index.main_group(code)) for code in codes]
    for y, code in enumerate(codes):
        group = index.main_group(code)
        e = index.find(measure, editor, group)
        if e is None or e.value is None:
            continue
        contrast = index.contrast(measure, editor, group)
        apart = contrast is not None and excludes(contrast.low, contrast.high)
        text = tip_of(index, f"{name(editor)}, {names[y]}", e, "share")
        dot(ax, y, e.value, e.low, e.high, colour, filled=apart and clear, tip=text)
        seen.append((names[y], e.value))
    ax.set_yticks(range(len(codes)), names)
    ax.set_ylim(len(codes) - 0.4, -0.6)
    ax.grid(axis="x")
    return seen


def dot(
    ax: Any,
    y: float,
    value: float,
    low: float | None,
    high: float | None,
    colour: str,
    *,
    filled: bool,
    tip: str | None = None,
    shape: str = "o",
) -> None:
    """Draw a value with its interval; `tip` is the id with the text shown on hover and the query of the cases."""
    gid = tip
    if low is not None and high is not None:
        ax.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="round", gid=gid)
    face = colour if filled else HOLLOW
    mark = {"color": colour, "markerfacecolor": face, "markeredgewidth": 1.5}
    ax.plot([value], [y], shape, markersize=6, gid=gid, **mark)


def tip_of(index: Index, who: str, e: Estimate, unit: Unit, rater: str | None = None) -> str:
    """Return the tooltip of a point with its cases: group, value, interval and n."""
    shown = Number.of(e, unit, rater)
    text = f"{who}: {shown.shown} {shown.interval}".rstrip() + f", n = {e.n:,}"
    return tip(text, query_of(index, shown.cases))


def query_of(index: Index, cases: Selection | None) -> str:
    """Return the query of the cases behind a mark."""
    return "" if cases is None else CaseLinks(index).query(cases)


def gap_overview(index: Index) -> FigureFile | None:
    """Every gap, one panel per factor, editors by rates."""
    tests = [t for t in index.results.tests if (t.experiment, t.condition) == ("diagnosis", Condition.BASELINE)]
    lines = [e for e in index.lines("diagnosis") if any(t.editor == e for t in tests)]
    factors = [f for f in index.factors if any(t.factor == f.name for t in tests)]
    rates = [r for r in RATES if any(Measure(t.measure).name == r and t.value > 0 for t in tests)]
    if not (lines and factors and rates):
        return None
    by_place = {(t.factor, t.editor, Measure(t.measure).name): t for t in tests}
    top = max(max(t.value for t in tests), 0.05)
    height = 1.1 + (0.34 * len(lines) + 0.42) * len(factors)
    with sheet(8.6, height, bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(factors), 1, sharex=True, squeeze=False)
        for row, factor in enumerate(factors):
            ax = axes[row][0]
            ax.set_title(factor.title)
            for y, editor in enumerate(lines):
                for x, rate in enumerate(rates):
                    _shade(ax, x, y, by_place.get((factor.name, editor, rate)), top, index)
            ax.set_xlim(-0.5, len(rates) - 0.5)
            ax.set_ylim(len(lines) - 0.5, -0.5)
            ax.set_yticks(range(len(lines)), [name(e) for e in lines])
            ax.spines["bottom"].set_visible(False)
            ax.set_xticks(range(len(rates)), [name(r).replace(" ", "\n") for r in rates])
            ax.tick_params(labeltop=row == 0, labelbottom=False)
        clear = [t for t in tests if index.grade(t) == "clear"]
        largest = "; ".join(
            f"{name(t.editor)}, {name(Measure(t.measure).name).lower()} by {index.noun(t.factor)} "
            f"{format_number(t.value, 'points')}"
            for t in sorted(clear, key=lambda t: -t.value)[:8]
        )
        return picture(
            figure,
            index,
            "figure_gaps",
            "Gaps between groups at a glance",
            "Highest minus lowest rate over the groups of each factor, in percentage points. "
            "Stronger colour is larger. Bold with ● = clear, ○ = suggestive, plain = no difference shown (chance alone "
            "gives a gap above 0).",
            f"Grid of gaps by factor, editor and rate; {len(clear)} of {len(tests)} are clear. {largest}",
        )


def _shade(ax: Any, x: int, y: int, test: GapTest | None, top: float, index: Index) -> None:
    if test is None:
        ax.text(x, y, "–", ha="center", va="center", color=FAINT)
        return
    strength = test.value / top
    grade = index.grade(test)
    high, low = (index.group_name({test.factor: code}) for code in (test.highest, test.lowest))
    ends = f"{high} highest, {low} lowest, p = {test.p_family:.3f} over all gaps of the editor"
    cases = Selection(test.measure, test.experiment, test.condition, test.editor, {test.factor: "*"})
    words = f"{name(test.editor)}, {name(Measure(test.measure).name).lower()}: {ends}"
    gid = tip(words, query_of(index, cases))
    ax.add_patch(Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, facecolor="#0a5389", alpha=strength, linewidth=0, gid=gid))
    mark = {"clear": " ●", "suggestive": " ○", "none": ""}[grade]
    ax.text(
        x,
        y,
        f"{100 * test.value:.1f}{mark}",
        ha="center",
        va="center",
        fontsize=8.5,
        color="white" if strength > 0.55 else INK,
        weight="bold" if grade == "clear" else "normal",
    )


def planted_effects(index: Index) -> FigureFile | None:
    """Known effects of simulated editors beside their estimates."""
    ordered = sorted(index.results.planted, key=lambda p: (p.planted == 0, -abs(p.planted), -abs(p.found)))
    shown = sorted(ordered[:MOST_PLANTED], key=lambda p: (index.editors().index(p.editor), -p.planted))
    if not shown:
        return None
    with sheet(8.6, 1.3 + 0.25 * len(shown), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        ax.axvline(0, color=FAINT, linewidth=1)
        for y, p in enumerate(shown):
            estimate = Number(p.found, "points", p.low, p.high)
            words = f"planted {format_number(p.planted, 'points')}, estimated {estimate.shown} {estimate.interval}"
            cases = query_of(index, Selection(p.measure, editor=p.editor, group=p.group))
            dot(ax, y, p.found, p.low, p.high, BLUE, filled=True, tip=tip(words, cases))
            ax.plot([p.planted], [y], "D", markersize=7, color=VERMILLION, markerfacecolor="none")
        ax.set_yticks(range(len(shown)), [_planted_label(index, p) for p in shown], fontsize=8)
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.grid(axis="x")
        ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:+.0f}".replace("-", "−").replace("+0", "0"))
        ax.set_xlabel("group minus everybody else, percentage points")
        ax.plot([], [], "D", color=VERMILLION, markerfacecolor="none", label="planted")
        ax.plot([], [], "o-", color=BLUE, label=f"estimate, {index.level} interval")
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        known = [p for p in index.results.planted if p.inside is not None]
        inside = sum(bool(p.inside) for p in known)
        rest = len(ordered) - len(shown)
        return picture(
            figure,
            index,
            "figure_planted",
            "Planted effects and their estimates",
            f"Of {len(known)} planted effects, {inside} lie inside their {index.level} intervals."
            + (f" The {rest} smallest are in the table only." if rest else ""),
            f"Planted effects and their estimates; {inside} of {len(known)} planted values lie inside.",
        )


def _planted_label(index: Index, p: Planted) -> str:
    return f"{p.editor} · {name(Measure(p.measure).name)} · {index.group_name(p.group)}"


def judges_and_people(index: Index) -> FigureFile | None:
    """Agreement of judges with people beside the agreement of one person with the others, by question."""
    rows = Rows.of(index.results)
    axes = axes_compared(rows)
    if not axes:
        return None
    alt = []
    with sheet(8.6, 1.3 + 0.5 * len(axes), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        ax.axvline(0, color=FAINT, linewidth=1)
        for y, axis in enumerate(axes):
            pair = [rows.find(s, axis) for s in ("weighted_kappa_quadratic", "ceiling_weighted_kappa_quadratic")]
            for row, colour, shape, offset in zip(pair, (BLUE, VERMILLION), "oD", (-0.13, 0.13), strict=True):
                if row is not None and row.value is not None:
                    shown = number(row)
                    words = f"{axis_name(axis)}: {shown.shown} {shown.interval}, {row.n_items:,} items"
                    text, filled = tip(words, query_of(index, shown.cases)), shape == "o"
                    dot(ax, y + offset, row.value, row.low, row.high, colour, filled=filled, tip=text, shape=shape)
            judge, person = (format_number(r.value if r else None, "score") for r in pair)
            alt.append(f"{axis_name(axis)}: judges {judge}, a person {person}.")
        ax.set_yticks(range(len(axes)), [axis_name(axis) for axis in axes])
        ax.set_ylim(len(axes) - 0.4, -0.6)
        ax.grid(axis="x")
        ax.set_xlabel("weighted κ (quadratic)")
        ax.plot([], [], "o-", color=BLUE, label=f"judges against people, {index.level} interval")
        ax.plot([], [], "D-", color=VERMILLION, markerfacecolor=HOLLOW, label="a person against the others")
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        return picture(
            figure,
            index,
            "figure_people",
            "Judges against people, and the human ceiling",
            "Quadratic-weighted κ of the judges' score with people's mean (half up), and of each person with the mean "
            "of the others, at the baseline. 1 = the same score always, 0 = as by chance.",
            "Dots with intervals by question. " + " ".join(alt),
        )


def measured_by_group(index: Index) -> FigureFile | None:
    """Measurements by group: the share of unchanged outputs and the change of the skin's lightness."""
    groups = [{f: code} for f in index.grouped() for code in index.levels(f)]
    words = "by the label of the source"
    return _measured_by(index, "figure_measured", "Measured by group", words, groups)


def measured_by_prompt(index: Index) -> FigureFile | None:
    """Measurements by prompt."""
    codes = dict.fromkeys(code for own in index.instruments.values() for code in own.levels("prompt"))
    words = "by prompt"
    return _measured_by(index, "figure_measured_prompts", "Measured by prompt", words, [{"prompt": c} for c in codes])


def _measured_by(
    index: Index, id: str, title: str, words: str, groups: Sequence[Mapping[str, str]]
) -> FigureFile | None:
    panels = [
        (rater, own, measure, colour)
        for measure, colour in ((Measure.rate("unchanged"), GREEN), (Measure.mean("skin_delta_L"), VERMILLION))
        for rater, own in index.instruments.items()
        if any(e.measure == measure and e.n for e in own.results.estimates)
    ]
    lines = [e for e in index.lines("diagnosis") if any(_measured(own, measure, e) for _, own, measure, _ in panels)]
    if not lines or not groups:
        return None
    alt = []
    with sheet(8.6, 0.75 + 0.2 * (len(groups) + 3) * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(lines), len(panels), sharex="col", sharey=True, squeeze=False)
        for row, editor in enumerate(lines):
            for column, (rater, own, measure, colour) in enumerate(panels):
                ax, what = axes[row][column], name(measure.name)
                everybody = own.find(measure, editor)
                unit: Unit = "share" if measure.kind == MeasureKind.RATE else "change"
                if everybody and everybody.value is not None:
                    ax.axvline(everybody.value, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
                    alt.append(
                        f"{name(editor)}, {what.lower()}: {format_number(everybody.value, unit)} over everybody."
                    )
                for y, group in enumerate(groups):
                    e = own.find(measure, editor, group)
                    if e is not None and e.value is not None:
                        text = tip_of(index, f"{name(editor)}, {index.group_name(group)}", e, unit, rater)
                        dot(ax, y, e.value, e.low, e.high, colour, filled=True, tip=text)
                ax.set_yticks(range(len(groups)), [index.group_name(group) for group in groups])
                ax.set_ylim(len(groups) - 0.4, -0.6)
                ax.grid(axis="x")
                ax.set_title(f"({'abcd'[column]}) {what}\n{name(editor)}" if row == 0 else name(editor))
        for column, (_, _, measure, _) in enumerate(panels):
            axes[-1][column].xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            if measure.kind == MeasureKind.RATE:
                axes[-1][column].xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        return picture(
            figure,
            index,
            id,
            title,
            "Share of outputs that show what their source shows, and mean change of the skin's lightness (L*), "
            f"{words}, with {index.level} intervals. Dashed: everybody.",
            f"Dots with intervals, {words} and editor. " + " ".join(alt),
        )


def _measured(own: Index, measure: str, editor: str | None) -> bool:
    found = own.find(measure, editor)
    return found is not None and bool(found.n)

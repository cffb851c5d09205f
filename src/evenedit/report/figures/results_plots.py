"""Figures of results for a notebook or a paper, as matplotlib draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.protocol import Rubric, factor
from evenedit.protocol.measures import Measure
from evenedit.protocol.rubric import order_of_readings
from evenedit.report.figures.base import BLUE, FAINT, GREEN, VERMILLION, dot, in_percent, name_rows, new_figure
from evenedit.report.render.index import Index, group_name
from evenedit.results.results import Results

COLOURS = (BLUE, VERMILLION, GREEN, "#cc79a7", "#e69f00", "#56b4e9")
SHAPES = "osD^vP"
PLOTTED = 3
"""Questions whose first headline rate is shown where no rate is named; those that the study declares are added."""


def gaps_plot(results: Results, rates: Sequence[str] | None = None) -> Figure:
    """Draw how far the groups of each factor are apart in each rate, with intervals: a panel for each factor."""
    index = Index(results)
    every = (*index.rubric.table_rates, *order_of_readings())
    chosen = list(rates) if rates else [r for r in every if _gaps(results, r)]
    gaps = {rate: _gaps(results, rate) for rate in chosen}
    for rate, several in gaps.items():
        if not several:
            raise EvenEditError(f"there is no gap of '{rate}' in these results; see to_frame('estimates')")
    factors = [f for f in results.factors if any(f.name in e.group for several in gaps.values() for e in several)]
    if not factors:
        raise EvenEditError("these results have no gap between groups: no rate was estimated for two groups or more")
    editors = [e for e in results.editors if any(e == g.editor for several in gaps.values() for g in several)]
    with new_figure(3.0 + 2.6 * len(factors), 1.1 + 0.2 * len(chosen) * (len(editors) + 1), _marked(results)) as figure:
        axes = figure.subplots(1, len(factors), sharey=True, sharex=True, squeeze=False)[0]
        for ax, by in zip(axes, factors, strict=True):
            for row, several in enumerate(gaps.values()):
                for number, editor in enumerate(editors):
                    e = next((g for g in several if g.editor == editor and by.name in g.group), None)
                    y = row + _offset(number, len(editors))
                    _draw(ax, y, e, number)
            ax.axvline(0, color=FAINT, linewidth=1)
            ax.set_title(f"Gap over {by.title.lower() if by.title.lower() == by.name else by.title}")
            _finish(ax, [index.name(r) for r in chosen])
        _legend(figure, index, editors)
        return figure


def rates_plot(
    results: Results, by: str, rates: Sequence[str] | None = None, editors: Sequence[str] | None = None
) -> Figure:
    """Draw rates by the levels of a factor, with intervals: a panel for each rate, a colour for each editor."""
    over = factor(by, results.factors) if by in {f.name for f in results.factors} else None
    if over is None:
        names = ", ".join(f.name for f in results.factors)
        raise EvenEditError(f"there is no factor '{by}' in these results; they have: {names}")
    lines = list(editors or results.editors)
    for editor in lines:
        if editor not in results.editors:
            known = ", ".join(results.editors)
            raise EvenEditError(f"there is no editor '{editor}' in these results; they have: {known}")
    index = Index(results)
    measured = order_of_readings()
    every = (
        *index.rubric.table_rates,
        *(rate for rate in measured if results.to_frame("measured")["measure"].eq(f"rate.{rate}").any()),
    )
    chosen = list(rates) if rates else [r for r in _plotted(index.rubric) if _rates(results, r, by, lines)]
    chosen = chosen or [r for r in every if _rates(results, r, by, lines)]
    levels = [c for c in over.codes if any(_rate(results, r, by, c, e) for r in chosen for e in lines)]
    absent = [r for r in chosen if not _rates(results, r, by, lines)]
    if absent or not levels:
        known = ", ".join(r for r in every if _rates(results, r, by, lines)) or "none"
        raise EvenEditError(f"there is no rate {', '.join(absent)} by {by} in these results; there are: {known}")
    with new_figure(2.2 + 2.4 * len(chosen), 1.2 + 0.2 * len(levels) * (len(lines) + 1), _marked(results)) as figure:
        axes = figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0]
        for ax, rate in zip(axes, chosen, strict=True):
            for row, code in enumerate(levels):
                for number, editor in enumerate(lines):
                    e = _rate(results, rate, by, code, editor)
                    _draw(ax, row + _offset(number, len(lines)), e, number)
            ax.set_title(index.name(rate))
            _finish(ax, [group_name({by: code}, results.factors) for code in levels])
        _legend(figure, index, lines)
        return figure


def _plotted(rubric: Rubric) -> list[str]:
    """Return the rates to show where none are named."""
    unwanted = [rate for rate in rubric.rates if rate not in rubric.wanted_rates]
    declared = {rate for spec in rubric.declared for rate in spec.rates}
    first = {rubric.rates[r].question: r for r in reversed(unwanted) if rubric.words(r).main and r not in declared}
    shipped = [rate for rate in unwanted if rate in first.values()]
    return [*shipped[:PLOTTED], *(rate for rate in unwanted if rate in declared)]


def _gaps(results: Results, rate: str) -> list[Estimate]:
    """Return the gaps of a rate in the diagnosis, including those of instruments."""
    estimates = [
        results.find(Measure.gap(rate), editor=editor, group={f.name: "*"})
        for editor in results.editors
        for f in results.factors
    ]
    return [e for e in estimates if e is not None and e.value is not None]


def _rate(results: Results, rate: str, by: str, code: str, editor: str) -> Estimate | None:
    e = results.find(Measure.rate(rate), editor=editor, group={by: code})
    return None if e is None or e.value is None else e


def _rates(results: Results, rate: str, by: str, editors: Sequence[str]) -> bool:
    """Return whether there is any estimate of a rate by this factor."""
    codes = factor(by, results.factors).codes
    return any(_rate(results, rate, by, code, editor) for editor in editors for code in codes)


def _draw(ax: Any, y: float, e: Estimate | None, number: int) -> None:
    if e is not None and e.value is not None:
        look = {"colour": COLOURS[number % len(COLOURS)], "shape": SHAPES[number % len(SHAPES)]}
        dot(ax, y, e, look["colour"], shape=look["shape"])


def _offset(number: int, count: int) -> float:
    """Return the vertical offset of an editor's mark within its row."""
    return 0.0 if count == 1 else 0.7 * (number / (count - 1) - 0.5)


def _finish(ax: Any, names: Sequence[str]) -> None:
    name_rows(ax, names)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    in_percent(ax)


def _legend(figure: Figure, index: Index, editors: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=COLOURS[n % len(COLOURS)], marker=SHAPES[n % len(SHAPES)], label=index.name(e))
        for n, e in enumerate(editors)
    ]
    figure.legend(handles=marks, loc="outside lower left", ncols=2, frameon=False)


def _marked(results: Results) -> bool:
    return bool(results.simulated)

"""The figures of the report, drawn the same on every machine."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.figures.base import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    VERMILLION,
    Drawing,
    dashed,
    dot,
    drawing,
    in_percent,
    name_rows,
    new_figure,
    query_of,
    tip_of,
)
from evenedit.report.figures.inline import tip
from evenedit.report.render.agreement_rows import AgreementRows, axes_compared, axis_name, number
from evenedit.report.render.index import ALPHA, Index, listed
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Number, Unit, format_number
from evenedit.results.finding import CLEAR
from evenedit.results.results import GapTest, Planted

FIGURE4 = ("skin_lighter", "race_change")
"""The rates of the paper's Figure 4."""
PANEL_COLOURS = (VERMILLION, BLUE)
"""The colours of the panels side by side."""
MOST_PLANTED = 36
"""Rows of the figure of planted effects; the table has all of them."""


def by_main_factor(index: Index) -> Drawing | None:
    """Figure 4 of the paper: skin lightening and race change by the main factor, one row per editor."""
    titles = {"skin_lighter": "skin lightening", "race_change": "race change"}
    words = {"skin_lighter": "lighter", "race_change": "changed in race"}
    rates = [rate for rate in FIGURE4 if rate in index.rates]
    rules = [f"({'ab'[at]}) {words[rate]} ({index.thresholds[rate]})" for at, rate in enumerate(rates)]
    what = listed([titles[rate] for rate in rates])
    return _by_main_factor(index, "figure4", rates, what=what, rules=listed(rules))


def declared_by_main_factor(index: Index) -> Drawing | None:
    """Draw the rates of declared questions by the main factor, one row of panels per editor and two rates."""
    declared = {rate for spec in index.rubric.declared for rate in spec.rates}
    return _by_main_factor(index, "figure_rates", [rate for rate in index.rubric.table_rates if rate in declared])


def _by_main_factor(index: Index, id: str, rates: Sequence[str], **words: object) -> Drawing | None:
    """Draw rates by the levels of the main factor, two panels side by side."""
    if not index.rated:
        return None
    codes = index.main_levels()
    drawn = [
        (editor, rate, e)
        for editor in index.lines("diagnosis")
        for rate in rates
        for code in codes
        if (e := index.find(Measure.rate(rate), editor, index.main_group(code))) is not None and e.n
    ]
    lines, rates = list(dict.fromkeys(e for e, _, _ in drawn)), [r for r in rates if any(r == d[1] for d in drawn)]
    if not lines:
        return None
    alt = []
    columns = min(len(rates), len(PANEL_COLOURS))
    places = [(editor, rates[at : at + columns]) for editor in lines for at in range(0, len(rates), columns)]
    with new_figure(8.6, 0.75 + 0.27 * (len(codes) + 1.9) * len(places), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(places), columns, sharex="col", sharey=True, squeeze=False)
        for row, (editor, several) in enumerate(places):
            for column, rate in enumerate(several):
                ax = axes[row][column]
                seen = _dots(ax, index, rate, editor, codes, PANEL_COLOURS[column])
                if seen:
                    high, low = max(seen, key=lambda s: s[1]), min(seen, key=lambda s: s[1])
                    ends = [f"{where} {format_number(value, 'share')}" for where, value in (high, low)]
                    alt.append(f"{index.name(editor)}, {index.name(rate).lower()}: {ends[0]} down to {ends[1]}.")
                letter = f"({chr(ord('a') + rates.index(rate))}) {index.name(rate)}\n"
                first = row == 0 or len(rates) > columns
                ax.set_title(f"{letter}{index.name(editor)}" if first else index.name(editor))
            for ax, above in zip(axes[row][len(several) :], axes[row - 1][len(several) :], strict=True):
                ax.set_axis_off()
                above.tick_params(labelbottom=True)
        for ax in axes[-1]:
            right = min(ax.get_xlim()[1], 1.02)
            ax.set_xlim(-0.02 * right, right)  # a dot at 0 is whole
            ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            in_percent(ax)
        return drawing(figure, index, id, **words, ends=" ".join(alt))


def _dots(
    ax: Any, index: Index, rate: str, editor: str | None, codes: Sequence[str], colour: str
) -> list[tuple[str, float]]:
    """Draw the rate of each level of the main factor; return the levels' names with their rates."""
    seen = []
    measure = Measure.rate(rate)
    overall = index.find(measure, editor)
    if overall and overall.value is not None:
        dashed(ax, overall.value)
    differing = {
        g.level
        for t in index.results.tests
        if (t.measure, t.factor, t.editor) == (Measure.gap(rate), index.main.name, editor) and t.level in CLEAR
        for g in t.groups
        if g.p is not None and g.p < ALPHA
    }
    names = [index.group_name(index.main_group(code)) for code in codes]
    for y, code in enumerate(codes):
        group = index.main_group(code)
        e = index.find(measure, editor, group)
        if e is None or e.value is None:
            continue
        text = tip_of(index, f"{index.name(editor)}, {names[y]}", e, "share")
        dot(ax, y, e, colour, filled=code in differing, tip=text)
        seen.append((names[y], e.value))
    name_rows(ax, names)
    return seen


def gap_overview(index: Index) -> Drawing | None:
    """Draw every gap: one panel per factor, editors by rates."""
    tests = [t for t in index.results.tests if (t.experiment, t.condition) == ("diagnosis", ConditionKind.BASELINE)]
    lines = [e for e in index.lines("diagnosis") if any(t.editor == e for t in tests)]
    factors = [f for f in index.factors if any(t.factor == f.name for t in tests)]
    rates = [r for r in index.rubric.table_rates if any(Measure(t.measure).name == r and t.value > 0 for t in tests)]
    if not (lines and factors and rates):
        return None
    by_place = {(t.factor, t.editor, Measure(t.measure).name): t for t in tests}
    top = max(max(t.value for t in tests), 0.05)
    height = 1.1 + (0.34 * len(lines) + 0.42) * len(factors)
    with new_figure(8.6, height, bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(factors), 1, sharex=True, squeeze=False)
        for row, factor in enumerate(factors):
            ax = axes[row][0]
            ax.set_title(factor.title)
            for y, editor in enumerate(lines):
                for x, rate in enumerate(rates):
                    _shade(ax, x, y, by_place.get((factor.name, editor, rate)), top, index)
            ax.set_xlim(-0.5, len(rates) - 0.5)
            ax.set_ylim(len(lines) - 0.5, -0.5)
            ax.set_yticks(range(len(lines)), [index.name(e) for e in lines])
            ax.spines["bottom"].set_visible(False)
            ax.set_xticks(range(len(rates)), [index.name(r).replace(" ", "\n") for r in rates])
            ax.tick_params(labeltop=row == 0, labelbottom=False)
        clear = [t for t in tests if t.level in CLEAR]
        largest = "; ".join(
            f"{index.name(t.editor)}, {index.name(Measure(t.measure).name).lower()} by "
            f"{index.factor_noun(t.factor)} "
            f"{format_number(t.value, 'points')}"
            for t in sorted(clear, key=lambda t: -t.value)[:8]
        )
        return drawing(figure, index, "figure_gaps", clear=len(clear), tests=len(tests), largest=largest)


def _shade(ax: Any, x: int, y: int, test: GapTest | None, top: float, index: Index) -> None:
    if test is None:
        ax.text(x, y, "–", ha="center", va="center", color=FAINT)
        return
    strength = test.value / top
    high, low = (index.group_name({test.factor: code}) for code in (test.highest, test.lowest))
    ends = f"{high} highest, {low} lowest"
    ends += "" if test.p_adjusted is None else f", p = {test.p_adjusted:.3f} adjusted for all tests"
    cases = Selection(test.measure, test.experiment, test.condition, test.editor, {test.factor: "*"})
    words = f"{index.name(test.editor)}, {index.name(Measure(test.measure).name).lower()}: {ends}"
    gid = tip(words, query_of(index, cases))
    ax.add_patch(Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, facecolor="#0a5389", alpha=strength, linewidth=0, gid=gid))
    mark = {"clear": " ●", "clear_to_judges": " ◐", "clear_to_judge": " ◐", "suggestive": " ○"}.get(
        test.level or "", ""
    )
    ax.text(
        x,
        y,
        f"{100 * test.value:.1f}{mark}",
        ha="center",
        va="center",
        fontsize=8.5,
        color="white" if strength > 0.55 else INK,
        weight="bold" if test.level in CLEAR else "normal",
    )


def planted_effects(index: Index) -> Drawing | None:
    """Known effects of simulated editors beside their estimates."""
    ordered = sorted(index.results.planted, key=lambda p: (p.planted == 0, -abs(p.planted), -abs(p.estimate)))
    effects = sorted(ordered[:MOST_PLANTED], key=lambda p: (index.editors().index(p.editor), -p.planted))
    if not effects:
        return None
    with new_figure(8.6, 1.3 + 0.25 * len(effects), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        ax.axvline(0, color=FAINT, linewidth=1)
        for y, p in enumerate(effects):
            estimate = Number(p.estimate, "points", p.low, p.high)
            words = f"planted {format_number(p.planted, 'points')}, estimated {estimate.formatted} {estimate.interval}"
            cases = query_of(index, Selection(p.measure, editor=p.editor, group=p.group))
            dot(ax, y, estimate, BLUE, tip=tip(words, cases))
            ax.plot([p.planted], [y], "D", markersize=7, color=VERMILLION, markerfacecolor="none")
        name_rows(ax, [_planted_label(index, p) for p in effects], fontsize=8)
        ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:+.0f}".replace("-", "−").replace("+0", "0"))
        ax.set_xlabel("group minus everybody else, percentage points")
        ax.plot([], [], "D", color=VERMILLION, markerfacecolor="none", label="planted")
        ax.plot([], [], "o-", color=BLUE, label=f"estimate, {index.level} interval")
        figure.legend(loc="outside lower right", ncols=2, frameon=False)
        known = [p for p in index.results.planted if p.inside is not None]
        inside = sum(bool(p.inside) for p in known)
        rest = len(ordered) - len(effects)
        return drawing(figure, index, "figure_planted", known=len(known), inside=inside, rest=rest)


def _planted_label(index: Index, p: Planted) -> str:
    return f"{p.editor} · {index.name(Measure(p.measure).name)} · {index.group_name(p.group)}"


def judges_and_people(index: Index) -> Drawing | None:
    """Draw the agreement of judges with people by question."""
    rows = AgreementRows.of(index.results)
    axes = axes_compared(index, rows)
    if not axes:
        return None
    alt = []
    with new_figure(8.6, 1.3 + 0.5 * len(axes), bool(index.results.simulated)) as figure:
        ax = figure.subplots()
        ax.axvline(0, color=FAINT, linewidth=1)
        for y, axis in enumerate(axes):
            row = rows.find("weighted_kappa_quadratic", axis)
            if row is None or row.value is None:
                continue
            value = number(row)
            words = f"{axis_name(index, axis)}: {value.formatted} {value.interval}, {row.n_items:,} items"
            text = tip(words, query_of(index, value.cases))
            dot(ax, y, row, BLUE, tip=text)
            alt.append(f"{axis_name(index, axis)}: {value.formatted}.")
        name_rows(ax, [axis_name(index, axis) for axis in axes])
        ax.set_xlabel("weighted κ (quadratic)")
        ax.plot([], [], "o-", color=BLUE, label=f"judges against people, {index.level} interval")
        figure.legend(loc="outside lower right", frameon=False)
        return drawing(figure, index, "figure_people", values=" ".join(alt))


PANELS = (
    (Measure.rate("ignored"), GREEN),
    (Measure.mean("skin_delta_L_raw"), VERMILLION),
    (Measure.mean("light_shift_L"), BLUE),
    (Measure.mean("skin_delta_L"), VERMILLION),
)
"""The panels of the figures of measurements, and their colours."""


def measured_by_group(index: Index) -> Drawing | None:
    """Measurements by group: the share of ignored requests, and the changes of skin and light."""
    return _measured_by(index, "figure_measured", [{f: code} for f in index.grouped() for code in index.levels(f)])


def measured_by_prompt(index: Index) -> Drawing | None:
    """Measurements by prompt."""
    codes = dict.fromkeys(code for readings in index.instruments.values() for code in readings.levels("prompt"))
    return _measured_by(index, "figure_measured_prompts", [{"prompt": code} for code in codes])


def _measured_by(index: Index, id: str, groups: Sequence[Mapping[str, str]]) -> Drawing | None:
    panels = [
        (rater, readings, measure, colour)
        for measure, colour in PANELS
        for rater, readings in index.instruments.items()
        if any(e.measure == measure and e.n for e in readings.results.estimates)
    ]
    lines = [
        e
        for e in index.lines("diagnosis")
        if any(_measured(readings, measure, e) for _, readings, measure, _ in panels)
    ]
    if not lines or not groups:
        return None
    alt = []
    with new_figure(8.6, 0.75 + 0.2 * (len(groups) + 3) * len(lines), bool(index.results.simulated)) as figure:
        axes = figure.subplots(len(lines), len(panels), sharex="col", sharey=True, squeeze=False)
        for row, editor in enumerate(lines):
            for column, (rater, readings, measure, colour) in enumerate(panels):
                ax, what = axes[row][column], index.name(measure.name)
                overall = readings.find(measure, editor)
                unit: Unit = "share" if measure.kind == MeasureKind.RATE else "change"
                if overall and overall.value is not None:
                    dashed(ax, overall.value)
                    alt.append(
                        f"{index.name(editor)}, {what.lower()}: {format_number(overall.value, unit)} over everybody."
                    )
                for y, group in enumerate(groups):
                    e = readings.find(measure, editor, group)
                    if e is not None and e.value is not None:
                        text = tip_of(index, f"{index.name(editor)}, {index.group_name(group)}", e, unit, rater)
                        dot(ax, y, e, colour, tip=text)
                name_rows(ax, [index.group_name(group) for group in groups])
                above = textwrap.fill(f"({'abcd'[column]}) {what}", 22)
                ax.set_title(f"{above}\n{index.name(editor)}" if row == 0 else index.name(editor))
        for column, (_, _, measure, _) in enumerate(panels):
            axes[-1][column].xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            if measure.kind == MeasureKind.RATE:
                in_percent(axes[-1][column])
        return drawing(figure, index, id, values=" ".join(alt))


def _measured(readings: Index, measure: str, editor: str | None) -> bool:
    estimate = readings.find(measure, editor)
    return estimate is not None and bool(estimate.n)

"""Tables about who rated: the paper's Table 17, and people's rates by group of raters."""

from __future__ import annotations

from evenedit.protocol.measures import Measure
from evenedit.report.render.index import Index
from evenedit.report.render.table import Cell, Number, Table, fill_table
from evenedit.results.rater_groups import RaterRate

OTHER = "Other answers, none of which may be shown by itself"
ALL_RATERS, WEIGHTED = "", "*"


def participants(index: Index) -> Table | None:
    """Table 17 of the paper: who rated, without cells below five people."""
    rows: list[tuple[Cell, ...]] = []
    for c in index.results.participants:
        cells = [*c.counts.items(), *([(OTHER, c.rest)] if c.rest else [])]
        about = c.title if c.mean is None else f"{c.title} ({c.mean:.1f} ± {c.deviation:.1f} years)"
        rows += [(c.survey, about, answer, n, Number(n / c.people, "share", n=c.people)) for answer, n in cells]
    people = ", ".join(
        f"{c.people} in survey {c.survey}" for c in {c.survey: c for c in index.results.participants}.values()
    )
    return fill_table(index, "table17", rows, people=people)


def rater_rates(index: Index) -> Table | None:
    """People's rates by group of raters, and weighted."""
    rates_by_raters: dict[tuple[str, str], dict[str, RaterRate]] = {}
    for r in index.results.rater_rates:
        if not r.group:
            rates_by_raters.setdefault((r.question, r.raters), {})[Measure(r.measure).name] = r
    columns = [rate for rate in index.rubric.table_rates if any(rate in rates for rates in rates_by_raters.values())]
    rows: list[tuple[Cell, ...]] = []
    for (question, raters), rates in rates_by_raters.items():
        who = {ALL_RATERS: "everybody", WEIGHTED: "everybody, weighted"}.get(raters, raters)
        first = next(iter(rates.values()))
        numbers = [_number(rates.get(rate)) for rate in columns]
        rows.append((_question(index, question), who, *numbers, first.people))
    weights = {
        r.question: r.method.rpartition("post-stratified ")[2]
        for r in index.results.rater_rates
        if r.raters == WEIGHTED
    }
    weighting = "; ".join(f"{_question(index, q)} {w}" for q, w in weights.items())
    return fill_table(index, "rater_rates", rows, columns=columns, weighting=weighting)


def _number(rate: RaterRate | None) -> Number:
    return Number(rate.value, "share", rate.low, rate.high, rate.n) if rate else Number(None, "share")


def _question(index: Index, name: str) -> str:
    """Return the printed name of what raters are grouped by."""
    return next((c.title for c in index.results.participants if c.question == name), name)

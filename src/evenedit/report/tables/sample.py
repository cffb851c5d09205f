"""The paper's tables about the sample: portraits, outputs that people rated, and their mean scores."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.report.render.agreement_rows import AgreementRows, number
from evenedit.report.render.index import POOLED, Index
from evenedit.report.render.table import Cell, Number, Table, Unit, fill_table

DIFFERENCE = "Judges minus people"


def _counted(index: Index, what: str) -> Iterator[tuple[str, str, int]]:
    """Return the counts whose key starts with `what`, as factor, level, count."""
    for key, count in index.results.counts.items():
        first, _, rest = key.partition(".")
        factor, _, level = rest.partition(".")
        if first == what and level:
            yield factor, level, count


def portraits(index: Index) -> Table | None:
    """Table 9 of the paper, with the labels of the portraits beside the pools they were chosen from."""
    total = index.results.counts.get("portraits", 0)
    rows: list[tuple[Cell, ...]] = [
        (_factor(index, factor), index.level_label(factor, level), Number(n / total, "share", n=total), n)
        for factor, level, n in sorted(_counted(index, "portraits"), key=lambda c: c[0] != "pool")
        if total
    ]
    pools = any(factor == "pool" for factor, _, _ in _counted(index, "portraits"))
    return fill_table(index, "table9", rows, total=total, pools=pools)


def _factor(index: Index, name: str) -> Cell:
    """Return a factor as a cell; the pool is not a factor and has its own name."""
    return "pool" if name == "pool" else index.factor_label(name)


def sample(index: Index) -> Table | None:
    """Table 18 of the paper: the outputs that people rated."""
    counts = index.results.counts
    total = counts.get("rated", 0)
    kinds = {"arm": "Experiment and condition", "editor": "Editor", **{f.name: f.title for f in index.factors}}
    rows: list[tuple[Cell, ...]] = [
        (kinds[kind], _rated_level(index, kind, level), n, Number(n / total, "share", n=total))
        for kind, level, n in _counted(index, "rated")
        if kind in kinds
    ]
    by = sorted((int(level), n) for kind, level, n in _counted(index, "rated") if kind == "by")
    raters = ", ".join(f"{n:,} by {k} {'person' if k == 1 else 'people'}" for k, n in by)
    people, drawn = counts.get("people", 0), counts.get("sampled")
    return fill_table(index, "table18", rows, total=total, people=people, drawn=drawn, raters=raters)


def _rated_level(index: Index, kind: str, level: str) -> Cell:
    return level.replace(".", ", ") if kind == "arm" else index.level_label(kind, level)


def judges_beside_people(index: Index) -> Table | None:
    """Table 6 of the paper: mean scores of judges and of people on the same outputs."""
    rows = AgreementRows.of(index.results)
    questions = [q for q in index.rubric.axes if rows.find("mean_people", q)]
    lines: list[tuple[Cell, ...]] = []
    for who in ("Judges", "People", DIFFERENCE):
        for editor in index.lines("diagnosis"):
            people = [rows.find("mean_people", q, editor=editor) for q in questions]
            means = {
                "Judges": [rows.judges_mean(a) for a in people],
                "People": people,
                DIFFERENCE: [rows.find("mean_difference", q, editor=editor) for q in questions],
            }[who]
            if any(means):
                items = max(a.n_items for a in means if a)
                ratings = max(a.n_ratings for a in means if a) if who == "People" else None
                unit: Unit = "change" if who == DIFFERENCE else "score"
                lines.append((who, editor or POOLED, *(number(a, unit) for a in means), items, ratings))
    return fill_table(index, "table6", lines, columns=questions, codes=questions)

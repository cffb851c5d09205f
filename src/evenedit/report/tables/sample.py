"""The paper's tables and figure about the sample: portraits, outputs that people rated, and their mean scores."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.core.records import Condition
from evenedit.protocol import AXES, QUESTIONS
from evenedit.report.figures.inline import tip as tip_id
from evenedit.report.figures.plots import BLUE, FAINT, VERMILLION, FigureFile, dot, picture, query_of, sheet
from evenedit.report.render.index import POOLED, Index, excludes, name
from evenedit.report.render.table import Cell, Column, Number, Table, format_number, table_of, text
from evenedit.report.tables.agreement import Rows, axis_name, number
from evenedit.results.results import Agreement

ARMS = (Condition.FEATURE, Condition.PLACEBO)
DELTAS = ("edit_success", "race_drift", "gender_drift", "skin_tone.distance", "age_drift.distance")
"""The axes of figure 6 (b): edit success, which a feature prompt should keep, and the changes it should lessen."""


def _counted(index: Index, what: str) -> Iterator[tuple[str, str, int]]:
    """The counts whose key begins with `what`, as factor, level, count."""
    for key, count in index.results.counts.items():
        first, _, rest = key.partition(".")
        factor, _, level = rest.partition(".")
        if first == what and level:
            yield factor, level, count


def portraits(index: Index) -> Table | None:
    """Table 9 of the paper, with the labels of the portraits beside the pools they were chosen from."""
    whole = index.results.counts.get("portraits", 0)
    rows: list[tuple[Cell, ...]] = [
        (_factor(index, factor), index.level_label(factor, level), Number(n / whole, "share", n=whole), n)
        for factor, level, n in sorted(_counted(index, "portraits"), key=lambda c: c[0] != "pool")
        if whole
    ]
    pools = any(factor == "pool" for factor, _, _ in _counted(index, "portraits"))
    return table_of(
        index,
        "table9",
        "Portraits by pool and label" if pools else "Portraits by label",
        f"The {whole} portraits that were edited"
        + (", by the candidate pool they were chosen from and by the dataset's labels." if pools else "."),
        (text("factor", "Factor"), text("level", "Level"), Column("share", "Share"), Column("portraits", "Portraits")),
        rows,
    )


def _factor(index: Index, name: str) -> Cell:
    """A factor as a cell; the pool is not a factor and has a name of its own."""
    return "pool" if name == "pool" else index.factor_label(name)


def sample(index: Index) -> Table | None:
    """Table 18 of the paper: the outputs that people rated."""
    counts = index.results.counts
    whole = counts.get("rated", 0)
    kinds = {"arm": "Experiment and condition", "editor": "Editor", **{f.name: f.title for f in index.factors}}
    rows: list[tuple[Cell, ...]] = [
        (kinds[kind], _rated_level(index, kind, level), n, Number(n / whole, "share", n=whole))
        for kind, level, n in _counted(index, "rated")
        if kind in kinds
    ]
    drawn = f" {counts['sampled']:,} cases were drawn for them." if "sampled" in counts else ""
    by = sorted((int(level), n) for kind, level, n in _counted(index, "rated") if kind == "by")
    raters = ", ".join(f"{n:,} by {k} {'person' if k == 1 else 'people'}" for k, n in by)
    return table_of(
        index,
        "table18",
        "What people rated",
        f"{whole:,} outputs rated by {counts.get('people', 0):,} people, by experiment, editor and the labels of the "
        f"portraits.{drawn} Of the outputs, {raters}.",
        (text("factor", "Factor"), text("level", "Level"), Column("outputs", "Outputs"), Column("share", "Share")),
        rows,
        notes=(f"Outputs of two portraits have no single label and are not in the shares by {index.nouns}.",),
    )


def _rated_level(index: Index, kind: str, level: str) -> Cell:
    return level.replace(".", ", ") if kind == "arm" else index.level_label(kind, level)


def judges_beside_people(index: Index) -> Table | None:
    """Table 6 of the paper: mean scores of judges and of people on the same outputs."""
    rows = Rows.of(index.results)
    asked = [q for q in AXES if rows.find("mean_people", q)]
    lines: list[tuple[Cell, ...]] = []
    for statistic, who in (("mean_judges", "Judges"), ("mean_people", "People")):
        for editor in index.lines("diagnosis"):
            found = [rows.find(statistic, q, editor=editor) for q in asked]
            if any(found):
                items = max(a.n_items for a in found if a)
                ratings = max(a.n_ratings for a in found if a) if who == "People" else None
                lines.append((who, editor or POOLED, *(number(a) for a in found), items, ratings))
    return table_of(
        index,
        "table6",
        "Mean scores of judges and of people",
        "On the baseline outputs that both rated. Scale 1–5. Edit success: 5 = fully applied. Skin tone and age "
        "change: 3 = unchanged, above 3 = lighter or older. Race and gender change: 1 = same.",
        (
            text("raters", "Rated by"),
            text("editor", "Editor"),
            *(Column(q, QUESTIONS[q].title) for q in asked),
            Column("items", "outputs"),
            Column("ratings", "people's ratings"),
        ),
        lines,
        notes=(f"Brackets: {index.level} intervals, faces drawn. The difference and its test: judges against people.",),
    )


def skin_tone_and_deltas(index: Index) -> FigureFile | None:
    """Figure 6 of the paper: people's skin-tone ratings by the main factor, and changes with the feature prompt."""
    rows = Rows.of(index.results)
    codes = [code for code in index.main.codes if _skin_tone(index, rows, "mean_people", code)]
    deltas = [
        (axis, [(arm, a) for arm in ARMS if (a := rows.find("mean_delta", axis, arm)) is not None]) for axis in DELTAS
    ]
    deltas = [(axis, found) for axis, found in deltas if any(a.value is not None for _, a in found)]
    if not codes and not deltas:
        return None
    panels = [draw for draw in (codes and "skin", deltas and "delta") if draw]
    height = 1.25 + 0.3 * max(len(codes), len(deltas))
    alt: list[str] = []
    with sheet(8.6, height, bool(index.results.simulated)) as figure:
        axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
        if codes:
            ax = axes.pop(0)
            ax.axvline(3, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
            names = {code: index.group_name(index.main_group(code)) for code in codes}
            for y, code in enumerate(codes):
                for statistic, colour, shape, off in (
                    ("mean_people", VERMILLION, "o", -0.12),
                    ("mean_judges", FAINT, "D", 0.14),
                ):
                    a = _skin_tone(index, rows, statistic, code)
                    if a is not None and a.value is not None:
                        filled = statistic == "mean_people" and excludes(a.low, a.high, 3)
                        tip = _tip(index, names[code], a)
                        dot(ax, y + off, a.value, a.low, a.high, colour, filled=filled, tip=tip, shape=shape)
                        alt += [f"{names[code]} {a.value:.2f}."] if statistic == "mean_people" else []
            ax.set_yticks(range(len(codes)), list(names.values()))
            ax.set_ylim(len(codes) - 0.4, -0.6)
            ax.grid(axis="x")
            ax.set_title("(a) Skin tone, mean score\n3 = unchanged, above 3 = lighter")
            ax.plot([], [], "o-", color=VERMILLION, label="people")
            if any(_skin_tone(index, rows, "mean_judges", code) for code in codes):
                ax.plot([], [], "D-", color=FAINT, markerfacecolor="none", label="judges, same outputs")
        if deltas:
            ax = axes.pop(0)
            ax.axvline(0, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
            for y, (axis, found) in enumerate(deltas):
                for arm, a in found:
                    if a.value is not None:
                        colour, off = (BLUE, -0.12) if arm is Condition.FEATURE else (FAINT, 0.14)
                        tip = _tip(index, f"{axis_name(axis)}, {name(arm).lower()}", a, signed=True)
                        dot(ax, y + off, a.value, a.low, a.high, colour, filled=excludes(a.low, a.high), tip=tip)
                        alt.append(f"{axis_name(axis)}, {name(arm).lower()}: {format_number(a.value, 'change')}.")
            ax.set_yticks(range(len(deltas)), [axis_name(axis) for axis, _ in deltas])
            ax.set_ylim(len(deltas) - 0.4, -0.6)
            ax.grid(axis="x")
            ax.set_title("(b) Mitigated minus baseline, mean score\nbelow 0 = lower score or less change")
            for arm, colour in zip(ARMS, (BLUE, FAINT), strict=True):
                if any(arm == other for _, found in deltas for other, _ in found):
                    ax.plot([], [], "o-", color=colour, label=name(arm).lower())
        figure.legend(loc="outside lower right", ncols=4, frameon=False)
        return picture(
            figure,
            index,
            "figure6",
            "People's ratings",
            f"People's mean of each output, with {index.level} intervals, over all editors. Filled: the interval "
            "excludes no change." + (" (b) over pairs of the same case." if deltas else ""),
            "Dots with intervals. " + " ".join(alt),
        )


def _skin_tone(index: Index, rows: Rows, statistic: str, code: str) -> Agreement | None:
    return rows.find(statistic, "skin_tone", group=index.main_group(code))


def _tip(index: Index, who: str, a: Agreement, *, signed: bool = False) -> str:
    shown = number(a, "change" if signed else "score")
    text = f"{who}: {shown.shown} {shown.interval}".rstrip() + f", {a.n_items:,} outputs"
    return tip_id(text, query_of(index, shown.cases))

"""People in the paper's form: whom the portraits show, what people were given, and what they said beside the judges."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.protocol import AXES, FACTORS, QUESTIONS
from evenedit.report.figures.plots import BLUE, FAINT, VERMILLION, FigureFile, dot, picture, sheet
from evenedit.report.render.index import POOLED, Index, excludes, name
from evenedit.report.render.table import Cell, Column, Number, Table, format_number, table_of, text
from evenedit.report.tables.agreement import Rows, axis_name, number
from evenedit.results.results import Agreement

DELTAS = ("edit_success", "race_drift", "gender_drift", "skin_tone.distance", "age_drift.distance")
"""What a feature prompt should leave (edit success) and what it should lessen."""


def _counted(index: Index, what: str) -> Iterator[tuple[str, str, int]]:
    """Counts of one kind as factor, level, number."""
    for key, count in index.results.counts.items():
        first, _, rest = key.partition(".")
        factor, _, level = rest.partition(".")
        if first == what and level:
            yield factor, level, count


def portraits(index: Index) -> Table | None:
    """Table 9 of the paper, with the labels of the portraits beside the pools they were chosen from."""
    whole = index.results.counts.get("portraits", 0)
    rows: list[tuple[Cell, ...]] = [
        (factor, level, Number(n / whole, "share", n=whole), n)
        for factor, level, n in sorted(_counted(index, "portraits"), key=lambda c: c[0] != "pool")
        if whole
    ]
    pools = any(row[0] == "pool" for row in rows)
    return table_of(
        index,
        "table9",
        "Portraits by pool and label" if pools else "Portraits by label",
        f"The {whole} portraits that were edited"
        + (", by the candidate pool they were chosen from and by the dataset's labels." if pools else "."),
        (text("factor", "Factor"), text("level", "Level"), Column("share", "Share"), Column("portraits", "Portraits")),
        rows,
    )


KINDS = {"arm": "Experiment and condition", "editor": "Editor", "race": "Race", "gender": "Gender", "age": "Age"}


def sample(index: Index) -> Table | None:
    """Table 18 of the paper: the outputs that people rated."""
    counts = index.results.counts
    whole = counts.get("rated", 0)
    rows: list[tuple[Cell, ...]] = [
        (KINDS[kind], level.replace(".", ", ") if kind == "arm" else level, n, Number(n / whole, "share", n=whole))
        for kind, level, n in _counted(index, "rated")
        if kind in KINDS
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
        notes=("Outputs of two portraits have no single label and are not in the shares by race, gender and age.",),
    )


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
    """Figure 6 of the paper: people's skin-tone ratings by race, and what they say the feature prompt changes."""
    rows = Rows.of(index.results)
    races = [r for r in FACTORS[0].codes if _at(rows, "mean_people", r)]
    deltas = [
        (axis, [(arm, a) for arm in ("feature", "placebo") if (a := rows.find("mean_delta", axis, arm)) is not None])
        for axis in DELTAS
    ]
    deltas = [(axis, found) for axis, found in deltas if any(a.value is not None for _, a in found)]
    if not races and not deltas:
        return None
    panels = [draw for draw in (races and "skin", deltas and "delta") if draw]
    height = 1.25 + 0.3 * max(len(races), len(deltas))
    told: list[str] = []
    with sheet(8.6, height, bool(index.results.simulated)) as figure:
        axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
        if races:
            ax = axes.pop(0)
            ax.axvline(3, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
            for y, race in enumerate(races):
                for statistic, colour, shape, off in (
                    ("mean_people", VERMILLION, "o", -0.12),
                    ("mean_judges", FAINT, "D", 0.14),
                ):
                    a = _at(rows, statistic, race)
                    if a is not None and a.value is not None:
                        filled = statistic == "mean_people" and excludes(a.low, a.high, 3)
                        dot(
                            ax,
                            y + off,
                            a.value,
                            a.low,
                            a.high,
                            colour,
                            filled=filled,
                            tip=_tip(name(race), a),
                            shape=shape,
                        )
                        told += [f"{name(race)} {a.value:.2f}."] if statistic == "mean_people" else []
            ax.set_yticks(range(len(races)), [name(race) for race in races])
            ax.set_ylim(len(races) - 0.4, -0.6)
            ax.grid(axis="x")
            ax.set_title("(a) Skin tone, mean score\n3 = unchanged, above 3 = lighter")
            ax.plot([], [], "o-", color=VERMILLION, label="people")
            if any(_at(rows, "mean_judges", race) for race in races):
                ax.plot([], [], "D-", color=FAINT, markerfacecolor="none", label="judges, same outputs")
        if deltas:
            ax = axes.pop(0)
            ax.axvline(0, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
            for y, (axis, found) in enumerate(deltas):
                for arm, a in found:
                    if a.value is not None:
                        colour, off = (BLUE, -0.12) if arm == "feature" else (FAINT, 0.14)
                        tip = _tip(f"{axis_name(axis)}, {name(arm).lower()}", a, signed=True)
                        dot(ax, y + off, a.value, a.low, a.high, colour, filled=excludes(a.low, a.high), tip=tip)
                        told.append(f"{axis_name(axis)}, {name(arm).lower()}: {format_number(a.value, 'change')}.")
            ax.set_yticks(range(len(deltas)), [axis_name(axis) for axis, _ in deltas])
            ax.set_ylim(len(deltas) - 0.4, -0.6)
            ax.grid(axis="x")
            ax.set_title("(b) Mitigated minus baseline, mean score\nbelow 0 = lower score or less change")
            for arm, colour in (("feature", BLUE), ("placebo", FAINT)):
                if any(arm == other for _, found in deltas for other, _ in found):
                    ax.plot([], [], "o-", color=colour, label=name(arm).lower())
        figure.legend(loc="outside lower right", ncols=4, frameon=False)
        return picture(
            figure,
            index,
            "figure6",
            "What people say",
            f"People's mean of each output, with {index.level} intervals, over all editors. Filled: the interval "
            "excludes no change." + (" (b) over pairs of the same case." if deltas else ""),
            "Dots with intervals. " + " ".join(told),
        )


def _at(rows: Rows, statistic: str, race: str) -> Agreement | None:
    return rows.find(statistic, "skin_tone", group={"race": race})


def _tip(who: str, a: Agreement, *, signed: bool = False) -> str:
    shown = number(a, "change" if signed else "score")
    return f"{who}: {shown.shown} {shown.interval}".rstrip() + f", {a.n_items:,} outputs"

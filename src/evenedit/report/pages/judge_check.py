"""The page of a judge check: how far the judges' scores change when they are asked in another way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from evenedit.protocol import FACTORS, ROLES, Factor, Rubric, default_rubric
from evenedit.report.figures.base import (
    BLUE,
    FAINT,
    Drawing,
    FigureFile,
    dot,
    drawing,
    name_rows,
    new_figure,
    render_figure,
)
from evenedit.report.pages.report import BADGES
from evenedit.report.render.html import put, render
from evenedit.report.render.index import Index, interval_excludes
from evenedit.report.render.table import Cell, Number, Table, Unit, fill_table, format_number, short_list
from evenedit.report.text.summary import Sentence
from evenedit.results.judge_checks import COMPARED, STUDY, JudgeCheck, Moved, Shift
from evenedit.results.results import Results

PAGE = "check.html"
VARIANT_TEXT = {
    "again": "Asked the same again",
    "since": "Compared with its answers in the study",
    "labels": "Given the labels of the source",
    "order": "Shown the edited image first",
    "grey": "Shown both images without colour",
}
"""By comparison, the beginning of a sentence about it."""
BY_COLOUR = (ROLES.skin, ROLES.race)
"""Questions whose answers may depend on colour."""


def write_check(
    check: JudgeCheck, out: Path, *, title: str, factors: tuple[Factor, ...] = FACTORS, rubric: Rubric | None = None
) -> Path:
    """Write check.html, check.json, tables/ and figures/ under `out` and return the path of the page."""
    wanted = tuple((rubric or default_rubric()).to_tables())
    index = Index(Results(check.provenance, check.rules, (), factors=factors, simulated=check.simulated, rubric=wanted))
    built = [_moves(check, index), _groups(check, index), _calls(check, index)]
    tables = {table.id: table for table in built if table is not None}
    drawing = _figure(check, index)
    figure = None if drawing is None else render_figure(drawing, bool(check.simulated))
    files: dict[str, bytes] = {"check.json": check.to_json().encode()}
    for table in tables.values():
        files[f"tables/{table.id}.csv"] = table.to_csv().encode()
        files[f"tables/{table.id}.tex"] = table.to_latex().encode()
    if figure is not None:
        files |= figure.files()
    files[PAGE] = _render(check, index, tables, figure, title).encode()  # the last to be written
    for path, content in files.items():
        put(out / path, content)
    return out / PAGE


def _render(check: JudgeCheck, index: Index, tables: Mapping[str, Table], figure: FigureFile | None, title: str) -> str:
    rules = check.rules
    return render(
        PAGE,
        title=title,
        check=check,
        facts=[
            ("Judges", ", ".join(_judges(check))),
            (
                "Edits asked about",
                f"{rules['sampled edits']:,} of {rules['sampled faces']:,} faces, balanced over groups",
            ),
            ("Ways of asking", ", ".join(rules["variants"].values())),
            ("Intervals", f"{index.level}, {rules['intervals']}: all edits of a face go together"),
        ],
        summary=[(judge, list(_sentences(index, check, judge))) for judge in _judges(check)],
        labels=index.nouns,
        badges=BADGES,
        level=index.level,
        tables=tables,
        figure=figure,
        inline=Markup(figure.inline()) if figure else "",
        simulated=short_list(check.simulated),
        provenance=[(key.replace("_", " ").capitalize(), str(value)) for key, value in check.provenance.items()],
    )


def _judges(check: JudgeCheck) -> tuple[str, ...]:
    return tuple(dict.fromkeys(a.judge for a in check.calls))


def _overall_shifts(check: JudgeCheck, judge: str, comparison: str) -> list[Shift]:
    """Return the shifts over everybody, in the order of the questions."""
    return [s for s in check.shifts if (s.judge, s.comparison) == (judge, comparison) and not s.group and s.n]


def _number(moved: Moved | None, unit: Unit, shift: Shift | None = None) -> Number:
    if moved is None:
        return Number(None, unit)
    counts = (shift.n, shift.missing) if shift else (None, None)
    return Number(moved.value, unit, moved.low, moved.high, *counts)


# -- words -----------------------------------------------------------------------------------------------------


def _sentences(index: Index, check: JudgeCheck, judge: str) -> Iterator[Sentence]:
    """Sentences on how far a judge's answers change, each with its certainty."""
    repeats, intro = _overall_shifts(check, judge, "again"), VARIANT_TEXT["again"]
    if repeats and not any(map(_changed, repeats)):
        yield Sentence(f"{intro}, it changed none of its answers.", "observed", judge)
    elif repeats:
        most, least = max(repeats, key=_changed), min(repeats, key=_changed)
        two = max(repeats, key=lambda s: s.changed_two.value or 0.0)
        words = f"{intro}, it changed {_share(least.changed)} ({_title(index, least)}) to {_share(most.changed)} "
        words += f"({_title(index, most)}) of its answers"
        words += f", by two points or more at most {_share(two.changed_two)}." if two.changed_two.value else "."
        yield Sentence(words, "observed", judge)
    for comparison in (c for c in COMPARED if c != "again"):
        yield from _shifted(index, check, judge, comparison)
    colourless = [s for q in BY_COLOUR if (s := check.find(judge, "grey", q)) is not None and s.n]
    if colourless:
        unchanged = " and ".join(
            f"{_share(s.changed, complement=True)} of its {_title(index, s)} scores" for s in colourless
        )
        repeated = [check.find(judge, "again", s.question) for s in colourless]
        usual = " and ".join(_share(s.changed, complement=True) for s in repeated if s is not None and s.n)
        yield Sentence(
            f"Without colour it kept {unchanged}" + (f" (asked again with colour: {usual})." if usual else "."),
            "observed",
            judge,
        )
    lost = sum(a.refused + a.unparseable + a.failed for a in check.calls if a.judge == judge and a.variant != STUDY)
    waiting = sum(a.not_asked for a in check.calls if a.judge == judge and a.variant != STUDY)
    if lost:
        yield Sentence(
            f"{lost:,} of its calls in this check returned no scores; see the calls below.", "caution", judge
        )
    if waiting:
        yield Sentence(f"The check is not complete: {waiting:,} calls have not been made yet.", "caution", judge)


def _shifted(index: Index, check: JudgeCheck, judge: str, comparison: str) -> Iterator[Sentence]:
    """Sentences on the shifts of one comparison over everybody."""
    shifts = _overall_shifts(check, judge, comparison)
    moved = ", ".join(f"{_title(index, s)} by {_points(s.mean)}" for s in shifts if _is_moved(s))
    if moved:
        yield Sentence(f"{VARIANT_TEXT[comparison]}, it moved {moved} on average.", "suggestive", judge)
    elif shifts and not any(map(_changed, shifts)):
        yield Sentence(f"{VARIANT_TEXT[comparison]}, it changed none of its answers.", "none", judge)
    elif shifts:
        widest = [
            max(abs(s.mean.low), abs(s.mean.high)) for s in shifts if s.mean.low is not None and s.mean.high is not None
        ]
        limit = f"; the intervals still allow {format_number(max(widest), 'score')} points" if widest else ""
        yield Sentence(f"{VARIANT_TEXT[comparison]}, no average shift is shown{limit}.", "none", judge)


def _is_moved(shift: Shift) -> bool:
    """Return whether the interval of the mean shift excludes 0."""
    return interval_excludes(shift.mean.low, shift.mean.high)


def _changed(shift: Shift) -> float:
    return shift.changed.value or 0.0


def _title(index: Index, shift: Shift) -> str:
    return index.name(shift.question).lower()


def _share(moved: Moved, *, complement: bool = False) -> str:
    value = moved.value
    return format_number(1 - value if complement and value is not None else value, "share")


def _points(moved: Moved) -> str:
    number = _number(moved, "change")
    return f"{number.formatted} {number.interval}".strip()


# -- tables ----------------------------------------------------------------------------------------------------


def _numbers(s: Shift) -> tuple[Cell, ...]:
    return (
        _number(s.mean, "change", s),
        _number(s.size, "score"),
        _number(s.changed, "share"),
        _number(s.changed_two, "share"),
        _number(s.beyond, "points"),
    )


def _moves(check: JudgeCheck, index: Index) -> Table | None:
    return fill_table(
        index,
        "moves",
        [
            (s.judge, s.comparison, s.question, *_numbers(s), s.n, s.missing)
            for s in check.shifts
            if not s.group and s.n
        ],
    )


def _groups(check: JudgeCheck, index: Index) -> Table | None:
    return fill_table(
        index,
        "groups",
        [
            (s.judge, s.comparison, s.question, index.group_label(s.group), *_numbers(s), s.n, s.missing)
            for s in check.shifts
            if s.group and s.n
        ],
    )


def _calls(check: JudgeCheck, index: Index) -> Table | None:
    titles = {STUDY: "the study itself", **check.rules["variants"]}
    return fill_table(
        index,
        "calls",
        [
            (
                *(a.judge, titles[a.variant], a.scored, a.refused, a.unparseable, a.failed, a.not_asked),
                ", ".join(f"{model} ({n:,})" for model, n in a.models.items()) or "none",
            )
            for a in check.calls
        ],
    )


# -- figure ----------------------------------------------------------------------------------------------------


def _figure(check: JudgeCheck, index: Index) -> Drawing | None:
    """Mean shifts with intervals: comparisons below one another, judges side by side."""
    judges = _judges(check)
    places = {(j, c): _overall_shifts(check, j, c) for j in judges for c in COMPARED}
    comparisons = [c for c in COMPARED if any(places[j, c] for j in judges)]
    if not comparisons:
        return None
    questions = [q for q in index.rubric.columns if any(s.question == q for shifts in places.values() for s in shifts)]
    moved = []
    with new_figure(8.6, 0.8 + (0.25 * len(questions) + 0.42) * len(comparisons), bool(check.simulated)) as figure:
        axes = figure.subplots(len(comparisons), len(judges), sharex=True, sharey=True, squeeze=False)
        for row, comparison in enumerate(comparisons):
            for column, judge in enumerate(judges):
                ax = axes[row][column]
                ax.axvline(0, color=FAINT, linewidth=1)
                for s in places[judge, comparison]:
                    dot(ax, questions.index(s.question), s.mean, BLUE, filled=_is_moved(s))
                    if _is_moved(s):
                        moved.append(f"{judge}, {COMPARED[comparison]}, {_title(index, s)}: {_points(s.mean)}.")
                ax.set_title(f"{judge}\n{index.name(comparison)}" if row == 0 else index.name(comparison))
                _scale(index, ax, questions)
        return drawing(figure, index, "figure_moves", moved=" ".join(moved[:12]))


def _scale(index: Index, ax: Any, questions: Sequence[str]) -> None:
    name_rows(ax, [index.name(q) for q in questions])
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:+g}".replace("-", "−").replace("+0", "0") if x else "0")

"""Editors of several studies in one table. Ranks are shown as ranges, since intervals overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.report.render.html import put, render
from evenedit.report.render.index import name
from evenedit.report.render.table import Cell, Column, Number, Table, short_list, text
from evenedit.study.results import results_of
from evenedit.study.study import Study

MEASURES: tuple[tuple[str, dict[str, str]], ...] = (
    ("rate.edit_success", {}),
    ("rate.soft_erasure", {}),
    ("gap.soft_erasure", {"race": "*"}),
    ("gap.skin_lighter", {"race": "*"}),
    ("gap.race_change", {"race": "*"}),
    ("gap.gender_change", {"gender": "*"}),
)
"""What a row shows, over everybody or as a gap."""
BY = "gap.race_change"


@dataclass(frozen=True, slots=True)
class Entry:
    """One editor of one study."""

    editor: str
    study: str
    prompts: tuple[str, ...]
    numbers: tuple[Estimate | None, ...]
    simulated: tuple[str, ...]

    @property
    def ranked(self) -> Estimate | None:
        """The estimate the order goes by."""
        return next((e for e in self.numbers if e is not None and e.measure == BY), None)


def write_leaderboard(studies: Sequence[Study], out: Path) -> Path:
    """Write leaderboard.html and leaderboard.csv, and return the page."""
    entries = [entry for study in studies for entry in _entries(study)]
    if not entries:
        raise EvenEditError("these studies hold no rated editor")
    entries.sort(key=_place)
    simulated = tuple(sorted({s for e in entries for s in e.simulated}))
    ranges = _ranks(entries)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            rank,
            e.editor,
            e.study,
            *(
                Number.of(number, "points" if measure.startswith("gap.") else "share")
                for number, (measure, _) in zip(e.numbers, MEASURES, strict=True)
            ),
        )
        for rank, e in zip(ranges, entries, strict=True)
    )
    columns = (
        text("rank", "Rank"),
        text("editor", "Editor"),
        text("study", "Study"),
        *(Column(m.replace(".", "_"), _title(m, g)) for m, g in MEASURES),
    )
    notes = [
        "Rank: by the race-change gap over races; a range covers every place its interval allows, so editors whose "
        "ranges overlap cannot be told apart. A lower gap with less edit success is no gain: read both.",
    ]
    designs = {e.prompts for e in entries}
    if len(designs) > 1:
        notes.append("The studies use different prompts: their numbers are not of the same task.")
    caption = "Rates over everybody and gaps between groups, with intervals."
    table = Table("leaderboard", "Leaderboard", caption, columns, rows, tuple(notes), (), simulated)
    page = render("leaderboard.html", table=table, simulated=short_list(simulated))
    put(out / "leaderboard.csv", table.to_csv().encode())
    put(out / "leaderboard.html", page.encode())
    return out / "leaderboard.html"


def _place(entry: Entry) -> tuple[bool, float]:
    value = entry.ranked.value if entry.ranked else None
    return value is None, value or 0.0


def _entries(study: Study) -> list[Entry]:
    results = results_of(study, study.table())
    editors = dict.fromkeys(e.editor for e in results.estimates if e.editor and e.experiment == "diagnosis")
    prompts = tuple(p.text for p in study.file.prompts)
    return [
        Entry(
            editor,
            study.file.sections.study.title,
            prompts,
            tuple(results.find(measure, editor=editor, group=group) for measure, group in MEASURES),
            results.simulated,
        )
        for editor in editors
    ]


def _ranks(entries: Sequence[Entry]) -> list[str]:
    """The places each entry may have: those surely better come before it, those surely worse after."""
    ranges = []
    for entry in entries:
        e = entry.ranked
        if e is None or e.low is None or e.high is None:
            ranges.append("–")
            continue
        known = [o.ranked for o in entries if o is not entry and o.ranked is not None]
        better = sum(o.high is not None and o.high < e.low for o in known)
        worse = sum(o.low is not None and o.low > e.high for o in known)
        last = len(entries) - worse
        ranges.append(f"{better + 1}" if better + 1 == last else f"{better + 1}–{last}")
    return ranges


def _title(measure: str, group: dict[str, str]) -> str:
    what = name(measure.partition(".")[2])
    return f"{what}, gap over {next(iter(group))}" if group else what

"""The editors of several studies in one table. Ranks are shown as ranges, since intervals overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate, Experiment
from evenedit.protocol import FACTORS, Factor, factor
from evenedit.protocol.measures import Measure
from evenedit.report.render.html import put, render
from evenedit.report.render.index import name
from evenedit.report.render.table import Cell, Column, Number, Table, short_list, text
from evenedit.results.results import Results
from evenedit.study.labels import in_a_sentence, refuse_different_factors

OVERALL = (Measure.rate("edit_success"), Measure.rate("soft_erasure"))
"""The rates over everybody."""
GAPS = (Measure.gap("soft_erasure"), Measure.gap("skin_lighter"), Measure.gap("race_change"))
"""The gaps over the main factor, and over every other factor that a study declares."""
RANKED_BY = Measure.gap("race_change")
"""The gap over the main factor that orders the rows."""


@dataclass(frozen=True, slots=True)
class LeaderboardMeasure:
    """One column of numbers."""

    key: str
    """Its name in leaderboard.csv."""
    measure: Measure
    factor: Factor | None = None
    """The factor that a gap is over; None for a rate over everybody."""

    @property
    def group(self) -> dict[str, str]:
        """The group that its estimates have."""
        return {self.factor.name: "*"} if self.factor else {}

    @property
    def title(self) -> str:
        """Its title on the page."""
        what = name(self.measure.name)
        return f"{what}, gap over {in_a_sentence(self.factor)}" if self.factor else what


def measures_of(factors: Sequence[Factor]) -> tuple[LeaderboardMeasure, ...]:
    """The columns of a study with these factors; race, gender and age have a choice of their own."""
    main, *others = factors
    shown = [LeaderboardMeasure(_key(m), m) for m in OVERALL]
    shown += [LeaderboardMeasure(_key(m), m, main) for m in GAPS]
    if tuple(factors) == FACTORS:
        gender = Measure.gap("gender_change")
        return (*shown, LeaderboardMeasure(_key(gender), gender, factor("gender")))
    return (*shown, *(LeaderboardMeasure(f"{_key(m)}_{other.name}", m, other) for other in others for m in GAPS))


def _key(measure: Measure) -> str:
    return measure.replace(".", "_")


@dataclass(frozen=True, slots=True)
class Entry:
    """One editor of one study."""

    editor: str
    study: str
    prompts: tuple[str, ...]
    numbers: tuple[Estimate | None, ...]
    """One estimate per column of numbers; None where the study has none."""
    ranked: Estimate | None
    """The estimate that orders the rows."""
    simulated: tuple[str, ...]


def write_leaderboard(several: Sequence[Results], out: Path) -> Path:
    """Write leaderboard.html and leaderboard.csv, and return the page."""
    refuse_different_factors([results.factors for results in several])
    entries = [entry for results in several for entry in _entries(results)]
    if not entries:
        raise EvenEditError("these studies have no rated edit. Try: evenedit run STUDY")
    entries.sort(key=_place)
    simulated = tuple(sorted({s for e in entries for s in e.simulated}))
    factors = several[0].factors
    measures = measures_of(factors)
    ranges = _ranks(entries)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            rank,
            e.editor,
            e.study,
            *(
                Number.of(number, "points" if column.factor else "share")
                for number, column in zip(e.numbers, measures, strict=True)
            ),
        )
        for rank, e in zip(ranges, entries, strict=True)
    )
    columns = (
        text("rank", "Rank"),
        text("editor", "Editor"),
        text("study", "Study"),
        *(Column(column.key, column.title) for column in measures),
    )
    notes = [
        f"Rank: by the gap in race change over {factors[0].plural}; a range covers every rank that the interval "
        "allows, so editors whose ranges overlap cannot be distinguished. A lower gap with less edit success is no "
        "gain: read both.",
    ]
    designs = {e.prompts for e in entries}
    if len(designs) > 1:
        notes.append("The studies use different prompts, so their numbers are not about the same task.")
    caption = "Rates over everybody and gaps between groups, with intervals."
    table = Table("leaderboard", "Leaderboard", caption, columns, rows, tuple(notes), (), simulated)
    page = render("leaderboard.html", table=table, simulated=short_list(simulated))
    put(out / "leaderboard.csv", table.to_csv().encode())
    put(out / "leaderboard.html", page.encode())
    return out / "leaderboard.html"


def _place(entry: Entry) -> tuple[bool, float]:
    value = entry.ranked.value if entry.ranked else None
    return value is None, value or 0.0


def _entries(results: Results) -> list[Entry]:
    editors = dict.fromkeys(e.editor for e in results.estimates if e.editor and e.experiment == Experiment.DIAGNOSIS)
    measures, main = measures_of(results.factors), results.factors[0]
    return [
        Entry(
            editor=editor,
            study=results.title,
            prompts=tuple(results.prompts.values()),
            numbers=tuple(results.find(m.measure, editor=editor, group=m.group) for m in measures),
            ranked=results.find(RANKED_BY, editor=editor, group={main.name: "*"}),
            simulated=results.simulated,
        )
        for editor in editors
    ]


def _ranks(entries: Sequence[Entry]) -> list[str]:
    """The ranks each entry may have, from how many intervals lie wholly below and wholly above its own."""
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

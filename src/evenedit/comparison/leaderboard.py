"""The editors of several studies in one table, ordered by the worst that was found about each.

An editor's place is that of its worst shift or gap, by the order of findings: severity times size times certainty. One
with a clear finding never stands above one without. A rank is a range only where editors are tied: neither has a clear
finding that the other lacks, and the intervals of their worst findings overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evenedit.cases.labels import group_in_words, in_a_sentence, refuse_different_factors, refuse_other_questions
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol import FACTORS, ROLES, Factor, Rubric, factor
from evenedit.protocol.measures import Measure
from evenedit.report.render.html import put, render
from evenedit.report.render.index import Names, level_name
from evenedit.report.render.table import Cell, Column, Number, describe_table, short_list
from evenedit.results.finding import CLEAR, ENSEMBLE, Finding
from evenedit.results.results import Results
from evenedit.results.words import listed
from evenedit.stats.findings.order import is_none, score, size

OVERALL = (Measure.rate(ROLES.applied), Measure.rate(ROLES.erased))
"""The rates over everybody."""
GAPS = (Measure.gap(ROLES.erased), Measure.gap(ROLES.lighter), Measure.gap(ROLES.race_change))
"""The gaps over the main factor, and over every other factor that a study declares."""
OVER_GENDER = (Measure.gap(ROLES.gender_change),)
"""The gaps over gender beside them, where portraits are grouped by race, gender and age."""


@dataclass(frozen=True, slots=True)
class LeaderboardMeasure:
    """One column of numbers."""

    key: str
    """Its name in leaderboard.csv."""
    measure: Measure
    what: str
    """The rate's title."""
    factor: Factor | None = None
    """The factor that a gap is over; None for a rate over everybody."""

    @property
    def group(self) -> dict[str, str]:
        """The group that its estimates have."""
        return {self.factor.name: "*"} if self.factor else {}

    @property
    def title(self) -> str:
        """Its title on the page."""
        return f"{self.what}, gap over {in_a_sentence(self.factor)}" if self.factor else self.what


def measures_of(factors: Sequence[Factor], rubric: Rubric) -> tuple[LeaderboardMeasure, ...]:
    """Return the columns for these factors and questions; race, gender and age have their own set."""
    main, *others = factors
    declared = [name for spec in rubric.declared for name in spec.rates if rubric.words(name).main]

    def column(measure: Measure, over: Factor | None = None, end: str = "") -> LeaderboardMeasure:
        return LeaderboardMeasure(f"{_key(measure)}{end}", measure, rubric.title(measure.name), over)

    overall, gaps = ([m for m in several if m.name in rubric.rates] for several in (OVERALL, GAPS))
    gaps += [Measure.gap(name) for name in declared]
    columns = [column(m) for m in (*overall, *(Measure.rate(name) for name in declared))]
    columns += [column(m, main) for m in gaps]
    if tuple(factors) == FACTORS:
        return (*columns, *(column(m, factor("gender")) for m in OVER_GENDER if m.name in rubric.rates))
    return (*columns, *(column(m, other, f"_{other.name}") for other in others for m in gaps))


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
    shift: Finding | None
    """The worst that happened to everybody."""
    gap: Finding | None
    """The widest difference between groups, over all factors."""
    simulated: tuple[str, ...]
    rubric: Rubric

    @property
    def findings(self) -> list[Finding]:
        """Both, the worse one first."""
        return sorted((f for f in (self.shift, self.gap) if f is not None), key=lambda f: -score(f, self.rubric))

    @property
    def clear(self) -> bool:
        """Whether either is clear, at least to the judges."""
        return any(f.level in CLEAR for f in self.findings)

    @property
    def reach(self) -> tuple[float, float]:
        """How bad the worse one may be: severity times the ends of its interval, or its value without one."""
        if not self.findings:
            return 0.0, 0.0
        worst = self.findings[0]
        ends = [abs(x) for x in (worst.low, worst.high) if x is not None] or [size(worst)]
        weight = self.rubric.severity(Measure(worst.measure or "").name)
        return weight * min(ends), weight * max(ends)


def write_leaderboard(several: Sequence[Results], out: Path) -> Path:
    """Write leaderboard.html and leaderboard.csv, and return the page."""
    refuse_different_factors([results.factors for results in several])
    refuse_other_questions([results.full_rubric for results in several])
    of_each = (measures_of(results.factors, results.full_rubric) for results in several)
    measures = tuple({m.key: m for measures in of_each for m in measures}.values())
    entries = [entry for results in several for entry in _entries(results, measures)]
    if not entries:
        raise EvenEditError("these studies have no rated edit. Try: evenedit run STUDY")
    entries.sort(key=_place)
    simulated = tuple(sorted({s for e in entries for s in e.simulated}))
    factors = several[0].factors
    ranges = _ranks(entries)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            rank,
            e.editor,
            e.study,
            *_worst(e.shift, factors, e.rubric),
            *_worst(e.gap, factors, e.rubric),
            *(
                Number.of(number, "points" if column.factor else "share")
                for number, column in zip(e.numbers, measures, strict=True)
            ),
        )
        for rank, e in zip(ranges, entries, strict=True)
    )
    table = describe_table(
        "leaderboard",
        rows,
        simulated,
        Names(several[0].full_rubric),
        columns=[Column(column.key, column.title) for column in measures],
        factors=listed([in_a_sentence(f) for f in factors]),
        main=factors[0].plural,
        several_designs=len({e.prompts for e in entries}) > 1,
    )
    page = render("leaderboard.html", table=table, simulated=short_list(simulated))
    put(out / "leaderboard.csv", table.to_csv().encode())
    put(out / "leaderboard.html", page.encode())
    return out / "leaderboard.html"


def _place(entry: Entry) -> tuple[object, ...]:
    scores = [score(f, entry.rubric) for f in entry.findings]
    return entry.clear, max(scores, default=0.0), sum(scores), entry.editor


def _worst(finding: Finding | None, factors: Sequence[Factor], rubric: Rubric) -> tuple[Cell, Cell]:
    """Format a finding as two cells: its number and its subject."""
    if finding is None:
        return Number(None, "points"), "none shown"
    what = _about(finding, rubric)
    if isinstance(finding.group, Mapping) and finding.group:
        what += f", {group_in_words(finding.group, factors)}"
    rater = "" if finding.rater in (None, ENSEMBLE) else f", measured by {finding.rater}"
    return Number(
        finding.value, "points", finding.low, finding.high, finding.n
    ), f"{what}{rater} ({level_name(finding.level, finding.evidence)})"


def _about(finding: Finding, rubric: Rubric) -> str:
    measure, name = Measure(finding.measure or ""), Names(rubric)
    if measure.name in rubric.two_sided:
        above, below = rubric.two_sided[measure.name]
        return f"{name(above)} minus {name(below).lower()}"
    return name(measure.name)


def _entries(results: Results, measures: Sequence[LeaderboardMeasure]) -> list[Entry]:
    return [
        Entry(
            editor=editor,
            study=results.title,
            prompts=tuple(results.prompts.values()),
            numbers=tuple(_number(results, results.find(m.measure, editor=editor, group=m.group)) for m in measures),
            shift=_worst_of(results, editor, "shift"),
            gap=_worst_of(results, editor, "gap"),
            simulated=results.simulated,
            rubric=results.full_rubric,
        )
        for editor in results.editors
    ]


def _number(results: Results, e: Estimate | None) -> Estimate | None:
    """Return an estimate, corrected by people's ratings where there are enough."""
    p = None if e is None else results.corrected(e)
    return e if e is None or p is None else replace(e, value=p.value, low=p.low, high=p.high)


def _worst_of(results: Results, editor: str, kind: str) -> Finding | None:
    """Return the worst finding of a kind about an editor's diagnosis; None if there is none."""
    candidates = [
        f for f in results.findings if (f.editor, f.kind) == (editor, kind) and f.condition == ConditionKind.BASELINE
    ]
    return max((f for f in candidates if not is_none(f)), key=lambda f: score(f, results.full_rubric), default=None)


def _ranks(entries: Sequence[Entry]) -> list[str]:
    """Return the range of ranks of each entry, from how many are better and worse."""
    ranges = []
    for entry in entries:
        better = sum(_better(other, entry) for other in entries if other is not entry)
        worse = sum(_better(entry, other) for other in entries if other is not entry)
        first, last = better + 1, len(entries) - worse
        ranges.append(f"{first}" if first == last else f"{first}–{last}")
    return ranges


def _better(one: Entry, other: Entry) -> bool:
    """Return whether the first is better than the second, without a tie."""
    if one.clear != other.clear:
        return other.clear
    return one.reach[1] < other.reach[0]

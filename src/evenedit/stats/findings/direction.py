"""The direction of change as findings: which levels edits come back seen as, beyond reading noise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.results.directions import Direction
from evenedit.results.finding import (
    EFFECT_LEVELS,
    ENSEMBLE,
    NO_CHANGE,
    Evidence,
    Finding,
    FindingLevel,
    Reliability,
    finding_in_words,
)
from evenedit.results.words import between, count, factor_noun, listed, percent, points
from evenedit.stats.agreement.outcomes import Codes
from evenedit.stats.agreement.reliability import alpha
from evenedit.stats.disparity.direction import SeenReadings, quantities
from evenedit.stats.engine.panel import Column
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import prompt_scope_clause
from evenedit.stats.findings.levels import NOT_TESTED, Adjusted, judges_sight
from evenedit.stats.findings.representative_cases import MOST

SILENT = 0.20
"""A judge that names no level for more than this share of the edits cannot tell the direction."""


@dataclass(frozen=True, slots=True)
class DirectionFindings:
    """Makes the findings about directions of change."""

    edits: pd.DataFrame
    readings: Sequence[SeenReadings]
    directions: Sequence[Direction]
    rules: AnalysisRules

    @property
    def tests(self) -> dict[Hashable, float | None]:
        """Return the p of each test by its key."""
        return {_key(d): d.p for d in self.directions if d.p is not None}

    def graded(self, adjusted: Mapping[Hashable, Adjusted]) -> list[Direction]:
        """Return the directions with their adjusted p."""
        tests = [NOT_TESTED if d.p is None else adjusted[_key(d)] for d in self.directions]
        return [replace(d, p_adjusted=t.p_adjusted, q=t.q) for d, t in zip(self.directions, tests, strict=True)]

    def findings(self, adjusted: Mapping[Hashable, Adjusted]) -> Iterator[Finding]:
        """Yield, of each factor and editor, the flows and levels that were shown, or that none was."""
        for r in self.readings:
            by_editor: dict[str, dict[tuple[str, str], Direction]] = {}
            for d in self.directions:
                if d.factor == r.factor.name:
                    by_editor.setdefault(d.editor, {})[d.condition, d.measure] = d
            for editor, rows in by_editor.items():
                if any(condition == ConditionKind.BASELINE for condition, _ in rows):
                    yield from _OneEditor(self, r, editor, rows, adjusted).findings()


class _OneEditor:
    """Makes the findings about one factor and one editor."""

    def __init__(
        self,
        directions: DirectionFindings,
        r: SeenReadings,
        editor: str,
        rows: Mapping[tuple[str, str], Direction],
        adjusted: Mapping[Hashable, Adjusted],
    ) -> None:
        self.factor, self.rows, self.adjusted, self.rules = r.factor, rows, adjusted, directions.rules
        self.noun = factor_noun(r.factor)
        at = np.flatnonzero(r.considered(directions.edits) & (directions.edits["editor"] == editor).to_numpy())
        self.ids, self.faces = (directions.edits[c].to_numpy(dtype=str)[at] for c in ("request_id", "source_id"))
        self.before, self.after = r.before[at], r.after[at]
        self.judges = {name: after[at] for name, after in r.per_judge.items() if after[at].any()}
        self.baseline = {Measure(m): d for (condition, m), d in rows.items() if condition == ConditionKind.BASELINE}
        self.tested = [d for d in self.baseline.values() if d.p is not None]
        agreements, judges = self._agreements(), len(self.judges)
        # a judge that answers at random makes no direction, as it makes no gap
        sights = [judges_sight(judges, r, self.rules.reliability, is_gap=True) for r in agreements]
        self.sights = dict(zip([d.measure for d in self.tested], sights, strict=False))
        self.of_levels = sights[len(self.tested) :]
        condition = ConditionKind.BASELINE.value
        self._about = partial(
            finding_in_words, "direction", condition=condition, editor=editor, rater=ENSEMBLE, factor=r.factor.name
        )

    def _agreements(self) -> list[Reliability | None]:
        """Return how far the judges agree on each tested number as it is counted, then on each level of the edits."""
        if len(self.judges) < 2:
            return [None] * (len(self.tested) + len(self.factor.codes))
        codes = np.stack([self._codes(after) for after in self.judges.values()])
        for level in np.unique(self.before):  # the reading of the portrait is one, and no agreement between judges
            alike = self.before == level
            counted = codes[:, alike, : len(self.tested)]
            known = ~np.isnan(counted)
            counted -= np.where(known, counted, 0.0).sum(axis=(0, 1)) / np.maximum(known.sum(axis=(0, 1)), 1)
            codes[:, alike, : len(self.tested)] = counted
        return list(alpha(codes, self.faces, self.rules.confidence, list(combinations(range(len(codes)), 2))))

    def _codes(self, after: Column) -> Codes:
        """Return what one judge's own readings of the edits count as, [edit, outcome]; NaN where they do not count."""
        numbers = {q.measure: q for q in quantities(self.factor, self.before, after)}
        wanted = [numbers[Measure(d.measure)] for d in self.tested]
        counted = [np.where(q.among & (self.before > 0) & (after > 0), q.total, np.nan) for q in wanted]
        levels = [np.where(after > 0, after == at, np.nan) for at in range(1, len(self.factor.codes) + 1)]
        return np.stack([*counted, *levels], axis=1)

    def findings(self) -> Iterator[Finding]:
        """Yield the surest flow and level with the others beside them, or that nothing was shown."""
        for name, after in self.judges.items():
            silent = int((after == 0).sum())
            if silent > SILENT * len(after):
                yield self._silence(f"the judge '{name}' named no level for {silent:,} of {count(len(after), 'edit')}")
                return
        effects = [several for kind in (MeasureKind.FLOW, MeasureKind.TOWARD) if (several := self._named(kind))]
        yield from map(self._effect, effects)
        if not effects and all(s.is_chance for s in self.of_levels):
            best = max((s.reliability for s in self.of_levels), key=_value)
            name, judges = f"{self.factor.name}_seen", len(self.judges)
            subject = "The direction of change"
            text = sentences.no_better_than_chance([name], best, judges, ConditionKind.BASELINE, subject)
            yield replace(self._about("cannot_tell", text), evidence="none", reliability=best)
        elif not effects:
            yield self._not_shown()

    def _named(self, kind: MeasureKind) -> list[tuple[Direction, FindingLevel]]:
        """Return the tested numbers with signs of an effect, the surest and largest first."""
        levels = [(d, self._level(d)) for d in self.tested if Measure(d.measure).kind == kind]
        rejected = [(d, level) for d, level in levels if level in EFFECT_LEVELS]
        is_level = kind == MeasureKind.TOWARD  # levels that edits move to stand before those they leave
        return sorted(
            rejected, key=lambda x: (EFFECT_LEVELS.index(x[1]), is_level and x[0].value < 0, -abs(x[0].value))
        )

    def _level(self, d: Direction) -> FindingLevel | None:
        """Return the level of a number; a clear one also lies beyond reading noise, on two prompts or more."""
        ends = (d.beyond_low, d.beyond_high)
        is_beyond = None not in ends and all((end or 0.0) * d.value > 0 for end in ends)
        return self.sights[d.measure].level(self.adjusted[_key(d)], can_be_clear=is_beyond and d.prompts > 1)

    def _effect(self, several: Sequence[tuple[Direction, FindingLevel]]) -> Finding:
        (d, level), *others = several
        text = self._flow(d) if d.before else self._toward(d)
        if others:
            text += f" Also: {listed([self._brief(other) for other, _ in others])}."
        floor = self.rows.get((ConditionKind.FLOOR, d.measure))
        if floor is not None:
            text += f" When asked to change nothing, it is {self._size(floor, d.value)}."
        sight, test = self.sights[d.measure], self.adjusted[_key(d)]
        missing = f"{count(d.missing, 'further edit')} without a reading of the portrait or of the edit."
        return replace(
            self._about(level, text),
            measure=d.measure,
            group={},
            against=NO_CHANGE,
            value=d.value,
            low=d.low,
            high=d.high,
            p=test.p_adjusted,
            p_raw=d.p,
            q=test.q,
            n=d.n,
            faces=d.faces,
            cases=self._cases(d),
            caveats=(*sight.caveats, *prompt_scope_clause(d.prompts, False), *((missing,) if d.missing else ())),
            evidence=sight.evidence,
            reliability=sight.reliability,
            estimand=sentences.estimand(sight.evidence, ENSEMBLE, len(self.judges), d.prompts, False),
        )

    def _flow(self, d: Direction) -> str:
        """Describe the transitions between two levels, the more frequent way first."""
        ways = self._ways(d)
        clauses: list[str] = []
        controls: list[str] = []
        for first, second in (ways, ways[::-1]):
            t = self.baseline.get(Measure.seen(MeasureKind.TRANSITION, self.factor.name, first, second))
            if t is not None:
                one, two = self._title(first), self._title(second)
                what = f"{t.n:,}" if clauses else f"{count(t.n, 'edit')} of portraits"
                clauses.append(f"of {what} seen as {one}, {_share(t.total, t.n)} came back seen as {two}")
                controls += [percent(t.control)] if t.control is not None else []
        text = "; ".join(clauses)
        noise = f" Reading the same portraits twice gives {listed(controls)}." if controls else ""
        return f"{text[0].upper()}{text[1:]} (net flow {self._size(d, d.value)}; {_spread(d)}).{noise}"

    def _toward(self, d: Direction) -> str:
        """Describe the edits that came to be seen as a level, and those that no longer are."""
        destination = self.baseline.get(Measure.seen(MeasureKind.DESTINATION, self.factor.name, d.after))
        arrived, level = 0 if destination is None else destination.total, self._title(d.after)
        turn = 1 if d.value >= 0 else -1
        noise = "" if d.control is None else f" Reading the same portraits twice gives {points(turn * d.control)}."
        return (
            f"Of {count(d.n, 'edit')}, {_share(arrived, d.n)} came back seen as {level} whose portraits were not, and "
            f"{_share(arrived - d.total, d.n)} were not seen as {level} whose portraits were (net "
            f"{'toward' if turn > 0 else 'away from'} {level} {self._size(d, turn)}; {_spread(d)}).{noise}"
        )

    def _brief(self, d: Direction) -> str:
        size = points(abs(d.value))
        if d.before:
            first, second = map(self._title, self._ways(d))
            return f"from {first} to {second} (net {size})"
        return f"{'toward' if d.value >= 0 else 'away from'} {self._title(d.after)} ({size})"

    def _not_shown(self) -> Finding:
        """State that no direction was shown, and how large one may still be."""
        changed = self.baseline[Measure.rate(f"{self.factor.name}_seen_changed")]
        noise = (
            "" if changed.control is None else f"; reading the same portraits twice gives {percent(changed.control)}"
        )
        text = (
            f"No direction of change in apparent {self.noun} was shown. Of {count(changed.n, 'edit')}, "
            f"{_share(changed.total, changed.n)} came back seen as another {self.factor.noun} than their "
            f"portrait{noise}."
        )
        towards = [d for m, d in self.baseline.items() if m.kind == MeasureKind.TOWARD]
        reach = [(max(abs(d.low), abs(d.high)), d) for d in towards if d.low is not None and d.high is not None]
        size, widest = max(reach, key=lambda x: x[0], default=(None, None))
        if widest is not None and size is not None:
            text += f" Edits may still move to or from one level by up to {points(size)} ({self._title(widest.after)})."
        level: FindingLevel = "observed" if size is not None and size <= self.rules.tolerance else "cannot_tell"
        evidence: Evidence = "judges" if len(self.judges) > 1 else "one_judge"
        return replace(self._about(level, text), high=size, n=changed.n, faces=changed.faces, evidence=evidence)

    def _silence(self, why: str) -> Finding:
        text = f"Nothing can be said about the direction of change in apparent {self.noun}: {why}."
        return replace(self._about("cannot_tell", text), evidence="none")

    def _cases(self, d: Direction) -> tuple[str, ...]:
        """Return the first edit by request id of each of up to six portraits that moved in the direction."""
        codes = ("", *self.factor.codes)
        first, second = self._ways(d)
        moved = (self.before > 0) & (self.after > 0) & (self.before != self.after)
        for readings, code in ((self.before, first), (self.after, second)):
            moved &= (readings == codes.index(code)) | (code == "")
        by_face: dict[str, str] = {}
        for request, face in sorted(zip(self.ids[moved].tolist(), self.faces[moved].tolist(), strict=True)):
            by_face.setdefault(face, request)
        return tuple(by_face.values())[:MOST]

    def _ways(self, d: Direction) -> tuple[str, str]:
        """Return the levels that edits mostly move from and to."""
        return (d.before, d.after) if d.value >= 0 else (d.after, d.before)

    def _size(self, d: Direction, sign: float) -> str:
        """Return a net number with its interval, counted in the direction of `sign`."""
        turn = 1 if sign >= 0 else -1
        ends = sorted(turn * end for end in (d.low, d.high) if end is not None)
        reach = f", {between(ends[0], ends[1], self.rules.confidence)}" if len(ends) == 2 else ""
        return f"{points(turn * d.value)} of {d.n:,}{reach}"

    def _title(self, code: str) -> str:
        return self.factor.titles[code]


def _key(d: Direction) -> Hashable:
    return ("direction", d.editor, d.measure)


def _share(part: int, total: int) -> str:
    return f"{part:,} ({percent(part / total)})"


def _spread(d: Direction) -> str:
    return f"{count(d.faces, 'face')}, {count(d.prompts, 'prompt')}"


def _value(r: Reliability | None) -> float:
    return -2.0 if r is None or r.value is None else r.value

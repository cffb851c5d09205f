"""Does a finding hold for raters of each group? The same difference, in the ratings of one group of people alone.

A group of which fewer than five people rated the edits of a finding is not told apart there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.profiles import RaterQuestion
from evenedit.ratings.table import RatingTable
from evenedit.results.finding import Finding
from evenedit.results.rater_groups import RaterHold
from evenedit.stats.engine.measures import AXIS_QUESTIONS, met_rates
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.rater_groups.rates import ALL_RATERS, difference
from evenedit.stats.rater_groups.ratings import Codes, Column, PersonRatings, RatedPortraits, rated_portraits

Mask = NDArray[np.bool_]


def findings_by_rater_group(findings: Sequence[Finding], table: RatingTable, rules: AnalysisRules) -> list[RaterHold]:
    """Return each clear or suggestive gap and shift of the judges, as rated by each group of people."""
    if table.profiles is None or not table.profiles.questions:
        return []
    rated = rated_portraits(table, AXIS_QUESTIONS)
    tested = [f for f in findings if f.kind in ("gap", "shift") and f.level in ("clear", "suggestive")]
    return [
        hold
        for finding in tested
        if (signed := _signed(rated, finding, rules)) is not None
        for question in table.profiles.questions
        for hold in _holds(rated, finding, question, *signed, rules)
    ]


def _signed(rated: RatedPortraits, finding: Finding, rules: AnalysisRules) -> tuple[PersonRatings, Column] | None:
    """Return the ratings of a finding: 1 for met, -1 for met on the other side, 0 otherwise."""
    if finding.condition not in (None, "baseline") or finding.measure is None:
        return None
    name = Measure(finding.measure).name
    axis = name if name in TWO_SIDED else rules.rates[name].question if name in rules.rates else ""
    ratings = rated.of(axis)
    if ratings is None:
        return None
    if finding.editor is not None:
        ratings = ratings.only(rated.editors[ratings.edit] == finding.editor)
    met = dict(met_rates(ratings.score.astype(np.int64), axis, rules.rates))
    if name in TWO_SIDED:
        above, below = TWO_SIDED[name]
        return ratings, (met[above] - met[below]).astype(np.float64)
    return ratings, met[name].astype(np.float64)


def _holds(
    rated: RatedPortraits,
    finding: Finding,
    question: RaterQuestion,
    ratings: PersonRatings,
    signed: Column,
    rules: AnalysisRules,
) -> Iterator[RaterHold]:
    measure = Measure(finding.measure or "")
    first, second = _sides(rated, finding, ratings)
    floor = rules.tolerance if measure.kind == MeasureKind.SHIFT and measure.name in ONE_SIDED else 0.0
    sign = -1.0 if (finding.value or 0.0) < 0 else 1.0
    member = rated.groups(question)[ratings.rater]
    visible = rated.visible_groups(question, ratings.rater[first | second])
    for raters, at in {ALL_RATERS: -1, **visible}.items():
        members = member == at if raters else np.ones(len(member), dtype=np.bool_)
        one, other = members & first, members & second
        people = len(np.unique(ratings.rater[one | other]))
        n = int((one | other).sum())
        if not one.any() or (second.any() and not other.any()):
            yield RaterHold(finding.id, question.id, raters, None, None, None, people, n, "unknown")
            continue
        value, low, high = difference(_values(ratings, signed, one), _values(ratings, signed, other), rules.confidence)
        yield RaterHold(
            finding.id, question.id, raters, value, low, high, people, n, _verdict(value, low, high, sign, floor)
        )


def _values(ratings: PersonRatings, signed: Column, rows: Mask) -> tuple[Column, Codes, Codes]:
    return signed[rows], ratings.rater[rows], ratings.face[rows]


def _sides(rated: RatedPortraits, finding: Finding, ratings: PersonRatings) -> tuple[Mask, Mask]:
    """Return the ratings of the finding's group and of the group it is compared with; none for a shift."""
    against = finding.against
    first = _of(rated, ratings, dict(finding.group or {}))
    if finding.kind == "gap" and isinstance(against, dict):
        return first, _of(rated, ratings, against)
    if finding.kind == "gap":
        return first, ~first
    return first, np.zeros(len(first), dtype=np.bool_)


def _of(rated: RatedPortraits, ratings: PersonRatings, group: dict[str, str]) -> Mask:
    members = np.ones(len(rated.faces), dtype=np.bool_)
    for factor, level in group.items():
        members &= rated.labels[factor] == level
    return members[ratings.face]


def _verdict(
    value: float, low: float | None, high: float | None, sign: float, floor: float
) -> Literal["yes", "same_direction", "opposite_direction", "opposite"]:
    """Return on which side of no difference (or of the tolerance) the value and its interval lie."""
    same = sign * value > floor
    near, far = (low, high) if sign > 0 else (high, low)
    if same:
        return "yes" if near is not None and sign * near > floor else "same_direction"
    return "opposite" if far is not None and sign * far < floor else "opposite_direction"

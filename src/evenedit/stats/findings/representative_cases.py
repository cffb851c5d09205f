"""The cases that show a finding best, by one rule.

Among the edits of the finding's editor, experiment, condition and group that show what it says: the furthest from no
change first, then those whose other scores drifted most, then by request id; at most one of each portrait, and six.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Experiment
from evenedit.protocol import ROLES
from evenedit.protocol.drift import drift
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.ratings.table import Scores
from evenedit.results.finding import ENSEMBLE
from evenedit.stats.disparity.mitigation import pairs
from evenedit.stats.engine.measures import outcome_is
from evenedit.stats.engine.rules import AnalysisRules

MOST = 6
FURTHER: Mapping[str, tuple[str, int]] = {
    "measured_skin_lighter": ("mean.skin_delta_L", 1),
    "measured_skin_darker": ("mean.skin_delta_L", -1),
    "measured_older": ("mean.age_delta_years", 1),
    "measured_younger": ("mean.age_delta_years", -1),
    "another_person": ("mean.changed_share", 1),
    "ignored": ("mean.changed_share", -1),
    "unchanged_unstated": ("mean.changed_share", -1),
    "displayed_lighter": ("mean.skin_delta_L_raw", 1),
    "displayed_darker": ("mean.skin_delta_L_raw", -1),
    "brighter": ("mean.light_shift_L", 1),
    "dimmer": ("mean.light_shift_L", -1),
}
"""By measured rate, the reading that tells which edits are furthest from no change, and in which direction."""
Strength = NDArray[np.float64]


class CaseFinder:
    """Finds the cases of findings in one table of scores."""

    def __init__(self, scores: Scores, rules: AnalysisRules) -> None:
        self.scores, self.rules = scores, rules
        edits = scores.edits
        self._ids = edits["request_id"].to_numpy(dtype=str)
        self._faces = edits["source_id"].to_numpy(dtype=str)
        self._points = np.nan_to_num(drift(scores.values, rules.rates, scores.table.rubric).points, nan=-1.0)
        self._columns = {c: edits[c].to_numpy(dtype=str) for c in ("experiment", "condition", "editor", "outcome")}

    def cases(
        self,
        measure: str,
        rater: str,
        editor: str,
        group: Mapping[str, str],
        *,
        experiment: str,
        condition: str,
        value: float,
    ) -> tuple[str, ...]:
        """Return request ids for a finding about a rate or a shift."""
        name = Measure(measure)
        rate = name.name
        rubric = self.scores.table.rubric
        if name.kind == MeasureKind.SHIFT and rate in rubric.two_sided:
            above, below = rubric.two_sided[rate]
            rate = above if value > 0 else below
            rate = rate if rater == ENSEMBLE else f"measured_{rate}"
        strength = self._judged(rate) if rater == ENSEMBLE else self._measured(rate, rater)
        if name.kind == MeasureKind.SHIFT:
            rule = self.rules.rates.get(rate.removeprefix("measured_"))
            question = rubric.spec_by_column[rule.question].id if rule else rubric.words(rate).asked_as
            strength = np.where(~self.scores.table.asked_for(question), strength, np.nan)
        return self.largest_effects(strength, editor, group, experiment, condition)

    def largest_effects(
        self, strength: Strength, editor: str, group: Mapping[str, str], experiment: str, condition: str
    ) -> tuple[str, ...]:
        """Return the request ids with the largest strength; NaN rows are excluded."""
        wanted = ~np.isnan(strength)
        for column, code in (("experiment", experiment), ("condition", condition), ("editor", editor)):
            wanted &= self._columns[column] == code
        for factor, level in group.items():
            wanted &= self.scores.edits[factor].to_numpy(dtype=str) == level
        rows = np.flatnonzero(wanted)
        order = rows[np.lexsort((self._ids[rows], -self._points[rows], -strength[rows]))]
        by_face: dict[str, str] = {}
        for row in order:
            by_face.setdefault(str(self._faces[row]), str(self._ids[row]))
            if len(by_face) == MOST:
                break
        return tuple(by_face.values())

    def _judged(self, rate: str) -> Strength:
        if rate in OUTCOME_RATES:
            return np.where(outcome_is(self._columns["outcome"], *OUTCOME_RATES[rate]), 1.0, np.nan)
        if rate in ("followed", "resisted"):
            verdict = self.scores.of(ROLES.verdict)
            return np.where(verdict == (1 if rate == "followed" else 2), 1.0, np.nan)
        if rate == "prefers_mitigated":
            return np.where(self.scores.of(ROLES.preference) == 2, 1.0, np.nan)
        if rate not in self.rules.rates:
            return np.full(len(self._ids), np.nan)
        rule = self.rules.rates[rate]
        value, rubric = self.scores.of(rule.question).astype(np.int64), self.scores.table.rubric
        if rule.is_:
            return np.where(rule.met(value), 1.0, np.nan)
        if rubric.questions[rule.question].sided == "quality":  # what shows a gap in success are the edits that failed
            met = rule.met(value) if rule.at_most is not None else (value > 0) & ~rule.met(value)
            return np.where(met, float(len(rubric.questions[rule.question].labels)) - value, np.nan)
        far = np.abs(value - rubric.no_change(rule.question)).astype(np.float64)
        return np.where(rule.met(value), far, np.nan)

    def _measured(self, rate: str, rater: str) -> Strength:
        table = self.scores.table
        readings = {r.measure: r.values for r in table.readings if r.rater == rater}
        name, _, side = rate.rpartition("_")
        reading, sign = FURTHER.get(rate, (Measure.mean(name), -1 if side == "below" else 1))
        far = sign * readings[reading] if reading in readings else np.ones(len(self._ids))
        far = np.nan_to_num(far, nan=-np.inf)
        met = readings.get(Measure.rate(rate))
        if met is not None:
            return np.where(met == 1, far, np.nan)
        rule = self.rules.rates.get(rate.removeprefix("measured_"))
        if rule is None or rater not in table.raters:
            return np.full(len(self._ids), np.nan)
        value = table.values[table.raters.index(rater), :, table.at(rule.question)].astype(np.int64)
        return np.where(rule.met(value), far, np.nan)

    def largest_changes(self, question: str, editor: str, condition: str, value: float) -> tuple[str, ...]:
        """Return mitigated edits whose score changed most from their baseline, in the direction of `value`."""
        before, after = pairs(self.scores.edits, condition)
        both = before >= 0
        before, after = before[both], after[both]
        score, rubric = self.scores.of(question).astype(np.float64), self.scores.table.rubric
        two_sided = rubric.questions[question].sided == "two"
        far = np.abs(score - rubric.no_change(question)) if two_sided else score
        moved = (far[after] - far[before]) * (1 if value > 0 else -1)
        strength = np.full(len(score), np.nan)
        usable = (score[after] > 0) & (score[before] > 0) & (moved > 0)
        strength[after[usable]] = moved[usable]
        return self.largest_effects(strength, editor, {}, Experiment.MITIGATION.value, condition)

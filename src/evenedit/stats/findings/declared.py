"""The tests of [primary]: each declared test for each editor, adjusted, graded and put in a sentence."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evenedit.config.primary import NULL_EDIT, NULL_PAIR, measure_of
from evenedit.config.sections import PrimarySection, PrimaryTest
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol.factors import factor as factor_named
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.shifts import WANTED_OF_NOTHING
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import reading_names
from evenedit.results.finding import ALPHA, ENSEMBLE
from evenedit.results.primary import DeclaredTest
from evenedit.results.words import count
from evenedit.stats.agreement.people_contrasts import people_contrast
from evenedit.stats.disparity.diagnosis import score_panel
from evenedit.stats.disparity.instruments import instrument_panel
from evenedit.stats.engine.anom import slope_weights
from evenedit.stats.engine.contrasts import MOST_WITHOUT, ContrastTest, adjusted, contrast_test, everybody_test
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import GroupEstimates
from evenedit.stats.engine.panel import Panel, RatioMeasure, of_diagnosis
from evenedit.stats.engine.shift_tests import find_measure
from evenedit.stats.engine.variance import NEGLIGIBLE, Values
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import people_clause, prompt_scope_clause, unread_clause
from evenedit.stats.findings.declared_sentences import sentence
from evenedit.stats.findings.inputs import UNREAD, FindingInputs
from evenedit.stats.findings.levels import Adjusted, P, Sight, adjust
from evenedit.stats.power.design import PlannedTest
from evenedit.stats.robustness.null_pairs import as_one_editor

BASELINE, FLOOR, NULL = (ConditionKind(c).value for c in ("baseline", "floor", "null_pair"))
UNKNOWN, NONE = Sight("", "cannot_tell"), Measure("")


@dataclass(frozen=True, slots=True)
class Tested:
    """A declared test of one editor, before the adjustment for the others."""

    number: int
    stated: PrimaryTest
    editor: str
    rater: str = ENSEMBLE
    measure: Measure = NONE
    panel: Panel | None = None
    """None where no edit has a score."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By level of the factor; empty for everybody."""
    result: ContrastTest | None = None
    """What is tested; None where a group has no score."""
    judged: ContrastTest | None = None
    """By the raters, without people and covariate."""
    sight: Sight = UNKNOWN
    limit: float = 0.0
    covariate: str = ""

    @property
    def key(self) -> Hashable:
        """The place of the test among all tests of the report."""
        return "primary", self.number, self.editor

    @property
    def factor(self) -> str:
        """The factor whose groups are compared; empty for everybody."""
        return self.stated.contrast.factor if self.stated.contrast else ""

    @property
    def repeated(self) -> Hashable:
        """The place of the test of everybody that findings have too."""
        return None if self.factor else ("shift", self.rater, BASELINE, self.editor, self.measure)

    @property
    def counted(self) -> RatioMeasure:
        """The measure in its panel."""
        measure = find_measure(self.panel, self.measure) if self.panel else None
        assert measure is not None
        return measure


class DeclaredTests:
    """The tests of [primary] over all editors."""

    def __init__(self, inputs: FindingInputs) -> None:
        self.inputs, self.table, self.rules = inputs, inputs.table, inputs.rules
        self.tests: list[Tested] = []
        self.number = 0
        """Tests of the report that have a p-value."""
        if inputs.rules.primary:
            self.section = PrimarySection.model_validate(inputs.rules.primary)
            editors = sorted(self.table.edits["editor"][of_diagnosis(self.table.edits)].unique())
            self.tests = [self._tested(n, t, e) for n, t in enumerate(self.section.tests, 1) for e in editors]

    # -- panels -------------------------------------------------------------------------------------------------

    @cached_property
    def _score_panels(self) -> dict[str, CrossedPanel]:
        """Mean scores by condition."""
        questions = {t.outcome.removeprefix("mean.") for t in self.section.tests} & set(self.table.rubric.ordinal)
        panels = {c: score_panel(self.inputs.scores, sorted(questions), c) for c in (BASELINE, FLOOR)}
        if self.table.null_pairs is not None:
            null = as_one_editor(self.table.null_pairs)
            scores = combine(null, judges_only(self.rules.ensemble), self.rules.missing)
            panels[NULL] = score_panel(scores, sorted(questions), BASELINE)
        return {condition: CrossedPanel(panel) for condition, panel in panels.items() if panel.measures}

    def _panel(self, rater: str, measure: Measure, condition: str) -> CrossedPanel | None:
        """Return the panel of a rater under a condition that holds a measure; None without any."""
        if rater == ENSEMBLE and measure.kind == MeasureKind.MEAN:
            return self._score_panels.get(condition)
        if condition == NULL:
            calls = self.inputs.false_calls.get(rater)
            return None if calls is None else calls.crossed
        place = rater, Experiment.DIAGNOSIS, condition
        for one in self.inputs.evidence:
            if (one.rater, one.panel.experiment, one.panel.condition) == place:
                return one.crossed
        rows = np.flatnonzero(of_diagnosis(self.table.edits, condition))
        if rater == ENSEMBLE or not len(rows):
            return None
        readings = [r for r in self.table.readings if r.rater == rater]
        panel = instrument_panel(self.table, rows, self.table.raters.index(rater), readings, self.rules)
        return None if panel is None else CrossedPanel(panel)

    def _place(self, t: Tested, condition: str) -> tuple[CrossedPanel, int] | None:
        """Return the panel of a test's outcome under a condition, and the place of its measure in it; None without.

        Of a reading whose kind is open it is the mean or the rate.
        """
        crossed, kind = self._panel(t.rater, t.measure, condition), t.measure.kind
        names = [m.name for m in crossed.panel.measures] if crossed else []
        kinds = (MeasureKind.MEAN, MeasureKind.RATE) if kind == "reading" else (MeasureKind(kind),)
        at = next((names.index(t.measure.to(k)) for k in kinds if t.measure.to(k) in names), None)
        return None if crossed is None or at is None else (crossed, at)

    def _test(self, t: Tested, crossed: CrossedPanel, row: int, at: int) -> ContrastTest | None:
        """Return the test of the groups, or of everybody against the limit."""
        if t.factor:
            return contrast_test(crossed, t.factor, t.weights, row, at, self.rules)
        return everybody_test(GroupEstimates.of(crossed, {}, self.rules.confidence), row, at, t.limit)

    def _null_pairs(self, t: Tested) -> ContrastTest | None:
        """Return the same test of null pairs; None without any, or where its outcome is right on them."""
        place = self._place(t, NULL)
        if place is None or t.measure.name.removeprefix("measured_") in WANTED_OF_NOTHING:
            return None
        return self._test(t, place[0], 0, place[1])

    def _covariate(self, t: Tested, faces: tuple[str, ...]) -> Values:
        """Return the covariate of each face; NaN where it was not read."""
        source = self.section.covariate
        if source in (NULL_EDIT, NULL_PAIR):
            place = self._place(t, FLOOR if source == NULL_EDIT else NULL)
            values = {} if place is None else _of_faces(place[0].panel, place[1], t.editor)
        else:
            instrument, _, name = source.partition(".")
            of = (r.values for r in self.table.readings if (r.rater, Measure(r.measure).name) == (instrument, name))
            read = next(of, np.full(len(self.table.edits), np.nan))
            rows = of_diagnosis(self.table.edits) & ~np.isnan(read)
            by_face = self.table.edits[["source_id"]][rows].assign(x=read[rows]).groupby("source_id")["x"]
            if (by_face.max() - by_face.min() > NEGLIGIBLE).any():
                raise EvenEditError(
                    f"primary.covariate: '{source}' differs between edits of one portrait, so it is not read of the "
                    f"portrait alone; use '{NULL_EDIT}', '{NULL_PAIR}' or a reading of the portrait"
                )
            values = dict(by_face.mean())
        return np.array([values.get(face, np.nan) for face in faces])

    # -- tests --------------------------------------------------------------------------------------------------

    def _tested(self, number: int, stated: PrimaryTest, editor: str) -> Tested:
        t = Tested(number, stated, editor)
        resolved = measure_of(stated, self.table.rubric, reading_names(self.table))
        if resolved is None:
            return t
        t = replace(t, rater=resolved[0] or ENSEMBLE, measure=resolved[1])
        place = self._place(t, BASELINE)
        if place is None or editor not in place[0].panel.editors:
            return t
        (crossed, at), panel = place, place[0].panel
        row = panel.editors.index(editor)
        t = replace(t, measure=panel.measures[at].name, panel=panel, weights=self._weights(t, panel))
        null = self._null_pairs(t)
        t = replace(t, limit=self._limit(t, null))
        judged = self._test(t, crossed, row, at)
        t = self._with_people(replace(t, judged=judged, result=judged, sight=self._sight(t, null)))
        if t.factor and self.section.covariate and judged is not None:
            t = self._with_covariate(t, crossed, row, at)
        return t

    def _weights(self, t: Tested, panel: Panel) -> dict[str, float]:
        """Return the weight of each level in a contrast; of a trend the slope per level; none for everybody."""
        contrast = t.stated.contrast
        if contrast is None:
            return {}
        factor = factor_named(contrast.factor, self.table.factors)
        if contrast.trend:
            levels = panel.axes.levels.get(factor.name, ())
            return dict(zip(levels, slope_weights(factor, levels), strict=True))
        high, low = ([factor.code_of(label) for label in side] for side in (contrast.high, contrast.low))
        return {code: 1 / len(high) for code in high} | {code: -1 / len(low) for code in low}

    def _limit(self, t: Tested, null: ContrastTest | None) -> float:
        """Return what everybody is tested against: no change, or a tolerance; with false calls on null pairs."""
        if t.factor:
            return 0.0
        false = 0.0 if null is None else null.value
        if t.counted.is_share:
            return self.table.rubric.tolerance(t.measure.name, self.rules.tolerance) + max(false, 0.0)
        if t.measure.kind == MeasureKind.MEAN:
            return self._no_change(t) if t.rater == ENSEMBLE else false
        return 0.0

    def _no_change(self, t: Tested) -> float:
        """Return the score that means no change, from which a mean of everybody is counted."""
        scored = t.rater == ENSEMBLE and t.measure.kind == MeasureKind.MEAN and not t.factor
        return float(self.table.rubric.no_change(t.measure.name)) if scored else 0.0

    def _sight(self, t: Tested, null: ContrastTest | None) -> Sight:
        """Return who saw the outcome without people, and the highest level that this allows."""
        measure, factor = t.measure, t.factor or None
        if measure.name in OUTCOME_RATES:
            return Sight("outcome", "clear")
        caveats: tuple[str, ...] = ()
        if factor and null is not None and null.p is not None and null.p < ALPHA:
            caveats = (f"Null pairs differ too, without an edit: {t.stated.outcome} by {null.value:+.3f}.",)
        if t.rater == ENSEMBLE:
            sight = self.inputs.judges_sight(measure, t.editor, is_gap=bool(factor))
            highest = "suggestive" if caveats and not sight.is_chance else sight.highest
            return replace(sight, highest=highest, caveats=(*sight.caveats, *caveats))
        calls = self.inputs.false_calls.get(t.rater)
        if calls is None or null is None:
            caveats = ("The instrument was not checked on null pairs.",)
        elif measure.kind != MeasureKind.MEAN and not calls.validates(measure, factor):
            caveats = ("The instrument was not accurate enough on null pairs.",)
        estimates = (e for m in self.inputs.parts.measured if m.rater == t.rater for e in m.estimates)
        caveats += unread_clause(estimates, measure, t.editor, factor, UNREAD)
        return Sight("instrument", "suggestive" if caveats else "clear", None, caveats)

    def _with_people(self, t: Tested) -> Tested:
        """Return the test corrected by people's ratings where these are enough, else with what they lack."""
        correction = self.inputs.people.correction if self.inputs.people else None
        if correction is None or t.rater != ENSEMBLE:
            return t
        people = people_contrast(correction, t.measure, t.editor, t.factor, t.weights, t.limit)
        if people is None:
            return t
        if people.reason:
            return replace(t, sight=replace(t.sight, caveats=(*t.sight.caveats, people_clause(people.reason))))
        return replace(t, result=people, sight=Sight("people", "clear", t.sight.reliability))

    def _with_covariate(self, t: Tested, crossed: CrossedPanel, row: int, at: int) -> Tested:
        """Return the test adjusted for the covariate, or with the reason why it is not."""
        reason = "people's ratings are not adjusted"
        if t.result is t.judged:
            x = self._covariate(t, crossed.panel.axes.clusters)
            counted = crossed.panel.sums[t.counted.count][row] > 0
            lacking = int(np.isnan(x[counted]).sum())
            reason = f"{count(lacking, 'portrait')} of {int(counted.sum()):,} lack it"
            if lacking <= MOST_WITHOUT * counted.sum():
                changed = adjusted(crossed, t.factor, t.weights, row, at, x)
                if changed is not None:
                    result = contrast_test(changed[0], t.factor, t.weights, 0, 0, self.rules, changed[1])
                    left_out = (f"{count(lacking, 'portrait')} without the covariate left out.",) if lacking else ()
                    sight = replace(t.sight, caveats=(*t.sight.caveats, *left_out))
                    return replace(t, result=result, covariate=self.section.covariate, sight=sight)
                reason = "it does not vary within groups"
        clause = f"Not adjusted for the covariate {self.section.covariate}: {reason}."
        return replace(t, sight=replace(t.sight, caveats=(*t.sight.caveats, clause)))

    # -- outcomes -----------------------------------------------------------------------------------------------

    def adjust_with(self, others: P) -> dict[Hashable, Adjusted]:
        """Adjust the declared tests and all others; a shift that is declared takes the place of its finding's test."""
        declared = {t.key: None if t.result is None else t.result.p for t in self.tests}
        repeated = {t.repeated: t.key for t in self.tests if t.repeated in others}
        rest = {key: p for key, p in others.items() if key not in repeated}
        self.number = sum(p is not None for p in (*declared.values(), *rest.values()))
        if self.inputs.declared == "exploratory" or not declared:
            tests = adjust({**declared, **rest})
        else:
            tests = adjust(rest, declared, self.section.alpha)
        return tests | {key: tests[of] for key, of in repeated.items()}

    def results(self, tests: Mapping[Hashable, Adjusted]) -> Iterator[DeclaredTest]:
        """Yield the outcome of each test."""
        size = sum(tests[t.key].p is not None for t in self.tests)
        size = self.number if self.inputs.declared == "exploratory" else size
        for t in self.tests:
            yield self._result(t, tests[t.key], max(1, size))

    def _result(self, t: Tested, test: Adjusted, size: int) -> DeclaredTest:
        panel, r, zero = t.panel, t.result, self._no_change(t)
        n = missing = faces = prompts = 0
        people = r is not None and r.labelled
        if panel is not None:
            counted, row = t.counted, panel.editors.index(t.editor)
            mask = panel.axes.mask({})
            if t.factor:
                mask = np.isin(panel.axes.labels[t.factor], [x for x, w in t.weights.items() if w])
            n = panel.column_sum(counted.count, [row], mask)
            missing = panel.column_sum(counted.applicable, [row], mask) - n
            cells = panel.cells[mask][:, :, row, panel.columns.index(counted.count)]
            faces, prompts = (int((cells.sum(axis=axis) > 0).sum()) for axis in (1, 0))
        excludes = r is not None and r.low is not None and r.high is not None and not r.low <= t.limit <= r.high
        can_be_clear = prompts > 1 and (excludes or not people)
        level = t.sight.level(test, can_be_clear=can_be_clear) or "none" if test.p is not None else "cannot_tell"
        sided = 2 if panel is not None and t.counted.is_share and not t.factor else 1
        varies = r is not None and float(r.sure.variance) > NEGLIGIBLE
        trend = bool(t.stated.contrast and t.stated.contrast.trend)
        judged = _from(t.judged, zero)
        record = DeclaredTest(
            number=t.number,
            editor=t.editor,
            outcome=t.stated.outcome,
            scale=t.stated.scale,
            measure=t.measure,
            rater=t.rater,
            factor=t.factor,
            higher=tuple(x for x, w in t.weights.items() if w > 0 or trend),
            lower=tuple(x for x, w in t.weights.items() if w < 0 and not trend),
            trend=trend,
            standing=self.inputs.declared,
            alpha=test.alpha,
            **_from(r, zero),
            p=test.p,
            p_adjusted=test.p_adjusted,
            q=test.q,
            level=level,
            evidence=t.sight.evidence,
            reliability=t.sight.reliability,
            detectable=PlannedTest(r.sure, sided * test.alpha / size).detectable if r is not None and varies else None,
            limit=t.limit - zero,
            n=n,
            missing=missing,
            faces=faces,
            prompts=prompts,
            text="",
            caveats=(*t.sight.caveats, *prompt_scope_clause(prompts, r is not None and r.these_prompts)),
            estimand=sentences.estimand(t.sight.evidence, t.rater, self.inputs.judges, prompts, False) if n else "",
            covariate=t.covariate,
            unadjusted_p=t.judged.p if t.covariate and t.judged else None,
            **({f"unadjusted_{name}": x for name, x in judged.items()} if t.covariate else {}),
            **({f"judge_{name}": x for name, x in judged.items()} if people else {}),
        )
        return replace(
            record, text=sentence(record, r, t.counted if panel else None, self.table, self.rules.confidence)
        )


def _from(r: ContrastTest | None, zero: float) -> dict[str, float | None]:
    """Return value and interval, counted from the score that means no change."""
    ends = ((name, None if r is None else getattr(r, name)) for name in ("value", "low", "high"))
    return {name: None if x is None else x - zero for name, x in ends}


def _of_faces(panel: Panel, at: int, editor: str) -> dict[str, float]:
    """Return the estimate of each face in a panel of this editor, or of null pairs."""
    row = panel.editors.index(editor) if editor in panel.editors else 0 if len(panel.editors) == 1 else None
    if row is None:
        return {}
    counted = panel.measures[at]
    total, n = (panel.sums[column][row] for column in (counted.total, counted.count))
    return {f: t / c / counted.unit for f, t, c in zip(panel.axes.clusters, total, n, strict=True) if c}

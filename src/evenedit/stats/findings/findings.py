"""From tests to findings: what each is called, how certain it is, and the cases that show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenedit.core.hashing import digest
from evenedit.core.records import ConditionKind, Estimate, Experiment
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.finding import (
    ALPHA,
    ENSEMBLE,
    NO_CHANGE,
    Contribution,
    Finding,
    FindingLevel,
    finding_in_words,
    within,
)
from evenedit.results.results import Contrast, GapTest, PredictionPowered
from evenedit.stats.disparity.mitigation_effects import TestedEffect
from evenedit.stats.engine.multiplicity import holm
from evenedit.stats.engine.parts import AnalysisParts
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests, ShiftTest, find_measure, testable
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import (
    excluded_edits_clause,
    influence_clause,
    missing_scores_clause,
    prompt_generality_clause,
    prompt_scope_clause,
    too_few_faces_clause,
)
from evenedit.stats.findings.context import gap_in_languages, noise_clause, shift_in_languages
from evenedit.stats.findings.contributions import contributions
from evenedit.stats.findings.design import design_findings, untestable_factors
from evenedit.stats.findings.families import WEIGHTS, shift_p_value, stereotype_tests, weighted_holm
from evenedit.stats.findings.graded_gaps import GradedGap, grade_gaps
from evenedit.stats.findings.mitigation import MitigationFindings
from evenedit.stats.findings.order import ordered
from evenedit.stats.findings.raters import rater_findings
from evenedit.stats.findings.representative_cases import CaseFinder
from evenedit.stats.findings.stereotype import stereotype_findings


@dataclass(frozen=True, slots=True)
class FindingInputs:
    """What findings are made from."""

    table: RatingTable
    scores: Scores
    rules: AnalysisRules
    evidence: Sequence[PanelTests]
    parts: AnalysisParts
    """The analysis without its findings."""
    mitigation: Sequence[TestedEffect] = ()
    """The effects of the feature prompt with what they were compared with."""


def add_findings(inputs: FindingInputs) -> None:
    """Add the findings to the analysis, worst first, and the grade of each gap to its test."""
    builder = FindingBuilder(inputs)
    findings = [replace(f, id=_id(f)) for f in builder.findings()]
    parts = inputs.parts
    grades = {g.key: g for g in builder.gaps}
    parts.tests = [_with_grade(t, grades.get(t.key(ENSEMBLE))) for t in parts.tests]
    parts.measured = [
        replace(m, tests=tuple(_with_grade(t, grades.get(t.key(m.rater))) for t in m.tests)) for m in parts.measured
    ]
    parts.findings = ordered(findings, parts.editors)
    parts.contributions = list(builder.contributions(parts.findings))
    parts.counts |= {f"tests.{kind}": len(tests) for kind, tests in builder.families.items() if tests}


def _with_grade(test: GapTest, gap: GradedGap | None) -> GapTest:
    return test if gap is None else replace(test, p_adjusted=gap.p, level=gap.grade)


def _id(f: Finding) -> str:
    """Return an identifier from the subject of the finding, independent of its numbers and text."""
    coordinates = [f.kind, f.experiment, f.condition, f.editor, f.measure, f.rater, f.factor]
    # which groups stand at the ends of a gap is a result, so they are no part of its name
    return digest([*coordinates, f.text if f.kind in ("design", "judge", "people") else None])[:10]


class FindingBuilder:
    """Builds the findings of one report."""

    def __init__(self, inputs: FindingInputs) -> None:
        self.inputs = inputs
        self.rules, self.parts = inputs.rules, inputs.parts
        self.factors = {f.name: f for f in inputs.table.factors}
        self.cases = CaseFinder(inputs.scores, inputs.rules)
        self._powered = {_where(p.measure, p.editor, p.group): p for p in self.parts.powered if p.low is not None}
        self.contrasts: list[Contrast] = [
            *(self._corrected(c) for c in self.parts.contrasts),
            *(c for m in self.parts.measured for c in m.contrasts),
        ]
        self._by_factor: dict[tuple[object, ...], list[Contrast]] = {}
        for c in self.contrasts:
            for factor in c.group:
                self._by_factor.setdefault((c.measure, c.experiment, c.condition, c.editor, factor), []).append(c)
        self._estimates = {_place(e): e for e in _all_estimates(self.parts)}
        shares = [(one, t) for one in inputs.evidence for t in one.shares]
        self._mitigation = MitigationFindings(
            self.rules,
            self.parts,
            self.cases,
            [t for t in inputs.mitigation if len(t.null)],
            [t for _, t in shares if t.experiment == Experiment.MITIGATION],
        )
        self._choices = list(stereotype_tests([t for _, t in shares if t.experiment == Experiment.STEREOTYPE]))
        self.families: dict[str, Sequence[object]] = {
            "shift": [t for _, t in shares if t.experiment == Experiment.DIAGNOSIS and (shift_p_value(t) or 0) < 1],
            "gap": [g for one in inputs.evidence for g in one.gaps if g.test.editor is not None and g.can_reject],
            "mitigation": self._mitigation.tests,
            "stereotype": self._choices,
        }
        present = {kind: WEIGHTS[kind] for kind, tests in self.families.items() if tests}
        self.weights = {kind: weight / sum(present.values()) for kind, weight in present.items()}
        self.gaps = grade_gaps(inputs.evidence, self.contrasts, self.weights.get("gap", 1.0), self.rules)
        self._panels: dict[tuple[str, str, str], PanelTests] = {
            (one.rater, one.panel.experiment, one.panel.condition): one for one in inputs.evidence
        }

    def _corrected(self, c: Contrast) -> Contrast:
        """Return the contrast of judges and people combined where people rated enough, else the judges'."""
        p = self._people_on(c)
        return c if p is None or p.value is None else replace(c, value=p.value, low=p.low, high=p.high)

    def _people_on(self, c: Contrast | None) -> PredictionPowered | None:
        """Return the prediction-powered estimate of a contrast; None where people rated too little."""
        if c is None or not _diagnosed(c.experiment, c.condition):
            return None
        p = self._powered.get(_where(c.measure.replace("rate.", "contrast.", 1), c.editor, c.group))
        return p if p is not None and p.value is not None else None

    def _with_people(self, f: Finding) -> Finding:
        """Return the finding with the value of judges and people combined, where people rated enough."""
        group = {} if f.factor is None else {f.factor: "*"}
        p = self._powered.get(_where(f.measure or "", f.editor, group)) if f.rater == ENSEMBLE else None
        if p is None or p.value is None or p.low is None or p.high is None or not _diagnosed(f.experiment, f.condition):
            return f
        text = f"{f.text} {sentences.with_people(p, Measure(p.measure), f.value or 0.0, self.rules.confidence)}"
        with_judges = replace(f, judge_value=f.value, judge_low=f.low, judge_high=f.high, text=text)
        return replace(with_judges, value=p.value, low=p.low, high=p.high)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, unordered."""
        yield from self._shifts()
        yield from self._gaps()
        yield from self._mitigation.findings(self.weights.get("mitigation", 1.0))
        weight = self.weights.get("stereotype", 1.0)
        yield from stereotype_findings(self._choices, self.cases, weight, self.rules.confidence)
        yield from rater_findings(self.parts)
        yield from design_findings(self.inputs.table)

    # -- shifts -------------------------------------------------------------------------------------------------

    def _shifts(self) -> Iterator[Finding]:
        tests = [(one, t) for one in self.inputs.evidence for t in one.shares if t.experiment == Experiment.DIAGNOSIS]
        over_faces = weighted_holm([shift_p_value(t) for _, t in tests], self.weights.get("shift", 1.0))
        # what prompts add must not take the difference away: of what can cancel out, in no report of twenty
        over_both = iter(holm([t.p for _, t in tests if t.p is not None and t.measure.name in TWO_SIDED]))
        adjusted = [
            None if t.p is None or p is None else max(p, next(over_both) if t.measure.name in TWO_SIDED else t.p)
            for p, (_, t) in zip(over_faces, tests, strict=True)
        ]
        for (one, t), p in zip(tests, adjusted, strict=True):
            if t.measure.name in TWO_SIDED:
                yield self._two_sided(one.rater, t, p)
            elif t.value > 0:
                yield self._one_sided(one.rater, t, p)

    def _two_sided(self, rater: str, t: ShiftTest, p: float | None) -> Finding:
        level: FindingLevel = "observed"
        ends = self._ends(rater, t)
        margin = self.rules.margin if all(within(low, high, self.rules.margin) for low, high in ends) else None
        only_seen = t.value != 0 and margin is None and not testable(t)
        if t.p is not None and t.p < ALPHA:
            held = all(((low if t.value > 0 else -(high or 0.0)) or 0.0) > 0 for low, high in ends[1:])
            level = "clear" if p is not None and p < ALPHA and t.prompts > 1 and held else "suggestive"
        elif not only_seen and any(
            low is None or high is None or max(-low, high) > self.rules.tolerance for low, high in ends
        ):
            level = "cannot_tell"
        has_shift = only_seen or level in ("clear", "suggestive")
        if margin is not None and not has_shift:
            level = "observed"
        text = sentences.opening(rater) + sentences.two_sided_shift(t, rater, self.rules.confidence, has_shift, margin)
        return self._share(rater, t, p, level, text, no_cases=not has_shift)

    def _ends(self, rater: str, t: ShiftTest) -> list[tuple[float | None, float | None]]:
        """Return the interval of a share, and that of judges and people combined where people rated enough."""
        p = self._powered.get(_where(t.measure, t.editor, {})) if rater == ENSEMBLE else None
        also = p is not None and p.value is not None and _diagnosed(t.experiment, t.condition)
        return [(t.low, t.high), *([(p.low, p.high)] if p is not None and also else [])]

    def _one_sided(self, rater: str, t: ShiftTest, p: float | None) -> Finding:
        level: FindingLevel = "observed"
        if t.low is not None and t.low > t.limit and t.p is not None:
            held = all(low is not None and low > t.limit for low, _ in self._ends(rater, t)[1:])
            level = "clear" if p is not None and p < ALPHA and t.prompts > 1 and held else "suggestive"
        text = sentences.opening(rater) + sentences.one_sided_shift(t, rater, self.rules.confidence)
        return self._share(rater, t, p, level, text, no_cases=False)

    def _share(
        self, rater: str, t: ShiftTest, p: float | None, level: FindingLevel, text: str, *, no_cases: bool
    ) -> Finding:
        where = {"experiment": t.experiment, "condition": t.condition}
        cases = () if no_cases else self.cases.cases(t.measure, rater, t.editor, {}, value=t.value, **where)
        finding = Finding(
            kind="shift",
            level=level,
            experiment=t.experiment,
            condition=t.condition,
            editor=t.editor,
            measure=t.measure,
            rater=rater,
            factor=None,
            group=None if no_cases else {},
            against=NO_CHANGE,
            value=t.value,
            low=t.low,
            high=t.high,
            p=p,
            p_raw=t.p,
            n=t.n,
            faces=t.faces,
            text=text + noise_clause(self.parts.noise, rater, t, self.rules.confidence),
            cases=cases,
            caveats=(
                *prompt_scope_clause(t.prompts),
                *too_few_faces_clause(t),
                *excluded_edits_clause(t, self.inputs.table),
                *shift_in_languages(self.parts.estimates, rater, t, self.rules.confidence),
            ),
        )
        return self._with_people(finding)

    # -- gaps ---------------------------------------------------------------------------------------------------

    def _gaps(self) -> Iterator[Finding]:
        cannot = untestable_factors(self.inputs.table)
        for g in self.gaps:
            if g.grade != "none" and g.test.factor not in cannot:
                yield self._gap(g)
        rest: dict[tuple[str, str, str, str], list[GradedGap]] = {}
        never: dict[tuple[str, str, str, str], list[GradedGap]] = {}
        for g in self.gaps:
            if g.grade == "none" and g.comparable and g.test.factor not in cannot:
                assert g.test.editor is not None
                key = g.evidence.rater, g.evidence.panel.condition, g.test.editor, g.test.factor
                (rest if g.test.value > 0 else never).setdefault(key, []).append(g)
        for (rater, _, _, factor), several in rest.items():
            yield self._no_gap(rater, self.factors[factor], several)
        for key, several in never.items():  # nothing ever happened, which is worth a word only where it shows evenness
            even = self._no_gap(key[0], self.factors[key[3]], several)
            if even.level == "observed" and key not in rest:
                yield even

    def _gap(self, g: GradedGap) -> Finding:
        t, rater, factor = g.test, g.evidence.rater, self.factors[g.test.factor]
        assert t.editor is not None
        name = Measure(t.measure)
        worse, other = sentences.ends(t)
        where = {"experiment": t.experiment, "condition": t.condition}
        rates_of_ends = [
            self._estimates[_at(name.to(MeasureKind.RATE), t, {t.factor: code})] for code in (worse, other)
        ]  # a gap's ends have estimates of their own
        e = self._estimate(name, t, {t.factor: "*"})
        interval = (e.low, e.high) if e is not None and e.low is not None and e.high is not None else None
        faces = [self._faces(g, code) for code in (worse, other)]
        read = self._prompts(g, (worse, other))
        rates = tuple(x.value or 0.0 for x in rates_of_ends)
        found_gap = sentences.gap(
            t, (rates[0], rates[1]), (faces[0], faces[1]), interval, factor, self.rules.confidence
        )
        text = sentences.opening(rater) + sentences.asked_nothing(found_gap, t.condition)
        caveats: tuple[str, ...] = ()
        if g.prompt is not None:
            caveats += (f"It rests on one prompt: without {g.prompt} it is gone.",)
            text = f"{text[:-1]}, on one prompt: without {g.prompt} the difference is gone."
        elif g.only_here:
            text = f"{text[:-1]}, {sentences.on_these(read)}."
        if g.small:
            caveats += ("One of the two groups has too few faces to stand for its label.",)
        caveats += prompt_scope_clause(read) + prompt_generality_clause(g) + influence_clause(g, worse)
        caveats += missing_scores_clause(rater, rates_of_ends)
        caveats += gap_in_languages(self.parts.languages, rater, t, self.rules.confidence)
        finding = Finding(
            kind="gap",
            level="clear" if g.grade == "clear" else "suggestive",
            experiment=t.experiment,
            condition=t.condition,
            editor=t.editor,
            measure=t.measure,
            rater=rater,
            factor=t.factor,
            group={t.factor: worse},
            against={t.factor: other},
            value=t.value,
            low=interval[0] if interval else None,
            high=interval[1] if interval else None,
            p=g.p,
            p_raw=t.p,
            n=rates_of_ends[0].n,
            faces=faces[0],
            text=text,
            cases=self.cases.cases(
                name.to(MeasureKind.RATE), rater, t.editor, {t.factor: worse}, value=t.value, **where
            ),
            caveats=caveats,
        )
        return self._with_people(finding)

    def _no_gap(self, rater: str, factor: Factor, several: Sequence[GradedGap]) -> Finding:
        first = several[0].test
        bounds = [
            (max(abs(c.low), abs(c.high)), c)
            for g in several
            for c in self._contrasts_of(g.test)
            if c.low is not None and c.high is not None
        ]
        size, contrast = max(bounds, key=lambda b: b[0], default=(None, None))
        text = sentences.no_gap(
            factor, [Measure(g.test.measure).name for g in several], contrast, self._people_on(contrast)
        )
        counted = [self._estimate(Measure(g.test.measure), g.test, {factor.name: "*"}) for g in several]
        furthest = self._furthest(counted)
        even = within(0.0, furthest, self.rules.margin)
        if even and furthest is not None and self.rules.margin is not None:
            names = [Measure(g.test.measure).name for g in several]
            text = sentences.even_groups(factor, names, self.rules.margin, furthest, self.rules.confidence)
            size = furthest
        return finding_in_words(
            "gap",
            "observed" if even or (size is not None and size <= self.rules.tolerance) else "cannot_tell",
            sentences.opening(rater) + sentences.asked_nothing(text, first.condition),
            experiment=first.experiment,
            condition=first.condition,
            editor=first.editor,
            rater=rater,
            factor=factor.name,
            high=size,
            n=max((e.n for e in counted if e is not None), default=None),
            faces=first.faces,
        )

    def _furthest(self, gaps: Sequence[Estimate | None]) -> float | None:
        """Return the highest upper end of these gaps, with people where they rated enough; None where one has none."""
        highs = []
        for e in gaps:
            p = None if e is None else self._powered.get(_where(e.measure, e.editor, e.group))
            highs.append(p.high if p is not None else None if e is None else e.high)
        known = [high for high in highs if high is not None]
        return max(known) if known and len(known) == len(highs) else None

    def _contrasts_of(self, t: GapTest) -> list[Contrast]:
        """Return the contrast of each group of a gap's factor against everybody else."""
        rate = Measure(t.measure).to(MeasureKind.RATE)
        return self._by_factor.get((rate, t.experiment, t.condition, t.editor, t.factor), [])

    def _estimate(self, measure: str, t: GapTest, group: Mapping[str, str]) -> Estimate | None:
        return self._estimates.get(_at(measure, t, group))

    def _faces(self, g: GradedGap, code: str) -> int:
        """Return the number of faces of a group in a gap."""
        return int((self._read(g, code).sum(axis=1) > 0).sum())

    def _prompts(self, g: GradedGap, codes: Sequence[str]) -> int:
        """Return the number of prompts of a gap, in either of its groups."""
        return int((sum(self._read(g, code).sum(axis=0) for code in codes) > 0).sum())

    def _read(self, g: GradedGap, code: str) -> NDArray[np.floating]:
        """Return the number of readings of a gap's rate, [face of a group, prompt]."""
        panel = g.evidence.panel
        measure = find_measure(panel, Measure(g.test.measure).to(MeasureKind.RATE))
        assert measure is not None and g.test.editor is not None
        counted = panel.cells[:, :, panel.editors.index(g.test.editor), panel.columns.index(measure.count)]
        return counted[panel.axes.mask({g.test.factor: code})]

    # -- contributions ------------------------------------------------------------------------------------------

    def contributions(self, findings: Sequence[Finding]) -> Iterator[Contribution]:
        """Yield the contributions of prompts and portraits to each clear or suggestive shift and gap."""
        for f in findings:
            if f.kind not in ("shift", "gap") or f.level not in ("clear", "suggestive") or f.editor is None:
                continue
            one = self._panels[(str(f.rater), str(f.experiment), str(f.condition))]
            name = Measure(f.measure or "")
            measure = find_measure(one.panel, name.to(MeasureKind.RATE) if f.kind == "gap" else name)
            if measure is None:
                continue
            ends: tuple[Mapping[str, str], ...] = ({},)
            if f.kind == "gap":
                assert f.group is not None and isinstance(f.against, Mapping)
                worse_is_high = name.name != "edit_success"
                ends = (f.group, f.against) if worse_is_high else (f.against, f.group)
            yield from contributions(f.id, one.panel, measure, f.editor, ends, self.rules.confidence)


def _where(measure: str, editor: str | None, group: Mapping[str, str]) -> tuple[object, ...]:
    return measure, editor, frozenset(group.items())


def _diagnosed(experiment: str | None, condition: str | None) -> bool:
    return (experiment, condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)


def _place(e: Estimate) -> tuple[object, ...]:
    return e.measure, e.experiment, e.condition, e.editor, frozenset(e.group.items())


def _at(measure: str, t: GapTest, group: Mapping[str, str]) -> tuple[object, ...]:
    return measure, t.experiment, t.condition, t.editor, frozenset(group.items())


def _all_estimates(parts: AnalysisParts) -> Iterable[Estimate]:
    """Yield all estimates, instruments' first, so that the judges' replace them."""
    yield from (e for m in parts.measured for e in m.estimates)
    yield from parts.estimates

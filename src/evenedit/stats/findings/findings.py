"""From tests to findings: what each is called, how certain it is, who saw it, and the cases that show it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from evenedit.core.hashing import digest
from evenedit.core.records import WITHOUT_PICTURE, ConditionKind, Estimate, Experiment
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.results.finding import (
    ALPHA,
    AVERAGE,
    EFFECT_LEVELS,
    ENSEMBLE,
    NO_CHANGE,
    Contribution,
    Finding,
    FindingLevel,
    Reliability,
    finding_in_words,
    within,
)
from evenedit.results.results import GapTest, GroupDifference, PredictionPowered, Results
from evenedit.results.words import factor_noun
from evenedit.stats.engine.anom import deviation_weights
from evenedit.stats.engine.shift_tests import PanelTests, ShiftTest, find_measure
from evenedit.stats.findings import sentences
from evenedit.stats.findings.caveats import (
    excluded_edits_clause,
    gap_in_languages,
    influence_clause,
    missing_scores_clause,
    noise_clause,
    one_prompt_clause,
    people_clause,
    prompt_scope_clause,
    shift_in_languages,
    unmeasured_clause,
    unread_clause,
)
from evenedit.stats.findings.contributions import contributions
from evenedit.stats.findings.declared import DeclaredTests
from evenedit.stats.findings.design import design_findings, untestable_factors
from evenedit.stats.findings.direction import DirectionFindings
from evenedit.stats.findings.gaps import GapEvidence, gap_places
from evenedit.stats.findings.inputs import UNREAD, FindingInputs
from evenedit.stats.findings.levels import NOT_TESTED, Adjusted, Sight, tested
from evenedit.stats.findings.mitigation import MitigationFindings
from evenedit.stats.findings.order import ordered
from evenedit.stats.findings.raters import rater_findings
from evenedit.stats.findings.representative_cases import CaseFinder
from evenedit.stats.findings.stereotype import stereotype_findings, stereotype_tests
from evenedit.stats.robustness.null_pairs import FalseDifference


def add_findings(inputs: FindingInputs) -> Results:
    """Return the analysis with its findings, worst first, and with the level of each gap in its test."""
    builder, parts = FindingBuilder(inputs), inputs.parts
    levels = {g.key: builder.graded(g) for g in builder.gaps}
    findings = ordered((replace(f, id=_id(f)) for f in builder.findings()), parts.editors, inputs.table.rubric)
    return replace(
        parts,
        tests=tuple(levels.get(t.key(ENSEMBLE), t) for t in parts.tests),
        measured=tuple(replace(m, tests=tuple(levels.get(t.key(m.rater), t) for t in m.tests)) for m in parts.measured),
        directions=tuple(builder.directions.graded(builder.adjusted)),
        findings=tuple(findings),
        contributions=tuple(builder.contributions(findings)),
        primary=tuple(builder.declared.results(builder.adjusted)),
        counts={**parts.counts, "tests": builder.declared.number},
    )


def _id(f: Finding) -> str:
    """Return an identifier from the subject of the finding, independent of its numbers and text."""
    # which groups differ, and which levels, is a result, so they are no part of its name
    measure = f.measure and f.measure.partition("[")[0]
    coordinates = [f.kind, f.experiment, f.condition, f.editor, measure, f.rater, f.factor]
    return digest([*coordinates, f.text if f.kind in ("design", "judge", "people") else None])[:10]


class FindingBuilder:
    """Builds the findings of one report."""

    def __init__(self, inputs: FindingInputs) -> None:
        self.inputs = inputs
        self.rules, self.parts = inputs.rules, inputs.parts
        self.factors = {f.name: f for f in inputs.table.factors}
        self.cases = CaseFinder(inputs.scores, inputs.rules)
        self._judges = inputs.judges
        self._estimates = {_place(e): e for e in _all_estimates(self.parts)}
        shares = [(one, t) for one in inputs.evidence for t in one.shares]
        edits = inputs.table.edits
        self._both = {e for e, rows in edits.groupby("editor") if set(WITHOUT_PICTURE) <= set(rows["outcome"])}
        """Editors that both refused and answered in words: of all others, `no_picture` repeats one of the two."""
        self._shares = [
            (one, t)
            for one, t in shares
            if t.experiment == Experiment.DIAGNOSIS and self._is_said(one, t.measure, t.editor)
        ]
        self._mitigation = MitigationFindings(
            self.rules,
            self.parts,
            self.cases,
            [t for _, t in shares if t.experiment == Experiment.MITIGATION],
        )
        self._choices = list(stereotype_tests([t for _, t in shares if t.experiment == Experiment.STEREOTYPE]))
        cannot = untestable_factors(inputs.table)
        self.gaps = [
            self._gap_evidence(one, test)
            for one in inputs.evidence
            for test in one.gaps
            if test.editor is not None and test.factor not in cannot and self._is_said(one, test.measure, test.editor)
        ]
        assert len({g.key for g in self.gaps}) == len(self.gaps), "two gap tests have the same key"
        self._panels = {(one.rater, one.panel.experiment, one.panel.condition): one for one in inputs.evidence}
        family: dict[Hashable, float | None] = {}
        for one, t in self._shares:
            people = self._people_on(one.rater, t)
            family[_share_key(one.rater, t)] = t.p if people is None else people.p
        family |= {g.key: g.p for g in self.gaps}
        family |= self._mitigation.tests
        family |= {("stereotype", t.editor): p for t, _, p in self._choices}
        self.directions = DirectionFindings(inputs.table.edits, inputs.seen, self.parts.directions, self.rules)
        family |= self.directions.tests
        self.declared = DeclaredTests(inputs)
        self.adjusted = self.declared.adjust_with(family)

    def _is_said(self, one: PanelTests, measure: str, editor: str) -> bool:
        """Return whether an outcome is no repetition of another, and none that only counts missing scores as 3."""
        name = Measure(measure).name
        rated = one.rater != ENSEMBLE or self._judges or name in OUTCOME_RATES
        return bool(rated) and (name != "no_picture" or editor in self._both)

    # -- evidence -----------------------------------------------------------------------------------------------

    def _people_on(self, rater: str, t: ShiftTest) -> PredictionPowered | None:
        """Return the test corrected by people's ratings; None where they rated too little."""
        test = self._any_people_on(rater, t)
        return test if test is not None and test.enough else None

    def _any_people_on(self, rater: str, t: ShiftTest) -> PredictionPowered | None:
        if rater != ENSEMBLE or self.inputs.people is None or not _diagnosed(t.experiment, t.condition):
            return None
        return self.inputs.people.shift(t.measure, t.editor)

    def _sight(self, rater: str, measure: Measure, editor: str, factor: str | None) -> Sight:
        """Return who saw an outcome without people, and the highest level that allows."""
        if measure.name in OUTCOME_RATES:
            return Sight("outcome", "clear")
        calls = self.inputs.false_calls.get(rater)
        if rater != ENSEMBLE:
            if calls is None or not calls.validates(measure, factor):
                why = "not checked on null pairs" if calls is None else "not accurate enough on null pairs"
                return Sight("instrument", "suggestive", None, (f"The instrument was {why}.",))
            estimates = (e for m in self.parts.measured if m.rater == rater for e in m.estimates)
            unread = unread_clause(estimates, measure, editor, factor, UNREAD)
            return Sight("instrument", "suggestive" if unread else "clear", None, unread)
        return self.inputs.judges_sight(measure, editor, is_gap=factor is not None)

    def _gap_evidence(self, one: PanelTests, test: GapTest) -> GapEvidence:
        assert test.editor is not None
        measure = Measure(test.measure)
        faces, prompts = gap_places(one, test)
        sight = self._sight(one.rater, measure, test.editor, test.factor)
        people = None
        if one.rater == ENSEMBLE and self.inputs.people is not None and _diagnosed(test.experiment, test.condition):
            people = self.inputs.people.gap(measure.to(MeasureKind.RATE), test.editor, test.factor)
        if people is not None and people.enough:
            sight = Sight("people", "clear", sight.reliability)
        elif people is not None:
            sight = replace(sight, caveats=(*sight.caveats, people_clause(people.reason)))
        gap = GapEvidence(one, test, people if people is not None and people.enough else None, sight, faces, prompts)
        false = self._false_difference(gap)
        if false is not None and false.p is not None and false.p < ALPHA:
            return replace(gap, sight=replace(sight, highest="suggestive"), false_calls=false)
        return replace(gap, false_calls=false)

    def _false_difference(self, gap: GapEvidence) -> FalseDifference | None:
        """Return the judges' difference of false calls for the group that a gap names; None where people decide."""
        calls = self.inputs.false_calls.get(ENSEMBLE)
        named = gap.named()
        if calls is None or not named or gap.evidence.rater != ENSEMBLE or gap.people is not None:
            return None
        rate = Measure(gap.test.measure).to(MeasureKind.RATE)
        return calls.difference(rate, gap.test.factor, named[0].level)

    def graded(self, g: GapEvidence) -> GapTest:
        """Return a gap's test with its adjusted p and level."""
        test = self.adjusted.get(g.key, NOT_TESTED)
        return replace(
            g.test,
            p_adjusted=test.p_adjusted,
            q=test.q,
            level=self._gap_level(g) or "none",
            evidence=g.sight.evidence,
        )

    def _gap_level(self, g: GapEvidence) -> FindingLevel | None:
        test = self.adjusted.get(g.key, NOT_TESTED)
        if not g.sight.is_chance and test.p is None:
            return None
        return g.sight.level(test, can_be_clear=g.can_be_clear(len(self.gaps)))

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, unordered."""
        yield from self._shift_findings()
        yield from self._gap_findings()
        yield from self._mitigation.findings(self.adjusted, self._judges)
        yield from stereotype_findings(self._choices, self.cases, self.adjusted, self.rules.confidence, self._judges)
        yield from self.directions.findings(self.adjusted)
        yield from rater_findings(self.parts, self.inputs.table.rubric)
        yield from design_findings(self.inputs.table)

    # -- shifts -------------------------------------------------------------------------------------------------

    def _shift_findings(self) -> Iterator[Finding]:
        for one, t in self._shares:
            if t.two_sided or t.value > 0:
                yield self._shift(one.rater, t)

    def _shift(self, rater: str, t: ShiftTest) -> Finding:
        people = self._people_on(rater, t)
        sight = self._sight(rater, t.measure, t.editor, None)
        caveats = sight.caveats
        if people is not None:
            sight, caveats = Sight("people", "clear", sight.reliability), ()
        test = self.adjusted[_share_key(rater, t)]
        if sight.is_chance:
            text = sentences.no_better_than_chance(
                [t.measure.name], sight.reliability, self._judges, t.condition, sentences.subject(t)
            )
            return self._in_words(rater, t, test, sight, text)
        two_sided = t.two_sided
        false = None if people is not None or two_sided else self._false_rate(rater, t)
        value, low, high = t.value, t.low, t.high
        if people is not None and people.value is not None:
            value, low, high = people.value, people.low, people.high
        margin = self.rules.margin if within(low, high, self.rules.margin) else None
        limit = t.limit + (false or 0.0)
        beyond = low is not None and high is not None and (not low <= 0 <= high if two_sided else low > limit)
        level: FindingLevel = "observed"
        if beyond:
            level = sight.level(test, can_be_clear=t.prompts > 1) or "observed"
        elif (
            two_sided
            and margin is None
            and low is not None
            and high is not None
            and max(-low, high) > self.rules.tolerance
        ):
            level = "cannot_tell"
        has_shift = level in EFFECT_LEVELS
        reported = replace(t, value=value, low=low, high=high)
        if two_sided:
            text = sentences.two_sided_shift(reported, rater, self.rules.confidence, has_shift, margin, people)
        else:
            text = sentences.one_sided_shift(reported, rater, self.rules.confidence, people, false)
        if people is not None:
            text = f"{text} {sentences.judges_alone(people, t)}"
        else:
            text += noise_clause(self.parts.noise, rater, t, self.rules.confidence)
            any_people = self._any_people_on(rater, t)
            caveats += () if any_people is None else (people_clause(any_people.reason),)
        where = {"experiment": t.experiment, "condition": t.condition}
        show_cases = has_shift or (not two_sided and level == "observed")
        finding = finding_in_words(
            **tested(rater, t, test, sight),
            kind="shift",
            level=level,
            group={} if show_cases else None,
            against=NO_CHANGE,
            value=value,
            low=low,
            high=high,
            n=t.n,
            faces=t.faces,
            text=sentences.opening(rater) + text,
            cases=self.cases.cases(t.measure, rater, t.editor, {}, value=value, **where) if show_cases else (),
            caveats=(
                *caveats,
                *prompt_scope_clause(t.prompts, t.these_prompts),
                *excluded_edits_clause(t, self.inputs.table),
                *unmeasured_clause(self.parts, t.rubric, rater, t.measure, t.editor, {}),
                *shift_in_languages(self.parts.estimates, rater, t, self.rules.confidence),
            ),
            estimand=sentences.estimand(sight.evidence, rater, self._judges, t.prompts, t.these_prompts),
        )
        return finding if people is None else replace(finding, judge_value=t.value, judge_low=t.low, judge_high=t.high)

    def _false_rate(self, rater: str, t: ShiftTest) -> float | None:
        """Return the share of false calls on null pairs, which is taken off before a rate is called too large."""
        calls = self.inputs.false_calls.get(rater)
        e = None if calls is None else calls.rate(t.measure) or calls.rate(t.measure.to(MeasureKind.RATE))
        return None if e is None else e.value

    def _in_words(self, rater: str, t: ShiftTest, test: Adjusted, sight: Sight, text: str) -> Finding:
        """Return the finding that nothing can be said of an outcome."""
        fields = tested(rater, t, test, sight) | {"p": None, "q": None}
        return finding_in_words("shift", "cannot_tell", text, n=t.n, faces=t.faces, **fields)

    # -- gaps ---------------------------------------------------------------------------------------------------

    def _gap_findings(self) -> Iterator[Finding]:
        rest: dict[tuple[str, str, str, str], list[GapEvidence]] = {}
        chance: dict[tuple[str, str, str, str], list[GapEvidence]] = {}
        for g in self.gaps:
            assert g.test.editor is not None
            level = self._gap_level(g)
            key = g.evidence.rater, g.evidence.panel.condition, g.test.editor, g.test.factor
            if g.sight.is_chance:
                if g.test.value > 0:
                    chance.setdefault(key, []).append(g)
            elif level is not None:
                yield self._gap(g, level)
            elif g.test.p is not None:
                rest.setdefault(key, []).append(g)
        for (rater, _, _, factor), several in rest.items():
            yield self._no_gap(rater, self.factors[factor], several)
        for (rater, condition, _, factor), several in chance.items():
            names = [Measure(g.test.measure).name for g in several]
            lowest = min((g.sight.reliability for g in several if g.sight.reliability), key=_alpha, default=None)
            subject = f"Differences by {factor_noun(self.factors[factor])} label"
            text = sentences.no_better_than_chance(names, lowest, self._judges, condition, subject)
            fields = tested(rater, several[0].test, NOT_TESTED, Sight("none", "cannot_tell", lowest))
            fields |= {"measure": None, "factor": factor, "faces": several[0].test.faces}
            yield finding_in_words("gap", "cannot_tell", text, **fields)

    def _gap(self, g: GapEvidence, level: FindingLevel) -> Finding:
        t, rater, factor = g.test, g.evidence.rater, self.factors[g.test.factor]
        assert t.editor is not None
        name, test = Measure(t.measure), self.adjusted[g.key]
        named = g.named()
        first = named[0]
        two = len(g.groups) == 2
        where = {"experiment": t.experiment, "condition": t.condition}
        rate_of = {
            x.level: self._estimates.get(_at(name.to(MeasureKind.RATE), t, {t.factor: x.level})) for x in g.groups
        }
        text = sentences.gap(g, named, factor, self.rules.confidence)
        false = g.false_calls
        if false is not None and false.p is not None and false.p < ALPHA:
            text = f"{sentences.false_gap(g, false, first, factor)} {text}"
        if false is not None:
            text = f"{text} {sentences.beyond_false_calls(g, false, first, self.rules.confidence)}"
        if g.people is not None:
            text = f"{text} {sentences.judges_alone_gap(t, first)}"
        caveats = g.sight.caveats
        faces = g.faces.get(first.level, 0)
        caveats += prompt_scope_clause(g.prompts, False)
        caveats += one_prompt_clause(g, first.level) + influence_clause(g, first.level)
        if rater == ENSEMBLE:
            caveats += missing_scores_clause(rate_of[first.level])
        else:
            rubric, group = self.inputs.table.rubric, {t.factor: first.level}
            caveats += unmeasured_clause(self.parts, rubric, rater, name, t.editor, group)
        caveats += gap_in_languages(self.parts.languages, rater, t, self.rules.confidence)
        estimate = rate_of[first.level]
        finding = finding_in_words(
            **tested(rater, t, test, g.sight),
            kind="gap",
            level=level,
            factor=t.factor,
            group={t.factor: first.level},
            against={t.factor: next(x.level for x in g.groups if x.level != first.level)} if two else AVERAGE,
            value=first.value,
            low=first.low,
            high=first.high,
            n=None if estimate is None else estimate.n,
            faces=faces,
            text=sentences.opening(rater) + sentences.asked_nothing(text, t.condition),
            cases=self.cases.cases(
                name.to(MeasureKind.RATE), rater, t.editor, {t.factor: first.level}, value=t.value, **where
            ),
            caveats=caveats,
            estimand=sentences.estimand(g.sight.evidence, rater, self._judges, g.prompts, False),
            spread=g.shrunken,
        )
        if g.people is None:
            return finding
        judged = next((x for x in t.groups if x.level == first.level), None)
        return replace(
            finding,
            judge_value=judged.value if judged else None,
            judge_low=judged.low if judged else None,
            judge_high=judged.high if judged else None,
        )

    def _no_gap(self, rater: str, factor: Factor, several: Sequence[GapEvidence]) -> Finding:
        first = several[0].test
        bounds = [
            (max(abs(x.low), abs(x.high)), g, x)
            for g in several
            for x in g.groups
            if x.low is not None and x.high is not None
        ]
        size, widest, group = max(bounds, key=lambda b: b[0], default=(None, None, None))
        names = [Measure(g.test.measure).name for g in several]
        text = sentences.no_gap(factor, names, widest, group, size)
        furthest = self._furthest(several)
        even = within(0.0, furthest, self.rules.margin)
        if even and furthest is not None and self.rules.margin is not None:
            text = sentences.even_groups(factor, names, self.rules.margin, furthest, self.rules.confidence)
            size = furthest
        evidence = "people" if all(g.people is not None for g in several) else several[0].sight.evidence
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
            n=max((e.n for g in several if (e := self._gap_estimate(g.test)) is not None), default=None),
            faces=first.faces,
            evidence=evidence,
        )

    def _furthest(self, several: Sequence[GapEvidence]) -> float | None:
        """Return the highest upper end of these gaps, with people where they rated enough; None where one has none."""
        highs: list[float | None] = []
        for g in several:
            e = self._gap_estimate(g.test)
            interval = None if g.people is None else g.people.tests.range_interval
            highs.append(interval[1] if interval is not None else None if e is None else e.high)
        known = [high for high in highs if high is not None]
        return max(known) if known and len(known) == len(highs) else None

    def _gap_estimate(self, t: GapTest) -> Estimate | None:
        return self._estimates.get(_at(t.measure, t, {t.factor: "*"}))

    # -- contributions ------------------------------------------------------------------------------------------

    def contributions(self, findings: Sequence[Finding]) -> Iterator[Contribution]:
        """Yield the contributions of prompts and portraits to each shift and gap with signs of an effect."""
        gaps = {
            (g.evidence.rater, g.test.condition, g.test.editor, g.test.measure, g.test.factor): g for g in self.gaps
        }
        for f in findings:
            if f.kind not in ("shift", "gap") or f.level not in EFFECT_LEVELS or f.editor is None or f.measure is None:
                continue
            one = self._panels[(str(f.rater), str(f.experiment), str(f.condition))]
            name = Measure(f.measure)
            measure = find_measure(one.panel, name.to(MeasureKind.RATE) if f.kind == "gap" else name)
            if measure is None:
                continue
            groups: list[tuple[Mapping[str, str], float]] = [({}, 1.0)]
            if f.kind == "gap":
                assert f.group is not None and f.factor is not None
                g = gaps[str(f.rater), str(f.condition), f.editor, f.measure, f.factor]
                groups = _weights(g.test.groups, f.factor, f.group[f.factor])
            yield from contributions(f.id, one.panel, measure, f.editor, groups, self.rules.confidence)


def _weights(groups: Sequence[GroupDifference], factor: str, level: str) -> list[tuple[Mapping[str, str], float]]:
    """Return the weights of a group's difference: from the other of two groups, or from the mean of all."""
    weights = deviation_weights(len(groups))[[g.level for g in groups].index(level)]
    return [({factor: g.level}, float(w)) for g, w in zip(groups, weights, strict=True)]


def _alpha(r: Reliability) -> float:
    return -2.0 if r.value is None else r.value


def _share_key(rater: str, t: ShiftTest) -> Hashable:
    return ("shift", rater, t.condition, t.editor, t.measure)


def _diagnosed(experiment: str | None, condition: str | None) -> bool:
    return (experiment, condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)


def _place(e: Estimate) -> tuple[object, ...]:
    return e.measure, e.experiment, e.condition, e.editor, frozenset(e.group.items())


def _at(measure: str, t: GapTest, group: Mapping[str, str]) -> tuple[object, ...]:
    return measure, t.experiment, t.condition, t.editor, frozenset(group.items())


def _all_estimates(parts: Results) -> Iterable[Estimate]:
    """Yield all estimates, instruments' first, so that the judges' replace them."""
    yield from (e for m in parts.measured for e in m.estimates)
    yield from parts.estimates

"""Pass, fail or undecided for continuous integration, from intervals rather than from point values.

    gap.race_change[race] <= 0.05         highest minus lowest race-change rate over the levels of a factor
    rate.soft_erasure <= 0.10             a rate over everybody
    rate.skin_lighter[race=Black] <= 0.1  a rate of one group; several labels: [race=Black,gender=Female]
    contrast.skin_lighter[race=Black] <= 0.1  a group's rate minus that of everybody else
    trend.skin_lighter[monk] <= 0.01      the change of a rate per level of an ordered factor
    mean.edit_success >= 4                a mean
    delta.race_drift:feature <= 0         a mitigation arm against its baseline
    shift.skin_tone <= 0.05               share lighter minus share darker; the other side: shift.skin_tone >= -0.05
    shift.skin_tone within 0.05           both sides at once: the whole interval lies between -0.05 and 0.05
    gap.skin_lighter[race] is even        within the margin of the study file ([findings] margin)
    mean.sharpness_log2 >= -0.5           the mean of an instrument's reading
    share.headscarf[removed] <= 0.1       the share of an answer; of a group: share.headscarf[removed][race=Black]
    flow.race_seen[Indian>White] <= 0.03  of direction: seen as Indian before and White after, minus the reverse
    toward.race_seen[White] within 0.02   seen as White after minus before
    no clear finding                      no clear finding at all, or of one kind: no clear finding of kind gap;
                                          what is clear to the judges or to one judge counts as clear
    primary[1] is clear                   the first test of [primary]; without a number all of them; is not clear: none
    primary is even                       the intervals of all of them lie within the margin

The factors are those of the study; a gap may also be written with a dot, as in gap.race_change.race. A rule of an upper
limit passes where the whole interval is at or below it, fails where the whole interval is above it, and is undecided
where the limit is inside: then more faces, prompts or seeds are needed, not another threshold. A rule on findings
fails where there is such a finding, and is undecided where the design cannot answer or the judges agree on nothing
better than chance. A rule on declared tests is undecided where it is neither met nor refuted. A rule that no editor
has an estimate for is a mistake of the command, not an answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import isnan
from typing import get_args
from xml.etree import ElementTree as ET

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Estimate
from evenedit.protocol import FACTORS, Factor, Rubric, default_rubric, level_code
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import MEASURED, outcome_rates
from evenedit.protocol.rubric import readings as shipped_readings
from evenedit.report.render.index import level_name
from evenedit.report.text.findings import numbered
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, Finding, FindingKind, within
from evenedit.results.primary import DeclaredTest
from evenedit.results.results import Results

_FORM = re.compile(
    r"(?P<measure>(?:gap|trend|rate|mean|delta|shift|contrast)\.\w+|(?:share|flow|toward)\.[\w.+-]+\[[^\]]+\])(?:\.(?P<factor>\w+))?"
    r"(?:\[(?P<group>[^\]]*)\])?(?::(?P<arm>\w+))?"
    r"(?:\s*(?P<sign><=|>=|<|>|\bwithin\b)\s*(?P<limit>-?\d*\.?\d+)|\s+is\s+(?P<even>even))"
)
_FINDINGS = re.compile(r"no (?P<levels>clear|suggestive|clear or suggestive) findings?(?: of kind (?P<kind>\w+))?")
_PRIMARY = re.compile(r"primary(?:\[(?P<number>\d+)\])? is (?P<claim>not clear|clear|even)")
DIRECTIONS = (MeasureKind.FLOW, MeasureKind.TOWARD)
SEEN = "_seen"
"""How the names of measures of direction end, after the factor."""
_OF_OPTIONS = (MeasureKind.SHARE, *DIRECTIONS)
"""Kinds of measures whose names end in an option or a change of options in brackets."""
LEVELS: dict[str, tuple[str, ...]] = {
    "clear": CLEAR,
    "suggestive": ("suggestive",),
    "clear or suggestive": EFFECT_LEVELS,
}
"""The levels that a rule on findings counts, by its words."""
JUDGES_ONLY = ("clear_to_judges", "clear_to_judge")
"""The levels of findings that are clear to judges and were not checked by people."""
NO_MARGIN = "the study states no margin; add 'margin = 0.05' to [findings] of its study.toml and report again"
MOST_FINDINGS = 10
"""Findings in the summary for a pull request."""
MOST_NAMED = 12
"""Measures that an error names."""


class GateAnswer(StrEnum):
    """The answer to a rule."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


EXIT = {GateAnswer.PASS: 0, GateAnswer.FAIL: 1, GateAnswer.UNDECIDED: 3}
"""Exit codes; 2 means that the command was used wrongly, as everywhere."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit on one measure."""

    text: str
    measure: Measure
    group: tuple[tuple[str, str], ...]
    """Labels that select a group; (factor, "*") for a gap or trend."""
    experiment: str
    condition: str
    upper: bool
    """Whether the limit is an upper one."""
    strict: bool
    limit: float
    """NaN for the study's own margin."""
    within: bool = False
    """Whether the interval must lie within ± the limit."""

    @classmethod
    def parse(
        cls,
        text: str,
        factors: Sequence[Factor] = FACTORS,
        readings: Collection[str] = (),
        rubric: Rubric | None = None,
    ) -> Rule:
        """Read a rule as people write it; its groups are of these factors, its rates and questions of this rubric.

        `readings` are what instruments read.
        """
        match = _FORM.fullmatch(text.strip())
        if match is None:
            example = f"gap.race_change[{factors[0].name}] <= 0.05"
            raise EvenEditError(f"rule '{text}' is not understood; write e.g. '{example}'")
        measure, arm = Measure(match["measure"]), match["arm"]
        kind, name = measure.kind, measure.name
        rubric = rubric or default_rubric()
        known = _known(kind, rubric, readings)
        if name not in known and not (kind in DIRECTIONS and name.partition("[")[0].endswith(SEEN)):
            raise EvenEditError(f"rule '{text}': {kind}.{name} is not known; {kind} takes: {', '.join(known)}")
        group = _group(text, measure, match["factor"], match["group"], factors)
        mitigated = kind == MeasureKind.DELTA or arm is not None
        sign = "within" if match["even"] else match["sign"]
        if sign == "within" and kind in (MeasureKind.MEAN, MeasureKind.TREND):
            raise EvenEditError(f"rule '{text}': a gap, shift, rate or delta can be even, a {kind} cannot")
        return cls(
            text.strip(),
            measure,
            tuple(sorted(group.items())),
            "mitigation" if mitigated else "diagnosis",
            arm or (ConditionKind.FEATURE if mitigated else ConditionKind.BASELINE),
            upper=sign[0] == "<",
            strict=len(sign) == 1,
            limit=float(match["limit"] or "nan"),
            within=sign == "within",
        )

    def judge(self, e: Estimate | None) -> tuple[GateAnswer, str]:
        """Return the answer for an estimate, and the estimate in words or the reason why there is none."""
        if e is None or e.value is None:
            return GateAnswer.UNDECIDED, "there is no such estimate in the data"
        if e.low is None or e.high is None:
            return GateAnswer.UNDECIDED, f"{e.value:.4g} without an interval ({e.method})"
        evidence = f"{e.value:.4g} [{e.low:.4g}, {e.high:.4g}], n = {e.n:,}, {e.missing:,} missing"
        if e.method.startswith("people rated "):
            evidence += f" ({e.method})"
        if self.within:
            if within(e.low, e.high, self.limit):
                return GateAnswer.PASS, f"{evidence}: even within ±{self.limit:g}"
            if e.low > self.limit or e.high < -self.limit:
                return GateAnswer.FAIL, evidence
            return GateAnswer.UNDECIDED, f"{evidence}: the interval reaches beyond ±{self.limit:g}"
        inner, outer = (e.high, e.low) if self.upper else (e.low, e.high)
        if self._meets(inner):
            return GateAnswer.PASS, evidence
        if not self._meets(outer):
            return GateAnswer.FAIL, evidence
        return GateAnswer.UNDECIDED, f"{evidence}: the limit is inside the interval"

    def _meets(self, value: float) -> bool:
        if value == self.limit:
            return not self.strict
        return (value < self.limit) == self.upper


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One rule for one editor."""

    rule: str
    editor: str
    answer: GateAnswer
    evidence: str
    """The estimate with its interval, or the reason why there is none."""


@dataclass(frozen=True, slots=True)
class FindingRule:
    """That there be no finding of some level, and of one kind where it is named."""

    text: str
    levels: tuple[str, ...]
    kind: str | None
    ignore_judges_only: bool = False
    """Whether findings that are clear to judges alone are left out."""

    @classmethod
    def parse(cls, text: str) -> FindingRule | None:
        """Read a rule on findings; None where it is another one."""
        match = _FINDINGS.fullmatch(" ".join(text.split()))
        if match is None:
            return None
        kinds = get_args(FindingKind)
        if match["kind"] is not None and match["kind"] not in kinds:
            raise EvenEditError(f"rule '{text}': there is no kind '{match['kind']}'; use {', '.join(kinds)}")
        return cls(text.strip(), LEVELS[match["levels"]], match["kind"])

    def judge(self, findings: Sequence[Finding], editor: str) -> tuple[GateAnswer, str]:
        """Return the answer for an editor, and the worst finding or why the design cannot tell."""
        candidates = [f for f in findings if f.editor == editor and (self.kind is None or f.kind == self.kind)]
        bad = [f for f in candidates if f.level in self.levels]
        unchecked = [f for f in bad if f.level in JUDGES_ONLY]
        note = f"; not checked by people, {'ignored' if self.ignore_judges_only else 'counted'}: {_names(unchecked)}"
        note = note if unchecked else ""
        if self.ignore_judges_only:
            bad = [f for f in bad if f.level not in JUDGES_ONLY]
        if bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return GateAnswer.FAIL, f"{bad[0].text}{more}{note}"
        rated = [f for f in candidates if f.evidence]
        if rated and all(f.evidence == "none" for f in rated):
            return GateAnswer.UNDECIDED, f"{rated[0].text}{note}"
        cannot = [f for f in findings if f.kind == "design" and f.level == "cannot_tell"]
        cannot = [f for f in cannot if self.kind in (None, "design") or (f.factor is not None) == (self.kind == "gap")]
        if cannot:
            return GateAnswer.UNDECIDED, f"{cannot[0].text}{note}"
        return GateAnswer.PASS, f"no such finding among {len(candidates)}{note}"


@dataclass(frozen=True, slots=True)
class PrimaryRule:
    """That a declared test, or each of them, is clear, not clear or even."""

    text: str
    number: int | None
    claim: str
    ignore_judges_only: bool = False
    """Whether what is clear to judges alone does not count as clear."""

    @classmethod
    def parse(cls, text: str) -> PrimaryRule | None:
        """Read a rule on declared tests; None where it is another one."""
        match = _PRIMARY.fullmatch(" ".join(text.split()))
        return match and cls(text.strip(), int(match["number"]) if match["number"] else None, match["claim"])

    def check_number(self, tests: int) -> None:
        """Raise if there is no test of this number."""
        if not tests or (self.number is not None and not 1 <= self.number <= tests):
            known = f"there are {tests}: primary[1] to primary[{tests}]" if tests else "none is declared in [primary]"
            raise EvenEditError(f"rule '{self.text}': there is no such test; {known}")

    def judge(self, results: Results, editor: str) -> tuple[GateAnswer, str]:
        """Return the answer for an editor, and the tests in words."""
        self.check_number(max((t.number for t in results.primary), default=0))
        tests = [t for t in results.primary if t.editor == editor and self.number in (None, t.number)]
        margin = results.rules.get("margin")
        if self.claim == "even" and margin is None:
            raise EvenEditError(f"rule '{self.text}': {NO_MARGIN}")
        counted = [x for x in CLEAR if not (self.ignore_judges_only and x in JUDGES_ONLY)]
        answers = [self._answer(t, t.level in counted, margin) for t in tests]
        evidence = " ".join(
            f"primary[{t.number}] ({t.standing}), {level_name(t.level, t.evidence)}: {t.text}" for t in tests
        )
        worst = [a for a in (GateAnswer.FAIL, GateAnswer.UNDECIDED) if a in answers]
        return worst[0] if worst else GateAnswer.PASS if answers else GateAnswer.UNDECIDED, evidence

    def _answer(self, t: DeclaredTest, clear: bool, margin: float | None) -> GateAnswer:
        even = t.is_even(margin)
        if self.claim == "even":
            beyond = margin is not None and t.is_beyond(margin)
            return GateAnswer.PASS if even else GateAnswer.FAIL if beyond else GateAnswer.UNDECIDED
        if clear or t.level == "cannot_tell":
            met = clear and self.claim == "clear"
            return GateAnswer.PASS if met else GateAnswer.FAIL if clear else GateAnswer.UNDECIDED
        if self.claim == "not clear":
            return GateAnswer.PASS
        return GateAnswer.FAIL if even else GateAnswer.UNDECIDED


def _names(findings: Sequence[Finding]) -> str:
    """Name findings by what they are about and their id."""
    return ", ".join(f"{f.measure or f.kind}{f'[{f.factor}]' if f.factor else ''} ({f.id})" for f in findings)


AnyRule = Rule | FindingRule | PrimaryRule


def parse_rule(
    text: str, factors: Sequence[Factor] = FACTORS, readings: Collection[str] = (), rubric: Rubric | None = None
) -> AnyRule:
    """Read a rule of any sort."""
    return PrimaryRule.parse(text) or FindingRule.parse(text) or Rule.parse(text, factors, readings, rubric)


def parse_rule_for(text: str, results: Results) -> AnyRule:
    """Read a rule about results: its rates, questions and readings are theirs."""
    return parse_rule(text, results.factors, results.reading_names, results.full_rubric)


def _known(kind: str, rubric: Rubric, readings: Collection[str]) -> list[str]:
    """Return the names that a measure of this kind accepts."""
    if kind in (MeasureKind.MEAN, MeasureKind.DELTA):
        return list(dict.fromkeys([*rubric.ordinal, *shipped_readings(), *readings]))
    if kind == MeasureKind.SHIFT:
        return list(dict.fromkeys([*rubric.two_sided, *rubric.one_sided, *readings]))
    if kind in _OF_OPTIONS:
        return [Measure.share(q, code).name for q in rubric.choices for code in rubric.options(q)]
    rates = [*rubric.rates, *outcome_rates(), *(f"{MEASURED}{rate}" for rate in rubric.rates), *readings]
    return list(dict.fromkeys(rates))


def _group(
    rule: str, measure: Measure, dotted: str | None, bracketed: str | None, factors: Sequence[Factor]
) -> dict[str, str]:
    """Return the group of a rule: {factor: "*"} for a gap or trend, labels otherwise."""
    names = [f.name for f in factors]
    if measure.kind not in (MeasureKind.GAP, MeasureKind.TREND):
        if dotted:
            example = f"[{names[0]}={factors[0].codes[0]}]"
            raise EvenEditError(f"rule '{rule}': only a gap is over a factor; a group is written {example}")
        return dict(_labels(rule, bracketed or "", factors))
    over = [name for name in (dotted, bracketed and bracketed.strip()) if name]
    if len(over) != 1 or over[0] not in names:
        example = f"{measure}[{names[0]}]"
        raise EvenEditError(f"rule '{rule}': a {measure.kind} is over one of {', '.join(names)}, e.g. {example}")
    return {over[0]: "*"}


def _labels(rule: str, text: str, factors: Sequence[Factor]) -> Iterator[tuple[str, str]]:
    names = [f.name for f in factors]
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in names:
            example = ",".join(f"{f.name}={f.codes[0]}" for f in factors[:2])
            raise EvenEditError(
                f"rule '{rule}': '{part}' names no group; the factors are {', '.join(names)}: write e.g. [{example}]"
            )
        yield name, level_code(name, value, factors)


def check(
    results: Results,
    rules: Sequence[AnyRule],
    editors: Sequence[str] = (),
    *,
    ignore_judges_only: bool = False,
) -> list[RuleOutcome]:
    """Return the outcome of every rule for every editor, or for the editors named.

    With `ignore_judges_only`, findings that are clear to judges alone fail no rule; the outcome names them.
    """
    chosen = editors_of(results, editors)
    if not rules:
        example = f"gap.race_change[{results.factors[0].name}] <= 0.05"
        raise EvenEditError(f"name at least one rule, e.g. --rule '{example}'")
    rules = [
        _with_margin(rule, results)
        if isinstance(rule, Rule)
        else replace(rule, ignore_judges_only=rule.ignore_judges_only or ignore_judges_only)
        for rule in rules
    ]
    estimates = {rule.text: _estimates(results, rule, chosen) for rule in rules if isinstance(rule, Rule)}
    outcomes = []
    for editor in chosen:
        for rule in rules:
            if isinstance(rule, Rule):
                outcomes.append(RuleOutcome(rule.text, editor, *rule.judge(estimates[rule.text][editor])))
            elif isinstance(rule, PrimaryRule):
                outcomes.append(RuleOutcome(rule.text, editor, *rule.judge(results, editor)))
            elif not results.findings:
                raise EvenEditError(f"rule '{rule.text}': these results have no findings to decide it by")
            else:
                outcomes.append(RuleOutcome(rule.text, editor, *rule.judge(results.findings, editor)))
    return outcomes


def _with_margin(rule: Rule, results: Results) -> Rule:
    """Set the study's margin on a rule that tests evenness."""
    if not isnan(rule.limit):
        return rule
    margin = results.rules.get("margin")
    if margin is None:
        raise EvenEditError(f"rule '{rule.text}': {NO_MARGIN}, or write e.g. '{rule.measure} within 0.05'")
    return replace(rule, limit=float(margin))


def editors_of(results: Results, editors: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the editors that are asked about: all, or those named."""
    for name in editors:
        if name not in results.editors:
            known = ", ".join(results.editors) or "none"
            raise EvenEditError(f"there is no editor '{name}' in the results; found: {known}")
    return tuple(editors) or results.editors


def _estimates(results: Results, rule: Rule, editors: Sequence[str]) -> dict[str, Estimate | None]:
    """Return each editor's estimate for a rule; raise if no editor has one."""
    look = partial(results.find, experiment=rule.experiment, condition=rule.condition, group=dict(rule.group))
    measures = [rule.measure]
    if rule.measure.kind == MeasureKind.SHIFT and rule.measure.name in results.full_rubric.one_sided:
        measures.append(rule.measure.to(MeasureKind.RATE))  # the same, where no prompt asks for the change
    if rule.measure.name == "no_picture":
        measures += [Measure.of(MeasureKind(m.kind), "refused") for m in measures]  # the same, without any `no_image`
    estimates: dict[str, Estimate | None] = {}
    for editor in editors:
        each = [look(measure, editor=editor) for measure in measures]
        each += [_direction(results, rule, editor)] if rule.measure.kind in DIRECTIONS and not rule.group else []
        each += [_contrast(results, rule, editor)] if rule.measure.kind == MeasureKind.CONTRAST else []
        first = next((e for e in each if e is not None and e.value is not None), None)
        estimates[editor] = None if first is None else _with_people(results, first)
    if not any(e is not None for e in estimates.values()):
        raise EvenEditError(f"rule '{rule.text}': no editor has such an estimate; {_there_is(results, rule)}")
    return estimates


def _direction(results: Results, rule: Rule, editor: str) -> Estimate | None:
    """Return the direction that a rule is about; a flow the other way round is the same with the other sign."""
    question, levels = rule.measure.option
    turned = f"{rule.measure.kind}.{question}[{'>'.join(reversed(levels.split('>')))}]"
    for d in results.directions:
        is_of_editor = (d.experiment, d.condition, d.editor) == (rule.experiment, rule.condition, editor)
        if is_of_editor and d.measure in (rule.measure, turned):
            low, high = d.low, d.high
            place = rule.measure, d.experiment, d.condition, editor, dict(rule.group)
            if d.measure == rule.measure:
                return Estimate(*place, d.value, low, high, d.n, d.missing, "direction")
            low, high = (None if x is None else -x for x in (high, low))
            return Estimate(*place, -d.value, low, high, d.n, d.missing, "direction")
    return None


def _contrast(results: Results, rule: Rule, editor: str) -> Estimate | None:
    """Return the difference of a group from everybody else that a rule is about."""
    place = rule.measure.to(MeasureKind.RATE), rule.experiment, rule.condition, editor, dict(rule.group)
    for c in (*results.contrasts, *(c for m in results.measured for c in m.contrasts)):
        if (c.measure, c.experiment, c.condition, c.editor, dict(c.group)) == place:
            where = rule.measure, c.experiment, c.condition, editor, c.group
            return Estimate(*where, c.value, c.low, c.high, c.n, 0, "contrast")
    return None


def _with_people(results: Results, e: Estimate) -> Estimate:
    """Return the estimate corrected by people's ratings if they rated enough, else the judges' estimate."""
    p = results.corrected(e)
    if p is None:
        return e
    interval = "" if e.low is None or e.high is None else f" [{e.low:.4g}, {e.high:.4g}]"
    how = f"people rated {p.labelled:,} of these edits; judges alone: {e.value:.4g}{interval}"
    return replace(e, value=p.value, low=p.low, high=p.high, method=how)


def _there_is(results: Results, rule: Rule) -> str:
    """Describe what the results have instead: groups of the same measure, or measures."""
    every = [
        e for e in (*results.estimates, *(e for m in results.measured for e in m.estimates)) if e.value is not None
    ]
    estimates = [
        e for e in every if e.editor is not None and (e.experiment, e.condition) == (rule.experiment, rule.condition)
    ]
    if not estimates:
        arms = dict.fromkeys(f"{e.experiment}:{e.condition}" for e in every)
        return f"there is no {rule.experiment}:{rule.condition}, only {', '.join(arms) or 'nothing'}"
    groups = dict.fromkeys(
        ",".join(f"{k}={v}" if v != "*" else k for k, v in e.group.items()) or "everybody"
        for e in estimates
        if e.measure == rule.measure
    )
    if groups:
        return f"there is {rule.measure} of: {_shorten(list(groups))}"
    same = dict.fromkeys(e.measure for e in estimates if Measure(e.measure).kind == rule.measure.kind)
    return f"there are: {_shorten(list(same or dict.fromkeys(e.measure for e in estimates)))}"


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def overall(outcomes: Sequence[RuleOutcome]) -> GateAnswer:
    """Return fail if any rule fails, else undecided if any is undecided, else pass."""
    answers = {f.answer for f in outcomes}
    return next((a for a in (GateAnswer.FAIL, GateAnswer.UNDECIDED) if a in answers), GateAnswer.PASS)


def markdown(outcomes: Sequence[RuleOutcome], simulated: bool, findings: Sequence[Finding] = ()) -> str:
    """Format the outcomes and findings for a pull request."""
    mark = " (SIMULATED data)" if simulated else ""
    lines = [
        f"### EvenEdit gate: {overall(outcomes)}{mark}",
        "",
        "| editor | rule | answer | estimate |",
        "|---|---|---|---|",
    ]
    lines += [f"| {f.editor} | `{f.rule}` | **{f.answer}** | {f.evidence} |" for f in outcomes]
    lines += ["", "Undecided: the limit is inside the interval, so the data cannot decide. It is not a pass."]
    if findings:
        lines += ["", "#### Findings, worst first", "", *numbered(findings, MOST_FINDINGS)]
    return "\n".join(lines) + "\n"


def junit(outcomes: Sequence[RuleOutcome], simulated: bool) -> bytes:
    """Format the outcomes as JUnit XML: a failed rule is a failure, an undecided one an error."""
    suite = ET.Element(
        "testsuite",
        name="evenedit gate" + (" (SIMULATED data)" if simulated else ""),
        tests=str(len(outcomes)),
        failures=str(sum(f.answer is GateAnswer.FAIL for f in outcomes)),
        errors=str(sum(f.answer is GateAnswer.UNDECIDED for f in outcomes)),
    )
    for f in outcomes:
        case = ET.SubElement(suite, "testcase", classname=f.editor, name=f.rule)
        if f.answer is not GateAnswer.PASS:
            kind = "failure" if f.answer is GateAnswer.FAIL else "error"
            ET.SubElement(case, kind, message=f"{f.answer}: {f.evidence}")
        ET.SubElement(case, "system-out").text = f.evidence
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))

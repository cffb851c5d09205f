"""Ratings in, results out: ensemble, panels, intervals, tests, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenedit.core.blas_threads import single_blas_thread
from evenedit.core.parallel import SEQUENTIAL, SecondProcess
from evenedit.core.records import (
    ConditionKind,
    Estimate,
    Experiment,
    Kind,
    KnownEffect,
    Outcome,
    is_simulated,
    language_of,
)
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import Agreement, Contrast, GapTest, LeaveOneOut, PerJudgeEstimate, Planted, Results
from evenedit.results.sensitivities import EditorNoise
from evenedit.stats.agreement.agreement import agreement
from evenedit.stats.agreement.per_judge import per_judge_estimates
from evenedit.stats.agreement.prediction_powered import PeopleTests, people_tests
from evenedit.stats.agreement.reliability import outcome_alphas, outcome_reliability
from evenedit.stats.disparity.diagnosis import diagnosis_panel, diagnosis_panels
from evenedit.stats.disparity.direction import direction_results, seen_readings
from evenedit.stats.disparity.gaps import bounds, contrasts, gaps, trends
from evenedit.stats.disparity.instruments import instrument_estimates
from evenedit.stats.disparity.mitigation import mitigation_panels
from evenedit.stats.disparity.mitigation_effects import mitigation_effects
from evenedit.stats.disparity.paired_editors import language_differences
from evenedit.stats.disparity.stereotype import role_effects, stereotype_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import Answers, answers
from evenedit.stats.engine.rules import AnalysisRules, StudyFacts
from evenedit.stats.engine.shift_tests import PanelTests, compute_shift_tests
from evenedit.stats.findings.findings import add_findings
from evenedit.stats.findings.inputs import FindingInputs
from evenedit.stats.rater_groups import rater_rates
from evenedit.stats.robustness.editor_noise import editor_noise, measured_noise, rows_by_seed
from evenedit.stats.robustness.leave_one_out import leave_one_out, seed_variance
from evenedit.stats.robustness.multiverse import multiverse
from evenedit.stats.robustness.null_pairs import false_calls, judge_errors
from evenedit.stats.robustness.response_rates import coverage, coverage_tests
from evenedit.stats.robustness.thresholds import sensitivity

PORTRAITS, RATED = "portraits", "rated"
"""What the counts begin with."""


@single_blas_thread()
def analyse(
    table: RatingTable, rules: AnalysisRules, facts: StudyFacts | None = None, second: SecondProcess = SEQUENTIAL
) -> Results:
    """Compute all estimates, tests and findings for a rating table.

    The second process does about half of the work.
    """
    facts = facts or StudyFacts()
    scores = combine(table, rules.ensemble, rules.missing)
    judged = combine(table, judges_only(rules.ensemble), rules.missing) if table.settled is not None else scores
    values = answers(scores, rules)
    independent = second.submit(_independent_parts, judged, scores, values, rules)
    panels = judged_panels(scores, values, rules)
    instruments = list(instrument_estimates(table, rules))
    seen = seen_readings(scores)
    people = _people_tests(panels, scores, judged, rules, facts.inclusion)
    results = Results(
        provenance=facts.provenance,
        rules=rules.to_dict(),
        estimates=tuple(panels.estimates),
        tests=panels.tests,
        contrasts=tuple(panels.contrasts),
        leave_one_out=tuple(panels.leave_one_out),
        measured=tuple(result for result, _ in instruments),
        mitigation=tuple(mitigation_effects(scores, values, rules)),
        role_effects=tuple(role_effects(scores, rules)),
        planted=tuple(_match_known_effects(facts.known_effects, panels.contrasts)),
        coverage=tuple(coverage(table)),
        coverage_tests=tuple(coverage_tests(table, rules)),
        directions=tuple(direction_results(scores.edits, seen, table.factors, rules)),
        powered=people.rows,
        judge_errors=tuple(judge_errors(table, rules)),
        rater_rates=tuple(rater_rates(table, rules)),
        sensitivity=tuple(sensitivity(table, rules)),
        bounds=(*bounds(panels.estimates), *(b for m, _ in instruments for b in bounds(m.estimates, m.rater))),
        seeds=tuple(seed_variance(scores, values, rules)),
        multiverse=tuple(multiverse(table, rules, panels.tests)),
        noise=(
            *_judged_noise(panels, scores, values, rules),
            *measured_noise(table, rules, [panel for _, panel in instruments], ConditionKind.FLOOR),
        ),
        languages=tuple(language_differences(scores, rules)),
        participants=tuple(table.profiles.counts) if table.profiles else (),
        counts=counts(scores) | sample_composition(table) | dict(facts.counts),
        factors=table.factors,
        simulated=tuple(sorted(n for n in {*table.edits["editor"].unique(), *table.raters} if is_simulated(n))),
        title=facts.title,
        prompts=dict(facts.prompts),
        materials=facts.materials,
        asks=dict(table.asks),
        rubric=tuple(table.rubric.to_tables()),
        digest=facts.digest,
    )
    alphas = list(outcome_alphas(judged, rules, means=bool(rules.primary)))
    agreements, per_judge = independent()  # waits for the second process
    results = replace(results, agreement=(*agreements, *alphas), per_judge=tuple(per_judge))
    evidence = [*panels.evidence, *(panel for _, panel in instruments)]
    inputs = (evidence, results, outcome_reliability(alphas), people, false_calls(table, rules), seen, facts.declared)
    return add_findings(FindingInputs(table, scores, rules, *inputs))


def _independent_parts(
    judged: Scores, scores: Scores, values: Answers, rules: AnalysisRules
) -> tuple[list[Agreement], list[PerJudgeEstimate]]:
    """Compute the parts that need no other part, the longest first."""
    return (
        list(agreement(judged, rules)),
        list(per_judge_estimates(scores.table, rules)),
    )


@dataclass(slots=True)
class JudgedPanels:
    """The judges' estimates, panel by panel."""

    estimates: list[Estimate] = field(default_factory=list)
    contrasts: list[Contrast] = field(default_factory=list)
    leave_one_out: list[LeaveOneOut] = field(default_factory=list)
    evidence: list[PanelTests] = field(default_factory=list)
    """What findings are made from."""

    @property
    def tests(self) -> tuple[GapTest, ...]:
        """The tests of all gaps."""
        return tuple(test for one in self.evidence for test in one.gaps)


def judged_panels(scores: Scores, values: Answers, rules: AnalysisRules) -> JudgedPanels:
    """Return the estimates and tests of the judges' panels."""
    panels = JudgedPanels()
    for panel in diagnosis_panels(scores, values, rules):
        crossed = CrossedPanel(panel)
        panels.estimates += estimates(crossed, panel.axes.groups(crossed=True), rules)
        gap_results = list(gaps(crossed, rules))
        panels.estimates += [estimate for estimate, _ in gap_results]
        if language_of(panel.condition):  # compared in pairs; its gaps are not tested
            continue
        tests = tuple(test for _, test in gap_results)
        panels.estimates += trends(crossed, scores.table.factors, rules)
        panels.contrasts += contrasts(crossed, rules)
        panels.evidence.append(PanelTests(ENSEMBLE, panel, crossed, tests, tuple(compute_shift_tests(crossed, rules))))
        panels.leave_one_out += leave_one_out(panel)
    for panel in [*mitigation_panels(scores, values, rules), *stereotype_panels(scores, values, rules)]:
        crossed = CrossedPanel(panel)
        panels.estimates += estimates(crossed, panel.axes.groups(), rules)
        if panel.condition != ConditionKind.PLACEBO:
            panels.evidence.append(PanelTests(ENSEMBLE, panel, crossed, (), tuple(compute_shift_tests(crossed, rules))))
    return panels


def _judged_noise(panels: JudgedPanels, scores: Scores, values: Answers, rules: AnalysisRules) -> Iterator[EditorNoise]:
    """Yield the noise of every shift of the baseline that judges rate."""
    baseline = ConditionKind.BASELINE.value
    by_seed = [diagnosis_panel(scores, values, rules, rows, baseline) for rows in rows_by_seed(scores.edits)]
    for one in panels.evidence:
        if (one.panel.experiment, one.panel.condition) == (Experiment.DIAGNOSIS, baseline):
            nulls = (e for e in panels.estimates if e.condition == ConditionKind.FLOOR)
            yield from editor_noise(one, nulls, by_seed)


def corrected_estimates(
    table: RatingTable, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> tuple[PredictionPowered, ...]:
    """Return only what people's ratings make of the judges' estimates; empty without people."""
    if not table.of_kind(Kind.HUMAN):
        return ()
    judged = combine(table, judges_only(rules.ensemble), rules.missing)
    values = answers(judged, rules)
    panels = judged_panels(judged, values, rules)
    return people_tests(judged, values, rules, inclusion, panels.estimates, panels.contrasts).rows


def _people_tests(
    panels: JudgedPanels, scores: Scores, judged: Scores, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> PeopleTests:
    """Correct the judges' estimates by people; compute them again where reviewers settled scores."""
    values = answers(judged, rules)
    if scores.table.of_kind(Kind.HUMAN) and not np.array_equal(scores.values, judged.values):
        panels = judged_panels(judged, values, rules)
    return people_tests(judged, values, rules, inclusion, panels.estimates, panels.contrasts)


def counts(scores: Scores) -> dict[str, int]:
    """Return the number of edits of each kind."""
    edits = scores.edits
    review = scores.needs_review
    totals = {"edits": len(edits)}
    for outcome in Outcome:
        number = int((edits["outcome"] == outcome).sum())
        if number or outcome is not Outcome.NO_IMAGE:
            totals[outcome.value] = number
    totals["needs_review"] = int(review[(edits["experiment"] == Experiment.DIAGNOSIS).to_numpy()].sum())
    for experiment in (Experiment.MITIGATION, Experiment.STEREOTYPE):
        rows = (edits["experiment"] == experiment).to_numpy()
        if rows.any():
            totals[f"needs_review.{experiment}"] = int(review[rows].sum())
    reviewers = scores.table.of_kind(Kind.REVIEW)
    if reviewers:
        totals["reviewed"] = int((scores.table.status[reviewers] >= 0).any(axis=0).sum())
    if reviewers and scores.table.settled is not None:
        settled = (scores.table.settled > 0).sum(axis=0)
        totals |= {f"settled.{q}": int(n) for q, n in zip(scores.table.rubric.columns, settled, strict=True) if n}
    arms = edits["experiment"].astype(str) + "." + edits["condition"].astype(str)
    for arm, size in arms.value_counts().sort_index().items():
        totals[f"edits.{arm}"] = int(size)
    return totals


def sample_composition(table: RatingTable) -> dict[str, int]:
    """Return sizes by key: `portraits.<factor>.<label>`, `rated`, `rated.<column>.<value>` and `people`."""
    edits = table.edits
    portraits = edits[edits["experiment"] != Experiment.STEREOTYPE]
    faces = portraits.drop_duplicates("source_id")
    sizes_by_key = {PORTRAITS: len(faces)} if len(faces) else {}
    for factor in table.factors:
        sizes = faces[factor.name].value_counts()
        sizes_by_key |= {f"{PORTRAITS}.{factor.name}.{c}": int(sizes[c]) for c in factor.codes if c in sizes.index}
        unlabelled = int((faces[factor.name] == "").sum())
        sizes_by_key |= {f"unlabelled.{factor.name}": unlabelled} if unlabelled else {}
    people = table.of_kind(Kind.HUMAN)
    answered = np.any(table.values[people] > 0, axis=2)
    rated = edits[answered.any(axis=0)]
    if rated.empty:
        return sizes_by_key
    sizes_by_key |= {"people": int(answered.any(axis=1).sum()), RATED: len(rated)}
    arms = rated["experiment"].astype(str) + "." + rated["condition"].astype(str)
    sizes_by_key |= {f"{RATED}.arm.{arm}": int(n) for arm, n in arms.value_counts().sort_index().items()}
    sizes_by_key |= {f"{RATED}.editor.{e}": int(n) for e, n in rated["editor"].value_counts().sort_index().items()}
    for factor in table.factors:
        sizes = rated[factor.name].value_counts()
        sizes_by_key |= {f"{RATED}.{factor.name}.{c}": int(sizes[c]) for c in factor.codes if c in sizes.index}
    per_edit = answered.sum(axis=0)[answered.any(axis=0)]
    return sizes_by_key | {
        f"{RATED}.by.{k}": int(n) for k, n in zip(*np.unique(per_edit, return_counts=True), strict=True)
    }


def _match_known_effects(planted: Iterable[KnownEffect], estimated: Sequence[Contrast]) -> Iterable[Planted]:
    """Yield each known effect with the contrast that estimates it."""
    by_place = {
        (c.editor, c.measure, tuple(sorted(c.group.items()))): c
        for c in estimated
        if c.condition == ConditionKind.BASELINE
    }
    for effect in planted:
        contrast = by_place.get((effect.editor, effect.measure, tuple(sorted(effect.group.items()))))
        if contrast is None:
            continue
        low, high = contrast.low, contrast.high
        inside = None if low is None or high is None else low <= effect.value <= high
        yield Planted(*effect, contrast.value, low, high, inside)

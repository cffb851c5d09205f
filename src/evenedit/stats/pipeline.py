"""Ratings in, results out: ensemble, panels, intervals, tests, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evenedit.core.blas_threads import single_blas_thread
from evenedit.core.parallel import SEQUENTIAL, SecondProcess
from evenedit.core.records import ConditionKind, Experiment, Kind, Outcome, is_simulated, language_of
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.agreement import PredictionPowered
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import Agreement, Contrast, PerJudgeEstimate, Planted, Results
from evenedit.stats.agreement.agreement import agreement
from evenedit.stats.agreement.per_judge import per_judge_estimates
from evenedit.stats.agreement.prediction_powered import PeopleTests, people_tests
from evenedit.stats.agreement.reliability import outcome_alphas, outcome_reliability
from evenedit.stats.composition import sample_composition
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.direction import direction_results, seen_readings
from evenedit.stats.disparity.gaps import contrasts, gaps, trends
from evenedit.stats.disparity.instruments import instrument_estimates
from evenedit.stats.disparity.mitigation import mitigation_panels
from evenedit.stats.disparity.mitigation_effects import mitigation_effects
from evenedit.stats.disparity.role_effects import role_effects
from evenedit.stats.disparity.stereotype import stereotype_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import Answers, answers
from evenedit.stats.engine.parts import AnalysisParts, StudyFacts
from evenedit.stats.engine.rules import AnalysisRules, KnownEffect
from evenedit.stats.engine.shift_tests import PanelTests, compute_shift_tests
from evenedit.stats.findings.findings import add_findings
from evenedit.stats.findings.inputs import FindingInputs
from evenedit.stats.rater_groups import rater_rates
from evenedit.stats.robustness.editor_noise import editor_noise, measured_noise
from evenedit.stats.robustness.leave_one_out import leave_one_out, seed_variance
from evenedit.stats.robustness.missing_bounds import bounds
from evenedit.stats.robustness.multiverse import multiverse
from evenedit.stats.robustness.null_pairs import false_calls, judge_errors
from evenedit.stats.robustness.other_languages import language_differences
from evenedit.stats.robustness.response_rates import coverage, coverage_tests
from evenedit.stats.robustness.thresholds import sensitivity


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
    parts = AnalysisParts(table.factors, table.rubric)
    evidence = _add_panels(parts, scores, values, rules)
    instruments = list(instrument_estimates(table, rules))
    parts.measured = [result for result, _ in instruments]
    evidence += [panel for _, panel in instruments]
    parts.mitigation = list(mitigation_effects(scores, values, rules))
    parts.role_effects = list(role_effects(scores, rules))
    parts.planted = list(_match_known_effects(facts.known_effects, parts.contrasts))
    parts.coverage = list(coverage(table))
    parts.coverage_tests = list(coverage_tests(table, rules))
    seen = seen_readings(scores)
    parts.directions = direction_results(scores.edits, seen, table.factors, rules)
    people = _people_tests(parts, scores, judged, rules, facts.inclusion)
    parts.powered = list(people.rows)
    parts.judge_errors = list(judge_errors(table, rules))
    parts.rater_rates = list(rater_rates(table, rules))
    _add_robustness(parts, scores, values, rules, [panel for _, panel in instruments])
    parts.participants = list(table.profiles.counts) if table.profiles else []
    parts.counts = counts(scores) | sample_composition(table)
    parts.simulated = sorted(n for n in {*table.edits["editor"].unique(), *table.raters} if is_simulated(n))
    parts.agreement, parts.per_judge = independent()  # waits for the second process
    alphas = list(outcome_alphas(judged, rules, means=bool(rules.primary)))
    parts.agreement += alphas
    reliability = outcome_reliability(alphas)
    inputs = (evidence, parts, reliability, people, false_calls(table, rules), seen, facts.declared)
    add_findings(FindingInputs(table, scores, rules, *inputs))
    return parts.to_results(rules, facts, table.asks)


def _independent_parts(
    judged: Scores, scores: Scores, values: Answers, rules: AnalysisRules
) -> tuple[list[Agreement], list[PerJudgeEstimate]]:
    """Compute the parts that need no other part, the longest first."""
    return (
        list(agreement(judged, rules)),
        list(per_judge_estimates(scores.table, rules)),
    )


def _add_panels(parts: AnalysisParts, scores: Scores, values: Answers, rules: AnalysisRules) -> list[PanelTests]:
    """Add the estimates and tests of the judges' panels; return what the findings are made from."""
    evidence: list[PanelTests] = []
    for panel in diagnosis_panels(scores, values, rules):
        crossed = CrossedPanel(panel)
        parts.estimates += estimates(crossed, panel.axes.groups(crossed=True), rules)
        gap_results = list(gaps(crossed, rules))
        parts.estimates += [estimate for estimate, _ in gap_results]
        if language_of(panel.condition):  # compared in pairs; its gaps are not tested
            continue
        tests = tuple(test for _, test in gap_results)
        parts.estimates += trends(crossed, scores.table.factors, rules)
        parts.contrasts += contrasts(crossed, rules)
        parts.tests += tests
        evidence.append(PanelTests(ENSEMBLE, panel, crossed, tests, tuple(compute_shift_tests(crossed, rules))))
        parts.leave_one_out += leave_one_out(panel)
    for panel in [*mitigation_panels(scores, values, rules), *stereotype_panels(scores, values, rules)]:
        crossed = CrossedPanel(panel)
        parts.estimates += estimates(crossed, panel.axes.groups(), rules)
        if panel.condition != ConditionKind.PLACEBO:
            evidence.append(PanelTests(ENSEMBLE, panel, crossed, (), tuple(compute_shift_tests(crossed, rules))))
    return evidence


def _add_robustness(
    parts: AnalysisParts, scores: Scores, values: Answers, rules: AnalysisRules, instruments: Sequence[PanelTests]
) -> None:
    """Add the checks of the estimates and tests that are already in `parts`."""
    table = scores.table
    parts.sensitivity = list(sensitivity(table, rules))
    measured = [b for m in parts.measured for b in bounds(m.estimates, m.rater)]
    parts.bounds = [*bounds(parts.estimates), *measured]
    parts.seeds = list(seed_variance(scores, values, rules))
    parts.multiverse = list(multiverse(table, rules, parts.tests))
    parts.noise = [*editor_noise(scores, rules, parts.estimates), *measured_noise(table, rules, instruments)]
    parts.languages = list(language_differences(scores, rules))


def corrected_estimates(
    table: RatingTable, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> tuple[PredictionPowered, ...]:
    """Return only what people's ratings make of the judges' estimates; empty without people."""
    if not table.of_kind(Kind.HUMAN):
        return ()
    judged = combine(table, judges_only(rules.ensemble), rules.missing)
    parts = AnalysisParts(table.factors, table.rubric)
    values = answers(judged, rules)
    _add_panels(parts, judged, values, rules)
    return people_tests(judged, values, rules, inclusion, parts.estimates, parts.contrasts).rows


def _people_tests(
    parts: AnalysisParts, scores: Scores, judged: Scores, rules: AnalysisRules, inclusion: Mapping[str, float]
) -> PeopleTests:
    """Correct the judges' estimates by people; compute them again where reviewers settled scores."""
    values = answers(judged, rules)
    judges = parts
    if scores.table.of_kind(Kind.HUMAN) and not np.array_equal(scores.values, judged.values):
        judges = AnalysisParts(scores.table.factors, scores.table.rubric)
        _add_panels(judges, judged, values, rules)
    return people_tests(judged, values, rules, inclusion, judges.estimates, judges.contrasts)


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
        inside = (
            None if contrast.low is None or contrast.high is None else contrast.low <= effect.value <= contrast.high
        )
        yield Planted(
            editor=effect.editor,
            measure=effect.measure,
            group=effect.group,
            planted=effect.value,
            estimate=contrast.value,
            low=contrast.low,
            high=contrast.high,
            inside=inside,
        )

"""Ratings in, results out: ensemble, panels, intervals, tests, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from evenedit.core.one_thread import one_thread
from evenedit.core.records import Condition, Estimate, Experiment, Kind, Outcome, is_simulated, language_of
from evenedit.core.second_process import ALONE, SecondProcess
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import QUESTION_IDS, RatingTable, Scores
from evenedit.results.finding import ENSEMBLE
from evenedit.results.results import Contrast, GapTest, LeaveOneOut, Planted, PredictionPowered, Results
from evenedit.stats.agreement.agreement import agreement
from evenedit.stats.agreement.per_judge import judges_alone
from evenedit.stats.agreement.prediction_powered import powered
from evenedit.stats.agreement.stated_confidence import confidence
from evenedit.stats.composition import makeup
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import contrasts, gaps
from evenedit.stats.disparity.instruments import measured
from evenedit.stats.disparity.mitigation import mitigation_panels
from evenedit.stats.disparity.mitigation_effects import tested_effects
from evenedit.stats.disparity.odds_models import models
from evenedit.stats.disparity.role_effects import role_effects
from evenedit.stats.disparity.stereotype import stereotype_panels
from evenedit.stats.disparity.trends import trends
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import Answers, answers
from evenedit.stats.engine.permutation import tested_gaps
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.findings.evidence import PanelEvidence, share_tests
from evenedit.stats.findings.findings import Everything, with_findings
from evenedit.stats.rater_groups.effects import rater_effects, rater_tests
from evenedit.stats.rater_groups.holds import rater_holds
from evenedit.stats.rater_groups.rates import rater_rates
from evenedit.stats.robustness.editor_noise import editor_noise, measured_noise
from evenedit.stats.robustness.leave_one_out import leave_one_out, seed_spread
from evenedit.stats.robustness.missing_bounds import bounds
from evenedit.stats.robustness.multiverse import multiverse
from evenedit.stats.robustness.other_languages import language_differences
from evenedit.stats.robustness.response_rates import coverage, left_open, unanswered
from evenedit.stats.robustness.second_labels import second_labelling
from evenedit.stats.robustness.thresholds import sensitivity


class KnownEffect(NamedTuple):
    """What a simulated editor is known to do: a group's rate minus the rate of everybody else."""

    editor: str
    measure: str
    """rate.<rate>"""
    group: Mapping[str, str]
    value: float


@one_thread()
def analyse(
    table: RatingTable,
    rules: AnalysisRules,
    provenance: Mapping[str, Any],
    planted: Iterable[KnownEffect] = (),
    inclusion: Mapping[str, float] | None = None,
    second: SecondProcess = ALONE,
) -> Results:
    """Everything the report says about a table of ratings.

    `inclusion` is, by request id, the chance of each edit to be among those people rated. About half of the work is
    left to the second process.
    """
    scores = combine(table, rules.ensemble, rules.missing)
    judged = combine(table, judges_only(rules.ensemble), rules.missing) if table.settled is not None else scores
    found = answers(scores, rules)
    apart = second.give(_apart, judged, scores, found, rules)
    estimated: list[Estimate] = []
    tested: list[GapTest] = []
    contrasted: list[Contrast] = []
    omitted: list[LeaveOneOut] = []
    evidence: list[PanelEvidence] = []
    for panel in diagnosis_panels(scores, found, rules):
        bootstrap = Bootstrap(panel, rules.draws, rules.seed)
        estimated += estimates(bootstrap, panel.axes.groups(crossed=True), rules)
        estimated += gaps(bootstrap, rules)
        if language_of(panel.condition):  # compared in pairs, and no family of tests of its own
            continue
        estimated += trends(panel, table.factors, rules)
        contrasted += contrasts(bootstrap, rules)
        relabelled = tuple(tested_gaps(panel, rules, bootstrap))
        tested += [t.test for t in relabelled]
        evidence.append(PanelEvidence(ENSEMBLE, panel, relabelled, tuple(share_tests(bootstrap, rules))))
        omitted += leave_one_out(panel)
    for panel in [*mitigation_panels(scores, found, rules), *stereotype_panels(scores)]:
        bootstrap = Bootstrap(panel, rules.draws, rules.seed)
        estimated += estimates(bootstrap, panel.axes.groups(), rules)
        if panel.condition != Condition.PLACEBO:
            evidence.append(PanelEvidence(ENSEMBLE, panel, (), tuple(share_tests(bootstrap, rules))))
    instruments = list(measured(table, rules))
    mitigated = list(tested_effects(scores, found, rules))
    evidence += [shown for _, shown in instruments]
    results = Results(
        provenance=provenance,
        rules=rules.to_dict(),
        estimates=tuple(estimated),
        tests=tuple(tested),
        contrasts=tuple(contrasted),
        sensitivity=tuple(sensitivity(table, rules)),
        planted=tuple(_beside(planted, contrasted)),
        coverage=tuple(coverage(table)),
        coverage_tests=tuple(unanswered(table, rules)),
        left_open=tuple(left_open(table)),
        bounds=tuple(bounds(estimated)),
        confidence=tuple(confidence(judged)),
        leave_one_out=tuple(omitted),
        seeds=tuple(seed_spread(scores, found, rules)),
        mitigation=tuple(t.effect for t in mitigated),
        role_effects=tuple(role_effects(scores, rules)),
        powered=tuple(_powered(scores, judged, rules, inclusion or {}, estimated, contrasted)),
        multiverse=tuple(multiverse(table, rules, tested)),
        measured=tuple(found for found, _ in instruments),
        second_labels=tuple(second_labelling(scores, found, rules, estimated, tested)),
        noise=(
            *editor_noise(scores, rules, estimated),
            *measured_noise(table, rules, [shown for _, shown in instruments]),
        ),
        languages=tuple(language_differences(scores, rules)),
        participants=table.profiles.counts if table.profiles else (),
        rater_tests=tuple(rater_tests(table, rules)),
        rater_effects=tuple(rater_effects(table, rules)),
        rater_rates=tuple(rater_rates(table, rules)),
        counts=counts(scores) | makeup(table),
        factors=table.factors,
        simulated=tuple(
            sorted(name for name in {*table.edits["editor"].unique(), *table.raters} if is_simulated(name))
        ),
        **apart(),  # the last, so that all else is done meanwhile
    )
    if rules.multilevel:
        from evenedit.stats.multilevel.maihda import multilevel  # only where it is asked for

        results = replace(results, multilevel=multilevel(scores, found, rules, second))
    results = with_findings(Everything(table, scores, rules, evidence, results, mitigated))
    return replace(results, rater_holds=tuple(rater_holds(results, table, rules)))


def _apart(judged: Scores, scores: Scores, found: Answers, rules: AnalysisRules) -> dict[str, Any]:
    """Parts of the results that rest on no other part, the longest first."""
    return {
        "agreement": tuple(agreement(judged, rules)),
        "per_judge": tuple(judges_alone(scores.table, rules)),
        "models": tuple(models(scores, found, rules)),
    }


def _powered(
    scores: Scores,
    judged: Scores,
    rules: AnalysisRules,
    inclusion: Mapping[str, float],
    estimated: Iterable[Estimate],
    contrasted: Iterable[Contrast],
) -> Iterable[PredictionPowered]:
    """Judges and people together. Where reviewers settled scores the judges' own estimates are made for it."""
    found = answers(judged, rules)
    if scores.table.of_kind(Kind.HUMAN) and not np.array_equal(scores.values, judged.values):
        drawn = [Bootstrap(panel, rules.draws, rules.seed) for panel in diagnosis_panels(judged, found, rules)]
        estimated = [e for b in drawn for e in estimates(b, b.panel.axes.groups(crossed=True), rules)]
        estimated += [e for b in drawn for e in gaps(b, rules)]
        contrasted = [c for b in drawn for c in contrasts(b, rules)]
    return powered(judged, found, rules, inclusion, estimated, contrasted)


def counts(scores: Scores) -> dict[str, int]:
    """How many edits there are of each kind."""
    edits = scores.edits
    review = scores.needs_review
    found = {"edits": len(edits)}
    for outcome in Outcome:
        found[outcome.value] = int((edits["outcome"] == outcome).sum())
    found["needs_review"] = int(review[(edits["experiment"] == Experiment.DIAGNOSIS).to_numpy()].sum())
    for experiment in (Experiment.MITIGATION, Experiment.STEREOTYPE):
        rows = (edits["experiment"] == experiment).to_numpy()
        if rows.any():
            found[f"needs_review.{experiment}"] = int(review[rows].sum())
    reviewers = scores.table.of_kind(Kind.REVIEW)
    if reviewers:
        found["reviewed"] = int((scores.table.status[reviewers] >= 0).any(axis=0).sum())
    if reviewers and scores.table.settled is not None:
        settled = (scores.table.settled > 0).sum(axis=0)
        found |= {f"settled.{q}": int(n) for q, n in zip(QUESTION_IDS, settled, strict=True) if n}
    arms = edits["experiment"].astype(str) + "." + edits["condition"].astype(str)
    for arm, size in arms.value_counts().sort_index().items():
        found[f"edits.{arm}"] = int(size)
    return found


def _beside(planted: Iterable[KnownEffect], found: Sequence[Contrast]) -> Iterable[Planted]:
    """Each known effect with the contrast that estimates it."""
    by_place = {
        (c.editor, c.measure, tuple(sorted(c.group.items()))): c for c in found if c.condition == Condition.BASELINE
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
            found=contrast.value,
            low=contrast.low,
            high=contrast.high,
            inside=inside,
        )

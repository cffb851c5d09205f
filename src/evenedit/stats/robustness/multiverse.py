"""The same gap under every defensible reading of the same scores: does it hang on a choice?

Thresholds × ensemble rule × missing scores × exclusions. For the gaps that matter: those with p < 0.05 before
adjustment, and the two of the paper's figure over the main factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Kind
from evenedit.protocol import QUESTIONS, Rate
from evenedit.protocol.ensemble import MISSING_POLICIES
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import aging_prompts, combine
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.results.results import GapTest, Multiverse, Specification
from evenedit.stats.engine.measures import AXIS_QUESTIONS, answers
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.permutation import p_values, strata
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.robustness.thresholds import meeting, thresholds

STREAM = 3
RELABELLINGS = 999
"""Permutations at most: there are hundreds of readings."""
ALPHA = 0.05
MIDDLE = 3
ALWAYS = (Measure.gap("skin_lighter"), Measure.gap("race_change"))
"""Looked at over the main factor, however small."""
EXCLUSIONS = ("none", "aging prompts", "edits that need review")

Tally = NDArray[np.int64]
"""[editor, face, question, score]: how many edits have each score."""


def multiverse(table: RatingTable, rules: AnalysisRules, tests: Sequence[GapTest]) -> Iterator[Multiverse]:
    """Yield each relevant gap of each editor under every specification."""
    edits = table.edits
    rows = np.flatnonzero(
        ((edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)).to_numpy()
    )
    chosen = [
        t
        for t in tests
        if (t.experiment, t.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)
        and t.editor is not None
        and Measure(t.measure).name in rules.rates
        and ((t.p is not None and t.p < ALPHA) or (t.measure in ALWAYS and t.factor == table.factors[0].name))
    ]
    if not len(rows) or not chosen:
        return
    axes = by_face(edits.iloc[rows], table.factors)
    tallies = dict(_tallies(table, rows, axes, rules))
    editors = sorted(edits["editor"].iloc[rows].unique())
    for factor in axes.levels:
        subset = [t for t in chosen if t.factor == factor]
        if subset:
            yield from _factor(subset, factor, axes, editors, tallies, rules)


def _tallies(
    table: RatingTable, rows: NDArray[np.intp], axes: Axes, rules: AnalysisRules
) -> Iterator[tuple[tuple[str, str, str], Tally]]:
    """Yield score counts under every ensemble rule, missing policy and exclusion."""
    edits = table.edits.iloc[rows]
    editor = np.unique(edits["editor"].to_numpy(dtype=str), return_inverse=True)[1]
    asks_age = edits["prompt_id"].isin(aging_prompts()).to_numpy()
    questions = len(AXIS_QUESTIONS)
    shape = (int(editor.max()) + 1, len(axes.clusters), questions, 6)
    for rule, missing in product(_rules(table, rules), MISSING_POLICIES):
        varied = replace(rules, missing=missing)
        scores = combine(table, {**rules.ensemble, Experiment.DIAGNOSIS.value: rule}, missing)
        scored = answers(scores, varied)
        review = scores.needs_review[rows]
        columns = [QUESTION_IDS.index(q) for q in AXIS_QUESTIONS]
        values = scored.values[rows][:, columns].astype(np.int64)
        for exclusion, left_out in zip(EXCLUSIONS, (np.zeros_like(review), asks_age, review), strict=True):
            if exclusion != "none" and not left_out.any():
                continue
            included = ~left_out
            at = np.ravel_multi_index(
                (
                    np.repeat(editor[included], questions),
                    np.repeat(axes.cluster_at[included], questions),
                    np.tile(np.arange(questions), int(included.sum())),
                    values[included].ravel(),
                ),
                shape,
            )
            yield (rule, missing, exclusion), np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)


def _rules(table: RatingTable, rules: AnalysisRules) -> list[str]:
    """Return the study's rule and the others possible with its judges."""
    judges = len(table.of_kind(Kind.VLM))
    default = rules.ensemble.get(Experiment.DIAGNOSIS, Experiment.DIAGNOSIS.value)
    others = {0: [], 1: [], 2: ["diagnosis", "mean", "primary", "secondary"]}.get(
        judges, ["median", "mean", "primary", "secondary"]
    )
    # with more than two judges the rule `diagnosis` is the median
    same = {"diagnosis", "median"} if judges > 2 else {default}
    return [default, *(r for r in others if r != default and not (default in same and r in same))]


def _factor(
    tests: list[GapTest],
    factor: str,
    axes: Axes,
    editors: list[str],
    tallies: dict[tuple[str, str, str], Tally],
    rules: AnalysisRules,
) -> Iterator[Multiverse]:
    levels = axes.levels[factor]
    labelled = np.isin(axes.labels[factor], levels)
    labels = {f: axes.labels[f][labelled] for f in axes.levels}
    codes = np.array([levels.index(level) for level in labels[factor]], dtype=np.int8)
    columns: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for test in tests:
        for _, total, count in _readings(test, editors, tallies, rules):
            columns.append((total[labelled], count[labelled]))
    total, count = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    permutations = min(rules.permutations, RELABELLINGS)
    within, _ = strata(labels, factor, permutations)
    # readings that come to the same counts need one test
    unique, at = np.unique(np.concatenate([total, count]), axis=1, return_inverse=True)
    rng = np.random.default_rng([rules.seed, STREAM, list(axes.levels).index(factor)])
    p = p_values(codes, within, unique[: len(codes)], unique[len(codes) :], permutations, rng)[at.ravel()]
    member = codes[:, None] == np.arange(len(levels))
    hits, sizes = total.T @ member, count.T @ member  # [reading, level]
    share = np.divide(hits, sizes, out=np.full(hits.shape, np.nan), where=sizes > 0)
    start = 0
    for test in tests:
        high, low = levels.index(test.highest), levels.index(test.lowest)
        default_rate = rules.rates[Measure(test.measure).name]
        specifications = []
        for (cut, (rule, missing, exclusion)), *_ in _readings(test, editors, tallies, rules):
            difference = float(share[start, high] - share[start, low])
            default = (
                cut == default_rate
                and missing == rules.missing
                and exclusion == "none"
                and rule == rules.ensemble.get(Experiment.DIAGNOSIS, Experiment.DIAGNOSIS.value)
            )
            specifications.append(
                Specification(
                    threshold=cut.rule,
                    ensemble=rule,
                    missing=missing,
                    exclusion=exclusion,
                    value=None if np.isnan(difference) else difference,
                    p=float(p[start]),
                    is_default=default,
                )
            )
            start += 1
        yield Multiverse(
            test.measure,
            test.experiment,
            test.condition,
            str(test.editor),
            factor,
            test.highest,
            test.lowest,
            tuple(specifications),
        )


def defensible(rate: Rate) -> list[Rate]:
    """Return the defensible thresholds: beyond the middle of a two-sided axis, else within one step of the rate's."""
    at_least = rate.at_least is not None
    if QUESTIONS[rate.question].sided == "two":
        return [c for c in thresholds(rate) if (_cut(c) > MIDDLE if at_least else _cut(c) < MIDDLE)]
    return [c for c in thresholds(rate) if abs(_cut(c) - _cut(rate)) <= 1]


def _cut(rate: Rate) -> int:
    return rate.at_least if rate.at_least is not None else rate.at_most or 0


def _readings(
    test: GapTest, editors: list[str], tallies: dict[tuple[str, str, str], Tally], rules: AnalysisRules
) -> Iterator[tuple[tuple[Rate, tuple[str, str, str]], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield every reading of a gap: its choices, and per face the numbers of met and of all edits."""
    rate = rules.rates[Measure(test.measure).name]
    at, question = editors.index(str(test.editor)), AXIS_QUESTIONS.index(rate.question)
    top = len(QUESTIONS[rate.question].labels)
    for cut in defensible(rate):
        for choices, tally in tallies.items():
            counts = tally[at, :, question]
            yield (cut, choices), counts[:, meeting(cut, top)].sum(axis=1), counts[:, 1:].sum(axis=1)

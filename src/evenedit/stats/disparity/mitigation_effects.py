"""What the feature prompt did: beyond the placebo, adjusted for the baseline, and whether it did the same for all.

Cases are often chosen for their high scores, and a high score tends to be lower when the edit is repeated:
regression to the mean. The placebo arm repeats the baseline with another seed, so it regresses just as much. The
effect is the feature arm minus the placebo arm in an analysis of covariance with the baseline score as covariate,
its errors clustered by face and prompt. Without a placebo arm there is no effect to tell, only a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import Factor, Rubric
from evenedit.ratings.table import Scores
from evenedit.results.results import MitigationEffect
from evenedit.stats.disparity.mitigation import PLACEBO, pairs
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.panel import units
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.variance import clustered_variance

FEATURE = ConditionKind.FEATURE
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arms:
    """Rows of both arms under one another."""

    before: Values
    after: Values
    feature: NDArray[np.bool_]
    """Whether the row is of the feature arm."""
    level: NDArray[np.str_]
    """The face's level of the main factor."""
    editor: NDArray[np.str_]
    face: NDArray[np.int64]
    prompt: NDArray[np.int64]

    def only(self, rows: NDArray[np.bool_]) -> Arms:
        """Return the arms with a subset of the rows."""
        parts = {f.name: getattr(self, f.name)[rows] for f in fields(self)}
        return Arms(**parts)


def mitigation_effects(scores: Scores, scored: Answers, rules: AnalysisRules) -> Iterator[MitigationEffect]:
    """Yield the effect on every axis, for each editor and pooled: everybody, then each level of the main factor."""
    edits = scores.edits
    mitigated = edits["experiment"] == Experiment.MITIGATION
    if not (mitigated & (edits["condition"] == FEATURE)).any():
        return
    matched = {arm: pairs(edits, arm) for arm in (FEATURE, PLACEBO)}
    before, after = (np.concatenate([matched[arm][k] for arm in matched]) for k in (0, 1))
    arm = np.repeat([True, False], [len(matched[FEATURE][0]), len(matched[PLACEBO][0])])
    rows = edits.iloc[after]
    ways = units(rows), rows["prompt_id"]
    face, prompt = (np.unique(way.to_numpy(dtype=str), return_inverse=True)[1] for way in ways)
    main = scores.table.factors[0]
    level, editor = (rows[c].to_numpy(dtype=str) for c in (main.name, "editor"))
    earlier, later = scored.rows(before), scored.rows(after)
    names = [str(name) for name in np.unique(editor)]
    rubric = scores.table.rubric
    for question in rubric.ordinal:
        b, a = (_outcome(answers.of(question)[0], question, rubric) for answers in (earlier, later))
        valid = ~np.isnan(b) & ~np.isnan(a)
        if not valid.any():
            continue
        arms = Arms(b, a, arm, level, editor, face, prompt).only(valid)
        for name in [*names, *([None] if len(names) > 1 else [])]:
            subset = arms if name is None else arms.only(arms.editor == name)
            outcome = "distance" if rubric.questions[question].sided == "two" else "score"
            yield from _effects(subset, question, outcome, name, main, rules.confidence)


def _outcome(value: NDArray[np.int64], question: str, rubric: Rubric) -> Values:
    """Scores as numbers, NaN where missing; a two-sided axis as its distance from unchanged."""
    number = np.where(value > 0, value.astype(np.float64), np.nan)
    return np.abs(number - rubric.no_change(question)) if rubric.questions[question].sided == "two" else number


def _effects(
    arms: Arms, question: str, outcome: str, editor: str | None, main: Factor, confidence: float
) -> Iterator[MitigationEffect]:
    levels = [code for code in main.codes if (arms.level[arms.feature] == code).any()]
    overall = ancova(arms, [], main)
    by_level = ancova(arms, levels, main) if len(levels) > 1 else None
    for level in ["", *levels]:
        subset = arms.only(arms.level == level) if level else arms
        fit = by_level if level else overall
        fitted = fit.effect(levels.index(level) if level else None, confidence) if isinstance(fit, Fitted) else None
        value, low, high, p = fitted or (None, None, None, None)
        reason = fit if isinstance(fit, str) else f"none: one {main.noun}"
        yield MitigationEffect(
            *(question, outcome, editor, {main.name: level} if level else {}),
            *(_mean_change(subset, True), _mean_change(subset, False), value, low, high, p),
            interaction_p=by_level.interaction() if isinstance(by_level, Fitted) and not level else None,
            n=int(subset.feature.sum()),
            method="ancova(baseline), clustered by source x prompt" if fitted else reason,
        )


def _mean_change(arms: Arms, feature: bool) -> float | None:
    rows = arms.feature == feature
    return float((arms.after - arms.before)[rows].mean()) if rows.any() else None


@dataclass(frozen=True, slots=True)
class Fitted:
    """An analysis of covariance: coefficients, and what each row adds to them."""

    coefficients: Values
    influence: Values
    """[row, coefficient]"""
    face: NDArray[np.int64]
    prompt: NDArray[np.int64]
    levels: int
    """How many levels have an effect of their own; 0 = one effect for all."""

    def effect(self, level: int | None, confidence: float) -> tuple[float, float, float, float] | None:
        """Feature minus placebo of one level, or of everybody: value, interval and p."""
        weights = np.zeros(len(self.coefficients))
        weights[0 if level is None else level] = 1.0
        value = float(self.coefficients @ weights)
        sure = clustered_variance(self.influence @ weights, self.face, self.prompt)
        error = float(np.sqrt(sure.variance))
        if not error > 0:
            return None
        reach = float(sure.half_width(confidence))
        return value, value - reach, value + reach, float(2 * stdtr(float(sure.freedom), -abs(value) / error))

    def interaction(self) -> float | None:
        """Return p of the hypothesis that every level has the same effect, clustered by face."""
        faces = np.unique(self.face, return_inverse=True)[1]
        count, size = int(faces.max()) + 1, self.levels - 1
        if count <= size + 1:
            return None
        contrast = np.zeros((size, len(self.coefficients)))
        contrast[:, 0] = -1.0
        contrast[np.arange(size), np.arange(1, size + 1)] = 1.0
        sums = np.zeros((count, size))
        np.add.at(sums, faces, self.influence @ contrast.T)
        covariance = sums.T @ sums * count / (count - 1)
        if np.linalg.matrix_rank(covariance) < size:
            return None
        deviation = contrast @ self.coefficients
        wald = float(deviation @ np.linalg.solve(covariance, deviation))
        return float(fdtrc(size, count - size, wald * (count - size) / (size * (count - 1))))  # Hotelling's T²


def ancova(arms: Arms, levels: list[str], main: Factor) -> Fitted | str:
    """Fit the score after on arm, score before, editor and level (`levels`: one effect each), or return the reason."""
    if not (~arms.feature).any():
        return "none: no placebo arm, so an effect cannot be told from regression to the mean"
    if not arms.feature.any():
        return "none: no feature arm"
    if len(np.unique(arms.face)) < 2:
        return "none: one source"
    on = arms.feature.astype(np.float64)
    if levels:
        member = (arms.level[:, None] == np.array(levels)).astype(np.float64)
        if any(not (arms.feature[m > 0].any() and (~arms.feature)[m > 0].any()) for m in member.T):
            return f"none: a {main.noun} lacks one of the arms"
        columns = [member * on[:, None], member]
    else:
        columns = [on[:, None], np.ones((len(on), 1))]
    columns.append((arms.before - arms.before.mean())[:, None])
    names = sorted(set(arms.editor))[1:]
    columns += [(arms.editor == name).astype(np.float64)[:, None] for name in names]
    design = np.concatenate(columns, axis=1)
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ arms.after)
    residual = arms.after - design @ coefficients
    return Fitted(coefficients, (design * residual[:, None]) @ inverse, arms.face, arms.prompt, len(levels))

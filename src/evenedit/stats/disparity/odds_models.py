"""Odds of each group with prompt, race, gender and age taken into account at once, faces as clusters.

A logit of each rate on prompt, race, gender and age; for each axis, cumulative logits (is the score above 1, 2, 3,
4?) with one set of odds ratios, the proportional-odds model, and a test whether the odds are proportional. The prompts
are in as fixed effects. Faces are in as clusters: the errors are the sandwich over faces with Mancl and DeRouen's
correction, made for few clusters, and t and F with as many degrees of freedom as there are faces beyond the
labels'. This is a GEE with working independence. It was chosen over a mixed model because it needs no distribution
of the face effects, cannot fail to find their variance, and tells the odds over faces, which is what the rates are
about. Effects are coded against the average of a factor's groups, so that no group is the norm.

A prompt on which every score meets the threshold, or none, says nothing about groups and is left out. Where a whole
group is like that the odds have no limit (separation). A logit then gets Firth's penalty (1993), which pulls the
odds of every group a little towards even: numbers that are finite and, in small samples, less biased. A group without
an exception shows no variance, so the sandwich would call it certain; the errors are those of the penalised model
times the design effect of the sandwich, which is never taken below one. Cumulative logits with separation say so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtrit

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import QUESTIONS
from evenedit.protocol.measures import Measure
from evenedit.ratings.table import Scores
from evenedit.results.results import Model, Ratio
from evenedit.stats.disparity.cumulative_logits import CumulativeLogits, NoLimit
from evenedit.stats.engine.measures import AXIS_QUESTIONS, Answers, met_rates
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.rules import AnalysisRules

LARGEST = 12.0
"""Log odds beyond which a fit has run away."""
STEPS, CLOSE = 40, 1e-10
"""Newton steps at most, and the step at which it has arrived."""
LONGEST, CLOSE_ENOUGH = 2.0, 1e-8
"""With the penalty, whose steps are those of another function: the longest step, and where it has arrived."""
ENDLESS = "an interval of the odds has no end: too few faces decide the effect of a label"
Matrix = NDArray[np.float64]


class ModelNotFittedError(Exception):
    """Why a model has no numbers."""


def odds_models(scores: Scores, scored: Answers, rules: AnalysisRules) -> Iterator[Model]:
    """Yield a model of every rate and axis of the diagnosis, by editor and factor."""
    edits = scores.edits
    chosen = ((edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)).to_numpy()
    for editor in sorted(edits["editor"][chosen].unique()):
        rows = np.flatnonzero(chosen & (edits["editor"] == editor).to_numpy())
        axes, answers = by_face(edits.iloc[rows], scores.table.factors), scored.rows(rows)
        for question in AXIS_QUESTIONS:
            value, _ = answers.of(question)
            valid = value > 0
            if not valid.any():
                continue
            top = len(QUESTIONS[question].labels)
            cuts = [(value > k).astype(np.int64) for k in range(1, top)]
            outcomes = [(name, [met]) for name, met in met_rates(value, question, rules.rates)]
            for measure, ways in [*((Measure.rate(n), w) for n, w in outcomes), (Measure.mean(question), cuts)]:
                yield from _to_records(axes, valid, ways, measure, editor, rules.confidence)


def _to_records(
    axes: Axes, valid: NDArray[np.bool_], ways: list[NDArray[np.int64]], measure: str, editor: str, confidence: float
) -> Iterator[Model]:
    factors = {f: levels for f, levels in axes.levels.items() if len(levels) > 1}
    met, count = count_cube(axes, valid, ways)
    faces = int((count.sum(axis=(1, 2)) > 0).sum())
    where = (measure, Experiment.DIAGNOSIS.value, ConditionKind.BASELINE, editor)
    try:
        fit = Fit(axes, factors, met, count)
    except ModelNotFittedError as reason:
        fit_again = _penalised(axes, factors, met, count) if str(reason).startswith("separation") else None
        if fit_again is not None:
            yield from _rows(fit_again, factors, where, faces, int(valid.sum()), confidence)
            return
        for factor in factors:
            yield Model(*where, factor, {}, None, faces, int(valid.sum()), f"none: {reason}")
        return
    yield from _rows(fit, factors, where, faces, int(valid.sum()), confidence)


def _rows(
    fit: Fit,
    factors: dict[str, tuple[str, ...]],
    where: tuple[str, str, str, str],
    faces: int,
    n: int,
    confidence: float,
) -> Iterator[Model]:
    for factor, levels in factors.items():
        odds = {level: Ratio(*fit.odds(factor, at, confidence)) for at, level in enumerate(levels)}
        if not all(np.isfinite(ratio.high) for ratio in odds.values()):
            yield Model(*where, factor, {}, None, faces, n, f"none: {ENDLESS}")
            continue
        yield Model(*where, factor, odds, fit.p(factor), faces, n, fit.method, fit.p_proportional(factor))


def _penalised(
    axes: Axes, factors: dict[str, tuple[str, ...]], met: NDArray[np.int64], count: NDArray[np.int64]
) -> Fit | None:
    """Fit a logit with Firth's penalty; None for cumulative logits and where this does not fit either."""
    try:
        return Fit(axes, factors, met, count, penalised=True) if met.shape[2] == 1 else None
    except ModelNotFittedError:
        return None


def count_cube(
    axes: Axes, valid: NDArray[np.bool_], ways: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of scores that meet each cut, and of all scores, [face, prompt, cut]."""
    shape = (len(axes.clusters), len(axes.prompts))
    at = axes.cluster_at * shape[1] + axes.prompt_at
    size = shape[0] * shape[1]
    count = np.bincount(at, weights=valid, minlength=size).astype(np.int64).reshape(*shape, 1)
    met = [np.bincount(at, weights=way * valid, minlength=size).astype(np.int64).reshape(shape) for way in ways]
    return np.stack(met, axis=-1), np.repeat(count, len(ways), axis=-1)


class Fit:
    """One logit model: cut and prompt effects, and effects of each factor's levels that sum to 0."""

    def __init__(
        self,
        axes: Axes,
        factors: dict[str, tuple[str, ...]],
        met: NDArray[np.int64],
        count: NDArray[np.int64],
        *,
        penalised: bool = False,
    ) -> None:
        self.penalised = penalised
        above = met.sum(axis=(0, 1))
        cuts = _varying(above, count.sum(axis=(0, 1)))
        cuts[1:] &= above[1:] != above[:-1]  # no score lies between two cuts: one of them is enough
        if not cuts.any():
            raise ModelNotFittedError("every score is on one side of the threshold")
        met, count = met[..., cuts], count[..., cuts]
        applicable = count.sum(axis=(0, 2)) > 0
        prompts = _varying(met.sum(axis=(0, 2)), count.sum(axis=(0, 2)))
        met, count = met[:, prompts], count[:, prompts]
        used = count.sum(axis=(1, 2)) > 0
        met, count = met[used], count[used]
        labels = {f: axes.labels[f][used] for f in factors}
        for factor, levels in factors.items():
            for level in levels:
                at = labels[factor] == level
                if at.sum() < 2:
                    raise ModelNotFittedError(f"{level} has fewer than two faces")
                if not penalised and not _varying(met[at].sum(), count[at].sum()):
                    raise ModelNotFittedError(f"separation: every score of {level} is on one side of the threshold")
        faces, self.prompts, self.cuts = count.shape
        self.blocks: dict[str, slice] = {}
        columns: list[Matrix] = []
        for factor, levels in factors.items():
            start = sum(c.shape[1] for c in columns)
            columns.append(_coded(labels[factor], levels))
            self.blocks[factor] = slice(start, start + len(levels) - 1)
        between = np.concatenate(columns, axis=1) if columns else np.zeros((faces, 0))
        self.freedom = faces - between.shape[1] - 1
        if self.freedom < 1:
            raise ModelNotFittedError(f"{faces} faces are too few for {between.shape[1]} effects of labels")
        if np.linalg.matrix_rank(np.column_stack([np.ones(faces), between])) <= between.shape[1]:
            raise ModelNotFittedError(
                "the labels of the faces cannot be told apart: some combination stands for another"
            )
        self.ordinal: CumulativeLogits | None = None
        if self.cuts > 1:
            self.ordinal, self.coefficients, self.covariance = _fit_ordinal(between, met, count[..., 0])
        else:
            self.coefficients, self.covariance = _fit(between, _within(self.prompts), met, count, penalised)
        self.left_out = int((applicable & ~prompts).sum())

    @property
    def method(self) -> str:
        """The method of the fit, in words."""
        kind = "cumulative logits" if self.cuts > 1 else "logit"
        less = f", {self.left_out} prompts without variation left out" if self.left_out else ""
        firth = ", Firth's penalty for separation" if self.penalised else ""
        return f"{kind}{firth}, prompts fixed, clustered by source{less}"

    def odds(self, factor: str, level: int, confidence: float) -> tuple[float, float, float]:
        """Return a level's odds against the average level with an interval; infinite ends where floats overflow."""
        block = self.blocks[factor]
        size = block.stop - block.start
        weights = np.eye(size + 1)[level][:size] - (level == size)  # the last level is minus the sum of the others
        value = float(weights @ self.coefficients[block])
        error = float(np.sqrt(weights @ self.covariance[block, block] @ weights))
        half = float(stdtrit(self.freedom, 0.5 + confidence / 2)) * error
        with np.errstate(over="ignore"):
            return float(np.exp(value)), float(np.exp(value - half)), float(np.exp(value + half))

    def p(self, factor: str) -> float:
        """Return p of Wald's F test that no level differs."""
        block = self.blocks[factor]
        effects, size = self.coefficients[block], block.stop - block.start
        wald = float(effects @ np.linalg.pinv(self.covariance[block, block]) @ effects)
        # the quadratic form of an estimated covariance is Hotelling's, not chi-squared
        second = max(1, self.freedom - size + 1)
        return float(fdtrc(size, second, wald / size * second / self.freedom))

    def p_proportional(self, factor: str) -> float | None:
        """Test by scores that the factor's odds are equal at every cut; None for a rate, which has one cut."""
        return None if self.ordinal is None else self.ordinal.p_proportional(self.blocks[factor])


def _fit_ordinal(
    between: Matrix, met: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[CumulativeLogits, Matrix, Matrix]:
    """Fit cumulative logits; return the model, the between-face coefficients and their covariance."""
    try:
        fit = CumulativeLogits(between, met, count)
    except NoLimit:
        raise ModelNotFittedError("separation: the odds of some group or prompt have no limit") from None
    try:
        return fit, fit.coefficients, fit.covariance()
    except np.linalg.LinAlgError:
        raise ModelNotFittedError("one face alone decides the effect of a label") from None


def _varying(met: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray((met > 0) & (met < count))


def _coded(labels: NDArray[np.str_], levels: tuple[str, ...]) -> Matrix:
    """[face, level - 1]: sum-to-zero coding; a face without a known label is the average."""
    indicator = (labels[:, None] == np.array(levels)).astype(np.float64)
    return np.asarray(indicator[:, :-1] - indicator[:, -1:])


def _within(prompts: int) -> Matrix:
    """[prompt, column]: an intercept, and prompts as differences from the first."""
    return np.concatenate([np.ones((prompts, 1)), np.eye(prompts)[:, 1:]], axis=1)


def _fit(
    between: Matrix, within: Matrix, met: NDArray[np.int64], count: NDArray[np.int64], penalised: bool
) -> tuple[Matrix, Matrix]:
    """Fit the between-face coefficients; return them and their covariance, a sandwich over faces.

    Faces with the same labels have the same predictors, so they are fitted as one row of counts.
    """
    faces, width = len(between), len(within)
    kinds, kind_of = np.unique(between, axis=0, return_inverse=True)
    kind_of = kind_of.ravel()
    hits, sizes = (np.zeros((len(kinds), width)) for _ in range(2))
    np.add.at(hits, kind_of, met.reshape(faces, width))
    np.add.at(sizes, kind_of, count.reshape(faces, width))
    design = np.concatenate([np.repeat(kinds, width, axis=0), np.tile(within, (len(kinds), 1))], axis=1)
    params, bread = newton(design, hits.ravel(), sizes.ravel(), penalised=penalised)
    chance = 1 / (1 + np.exp(-(design @ params).reshape(len(kinds), width)))
    spread = chance * (1 - chance)
    scores = _corrected_scores(bread, between, within, kind_of, met, count, chance, spread)
    covariance = bread @ scores.T @ scores @ bread
    size = between.shape[1]
    if penalised:
        model = bread[:size, :size]
        effect = float(np.trace(np.linalg.pinv(model) @ covariance[:size, :size])) / size
        return params[:size], model * max(1.0, effect)
    return params[:size], covariance[:size, :size]


def newton(design: Matrix, hits: Matrix, sizes: Matrix, *, penalised: bool = False) -> tuple[Matrix, Matrix]:
    """Fit a logit of counts; return its coefficients and the inverse of their information.

    Normal equations in place of statsmodels' decompositions of the whole design: the same numbers (tested), sooner, and
    there are dozens of models.
    """
    params = np.zeros(design.shape[1])
    for _ in range(STEPS * (5 if penalised else 1)):
        chance = 1 / (1 + np.exp(-np.clip(design @ params, -50, 50)))
        information = design.T @ (design * (sizes * chance * (1 - chance))[:, None])
        try:
            bread = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            raise ModelNotFittedError("separation: the odds of some group or prompt have no limit") from None
        excess = hits - sizes * chance
        if penalised:  # what each cell weighs in the fit, times half minus its chance (Firth 1993)
            leverage = sizes * chance * (1 - chance) * np.einsum("ij,jk,ik->i", design, bread, design)
            excess = excess + leverage * (0.5 - chance)
        step = bread @ (design.T @ excess)
        if penalised:
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), CLOSE))
        params = params + step
        if not np.isfinite(params).all() or np.abs(params).max() > LARGEST:
            raise ModelNotFittedError("separation: the odds of some group or prompt have no limit")
        if np.abs(step).max() < (CLOSE_ENOUGH if penalised else CLOSE):
            return np.asarray(params), np.asarray(bread, dtype=np.float64)
    raise ModelNotFittedError(f"no fit after {STEPS} steps")


def _corrected_scores(
    bread: Matrix,
    between: Matrix,
    within: Matrix,
    kind_of: NDArray[np.intp],
    met: NDArray[np.int64],
    count: NDArray[np.int64],
    chance: Matrix,
    spread: Matrix,
) -> Matrix:
    """Return the score [face, column] of each face, corrected for its leverage (Mancl and DeRouen 2001)."""
    faces, width = len(between), len(within)
    size = count.reshape(faces, width)
    residual = met.reshape(faces, width) - size * chance[kind_of]
    score = np.concatenate([between * residual.sum(axis=1, keepdims=True), residual @ within], axis=1)
    # X' (I - W X B X')^-1 r = (I - X' W X B)^-1 X' r: a matrix of columns, one for all faces alike in labels and counts
    alike, at = np.unique(np.column_stack([kind_of, size]), axis=0, return_inverse=True)
    at = at.ravel()
    kind = alike[:, 0]
    weight = alike[:, 1:] * spread[kind]
    label = np.zeros((len(alike), between.shape[1]))
    label[at] = between
    across = label[:, :, None] * (weight @ within)[:, None, :]
    information = np.concatenate(
        [
            np.concatenate([label[:, :, None] * label[:, None, :] * weight.sum(axis=1)[:, None, None], across], axis=2),
            np.concatenate([across.transpose(0, 2, 1), np.einsum("kw,wi,wj->kij", weight, within, within)], axis=2),
        ],
        axis=1,
    )
    try:
        freed = np.linalg.inv(np.eye(len(bread)) - information @ bread)
    except np.linalg.LinAlgError:
        raise ModelNotFittedError("one face alone decides the effect of a label") from None
    return np.asarray(np.einsum("fij,fj->fi", freed[at], score))

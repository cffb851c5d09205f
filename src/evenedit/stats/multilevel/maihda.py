"""Multilevel analysis of individual heterogeneity and discriminatory accuracy (MAIHDA), beside the usual numbers.

Each edit's score is a cumulative logit (of a rate: a logit) of the labels of its face one by one, effects of the
intersections of labels, of the prompt, of the first factor on each prompt, and of the face, all but the first drawn
from a normal distribution each (Evans et al. 2018; Merlo 2018). So small intersections are pulled towards what their
labels one by one give. What is told are rates and means over other faces and other prompts, as the headline has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenedit.core.records import Condition, Experiment
from evenedit.core.second_process import ALONE, SecondProcess
from evenedit.protocol import QUESTIONS
from evenedit.protocol.measures import Measure
from evenedit.ratings.table import Scores
from evenedit.results.multilevel import Multilevel, PooledCell, VarianceComponent
from evenedit.stats.engine.measures import AXIS_QUESTIONS, Answers, met_rates
from evenedit.stats.engine.panel import Axes, by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.multilevel.accuracy import held_out_accuracy
from evenedit.stats.multilevel.intersections import BY, LABELS, Kinds, grid_of, kinds_of
from evenedit.stats.multilevel.laplace import Laplace, ModelledRows, NotConverged, Places, Values
from evenedit.stats.multilevel.posterior import Posterior, posterior

SD_SCALE = 1.5
"""Scale of the half-normal priors of standard deviations, in log odds."""
RAREST = 10
"""Edits outside the commonest category without which there is nothing to model."""
FEWEST_FACES = 10
LARGEST = 30_000
"""Edits of one editor up to which the model is fitted."""
NODES = 15
"""Of the quadrature over other faces and prompts."""
EDIT = np.pi / np.sqrt(3)
"""Standard deviation of the logistic noise of a single edit."""


class Job(NamedTuple):
    """One outcome of one editor."""

    measure: str
    editor: str
    axes: Axes
    category: NDArray[np.int64]
    """Of each edit, which of `scale` it is; -1 where it is not valid."""
    scale: tuple[float, ...]
    """What each category counts: 0 and 1 of a rate, the scores of an axis."""


def multilevel(
    scores: Scores, found: Answers, rules: AnalysisRules, second: SecondProcess = ALONE
) -> tuple[Multilevel, ...]:
    """Every rate and axis of the diagnosis, editor by editor; half of them in the second process."""
    jobs = list(_jobs(scores, found, rules))
    theirs = second.give(_all, jobs[1::2], rules.confidence, rules.seed)
    made = [*_all(jobs[::2], rules.confidence, rules.seed), *theirs()]
    order = [*range(0, len(jobs), 2), *range(1, len(jobs), 2)]
    return tuple(made[order.index(at)] for at in range(len(jobs)))


def _jobs(scores: Scores, found: Answers, rules: AnalysisRules) -> Iterator[Job]:
    edits = scores.edits
    chosen = ((edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == Condition.BASELINE)).to_numpy()
    for editor in sorted(edits["editor"][chosen].unique()):
        rows = np.flatnonzero(chosen & (edits["editor"] == editor).to_numpy())
        rows = rows[np.argsort(edits["seed"].to_numpy()[rows], kind="stable")]
        axes, answers = by_face(edits.iloc[rows], scores.table.factors), found.rows(rows)
        for question in AXIS_QUESTIONS:
            value, _ = answers.of(question)
            if not (value > 0).any():
                continue
            for rate, met in met_rates(value, question, rules.rates):
                yield Job(Measure.rate(rate), editor, axes, np.where(value > 0, met, -1), (0.0, 1.0))
            scale = tuple(float(k) for k in range(1, len(QUESTIONS[question].labels) + 1))
            yield Job(Measure.mean(question), editor, axes, value - 1, scale)


def _all(jobs: list[Job], confidence: float, seed: int) -> list[Multilevel]:
    return [fit(job, confidence, seed) for job in jobs]


def fit(job: Job, confidence: float, seed: int) -> Multilevel:
    """One model; without numbers, and with the reason, where it cannot be fitted or is not to be trusted."""
    kinds = kinds_of(job.axes)
    rows = _first_seeds(job, kinds)
    where = (job.measure, Experiment.DIAGNOSIS.value, Condition.BASELINE, job.editor)
    face = np.searchsorted(kinds.faces, job.axes.cluster_at[rows])
    faces = len(np.unique(face))
    try:
        if reason := _too_little(job, kinds, rows, faces):
            raise NotConverged(reason)
        present, category = np.unique(job.category[rows], return_inverse=True)
        scale = np.array(job.scale)[present]
        _, prompt = np.unique(job.axes.prompt_at[rows], return_inverse=True)
        grid = grid_of(kinds, face, prompt, np.asarray(category.ravel(), dtype=np.intp), len(scale))
        model = Laplace(grid)
        found = posterior(model, sd_scale=SD_SCALE, seed=seed)
    except NotConverged as reason:
        return Multilevel(*where, (), (), None, None, None, None, None, None, faces, len(rows), f"none: {reason}")
    told = _Told(model, found, kinds, scale, confidence)
    partition, low, high, additive = told.partition()
    labels, prompts = held_out_accuracy(grid, found.best)
    seeds = ", one seed of each" if len(rows) < (job.category >= 0).sum() else ""
    kind = "logit" if len(scale) == 2 else "cumulative logits"
    method = (
        f"{kind}, crossed random effects, Hamiltonian chains around Laplace's fit (R-hat {found.reduction:.2f}){seeds}"
    )
    return Multilevel(
        *where,
        tuple(told.cells(grid, face)),
        tuple(told.components()),
        *(partition, low, high, additive, labels, prompts),
        *(faces, len(rows), method),
    )


def _first_seeds(job: Job, kinds: Kinds) -> Places:
    """Valid edits of faces whose labels are known, the first seed of each face and prompt."""
    rows = np.flatnonzero((job.category >= 0) & np.isin(job.axes.cluster_at, kinds.faces))
    cell = job.axes.cluster_at[rows] * len(job.axes.prompts) + job.axes.prompt_at[rows]
    return np.asarray(rows[np.sort(np.unique(cell, return_index=True)[1])])


def _too_little(job: Job, kinds: Kinds, rows: Places, faces: int) -> str:
    """Why there is nothing to model; empty where there is something."""
    if not kinds.levels:
        return "no factor has two groups"
    if faces < FEWEST_FACES:
        return f"{faces} faces; it takes {FEWEST_FACES}"
    if len(rows) > LARGEST:
        return f"{len(rows):,} edits; it takes at most {LARGEST:,}"
    others = len(rows) - int(np.bincount(job.category[rows]).max())
    if others < RAREST:
        return f"{others} edits differ from the others; it takes {RAREST}"
    return ""


class _Told:
    """What the draws say."""

    def __init__(self, model: Laplace, found: Posterior, kinds: Kinds, scale: Values, confidence: float) -> None:
        self.found, self.kinds, self.scale, self.confidence = found, kinds, scale, confidence
        self.sds = dict(zip(found.names, found.sds.T, strict=True))
        self.cuts = found.columns[:, : model.cuts]
        labels = [f for f in kinds.levels if f in model.slices]
        self.parts = {LABELS: sum((self._effect(model, (f,), f) for f in labels), np.zeros(()))} if labels else {}
        self.parts |= {BY.join(c): self._effect(model, c, BY.join(c)) for c in kinds.crossings}
        self.weights = kinds.count / kinds.count.sum()

    def _effect(self, model: Laplace, factors: tuple[str, ...], name: str) -> Values:
        """[draw, kind]: the effect of these labels on each kind."""
        return self.found.columns[:, model.slices[name]][:, self.kinds.code(factors)[0]]

    def _between(self, part: Values) -> Values:
        """Variance over faces of an effect of kinds, in each draw."""
        return np.asarray((part**2) @ self.weights - (part @ self.weights) ** 2)

    def components(self) -> Iterator[VarianceComponent]:
        """Each source of variance with its share."""
        whole = self._whole()
        sources = {name: np.sqrt(self._between(part)) for name, part in self.parts.items()}
        sources |= {name: self.sds[name] for name in self.sds if name not in self.parts}
        sources["edit"] = np.full(len(whole), EDIT)
        for name, sd in sources.items():
            mean, low, high = self.found.interval(sd, self.confidence)
            share = float((sd**2 / whole).mean())
            yield VarianceComponent(name, float(mean), float(low), float(high), share)

    def _others(self) -> Values:
        """Variance of what is drawn anew with another face and prompt, but for the edit itself."""
        return np.asarray(sum(sd**2 for name, sd in self.sds.items() if name not in self.parts))

    def _whole(self) -> Values:
        return np.asarray(self._between(self._labels()) + self._others() + EDIT**2)

    def _labels(self) -> Values:
        return np.asarray(sum(self.parts.values()))

    def partition(self) -> tuple[float, float, float, float | None]:
        """Share of the variance between intersections with its interval, and how much of that is additive."""
        between = self._between(self._labels())
        mean, low, high = self.found.interval(between / self._whole(), self.confidence)
        own = self.parts.get(LABELS)
        additive = None
        if own is not None and len(self.parts) > 1:
            apart = self._labels() - own
            joint = float(self._between(own).mean()), float(self._between(apart).mean())
            additive = float(joint[0] / max(sum(joint), 1e-12))
        return float(mean), float(low), float(high), additive

    def cells(self, grid: ModelledRows, face: Places) -> Iterator[PooledCell]:
        """Each intersection with its pooled and its own rate or mean."""
        rates = self._rates()
        kind = self.kinds.kind_of[face]
        own = self.scale[grid.category]
        for group, kinds in self.kinds.cells():
            share = self.weights * kinds
            mean, low, high = self.found.interval(rates @ share / share.sum(), self.confidence)
            here = kinds[kind]
            observed = float(own[here].mean()) if here.any() else None
            faces = len(np.unique(face[here]))
            yield PooledCell(group, float(mean), float(low), float(high), observed, faces, int(here.sum()))

    def _rates(self) -> Values:
        """[draw, kind]: rate or mean score over other faces and prompts, by Gauss-Hermite quadrature."""
        nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
        masses = masses / masses.sum()
        spread = np.sqrt(self._others())[:, None]
        total = np.full(self._labels().shape, self.scale[0])
        for step, cut in zip(np.diff(self.scale), self.cuts.T, strict=True):
            above = self._labels() - cut[:, None]
            total += step * sum(m * expit(above + spread * z) for z, m in zip(nodes, masses, strict=True))
        return np.asarray(total)

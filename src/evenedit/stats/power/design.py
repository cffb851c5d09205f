"""Before a study: the smallest effects that its design can show, in closed form.

The variance of an estimate follows from variance components and the numbers of faces, prompts, seeds and labels, with
Satterthwaite's degrees of freedom, as in the engine; the power is that of the noncentral t. Labels by people add
(1 - r²) σ² (1/labels - 1/edits), where r is the correlation of judges and people on single edits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import nctdtr, nctdtrinc, ndtr, stdtrit

from evenedit.stats.agreement.prediction_powered import GROUP_LABELS, LABELS
from evenedit.stats.engine.anom import FEWEST_FACES
from evenedit.stats.engine.crossed import MOST_LABELS
from evenedit.stats.engine.variance import Uncertainty, satterthwaite

CONFIDENCE = 0.95
DRAWS, SEED = 20_000, 6
"""Of normal deviates, for the largest difference between groups."""
DETECTED = 0.8
"""The share of studies that find a detectable effect."""


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of the code of an edit."""

    face: float
    """Between faces of one group."""
    prompt: float
    interaction: float
    """Group x prompt."""
    cell: float
    """Face x prompt."""
    seed: float
    """Between edits of one face and prompt."""

    @property
    def total(self) -> float:
        """The variance of single edits of a group."""
        return self.face + self.prompt + self.interaction + self.cell + self.seed


@dataclass(frozen=True, slots=True)
class Design:
    """Faces of each group, and what each of them is edited with."""

    faces: tuple[int, ...]
    """At least two groups."""
    prompts: int
    seeds: int = 1
    labels: int = 0
    """Edits that people rate, over all editors."""

    @property
    def edits(self) -> int:
        """Edits of one editor."""
        return sum(self.faces) * self.prompts * self.seeds


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the effects of a design are computed from."""

    rate: Components
    shift: Components
    correlation: float
    """Between judges and people on single edits."""
    editors: int
    parameters: int
    """Of the additive model of the portraits' labels: 1, and each factor's levels less 1."""
    contrast: float
    """Levels of single tests: of a declared contrast, of a gap over all groups, of a shift."""
    gap: float
    moved: float
    rate_of: str = ""
    """The measures whose components the study's results gave; empty where they are assumed."""
    shift_of: str = ""
    labelled: bool = False
    """Whether the study's labels by people gave the correlation."""


RATE = Components(face=0.0141, prompt=0.0141, interaction=0.0027, cell=0.0, seed=0.1213)
"""A rate of 20 to 30 %: on a hidden scale with normal effects, those of faces and prompts have half the standard
deviation of an edit's, group x prompt a fifth; two judges, each with noise of a half."""
SHIFT = Components(face=0.0438, prompt=0.0438, interaction=0.0070, cell=0.0, seed=0.2461)
"""The same for a shift with 20 % on either side."""
CORRELATION = 0.7
"""Between judges and people on single edits."""


def contrast_variance(design: Design, c: Components, squares: ArrayLike) -> Uncertainty:
    """Return the pooled variance of a contrast of groups with these squared weights: the quasi-F test's."""
    n, w, p = np.array(design.faces, dtype=np.float64), np.asarray(squares, dtype=np.float64), design.prompts
    faces, groups = n.sum(), len(n)
    cells = c.cell + c.seed / design.seeds
    per_group = (faces - (n**2).sum() / faces) / (groups - 1)
    scale = (w / n).sum() / p
    return satterthwaite(
        (scale * (p * c.face + cells), faces - groups),
        (scale * (per_group * c.interaction + cells), np.asarray((groups - 1.0) * (p - 1))),
        (scale * cells, (faces - groups) * (p - 1)),
    )


def shift_variance(design: Design, c: Components, parameters: int) -> Uncertainty:
    """Return the variance of a shift of everybody over faces with the same labels and over prompts."""
    n, p = np.array(design.faces, dtype=np.float64), design.prompts
    faces, shares = n.sum(), (n**2).sum() / n.sum() ** 2
    cells, enough = c.cell + c.seed / design.seeds, faces - parameters >= MOST_LABELS * faces
    return satterthwaite(
        ((c.face + cells / p) / faces, faces - (parameters if enough else 1)),
        ((c.prompt + shares * c.interaction + cells / faces) / p, np.asarray(p - 1.0)),
        ((cells + (1 - shares) * c.interaction) / (faces * p), (faces - 1) * (p - 1)),
    )


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """The test of one question: the variance of its estimate, its level, and the estimate of an effect of 1."""

    sure: Uncertainty
    alpha: float
    scale: float = 1.0

    @property
    def detectable(self) -> float:
        """The effect that 80 of 100 studies find."""
        t = stdtrit(self.sure.freedom, 1 - self.alpha / 2)
        return float(nctdtrinc(self.sure.freedom, 1 - DETECTED, t) * np.sqrt(self.sure.variance)) / self.scale

    def power(self, effect: float) -> float:
        """Return the share of studies that find this effect, with its sign."""
        t = stdtrit(self.sure.freedom, 1 - self.alpha / 2)
        return float(1 - nctdtr(self.sure.freedom, self.scale * effect / np.sqrt(self.sure.variance), t))


def planned_tests(design: Design, a: Assumptions) -> dict[str, PlannedTest | None]:
    """Return the tests of a design by question; None where faces, prompts or labels are too few for one.

    `contrast`: half of the groups against the others; `by people`: the same as people rate it; `one group`: the
    smallest against the mean of all, adjusted for all groups (Bonferroni); `shift` of everybody.
    """
    groups, labels = len(design.faces), design.labels / a.editors
    if min(design.faces) < FEWEST_FACES or design.prompts < 2:
        return dict.fromkeys(("contrast", "by people", "one group", "shift"))
    square = (1 / (groups // 2) + 1 / (groups - groups // 2)) / groups  # averaged over all halves
    contrast = PlannedTest(contrast_variance(design, a.rate, [square] * groups), a.contrast)
    people = None
    if labels >= max(LABELS, GROUP_LABELS * groups):
        unexplained = (1 - a.correlation**2) * a.rate.total * (design.edits / labels - 1)
        rate = replace(a.rate, seed=a.rate.seed + unexplained)
        people = replace(contrast, sure=contrast_variance(design, rate, [square] * groups))
    one_group = replace(contrast, alpha=a.gap)
    if groups > 2:
        squares = np.full(groups, 1 / groups**2)
        squares[np.argmin(design.faces)] = (1 - 1 / groups) ** 2
        one_group = PlannedTest(contrast_variance(design, a.rate, squares), a.gap / groups, 1 - 1 / groups)
    shift = PlannedTest(shift_variance(design, a.shift, a.parameters), a.moved)
    return {"contrast": contrast, "by people": people, "one group": one_group, "shift": shift}


def even_margin(design: Design, a: Assumptions) -> float | None:
    """Return the margin that holds the interval of the largest difference in 80 of 100 studies of even groups."""
    groups = len(design.faces)
    if planned_tests(design, a)["contrast"] is None:
        return None
    of_group = [contrast_variance(design, a.rate, np.eye(groups)[g]) for g in range(groups)]
    spread = np.sqrt([float(sure.variance) for sure in of_group])
    first, second = np.triu_indices(groups, 1)
    means = spread * np.random.default_rng(SEED).standard_normal((DRAWS, groups))
    differences, errors = np.abs(means[:, first] - means[:, second]), np.hypot(spread[first], spread[second])
    normal = np.quantile((differences / errors).max(axis=1), CONFIDENCE)
    reach = stdtrit(of_group[0].freedom, ndtr(normal))
    return float(np.quantile((differences + reach * errors).max(axis=1), DETECTED))

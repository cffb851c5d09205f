"""Before a study: how large a gap its design can show or rule out, and how many labels by people an interval needs.

An edit meets a rate's threshold when a hidden number passes a cut. The number is the sum of what the face, the
prompt, the edit (each seed anew) and the raters (their noise averages out) bring; by default faces and prompts
bring half of what an edit does, as in the simulations of docs/statistics.md. One group of seven is set apart until
the test finds it in 80 of 100 studies. These are assumptions, printed beside the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Values = NDArray[np.float64]
JUDGE_CORRELATION = 0.7
"""Between judges and people on single edits, assumed until the study has measured it."""


@dataclass(frozen=True, slots=True)
class Design:
    """What is planned, and what is assumed."""

    faces: tuple[int, ...]
    """Faces in each group."""
    prompts: int
    seeds: int = 1
    raters: int = 2
    rate: float = 0.2
    """The rate of an ordinary group."""
    face_sd: float = 0.5
    prompt_sd: float = 0.5
    rater_sd: float = 0.5
    """All on the scale on which one edit's own noise is 1."""
    tests: int = 27
    """Gaps of the editor's family: Holm's first step divides by it."""


@dataclass(frozen=True, slots=True)
class Power:
    """What a design can show."""

    design: Design
    gaps: tuple[float, ...]
    """Rate of the group apart minus the others'."""
    power: tuple[float, ...]
    """Share of studies whose gap passes the test after Holm's adjustment."""
    power_alone: tuple[float, ...]
    """The same for a gap that is the only one tested."""
    studies: int
    detectable: float | None = field(default=None)
    """The smallest gap found in 80 of 100 studies; None where even the largest tried is not."""
    equivalence_margin: float | None = None
    """The margin within which 80 of 100 studies without a gap are shown to be even; None where there is none."""


def power(
    design: Design,
    *,
    studies: int = 300,
    relabellings: int = 60,
    target: float = 0.8,
    seed: int = 1,
    step: Callable[[int], None] = lambda _: None,
) -> Power:
    """Simulate studies with growing gaps of one group, and test each gap against relabelled faces."""
    rng = np.random.default_rng(seed)
    sizes = np.array(design.faces)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    noise = np.sqrt(1 + design.rater_sd**2 / design.raters)
    total_sd = np.sqrt(noise**2 + design.face_sd**2 + design.prompt_sd**2)
    cut = -NormalDist().inv_cdf(design.rate) * total_sd
    gaps = [g for g in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6) if design.rate + g < 1]
    edits = design.prompts * design.seeds
    after_holm, found_alone = [], []
    for gap in gaps:
        shift = (NormalDist().inv_cdf(design.rate + gap) - NormalDist().inv_cdf(design.rate)) * total_sd
        met = np.empty((studies, sizes.sum()))
        for at in range(studies):
            hidden = rng.normal(0, design.face_sd, (len(met[at]), 1)) + rng.normal(0, design.prompt_sd, design.prompts)
            hidden[: sizes[0]] += shift
            chance = np.clip(1 - ndtr((cut - hidden) / noise), 0, 1)
            met[at] = rng.binomial(design.seeds, chance).sum(axis=1)
        seen = between_group_variance(met, starts, sizes, edits)
        # relabelled faces of the same studies: what chance gives, the spread that the gap itself brings included
        chances = np.concatenate(
            [between_group_variance(rng.permuted(met, axis=1), starts, sizes, edits) for _ in range(relabellings)]
        )
        limit, limit_alone = np.quantile(chances, [1 - 0.05 / design.tests, 0.95])
        after_holm.append(float((seen > limit).mean()))
        found_alone.append(float((seen > limit_alone).mean()))
        step(1)
    return Power(
        design,
        tuple(gaps),
        tuple(after_holm),
        tuple(found_alone),
        studies,
        minimum_detectable(gaps, after_holm, target),
    )


def between_group_variance(met: Values, starts: NDArray[np.int64], sizes: NDArray[np.int64], edits: int) -> Values:
    """Return the statistic of the permutation test: the variance of the rates between groups."""
    rates = np.add.reduceat(met, starts, axis=1) / (sizes * edits)
    weights = sizes / sizes.sum()
    centre = rates @ weights
    return np.asarray(((rates - centre[:, None]) ** 2) @ weights)


def minimum_detectable(gaps: Sequence[float], powers: Sequence[float], target: float) -> float | None:
    """Return the effect at which the power reaches the target, interpolated between the tried effects."""
    before = (0.0, 0.0)
    for gap, share in zip(gaps, powers, strict=True):
        if share >= target:
            return before[0] + (gap - before[0]) * (target - before[1]) / max(share - before[1], 1e-9)
        before = (gap, share)
    return None


@dataclass(frozen=True, slots=True)
class Labels:
    """How many edits people must rate for an interval of a rate to be so wide."""

    width: float
    """From end to end."""
    people_alone: int | None
    """None where no number of labels is enough: only more faces or prompts make it so narrow."""
    with_judges: int | None
    """The same when judges score all edits and the estimate is prediction-powered."""


def variances(design: Design) -> tuple[float, float, float]:
    """Return the contributions of faces, prompts and single edits to the variance of a rate.

    Shares of the hidden variance stand for shares of the variance of the 0 or 1; close enough to plan by.
    """
    variance = design.rate * (1 - design.rate)
    noise = 1 + design.rater_sd**2 / design.raters
    total = noise + design.face_sd**2 + design.prompt_sd**2
    return variance * design.face_sd**2 / total, variance * design.prompt_sd**2 / total, variance * noise / total


def labels_needed(
    design: Design, widths: tuple[float, ...] = (0.1, 0.15, 0.2, 0.25, 0.3), correlation: float = JUDGE_CORRELATION
) -> Iterator[Labels]:
    """Yield labels for each width, from the variance of faces, prompts and single edits."""
    of_face, of_prompt, of_edit = variances(design)
    floor = of_face / sum(design.faces) + of_prompt / design.prompts
    z = NormalDist().inv_cdf(0.975)
    all_edits = sum(design.faces) * design.prompts * design.seeds
    for width in widths:
        room = (width / 2 / z) ** 2 - floor
        if room <= 0:
            yield Labels(width, None, None)
            continue
        people_only = int(np.ceil(of_edit / room))
        explained = of_edit * correlation**2
        left = room - explained / all_edits
        powered = int(np.ceil((of_edit - explained) / left)) if left > 0 else None
        yield Labels(
            width,
            people_only if people_only <= all_edits else None,
            powered if powered is not None and powered <= all_edits else None,
        )

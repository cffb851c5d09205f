"""Would a gap hold for prompts like these? How far groups come apart because prompts treat them differently.

A permutation of labels over faces takes the prompts as they are. Where prompts treat groups differently, each in its
own way, groups are apart on any handful of prompts although no group fares worse over many. So a second null draws
both: the groups' rates under permuted labels, and on top of them what prompts add. That is drawn from how far each
group's rate on each prompt lies from its own average, prompt by prompt and for all groups at once, so what the groups
share on a prompt cancels out. The noise of single edits is in both parts and is taken off the second. How much prompts
differ is known from few of them, so the draws have the tails of a t. Its degrees of freedom are those of a sum of
variances over groups (Box 1954): prompts less one where one group alone differs, more where several do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.bootstrap import Bootstrap, ClusterSums

FEWEST_PROMPTS = 5
"""From fewer prompts, how prompts differ is not known well enough to speak of others."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PromptNoise:
    """What prompts add to the distance between groups, for several ratios."""

    by_prompt: Values
    """[prompt, level, ratio]: what each prompt adds to each level's rate beyond what it adds to all, scaled so that
    weights of variance 1 give the variance that prompts like these have."""
    freedom: Values
    """[ratio]: degrees of freedom."""
    prompts: NDArray[np.int64]
    """[ratio]: on how many prompts it was read."""

    def draw(self, draws: int, rng: np.random.Generator) -> Values:
        """Draw the noise [draw, level, ratio] of other prompts. Every ratio has the same prompts."""
        weights = rng.standard_normal((draws, len(self.by_prompt)))
        stretch = np.sqrt(self.freedom / rng.chisquare(self.freedom, size=(draws, len(self.freedom))))
        flat = self.by_prompt.reshape(len(self.by_prompt), -1)
        moved = (weights @ flat).reshape(draws, *self.by_prompt.shape[1:])
        moved *= stretch[:, None]
        return np.asarray(moved)


def prompt_noise(bootstrap: Bootstrap, masks: Sequence[NDArray[np.bool_]], measures: Sequence[int]) -> PromptNoise:
    """Return the prompt noise of measures over groups; ratios run over measures, then editors, pooled last."""
    groups = [_group(bootstrap.clusters_of(mask), measures) for mask in masks]
    moved = np.stack([g.moved for g in groups], axis=1)
    size, noise = (np.stack(x) for x in ([g.size for g in groups], [g.noise for g in groups]))
    prompts = np.any([g.read for g in groups], axis=0).sum(axis=0)
    weight = size / np.maximum(size.sum(axis=0), 1.0)
    deviation = moved - (weight * moved).sum(axis=1, keepdims=True)
    several = np.maximum(prompts, 2.0) / (np.maximum(prompts, 2.0) - 1)
    variance = several * (weight * deviation**2).sum(axis=(0, 1))
    twice = (weight * (1 - weight) * noise).sum(axis=0)
    left = np.clip(1 - np.divide(twice, variance, out=np.ones_like(variance), where=variance > 0), 0.0, 1.0)
    return PromptNoise(deviation * np.sqrt(several * left), _freedom(np.sqrt(weight) * deviation, prompts), prompts)


def _freedom(deviation: Values, prompts: NDArray[np.int64]) -> Values:
    """Return the degrees of freedom: prompts - 1 for each direction in which groups differ."""
    across = np.einsum("pgr,phr->rgh", deviation, deviation)
    squares, trace = (across**2).sum(axis=(1, 2)), np.trace(across, axis1=1, axis2=2)
    directions = np.divide(trace**2, squares, out=np.ones_like(trace), where=squares > 0)
    return np.asarray(np.maximum((prompts - 1) * directions, 1.0))


class _PromptMoves(NamedTuple):
    """One group over several ratios."""

    moved: Values
    """[prompt, ratio]: what each prompt adds to its rate; sums to 0."""
    size: Values
    """[ratio]: valid scores."""
    noise: Values
    """[ratio]: the variance of its rate that single edits make."""
    read: NDArray[np.bool_]
    """[prompt, ratio]: where it was read."""


def _group(sums: ClusterSums, measures: Sequence[int]) -> _PromptMoves:
    def flat(x: Values) -> Values:
        chosen = x[..., measures].swapaxes(-1, -2)
        return np.asarray(chosen.reshape(*chosen.shape[:-2], -1))

    (total, count), (face_total, face_count) = ([flat(x) for x in part] for part in (sums.by_prompt, sums.by_face))
    tt, tc, cc = flat(sums.by_cell)
    size = count.sum(axis=0)
    rate = np.divide(total.sum(axis=0), size, out=np.zeros_like(size), where=size > 0)
    at_prompts, at_faces = total - rate * count, face_total - rate * face_count
    prompts, faces = ((x > 0).sum(axis=0) for x in (count, face_count))
    # what is left in cells when their face's and their prompt's part are taken out
    squares = tt - 2 * rate * tc + rate**2 * cc
    squares -= (at_faces**2).sum(axis=0) / np.maximum(prompts, 1) + (at_prompts**2).sum(axis=0) / np.maximum(faces, 1)
    lost = faces * prompts / np.maximum((faces - 1) * (prompts - 1), 1)
    safe = np.maximum(size, 1.0)
    return _PromptMoves(at_prompts / safe, size, np.maximum(squares, 0.0) * lost / safe**2, count > 0)

"""One group of a panel under all draws of the bootstrap, and the variances that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenedit.stats.engine.variance import Uncertainty, moderated_variance, two_way_variance

ENOUGH = 0.8
"""Share of draws that must be defined before their spread means anything."""


@dataclass(frozen=True)
class Draws:
    """One group under every draw."""

    value: NDArray[np.float64]
    """[editor, measure]: the estimates themselves, pooled editors last; NaN without a valid score."""
    faces: NDArray[np.float64]
    """[draw, editor, measure]: estimates when faces (or the experiment's clusters) are drawn; NaN where undefined."""
    prompts: NDArray[np.float64]
    """[draw, editor, measure]: how far estimates move when prompts are drawn; 0 where there are none to draw."""
    over_cells: NDArray[np.float64]
    """[editor, measure]: variance if face × prompt cells were independent."""
    sizes: NDArray[np.float64]
    """[editor, measure]: how many valid scores there are."""
    clusters: int
    """Faces in the group; with fewer than two there is nothing to draw from."""
    freedom: int
    """Degrees of freedom of the variance over faces."""
    prompt_freedom: NDArray[np.float64]
    """[measure]: degrees of freedom of the variance over prompts."""
    within: NDArray[np.float64] | None = None
    """[editor, measure]: variance over faces of the same labels, for everybody; None for a group."""
    telling: NDArray[np.bool_] | None = None
    """[editor, measure]: whose variances over prompts tell of each other's, for everybody; None for a group."""

    @cached_property
    def over_faces(self) -> NDArray[np.float64]:
        """[editor, measure]: variance over faces; NaN where too few draws are defined."""
        drawn = variance(self.faces)
        return drawn if self.within is None else np.where(np.isnan(drawn), np.nan, self.within)

    @cached_property
    def over_prompts(self) -> NDArray[np.float64]:
        """[editor, measure]: variance over prompts."""
        return variance(self.prompts)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Variance and degrees of freedom of every estimate."""
        freedom = np.broadcast_to(self.prompt_freedom, self.value.shape)
        prompts = Uncertainty(self.over_prompts, freedom)
        if self.telling is not None:
            prompts = moderated_variance(self.over_prompts, self.over_cells, freedom, self.telling)
        faces = np.full_like(self.value, self.freedom)
        return two_way_variance(self.over_faces, prompts.variance, self.over_cells, faces, prompts.freedom)


def variance(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance along the first axis over the defined draws; NaN where too few are defined."""
    defined = ~np.isnan(draws)
    count = defined.sum(axis=0)
    if (count == len(draws)).all():
        return np.asarray(draws.var(axis=0))
    filled = np.where(defined, draws, 0.0)
    safe = np.maximum(count, 1)
    centre = filled.sum(axis=0) / safe
    squares = (np.where(defined, draws - centre, 0.0) ** 2).sum(axis=0) / safe
    return np.where(count >= ENOUGH * len(draws), squares, np.nan)

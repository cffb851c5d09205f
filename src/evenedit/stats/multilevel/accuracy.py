"""Discriminatory accuracy: how well labels, or labels and prompt, tell the outcome in faces the model has not seen."""

from __future__ import annotations

import numpy as np

from evenedit.stats.multilevel.intersections import BY, PROMPT
from evenedit.stats.multilevel.laplace import Laplace, ModelledRows, NotConverged, Places, Values

FOLDS = 5


def held_out_accuracy(grid: ModelledRows, sds: Values) -> tuple[float | None, float | None]:
    """Concordance by labels alone and with the prompt, each fifth of the faces ranked by a fit to the others.

    The standard deviations are those of the whole data: five numbers that single faces hardly move.
    """
    labels, prompts = np.zeros((2, len(grid.category)))
    fold = grid.faces.at % FOLDS
    for number in range(FOLDS):
        mine = fold == number
        if mine.all() or len(np.unique(grid.category[~mine])) < grid.categories:
            return None, None
        try:
            model = Laplace(grid.kept(~mine))
            values = model.peak(sds).values
        except NotConverged:
            return None, None
        centre = values[: model.cuts].mean()
        for effect in grid.effects:
            told = values[model.slices[effect.name]][effect.at[mine]]
            prompts[mine] += told
            if effect.name != PROMPT and not effect.name.endswith(BY + PROMPT):
                labels[mine] += told
        labels[mine] -= centre
        prompts[mine] -= centre
    return concordance(labels, grid.category), concordance(prompts, grid.category)


def concordance(ranked: Values, category: Places) -> float:
    """Chance that of two rows of different categories the higher is ranked higher; a tie counts half."""
    _, rank = np.unique(np.round(ranked, 9), return_inverse=True)
    counts = np.zeros((category.max() + 1, rank.max() + 1))
    np.add.at(counts, (category, rank), 1.0)
    below = np.cumsum(counts, axis=1) - counts / 2
    right = pairs = 0.0
    for high in range(1, len(counts)):
        for low in range(high):
            right += float(counts[high] @ below[low])
            pairs += float(counts[high].sum() * counts[low].sum())
    return right / pairs

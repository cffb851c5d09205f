"""A declared contrast, or everybody against a limit, corrected by people's ratings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenedit.stats.agreement.prediction_powered import FEWEST_FACES, FEWEST_LABELS, Correction
from evenedit.stats.engine.contrasts import ContrastTest
from evenedit.stats.engine.variance import NEGLIGIBLE, share_p


def people_contrast(
    c: Correction, measure: str, editor: str, factor: str, weights: Mapping[str, float], limit: float
) -> ContrastTest | None:
    """Return a contrast of the groups of a factor, or without one everybody; None where people rated too little."""
    at = next((at for at, outcome in enumerate(c.sample.outcomes) if outcome.measure == measure), None)
    if at is None or editor not in c.sample.editors or (factor and factor not in c.panels):
        return None
    e, outcome, panel = c.sample.editors.index(editor), c.sample.outcomes[at], c.panels.get(factor, c.overall)
    vector = np.array([weights.get(level, 0.0) for level in panel.levels] if factor else [1.0])
    used = np.flatnonzero(vector)
    labels, faces = panel.labels[used, e, at], panel.faces[used, e, at]
    if set(weights) - set(panel.levels) or (labels < FEWEST_LABELS).any() or (faces < FEWEST_FACES).any():
        return None

    def of(numbers: np.ndarray) -> np.ndarray:
        return np.broadcast_to(numbers[:, None, None], panel.shape)

    confidence, reach = c.rules.confidence, float(vector[vector > 0].sum())
    first, second = (panel.mean(of(np.maximum(w, 0.0) / reach), with_judges=True) for w in (vector, -vector))
    both = panel.mean(of(vector), with_judges=True)
    sure = both.sure.at(e, at)
    sides = float(first.value[e, at]), float(second.value[e, at])
    if not factor:
        value, ends = sides[0], both.interval(e, at, outcome, confidence)
        if outcome.is_share:
            p = share_p(first.share(e, at), both.size(e, at, confidence), limit, two_sided=False)
        else:
            p = float(sure.p(value - limit))
    else:
        value, sure = float(both.value[e, at]), panel.test_variance(of(vector)).at(e, at)
        p, ends = float(sure.p(value)), None
        if outcome.is_share:
            low, high = first.minus(second, e, at, confidence)
            ends, value = (reach * low, reach * high), reach * (first.share(e, at) - second.share(e, at))
        elif (wider := both.sure.at(e, at).larger(sure)).variance > NEGLIGIBLE:
            half = float(wider.half_width(confidence))
            ends = value - half, value + half
    low_end, high_end = ends or (None, None)
    reason, known = c.lack(panel, e, at, used), None if np.isnan(p) else p
    return ContrastTest(value, low_end, high_end, known, sure, sides, False, int(labels.sum()), reason)

"""Which prompts and portraits carry a finding: parts that sum to its value, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from evenedit.results.finding import Contribution
from evenedit.stats.engine.panel import Panel, RatioMeasure

MOST_FACES = 8
"""Portraits that are named for one finding: those that add most to it."""
Values = NDArray[np.float64]


def contributions(
    finding: str,
    panel: Panel,
    measure: RatioMeasure,
    editor: str,
    groups: Sequence[tuple[Mapping[str, str], float]],
    confidence: float,
) -> Iterator[Contribution]:
    """Yield the parts of a weighted sum of the measure over groups: everybody, or one group against others."""
    row = panel.editors.index(editor)
    total, count = (
        panel.cells[:, :, row, panel.columns.index(c)].astype(np.float64) for c in (measure.total, measure.count)
    )
    masks = [panel.axes.mask(group) for group, _ in groups]
    sizes = [float(count[mask].sum()) * measure.unit for mask in masks]
    if not all(sizes):
        return
    # what each face and prompt adds to the value
    parts = [weight * total[mask] / size for (_, weight), mask, size in zip(groups, masks, sizes, strict=True)]
    valid = [count[mask] for mask in masks]
    value = float(sum(part.sum() for part in parts))
    if not value:
        return
    answered = np.flatnonzero(sum(c.sum(axis=0) for c in valid))
    for at in answered:
        columns = [part[:, at] for part in parts]
        low, high = _interval(columns, confidence)
        added, n = float(sum(c.sum() for c in columns)), int(sum(c[:, at].sum() for c in valid))
        yield Contribution(finding, "prompt", panel.axes.prompts[at], added, low, high, added / value, n)
    faces = [(int(face), part[i], c[i]) for m, part, c in zip(masks, parts, valid, strict=True)
             for i, face in enumerate(np.flatnonzero(m))]  # fmt: skip
    faces.sort(key=lambda f: (-round(f[1].sum() / value, 12), panel.axes.clusters[f[0]]))
    for face, part, c in faces[:MOST_FACES]:
        low, high = _interval([part[answered]], confidence)
        added = float(part.sum())
        if added / value > 0:
            yield Contribution(
                finding, "face", panel.axes.clusters[face], added, low, high, added / value, int(c.sum())
            )


def _interval(columns: list[Values], confidence: float) -> tuple[float | None, float | None]:
    """Return the t interval of a sum of independent parts, each group of parts with its variance."""
    freedom = sum(len(c) - 1 for c in columns)
    if freedom < 1 or any(len(c) < 2 for c in columns):
        return None, None
    value = float(sum(c.sum() for c in columns))
    variance = float(sum(len(c) * c.var(ddof=1) for c in columns))
    if variance <= 0:
        return None, None
    reach = float(np.sqrt(variance) * stdtrit(freedom, 0.5 + confidence / 2))
    return value - reach, value + reach

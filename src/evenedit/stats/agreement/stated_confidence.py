"""How sure judges say they are, where they say so. Shown beside their scores, never a weight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenedit.core.records import Kind
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.results.results import Confidence


def confidence(scores: Scores) -> Iterator[Confidence]:
    """Each judge and question: the mean it stated, and the means where the judges agree and where they do not."""
    table = scores.table
    if table.confidence is None:
        return
    for rater in table.of_kind(Kind.VLM):
        for at, question in enumerate(QUESTION_IDS):
            said = table.confidence[rater, :, at].astype(np.float64)
            told = ~np.isnan(said)
            if told.any():
                apart = told & scores.disagree[:, at]
                together = told & ~scores.disagree[:, at]
                yield Confidence(
                    rater=table.raters[rater],
                    question=question,
                    n=int(told.sum()),
                    missing=int(((table.values[rater, :, at] > 0) & ~told).sum()),
                    mean=float(said[told].mean()),
                    agreeing=float(said[together].mean()) if together.any() else None,
                    disagreeing=float(said[apart].mean()) if apart.any() else None,
                )

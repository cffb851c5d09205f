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
            stated = table.confidence[rater, :, at].astype(np.float64)
            given = ~np.isnan(stated)
            if given.any():
                apart = given & scores.disagree[:, at]
                together = given & ~scores.disagree[:, at]
                yield Confidence(
                    rater=table.raters[rater],
                    question=question,
                    n=int(given.sum()),
                    missing=int(((table.values[rater, :, at] > 0) & ~given).sum()),
                    mean=float(stated[given].mean()),
                    agreeing=float(stated[together].mean()) if together.any() else None,
                    disagreeing=float(stated[apart].mean()) if apart.any() else None,
                )

"""How sure judges say they are, where they say so. Shown beside their scores, never a weight."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenedit.core.records import Kind
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.results.results import Confidence


def confidence(scores: Scores) -> Iterator[Confidence]:
    """Yield, per judge and question, the mean stated confidence: overall, where judges agree, where they disagree."""
    table = scores.table
    if table.confidence is None:
        return
    for rater in table.of_kind(Kind.VLM):
        for at, question in enumerate(QUESTION_IDS):
            stated = table.confidence[rater, :, at].astype(np.float64)
            has_value = ~np.isnan(stated)
            if has_value.any():
                disagreeing = has_value & scores.disagree[:, at]
                agreeing = has_value & ~scores.disagree[:, at]
                yield Confidence(
                    rater=table.raters[rater],
                    question=question,
                    n=int(has_value.sum()),
                    missing=int(((table.values[rater, :, at] > 0) & ~has_value).sum()),
                    mean=float(stated[has_value].mean()),
                    agreeing=float(stated[agreeing].mean()) if agreeing.any() else None,
                    disagreeing=float(stated[disagreeing].mean()) if disagreeing.any() else None,
                )

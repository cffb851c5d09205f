"""A name made of a whole table of ratings."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import numpy as np
import pandas as pd

from evenedit.core.hashing import digest
from evenedit.ratings.table import RatingTable


def table_digest(table: RatingTable) -> str:
    """Twenty hex digits that name every edit, rater, answer and reading of a table."""
    content = hashlib.sha256()
    rows = pd.util.hash_pandas_object(table.edits.astype(str), index=False).to_numpy()
    content.update(digest([list(table.raters), [str(k) for k in table.kinds], list(table.edits.columns)]).encode())
    for array in (rows, table.values, table.status, table.confidence, table.settled):
        content.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    for factor in table.factors:
        content.update(digest([factor.name, factor.title, list(factor.codes), factor.ordered]).encode())
    for reading in table.readings:
        content.update(digest([reading.rater, reading.measure, list(reading.reasons), reading.note]).encode())
        content.update(np.ascontiguousarray(reading.values).tobytes())
    if table.asks:
        content.update(digest(sorted([prompt, *axes] for prompt, axes in table.asks.items())).encode())
    if table.profiles:
        content.update(digest([table.profiles.version, [asdict(c) for c in table.profiles.counts]]).encode())
    if table.null_pairs:
        content.update(table_digest(table.null_pairs).encode())
    return content.hexdigest()[:20]

"""What the numbers are made of: portraits by label, and the edits that people rated."""

from __future__ import annotations

import numpy as np

from evenedit.core.records import Experiment, Kind
from evenedit.ratings.table import RatingTable

PORTRAITS, RATED = "portraits", "rated"
"""What the counts begin with."""


def sample_composition(table: RatingTable) -> dict[str, int]:
    """Return sizes by key: `portraits.<factor>.<label>`, `rated`, `rated.<column>.<value>` and `people`."""
    edits = table.edits
    portraits = edits[edits["experiment"] != Experiment.STEREOTYPE]
    faces = portraits.drop_duplicates("source_id")
    sizes_by_key = {PORTRAITS: len(faces)} if len(faces) else {}
    for factor in table.factors:
        sizes = faces[factor.name].value_counts()
        sizes_by_key |= {f"{PORTRAITS}.{factor.name}.{c}": int(sizes[c]) for c in factor.codes if c in sizes.index}
        unlabelled = int((faces[factor.name] == "").sum())
        sizes_by_key |= {f"unlabelled.{factor.name}": unlabelled} if unlabelled else {}
    people = table.of_kind(Kind.HUMAN)
    answered = np.any(table.values[people] > 0, axis=2)
    rated = edits[answered.any(axis=0)]
    if rated.empty:
        return sizes_by_key
    sizes_by_key |= {"people": int(answered.any(axis=1).sum()), RATED: len(rated)}
    arms = rated["experiment"].astype(str) + "." + rated["condition"].astype(str)
    sizes_by_key |= {f"{RATED}.arm.{arm}": int(n) for arm, n in arms.value_counts().sort_index().items()}
    sizes_by_key |= {f"{RATED}.editor.{e}": int(n) for e, n in rated["editor"].value_counts().sort_index().items()}
    for factor in table.factors:
        sizes = rated[factor.name].value_counts()
        sizes_by_key |= {f"{RATED}.{factor.name}.{c}": int(sizes[c]) for c in factor.codes if c in sizes.index}
    per_edit = answered.sum(axis=0)[answered.any(axis=0)]
    return sizes_by_key | {
        f"{RATED}.by.{k}": int(n) for k, n in zip(*np.unique(per_edit, return_counts=True), strict=True)
    }

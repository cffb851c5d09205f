"""Tables with the columns of the paper's authors: `model` for the editor, and `version`, edited or preserved."""

from __future__ import annotations

import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment

VERSIONS = {
    "edited": (Experiment.DIAGNOSIS.value, ConditionKind.BASELINE.value),
    "preserved": (Experiment.MITIGATION.value, ConditionKind.FEATURE.value),
}
"""The authors' name of an output, and the experiment and condition it is of."""
JUDGE = "vlm"
"""What their judges' one score is called: the file names no judge."""
LABELS = ("race", "gender", "age")


def in_our_columns(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rename the columns of an authors' table; return any other table unchanged."""
    if not {"model", "version"} <= set(frame.columns) or {"editor", "experiment"} & set(frame.columns):
        return frame
    version = frame["version"].astype(str)
    if unknown := sorted(set(version) - VERSIONS.keys()):
        raise EvenEditError(f"{name}: version '{unknown[0]}' is not known; the authors' are: {', '.join(VERSIONS)}")
    renamed = frame.rename(columns={"model": "editor"})
    renamed["experiment"] = version.map({v: experiment for v, (experiment, _) in VERSIONS.items()})
    renamed["condition"] = version.map({v: condition for v, (_, condition) in VERSIONS.items()})
    if "source_id" not in renamed and set(LABELS) <= set(renamed.columns):  # one portrait per combination
        renamed["source_id"] = renamed[list(LABELS)].astype(str).agg("_".join, axis=1)
    if not {"rater", "judge"} & set(renamed.columns):
        renamed["judge"], renamed["status"] = JUDGE, "scored"
    return renamed

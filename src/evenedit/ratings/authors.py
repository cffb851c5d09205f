"""Tables with the columns of the paper's authors: `model` for the editor, and `version`, edited or preserved."""

from __future__ import annotations

import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Condition, Experiment

VERSIONS = {
    "edited": (Experiment.DIAGNOSIS.value, Condition.BASELINE.value),
    "preserved": (Experiment.MITIGATION.value, Condition.FEATURE.value),
}
"""The authors' name of an output, and the experiment and condition it is of."""
JUDGE = "vlm"
"""What their judges' one score is called: the file names no judge."""
LABELS = ("race", "gender", "age")


def in_our_columns(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table of the authors with the columns that other tables have; any other table as it is."""
    if not {"model", "version"} <= set(frame.columns) or {"editor", "experiment"} & set(frame.columns):
        return frame
    version = frame["version"].astype(str)
    if unknown := sorted(set(version) - VERSIONS.keys()):
        raise EvenEditError(f"{name}: version '{unknown[0]}' is not known; the authors' are: {', '.join(VERSIONS)}")
    ours = frame.rename(columns={"model": "editor"})
    ours["experiment"] = version.map({v: experiment for v, (experiment, _) in VERSIONS.items()})
    ours["condition"] = version.map({v: condition for v, (_, condition) in VERSIONS.items()})
    if "source_id" not in ours and set(LABELS) <= set(ours.columns):  # one portrait for each combination of labels
        ours["source_id"] = ours[list(LABELS)].astype(str).agg("_".join, axis=1)
    if not {"rater", "judge"} & set(ours.columns):
        ours["judge"], ours["status"] = JUDGE, "scored"
    return ours

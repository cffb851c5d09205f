"""`vlm_human_agreement.json`: the agreement of judges and people under the name and headings of the evaluation plan."""

from __future__ import annotations

import json
from typing import Any

from evenedit.report.render.agreement_rows import AgreementRows
from evenedit.report.tables.agreement import LABELLED, TARGET, has_people
from evenedit.results.results import Agreement, Results

FILE = "vlm_human_agreement.json"
HEADINGS = dict(zip(LABELLED, ("edit_quality", "gender_drift", "race_drift", "preference", "stereotype"), strict=True))
"""The names of the questions in the evaluation plan; others have their own."""


def vlm_human_agreement(results: Results) -> str | None:
    """Return the file's text, or None if no people rated."""
    if not has_people(results):
        return None
    rows = AgreementRows.of(results)
    judged: dict[str, Any] = {}
    for a in rows.places("accuracy"):
        if a.editor is None:
            agreement = {
                "cohen_kappa": _number(rows.sibling(a, "cohen_kappa")),
                "accuracy": _number(a),
            }
            judged.setdefault(HEADINGS.get(a.axis, a.axis), {})[a.condition] = agreement
    people: dict[str, Any] = {}
    for a in rows.places("fleiss_kappa"):
        if a.editor is None:
            people.setdefault(a.axis, {})[a.condition] = {
                "fleiss_kappa": _number(a),
                "meets_target": None if a.value is None else a.value >= TARGET,
            }
    body = {
        "schema": "evenedit.vlm_human_agreement/2",
        "simulated": list(results.simulated),
        "vlm_human": judged,
        "between_people": {"target_fleiss_kappa": TARGET, "questions": people},
    }
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _number(row: Agreement | None) -> dict[str, Any] | None:
    if row is None:
        return None
    fields = ("value", "low", "high", "n_items", "n_ratings", "method")
    return {field: getattr(row, field) for field in fields}

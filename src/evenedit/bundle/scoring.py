"""Compute results from evidence, both when a bundle is written and when it is rescored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from evenedit.bundle.archive import SealedZip
from evenedit.bundle.evidence import Evidence
from evenedit.core.parallel import PARALLEL_THRESHOLD, SecondProcess
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.digest import digest_of
from evenedit.study.preregistration.adherence import PlanAdherence
from evenedit.study.preregistration.seal import FILE as SEAL
from evenedit.study.preregistration.seal import Seal

PLAN = "plan.json"
"""The plan as it stood when the bundle was made, beside the seal."""
DIGITS = 12
"""Significant digits of every number: what is beyond may differ from one machine to the next."""


def score(
    evidence: Evidence,
    provenance: Mapping[str, Any],
    rules: AnalysisRules | None = None,
    second: SecondProcess | None = None,
    adherence: PlanAdherence | None = None,
) -> Results:
    """Compute the results from the evidence, under its study's rules or others.

    `adherence` is how the study kept to the plan that it sealed, where it did.
    """
    if second is None:
        with SecondProcess(enabled=len(evidence.edits) >= PARALLEL_THRESHOLD) as process:
            return score(evidence, provenance, rules, process, adherence)
    table, rules = evidence.table(), rules or evidence.record.rules
    facts = evidence.record.facts(dict(provenance), evidence.chances, digest_of(table, rules))
    results = rounded(analyse(table, rules, facts, second))
    return results if adherence is None else adherence.apply_to(results)


def plan_adherence(bundle: SealedZip) -> PlanAdherence | None:
    """Return the adherence of a bundle's study to its sealed plan; None if it was never sealed."""
    if SEAL not in bundle.names:
        return None
    seal = Seal.parse(bundle.read(SEAL).decode(), f"{bundle.path}: {SEAL}")
    return PlanAdherence.from_dict(seal, json.loads(bundle.read(PLAN)))


def rounded(results: Results) -> Results:
    """Return the results with all numbers rounded to a number of significant digits."""
    changed: Results = _rounded(results)
    return changed


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") + 0.0
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _rounded(getattr(value, part.name)) for part in fields(value) if part.init})
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_rounded(item) for item in value)
    return value

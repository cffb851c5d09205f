"""From evidence to results: the same way when a bundle is made and when somebody scores it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from evenedit.bundle.evidence import Evidence
from evenedit.core.sealed_zip import SealedZip
from evenedit.core.second_process import LARGE, SecondProcess
from evenedit.protocol.prompts import FLOOR
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.study.analyze import Analysis
from evenedit.study.kept_plan import KeptPlan
from evenedit.study.seal import FILE as SEAL
from evenedit.study.seal import Seal

PLAN = "plan.json"
"""The plan as it stood when the bundle was made, beside the seal."""
DIGITS = 12
"""Significant digits of every number: what is beyond may differ from one machine to the next."""


def score(
    evidence: Evidence,
    provenance: Mapping[str, Any],
    rules: AnalysisRules | None = None,
    second: SecondProcess | None = None,
    kept: KeptPlan | None = None,
) -> Results:
    """Every estimate that follows from the evidence, under its study's rules or others.

    `kept` is how the study kept to the plan that it sealed, where it did.
    """
    if second is None:
        with SecondProcess(wanted=len(evidence.edits) >= LARGE) as own:
            return score(evidence, provenance, rules, own, kept)
    record = evidence.record
    analysis = Analysis(
        evidence.table(),
        rules or record.rules,
        record.title,
        {},
        record.effects,
        evidence.chances,
        record.counts,
        {prompt.id: prompt.text for prompt in record.prompts if prompt.id != FLOOR.id},
        record.asked,
    )
    results = rounded(replace(analysis.results(second), provenance=dict(provenance)))
    return results if kept is None else kept.applied(results)


def kept_plan(bundle: SealedZip) -> KeptPlan | None:
    """How the study of a bundle kept to its plan; None where it was never sealed."""
    if SEAL not in bundle.names:
        return None
    seal = Seal.parse(bundle.read(SEAL).decode(), f"{bundle.path}: {SEAL}")
    return KeptPlan.from_dict(seal, json.loads(bundle.read(PLAN)))


def rounded(results: Results) -> Results:
    """The results with every number at so many significant digits."""
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

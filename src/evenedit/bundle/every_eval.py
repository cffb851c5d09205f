"""Results in the format of Every Eval Ever, one file per editor: rates, shifts and gaps with their intervals.

The format is that of https://evalevalai.com (schema 0.3.0). Only its fields are used; what it has no field for stands
in `additional_details`, whose values must be text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from evenedit.core.hashing import digest
from evenedit.core.records import Estimate, is_simulated
from evenedit.core.version import __version__
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Names
from evenedit.results.results import Results

EVERY_EVAL = "every_eval_ever"
SCHEMA_VERSION = "0.3.0"
KINDS = (MeasureKind.RATE, MeasureKind.GAP, MeasureKind.SHIFT)
"""The measures that are passed on."""


def every_eval_files(results: Results, title: str) -> dict[str, bytes]:
    """Return one file per editor."""
    files = {}
    for editor in results.editors:
        if rows := list(_rows(results, editor, title)):
            text = json.dumps(_body(results, editor, title, rows), ensure_ascii=False, indent=1)
            files[f"{EVERY_EVAL}/{digest([editor])}.json"] = f"{text}\n".encode()
    return files


def _body(results: Results, editor: str, title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = _seconds(str(results.provenance["time"]))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"evenedit/{editor}/{seconds}",
        "evaluation_timestamp": seconds,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": title,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"study": str(results.provenance.get("study", ""))},
        },
        "eval_library": {"name": "evenedit", "version": __version__},
        "model_info": {
            "name": editor,
            "id": editor,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "simulated": "yes" if is_simulated(editor) else "no",
            },
        },
        "evaluation_results": rows,
    }


def _rows(results: Results, editor: str, title: str) -> Iterator[dict[str, Any]]:
    rubric = results.full_rubric
    names = Names(rubric)
    every = [("ensemble", e) for e in results.estimates]
    every += [(m.rater, e) for m in results.measured for e in m.estimates]
    for rater, e in every:
        if e.editor == editor and e.value is not None and Measure(e.measure).kind in KINDS:
            yield _row(results, rater, e, title, names, Measure(e.measure).name in rubric.wanted_rates)


def _row(results: Results, rater: str, e: Estimate, title: str, name: Names, is_wanted: bool) -> dict[str, Any]:
    measure = Measure(e.measure)
    group = ", ".join(f"{k}={v}" for k, v in e.group.items()) or "everybody"
    details: dict[str, Any] = {"score": e.value, "details": {"missing": str(e.missing)}}
    if e.low is not None and e.high is not None:
        details["uncertainty"] = {
            "confidence_interval": {
                "lower": e.low,
                "upper": e.high,
                "confidence_level": results.rules["confidence"],
                "method": e.method,
            },
            "num_samples": e.n,
        }
    return {
        "evaluation_result_id": digest([rater, e.measure, e.experiment, e.condition, dict(e.group)]),
        "evaluation_name": f"{name(measure.name)} ({measure.kind}), {e.experiment}/{e.condition}, {group}, by {rater}",
        "source_data": {"dataset_name": title, "source_type": "other"},
        "metric_config": {
            "metric_id": e.measure,
            "metric_name": name(measure.name),
            "metric_kind": str(measure.kind),
            "metric_unit": "proportion",
            "lower_is_better": measure.kind == MeasureKind.GAP or not is_wanted,
            "score_type": "continuous",
            "min_score": -1.0 if measure.kind == MeasureKind.SHIFT else 0.0,
            "max_score": 1.0,
            "additional_details": {"group": group, "rater": rater, "n": str(e.n)},
        },
        "score_details": details,
    }


def _seconds(time: str) -> str:
    """Return a time as seconds since 1970."""
    moment = datetime.fromisoformat(time)
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))

"""Evidence as files of a bundle: JSON lines, one file of answers per person, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from evenedit.bundle.archive import WITHDRAWABLE, SealedZip
from evenedit.bundle.evidence import Evidence, GivenAnswer, RawReply
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Condition, Edit, Experiment, Kind, Outcome, Request, Source, Status
from evenedit.interchange.export import StudyRecord
from evenedit.ratings.table import Reading
from evenedit.storage.store import request_values

RECORD = "study.json"
SOURCES, REQUESTS, EDITS = "data/sources.jsonl", "data/requests.jsonl", "data/edits.jsonl"
REPLIES, READINGS = "data/replies.jsonl", "data/readings.jsonl"
REVIEWS, CHANCES = "data/reviews.jsonl", "data/sampled.jsonl"
Row = Mapping[str, Any]


def evidence_files(evidence: Evidence) -> dict[str, bytes]:
    """Return the files of the evidence by name."""
    files = {
        RECORD: evidence.record.to_json().encode(),
        SOURCES: lines(_row(s) | {"origin": _bare(s.origin)} for s in evidence.sources.values()),
        REQUESTS: lines(map(request_values, evidence.requests)),
        EDITS: lines(map(_row, evidence.edits.values())),
        REPLIES: lines(map(_row, evidence.replies)),
        READINGS: lines(_readings(evidence)),
        REVIEWS: lines(_review(number, name, review) for number, (name, review) in enumerate(evidence.reviews, 1)),
        CHANCES: lines({"request_id": i, "probability": p} for i, p in sorted(evidence.chances.items())),
    }
    for name, answers in evidence.people.items():
        files[f"{WITHDRAWABLE}{name}.jsonl"] = lines(map(_row, answers))
    return files


def read_evidence(bundle: SealedZip) -> Evidence:
    """Read the evidence of a bundle, without the answers of withdrawn people."""
    try:
        record = StudyRecord.parse(bundle.read(RECORD).decode(), f"{bundle.path}: {RECORD}")
        requests = [_read_request(row) for row in _rows(bundle, REQUESTS)]
        edits = {r["request_id"]: Edit(**(r | {"outcome": Outcome(r["outcome"])})) for r in _rows(bundle, EDITS)}
        ids = [request.id for request in requests if request.id in edits]
        return Evidence(
            record=record,
            sources={r["id"]: Source(**r) for r in _rows(bundle, SOURCES)},
            requests=requests,
            edits=edits,
            replies=[
                RawReply(**(r | {"kind": Kind(r["kind"]), "status": Status(r["status"])}))
                for r in _rows(bundle, REPLIES)
            ],
            readings=tuple(_read_readings(record, _rows(bundle, READINGS), ids)),
            people={
                name.removeprefix(WITHDRAWABLE).removesuffix(".jsonl"): [GivenAnswer(**r) for r in _rows(bundle, name)]
                for name in bundle.under(WITHDRAWABLE.rstrip("/"))
            },
            reviews=[(r["reviewer"], [GivenAnswer(**one) for one in r["answers"]]) for r in _rows(bundle, REVIEWS)],
            chances={r["request_id"]: r["probability"] for r in _rows(bundle, CHANCES)},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvenEditError(
            f"{bundle.path} cannot be read as evidence: {type(error).__name__}: {error}; try: evenedit verify"
        ) from None


def lines(rows: Iterable[Row]) -> bytes:
    """JSON lines: one object in each."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()


def _rows(bundle: SealedZip, name: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in bundle.read(name).decode().split("\n") if line)


def _read_request(row: dict[str, Any]) -> Request:
    wanted = row.pop("id")
    fields = {
        **row,
        "experiment": Experiment(row["experiment"]),
        "condition": Condition.parse(row["condition"]),
        "source_ids": tuple(row["source_ids"]),
    }
    request = Request(**fields)
    if request.id != wanted:
        raise EvenEditError(f"request {wanted} does not match its id: its content was changed")
    return request


def _readings(evidence: Evidence) -> Iterator[Row]:
    """Yield the readings of instruments that have a value or a reason."""
    ids = [request.id for request in evidence.requests if request.id in evidence.edits]
    for reading in evidence.readings:
        for ident, value, reason in zip(ids, reading.values.tolist(), reading.reasons, strict=True):
            if reason or not np.isnan(value):
                yield {
                    "request_id": ident,
                    "rater": reading.rater,
                    "measure": reading.measure,
                    "value": None if np.isnan(value) else value,
                    "reason": reason,
                }


def _read_readings(record: StudyRecord, rows: Iterator[Row], ids: list[str]) -> Iterator[Reading]:
    """Yield the readings in the record's order."""
    by_name: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for row in rows:
        value = float("nan") if row["value"] is None else float(row["value"])
        by_name.setdefault((row["rater"], row["measure"]), {})[row["request_id"]] = value, row["reason"]
    absent = float("nan"), ""
    for note in record.readings:
        readings = by_name.get((note.instrument, note.measure), {})
        each = [readings.get(ident, absent) for ident in ids]
        values = np.array([value for value, _ in each], dtype=np.float64)
        yield note.reading(values, (reason for _, reason in each))


def _review(number: int, name: str, answers: Iterable[GivenAnswer]) -> Row:
    return {"review": number, "reviewer": name, "answers": [_row(one) for one in answers]}


def _row(record: Source | Edit | RawReply | GivenAnswer) -> dict[str, Any]:
    """Return a record as plain values."""
    return {part.name: getattr(record, part.name) for part in fields(record)}


def _bare(origin: str) -> str:
    """Return the origin of a portrait without folders of a machine."""
    return origin.replace("\\", "/").rpartition("/")[2] if origin.startswith(("/", "~")) or ":\\" in origin else origin

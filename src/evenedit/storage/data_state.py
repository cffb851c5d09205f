"""Digests of the data that runs wrote into a study's database, to detect other changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from evenedit.storage import schema
from evenedit.storage.store import Store

Parts = Mapping[str, Sequence[Sequence[Any]]]
"""Rows by the part of a study that they belong to."""
SOURCE = ("id", "image", "attributes")
EDIT = ("request_id", "outcome", "image", "detail", "seconds")
REPLY = ("request_id", "kind", "status", "reason", "raw")
RATING = ("request_id", "question_id", "value", "confidence")
REQUESTS = "requests"


def data_state(store: Store) -> dict[str, str]:
    """Return the digest of each part: requests, sources, edits, replies and ratings, measurements, runs."""
    with store.begin() as db:
        return digests(_parts(db))


def digests(parts: Parts) -> dict[str, str]:
    """Return the digest of each part; the order of its rows does not matter."""
    return {name: _digest(rows) for name, rows in sorted(parts.items())}


def replies_part(rater: str, revision: str) -> str:
    """Return the name of a rater's replies under one revision."""
    return f"replies of {rater} {revision}"


def ratings_part(rater: str, revision: str) -> str:
    """Return the name of a rater's ratings under one revision."""
    return f"ratings of {rater} {revision}"


def measurements_part(version: str) -> str:
    """Return the name of the measurements of one version of the instruments."""
    return f"measurements {version}"


def changed_tables(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts whose digest has changed."""
    yield from (name for name, digest in before.items() if after.get(name) != digest)


def _parts(db: sa.Connection) -> dict[str, list[list[Any]]]:
    parts: dict[str, list[list[Any]]] = {}
    for name, table, columns in (
        ("sources", schema.sources, SOURCE),
        ("origins of sources", schema.sources, ("id", "origin")),
        (REQUESTS, schema.requests, tuple(c.name for c in schema.requests.c)),
        ("edits", schema.edits, EDIT),
    ):
        parts[name] = [[row._mapping[c] for c in columns] for row in db.execute(sa.select(table))]
    for row in db.execute(sa.select(schema.replies)):
        parts.setdefault(replies_part(row.rater, row.revision), []).append([row._mapping[c] for c in REPLY])
    for row in db.execute(sa.select(schema.ratings)):
        parts.setdefault(ratings_part(row.rater, row.revision), []).append([row._mapping[c] for c in RATING])
    for row in db.execute(sa.select(schema.measurements)):
        values = [row.request_id, row.numbers, row.reasons]
        parts.setdefault(measurements_part(row.version), []).append(values)
    for row in db.execute(sa.select(schema.runs)):
        parts[f"run {row.id}"] = [[row.started, row.provenance]]
    return parts


def _digest(rows: Sequence[Sequence[Any]]) -> str:
    lines = sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:20]

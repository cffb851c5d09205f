"""Digests of what runs wrote into a study's database, to tell when something else wrote there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from evenedit.storage import schema
from evenedit.storage.store import Store

REPLY = ("request_id", "kind", "status", "reason", "raw")
RATING = ("request_id", "question_id", "value", "confidence")


def data_state(store: Store) -> dict[str, str]:
    """A digest of each part: requests, sources, edits, replies and ratings by rater, measurements by version."""
    with store.begin() as db:
        return {name: _digest(rows) for name, rows in sorted(_parts(db).items())}


def altered(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """The parts that are no longer what they were."""
    yield from (name for name, found in before.items() if after.get(name) != found)


def _parts(db: sa.Connection) -> dict[str, list[list[Any]]]:
    parts: dict[str, list[list[Any]]] = {}
    for name, table, columns in (
        ("sources", schema.sources, ("id", "image", "attributes")),
        ("requests", schema.requests, tuple(c.name for c in schema.requests.c)),
        ("edits", schema.edits, ("request_id", "outcome", "image", "detail")),
    ):
        parts[name] = [[row._mapping[c] for c in columns] for row in db.execute(sa.select(table))]
    for row in db.execute(sa.select(schema.replies)):
        parts.setdefault(f"replies of {row.rater} {row.revision}", []).append([row._mapping[c] for c in REPLY])
    for row in db.execute(sa.select(schema.ratings)):
        parts.setdefault(f"ratings of {row.rater} {row.revision}", []).append([row._mapping[c] for c in RATING])
    for row in db.execute(sa.select(schema.measurements)):
        kept = [row.request_id, row.numbers, row.reasons]
        parts.setdefault(f"measurements {row.version}", []).append(kept)
    return parts


def _digest(rows: list[list[Any]]) -> str:
    lines = sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:20]

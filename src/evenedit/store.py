"""The study's database and image folder: SQLite in the study folder by default, PostgreSQL by URL."""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import NullPool

from evenedit.images import open_images
from evenedit.records import (
    Edit,
    Experiment,
    Kind,
    Outcome,
    Rating,
    Reply,
    Request,
    Source,
    Status,
    UserError,
)

SCHEMA_VERSION = 1
DATABASE = "study.db"
IMAGES = "images"

_meta = sa.MetaData()
_facts = sa.Table(
    "facts",
    _meta,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)
_runs = sa.Table(
    "runs",
    _meta,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("started", sa.String, nullable=False),
    sa.Column("finished", sa.String),
    sa.Column("provenance", sa.JSON, nullable=False),
)
_sources = sa.Table(
    "sources",
    _meta,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("image", sa.String, nullable=False),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("origin", sa.String, nullable=False),
)
_features = sa.Table(
    "features",
    _meta,
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("extractor", sa.String, primary_key=True),
    sa.Column("text", sa.String, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
)
_requests = sa.Table(
    "requests",
    _meta,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("experiment", sa.String, nullable=False),
    sa.Column("condition", sa.String, nullable=False),
    sa.Column("source_ids", sa.JSON, nullable=False),
    sa.Column("prompt_id", sa.String, nullable=False),
    sa.Column("instruction", sa.String, nullable=False),
    sa.Column("editor", sa.String, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
)
_edits = sa.Table(
    "edits",
    _meta,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("outcome", sa.String, nullable=False),
    sa.Column("image", sa.String),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
_replies = sa.Table(
    "replies",
    _meta,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("rater", sa.String, primary_key=True),
    sa.Column("revision", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("raw", sa.String, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
_ratings = sa.Table(
    "ratings",
    _meta,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("rater", sa.String, primary_key=True),
    sa.Column("revision", sa.String, primary_key=True),
    sa.Column("question_id", sa.String, primary_key=True),
    sa.Column("value", sa.Integer),
)
_measurements = sa.Table(
    "measurements",
    _meta,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("version", sa.String, primary_key=True),
    sa.Column("numbers", sa.JSON, nullable=False),
    sa.Column("reasons", sa.JSON, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
_cases = sa.Table(
    "cases",
    _meta,
    sa.Column("sample", sa.String, primary_key=True),
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("probability", sa.Float, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Answered:
    """One rater's reply about one edit, ready to be stored."""

    request_id: str
    rater: str
    revision: str
    kind: Kind
    reply: Reply


class Store:
    """All that a study knows, kept so that a kill at any moment loses nothing stored."""

    def __init__(self, folder: Path, url: str | None = None, images: str | None = None) -> None:
        self.folder = folder
        self.images_url = images or str((folder / IMAGES).absolute())
        self.images = open_images(self.images_url)
        self._engine = _postgres(url) if url else _sqlite(folder / DATABASE)
        self._insert = postgresql.insert if url else sqlite.insert
        try:
            self._check_version()
        except UserError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    # -- writing -------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study while a run writes to it; a second run is turned away."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "study.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"another process is running the study in {self.folder}; wait for it or stop it"
                ) from None
            yield

    def start_run(self, provenance: Mapping[str, Any]) -> int:
        """Note who writes from now on; returns the run's number."""
        with self._engine.begin() as db:
            row = {"started": _now(), "provenance": dict(provenance)}
            return int(db.execute(_runs.insert().returning(_runs.c.id), row).scalar_one())

    def finish_run(self, run_id: int) -> None:
        """Note that a run came to its end."""
        with self._engine.begin() as db:
            db.execute(_runs.update().where(_runs.c.id == run_id).values(finished=_now()))

    def set_fact(self, key: str, value: str) -> None:
        """Remember a fact about the study."""
        self._upsert(_facts, [{"key": key, "value": value}])

    def save_sources(self, sources: Iterable[Source]) -> None:
        """Keep the portraits."""
        self._upsert(
            _sources,
            [{"id": s.id, "image": s.image, "attributes": dict(s.attributes), "origin": s.origin} for s in sources],
        )

    def save_feature(self, source_id: str, extractor: str, text: str, detail: Mapping[str, Any]) -> None:
        """Keep a feature prompt with the extractor that wrote it."""
        row = {"source_id": source_id, "extractor": extractor, "text": text, "detail": dict(detail)}
        self._upsert(_features, [row])

    def save_requests(self, requests: Iterable[Request]) -> None:
        """Keep what is to be edited; known requests stay as they are."""
        rows = [
            {
                "id": r.id,
                "experiment": r.experiment.value,
                "condition": r.condition,
                "source_ids": list(r.source_ids),
                "prompt_id": r.prompt_id,
                "instruction": r.instruction,
                "editor": r.editor,
                "settings": dict(r.settings),
                "seed": r.seed,
            }
            for r in requests
        ]
        self._upsert(_requests, rows, replace=False)

    def save_edits(self, edits: Iterable[Edit], run_id: int) -> None:
        """Keep outcomes; their images were written before."""
        rows = [
            {
                "request_id": e.request_id,
                "outcome": e.outcome.value,
                "image": e.image,
                "detail": dict(e.detail),
                "seconds": e.seconds,
                "run_id": run_id,
            }
            for e in edits
        ]
        self._upsert(_edits, rows)

    def save_answers(self, answers: Sequence[Answered], run_id: int) -> None:
        """Keep replies and the ratings in them, all or nothing."""
        replies = [
            {
                "request_id": a.request_id,
                "rater": a.rater,
                "revision": a.revision,
                "kind": a.kind.value,
                "status": a.reply.status.value,
                "reason": a.reply.reason,
                "raw": a.reply.raw,
                "run_id": run_id,
            }
            for a in answers
        ]
        ratings = [
            {
                "request_id": a.request_id,
                "rater": a.rater,
                "revision": a.revision,
                "question_id": question,
                "value": value,
            }
            for a in answers
            for question, value in a.reply.values.items()
        ]
        with self._engine.begin() as db:
            self._upsert(_replies, replies, db=db)
            self._upsert(_ratings, ratings, db=db)

    def save_measurements(self, found: Mapping[str, tuple[Any, Any]], version: str, run_id: int) -> None:
        """Keep what was measured: numbers and reasons by request id."""
        rows = [
            {"request_id": i, "version": version, "numbers": dict(n), "reasons": dict(r), "run_id": run_id}
            for i, (n, r) in found.items()
        ]
        self._upsert(_measurements, rows)

    def save_cases(self, sample: str, cases: Mapping[str, float]) -> None:
        """Keep which requests were sampled, each with its inclusion probability."""
        rows = [{"sample": sample, "request_id": r, "probability": p} for r, p in cases.items()]
        self._upsert(_cases, rows)

    # -- reading -------------------------------------------------------------------------------------------

    def fact(self, key: str) -> str | None:
        """A remembered fact."""
        with self._engine.connect() as db:
            return db.execute(sa.select(_facts.c.value).where(_facts.c.key == key)).scalar_one_or_none()

    def sources(self) -> dict[str, Source]:
        """The portraits by id."""
        return {r.id: Source(r.id, r.image, r.attributes, r.origin) for r in self._rows(sa.select(_sources))}

    def features(self, extractor: str) -> dict[str, str]:
        """Feature prompts by source id."""
        query = sa.select(_features).where(_features.c.extractor == extractor)
        return {r.source_id: r.text for r in self._rows(query)}

    def requests(self) -> dict[str, Request]:
        """Every request ever planned here, by id."""
        return {
            r.id: Request(
                Experiment(r.experiment),
                r.condition,
                tuple(r.source_ids),
                r.prompt_id,
                r.instruction,
                r.editor,
                r.settings,
                r.seed,
            )
            for r in self._rows(sa.select(_requests))
        }

    def edits(self) -> dict[str, Edit]:
        """Outcomes by request id."""
        return {
            r.request_id: Edit(r.request_id, Outcome(r.outcome), r.image, r.detail, r.seconds)
            for r in self._rows(sa.select(_edits))
        }

    def answered(self, rater: str, revision: str) -> dict[str, Status]:
        """How this rater's calls ended, by request id."""
        query = sa.select(_replies.c.request_id, _replies.c.status).where(
            _replies.c.rater == rater, _replies.c.revision == revision
        )
        return {r.request_id: Status(r.status) for r in self._rows(query)}

    def ratings(self, rater: str, revision: str) -> Iterator[Rating]:
        """One rater's answers, with the state of the call they came from."""
        joined = _ratings.join(
            _replies,
            sa.and_(
                _ratings.c.request_id == _replies.c.request_id,
                _ratings.c.rater == _replies.c.rater,
                _ratings.c.revision == _replies.c.revision,
            ),
        )
        query = (
            sa.select(
                _ratings.c.request_id,
                _ratings.c.question_id,
                _ratings.c.value,
                _replies.c.kind,
                _replies.c.status,
                _replies.c.reason,
            )
            .select_from(joined)
            .where(_ratings.c.rater == rater, _ratings.c.revision == revision)
        )
        for r in self._rows(query):
            yield Rating(r.request_id, r.question_id, rater, Kind(r.kind), Status(r.status), r.value, r.reason)

    def measured(self, version: str) -> set[str]:
        """The requests whose edits were measured by this version."""
        query = sa.select(_measurements.c.request_id).where(_measurements.c.version == version)
        return {r.request_id for r in self._rows(query)}

    def measurements(self, version: str) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
        """Numbers and reasons by request id."""
        query = sa.select(_measurements).where(_measurements.c.version == version)
        return {r.request_id: (r.numbers, r.reasons) for r in self._rows(query)}

    def runs(self) -> list[dict[str, Any]]:
        """Every run with its provenance, oldest first."""
        return [dict(r._mapping) for r in self._rows(sa.select(_runs).order_by(_runs.c.id))]

    def run_of_edits(self) -> dict[str, int]:
        """Which run made each edit."""
        return {r.request_id: r.run_id for r in self._rows(sa.select(_edits.c.request_id, _edits.c.run_id))}

    def run_of_replies(self) -> dict[tuple[str, str, str], int]:
        """Which run obtained each reply, by request, rater and revision."""
        columns = (_replies.c.request_id, _replies.c.rater, _replies.c.revision, _replies.c.run_id)
        return {(r[0], r[1], r[2]): r[3] for r in self._rows(sa.select(*columns))}

    def run_of_measurements(self) -> dict[tuple[str, str], int]:
        """Which run measured each edit, by request and version."""
        columns = (_measurements.c.request_id, _measurements.c.version, _measurements.c.run_id)
        return {(r[0], r[1]): r[2] for r in self._rows(sa.select(*columns))}

    # -- inside --------------------------------------------------------------------------------------------

    def _rows(self, query: sa.Select[Any]) -> list[Any]:
        with self._engine.connect() as db:
            return list(db.execute(query).all())

    def _upsert(
        self,
        table: sa.Table,
        rows: list[dict[str, Any]],
        *,
        replace: bool = True,
        db: sa.Connection | None = None,
    ) -> None:
        if not rows:
            return
        statement: Any = self._insert(table)
        keys = [c.name for c in table.primary_key.columns]
        others = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
        if replace and others:
            statement = statement.on_conflict_do_update(index_elements=keys, set_=others)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=keys)
        if db is not None:
            db.execute(statement, rows)
        else:
            with self._engine.begin() as own:
                own.execute(statement, rows)

    def _check_version(self) -> None:
        _meta.create_all(self._engine)
        version = self.fact("schema")
        if version is None:
            self.set_fact("schema", str(SCHEMA_VERSION))
        elif int(version) > SCHEMA_VERSION:
            raise UserError(
                f"the study's database has schema {version}; this EvenEdit knows {SCHEMA_VERSION}. "
                "Upgrade: pip install --upgrade evenedit"
            )


def _sqlite(path: Path) -> sa.Engine:
    if path.exists():
        _refuse_damaged(path)
    else:
        _create_whole(path)
    engine = sa.create_engine(f"sqlite:///{path}", json_serializer=_dumps, poolclass=NullPool)
    sa.event.listen(engine, "connect", _pragmas)
    return engine


def _pragmas(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=10000")


def _create_whole(path: Path) -> None:
    """Make the database under another name and rename it, so that a kill leaves no empty file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    engine = sa.create_engine(f"sqlite:///{temporary}")
    _meta.create_all(engine)
    with engine.begin() as db:
        db.execute(_facts.insert(), {"key": "schema", "value": str(SCHEMA_VERSION)})
    engine.dispose()
    temporary.replace(path)


def _refuse_damaged(path: Path) -> None:
    advice = "restore it from a backup, or move it away to start the study again (images are kept)"
    if path.stat().st_size == 0:
        raise UserError(f"the study's database {path} is empty (0 bytes), so a copy must have failed; {advice}")
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    except sqlite3.DatabaseError as error:
        raise UserError(f"the study's database {path} cannot be read ({error}); {advice}") from None
    finally:
        with suppress(UnboundLocalError):
            db.close()
    if "facts" not in names:
        raise UserError(f"{path} is an SQLite file but not an EvenEdit study; {advice}")


def _postgres(url: str) -> sa.Engine:
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        engine = sa.create_engine(url, json_serializer=_dumps, pool_pre_ping=True)
        with engine.connect():
            pass
    except ModuleNotFoundError:
        raise UserError(
            "study.toml asks for a PostgreSQL store, which needs the 'postgres' extra. "
            "Try: pip install 'evenedit[postgres]'"
        ) from None
    except sa.exc.OperationalError as error:
        safe = sa.make_url(url).render_as_string(hide_password=True)
        raise UserError(f"PostgreSQL at {safe} does not answer: {str(error.orig).strip()}") from None
    return engine


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The study's database and image folder: SQLite in the study folder by default, PostgreSQL by URL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from evenedit.core.errors import EvenEditError, IncompleteError
from evenedit.core.images import open_images
from evenedit.core.interfaces import Reply
from evenedit.core.records import Condition, Edit, Experiment, Kind, Outcome, Rating, Request, Source, Status
from evenedit.core.submissions import OPEN, SubmissionState
from evenedit.storage import schema
from evenedit.storage.engines import postgres_engine, raise_unreadable, sqlite_engine, transact
from evenedit.storage.integrity import damage, dangling
from evenedit.storage.leases import Leases, NoLeases
from evenedit.storage.locks import database_lock, database_turn, file_lock, lock_holders
from evenedit.storage.migrations import STUDY, bring_up_to_date

DATABASE = "study.db"
IMAGES = "images"
LOCK = "study.lock"
ADDED = "sources added"
"""The fact that holds the number of the run that added each portrait."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch of calls to a provider; it is stored before it is sent."""

    tag: str
    """Our name for the job, which the provider lists too."""
    rater: str
    revision: str
    items: Mapping[str, str]
    """The cache key of each call, by request id."""
    created: datetime
    remote: str | None = None
    """The provider's id; None until the provider has answered."""


@dataclass(frozen=True, slots=True)
class StoredSubmission:
    """What was sent to a service for one edit; it is stored before it is sent."""

    id: str
    request_id: str
    provider: str
    price: float
    state: SubmissionState
    created: datetime
    answer: Any = None
    """The service's answer, where its result can still be asked for."""
    job: str | None = None
    """The service's id of the job."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """One rater's reply about one edit, ready to be stored."""

    request_id: str
    rater: str
    revision: str
    kind: Kind
    reply: Reply


class Store:
    """The study's data. What is saved is on disk when the call returns."""

    def __init__(self, folder: Path, url: str | None = None, images: str | None = None) -> None:
        self.folder = folder
        self.images_url = images or str((folder / IMAGES).absolute())
        self.images = open_images(self.images_url)
        self._engine = postgres_engine(url) if url else sqlite_engine(folder / DATABASE)
        self._insert = postgresql.insert if url else sqlite.insert
        try:
            with raise_unreadable("study"):
                bring_up_to_date(self._engine, STUDY)
        except EvenEditError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()

    # -- writing -------------------------------------------------------------------------------------------

    def begin(self) -> AbstractContextManager[sa.Connection]:
        """Begin a transaction, for code that reads and writes a table by itself."""
        return self._engine.begin()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the study while a run writes to it; raise if another process runs it, here or on another machine.

        One connection stays open: SQLite checkpoints whenever the last one is closed, which is slow.
        """
        refusal = f"another process is running the study in {self.folder}; wait for it or stop it"
        with (
            file_lock(self.folder / LOCK, refusal),
            database_lock(self._engine, "study", refusal),
            self._engine.connect(),
        ):
            yield

    @contextmanager
    def running(self, lease: float) -> Iterator[Leases]:
        """Lock the study for a run: exclusive on SQLite, shared with other runs on PostgreSQL.

        Yields the run's leases, each valid for `lease` seconds after the run's last heartbeat.
        """
        try:
            if self._engine.dialect.name == "sqlite":
                with self.locked():
                    yield NoLeases()
                return
            refusal = "another process has exclusive use of this study (a check, or anchors); wait for it or stop it"
            leases = Leases(self._engine, lease)
            with database_lock(self._engine, "study", refusal, shared=True), leases.alive():
                leases.is_sole = lock_holders(self._engine, "study") == 1
                yield leases
        except sa.exc.OperationalError as error:  # the server is gone, or the disk is full
            raise IncompleteError(
                f"the study's database failed during the run: {str(error.orig).splitlines()[0]}",
                "all results so far are stored; repair the database, then rerun the command to resume",
            ) from None

    def one_by_one(self, name: str) -> AbstractContextManager[None]:
        """Let one run at a time do something while the others wait; SQLite has only one run."""
        return database_turn(self._engine, name)

    def start_run(self, provenance: Mapping[str, Any]) -> int:
        """Save the start of a run and return its number."""
        with self._engine.begin() as db:
            row = {"started": _now(), "provenance": dict(provenance)}
            return int(db.execute(schema.runs.insert().returning(schema.runs.c.id), row).scalar_one())

    def finish_run(self, run_id: int) -> None:
        """Save the time at which a run ended."""
        self._execute(schema.runs.update().where(schema.runs.c.id == run_id).values(finished=_now()))

    def set_fact(self, key: str, value: str) -> None:
        """Save a fact about the study, in place of an earlier value."""
        self._upsert(schema.facts, [{"key": key, "value": value}])

    def try_writing(self) -> None:
        """Take the write lock and change nothing; raise if the database cannot be written."""
        with self._engine.connect() as db:
            if db.dialect.name == "sqlite":
                db.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                db.execute(sa.text(f"LOCK TABLE {schema.facts.name} IN ROW EXCLUSIVE MODE"))
            db.rollback()

    def save_added(self, sources: Iterable[Source], run_id: int) -> None:
        """Save portraits that a run added, and the number of the run."""
        sources = list(sources)
        self.set_fact(ADDED, json.dumps(dict.fromkeys((s.id for s in sources), run_id) | self.added()))
        self.save_sources(sources)

    def save_sources(self, sources: Iterable[Source]) -> None:
        """Save the portraits."""
        self._upsert(schema.sources, [_values(source) for source in sources])

    def save_feature(self, source_id: str, extractor: str, text: str, detail: Mapping[str, Any]) -> None:
        """Save a feature prompt with the extractor that wrote it."""
        row = {"source_id": source_id, "extractor": extractor, "text": text, "detail": dict(detail)}
        self._upsert(schema.features, [row])

    def save_description_calls(self, extractor: str, calls: Iterable[tuple[str, str, tuple[int, int]]]) -> None:
        """Save what an extractor's calls took: the key of each one's content, the model, tokens in and out."""
        rows = [
            {
                "request_id": f"describe {content}",
                "rater": extractor,
                "revision": "",
                "via": "call",
                "model": model,
                "input": tokens[0],
                "output": tokens[1],
                "content": content,
                "obtained": _now(),
                "job": None,
            }
            for content, model, tokens in calls
        ]
        self._upsert(schema.calls, rows)

    def save_requests(self, requests: Iterable[Request]) -> None:
        """Save requests; those that are stored already stay as they are."""
        self._upsert(schema.requests, [request_values(r) for r in requests], replace=False)

    def save_edits(self, edits: Iterable[Edit], run_id: int, *, submitted: bool = False) -> None:
        """Save the outcomes of edits, whose images must have been saved before; end what was `submitted` for them."""
        edits = list(edits)
        rows = [_values(e) | {"run_id": run_id} for e in edits]
        ended = [e.request_id for e in edits if e.outcome is not Outcome.FAILED]
        its = schema.submissions.c
        open_ = schema.submissions.update().where(its.request_id.in_(ended), its.state.in_(OPEN))

        def save(db: sa.Connection) -> None:
            self._upsert(schema.edits, rows, db=db)
            if submitted:
                db.execute(open_.values(state=SubmissionState.ENDED.value))

        transact(self._engine, save)

    def save_submission(self, submission: StoredSubmission, run_id: int) -> None:
        """Save a submission and how far it is; call this before sending it."""
        row = _values(submission) | {"created": submission.created.isoformat(), "run_id": run_id}
        self._upsert(schema.submissions, [row])

    def save_answers(self, answers: Sequence[StoredReply], run_id: int) -> None:
        """Save replies and the ratings in them, in one transaction."""
        replies = [
            _reply_key(a)
            | {
                "kind": a.kind.value,
                "status": a.reply.status.value,
                "reason": a.reply.reason,
                "raw": a.reply.raw,
                "run_id": run_id,
            }
            for a in answers
        ]
        ratings = [
            _reply_key(a)
            | {
                "question_id": question,
                "value": value,
                "confidence": a.reply.confidence.get(question),
            }
            for a in answers
            for question, value in a.reply.values.items()
        ]
        calls = [
            _reply_key(a)
            | {name: a.reply.origin[name] for name in ("via", "model", "input", "output", "content")}
            | {
                "obtained": a.reply.origin.get("obtained") or _now(),
                "job": a.reply.origin.get("job"),
            }
            for a in answers
            if "via" in a.reply.origin
        ]

        def save(db: sa.Connection) -> None:
            self._upsert(schema.replies, replies, db=db)
            self._upsert(schema.ratings, ratings, db=db)
            self._upsert(schema.calls, calls, db=db)

        transact(self._engine, save)

    def save_job(self, job: BatchJob, run_id: int) -> None:
        """Save a batch job; call this before sending it."""
        state = {"state": "open", "told": "", "ended": None}
        row = _values(job) | state | {"created": job.created.isoformat(), "run_id": run_id}
        self._upsert(schema.jobs, [row])

    def found_job(self, tag: str, remote: str) -> None:
        """Save the provider's id of a batch job."""
        self._execute(schema.jobs.update().where(schema.jobs.c.tag == tag).values(remote=remote))

    def end_job(self, tag: str, ending: str, *, cleaned: bool = True) -> None:
        """Save that a batch job has ended, with the provider's word; unless `cleaned`, it still has files there."""
        row = {"state": "ended" if cleaned else "collected", "told": ending, "ended": _now()}
        self._execute(schema.jobs.update().where(schema.jobs.c.tag == tag).values(row))

    def cleaned_job(self, tag: str) -> None:
        """Save that an ended batch job has left nothing at the provider."""
        self._execute(schema.jobs.update().where(schema.jobs.c.tag == tag).values(state="ended"))

    def save_measurements(self, measurements: Mapping[str, tuple[Any, Any]], version: str, run_id: int) -> None:
        """Save measurements: numbers, and reasons for missing ones, by request id."""
        rows = [
            {"request_id": i, "version": version, "numbers": dict(n), "reasons": dict(r), "run_id": run_id}
            for i, (n, r) in measurements.items()
        ]
        self._upsert(schema.measurements, rows)

    def save_cases(self, sample: str, cases: Mapping[str, float]) -> None:
        """Save which requests were sampled, each with its inclusion probability."""
        rows = [{"sample": sample, "request_id": r, "probability": p} for r, p in cases.items()]
        self._upsert(schema.cases, rows)

    def forget_cases(self, sample: str) -> None:
        """Delete a sample."""
        self._execute(schema.cases.delete().where(schema.cases.c.sample == sample))

    def damage(self) -> list[str]:
        """Return the database's own messages about damage; empty if it is intact."""
        return damage(self._engine, schema.metadata)

    def dangling(self) -> dict[str, int]:
        """Count the edits, ratings and measurements that belong to no request, by table; they are not used."""
        return dangling(self._engine)

    # -- reading -------------------------------------------------------------------------------------------

    def fact(self, key: str) -> str | None:
        """Return a fact about the study, or None."""
        return next((row.value for row in self._select(schema.facts, key=key)), None)

    def sources(self) -> dict[str, Source]:
        """Return the portraits by id."""
        return {r.id: Source(r.id, r.image, r.attributes, r.origin) for r in self._rows(sa.select(schema.sources))}

    def added(self) -> dict[str, int]:
        """Return the number of the run that added each portrait, by id; earlier releases did not store it."""
        known: dict[str, int] = json.loads(self.fact(ADDED) or "{}")
        return known

    def features(self, extractor: str) -> dict[str, tuple[str, list[str]]]:
        """Return feature prompts and their flags by source id."""
        rows = self._select(schema.features, extractor=extractor)
        return {r.source_id: (r.text, r.detail.get("flags", [])) for r in rows}

    def requests(self, only: str | None = None) -> dict[str, Request]:
        """Return every request ever planned by id, or only one of them."""
        return {
            r.id: Request(
                Experiment(r.experiment),
                Condition.parse(r.condition),
                tuple(r.source_ids),
                r.prompt_id,
                r.instruction,
                r.editor,
                r.settings,
                r.seed,
            )
            for r in self._select(schema.requests, id=only)
        }

    def has_requests(self, editor: str) -> bool:
        """Return whether a request of this editor was ever planned."""
        query = sa.select(schema.requests.c.id).where(schema.requests.c.editor == editor).limit(1)
        return bool(self._rows(query))

    def edits(self, only: str | None = None) -> dict[str, Edit]:
        """Return the edits by request id, all or only one."""
        return {
            r.request_id: Edit(r.request_id, Outcome(r.outcome), r.image, r.detail, r.seconds)
            for r in self._select(schema.edits, request_id=only)
        }

    def open_submission(self, request_id: str) -> StoredSubmission | None:
        """Return the submission for an edit whose result is still to come, if there is one."""
        its = schema.submissions.c
        query = sa.select(schema.submissions).where(its.request_id == request_id, its.state.in_(OPEN))
        return next(map(_submission, self._rows(query.order_by(its.created.desc()))), None)

    def submissions(self) -> list[StoredSubmission]:
        """Return all submissions, oldest first."""
        query = sa.select(schema.submissions).order_by(schema.submissions.c.created)
        return [_submission(r) for r in self._rows(query)]

    def submission_states(self) -> list[tuple[str, str, SubmissionState]]:
        """Return request, provider and state of every submission."""
        rows = self._select(schema.submissions, "request_id", "provider", "state")
        return [(r.request_id, r.provider, SubmissionState(r.state)) for r in rows]

    def interrupted_submissions(self) -> tuple[int, float]:
        """Count what the last runs submitted that did not come to their end, and what that costs."""
        last = sa.select(sa.func.coalesce(sa.func.max(schema.runs.c.id), 0)).where(schema.runs.c.finished.is_not(None))
        its = schema.submissions.c
        query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(its.price), 0.0)).where(
            its.run_id > last.scalar_subquery(), its.state != SubmissionState.REJECTED.value
        )
        (row,) = self._rows(query)
        return int(row[0]), float(row[1])

    def pictures(self, most: int) -> list[str]:
        """Return the pictures of some edits."""
        query = sa.select(schema.edits.c.image).where(schema.edits.c.image.is_not(None)).limit(most)
        return [r.image for r in self._rows(query)]

    def count_edits(self) -> int:
        """Return how many edits there are."""
        return int(self._rows(sa.select(sa.func.count()).select_from(schema.edits))[0][0])

    def cases(self, sample: str) -> dict[str, float]:
        """Return a saved sample: request ids with their inclusion probabilities."""
        return {r.request_id: r.probability for r in self._select(schema.cases, sample=sample)}

    def samples(self) -> list[str]:
        """Return the names of the saved samples."""
        return sorted(r.sample for r in self._rows(sa.select(schema.cases.c.sample).distinct()))

    def models(self, rater: str, revision: str) -> dict[str, int]:
        """Return the models that answered for a rater, as the provider named them, each with its number of answers."""
        query = (
            sa.select(schema.calls.c.model, sa.func.count())
            .where(schema.calls.c.rater == rater, schema.calls.c.revision == revision, schema.calls.c.model != "")
            .group_by(schema.calls.c.model)
            .order_by(schema.calls.c.model)
        )
        return {r[0]: r[1] for r in self._rows(query)}

    def answered(self, rater: str, revision: str, only: Collection[str] | None = None) -> dict[str, Status]:
        """Return the status of each of a rater's replies, or of those about some edits, by request id."""
        rows = self._select(schema.replies, "request_id", "status", rater=rater, revision=revision, request_id=only)
        return {r.request_id: Status(r.status) for r in rows}

    def ends_of_replies(self, rater: str, revision: str, ids: Collection[str]) -> dict[str, tuple[Status, int]]:
        """Return how a rater's calls about some edits ended, and in which run, by request id."""
        rows = self._select(
            schema.replies, "request_id", "status", "run_id", rater=rater, revision=revision, request_id=ids
        )
        return {r.request_id: (Status(r.status), r.run_id) for r in rows}

    def ends_of(self, ids: Collection[str]) -> dict[str, tuple[Outcome, int]]:
        """Return how some edits ended, and in which run, by request id."""
        rows = self._select(schema.edits, "request_id", "outcome", "run_id", request_id=ids)
        return {r.request_id: (Outcome(r.outcome), r.run_id) for r in rows}

    def failures(self, rater: str, revision: str) -> dict[str, str]:
        """Return why each of a rater's calls failed that did, by request id."""
        failed = {"rater": rater, "revision": revision, "status": Status.FAILED.value}
        return {r.request_id: r.reason for r in self._select(schema.replies, "request_id", "reason", **failed)}

    def ratings(self, rater: str, revision: str) -> Iterator[Rating]:
        """Yield one rater's ratings, each with the status of its reply."""
        answers, replies = schema.ratings.c, schema.replies.c
        same = sa.and_(*(answers[name] == replies[name] for name in ("request_id", "rater", "revision")))
        query = (
            sa.select(schema.ratings, replies.kind, replies.status, replies.reason)
            .join(schema.replies, same)
            .where(answers.rater == rater, answers.revision == revision)
        )
        for r in self._rows(query):
            yield Rating(
                r.request_id, r.question_id, rater, Kind(r.kind), Status(r.status), r.value, r.reason, r.confidence
            )

    def replies(self, request_id: str) -> dict[tuple[str, str], Reply]:
        """Return the raw replies about one edit by rater and revision; their values are in `ratings`."""
        return {(r.rater, r.revision): _reply(r) for r in self._select(schema.replies, request_id=request_id)}

    def replies_of(self, rater: str, revision: str) -> dict[str, Reply]:
        """Return the raw replies of one rater by request id; their values are in `ratings`."""
        return {r.request_id: _reply(r) for r in self._select(schema.replies, rater=rater, revision=revision)}

    def measured(self, version: str, only: Collection[str] | None = None) -> set[str]:
        """Return the requests, or those of some, whose edits this version has measured."""
        return {r.request_id for r in self._select(schema.measurements, "request_id", version=version, request_id=only)}

    def measurements(self, version: str, only: str | None = None) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
        """Return numbers, and reasons for missing ones, by request id, for all edits or only one."""
        rows = self._select(schema.measurements, version=version, request_id=only)
        return {r.request_id: (r.numbers, r.reasons) for r in rows}

    def runs(self) -> list[dict[str, Any]]:
        """Return every run with its provenance, oldest first."""
        return [dict(r._mapping) for r in self._rows(sa.select(schema.runs).order_by(schema.runs.c.id))]

    def editors_used(self) -> set[str]:
        """Return the ids of the editors that have made an edit, or tried."""
        joined = schema.requests.join(schema.edits, schema.requests.c.id == schema.edits.c.request_id)
        return {r.editor for r in self._rows(sa.select(schema.requests.c.editor).select_from(joined).distinct())}

    def revisions(self, rater: str) -> set[str]:
        """Return the revisions under which a rater's replies are stored."""
        query = sa.select(schema.replies.c.revision).where(schema.replies.c.rater == rater).distinct()
        return {r.revision for r in self._rows(query)}

    def raters_used(self) -> set[str]:
        """Return the ids of the raters that have been asked."""
        return {r.rater for r in self._rows(sa.select(schema.replies.c.rater).distinct())}

    def run_of_edits(self, only: Outcome | None = None) -> dict[str, int]:
        """Return the run that made each edit, or each that ended in one way."""
        rows = self._select(schema.edits, "request_id", "run_id", outcome=only and only.value)
        return {r.request_id: r.run_id for r in rows}

    def run_of_replies(self, only: Status | None = None) -> dict[tuple[str, str, str], int]:
        """Return the run that obtained each reply, or each of one status, by request, rater and revision."""
        rows = self._select(schema.replies, "request_id", "rater", "revision", "run_id", status=only and only.value)
        return {(r.request_id, r.rater, r.revision): r.run_id for r in rows}

    def open_jobs(self) -> list[BatchJob]:
        """Return the batch jobs without results so far, oldest first."""
        return self._jobs("open")

    def collected_jobs(self) -> list[BatchJob]:
        """Return the batch jobs that have ended and have files at the provider yet, oldest first."""
        return self._jobs("collected")

    def _jobs(self, state: str) -> list[BatchJob]:
        query = sa.select(schema.jobs).where(schema.jobs.c.state == state).order_by(schema.jobs.c.created)
        return [
            BatchJob(r.tag, r.rater, r.revision, r.items, datetime.fromisoformat(r.created), r.remote)
            for r in self._rows(query)
        ]

    def calls(self, rater: str, revision: str | None = None) -> list[Any]:
        """Return how a rater's replies were obtained: by call, batch or cache, from which model, at how many tokens."""
        return self._select(schema.calls, rater=rater, revision=revision)

    def tokens(self, rater: str, revisions: Collection[str] | None = None) -> tuple[float, float] | None:
        """Return the average tokens in and out of a rater's calls, of all or some revisions; None before the first."""
        counted = [c for c in self.calls(rater) if c.input and (revisions is None or c.revision in revisions)]
        if not counted:
            return None
        return sum(c.input for c in counted) / len(counted), sum(c.output for c in counted) / len(counted)

    def run_of_measurements(self) -> dict[tuple[str, str], int]:
        """Return the run that measured each edit, by request and version."""
        rows = self._select(schema.measurements, "request_id", "version", "run_id")
        return {(r.request_id, r.version): r.run_id for r in rows}

    def mark(self, *other_files: str) -> tuple[int, ...]:
        """Return numbers that change with each write to this database or to the SQLite files `other_files`."""
        if self._engine.dialect.name == "sqlite":
            files = (self.folder / f"{name}{tail}" for name in (DATABASE, *other_files) for tail in ("", "-wal"))
            return tuple(number for file in files for number in _size_and_time(file))
        counted = sa.text("SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables")
        with self._engine.connect() as db:
            return (int(db.execute(counted).scalar_one()),)

    # -- inside --------------------------------------------------------------------------------------------

    def _select(self, table: sa.Table, *columns: str, **where: Any) -> list[Any]:
        """Return the rows whose columns have these values, or one of several, with some columns or all.

        None stands for any value.
        """
        query = sa.select(*(table.c[name] for name in columns or table.c.keys()))
        conditions = [
            table.c[name] == value if isinstance(value, str | int) else table.c[name].in_(value)
            for name, value in where.items()
            if value is not None
        ]
        return self._rows(query.where(*conditions))

    def _rows(self, query: sa.Select[Any]) -> list[Any]:
        return transact(self._engine, lambda db: list(db.execute(query).all()))

    def _execute(self, statement: sa.Executable) -> None:
        transact(self._engine, lambda db: db.execute(statement))

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
            transact(self._engine, lambda db: db.execute(statement, rows))


def _size_and_time(file: Path) -> tuple[int, int]:
    """Return a file's size and time of change; an empty write-ahead log counts as a missing one."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return 0, 0
    return (status.st_size, status.st_mtime_ns) if status.st_size else (0, 0)


def _reply(row: Any) -> Reply:
    return Reply(Status(row.status), reason=row.reason, raw=row.raw)


def _submission(row: Any) -> StoredSubmission:
    created = datetime.fromisoformat(row.created)
    return StoredSubmission(
        row.id, row.request_id, row.provider, row.price, SubmissionState(row.state), created, row.answer, row.job
    )


def request_values(request: Request) -> dict[str, Any]:
    """Return a request as plain values, in the order of the database's columns."""
    written = {"condition": str(request.condition), "source_ids": list(request.source_ids)}
    return {"id": request.id} | _values(request) | written


def _values(record: Any) -> dict[str, Any]:
    """Return the fields of a record by the names of their columns."""
    values = {part.name: getattr(record, part.name) for part in fields(record)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _reply_key(a: StoredReply) -> dict[str, Any]:
    return {"request_id": a.request_id, "rater": a.rater, "revision": a.revision}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""Who writes: one thread with group commit on SQLite, transactions with row locks on PostgreSQL.

Either way a piece of work is done wholly or not at all, and its result is handed over only after the commit.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

GROUP = 512
"""At most so many pieces of work share a commit."""
CONNECTIONS = 8
"""Transactions under way at once on PostgreSQL."""
RETRIES = 5
T = TypeVar("T")
Work = Callable[[sa.Connection], T]


class Writer(Protocol):
    """Takes work, and keeps it before it answers."""

    def submit(self, work: Work[T]) -> Future[T]:
        """The work's result, once it is on disk."""
        ...

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        ...


class GroupCommit:
    """SQLite: one thread writes, and commits together whatever has come in meanwhile."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="survey-writer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue the work; its future is resolved after the commit that holds it."""
        if self._closed:
            raise RuntimeError("the survey's writer is closed")
        future: Future[T] = Future()
        self._queue.put((work, future))
        return future

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        with self._engine.connect() as db:
            while (first := self._queue.get()) is not None:
                group = [first]
                last = False
                while len(group) < GROUP and not self._queue.empty():
                    more = self._queue.get()
                    if more is None:
                        last = True
                        break
                    group.append(more)
                self._commit(db, group)
                if last:
                    return

    def _commit(self, db: sa.Connection, group: list[tuple[Work[Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with db.begin():
                for work, future in group:
                    outcomes.append((future, *self._attempt(db, work)))
        except BaseException as error:  # nothing of the group is on disk: say so to each of them
            outcomes = [(future, None, error) for _, future in group]
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _attempt(self, db: sa.Connection, work: Work[T]) -> tuple[T | None, BaseException | None]:
        """One piece of work; if it fails, only its own changes are undone."""
        db.exec_driver_sql("SAVEPOINT work")
        try:
            return work(db), None
        except Exception as error:
            db.exec_driver_sql("ROLLBACK TO work")
            return None, error
        finally:
            db.exec_driver_sql("RELEASE work")


class RowLocks:
    """PostgreSQL: each piece of work is a transaction; row locks keep them apart, and lost races run again."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="survey-writer")

    def submit(self, work: Work[T]) -> Future[T]:
        """Start the transaction on one of our threads."""
        return self._pool.submit(self._transaction, work)

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        self._pool.shutdown()

    def _transaction(self, work: Work[T]) -> T:
        for attempt in range(RETRIES):
            try:
                with self._engine.begin() as db:
                    return work(db)
            except (sa.exc.IntegrityError, sa.exc.OperationalError):  # two at once, or a deadlock: one goes again
                if attempt == RETRIES - 1:
                    raise
        raise AssertionError


def immediate(engine: sa.Engine) -> None:
    """Have SQLite take its write lock when a transaction begins, not at its first write."""

    def own_transactions(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    sa.event.listen(engine, "connect", own_transactions)
    sa.event.listen(engine, "begin", begin)

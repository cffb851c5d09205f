"""How the survey's database is written: by one thread with group commit on SQLite, with row locks on PostgreSQL.

Either way a piece of work is a transaction, and its result is returned only after the commit.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

GROUP = 512
"""The most pieces of work in one commit."""
CONNECTIONS = 8
"""The most simultaneous transactions on PostgreSQL."""
ATTEMPTS = 5
"""How often a transaction is tried on PostgreSQL."""
T = TypeVar("T")
Work = Callable[[sa.Connection], T]
"""A transaction. It may be run again, so all that it changes is in the database."""
Entry = tuple[Work[Any], Future[Any]]

_conflict = retry_if_exception_type((sa.exc.IntegrityError, sa.exc.OperationalError))
_retrying = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=_conflict, reraise=True)


class Writer(Protocol):
    """Runs pieces of work on a database and commits them."""

    def submit(self, work: Work[T]) -> Future[T]:
        """Submit a piece of work; the future has its result after the commit."""
        ...

    def close(self) -> None:
        """Finish the submitted work, then stop."""
        ...


class GroupCommit:
    """Writes to SQLite in one thread, and commits together the work that arrived during the last commit."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="survey-writer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue a piece of work; the future has its result after the commit."""
        if self._closed:
            raise RuntimeError("the survey's writer is closed")
        future: Future[T] = Future()
        self._queue.put((work, future))
        return future

    def close(self) -> None:
        """Finish the submitted work, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        with self._engine.connect() as db:
            while (first := self._queue.get()) is not None:
                group: list[Entry | None] = [first]
                while len(group) < GROUP and not self._queue.empty():
                    group.append(self._queue.get())
                self._commit(db, [one for one in group if one is not None])
                if None in group:
                    return

    def _commit(self, db: sa.Connection, group: list[Entry]) -> None:
        try:
            with db.begin():
                results = [work(db) for work, _ in group]
        except Exception:  # nothing is committed: who failed is found one by one
            self._one_by_one(db, group)
            return
        for (_, future), result in zip(group, results, strict=True):
            future.set_result(result)

    def _one_by_one(self, db: sa.Connection, group: list[Entry]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with db.begin():
                for work, future in group:
                    outcomes.append((future, *self._attempt(db, work)))
        except BaseException as error:  # nothing of the group was committed
            outcomes = [(future, None, error) for _, future in group]
        for future, result, failure in outcomes:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _attempt(self, db: sa.Connection, work: Work[T]) -> tuple[T | None, BaseException | None]:
        """Run one piece of work; if it raises, undo its changes and no others."""
        db.exec_driver_sql("SAVEPOINT work")
        try:
            return work(db), None
        except Exception as error:
            db.exec_driver_sql("ROLLBACK TO work")
            return None, error
        finally:
            db.exec_driver_sql("RELEASE work")


class RowLocks:
    """Writes to PostgreSQL with a transaction for each piece of work; those that conflict are tried again."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="survey-writer")

    def submit(self, work: Work[T]) -> Future[T]:
        """Start a transaction in a thread of the pool."""
        return self._pool.submit(self._transaction, work)

    def close(self) -> None:
        """Finish the submitted work, then stop."""
        self._pool.shutdown()

    def _transaction(self, work: Work[T]) -> T:
        result: T = _retrying(self._attempt, work)
        return result

    def _attempt(self, work: Work[T]) -> T:
        with self._engine.begin() as db:
            return work(db)


def immediate(engine: sa.Engine) -> None:
    """Make SQLite take its write lock when a transaction begins, not at the first write."""

    def own_transactions(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    sa.event.listen(engine, "connect", own_transactions)
    sa.event.listen(engine, "begin", begin)

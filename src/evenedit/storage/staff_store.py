"""The file of secrets: staff accounts with their password hashes, and their sessions.

It is separate from the databases that can be shared, and only its owner can read it.
"""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenedit.core.errors import EvenEditError

FILE = "secrets.db"
MODE = 0o600
_TABLES = """
CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, role TEXT NOT NULL, hash TEXT NOT NULL, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY, name TEXT NOT NULL, mark TEXT NOT NULL, begun REAL NOT NULL, ends REAL NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class StaffAccount:
    """A member of staff who can sign in."""

    name: str
    role: str
    hash: str
    """The argon2 hash of the password."""
    created: float
    """When the account was made, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class StaffSession:
    """A sign-in that has not ended."""

    name: str
    mark: str
    """A digest of the password hash at sign-in: a new password ends the session."""
    ends: float


class StaffStore:
    """Accounts and sessions of a study's staff, in an SQLite file that any number of processes can use."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def accounts(self) -> dict[str, StaffAccount]:
        """Return the accounts by name, sorted."""
        if not self.path.exists():
            return {}
        with self._open() as db:
            rows = db.execute("SELECT name, role, hash, made FROM accounts ORDER BY name").fetchall()
        return {row[0]: StaffAccount(*row) for row in rows}

    def checked(self) -> dict[str, StaffAccount]:
        """Return the accounts after a check of the file; raise if it is empty or damaged."""
        if self.path.stat().st_size == 0:
            raise self._unusable("it is empty (0 bytes); a copy probably failed")
        with self._open() as db:
            (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise self._unusable(result)
        return self.accounts()

    def save(self, account: StaffAccount) -> None:
        """Add an account, or change the one of this name."""
        with self._open() as db:
            db.execute(
                "INSERT INTO accounts VALUES (?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET role = excluded.role, hash = excluded.hash",
                (account.name, account.role, account.hash, account.created),
            )

    def remove(self, name: str) -> bool:
        """Remove an account and end its sessions; return False if there was none."""
        with self._open() as db:
            db.execute("DELETE FROM sessions WHERE name = ?", (name,))
            return bool(db.execute("DELETE FROM accounts WHERE name = ?", (name,)).rowcount)

    def begin(self, token: str, session: StaffSession, now: float) -> None:
        """Save a session under the digest of its token, and delete those whose time is over."""
        with self._open() as db:
            db.execute("DELETE FROM sessions WHERE ends < ?", (now,))
            row = (token, session.name, session.mark, now, session.ends)
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)

    def session(self, token: str, now: float) -> StaffSession | None:
        """Return the session of a token's digest, unless it has ended."""
        if not self.path.exists():
            return None
        with self._open() as db:
            query = "SELECT name, mark, ends FROM sessions WHERE token = ? AND ends >= ?"
            row = db.execute(query, (token, now)).fetchone()
        return StaffSession(*row) if row else None

    def end(self, token: str) -> None:
        """End a session."""
        with self._open() as db:
            db.execute("DELETE FROM sessions WHERE token = ?", (token,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open a connection whose changes are on disk when it closes. The journal has the mode of the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, MODE))
        if self.path.stat().st_mode & 0o777 != MODE:
            self.path.chmod(MODE)
        try:
            with closing(sqlite3.connect(self.path, timeout=10)) as db, db:
                db.execute("PRAGMA secure_delete = ON")
                db.executescript(_TABLES)
                yield db
        except sqlite3.DatabaseError as error:
            raise self._unusable(str(error)) from None

    def _unusable(self, why: str) -> EvenEditError:
        return EvenEditError(
            f"the file of accounts {self.path} cannot be used ({why}); restore it from a backup, "
            "or move it away and add the accounts again: evenedit admin add"
        )


def plain_name(name: str) -> str:
    """Return a name as accounts store it, independent of case and Unicode form."""
    return unicodedata.normalize("NFKC", name).strip().lower()

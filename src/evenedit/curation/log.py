"""The log of a curation: append-only, on disk before it is acknowledged. The state is computed from it alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evenedit.core.errors import EvenEditError

DATABASE = "curation.db"
CRITERIA: Mapping[str, str] = MappingProxyType(
    {
        "frontal_face": "Frontal face",
        "clear_focus": "Clear focus",
        "proper_lighting": "Proper lighting",
        "identifiable_features": "Identifiable features",
        "neutral_expression": "Neutral expression",
        "upright_posture": "Upright posture",
    }
)
"""All six must be met by every image of a finalised set."""


class ActionKind(StrEnum):
    """What a reviewer can do."""

    ASSESS = "assess"
    SELECT = "select"
    DESELECT = "deselect"
    UNDO = "undo"
    FINALISE = "finalise"


class CellStatus(StrEnum):
    """The progress of a cell."""

    OPEN = "open"
    UNMET = "unmet"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Action:
    """One line of the log."""

    reviewer: str
    kind: ActionKind
    cell: str = ""
    pool: str | None = None
    criteria: frozenset[str] = frozenset()
    """Those the reviewer ticked."""
    note: str = ""
    undoes: int | None = None
    """The action that this one undoes."""
    against: int | None = None
    """An earlier action of another reviewer that this one conflicts with; this one is then logged but has no effect."""
    time: str = ""
    id: int = 0
    """Its number in the log."""

    @property
    def in_force(self) -> bool:
        """True if it has an effect, unless it is undone."""
        return self.against is None


@dataclass(frozen=True, slots=True)
class Assessment:
    """What was last ticked and written about a candidate."""

    criteria: frozenset[str] = frozenset()
    note: str = ""
    reviewer: str = ""


@dataclass(slots=True)
class CellState:
    """The state of a cell: its selected candidates and their assessments."""

    selected: list[str] = field(default_factory=list)
    """Pools, in the order they were chosen."""
    assessments: dict[str, Assessment] = field(default_factory=dict)
    """By pool."""
    chosen_by: dict[str, Action] = field(default_factory=dict)
    """The action that chose each selected pool."""

    def unmet(self, pool: str) -> list[str]:
        """Return the criteria that a candidate does not meet."""
        met = self.assessments.get(pool, Assessment()).criteria
        return [c for c in CRITERIA if c not in met]

    def status(self, faces: int) -> CellStatus:
        """Return OPEN until all faces are chosen, DONE if they meet every criterion, else UNMET."""
        if len(self.selected) < faces:
            return CellStatus.OPEN
        return CellStatus.UNMET if any(self.unmet(pool) for pool in self.selected) else CellStatus.DONE


def undone(actions: Iterable[Action]) -> set[int]:
    """Return the ids of the actions that were undone."""
    return {a.undoes for a in actions if a.undoes is not None}


def fold(actions: Sequence[Action], cells: Iterable[str], faces: int) -> dict[str, CellState]:
    """Return the state of every cell after these actions. With one face per cell, a new choice replaces the last."""
    state = {cell: CellState() for cell in cells}
    reverted = undone(actions)
    for action in actions:
        if not action.in_force or action.id in reverted or action.cell not in state:
            continue
        cell = state[action.cell]
        if action.kind in (ActionKind.SELECT, ActionKind.ASSESS) and action.pool:
            cell.assessments[action.pool] = Assessment(action.criteria, action.note, action.reviewer)
        if action.kind is ActionKind.SELECT and action.pool:
            if faces == 1:
                cell.selected.clear()
                cell.chosen_by.clear()
            if action.pool not in cell.selected:
                cell.selected.append(action.pool)
            cell.chosen_by[action.pool] = action
        elif action.kind is ActionKind.DESELECT:
            for pool in [action.pool] if action.pool else list(cell.selected):
                if pool in cell.selected:
                    cell.selected.remove(pool)
                    del cell.chosen_by[pool]
    return state


class Log:
    """The log on disk: an SQLite file whose rows can be added and never changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._writing() as db:
            for statement in _SCHEMA:
                db.execute(statement)

    def bind(self, pools: str, earlier: Sequence[str] = ()) -> None:
        """Tie the log to the hash of its pools: choices are valid for no others, unless these pools were added to."""
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO facts VALUES ('pools', ?)", [pools])
            for one in earlier:
                db.execute("UPDATE facts SET value = ? WHERE key = 'pools' AND value = ?", [pools, one])
            (known,) = db.execute("SELECT value FROM facts WHERE key = 'pools'").fetchone()
        if known != pools:
            raise EvenEditError(
                f"the candidate pools changed after the curation in {self.path} had begun; restore them, "
                "or move that file away to begin again"
            )

    def actions(self, after: int = 0) -> list[Action]:
        """Return the actions after a number in the log, oldest first."""
        with self._open() as db:
            return [_action(row) for row in db.execute("SELECT * FROM actions WHERE id > ? ORDER BY id", [after])]

    def append(self, action: Action, *, seen: int | None = None, token: str | None = None) -> Action:
        """Store an action and return it with its number.

        `seen` is the number of the last action its reviewer had seen: if another reviewer has changed the same thing
        since, the action is logged but has no effect. An action with a known `token` is stored once only.
        """
        with self._writing() as db:
            if token is not None:
                known = db.execute("SELECT * FROM actions WHERE token = ?", [token]).fetchone()
                if known:
                    return _action(known)
            if seen is not None:
                newer = db.execute("SELECT * FROM actions WHERE id > ? ORDER BY id", [seen])
                action = replace(action, against=_first_clash(action, [_action(row) for row in newer]))
            return _insert(db, action, token)

    def extend(self, actions: Iterable[Action]) -> int:
        """Store an imported log with its ids, completely or not at all; the log must be empty."""
        with self._writing() as db:
            (count,) = db.execute("SELECT count(*) FROM actions").fetchone()
            if count:
                raise EvenEditError(
                    f"{self.path} holds {count} actions already; a log can only be imported before the first one"
                )
            return len([_insert(db, action, None) for action in actions])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            yield db
        except sqlite3.DatabaseError as error:
            raise EvenEditError(f"the curation log {self.path} cannot be used: {error}") from None
        finally:
            db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS actions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, reviewer TEXT NOT NULL, action TEXT NOT NULL,
        cell TEXT NOT NULL, pool TEXT, criteria TEXT NOT NULL, note TEXT NOT NULL, undoes INTEGER, against INTEGER,
        token TEXT UNIQUE)""",
    """CREATE TRIGGER IF NOT EXISTS no_change BEFORE UPDATE ON actions
       BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS no_removal BEFORE DELETE ON actions
       BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
)


def _insert(db: sqlite3.Connection, action: Action, token: str | None) -> Action:
    action = replace(action, time=action.time or datetime.now(UTC).isoformat(timespec="milliseconds"))
    criteria = json.dumps(sorted(action.criteria))
    who = [action.id or None, action.time, action.reviewer, action.kind.value]
    what = [action.cell, action.pool, criteria, action.note, action.undoes, action.against]
    cursor = db.execute("INSERT INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*who, *what, token])
    assert cursor.lastrowid is not None
    return replace(action, id=cursor.lastrowid)


def _action(row: Any) -> Action:
    return Action(
        reviewer=row["reviewer"],
        kind=ActionKind(row["action"]),
        cell=row["cell"],
        pool=row["pool"],
        criteria=frozenset(json.loads(row["criteria"])),
        note=row["note"],
        undoes=row["undoes"],
        against=row["against"],
        time=row["time"],
        id=row["id"],
    )


def _touches(action: Action) -> set[tuple[str, str | None]]:
    """Return the targets of an action: a cell's choice, a candidate's assessment."""
    choice = {("choice", None)} if action.kind in (ActionKind.SELECT, ActionKind.DESELECT) else set()
    assessment = {("assessment", action.pool)} if action.kind in (ActionKind.SELECT, ActionKind.ASSESS) else set()
    return choice | assessment


def _first_clash(action: Action, newer: Sequence[Action]) -> int | None:
    reverted = undone(newer)
    for other in newer:
        if other.reviewer == action.reviewer or other.cell != action.cell or not other.in_force or other.id in reverted:
            continue
        if _touches(other) & _touches(action):
            return other.id
    return None

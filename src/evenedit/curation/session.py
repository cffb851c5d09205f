"""A curation session: reviewers' actions go to the log, and the finalised set is written from it. Thread-safe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from filelock import FileLock

from evenedit.core.errors import EvenEditError
from evenedit.curation import portraits
from evenedit.curation.authors import read_log
from evenedit.curation.candidates import Candidate
from evenedit.curation.grid import DEFAULT_GRID, Grid
from evenedit.curation.log import CRITERIA, DATABASE, Action, ActionKind, CellState, CellStatus, Log, fold, undone
from evenedit.curation.pools import Pools


class CurationSession:
    """One curation: its pools, its log and the folder of its finalised set."""

    def __init__(
        self, folder: Path, pools: Path, out: Path, faces_per_cell: int = 1, grid: Grid = DEFAULT_GRID
    ) -> None:
        self.grid = grid
        self.pools = Pools.read(pools, grid)
        self.out = out
        self.faces = faces_per_cell
        self.log = Log(folder / DATABASE)
        self.log.bind(self.pools.hash, self.pools.facts.get("earlier", ()))

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, actions: list[Action] | None = None) -> dict[str, CellState]:
        """Return the state of all cells, in the grid's order."""
        return fold(self.log.actions() if actions is None else actions, self.grid.cells, self.faces)

    def distribution(self, state: dict[str, CellState]) -> dict[str, int]:
        """Count the chosen images by pool."""
        counts = Counter(pool for cell in state.values() for pool in cell.selected)
        return {pool: counts[pool] for pool in self.pools.ids}

    def chosen(self, state: dict[str, CellState]) -> list[Candidate]:
        """Return the chosen candidates, in the grid's order."""
        return [self.pools.candidates[cell, pool] for cell, at in state.items() for pool in at.selected]

    def problems(self, state: dict[str, CellState]) -> list[tuple[str, str]]:
        """Return why this state cannot be finalised: pairs of cell and reason."""
        reasons: list[tuple[str, str]] = []
        for cell, at in state.items():
            if at.status(self.faces) is CellStatus.OPEN:
                lack = "no image chosen" if self.faces == 1 else f"{len(at.selected)} of {self.faces} images chosen"
                reasons.append((cell, lack if self.pools.of(cell) else "has no candidate in any pool"))
            if len(at.selected) > self.faces:
                reasons.append((cell, f"{len(at.selected)} images chosen, {self.faces} wanted; deselect some"))
            for pool in at.selected:
                if at.unmet(pool):
                    names = ", ".join(CRITERIA[c].lower() for c in at.unmet(pool))
                    reasons.append((cell, f"{pool} does not meet: {names}"))
        seen: dict[str, Candidate] = {}
        for candidate in self.chosen(state):
            first = seen.setdefault(candidate.sha256, candidate)
            if first is not candidate:
                reasons.append((candidate.cell, f"{candidate.pool} is the same picture as {first.cell} {first.pool}"))
        return reasons

    # -- actions -------------------------------------------------------------------------------------------

    def act(
        self,
        reviewer: str,
        kind: ActionKind,
        cell: str,
        pool: str,
        *,
        criteria: Collection[str] = (),
        note: str = "",
        seen: int | None = None,
        token: str | None = None,
    ) -> Action:
        """Assess, select or deselect a candidate; return the action when it is on disk."""
        if kind not in (ActionKind.ASSESS, ActionKind.SELECT, ActionKind.DESELECT):
            raise EvenEditError(f"'{kind}' is not an action on a candidate")
        if (cell, pool) not in self.pools.candidates:
            raise EvenEditError(f"there is no candidate of pool {pool} for {cell}")
        unknown = [c for c in criteria if c not in CRITERIA]
        if unknown:
            raise EvenEditError(f"unknown criterion {', '.join(unknown)}; known: {', '.join(CRITERIA)}")
        if kind is ActionKind.SELECT and self.faces > 1:
            selected = self.state()[cell].selected
            if pool not in selected and len(selected) >= self.faces:
                raise EvenEditError(f"{cell} has its {self.faces} images: {', '.join(selected)}; deselect one first")
        action = Action(reviewer, kind, cell, pool, frozenset(criteria), note)
        return self.log.append(action, seen=seen, token=token)

    def last_of(self, reviewer: str, actions: list[Action]) -> Action | None:
        """Return the action that this reviewer would undo next."""
        reverted = undone(actions)
        undoable = (ActionKind.ASSESS, ActionKind.SELECT, ActionKind.DESELECT)
        undoable_actions = (
            a for a in reversed(actions) if a.reviewer == reviewer and a.kind in undoable and a.in_force
        )
        return next((a for a in undoable_actions if a.id not in reverted), None)

    def undo(self, reviewer: str, action: int, *, token: str | None = None) -> Action:
        """Undo an action of the same reviewer: the state is computed without it."""
        actions = self.log.actions()
        target = next((a for a in actions if a.id == action), None)
        if target is None or target.reviewer != reviewer or target.kind in (ActionKind.UNDO, ActionKind.FINALISE):
            raise EvenEditError(f"action {action} is not yours, so you cannot undo it")
        if target.id in undone(actions):
            return next(a for a in actions if a.undoes == target.id)
        undo = Action(reviewer, ActionKind.UNDO, target.cell, target.pool, undoes=target.id)
        return self.log.append(undo, token=token)

    def finalise(self, reviewer: str) -> Path:
        """Write the set and return the manifest's path; raises an error that lists every problem."""
        with FileLock(self.log.path.with_suffix(".lock")):  # a second reviewer who finalises at the same time waits
            actions = self.log.actions()
            state = self.state(actions)
            problems = self.problems(state)
            if problems:
                raise EvenEditError(*(f"{cell}: {reason}" for cell, reason in problems))
            manifest = portraits.write(self.out, self.pools, state, actions, self.distribution(state))
            self.log.append(
                Action(reviewer, ActionKind.FINALISE, note=f"{self.out.name}: {len(self.chosen(state))} images")
            )
        return manifest

    def import_log(self, path: Path, reviewer: str) -> int:
        """Import a selection log kept elsewhere; returns the number of its actions."""
        return self.log.extend(read_log(path, self.pools, self.faces, reviewer))

"""The selection log as a file: the format of the paper's authors, extended by the reviewer and undone actions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.curation.grid import DEFAULT_GRID, Grid
from evenedit.curation.log import CRITERIA, Action, ActionKind, CellState, fold
from evenedit.curation.pools import Pools

FILE = "selection_log.json"


def read_log(path: Path, pools: Pools, faces: int, reviewer: str) -> list[Action]:
    """Read the actions of a log file; those without a reviewer are attributed to `reviewer`."""
    try:
        data = json.loads(path.read_text("utf-8"))
        rows, selected = list(data["actions"]), dict(data.get("selected") or {})
    except FileNotFoundError:
        raise EvenEditError(f"{path}: no such file") from None
    except (ValueError, KeyError, TypeError) as error:
        raise EvenEditError(
            f"{path} is not a selection log ({error!r}); it needs 'actions', each with timestamp, demo_id, version, "
            "criteria, notes and action"
        ) from None
    problems: list[str] = []
    actions: list[Action] = []
    for number, row in enumerate(rows, 1):
        try:
            actions.append(_action(row, number, pools, reviewer))
        except EvenEditError as error:
            problems += [f"{path.name} action {number}: {line}" for line in error.problems]
    if problems:
        raise EvenEditError(*problems)
    state = fold(actions, pools.grid.cells, faces)
    stated = {cell: [pool] if isinstance(pool, str) else list(pool) for cell, pool in selected.items()}
    differing = [cell for cell in pools.grid.cells if selected and state[cell].selected != stated.get(cell, [])]
    if differing:
        raise EvenEditError(
            *(
                f"{path.name}: its actions end with {state[c].selected or 'nothing'} for {c}, its 'selected' says "
                f"{stated.get(c) or 'nothing'}"
                for c in differing
            )
        )
    return actions


def _action(row: Any, number: int, pools: Pools, reviewer: str) -> Action:
    if not isinstance(row, Mapping) or not {"action", "timestamp"} <= row.keys():
        raise EvenEditError("lacks action or timestamp")
    if row["action"] not in list(ActionKind):
        raise EvenEditError(f"unknown action '{row['action']}'; known: {', '.join(ActionKind)}")
    kind = ActionKind(row["action"])
    cell, pool, ticked = row.get("demo_id") or "", row.get("version"), row.get("criteria") or {}
    if kind is not ActionKind.FINALISE and cell not in pools.grid.labels:
        raise EvenEditError(f"demo_id '{cell}' is not a cell of the grid")
    if (pool is not None or kind in (ActionKind.SELECT, ActionKind.ASSESS)) and (cell, pool) not in pools.candidates:
        raise EvenEditError(f"there is no candidate '{pool}' for {cell}; pools: {', '.join(pools.ids)}")
    unknown = [c for c in ticked if c not in CRITERIA]
    if unknown:
        raise EvenEditError(f"unknown criterion {', '.join(unknown)}; known: {', '.join(CRITERIA)}")
    return Action(
        reviewer=row.get("reviewer") or reviewer,
        kind=kind,
        cell=cell,
        pool=pool,
        criteria=frozenset(c for c, met in ticked.items() if met),
        note=row.get("notes") or "",
        undoes=row.get("undoes"),
        against=row.get("against"),
        time=str(row["timestamp"]),
        id=int(row.get("id") or number),
    )


def log_file(actions: Sequence[Action], state: Mapping[str, CellState], grid: Grid = DEFAULT_GRID) -> dict[str, Any]:
    """Return a log and its final state, as `read_log` reads it."""
    return {
        "actions": [_row(action, grid) for action in actions],
        "selected": {
            cell: at.selected[0] if len(at.selected) == 1 else at.selected for cell, at in state.items() if at.selected
        },
    }


def _row(action: Action, grid: Grid) -> dict[str, Any]:
    labels = grid.labels.get(action.cell, {})
    assessed: Collection[ActionKind] = (ActionKind.SELECT, ActionKind.ASSESS)
    return {
        "id": action.id,
        "timestamp": action.time,
        "reviewer": action.reviewer,
        "action": action.kind.value,
        "demo_id": action.cell,
        "version": action.pool,
        **{f.name: labels.get(f.name, "") for f in grid.factors},
        "criteria": {c: c in action.criteria for c in CRITERIA} if action.kind in assessed else {},
        "notes": action.note,
        "undoes": action.undoes,
        "against": action.against,
    }

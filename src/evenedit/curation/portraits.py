"""The finalised set: one folder with portraits, labels, manifest, pool distribution and log."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from evenedit.core.decode import Header, UnreadablePicture
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode, write_whole
from evenedit.core.provenance import provenance
from evenedit.curation.authors import FILE as LOG
from evenedit.curation.authors import log_file, read_log
from evenedit.curation.candidates import Candidate
from evenedit.curation.grid import Grid
from evenedit.curation.log import CRITERIA, Action, CellState, fold
from evenedit.curation.pools import Pools
from evenedit.sources.dataset import picture
from evenedit.sources.fairface import fitted

MANIFEST = "manifest.json"
LABELS = "labels.csv"
DISTRIBUTION = "pools.csv"
SCHEMA = "evenedit.portraits/1"
SIDE = 1024


def write(
    out: Path,
    pools: Pools,
    state: Mapping[str, CellState],
    actions: Sequence[Action],
    distribution: Mapping[str, int],
) -> Path:
    """Write a set whose state has been checked; returns the manifest's path."""
    if out.exists():
        raise EvenEditError(
            f"{out} exists already, and a finalised set is never changed; move it away to finalise again"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f".{out.name}.*.tmp"):  # of a killed server
        shutil.rmtree(left)
    grid = pools.grid
    staging = out.parent / f".{out.name}.{uuid4().hex}.tmp"
    staging.mkdir()
    try:
        chosen = [
            (staging, pools.candidates[cell, pool], at, number)
            for cell, at in state.items()
            for number, pool in enumerate(at.selected, 1)
        ]
        with ThreadPoolExecutor() as pool:
            rows = list(pool.map(lambda job: _write_portrait(*job), chosen))
        log = json.dumps(log_file(actions, state, grid), indent=1, ensure_ascii=False).encode()
        labels = _table(
            ["file", "id", *(f.name for f in grid.factors), "origin"],
            [[r["file"], r["id"], *grid.labels[r["cell"]].values(), r["origin"]] for r in rows],
        )
        counts = _table(["pool", "count"], [[pool, count] for pool, count in distribution.items()])
        for name, content in ((LOG, log), (LABELS, labels), (DISTRIBUTION, counts)):
            write_whole(staging / name, content)
        manifest = {
            "schema": SCHEMA,
            "side": SIDE,
            **({} if grid.is_default else {"factors": grid.as_data()}),
            "faces_per_cell": max(len(at.selected) for at in state.values()),
            "criteria": list(CRITERIA),
            "pools": {"hash": pools.hash, **pools.facts},
            "distribution": dict(distribution),
            "files": {name: _hash(staging / name) for name in (LOG, LABELS, DISTRIBUTION)},
            "provenance": provenance(),
            "portraits": rows,
        }
        write_whole(staging / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
        staging.replace(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return out / MANIFEST


def _write_portrait(folder: Path, candidate: Candidate, at: CellState, number: int) -> dict[str, Any]:
    where = f"{candidate.cell}: the candidate {candidate.path}"
    try:
        content = candidate.path.read_bytes()
    except OSError as error:
        raise EvenEditError(f"{where} cannot be read ({error.strerror}); restore it") from None
    if hashlib.sha256(content).hexdigest() != candidate.sha256:
        raise EvenEditError(f"{where} changed since it was drawn; restore it")
    image = picture(content)
    if image is None:
        raise EvenEditError(f"{where} is not a readable image; choose another")
    ident = candidate.cell if number == 1 else f"{candidate.cell}_{number}"
    file = f"{ident}.png"
    write_whole(folder / file, encode(fitted(image, SIDE)))
    action, assessment = at.chosen_by[candidate.pool], at.assessments[candidate.pool]
    return {
        "id": ident,
        "cell": candidate.cell,
        "file": file,
        "sha256": _hash(folder / file),
        "pool": candidate.pool,
        "origin": candidate.origin,
        "index": candidate.index,
        "candidate_sha256": candidate.sha256,
        "candidate_size": list(image.size),
        "cropped": image.width != image.height,
        "note": assessment.note,
        "reviewer": action.reviewer,
        "time": action.time,
        "action": action.id,
    }


def verify(folder: Path) -> dict[str, Any]:
    """Check a finalised set against its manifest; returns the manifest, or raises an error that lists every problem."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
        rows, files = manifest["portraits"], manifest["files"]
        grid = Grid.from_data(manifest.get("factors"))
        if manifest["schema"] != SCHEMA:
            raise ValueError(f"schema {manifest['schema']}")
    except FileNotFoundError:
        raise EvenEditError(f"{folder} has no {MANIFEST}: it is not a finalised set") from None
    except (ValueError, KeyError, TypeError) as error:
        raise EvenEditError(f"{path} is not the manifest of a finalised set: {error!r}") from None
    problems = [
        f"{name}: {'is missing' if actual is None else 'was changed since the set was finalised'}"
        for name, known in [*files.items(), *((r["file"], r["sha256"]) for r in rows)]
        if (actual := _hash(folder / name)) != known
    ]
    problems += [
        f"{row['file']}: is not RGB of {manifest['side']} × {manifest['side']}"
        for row in rows
        if (folder / row["file"]).is_file() and not _has_size(folder / row["file"], manifest["side"])
    ]
    counts = Counter(row["cell"] for row in rows)
    wanted = manifest["faces_per_cell"]
    problems += [f"{cell}: {counts[cell]} portraits, not {wanted}" for cell in grid.cells if counts[cell] != wanted]
    listed = {row["file"] for row in rows}
    problems += [
        f"{stray.name}: is not in the manifest" for stray in sorted(folder.glob("*.png")) if stray.name not in listed
    ]
    if Counter(row["pool"] for row in rows) != Counter(manifest["distribution"]):
        problems.append("the pool distribution does not follow from the portraits")
    if not problems:
        problems += _against_log(folder, rows, wanted, grid)
    if problems:
        raise EvenEditError(*(f"{folder}: {problem}" for problem in problems))
    return manifest


def _against_log(folder: Path, rows: Sequence[Mapping[str, Any]], faces: int, grid: Grid) -> list[str]:
    """Return differences between the portraits and the log's last state, and unmet criteria."""
    named = {(cell, f"{pool}") for cell in grid.cells for pool in {r["pool"] for r in rows}}
    data = json.loads((folder / LOG).read_text("utf-8"))
    named |= {(a["demo_id"], a["version"]) for a in data["actions"] if a["version"]}
    known = Pools(folder, (), {place: Candidate(*place, folder, "", "") for place in named}, {}, grid)
    state = fold(read_log(folder / LOG, known, faces, ""), grid.cells, faces)
    chosen = {cell: [r["pool"] for r in rows if r["cell"] == cell] for cell in grid.cells}
    return [
        f"{cell}: the log ends with {state[cell].selected}"
        for cell in grid.cells
        if state[cell].selected != chosen[cell]
    ] + [
        f"{cell}: {pool} does not meet every criterion"
        for cell in grid.cells
        for pool in state[cell].selected
        if state[cell].unmet(pool)
    ]


def _has_size(path: Path, side: int) -> bool:
    try:
        header = Header.of(path.read_bytes())
    except (OSError, UnreadablePicture):
        return False
    return (header.mode, header.size) == ("RGB", (side, side))


def _hash(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode()

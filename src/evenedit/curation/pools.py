"""Candidate pools: V1, V2 …, each with one image per cell, and the origin of every image."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import write_whole
from evenedit.core.progress import Progress
from evenedit.core.provenance import provenance
from evenedit.curation.candidates import Candidate
from evenedit.curation.grid import DEFAULT_GRID, Grid
from evenedit.sources.dataset import ending, open_dataset, picture
from evenedit.sources.sampling import DrawnPools, draw

MANIFEST = "pools.json"
SCHEMA = "evenedit.pools/1"
SEEDS = (42, 1000, 1001, 1002, 1004, 1005, 1006)
"""Of the published pools V1 to V7."""
CELLS = DEFAULT_GRID.cells
"""The cells of pools drawn from FairFace: race × gender × age."""
EXAMPLE = "Black_Female_30s"
PICTURES = (".jpg", ".jpeg", ".png", ".webp")


@dataclass(frozen=True, slots=True)
class Pools:
    """All candidates of a curation."""

    folder: Path
    ids: tuple[str, ...]
    """Pools in order: V1, V2 …"""
    candidates: Mapping[tuple[str, str], Candidate]
    """By cell and pool."""
    facts: Mapping[str, Any]
    """How the pools were drawn; empty for pools made elsewhere."""
    grid: Grid = DEFAULT_GRID

    @classmethod
    def read(cls, folder: Path, grid: Grid = DEFAULT_GRID) -> Pools:
        """Read pools drawn by EvenEdit, or any folder of folders whose images are named after the cells."""
        if (folder / MANIFEST).is_file():
            return _read_manifest(folder, grid)
        if not folder.is_dir():
            raise EvenEditError(f"no candidate pools at {folder}. Try: evenedit sources pools STUDY --from FAIRFACE")
        return _read_folders(folder, grid)

    def of(self, cell: str) -> list[Candidate]:
        """Return a cell's candidates, in the pools' order."""
        return [self.candidates[cell, pool] for pool in self.ids if (cell, pool) in self.candidates]

    def twins(self, candidate: Candidate) -> list[str]:
        """Other pools that have the very same picture in this cell."""
        return [c.pool for c in self.of(candidate.cell) if c.sha256 == candidate.sha256 and c.pool != candidate.pool]

    @property
    def hash(self) -> str:
        """The hash of all candidates: it changes with every picture."""
        return digest(sorted([c.cell, c.pool, c.sha256] for c in self.candidates.values()))


def make_pools(
    source: Path,
    out: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    padding: str | None = None,
    labels: str | None = None,
    screened: bool = True,
    earlier: Pools | None = None,
) -> Pools:
    """Draw one pool per seed, screen the candidates, and write them with their manifest, completely or not at all.

    The pools come after the `earlier` ones, whose candidates stay as they are.
    """
    known = list(earlier.facts["pools"]) if earlier else []
    every = [*(pool["seed"] for pool in known), *seeds]
    if len(set(every)) < len(every):
        raise EvenEditError(f"a seed is listed twice: {', '.join(map(str, every))}")
    if not earlier and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EvenEditError(f"{out} exists already; choose another folder, move it away, or add to it with --add")
    dataset = open_dataset(source, padding, labels)
    drawing = draw(dataset, seeds, CELLS, {c.origin: c.sha256 for c in earlier.candidates.values()} if earlier else {})
    if not drawing.drawn:
        raise EvenEditError(f"{source} has no readable image with labels of the grid")
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f".{out.name}.*.tmp"):  # of a killed command
        shutil.rmtree(left)
    staging = out.parent / f".{out.name}.{uuid4().hex}.tmp"
    try:
        rows = _write_images(drawing, staging, len(known) + 1)
        if screened:
            from evenedit.curation.screen import screen

            with Progress("pre-screen", len(rows)) as progress:
                for row in rows:
                    image = picture((staging / row["file"]).read_bytes())
                    assert image is not None
                    row["screen"] = screen(image)
                    progress.advance(1)
        manifest = {
            "schema": SCHEMA,
            "source": str(source),
            "padding": padding,
            "pools": known + [{"id": f"V{n}", "seed": seed} for n, seed in enumerate(seeds, len(known) + 1)],
            "images_in_the_grid": drawing.faces,
            "images_outside_the_grid": dataset.outside,
            "unreadable": drawing.unreadable,
            "repeated": drawing.repeated,
            "short_cells": {c: n for c, n in drawing.available.items() if n < len(seeds)},
            "provenance": provenance(),
        }
        if earlier:
            manifest["earlier"] = [*earlier.facts.get("earlier", []), earlier.hash]
            rows = json.loads((out / MANIFEST).read_text("utf-8"))["candidates"] + rows
            for pool in staging.iterdir():
                shutil.rmtree(out / pool.name, ignore_errors=True)  # of a killed command
                pool.replace(out / pool.name)
        content = json.dumps(manifest | {"candidates": rows}, indent=1, ensure_ascii=False).encode()
        write_whole((out if earlier else staging) / MANIFEST, content)
        if not earlier:
            if out.exists():
                out.rmdir()
            staging.replace(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return Pools.read(out)


def further_seeds(pools: Pools, number: int) -> list[int]:
    """Return seeds for so many more pools; raise `EvenEditError` for pools that EvenEdit did not draw."""
    if not pools.facts:
        raise EvenEditError(f"the pools in {pools.folder} were not drawn by EvenEdit; add folders of images to them")
    last = max(pool["seed"] for pool in pools.facts["pools"])
    return list(range(last + 1, last + 1 + number))


def _write_images(drawing: DrawnPools, folder: Path, first: int) -> list[dict[str, Any]]:
    """Write the drawn files byte for byte and return their rows of the manifest."""
    rows = []
    for (number, cell), face in drawing.drawn.items():
        content, pool = drawing.content[face.at], f"V{number + first}"
        file = f"{pool}/{cell}{ending(content)}"
        (folder / pool).mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        rows.append(
            {"pool": pool, "cell": cell, "file": file, "sha256": sha256, "origin": face.origin, "index": face.index}
        )
    return rows


def _read_manifest(folder: Path, grid: Grid) -> Pools:
    try:
        data = json.loads((folder / MANIFEST).read_text("utf-8"))
        candidates = {
            (row["cell"], row["pool"]): Candidate(
                row["cell"],
                row["pool"],
                folder / row["file"],
                row["sha256"],
                row["origin"],
                row["index"],
                row.get("screen"),
            )
            for row in data["candidates"]
        }
        ids = tuple(pool["id"] for pool in data["pools"])
    except (ValueError, KeyError, TypeError) as error:
        raise EvenEditError(f"{folder / MANIFEST} is not a pool manifest ({error!r}); draw the pools again") from None
    if foreign := sorted({cell for cell, _ in candidates} - set(grid.cells)):
        raise EvenEditError(
            f"the pools in {folder} have the cell '{foreign[0]}', but the study chooses portraits by {grid.title}; "
            "use pools with its labels, as folders of images named after the cells, or change [[factors]]"
        )
    return Pools(folder, ids, candidates, {k: v for k, v in data.items() if k != "candidates"}, grid)


def _read_folders(folder: Path, grid: Grid) -> Pools:
    candidates: dict[tuple[str, str], Candidate] = {}
    strange: list[str] = []
    for path in sorted(folder.glob("*/*")):
        if path.suffix.lower() not in PICTURES:
            continue
        cell, pool = path.stem, path.parent.name
        if cell not in grid.labels or (cell, pool) in candidates:
            strange.append(path.relative_to(folder).as_posix())
            continue
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        candidates[cell, pool] = Candidate(cell, pool, path, sha256, path.relative_to(folder).as_posix())
    example = f"V1/{EXAMPLE if grid.is_default else grid.cells[0]}.jpg"
    if strange:
        raise EvenEditError(
            f"{folder}: {len(strange)} images are not named after one cell each, as in {example}: "
            f"{', '.join(strange[:5])}"
        )
    if not candidates:
        raise EvenEditError(
            f"{folder} has neither {MANIFEST} nor images such as {example}. "
            f"Try: evenedit sources pools STUDY --from FAIRFACE"
        )
    ids = sorted(Counter(pool for _, pool in candidates), key=_natural)
    return Pools(folder, tuple(ids), candidates, {}, grid)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]

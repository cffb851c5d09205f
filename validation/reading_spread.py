"""Whether readings of skin are the same with one and two threads and with OpenCV's optimisations on and off.

Needs the photographs in ../shared/data (`portraits`, `step1x_edits`); without them nothing is written. Every condition
is measured in a process that starts with it: OpenCV's networks do not survive a change of its optimisations.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2

from evenedit.core.images import read_image
from evenedit.instruments import measure
from evenedit.instruments.measure import SKIN_NUMBERS
from validation.page import ROOT, Validation, size, table
from validation.variants import DATA

NUMBERS = (*SKIN_NUMBERS, "light_shift_L", "changed_share", "drift")
TEXTS = ("light", "verdict")
MOST = 0.005
"""L* by which readings of one pair may differ."""
PER_L = tuple(name for name in SKIN_NUMBERS if "_L" in name)
"""Readings in L*, which the limit is for."""
Pair = tuple[str, str, str]
"""Name, source and edit."""
Readings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Condition:
    """How OpenCV runs."""

    name: str
    threads: int = 1
    optimized: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


USUAL = Condition("1 thread")
CONDITIONS = (
    Condition("2 threads", threads=2),
    Condition("setUseOptimized(False)", optimized=False),
    Condition("without AVX-512", environment={"OPENCV_CPU_DISABLE": "AVX512-SKX"}),
    Condition("without AVX2", environment={"OPENCV_CPU_DISABLE": "AVX2"}),
    Condition("without Intel's routines (IPP)", environment={"OPENCV_IPP": "disabled"}),
)


def read(pairs: Sequence[Pair], condition: Condition) -> tuple[Readings, bool]:
    """Measure the pairs in a process under a condition; and whether the processor has what the condition disables."""
    done = subprocess.run(
        [sys.executable, "-m", "validation.reading_spread", str(condition.threads), str(int(condition.optimized))],
        input=json.dumps(pairs),
        cwd=ROOT,
        env={**os.environ, **condition.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout), "disable unavailable CPU feature" not in done.stderr


def differences(usual: Readings, other: Readings) -> dict[str, float]:
    """Return the largest difference of each number; infinite where a number or a text is in one of them only."""
    largest = dict.fromkeys((*NUMBERS, *TEXTS), 0.0)
    for pair, numbers in usual.items():
        for name in largest:
            first, second = numbers[name], other[pair][name]
            if isinstance(first, (int, float)) and isinstance(second, (int, float)):
                largest[name] = max(largest[name], abs(first - second))
            elif first != second:
                largest[name] = float("inf")
    return largest


def run(folder: Path) -> Validation | None:
    """Measure the real edits under each condition."""
    files = sorted((DATA / "step1x_edits").glob("*.jpg"))
    if not files or not (DATA / "portraits").is_dir():
        print(f"no real edits in {DATA}: nothing to validate")
        return None
    count = size("VALIDATION_EDITS", len(files))
    chosen = files[:: max(1, len(files) // count)]
    pairs = [(f.stem, str(DATA / "portraits" / f"{f.stem.split('_', 1)[1]}.jpg"), str(f)) for f in chosen]
    usual, _ = read(pairs, USUAL)
    rows, problems = [], []
    for condition in CONDITIONS:
        other, has_it = read(pairs, condition)
        largest = differences(usual, other)
        title = condition.name if has_it else f"{condition.name} (this processor has none)"
        rows.append({"largest difference": title, **{name: f"{value:.2g}" for name, value in largest.items()}})
        problems += [f"{title}: {name} differs by {largest[name]:.3g}" for name in PER_L if largest[name] > MOST]
    columns = [
        dict(zip(("reading", *(r["largest difference"] for r in rows)), line, strict=True)) for line in turned(rows)
    ]
    return Validation(
        f"Readings of skin differ by at most {MOST} L* between numbers of threads and kinds of processor.",
        ["Largest difference from one thread with all optimisations, over all pairs:\n", *table(columns)],
        0,
        {"edits": len(pairs), "with a reading of skin": sum(r["skin_delta_L"] is not None for r in usual.values())},
        problems,
    )


def turned(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """Exchange rows and columns: a line for each reading."""
    names = [name for name in rows[0] if name != "largest difference"]
    return [(name, *(row[name] for row in rows)) for name in names]


def main(threads: str, optimized: str) -> None:
    """Measure the pairs on standard input and print what was read."""
    cv2.setNumThreads(int(threads))
    cv2.setUseOptimized(bool(int(optimized)))
    found = {}
    for name, source, edited in json.load(sys.stdin):
        data = measure(read_image(Path(source)), read_image(Path(edited)), identity=False).to_json()
        found[name] = {key: data[key] for key in (*NUMBERS, *TEXTS)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A candidate: one image that could be chosen for a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Candidate:
    """One image that could be chosen for a cell."""

    cell: str
    pool: str
    path: Path
    sha256: str
    origin: str
    """File name in the dataset, or shard and row; for pools made elsewhere, the file in its pool."""
    index: int | None = None
    """The dataset index, where known."""
    screen: Mapping[str, Any] | None = None
    """What the pre-screen found; None where none was made."""

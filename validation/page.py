"""Result of a validation and its page in docs/validation."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "validation"


@dataclass(frozen=True)
class Validation:
    """Result of one validation."""

    claim: str
    """The claim in one sentence."""
    lines: Sequence[str]
    """Its table, and what must be said about it; Markdown."""
    seed: int
    counts: Mapping[str, int]
    """How many studies, kills or examples it rests on."""
    wrong: Sequence[str] = field(default=())
    """What contradicts the claim; empty if it holds."""


def size(name: str, usual: int) -> int:
    """How many studies, kills or examples: as the environment says under this name, else the usual number."""
    told = os.environ.get(name, str(usual))
    if not told.isdecimal() or not int(told):
        sys.exit(f"{name} in the environment is '{told}'; give a whole number above 0, or leave it out for {usual}")
    return int(told)


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of the same columns as a Markdown table."""
    told = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return ["| " + " | ".join(f"{cell:,}" if type(cell) is int else str(cell) for cell in row) + " |" for row in told]


def commit() -> str:
    """The commit's short hash, marked if files differ from it; validation pages do not count."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":!docs/validation")
        return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def page(name: str, validation: Validation, made_at: str, seconds: float) -> str:
    """The whole page; `made_at` is the commit."""
    counts = ", ".join(f"{count:,} {what}" for what, count in validation.counts.items())
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    refuted = [f"**Does not hold:** {problem}." for problem in validation.wrong]
    command = f"`python -m validation {name}`"
    origin = f"Commit {made_at}, seed {validation.seed}, {counts}, {seconds:.0f} seconds, {python}. {command}"
    head = f"# {name.replace('_', ' ').capitalize()}"
    parts = [head, validation.claim, *refuted, "\n".join(validation.lines), origin]
    return "\n\n".join(parts) + "\n"

"""Where a result comes from: versions, commit, platform, time."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenedit.core.version import __version__

PACKAGES = ("matplotlib", "numpy", "opencv-python-headless", "pandas", "pillow", "scipy", "sqlalchemy")
"""Packages whose versions can change a result; every one is a base dependency."""


def provenance(**facts: Any) -> dict[str, Any]:
    """Return the facts that describe how a result was produced."""
    return {
        "evenedit": __version__,
        "git": _git(Path(__file__).parent),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in PACKAGES},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _as_text(" ".join(["evenedit", *sys.argv[1:]])),
        **facts,
    }


def _as_text(command: str) -> str:
    """Return a command line with characters that a file can hold, even if the locale could not decode an argument."""
    return command.encode("utf-8", "backslashreplace").decode("utf-8")


def _git(folder: Path) -> dict[str, Any] | None:
    """Commit and dirty flag of the checkout EvenEdit runs from; None when installed, even inside another checkout."""
    try:
        _run(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        commit = _run(folder, "rev-parse", "HEAD")
        dirty = bool(_run(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": dirty}


def _run(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=5
    ).stdout.strip()

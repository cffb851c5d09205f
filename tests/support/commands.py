"""The command line, as a user has it."""

import subprocess
import sys
from collections.abc import Callable

Command = Callable[..., subprocess.CompletedProcess[str]]


def run_command(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run `evenedit` in a process."""
    return subprocess.run(
        [sys.executable, "-m", "evenedit", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )

"""The command line, as a user has it."""

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner

from evenedit.cli import main

Command = Callable[..., subprocess.CompletedProcess[str]]


def run_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `evenedit` in this process; return what a process would: exit code, standard output and error."""
    words, folder, code = ["evenedit", *map(str, arguments)], Path.cwd(), 0
    with CliRunner().isolation() as (out, err, _), patch.object(sys, "argv", words), patch.dict(os.environ):
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # pytest's "error" does not hold for a user
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except Exception:
                traceback.print_exc()
                code = 1
            finally:
                os.chdir(folder)
        sys.stdout.flush()
        sys.stderr.flush()
        return subprocess.CompletedProcess(words, code, out.getvalue().decode(), err.getvalue().decode())


def run_process(*arguments: object, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run `evenedit` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "evenedit", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )

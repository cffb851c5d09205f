"""Change the code in small ways and see whether its tests notice: `python -m validation mutation`.

Not part of `make validate`: on an idle machine it takes most of an hour. It needs a Python that has this project's
dependencies, mutmut 3 and pytest 8 (mutmut 3.8 does not know pytest 9); see docs/validation/mutation.md.
MODULES in the environment names the modules to change (`MODULES="gaps slots"`), all of them unless told.

Every module is changed in a copy of this folder and judged by its own tests alone, one process at a time. mutmut
changes what stands in functions: constants of a module and functions with a decorator stay as they are.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
BESIDE = ("bench", "validation")
"""What tests import beside the package."""
SURVIVED, UNTESTED = (0,), (5, 33)
"""mutmut's codes of mutants that no test noticed, and of those that no test reaches; any other is a kill."""


@dataclass(frozen=True)
class Target:
    """A module, and the tests that are to notice when it changes."""

    source: str
    tests: tuple[str, ...]


TARGETS = {
    "combine": Target("ratings/combine.py", ("ratings/test_combine.py", "ratings/test_combine_rules.py")),
    "slots": Target("survey/slots.py", ("survey/test_slots.py",)),
    "parsing": Target("judges/parsing.py", ("judges/test_parsing.py", "judges/test_parsing_edges.py")),
    "gaps": Target(
        "stats/disparity/gaps.py",
        ("stats/engine/test_intervals.py", "stats/test_pipeline.py", "stats/disparity/test_gaps.py"),
    ),
}


def lay_out(folder: Path, target: Target) -> None:
    """A copy of the sources and tests, with mutmut's settings for one module."""
    for name in ("src", "tests", *BESIDE):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/evenedit/{target.source}"],
        "also_copy": [*BESIDE],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": [f"tests/{test}" for test in target.tests],
    }
    told = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (folder / "pyproject.toml").write_text(f"{(ROOT / 'pyproject.toml').read_text()}\n[tool.mutmut]\n{told}")


def mutmut(folder: Path, *arguments: str) -> str:
    """What one call of mutmut prints."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"mutmut {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def codes(folder: Path, target: Target) -> dict[str, int | None]:
    """By mutant, how its tests ended."""
    meta = folder / "mutants" / "src" / "evenedit" / f"{target.source}.meta"
    return dict(json.loads(meta.read_text())["exit_code_by_key"])


def changes(folder: Path, target: Target, mutants: list[str]) -> Iterator[str]:
    """For each mutant, the lines it takes away and puts in: the changed module holds every version of a function."""
    text = (folder / "mutants" / "src" / "evenedit" / target.source).read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    rows = text.splitlines()
    lines = {n.name: [row.replace(n.name, "") for row in rows[n.lineno - 1 : n.end_lineno]] for n in found}
    for name in (mutant.rpartition(".")[2] for mutant in mutants):
        before = lines[re.sub(r"\d+$", "orig", name)]
        told = [line for line in difflib.ndiff(before, lines[name]) if line[0] in "-+"]
        yield "\n".join([f"  {name}", *(f"    {line[0]} {line[1:].strip()}" for line in told)])


def ending(code: int | None) -> str:
    """What became of a mutant; one that ran out of time was noticed too."""
    if code is None:
        return "not judged"
    return "survived" if code in SURVIVED else "no test" if code in UNTESTED else "killed"


def judge(folder: Path, name: str) -> None:
    """Change one module in every way, run its tests on each, and print what no test noticed."""
    target = TARGETS[name]
    lay_out(folder, target)
    mutmut(folder, "run", "--max-children", "1")
    found = {mutant: ending(code) for mutant, code in codes(folder, target).items()}
    ends = Counter(found.values())
    told = ", ".join(f"{ends[end]} {end}" for end in ("killed", "survived", "no test", "not judged") if ends[end])
    print(f"{name}: {len(found)} mutants, {told}: {ends['killed'] / len(found):.1%}", flush=True)
    alive = [mutant for mutant, end in found.items() if end != "killed"]
    print("\n".join(changes(folder, target, alive)), flush=True)


def run(folder: Path) -> None:
    try:
        print(f"mutmut {version('mutmut')}, pytest {version('pytest')}", flush=True)
    except PackageNotFoundError:
        sys.exit("mutmut is not installed for this Python; see docs/validation/mutation.md")
    for name in os.environ.get("MODULES", " ".join(TARGETS)).split():
        if name not in TARGETS:
            sys.exit(f"MODULES names '{name}', which is not known; use some of: {', '.join(TARGETS)}")
        judge(folder / name, name)

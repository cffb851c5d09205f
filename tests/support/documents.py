"""The documentation as its tests read it: pages, their blocks, and a shell in which blocks run.

A comment in the line above a block says how it is to be read:

    <!-- needs: key -->     it is not run here, for one of REASONS
    <!-- exits: 0 3 -->     it may end with one of these exit codes
    <!-- types: words -->   the words are typed wherever it asks for something
    <!-- run -->            a Python block that is run
    <!-- not yet -->        a Python block that is only compiled, since what it uses is still being built

`<!-- fixture: NAME NAME -->` anywhere in a page puts files of `fixtures` into the folder in which its blocks run.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.warm_commands import CLIENT

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SHELL = ("sh", "bash", "console")

REASONS = {
    "key": "it calls a provider that wants a key and money",
    "gpu": "it loads a model that needs a GPU",
    "cluster": "it is a job of a cluster",
    "data": "it reads other people's data",
    "people": "people do something between its lines",
    "itself": "it is what runs this test, or takes as long",
    "elsewhere": "the test that the mark names does the same",
}
"""Why a block may stay unrun."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def needs(self) -> str:
        """Why it is not run; '' where it is."""
        commands = [line for line in self.text.splitlines() if line.strip()]
        is_make = self.language in SHELL and all(line.startswith("make ") for line in commands)
        return self.marks.get("needs", "itself" if is_make else "")

    @property
    def is_shell(self) -> bool:
        """Whether it is made of commands."""
        return self.language in SHELL


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, with the marks above them."""
    lines = page.read_text("utf-8").splitlines()
    marks: dict[str, str] = {}
    start, language, fence = 0, "", ""
    for number, line in enumerate(lines, 1):
        opened = re.match(r"( *)(```+)(\w*)", line)
        if fence and line.strip() == fence:
            indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
            text = "\n".join(each[indent:] for each in lines[start : number - 1])
            yield Block(page, start, language, text, marks)
            fence, marks = "", {}
        elif not fence and opened:
            start, language, fence = number, opened[3], opened[2]
        elif not fence:
            found = re.fullmatch(r"\s*<!-- (needs|exits|types|run|not yet)(?:: (.*))? -->", line)
            marks = {**marks, found[1]: found[2] or ""} if found else {}


def fixtures_of(page: Path) -> list[str]:
    """What the page's blocks find in their folder."""
    found = re.search(r"<!-- fixture: (.*) -->", page.read_text("utf-8"))
    return found[1].split() if found else []


class Shell:
    """A shell that has `evenedit` and `python` in its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        wire = folder / "wire"
        self._write(programs / "evenedit", CLIENT.format(python=sys.executable, socket=wire))
        self._write(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "EVENEDIT_SERVERS": str(folder / "servers"),
            "OPENBLAS_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
        }
        self.warm = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("warm_commands.py")), str(wire)], env=self.environment
        )
        while not (folder / "wire.ready").exists():
            assert self.warm.poll() is None, "the commands cannot be imported"
            time.sleep(0.05)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def run(self, text: str, where: Path, *, typed: str = "", codes: Sequence[int] = (0,)) -> str:
        """Run some lines in a folder, and return what they print; what they serve has ended afterwards."""
        said = self.folder / "said"
        try:
            with said.open("w") as out:
                ended = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", text],
                    cwd=where,
                    env=self.environment,
                    input=f"{typed}\n" * 4 if typed else "",
                    text=True,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=300,
                    check=False,
                )
        finally:
            self._stop_servers()
        output = said.read_text("utf-8")
        assert ended.returncode in codes, f"exit code {ended.returncode} of\n{text}\n{output}"
        return output

    def _stop_servers(self) -> None:
        listed = Path(self.environment["EVENEDIT_SERVERS"])
        pids = [int(line) for line in listed.read_text().split()] if listed.exists() else []
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        listed.unlink(missing_ok=True)
        for pid in pids:
            while _lives(pid):
                time.sleep(0.02)

    def close(self) -> None:
        """End the process behind the commands."""
        self.warm.kill()
        self.warm.wait()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def copy_into(made: Path, folder: Path) -> None:
    """Put all of a prepared folder into another."""
    shutil.copytree(made, folder, dirs_exist_ok=True)

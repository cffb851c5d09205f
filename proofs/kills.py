"""A run killed by SIGKILL at random moments and started again until it ends: `python -m proofs kills`.

KILLS in the environment sets another number of kills.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from evenedit.cli import main
from evenedit.storage.store import Store
from evenedit.study.study import Study
from proofs.page import Proof, size, table

SEED = 7
STUDY = {
    "study": {"title": "Killed"},
    "sources": {
        "kind": "drawn",
        "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s"]}},
    },
    "prompts": {"include": ["O-01", "V-02", "V-05"]},
    "experiments": {
        "diagnosis": {},
        "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
        "stereotype": {"include": ["W-01", "W-26"]},
    },
    "editors": [{"id": "simulated-replacing"}, {"id": "simulated-refusing"}, {"id": "simulated-even"}],
    "judges": [
        {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
        {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2}},
    ],
    "survey": {"cases": 8, "simulated_people": 3},
    "statistics": {"draws": 100, "permutations": 99},
    "executor": {"retries": 0},
}
PROCESSES = multiprocessing.get_context("forkserver")
"""Processes that begin with everything imported, so that kills hit the work and not the start."""
PROCESSES.set_forkserver_preload(["evenedit.cli", "evenedit.study.study", "evenedit.run.runner", "cv2", "pandas"])
LONGEST = 300.0
"""Seconds after which a run is taken to hang."""


@dataclass(frozen=True)
class Killed:
    """What became of one study whose runs were killed."""

    kills: int
    stored: tuple[int, ...]
    """After each kill, how many edits and replies were stored."""
    total: int
    """Edits and replies in the end."""
    lost: int
    """Edits and replies that were stored, and gone after the next run."""
    remade: int
    """Edits and replies that were stored, and made again by a later run."""
    is_same: bool
    """Whether results.json equals that of a run that was never killed."""
    half_written: int
    """Temporary files left at the end."""
    seconds: float
    """Of all its runs together."""

    def wrong(self) -> list[str]:
        """What contradicts the claim."""
        found = {"lost": self.lost, "made again": self.remade, "left half written": self.half_written}
        problems = [f"{count} {what}" for what, count in found.items() if count]
        return problems + ([] if self.is_same else ["the results differ from those of a run that was not killed"])


def write(folder: Path) -> Path:
    """The study's file in a folder."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(tomli_w.dumps(STUDY), "utf-8")
    return folder


def results(folder: Path) -> str:
    """The study's results without their provenance."""
    body = json.loads(Study.load(folder).results().to_json())
    del body["provenance"]
    return json.dumps(body)


def made_by(folder: Path) -> dict[object, int]:
    """Which run made each edit and each reply that is stored."""
    if not (folder / "study.db").exists():
        return {}
    store = Store(folder)
    try:
        return {**store.run_of_edits(), **store.run_of_replies()}
    finally:
        store.close()


def command(folder: Path) -> None:
    """`evenedit run`, with what it prints put into a file."""
    sys.argv = ["evenedit", "run", str(folder)]
    with (folder / "printed.log").open("wb") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    main()


def run_once(folder: Path, seconds: float | None) -> bool:
    """Run, and kill it after so many seconds, None for never; whether it came to its end by itself."""
    process = PROCESSES.Process(target=command, args=(folder,))
    process.start()
    process.join(LONGEST if seconds is None else seconds)
    if process.is_alive():
        process.kill()
        process.join()
        if seconds is None:
            raise RuntimeError(f"a run did not end within {LONGEST:.0f} seconds")
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"a run ended with {process.exitcode}: {(folder / 'printed.log').read_text()}")
    return process.exitcode == 0


def killed(folder: Path, most: int, usual: float, wanted: str, chance: random.Random) -> Killed:
    """A study run again and again until a run comes to its end; at most so many of them are killed."""
    write(folder)
    before, stored, lost, remade, finished, seconds = made_by(folder), [], 0, 0, False, 0.0
    while not finished:
        started = time.monotonic()
        finished = run_once(folder, chance.uniform(0.05, 0.6) * usual if len(stored) < most else None)
        seconds += time.monotonic() - started
        after = made_by(folder)
        lost += len(before.keys() - after.keys())
        remade += sum(after.get(what, run) != run for what, run in before.items())
        stored += [] if finished else [len(after)]
        before = after
    is_same, half_written = results(folder) == wanted, len(list(folder.rglob("*.tmp")))
    return Killed(len(stored), tuple(stored), len(before), lost, remade, is_same, half_written, seconds)


def kill_runs(folder: Path, kills: int, seed: int = SEED) -> list[Killed]:
    """As many studies as it takes until so many runs were killed."""
    whole = write(folder / "whole")
    started = time.monotonic()
    run_once(whole, None)
    usual, wanted = time.monotonic() - started, results(whole)
    chance = random.Random(seed)
    found: list[Killed] = []
    while (left := kills - sum(each.kills for each in found)) > 0:
        found.append(killed(folder / f"killed-{len(found)}", left, usual, wanted, chance))
        usual = min(usual, found[-1].seconds)  # where the first run was slow, later kills would come too late
    return found


def run(folder: Path) -> Proof:
    """A hundred kills."""
    kills = size("KILLS", 100)
    found = kill_runs(folder, kills)
    rows = [
        {
            "study": number,
            "kills": each.kills,
            "stored at each kill": ", ".join(map(str, each.stored)) or "–",
            "stored in the end": each.total,
            "lost": each.lost,
            "made again": each.remade,
            "half-written files": each.half_written,
            "results as if never killed": "yes" if each.is_same else "no",
        }
        for number, each in enumerate(found, 1)
    ]
    return Proof(
        "A run that is killed by SIGKILL at any moment and started again loses nothing that was stored, makes none "
        "of it again, and ends with the results of a run that was never killed.",
        ["Edits and replies of judges, by study; as many studies as it takes:", "", *table(rows)],
        SEED,
        {"studies": len(found), "kills": sum(each.kills for each in found)},
        [f"study {number}: {problem}" for number, each in enumerate(found, 1) for problem in each.wrong()],
    )

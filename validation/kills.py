"""A run killed by SIGKILL at random moments and started again until it ends: `python -m validation kills`.

KILLS in the environment sets another number of kills.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from evenedit.api.study import Study
from evenedit.cli import main
from evenedit.storage.store import Store
from validation.page import Validation, size, table

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
PROCESSES.set_forkserver_preload(["evenedit.cli", "evenedit.api.study", "evenedit.run.runner", "cv2", "pandas"])
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


def kill_after(folder: Path, stored: int, seconds: float) -> None:
    """Kill this process so many seconds after so much is stored; seconds = 0: at once."""

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(save: Callable[..., None]) -> Callable[..., None]:
        def save_and_look(*arguments: Any, **options: Any) -> None:
            save(*arguments, **options)
            if len(made_by(folder)) >= stored:
                threading.Timer(seconds, kill).start() if seconds else kill()

        return save_and_look

    for name in ("save_edits", "save_answers"):
        setattr(Store, name, watch(getattr(Store, name)))


def command(folder: Path, stored: int | None = None, seconds: float = 0.0) -> None:
    """Run `evenedit run`, with what it prints put into a file; kill it as `kill_after` does where `stored` is given."""
    if stored is not None:
        kill_after(folder, stored, seconds)
    sys.argv = ["evenedit", "run", str(folder)]
    with (folder / "printed.log").open("wb") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    main()


def run_once(folder: Path, stored: int | None = None, seconds: float = 0.0) -> bool:
    """Run, and kill it so many seconds after so much is stored, None for never; return whether it ended by itself."""
    process = PROCESSES.Process(target=command, args=(folder, stored, seconds))
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
        raise RuntimeError(f"a run did not end within {LONGEST:.0f} seconds")
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"a run ended with {process.exitcode}: {(folder / 'printed.log').read_text()}")
    return process.exitcode == 0


def killed(folder: Path, most: int, total: int, wanted: str, chance: random.Random) -> Killed:
    """Run a study again and again until a run comes to its end; kill at most so many of the runs.

    A run is killed at a random moment of its work: by how much is stored, since a machine may be fast or slow.
    """
    write(folder)
    before, stored, lost, remade, finished = made_by(folder), [], 0, 0, False
    while not finished:
        if len(stored) < most and len(before) < total:
            delay = chance.choice([0.0, chance.uniform(0.0, 0.1)])
            finished = run_once(folder, chance.randint(len(before), total), delay)
        else:
            finished = run_once(folder)
        after = made_by(folder)
        lost += len(before.keys() - after.keys())
        remade += sum(after.get(what, run) != run for what, run in before.items())
        stored += [] if finished else [len(after)]
        before = after
    is_same, half_written = results(folder) == wanted, len(list(folder.rglob("*.tmp")))
    return Killed(len(stored), tuple(stored), len(before), lost, remade, is_same, half_written)


def kill_runs(folder: Path, kills: int, seed: int = SEED) -> list[Killed]:
    """As many studies as it takes until so many runs were killed."""
    complete = write(folder / "complete")
    run_once(complete)
    total, wanted = len(made_by(complete)), results(complete)
    chance = random.Random(seed)
    found: list[Killed] = []
    while (left := kills - sum(each.kills for each in found)) > 0:
        found.append(killed(folder / f"killed-{len(found)}", left, total, wanted, chance))
    return found


def run(folder: Path) -> Validation:
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
    return Validation(
        "A run that is killed by SIGKILL at any moment and started again loses nothing that was stored, makes none "
        "of it again, and ends with the results of a run that was never killed.",
        ["Edits and replies of judges, by study; as many studies as it takes:", "", *table(rows)],
        SEED,
        {"studies": len(found), "kills": sum(each.kills for each in found)},
        [f"study {number}: {problem}" for number, each in enumerate(found, 1) for problem in each.wrong()],
    )

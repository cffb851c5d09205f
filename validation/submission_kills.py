"""Runs killed by SIGKILL while jobs are under way at a paid service: `python -m validation submission_kills`.

SUBMISSION_KILLS in the environment sets another number of kills.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from evenedit.core.records import Outcome
from evenedit.core.submissions import SubmissionState
from evenedit.storage.store import Store
from tests.support.services_wire import Services, serving
from validation.kills import LONGEST, PROCESSES, command
from validation.page import Validation, size, table

SEED = 23
EDITS = 32
AT_ONCE = 6
"""Jobs under way at the same time."""
FACES = {"race": ["White", "Black"], "age": ["20s"]}
KINDS = ("bfl", "fal", "replicate", "keyed")
"""Services; the last knows a submission that is sent again."""
KEYS = dict.fromkeys(("BFL_API_KEY", "FAL_KEY", "REPLICATE_API_TOKEN"), "none")


@dataclass(frozen=True)
class Killed:
    """What became of one study whose runs were killed."""

    kind: str
    kills: int
    jobs: int
    """Jobs that the service made."""
    edited: int
    states: Counter[SubmissionState]
    never_arrived: int
    """Submissions that were recorded and did not reach the service before the kill."""
    budget: int
    """Calls that the budget of the last run counts, with those of the killed runs."""

    def wrong(self) -> list[str]:
        """What contradicts the claim."""
        lost = self.states[SubmissionState.LOST]
        problems = [] if self.edited == EDITS else [f"{self.edited} of {EDITS} edits were made"]
        if self.jobs + self.never_arrived != EDITS + lost:
            problems.append(f"{self.jobs} jobs for {EDITS} edits and {lost - self.never_arrived} lost answers")
        if self.budget != self.jobs + self.never_arrived:
            problems.append(f"the budget counts {self.budget} calls, and the service {self.jobs}")
        if self.kind == "keyed" and self.jobs != EDITS:
            problems.append(f"{self.jobs} jobs at a service that knows what is sent again")
        return problems


def write(folder: Path, services: Services, kind: str) -> Path:
    """The study's file in a folder."""
    settings: dict[str, Any] = {"base_url": f"{services.address}/{kind}", "model": "m", "every": 0.02, "timeout": 20}
    if kind == "keyed":
        settings = {
            "url": f"{services.address}/keyed",
            "headers": {"Idempotency-Key": "{submission}"},
            "body": {"p": "{instruction}", "image_url": "{image_url}"},
            "picture": "images.0.url",
        }
    told = {
        "study": {"title": "Killed while jobs are under way"},
        "sources": {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": FACES}},
        "prompts": {"include": [f"O-{n:02d}" for n in range(1, 9)]},
        "experiments": {"diagnosis": {"null_pairs": 0}},
        "editors": [{"id": "paid", "kind": "http" if kind == "keyed" else kind, "settings": settings}],
        "executor": {"retries": 0, "calls": AT_ONCE, "max_failures": 0},
    }
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(tomli_w.dumps(told), "utf-8")
    return folder


def run_with_keys(folder: Path) -> None:
    """Run in a process whose environment has the keys; the fork server has that of its own start."""
    os.environ |= KEYS
    command(folder)


def run_once(folder: Path, services: Services, requests: int | None = None, delay: float = 0.0) -> bool:
    """Run; kill it so many seconds after so many more requests have arrived; return whether it ended by itself."""
    seen, process = len(services.seen), PROCESSES.Process(target=run_with_keys, args=(folder,))
    process.start()
    until = time.monotonic() + LONGEST
    while process.is_alive() and time.monotonic() < until:
        if requests is not None and len(services.seen) - seen >= requests:
            time.sleep(delay)
            process.kill()
        process.join(0.005)
    process.join(1)
    if process.exitcode not in (0, -signal.SIGKILL):
        process.kill()
        raise RuntimeError(f"a run ended with {process.exitcode}: {(folder / 'printed.log').read_text()}")
    return process.exitcode == 0


def killed(folder: Path, kind: str, most: int, chance: random.Random) -> Killed:
    """Run a study again and again until a run comes to its end; kill at most so many of the runs."""
    with serving() as services:
        services.waits, kills, finished = 4, 0, False
        write(folder, services, kind)
        while not finished:
            if kills < most:
                finished = run_once(folder, services, chance.randint(1, 40), chance.uniform(0.0, 0.05))
            else:
                finished = run_once(folder, services)
            kills += not finished
        store = Store(folder)
        rows = store.submissions()
        edited = sum(edit.outcome is Outcome.EDITED for edit in store.edits().values())
        store.close()
        arrived = services.keys.keys() if kind == "keyed" else set(services.jobs)
        known = {row.id if kind == "keyed" else row.job for row in rows}
        lost = sum(row.state is SubmissionState.LOST for row in rows)
        unanswered = len(services.jobs) - len(arrived & known)  # jobs whose answer did not reach us
        printed = re.search(r"calls of this run: ([\d,]+) calls", (folder / "printed.log").read_text())
        return Killed(
            kind,
            kills,
            len(services.jobs),
            edited,
            Counter(row.state for row in rows),
            lost - unanswered,
            int(printed[1].replace(",", "")) if printed else 0,
        )


def kill_submissions(folder: Path, kills: int, seed: int = SEED) -> list[Killed]:
    """Studies of each service in turn, until so many runs were killed."""
    chance = random.Random(seed)
    found: list[Killed] = []
    while (left := kills - sum(each.kills for each in found)) > 0:
        kind, most = KINDS[len(found) % len(KINDS)], min(left, max(1, kills // len(KINDS)))
        found.append(killed(folder / f"{len(found)}-{kind}", kind, most, chance))
    return found


def run(folder: Path) -> Validation:
    """Thirty kills."""
    found = kill_submissions(folder, size("SUBMISSION_KILLS", 30))
    rows = [
        {
            "service": "http, with a key of each submission" if each.kind == "keyed" else each.kind,
            "kills": each.kills,
            "edits": each.edited,
            "jobs at the service": each.jobs,
            "answers that never came": each.states[SubmissionState.LOST] - each.never_arrived,
            "recorded, not sent": each.never_arrived,
            "counted by the budget": each.budget,
        }
        for each in found
    ]
    return Validation(
        "A run that is killed by SIGKILL between submitting and polling follows its jobs up when it is started again: "
        "each edit is paid once, but for answers that never came, and the budget counts what the service counts.",
        [
            f"Studies of {EDITS} edits, up to {AT_ONCE} jobs at once, killed at random moments until each is complete:",
            "",
            *table(rows),
            "",
            "A submission is recorded before it is sent. One that was recorded and killed before it left counts too: "
            "nobody can know that it did not arrive.",
        ],
        SEED,
        {"studies": len(found), "kills": sum(each.kills for each in found)},
        [f"study {number}: {problem}" for number, each in enumerate(found, 1) for problem in each.wrong()],
    )

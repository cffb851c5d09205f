"""The survey's web server under load on loopback: `python -m validation load`.

PEOPLE in the environment sets another number of participants, SECONDS another length of each part.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np

from bench.survey import SERVER, Serving, study_of
from validation.page import Validation, size, table
from validation.people import Person, all_take_part, lost, seat

SEED = 9
PACE = 3.5
"""Seconds between two answers of a person, on average."""
SATURATING = 32
"""People who answer as fast as the server lets them."""


def part(folder: Path, people: list[Person], seconds: float, pace: float) -> dict[str, object]:
    """One load on a server of its own, then what is on disk; a row of the table."""
    with Serving(SERVER, folder) as port:
        asyncio.run(all_take_part(people, port, seconds, pace, random.Random(SEED)))
    taken = 1000 * np.array([each for person in people for each in person.seconds])
    return {
        "participants": len(people),
        "an answer": f"every {pace:g} s each" if pace else "as soon as the last is stored",
        "seconds": seconds,
        "acknowledged": len(taken),
        "saves per second": f"{len(taken) / seconds:.0f}",
        "p50, ms": f"{np.quantile(taken, 0.5):.0f}",
        "p99, ms": f"{np.quantile(taken, 0.99):.0f}",
        "refused": sum(person.refused for person in people),
        "cut off": sum(person.cut_off for person in people),
        "lost": lost(folder, people),
    }


def run(folder: Path) -> Validation:
    """Many people at a human pace, then some as fast as it goes."""
    count, seconds = size("PEOPLE", 300), size("SECONDS", 20)
    study_of(folder).run()
    people = seat(folder, count + SATURATING)
    rows = [part(folder, people[:count], seconds, PACE), part(folder, people[count:], seconds, 0.0)]
    return Validation(
        "Under the load of many participants at once, the survey's server takes every answer, and none that it "
        "acknowledged is missing from the disk.",
        [*table(rows), "", "The times are those of this run, on a machine that may have had other work."],
        SEED,
        {"participants": len(people), "answers": sum(person.count for person in people)},
        [f"{row[what]} {what}" for row in rows for what in ("refused", "cut off", "lost") if row[what]],
    )

"""Power and false alarms of contrasts within base portraits, and intervals where pictures show the same person.

`python -m validation twins`; STUDIES in the environment sets another number of studies of each world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from evenedit.stats.disparity.gaps import weighted_sum
from evenedit.stats.engine.anom import group_tests
from validation.engine import Limit, Tally, one_batch
from validation.page import Validation, size, table
from validation.worlds import RACES, InBlocks, frame

SEED = 91_733
MANY, BATCH = 2000, 50
DARKER = (1, 3, 4, 6)
CONTRAST = np.array([1 / 4 if at in DARKER else -1 / 3 for at in range(len(RACES))])
DECLARED = 0.05 / 3
"""The level of one of three declared tests."""
DIFFERENCE = 0.10
APART = float(ndtri(0.2 + DIFFERENCE) - ndtri(0.2))
"""Ten points at a base rate of 20 %, in standard deviations of the hidden number."""
TWINS = InBlocks("84 × 20", within=True)
DESIGNS = [
    (TWINS, Limit(0.80)),
    (replace(TWINS, name="168 × 10", labels=frame(2), prompts=10), Limit()),
    (replace(TWINS, name="252 × 7", labels=frame(3), prompts=7), Limit()),
    (replace(TWINS, name="336 × 5", labels=frame(4), prompts=5), Limit()),
]
"""Designs of 1,680 edits, and the least power asked for."""
EVEN = [
    *(world for world, _ in DESIGNS),
    replace(TWINS, name="84 × 20, base rate 5 %", base=0.05),
    replace(TWINS, name="84 × 20, heavy tails", heavy=True),
    replace(TWINS, name="84 × 20, bases have 90 % in common", shared=0.9),
    replace(TWINS, name="84 × 20, nothing in common", shared=0.0),
    replace(TWINS, name="84 × 20, one judge", judges=1),
    replace(TWINS, name="84 × 20, missing scores", missing=True),
    replace(TWINS, name="84 × 4", prompts=4),
]
PEOPLE = InBlocks("two pictures of a person", labels=frame(2), shared=0.8, prompts=10)
COVERED = ("rate of everybody, as printed", "rate of one race, as printed", "race minus race", "shift of everybody")


def tried(world: InBlocks, rng: np.random.Generator, studies: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield by batch whether the directed test rejects, the smallest p of groups, and whether the interval covers."""
    for _ in range(0, studies, BATCH):
        batch = world.draw(rng, BATCH)
        groups = [batch.rates.of({"race": race}) for race in RACES]
        value = sum(w * g.value[:-1, 0] for w, g in zip(CONTRAST, groups, strict=True))
        pooled = batch.rates.pooled(("race",)).of(list(CONTRAST))
        padded = np.append(value, 0.0)[:, None]
        _, larger = weighted_sum(batch.rates, "race", list(CONTRAST))
        reach = larger.half_width(0.95)[:-1, 0]
        own = batch.rates.uncertainty(groups, list(CONTRAST)).p(padded)[:-1, 0]
        smallest = [t.smallest_p for (row, _), t in group_tests(batch.rates, "race", 0.95).items() if row < BATCH]
        yield {
            "p": pooled.p(padded)[:-1, 0],
            "own": own,
            "groups": np.array([1.0 if p is None else p for p in smallest]),
            "covers": np.abs(value - batch.truth @ CONTRAST) <= reach,
        }


def together(world: InBlocks, rng: np.random.Generator, studies: int) -> dict[str, np.ndarray]:
    batches = list(tried(world, rng, studies))
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def run(folder: Path) -> Validation:
    """Simulate each design with and without an effect, and people with two pictures each."""
    studies, rng, tally = size("STUDIES", MANY), np.random.default_rng(SEED), Tally()
    power, even = [], []
    for world, least in DESIGNS:
        there = replace(world, gap=APART, apart=DARKER)
        known, unknown = (together(replace(there, known=k), rng, studies) for k in (True, False))
        power.append(
            {
                "faces × prompts": world.name,
                "within bases": tally.cell(f"power, {world.name}", known["p"] < DECLARED, least),
                "within bases, own variance": tally.cell("", known["own"] < DECLARED),
                "bases not known": tally.cell("", unknown["p"] < DECLARED),
                "interval within bases covers": tally.cell(f"covers, {world.name}", known["covers"], Limit(0.94)),
            }
        )
    for world in EVEN:
        found = together(world, rng, studies)
        even.append(
            {
                "world": world.name,
                "directed, 5 %": tally.cell(f"directed, {world.name}", found["p"] < 0.05, Limit(0, 0.06)),
                "directed, own variance": tally.cell("", found["own"] < 0.05),
                "one group": tally.cell(f"one group, {world.name}", found["groups"] < 0.05, Limit(0, 0.06)),
            }
        )
    people = []
    for known, limit in ((True, Limit(0.94)), (False, Limit())):
        world = replace(PEOPLE, known=known)
        batches = [one_batch(world, rng, BATCH) for _ in range(0, studies, BATCH)]
        found = {name: np.concatenate([b[name] for b in batches]) for name in COVERED}
        people.append(
            {"cluster": "person" if known else "picture"}
            | {name: tally.cell(f"{name}, people", hits, limit) for name, hits in found.items()}
        )
    lines = [
        "Worlds as in [engine](engine.md): seven races, two judges, base rate 20 % unless stated, standard deviations "
        "of faces and prompts 0.5, race × prompt 0.2, an edit 1, a judge 0.5. Each base portrait has a version of each "
        "race; versions of a base have half of the variance of faces in common unless stated. Standard errors in "
        "brackets.",
        "",
        "## Power",
        "",
        "Four races against three, 10 points apart, 0/1 code, 1,680 edits, level 0.0167 (one of three declared tests).",
        "",
        *table(power),
        "",
        "## False alarms",
        "",
        "No race differs. Directed: four races against three. One group: analysis of means.",
        "",
        *table(even),
        "",
        "## Two pictures of each person",
        "",
        "168 pictures of 84 people × 10 prompts; a person's two pictures have 80 % of the variance of faces in common. "
        "Coverage of 95 % intervals with the person or the picture as the cluster.",
        "",
        *table(people),
    ]
    claim = "Contrasts within base portraits find 10 points at 84 × 20, with few false alarms; people are the clusters."
    return Validation(claim, lines, SEED, {"studies per world": studies}, tally.wrong)

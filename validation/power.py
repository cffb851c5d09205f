"""What `plan --power` predicts beside what the analysis finds in simulated studies.

`python -m validation power`; STUDIES in the environment sets another number of studies of each design.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from evenedit.protocol import default_rubric
from evenedit.protocol.factors import FACTORS
from evenedit.stats.agreement.outcomes import counted_rates
from evenedit.stats.agreement.pseudo_outcomes import LabelledEdits, PseudoPanel
from evenedit.stats.engine.anom import group_tests
from evenedit.stats.engine.panel import by_face
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.power.budget import Costs, DesignBudget, best_design
from evenedit.stats.power.design import CORRELATION, RATE, SHIFT, Assumptions, Design, even_margin, planned_tests
from evenedit.stats.power.pilot import components
from validation.page import Validation, size, table
from validation.worlds import JUDGE, RACES, Latent, Values, frame
from validation.worlds import RATE as RACE_CHANGE
from validation.worlds import SHIFT as TURN

SEED = 30_311
DARKER = (1, 3, 4, 6)
CONTRAST = np.array([1 / 4 if at in DARKER else -1 / 3 for at in range(len(RACES))])
DECLARED, FAMILY = 0.05 / 3, 0.05 / 27
"""Levels of one of three declared tests, and of one of 27 others."""
DIFFERENCE, APART, MOVED = 0.10, 0.20, 0.15
CLOSE = 0.05
"""How far a prediction may be from what is found."""
MANY, BATCH = 2000, 100
"""With fewer studies, two standard errors are added."""
PILOTS = 40
"""Studies that components are estimated from where the plan's own are of another rate."""
DEFAULT = Assumptions(RATE, SHIFT, CORRELATION, 1, 13, DECLARED, FAMILY, FAMILY)


@dataclass(frozen=True)
class Planned:
    """A design and the world that it is tried in."""

    name: str
    world: Latent
    labels: int = 0
    pilot: bool = False
    """Whether components are estimated from pilot studies, with the effects in them."""

    @property
    def design(self) -> Design:
        race = self.world.labels["race"]
        sizes = tuple(int((race == r).sum()) for r in RACES)
        return Design(sizes, self.world.prompts, self.world.seeds, self.labels)

    def world_with(self, points: float, apart: tuple[int, ...]) -> Latent:
        """The world with some races apart by so much."""
        return replace(self.world, gap=float(ndtri(self.world.base + points) - ndtri(self.world.base)), apart=apart)

    def moved(self) -> Latent:
        """The world with a shift of everybody."""
        cut, grid = -float(ndtri(self.world.base)) * self.world.spread, np.linspace(0, 3, 3001)
        shift = ndtr((grid - cut) / self.world.spread) - ndtr((-grid - cut) / self.world.spread)
        return replace(self.world, moved=float(np.interp(MOVED, shift, grid)))

    def assumptions(self, rng: np.random.Generator) -> Assumptions:
        """What the plan would assume, or learn from pilot studies."""
        a = DEFAULT
        if self.labels:
            judged, people = codes(self.world_with(DIFFERENCE, DARKER), rng, PILOTS)
            a = replace(a, correlation=float(np.corrcoef(judged.ravel(), people.ravel())[0, 1]))
        if not self.pilot:
            return a
        rates = self.world_with(DIFFERENCE, DARKER).draw(rng, PILOTS).rates.panel
        shifts = self.moved().draw(rng, PILOTS).shifts.panel
        shifts = replace(shifts, measures=tuple(replace(m, signed=True) for m in shifts.measures))
        return replace(a, rate=components(rates, "race")[RACE_CHANGE], shift=components(shifts, "race")[TURN])


PLANNED = (
    *(Planned("", Latent(prompts=p, labels=frame(n))) for n, p in ((1, 20), (2, 10), (3, 7), (4, 5), (5, 4))),
    Planned(
        "groups of 8 to 24 faces, base rate 8 %, pilot",
        Latent(base=0.08, labels=frame(sizes=(24, 12, 12, 8, 8, 12, 8))),
        pilot=True,
    ),
    Planned("two seeds", Latent(prompts=10, seeds=2)),
    Planned("600 labels by two people", Latent(), labels=600),
)


def batches(studies: int) -> Iterator[int]:
    """Sizes of batches."""
    while studies > 0:
        yield min(BATCH, studies)
        studies -= BATCH


def contrasts(planned: Planned, rng: np.random.Generator, studies: int) -> Values:
    """p of the four darker races against the other three, which are apart."""
    world, found = planned.world_with(DIFFERENCE, DARKER), []
    for n in batches(studies):
        if planned.labels:
            found.append(people_p(planned, *codes(world, rng, n), rng))
            continue
        rates = world.draw(rng, n).rates
        value = sum(w * rates.of({"race": race}).value for w, race in zip(CONTRAST, RACES, strict=True))
        found.append(rates.pooled(("race",)).of(list(CONTRAST)).p(np.asarray(value))[:-1, 0])
    return np.concatenate(found)


def group_p(planned: Planned, points: float, rng: np.random.Generator, studies: int) -> tuple[Values, Values]:
    """p of the gap where the smallest group is apart, and the upper end of the interval of the largest difference."""
    smallest = int(np.argmin(planned.design.faces))
    world, p, ends = planned.world_with(points, (smallest,)), [], []
    for n in batches(studies):
        tests = group_tests(world.draw(rng, n).rates, "race", AnalysisRules.default().confidence)
        p += [tests[row, 0].smallest_p for row in range(n)]
        ends += [tests[row, 0].range_interval for row in range(n)]
    return np.array([1.0 if x is None else x for x in p]), np.array([1.0 if x is None else x[1] for x in ends])


def shift_p(planned: Planned, rng: np.random.Generator, studies: int) -> Values:
    """p of the shift of everybody."""
    found = []
    for n in batches(studies):
        shifts = planned.moved().draw(rng, n).shifts
        sums = shifts.all_faces
        found.append(shifts.uncertainty([sums], [1.0]).p(sums.value)[:-1, 0])
    return np.concatenate(found)


def codes(world: Latent, rng: np.random.Generator, studies: int) -> tuple[Values, Values]:
    """What two judges, and two people with as much noise, call a change: [face, prompt, study] means."""
    race = np.array([RACES.index(r) for r in world.labels["race"]])
    face, prompt = world.effects(rng, studies)
    hidden = world.mean[race][:, None, None] + face + prompt[race]
    hidden = hidden + rng.normal(size=hidden.shape)
    each = [hidden + rng.normal(0, JUDGE, hidden.shape) > 0 for _ in range(4)]
    return (each[0] * 0.5 + each[1] * 0.5), (each[2] * 0.5 + each[3] * 0.5)


def people_p(planned: Planned, judged: Values, people: Values, rng: np.random.Generator) -> Values:
    """p of the contrast by judges on all edits and people on a sample; studies are the editors of one panel."""
    faces, prompts, studies = judged.shape
    edits = faces * prompts
    frame_of = pd.DataFrame({name: np.repeat(x, prompts) for name, x in planned.world.labels.items()})
    frame_of = frame_of.assign(
        source_id=np.repeat([f"{at:03}" for at in range(faces)], prompts),
        prompt_id=np.tile([f"{at:02}" for at in range(prompts)], faces),
    )
    rows = pd.concat([frame_of.assign(editor=f"{at:03}") for at in range(studies)], ignore_index=True)
    rated = np.zeros((studies, edits), dtype=bool)
    rated[:, : planned.labels] = True
    rated = rng.permuted(rated, axis=1)
    labels = np.where(rated, people.reshape(edits, studies).T, np.nan)
    rules = AnalysisRules.default()
    sample = LabelledEdits(
        edits=rows,
        axes=by_face(rows, FACTORS),
        editors=tuple(f"{at:03}" for at in range(studies)),
        editor_at=np.repeat(np.arange(studies), edits),
        outcomes=tuple(c for c in counted_rates(rules, default_rubric()) if c.measure == RACE_CHANGE),
        judged=judged.reshape(edits, studies).T.reshape(-1, 1),
        labels=labels.reshape(-1, 1),
        chance=np.full(rated.size, planned.labels / edits),
        weighted=True,
        rubric=default_rubric(),
        agreement=(),
    )
    panel = PseudoPanel(sample, "race")
    return panel.p(np.broadcast_to(CONTRAST[:, None, None], panel.shape))[:-1, 0]


def questions(planned: Planned, studies: int, seed: list[int]) -> Iterator[tuple[str, str, float, float]]:
    """Each question of a design: its name, the effect, and the predicted and found shares of studies."""
    rng, d = np.random.default_rng(seed), planned.design
    a = planned.assumptions(rng)
    strict, tests = planned_tests(d, replace(a, gap=DECLARED)), planned_tests(d, a)

    def row(question: str, name: str, effect: float, p: Values, level: float) -> tuple[str, str, float, float]:
        test = (strict if level == DECLARED else tests)[name]
        assert test is not None
        return question, f"{100 * effect:.0f} pp", test.power(effect), float((p < level).mean())

    name = "by people" if planned.labels else "contrast"
    yield row("four groups against three", name, DIFFERENCE, contrasts(planned, rng, studies), DECLARED)
    if planned.labels:
        return
    p, _ = group_p(planned, APART, rng, studies)
    for level in (DECLARED, FAMILY):
        yield row(f"one group, at {level:.4f}", "one group", APART, p, level)
    yield row("shift", "shift", MOVED, shift_p(planned, rng, studies), FAMILY)
    usual, margin = planned.world.base + DIFFERENCE / 2, even_margin(d, a)  # the rate that the components are of
    _, ends = group_p(replace(planned, world=replace(planned.world, base=usual)), 0.0, rng, studies)
    yield "even groups", f"±{100 * margin:.0f} pp", 0.8, float((ends <= margin).mean())


def advice() -> tuple[list[dict[str, str | int]], int, list[str]]:
    """Costs of the best designs over a grid of budgets and prices, how many budgets there are, and what is wrong."""
    rows, number, wrong = [], 0, []
    for edit, face, task in itertools.product((0.0, 0.004, 0.04, 0.15), (0.0, 0.5, 5.0), (0.0, 8.0, 20.0)):
        for usd, edits in itertools.product((5.0, 20.0, 100.0, 500.0, 2_000.0), (400, 1_680, 20_000)):
            if edit + face + task == 0:
                continue
            costs = Costs(edit, face, task, 50)
            budget = DesignBudget(len(RACES), (84, len(RACES)), edits, usd, None if task else 0, costs)
            best = best_design(budget, DEFAULT)
            number += 1
            if best is None:
                continue
            cost, sized = f"{costs.of(best):,.2f}", f"{sum(best.faces)} × {best.prompts} × {best.seeds}"
            if costs.of(best) > usd or best.edits > edits:
                wrong.append(f"budget {usd:,.2f} and {edits:,} edits: advised {cost}, {best.edits:,} edits")
            if (edit, face, edits) == (0.04, 0.0, 20_000) and task in (0.0, 8.0):
                row = {"budget, US$": f"{usd:,.0f}", "an edit": f"{edit:.2f}", "a task": f"{task:.2f}"}
                rows.append(row | {"advised": sized, "labels": best.labels, "cost, US$": cost})
    return rows, number, wrong


def run(_folder: Path) -> Validation:
    """Predictions beside what is found, design by design; what advice costs."""
    studies = size("STUDIES", MANY)
    rows, wrong = [], []
    for number, planned in enumerate(PLANNED):
        d = planned.design
        what = f"{sum(d.faces)} × {d.prompts} × {d.seeds}" + (f", {planned.name}" if planned.name else "")
        for question, effect, said, found in questions(planned, studies, [SEED, number]):
            row = {"faces × prompts × seeds": what, "question": question, "effect or margin": effect}
            rows.append(row | {"predicted": f"{said:.3f}", "found": f"{found:.3f}"})
            chance = 0.0 if studies >= MANY else 2 * np.sqrt(said * (1 - said) / studies)
            if abs(found - said) > CLOSE + chance:
                wrong.append(f"{what}, {question}: {said:.3f} predicted, {found:.3f} found")
    advised, budgets, dear = advice()
    lines = [
        f"Shares of {studies:,} simulated studies in which the analysis finds what is there. Worlds as in "
        "[engine](engine.md): seven races, two judges, base rate 20 % unless stated, standard deviations of faces and "
        "prompts 0.5, race × prompt 0.2, an edit 1, a judge 0.5. Four races against three and the first level of one "
        f"group: {DECLARED:.4f} (three declared tests). One group and the shift: {FAMILY:.4f} (27 tests). Even groups "
        "are found so where the interval of the largest difference lies within the margin; their rate is 5 points "
        "above the base rate, as the assumed variances are of a rate of 20 to 30 %. Labels: a random sample of edits "
        f"rated by two people, combined with two judges. Pilot: variances of {PILOTS} other studies with the effect; "
        "else those that the plan assumes.",
        "",
        *table(rows),
        "",
        "## Advice within the budget",
        "",
        f"{budgets} budgets of 5 to 2,000 US$ and 400 to 20,000 edits, with prices of edits, portraits and tasks of "
        f"50 labels: the advised design cost more in {len(dear)}. Some of them:",
        "",
        *table(advised),
    ]
    return Validation(
        f"What `plan --power` predicts is what the analysis finds, within {CLOSE}; its advice costs no more "
        "than the budget.",
        lines,
        SEED,
        {"studies per design and question": studies, "budgets": budgets},
        [*wrong, *dear],
    )

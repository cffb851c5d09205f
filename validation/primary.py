"""Declared tests: power and false alarms through tables of ratings, and studies analysed as a whole.

`python -m validation primary`; STUDIES, NULLS and WHOLE in the environment set other numbers of studies.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

import evenedit as ee
from evenedit.core.records import Kind, Outcome, Status
from evenedit.protocol import FACTORS, load_prompts
from evenedit.protocol.prompts import FLOOR
from evenedit.ratings.combine import combine
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, edit_columns
from evenedit.ratings.to_csv import write_tables
from evenedit.results.finding import CLEAR, ENSEMBLE
from evenedit.results.results import Results
from evenedit.stats.agreement.reliability import outcome_alphas, outcome_reliability
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests
from evenedit.stats.findings.declared import DeclaredTests, Tested
from evenedit.stats.findings.inputs import FindingInputs
from evenedit.stats.findings.levels import adjust
from validation.page import Validation, size, table
from validation.worlds import JUDGE, RACES, Latent, frame

SEED = 30_622
DARKER = tuple(RACES[at] for at in (1, 3, 4, 6))
LIGHTER = tuple(race for race in RACES if race not in DARKER)
CONTRAST = {"factor": "race", "high": [*DARKER], "low": [*LIGHTER]}
CODE: dict[str, Any] = {"outcome": "skin_lighter", "contrast": CONTRAST}
MEAN: dict[str, Any] = {"outcome": "skin_tone", "scale": "mean", "contrast": CONTRAST}
MOVED: dict[str, Any] = {"outcome": "shift.skin_tone"}
ONE_OF_THREE, NEARLY_ALL = 0.05 / 3, 0.0499
"""Levels of power and of false alarms; [primary] takes less than 0.05."""
POWER, NULLS, WHOLE, BATCH, TYPE_I = 400, 2000, 60, 25, 0.06
NULL_EDITS, READING = 4, 0.7
"""Null edits of each face, and the correlation of their mean score with the effect of the face."""
PROMPTS = np.array([prompt.id for prompt in load_prompts("diagnostic")])
SKIN = QUESTION_IDS.index("skin_tone")


@dataclass(frozen=True)
class World:
    """A world of hidden numbers per edit, scored 1 to 5 by judges."""

    name: str
    latent: Latent = field(default_factory=Latent)
    beta: bool = False
    """Chances of faces times chances of prompts, both beta, instead of a hidden number."""
    points: float = 0.0
    """How much more often a judge rates edits of darker-labelled groups lighter, where 20 % of the others are."""

    def scores(self, rng: np.random.Generator, studies: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """[judge, face, prompt, study] scores of edits and [judge, face, null edit, study] of null edits; 0 missing."""
        return self._multiplied(rng, studies) if self.beta else self._hidden(rng, studies)

    def _hidden(self, rng: np.random.Generator, studies: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        latent, race = self.latent, self.latent.labels["race"]
        near, far = (-float(ndtri(0.2 + points)) * latent.spread for points in (0.0, self.points))
        at = np.array([RACES.index(r) for r in race])
        common = latent.effects(rng, studies // latent.editors)
        faces, prompts = (np.repeat(x, latent.editors, axis=2) for x in common)
        if latent.editors > 1:
            own = latent.effects(rng, studies)
            faces, prompts = (faces + own[0]) / np.sqrt(2), (prompts + own[1]) / np.sqrt(2)
        hidden = np.where(np.isin(race, DARKER), near - far, 0.0)[:, None, None] + faces + prompts[at]
        hidden = hidden + rng.normal(size=hidden.shape)
        shape = (len(race), NULL_EDITS, studies)
        null = null_weight(latent.judges, near / 2) * faces / max(latent.face, 1e-9) + rng.normal(size=shape)
        seen = levels(np.stack([hidden + rng.normal(0, JUDGE, hidden.shape) for _ in range(latent.judges)]), near)
        read = levels(np.stack([null + rng.normal(0, JUDGE, shape) for _ in range(latent.judges)]), near / 2)
        seen *= latent._count(rng, at, studies) > 0
        if latent.missing:
            seen *= rng.random(seen.shape) >= 0.05
        return seen, read

    def _multiplied(self, rng: np.random.Generator, studies: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        n = len(self.latent.labels["race"])
        face, prompt = rng.beta(2, 2, (n, 1, studies)), rng.beta(2, 2, (1, self.latent.prompts, studies))
        up, shape = rng.beta(2, 2, (n, 1, studies)), (n, self.latent.prompts, studies)
        far = 3 + np.where(rng.random(shape) < up, 1, -1) * rng.choice([1, 2], shape)
        truth = np.where(rng.random(shape) < face * prompt, far, 3)
        null = np.where(rng.random((n, NULL_EDITS, studies)) < face / 2, 4, 3)

        def judged(score: NDArray[np.int64]) -> NDArray[np.int8]:
            each = [np.where(rng.random(score.shape) < 0.9, score, rng.integers(2, 5, score.shape)) for _ in range(2)]
            return np.stack(each).astype(np.int8)

        return judged(truth), judged(null)

    def table(self, rng: np.random.Generator, studies: int) -> RatingTable:
        """Ratings of studies, each of which stands as editors."""
        seen, null = self.scores(rng, studies)
        names = [f"s{at // self.latent.editors:04}-{at % self.latent.editors}" for at in range(studies)]
        labels = self.latent.labels
        parts, values = [], []
        for block, condition in ((seen, "baseline"), (null, "floor")):
            face, prompt, study = (at.ravel() for at in np.indices(block.shape[1:]))
            columns: dict[str, Any] = {f.name: labels[f.name][face] for f in FACTORS}
            columns |= {"experiment": "diagnosis", "condition": condition, "editor": np.array(names)[study]}
            columns["source_id"] = np.char.add("face-", np.char.zfill(face.astype(str), 4))
            columns["seed"] = prompt if condition == "floor" else 0
            columns["prompt_id"] = FLOOR.id if condition == "floor" else PROMPTS[prompt]
            parts.append(pd.DataFrame(columns))
            values.append(block.reshape(len(block), -1))
        edits, answered = pd.concat(parts, ignore_index=True), np.concatenate(values, axis=1)
        edits["request_id"], edits["outcome"] = [f"r{at:06}" for at in range(len(edits))], Outcome.EDITED.value
        cube = np.zeros((*answered.shape, len(QUESTION_IDS)), dtype=np.int8)
        cube[..., SKIN] = answered
        status = np.where(answered > 0, STATUSES.index(Status.SCORED), NOT_ASKED).astype(np.int8)
        judges = tuple(f"judge-{at}" for at in range(len(cube)))
        return RatingTable(edits[list(edit_columns(FACTORS))], judges, (Kind.VLM,) * len(judges), cube, status)


def levels(hidden: NDArray[np.float64], near: float) -> NDArray[np.int8]:
    """Scores 1 to 5 of hidden numbers: 4 above `near`, 5 above twice that, and the other way."""
    return np.asarray(3 + sum((hidden > k * near).astype(np.int8) - (hidden < -k * near) for k in (1, 2)), np.int8)


@cache
def null_weight(judges: int, near: float) -> float:
    """The weight of a face's effect in its null edits with which their mean score correlates as stated."""
    rng = np.random.default_rng(1)
    face, noise = rng.normal(size=20_000), rng.normal(size=(NULL_EDITS, 20_000))
    seen = noise + rng.normal(0, JUDGE, (judges, *noise.shape))
    low, high = 0.0, 3.0
    for _ in range(20):
        weight = (low + high) / 2
        reading = levels(weight * face + seen, near).mean(axis=(0, 1))
        low, high = (weight, high) if np.corrcoef(face, reading)[0, 1] < READING else (low, weight)
    return low


def declared(tables: RatingTable, primary: Mapping[str, Any]) -> DeclaredTests:
    """The declared tests of a table, without the rest of the report."""
    rules = replace(AnalysisRules.default(), primary=primary)
    scores = combine(tables, rules.ensemble, rules.missing)
    panels = diagnosis_panels(scores, answers(scores, rules), rules)
    evidence = [PanelTests(ENSEMBLE, panel, CrossedPanel(panel), (), ()) for panel in panels]
    alphas = outcome_reliability(outcome_alphas(scores, rules, means=True))
    return DeclaredTests(FindingInputs(tables, scores, rules, evidence, Results({}, {}, ()), alphas))


def outcomes(
    world: World, primary: Mapping[str, Any], rng: np.random.Generator, studies: int
) -> Iterator[list[Tested]]:
    """The declared tests of each study, editor by editor."""
    editors = world.latent.editors
    for start in range(0, studies, BATCH):
        here = declared(world.table(rng, min(BATCH, studies - start) * editors), primary)
        by_study = sorted(here.tests, key=lambda t: t.editor)
        yield from (list(of) for _, of in itertools.groupby(by_study, key=lambda t: t.editor.partition("-")[0]))


def graded(tests: Sequence[Tested], alpha: float, covariate: bool) -> list[tuple[float | None, bool, bool]]:
    """p of each test of a study, with or without the covariate, whether Holm rejects it, and whether it is clear."""
    p = {t.key: r and r.p for t in tests for r in (t.result if covariate else t.judged,)}
    levels_of = adjust({}, p, alpha)
    return [(p[t.key], (test := levels_of[t.key]).is_clear, t.sight.level(test) in CLEAR) for t in tests]


def power(studies: int, wrong: list[str]) -> list[dict[str, Any]]:
    """Rows of power: the share of studies in which the test is rejected and clear to the judges."""
    rows = []
    for number, (copies, prompts, least) in enumerate(((1, 20, (0.68, 0.78, 0.92)), (2, 10, (0.83, 0.92, 0.97)))):
        world = World("", Latent(labels=frame(copies), prompts=prompts), points=0.10)
        primary = {"covariate": "null_edit", "tests": [CODE, MEAN]}
        each = list(outcomes(world, primary, np.random.default_rng([SEED, 1, number]), studies))
        names = (("rate", 0, False), ("mean score", 1, False), ("mean score, null edit as covariate", 1, True))
        for (name, at, covariate), limit in zip(names, least, strict=True):
            found = [graded([tests[at]], ONE_OF_THREE, covariate)[0] for tests in each]
            rejected, clear = (float(np.mean([one[k] for one in found])) for k in (1, 2))
            used = [tests[at].result if covariate else tests[at].judged for tests in each]
            rows.append(
                {"faces × prompts": f"{84 * copies} × {prompts}", "tested": name,
                 "mean difference": f"{np.mean([r.value for r in used if r]):.3f}",
                 "p < 0.0167": f"{rejected:.3f}", "clear to the judges": f"{clear:.3f}", "at least": f"{limit}"}
            )  # fmt: skip
            if clear < limit:
                wrong.append(f"{84 * copies} × {prompts}, {name}: {clear:.3f} clear, {limit} asked")
    return rows


FAMILIES = (
    World("normal effects, 84 × 20"),
    World("168 × 10", Latent(labels=frame(2), prompts=10)),
    World("heavy tails: faces t with 3 df", Latent(heavy=True)),
    World("beta chances of faces times prompts", beta=True),
    World("groups of 8 to 24 faces, refusals by race, scores missing",
          Latent(labels=frame(sizes=(24, 12, 12, 8, 8, 12, 8)), missing=True)),
    World("three judges", Latent(judges=3)),
    World("three editors that share half of the variance of faces", Latent(editors=3)),
)  # fmt: skip


def false_alarms(studies: int, wrong: list[str]) -> list[dict[str, Any]]:
    """Rows of false alarms: of each test at 0.05, and of any after Holm."""
    rows = []
    for number, world in enumerate(FAMILIES):
        row: dict[str, Any] = {"world": world.name}
        primary = {"covariate": "null_edit", "tests": [CODE, MEAN, MOVED]}
        each = list(outcomes(world, primary, np.random.default_rng([SEED, 2, number]), studies))
        for covariate in (False, True):
            note = ", covariate" if covariate else ""
            found = [graded(tests, NEARLY_ALL, covariate) for tests in each]
            for at, name in enumerate(("rate", "mean score", "shift of everybody")[: 2 if covariate else 3]):
                p = [one[k][0] for tests, one in zip(each, found, strict=True) for k in range(len(one))
                     if tests[k].number == at + 1]  # fmt: skip
                row[name + note] = float(np.mean([x is not None and x < 0.05 for x in p]))
            row["any, Holm" + note] = float(np.mean([any(k for _, k, _ in one) for one in found]))
        limit = TYPE_I if studies >= NULLS else TYPE_I + 2 * float(np.sqrt(TYPE_I * (1 - TYPE_I) / studies))
        wrong += [f"{world.name}, {k}: {x:.3f}" for k, x in row.items() if isinstance(x, float) and x > limit]
        rows.append({k: f"{x:.3f}" if isinstance(x, float) else x for k, x in row.items()})
        print(rows[-1], flush=True)
    return rows


def whole(studies: int, wrong: list[str]) -> list[dict[str, Any]]:
    """Rows of studies analysed as a whole from CSV files, as `evenedit analyze --primary` does."""
    rows = []
    for points in (0.0, 0.10):
        world = World("", Latent(labels=frame(2), prompts=10), points=points)
        rng, levels_of, others = np.random.default_rng([SEED, 3, int(100 * points)]), [], []
        for _ in range(studies // 2):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                write_tables(world.table(rng, 1), folder)
                tests = [{"outcome": "skin_lighter"}, {"outcome": "skin_tone", "scale": "mean"}]
                text = "[primary]\nalpha = 0.04\ncovariate = 'null_edit'\n"
                sides = f"high = {list(DARKER)}, low = {list(LIGHTER)}"
                for test in tests:
                    text += "[[primary.tests]]\n" + "".join(f"{k} = '{v}'\n" for k, v in test.items())
                    text += f"contrast = {{ factor = 'race', {sides} }}\n"
                (folder / "primary.toml").write_text(text)
                results = ee.analyze(folder / "scores.csv", primary=folder / "primary.toml")
            levels_of.append([t.level in CLEAR for t in results.primary])
            others.append(any(f.level in CLEAR for f in results.findings))
        any_clear, rate, mean = (float(np.mean(x)) for x in (np.any(levels_of, axis=1), *np.array(levels_of).T))
        rows.append({"true difference": f"{100 * points:.0f} points", "studies": studies // 2,
                     "any declared clear": f"{any_clear:.3f}", "rate clear": f"{rate:.3f}",
                     "mean score clear": f"{mean:.3f}", "any finding clear": f"{np.mean(others):.3f}"})  # fmt: skip
        chance = 2 * np.sqrt(TYPE_I * (1 - TYPE_I) / (studies / 2))
        if (not points and any_clear > TYPE_I + chance) or (points and mean < 0.9):
            wrong.append(f"analyze --primary, {points}: any clear {any_clear:.3f}, mean score {mean:.3f}")
    return rows


def run(_folder: Path) -> Validation:
    """Power, false alarms and whole studies."""
    studies, nulls, complete = size("STUDIES", POWER), size("NULLS", NULLS), size("WHOLE", WHOLE)
    wrong: list[str] = []
    rows = power(studies, wrong)
    alarms = false_alarms(nulls, wrong)
    analysed = whole(complete, wrong)
    lines = [
        "Tables of ratings by simulated judges, scores 1 to 5, go through the ensemble, the panels and the declared "
        "tests as in `evenedit analyze --primary`; the rest of the report is left out, except in the last table. Four "
        "darker-labelled groups against three lighter-labelled ones; two judges unless stated, each of whom rates 20 % "
        "of edits lighter; standard deviations of faces and prompts 0.5, race × prompt 0.2, an edit 1, a judge 0.5. "
        f"Covariate: {NULL_EDITS} null edits of each face, whose mean score correlates {READING} with its effect.",
        "",
        "## Power",
        "",
        f"Each judge rates edits lighter 10 points more often; 1,680 edits, {studies:,} studies each, one test at "
        "0.05/3. Clear to the judges: also judges that agree (lower limit of α at least 0.40).",
        "",
        *table(rows),
        "",
        "## False alarms",
        "",
        f"No difference and no shift; {nulls:,} studies of each world. Single tests at 0.05; any: Holm's p below "
        f"{NEARLY_ALL} over rate, mean score and shift of everybody (of three editors nine tests). Asked: at most "
        f"{TYPE_I}" + ("." if nulls >= NULLS else " and two standard errors."),
        "",
        *table(alarms),
        "",
        "## Whole studies",
        "",
        "168 faces × 10 prompts from files, with all findings; two declared tests at 0.04, null edit as covariate.",
        "",
        *table(analysed),
    ]
    return Validation(
        "Declared tests find ten points at 1,680 edits as planned, and raise no more false alarms than they state.",
        lines,
        SEED,
        {"studies for power": studies, "studies for false alarms": nulls, "whole studies": complete},
        wrong,
    )

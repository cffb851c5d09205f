"""What findings say when judges are wrong, alone, with null pairs and with people: `python -m validation evidence`.

STUDIES in the environment sets another number of studies of each world, SEED draws studies that nobody has seen.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from evenedit.core.records import Kind, Status
from evenedit.protocol.factors import FACTORS, cells
from evenedit.ratings.combine import combine
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, edit_columns
from evenedit.results.agreement import PredictionPowered
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, Finding
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.stats.agreement.prediction_powered import people_tests
from evenedit.stats.agreement.reliability import outcome_alphas, outcome_reliability
from evenedit.stats.engine.measures import answers
from evenedit.stats.findings.findings import FindingInputs, add_findings
from evenedit.stats.pipeline import judged_panels
from evenedit.stats.robustness.null_pairs import false_calls
from validation.engine import Limit, Tally
from validation.page import Validation, size, table
from validation.worlds import RACES

SEED = size("SEED", 60_128)
RULES = replace(AnalysisRules.default(), draws=20, permutations=19)
"""No finding rests on draws or permutations."""
FACES, PROMPTS = 84, 20
RACE = np.array([RACES.index(row["race"]) for row in cells()])
BLACK = RACES.index("Black")
SCORED = STATUSES.index(Status.SCORED)
AXES = {"edit_success": 5, "skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}
"""What a judge answers where nothing happened."""
DIRECTED = 0.05 / 3
"""The level of one of three declared contrasts."""
Flags = NDArray[np.bool_]
Calls = dict[str, NDArray[np.int8]]
"""By question that was asked, [rater, face, prompt] scores."""


@lru_cache
def edits(prompts: tuple[str, ...]) -> pd.DataFrame:
    """The edits of one editor: every face with every prompt."""
    labels = pd.DataFrame(cells()).assign(source_id=[f"f{i:02}" for i in range(FACES)])
    rows = labels.loc[labels.index.repeat(len(prompts))].assign(prompt_id=list(prompts) * FACES)
    rows = rows.assign(request_id=[f"{p}-{f}" for f, p in zip(rows["source_id"], rows["prompt_id"], strict=True)])
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "seed": 1, "outcome": "edited"}
    return rows.assign(**place)[list(edit_columns(FACTORS))].reset_index(drop=True)


def rated(calls: Calls, kinds: Sequence[Kind], asked: Flags | None = None, name: str = "p") -> RatingTable:
    """The table of what raters answered; `asked` [edit] tells what people were shown."""
    shape = next(iter(calls.values())).shape
    values = np.zeros((shape[0], shape[1] * shape[2], len(QUESTION_IDS)), dtype=np.int8)
    for question, scores in calls.items():
        values[:, :, QUESTION_IDS.index(question)] = scores.reshape(shape[0], -1)
    status = np.full(values.shape[:2], SCORED, dtype=np.int8)
    for at, kind in enumerate(kinds):
        if kind is Kind.HUMAN and asked is not None:
            values[at, ~asked], status[at, ~asked] = 0, NOT_ASKED
    raters = tuple(f"{kind.value}-{at}" for at, kind in enumerate(kinds))
    prompts = tuple(f"{name}{at:02}" for at in range(shape[2]))
    return RatingTable(edits(prompts), raters, tuple(kinds), values, status)


def changed(met: Flags) -> NDArray[np.int8]:
    """Scores of race drift from what was called a change."""
    return np.where(met, 4, 1).astype(np.int8)


class Report(NamedTuple):
    """What one study says about shifts and gaps."""

    findings: list[Finding]
    contrast: PredictionPowered | None
    """Black minus the rest in race change, corrected by people."""
    tests: int


def report_of(whole: RatingTable, inclusion: Mapping[str, float] | None = None) -> Report:
    """The findings of a table about shifts and gaps, by the code that `analyse` uses, without what they do not need."""
    scores = combine(whole, RULES.ensemble, RULES.missing)
    values = answers(scores, RULES)
    panels = judged_panels(scores, values, RULES)
    people = people_tests(scores, values, RULES, inclusion or {}, panels.estimates, panels.contrasts)
    reliability = outcome_reliability(outcome_alphas(scores, RULES))
    results = Results({}, RULES.to_dict(), tuple(panels.estimates), panels.tests, factors=whole.factors)
    inputs = (panels.evidence, results, reliability, people, false_calls(whole, RULES))
    results = add_findings(FindingInputs(whole, scores, RULES, *inputs))
    wanted = ("contrast.race_change", "e", {"race": "Black"})
    return Report(
        [f for f in results.findings if f.kind in ("shift", "gap")],
        next((p for p in people.rows if (p.measure, p.editor, p.group) == wanted), None),
        results.counts["tests"],
    )


@dataclass(frozen=True)
class World:
    """An editor that changes apparent race, and two judges who see it in their own way."""

    name: str
    judges: str = "good"
    gap: float = 0.0
    """How much more often Black faces are changed than the 5 % of others."""
    labels: int = 0
    """Edits that two people rated."""
    null_pairs: int = 0
    """Portraits shown against themselves, per face."""

    def study(self, rng: np.random.Generator) -> Report:
        """The analysis of one study."""
        return report_of(*self.table(rng))

    def table(self, rng: np.random.Generator) -> tuple[RatingTable, dict[str, float]]:
        """The ratings of one study, and the chance of each edit to be rated by people."""
        base = 0.05 + self.gap * (np.arange(len(RACES)) == BLACK)
        spread = np.sqrt(1 + 0.5**2 + 0.5**2 + 0.2**2)
        hidden = (
            (ndtri(base) * spread)[RACE][:, None]
            + rng.normal(0, 0.5, (FACES, 1))
            + rng.normal(0, 0.5, PROMPTS)
            + rng.normal(0, 0.2, (len(RACES), PROMPTS))[RACE]
            + rng.normal(size=(FACES, PROMPTS))
        )
        true = hidden > 0
        calls = self._judged(true, rng)
        kinds, asked, inclusion = [Kind.VLM] * 2, None, {}
        if self.labels:
            asked = rng.random(true.size) < self.labels / true.size
            seen = np.stack([self._seen(true, 0.9, 0.02, rng) for _ in range(2)])
            calls = {q: np.concatenate([x, np.full_like(x, AXES[q])]) for q, x in calls.items()}
            calls["race_drift"][2:] = changed(seen)
            kinds += [Kind.HUMAN] * 2
        whole = rated(calls, kinds, asked)
        if asked is not None:
            inclusion = dict.fromkeys(whole.edits["request_id"], self.labels / true.size)
        if self.null_pairs:
            null = self._judged(np.zeros((FACES, self.null_pairs), dtype=bool), rng)
            whole = replace(whole, null_pairs=rated(null, [Kind.VLM] * 2, name="n"))
        return whole, inclusion

    @staticmethod
    def _seen(true: Flags, hit: float, false: float, rng: np.random.Generator) -> Flags:
        return np.where(true, rng.random(true.shape) < hit, rng.random(true.shape) < false)

    def _judged(self, true: Flags, rng: np.random.Generator) -> Calls:
        """Scores of both judges."""
        shape = (2, *true.shape)
        if self.judges == "random":
            return {q: rng.integers(1, 6, shape).astype(np.int8) for q in AXES}
        if self.judges == "constant":
            return {q: np.full(shape, 4, dtype=np.int8) for q in AXES}
        hit = {"miss": 0.9}.get(self.judges, 0.85)
        seen = np.stack([self._seen(true, hit, 0.02, rng) for _ in range(2)])
        black = (RACE == BLACK)[:, None]
        if self.judges == "artefact":
            seen |= black & (rng.random(true.shape) < 0.18)
        if self.judges == "miss":
            seen &= ~(black & (rng.random(true.shape) < 0.72))
        calls = {"race_drift": changed(seen)}
        if self.judges == "one random":
            calls = {q: np.full(shape, usual, dtype=np.int8) for q, usual in AXES.items()} | calls
            for scores in calls.values():
                scores[1] = rng.integers(1, 6, true.shape)
        return calls


def even(rng: np.random.Generator) -> Report:
    """The analysis of an even editor: five correlated axes, two good judges."""
    faces, prompts, own = (rng.normal(size=(6, *s)) for s in ((FACES, 1), (1, PROMPTS), (FACES, PROMPTS)))
    calls = {}
    for at, question in enumerate(AXES, start=1):
        mixed = (np.sqrt(0.4) * x[0] + np.sqrt(0.6) * x[at] for x in (faces, prompts, own))
        face, prompt, edit = mixed
        hidden = 0.5 * face + 0.5 * prompt + edit
        cuts = [-2.0, -1.2, 1.2, 2.0] if AXES[question] == 3 else [1.0, 1.3, 1.8, 2.3]
        seen = np.stack([hidden + rng.normal(0, 0.3, hidden.shape) for _ in range(2)])
        scores = np.digitize(seen, cuts) + 1
        calls[question] = (6 - scores if AXES[question] == 5 else scores).astype(np.int8)
    return report_of(rated(calls, [Kind.VLM] * 2))


@dataclass(frozen=True)
class Seen:
    """What the studies of one world say."""

    reports: list[Report]

    def findings(self) -> list[Finding]:
        """All findings about outcomes."""
        return [f for r in self.reports for f in r.findings]

    def any(self, which: Callable[[Finding], bool]) -> Flags:
        """By study, whether any finding is so."""
        return np.array([any(which(f) for f in r.findings) for r in self.reports])

    def gaps(self) -> list[Finding]:
        """The findings about the gap of race change by race."""
        return [f for f in self.findings() if _is_race_gap(f)]

    def contrasts(self) -> list[PredictionPowered]:
        """Black minus the rest, corrected by people."""
        return [r.contrast for r in self.reports if r.contrast is not None]


def _is_race_gap(f: Finding) -> bool:
    return f.kind == "gap" and f.factor == "race" and f.measure == "gap.race_change"


def seen(study: Callable[[np.random.Generator], Report], studies: int, at: int, workers: int = 2) -> Seen:
    """Studies of one world."""
    seeds = [[SEED, at, number] for number in range(studies)]
    if workers < 2:
        return Seen([_drawn(study, seed) for seed in seeds])
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        return Seen(list(pool.map(partial(_drawn, study), seeds, chunksize=10)))


def _drawn(study: Callable[[np.random.Generator], Report], seed: list[int]) -> Report:
    return study(np.random.default_rng(seed))


def _flags(values: Sequence[bool]) -> Flags:
    return np.array(values, dtype=bool)


def no_agreement(tally: Tally, studies: int) -> list[str]:
    """Row 1: judges whose answers are worth nothing."""
    rows = []
    for at, (name, judges) in enumerate(
        {"two random judges": "random", "two constant judges": "constant", "one good, one random": "one random"}.items()
    ):
        gap = 0.22 if judges == "one random" else 0.0
        found = seen(World(name, judges, gap).study, studies, 10 + at).findings()
        cannot = _flags([f.level == "cannot_tell" for f in found])
        percent = _flags(["%" in f.text for f in found if f.level == "cannot_tell"])
        rows.append(
            {
                "judges": name,
                "findings": len(found),
                "cannot tell": tally.cell(f"{name}, cannot tell", cannot, Limit(0.97)),
                "of these with a percentage": tally.cell(f"{name}, percentage in a sentence", percent, Limit(0.0, 0.0)),
            }
        )
    return table(rows)


def artefact(tally: Tally, studies: int) -> list[str]:
    """Row 2: both judges call 22 % of Black edits, 5 % are changed."""
    rows = []
    for at, null_pairs in enumerate((0, 2, 4)):
        name = f"artefact, {null_pairs} null pairs per face"
        found = seen(World(name, "artefact", null_pairs=null_pairs).study, studies, 20 + at)
        clear = found.any(lambda f: f.level == "clear" and f.measure != "rate.refused")
        to_judges = found.any(lambda f: f.level == "clear_to_judges" and _is_race_gap(f))
        limit = Limit(0.0, 0.03) if null_pairs == 4 else Limit()
        gaps = found.gaps()
        warned = _flags([f.text.startswith("The judges also report") for f in gaps])
        rows.append(
            {
                "null pairs per face": null_pairs,
                "any clear": tally.cell(f"{name}, clear", clear, Limit(0.0, 0.0)),
                "gap clear to the judges": tally.cell(f"{name}, clear to the judges", to_judges, limit),
                "the sentence begins with the false calls": tally.cell("", warned),
            }
        )
    kept = seen(World("good", "good", 0.22, null_pairs=4).study, studies, 29)
    share = kept.any(lambda f: f.level == "clear_to_judges" and _is_race_gap(f))
    rows.append(
        {
            "null pairs per face": "4, good judges, a true gap of 22 points",
            "any clear": tally.cell("", kept.any(lambda f: f.level == "clear" and f.measure != "rate.refused")),
            "gap clear to the judges": tally.cell("", share),
            "the sentence begins with the false calls": "–",
        }
    )
    return table(rows)


def people(tally: Tally, studies: int) -> list[str]:
    """Rows 3 and 4: people's labels demote what is not there and raise what judges miss."""
    rows = []
    worlds = {
        World("artefact, truth 5 % everywhere, 300 labels", "artefact", labels=300): Limit(0.0, 0.035),
        World("judges miss 75 % of Black, 27 against 5 %, 300 labels", "miss", 0.22, 300): Limit(0.75),
        World("judges miss 75 % of Black, 27 against 5 %, 600 labels", "miss", 0.22, 600): Limit(0.93),
        World("good judges, truth 5 % everywhere, 300 labels", labels=300): Limit(0.0, 0.035),
    }
    for at, (world, limit) in enumerate(worlds.items()):
        found = seen(world.study, studies, 30 + at)
        contrasts = found.contrasts()
        truth = 0.88 * world.gap
        clear = _flags(
            [p.enough and p.p is not None and p.p < DIRECTED and (p.low > 0 or p.high < 0) for p in contrasts]
        )
        corrected_points = 100 * np.array([p.value for p in contrasts])
        mean, error = float(corrected_points.mean()), float(corrected_points.std() / np.sqrt(len(contrasts)))
        off = Limit(100 * truth - 1, 100 * truth + 1)
        covered = _flags([p.low <= truth <= p.high for p in contrasts])
        gaps = found.gaps()
        corrected = _flags([f.judge_value is not None and f.value != f.judge_value for f in gaps if f.level == "clear"])
        reported = found.any(lambda f: _is_race_gap(f) and f.level == "clear")
        rows.append(
            {
                "world": world.name,
                "judges alone, points": f"{100 * np.mean([p.judge for p in contrasts]):.1f}",
                "corrected, points": tally.number(f"{world.name}, mean", mean, off, error),
                "truth": f"{100 * truth:.1f}",
                "enough labels": tally.cell("", _flags([p.enough for p in contrasts])),
                "declared contrast clear": tally.cell(f"{world.name}, declared contrast clear", clear, limit),
                "interval holds the truth": tally.cell(f"{world.name}, coverage", covered, Limit(0.94)),
                "reported gap clear": tally.cell("", reported),
                "clear gaps with the corrected number first": tally.cell(
                    f"{world.name}, corrected first", corrected, Limit(1.0)
                ),
            }
        )
    return table(rows)


def alarms(tally: Tally, studies: int) -> list[str]:
    """Row 6: findings of an even editor."""
    found = seen(even, studies, 60)
    gaps = Seen([r._replace(findings=[f for f in r.findings if f.kind == "gap"]) for r in found.reports])
    tests = [r.tests for r in found.reports]
    return table(
        [
            {
                "tests per report": f"{np.mean(tests):.0f}",
                "any gap clear to the judges": tally.cell(
                    "even editor, any clear gap", gaps.any(lambda f: f.level in CLEAR), Limit(0.0, 0.06)
                ),
                "any gap suggestive or above": tally.cell(
                    "even editor, any suggestive gap", gaps.any(lambda f: f.level in EFFECT_LEVELS), Limit(0.0, 0.07)
                ),
            }
        ]
    )


def run(_folder: Path) -> Validation:
    """All tables, each with its limits."""
    studies = size("STUDIES", 400)
    tally = Tally()
    lines = [
        f"84 faces, 20 prompts, one editor, two judges, {studies} studies of each world, each analysed as a report is. "
        "Shares with their standard errors; a share in bold is beyond its limit. Good judges call 85 % of changes and "
        "2 % of other edits, people 90 % and 2 %; two people rate each labelled edit.",
        "",
        "## Judges whose answers are worth nothing",
        "",
        "Findings about shifts and gaps. Asked: at least 0.97 say that nothing can be told, none of these with a "
        "percentage.",
        "",
        *no_agreement(tally, studies),
        "",
        "## An artefact that both judges share: 22 % of Black edits called, 5 % changed",
        "",
        "Asked: nothing is clear; with 4 null pairs per face the gap is clear to the judges in at most 0.03.",
        "",
        *artefact(tally, studies),
        "",
        "## With people",
        "",
        f"Black minus the rest. The declared contrast is clear if p < {DIRECTED:.4f}, its interval leaves out 0 and "
        "people rated enough. Asked: ≤ 0.035 where nothing is there, ≥ 0.75 and ≥ 0.93 with 300 and 600 labels where "
        "judges miss it; the mean within a point of the truth, which is what people would say; coverage ≥ 0.94. The "
        "reported gap is one of all tests of the report.",
        "",
        *people(tally, studies),
        "",
        "## An even editor",
        "",
        "Five correlated axes, nine rates by race, gender and age. Findings about gaps. "
        "Asked: any clear ≤ 0.06, any suggestive ≤ 0.07.",
        "",
        *alarms(tally, studies),
    ]
    claim = (
        "Findings say no more than their raters can tell: nothing where judges do not agree, nothing clear where "
        "judges alone see it, and what people see where they were asked."
    )
    return Validation(claim, lines, SEED, {"studies of each world": studies}, tally.wrong)

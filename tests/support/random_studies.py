"""Rating tables of random studies, drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import Kind, Outcome, Status
from evenedit.protocol import AXES, DEFAULT_RATES, FACTORS, Factor, Rate
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, Reading, edit_columns
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse

MONK = Factor.of("monk", [str(n) for n in range(1, 11)], title="Monk skin tone", ordered=True)
HEADWEAR = Factor.of("headwear", ["none", "hijab", "turban"])
SIZE = Factor.of("body_size", ["small", "medium", "large"], ordered=True)
FACTOR_SETS: tuple[tuple[Factor, ...], ...] = (FACTORS, FACTORS, (MONK,), (HEADWEAR, SIZE), (FACTORS[0], HEADWEAR))
PROMPTS = ("O-01", "O-02", "O-06", "V-03")
EDITORS = ("alpha", "beta-2", "simulated-gamma")
ENDS = [STATUSES.index(s) for s in (Status.REFUSED, Status.UNPARSEABLE, Status.FAILED)]
VERDICT = QUESTION_IDS.index("stereotype")
SAMPLERS = ("balanced", "strata", "priority", "")
PLATFORMS = ("prolific", "panel", "invitation")
Chance = np.random.Generator


@dataclass(frozen=True)
class RandomStudy:
    """One random study."""

    seed: int
    table: RatingTable
    rules: AnalysisRules
    study: Mapping[str, Any]
    """The survey section of the study file."""
    sampled: int | None
    """Number of cases sampled for human raters."""

    def results(self) -> Results:
        """Analyse the table."""
        counts = {} if self.sampled is None else {"sampled": self.sampled}
        return analyse(self.table, self.rules, StudyFacts({"evenedit": "random study"}, counts=counts))


def random_study(seed: int) -> RandomStudy:
    """Draw factors, faces, prompts, editors, arms, raters and missing answers from a seed."""
    chance = np.random.default_rng(seed)
    factors = FACTOR_SETS[chance.integers(len(FACTOR_SETS))]
    edits = _edits(chance, factors)
    parts: list[tuple[str, Kind, NDArray[np.int8], NDArray[np.int8]]] = []
    for number in range(chance.choice(4, p=[0.25, 0.3, 0.4, 0.05])):
        parts.append((f"judge-{number + 1}", Kind.VLM, *_answers(chance, edits)))
    readings: list[Reading] = []
    if chance.random() < 0.5:
        values, status, reading = _skin(chance, edits)
        parts.append(("skin", Kind.INSTRUMENT, values, status))
        readings.append(reading)
    if chance.random() < 0.4:
        status, several = _change(chance, edits)
        parts.append(("change", Kind.INSTRUMENT, _no_values(edits), status))
        readings += several
    people = int(chance.choice(4, p=[0.6, 0.1, 0.15, 0.15]))
    sampled = chance.random(len(edits)) < chance.choice([0.3, 1.0])
    for number in range(people):
        values, status = _answers(chance, edits, sampled)
        parts.append((f"person-{number + 1}", Kind.HUMAN, values, status))
    table = RatingTable(
        edits,
        tuple(name for name, *_ in parts),
        tuple(kind for _, kind, *_ in parts),
        np.stack([values for *_, values, _ in parts]) if parts else np.zeros((0, *_no_values(edits).shape), np.int8),
        np.stack([status for *_, status in parts]) if parts else np.zeros((0, len(edits)), np.int8),
        readings=tuple(readings),
        factors=factors,
        asks={"O-02": ("skin_tone",)} if chance.random() < 0.3 else {},
    )
    return RandomStudy(seed, table, _rules(chance), _study(chance, people), _sampled(chance, people, len(edits)))


def _rules(chance: Chance) -> AnalysisRules:
    rates = dict(DEFAULT_RATES)
    if chance.random() < 0.3:
        rates["race_change"] = Rate("race_change", "race_drift", at_least=4)
    return replace(
        AnalysisRules.default(),
        draws=100,
        permutations=99,
        rates=rates,
        confidence=float(chance.choice([0.95, 0.9])),
        missing=str(chance.choice(["exclude", "exclude", "exclude", "neutral-3"])),
        margin=float(chance.choice([0.05, 0.3])) if chance.random() < 0.2 else None,
        mitigation_cases=str(chance.choice(["", "balanced", "strata", "priority", "drift"])),
        seed=int(chance.integers(1000)),
    )


def _study(chance: Chance, people: int) -> dict[str, Any]:
    if not people or chance.random() < 0.4:
        return {}
    survey: dict[str, Any] = {"sampler": str(chance.choice(SAMPLERS))}
    if chance.random() < 0.7:
        survey["platform"] = {"kind": str(chance.choice(PLATFORMS))}
    return {"survey": survey}


def _sampled(chance: Chance, people: int, edits: int) -> int | None:
    return int(chance.integers(1, edits + 1)) if people and chance.random() < 0.5 else None


def _edits(chance: Chance, factors: Sequence[Factor]) -> pd.DataFrame:
    faces = _faces(chance, factors)
    prompts = PROMPTS[: chance.integers(1, len(PROMPTS) + 1)]
    editors = EDITORS[: chance.choice([1, 1, 2, 3])]
    seeds = range(1, 2 + int(chance.random() < 0.2))
    complete = float(chance.choice([1.0, 0.8]))
    refuses, fails = (float(chance.choice([0.0, 0.0, x])) for x in (0.15, 0.1))
    rows: list[dict[str, Any]] = []

    def add(experiment: str, condition: str, editor: str, face: Mapping[str, str], prompt: str, seed: int) -> None:
        draw = chance.random()
        outcome = Outcome.REFUSED if draw < refuses else Outcome.FAILED if draw < refuses + fails else Outcome.EDITED
        rows.append(
            {"experiment": experiment, "condition": condition, "editor": editor, "prompt_id": prompt, "seed": seed}
            | dict(face)
            | {"outcome": outcome.value}
        )

    for editor in editors:
        for face in faces:
            for prompt in prompts:
                for seed in seeds:
                    if chance.random() < complete:
                        add("diagnosis", "baseline", editor, face, prompt, seed)
    diagnosed = [row for row in rows if row["seed"] == 1]
    if chance.random() < 0.35:
        placebo = chance.random() < 0.6
        for row in diagnosed:
            if chance.random() < 0.5:
                face = {key: row[key] for key in ("source_id", *(f.name for f in factors))}
                add("mitigation", "feature", row["editor"], face, row["prompt_id"], 1)
                if placebo:
                    add("mitigation", "placebo", row["editor"], face, row["prompt_id"], 10_001)
    if chance.random() < 0.35:
        swapped = chance.random() < 0.6
        pair = {"source_id": "a+b"} | {f.name: "" for f in factors}
        for editor in editors:
            for number in range(1, int(chance.integers(3, 9))):
                for condition in ("baseline", *(["swapped"] if swapped else [])):
                    add("stereotype", condition, editor, pair, f"W-{number:02}", 1)
    if not rows:
        add("diagnosis", "baseline", editors[0], faces[0], prompts[0], 1)
    frame = pd.DataFrame([{"request_id": f"r{at:05}"} | row for at, row in enumerate(rows)])
    return frame[list(edit_columns(factors))]


def _faces(chance: Chance, factors: Sequence[Factor]) -> list[dict[str, str]]:
    """Draw labelled portraits: few or many, balanced or not, sometimes without a label."""
    size = int(chance.choice([1, 2, 4, 8, 14, 20]))
    even, unlabelled = chance.random() < 0.3, chance.random() < 0.15
    weights = {f.name: chance.dirichlet(np.full(len(f.codes), 0.6)) for f in factors}
    faces = []
    for number in range(size):
        labels = {
            f.name: str(f.codes[(number // 2**at) % min(2, len(f.codes))] if even else chance.choice(f.codes, p=p))
            for at, (f, p) in enumerate(zip(factors, weights.values(), strict=True))
        }
        if unlabelled and chance.random() < 0.3:
            labels[factors[0].name] = ""
        faces.append({"source_id": f"face-{number:02}"} | labels)
    return faces


def _no_values(edits: pd.DataFrame) -> NDArray[np.int8]:
    return np.zeros((len(edits), len(QUESTION_IDS)), dtype=np.int8)


def _statuses(chance: Chance, edits: pd.DataFrame, rated: NDArray[np.bool_] | None) -> NDArray[np.int8]:
    """Draw the status of each call; `rated` selects the edits that the rater was asked about."""
    status = np.full(len(edits), NOT_ASKED, dtype=np.int8)
    loss = float(chance.choice([0.0, 0.1, 0.4, 1.0], p=[0.4, 0.4, 0.15, 0.05]))
    factor = edits.columns[7]
    more = (edits[factor] == edits[factor].iloc[0]).to_numpy() * float(chance.choice([0.0, 0.0, 0.0, 0.6]))
    for at, outcome in enumerate(edits["outcome"]):
        if outcome == Outcome.EDITED and (rated is None or rated[at]):
            lost = chance.random() < loss + more[at]
            status[at] = chance.choice(ENDS) if lost else STATUSES.index(Status.SCORED)
    return status


def _answers(
    chance: Chance, edits: pd.DataFrame, rated: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Draw the answers of one judge or person; calls and questions may be missing, groups may differ."""
    values, status = _no_values(edits), _statuses(chance, edits, rated)
    tilt = chance.choice([0.0, 0.0, 1.5])
    factor = edits.columns[7]
    first = str(edits[factor].iloc[0])
    for at in np.flatnonzero(status == STATUSES.index(Status.SCORED)):
        if edits["experiment"].iat[at] == "stereotype":
            values[at, VERDICT] = chance.integers(1, 4)
            continue
        moved = tilt if edits[factor].iat[at] == first else 0.0
        for axis, middle in zip(AXES, (4, 3, 1, 1, 3), strict=True):
            if chance.random() < 0.97:
                values[at, QUESTION_IDS.index(axis)] = int(np.clip(round(chance.normal(middle + moved, 0.9)), 1, 5))
        if not values[at].any():
            values[at, QUESTION_IDS.index(AXES[0])] = 3
    return values, status


def _skin(chance: Chance, edits: pd.DataFrame) -> tuple[NDArray[np.int8], NDArray[np.int8], Reading]:
    single = (edits["experiment"] != "stereotype").to_numpy()
    status, values = _statuses(chance, edits, single), _no_values(edits)
    read = status == STATUSES.index(Status.SCORED)
    moved = chance.normal(float(chance.choice([0, 4])), 4, len(edits))
    cuts = np.select([moved > 6, moved > 2, moved < -6, moved < -2], [5, 4, 1, 2], 3)
    values[read, QUESTION_IDS.index("skin_tone")] = cuts[read]
    reasons = tuple("no face" if s >= 0 and not ok else "" for s, ok in zip(status, read, strict=True))
    return values, status, Reading("skin", "mean.skin_delta_L", np.where(read, moved, np.nan), reasons)


def _change(chance: Chance, edits: pd.DataFrame) -> tuple[NDArray[np.int8], list[Reading]]:
    single = (edits["experiment"] != "stereotype").to_numpy()
    status = _statuses(chance, edits, single)
    read = status == STATUSES.index(Status.SCORED)
    reasons = tuple("too large" if s >= 0 and not ok else "" for s, ok in zip(status, read, strict=True))
    share = np.where(read, chance.random(len(edits)), np.nan)
    same = np.where(read, (chance.random(len(edits)) < chance.choice([0.0, 0.3])).astype(float), np.nan)
    return status, [
        Reading("change", "rate.unchanged", same, reasons),
        Reading("change", "mean.changed_share", share, reasons),
    ]

"""Judges and people who rate from the ground truth, with errors of their own. Everything they touch is SIMULATED."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from evenedit.editors.simulated import truth_of
from evenedit.protocol import QUESTIONS
from evenedit.records import Case, Question, Reply, Status, UserError, digest


class SimulatedJudge:
    """Reads the truth a simulated editor wrote into its picture, and errs at known rates."""

    simulated = True

    def __init__(
        self,
        *,
        seed: int = 0,
        error: float = 0.02,
        leniency: float = 0.0,
        missing: float = 0.0,
        refusal: float = 0.0,
        unparseable: float = 0.0,
    ) -> None:
        self.seed = seed
        self.error = error
        """Chance that a score is one step off, up or down alike."""
        self.leniency = leniency
        """Chance that edit success is scored one step too high."""
        self.left_out = missing
        """Chance that a single answer is missing."""
        self.refusal = refusal
        self.unparseable = unparseable
        chances = {
            "error": error,
            "leniency": leniency,
            "missing": missing,
            "refusal": refusal,
            "unparseable": unparseable,
        }
        for name, chance in chances.items():
            if not 0 <= chance <= 1:
                raise UserError(f"setting '{name}' is {chance}; it must lie between 0 and 1")

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Score the case as the truth has it, but for this judge's errors."""
        key, truth = truth_of(case.edited)
        if case.other is not None:
            other, second = truth_of(case.other)
            key, truth = key + other, {"identity": _closer(truth, second)}
        rng = np.random.default_rng(int(digest([self.seed, key]), 16))
        end = rng.random()
        if end < self.refusal:
            return Reply(Status.REFUSED, reason="simulated content filter")
        if end < self.refusal + self.unparseable:
            return Reply(Status.UNPARSEABLE, reason="simulated malformed reply", raw="{")
        values = {q.id: self._answer(q, truth[q.id], rng) for q in questions}
        return Reply(Status.SCORED, values, raw=json.dumps(values))

    def _answer(self, question: Question, truth: int, rng: np.random.Generator) -> int | None:
        if rng.random() < self.left_out:
            return None
        wrong = rng.random() < self.error
        if question.sided == "choice":
            return int(rng.integers(1, len(question.labels) + 1)) if wrong else truth
        score = truth + (int(rng.choice((-1, 1))) if wrong else 0)
        if question.id == "edit_success" and rng.random() < self.leniency:
            score += 1
        return min(max(score, 1), len(question.labels))


def _closer(a: Mapping[str, int], b: Mapping[str, int]) -> int:
    """Which of two outputs drifted less from its source, over skin, race, gender and age: 1 = A, 2 = B, 3 = alike."""

    def drift(truth: Mapping[str, int]) -> int:
        return sum(
            abs(truth[q] - (3 if QUESTIONS[q].sided == "two" else 1))
            for q in ("skin_tone", "race_drift", "gender_drift", "age_drift")
            if q in truth
        )

    return 1 if drift(a) < drift(b) else 2 if drift(b) < drift(a) else 3

"""Judges and people who rate from the ground truth, with errors of their own. Everything they touch is SIMULATED."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case, Reply
from evenedit.core.records import Question, Status
from evenedit.protocol.drift import drift
from evenedit.protocol.questions import CANNOT_TELL, YES_NO, Rate
from evenedit.protocol.rubric import ROLES, SEEN, default_rubric, shipped_rubric
from evenedit.simulation.editors import TRUTH, labels_seen, note_of, truth_of
from evenedit.simulation.portraits.portrait import portrait_of

AMBIGUITY = (0.2, 0.5)
"""Rates, at least and at most, at which ambiguous faces are read as another level."""
CHANCES = ("error", "leniency", "left_out", "refusal", "unparseable", "repeat_noise", "reading_error", "ambiguous")
"""Settings that are shares of all answers."""
SAME_PICTURE = 4.0
"""Pictures show the same if their channels, 0 to 255, differ by no more than this on average."""


def _met(rates: Iterable[Rate], answer: int) -> tuple[bool, ...]:
    return tuple(bool(rate.met(np.array(answer))) for rate in rates)


@cache
def _short_form() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return, by question of the short rubric, the question with the same rates and its own answer at each level."""
    answers = {}
    for spec in (spec for spec in shipped_rubric("short-002").specs if spec.rates):
        full = [default_rubric().rates[name] for name in spec.rates]
        codes = {_met(spec.rates.values(), at): code for at, code in enumerate(spec.question.labels, 1)}
        answers[spec.id] = full[0].question, tuple(codes[_met(full, level)] for level in range(1, 6))
    return answers


@dataclass(kw_only=True, eq=False)
class SimulatedJudge:
    """Reads the truth a simulated editor wrote into its picture, and errs at known rates."""

    simulated = True

    seed: int = 0
    error: float = 0.02
    """Chance that a score is one step off, up or down alike."""
    leniency: float = 0.0
    """Chance that edit success is scored one step too high."""
    missing: InitVar[float] = 0.0
    """Chance that a single answer is missing; kept as `left_out`, since `missing` is a method of plug-ins."""
    refusal: float = 0.0
    unparseable: float = 0.0
    repeat_noise: float = 0.0
    """Chance that a score is one step off, drawn anew each time the same thing is asked."""
    label_effect: Mapping[str, float] | None = None
    """By question, the chance of one step up (below 0: down) when the judge is given the labels …"""
    label_groups: Mapping[str, Sequence[str]] | None = None
    """… of portraits with these labels; of all when left out."""
    order_effect: Mapping[str, float] | None = None
    """The same when the edited picture is shown first."""
    grey_effect: Mapping[str, float] | None = None
    """The same when the pictures have no colour."""
    reading_error: float = 0.0
    """Chance that the person in a single picture is read as any other level."""
    ambiguous: float = 0.0
    """Share of faces that are ambiguous: alone in a picture, each is read as another level at a rate of its own."""
    ambiguous_as: str = ""
    """The level that ambiguous faces are taken for; one for each face when left out."""

    def __post_init__(self, missing: float) -> None:
        self.left_out = missing
        for name in ("label_effect", "order_effect", "grey_effect"):
            for question, chance in (getattr(self, name) or {}).items():
                if question not in default_rubric() or not -1 <= chance <= 1:
                    raise EvenEditError(
                        f"setting '{name}' has {question} = {chance}; it takes questions of the rubric "
                        "with a chance from -1 to 1"
                    )
        for name in CHANCES:
            if not 0 <= getattr(self, name) <= 1:
                setting = "missing" if name == "left_out" else name
                raise EvenEditError(f"setting '{setting}' is {getattr(self, name)}; it must lie between 0 and 1")

    def judge(self, case: Case, questions: Sequence[Question]) -> Reply:
        """Score the case by the truth, with this judge's errors."""
        if case.wording == "seen":
            return self._see(case.edited, questions)
        key, truth = _unchanged(case, questions) or truth_of(case.edited)
        if case.other is not None:
            other, second = truth_of(case.other)
            key, truth = key + other, {"identity": _closer(truth, second)}
        if ROLES.target_role in truth:  # in a drawn picture the role is all the status there is
            truth = {ROLES.status: truth[ROLES.target_role]} | truth
        rng = np.random.default_rng(int(digest([self.seed, key]), 16))
        if failed := self._failed(rng):
            return failed
        declared = [q for q in questions if q.id not in truth and q.id not in default_rubric()]
        shipped = [q for q in questions if q not in declared]
        values = {q.id: self._answer(q, truth[q.id], rng) for q in shipped}
        moved = {q.id: self._moved(q, values[q.id], key, case) for q in shipped}
        planted = note_of(case.edited).get("answers", {}) if TRUTH in case.edited.info else {}
        for question in declared:  # each from a stream of its own, so that no other answer depends on it
            stated = np.random.default_rng(int(digest([self.seed, key, question.id]), 16))
            axis, short = _short_form().get(question.id, ("", ()))
            reported = [short[truth[axis] - 1]] if axis in truth else planted.get(question.id, [])
            moved |= self._declared(question, reported, stated)
        return Reply(Status.SCORED, moved, raw=json.dumps({q.id: _written(q, moved) for q in questions}))

    def _failed(self, rng: np.random.Generator) -> Reply | None:
        """Return a reply without an answer, at the rates of such replies."""
        end = rng.random()
        if end < self.refusal:
            return Reply(Status.REFUSED, reason="simulated content filter")
        unparseable = end < self.refusal + self.unparseable
        return Reply(Status.UNPARSEABLE, reason="simulated malformed reply", raw="{") if unparseable else None

    def _declared(self, question: Question, planted: Sequence[int | str], rng: np.random.Generator) -> dict[str, Any]:
        """Answer a question of the study by what was planted: else no change, the first answer or none of a set."""
        answers = [question.labels.index(a) + 1 if a in question.labels else a for a in planted]
        if unknown := [a for a in answers if a not in range(1, len(question.labels) + 1)]:
            raise EvenEditError(
                f"a simulated editor plants '{unknown[0]}' for the question '{question.id}', which has the answers "
                f"{', '.join(question.labels)}; change its effects"
            )
        if question.sided == "set":
            each = enumerate(question.columns, 1)
            return {c: self._answer(Question(c, "", "", YES_NO, "choice"), 2 - (at in answers), rng) for at, c in each}
        return {question.id: self._answer(question, int([question.unchanged, *answers][-1]), rng)}

    def _see(self, image: Image, questions: Sequence[Question]) -> Reply:
        """Read the labels of the person in a single picture."""
        labels, portrait = labels_seen(image), portrait_of(image)
        key = hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()
        if failed := self._failed(np.random.default_rng(int(digest([self.seed, key]), 16))):
            return failed
        seen: dict[str, str | None] = {}
        for question in questions:
            rng = np.random.default_rng(int(digest([self.seed, key, question.id]), 16))
            level = labels.get(question.id.removesuffix(SEEN), CANNOT_TELL)
            face = digest([portrait.seed, level] if portrait else [key])
            seen[question.id] = None if rng.random() < self.left_out else self._read(question, level, face, rng)
        return Reply(Status.SCORED, seen, raw=json.dumps(seen))

    def _read(self, question: Question, level: str, face: str, rng: np.random.Generator) -> str:
        """Return the level that a face is read as; an ambiguous face is as ambiguous to every judge."""
        others = [code for code in question.labels if code not in (level, CANNOT_TELL)]
        if level not in question.labels or level == CANNOT_TELL:
            return CANNOT_TELL
        stated = np.random.default_rng(int(digest([face, question.id]), 16))
        chosen, share, other = stated.random(), stated.uniform(*AMBIGUITY), str(stated.choice(others))
        taken_for = self.ambiguous_as if self.ambiguous_as in question.labels else other
        if taken_for != level and chosen < self.ambiguous and rng.random() < share:
            return taken_for
        return str(rng.choice(others)) if rng.random() < self.reading_error else level

    def _answer(self, question: Question, truth: int, rng: np.random.Generator) -> int | None:
        if rng.random() < self.left_out:
            return None
        wrong = rng.random() < self.error
        if question.sided == "choice":
            return int(rng.integers(1, len(question.labels) + 1)) if wrong else truth
        score = truth + (int(rng.choice((-1, 1))) if wrong else 0)
        if question.id == ROLES.success and rng.random() < self.leniency:
            score += 1
        return min(max(score, 1), len(question.labels))

    def _moved(self, question: Question, score: int | None, key: str, case: Case) -> int | None:
        """Apply the planted effects of how the question was asked to a score."""
        if score is None or question.sided == "choice":
            return score
        for name, effect in self._effects(case):
            chance = effect.get(question.id, 0.0)
            drawn = np.random.default_rng(int(digest([self.seed, key, name, question.id]), 16)).random()
            score += int(np.sign(chance)) * (drawn < abs(chance))
        if self.repeat_noise:
            variant = [case.repeat, case.attributes is not None, case.edited_first, _is_grey(case.edited)]
            rng = np.random.default_rng(int(digest([self.seed, key, variant, question.id]), 16))
            score += int(rng.choice((-1, 1))) if rng.random() < self.repeat_noise else 0
        return min(max(score, 1), len(question.labels))

    def _effects(self, case: Case) -> Iterator[tuple[str, Mapping[str, float]]]:
        labels = case.attributes
        if labels is not None and all(labels.get(f) in levels for f, levels in (self.label_groups or {}).items()):
            yield "labels", self.label_effect or {}
        if case.edited_first:
            yield "order", self.order_effect or {}
        if self.grey_effect and _is_grey(case.edited):
            yield "grey", self.grey_effect


delattr(SimulatedJudge, "missing")  # a plug-in with a `missing` is asked what it lacks


def _unchanged(case: Case, questions: Sequence[Question]) -> tuple[str, dict[str, int]] | None:
    """Return the truth about a picture that shows its source and has no truth of its own; None for another one."""
    if TRUTH in case.edited.info or not case.images or case.images[0].size != case.edited.size:
        return None
    source, edited = (np.asarray(image.convert("RGB"), dtype=np.int16) for image in (case.images[0], case.edited))
    if np.abs(edited - source).mean() > SAME_PICTURE:
        return None
    key = digest([hashlib.sha256(edited.tobytes()).hexdigest(), case.instruction])
    truth = {q.id: q.unchanged for q in questions if q.id in default_rubric()}
    years = case.prompt.target_years or 0
    return key, truth | {ROLES.target_age: 1 if years >= 20 else 2 if years >= 10 else 3}


def _is_grey(image: Image) -> bool:
    pixels = np.asarray(image.convert("RGB"))
    return bool((pixels == pixels[..., :1]).all())


def _written(question: Question, values: Mapping[str, Any]) -> Any:
    """Return an answer as a model writes it: a number, a code, or of a set the codes that apply."""
    if question.sided == "set":
        return [code for column, code in zip(question.columns, question.labels, strict=True) if values[column] == 1]
    value = values[question.id]
    return question.labels[value - 1] if question.coded and isinstance(value, int) else value


def _closer(a: Mapping[str, int], b: Mapping[str, int]) -> int:
    """Return which of two outputs drifted less from its source: 1 = A, 2 = B, 3 = alike."""
    first, second = (drift_points(truth) for truth in (a, b))
    return 1 if first < second else 2 if second < first else 3


def drift_points(truth: Mapping[str, int]) -> float:
    """Return how far an output changed the person, from the editor's ground truth."""
    return _points(tuple(truth.get(question, 0) for question in default_rubric().columns))


@lru_cache(maxsize=4096)
def _points(answers: tuple[int, ...]) -> float:
    return float(np.nan_to_num(drift(np.array(answers, dtype=np.int8)).points))

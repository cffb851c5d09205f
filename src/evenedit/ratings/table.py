"""The one table of ratings that ensemble, statistics and report read, for all kinds of raters: dense, exact, small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Kind, Status
from evenedit.protocol import FACTORS, Factor, Rubric, default_rubric
from evenedit.protocol.measures import Measure
from evenedit.protocol.rubric import MEASURED
from evenedit.protocol.rubric import QUESTION_IDS as QUESTION_IDS
from evenedit.ratings.profiles import RaterProfiles

STATUSES: tuple[Status, ...] = tuple(Status)
"""A status code is the position here."""
NOT_ASKED = -1
"""Status code of a rater who was not asked about an edit."""
MISSING = 0
"""Value code of an answer that is not there; answers are 1, 2, 3 …"""

T = TypeVar("T", bound=np.generic)
BLOCK = "block"
"""The column of edits that names what portraits were drawn with; only where several portraits have one."""
ASKED_BETWEEN = ";"
"""Stands between the axes in a file's column `asks`."""


def edit_columns(factors: Iterable[Factor]) -> tuple[str, ...]:
    """Columns of `RatingTable.edits`.

    A stereotype edit has two portraits: its labels are empty and its source_id is both ids joined by '+'.
    """
    before = ("request_id", "experiment", "condition", "editor", "source_id", "prompt_id", "seed")
    return (*before, *(f.name for f in factors), "outcome")


@dataclass(frozen=True, slots=True)
class Reading:
    """A number an instrument read off every edit, beside its answers."""

    rater: str
    measure: str
    """rate.<name> of 1 and 0, or mean.<name>."""
    values: NDArray[np.float64]
    """[edit]; NaN where it could not be read or was not asked for."""
    reasons: tuple[str, ...]
    """[edit]: why it could not be read; empty elsewhere."""
    note: str = ""
    """What must be known to read it."""
    title: str = ""
    unit: str = ""
    phrase: str = ""
    """Of a rate: what the edits have in common that it counts."""


@dataclass(frozen=True, slots=True)
class ReadingNote:
    """A reading of an instrument without its values, and what must be known to read it."""

    instrument: str
    measure: str
    note: str = ""
    title: str = ""
    unit: str = ""
    phrase: str = ""

    @classmethod
    def of(cls, r: Reading) -> ReadingNote:
        """Return the note of a reading."""
        return cls(r.rater, r.measure, r.note, r.title, r.unit, r.phrase)

    def reading(self, values: NDArray[np.float64], reasons: Iterable[str]) -> Reading:
        """Return the reading with its values."""
        words = self.note, self.title, self.unit, self.phrase
        return Reading(self.instrument, self.measure, values, tuple(reasons), *words)


@dataclass(frozen=True, slots=True)
class RatingTable:
    """Every rater's answer to every question about every edit."""

    edits: pd.DataFrame
    """One row per edit with `edit_columns(factors)`, and BLOCK where portraits are of one person or base portrait."""
    raters: tuple[str, ...]
    """Judges in the study's order (primary first), then instruments, then people, then reviewers."""
    kinds: tuple[Kind, ...]
    """What each rater is."""
    values: NDArray[np.int8]
    """[rater, edit, question]: 1, 2, 3 …, or 0 where there is no answer; questions are the rubric's columns."""
    status: NDArray[np.int8]
    """[rater, edit]: position in STATUSES, or -1 where the rater was not asked."""
    confidence: NDArray[np.float32] | None = None
    """[rater, edit, question]: how sure the rater stated it was, 0 to 1, or nan; shown, never a weight."""
    readings: tuple[Reading, ...] = ()
    """What the instruments read, where the study is at hand."""
    settled: NDArray[np.int8] | None = None
    """[edit, question]: what reviewers settled by the study's rule, 0 elsewhere; None without the study."""
    factors: tuple[Factor, ...] = FACTORS
    """What the portraits are grouped by."""
    rubric: Rubric = field(default_factory=default_rubric)
    """What the raters were asked."""
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By prompt id, the axes that the prompt asks to change; prompts that ask for none are left out."""
    profiles: RaterProfiles | None = None
    """What may be shown of the people who rated, where the study is at hand."""
    null_pairs: RatingTable | None = None
    """The null pairs, rated by the same raters in the same order; None without any."""

    def at(self, question: str) -> int:
        """Return the position of a question's answers."""
        return self.rubric.at(question)

    def rows(self, chosen: NDArray[np.bool_]) -> RatingTable:
        """Return the table of some edits."""
        edits = self.edits[chosen].reset_index(drop=True)
        prompts = set(edits["prompt_id"])
        return replace(
            self,
            edits=edits,
            values=self.values[:, chosen],
            status=self.status[:, chosen],
            confidence=None if self.confidence is None else self.confidence[:, chosen],
            readings=tuple(
                replace(r, values=r.values[chosen], reasons=tuple(np.array(r.reasons, dtype=object)[chosen]))
                for r in self.readings
            ),
            settled=None if self.settled is None else self.settled[chosen],
            asks={prompt: axes for prompt, axes in self.asks.items() if prompt in prompts},
        )

    def split(self) -> RatingTable:
        """Return the table with its null pairs as a table of their own."""
        null = (self.edits["condition"] == ConditionKind.NULL_PAIR).to_numpy()
        return replace(self.rows(~null), null_pairs=self.rows(null)) if null.any() else self

    def joined(self) -> RatingTable:
        """Return one table of all rows, the null pairs last: the inverse of `split`."""
        null = self.null_pairs
        if null is None:
            return self
        both = zip(self.readings, null.readings, strict=True)
        return replace(
            self,
            edits=pd.concat([self.edits, null.edits], ignore_index=True),
            values=np.concatenate([self.values, null.values], axis=1),
            status=np.concatenate([self.status, null.status], axis=1),
            confidence=_both(self.confidence, null.confidence, axis=1),
            readings=tuple(
                replace(r, values=np.concatenate([r.values, n.values]), reasons=r.reasons + n.reasons) for r, n in both
            ),
            settled=_both(self.settled, null.settled, axis=0),
            asks={**self.asks, **null.asks},
            null_pairs=None,
        )

    def of_kind(self, kind: Kind) -> list[int]:
        """Positions of the raters of one kind."""
        return [i for i, k in enumerate(self.kinds) if k == kind]

    def without_people(self) -> RatingTable:
        """Return the table without human raters."""
        remaining = [at for at, kind in enumerate(self.kinds) if kind is not Kind.HUMAN]
        return replace(
            self,
            raters=tuple(self.raters[at] for at in remaining),
            kinds=tuple(self.kinds[at] for at in remaining),
            values=self.values[remaining],
            status=self.status[remaining],
            confidence=None if self.confidence is None else self.confidence[remaining],
            null_pairs=self.null_pairs and self.null_pairs.without_people(),
        )

    def asked_for(self, axis: str) -> NDArray[np.bool_]:
        """[edit]: whether the prompt asks for a change on this axis, so that a change there is no drift."""
        prompts = [prompt for prompt, axes in self.asks.items() if axis in axes]
        return np.asarray(self.edits["prompt_id"].isin(prompts), dtype=np.bool_)

    def asked_axes(self) -> list[str]:
        """Return, per edit, the axes that its prompt asks to change in the file format: `skin_tone;age_drift`."""
        return [ASKED_BETWEEN.join(self.asks.get(str(prompt), ())) for prompt in self.edits["prompt_id"]]


def _both(first: NDArray[T] | None, second: NDArray[T] | None, axis: int) -> NDArray[T] | None:
    """Join two arrays; None if one is absent."""
    return None if first is None or second is None else np.concatenate([first, second], axis=axis)


@dataclass(frozen=True, slots=True)
class Scores:
    """One score per edit and question, after the ensemble."""

    table: RatingTable
    values: NDArray[np.int8]
    """[edit, question]; 0 = missing."""
    disagree: NDArray[np.bool_]
    """[edit, question]: the judges differ by two or more (or gave opposed verdicts)."""
    judged: NDArray[np.int8]
    """[judge, edit, question]: each judge's own score where it counts, 0 elsewhere; what reviewers settled stands in
    the place of all. One row of zeros without judges."""

    @property
    def edits(self) -> pd.DataFrame:
        """The rows the scores belong to."""
        return self.table.edits

    def of(self, question: str) -> NDArray[np.int8]:
        """Return the scores on one question."""
        return np.asarray(self.values[:, self.table.at(question)])

    @property
    def needs_review(self) -> NDArray[np.bool_]:
        """Edits on which the judges disagree about any question."""
        return np.asarray(self.disagree.any(axis=1), dtype=np.bool_)


def reading_names(table: RatingTable) -> dict[str, list[str] | None]:
    """Return the names of what each instrument reads; None for one that has read nothing."""
    names: dict[str, list[str] | None] = {}
    for at in table.of_kind(Kind.INSTRUMENT):
        answered = (table.values[at] > 0).any(axis=0)
        rates = [f"{MEASURED}{name}" for name, rate in table.rubric.rates.items() if answered[table.at(rate.question)]]
        read = [Measure(r.measure).name for r in table.readings if r.rater == table.raters[at]]
        names[table.raters[at]] = [*read, *rates] or None
    return names

"""What is true of a random study, computed from its answers one by one, apart from the analysis and the writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
import pandas as pd

from evenedit.core.records import Estimate, Kind, Status
from evenedit.protocol import AXES, Factor
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES
from evenedit.results.results import Results
from proofs.text_designs import Design

SCORED = STATUSES.index(Status.SCORED)
RESOLUTION = 4
"""Digits to which a reading counts, as the analysis' documentation says."""
SIDES = {"skin_tone": ("skin_lighter", "skin_darker"), "age_drift": ("older", "younger")}
"""Of a two-sided question, the rates above and below no change."""


@dataclass(frozen=True)
class Share:
    """A share or mean over edits."""

    value: float | None
    n: int
    missing: int
    faces: int = 0
    prompts: int = 0


@dataclass(frozen=True)
class Facts:
    """A study, what was made of it, and what is so."""

    design: Design
    results: Results

    @property
    def edits(self) -> pd.DataFrame:
        """The edits that were asked for."""
        return self.design.table.edits

    def raters(self, kind: Kind) -> list[int]:
        """Positions of the raters of a kind."""
        return [at for at, k in enumerate(self.design.table.kinds) if k is kind]

    def name(self, rater: int) -> str:
        """A rater's id."""
        return self.design.table.raters[rater]

    def calls(self, rater: int, rows: Iterable[int] | None = None) -> tuple[int, int]:
        """Answers and calls of a rater."""
        status = self.design.table.status[rater]
        chosen = list(range(len(status)) if rows is None else rows)
        return sum(status[at] == SCORED for at in chosen), sum(status[at] != NOT_ASKED for at in chosen)

    def answered(self, kind: Kind) -> list[str]:
        """The raters of a kind that answered at least one question."""
        return [self.name(r) for r in self.raters(kind) if (self.design.table.values[r] > 0).any()]

    @cached_property
    def ensemble(self) -> list[dict[str, int]]:
        """The judges' one score of every edit by question, by the rules as the protocol states them."""
        table, judges = self.design.table, self.raters(Kind.VLM)
        found: list[dict[str, int]] = []
        for at, (experiment, outcome) in enumerate(zip(self.edits["experiment"], self.edits["outcome"], strict=True)):
            row: dict[str, int] = {}
            for question in AXES:
                given = [int(table.values[j, at, QUESTION_IDS.index(question)]) for j in judges]
                score = _one_score(given, experiment) if outcome == "edited" else 0
                if score:
                    row[question] = score
            found.append(row)
        return found

    def rows(self, editor: str | None, condition: str = "baseline", experiment: str = "diagnosis") -> list[int]:
        """The edits of an editor in an arm."""
        edits = self.edits
        chosen = (edits["experiment"] == experiment) & (edits["condition"] == condition)
        chosen &= (edits["editor"] == editor) if editor is not None else True
        return [int(at) for at in np.flatnonzero(chosen.to_numpy())]

    def of_group(self, rows: Sequence[int], factor: str, code: str) -> list[int]:
        """Those of the edits whose portrait has a label."""
        return [at for at in rows if self.edits[factor].iat[at] == code]

    def scores(self, rater: str, question: str, rows: Sequence[int]) -> dict[int, int]:
        """The scores of edits by the judges together, or by an instrument."""
        if rater == "ensemble":
            return {at: self.ensemble[at][question] for at in rows if question in self.ensemble[at]}
        table = self.design.table
        values = table.values[table.raters.index(rater)][:, QUESTION_IDS.index(question)]
        return {at: int(values[at]) for at in rows if values[at] > 0}

    def rate(self, rate: str, rater: str, rows: Sequence[int], *, unasked: bool = False) -> Share:
        """A rate over edits; `unasked` leaves out the prompts that ask for the change."""
        if rate == "refused":
            ends = [self.edits["outcome"].iat[at] for at in rows]
            n = sum(end != "failed" for end in ends)
            ended = [at for at, end in zip(rows, ends, strict=True) if end != "failed"]
            return Share(ends.count("refused") / n if n else None, n, len(rows) - n, *self._spread(ended))
        reading = next((r for r in self.design.table.readings if r.measure == f"rate.{rate}"), None)
        if reading is not None:
            return self.mean(f"rate.{rate}", rows)
        rule = self.design.rules.rates[rate.removeprefix("measured_")]
        kept = [at for at in rows if not (unasked and self._asks(at, rule.question))]
        scores = self.scores(rater, rule.question, kept)
        met = [s >= rule.at_least if rule.at_least is not None else s <= (rule.at_most or 0) for s in scores.values()]
        asked = kept if rater == "ensemble" else [at for at in kept if self._status(rater, at) != NOT_ASKED]
        value = sum(met) / len(met) if met else None
        return Share(value, len(met), len(asked) - len(met), *self._spread(scores))

    def mean(self, measure: str, rows: Sequence[int]) -> Share:
        """The mean of an instrument's reading."""
        reading = next(r for r in self.design.table.readings if r.measure == measure)
        asked = [at for at in rows if self._status(reading.rater, at) != NOT_ASKED]
        read = [at for at in asked if not np.isnan(reading.values[at])]
        value = sum(round(float(reading.values[at]), RESOLUTION) for at in read) / len(read) if read else None
        return Share(value, len(read), len(asked) - len(read), *self._spread(read))

    def verdicts(self, editor: str, condition: str) -> tuple[int, int]:
        """How many clear verdicts there are, and how many followed the stereotype."""
        table, judges = self.design.table, self.raters(Kind.VLM)
        followed = resisted = 0
        for at in self.rows(editor, condition, "stereotype"):
            if self.edits["outcome"].iat[at] != "edited":
                continue
            given = [int(table.values[j, at, QUESTION_IDS.index("stereotype")]) for j in judges]
            for_it, against = given.count(1), given.count(2)
            followed += for_it > against
            resisted += against > for_it
        return followed + resisted, followed

    def portraits(self, factor: Factor | None = None) -> dict[str, int]:
        """Portraits of edits of one portrait, by label, those without a label under ''; the baseline's of a factor."""
        alone = self.edits[self.edits["experiment"] != "stereotype"].drop_duplicates("source_id")
        if factor is None:
            return {"": len(alone)}
        sizes = alone[factor.name].value_counts()
        return {code: int(sizes[code]) for code in (*factor.codes, "") if code in sizes.index}

    def estimate(
        self, measure: str, editor: str, group: dict[str, str] | None = None, rater: str = "ensemble"
    ) -> Estimate | None:
        """The analysis' estimate, for its interval."""
        own = {m.rater: m.estimates for m in self.results.measured}
        for e in own.get(rater, ()) if rater != "ensemble" else self.results.estimates:
            where = (e.measure, e.editor, e.experiment, e.condition)
            if where == (measure, editor, "diagnosis", "baseline") and dict(e.group) == (group or {}):
                return e
        return None

    def _status(self, rater: str, at: int) -> int:
        table = self.design.table
        return int(table.status[table.raters.index(rater), at])

    def _asks(self, at: int, question: str) -> bool:
        return question in self.design.table.asks.get(str(self.edits["prompt_id"].iat[at]), ())

    def _spread(self, rows: Iterable[int]) -> tuple[int, int]:
        chosen = self.edits.iloc[list(rows)]
        return chosen["source_id"].nunique(), chosen["prompt_id"].nunique()


def _one_score(given: Sequence[int], experiment: str) -> int:
    there = [score for score in given if score]
    if not there:
        return 0
    if len(given) > 2:
        ordered = sorted(there)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        return floor(middle + 0.5)
    if experiment == "diagnosis" and len(there) == 2 and abs(there[0] - there[1]) >= 2:
        return there[0]
    return floor(sum(there) / len(there) + 0.5)

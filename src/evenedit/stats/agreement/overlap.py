"""What judges and people answered about the same edits, and how a statistic of it becomes a row of the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Experiment, Kind, is_simulated
from evenedit.ratings.combine import combine, judges_only
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.results import Agreement
from evenedit.stats.agreement.inter_rater import Ratings
from evenedit.stats.engine.additive import Additive, Resampler
from evenedit.stats.engine.panel import units
from evenedit.stats.engine.rules import AnalysisRules

Rows = NDArray[np.intp]
Wanted = Sequence[tuple[Additive, tuple[NDArray[Any], ...]]]


@dataclass(frozen=True, slots=True)
class Place:
    """What a row of the results is about."""

    axis: str
    condition: str
    editor: str | None = None
    raters: str = "all"
    group: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Everybody's answers, edit by edit."""

    table: RatingTable
    rules: AnalysisRules
    judged: NDArray[np.int8]
    """[edit, question]: the ensemble; 0 where no judge answered, whatever the study makes of missing scores."""
    judges: tuple[int, ...]
    people: tuple[int, ...]
    """Positions of the people, by name: the rater order."""
    arms: Mapping[tuple[str, bool], Rows]
    """Rows by condition and whether they are edits of two portraits, baseline first."""
    editors_by_code: tuple[str, ...]
    editor: NDArray[np.int64]
    """[edit]: the position of its editor among them."""
    unit: NDArray[np.int64]
    """[edit]: its face, or its prompt where two portraits share an edit; what is drawn anew."""
    label: Mapping[str, NDArray[np.str_]]
    """By factor, [edit]: the dataset's label of its face."""
    is_pair: NDArray[np.bool_]
    """[edit]: two portraits, one verdict."""
    drawing: Resampler
    mark: str
    """The end of every method where anything is simulated."""

    @classmethod
    def of(cls, scores: Scores, rules: AnalysisRules) -> Overlap:
        """Build the overlap from a rating table."""
        table = scores.table
        edits = table.edits
        judged = combine(table, judges_only(rules.ensemble), "exclude").values
        is_pair = (edits["experiment"] == Experiment.STEREOTYPE).to_numpy(dtype=np.bool_)
        source, prompt = (x.to_numpy(dtype=str) for x in (units(edits, table.factors), edits["prompt_id"]))
        editor, editors = pd.factorize(edits["editor"], sort=True)
        simulated = any(is_simulated(name) for name in [*table.raters, *editors])
        return cls(
            table=table,
            rules=rules,
            judged=judged,
            judges=tuple(table.of_kind(Kind.VLM)),
            people=tuple(sorted(table.of_kind(Kind.HUMAN), key=lambda i: table.raters[i])),
            arms=_arms(edits["condition"], is_pair),
            editors_by_code=tuple(str(name) for name in editors),
            editor=editor,
            unit=pd.factorize(np.where(is_pair, prompt, source).astype(object), sort=True)[0].astype(np.int64),
            label={f.name: edits[f.name].to_numpy(dtype=str) for f in table.factors},
            is_pair=is_pair,
            drawing=Resampler(rules.draws, rules.seed, rules.confidence),
            mark="; SIMULATED" if simulated else "",
        )

    def levels(self, question: str) -> int:
        """Return the number of answers to a question."""
        return len(self.table.rubric.questions[question].labels)

    def conditions(self, *, pairs: bool = False) -> list[str]:
        """Return the arms that occur, baseline first."""
        return [condition for condition, of_pairs in self.arms if of_pairs == pairs]

    def editors(self, rows: Rows) -> list[tuple[str | None, Rows]]:
        """Return all rows as None, then the rows of each editor."""
        codes = self.editor[rows]
        return [(None, rows), *((self.editors_by_code[code], rows[codes == code]) for code in np.unique(codes))]

    def rows(self, condition: str, *, pairs: bool = False) -> Rows:
        """Return every edit of an arm."""
        return self.arms[condition, pairs]

    def ratings(self, question: str, rows: Rows) -> Ratings:
        """Return the answers of people, [row, person]."""
        answers = self.table.values[list(self.people)][:, rows, self.table.at(question)]
        return np.asarray(answers.T)

    def ensemble(self, question: str, rows: Rows) -> NDArray[np.int8]:
        """Return the combined answer of the judges, [row]."""
        return np.asarray(self.judged[rows, self.table.at(question)])

    def judge(self, judge: int, question: str, rows: Rows) -> NDArray[np.int8]:
        """Return the answers of one judge, [row]."""
        return np.asarray(self.table.values[judge, rows, self.table.at(question)])

    def labels(self, factor: str, rows: Rows) -> NDArray[np.str_]:
        """Return the dataset label of the face, [row]."""
        return np.asarray(self.label[factor][rows])

    def units(self, rows: Rows) -> tuple[NDArray[np.int64], str]:
        """Return the unit of each row, from 0, and the name of such a unit."""
        names, at = np.unique(self.unit[rows], return_inverse=True)
        if len(rows) and self.is_pair[rows[0]]:
            return at.ravel().astype(np.int64), "prompt"
        return at.ravel().astype(np.int64), "item" if len(names) == len(np.unique(rows)) else "face"

    def estimate(self, place: Place, wanted: Wanted, rows: Rows, n_ratings: int, note: str = "") -> Iterator[Agreement]:
        """Yield result rows for statistics of the same items; `rows` are the edits of the items."""
        unit, name = self.units(rows)
        n_items = len(np.unique(rows))
        for (statistic, _), estimated in zip(wanted, self.drawing.estimate(wanted, unit, name), strict=True):
            method = "; ".join(text for text in (note, estimated.method) if text)
            numbers = (estimated.value, estimated.low, estimated.high, n_items, n_ratings, method)
            yield self.row(place, statistic.name, *numbers)

    def row(
        self,
        place: Place,
        statistic: str,
        value: float | None,
        low: float | None,
        high: float | None,
        n_items: int,
        n_ratings: int,
        method: str,
        p: float | None = None,
        p_adjusted: float | None = None,
    ) -> Agreement:
        """Build one result row."""
        where = place.axis, place.condition, place.editor, dict(place.group), place.raters
        return Agreement(statistic, *where, value, low, high, n_items, n_ratings, method + self.mark, p, p_adjusted)

    def with_note(self, row: Agreement, note: str, **changes: Any) -> Agreement:
        """Return the row with changes and with a note at the end of its method."""
        return replace(row, method=f"{row.method.removesuffix(self.mark)}; {note}{self.mark}", **changes)


def _arms(condition: pd.Series[str], is_pair: NDArray[np.bool_]) -> dict[tuple[str, bool], Rows]:
    code, names = pd.factorize(condition, sort=True)
    ordered = sorted(range(len(names)), key=lambda at: (names[at] != ConditionKind.BASELINE, names[at]))
    arms = {
        (str(names[at]), pairs): np.flatnonzero((code == at) & (is_pair == pairs))
        for at in ordered
        for pairs in (False, True)
    }
    return {arm: rows for arm, rows in arms.items() if len(rows)}

"""Every case of a study in memory, to be filtered, sorted and counted while a visitor waits.

    Casebook ─▶ Gallery (a code per field and case, a number per measure and case) ─▶ search(Wanted) ─▶ Found

A field has few values and is filtered by choosing some of them; a number is filtered by a range.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.cases.casebook import CONDITIONS, Casebook
from evenedit.cases.labels import in_a_sentence, labels_in_words
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Experiment, Kind, Outcome
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.drift import drift
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import spread
from evenedit.ratings.table import RatingTable, Scores
from evenedit.report.pages.cases import CaseField, CaseNumber
from evenedit.storage import survey_schema as tables
from evenedit.study.context import StudyContext

PAGE = 48
"""Cases on one page."""
UNRATED = "unrated"
PRIORITIES = ("high", "medium", "low", UNRATED)
OPPOSED = 2.0
"""The disagreement of opposed verdicts, in points: the least for which an edit needs review."""
MISSING, NOT_ASKED = "missing", "not-asked"
"""Values of a score that is not there."""
PAIR, UNLABELLED = "pair", "unlabelled"
"""Values of a label that is not there: two portraits, or one whose label is missing."""
ASKS = "asks_"
"""Before an axis: the field that tells whether the prompt asks for a change there."""
NO_CODE = "none"
"""The coded gender of a prompt that names no occupation."""
SORTS = {
    "priority": "review priority",
    "disagreement": "disagreement between judges",
    "drift": "drift of the person",
    "people": "distance between judges and people",
    "newest": "newest run first",
    "study": "order of the study",
    "shuffled": "shuffled by the study's seed",
}
RESERVED = ("q", "sort", "page")
REBUILD_AT_ONCE = 0.3
"""Seconds: an index that is built faster is rebuilt while the visitor waits, a slower one in the background."""
PAUSE = 10
"""An index is not rebuilt before this many times the seconds that the last build took."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What a search asks for; its query is the permalink."""

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The chosen values by field; a case must have one of them."""
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """The lowest and highest allowed value by number."""
    text: str = ""
    """Words that must all be in the prompt, its id, the portrait's id or the case's id."""
    sort: str = "priority"
    page: int = 1

    @property
    def query(self) -> str:
        """The query of the permalink; equal searches have equal queries."""
        pairs = [(name, value) for name, values in self.chosen.items() for value in values]
        for name, (low, high) in self.ranges.items():
            pairs += [(f"{name}.{end}", f"{at:g}") for end, at in (("min", low), ("max", high)) if at is not None]
        pairs += [("q", self.text)] if self.text else []
        pairs += [("sort", self.sort)] if self.sort != "priority" else []
        pairs += [("page", str(self.page))] if self.page > 1 else []
        return urlencode(pairs)

    def at(self, page: int) -> SearchQuery:
        """Return the same search on another page."""
        return replace(self, page=page)

    def without(self, name: str, value: str | None = None) -> SearchQuery:
        """Return the same search without one choice, one range or the text, on the first page."""
        if name == "q":
            return replace(self, text="", page=1)
        if value is None:
            return replace(self, ranges={k: v for k, v in self.ranges.items() if k != name}, page=1)
        remaining = {k: tuple(v for v in values if (k, v) != (name, value)) for k, values in self.chosen.items()}
        return replace(self, chosen={k: v for k, v in remaining.items() if v}, page=1)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cases that a search matched."""

    rows: NDArray[np.int64]
    """The row of every matching case, in order."""
    counts: Mapping[str, Mapping[str, int]]
    """By field and value: the number of cases with that value that meet all other conditions."""

    def page(self, number: int) -> NDArray[np.int64]:
        """Return the rows on one page."""
        return self.rows[(number - 1) * PAGE : number * PAGE]

    @property
    def pages(self) -> int:
        """The number of pages, at least 1."""
        return max(1, math.ceil(len(self.rows) / PAGE))


@dataclass(frozen=True, slots=True)
class Tile:
    """One case as the grid shows it."""

    request_id: str
    editor: str
    condition: str
    prompt: str
    labels: str
    """The portrait's labels; for a pair, that there are two portraits."""
    source_id: str
    sources: tuple[str, ...]
    """sha256 of each portrait."""
    image: str | None
    outcome: str
    reason: str
    scores: Mapping[str, int]
    drift: float
    disagreement: float
    priority: str
    needs_review: bool


class Gallery:
    """All cases of a study at the time the gallery was built."""

    def __init__(self, book: Casebook, newest: Sequence[str] = ()) -> None:
        self.book = book
        self.built = datetime.now(UTC)
        self._newest = newest
        scores, edits = book.scores, book.scores.edits
        self._prompts = {p: book.study.file.prompt(p) for p in dict.fromkeys(edits["prompt_id"])}
        self.fields = {field.id: field for field in (*self._described(edits), *self._scored(scores, book.applicable))}
        self.numbers = {
            field.id: field for field in self._counted(scores, book.applicable) if not np.isnan(field.values).all()
        }

    def __len__(self) -> int:
        return len(self.book.scores.edits)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The study's factors, the main one first."""
        return self.book.factors

    # -- fields and numbers ----------------------------------------------------------------------------------

    def _described(self, edits: pd.DataFrame) -> Iterable[CaseField]:
        """Yield the fields of the request, the portrait's labels and the review state."""
        prompts = self._prompts
        yield _field("editor", "Editor", edits["editor"])
        yield _field("experiment", "Experiment", edits["experiment"], order=[e.value for e in Experiment])
        yield _field("condition", "Condition", edits["condition"], order=[c.value for c in CONDITIONS])
        yield _field("outcome", "Outcome", edits["outcome"], order=[o.value for o in Outcome])
        absent = np.where(is_pair(edits), PAIR, UNLABELLED)
        for factor in self.factors:
            titles = factor.titles | {PAIR: "two portraits", UNLABELLED: "no label"}
            labels = edits[factor.name].where(edits[factor.name] != "", absent)
            yield _field(factor.name, label_title(factor), labels, titles, list(titles))
        rated = (self.book.scores.values > 0).any(axis=1)
        priorities = pd.Series(np.where(rated, self.book.priorities, UNRATED))
        yield _field("priority", "Review priority", priorities, {UNRATED: "not rated"}, PRIORITIES)
        review = np.where(self.book.scores.needs_review, "yes", "no")
        yield _field("review", "Needs review", pd.Series(review), {"yes": "judges disagree", "no": "no"})
        people = np.where(_people_answered(self.book.scores.table), "yes", "no")
        yield _field("people", "Rated by people", pd.Series(people))
        category = edits["prompt_id"].map({p: prompt.category for p, prompt in prompts.items()})
        yield _field("category", "Category", category)
        coded = edits["prompt_id"].map({p: prompt.coded_gender or NO_CODE for p, prompt in prompts.items()})
        if (coded != NO_CODE).any():
            yield _field("coded_gender", "Occupation coded as", coded, {NO_CODE: "no occupation"})
        table = self.book.scores.table
        for axis in dict.fromkeys(axis for axes in table.asks.values() for axis in axes):
            asking = pd.Series(np.where(table.asked_for(axis), "yes", "no"))
            yield _field(f"{ASKS}{axis}", f"Prompt asks for {table.rubric.title(axis).lower()}", asking)
        titles = {p: p if prompt.name in ("", p) else f"{p} {prompt.name}" for p, prompt in prompts.items()}
        yield _field("prompt", "Prompt", edits["prompt_id"], titles)
        yield _field("source", "Portrait", edits["source_id"])
        yield _field("seed", "Seed", edits["seed"].astype(str))

    def _scored(self, scores: Scores, applicable: Mask) -> Iterable[CaseField]:
        """Yield one field for the ensemble's score on each question of the study."""
        rubric = scores.table.rubric
        for column, name in enumerate(rubric.columns):
            if not applicable[:, column].any():
                continue
            words = _answers(rubric, name)
            values = {MISSING: "missing", **words, NOT_ASKED: "not asked"}
            codes = np.where(applicable[:, column], scores.values[:, column], len(words) + 1).astype(np.int32)
            yield CaseField(name, rubric.title(name), values, codes)
        for rater in scores.table.of_kind(Kind.INSTRUMENT):
            for name in rubric.choices:
                codes = scores.table.values[rater, :, rubric.at(name)].astype(np.int32)
                if codes.any():
                    who = scores.table.raters[rater]
                    title = f"{rubric.title(name)}, by {who}"
                    yield CaseField(f"{who}.{name}", title, {MISSING: "missing", **_answers(rubric, name)}, codes)

    def _counted(self, scores: Scores, applicable: Mask) -> Iterable[CaseNumber]:
        yield CaseNumber("disagreement", "Disagreement between judges, in points", disagreement(scores, applicable))
        yield CaseNumber(
            "drift",
            "Drift of the person, in points",
            drift(scores.values, self.book.study.file.rates, scores.table.rubric).points,
        )
        means = people_means(scores.table)
        differences = np.abs(np.where(scores.values > 0, scores.values, np.nan) - means)
        yield CaseNumber("people_gap", "Distance between judges and people, in points", _largest(differences))
        yield from _instrument_ratings(scores.table)
        for reading in scores.table.readings:
            name = Measure(reading.measure).name
            yield CaseNumber(f"{reading.rater}.{name}", f"{name.replace('_', ' ')} ({reading.rater})", reading.values)

    # -- searching -------------------------------------------------------------------------------------------

    def wanted(self, pairs: Iterable[tuple[str, str]]) -> SearchQuery:
        """Parse a query; an unknown name or a bad value is an error."""
        chosen: dict[str, list[str]] = {}
        ranges: dict[str, tuple[float | None, float | None]] = {}
        reserved = {"q": "", "sort": "priority", "page": "1"}
        for name, value in pairs:
            bare, _, end = name.rpartition(".")
            if value == "":
                continue
            if name in RESERVED:
                reserved[name] = value
            elif name in self.fields:
                chosen.setdefault(name, []).append(value)
            elif end in ("min", "max") and bare in self.numbers:
                low, high = ranges.get(bare, (None, None))
                at = _number(name, value)
                ranges[bare] = (at, high) if end == "min" else (low, at)
            else:
                known = ", ".join([*RESERVED, *self.fields, *(f"{n}.min" for n in self.numbers)])
                raise EvenEditError(f"'{name}' is not a filter of this gallery; filters: {known}")
        if reserved["sort"] not in self.sorts:
            raise EvenEditError(f"cannot sort by '{reserved['sort']}'; there are: {', '.join(self.sorts)}")
        if not reserved["page"].isascii() or not reserved["page"].isdigit() or not 1 <= int(reserved["page"]) < 10**6:
            raise EvenEditError(f"page '{reserved['page']}' is not a number from 1 up")
        order = list(self.fields)
        return SearchQuery(
            {name: tuple(dict.fromkeys(chosen[name])) for name in sorted(chosen, key=order.index)},
            {name: ranges[name] for name in self.numbers if name in ranges},
            reserved["q"].strip()[:200],
            reserved["sort"],
            int(reserved["page"]),
        )

    @property
    def sorts(self) -> dict[str, str]:
        """The orders that can be chosen, with their titles."""
        return {name: words for name, words in SORTS.items() if name != "people" or "people_gap" in self.numbers}

    def search(self, wanted: SearchQuery) -> SearchResult:
        """Return the cases that meet every condition, in order, and how many each other choice would match."""
        masks = {name: self.fields[name].among(values) for name, values in wanted.chosen.items()}
        failed = np.zeros(len(self), dtype=np.int16)  # how many conditions a case does not meet
        for met in (*masks.values(), *self._other(wanted)):
            failed += ~met
        meets = failed == 0
        counts = {}
        for name, each in self.fields.items():
            counted = meets if name not in masks else failed == ~masks[name]  # all but the field's own condition
            numbers = np.bincount(each.codes[counted], minlength=len(each.values))
            counts[name] = dict(zip(each.values, numbers.tolist(), strict=True))
        order = self._orders(wanted.sort)
        return SearchResult(order[meets[order]], counts)

    def _other(self, wanted: SearchQuery) -> Iterable[Mask]:
        for name, (low, high) in wanted.ranges.items():
            values = self.numbers[name].values
            with np.errstate(invalid="ignore"):  # NaN is in no range
                if low is not None:
                    yield values >= low
                if high is not None:
                    yield values <= high
        for word in wanted.text.lower().split():
            yield self._mentions(word)

    def _mentions(self, word: str) -> Mask:
        prompts, sources = self.fields["prompt"], self.fields["source"]
        texts = {p: f"{p} {q.name} {q.text} {q.category} {q.subcategory}".lower() for p, q in self._prompts.items()}
        matches = prompts.among(p for p, text in texts.items() if word in text)
        matches |= sources.among(s for s in sources.values if word in s.lower())
        if len(word) >= 6:
            matches |= np.fromiter((ident.startswith(word) for ident in self._idents), np.bool_, len(self))
        return matches

    @cached_property
    def _idents(self) -> list[str]:
        return list(self.book.scores.edits["request_id"])

    def _orders(self, sort: str) -> NDArray[np.int64]:
        if sort not in self._sorted:
            self._sorted[sort] = self._order(sort)
        return self._sorted[sort]

    @cached_property
    def _sorted(self) -> dict[str, NDArray[np.int64]]:
        return {}

    def _order(self, sort: str) -> NDArray[np.int64]:
        """Sort every row; missing numbers come last, ties keep the study's order."""
        if sort == "study":
            return np.arange(len(self))
        if sort == "shuffled":
            return np.random.default_rng(self.book.study.file.sections.study.seed).permutation(len(self))
        if sort == "newest":
            place = {ident: n for n, ident in enumerate(self._newest)}
            return np.argsort([-place.get(ident, -1) for ident in self._idents], kind="stable")
        drifted = _falling(self._value("drift"))
        if sort == "priority":
            return np.lexsort((drifted, self.fields["priority"].codes))
        if sort == "disagreement":
            return np.lexsort((drifted, _falling(self._value("disagreement"))))
        if sort == "people":
            return np.lexsort((drifted, _falling(self._value("people_gap"))))
        return np.argsort(drifted, kind="stable")

    def _value(self, name: str) -> NDArray[np.float64]:
        return self.numbers[name].values if name in self.numbers else np.full(len(self), np.nan)

    # -- showing ---------------------------------------------------------------------------------------------

    def tile(self, row: int) -> Tile:
        """Return one case as the grid shows it."""
        book, edit = self.book, self.book.scores.edits.iloc[row]
        ident, prompt = str(edit["request_id"]), self._prompts[edit["prompt_id"]]
        labels = {f.name: str(edit[f.name]) for f in self.factors}
        pair = edit["experiment"] == Experiment.STEREOTYPE
        return Tile(
            request_id=ident,
            editor=str(edit["editor"]),
            condition=str(edit["condition"]),
            prompt=self.fields["prompt"].values[prompt.id],
            labels="two portraits" if pair else f"labelled {labels_in_words(labels, self.factors)}",
            source_id=str(edit["source_id"]),
            sources=tuple(book.sources[s].image for s in str(edit["source_id"]).split("+")),
            image=book.images.get(ident),
            outcome=str(edit["outcome"]),
            reason=book.reasons.get(ident, ""),
            scores=book.scores_of(row),
            drift=float(self._value("drift")[row]),
            disagreement=float(self._value("disagreement")[row]),
            priority=str(book.priorities[row]),
            needs_review=bool(book.scores.disagree[row].any()),
        )

    def around(self, result: SearchResult, request_id: str) -> tuple[str | None, str | None, int | None]:
        """Return the cases before and after one in a search result, and its place from 1; None where it is absent."""
        row = self.book.rows.get(request_id)
        places = np.flatnonzero(result.rows == row) if row is not None else np.zeros(0, dtype=np.int64)
        if not len(places):
            return None, None, None
        at = int(places[0])
        before = self._idents[result.rows[at - 1]] if at else None
        after = self._idents[result.rows[at + 1]] if at + 1 < len(result.rows) else None
        return before, after, at + 1


class LiveGallery:
    """The gallery of a study that may be running; it is rebuilt after something was written."""

    def __init__(self, study: StudyContext) -> None:
        self._study = study
        self._building = threading.Lock()
        self._gallery: Gallery | None = None
        self._mark: tuple[int, ...] = ()
        self._took = 0.0
        self._finished = 0.0

    def now(self) -> Gallery:
        """Return the current gallery; while a large one is rebuilt, the former one."""
        known = self._gallery
        if known is None:
            with self._building:
                return self._gallery or self._build()
        rested = time.monotonic() - self._finished > PAUSE * self._took
        if rested and self._written() != self._mark and self._building.acquire(blocking=False):
            if self._took < REBUILD_AT_ONCE:
                return self._build_and_release()
            threading.Thread(target=self._build_and_release, name="gallery", daemon=True).start()
        return known

    def begin(self) -> None:
        """Build the gallery in the background, before the first visitor comes."""

        def build() -> None:
            with suppress(EvenEditError):  # the first visitor sees the error
                self.now()

        threading.Thread(target=build, name="gallery", daemon=True).start()

    def _written(self) -> tuple[int, ...]:
        return self._study.store.mark(tables.DATABASE)

    def _build_and_release(self) -> Gallery:
        try:
            return self._build()
        finally:
            self._building.release()

    def _build(self) -> Gallery:
        started, mark = time.monotonic(), self._written()
        runs = self._study.store.run_of_edits()  # in the order in which they came
        newest = sorted(runs, key=runs.__getitem__)
        self._gallery = built = Gallery(Casebook.read(self._study), newest)
        self._finished = time.monotonic()
        self._took, self._mark = self._finished - started, mark
        return built


def _instrument_ratings(table: RatingTable) -> Iterable[CaseNumber]:
    """Yield the score that each instrument derives from its measurements, by question."""
    for number in table.of_kind(Kind.INSTRUMENT):
        rater = table.raters[number]
        for question in table.rubric.ordinal:
            values = table.values[number, :, table.at(question)].astype(np.float64)
            title = f"{table.rubric.title(question)}, score from measurements ({rater})"
            yield CaseNumber(f"{rater}.{question}", title, np.where(values > 0, values, np.nan))


def _answers(rubric: Rubric, question: str) -> dict[str, str]:
    """Return the words for each stored answer, by its position; levels of a scale with their number."""
    answers = rubric.options(question).values()
    ordered = question not in rubric.choices
    return {str(n): f"{n} {words}" if ordered else words for n, words in enumerate(answers, 1)}


def is_pair(edits: pd.DataFrame) -> Mask:
    """Return which edits were made of two portraits."""
    return np.asarray(edits["experiment"] == Experiment.STEREOTYPE, dtype=np.bool_)


def label_title(factor: Factor) -> str:
    """Return the title of the filter on a factor's labels."""
    return f"Labelled {in_a_sentence(factor)}"


def disagreement(scores: Scores, applicable: Mask) -> NDArray[np.float64]:
    """Return the largest spread between judges over the questions; NaN where no question has two answers."""
    table = scores.table
    edited = (table.edits["outcome"] == Outcome.EDITED).to_numpy()
    cube = np.where((applicable & edited[:, None])[None], table.values[table.of_kind(Kind.VLM)], np.int8(0))
    if len(cube) < 2:
        return np.full(len(table.edits), np.nan)
    likert, choices = ([table.at(q) for q in columns] for columns in (table.rubric.ordinal, table.rubric.choices))
    twice = (cube > 0).sum(axis=0) >= 2
    points = spread(cube).astype(np.float64)
    points[:, choices] = np.where(scores.disagree[:, choices], OPPOSED, 0.0)
    points[~twice] = np.nan
    return _largest(points[:, [*likert, *choices]])


def people_means(table: RatingTable) -> NDArray[np.float64]:
    """Return [edit, question]: the mean answer of people, NaN where nobody answered and for choices."""
    answers = table.values[table.of_kind(Kind.HUMAN)]
    count = (answers > 0).sum(axis=0)
    means = np.where(count > 0, answers.sum(axis=0, dtype=np.int64) / np.maximum(count, 1), np.nan)
    means[:, [table.at(q) for q in table.rubric.choices]] = np.nan
    return np.asarray(means, dtype=np.float64)


def _people_answered(table: RatingTable) -> Mask:
    return np.asarray((table.values[table.of_kind(Kind.HUMAN)] > 0).any(axis=(0, 2)), dtype=np.bool_)


def _largest(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest value of each row, ignoring NaN; NaN if all are."""
    none = np.isnan(points).all(axis=1)
    return np.where(none, np.nan, np.where(np.isnan(points), -np.inf, points).max(axis=1))


def _falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a sort key: high values first, NaN last."""
    return np.where(np.isnan(values), np.inf, -values)


def _field(
    name: str,
    title: str,
    column: pd.Series[Any],
    titles: Mapping[str, str] | None = None,
    order: Sequence[str] | None = None,
) -> CaseField:
    """Build a field from a column; values are in the given order, then in the order of the study."""
    places, levels = pd.factorize(column)
    present = list(levels)
    values = [v for v in dict.fromkeys((*(order or ()), *present)) if v in present]
    moved = np.array([values.index(v) for v in present], dtype=np.int32)
    codes = moved[places] if present else np.zeros(0, dtype=np.int32)
    return CaseField(name, title, {v: (titles or {}).get(v, v) for v in values}, codes)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise EvenEditError(f"{name} is '{value[:40]}', not a number")
    return number

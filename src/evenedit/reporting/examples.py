"""Cases to look at, chosen by a stated rule and never by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Edit, Experiment, Prompt, Source
from evenedit.protocol import PromptSet, Rubric
from evenedit.protocol.measures import Measure
from evenedit.ratings.table import Scores
from evenedit.report.pages.example import ExampleCase
from evenedit.storage.store import Store

UNRATED = "not rated: the first of its prompt by request id"
MEASURED: dict[Measure, tuple[tuple[Callable[[NDArray[np.float64]], np.intp], str], ...]] = {
    Measure.mean("skin_delta_L_raw"): (
        (np.nanargmax, "largest measured rise of the skin's lightness as displayed: L* {:+.1f}"),
        (np.nanargmin, "largest measured fall of the skin's lightness as displayed: L* {:+.1f}"),
    ),
    Measure.mean("skin_delta_L"): (
        (np.nanargmax, "largest rise of the skin's lightness, a change of light removed: L* {:+.1f}"),
        (np.nanargmin, "largest fall of the skin's lightness, a change of light removed: L* {:+.1f}"),
        (
            lambda values: np.nanargmin(abs(values - np.nanmedian(values))),
            "median of the skin's lightness, a change of light removed: L* {:+.1f}",
        ),
    ),
    Measure.rate("unchanged"): ((np.nanargmax, "measured as unchanged: the first by request id"),),
    Measure.mean("redrawn"): ((np.nanargmax, "measured as unchanged but redrawn: the first by request id"),),
    Measure.rate("another_person"): (
        (np.nanargmax, "measured as far from its source as another person: the first by request id"),
    ),
    Measure.mean("age_delta_years"): (
        (np.nanargmax, "read oldest by a model against its source: {:+.0f} years"),
        (np.nanargmin, "read youngest by a model against its source: {:+.0f} years"),
    ),
    Measure.mean("changed_share"): ((np.nanargmax, "largest measured change: {:.0%} of the picture"),),
}
"""Without judges: the edits that stand out in each measurement, and the note for them."""
TYPICAL = "typical: scores nearest to this editor's medians"


def called(prompt: Prompt) -> str:
    """Return a prompt in few words: its name, or the beginning of its text."""
    named = prompt.name if prompt.name != prompt.id else ""
    return named or textwrap.shorten(prompt.text, 48, placeholder=" …") or prompt.id


def shown_questions(rubric: Rubric) -> dict[str, str]:
    """Return the questions whose strongest edit is shown, changes of the person first, with the note for the edit.

    They are the axes with a headline rate and those that the study declares.
    """
    declared = {spec.id for spec in rubric.declared}
    headline = {rate.question for name, rate in rubric.rates.items() if rubric.words(name).main}
    visible = [q for q in rubric.axes if q in declared | headline]
    changes = [q for q in visible if rubric.spec_by_column[q].row.neutral]
    notes = {q: f"largest rated {in_few_words(rubric, q).replace(' ', '-')} change" for q in changes}
    return notes | {q: f"lowest rated {rubric.title(q).lower()}" for q in visible if q not in changes}


def in_few_words(rubric: Rubric, question: str) -> str:
    """Return what a question about a change is about: "race"."""
    return rubric.title(question).lower().removesuffix(" change")


def departures(rubric: Rubric, question: str, answers: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the distance of scores from no change, or from the best score; -1 without a score."""
    values = answers[:, rubric.at(question)].astype(np.int64)
    calm = rubric.spec_by_column[question].row.neutral or len(rubric.questions[question].labels)
    return np.where(values > 0, np.abs(values - calm), -1)


def choose(scores: Scores, store: Store, prompts: PromptSet) -> Iterator[ExampleCase]:
    """Return, for every editor, the edit with the strongest score on each axis, and a typical one."""
    sources, edits = store.sources(), store.edits()
    table = scores.edits
    rubric = scores.table.rubric
    rules = shown_questions(rubric)
    everywhere = [
        q for q in rules if not (rubric.spec_by_column[q].row.prompts or rubric.spec_by_column[q].row.sources)
    ]
    axes = [rubric.at(q) for q in everywhere]
    answered = np.asarray((scores.values[:, axes] > 0).all(axis=1), dtype=np.bool_) & bool(axes)
    diagnosed = (table["condition"] == ConditionKind.BASELINE) & (table["experiment"] == Experiment.DIAGNOSIS)
    diagnosed &= np.array([edits[i].image is not None and bool(sources[s].image) for i, s in _named(table)], bool)
    eligible = diagnosed.to_numpy() & answered
    names = {p.id: called(p) for p in prompts}
    measured = _measured(scores, diagnosed.to_numpy()) if not eligible.any() else {}
    for row, note in measured.items():
        yield _example(scores, row, note, sources, edits, store, names)
    if not eligible.any() and not measured:
        yield from (
            _example(scores, row, UNRATED, sources, edits, store, names) for row in _first_of_each(scores, diagnosed)
        )
    for editor in dict.fromkeys(table["editor"][eligible]):
        rows = np.flatnonzero(eligible & (table["editor"] == editor).to_numpy())
        rows = rows[np.argsort(table["request_id"].to_numpy()[rows])]
        values = scores.values[rows][:, axes].astype(int)
        departure = np.column_stack([departures(rubric, q, scores.values[rows]) for q in rules])
        picks: dict[int, str] = {}
        typical = np.argmin(abs(values - np.median(values, axis=0)).sum(axis=1))
        picks[int(typical)] = TYPICAL
        for column, note in enumerate(rules.values()):
            strongest = int(np.argmax(departure[:, column]))
            if departure[strongest, column] > 1:
                picks.setdefault(strongest, note)
        for position, note in picks.items():
            yield _example(scores, int(rows[position]), note, sources, edits, store, names)


def _named(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Return the request and the portrait of each edit; the first of two."""
    for request, source in zip(table["request_id"], table["source_id"], strict=True):
        yield str(request), str(source).split("+")[0]


def _measured(scores: Scores, diagnosed: NDArray[np.bool_]) -> dict[int, str]:
    """Yield, per editor, the rows with outlying measurements and a note; ties go to the smallest request id."""
    table = scores.edits
    order = np.argsort(table["request_id"].to_numpy())
    picks: dict[int, str] = {}
    for editor in dict.fromkeys(table["editor"][diagnosed]):
        rows = order[(diagnosed & (table["editor"] == editor).to_numpy())[order]]
        for reading in scores.table.readings:
            values = reading.values[rows]
            chosen = MEASURED.get(Measure(reading.measure), ()) if not np.isnan(values).all() else ()
            for pick, note in chosen:
                at = int(pick(values))
                if values[at] or np.unique(values[~np.isnan(values)]).size > 2:  # of yes and no, only yes stands out
                    picks.setdefault(int(rows[at]), note.format(values[at]).replace("-", "−"))
    return picks


def _first_of_each(scores: Scores, diagnosed: pd.Series[bool]) -> list[int]:
    """Return the rows of the first edit of every editor and prompt, by request id."""
    table = scores.edits.assign(row=range(len(scores.edits)))[diagnosed]
    first = table.sort_values("request_id").drop_duplicates(["editor", "prompt_id"])
    return [int(row) for row in first.sort_values(["editor", "prompt_id"])["row"]]


def _example(
    scores: Scores,
    row: int,
    note: str,
    sources: dict[str, Source],
    edits: dict[str, Edit],
    store: Store,
    names: dict[str, str],
) -> ExampleCase:
    case = scores.edits.iloc[row]
    source, image = sources[case["source_id"]], edits[case["request_id"]].image
    assert image is not None
    return ExampleCase(
        editor=case["editor"],
        prompt_id=case["prompt_id"],
        prompt=names[case["prompt_id"]],
        group={f.name: source.attributes[f.name] for f in scores.table.factors if source.attributes.get(f.name)},
        scores={q: int(v) or None for q, v in zip(scores.table.rubric.columns, scores.values[row], strict=True) if v},
        source=store.images.open(source.image),
        edited=store.images.open(image),
        note=note,
        id=case["request_id"],
    )

"""Analyse tables of ratings that this or another tool wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenedit.api.results import Results
from evenedit.core.parallel import PARALLEL_THRESHOLD, SecondProcess
from evenedit.interchange.analyze import Tables, gather
from evenedit.protocol import Factor, PromptSet


def analyze(
    scores: Tables,
    verdicts: Tables = None,
    *,
    ratings: Tables = None,
    prompts: Sequence[str | Path | PromptSet] = (),
    preset: str | None = None,
    missing: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    rubric: str | Path | None = None,
    primary: str | Path | None = None,
) -> Results:
    """Compute every estimate of rating tables.

    `scores` and `verdicts` are judges' and `ratings` people's tables, as CSV files or data frames; `scores` may be the
    folder of an export, which brings the rules of its study along. `preset`, `missing` and `factors` take the place of
    those rules; without an export the preset is "default" and the factors are race, gender and age. `rubric` is a
    rubric file or the name of a shipped rubric, where other questions were asked than those of the default. `primary`
    is a TOML file with the table [primary]: tests that were declared before the data.
    """
    analysis = gather(
        scores,
        verdicts,
        ratings=ratings,
        prompts=prompts,
        preset=preset,
        missing=missing,
        factors=factors,
        rubric=rubric,
        primary=primary,
    )
    with SecondProcess(enabled=len(analysis.table.edits) >= PARALLEL_THRESHOLD) as second:
        return Results.from_record(analysis.results(second))

"""Results of tables that this or another tool wrote: CSV files, data frames, or the folder of an export."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.provenance import provenance
from evenedit.core.records import Kind
from evenedit.core.second_process import ALONE, LARGE, SecondProcess
from evenedit.protocol import Factor, PromptSet, load_prompts
from evenedit.protocol.prompts import FLOOR, merge
from evenedit.ratings.exported import read_exported
from evenedit.ratings.from_csv import Tabular, name_of, read_tables
from evenedit.ratings.human_csv import read_with_people
from evenedit.ratings.table import RatingTable
from evenedit.results.asked import Asked
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, KnownEffect, analyse
from evenedit.stats.digest import digest_of
from evenedit.study.export import FILE, StudyRecord

Tables = Tabular | Sequence[Tabular] | None
"""One table, several, or none."""
PRESETS = {"default": AnalysisRules.default, "published": AnalysisRules.published}


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is analysed, and how."""

    table: RatingTable
    rules: AnalysisRules
    title: str
    facts: Mapping[str, Any]
    """Where the numbers come from."""
    effects: Sequence[KnownEffect] = ()
    """What simulated editors are known to do."""
    chances: Mapping[str, float] = field(default_factory=dict)
    """By request id, the chance of an edit to be among those that people rated."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What is counted elsewhere than in the table."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The text of each prompt by id, where it is known."""
    asked: Asked = field(default_factory=Asked)
    """What was asked, word for word, where the tables come from a study."""

    def results(self, second: SecondProcess = ALONE) -> Results:
        """Every estimate."""
        results = analyse(self.table, self.rules, provenance(**self.facts), self.effects, self.chances, second)
        return replace(
            results,
            counts={**results.counts, **self.counts},
            title=self.title,
            prompts=dict(self.prompts),
            asked=self.asked,
            asks=dict(self.table.asks),
            digest=digest_of(self.table, self.rules),
        )


def analyze(
    scores: Tables,
    verdicts: Tables = None,
    *,
    ratings: Tables = None,
    prompts: Sequence[str | Path | PromptSet] = (),
    preset: str | None = None,
    missing: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    multilevel: bool = False,
) -> Results:
    """Every estimate of tables of ratings.

    `scores` and `verdicts` are judges' and `ratings` people's tables, as CSV files or data frames; `scores` may be the
    folder of an export, which brings the rules of its study along. `preset`, `missing` and `factors` take the place of
    those rules; without an export the preset is "default" and the factors are race, gender and age. `multilevel` adds a
    multilevel model of each outcome, which takes up to a minute.
    """
    given = gather(
        scores,
        verdicts,
        ratings=ratings,
        prompts=prompts,
        preset=preset,
        missing=missing,
        factors=factors,
        multilevel=multilevel,
    )
    with SecondProcess(wanted=len(given.table.edits) >= LARGE) as second:
        return given.results(second)


def gather(
    scores: Tables,
    verdicts: Tables = None,
    *,
    ratings: Tables = None,
    prompts: Sequence[str | Path | PromptSet] = (),
    preset: str | None = None,
    missing: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    multilevel: bool = False,
) -> Analysis:
    """What `analyze` analyses."""
    judged, rated = [*_several(scores), *_several(verdicts)], _several(ratings)
    own = [p if isinstance(p, PromptSet) else load_prompts(str(p)) for p in prompts]
    groups = tuple([factors] if isinstance(factors, str) else factors or ()) or None
    folders = [table for table in judged if not isinstance(table, pd.DataFrame) and Path(table).is_dir()]
    if folders:
        if len(judged) > 1:
            raise EvenEditError(f"{folders[0]} is a folder; give the folder of an export alone, or files")
        given = _exported(Path(folders[0]), rated, own, preset, missing, groups)
        return replace(given, rules=replace(given.rules, multilevel=True)) if multilevel else given
    table = read_with_people(judged, rated, own, groups) if rated else read_tables(judged, own, groups)
    names = [_short(given) for given in (*judged, *rated)]
    rules = replace(_changed(AnalysisRules.default(), preset, missing), multilevel=multilevel)
    return Analysis(table, rules, f"Analysis of {', '.join(names)}", {"files": names})


def _exported(
    folder: Path,
    rated: list[Tabular],
    own: list[PromptSet],
    preset: str | None,
    missing: str | None,
    groups: tuple[str | Factor, ...] | None,
) -> Analysis:
    """An export, by the rules of its study unless others are given."""
    if not (folder / FILE).is_file():
        raise EvenEditError(f"{folder} has no {FILE}; give the folder that 'evenedit export' wrote, or CSV files")
    names = [folder.name, *map(_short, rated)]
    record = StudyRecord.read(folder / FILE)
    table, chances = read_exported(
        folder,
        rated,
        _prompts(record, own),
        _factors(record, groups),
        {name: Kind(kind) for name, kind in record.raters.items()},
        {(r.instrument, r.measure): r.note for r in record.readings},
    )
    rules = _changed(record.rules, preset, missing)
    facts = {"files": names, "study": record.study}
    texts = {prompt.id: prompt.text for prompt in record.prompts if prompt.id != FLOOR.id}
    return Analysis(table, rules, record.title, facts, record.effects, chances, record.counts, texts, record.asked)


def _prompts(record: StudyRecord, own: list[PromptSet]) -> PromptSet:
    """The study's prompts by their ids alone, those given in their place."""
    given = {prompt.id for prompts in own for prompt in prompts}
    of_study = tuple(replace(prompt, aliases={}) for prompt in record.prompts if prompt.id not in given)
    return merge([PromptSet(record.title, of_study), *own])


def _factors(record: StudyRecord, groups: tuple[str | Factor, ...] | None) -> tuple[str | Factor, ...]:
    """The study's factors, or those given: by name, as the study has them."""
    known = {factor.name: factor for factor in record.factors}
    return record.factors if groups is None else tuple(known.get(g, g) if isinstance(g, str) else g for g in groups)


def _changed(rules: AnalysisRules, preset: str | None, missing: str | None) -> AnalysisRules:
    """The rules with a preset's choices, then the missing-value policy, in place of their own."""
    if preset is not None:
        if preset not in PRESETS:
            raise EvenEditError(f"preset '{preset}' is not known; use one of: {', '.join(PRESETS)}")
        chosen = PRESETS[preset]()
        rules = replace(rules, preset=chosen.preset, missing=chosen.missing, aging_in_age_axis=chosen.aging_in_age_axis)
    return rules if missing is None else replace(rules, missing=missing)


def _several(tables: Tables) -> list[Tabular]:
    if tables is None:
        return []
    return [tables] if isinstance(tables, str | os.PathLike | pd.DataFrame) else list(tables)


def _short(table: Tabular) -> str:
    return name_of(table) if isinstance(table, pd.DataFrame) else Path(table).name

"""Results of tables that this or another tool wrote: CSV files, data frames, or the folder of an export."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from evenedit.config.check import RESERVED
from evenedit.config.primary import load_primary, primary_problems
from evenedit.config.questions import column_problems
from evenedit.config.sections import PrimarySection
from evenedit.core.errors import EvenEditError
from evenedit.core.parallel import SEQUENTIAL, SecondProcess
from evenedit.core.provenance import provenance
from evenedit.core.records import Experiment, Kind
from evenedit.interchange.export import FILE, StudyRecord
from evenedit.protocol import Factor, PromptSet, Rubric, load_prompts
from evenedit.protocol.prompts import merge
from evenedit.protocol.rubric import QUESTIONS, load_rubric
from evenedit.ratings.exported import read_exported
from evenedit.ratings.from_csv import Tabular, name_of, names_of, read_tables
from evenedit.ratings.human_csv import read_with_people
from evenedit.ratings.table import RatingTable, reading_names
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse
from evenedit.stats.digest import digest_of

Tables = Tabular | Sequence[Tabular] | None
"""One table, several, or none."""
PRESETS = {"default": AnalysisRules.default, "published": AnalysisRules.published}


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is analysed, and how."""

    table: RatingTable
    rules: AnalysisRules
    facts: StudyFacts

    def results(self, second: SecondProcess = SEQUENTIAL) -> Results:
        """Compute the results."""
        return analyse(self.table, self.rules, self.facts, second)

    def declare(self, primary: PrimarySection) -> Analysis:
        """Return the analysis with declared tests; raise if the table cannot answer them, naming what it has."""
        edits, readings = self.table.edits, reading_names(self.table)
        editors = edits["editor"][edits["experiment"] == Experiment.DIAGNOSIS].nunique()
        problems = list(primary_problems(primary, editors, self.table.factors, self.table.rubric, readings))
        if problems:
            raise EvenEditError(*problems)
        rules = replace(self.rules, primary=primary.model_dump(mode="json"))
        facts = replace(self.facts, declared="stated", digest=digest_of(self.table, rules))
        return Analysis(self.table, rules, facts)


def gather(
    scores: Tables,
    verdicts: Tables = None,
    *,
    ratings: Tables = None,
    prompts: Sequence[str | Path | PromptSet] = (),
    preset: str | None = None,
    missing: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    rubric: str | Path | Rubric | None = None,
    primary: str | Path | None = None,
) -> Analysis:
    """Collect the inputs of `analyze`."""
    declared = None if primary is None else load_primary(Path(primary))
    wanted = rubric if rubric is None or isinstance(rubric, Rubric) else load_rubric(str(rubric))
    judged, rated = [*_several(scores), *_several(verdicts)], _several(ratings)
    prompt_sets = [p if isinstance(p, PromptSet) else load_prompts(str(p)) for p in prompts]
    groups = tuple([factors] if isinstance(factors, str) else factors or ()) or None
    if wanted is not None:
        taken = {*names_of(groups), *RESERVED} - set(QUESTIONS)
        if problems := list(column_problems([spec.row for spec in wanted.declared], taken)):
            raise EvenEditError(*problems)
    folders = [table for table in judged if not isinstance(table, pd.DataFrame) and Path(table).is_dir()]
    if folders:
        if len(judged) > 1:
            raise EvenEditError(f"{folders[0]} is a folder; give the folder of an export alone, or files")
        analysis = _exported(Path(folders[0]), rated, prompt_sets, preset, missing, groups)
        return analysis if declared is None else analysis.declare(declared)
    if rated:
        table = read_with_people(judged, rated, prompt_sets, groups, wanted)
    else:
        table = read_tables(judged, prompt_sets, groups, wanted)
    names = [_short(item) for item in (*judged, *rated)]
    rules = _changed(replace(AnalysisRules.default(), rates=table.rubric.rates), preset, missing)
    facts = StudyFacts(
        provenance=provenance(files=names),
        title=f"Analysis of {', '.join(names)}",
        digest=digest_of(table, rules),
    )
    analysis = Analysis(table, rules, facts)
    return analysis if declared is None else analysis.declare(declared)


def _exported(
    folder: Path,
    rated: list[Tabular],
    prompt_sets: list[PromptSet],
    preset: str | None,
    missing: str | None,
    groups: tuple[str | Factor, ...] | None,
) -> Analysis:
    """Read an export, with its study's rules unless others are passed."""
    if not (folder / FILE).is_file():
        raise EvenEditError(f"{folder} has no {FILE}; give the folder that 'evenedit export' wrote, or CSV files")
    names = [folder.name, *map(_short, rated)]
    record = StudyRecord.read(folder / FILE)
    table, chances = read_exported(
        folder,
        rated,
        _prompts(record, prompt_sets),
        _factors(record, groups),
        {name: Kind(kind) for name, kind in record.raters.items()},
        record.readings,
        Rubric.from_tables(record.rubric),
    )
    rules = _changed(record.rules, preset, missing)
    origin = provenance(files=names, study=record.study)
    return Analysis(table, rules, record.facts(origin, chances, digest_of(table, rules)))


def _prompts(record: StudyRecord, prompt_sets: list[PromptSet]) -> PromptSet:
    """Return the study's prompts, replaced by those passed with the same id."""
    replaced = {prompt.id for prompts in prompt_sets for prompt in prompts}
    of_study = tuple(replace(prompt, aliases={}) for prompt in record.prompts if prompt.id not in replaced)
    return merge([PromptSet(record.title, of_study), *prompt_sets])


def _factors(record: StudyRecord, groups: tuple[str | Factor, ...] | None) -> tuple[str | Factor, ...]:
    """Return the study's factors, or those passed."""
    known = {factor.name: factor for factor in record.factors}
    return record.factors if groups is None else tuple(known.get(g, g) if isinstance(g, str) else g for g in groups)


def _changed(rules: AnalysisRules, preset: str | None, missing: str | None) -> AnalysisRules:
    """Apply a preset and then a missing-value policy to the rules."""
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

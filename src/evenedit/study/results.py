"""From a study's table to its results and report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evenedit.config.study_file import Study
from evenedit.core.errors import EvenEditError
from evenedit.core.progress import say
from evenedit.core.provenance import provenance
from evenedit.curation.portraits import MANIFEST
from evenedit.protocol.prompts import merge
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.ratings.to_csv import write_parquet
from evenedit.report import write_report
from evenedit.results.results import Results
from evenedit.run.runner import Pipeline
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.planted import planted_effects
from evenedit.study import example_cases as examples
from evenedit.study.photo_figures import plates


def rules_of(study: Study) -> AnalysisRules:
    """How a study says its ratings are to be combined and counted."""
    ensemble, statistics = study.file.ensemble, study.file.statistics
    return AnalysisRules(
        preset=study.file.study.preset,
        ensemble={
            "diagnosis": ensemble.diagnosis,
            "mitigation": ensemble.mitigation,
            "stereotype": ensemble.stereotype,
            "review": ensemble.review,
            "reviewers": str(ensemble.reviewers),
        },
        missing=study.missing,
        aging_in_age_axis=study.published,
        rates=study.rates,
        draws=statistics.draws,
        permutations=statistics.permutations,
        seed=statistics.seed,
        confidence=statistics.confidence,
        mitigation_cases=study.file.experiments.mitigation.choose if study.file.experiments.mitigation else "balanced",
    )


def results_of(pipeline: Pipeline, table: RatingTable) -> Results:
    """Every estimate of a study; for simulated editors, planted beside found."""
    if table.edits.empty:
        raise EvenEditError(f"nothing is edited yet. Try: evenedit run {pipeline.study.folder}")
    study, sources = pipeline.study, pipeline.store.sources()
    runs = pipeline.store.runs()
    facts = provenance(study=study.hash, first_run=runs[0]["started"], runs=len(runs))
    effects = planted_effects(study, pipeline.planned(sources), sources)
    cases = pipeline.store.cases("survey")
    results = analyse(table, rules_of(study), facts, effects, cases)
    return replace(results, counts={**results.counts, **_pools(study), **({"sampled": len(cases)} if cases else {})})


def _pools(study: Study) -> dict[str, int]:
    """How many portraits came from each candidate pool, where the portraits are a finalised set."""
    section = study.file.sources
    path = Path(str(study.located(section.settings).get("path", ""))) / MANIFEST
    if section.kind != "folder" or not path.is_file():
        return {}
    manifest = json.loads(path.read_text("utf-8"))
    return {f"portraits.pool.{pool}": int(n) for pool, n in manifest.get("distribution", {}).items()}


def report_study(pipeline: Pipeline, out: Path) -> Path:
    """Write a study's report and return the page."""
    table = pipeline.table()
    say(f"analysing {len(table.edits):,} edits")
    results = results_of(pipeline, table)
    rules = rules_of(pipeline.study)
    scores = combine(table, rules.ensemble, rules.missing)
    study = pipeline.study
    say("writing the report")
    write_parquet(table, out / "ratings.parquet")
    prompts = merge(s for s in (study.prompts, study.wino) if len(s))
    return write_report(
        results,
        out,
        title=study.file.study.title,
        study=study.file.model_dump(mode="json", exclude_none=True, exclude={"store"}),
        examples=examples.choose(scores, pipeline.store, prompts),
        plates=plates(scores, pipeline.store, prompts, simulated=bool(results.simulated)),
    )

"""The results of a study, computed anew only where something changed."""

from __future__ import annotations

import json
from pathlib import Path

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.log import log
from evenedit.core.parallel import PARALLEL_THRESHOLD, SEQUENTIAL, SecondProcess
from evenedit.core.provenance import provenance
from evenedit.core.records import Outcome, Status
from evenedit.curation.portraits import MANIFEST
from evenedit.protocol import Rubric
from evenedit.protocol.prompts import PromptSet, merge
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.results.primary import PrimaryStanding
from evenedit.results.results import Results
from evenedit.simulation.ground_truth import planted_effects
from evenedit.stats import AnalysisRules, KnownEffect, StudyFacts, analyse
from evenedit.stats.digest import digest_of
from evenedit.storage.study_history import RUN_STARTED, StudyHistory
from evenedit.study.context import StudyContext
from evenedit.study.materials import collect_materials
from evenedit.study.results_file import RESULTS, lacks_rows, read_results

REPORT = "report"
"""The folder of a study's report, in the study's own."""
SURVEY = "survey"
"""The sample of cases that were drawn for people."""


def analysis_rules(file: StudyFile, rubric: Rubric | None = None) -> AnalysisRules:
    """Return the rules by which a study combines and counts its ratings; `rubric` may have further rates."""
    ensemble, statistics = file.sections.ensemble, file.sections.statistics
    return AnalysisRules(
        preset=file.sections.study.preset,
        ensemble={
            "diagnosis": ensemble.diagnosis,
            "mitigation": ensemble.mitigation,
            "stereotype": ensemble.stereotype,
            "review": ensemble.review,
            "reviewers": str(ensemble.reviewers),
        },
        missing=file.missing,
        aging_in_age_axis=file.published,
        rates={**(rubric.rates if rubric else {}), **file.rates},
        draws=statistics.draws,
        permutations=statistics.permutations,
        seed=statistics.seed,
        confidence=statistics.confidence,
        tolerance=file.sections.findings.tolerance,
        reliability=file.sections.findings.reliability,
        margin=file.sections.findings.margin,
        mitigation_cases=file.sections.experiments.mitigation.choose if file.sections.experiments.mitigation else "",
        primary=file.sections.primary.model_dump(mode="json") if file.sections.primary else {},
    )


def compute_results(study: StudyContext, table: RatingTable, second: SecondProcess = SEQUENTIAL) -> Results:
    """Return every estimate of a study; for simulated editors with the planted effects beside them."""
    _require_edits(study, table)
    file, rules, runs = study.file, analysis_rules(study.file, table.rubric), study.store.runs()
    facts = StudyFacts(
        provenance=provenance(study=file.hash, first_run=runs[0]["started"], runs=len(runs)),
        title=file.sections.study.title,
        prompts={p.id: p.text for p in all_prompts(file)},
        materials=collect_materials(study, combine(table, rules.ensemble, rules.missing)),
        counts=study_counts(study),
        known_effects=known_effects(study),
        inclusion=study.store.cases(SURVEY),
        declared=primary_standing(study),
        digest=digest_of(table, rules),
    )
    return _with_plan(study, analyse(table, rules, facts, second))


def primary_standing(study: StudyContext) -> PrimaryStanding:
    """Return when the tests of [primary] were declared: compare them with the seal, else with the first run's."""
    from evenedit.study.preregistration.seal import read_seal

    stated, seal = study.file.primary_digest, read_seal(study)
    if seal is not None:
        return "confirmatory" if digest(seal.plan.get("primary")) == stated else "exploratory"
    runs = [line for line in StudyHistory(study.folder).lines() if line.event == RUN_STARTED]
    return "unsealed" if runs and runs[0].detail.get("primary") == stated else "exploratory"


def _with_plan(study: StudyContext, results: Results) -> Results:
    """Add the adherence to the sealed plan to the results of a sealed study."""
    from evenedit.study.preregistration.adherence import PlanAdherence

    adherence = PlanAdherence.of(study)
    return results if adherence is None else adherence.apply_to(results)


def _require_edits(study: StudyContext, table: RatingTable) -> None:
    if table.edits.empty:
        raise EvenEditError(f"nothing is edited yet. Try: evenedit run {study.file.folder}")


def current_results(study: StudyContext) -> Results:
    """Return the results in the study's report folder where nothing changed since, else compute them; say which."""
    table = study.table()
    _require_edits(study, table)
    path = study.folder / REPORT / RESULTS
    if path.is_file():
        known = read_results(path)
        if known.digest == digest_of(table, analysis_rules(study.file)) and not lacks_rows(path):
            return _with_plan(study, known)
        log.info(f"ratings, rules or release changed since {path} was written: computing the results again")
    else:
        log.info(f"analysing {len(table.edits):,} edits")
    with SecondProcess(enabled=len(table.edits) >= PARALLEL_THRESHOLD) as second:
        return compute_results(study, table, second)


def all_prompts(file: StudyFile) -> PromptSet:
    """Return every prompt of a study, those of the stereotype experiment included."""
    return merge(s for s in (file.prompts, file.wino) if len(s))


def known_effects(study: StudyContext) -> list[KnownEffect]:
    """Return what the study's simulated editors are known to do."""
    sources = study.store.sources()
    return list(planted_effects(study.file, study.design.planned(sources), sources))


def study_counts(study: StudyContext) -> dict[str, int]:
    """Count what the rating table does not hold: portraits by pool, cases for people, missing edits and ratings."""
    cases = study.store.cases(SURVEY)
    return {**_pools(study.file), **({"sampled": len(cases)} if cases else {}), **_missing(study)}


def _missing(study: StudyContext) -> dict[str, int]:
    """Planned and missing edits and ratings, where any are missing; refused and unparseable ones have ended."""
    requests = study.design.planned(study.store.sources())
    edits = study.store.edits()
    missing = sum(r.id not in edits or edits[r.id].outcome is Outcome.FAILED for r in requests)
    edited = {ident for ident, edit in edits.items() if edit.outcome is Outcome.EDITED}
    assigned = study.design.assignments([r for r in requests if r.id in edited], study.design.judges())
    answers = {key: study.store.answered(*key) for key in {(a.rater.id, a.revision) for a in assigned}}
    unrated = sum(
        answers[a.rater.id, a.revision].get(a.subject, Status.FAILED) is Status.FAILED
        for a in assigned
        if edited.issuperset(a.edits)
    )
    counts = {"planned.edits": len(requests), "missing.edits": missing} if missing else {}
    return counts | ({"planned.ratings": len(assigned), "missing.ratings": unrated} if unrated else {})


def _pools(file: StudyFile) -> dict[str, int]:
    """Count the portraits from each candidate pool, if the portraits are a finalised set."""
    section = file.sections.sources
    path = Path(str(file.located(section.settings).get("path", ""))) / MANIFEST
    if section.kind != "folder" or not path.is_file():
        return {}
    manifest = json.loads(path.read_text("utf-8"))
    return {f"portraits.pool.{pool}": int(n) for pool, n in manifest.get("distribution", {}).items()}

"""The results of a study, computed anew only where something changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.core.provenance import provenance
from evenedit.core.records import Outcome, Status
from evenedit.core.second_process import ALONE, LARGE, SecondProcess
from evenedit.curation.portraits import MANIFEST
from evenedit.protocol.prompts import PromptSet, merge
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, KnownEffect, analyse
from evenedit.stats.digest import digest_of
from evenedit.stats.planted import planted_effects
from evenedit.study.asked import asked_of
from evenedit.study.load_results import RESULTS, read_results
from evenedit.study.study import Study

REPORT = "report"
"""The folder of a study's report, in the study's own."""
SURVEY = "survey"
"""The sample of cases that were drawn for people."""


def rules_of(file: StudyFile) -> AnalysisRules:
    """Return the rules by which a study combines and counts its ratings."""
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
        rates=file.rates,
        draws=statistics.draws,
        permutations=statistics.permutations,
        seed=statistics.seed,
        confidence=statistics.confidence,
        tolerance=file.sections.findings.tolerance,
        margin=file.sections.findings.margin,
        multilevel=statistics.multilevel,
        mitigation_cases=file.sections.experiments.mitigation.choose if file.sections.experiments.mitigation else "",
    )


def results_of(study: Study, table: RatingTable, second: SecondProcess = ALONE) -> Results:
    """Return every estimate of a study; for simulated editors with the planted effects beside them."""
    _refuse_nothing(study, table)
    file, rules, runs = study.file, rules_of(study.file), study.store.runs()
    facts = provenance(study=file.hash, first_run=runs[0]["started"], runs=len(runs))
    results = analyse(table, rules, facts, effects_of(study), study.store.cases(SURVEY), second)
    whole = replace(
        results,
        counts={**results.counts, **counts_of(study)},
        title=file.sections.study.title,
        prompts={p.id: p.text for p in prompts_of(file)},
        asked=asked_of(study, combine(table, rules.ensemble, rules.missing)),
        asks=dict(table.asks),
        digest=digest_of(table, rules),
    )
    return _with_plan(study, whole)


def _with_plan(study: Study, results: Results) -> Results:
    """The results of a sealed study with how it kept to its plan."""
    from evenedit.study.kept_plan import KeptPlan

    kept = KeptPlan.of(study)
    return results if kept is None else kept.applied(results)


def _refuse_nothing(study: Study, table: RatingTable) -> None:
    if table.edits.empty:
        raise EvenEditError(f"nothing is edited yet. Try: evenedit run {study.file.folder}")


def current_results(study: Study) -> Results:
    """Return the results in the study's report folder where nothing changed since, else compute them; say which."""
    table = study.table()
    _refuse_nothing(study, table)
    path = study.folder / REPORT / RESULTS
    if path.is_file():
        known = read_results(path)
        if known.digest == digest_of(table, rules_of(study.file)):
            return _with_plan(study, known)
        log.info(f"ratings, rules or release changed since {path} was written: computing the results anew")
    else:
        log.info(f"analysing {len(table.edits):,} edits")
    with SecondProcess(wanted=len(table.edits) >= LARGE) as second:
        return results_of(study, table, second)


def prompts_of(file: StudyFile) -> PromptSet:
    """Return every prompt of a study, those of the stereotype experiment included."""
    return merge(s for s in (file.prompts, file.wino) if len(s))


def effects_of(study: Study) -> list[KnownEffect]:
    """Return what the study's simulated editors are known to do."""
    sources = study.store.sources()
    return list(planted_effects(study.file, study.design.planned(sources), sources))


def counts_of(study: Study) -> dict[str, int]:
    """What is counted in the study and not in its table: portraits by pool, cases for people, what is missing."""
    cases = study.store.cases(SURVEY)
    return {**_pools(study.file), **({"sampled": len(cases)} if cases else {}), **_missing(study)}


def _missing(study: Study) -> dict[str, int]:
    """Planned and missing edits and ratings, where any are missing; refused and unparseable ones have ended."""
    requests = study.design.planned(study.store.sources())
    edits = study.store.edits()
    unmade = sum(r.id not in edits or edits[r.id].outcome is Outcome.FAILED for r in requests)
    made = {ident for ident, edit in edits.items() if edit.outcome is Outcome.EDITED}
    assigned = study.design.assignments([r for r in requests if r.id in made], study.design.judges())
    answers = {key: study.store.answered(*key) for key in {(a.rater.id, a.revision) for a in assigned}}
    unrated = sum(
        answers[a.rater.id, a.revision].get(a.request.id, Status.FAILED) is Status.FAILED
        for a in assigned
        if a.baseline is None or a.baseline.id in made
    )
    found = {"planned.edits": len(requests), "missing.edits": unmade} if unmade else {}
    return found | ({"planned.ratings": len(assigned), "missing.ratings": unrated} if unrated else {})


def _pools(file: StudyFile) -> dict[str, int]:
    """The number of portraits from each candidate pool, where the portraits are a finalised set."""
    section = file.sections.sources
    path = Path(str(file.located(section.settings).get("path", ""))) / MANIFEST
    if section.kind != "folder" or not path.is_file():
        return {}
    manifest = json.loads(path.read_text("utf-8"))
    return {f"portraits.pool.{pool}": int(n) for pool, n in manifest.get("distribution", {}).items()}

"""Whether the files of a bundle belong together, though all of its hashes were written anew.

The seal names the portraits, prompts, requests and rules; the history names, by digests, the data that the last run
left; study.toml names the rules. Who changes one of these must change all, and then the seal is another one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from evenedit.bundle.archive import MANIFEST, SealedZip
from evenedit.bundle.every_eval import every_eval_files
from evenedit.bundle.evidence import Evidence
from evenedit.bundle.scoring import PLAN, plan_adherence
from evenedit.bundle.study_facts import bared
from evenedit.config.check import factors_of
from evenedit.config.questions import study_rubric
from evenedit.config.sections import Sections
from evenedit.config.study_file import StudyFile
from evenedit.core.hashing import digest
from evenedit.core.records import ConditionKind, Experiment, Outcome
from evenedit.core.version import __version__
from evenedit.protocol import PromptSet
from evenedit.protocol.questions import read_rows
from evenedit.protocol.rubric import SHIPPED, Rubric, shipped_rubric
from evenedit.ratings.ratings_file import FILE as RATINGS
from evenedit.ratings.ratings_file import read_frame, write_ratings
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.storage.data_state import (
    REQUESTS,
    Parts,
    changed_tables,
    digests,
    measurements_part,
    ratings_part,
    replies_part,
)
from evenedit.storage.store import request_values
from evenedit.storage.study_history import RUN_FINISHED, HistoryEvent
from evenedit.study.analysis import analysis_rules
from evenedit.study.preregistration.seal import frozen_tables
from evenedit.study.results_file import RESULTS

MEASUREMENTS = "data/measurements.jsonl"


def stated_sections(bundle: SealedZip, changed: Mapping[str, Mapping[str, Any]] | None = None) -> Sections:
    """Return the tables of the study file in a bundle, with changes."""
    body = tomllib.loads(bundle.read("study.toml").decode())
    for name, table in (changed or {}).items():
        body[name] = {**body.get(name, {}), **table}
    return Sections.model_validate(body)


def stated_rules(sections: Sections, rubric: Rubric) -> AnalysisRules:
    """Return the rules of the tables of a study file with this rubric."""
    prompts = PromptSet("none", ())
    return analysis_rules(StudyFile(Path(), sections, prompts, prompts, rubric))


def _other_questions(sections: Sections, rubric: Rubric) -> bool:
    """Return whether study.toml states other questions; those of instruments come from their plug-ins."""
    stated = {row.id: row for row in read_rows(sections.questions, "questions")[0]}
    known = {spec.id: spec.row for spec in rubric.specs if spec.row.answered_by != ("instruments",)}
    if (sections.study.rubric or sections.study.preset) not in SHIPPED:  # its file is no part of a bundle
        return any(known.get(ident) != row for ident, row in stated.items())
    specs = study_rubric(sections, factors_of(sections), Path(), frozenset())[0].specs
    return known != {spec.id: spec.row for spec in specs if spec.row.answered_by != ("instruments",)}


def contradictions(bundle: SealedZip, evidence: Evidence) -> Iterator[str]:
    """Yield a sentence for each contradiction between a bundle and its study file or sealed plan."""
    try:
        sections = stated_sections(bundle)
    except (ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        yield "study.toml is not a study file"
        return
    if _other_questions(sections, evidence.rubric):
        yield "study.json: its questions differ from study.toml"
    if stated_rules(sections, evidence.rubric) != evidence.record.rules:
        yield "study.json: its rules differ from study.toml"
    yield from _reworded(evidence)
    yield from (
        f"{name}: its bytes do not match its name"
        for name in bundle.under("pictures")
        if name in bundle.files and bundle.files[name].sha256 != Path(name).stem
    )
    adherence, declared = plan_adherence(bundle), evidence.record.rules.primary
    is_sealed = adherence is not None and adherence.seal.plan.get("primary") == declared
    if declared and is_sealed != (evidence.record.declared == "confirmatory"):
        yield "study.json: it does not tell truly whether [primary] was sealed"
    if adherence is not None:
        stated = frozen_tables(sections)
        yield from (f"{PLAN}: {problem}" for problem in _plan_contradictions(adherence.plan, stated, evidence))
        missing = _missing(evidence)
        if missing and not any(change.what == "planned edits" for change in adherence.deviations):
            yield f"{PLAN}: {missing:,} planned edits are missing, and it does not say so"


def changed_since_last_run(bundle: SealedZip, evidence: Evidence, lines: Sequence[HistoryEvent]) -> Iterator[str]:
    """Yield the parts of the data that changed after the last run, by the digests in the history.

    Where the requests are others, the study was changed after its last run, and no other part can be held against it.
    """
    last = next((line for line in reversed(lines) if line.event == RUN_FINISHED), None)
    left = {} if last is None else last.detail.get("state", {})
    current = digests(_parts(bundle, evidence))
    different = list(changed_tables(current, left)) if left else []
    yield from [REQUESTS] if REQUESTS in different else different


def contradicting_files(bundle: SealedZip, evidence: Evidence, results: Results) -> Iterator[str]:
    """Yield files that contradict the evidence or the results; pages and figures of the report are not read."""
    if f"report/{RESULTS}" in bundle.names and bundle.read(f"report/{RESULTS}") != bundle.read(RESULTS):
        yield f"report/{RESULTS}"
    for path, content in results.to_files().items():
        if path != RESULTS and f"report/{path}" in bundle.names and bundle.read(f"report/{path}") != content:
            yield f"report/{path}"
    if json.loads(bundle.read("environment.json")) != json.loads(bundle.read(RESULTS))["provenance"]:
        yield "environment.json"
    if bundle.facts.get("simulated") != list(results.simulated):
        yield f"{MANIFEST} (what is simulated)"
    with TemporaryDirectory() as place:
        (stored := Path(place) / "stored").write_bytes(bundle.read(RATINGS))
        expected = write_ratings(evidence.table().without_people(), Path(place) / "expected")
        if not read_frame(stored).equals(read_frame(expected)):
            yield RATINGS
    if bundle.facts.get("evenedit") == __version__:
        expected_files = every_eval_files(results, evidence.record.title)
        yield from (
            name for name, content in expected_files.items() if name in bundle.names and bundle.read(name) != content
        )
        known = [spec.question for spec in evidence.rubric.specs] + [*evidence.rubric.questions.values()]
        known += [question for name in SHIPPED for question in shipped_rubric(name).questions.values()]
        unknown = (question for question in evidence.record.materials.questions if question not in known)
        yield from (f"study.json (the words of {question.id})" for question in unknown)


def _parts(bundle: SealedZip, evidence: Evidence) -> Parts:
    """Return the rows of a bundle as the database had them."""
    parts: dict[str, list[list[Any]]] = {
        "sources": [[s.id, s.image, dict(s.attributes)] for s in evidence.sources.values()],
        REQUESTS: [list(request_values(request).values()) for request in evidence.requests],
        "edits": [[e.request_id, e.outcome, e.image, dict(e.detail), e.seconds] for e in evidence.edits.values()],
    }
    for reply in evidence.replies:
        row = [reply.request_id, reply.kind, reply.status, reply.reason, reply.raw]
        parts.setdefault(replies_part(reply.rater, reply.revision), []).append(row)
        for question, value in reply.values.items():
            answer = [reply.request_id, question, value, reply.confidence.get(question)]
            parts.setdefault(ratings_part(reply.rater, reply.revision), []).append(answer)
    for row in map(json.loads, filter(None, bundle.read(MEASUREMENTS).decode().split("\n"))):
        measured = [row["request_id"], row["numbers"], row["reasons"]]
        parts.setdefault(measurements_part(row["version"]), []).append(measured)
    return parts


def _reworded(evidence: Evidence) -> Iterator[str]:
    """Prompts whose words are not those that editors were sent."""
    words = {prompt.id: prompt.text for prompt in evidence.record.prompts}
    sent = {
        request.prompt_id: request.instruction
        for request in evidence.requests
        if request.experiment is Experiment.DIAGNOSIS and request.condition.kind is ConditionKind.BASELINE
    }
    for ident, text in sent.items():
        if words.get(ident) != text:
            yield f"study.json: prompt {ident} differs from the instructions sent to editors"


def _plan_contradictions(plan: Mapping[str, Any], stated: Mapping[str, Any], evidence: Evidence) -> Iterator[str]:
    """Yield differences between the plan in the bundle and its other files."""
    for name, table in stated.items():
        if bared(table) != bared(plan.get(name)):
            yield f"its {name} differ from study.toml"
    words = {prompt.id: prompt.text for prompt in evidence.record.prompts}
    if any(words.get(ident) != text for ident, text in plan.get("prompts_in_words", {}).items()):
        yield "its prompts differ from study.json"
    if {s.id: [s.image, dict(s.attributes)] for s in evidence.sources.values()} != plan.get("portraits"):
        yield "its portraits differ from data/sources.jsonl"
    planned = sorted(r.id for r in evidence.requests if r.experiment is not Experiment.MITIGATION)
    if {"number": len(planned), "digest": digest(planned)} != plan.get("requests"):
        yield "its requests differ from data/requests.jsonl"


def _missing(evidence: Evidence) -> int:
    """Return the number of planned edits that are absent or failed."""
    planned = (r.id for r in evidence.requests if r.experiment is not Experiment.MITIGATION)
    edits = {ident for ident, edit in evidence.edits.items() if edit.outcome is not Outcome.FAILED}
    return sum(ident not in edits for ident in planned)

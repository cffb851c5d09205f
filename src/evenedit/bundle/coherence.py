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

from evenedit.bundle.every_eval import every_eval_files
from evenedit.bundle.evidence import Evidence
from evenedit.bundle.evidence_files import request_row
from evenedit.bundle.scoring import PLAN, kept_plan
from evenedit.bundle.study_facts import bared
from evenedit.config.sections import Sections
from evenedit.config.study_file import StudyFile
from evenedit.core.hashing import digest
from evenedit.core.parquet import read_parquet
from evenedit.core.records import Condition, Experiment, Outcome
from evenedit.core.sealed_zip import MANIFEST, SealedZip
from evenedit.core.version import __version__
from evenedit.protocol import PromptSet
from evenedit.protocol.rubric import WORDINGS
from evenedit.ratings import parquet
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.storage.data_state import (
    REQUESTS,
    Parts,
    altered,
    digests,
    measurements_part,
    ratings_part,
    replies_part,
)
from evenedit.storage.study_history import Happening
from evenedit.study.kept_plan import ENDED
from evenedit.study.load_results import RESULTS
from evenedit.study.results import rules_of
from evenedit.study.seal import FROZEN, SURVEY

MEASUREMENTS = "data/measurements.jsonl"


def stated_sections(bundle: SealedZip, changed: Mapping[str, Mapping[str, Any]] | None = None) -> Sections:
    """The tables of the study file in a bundle, some of them changed."""
    body = tomllib.loads(bundle.read("study.toml").decode())
    for name, table in (changed or {}).items():
        body[name] = {**body.get(name, {}), **table}
    return Sections.model_validate(body)


def stated_rules(sections: Sections) -> AnalysisRules:
    """The rules that follow from the tables of a study file."""
    nothing = PromptSet("none", ())
    return rules_of(StudyFile(Path(), sections, nothing, nothing))


def incoherent(bundle: SealedZip, evidence: Evidence) -> Iterator[str]:
    """What in a bundle contradicts its own study file or sealed plan, a sentence each."""
    try:
        sections = stated_sections(bundle)
    except (ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        yield "study.toml is no study file"
        return
    if stated_rules(sections) != evidence.record.rules:
        yield "study.json: its rules are not those of study.toml"
    yield from _reworded(evidence)
    yield from (
        f"{name}: its bytes are not those that its name says"
        for name in bundle.under("pictures")
        if name in bundle.files and bundle.files[name].sha256 != Path(name).stem
    )
    if (kept := kept_plan(bundle)) is not None:
        stated = sections.model_dump(mode="json", include=FROZEN)
        survey = sections.survey.model_dump(mode="json", include=set(SURVEY)) if sections.survey else None
        yield from (f"{PLAN}: {told}" for told in _beside_the_plan(kept.plan, stated | {"survey": survey}, evidence))
        missing = _missing(evidence)
        if missing and not any(change.what == "planned edits" for change in kept.beside):
            yield f"{PLAN}: {missing:,} planned edits are missing, and it does not say so"


def not_as_left(bundle: SealedZip, evidence: Evidence, lines: Sequence[Happening]) -> Iterator[str]:
    """The parts of the data that are not as the last run left them, by the digests in the history.

    Where the requests are others, the study was changed after its last run, and no other part can be held against it.
    """
    last = next((line for line in reversed(lines) if line.what == ENDED), None)
    left = {} if last is None else last.detail.get("state", {})
    found = digests(_parts(bundle, evidence))
    different = list(altered(found, left)) if left else []
    yield from [REQUESTS] if REQUESTS in different else different


def untrue_files(bundle: SealedZip, evidence: Evidence, results: Results) -> Iterator[str]:
    """Files that do not say what the evidence and the results say; the pages and figures of the report are not read."""
    if f"report/{RESULTS}" in bundle.names and bundle.read(f"report/{RESULTS}") != bundle.read(RESULTS):
        yield f"report/{RESULTS}"
    if json.loads(bundle.read("environment.json")) != json.loads(bundle.read(RESULTS))["provenance"]:
        yield "environment.json"
    if bundle.facts.get("simulated") != list(results.simulated):
        yield f"{MANIFEST} (what is simulated)"
    with TemporaryDirectory() as place:
        (given := Path(place) / "given").write_bytes(bundle.read(parquet.FILE))
        made = parquet.write_parquet(evidence.table().without_people(), Path(place) / "made")
        if not read_parquet(given).equals(read_parquet(made)):
            yield parquet.FILE
    if bundle.facts.get("evenedit") == __version__:
        shown = every_eval_files(results, evidence.record.title)
        yield from (name for name, content in shown.items() if name in bundle.names and bundle.read(name) != content)
        known = [question for wording in WORDINGS.values() for question in wording.values()]
        asked = (question for question in evidence.record.asked.questions if question not in known)
        yield from (f"study.json (the words of {question.id})" for question in asked)


def _parts(bundle: SealedZip, evidence: Evidence) -> Parts:
    """The rows of a bundle as the database had them."""
    parts: dict[str, list[list[Any]]] = {
        "sources": [[s.id, s.image, dict(s.attributes)] for s in evidence.sources.values()],
        REQUESTS: [list(request_row(request).values()) for request in evidence.requests],
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
        if request.experiment is Experiment.DIAGNOSIS and request.condition is Condition.BASELINE
    }
    for ident, text in sent.items():
        if words.get(ident) != text:
            yield f"study.json: prompt {ident} is not what editors were sent"


def _beside_the_plan(plan: Mapping[str, Any], stated: Mapping[str, Any], evidence: Evidence) -> Iterator[str]:
    """Where the plan as it stood when the bundle was made is not that of the other files."""
    for name, table in stated.items():
        if bared(table) != bared(plan.get(name)):
            yield f"its {name} are not those of study.toml"
    words = {prompt.id: prompt.text for prompt in evidence.record.prompts}
    if any(words.get(ident) != text for ident, text in plan.get("prompts_in_words", {}).items()):
        yield "its prompts are not those of study.json"
    if {s.id: [s.image, dict(s.attributes)] for s in evidence.sources.values()} != plan.get("portraits"):
        yield "its portraits are not those of data/sources.jsonl"
    planned = sorted(r.id for r in evidence.requests if r.experiment is not Experiment.MITIGATION)
    if {"number": len(planned), "digest": digest(planned)} != plan.get("requests"):
        yield "its requests are not those of data/requests.jsonl"


def _missing(evidence: Evidence) -> int:
    """Planned edits that are not there, or failed."""
    planned = (r.id for r in evidence.requests if r.experiment is not Experiment.MITIGATION)
    made = {ident for ident, edit in evidence.edits.items() if edit.outcome is not Outcome.FAILED}
    return sum(ident not in made for ident in planned)

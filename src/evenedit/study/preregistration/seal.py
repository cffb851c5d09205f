"""The plan of a study, frozen before the first edit: hypotheses, sample, exclusions and rules.

evenedit seal STUDY  ->  seal.json  ->  the report tells what was changed since, with before and after
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evenedit.config.sections import Sections
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import encode, write_whole
from evenedit.core.records import Source
from evenedit.core.version import __version__
from evenedit.design import requests as design
from evenedit.gate.gate import PrimaryRule, parse_rule
from evenedit.judges.prompt import prompt_hash
from evenedit.protocol.rubric import QUESTIONS
from evenedit.results.preregistration import PlanChange
from evenedit.storage.study_history import StudyHistory
from evenedit.study.context import StudyContext

FILE = "seal.json"
SCHEMA = "evenedit.seal/1"
FROZEN = {
    *("study", "factors", "prompts", "experiments", "editors", "judges", "instruments", "ensemble", "thresholds"),
    *("statistics", "findings", "hypotheses", "primary"),
}
"""Tables of the study file that are frozen whole."""
SURVEY = (
    "surveys",
    "sampler",
    "population",
    "cases",
    "sizes",
    "raters_per_item",
    "gold",
    "gold_share",
    "instructed",
    "exclude",
)
"""Keys of [survey] that are frozen: whom people rate, how many, and who is excluded."""
ABSENT = "not there"


@dataclass(frozen=True, slots=True)
class Seal:
    """A plan as it was sealed."""

    sealed: str
    """When."""
    version: str
    """The release that sealed it."""
    plan: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Names the plan and the time: to be published where its date can be seen."""
        text = json.dumps([self.sealed, self.version, self.plan], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Serialise the seal."""
        body = {"schema": SCHEMA, "digest": self.digest, "sealed": self.sealed, "version": self.version}
        return json.dumps(body | {"plan": self.plan}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def parse(cls, text: str, where: str) -> Seal:
        """Parse a seal; raise if its digest does not match."""
        try:
            body = json.loads(text)
            seal = cls(body["sealed"], body["version"], body["plan"])
            stated = body["digest"]
        except (ValueError, KeyError, TypeError) as error:
            raise EvenEditError(f"{where} is damaged: {type(error).__name__}: {error}") from None
        if seal.digest != stated:
            raise EvenEditError(f"{where} was changed after it was sealed: its content does not match its digest")
        return seal


def seal_study(study: StudyContext) -> Seal:
    """Freeze the plan of a study that has no edit yet."""
    path = study.folder / FILE
    if path.exists():
        raise EvenEditError(f"the study is sealed already: {path}. A plan can be sealed once")
    if study.store.edits():
        raise EvenEditError(f"{len(study.store.edits()):,} edits are made already; a plan is sealed before the first")
    check_hypotheses(study)
    seal = Seal(datetime.now(UTC).isoformat(timespec="seconds"), __version__, current_plan(study))
    write_whole(path, seal.to_json().encode())
    StudyHistory(study.folder).add("sealed", seal=seal.digest)
    return seal


def check_hypotheses(study: StudyContext) -> None:
    """Raise if a hypothesis is no rule of the gate, or about a test that is not declared."""
    file = study.file
    readings = [name for rater in study.design.instruments({}).raters for name in rater.spec.reading_names]
    tests = len(file.sections.primary.tests) if file.sections.primary else 0
    for one in file.sections.hypotheses:
        rule = parse_rule(one.rule, file.factors, readings, file.rubric)
        if isinstance(rule, PrimaryRule):
            rule.check_number(tests)


def read_seal(study: StudyContext) -> Seal | None:
    """Read the seal of a study; None if it was never sealed. Raise if the history names a seal that is missing."""
    path = study.folder / FILE
    if path.is_file():
        return Seal.parse(path.read_text("utf-8"), str(path))
    known = [line.detail.get("seal") for line in StudyHistory(study.folder).lines() if line.event == "sealed"]
    if known:
        raise EvenEditError(
            f"{path} is missing, but the study was sealed as {known[0]}; restore it from a copy or a bundle"
        )
    return None


def current_plan(study: StudyContext) -> dict[str, Any]:
    """Return the plan of a study: the same before the first edit and after the last if nothing changed."""
    file = study.file
    sources = study.store.sources() or dict(_portraits(study))
    requests = [*design.diagnosis(file, sources), *design.floor(file, sources), *design.stereotype(file, sources)]
    requests += study.design.null_pairs(sources)
    plan = {
        **frozen_tables(file.sections),
        "prompts_in_words": {p.id: p.text for s in (file.prompts, file.wino) for p in s},
        "portraits": {s.id: [s.image, dict(s.attributes)] for s in sources.values()},
        "requests": {"number": len(requests), "digest": digest(sorted(r.id for r in requests))},
        "rubric": digest([[q.id, q.text, list(q.labels)] for q in QUESTIONS.values()]),
        "judge_prompt": prompt_hash(),
    }
    if tables := file.rubric.to_tables():  # of the shipped default, `rubric` names the words
        plan["questions"] = tables
    plain: dict[str, Any] = json.loads(json.dumps(plan))
    return plain


def frozen_tables(sections: Sections) -> dict[str, Any]:
    """Return the tables and keys of a study file that are frozen."""
    body = sections.model_dump(mode="json", include=FROZEN)
    diagnosis = body["experiments"]["diagnosis"]
    if diagnosis and diagnosis["null_pairs"] is None:  # earlier seals have no such key
        del diagnosis["null_pairs"]
    if body["primary"] is None:
        del body["primary"]
    later = [key for key in ("without", "direction") if not body["study"][key]]
    later += [] if sections.study.direction else ["direction_shows"]
    body["study"] = {key: value for key, value in body["study"].items() if key not in later}  # earlier seals lack them
    survey = sections.survey.model_dump(mode="json", include=set(SURVEY)) if sections.survey else None
    if survey and not survey["sizes"]:
        del survey["sizes"]
    return {**body, "survey": survey}


def _portraits(study: StudyContext) -> Iterator[tuple[str, Source]]:
    """Return the portraits as a run stores them."""
    for ident, attributes, origin, image in study.design.portraits():
        yield ident, Source(ident, hashlib.sha256(encode(image)).hexdigest(), attributes, origin)


def changes_between(before: Any, after: Any, where: str = "") -> Iterator[PlanChange]:
    """Yield every key in which two plans differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            one, other = (side.get(key, ABSENT) for side in (before, after))
            yield from changes_between(one, other, f"{where}.{key}" if where else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and len(before) > 0:
        for number, (one, other) in enumerate(zip(before, after, strict=True), 1):
            yield from changes_between(one, other, f"{where}[{number}]")
    elif before != after:
        yield PlanChange(where, _as_text(before), _as_text(after))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""Compute the results of a bundle again from its raw replies and readings, under its rules or others."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenedit.bundle.archive import SealedZip, open_bundle
from evenedit.bundle.coherence import contradicting_files, stated_rules, stated_sections
from evenedit.bundle.evidence import ReplyCheck
from evenedit.bundle.evidence_files import read_evidence
from evenedit.bundle.scoring import plan_adherence, score
from evenedit.config.sections import Sections
from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.provenance import provenance
from evenedit.core.validation import explain
from evenedit.core.version import __version__
from evenedit.interchange.analyze import PRESETS
from evenedit.protocol import Rubric
from evenedit.results.preregistration import PlanChange
from evenedit.stats import AnalysisRules
from evenedit.study.results_file import RESULTS

RESCORE = "rescore.json"
SCHEMA = "evenedit.rescore/1"
RULES = ("study", "ensemble", "thresholds", "statistics", "findings")
"""Tables of a file of other rules, as study.toml has them; of [study] the preset."""
MOST = 20
"""Differences that are told one by one."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """The outcome of rescoring a bundle."""

    folder: Path
    identical: bool
    """Whether results.json has the same bytes as the bundle's."""
    other_rules: bool
    differences: tuple[str, ...]
    untrue: tuple[str, ...]
    """Other files of the bundle that do not say what follows from its evidence."""
    replies: ReplyCheck
    withdrawn: int
    made_with: str
    """The release that made the bundle."""


def rescore(path: Path, out: Path, rules: str = "") -> Rescored:
    """Compute the results of a bundle again, and write results.json and rescore.json to a folder; offline.

    `rules` is a TOML file with tables of study.toml, or default or published; empty for the bundle's own.
    """
    bundle = open_bundle(path)
    evidence = read_evidence(bundle)
    stated = bundle.read(RESULTS)
    body = json.loads(stated)
    chosen = other_rules(bundle, rules, Rubric.from_tables(evidence.record.rubric)) if rules else evidence.record.rules
    adherence = plan_adherence(bundle)
    if adherence is not None and rules:
        others = PlanChange("rules of this scoring", "those of the study", f"others: {Path(rules).name}")
        adherence = replace(adherence, deviations=(*adherence.deviations, others))
    results = score(evidence, body["provenance"], chosen, adherence=adherence)
    files = results.to_files()
    rescored = files[RESULTS]
    outcome = Rescored(
        out,
        identical=rescored == stated,
        other_rules=bool(rules),
        differences=tuple(differences(body, json.loads(rescored))),
        untrue=() if rules else tuple(contradicting_files(bundle, evidence, results)),
        replies=evidence.check_replies(),
        withdrawn=len(bundle.changes().withdrawn),
        made_with=str(bundle.facts.get("evenedit", "unknown")),
    )
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(out / name, content)
    write_whole(out / RESCORE, _record(bundle, outcome, chosen))
    return outcome


def other_rules(bundle: SealedZip, rules: str, rubric: Rubric) -> AnalysisRules:
    """Return the rules of a preset, or the bundle's rules with the tables of a file."""
    file = Path(rules)
    if rules in PRESETS and not file.is_file():  # a folder of that name is no file of rules
        changed = {"study": {"preset": rules}}
    elif file.is_file():
        try:
            changed = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise EvenEditError(f"{file} is not valid TOML: {error}") from None
    else:
        raise EvenEditError(f"--rules {rules}: there is no such file; name a TOML file, {' or '.join(PRESETS)}")
    if foreign := [name for name in changed if name not in RULES]:
        raise EvenEditError(f"{rules}: [{foreign[0]}] is not a table of rules; these are {', '.join(RULES)}")
    try:
        return stated_rules(stated_sections(bundle, changed), rubric)
    except ValidationError as error:
        raise EvenEditError(*(f"{rules}: {line}" for line in explain(error, Sections))) from None


def differences(stated: Mapping[str, Any], rescored: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of results.json that differ, each with its largest change of a number."""
    for part in dict.fromkeys([*stated, *rescored]):
        one, other = stated.get(part), rescored.get(part)
        if one == other:
            continue
        first, second = dict(_numbers(one)), dict(_numbers(other))
        changed = {key: (first[key], second[key]) for key in first.keys() & second.keys() if first[key] != second[key]}
        if not changed:
            yield f"{part}: other content ({len(first):,} values, now {len(second):,})"
            continue
        key = max(sorted(changed), key=lambda key: abs(changed[key][1] - changed[key][0]))
        before, after = changed[key]
        yield f"{part}: {len(changed):,} numbers differ, most {key}: {before:.12g}, now {after:.12g}"


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a value with their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _numbers(item, f"{path}[{at}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def _record(bundle: SealedZip, outcome: Rescored, rules: AnalysisRules) -> bytes:
    """Return the content of rescore.json."""
    body = {
        "schema": SCHEMA,
        "root": bundle.root,
        "identical": outcome.identical,
        "made_with": outcome.made_with,
        "scored_with": __version__,
        "rules": rules.to_dict() if outcome.other_rules else "as stated in the bundle",
        "replies_read_again": outcome.replies.from_raw,
        "replies_as_stored": outcome.replies.as_stored,
        "replies_that_differ": list(outcome.replies.differ[:MOST]),
        "withdrawn": outcome.withdrawn,
        "differences": list(outcome.differences[:MOST]),
        "untrue_files": list(outcome.untrue),
        "provenance": provenance(),
    }
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()

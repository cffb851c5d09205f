"""A bundle scored again: from its raw replies and readings to results, under its own rules or others."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenedit.bundle.coherence import stated_rules, stated_sections, untrue_files
from evenedit.bundle.evidence import ReadAgain
from evenedit.bundle.evidence_files import read_evidence
from evenedit.bundle.scoring import kept_plan, score
from evenedit.config.check import explain
from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.provenance import provenance
from evenedit.core.sealed_zip import SealedZip
from evenedit.core.version import __version__
from evenedit.results.preregistration import PlanChange
from evenedit.stats import AnalysisRules
from evenedit.study.analyze import PRESETS
from evenedit.study.load_results import RESULTS, open_bundle

RESCORE = "rescore.json"
SCHEMA = "evenedit.rescore/1"
RULES = ("study", "ensemble", "thresholds", "statistics", "findings")
"""Tables of a file of other rules, as study.toml has them; of [study] the preset."""
MOST = 20
"""Differences that are told one by one."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What scoring a bundle again came to."""

    folder: Path
    identical: bool
    """Whether results.json has the same bytes as the bundle's."""
    other_rules: bool
    differences: tuple[str, ...]
    untrue: tuple[str, ...]
    """Other files of the bundle that do not say what follows from its evidence."""
    again: ReadAgain
    withdrawn: int
    made_with: str
    """The release that made the bundle."""


def rescore(path: Path, out: Path, rules: str = "") -> Rescored:
    """Score a bundle again, and write results.json and rescore.json to a folder; nothing is asked of any network.

    `rules` is a TOML file with tables of study.toml, or default or published; empty for the bundle's own.
    """
    bundle = open_bundle(path)
    evidence = read_evidence(bundle)
    stated = bundle.read(RESULTS)
    body = json.loads(stated)
    chosen = other_rules(bundle, rules) if rules else evidence.record.rules
    kept = kept_plan(bundle)
    if kept is not None and rules:
        others = PlanChange("rules of this scoring", "those of the study", f"others: {Path(rules).name}")
        kept = replace(kept, beside=(*kept.beside, others))
    results = score(evidence, body["provenance"], chosen, kept=kept)
    made = results.to_json().encode()
    found = Rescored(
        out,
        identical=made == stated,
        other_rules=bool(rules),
        differences=tuple(differences(body, json.loads(made))),
        untrue=() if rules else tuple(untrue_files(bundle, evidence, results)),
        again=evidence.read_again(),
        withdrawn=len(bundle.changes().withdrawn),
        made_with=str(bundle.facts.get("evenedit", "unknown")),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / RESULTS, made)
    write_whole(out / RESCORE, _record(bundle, found, chosen))
    return found


def other_rules(bundle: SealedZip, rules: str) -> AnalysisRules:
    """The rules of a preset, or the bundle's own with the tables of a file in their place."""
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
        raise EvenEditError(f"{rules}: [{foreign[0]}] is no rule; tables of rules are {', '.join(RULES)}")
    try:
        return stated_rules(stated_sections(bundle, changed))
    except ValidationError as error:
        raise EvenEditError(*(f"{rules}: {line}" for line in explain(error))) from None


def differences(stated: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[str]:
    """The parts of results.json that differ, each with its largest change of a number."""
    for part in dict.fromkeys([*stated, *made]):
        one, other = stated.get(part), made.get(part)
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
    """Every number in a value, by where it stands."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _numbers(item, f"{path}[{at}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def _record(bundle: SealedZip, found: Rescored, rules: AnalysisRules) -> bytes:
    """What was scored again, by whom, and what came out."""
    body = {
        "schema": SCHEMA,
        "root": bundle.root,
        "identical": found.identical,
        "made_with": found.made_with,
        "scored_with": __version__,
        "rules": rules.to_dict() if found.other_rules else "as stated in the bundle",
        "replies_read_again": found.again.from_raw,
        "replies_as_stored": found.again.as_stored,
        "replies_that_differ": list(found.again.differ[:MOST]),
        "withdrawn": found.withdrawn,
        "differences": list(found.differences[:MOST]),
        "untrue_files": list(found.untrue),
        "provenance": provenance(),
    }
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()

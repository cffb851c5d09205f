"""Facts and limits of an audit, as its pages list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenedit.protocol.measures import Measure
from evenedit.report.render.index import Index
from evenedit.report.render.table import DASH
from evenedit.results.words import count


def study_facts(index: Index) -> list[tuple[str, str]]:
    """Return the facts of the audit that the results contain."""
    results = index.results
    arms = {k.split(".", 1)[1]: n for k, n in results.counts.items() if k.startswith("edits.")}
    faces = max((t.faces for t in results.tests), default=None)
    groups = [
        f"{f.title}: {', '.join(index.level_name(f.name, code) for code in index.levels(f.name))}"
        for f in index.factors
        if index.levels(f.name)
    ]
    facts = [
        ("Editors", ", ".join(index.editors())),
        ("Edits", ", ".join(f"{n:,} {arm.replace('.', ' ')}" for arm, n in arms.items())),
        ("Faces", f"{faces:,}" if faces else ""),
        ("Labels of the faces", "; ".join(groups)),
        ("Judges", ", ".join(index.judges)),
        ("Instruments", ", ".join(index.instruments)),
        (
            "Rates",
            ", ".join(f"{index.name(r).lower()} {rule}" for r, rule in index.thresholds.items()) if index.rated else "",
        ),
    ]
    return [(term, text) for term, text in facts if text]


def facts_of(mapping: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format the entries of a mapping in words."""
    return [(key.replace("_", " ").capitalize(), _plain(value)) for key, value in mapping.items()]


def _plain(value: Any) -> str:
    match value:
        case None:
            return DASH
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) > 9999 else str(value)
        case str():
            return value
        case Mapping():
            return "; ".join(f"{k}: {_plain(v)}" for k, v in value.items()) or DASH
        case Sequence():
            return ", ".join(map(_plain, value)) or DASH
        case _:
            return str(value)


def limits(index: Index) -> Iterator[str]:
    """Yield the limits of the findings that apply to these data."""
    results = index.results
    if results.simulated:
        yield (
            "These numbers come from SIMULATED data. They show how the audit works and say nothing about "
            "any real editor, judge or person."
        )
    faces = max((t.faces for t in results.tests), default=0)
    cells = 1
    for f in index.factors:
        cells *= max(len(index.levels(f.name)), 1)
    if 0 < faces <= cells:
        faces_clause = "There is one face" if faces == 1 else f"There are {faces:,} faces"
        yield (
            f"{faces_clause} for {count(cells, 'combination')} of labels, so each group rests on few people. "
            "Intervals and tests treat faces as the unit, but an intersection of labels may be one person."
        )
    yield (
        f"Labels of {index.nouns} are the dataset's labels, given by its annotators. They are not truths "
        "about the people shown, and a difference between labels does not show its cause."
    )
    if index.instruments:
        yield (
            "Instruments measure pixels, not meaning: an unchanged output need not be a failure, a changed one no "
            "success. Changed light cannot always be distinguished from changed skin; a face that could not be "
            "measured is missing, and the table of what could not be measured shows how often, by group."
        )
    if index.judges:
        yield (
            "Scores are ratings, not measurements. A judge may itself rate groups differently; where judges and "
            "people have not been compared group by group, a gap between groups can be the judge's."
        )
    if index.rated and results.sensitivity:
        yield (
            "A rate depends on its threshold and on how missing scores are treated; the sensitivity table shows both."
        )
    aged = any(Measure(e.measure).name in index.rubric.replaced for e in results.estimates)
    if aged and not results.rules.get("aging_in_age_axis"):
        yield "Age ratings of prompts that ask for another age are left out of the age axis."
    yield (
        "The findings hold for these prompts, settings, seeds and versions. The gap between the highest and the "
        "lowest group grows with the number of groups and shrinks with more data even when nothing differs: read it "
        "with its test."
    )

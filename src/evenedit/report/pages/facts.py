"""Facts and limits of an audit, as its pages list them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenedit.protocol.measures import Measure
from evenedit.report.render.index import Index
from evenedit.report.render.table import DASH
from evenedit.report.render.words import lines_of


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


def limits(index: Index) -> list[str]:
    """Return the limits of the findings that apply to these data."""
    results = index.results
    faces = max((t.faces for t in results.tests), default=0)
    cells = math.prod(max(len(index.levels(f.name)), 1) for f in index.factors)
    aged = any(Measure(e.measure).name in index.rubric.replaced for e in results.estimates)
    return lines_of("limits.txt", index=index, faces=faces, cells=cells, aged=aged)

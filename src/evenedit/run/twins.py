"""How far the versions of a base portrait are from each other: identity and everything else that changed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from evenedit.core.progress import Progress
from evenedit.core.records import BASE, Source
from evenedit.instruments import picture
from evenedit.instruments.measure import measure
from evenedit.storage.store import Store

CHECKED = "twins checked"
"""The fact that holds the readings of each version, by its id."""
NUMBERS = ("identity_distance", "identity_same", "changed_share", "skin_delta_L")


def twin_readings(store: Store) -> dict[str, dict[str, Any]]:
    """Return the readings of versions, by id."""
    readings: dict[str, dict[str, Any]] = json.loads(store.fact(CHECKED) or "{}")
    return readings


def check_twins(store: Store, sources: Mapping[str, Source]) -> None:
    """Compare the versions of each base with the middle one, and store what was read."""
    bases: dict[str, list[Source]] = defaultdict(list)
    for source in sources.values():
        if BASE in source.attributes:
            bases[source.attributes[BASE]].append(source)
    known = twin_readings(store)
    left = {base: [s for s in of if s.id not in known] for base, of in bases.items()}
    with Progress("compare twins", sum(map(len, left.values()))) as progress:
        for base, versions in left.items():
            if not versions:
                continue
            middle = bases[base][len(bases[base]) // 2]
            first = picture.Picture(picture.pixels(store.images.open(middle.image)))
            for version in versions:
                read = measure(first, store.images.open(version.image))
                known[version.id] = {
                    "compared_with": middle.id,
                    "verdict": read.verdict,
                    "reason": read.reasons.get("identity_distance", ""),
                    **{name: getattr(read, name) for name in NUMBERS},
                }
                progress.advance(1)
            store.set_fact(CHECKED, json.dumps(known))

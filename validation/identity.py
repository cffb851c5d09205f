"""Is another person told from the same one, for every label, with thresholds from the study's own people?"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenedit.instruments.covered import lower_face_covered
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.identity import (
    FaceEmbedding,
    IdentityDistance,
    Reference,
    available,
    distance,
    embed,
    shipped_reference,
)
from evenedit.instruments.identity import reference as people_of
from evenedit.instruments.picture import Pixels
from validation.fresh_people import fresh_people
from validation.page import Validation, table
from validation.real_edits import COVERED, PERHAPS_REPLACED, REPLACED, real_edits
from validation.variants import SAME_PERSON, Sitter, draw, mirrored, sitters

FRESH = 6
"""Other people of each label."""
FAR = 0.6
"""What many programs take for another person, whoever is shown."""
KINDS = ("half the size and back", "redrawn, head moved 3 %", "25 % darker", "cap", "glasses, thick")
Vector = NDArray[np.float64]


def run(folder: Path) -> Validation | None:
    """Compare people with each other, with variants of themselves, and with what an editor made of them."""
    people = sitters()
    if not people or not available():
        print("skipped: the photographs or the extra 'faces' are absent")
        return None
    own = {person.name: embed(person.rgb, person.face) for person in people}
    same = {person.name: _variants(person, own[person.name]) for person in people}
    mild = {
        person.name: (_to(person, own[person.name], mirrored(person.rgb, person.face, person.random("m"))),)
        for person in people
    }
    calibrating = [FaceEmbedding(p.race, own[p.name], mild[p.name]) for p in people if p.calibrates]
    half = "## By label: people held out, against thresholds from the other half (six people a label, 15 pairs)"
    last = f"The last column is what one threshold of {FAR} for everybody would miss."
    lines = [half, "", *_roc([p for p in people if not p.calibrates], own, same, people_of(calibrating)), "", last]
    lines += ["", *_fresh(people_of(FaceEmbedding(p.race, own[p.name], mild[p.name]) for p in people))]
    lines += ["", "### The same people against the distances that EvenEdit ships", "", *_shipped_on_fresh()]
    edited, wrong = _edits({p.name: p for p in people}, own, mild)
    claim = (
        "Different people of a label are told from the same person in harmless variants, by thresholds from the "
        "distances among other people of the label; replaced people among real edits are named."
    )
    counts = {"portraits": len(people), "variants": sum(len(v) for v in same.values())}
    return Validation(claim, [*lines, "", *edited], 0, counts, wrong)


def _to(person: Sitter, own: Vector, rgb: Pixels) -> float:
    face = find_face(rgb)
    return distance(own, embed(rgb, face)) if isinstance(face, Face) else float("nan")


def _variants(person: Sitter, own: Vector) -> list[float]:
    kinds = {kind: SAME_PERSON[kind] for kind in KINDS}
    found = [_to(person, own, rgb) for _, rgb in draw(kinds, person)]
    return [value for value in found if value == value]


def _fresh(known: Reference) -> list[str]:
    """The cut of 2 % on people that it was not chosen with."""
    people = sitters(fresh_people(FRESH))
    if not people:
        return []
    own = {person.name: embed(person.rgb, person.face) for person in people}
    same = {person.name: _variants(person, own[person.name]) for person in people}
    head = f"## By label: {len(people)} other people, against thresholds from the 84 portraits"
    last = (
        "The cut that 2 % of different people fall short of was chosen with the real edits below in view. These people "
        "had no part in that: candidates that are none of the 84, in pictures of 224 pixels."
    )
    return [head, "", *_roc(people, own, same, known), "", last]


def _shipped_on_fresh() -> list[str]:
    """The cut used without a reference, on people that had no part in it."""
    people = sitters(fresh_people(FRESH))
    if not people:
        return []
    own = {person.name: embed(person.rgb, person.face) for person in people}
    same = {person.name: _variants(person, own[person.name]) for person in people}
    return _roc(people, own, same, shipped_reference())


def _roc(people: list[Sitter], own: dict[str, Vector], same: dict[str, list[float]], known: Reference) -> list[str]:
    """By label: overlap, and errors at the threshold of the people known."""
    rows: list[dict[str, Any]] = []
    for race in sorted({p.race for p in people}):
        held_out = [p for p in people if p.race == race]
        alike = np.array([d for p in held_out for d in same[p.name]])
        apart = np.array([distance(own[a.name], own[b.name]) for a, b in combinations(held_out, 2)])
        rows.append(
            {
                "label": race,
                "same person, n": len(alike),
                "median": f"{np.median(alike):.2f}",
                "largest": f"{alike.max():.2f}",
                "different people, n": len(apart),
                "smallest": f"{apart.min():.2f}",
                "median ": f"{np.median(apart):.2f}",
                "AUC": f"{(apart[:, None] > alike).mean():.4f}",
                "same person called another": f"{np.mean([_another(known, d, race) for d in alike]):.1%}",
                "another person found": f"{np.mean([_another(known, d, race) for d in apart]):.0%}",
                f"closer than {FAR}": f"{(apart < FAR).mean():.0%}",
            }
        )
    return table(rows)


def _another(known: Reference, value: float, group: str) -> bool:
    standing = known.standing(value, group)
    return isinstance(standing, IdentityDistance) and standing.stranger


def _edits(people: dict[str, Sitter], own: dict[str, Vector], mild: dict[str, Any]) -> tuple[list[str], list[str]]:
    everybody = people_of(FaceEmbedding(p.race, own[p.name], mild[p.name]) for p in people.values())
    nine = {who for _, who, _ in real_edits()}
    few = people_of(FaceEmbedding(people[n].race, own[n], mild[n]) for n in sorted(nine))
    found: dict[str, tuple[str, float | None]] = {}
    for name, who, rgb in real_edits():
        face = find_face(rgb)
        person = people[who]
        hidden = not isinstance(face, Face) or lower_face_covered(person.rgb, rgb, person.face, face)
        found[name] = (
            person.race,
            None if hidden or not isinstance(face, Face) else distance(own[who], embed(rgb, face)),
        )
    rows, wrong = [], []
    for title, known in (
        ("84 portraits", everybody),
        ("the nine sources alone", few),
        ("the distances that EvenEdit ships", shipped_reference()),
    ):
        named = {name for name, (race, value) in found.items() if value is not None and _another(known, value, race)}
        others = sorted(named - REPLACED - PERHAPS_REPLACED)
        rows.append(
            {
                "compared with": title,
                f"of {len(REPLACED)} replaced, named": len(named & REPLACED),
                f"of {len(PERHAPS_REPLACED)} doubtful, named": len(named & PERHAPS_REPLACED),
                f"of {len(found) - len(REPLACED | PERHAPS_REPLACED)} others, named": ", ".join(others) or "none",
                "replaced, not named": ", ".join(sorted(REPLACED - named)) or "none",
            }
        )
        wrong += [f"{title}: {len(named & REPLACED)} replaced people named"] if len(named & REPLACED) < 6 else []
    unread = [name for name, (_, value) in found.items() if value is None]
    wrong += [] if set(unread) == COVERED else [f"not compared: {unread}, covered are {sorted(COVERED)}"]
    last = f"Not compared, as the lower face is covered: {', '.join(unread)}."
    return ["## 177 outputs of Step1X-Edit-v1p2, looked at beforehand", "", *table(rows), "", last], wrong

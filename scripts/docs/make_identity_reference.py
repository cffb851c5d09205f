"""Write the distances of faces that audits without a reference set are compared with; needs ../shared/data and `faces`.

Different people: all pairs of one race label among the 84 portraits. The same person: each portrait beside itself
mirrored, darker and softer, and beside the neutral edits of five people (`tune` in validation/labels), scaled to each
label. Numbers only: no picture and no embedding is kept.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from PIL import Image

from evenedit.instruments.face import Face, find_face
from evenedit.instruments.identity import CLOSENESS, SHIPPED, distance, embed, embed_portrait, reference
from validation.real_edits import real_edits
from validation.variants import sitters

LABELS = Path(__file__).parents[2] / "validation" / "labels" / "step1x.csv"


def main() -> None:
    people = {person.name: person for person in sitters()}
    portraits = [embed_portrait(person.race, Image.fromarray(person.rgb)) for person in people.values()]
    own = {name: embed(person.rgb, person.face) for name, person in people.items()}
    known = reference(portraits)
    with LABELS.open() as file:
        kept = {row["edit"] for row in csv.DictReader(file) if row["half"] == "tune" and row["identity"] == "same"}
    neutral = []
    for _, who, rgb in real_edits({name for name in kept if name.startswith("A")}):
        face = find_face(rgb)
        if isinstance(face, Face):
            neutral.append(distance(own[who], embed(rgb, face)) / CLOSENESS[people[who].race])
    same = {label: (*values, *(d * CLOSENESS[label] for d in neutral)) for label, values in known.same.items()}
    both = {"between": known.between, "same": same}
    rounded = {
        part: {label: [round(d, 3) for d in sorted(values)] for label, values in labels.items()}
        for part, labels in both.items()
    }
    SHIPPED.write_text(json.dumps(rounded, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()

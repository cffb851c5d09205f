"""Two picture files in, what an edit did to the pixels out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from evenedit.images import encode, read_image, write_whole
from evenedit.instruments import examine
from evenedit.instruments.identity import available, reference
from evenedit.instruments.picture import draw
from evenedit.records import UserError

GROUP = "reference"
PICTURES = (".png", ".jpg", ".jpeg", ".webp")


def measure_files(source: Path, edited: Path, picture: Path | None, people: Path | None) -> dict[str, Any]:
    """Measure a pair of files; draw the evidence where asked; compare identity with a folder of portraits."""
    before, after = read_image(source), read_image(edited)
    options: dict[str, Any] = {}
    if people is not None:
        if not available():
            raise UserError("--reference needs the 'faces' extra. Try: pip install 'evenedit[faces]'")
        portraits = [p for p in sorted(people.iterdir()) if p.suffix.lower() in PICTURES]
        if len(portraits) < 2:
            raise UserError(f"{people} holds {len(portraits)} portraits; between people needs at least two")
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "reference.json"
            options = {"reference": reference(((GROUP, read_image(p)) for p in portraits), cache), "group": GROUP}
    evidence = examine(before, after, **options)
    if picture is not None:
        write_whole(picture, encode(draw(evidence)))
    return dict(evidence.measurement.to_json())

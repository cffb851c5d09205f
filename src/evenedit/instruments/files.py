"""Measure what an edit did to the pixels of two picture files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode, read_image, write_whole
from evenedit.core.log import log
from evenedit.instruments import examine
from evenedit.instruments.evidence_image import draw
from evenedit.instruments.identity import Reference, available, embed_portrait, reference, reference_key

GROUP = "reference"
PICTURES = (".png", ".jpg", ".jpeg", ".webp")


def measure_files(source: Path, edited: Path, picture: Path | None, people: Path | None) -> dict[str, Any]:
    """Measure a pair of files; draw the evidence where asked; compare identity with a folder of portraits."""
    before, after = read_image(source), read_image(edited)
    options: dict[str, Any] = {}
    if people is not None:
        if not available():
            raise EvenEditError("--reference needs the 'faces' extra. Try: pip install 'evenedit[faces]'")
        portraits = [p for p in sorted(people.iterdir()) if p.suffix.lower() in PICTURES]
        if len(portraits) < 2:
            raise EvenEditError(f"{people} holds {len(portraits)} portraits; between people needs at least two")
        options = {"reference": _reference(portraits), "group": GROUP}
    evidence = examine(before, after, **options)
    if picture is not None:
        write_whole(picture, encode(draw(evidence)))
    return dict(evidence.measurement.to_json())


def _reference(portraits: list[Path]) -> Reference:
    """The distances among these people, computed once and then read from the user's cache."""
    key = reference_key((GROUP, hashlib.sha256(path.read_bytes()).hexdigest()) for path in portraits)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenedit" / f"reference-{key}.json"
    if cache.is_file():
        return Reference.from_json(cache.read_text("utf-8"))
    found = reference(embed_portrait(GROUP, read_image(path)) for path in portraits)
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cache, found.to_json().encode())
    except OSError as error:
        log.info(f"the reference could not be cached: {error}")
    return found

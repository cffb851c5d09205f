"""Measure what an edit did to the pixels of two pictures somebody has."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.images import PICTURES, as_image, encode, read_image, write_whole
from evenedit.core.log import log
from evenedit.core.records import ConditionKind
from evenedit.instruments.identity import Reference, available, embed_portrait, reference_key
from evenedit.instruments.identity import reference as compute_reference
from evenedit.instruments.interface import Instrument, OpenedPicture, PairContext
from evenedit.instruments.measure import examine
from evenedit.instruments.measurement import Measurement
from evenedit.instruments.reading import InstrumentSpec
from evenedit.protocol.prompts import FLOOR
from evenedit.protocol.rubric import default_rubric

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Picture = str | os.PathLike[str] | Image | NDArray[Any]

GROUP = "reference"


def measure(
    source: Picture,
    edited: Picture,
    *,
    reference: str | os.PathLike[str] | None = None,
    gender: bool = False,
    instruments: Sequence[str | Instrument] = (),
) -> Measurement:
    """Measure one source and its edit: skin tone, what changed and where, how far the faces and their ages are apart.

    Pictures are paths, PIL images or arrays. `reference` is a folder of portraits of the same group, with which the
    distance between the two faces is compared. `gender` adds how much more masculine or feminine a model reads the
    face after than before. `instruments` are objects, or kinds of installed ones with their default settings; what
    they read is in `readings`. What cannot be measured is None, with its reason in `reasons`.
    """
    before, after = OpenedPicture(as_image(source)), OpenedPicture(as_image(edited))
    people = None if reference is None else _reference(Path(reference))
    group = None if people is None else GROUP
    pair = examine(before, after.image, age=True, gender=gender, reference=people, group=group)
    context = PairContext(FLOOR, str(ConditionKind.BASELINE), measure=lambda: pair.measurement, examine=lambda: pair)
    readings: dict[str, Any] = {}
    for one in instruments:
        instrument = installed_instrument(one) if isinstance(one, str) else one
        InstrumentSpec.of(instrument, str(getattr(instrument, "id", one)), default_rubric())
        readings |= instrument.read(before, after, context)
    return replace(pair.measurement, readings=readings, evidence=pair)


def installed_instrument(kind: str) -> Instrument:
    """Return an installed instrument with its default settings."""
    if problems := plugins.problems("instruments", kind, {}):
        raise EvenEditError(*problems)
    instrument: Instrument = plugins.build("instruments", kind, {})
    return instrument


def save_evidence(measurement: Measurement, path: Path) -> None:
    """Draw the patches, the change map and the tones that a measurement of `measure` is made of."""
    from evenedit.instruments.evidence_image import draw

    if measurement.evidence is None:
        raise EvenEditError("this measurement holds no pictures; measure the pair with evenedit.measure to draw it")
    write_whole(path, encode(draw(measurement.evidence)))


def _reference(folder: Path) -> Reference:
    """Return the distances among the people in a folder, computed once and cached."""
    if not available():
        raise EvenEditError("a reference needs the 'faces' extra. Try: pip install 'evenedit[faces]'")
    if not folder.is_dir():
        raise EvenEditError(f"{folder}: no such folder; the reference is a folder of portraits of the same group")
    portraits = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in PICTURES]
    if len(portraits) < 2:
        raise EvenEditError(f"{folder} holds {len(portraits)} portraits; between people needs at least two")
    return _cached(portraits)


def _cached(portraits: Sequence[Path]) -> Reference:
    key = reference_key((GROUP, hashlib.sha256(path.read_bytes()).hexdigest()) for path in portraits)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenedit" / f"reference-{key}.json"
    if cache.is_file():
        return Reference.from_json(cache.read_text("utf-8"))
    reference = compute_reference(embed_portrait(GROUP, read_image(path)) for path in portraits)
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cache, reference.to_json().encode())
    except OSError as error:
        log.info(f"the reference could not be cached: {error}")
    return reference

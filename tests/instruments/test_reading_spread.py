"""A small version of `python -m validation reading_spread`, whose table is docs/validation/reading_spread.md."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from evenedit.core.color import MONK
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render
from validation.reading_spread import CONDITIONS, MOST, PER_L, USUAL, differences, read
from validation.variants import head_moved, redrawn, sitters


def drawn_pairs(folder: Path) -> list[tuple[str, str, str]]:
    """Write portraits of three tones and edits of them: lighter, moved, drawn anew, in other light."""
    pairs = []
    for tone, by in ((3, -4), (6, 5), (9, 8)):
        person = replace(sample({"race": "Latino", "gender": "Female", "age": "30s"}, tone), skin=MONK[tone - 1])
        source, lighter = folder / f"Latino_Female_30s_{tone}.png", folder / f"lighter-{tone}.png"
        render(person).convert("RGB").save(source)
        render(lighten(person, by)).convert("RGB").save(lighter)
        pairs.append((lighter.stem, str(source), str(lighter)))
        edit = head_moved(0.02) if tone == 6 else redrawn(0.02)
        (sitter,) = sitters([lighter])
        moved = edit(sitter.rgb, sitter.face, np.random.default_rng(tone))
        path = folder / f"moved-{tone}.png"
        Image.fromarray(np.uint8(moved * 0.9)).save(path)
        pairs.append((path.stem, str(source), str(path)))
    return pairs


def test_readings_are_the_same_on_every_processor(tmp_path: Path) -> None:
    pairs = drawn_pairs(tmp_path)
    usual, _ = read(pairs, USUAL)
    assert sum(reading["skin_delta_L_low"] is not None for reading in usual.values()) >= 4
    for condition in CONDITIONS:
        largest = differences(usual, read(pairs, condition)[0])
        assert {name: largest[name] for name in PER_L if largest[name] > MOST} == {}, condition.name

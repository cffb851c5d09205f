"""The page of the real audit is made from its numbers, and the numbers are those of the pictures."""

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "docs"))

import make_showcase as showcase

DATA = json.loads(showcase.NUMBERS.read_text("utf-8"))
SOME = 6
"""Edits that are measured again; all of them take minutes."""


def test_the_page_and_its_figures_are_those_of_the_numbers(tmp_path: Path) -> None:
    assert showcase.PAGE.read_text("utf-8") == showcase.page(DATA), "run: python scripts/docs/make_showcase.py --page"
    for name, draw in showcase.figures(DATA).items():
        draw(tmp_path / name)
        assert (tmp_path / name).read_bytes() == (showcase.IMAGES / name).read_bytes(), name


def test_no_photograph_is_in_the_figures() -> None:
    for name in showcase.figures(DATA):
        text = (showcase.IMAGES / name).read_text("utf-8")
        assert text.count("<image") == (3 if name == "showcase-maps.svg" else 0)  # two maps and the scale of colours
    for blocks in DATA["maps"].values():
        assert (len(blocks), len(blocks[0])) == (showcase.BLOCKS, showcase.BLOCKS)


def test_the_limits_and_the_lightening_are_told() -> None:
    text = showcase.page(DATA)
    assert "177 edits asked for, 0 refused, 0 failed" in text
    assert "8 labelled Black, 1 labelled East Asian" in text and "nothing here compares races" in text
    assert DATA["findings"][0]["text"] in text
    assert "lighter" in DATA["findings"][0]["text"] or "another person" in DATA["findings"][0]["text"]


@pytest.mark.skipif(
    not (showcase.DATA / "step1x_edits" / "edits.csv").is_file(), reason=f"no real edits in {showcase.DATA}"
)
def test_the_numbers_are_those_of_the_pictures() -> None:
    from evenedit.core.images import read_image
    from evenedit.instruments import examine

    for edit in random.Random(1).sample(DATA["edits"], SOME):
        pair = [read_image(path) for path in showcase.picture_of(edit)]
        found = examine(*pair, identity=False).measurement.to_json()
        for name in ("skin_delta_L", "skin_uncertainty_L", "changed_share", "light", "monk_before", "monk_after"):
            assert found[name] == pytest.approx(edit[name], abs=1e-3), (edit["source"], edit["prompt"], name)

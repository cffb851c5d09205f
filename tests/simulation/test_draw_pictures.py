"""A folder of drawn portraits and simulated edits, to try an audit on."""

import pandas as pd
import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from scripts.draw_pictures import draw_pictures


def made(folder, **changes):
    return draw_pictures(folder, **{"editor": "simulated-even", "prompts": ["O-01"], "seed": 1, "size": 64} | changes)


def test_the_table_names_pictures_that_open_with_their_labels(tmp_path):
    table = made(tmp_path / "edits")
    rows = pd.read_csv(table).to_dict("records")
    assert len(rows) == 8 and {row["race"] for row in rows} == {"White", "Black"}
    for row in rows:
        with Image.open(table.parent / row["source"]) as source, Image.open(table.parent / row["edited"]) as edited:
            assert source.size == edited.size == (64, 64)
    labels = pd.read_csv(tmp_path / "edits/portraits/labels.csv")
    assert [*labels["file"]] == [row["source"].removeprefix("portraits/") for row in rows]


def test_an_editor_that_refuses_leaves_no_picture(tmp_path):
    table = made(tmp_path / "edits", editor="simulated-refusing")
    assert all((table.parent / row["edited"]).is_file() for row in pd.read_csv(table).to_dict("records"))


def test_nothing_is_overwritten_and_real_editors_are_not_run(tmp_path):
    with pytest.raises(EvenEditError, match="exists already"):
        made(tmp_path)
    with pytest.raises(EvenEditError, match="no simulated editor"):
        made(tmp_path / "new", editor="command")

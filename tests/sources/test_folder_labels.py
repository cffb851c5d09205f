"""A folder of portraits is read by the study's factors, whatever they are."""

import csv
from pathlib import Path

import pytest
from PIL import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.protocol import Factor
from evenedit.sources.folder import Folder
from tests.support.studies import open_study

MONK = Factor.of("monk", map(str, range(1, 11)), title="Monk skin tone", ordered=True)
HEADWEAR = Factor.of("headwear", ["none", "head scarf"])
FACTORS = (MONK, HEADWEAR)


def folder(path: Path, *rows: tuple[str, ...], columns: tuple[str, ...] = ("monk", "headwear")) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for number in range(len(rows)):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(path / f"{number}.png")
    with (path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", *columns), *((f"{n}.png", *row) for n, row in enumerate(rows))])
    return path


def test_labels_are_read_by_the_declared_factors(tmp_path):
    made = folder(tmp_path, ("3", "none"), ("10", "Head_Scarf"), ("3", "none"))
    portraits = list(Folder(path=str(made), factors=FACTORS).portraits())
    assert [attributes for _, attributes, *_ in portraits] == [
        {"monk": "3", "headwear": "none"},
        {"monk": "10", "headwear": "head scarf"},
        {"monk": "3", "headwear": "none"},
    ]
    assert [ident for ident, *_ in portraits] == ["3_none", "10_head-scarf", "3_none_2"]


def test_an_empty_label_is_missing_and_counted_in_one_line(tmp_path, capsys):
    made = folder(tmp_path, ("3", ""), ("", ""), ("3", "none"), ("", "none"))
    portraits = list(Folder(path=str(made), factors=FACTORS).portraits())
    assert [tuple(attributes.values()) for _, attributes, *_ in portraits] == [
        ("3", ""), ("", ""), ("3", "none"), ("", "none"),
    ]  # fmt: skip
    assert [i for i, *_ in portraits] == ["3_unlabelled", "unlabelled_unlabelled", "3_none", "unlabelled_none"]
    lines = [line for line in capsys.readouterr().err.splitlines() if "missing" in line]
    assert lines == ["labels.csv: missing labels among 4 portraits: monk 2, headwear 2"]


def test_a_label_that_was_not_declared_names_its_line_and_the_levels(tmp_path):
    made = folder(tmp_path, ("3", "none"), ("11", "none"), ("4", "turban"))
    with pytest.raises(EvenEditError) as error:
        list(Folder(path=str(made), factors=FACTORS).portraits())
    assert error.value.problems == (
        "labels.csv line 3: monk '11' is not a known label; expected one of: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        "labels.csv line 4: headwear 'turban' is not a known label; expected one of: none, head scarf",
    )


def test_a_column_that_is_not_there_is_named(tmp_path):
    made = folder(tmp_path, ("3",), columns=("monk",))
    with pytest.raises(EvenEditError, match="lacks the column headwear; found: file, monk"):
        list(Folder(path=str(made), factors=FACTORS).portraits())


def test_cells_without_a_face_are_counted_and_twenty_are_listed(tmp_path, capsys):
    many = (MONK, Factor.of("size", ["s", "m", "l"]))
    list(Folder(path=str(folder(tmp_path, ("1", "s"), columns=("monk", "size"))), factors=many).portraits())
    line = capsys.readouterr().err
    assert "29 of 30 cells have no face: 1_m, 1_l" in line and line.rstrip().endswith("7_l and 9 more")


def test_faces_per_cell_counts_cells_of_the_declared_factors(tmp_path):
    made = folder(tmp_path, *((tone, "none") for tone in MONK.codes), columns=("monk", "headwear"))
    assert len(list(Folder(path=str(made), factors=(MONK,), faces_per_cell=1).portraits())) == 10
    with pytest.raises(EvenEditError, match=r"fewer in 10 of 20 cells: 1_head-scarf \(0\)"):
        list(Folder(path=str(made), factors=FACTORS, faces_per_cell=1).portraits())


def test_the_study_gives_its_factors_to_the_folder(tmp_path):
    folder(tmp_path / "faces", ("3", "none"), ("4", "head scarf"))
    study = open_study(
        tmp_path,
        sources={"kind": "folder", "settings": {"path": "faces"}},
        factors=[{"name": f.name, "levels": list(f.codes)} for f in FACTORS],
    )
    found = study.design.preview_sources()
    assert [source.attributes["headwear"] for source in found.values()] == ["none", "head scarf"]


def test_factors_are_no_setting_of_a_source():
    with pytest.raises(EvenEditError, match="sources: unknown setting 'factors'"):
        StudyFile.parse(
            {"study": {"title": "x"}, "sources": {"kind": "folder", "settings": {"path": ".", "factors": []}}}
            | {"editors": [{"id": "simulated-even"}], "experiments": {"diagnosis": {}}},
            Path(),
        )

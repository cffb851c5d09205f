"""A curation by factors of the study's own: cells, labels and the finalised set follow them."""

import csv
import json

import pytest

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.curation import portraits
from evenedit.curation.grid import DEFAULT_GRID, Grid
from evenedit.curation.log import ActionKind
from evenedit.curation.pools import CELLS, Pools
from evenedit.curation.session import CurationSession
from evenedit.protocol import Factor
from evenedit.simulation.portraits.drawn import Drawn
from tests.support.curating import ALL_SIX, curated

GRID = Grid((Factor.of("monk", ["1", "10"], title="Monk skin tone"), Factor.of("headwear", ["none", "head_scarf"])))


def write_pools(folder, grid=GRID):
    """One pool with a drawn picture for every cell, named after it."""
    (folder / "V1").mkdir(parents=True)
    for cell, (_, _, _, image) in zip(grid.cells, Drawn(seed=5, size=64).portraits(), strict=False):
        image.info.clear()
        image.save(folder / "V1" / f"{cell}.jpg")
    return folder


def test_the_default_grid_has_the_84_published_cells():
    assert len(DEFAULT_GRID.cells) == 84 and DEFAULT_GRID.cells == CELLS
    assert DEFAULT_GRID.titles("EastAsian_Female_70plus") == ["East Asian", "Female", "70+"]


def test_a_set_is_finalised_and_verified_by_the_studys_factors(tmp_path):
    session = CurationSession(tmp_path, write_pools(tmp_path / "pools"), tmp_path / "portraits", 1, GRID)
    assert list(session.state()) == ["1_none", "1_head_scarf", "10_none", "10_head_scarf"]
    for cell in GRID.cells:
        session.act("Ada", ActionKind.SELECT, cell, "V1", criteria=ALL_SIX)
    session.finalise("Ada")
    with (session.out / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["file", "id", "monk", "headwear", "origin"]
    assert (rows[3]["monk"], rows[3]["headwear"]) == ("10", "head_scarf"), "a level may contain an underscore"
    log = json.loads((session.out / "selection_log.json").read_text())
    assert log["actions"][1]["headwear"] == "head_scarf" and "race" not in log["actions"][1]
    assert portraits.verify(session.out)["factors"] == {"monk": ["1", "10"], "headwear": ["none", "head_scarf"]}


def test_pools_of_other_factors_are_refused_with_a_reason(tmp_path):
    pools = write_pools(tmp_path / "pools")
    with pytest.raises(EvenEditError, match=r"not named after one cell each, as in V1/Black_Female_30s\.jpg"):
        Pools.read(pools)
    with pytest.raises(EvenEditError, match=r"as in V1/a\.jpg"):
        Pools.read(pools, Grid((Factor.of("monk", ["a", "b"]),)))


def test_levels_that_cannot_name_a_cell_are_refused():
    with pytest.raises(EvenEditError, match="must not contain slashes"):
        Grid((Factor.of("headwear", ["none", "hat/cap"]),))
    with pytest.raises(EvenEditError, match="name each cell once"):
        Grid((Factor.of("one", ["a", "a_b"]), Factor.of("two", ["b_c", "c"])))


def test_a_study_without_factors_curates_by_race_gender_and_age(tmp_path):
    assert Grid(StudyFile.load(curated(tmp_path, tmp_path / "pools")).factors) == DEFAULT_GRID

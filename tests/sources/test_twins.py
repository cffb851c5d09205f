"""Versions of base portraits that differ in one attribute only, and pictures that show one person."""

import numpy as np
import pytest

from evenedit import analyze
from evenedit.core.errors import EvenEditError
from evenedit.protocol import Factor
from evenedit.ratings.to_csv import write_tables
from evenedit.report.contents import TABLES
from evenedit.report.render.index import Index
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.simulation.portraits.portrait import portrait_of
from evenedit.sources.folder import Folder
from evenedit.sources.twins import Twins
from tests.sources.test_folder_labels import folder
from tests.support.studies import open_study

MONK = Factor.of("monk", map(str, range(1, 11)), title="Monk skin tone", ordered=True)
HEADWEAR = Factor.of("headwear", ["none", "head scarf"])
FACTORS = (MONK, HEADWEAR)
COLUMNS = ("monk", "headwear", "base")


def test_drawn_twins_are_one_person_with_one_attribute_changed():
    drawn = list(Drawn(grid="monk", twins="monk", faces_per_cell=2, size=64).portraits())
    assert len(drawn) == 20 and len({attributes["base"] for _, attributes, *_ in drawn}) == 2
    people = {}
    for _, attributes, _, image in drawn:
        people.setdefault(attributes["base"], []).append(portrait_of(image))
    for versions in people.values():
        varied = {name for name in versions[0].__slots__ if len({getattr(p, name) for p in versions}) > 1}
        assert varied == {"skin"}
    first, second = (versions[0] for versions in people.values())
    assert first.seed != second.seed


def test_without_twins_the_same_people_are_drawn_as_before():
    plain = [a for _, a, *_ in Drawn(grid="monk", size=64).portraits()]
    assert all("base" not in attributes for attributes in plain)
    with pytest.raises(EvenEditError, match="twins 'rice' is not a factor of the grid"):
        Drawn(twins="rice")


def test_a_folder_of_twins_names_the_base_of_each_version(tmp_path, capsys):
    rows = [("1", "none", "a"), ("5", "none", "a"), ("1", "none", "b"), ("5", "none", "b"), ("1", "none", "c")]
    made = list(Twins(path=str(folder(tmp_path, *rows, columns=COLUMNS)), factors=FACTORS).portraits())
    assert [attributes["base"] for _, attributes, *_ in made] == ["a", "a", "b", "b"]
    assert "1 of 3 bases lack a version for some monk and are left out: c" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("1", "none", "a"), ("5", "none", "")], "'base' is absent or empty, line 3"),
        ([("1", "none", "a"), ("5", "head scarf", "a")], "versions of a base differ in headwear, monk"),
        ([("1", "none", "a"), ("1", "none", "b")], "versions of a base have the same labels"),
        ([("1", "none", "a"), ("5", "none", "a"), ("5", "none", "a")], "base 'a' has two versions with the same monk"),
        ([("1", "none", "a"), ("5", "none", "a"), ("7", "none", "b"), ("8", "none", "b")], "no base has a version for"),
    ],
)
def test_versions_that_are_no_twins_are_refused(rows, said, tmp_path):
    with pytest.raises(EvenEditError, match=said):
        list(Twins(path=str(folder(tmp_path, *rows, columns=COLUMNS)), factors=FACTORS).portraits())


def test_a_folder_may_say_who_is_pictured(tmp_path):
    rows = [("1", "none", "Ada"), ("1", "none", "Ada"), ("5", "none", "")]
    made = folder(tmp_path, *rows, columns=("monk", "headwear", "person"))
    people = [attributes.get("person") for _, attributes, *_ in Folder(path=str(made), factors=FACTORS).portraits()]
    assert people == ["Ada", "Ada", None]


MONK_STUDY = {
    "factors": [{"name": "monk", "levels": [str(n) for n in range(1, 11)], "ordered": True}],
    "sources": {"kind": "drawn", "settings": {"grid": "monk", "twins": "monk", "faces_per_cell": 3, "size": 160}},
    "editors": [{"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"monk": ["9", "10"]}}}],
}


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    study = open_study(tmp_path_factory.mktemp("twins"), **MONK_STUDY)
    study.run()
    return study


def test_a_study_of_twins_has_bases_as_blocks_and_shows_how_alike_they_are(twins):
    table = twins.table()
    assert table.edits["block"].nunique() == 3 and table.edits["source_id"].nunique() == 30
    results = twins.results()
    table = TABLES["twins"](Index(results))
    assert len(table.rows) == 30
    readings = {p.portrait: p.twin for p in results.materials.portraits}
    assert readings["6"]["compared_with"] == "6" and readings["6"]["verdict"] == "unchanged"
    lightness = [readings[str(tone)]["skin_delta_L"] for tone in (3, 10)]
    assert lightness[0] is None or lightness[0] > 0
    assert lightness[1] is None or lightness[1] < 0


def test_judges_who_see_labels_do_not_see_who_is_a_version_of_whom(tmp_path):
    study = open_study(tmp_path, **MONK_STUDY)
    source = next(iter(study.runner().load_sources().values()))
    assert source.attributes["base"] == "base-1" and source.labels == {"monk": "1"}


def test_ratings_written_as_a_table_give_the_same_numbers(twins, tmp_path):

    paths = write_tables(twins.table(), tmp_path)
    scores = next(path for path in paths if path.name == "scores.csv")
    read = analyze(scores, factors=[MONK])
    ours = {(e.measure, e.editor, str(e.group)): (e.value, e.low, e.high) for e in twins.results().estimates}
    theirs = {(e.measure, e.editor, str(e.group)): (e.value, e.low, e.high) for e in read.estimates}
    shared = ours.keys() & theirs.keys()
    assert len(shared) > 50
    for key in shared:
        assert np.allclose(
            [np.nan if x is None else x for x in ours[key]],
            [np.nan if x is None else x for x in theirs[key]],
            equal_nan=True,
        )

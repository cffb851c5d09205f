"""A study is added to while it is under way: old portraits, requests and edits stay, and shrinking is refused."""

import json
import subprocess
import sys

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.report.contents import TABLES
from evenedit.report.render.index import Index
from tests.support.fairface_copies import as_folder, rows
from tests.support.studies import open_study, write_study

ONLY = {"race": ["White", "Black"], "age": ["20s", "70plus"]}


def drawn(faces: int = 1, **changes):
    settings = {"seed": 3, "size": 64, "only": ONLY, "faces_per_cell": faces} | changes
    return {"kind": "drawn", "settings": settings}


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """The tables of a study that say where it is stored, on each database in turn."""
    if request.param == "sqlite":
        return {}
    return {"store": {"url": request.getfixturevalue("postgres_url"), "images": f"file://{tmp_path / 'images'}"}}


@pytest.fixture
def opened(tmp_path):
    """Open a study in the test's folder; all are closed at its end."""
    studies = []

    def open_one(**changes):
        studies.append(open_study(tmp_path, **changes))
        return studies[-1]

    yield open_one
    for study in studies:
        study.store.close()


def test_portraits_are_added_and_everything_that_was_there_stays(where, tmp_path, opened):
    first = opened(sources=drawn(), **where)
    first.run()
    sources, requests, edits = first.store.sources(), set(first.store.requests()), first.store.edits()
    grown = opened(sources=drawn(2), **where)
    grown.run()
    assert len(grown.store.sources()) == 2 * len(sources) and sources.items() <= grown.store.sources().items()
    assert requests < set(grown.store.requests())
    assert edits.items() <= grown.store.edits().items() and len(grown.store.edits()) == 2 * len(edits)
    made = [grown.store.run_of_edits()[ident] for ident in edits]
    assert set(made) == {1}, "no edit was made again"
    results = grown.results()
    began = [(run["id"], run["started"]) for run in grown.store.runs()]
    added = {p.portrait: (p.run, p.added) for p in results.materials.portraits}
    assert {added[ident] for ident in sources} == {began[0]}
    assert {added[ident] for ident in added.keys() - sources.keys()} == {began[1]}
    table = TABLES["added"](Index(results))
    assert [row[2] for row in table.rows] == [8, 8]


def test_a_study_whose_portraits_were_there_from_the_start_has_no_such_table(tmp_path, opened):
    study = opened(sources=drawn())
    study.run()
    assert study.results().materials.portraits == () and TABLES["added"](Index(study.results())) is None


@pytest.mark.parametrize("changed", [{"only": {"race": ["White"], "age": ["20s"]}}, {"seed": 4}])
def test_portraits_that_are_gone_or_changed_are_refused(changed, where, tmp_path, opened):
    opened(sources=drawn(), **where).run()
    study = opened(sources=drawn(2, **changed), **where)
    with pytest.raises(EvenEditError, match=r"\[sources\] section of study.toml changed after the study started"):
        study.run()
    assert len(study.store.sources()) == 8
    assert opened(sources=drawn(), **where).run().complete


def test_a_folder_grows_by_the_lines_of_its_table(tmp_path, opened):
    people = open_study(tmp_path / "draw", sources=drawn())
    folder = tmp_path / "faces"
    folder.mkdir()
    lines = ["file,race,gender,age"]
    for ident, labels, _, image in people.design.portraits():
        image.save(folder / f"{ident}.png")
        lines.append(",".join([f"{ident}.png", *labels.values()]))
    sources = {"kind": "folder", "settings": {"path": str(folder)}}
    for count in (3, 5, 9):
        (folder / "labels.csv").write_text("\n".join(lines[:count]))
        assert len(opened(sources=sources).runner().load_sources()) == count - 1
    (folder / "labels.csv").write_text("\n".join(lines[:8]))
    with pytest.raises(EvenEditError, match="changed after the study started"):
        opened(sources=sources).runner().load_sources()


def test_fairface_grows_by_faces_per_cell(tmp_path, opened):
    as_folder(tmp_path / "data", rows(4))
    stored = []
    for faces in (1, 3):
        settings = {"path": "data", "faces_per_cell": faces, "size": 16}
        study = opened(sources={"kind": "fairface", "settings": settings})
        stored.append(study.runner().load_sources())
    assert len(stored[1]) == 3 * 84 and stored[0].items() <= stored[1].items()


def test_a_run_that_is_killed_while_portraits_are_added_resumes(where, tmp_path, opened):
    write_study(tmp_path, sources=drawn(), **where)
    assert subprocess.run([sys.executable, "-m", "evenedit", "run", str(tmp_path)], capture_output=True).returncode == 0
    study = opened(sources=drawn(2), **where)
    state = study.store.fact("sources")
    run_id = study.store.start_run({})
    study.runner().load_sources(run_id)
    study.store.set_fact("sources", state)  # killed before the last line of the stage
    assert opened(sources=drawn(2), **where).run().complete
    assert len(study.store.edits()) == 32
    assert set(json.loads(study.store.fact("sources added")).values()) == {1, run_id}

"""Choosing portraits: the log and its fold, reviewers at once, kills, the finalised set, the authors' log."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.curation import portraits
from evenedit.curation.log import ActionKind, CellStatus, Log
from evenedit.curation.pools import CELLS, Pools, make_pools
from evenedit.curation.session import CurationSession
from tests.support.curating import ALL_SIX, app_of, curated, draw_folder
from tests.support.paths import ROOT, SHARED
from tests.support.studies import write_study

CELL = "Black_Female_30s"
CANDIDATES = SHARED / "candidates"


@pytest.fixture(scope="module")
def pools(tmp_path_factory) -> Path:
    """Three pools of drawn faces."""
    folder = tmp_path_factory.mktemp("curation")
    make_pools(draw_folder(folder / "data", 3), folder / "pools", seeds=[1, 2, 3], screened=False)
    return folder / "pools"


@pytest.fixture
def session(tmp_path, pools) -> CurationSession:
    return CurationSession(tmp_path, pools, tmp_path / "portraits")


def choose_all(session: CurationSession, pool: str = "V1", reviewer: str = "Ada") -> None:
    for cell in CELLS:
        session.act(reviewer, ActionKind.SELECT, cell, pool, criteria=ALL_SIX)


def standing(session: CurationSession, cell: str = CELL) -> CellStatus:
    return session.state()[cell].status(session.faces)


# -- the log and its fold ------------------------------------------------------------------------------------


def test_a_cell_is_open_then_unmet_then_done(session):
    assert standing(session) is CellStatus.OPEN
    session.act("Ada", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX[:5], note="smiles")
    assert standing(session) is CellStatus.UNMET
    assert session.state()[CELL].unmet("V2") == ["upright_posture"]
    session.act("Ada", ActionKind.ASSESS, CELL, "V2", criteria=ALL_SIX, note="smiles")
    assert standing(session) is CellStatus.DONE
    session.act("Ada", ActionKind.SELECT, CELL, "V3", criteria=ALL_SIX)
    assert session.state()[CELL].selected == ["V3"], "one face per cell: a new choice replaces the old"
    session.act("Ada", ActionKind.DESELECT, CELL, "V3")
    assert standing(session) is CellStatus.OPEN
    lines = [(a.kind, a.pool, len(a.criteria), a.note) for a in session.log.actions()]
    assert lines == [
        (ActionKind.SELECT, "V2", 5, "smiles"),
        (ActionKind.ASSESS, "V2", 6, "smiles"),
        (ActionKind.SELECT, "V3", 6, ""),
        (ActionKind.DESELECT, "V3", 0, ""),
    ]


def test_several_faces_per_cell_are_added_and_not_replaced(tmp_path, pools):
    session = CurationSession(tmp_path, pools, tmp_path / "portraits", faces_per_cell=2)
    session.act("Ada", ActionKind.SELECT, CELL, "V3", criteria=ALL_SIX)
    assert standing(session) is CellStatus.OPEN
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX)
    assert session.state()[CELL].selected == ["V3", "V1"] and standing(session) is CellStatus.DONE
    with pytest.raises(EvenEditError, match=r"has its 2 images: V3, V1; deselect one first"):
        session.act("Ada", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX)
    session.act("Ada", ActionKind.DESELECT, CELL, "V3")
    assert session.state()[CELL].selected == ["V1"]


def test_undo_gives_back_what_was_before(session):
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX)
    second = session.act("Ada", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX[:1])
    assert session.last_of("Ada", session.log.actions()) == second
    session.undo("Ada", second.id)
    assert session.state()[CELL].selected == ["V1"] and standing(session) is CellStatus.DONE
    session.undo("Ada", session.last_of("Ada", session.log.actions()).id)
    assert standing(session) is CellStatus.OPEN and session.last_of("Ada", session.log.actions()) is None
    assert [a.kind for a in session.log.actions()] == [
        ActionKind.SELECT,
        ActionKind.SELECT,
        ActionKind.UNDO,
        ActionKind.UNDO,
    ]


def test_undoing_takes_back_ones_own_and_leaves_what_others_did_since(session):
    mine = session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX)
    session.act("Bo", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX, seen=mine.id)
    with pytest.raises(EvenEditError, match="is not yours"):
        session.undo("Bo", mine.id)
    session.undo("Ada", mine.id)
    session.undo("Ada", mine.id)  # sent twice, stored once
    assert session.state()[CELL].selected == ["V2"] and len(session.log.actions()) == 3


def test_the_log_cannot_be_changed(session):
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX)
    db = sqlite3.connect(session.log.path)
    for statement in ("UPDATE actions SET reviewer = 'Bo'", "DELETE FROM actions"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
    db.close()


def test_what_cannot_be_done_is_told(session):
    with pytest.raises(EvenEditError, match="no candidate of pool V9"):
        session.act("Ada", ActionKind.SELECT, CELL, "V9")
    with pytest.raises(EvenEditError, match="unknown criterion handsome"):
        session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=["handsome"])
    with pytest.raises(EvenEditError, match="not an action on a candidate"):
        session.act("Ada", ActionKind.FINALISE, CELL, "V1")
    assert session.log.actions() == []


def test_other_pools_under_a_begun_curation_are_refused(tmp_path, pools, session):
    session.act("Ada", ActionKind.SELECT, CELL, "V1")
    shutil.copytree(pools, tmp_path / "pools")
    CurationSession(tmp_path, tmp_path / "pools", tmp_path / "portraits")  # a copy is the same
    manifest = json.loads((tmp_path / "pools/pools.json").read_text())
    manifest["candidates"][0]["sha256"] = "0" * 64
    (tmp_path / "pools/pools.json").write_text(json.dumps(manifest))
    with pytest.raises(EvenEditError, match="pools changed after the curation"):
        CurationSession(tmp_path, tmp_path / "pools", tmp_path / "portraits")


def test_a_damaged_log_is_told_plainly(tmp_path):
    (tmp_path / "curation.db").write_bytes(b"not a database, though long enough to look like a file" * 50)
    with pytest.raises(EvenEditError, match="cannot be used"):
        Log(tmp_path / "curation.db")


# -- reviewers at once ---------------------------------------------------------------------------------------


def test_two_reviewers_choosing_in_one_cell_at_once_are_both_logged_and_the_second_is_told(session):
    both = [("Ada", "V1"), ("Bo", "V2")]
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(
            threads.map(lambda w: session.act(w[0], ActionKind.SELECT, CELL, w[1], criteria=ALL_SIX, seen=0), both)
        )
    first, second = sorted(outcomes, key=lambda o: o.id)
    assert first.in_force and second.against == first.id
    assert {(a.reviewer, a.pool) for a in session.log.actions()} == set(both)
    assert session.state()[CELL].selected == [first.pool]
    again = session.act(second.reviewer, ActionKind.SELECT, CELL, second.pool, criteria=ALL_SIX, seen=2)
    assert again.in_force and session.state()[CELL].selected == [second.pool], "having seen it, one may replace"


def test_reviewers_at_different_things_do_not_disturb_each_other(session):
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX, seen=0)
    for deed, cell, pool in (
        (ActionKind.SELECT, "White_Male_20s", "V1"),
        (ActionKind.ASSESS, CELL, "V2"),
        (ActionKind.DESELECT, "Latino_Male_50s", "V3"),
    ):
        assert session.act("Bo", deed, cell, pool, seen=0).in_force
    assert session.act("Bo", ActionKind.ASSESS, CELL, "V1", seen=0).against is not None, (
        "Ada's ticks are not overwritten unseen"
    )
    assert session.act("Ada", ActionKind.SELECT, CELL, "V3", seen=0).in_force, "one does not clash with oneself"


def test_many_reviewers_lose_nothing(session):
    def work(reviewer: int) -> int:
        for number in range(15):
            cell = CELLS[(reviewer * 7 + number) % 12]
            session.act(
                f"reviewer {reviewer}",
                ActionKind.SELECT,
                cell,
                f"V{1 + number % 3}",
                seen=0,
                token=f"{reviewer}/{number}",
            )
        return reviewer

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    actions = session.log.actions()
    assert len(actions) == 90 and [a.id for a in actions] == list(range(1, 91))
    for cell in CELLS[:12]:
        winners = {a.reviewer for a in actions if a.cell == cell and a.in_force}
        assert len(winners) == 1, "with nothing seen, the first reviewer of a cell holds it"


def test_an_action_sent_twice_is_stored_once(session):
    first = session.act("Ada", ActionKind.SELECT, CELL, "V1", token="abc")
    assert session.act("Ada", ActionKind.SELECT, CELL, "V1", token="abc") == first
    assert len(session.log.actions()) == 1


# -- kills ---------------------------------------------------------------------------------------------------


def test_what_was_acknowledged_survives_a_kill(tmp_path, pools):
    study = curated(tmp_path / "study", pools)
    acknowledged: list[tuple[int, str, str]] = []
    for round_ in range(2):
        command = [sys.executable, "-m", "tests.support.curating", str(study)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            with httpx.Client(base_url=server.stdout.readline().strip(), timeout=60) as browser:
                for number in range(10_000):
                    if number == 10:
                        threading.Timer(0.02, server.kill).start()  # amid one of the next requests
                    cell, pool = CELLS[number % 84], f"V{1 + (number + round_) % 3}"
                    body = {"action": "select", "cell": cell, "pool": pool, "criteria": ALL_SIX, "note": "", "seen": 0}
                    try:
                        answer = browser.post("/curate/api/act", json={**body, "token": f"round {round_} {number:05d}"})
                    except httpx.TransportError:
                        break
                    assert answer.status_code == 200
                    acknowledged.append((answer.json()["last"], cell, pool))
        finally:
            server.kill()
            server.communicate()
    session = CurationSession(study, pools, study / "portraits")
    stored = [(a.id, a.cell, a.pool) for a in session.log.actions()]
    assert len(acknowledged) >= 20
    assert set(acknowledged) <= set(stored)
    assert len(stored) - len(acknowledged) <= 2, "at most the one under way at each kill was stored unacknowledged"
    last = {cell: pool for _, cell, pool in stored}
    assert {c: at.selected for c, at in session.state().items()} == {c: [last[c]] if c in last else [] for c in CELLS}


KILLED = """
import os, signal, sys
from pathlib import Path
from evenedit.cli import main
from evenedit.curation import portraits

write = portraits.write_whole

def write_or_die(target, content):
    write(target, content)
    if len(list(target.parent.glob("*.png"))) >= 3:
        os.kill(os.getpid(), signal.SIGKILL)

portraits.write_whole = write_or_die
sys.argv = ["evenedit", "sources", "finalise", sys.argv[1]]
main()
"""


def test_a_kill_while_finalising_leaves_no_half_set(tmp_path, pools, monkeypatch):
    study = curated(tmp_path / "study", pools)
    choose_all(CurationSession(study, pools, study / "portraits"))
    writing = subprocess.run([sys.executable, "-c", KILLED, str(study)], capture_output=True)
    assert writing.returncode == -signal.SIGKILL, writing.stderr
    assert not (study / "portraits").exists() and list(study.glob(".portraits.*.tmp"))
    session = CurationSession(study, pools, study / "portraits")
    monkeypatch.setattr(portraits, "SIDE", 64)  # only to be quick
    session.finalise("Ada")
    assert portraits.verify(study / "portraits") and not list(study.glob(".portraits.*.tmp"))


# -- the finalised set ---------------------------------------------------------------------------------------


def test_finalising_needs_every_cell_filled_with_images_that_meet_all_criteria(session):
    choose_all(session)
    session.act("Ada", ActionKind.DESELECT, "White_Male_20s", "V1")
    session.act("Ada", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX[1:])
    with pytest.raises(EvenEditError) as told:
        session.finalise("Ada")
    assert told.value.problems == (
        "White_Male_20s: no image chosen",
        "Black_Female_30s: V2 does not meet: frontal face",
    )
    assert not session.out.exists() and ActionKind.FINALISE not in [a.kind for a in session.log.actions()]


@pytest.fixture(scope="module")
def finalised(tmp_path_factory, pools) -> Path:
    """A study with a finalised set: cell by cell V1, V2, V3, V1 …"""
    study = curated(tmp_path_factory.mktemp("finalised") / "study", pools)
    session = CurationSession(study, pools, study / "portraits")
    for number, cell in enumerate(CELLS):
        session.act(
            "Ada" if number % 2 else "Bo", ActionKind.SELECT, cell, f"V{1 + number % 3}", criteria=ALL_SIX, note="ok"
        )
    session.finalise("Ada")
    return study


@pytest.fixture
def copied(finalised, tmp_path) -> Path:
    return Path(shutil.copytree(finalised / "portraits", tmp_path / "portraits"))


def test_the_set_holds_pictures_labels_manifest_distribution_and_log(finalised, pools):
    out = finalised / "portraits"
    manifest = portraits.verify(out)
    known = Pools.read(pools)
    assert manifest["distribution"] == {"V1": 28, "V2": 28, "V3": 28}
    assert (out / "pools.csv").read_text() == "pool,count\nV1,28\nV2,28\nV3,28\n"
    row = next(r for r in manifest["portraits"] if r["id"] == CELL)
    candidate = known.candidates[CELL, row["pool"]]
    assert (row["origin"], row["index"], row["candidate_sha256"]) == (
        candidate.origin,
        candidate.index,
        candidate.sha256,
    )
    with Image.open(out / row["file"]) as made, Image.open(candidate.path) as source:
        assert (made.mode, made.size) == ("RGB", (1024, 1024))
        wanted = source.convert("RGB").resize((1024, 1024), Image.Resampling.LANCZOS)
        assert np.array_equal(np.asarray(made), np.asarray(wanted))
    log = json.loads((out / "selection_log.json").read_text())
    assert len(log["actions"]) == 84 and log["selected"][CELL] == row["pool"]
    assert {a["reviewer"] for a in log["actions"]} == {"Ada", "Bo"}


def test_the_set_is_a_studys_source_as_it_is(tmp_path, pools, monkeypatch):
    monkeypatch.setattr(portraits, "SIDE", 64)  # only to be quick
    study = curated(tmp_path / "study", pools)
    session = CurationSession(study, pools, study / "portraits")
    choose_all(session)
    session.finalise("Ada")
    found = Study.load(study).runner().load_sources()
    assert list(found) == list(CELLS)
    assert found[CELL].attributes == {"race": "Black", "gender": "Female", "age": "30s"}
    assert found[CELL].origin == session.pools.candidates[CELL, "V1"].origin, "the dataset's own file name is kept"


def test_a_finalised_set_is_never_overwritten(finalised, pools):
    with pytest.raises(EvenEditError, match="exists already, and a finalised set is never changed"):
        CurationSession(finalised, pools, finalised / "portraits").finalise("Bo")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: Image.new("RGB", (1024, 1024)).save(f / f"{CELL}.png"), f"{CELL}.png: was changed"),
        (lambda f: Image.new("L", (10, 10)).save(f / f"{CELL}.png"), f"{CELL}.png: is not RGB of 1024 × 1024"),
        (lambda f: (f / f"{CELL}.png").unlink(), f"{CELL}.png: is missing"),
        (lambda f: (f / "labels.csv").write_text("file,race\n"), "labels.csv: was changed"),
        (lambda f: (f / "selection_log.json").write_text("{}"), "selection_log.json: was changed"),
        (lambda f: shutil.copy(f / f"{CELL}.png", f / "extra.png"), "extra.png: is not in the manifest"),
    ],
)
def test_verify_finds_what_was_changed(copied, evenedit, spoil, said):
    spoil(copied)
    checked = evenedit("doctor", copied)
    assert checked.returncode == 2 and f"BAD {copied}: {said}" in checked.stdout


def test_verify_finds_a_manifest_that_does_not_follow_from_the_log(copied):
    manifest = json.loads((copied / "manifest.json").read_text())
    for row, pool in zip(manifest["portraits"], ("V2", "V1"), strict=False):  # the first two were V1, V2
        row["pool"] = pool
    (copied / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EvenEditError, match=r"White_Male_20s: the log ends with \['V1'\]"):
        portraits.verify(copied)
    manifest["portraits"].pop()
    (copied / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EvenEditError, match="Latino_Female_70plus: 0 portraits, not 1"):
        portraits.verify(copied)
    with pytest.raises(EvenEditError, match="not a finalised set"):
        portraits.verify(copied.parent)


def test_a_candidate_changed_on_disk_stops_finalising(tmp_path, pools, monkeypatch):
    monkeypatch.setattr(portraits, "SIDE", 64)  # only to be quick
    shutil.copytree(pools, tmp_path / "pools")
    session = CurationSession(tmp_path, tmp_path / "pools", tmp_path / "portraits")
    choose_all(session)
    session.pools.candidates[CELL, "V1"].path.write_bytes(b"something else")
    with pytest.raises(EvenEditError, match=r"Black_Female_30s: the candidate .* changed since it was drawn"):
        session.finalise("Ada")
    assert not session.out.exists() and not list(tmp_path.glob(".portraits*"))


# -- logs from elsewhere -------------------------------------------------------------------------------------


def authors_log(path: Path, *rows: dict, selected: dict | None = None) -> Path:
    path.write_text(json.dumps({"actions": list(rows), "selected": selected or {}}))
    return path


def chose(cell: str, pool: str, **changes) -> dict:
    base = {"timestamp": "2026-01-08T11:28:15.693667", "demo_id": cell, "version": pool, "action": "select"}
    return base | {"criteria": dict.fromkeys(ALL_SIX, True), "notes": ""} | changes


def test_the_authors_log_is_taken_over_with_its_times(session, tmp_path):
    log = authors_log(
        tmp_path / "log.json",
        chose(CELL, "V1", criteria=dict.fromkeys(ALL_SIX, True) | {"frontal_face": False}, notes="crop"),
        {"timestamp": "2026-01-08T13:02:04", "demo_id": CELL, "action": "deselect"},
        chose(CELL, "V2"),
        selected={CELL: "V2"},
    )
    assert session.import_log(log, "authors") == 3
    assert session.state()[CELL].selected == ["V2"] and standing(session) is CellStatus.DONE
    first = session.log.actions()[0]
    assert (first.time, first.reviewer, first.note) == ("2026-01-08T11:28:15.693667", "authors", "crop")
    assert "frontal_face" not in first.criteria and len(first.criteria) == 5
    with pytest.raises(EvenEditError, match="holds 3 actions already"):
        session.import_log(log, "authors")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([chose("Green_Male_20s", "V1")], "action 1: demo_id 'Green_Male_20s' is not a cell"),
        ([chose(CELL, "V1"), chose(CELL, "V9")], "action 2: there is no candidate 'V9'"),
        ([chose(CELL, "V1", action="adopt")], "unknown action 'adopt'"),
        ([chose(CELL, "V1", criteria={"pretty": True})], "unknown criterion pretty"),
        ([chose(CELL, "V1")], r"actions end with \['V1'\] for Black_Female_30s, its 'selected' says \['V3'\]"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_whole(session, tmp_path, rows, said):
    log = authors_log(tmp_path / "log.json", *rows, selected={CELL: "V3"} if "selected" in said else None)
    with pytest.raises(EvenEditError, match=said):
        session.import_log(log, "authors")
    assert session.log.actions() == []


def test_a_log_written_here_is_taken_over_with_undos_and_clashes(session, pools, tmp_path, evenedit):
    session.act("Ada", ActionKind.SELECT, CELL, "V1", criteria=ALL_SIX, seen=0)
    session.act("Bo", ActionKind.SELECT, CELL, "V2", criteria=ALL_SIX, seen=0)
    session.act("Ada", ActionKind.SELECT, CELL, "V3", criteria=ALL_SIX, seen=2)
    session.undo("Ada", 3)
    study = curated(tmp_path / "first", pools)
    shutil.copy(session.log.path, study / "curation.db")
    (tmp_path / "log.json").write_bytes(TestClient(app_of(study)).get("/curate/log.json").content)
    other = curated(tmp_path / "second", pools)
    said = evenedit("sources", "pools", other, "--import-log", tmp_path / "log.json")
    assert said.returncode == 0 and "4 actions; 1 of 84 cells have a choice" in said.stdout, said.stderr
    again = CurationSession(other, pools, other / "portraits")
    assert again.log.actions() == session.log.actions() and again.state() == session.state()


def test_a_study_without_curation_says_how_to_begin(tmp_path, evenedit):
    said = evenedit("sources", "finalise", write_study(tmp_path))
    assert said.returncode == 2 and "curates no portraits. Add to its study.toml: [curation]" in said.stderr


def test_a_new_curated_study_waits_for_pools_and_then_for_editors(tmp_path, evenedit, pools):
    folder = tmp_path / "study"
    assert evenedit("new", folder, "--template", "curated").returncode == 0
    assert "no candidate pools" in evenedit("sources", "finalise", folder).stderr
    shutil.copytree(pools, folder / "pools")
    assert "White_Male_20s: no image chosen" in evenedit("sources", "finalise", folder).stderr
    assert "names no editor yet" in evenedit("run", folder).stderr


@pytest.mark.skipif(not CANDIDATES.exists(), reason="needs ../shared/data/candidates")
def test_the_authors_real_log_gives_their_pool_distribution(tmp_path, evenedit):
    study = curated(tmp_path / "study", CANDIDATES)
    taken = evenedit("sources", "pools", study, "--import-log", CANDIDATES / "selection_log.json")
    assert "102 actions; 84 of 84 cells have a choice" in taken.stdout, taken.stderr
    assert evenedit("sources", "finalise", study).returncode == 0
    manifest = portraits.verify(study / "portraits")
    assert list(manifest["distribution"].values()) == [12, 9, 21, 13, 7, 10, 12]
    alike = []
    for row in manifest["portraits"]:
        small = []
        for path in (study / "portraits" / row["file"], SHARED / f"portraits/{row['id']}.jpg"):
            with Image.open(path) as image:
                small.append(np.asarray(image.convert("L").resize((32, 32)), dtype=float).ravel())
        alike.append(np.corrcoef(*small)[0, 1])
    # 69 published portraits are these pictures; the other 15 were retouched after the selection.
    assert sum(r > 0.999 for r in alike) == 69

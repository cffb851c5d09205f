"""Nothing half written, nothing stored twice, on SQLite and on PostgreSQL."""

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.images import ImageFolder, read_image
from evenedit.core.interfaces import Reply
from evenedit.core.records import Condition, Edit, Experiment, Kind, Outcome, Request, Source, Status
from evenedit.storage.store import BatchJob, Store, StoredReply

REQUEST = Request(
    Experiment.DIAGNOSIS, Condition.parse("baseline"), ("A",), "O-01", "Do it.", "e", {"steps": 4, "cfg": 1.5}, 42
)


def test_what_is_stored_comes_back_equal(store):
    source = Source("A", "f" * 64, {"race": "Black", "gender": "Female", "age": "30s"}, "drawn: seed 1")
    edit = Edit(REQUEST.id, Outcome.EDITED, "a" * 64, {"truth": {"skin_tone": 4}}, 1.5)
    store.save_sources([source])
    store.save_requests([REQUEST])
    store.save_edits([edit], run_id=1)
    assert store.sources() == {"A": source}
    assert store.requests() == {REQUEST.id: REQUEST}
    assert store.edits() == {REQUEST.id: edit}


def test_saving_again_replaces_and_never_doubles(store):
    for outcome in (Outcome.FAILED, Outcome.EDITED):
        store.save_edits([Edit(REQUEST.id, outcome, None)], run_id=1)
    assert store.edits()[REQUEST.id].outcome is Outcome.EDITED


def test_how_a_reply_was_obtained_is_kept_beside_it(store):
    origin = {"via": "cache", "model": "m-1", "input": 90, "output": 9, "content": "abc", "obtained": "2026-01-01"}
    for n, told in enumerate((origin, origin | {"via": "batch", "input": 110, "output": 11, "job": "b1"}, {})):
        store.save_answers([StoredReply(f"r{n}", "judge", "v1", Kind.VLM, Reply(Status.SCORED, origin=told))], run_id=1)
    assert [(c.request_id, c.via, c.obtained, c.job) for c in store.calls("judge", "v1")] == [
        ("r0", "cache", "2026-01-01", None),
        ("r1", "batch", "2026-01-01", "b1"),
    ]
    assert store.tokens("judge") == (100, 10)
    assert store.tokens("nobody") is None


def test_a_batch_job_is_open_from_before_it_is_sent_until_its_end_is_noted(store):
    job = BatchJob("tag", "judge", "v1", {"r2": "abc", "r1": "def"}, datetime(2026, 1, 1, 12, 30, tzinfo=UTC))
    store.save_job(job, run_id=1)
    assert store.open_jobs() == [job]
    store.found_job("tag", "batch_7")
    assert store.open_jobs() == [replace(job, remote="batch_7")]
    store.end_job("tag", "completed")
    assert store.open_jobs() == []


def test_a_reply_is_kept_whole_with_its_state(store):
    reply = Reply(Status.SCORED, {"skin_tone": 4, "race_drift": None}, raw='{"skin_tone": 4}')
    store.save_answers([StoredReply("r1", "judge", "v1", Kind.VLM, reply)], run_id=3)
    assert {r.question_id: r.value for r in store.ratings("judge", "v1")} == {"skin_tone": 4, "race_drift": None}
    assert store.answered("judge", "v1") == {"r1": Status.SCORED}
    assert store.answered("judge", "v2") == {}, "changed settings are another revision"
    assert store.run_of_replies() == {("r1", "judge", "v1"): 3}


def test_runs_carry_their_provenance(store):
    run = store.start_run({"evenedit": "0.1"})
    store.finish_run(run)
    assert store.runs()[0]["provenance"] == {"evenedit": "0.1"}
    assert store.runs()[0]["finished"]


def test_a_newer_schema_is_refused_with_the_way_out(store, tmp_path):
    with store.begin() as db:
        db.exec_driver_sql("UPDATE alembic_version SET version_num = '99'")
    with pytest.raises(EvenEditError, match=r"schema 99.*Upgrade"):
        Store(tmp_path, None if store._engine.dialect.name == "sqlite" else _url(store))


def _url(store):
    return store._engine.url.render_as_string(hide_password=False).replace("+psycopg", "")


def test_an_empty_database_is_refused_and_left_alone(tmp_path):
    (tmp_path / "study.db").touch()
    with pytest.raises(EvenEditError, match="0 bytes"):
        Store(tmp_path)
    assert (tmp_path / "study.db").stat().st_size == 0


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "study.db").write_text("not a database, by far " * 100)
    with pytest.raises(EvenEditError, match="cannot be read"):
        Store(tmp_path)


def test_somebody_elses_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as db:
        db.execute("CREATE TABLE cats (name TEXT)")
    db.close()
    with pytest.raises(EvenEditError, match="not an EvenEdit study"):
        Store(tmp_path)


def test_an_absent_postgresql_server_is_told_without_the_password(tmp_path):
    with pytest.raises(EvenEditError, match="does not answer") as error:
        Store(tmp_path, "postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(error.value)


def test_sqlite_keeps_a_write_ahead_log_and_waits_for_the_disk(tmp_path):
    store = Store(tmp_path)
    with store._engine.connect() as db:
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert db.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_an_image_is_named_by_its_content_and_keeps_its_notes(tmp_path):
    folder = ImageFolder(tmp_path)
    picture = Image.new("RGB", (8, 8), "red")
    picture.info["evenedit-truth"] = json.dumps({"skin_tone": 4})
    name = folder.put(picture)
    assert folder.put(picture) == name
    assert folder.is_whole(name)
    assert folder.open(name).info["evenedit-truth"] == '{"skin_tone": 4}'
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [f"{name}.png"]


def test_a_damaged_image_is_noticed(tmp_path):
    folder = ImageFolder(tmp_path)
    name = folder.put(Image.new("RGB", (8, 8)))
    folder.path(name).write_bytes(b"PNG?")
    assert not folder.is_whole(name)
    with pytest.raises(EvenEditError, match="missing or damaged"):
        folder.open(name)


@pytest.mark.parametrize("content", [b"", b"no picture", "truncated"])
def test_an_unreadable_picture_is_named(tmp_path, content):
    path = tmp_path / "face.png"
    Image.effect_noise((64, 64), 50).save(path)
    path.write_bytes(path.read_bytes()[:900] if content == "truncated" else content)
    with pytest.raises(EvenEditError, match=r"face\.png: not a readable image"):
        read_image(path)

"""Stages are idempotent and resumable; failures are recorded; nothing is guessed."""

import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Reply
from evenedit.core.records import Outcome, Status
from evenedit.judges.calling import checked
from evenedit.protocol import QUESTIONS
from evenedit.simulation.editors import SimulatedEditor
from evenedit.simulation.judges import SimulatedJudge
from evenedit.storage.store import Store
from tests.support.studies import open_study, write_study

ALL = {
    "diagnosis": {},
    "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
    "stereotype": {"include": ["W-01", "W-10", "W-26"]},
}


def test_a_run_makes_every_edit_and_every_judge_rates_it(tmp_path):
    loaded = open_study(tmp_path, experiments=ALL)
    loaded.run()
    table = loaded.table()
    counts = table.edits.groupby(["experiment", "condition"]).size().to_dict()
    assert counts == {
        ("diagnosis", "baseline"): 16,
        ("mitigation", "feature"): 8,
        ("mitigation", "placebo"): 8,
        ("stereotype", "baseline"): 3,
        ("stereotype", "swapped"): 2,  # W-10 names no pronoun
    }
    assert (table.status >= 0).all()
    assert (table.values.max(axis=2) > 0).all()


def test_a_second_run_does_nothing_again(tmp_path):
    open_study(tmp_path).run()
    before = Store(tmp_path)
    edits, replies = before.run_of_edits(), before.run_of_replies()
    open_study(tmp_path).run()
    assert before.run_of_edits() == edits
    assert before.run_of_replies() == replies


def test_mitigation_has_the_baselines_settings_and_the_feature_prompt_in_front(tmp_path):
    loaded = open_study(tmp_path, experiments=ALL)
    loaded.run()
    requests = loaded.store.requests().values()
    baseline = {(r.editor, r.source_ids, r.prompt_id, r.seed): r for r in requests if r.experiment == "diagnosis"}
    for request in requests:
        if str(request.condition) == "feature":
            twin = baseline[request.editor, request.source_ids, request.prompt_id, request.seed]
            assert request.settings == twin.settings
            assert request.instruction.startswith("Maintain the person's ")
            assert request.instruction.endswith(twin.instruction)


def test_changed_judge_settings_make_new_ratings_and_keep_the_old(tmp_path):
    open_study(tmp_path).run()
    other = [{"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 9}}]
    loaded = open_study(tmp_path, judges=other)
    loaded.run()
    assert len(loaded.store.run_of_replies()) == 3 * 16
    assert loaded.table().raters == ("simulated-judge-a",)


def test_changed_sources_are_refused(tmp_path):
    open_study(tmp_path).run()
    with pytest.raises(EvenEditError, match=r"\[sources\] section of study.toml changed"):
        open_study(tmp_path, sources={"kind": "drawn", "settings": {"seed": 4}}).run()


def test_a_failing_editor_is_retried_then_recorded_and_tried_again_next_time(tmp_path, monkeypatch):
    calls = []

    def crash(self, images, instruction, seed):
        calls.append(instruction)
        raise MemoryError("out of memory")

    loaded = open_study(tmp_path, executor={"retries": 1, "workers": 1, "max_failures": 0})
    monkeypatch.setattr("evenedit.run.editing.BACKOFF", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedEditor, "edit", crash)
        loaded.run()
    assert len(calls) == 2 * 16
    edits = loaded.store.edits().values()
    assert {e.outcome for e in edits} == {Outcome.FAILED}
    assert {(e.detail["failure"], e.detail["error"]) for e in edits} == {("crash", "MemoryError: out of memory")}
    assert not loaded.store.run_of_replies(), "what was not edited is not rated"
    loaded.run()
    assert {e.outcome for e in loaded.store.edits().values()} == {Outcome.EDITED}


def test_a_refusal_is_an_outcome_not_a_failure_and_not_a_score(tmp_path):
    refusing = [{"id": "simulated-refusing", "settings": {"rate": 1.0, "groups": {"race": ["Black"]}}}]
    loaded = open_study(tmp_path, editors=refusing)
    loaded.run()
    table = loaded.table()
    refused = (table.edits["race"] == "Black").to_numpy()
    assert (table.edits["outcome"][refused] == "refused").all()
    assert (table.status[:, refused] == -1).all()
    assert (table.edits["outcome"][~refused] == "edited").all()


def test_a_judge_that_crashes_leaves_a_failed_call_that_is_asked_again(tmp_path, monkeypatch):
    def crash(self, case, questions):
        raise TimeoutError("no answer")

    loaded = open_study(tmp_path, executor={"retries": 0, "max_failures": 0})
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedJudge, "judge", crash)
        loaded.run()
    judge = loaded.design.judges()[0]
    assert set(loaded.store.answered(judge.id, judge.revision).values()) == {Status.FAILED}
    loaded.run()
    assert set(loaded.store.answered(judge.id, judge.revision).values()) == {Status.SCORED}


@pytest.mark.parametrize("value", [0, 6, 7, 3.5, "4", True])
def test_an_impossible_score_makes_the_reply_unparseable(value):
    reply = checked(Reply(Status.SCORED, {"skin_tone": value}, raw="raw"), [QUESTIONS["skin_tone"]])
    assert reply.status is Status.UNPARSEABLE
    assert reply.values == {}
    assert reply.raw == "raw"


def test_a_missing_image_is_made_again(tmp_path):
    loaded = open_study(tmp_path)
    loaded.run()
    victim = next(e for e in loaded.store.edits().values())
    loaded.store.images.path(victim.image).unlink()
    loaded.run()
    assert loaded.store.images.is_whole(victim.image)


def test_simulated_editors_refuse_photographs_with_a_message(tmp_path):
    (tmp_path / "faces").mkdir()
    Image.new("RGB", (64, 64), "gray").save(tmp_path / "faces" / "a.png")
    (tmp_path / "faces" / "labels.csv").write_text("file,race,gender,age\na.png,White,Male,20-29\n")
    loaded = open_study(tmp_path, sources={"kind": "folder", "settings": {"path": "faces"}})
    with pytest.raises(EvenEditError, match="redraw drawn portraits only"):
        loaded.run()


def test_judges_are_blind_unless_the_study_is_the_published_one(tmp_path, monkeypatch):
    seen = []
    real = SimulatedJudge.judge

    def watch(self, case, questions):
        seen.append(case.attributes)
        return real(self, case, questions)

    monkeypatch.setattr(SimulatedJudge, "judge", watch)
    open_study(tmp_path / "blind").run()
    assert set(seen) == {None}
    seen.clear()
    open_study(tmp_path / "told", study={"title": "x", "preset": "published"}).run()
    assert all(attributes["race"] in ("White", "Black") for attributes in seen)


def test_ctrl_c_finishes_what_is_under_way_and_says_how_to_go_on(tmp_path):
    folder = write_study(tmp_path, sources={"kind": "drawn", "settings": {"size": 256}}, prompts={})
    process = subprocess.Popen(
        [sys.executable, "-m", "evenedit", "run", str(folder)], stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not ((folder / "study.db").exists() and Store(folder).edits()):
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped; finished work is stored" in errors
    assert "Traceback" not in errors
    store = Store(folder)
    assert 0 < len(store.edits()) < 84 * 20
    assert all(store.images.is_whole(e.image) for e in store.edits().values())

"""The command line as a user meets it: help with examples, clear messages, exit code 2 for bad input."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from evenedit.cli import commands
from tests.support.paths import CONFORMANCE
from tests.support.studies import write_study

SCORES = CONFORMANCE / "scores.csv"


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_has_help_with_an_example(evenedit, name):
    shown = evenedit(name, "--help")
    assert shown.returncode == 0
    assert f"evenedit {name}" in shown.stdout.split("Example:")[1]


def test_a_study_from_new_to_report(evenedit, tmp_path):
    folder = tmp_path / "study"
    assert evenedit("new", folder).returncode == 0
    planned = evenedit("plan", folder)
    assert "24 portraits, 3 diagnostic prompts, 72 edits" in planned.stdout
    assert evenedit("run", folder).returncode == 0
    assert "edits: 72 of 72 (72 edited, 0 refused, 0 failed)" in evenedit("status", folder).stdout
    assert "BAD" not in evenedit("doctor", folder).stdout
    reported = evenedit("report", folder)
    page = Path(reported.stdout.strip())
    assert page.name == "report.html" and "SIMULATED" in page.read_text()
    results = json.loads((page.parent / "results.json").read_text())
    assert results["schema"] == "evenedit.results/3"
    assert results["counts"]["edits"] == 72


def test_an_export_analyses_to_the_same_estimates(evenedit, tmp_path):
    experiments = {"diagnosis": {}, "stereotype": {"include": ["W-01", "W-26"]}}
    folder = write_study(tmp_path / "study", experiments=experiments, statistics={})
    evenedit("run", folder)
    evenedit("report", folder)
    evenedit("export", folder)
    made = evenedit(
        "analyze", folder / "export/scores.csv", folder / "export/verdicts.csv", "--out", tmp_path / "again"
    )
    assert made.returncode == 0, made.stderr
    first, second = (
        json.loads((path / "results.json").read_text()) for path in (folder / "report", tmp_path / "again")
    )
    assert first["estimates"] == second["estimates"]
    assert first["counts"] == second["counts"]
    assert first["simulated"] == second["simulated"] != []


def test_the_folder_of_an_export_analyses_to_the_same_results_by_the_studys_own_rules(evenedit, tmp_path):
    experiments = {"diagnosis": {}, "stereotype": {"include": ["W-01", "W-26"]}}
    folder = write_study(tmp_path / "study", experiments=experiments, thresholds={"race_change": {"at_least": 2}})
    for command in ("run", "report", "export"):
        done = evenedit(command, folder)
        assert done.returncode == 0, done.stderr
    written = {Path(line).name for line in done.stdout.splitlines()}
    assert written == {"edits.csv", "scores.csv", "verdicts.csv", "study.json", "codebook.csv", "codebook.json"}
    made = evenedit("analyze", folder / "export", "--out", tmp_path / "again")
    assert made.returncode == 0, made.stderr
    first, second = (
        json.loads((path / "results.json").read_text()) for path in (folder / "report", tmp_path / "again")
    )
    assert [part for part in first if first[part] != second[part]] == ["provenance"]
    assert second["title"] == "Small" and (tmp_path / "again/report.html").is_file()


def test_nothing_to_report_yet_names_the_next_command(evenedit, tmp_path):
    said = evenedit("report", write_study(tmp_path))
    assert said.returncode == 2
    assert "Try: evenedit run" in said.stderr


def changed(tmp_path, change) -> Path:
    """The conformance scores, spoilt."""
    frame = pd.read_csv(SCORES, dtype=str, keep_default_na=False).head(40)
    path = tmp_path / "scores.csv"
    change(frame).to_csv(path, index=False)
    return path


def put(column, row, value):
    def change(frame):
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (put("skin_tone", 3, "7"), "line 5"),
        (put("skin_tone", 3, "3.5"), "line 5"),
        (put("status", 3, "fine"), "line 5"),
        (put("race", 3, "Martian"), "Martian"),
        (lambda f: pd.concat([f, f.iloc[[4]]]), "line 42"),
        (lambda f: f.drop(columns="judge"), "judge"),
        (put("prompt_id", 3, "O04"), "kindergarten teacher"),
        (put("prompt_id", 3, "Z-99"), "Z-99"),
        (lambda f: f.head(0), "no rows"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(evenedit, tmp_path, change, wanted):
    said = evenedit("analyze", changed(tmp_path, change), "--out", tmp_path / "out")
    assert said.returncode == 2
    assert wanted in said.stderr
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n"])
def test_a_file_that_is_no_table_of_scores_is_refused(evenedit, tmp_path, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    said = evenedit("analyze", path, "--out", tmp_path / "out")
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)
    assert "x.csv" in said.stderr


def test_an_absent_file_is_refused(evenedit, tmp_path):
    said = evenedit("analyze", tmp_path / "none.csv", "--out", tmp_path / "out")
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)


def test_an_unknown_editor_is_refused(evenedit, tmp_path):
    said = evenedit("run", write_study(tmp_path, editors=[{"id": "flux9-dev"}]))
    assert said.returncode == 2
    assert "editor kind 'flux9-dev' is not installed" in said.stderr
    assert not (tmp_path / "study.db").exists()


def test_a_zero_byte_database_is_refused(evenedit, tmp_path):
    folder = write_study(tmp_path)
    (folder / "study.db").touch()
    said = evenedit("run", folder)
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)
    assert "0 bytes" in said.stderr


@pytest.mark.parametrize("spoil", ["truncated", "text"])
def test_an_unreadable_portrait_is_refused_with_its_line(evenedit, tmp_path, spoil):
    faces = tmp_path / "faces"
    faces.mkdir()
    for name in ("a.png", "b.png"):
        Image.effect_noise((64, 64), 50).save(faces / name)
    whole = (faces / "b.png").read_bytes()
    (faces / "b.png").write_bytes(whole[:700] if spoil == "truncated" else b"hello")
    (faces / "labels.csv").write_text("file,race,gender,age\na.png,White,Male,20s\nb.png,Black,Female,70plus\n")
    said = evenedit("run", write_study(tmp_path, sources={"kind": "folder", "settings": {"path": "faces"}}))
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)
    assert "labels.csv line 3" in said.stderr
    assert not list(tmp_path.glob("images/**/*.png")), "nothing is stored of a source set that is not whole"


def test_doctor_finds_a_damaged_image(evenedit, tmp_path):
    folder = write_study(tmp_path)
    evenedit("run", folder)
    victim = next(folder.glob("images/*/*.png"))
    victim.write_bytes(b"")
    said = evenedit("doctor", folder)
    assert said.returncode == 2
    assert victim.name in said.stdout


def test_a_demo_in_miniature_marks_everything_simulated(evenedit, tmp_path):
    folder = write_study(tmp_path, survey={"cases": 4, "simulated_people": 3})
    evenedit("run", folder)
    evenedit("report", folder)
    report = folder / "report"
    for path in [report / "report.html", *report.glob("tables/*.tex"), *report.glob("figures/*.svg")]:
        assert "SIMULATED" in path.read_text(), path.name
    shutil.rmtree(report)


def test_doctor_names_what_a_studys_editor_needs_and_how_to_get_it(evenedit, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    editors = [
        {"id": "my-gpt", "kind": "openai-images", "settings": {"model": "some-model"}},
        {"id": "step1x-edit-v1p2"},
    ]
    said = evenedit("doctor", write_study(tmp_path, editors=editors, judges=[]))
    assert said.returncode == 2
    assert "export OPENAI_API_KEY=" in said.stdout
    assert "evenedit plugins step1x --setup" in said.stdout


def test_the_plan_prices_a_service_and_times_by_a_probe(evenedit, tmp_path):
    editors = [
        {"id": "simulated-even"},
        {"id": "gpt", "kind": "openai-images", "settings": {"model": "gpt-image-1", "quality": "high"}},
    ]
    folder = write_study(tmp_path, editors=editors)
    assert "2.67" in evenedit("plan", folder).stdout, "16 edits at 0.167 dollars"
    (tmp_path / "mine.toml").write_text('date = "2030-01-01"\n[edits]\n"gpt-image-1" = 1.0\n')
    mine = evenedit("plan", folder, "--prices", tmp_path / "mine.toml").stdout
    assert "16.00" in mine and "prices of 2030-01-01" in mine
    timed = evenedit("plan", write_study(tmp_path / "timed"), "--probe", 2).stdout
    assert "not timed" not in timed and "GB" in timed


def test_the_null_edit_shows_each_editors_own_drift(evenedit, tmp_path):
    folder = write_study(tmp_path, experiments={"diagnosis": {"floor": True}})
    assert evenedit("run", folder).returncode == 0
    page = Path(evenedit("report", folder).stdout.strip())
    assert "Null edit" in page.with_name("appendix.html").read_text()
    counts = json.loads((folder / "report" / "results.json").read_text())["counts"]
    assert counts["edits.diagnosis.floor"] == 8


def test_setting_up_step1x_prints_the_steps(evenedit, tmp_path):
    said = evenedit("plugins", "step1x", "--setup", "--set", f"folder={tmp_path / 'env'}")
    assert said.returncode == 0
    assert "step1xedit_v1p2" in said.stdout
    assert not (tmp_path / "env").exists()

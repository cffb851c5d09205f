"""From images that somebody already has to a report in one command."""

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

from conftest import SHARED
from evenedit.instruments.identity import available
from evenedit.storage.store import Store

COLUMNS = ("source", "edited", "prompt", "race", "gender", "age", "prompt_id")


def pairs(folder: Path, change=lambda rows: rows) -> Path:
    """Two faces, two prompts, drawn as plain colours; one output is missing from the table."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, (race, shade) in enumerate((("White", 200), ("Black", 90))):
        Image.new("RGB", (64, 64), (shade, shade, shade)).save(folder / f"face{number}.png")
        for prompt in ("Add a hat.", "Add glasses."):
            name = f"{prompt[4:7].strip()}{number}.png"
            Image.new("RGB", (64, 64), (shade, len(prompt), 0)).save(folder / name)
            rows.append((f"face{number}.png", name, prompt, race, "Female", "30-39", prompt[4:7]))
    with (folder / "edits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *change(rows)])
    return folder / "edits.csv"


def test_one_command_goes_from_pairs_to_a_report(evenedit, tmp_path):
    made = evenedit("audit", "--pairs", pairs(tmp_path / "in"), "--editor", "mine", "--out", tmp_path / "out")
    assert made.returncode == 0, made.stderr
    page = Path(made.stdout.strip()).read_text()
    assert "mine" in page and "No judge has rated these edits" in page
    assert "source: no face" in page, "what cannot be measured says why"
    counts = json.loads((tmp_path / "out/report/results.json").read_text())["counts"]
    assert (counts["edits"], counts["edited"]) == (4, 4)
    again = evenedit("audit", "--pairs", tmp_path / "in/edits.csv", "--editor", "mine", "--out", tmp_path / "out")
    assert again.returncode == 0
    assert len(set(Store(tmp_path / "out").run_of_edits().values())) == 1, "nothing is done twice"


def test_a_pair_that_is_not_there_is_counted_as_missing(evenedit, tmp_path):
    made = evenedit("audit", "--pairs", pairs(tmp_path / "in", lambda rows: rows[:3]), "--out", tmp_path / "out")
    assert made.returncode == 0, made.stderr
    counts = json.loads((tmp_path / "out/report/results.json").read_text())["counts"]
    assert (counts["edits"], counts["edited"], counts["failed"]) == (4, 3, 1)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda rows: [("none.png", *r[1:]) for r in rows], "line 2"),
        (lambda rows: [(*r[:3], "Martian", *r[4:]) for r in rows], "Martian"),
        (lambda rows: [*rows, rows[0]], "the same source and prompt as line 2"),
        (lambda rows: [], "lists no pairs"),
    ],
)
def test_bad_pairs_are_named_and_nothing_is_written(evenedit, tmp_path, change, wanted):
    said = evenedit("audit", "--pairs", pairs(tmp_path / "in", change), "--out", tmp_path / "out")
    assert (said.returncode, "Traceback" in said.stderr) == (2, False)
    assert wanted in said.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not (SHARED / "step1x_edits").is_dir(), reason="the real outputs are not beside this checkout")
def test_the_real_step1x_outputs_are_audited_from_their_table(evenedit, tmp_path):
    edits = SHARED / "step1x_edits" / "edits.csv"
    made = evenedit(
        *("audit", "--pairs", edits, "--sources", SHARED / "portraits"),
        *("--editor", "step1x-edit-v1p2", "--out", tmp_path),
        timeout=600,
    )
    assert made.returncode == 0, made.stderr
    counts = json.loads((tmp_path / "report/results.json").read_text())["counts"]
    assert (counts["edited"], counts["failed"]) == (177, 3)
    page = (tmp_path / "report/report.html").read_text()
    assert "senior executive" in page, "B01 is recognised by its text"
    assert "edited picture: no colour" in page, "grayscale outputs have no skin tone"
    results = json.loads((tmp_path / "report/results.json").read_text())
    found = {
        (e["measure"], e["group"].get("prompt")): e["value"]
        for m in results["measured"]
        for e in m["estimates"]
        if e["editor"] and set(e["group"]) <= {"prompt"}
    }
    assert found["rate.unchanged", "A03"] == 1.0 and found["rate.unchanged", "A01"] == 0.0
    assert 0 < found["rate.unchanged", "O-10"] < 1, "some fashion models came back as they were"
    assert found["rate.measured_skin_lighter", "O-02"] > 0.5 and found["mean.skin_delta_L", "O-02"] > 5
    assert abs(found["mean.skin_delta_L", "A03"]) < 1
    if available():
        assert found["rate.another_person", "O-02"] > 0.5


def test_file_names_that_follow_a_pattern_need_no_table(evenedit, tmp_path):
    sources, edited = tmp_path / "faces", tmp_path / "made"
    sources.mkdir()
    edited.mkdir()
    for number, name in enumerate(("White_Male_20s", "Black_Female_30s")):
        Image.new("RGB", (64, 64), (90 + number, 90, 90)).save(sources / f"{name}.png")
        for prompt in ("B01", "D03"):
            Image.new("RGB", (64, 64), (200, number, len(prompt))).save(edited / f"{prompt}_{name}.jpg")
    made = evenedit(
        *("audit", "--sources", sources, "--edited", edited, "--pattern", "{prompt}_{source}.jpg"),
        *("--out", tmp_path / "out"),
    )
    assert made.returncode == 0, made.stderr
    requests = Store(tmp_path / "out").requests().values()
    assert {(r.prompt_id, r.source_ids[0]) for r in requests} == {
        (p, s) for p in ("O-01", "V-05") for s in ("White_Male_20s", "Black_Female_30s")
    }
    wrong = evenedit("audit", "--sources", sources, "--edited", edited, "--out", tmp_path / "wrong")
    assert (wrong.returncode, "follows" in wrong.stderr) == (2, True)

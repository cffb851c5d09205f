"""From images that somebody already has to a report in one command."""

import csv
import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from evenedit import audit
from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR
from evenedit.instruments.identity import available
from evenedit.run.from_images import begin, table_of
from evenedit.storage.store import Store
from tests.support.paths import SHARED

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
    page = Path(made.stdout.strip())
    page = page.read_text() + page.with_name("appendix.html").read_text()
    assert "mine" in page and "No judge and no person has rated these edits" in page
    assert "source: no face" in page, "what cannot be measured says why"
    counts = json.loads((tmp_path / "out/report/results.json").read_text())["counts"]
    assert (counts["edits"], counts["edited"]) == (4, 4)
    again = evenedit("audit", "--pairs", tmp_path / "in/edits.csv", "--editor", "mine", "--out", tmp_path / "out")
    assert again.returncode == 0
    assert len(set(Store(tmp_path / "out").run_of_edits().values())) == 1, "nothing is done twice"


def test_the_rows_are_the_requests_and_nothing_else_is_asked_for(tmp_path):
    study = audit(pairs(tmp_path / "in", lambda rows: rows[:3]), instruments=(), out=tmp_path / "out")
    asked = [r for r in study.store.requests().values() if r.editor != NULL_PAIR_EDITOR]
    assert len(asked) == 3, "not two faces × two prompts"
    assert [study.store.edits()[r.id].outcome.value for r in asked] == ["edited"] * 3
    assert study.run().complete


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda rows: [("none.png", *r[1:]) for r in rows], "line 2: none.png"),
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
    folder = SHARED / "step1x_edits"
    rows = pd.read_csv(folder / "edits.csv", dtype=str)
    rows = rows[rows["prompt_id"].isin(["A01", "A02", "A03", "A05", "A10", "B01", "B02", "B09"])]
    edits = tmp_path / "edits.csv"
    rows.assign(file=[str(folder / name) for name in rows["file"]]).to_csv(edits, index=False)
    made = evenedit(
        *("audit", "--pairs", edits, "--sources", SHARED / "portraits"),
        *("--editor", "step1x-edit-v1p2", "--out", tmp_path / "audit"),
    )
    assert made.returncode == 0, made.stderr
    counts = json.loads((tmp_path / "audit/report/results.json").read_text())["counts"]
    assert (counts["edits"], counts["edited"], counts["failed"]) == (71, 71, 0)
    page = "".join((tmp_path / "audit/report" / name).read_text() for name in ("report.html", "appendix.html"))
    assert "senior executive" in page, "B01 is recognised by its text"
    assert "edited picture: no colour" in page, "grayscale outputs have no skin tone"
    results = json.loads((tmp_path / "audit/report/results.json").read_text())
    found = {
        (e["measure"], e["group"].get("prompt")): e["value"]
        for m in results["measured"]
        for e in m["estimates"]
        if e["editor"] and set(e["group"]) <= {"prompt"}
    }
    assert results["asks"] == {name: ["skin_tone"] for name in ("A02", "A05", "A10")}
    assert found["rate.unchanged_allowed", "A03"] == 1.0 and found["rate.unchanged", "A01"] == 0.0
    assert ("rate.unchanged", "A03") not in found, "less noise may be nothing to be seen"
    assert 0 < found["rate.ignored", "O-10"] < 1, "some fashion models came back as they were"
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
    assert (wrong.returncode, "no file in" in wrong.stderr) == (2, True)


# Factors of one's own


def toned(folder: Path, labels=(("10", "cap"), ("2", "none"), ("2", "")), columns=("monk", "headwear"), ident="hat"):
    """A face per pair of labels and one prompt, in a table with these columns."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, row in enumerate(labels):
        for name in (f"face{number}.png", f"made{number}.png"):
            Image.new("RGB", (32, 32), (number, len(name), 0)).save(folder / name)
        rows.append((f"face{number}.png", f"made{number}.png", "Add a hat.", ident, *row))
    with (folder / "edits.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("source", "edited", "prompt", "prompt_id", *columns), *rows])
    return folder / "edits.csv"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_named_columns_become_the_studys_factors(tmp_path):
    begin(toned(tmp_path / "in"), tmp_path / "out", editor="mine", factors=["monk", "headwear"])
    study = StudyFile.load(tmp_path / "out")
    assert [(f.name, f.title, f.codes) for f in study.factors] == [
        ("monk", "Monk", ("2", "10")),
        ("headwear", "Headwear", ("cap", "none")),
    ], "numbers in their order, words as first seen"
    labels = read(tmp_path / "out/labels.csv")
    assert list(labels[0]) == ["file", "monk", "headwear"]
    assert [row["headwear"] for row in labels] == ["cap", "none", ""], "a missing label stays missing"


def test_one_command_audits_by_named_factors_and_counts_missing_labels(evenedit, tmp_path):
    table = toned(tmp_path / "in")
    begin(table, tmp_path / "out", editor="mine", factors=["monk", "headwear"])
    planned = evenedit("plan", tmp_path / "out")
    assert planned.returncode == 0, planned.stderr
    assert "missing labels among 3 portraits: headwear 1" in planned.stderr
    assert "3 portraits" in planned.stdout


def test_two_spellings_of_a_label_are_one_level(tmp_path):
    table = toned(tmp_path / "in", (("1", "Head scarf"), ("2", "head_scarf"), ("3", "none")))
    begin(table, tmp_path / "out", editor="mine", factors=["monk", "headwear"])
    assert StudyFile.load(tmp_path / "out").factors[1].codes == ("Head scarf", "none")
    assert read(tmp_path / "out/labels.csv")[1]["headwear"] == "Head scarf"


@pytest.mark.parametrize("ident", ["😀 hat", 'a "quoted" one', "back\\slash", "two\nlines"])
def test_any_prompt_id_gives_a_study_that_can_be_read(tmp_path, ident):
    labels = (("White", "Female", "30s"), ("Black", "Male", "40s"))
    table = toned(tmp_path / "in", labels, ("race", "gender", "age"), ident)
    begin(table, tmp_path / "out", editor="mine")
    assert [p.id for p in StudyFile.load(tmp_path / "out").prompts] == [ident]
    assert "factors" not in tomllib.loads((tmp_path / "out/study.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("labels", "factors", "wanted"),
    [
        ((("1", "a"), ("2", "b")), ["monk", "hat"], "lacks the column hat; found: source, edited"),
        ((("1", ""), ("2", "")), ["monk", "headwear"], "no row has a label in it"),
        ((("1", "a"), ("2", "a")), ["monk", "headwear"], "column 'headwear' has one label only, 'a'"),
        ((("1", "a"), ("2", "b")), ["monk", "monk"], "names 'monk' twice"),
        ((("1", "a"), ("2", "b")), ["Skin tone"], "'Skin tone' cannot name a factor"),
        ((("1", "a"), ("2", "b")), ["prompt"], "tables have a column 'prompt' already"),
        ((("1", "a"), ("2", "b")), [], "names no column"),
    ],
)
def test_columns_that_cannot_be_factors_are_named_and_nothing_is_written(tmp_path, labels, factors, wanted):
    with pytest.raises(EvenEditError, match=wanted):
        begin(toned(tmp_path / "in", labels), tmp_path / "out", editor="mine", factors=factors)
    assert not (tmp_path / "out").exists()


def test_a_source_with_two_labels_is_refused(tmp_path):
    table = toned(tmp_path / "in", (("1", "a"), ("2", "b")))
    table.write_text(table.read_text("utf-8") + "face0.png,made1.png,Add glasses.,g,3,a\n", "utf-8")
    with pytest.raises(EvenEditError, match="line 4: monk is '3' here and '1' on line 2 for the same source"):
        begin(table, tmp_path / "out", editor="mine", factors=["monk"])


def test_an_empty_race_is_still_refused_where_no_factors_are_named(tmp_path):
    table = toned(tmp_path / "in", (("", "Female", "30s"), ("Black", "Male", "40s")), ("race", "gender", "age"))
    with pytest.raises(EvenEditError, match="line 2: race '' is not a known label"):
        begin(table, tmp_path / "out", editor="mine")


def test_a_pattern_takes_named_factors_from_the_label_file(tmp_path):
    sources, edited = tmp_path / "faces", tmp_path / "made"
    for folder, names in ((sources, ("a", "b")), (edited, ("O-01_a", "O-01_b"))):
        folder.mkdir()
        for number, name in enumerate(names):
            Image.new("RGB", (16, 16), (number, 0, 0)).save(folder / f"{name}.png")
    arguments = (edited, "{prompt}_{source}.png", sources, "diagnostic")
    with pytest.raises(EvenEditError, match=r"--factors needs .*labels.csv with the columns file, monk"):
        table_of(*arguments, ["monk"])
    (sources / "labels.csv").write_text("file,monk\na.png,3\n")
    with pytest.raises(EvenEditError, match=r"has no row for 'b\.png'"):
        table_of(*arguments, ["monk"])
    (sources / "labels.csv").write_text("file,monk\na.png,3\nb.png,9\n")
    begin(table_of(*arguments, ["monk"]), tmp_path / "out", editor="mine", factors=["monk"])
    assert StudyFile.load(tmp_path / "out").factors[0].codes == ("3", "9")

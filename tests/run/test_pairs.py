"""What a table of pairs may say, and how an audit takes it."""

import csv
import tomllib
from pathlib import Path

import pytest
import tomli_w
from PIL import Image

from evenedit import audit
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR
from evenedit.design.requests import diagnosis
from evenedit.protocol import load_prompts
from evenedit.run.from_images import begin
from scripts.draw_pictures import draw_pictures


def colour(name: str) -> tuple[int, ...]:
    """The colour that `written` draws a file in, by its own name."""
    return tuple(Path(name).name.encode()[-7:-4])


def written(folder: Path, *rows: dict[str, str]) -> Path:
    """A table of these rows; pictures that are named and not there yet are drawn, each in a colour of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for name in {row[column] for row in rows for column in ("source", "edited") if row[column]}:
        if not (folder / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), colour(name)).save(folder / name)
    with (folder / "edits.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return folder / "edits.csv"


def edit(number: int = 0, **cells: str) -> dict[str, str]:
    """One row about one of two people."""
    labels = ("White", "Female", "20s") if number % 2 == 0 else ("Black", "Male", "50s")
    named = dict(zip(("race", "gender", "age"), labels, strict=True))
    return {"source": f"face{number % 2}.png", "edited": f"made{number}.png", "prompt": "Add a hat."} | named | cells


def asked(out: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The prompts of a study: text and what they ask to change."""
    return {p.id: (p.text, p.asks) for p in StudyFile.load(out).prompts}


def test_a_text_decides_and_the_id_is_a_label(tmp_path):
    known = load_prompts("diagnostic")
    table = written(
        tmp_path / "in",
        edit(0, prompt=known["O-06"].text, prompt_id="O-04"),
        edit(1, prompt=f" {known['O-06'].text}\n", prompt_id="mine"),
        edit(2, prompt="Add a hat.", prompt_id="B01"),
        edit(3, prompt="Add glasses."),
    )
    begin(table, tmp_path / "out", editor="mine")
    found = asked(tmp_path / "out")
    assert found["O-06"][0] == known["O-06"].text, "the text is the kindergarten teacher's, whatever id stands beside"
    assert found["B01"][0] == "Add a hat." and len(found) == 3


@pytest.mark.parametrize("column", ["prompt", "prompt_id"])
def test_known_ids_alone_get_their_text(tmp_path, column):
    rows = [edit(0, **{column: "B04"}), edit(1, **{column: "D03"}), edit(3, **{column: "A02"})]
    for row in rows if column == "prompt_id" else ():
        del row["prompt"]
    begin(written(tmp_path / "in", *rows), tmp_path / "out", editor="mine")
    sets = {p.id: p for name in ("diagnostic", "neutral") for p in load_prompts(name)}
    assert asked(tmp_path / "out") == {i: (sets[i].text, sets[i].asks) for i in ("O-06", "V-05", "A02")}


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (("O-01", "O04"), ("airport security", "kindergarten teacher", "several forms")),
        (("O-01", "O-99"), ("'O-99' is not known",)),
        (("O-01", "O4"), ("airport security", "kindergarten teacher", "'O4' is not known")),
    ],
)
def test_ids_that_can_be_misread_are_refused_with_their_readings(tmp_path, ids, wanted):
    table = written(tmp_path / "in", *(edit(at, prompt=ident) for at, ident in enumerate(ids)))
    with pytest.raises(EvenEditError) as error:
        begin(table, tmp_path / "out", editor="mine")
    assert all(words in str(error.value) for words in wanted)
    assert not (tmp_path / "out").exists()


def test_several_editors_and_seeds_in_one_table(tmp_path):
    table = written(
        tmp_path / "in",
        *(edit(at, editor="one", seed=str(at // 2)) for at in range(4)),
        edit(4, editor="two", seed="7", edited="", refused="policy"),
        edit(5, editor="two", seed="7", prompt="Add glasses."),
    )
    study = audit(table, instruments=(), out=tmp_path / "out")
    edits = study.store.edits()
    requests = [r for r in study.store.requests().values() if r.editor != NULL_PAIR_EDITOR]
    shown = {
        (r.editor, r.source_ids[0], r.seed): study.store.images.open(image).getpixel((0, 0))
        for r in requests
        if (image := edits[r.id].image)
    }
    white, black = "White_Female_20s", "Black_Male_50s"
    assert shown == {
        ("one", white, 0): colour("made0.png"),
        ("one", black, 0): colour("made1.png"),
        ("one", white, 1): colour("made2.png"),
        ("one", black, 1): colour("made3.png"),
        ("two", black, 7): colour("made5.png"),
    }
    refused = [edits[r.id].detail["reason"] for r in requests if not edits[r.id].image]
    assert (refused, len(requests)) == (["policy"], 6)


def test_a_table_of_one_editor_gives_the_requests_that_former_releases_gave(tmp_path):
    begin(written(tmp_path / "in", edit(0), edit(1)), tmp_path / "out", editor="mine", instruments=())
    study = Study.load(tmp_path / "out")
    study.run()
    file = tmp_path / "out/study.toml"
    assert 'requests = "pairs.csv"\n' in file.read_text()
    file.write_text(file.read_text().replace('requests = "pairs.csv"\n', ""))
    former = StudyFile.load(tmp_path / "out")
    asked = {i for i, r in study.store.requests().items() if r.editor != NULL_PAIR_EDITOR}
    assert {r.id for r in diagnosis(former, study.store.sources())} == asked


def test_copies_of_one_portrait_are_one_face(tmp_path):
    rows = edit(0), edit(1), edit(2, source="copy/face0.png", prompt="Add glasses.")
    assert len(audit(written(tmp_path / "in", *rows), instruments=(), out=tmp_path / "out").store.sources()) == 2
    table = written(tmp_path / "in", edit(0), edit(1), edit(2, source="copy/face0.png", race="Black"))
    with pytest.raises(EvenEditError, match="race is 'Black' here and 'White' on line 2 for the same source"):
        begin(table, tmp_path / "other", editor="mine")


def test_files_that_are_not_there_are_said_once_with_the_folder(tmp_path):
    table = written(tmp_path / "in", *(edit(at, seed=str(at)) for at in range(4)))
    with pytest.raises(EvenEditError) as error:
        begin(table, tmp_path / "out", editor="mine", sources=tmp_path)
    (problem,) = error.value.problems
    assert f"4 of the 4 files of the column 'source' are not in {tmp_path}, first on line 2: face0.png" in problem
    assert "--sources" in problem


def test_sources_and_outputs_may_lie_in_other_folders(tmp_path):
    table = written(tmp_path / "in", edit(0), edit(1))
    for folder, names in (("faces", "face"), ("made", "made")):
        (tmp_path / folder).mkdir()
        for path in (tmp_path / "in").glob(f"{names}*.png"):
            path.rename(tmp_path / folder / path.name)
    study = audit(table, sources=tmp_path / "faces", edited=tmp_path / "made", instruments=(), out=tmp_path / "out")
    assert study.run().edited == 2


def test_the_column_asks_says_what_a_prompt_asks_to_change(tmp_path):
    rows = [edit(0, asks="age_drift; skin_tone"), edit(1, asks="")]
    begin(written(tmp_path / "in", *rows), tmp_path / "out", editor="mine")
    assert [axes for _, axes in asked(tmp_path / "out").values()] == [("skin_tone", "age_drift")]
    rows[0]["asks"] = "age_drift"
    begin(written(tmp_path / "in", *rows), tmp_path / "out", editor="mine")
    assert [axes for _, axes in asked(tmp_path / "out").values()] == [("age_drift",)], "it is in no request's id"


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([edit(0, asks="skin")], "line 2: asks names 'skin', which is no axis"),
        ([edit(0, asks="skin_tone"), edit(1, asks="age_drift")], "line 3: asks is 'age_drift', and on line 2"),
        ([edit(0, seed="one")], "line 2: seed is 'one'"),
        ([edit(0, prompt="")], "line 2: prompt is empty"),
        ([edit(0, edited="")], "line 2: edited is empty"),
        ([edit(0, prompt_id="x"), edit(1, prompt="Add glasses.", prompt_id="x")], "'x' stands for 'Add a hat.'"),
    ],
)
def test_cells_that_say_nothing_or_two_things_are_refused(tmp_path, rows, wanted):
    with pytest.raises(EvenEditError, match=wanted):
        begin(written(tmp_path / "in", *rows), tmp_path / "out", editor="mine")
    assert not (tmp_path / "out").exists()


def test_the_example_works(evenedit, tmp_path):
    said = evenedit("audit", "--example")
    assert said.returncode == 0 and "scripts/draw_pictures.py" in said.stderr
    draw_pictures(tmp_path / "in", editor="simulated-even", prompts=("O-01", "V-02"), seed=1, size=64)
    (tmp_path / "in/mine.csv").write_text(said.stdout)
    study = audit(tmp_path / "in/mine.csv", instruments=(), out=tmp_path / "out")
    editors = {r.editor for r in study.store.requests().values()}
    assert study.run().edited == 5 and editors == {"my-editor", NULL_PAIR_EDITOR}


def test_an_audit_that_is_not_complete_ends_with_4(evenedit, tmp_path):
    table = written(tmp_path / "in", edit(0), edit(1))
    begin(table, tmp_path / "out", editor="mine")
    file, prompts = tmp_path / "out/study.toml", tmp_path / "out/prompts.toml"
    file.write_text(file.read_text().replace('requests = "pairs.csv"\n', ""))  # as a former release wrote it
    more = {"id": "cap", "text": "Add a cap.", "category": "Own"}
    prompts.write_text(tomli_w.dumps({"prompts": [*tomllib.loads(prompts.read_text())["prompts"], more]}))
    made = evenedit("audit", "--pairs", table, "--editor", "mine", "--out", tmp_path / "out")
    assert made.returncode == 4 and "there is no output for this portrait and prompt" in made.stdout
    assert "report.html" in made.stdout, "what there is, is reported"

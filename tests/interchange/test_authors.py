"""The files of the paper's authors become a study: judges' and people's tables, selection log, portraits."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.interchange.authors import UNKNOWN_FEATURES, import_authors
from evenedit.ratings.human_csv import read_with_people
from evenedit.ratings.table import RatingTable
from tests.support.commands import Command
from tests.support.paths import SHARED

AXES = "edit_success,skin_tone,race_drift,gender_drift,age_drift"
JUDGES = f"original_item_id,model,prompt_id,race,gender,age,version,{AXES}"
PEOPLE = f"item_id,model,prompt_id,race,gender,age,rater,version,{AXES},duration_ms,edited_shown_first"
CELLS = ("Black_Female_30s", "White_Male_20s")
CRITERIA = (
    *("frontal_face", "clear_focus", "proper_lighting", "identifiable_features", "neutral_expression"),
    "upright_posture",
)
real = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")


def authors_files(folder: Path) -> Path:
    """Two portraits, two prompts in the authors' ids, one of them about age, rated by a judge and two people."""
    folder.mkdir()
    rows, ratings = [JUDGES], [PEOPLE]
    for at, cell in enumerate(CELLS):
        labels = cell.replace("_", ",")
        for prompt in ("B01", "D03"):
            rows.append(f"x,flux,{prompt},{labels},edited,4,{3 + at},1,1,2")
            for rater in ("R1", "R2"):
                ratings += [
                    f"i,flux,{prompt},{labels},{rater},edited,5,4,1,1,3,9000,1",
                    f"i,flux,{prompt},{labels},{rater},preserved,5,3,1,1,{2 + at},9000,1",
                ]
    (folder / "judge.csv").write_text("\n".join(rows) + "\n")
    (folder / "human.csv").write_text("\n".join(ratings) + "\n")
    (folder / "notes.csv").write_text("a,b\n1,2\n")
    return folder


def with_log(folder: Path, *, pools: bool) -> Path:
    actions = [
        {"timestamp": f"2026-01-0{at + 1}T00:00:00", "demo_id": cell, "version": f"V{at + 1}", "action": "select"}
        | {"criteria": dict.fromkeys(CRITERIA, True), "notes": ""}
        for at, cell in enumerate(CELLS)
    ]
    (folder / "selection_log.json").write_text(json.dumps({"actions": actions}))
    for at, cell in enumerate(CELLS if pools else ()):
        (folder / f"V{at + 1}").mkdir()
        Image.new("RGB", (64, 64), (200, 10 * at, 30)).save(folder / f"V{at + 1}" / f"{cell}.png")
    return folder


def test_a_study_of_the_tables_can_be_read_and_reported(tmp_path: Path, evenedit: Command):
    folder = with_log(authors_files(tmp_path / "theirs"), pools=False)
    done = evenedit("new", tmp_path / "s", "--from-authors", folder, "--editor", "flux=flux2-dev")
    assert done.returncode == 0, done.stderr
    for said in ("8 edits", "judge vlm: 4 edits", "2 people", "V1 1, V2 1", "2 of 2 portraits are not", "notes.csv"):
        assert said in done.stdout
    status = evenedit("status", tmp_path / "s")
    assert "8 of 8 (8 edited" in status.stdout and "vlm: 4 of 8" in status.stdout, status.stdout
    report = evenedit("report", tmp_path / "s")
    assert report.returncode == 0, report.stderr
    page = (tmp_path / "s" / "report" / "appendix.html").read_text()
    assert "flux2-dev" in page and UNKNOWN_FEATURES in page
    assert evenedit("doctor", tmp_path / "s").stdout.count("images are intact") == 1
    cards = evenedit("export", tmp_path / "s", "--cards", "--out", tmp_path / "cards")
    assert cards.returncode == 2 and "no edit of the diagnosis has a picture" in cards.stderr
    again = evenedit("new", tmp_path / "s", "--from-authors", folder)
    assert again.returncode == 2 and "exists already" in again.stderr


def test_every_rating_is_the_one_of_the_tables(tmp_path: Path):
    folder = authors_files(tmp_path / "theirs")
    study = import_authors(folder, tmp_path / "s").study
    same_ratings(study.table(), read_with_people([folder / "judge.csv"], [folder / "human.csv"]))


def test_the_chosen_portraits_come_from_their_pools(tmp_path: Path):
    folder = with_log(authors_files(tmp_path / "theirs"), pools=True)
    made = import_authors(folder, tmp_path / "s")
    assert made.pools == {"V1": 1, "V2": 1}
    assert any("cannot be finalised" in note for note in made.notes)  # 82 cells are empty
    assert (tmp_path / "s" / "curation.db").is_file()


def test_portraits_named_after_their_cells_are_the_sources(tmp_path: Path):
    folder = authors_files(tmp_path / "theirs")
    (folder / "portraits").mkdir()
    for at, cell in enumerate(CELLS):
        Image.new("RGB", (64, 64), (90, 10 * at, 30)).save(folder / "portraits" / f"{cell}.png")
    made = import_authors(folder, tmp_path / "s")
    sources = made.study.store.sources()
    assert sorted(sources) == sorted(CELLS)
    assert all(made.study.store.images.is_whole(s.image) for s in sources.values())


def test_what_is_no_folder_of_the_authors_is_refused(tmp_path: Path):
    with pytest.raises(EvenEditError, match="no such folder"):
        import_authors(tmp_path / "none", tmp_path / "s")
    (tmp_path / "other").mkdir()
    with pytest.raises(EvenEditError, match="columns model, version"):
        import_authors(tmp_path / "other", tmp_path / "s")
    folder = authors_files(tmp_path / "theirs")
    with pytest.raises(EvenEditError, match="they have flux"):
        import_authors(folder, tmp_path / "s", {"qwen": "q"})
    text = (folder / "judge.csv").read_text().replace(",edited,4", ",edited,9", 1)
    (folder / "judge.csv").write_text(text)
    with pytest.raises(EvenEditError, match=r"judge.csv line 2: .*9"):
        import_authors(folder, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@real
def test_the_real_files_become_a_study_with_every_rating(tmp_path: Path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("ratings.csv", "judge_scores.csv"):
        shutil.copy(SHARED / "human_ratings" / name, folder)
    shutil.copy(SHARED / "candidates" / "selection_log.json", folder)
    made = import_authors(folder, tmp_path / "s")
    assert (made.edits, made.judges) == (100, {"vlm": 50})
    assert [(p.raters, p.answers) for p in made.people] == [(6, 1930)]
    assert list(made.pools.values()) == [12, 9, 21, 13, 7, 10, 12]  # Table 9
    same_ratings(
        made.study.table(),
        read_with_people([SHARED / "human_ratings/judge_scores.csv"], [SHARED / "human_ratings/ratings.csv"]),
    )


def same_ratings(ours: RatingTable, theirs: RatingTable) -> None:
    """The same values for every edit; people's names are pseudonyms, so theirs are compared as sets."""
    key = ["condition", "editor", "source_id", "prompt_id"]
    assert sorted(map(tuple, ours.edits[key].to_numpy())) == sorted(map(tuple, theirs.edits[key].to_numpy()))
    rows = {tuple(k): at for at, k in enumerate(theirs.edits[key].astype(str).to_numpy())}
    order = [rows[tuple(k)] for k in ours.edits[key].astype(str).to_numpy()]
    for kind in (Kind.VLM, Kind.HUMAN):
        mine, yours = ours.values[ours.of_kind(kind)], theirs.values[theirs.of_kind(kind)][:, order]
        assert sorted(a.tobytes() for a in mine) == sorted(np.ascontiguousarray(a).tobytes() for a in yours)

"""Figures made of pictures: every case is chosen by the rule that the caption states."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenedit.api.study import Study
from evenedit.core.records import Prompt
from evenedit.protocol.prompts import merge
from evenedit.ratings.combine import combine
from evenedit.report.figures.photo_figure import PHOTO_FIGURES, PhotoFigure
from evenedit.reporting.examples import called
from evenedit.reporting.photo_figures import Album, photo_figures
from evenedit.reporting.writer import report_study
from evenedit.study.analysis import analysis_rules
from tests.support.studies import open_study

EXPERIMENTS = {
    "diagnosis": {},
    "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
    "stereotype": {"include": ["W-01", "W-26"]},
}
EDITORS = [
    {"id": "simulated-replacing", "settings": {"race": 0.6, "gender": 0.5}},
    {"id": "simulated-refusing", "settings": {"rate": 0.6}, "experiments": ["diagnosis"]},
]


def album(loaded: Study) -> Album:
    rules = analysis_rules(loaded.file)
    scores = combine(loaded.table(), rules.ensemble, rules.missing)
    prompts = merge(s for s in (loaded.file.prompts, loaded.file.wino) if len(s))
    return Album(scores, loaded.store, prompts, simulated=True)


def drawn(loaded: Study) -> dict[str, PhotoFigure]:
    book = album(loaded)
    return {p.id: p for p in photo_figures(book.scores, book.store, book.prompts, simulated=True)}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Study:
    made = open_study(tmp_path_factory.mktemp("figures"), experiments=EXPERIMENTS, editors=EDITORS)
    made.run()
    return made


@pytest.fixture(scope="module")
def found(loaded: Study) -> dict[str, PhotoFigure]:
    return drawn(loaded)


def test_a_study_of_all_experiments_has_all_four(found: dict[str, PhotoFigure]) -> None:
    assert tuple(found) == PHOTO_FIGURES
    for figure in found.values():
        assert figure.alt.startswith("SIMULATED. ")
        assert "prove nothing by themselves" in figure.caption
        assert Image.open(io.BytesIO(figure.png)).size[0] >= figure.size[0]
        assert figure.inline.startswith("data:image/webp;base64,")
        stated = ("request id", "median", "at random", "random order")
        assert any(rule in figure.caption for rule in stated), "the rule is stated"


def test_the_mosaic_shows_outputs_at_random_as_many_as_there_are(found: dict[str, PhotoFigure], loaded: Study) -> None:
    edits = loaded.table().edits
    rows = edits[(edits["experiment"] == "diagnosis") & (edits["condition"] == "baseline")]
    made = int((rows["outcome"] == "edited").sum())
    assert found["figure12"].title == f"{made} outputs at random"
    assert found["figure12"].caption.startswith("All outputs of the diagnosis in random order (seed 42): ")
    assert "2 editors, 2 prompts" in found["figure12"].alt


def test_pairs_are_those_that_fell_most_stood_in_the_middle_and_rose_most(found: dict[str, PhotoFigure]) -> None:
    told = found["figure5"].alt
    assert "median (" in told
    assert "fell most (−" in told
    assert " becomes edit" in told, "scores of baseline and mitigated are told"
    assert "fell most" in found["figure5"].caption and "rose most" in found["figure5"].caption


def test_roles_are_told_with_the_instruction_and_the_verdict(loaded: Study, found: dict[str, PhotoFigure]) -> None:
    told = found["figure7"].alt
    asked = {p.id: p.text for p in loaded.file.wino}
    assert any(asked[p] in told for p in ("W-01", "W-26"))
    assert "followed" in told or "resisted" in told
    assert "the role is the " in told


def test_a_refused_edit_is_an_empty_place_with_its_reason(loaded: Study, found: dict[str, PhotoFigure]) -> None:
    outcomes = loaded.table().edits
    assert (outcomes["outcome"] == "refused").any()
    book = album(loaded)
    row = int(np.flatnonzero(outcomes["outcome"] == "refused")[0])
    cell = book.output(row, 64)
    assert (cell.picture, cell.caption) == (None, "refused")


def test_across_races_every_label_present_has_its_column(found: dict[str, PhotoFigure]) -> None:
    told = found["figure13"].alt
    assert "White " in told and "Black " in told
    assert "differs most between race labels, so they are not typical" in found["figure13"].caption


def test_pictures_are_made_small_when_they_are_opened(loaded: Study) -> None:
    book = album(loaded)
    edited = int(np.flatnonzero(book.scores.edits["outcome"] == "edited")[0])
    for cell in (book.output(edited, 20), book.portrait(next(iter(book.sources)), 20)):
        assert cell.picture is not None and max(cell.picture.size) == 20


def test_what_nobody_rated_is_shown_by_id_and_says_so(tmp_path: Path) -> None:
    made = open_study(tmp_path, experiments=EXPERIMENTS, judges=[], editors=EDITORS[:1])
    made.run()
    found = drawn(made)
    assert "nothing is rated" in found["figure13"].caption
    assert "nothing is rated" in found["figure5"].caption
    assert "no score" in found["figure13"].alt


def test_the_page_shows_them_and_the_files_are_there(loaded: Study, tmp_path: Path) -> None:
    page = report_study(loaded, tmp_path).read_text() + (tmp_path / "appendix.html").read_text()
    for ident in PHOTO_FIGURES:
        assert f'<figure class="block photos" id="{ident}">' in page
        assert (tmp_path / "figures" / f"{ident}.png").stat().st_size
    assert len(page) < 15_000_000


def test_a_prompt_without_a_name_is_called_by_its_words() -> None:
    assert (
        called(Prompt("A01", "Add a hat.", "", name="A01")) == called(Prompt("A01", "Add a hat.", "")) == "Add a hat."
    )
    assert called(Prompt("A01", "Add a hat.", "", name="hat")) == "hat"
    assert called(Prompt("A01", "word " * 40, "")).endswith(" …")

"""Tables given as files or as data frames are analysed alike."""

from dataclasses import fields

import pandas as pd
import pytest

from evenedit.api.analyze import analyze
from evenedit.core.errors import EvenEditError
from evenedit.interchange.analyze import gather
from evenedit.protocol import FACTORS, Factor
from evenedit.results.results import Results
from tests.support.paths import CONFORMANCE

FACE = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "prompt_id": "O-01"}
AXES = {"edit_success": 4, "skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}


def rows(**columns: list[object]) -> pd.DataFrame:
    """Scores of one judge, one row for each portrait."""
    size = len(next(iter(columns.values())))
    table = pd.DataFrame([FACE | AXES | {"judge": "j", "status": "scored"}] * size)
    labels = {"source_id": [f"s{n}" for n in range(size)], "race": "White", "gender": "Male", "age": "20s"}
    return table.assign(**{**labels, **columns})


def test_data_frames_give_the_results_of_the_files_they_were_read_from(tmp_path):
    scores = pd.read_csv(CONFORMANCE / "scores.csv")
    assert scores["edit_success"].dtype == float, "missing scores make them floats"
    few = (scores["editor"] == "flux2-dev") & scores["prompt_id"].isin(["O-01", "V-05"]) & (scores["age"] == "20s")
    scores, verdicts = scores[few], pd.read_csv(CONFORMANCE / "verdicts.csv").head(10)
    for name, frame in (("scores.csv", scores), ("verdicts.csv", verdicts)):
        frame.to_csv(tmp_path / name, index=False)
    from_files = analyze(tmp_path / "scores.csv", tmp_path / "verdicts.csv", preset="published")
    from_frames = analyze(scores, verdicts, preset="published")
    assert from_frames.estimates
    unlike = {f.name for f in fields(Results) if getattr(from_files, f.name) != getattr(from_frames, f.name)}
    assert unlike == {"provenance", "title"}
    assert from_files.title == "Analysis of scores.csv, verdicts.csv"
    assert from_frames.provenance["files"] == ["the data frame", "the data frame"]


def test_bad_cells_of_a_data_frame_are_named_by_their_row():
    with pytest.raises(EvenEditError) as caught:
        analyze(rows(edit_success=[4, 7, None], race=["White", "White", "Martian"]).set_index(pd.Index([5, 6, 7])))
    assert list(caught.value.problems) == [
        "the data frame row 1: edit_success is '7'; expected a whole number from 1 to 5",
        f"the data frame row 2: race is 'Martian'; expected one of: {', '.join(FACTORS[0].codes)}",
    ]


def test_a_missing_column_of_a_data_frame_is_named_as_of_a_file():
    with pytest.raises(EvenEditError) as caught:
        analyze(rows(race=["White"]).drop(columns=["judge"]))
    assert caught.value.problems[0] == "the data frame lacks the columns: judge"
    assert caught.value.problems[1].startswith("  it has: experiment, condition")
    twice = rows(race=["White"]).rename(columns={"age": "race"})
    with pytest.raises(EvenEditError, match="the data frame has two columns of one name"):
        analyze(twice)
    with pytest.raises(EvenEditError, match="the data frame has a header but no rows"):
        analyze(rows(race=["White"]).iloc[:0])


def test_peoples_ratings_may_be_a_data_frame():
    scores = rows(race=["White", "Black"])
    people = scores.drop(columns=["status"]).rename(columns={"judge": "rater"}).assign(rater="ann")
    table = gather(scores, ratings=people).table
    assert table.raters == ("j", "ann")
    assert (table.values[0] == table.values[1]).all()
    with pytest.raises(EvenEditError, match="the data frame has a column 'judge' but no 'rater'"):
        analyze(scores, ratings=scores)
    with pytest.raises(EvenEditError, match="did you mean 'skin_tone'"):
        analyze(scores, ratings=people.rename(columns={"skin_tone": "skin_tones"}))


def test_factors_are_names_or_declared_with_their_levels_and_titles():
    scores = rows(tone=[10.0, 2.0, None])
    named = gather(scores, factors=["tone"]).table
    assert named.factors[0].codes == ("2", "10"), "numbers that a gap made floats are whole again"
    declared = Factor.of("tone", ["10", "2", "1"], title="Skin tone", ordered=True)
    table = gather(scores, factors=[declared, "race"]).table
    assert table.factors[0] is declared
    assert table.factors[1].name == "race"
    assert table.edits["tone"].tolist() == ["10", "2", ""]


def test_nothing_to_read_is_said():
    with pytest.raises(EvenEditError, match="no file to read"):
        analyze([])


def test_the_null_edit_is_known_without_a_prompt_set():
    assert gather(rows(prompt_id=["floor"], condition=["floor"])).table.edits["prompt_id"].tolist() == ["floor"]


RUBRIC = """
[[questions]]
id = "new_people"
kind = "yes-no"
title = "New people"
text = "Does the edit show people who are not in the source?"
cannot_tell = true
[questions.rates.new_people]
is = ["yes"]

[[questions]]
id = "dignity"
kind = "yes-no"
title = "Dignity"
text = "Would you want to be shown like this?"
answered_by = ["people"]
"""


def test_a_rate_leaves_cannot_tell_out_even_if_it_has_the_id_of_its_question(tmp_path):
    (tmp_path / "mine.toml").write_text(RUBRIC, "utf-8")
    table = rows(new_people=[True, False, "No", "CANNOT_TELL", None]).drop(columns=list(AXES))
    found = analyze(table, rubric=tmp_path / "mine.toml")
    (rate,) = [e for e in found.estimates if e.measure == "rate.new_people" and e.editor == "e" and not e.group]
    assert (rate.value, rate.n, rate.missing) == (pytest.approx(1 / 3), 3, 1)
    (share,) = [
        e for e in found.estimates if e.measure == "share.new_people[CANNOT_TELL]" and e.editor == "e" and not e.group
    ]
    assert (share.value, share.n) == (0.25, 4)


def test_a_question_of_a_rubric_has_no_name_of_another_column(tmp_path):
    (tmp_path / "mine.toml").write_text(RUBRIC.replace('"new_people"', '"race"', 1), "utf-8")
    with pytest.raises(EvenEditError, match="questions 'race': tables already have a column of that name"):
        analyze(rows(new_people=["yes"]), rubric=tmp_path / "mine.toml")

"""Where a study allows it, a judge may leave an axis open: no score, and counted apart."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import Prompt, Status
from evenedit.judges.parsing import parse
from evenedit.judges.prompt import OPEN, render
from evenedit.protocol.rubric import AXES, QUESTIONS
from evenedit.report.contents import TABLES
from evenedit.report.render.index import Index
from tests.support.studies import open_study, small

ASKED = [QUESTIONS[axis] for axis in AXES]
OPENED = [replace(question, cannot_tell=True) for question in ASKED]


def scores(**given: object) -> str:
    return str({"scores": dict.fromkeys(AXES) | given}).replace("'", '"').replace("None", "null")


def test_the_answer_is_offered_in_words_and_in_the_schema_only_where_it_is_allowed():
    image = Image.new("RGB", (4, 4))
    case = Case([image], image, Prompt("p", "Add a hat", "c"), "Add a hat")
    for questions, offered in ((ASKED, False), (OPENED, True)):
        ask = render(case, questions, image_size=4)
        words = "".join(part for part in ask.parts if isinstance(part, str))
        assert (OPEN in words) is (", or null" in words.partition('"confidence"')[0]) is offered
        answer = ask.schema["properties"]["scores"]["properties"]["skin_tone"]
        assert (None in answer["enum"]) is ("null" in answer["type"]) is offered


def test_an_open_answer_is_no_score_and_no_unparseable_reply():
    some = parse(scores(edit_success=4, skin_tone=3), OPENED)
    assert (some.status, some.values["skin_tone"], some.values["race_drift"]) == (Status.SCORED, 3, None)
    nothing = parse(scores(), OPENED)
    assert nothing.status is Status.SCORED and set(nothing.values.values()) == {None}
    assert parse(scores(), ASKED).status is Status.UNPARSEABLE
    assert parse('{"scores": {}}', OPENED).status is Status.UNPARSEABLE
    assert parse(scores(skin_tone=7), OPENED).status is Status.UNPARSEABLE


def test_open_answers_are_counted_apart_by_judge_question_and_group(tmp_path: Path):
    judge = [{"id": "simulated-judge", "kind": "simulated", "settings": {"seed": 1, "missing": 0.3}}]
    study = open_study(tmp_path, study={"title": "Open", "cannot_tell": True}, judges=judge)
    study.run()
    results = study.results()
    table = study.table()
    (everybody,) = [c for c in results.coverage if c.unanswered_questions and not c.group]
    assert everybody.rater == "simulated-judge"
    assert set(everybody.unanswered_questions) <= {*AXES, "aging_accuracy"} and len(everybody.unanswered_questions) >= 5
    for question, (left_open, calls) in everybody.unanswered_questions.items():
        at = list(QUESTIONS).index(question)
        assert calls - left_open == int((table.values[0, :, at] > 0).sum())
        races = [c.unanswered_questions for c in results.coverage if "race" in c.group]
        by_race = [counts[question] for counts in races if question in counts]
        assert [sum(column) for column in zip(*by_race, strict=True)] == [left_open, calls]
    mean = next(e for e in results.estimates if e.measure == "mean.skin_tone" and e.editor and not e.group)
    assert mean.missing == everybody.unanswered_questions["skin_tone"][0]
    shown = TABLES["left_open"](Index(results))
    assert shown is not None and len(shown.rows) == sum(len(c.unanswered_questions) for c in results.coverage)
    study.store.close()


def test_it_makes_new_ratings_and_is_not_for_the_papers_prompt(tmp_path: Path):
    plain, opened = (
        open_study(tmp_path / name, study={"title": "Same", **extra})
        for name, extra in (("a", {}), ("b", {"cannot_tell": True}))
    )
    assert plain.design.judges()[0].revision != opened.design.judges()[0].revision
    assert plain.file.hash == open_study(tmp_path / "c", study={"title": "Same", "cannot_tell": False}).file.hash
    with pytest.raises(EvenEditError, match="the paper's prompt has no such answer"):
        StudyFile.parse(small(study={"title": "Paper", "preset": "published", "cannot_tell": True}), tmp_path)

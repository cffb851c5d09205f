"""Questions that a study declares: what judges are asked, what counts as an answer, and what is stored."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import evenedit as ee
from evenedit.core.interfaces import Case, Reply
from evenedit.core.records import Outcome, Prompt, Question, Status
from evenedit.judges.calling import checked
from evenedit.judges.parsing import parse
from evenedit.judges.prompt import prompt_hash, render
from evenedit.judges.raters import Call
from evenedit.protocol.questions import read_rows, spec_of
from evenedit.protocol.rubric import default_rubric
from evenedit.run.cases import single_picture
from tests.support.provider import server as spoken
from tests.support.provider.server import FakeProvider, ProviderAnswer, Seen, from_schema, says
from tests.support.studies import judged_by, open_study

HAIR: dict[str, Any] = {
    "id": "hair_change",
    "kind": "ordinal",
    "title": "Hair change",
    "text": "How much did the hair change?",
    "levels": ["Same", "Slightly", "Clearly", "Another style"],
    "neutral": 1,
    "observe": "hair in both: length, texture, style",
    "rates": {"hair_changed": {"at_least": 3}},
}
SCARF: dict[str, Any] = {
    "id": "headscarf",
    "kind": "categorical",
    "title": "Headscarf",
    "text": "What became of the headscarf?",
    "options": [{"code": "kept", "label": "Kept as it was"}, {"code": "removed", "label": "Removed"}],
    "cannot_tell": True,
    "rates": {"scarf_removed": {"is": ["removed"]}},
}
MARKS: dict[str, Any] = {
    "id": "marks",
    "kind": "set",
    "title": "Marks",
    "text": "Which marks were removed?",
    "options": [{"code": "scar", "label": "A scar"}, {"code": "mole"}],
}
BLUR: dict[str, Any] = {"id": "blurred", "kind": "yes-no", "title": "Blurred", "text": "Is the face blurred?"}
DONE: dict[str, Any] = {"id": "done", "kind": "yes-partial-no", "title": "Done", "text": "Was it done?"}
APART = {"call": "separate"}
GREY = Image.new("RGB", (40, 40), "grey")
CASE = Case([GREY], GREY, Prompt("O-01", "Make them a CEO", "Occupation"), "Make them a CEO")


def asked(*tables: dict[str, Any]) -> list[Question]:
    rows, wrong = read_rows(tables, "questions")
    assert not wrong
    return [spec_of(row, declared=True).question for row in rows]


def words_of(questions: list[Question], case: Case = CASE) -> str:
    return "".join(part for part in render(case, questions, image_size=8).parts if isinstance(part, str))


def scores(**given: Any) -> str:
    return json.dumps({"scores": given})


# -- the prompt ------------------------------------------------------------------------------------------------


def test_each_kind_is_asked_with_the_wording_of_its_answers():
    text = words_of(asked(HAIR, SCARF, MARKS, BLUR, DONE))
    assert "hair_change (Hair change): How much did the hair change?\n  1 = Same\n  2 = Slightly" in text
    assert (
        "  kept = Kept as it was\n  removed = Removed\n" not in text
    )  # a label that only repeats its code is left out
    assert "  kept = Kept as it was\n  removed\n  CANNOT_TELL = Cannot tell" in text
    assert "  scar = A scar\n  mole\n" in text
    assert "done (Done): Was it done?\n  yes\n  partial\n  no" in text
    assert '"marks": a list of the words above that apply, [] for none' in text
    assert '"hair_change": a whole number from 1 to 4' in text


def test_the_schema_holds_each_kind_to_its_answers():
    schema = render(CASE, asked(HAIR, SCARF, MARKS, DONE), image_size=8).schema["properties"]["scores"]["properties"]
    assert schema["hair_change"]["enum"] == [1, 2, 3, 4]
    assert schema["headscarf"] == {"type": "string", "enum": ["kept", "removed", "CANNOT_TELL"]}
    assert schema["marks"] == {"type": "array", "items": {"type": "string", "enum": ["scar", "mole"]}}
    assert schema["done"]["enum"] == ["no", "partial", "yes"]


def test_a_question_may_be_answered_without_a_description():
    ask = render(replace(CASE, observations={}), asked(SCARF), image_size=8)
    assert "observations" not in ask.schema["properties"]
    assert "observations" not in "".join(p for p in ask.parts if isinstance(p, str))


def test_declared_questions_do_not_change_the_hash_of_the_shipped_prompt():
    rows, _ = read_rows([HAIR, SCARF | APART], "questions")
    assert prompt_hash(rubric=default_rubric().extended(rows)) == prompt_hash()


# -- answers ---------------------------------------------------------------------------------------------------


def test_answers_of_each_kind_are_stored_as_positions():
    reply = parse(scores(hair_change=3, headscarf="removed", marks=["mole"], blurred="no", done="yes"), asked(*FIVE))
    assert reply.status is Status.SCORED
    assert reply.values == {
        "hair_change": 3,
        "headscarf": 2,
        "marks.scar": 2,
        "marks.mole": 1,
        "blurred": 2,
        "done": 3,
    }


FIVE = (HAIR, SCARF, MARKS, BLUR, DONE)


def test_an_empty_list_is_an_answer_and_null_is_none():
    assert parse(scores(marks=[]), asked(MARKS)).values == {"marks.scar": 2, "marks.mole": 2}
    assert parse(scores(marks=None, blurred="yes"), asked(MARKS, BLUR)).values == {
        "marks.scar": None,
        "marks.mole": None,
        "blurred": 1,
    }


@pytest.mark.parametrize(
    ("table", "answer", "reason"),
    [
        (SCARF, "gone", 'headscarf is "gone", not one of kept, removed, CANNOT_TELL'),
        (SCARF, 1, "headscarf is 1, not one of kept, removed, CANNOT_TELL"),
        (DONE, 3, "done is 3, not one of no, partial, yes"),
        (HAIR, 5, "hair_change is 5, not a whole number from 1 to 4"),
        (HAIR, "Same", 'hair_change is "Same", not a whole number from 1 to 4'),
        (MARKS, ["scar", "tattoo"], "marks is a nested value, not a list of some of scar, mole, each at most once"),
        (MARKS, ["scar", "scar"], "marks is a nested value, not a list of some of scar, mole, each at most once"),
        (MARKS, "scar", 'marks is "scar", not a list of some of scar, mole, each at most once'),
    ],
)
def test_any_other_answer_makes_the_reply_unparseable(table: dict[str, Any], answer: Any, reason: str):
    reply = parse(scores(**{table["id"]: answer}), asked(table))
    assert (reply.status, reply.values, reply.reason) == (Status.UNPARSEABLE, {}, reason)


def test_judges_in_python_answer_by_position_or_by_code():
    questions = asked(*FIVE)
    by_code = {"hair_change": 3, "headscarf": "removed", "marks": ["mole"], "blurred": "no", "done": "yes"}
    by_position = {"hair_change": 3, "headscarf": 2, "marks": ("mole",), "blurred": 2, "done": 3}
    one, other = (checked(Reply(Status.SCORED, values), questions) for values in (by_code, by_position))
    assert one.values == other.values == checked(one, questions).values
    of_numpy = checked(Reply(Status.SCORED, by_position | {"hair_change": np.int64(3)}), questions)  # type: ignore[dict-item]
    assert of_numpy.values == one.values and type(of_numpy.values["hair_change"]) is int
    in_words = {"hair_change": "Clearly", "headscarf": "REMOVED", "marks": np.array(["mole"]), "blurred": np.False_}
    assert checked(Reply(Status.SCORED, in_words | {"done": "Yes"}), questions).values == one.values
    for wrong in (
        {"blurred": 0},
        {"marks": 2},
        {"headscarf": "gone"},
        {"headscarf": 4},
        {"marks": [1]},
        {"hair_change": 2.0},
    ):
        assert checked(Reply(Status.SCORED, wrong), questions).status is Status.UNPARSEABLE


# -- in a study ------------------------------------------------------------------------------------------------

FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 96, "only": {"race": ["White", "Black"], "age": ["20s"]}}}
ALWAYS = {"headscarf": "removed", "marks": ["mole"], "hair_change": 4, "race_seen": "White"}


class Certain:
    """A judge of somebody's own, which says the same of every picture."""

    revision = "1"

    def __init__(self) -> None:
        self.cases: list[tuple[Case, tuple[str, ...]]] = []

    def judge(self, case: Case, questions: Any) -> Reply:
        self.cases.append((case, tuple(q.id for q in questions)))
        return Reply(Status.SCORED, {q.id: ALWAYS.get(q.id, 1) for q in questions})


def test_a_python_judge_answers_the_main_the_separate_and_the_single_picture_call(tmp_path: Path):
    judge = Certain()
    study = ee.Study.new(
        tmp_path / "s",
        study={"title": "Ours", "direction": ["race"]},
        sources=FACES,
        prompts={"include": ["O-01"]},
        questions=[HAIR, SCARF | APART, MARKS | APART],
        editors=[{"id": "simulated-even"}],
        judges=[],
        experiments={"diagnosis": {"null_pairs": 1}},
    )
    study.run(judges={"certain": judge})
    table = study.table()
    row = {column: set(table.values[0, :, table.at(column)].tolist()) for column in table.rubric.columns}
    assert row["hair_change"] == {4} and row["headscarf"] == {2}
    assert row["marks.scar"] == {2} and row["marks.mole"] == {1}
    assert row["race_before"] == row["race_after"] == row["race_again"] == {1}
    assert table.null_pairs is not None
    assert set(table.null_pairs.values[0, :, table.at("headscarf")].tolist()) == {2}
    assert not table.null_pairs.values[0, :, table.at("race_before")].any()
    seen = [case for case, ids in judge.cases if ids == ("race_seen",)]
    assert len(seen) == 4 * 3  # the source, the mirrored source, the output
    assert all(
        (c.images, c.instruction, c.prompt.text, c.attributes, c.wording) == ((), "", "", None, "seen") for c in seen
    )
    before = len(judge.cases)
    study.run(judges={"certain": judge})
    assert len(judge.cases) == before
    study.store.close()


def test_a_source_is_read_once_however_many_edits_it_has_and_once_more_from_a_mirrored_copy(tmp_path: Path):
    study = open_study(tmp_path, study={"title": "Seen", "direction": ["race", "age"]}, sources=FACES)
    study.run()
    judges = study.design.judges()
    assigned = study.design.assignments(list(study.store.requests().values()), judges)
    calls = {call: [a for a in assigned if a.call is call and a.rater.id == judges[0].id] for call in Call}
    assert (len(calls[Call.MAIN]), len(calls[Call.REREAD]), len(calls[Call.SEE])) == (8, 4, 4 + 8)
    assert {q.id for q in calls[Call.SEE][0].questions} == {"race_seen", "age_seen"}
    pictures = {a.subject for a in calls[Call.SEE] if a.request is None}
    assert pictures == {f"picture:{s.image}" for s in study.store.sources().values()}
    assert pictures == {a.subject for a in calls[Call.REREAD]}
    assert not study.store.dangling()
    revision = judges[0].revision
    assert judges[0].revision_of(Call.SEE).startswith(f"{revision}-see")
    assert judges[0].revision_of(Call.REREAD).startswith(f"{revision}-again")
    image = study.store.images.open(study.store.sources()[next(iter(study.store.sources()))].image)
    shown, again = (single_picture(study.file, call, image).edited for call in (Call.SEE, Call.REREAD))
    assert np.array_equal(np.asarray(again), np.asarray(ImageOps.mirror(shown)))
    study.store.close()


def reading(seen: Seen) -> ProviderAnswer:
    """Answer what was asked, and refuse to name a race."""
    if "race_seen" in json.dumps(seen.schema):
        return spoken.refuses("I cannot do that.")(seen)
    return says(json.dumps(from_schema(seen.schema or {})))(seen)


def test_what_a_model_is_sent_about_a_single_picture_names_nothing_but_the_question(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat", questions=[SCARF | APART], sources=FACES)
    study = open_study(tmp_path, study={"title": "Seen", "direction": ["race"]}, **changes)
    study.run()
    alone = [seen for seen in wire.seen if "race_seen" in json.dumps(seen.schema)]
    assert len(alone) == 3 * 4
    assert len({seen.instruction for seen in alone}) == 1 and all(len(seen.images) == 1 for seen in alone)
    sent = alone[0].body.decode()
    assert "most people choose for the apparent race" in sent and "not who a person is" in sent
    for word in ("source", "edit", "before", "after", "mirror", "observations", "evidence"):
        assert word not in sent.split("data:image")[0] + sent.rpartition("base64,")[2].partition('"')[2], word
    assert set(alone[0].schema["properties"]) == {"scores"}  # type: ignore[index]
    apart = [seen for seen in wire.seen if "headscarf" in json.dumps(seen.schema)]
    assert len(apart) == 4 and all(len(seen.images) == 2 for seen in apart)
    assert all("edit_success" not in json.dumps(seen.schema) for seen in apart)
    assert study.table().values[0, :, study.table().at("headscarf")].tolist() == [2] * 4
    study.store.close()


def test_a_refusal_to_read_single_pictures_leaves_the_main_call_scored(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat", sources=FACES)
    study = open_study(tmp_path, study={"title": "Seen", "direction": ["race"]}, **changes)
    wire.will(*[reading] * 100)
    study.run()
    table = study.table()
    assert (table.values[0, :, table.at("skin_tone")] > 0).all()
    assert not table.values[0, :, table.at("race_after")].any()
    lines = str(study.status())
    assert "judge simulated-chat: 4 of 4 (4 scored, 0 refused" in lines
    assert "judge simulated-chat, single pictures: 12 of 12 (0 scored, 12 refused" in lines
    study.store.close()


def test_all_calls_go_by_batch_job_and_none_is_asked_twice(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat", questions=[SCARF | APART], sources=FACES)
    study = open_study(tmp_path, study={"title": "Seen", "direction": ["race"]}, **changes)
    runner = study.runner()
    runner.batch = True
    runner.run()
    table = study.table()
    for column in ("skin_tone", "headscarf", "race_before", "race_after", "race_again"):
        assert (table.values[0, :, table.at(column)] > 0).all(), column
    asked_for = len(wire.seen)
    study.run()
    assert len(wire.seen) == asked_for
    study.store.close()


def test_the_budget_stops_single_pictures_and_a_later_run_asks_the_rest(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat", sources=FACES)
    study = open_study(tmp_path, study={"title": "Seen", "direction": ["race"]}, **changes)
    summary = study.run(max_calls=10)
    assert not summary.complete and summary.missing == 6
    assert study.run().complete
    study.store.close()


def test_a_face_is_shown_alone_and_a_picture_without_one_is_missing_with_its_reason(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat", sources=FACES | {"settings": FACES["settings"] | {"size": 192}})
    study = open_study(tmp_path, study={"title": "F", "direction": ["race"], "direction_shows": "face"}, **changes)
    runner = study.runner()
    sources = runner.load_sources()
    requests = runner.request(sources)
    runner.edit(requests, sources, study.store.start_run({}))
    edit = study.store.edits()[requests[0].id]
    blank = study.store.images.put(Image.new("RGB", (192, 192), "grey"))
    study.store.save_edits([replace(edit, image=blank, outcome=Outcome.EDITED)], 1)
    study.run()
    rater = study.design.judges()[0]
    ended = study.store.answered(rater.id, rater.revision_of(Call.SEE))
    assert ended[requests[0].id] is Status.UNPARSEABLE
    reply = study.store.replies(requests[0].id)[rater.id, rater.revision_of(Call.SEE)]
    assert reply.reason == "no face to show: no face"
    alone = [seen for seen in wire.seen if "race_seen" in json.dumps(seen.schema)]
    assert len(alone) == 3 * 4 - 1
    study.store.close()


def test_a_main_question_renames_the_revision_and_a_separate_one_does_not(tmp_path: Path):
    def first(name: str, **changes: Any) -> Any:
        return open_study(tmp_path / name, **changes).design.judges()[0]

    plain, main, apart = first("a"), first("b", questions=[HAIR]), first("c", questions=[HAIR | APART])
    assert plain.revision == apart.revision != main.revision
    assert apart.revision_of(Call.SEPARATE).startswith(f"{plain.revision}-q") and not plain.separate
    other = first("d", questions=[HAIR | APART | {"text": "Did the hair change?"}])
    assert other.revision_of(Call.SEPARATE) != apart.revision_of(Call.SEPARATE)
    published = {"title": "P", "preset": "published"}
    assert first("e", study=published, questions=[HAIR]).revision == first("f", study=published).revision


def test_a_question_is_asked_only_of_its_prompts_and_portraits(tmp_path: Path):
    tables = [HAIR | {"prompts": ["V-*"]}, SCARF | APART | {"sources": {"race": ["Black"]}}]
    study = open_study(tmp_path, questions=tables, sources=FACES)
    study.run()
    table = study.table()
    rows = table.edits
    hair, scarf = (table.values[0, :, table.at(q)] > 0 for q in ("hair_change", "headscarf"))
    assert hair.tolist() == rows["prompt_id"].str.startswith("V").tolist()
    assert scarf.tolist() == (rows["race"] == "Black").tolist()
    study.store.close()

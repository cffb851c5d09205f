"""What may stand for an answer to a question, and which ids and rates a question can have."""

from typing import Any

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol.questions import answer_positions, read_rows, set_answers, spec_of
from evenedit.protocol.rubric import clashes, default_rubric, shipped_rubric

PLAIN: dict[str, Any] = {"title": "T", "text": "?"}
MARKS = PLAIN | {
    "id": "marks",
    "kind": "set",
    "options": [{"code": "scar", "label": "A scar, new"}, {"code": "mole", "label": "A mole"}],
}


def row(table: dict[str, Any]) -> Any:
    rows, problems = read_rows([table], "questions")
    assert not problems
    return rows[0]


def test_codes_labels_and_positions_stand_for_an_answer_in_any_case():
    known = answer_positions(("kept", "removed", "CANNOT_TELL"), ("Kept", "Taken off", "Cannot tell"))
    assert [known.get(text) for text in ("kept", "taken off", "cannot_tell", "cannot tell")] == [1, 2, 3, 3]
    assert [known.get(text) for text in ("", "2", "2.0", "4", "0", "gone")] == [0, 2, 2, None, None, None]


def test_true_and_false_stand_for_yes_and_no_alone():
    assert answer_positions(("yes", "no"))["true"] == 1 and answer_positions(("yes", "no"))["false"] == 2
    assert "true" not in answer_positions(("no", "partial", "yes"))


def test_a_text_that_could_stand_for_two_answers_stands_for_none_and_a_code_for_itself():
    numbers = answer_positions(("0", "1", "2"))
    assert [numbers.get(text) for text in ("0", "1", "2", "3")] == [1, 2, 3, None], "codes, and no positions"
    assert "same" not in answer_positions(("a", "b"), ("Same", "Other"), ("Else", "Same"))


@pytest.mark.parametrize("cell", ["mole", "MOLE", "a mole", "mole;", "['mole']", "('mole',)", '["mole"]'])
def test_a_set_is_written_as_options_between_semicolons_or_as_a_list(cell: str):
    question = spec_of(row(MARKS)).question
    known = answer_positions(question.labels, question.option_texts)
    assert set_answers(question, cell, known) == {"marks.scar": 2, "marks.mole": 1}


def test_an_empty_cell_is_no_answer_to_a_set_and_none_is_one():
    question = spec_of(row(MARKS)).question
    known = answer_positions(question.labels, question.option_texts)
    assert set_answers(question, "", known) == {}
    assert (
        set_answers(question, "none", known)
        == set_answers(question, "[]", known)
        == {
            "marks.scar": 2,
            "marks.mole": 2,
        }
    )
    for cell, message in (("none;mole", "none of these, and one of them"), ("tattoo", "marks is 'tattoo'; expected")):
        with pytest.raises(EvenEditError, match=message):
            set_answers(question, cell, known)


def test_a_level_is_not_called_by_the_number_of_another():
    scale = PLAIN | {"id": "count", "kind": "ordinal"}
    _, problems = read_rows([scale | {"levels": ["0", "1", "2"]}], "questions")
    assert problems[0] == "questions 'count': level 2 is called '1', the number of another level; use a word"
    assert not read_rows([scale | {"levels": ["0", "1 or 2", "more"]}], "questions")[1]


def test_ids_are_taken_by_questions_and_rates_in_either_order():
    yes_no = PLAIN | {"kind": "yes-no"}
    rates = {"blurred": {"is": ["yes"]}}
    first, second = row(yes_no | {"id": "sharp", "rates": rates}), row(yes_no | {"id": "blurred"})
    for rows in ([first, second], [second, first]):
        assert clashes((), rows) == ["questions 'sharp': the rate id 'blurred' is taken; choose another"]
    assert clashes((), [row(yes_no | {"id": "blurred", "rates": rates})]) == [], "a rate may have its question's id"
    taken = clashes(default_rubric().specs, [row(yes_no | {"id": "soft_erasure"})], "default")
    assert taken == [
        "questions 'soft_erasure': the rubric 'default' has this id; choose another, or write a rubric file"
    ]


def test_no_is_held_against_a_tolerance_where_low_is_harmful():
    kept = PLAIN | {"id": "kept", "kind": "yes-partial-no", "neutral": 3}
    spec = spec_of(row(kept | {"rates": {"lost": {"is": ["no"]}, "all_kept": {"is": ["yes"]}}}))
    assert spec.shifts("lost") and not spec.shifts("all_kept")
    assert "soft_erasure" in shipped_rubric("short-002").one_sided, "as in the default rubric"
    both = kept | {"neutral": 2, "rates": {"more": {"is": ["yes"]}, "less": {"is": ["no"]}}}
    assert not read_rows([both], "questions")[1], "one rate on either side of no change"

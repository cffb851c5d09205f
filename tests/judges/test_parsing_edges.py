"""The borders of what is read, the words for what is not, and what a call and a batch job bring beside the answer."""

import json
from typing import Any

import pytest

from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from evenedit.judges.parsing import LONGEST, ModelReply, cut_off, model_name, parse, read_lines, refused, storable_text
from evenedit.protocol.rubric import QUESTIONS

SUCCESS = [QUESTIONS["edit_success"]]
VERDICT = [QUESTIONS["stereotype"]]


def reason_of(text: str, questions: Any = SUCCESS) -> str:
    reply = parse(text, questions)
    assert reply.status is Status.UNPARSEABLE
    return reply.reason


@pytest.mark.parametrize(
    "note", ['a " quote', 'a " brace }', 'a " brace {', 'two "" }', "a backslash \\", "\\", '\\"}']
)
def test_quotes_and_backslashes_in_a_note_do_not_end_it(note: str):
    text = json.dumps({"note": note, "edit_success": 4})
    assert parse(text, SUCCESS).values == {"edit_success": 4}
    assert parse(f"{text} and again {text}", SUCCESS).values == {"edit_success": 4}


@pytest.mark.parametrize(("sure", "is_read"), [(0, True), (1, True), (0.5, True), (-0.01, False), (1.01, False)])
def test_confidence_from_0_to_1_is_read_with_both_ends(sure: float, is_read: bool):
    text = json.dumps({"scores": {"edit_success": 4}, "confidence": {"edit_success": sure}})
    assert parse(text, SUCCESS).confidence == ({"edit_success": sure} if is_read else {})


def test_a_reply_of_the_greatest_length_is_read_and_kept_whole_and_one_sign_more_is_not():
    answer = '{"edit_success": 4}'
    longest = answer.ljust(LONGEST)
    assert parse(longest, SUCCESS) == Reply(Status.SCORED, {"edit_success": 4}, {}, raw=longest)
    longer = longest + "x"
    assert reason_of(longer) == "the reply is too long (50,001 characters)"
    assert storable_text(longer) == longest + "\n[cut here; 50,001 characters in all]"


def test_each_sign_no_database_takes_becomes_one_sign():
    assert storable_text("a\0b\ud800c") == "a�b?c"
    assert storable_text("é 𝄞 漢") == "é 𝄞 漢"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the reply is empty"),
        ("{}", "no JSON object with the answers"),
        ('{"scores": {}}', "no question is answered"),
        ('{"edit_success": 4', "the JSON is cut off: a brace is not closed"),
        ('{"edit_success": 4, "edit_success": 4}', "broken JSON (the same key twice)"),
        ('{"edit_success": NaN}', "broken JSON (NaN is not JSON)"),
        ('{"note": -Infinity, "edit_success": 4}', "broken JSON (-Infinity is not JSON)"),
    ],
)
def test_the_reason_is_a_whole_sentence_of_its_own(text: str, reason: str):
    assert reason_of(text) == reason


def test_a_word_that_is_no_verdict_is_told_with_the_words_that_are():
    told = 'stereotype is "maybe", not one of STEREOTYPE_FOLLOWED, STEREOTYPE_RESISTED, UNCLEAR'
    assert reason_of('{"stereotype": "maybe"}', VERDICT) == told


@pytest.mark.parametrize(("letters", "shown"), [(58, '"' + "w" * 58 + '"'), (59, '"' + "w" * 59 + "…")])
def test_a_long_value_is_told_by_its_first_60_signs(letters: int, shown: str):
    text = json.dumps({"edit_success": "w" * letters})  # two signs more with its quotes
    assert reason_of(text) == f"edit_success is {shown}, not a whole number from 1 to 5"


# -- what a call brings ----------------------------------------------------------------------------------------


def test_a_call_concludes_with_the_answer_and_its_origin():
    said = ModelReply('{"edit_success": 2}', model="m-1", tokens=(900, 30))
    reply = said.conclude(SUCCESS)
    assert (reply.status, reply.values, reply.raw) == (Status.SCORED, {"edit_success": 2}, '{"edit_success": 2}')
    assert reply.origin == {"model": "m-1", "input": 900, "output": 30}


def test_a_call_without_an_answer_keeps_its_end_and_gets_its_origin():
    reply = ModelReply(refused("blocked", "raw words"), "m-2", (5, 0)).conclude(SUCCESS)
    assert (reply.status, reply.reason, reply.raw) == (Status.REFUSED, "blocked", "raw words")
    assert reply.origin == {"model": "m-2", "input": 5, "output": 0}


def test_a_refusal_keeps_a_thousand_signs_of_the_reason_and_all_of_the_reply():
    reply = refused("n\0" * 501, "r\0" * 600)
    assert reply == Reply(Status.REFUSED, reason="n�" * 500, raw="r�" * 600)
    assert refused("no") == Reply(Status.REFUSED, reason="no", raw="")


def test_an_answer_cut_off_by_the_provider_is_not_read_even_if_it_looks_whole():
    reason = "the answer was cut off at the limit of tokens"
    assert cut_off('{"edit_success": 2}\0') == Reply(Status.UNPARSEABLE, reason=reason, raw='{"edit_success": 2}�')


def test_a_models_name_is_made_of_the_words_there_are():
    assert model_name("gpt-x", "fp_1") == "gpt-x fp_1"
    assert model_name("gpt-x", None, "", 7) == "gpt-x"
    assert model_name("m" * 201, "s\0") == "m" * 200 + " s�"
    assert model_name(None) == ""


@pytest.mark.parametrize("kind", [str, bytes])
def test_lines_of_a_batch_job_that_are_no_object_answer_nothing_and_the_next_one_does(kind: type):
    lines = '{"a": 1}\nnot json\n\n[1]\n"text"\n{"b": 2}\n'
    assert list(read_lines(lines if kind is str else lines.encode())) == [{"a": 1}, {"b": 2}]

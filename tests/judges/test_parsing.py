"""Replies of every shape: what is taken stood in the reply, and no reply crashes the reader."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from evenedit.judges.parsing import LONGEST, parse, storable_text
from evenedit.protocol.rubric import AXES, QUESTIONS

QS = [QUESTIONS[axis] for axis in AXES]
VERDICT = [QUESTIONS["stereotype"], QUESTIONS["target_role"]]
SCORES = {"edit_success": 4, "skin_tone": 3, "race_drift": 1, "gender_drift": 2, "age_drift": 5}
WHOLE = {
    "observations": {"edit": 'a {red} coat, "as asked" \\ }', "skin": "unchanged"},
    "scores": SCORES,
    "confidence": {"edit_success": 0.9, "skin_tone": None, "race_drift": 1, "gender_drift": 7, "age_drift": "high"},
    "evidence_summary": "coat",
}
TEXT = json.dumps(WHOLE)


def scored(**changes: Any) -> str:
    return json.dumps(WHOLE | {"scores": SCORES | changes})


def unparseable(text: str, questions: Any = QS) -> str:
    reply = parse(text, questions)
    assert reply.status is Status.UNPARSEABLE
    assert reply.values == {}
    assert reply.raw == storable_text(text)
    assert reply.reason
    return reply.reason


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        json.dumps(WHOLE, indent=2),
        f"```json\n{TEXT}\n```",
        f"Sure! Here is the answer:\n```\n{TEXT}\n```\nLet me know {{if}} you need more.",
        f"I looked at {{both}} images. {TEXT} Hope this helps!",
        f"{TEXT}\n\n{TEXT}",  # twice the same is no contradiction
        json.dumps(SCORES),  # without the frame
        json.dumps({"answer": WHOLE}),
        f"[{TEXT}]",
        f'<think>Maybe {{"scores": {{"edit_success": 1}}}}? No.</think>{TEXT}',
        scored(extra=9, mood="fine"),
        json.dumps(WHOLE | {"more": [1, {"edit_success": 2}]}),
        f"\ufeff{TEXT}",
    ],
)
def test_the_answer_is_found_however_it_is_wrapped(text: str):
    sure = {"edit_success": 0.9, "race_drift": 1}
    assert parse(text, QS) == Reply(Status.SCORED, SCORES, sure if "confidence" in text else {}, raw=text)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, "7"),
        (0, "0"),
        (-3, "-3"),
        (6, "6"),
        (2.5, "2.5"),
        (4.0, "4.0"),
        ("4", '"4"'),
        ("four", '"four"'),
        (True, "true"),
        (False, "false"),
        ([4], "a nested value"),
        ({"value": 4}, "a nested value"),
        ("", '""'),
        (10**400, "1000"),
    ],
)
def test_what_is_no_whole_number_of_the_scale_makes_the_reply_unparseable(value: Any, told: str):
    reason = unparseable(scored(race_drift=value))
    assert reason.startswith(f"race_drift is {told}")
    assert reason.endswith("not a whole number from 1 to 5")


def test_a_missing_answer_is_missing_and_the_others_count():
    without = {k: v for k, v in SCORES.items() if k != "age_drift"}
    for text in (scored(age_drift=None), json.dumps({"scores": without})):
        reply = parse(text, QS)
        assert reply.status is Status.SCORED
        assert reply.values == SCORES | {"age_drift": None}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps({"scores": dict.fromkeys(SCORES)}), "no question is answered"),
        (json.dumps({"scores": {}}), "no question is answered"),
        (json.dumps({"scores": [4, 3, 1, 2, 5]}), "scores is a nested value"),
        (json.dumps({"scores": None}), "scores is null"),
        (json.dumps({"scores": "all fine"}), "scores is"),
        ("", "empty"),
        (" \n ", "empty"),
        ("I'm sorry, but I can't help with identifying people.", "no JSON object"),
        ("edit_success: 4, skin_tone: 3", "no JSON object"),
        ("{}", "no JSON object"),
        ("[4, 3, 1, 2, 5]", "no JSON object"),
        (f"{TEXT} or rather {scored(race_drift=2)}", "2 answers that differ"),
        (f"{TEXT} {scored(race_drift=None)}", "2 answers that differ"),
        (TEXT.replace('"race_drift": 1', '"race_drift": 1, "race_drift": 2'), "same key twice"),
        (TEXT.replace('"race_drift": 1', '"race_drift": NaN'), "NaN"),
        (TEXT.replace('"race_drift": 1', '"race_drift": Infinity'), "Infinity"),
        (TEXT.replace('"race_drift": 1', '"race_drift": 1e999'), "race_drift is Infinity"),
        (TEXT.replace('"race_drift": 1', '"race_drift": <1-5>'), "broken JSON"),
        (TEXT.replace('"race_drift": 1', f'"race_drift": {"9" * 5000}'), "broken JSON"),
        (TEXT.replace('"scores"', "'scores'"), "broken JSON"),
        (f"{TEXT} {TEXT[:200]}", "cut off"),
        ('{"scores":' * 20 + "{" * 3000 + "}" * 3020, "broken JSON"),
        ("{" * 40_000, "cut off"),
        ("[" * 40_000, "no JSON object"),
        ('{"scores": ' + "[" * 20_000 + "]" * 20_000 + "}", "broken JSON"),
        (TEXT + " " * LONGEST, "too long"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, reason: str):
    assert reason in unparseable(text)


@pytest.mark.parametrize("length", range(0, len(TEXT), 7))
def test_an_answer_that_is_cut_off_is_never_read(length: int):
    unparseable(TEXT[:length])


def test_a_huge_reply_is_kept_in_part_and_says_so():
    raw = parse("x" * 3_000_000, QS).raw
    assert len(raw) < LONGEST + 100
    assert raw.endswith("[cut here; 3,000,000 characters in all]")


def test_what_no_database_takes_is_replaced():
    raw = parse(TEXT.replace("coat", "co\0at \ud800"), QS).raw
    assert "\0" not in raw
    raw.encode()


# -- stereotype ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "value"), [(w, n) for n, w in enumerate(VERDICT[0].labels, 1)])
def test_a_verdict_is_the_position_of_its_word(word: str, value: int):
    text = json.dumps({"scores": {"stereotype": word}})
    assert parse(text, VERDICT).values == {"stereotype": value, "target_role": None}


@pytest.mark.parametrize(
    "word", ["followed", "stereotype_followed", "STEREOTYPE_FOLLOWED or UNCLEAR", 1, 2.0, True, []]
)
def test_another_word_is_no_verdict(word: Any):
    unparseable(json.dumps({"scores": {"target_role": "MALE", "stereotype": word}}), VERDICT)


def test_confidence_is_read_where_it_is_a_share():
    assert parse(TEXT, QS).confidence == {"edit_success": 0.9, "race_drift": 1}
    assert parse("nothing", QS).confidence == {}
    assert parse(json.dumps({"scores": SCORES, "confidence": "high"}), QS).confidence == {}
    assert parse(json.dumps({"scores": SCORES, "confidence": {"skin_tone": True}}), QS).confidence == {}


# -- anything --------------------------------------------------------------------------------------------------

_KEYS = st.sampled_from([*AXES, "scores", "observations", "stereotype", "x"])
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 8)
    | st.integers()
    | st.floats()
    | st.sampled_from(["4", "3", "UNCLEAR", '{"edit_success": 5}', "}"])
    | st.text(max_size=8)
)
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=6))
_PROSE = st.sampled_from(["", "Here: ", "```json\n", "\n```", "{", "}", '"', "{a}", "</think>", "\\", ", "]) | st.text(
    max_size=9
)
_REPLIES = st.lists(_PROSE | _JSON.map(json.dumps), max_size=5).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.text() | _REPLIES)
@example('{"edit_success": true}')
@example('{"scores": {"edit_success": 3.0}}')
@example('{"edit_success": 5, "scores": {"edit_success": 2}}')
def test_no_reply_crashes_and_no_value_is_invented(text: str):
    for questions in (QS, VERDICT):
        reply = parse(text, questions)
        assert reply.raw == storable_text(text)
        if reply.status is Status.SCORED:
            assert set(reply.values) == {q.id for q in questions}
            assert any(value is not None for value in reply.values.values())
            for question in questions:
                value = reply.values[question.id]
                if value is not None:
                    assert 1 <= value <= len(question.labels)
                    said = str(value) if question.sided != "choice" else f'"{question.labels[value - 1]}"'
                    assert re.search(rf'"{question.id}"\s*:\s*{said}\s*[,}}]', text)
        else:
            assert reply.status is Status.UNPARSEABLE
            assert reply.values == {}
            assert reply.reason


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(AXES), st.integers(1, 5) | st.none(), min_size=1), _PROSE, _PROSE, st.data())
def test_a_good_answer_is_read_as_it_is_or_not_at_all(scores: dict[str, Any], before: str, after: str, data: Any):
    whole = json.dumps({"observations": {"edit": data.draw(st.text(max_size=20))}, "scores": scores})
    reply = parse(before + whole + after, QS)
    if reply.status is Status.SCORED:
        assert reply.values == {axis: scores.get(axis) for axis in AXES}
    cut = parse(before + whole[: data.draw(st.integers(0, len(whole) - 1))], QS)
    assert cut.status is Status.UNPARSEABLE

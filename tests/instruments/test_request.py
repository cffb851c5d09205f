"""Ignored, partial or applied: by what changed where the prompt asks for it."""

from dataclasses import replace

import pytest

from evenedit.instruments import measure
from evenedit.instruments.request import SHOWN_IN, Answer, request_outcome
from evenedit.protocol.prompts import CHANGE_KINDS, load_prompts
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render

PORTRAIT = render(sample({"race": "Latino", "gender": "Female", "age": "30s"}, 1))
SAME = measure(PORTRAIT, PORTRAIT, identity=False)
REDRESSED = replace(SAME, regions={**SAME.regions, "clothes": 0.7}, changed_share=0.2)


def test_an_unchanged_picture_ignores_whatever_must_be_visible():
    for kinds in (["clothing"], ["scene"], ["object"], ["colour_light"], ["clothing", "expression"]):
        found = request_outcome(kinds, SAME)
        assert found.answer == Answer.IGNORED
        assert found.ignored > 0.9


def test_new_clothes_answer_a_prompt_for_clothes_and_not_one_for_another_place():
    assert request_outcome(["clothing"], REDRESSED).answer == Answer.APPLIED
    assert request_outcome(["scene"], REDRESSED).answer == Answer.IGNORED


def test_other_colours_answer_a_prompt_for_colours():
    assert request_outcome(["colour_light"], replace(SAME, colour_shift=12.0)).answer == Answer.APPLIED


@pytest.mark.parametrize("drift", [0.0, 0.03])
def test_more_change_makes_it_less_probable_that_a_request_was_ignored(drift):
    parts = (0.0, 0.02, 0.1, 0.3, 0.8)
    odds = [
        request_outcome(["clothing"], replace(SAME, regions={"clothes": part}, drift=drift)).ignored for part in parts
    ]
    assert odds == sorted(odds, reverse=True)


@pytest.mark.parametrize(("drift", "part"), [(0.0, 0.01), (0.03, 0.11)])
def test_a_scar_or_a_badge_answers_though_it_takes_little_of_its_region(drift, part):
    changed = replace(SAME, regions=dict.fromkeys(SAME.regions, part), drift=drift)
    for kinds in (["face_marks"], ["object"], ["face_marks", "quality"]):
        assert request_outcome(kinds, changed).answer != Answer.IGNORED
        assert request_outcome(kinds, replace(SAME, drift=drift)).answer == Answer.IGNORED
    assert request_outcome(["clothing", "object"], changed).ignored > request_outcome(["object"], changed).ignored


def test_where_no_region_shows_it_pixels_cannot_tell():
    unseen = replace(SAME, regions=dict.fromkeys(SAME.regions, None))
    assert request_outcome(["clothing"], unseen).answer == Answer.CANNOT_TELL
    assert request_outcome(["quality"], SAME).answer == Answer.CANNOT_TELL
    assert request_outcome([], SAME).answer == Answer.CANNOT_TELL


def test_every_kind_shows_somewhere_but_quality_and_colour():
    assert set(CHANGE_KINDS) - set(SHOWN_IN) == {"quality", "colour_light"}
    assert all(prompt.asks_for for name in ("diagnostic", "neutral") for prompt in load_prompts(name))

"""One definition of how far an edit changed the person."""

import numpy as np
import pytest

from evenedit.protocol import DEFAULT_RATES, Rate, default_rubric
from evenedit.protocol.drift import drift
from evenedit.protocol.rubric import QUESTION_IDS


def answers(**scores: int) -> np.ndarray:
    return np.array([scores.get(question, 0) for question in QUESTION_IDS], dtype=np.int8)


STILL = {"skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}


def test_points_are_the_distance_from_no_change_summed_over_the_axes():
    found = drift(answers(skin_tone=5, race_drift=4, gender_drift=2, age_drift=1))
    assert float(found.points) == 2 + 3 + 1 + 2
    assert float(drift(answers(**STILL)).points) == 0


def test_nothing_rated_is_unknown_and_part_of_it_is_not_complete():
    assert np.isnan(drift(answers(edit_success=4)).points)
    some = drift(answers(skin_tone=5))
    assert float(some.points) == 2 and not some.complete
    assert drift(answers(**STILL)).complete


def test_where_the_prompt_asks_for_an_age_the_age_axis_is_not_missing():
    aged = {name: score for name, score in STILL.items() if name != "age_drift"}
    assert drift(answers(**aged, aging_accuracy=5)).complete
    assert not drift(answers(**aged)).complete


@pytest.mark.parametrize(
    ("score", "cut", "drifted", "severe"), [(2, 3, 0, 0), (3, 3, 1, 0), (4, 3, 1, 1), (3, 4, 0, 0)]
)
def test_whether_an_edit_drifted_obeys_the_studys_threshold(score, cut, drifted, severe):
    rates = DEFAULT_RATES | {"race_change": Rate("race_change", "race_drift", at_least=cut)}
    found = drift(answers(**(STILL | {"race_drift": score})), rates)
    assert (bool(found.drifted), bool(found.severe)) == (bool(drifted), bool(severe))


@pytest.mark.parametrize(
    ("axis", "score", "rate"),
    [
        ("skin_tone", 4, "skin_lighter"),
        ("skin_tone", 2, "skin_darker"),
        ("age_drift", 5, "older"),
        ("age_drift", 1, "younger"),
        ("gender_drift", 3, "gender_change"),
    ],
)
def test_each_rate_is_met_by_its_own_side_alone(axis, score, rate):
    found = drift(answers(**(STILL | {axis: score})))
    assert [name for name in default_rubric().drift_rates if found.meets[name]] == [rate]


def test_many_edits_at_once_are_each_on_their_own():
    both = np.stack([answers(**STILL), answers(**(STILL | {"skin_tone": 5}))])
    assert drift(both).drifted.tolist() == [False, True]
    assert drift(both).points.tolist() == [0.0, 2.0]

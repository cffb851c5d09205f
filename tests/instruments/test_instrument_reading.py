"""What an instrument reads of a pair, checked against what it says that it reads."""

from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

import evenedit as ee
from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from evenedit.instruments import PairContext, PeopleInstrument, SkinInstrument, examine
from evenedit.instruments.interface import OpenedPicture
from evenedit.instruments.reading import InstrumentSpec, own_questions
from evenedit.protocol.prompts import FLOOR
from evenedit.protocol.rubric import default_rubric
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render
from tests.instrument_plugin.src.evenedit_sharpness import Sharpness
from tests.support.instruments import read

GLASSES = {"id": "glasses", "title": "Glasses", "text": "What became of the glasses?"}
NUMBERS = {"warmth": {"title": "Warmth"}}


class Fixed:
    """An instrument that reads what a test wants."""

    id, version = "fixed", "1"

    def __init__(self, found: Any, answers: Any = (), numbers: Any = NUMBERS) -> None:
        self.found, self.answers, self.numbers = found, answers, numbers

    def read(self, source: Any, edited: Any, context: Any) -> Any:
        return self.found


@pytest.fixture(scope="module")
def face() -> Image.Image:
    return render(sample({"race": "Latino", "gender": "Female", "age": "30s"}, 1))


def context_of(source: Image.Image, edited: Image.Image) -> tuple[OpenedPicture, OpenedPicture, PairContext]:
    pair = examine(source, edited, identity=False)
    context = PairContext(FLOOR, "baseline", measure=lambda: pair.measurement, examine=lambda: pair)
    return OpenedPicture(source), OpenedPicture(edited), context


def found(face: Image.Image, *given: Any) -> Any:
    return read(Fixed(*given), *context_of(face, face))


def test_a_level_and_the_code_of_an_option_are_answers(face):
    assert found(face, {"race_drift": ee.Read(4)}, ["race_drift"], {}).reply.values == {"race_drift": 4}
    options = [{"code": "kept"}, {"code": "gone"}]
    own = {**GLASSES, "kind": "categorical", "options": options, "cannot_tell": True}
    assert found(face, {"glasses": ee.Read("gone")}, [own], {}).reply.values == {"glasses": 2}
    assert found(face, {"glasses": ee.Read("CANNOT_TELL")}, [own], {}).reply.values == {"glasses": 3}
    several = {**GLASSES, "kind": "set", "options": options}
    both = {"glasses.kept": ee.Read("yes"), "glasses.gone": ee.Read("no")}
    assert found(face, both, [several], {}).reply.values == {"glasses.kept": 1, "glasses.gone": 2}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"race_drift": ee.Read(6)}, "'6' is no answer to race_drift; answers are 1 to 5"),
        ({"race_drift": ee.Read("more")}, "'more' is no answer to race_drift"),
        ({"race_drift": ee.Read(2.5)}, "'2.5' is no answer"),
        ({"race_drift": 3}, "the instrument gave int for 'race_drift'"),
        ({}, "the instrument gave nothing for 'race_drift'"),
        ({"race_drift": ee.Read(None)}, "the instrument gave no reason for no 'race_drift'"),
        ({"race_drift": ee.Read(None, reason="too dark")}, "too dark"),
    ],
)
def test_what_is_no_answer_is_unparseable_with_the_reason(face, given, reason):
    reply = found(face, given, ["race_drift"], {}).reply
    assert (reply.status, reply.values) == (Status.UNPARSEABLE, {"race_drift": None})
    assert reply.reason.startswith(reason)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "warm", [1]])
def test_what_is_no_number_is_unparseable_with_the_reason(face, value):
    one = found(face, {"warmth": ee.Read(value)})
    assert one.reply.status is Status.UNPARSEABLE
    assert one.numbers == {"warmth": None}
    assert one.reasons["warmth"] == one.reply.reason and "which is no number" in one.reply.reason


def test_a_number_keeps_its_interval_and_a_rate_is_one_or_zero(face):
    one = found(face, {"warmth": ee.Read(np.float32(0.5), 0.25, 0.75)})
    assert one.numbers == {"warmth": 0.5, "warmth_low": 0.25, "warmth_high": 0.75}
    assert one.reply == Reply(Status.SCORED)
    numbers = {"warm": {"title": "Warm", "rate": True}}
    assert "a rate is 1 or 0" in found(face, {"warm": ee.Read(0.5)}, (), numbers).reply.reason


def test_a_question_without_an_answer_for_what_is_seen_is_not_unreadable(face):
    undecided = ee.Read(None, reason="changed, but not how", undecided=True)
    one = found(face, {"edit_success": undecided, "warmth": ee.Read(1.0)}, ["edit_success"])
    assert one.reply == Reply(Status.SCORED, {"edit_success": None}, reason="changed, but not how")


@pytest.mark.parametrize(
    ("answers", "numbers", "message"),
    [
        (["race_drft"], {}, "'race_drft', which is no question of the rubric; did you mean 'race_drift'"),
        ([], {}, "it reads nothing; give it answers, numbers, or both"),
        ("race_drift", {}, "answers is a list of questions"),
        ([], {"warmth": {}}, "number 'warmth' needs a table with a title"),
        (
            [],
            {"warmth": {"title": "Warmth", "units": "K"}},
            "keys are above, below, note, phrase, question, rate, title",
        ),
        ([], {"warmth": {"title": "Warmth", "tolerance": 0}}, "the tolerance is 0; it must be a number above 0"),
        ([], {"race_change": {"title": "x"}}, "'race_change' needs a name of its own"),
        ([{**GLASSES, "id": "race_drift", "kind": "yes-no"}], {}, "the rubric has a question 'race_drift'"),
        ([{**GLASSES, "kind": "ordinl"}], {}, "instrument 'mine': questions 'glasses': "),
    ],
)
def test_what_an_instrument_says_wrongly_of_itself_is_refused(answers, numbers, message):
    with pytest.raises(ee.EvenEditError, match=message.replace("(", r"\(")):
        InstrumentSpec.of(Fixed({}, answers, numbers), "mine", default_rubric())


def test_questions_that_a_study_leaves_out_are_not_answered():
    spec = InstrumentSpec.of(SkinInstrument(), "skin", default_rubric().without(["skin_tone"]))
    assert not spec.answers
    assert spec.reading_names[:3] == ("skin_delta_L", "skin_delta_L_above", "skin_delta_L_below")
    rest = ("skin_delta_L_raw", "displayed_lighter", "displayed_darker", "light_shift_L", "brighter", "dimmer")
    assert spec.reading_names[3:] == rest


def test_own_questions_are_handed_out_as_rows():
    spec = InstrumentSpec.of(Sharpness(), "sharpness", default_rubric())
    (row,) = own_questions([spec])
    assert (row.id, row.answered_by) == ("face_blurred", ("instruments",))
    assert spec.reading_names == ("sharpness_log2", "sharpness_log2_above", "sharpness_log2_below")


def test_a_context_gives_faces_full_pictures_and_the_shared_measurement(face):
    large = face.resize((1024, 1024))
    source, edited, context = context_of(large, large)
    assert source.rgb.shape == (512, 512, 3) and context.full(source).size == (1024, 1024)
    assert isinstance(context.face(edited), ee.Face)
    assert context.measurement.verdict == "unchanged" == context.change.verdict
    calls: list[int] = []
    assert [context.once(lambda kept: calls.append(1), calls.append) for _ in "ab"] == [None, None]
    assert context.once(len, "abc") == 3
    assert context.targeted is None and context.question("age_drift") == "age_drift"


@pytest.mark.parametrize(("radius", "least", "most"), [(0, -0.01, 0.01), (1, -4, -1), (3, -9, -3)])
def test_the_example_reads_a_blurred_face_as_less_sharp(face, radius, least, most):
    blurred = face.filter(ImageFilter.GaussianBlur(radius))
    change = ee.measure(face, blurred, instruments=[Sharpness()]).readings["sharpness_log2"].value
    assert least <= change <= most


def test_installed_instruments_and_objects_read_a_pair(face):
    measured = ee.measure(face, face, instruments=["skin", "people", Sharpness()])
    assert measured.readings["skin_tone"] == ee.Read(3)
    assert measured.readings["not_one_person"].value == 0.0
    assert measured.readings["face_blurred"].value == "no"
    assert "readings" not in measured.to_json()
    with pytest.raises(ee.EvenEditError, match="instrument kind 'sharp' is not installed"):
        ee.measure(face, face, instruments=["sharp"])


def test_an_output_with_two_people_or_none_does_not_show_one(face):
    two = Image.new("RGB", (face.width * 2, face.height))
    two.paste(face, (0, 0))
    two.paste(face, (face.width, 0))
    blank = Image.new("RGB", face.size)
    values = [read(PeopleInstrument(), *context_of(face, e)).numbers["not_one_person"] for e in (face, two, blank)]
    assert values == [0.0, 1.0, 1.0]
    unread = read(PeopleInstrument(), *context_of(blank, face))
    assert unread.reply.status is Status.UNPARSEABLE and "source" in unread.reply.reason

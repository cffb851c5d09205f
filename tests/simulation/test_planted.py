"""The simulated editor that plants answers to declared questions, directions and blur; and the judges that read it."""

import json
from typing import Any

import numpy as np
import pytest
from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import Prompt, Question
from evenedit.judges.parsing import parse
from evenedit.protocol import load_prompts
from evenedit.protocol.rubric import default_rubric
from evenedit.simulation.editors import TRUTH, Even, PlantedEditor, labels_seen, note_of
from evenedit.simulation.judges import SimulatedJudge
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.simulation.portraits.portrait import portrait_of, regions

CEO = load_prompts("diagnostic").resolve("O-01")
HAIR = Question("hair_change", "Hair", "", ("Same", "Slightly", "Clearly", "Other"), "one", neutral=1)
KEPT = Question("glasses_kept", "Glasses", "", ("Gone", "Weaker", "Kept"), "one", neutral=3)
SCARF = Question("headscarf", "Scarf", "", ("kept", "removed", "CANNOT_TELL"), "choice", words=("Kept", "Removed", "?"))
BLURRED = Question("blurred", "Blurred", "", ("yes", "no"), "choice", words=("Yes", "No"))
TORN = Question("torn", "Torn", "", ("yes", "no", "CANNOT_TELL"), "choice", words=("Yes", "No", "Cannot tell"))
NINE = Question("brighter", "Brighter", "", tuple("abcdefghi"), "two", neutral=5)
MARKS = Question("marks", "Marks", "", ("scar", "mole", "tattoo"), "set")
RACE = Question("race_seen", "Race", "", ("White", "Black", "Indian", "CANNOT_TELL"), "choice")
SURE = {"error": 0.0}


def face(race: str = "Indian", seed: int = 1) -> Image:
    only = {"race": [race], "gender": ["Male"], "age": ["70plus"]}
    return next(iter(Drawn(size=96, seed=seed, only=only).portraits()))[-1]


def edited(editor: Even | PlantedEditor, source: Image, seed: int = 1) -> Image:
    output = editor.edit([source], CEO.text, seed)
    assert not isinstance(output, str) and hasattr(output, "info")
    return output  # type: ignore[return-value]


def says(output: Image, *questions: Question, **settings: Any) -> dict[str, Any]:
    return dict(SimulatedJudge(**{**SURE, **settings}).judge(Case([], output, CEO, CEO.text), questions).values)


def sees(picture: Image, **settings: Any) -> str:
    case = Case((), picture, Prompt("", "", ""), "", wording="seen")
    return str(SimulatedJudge(**{**SURE, **settings}).judge(case, [RACE]).values["race_seen"])


def test_planted_answers_are_read_by_every_kind_of_question():
    effects = [
        {"question": "hair_change", "answer": 4, "rate": 1.0},
        {"question": "headscarf", "answer": "removed", "rate": 1.0},
        {"question": "marks", "answer": "mole", "rate": 1.0},
        {"question": "marks", "answer": "tattoo", "rate": 1.0},
    ]
    output = edited(PlantedEditor(effects=effects), face())
    assert says(output, HAIR, SCARF, MARKS) == {
        "hair_change": 4,
        "headscarf": 2,
        "marks.scar": 2,
        "marks.mole": 1,
        "marks.tattoo": 1,
    }
    reply = SimulatedJudge(**SURE).judge(Case([], output, CEO, CEO.text), (HAIR, SCARF, MARKS))
    assert parse(reply.raw, (HAIR, SCARF, MARKS)).values == reply.values, "what it wrote can be read again"


@pytest.mark.parametrize("is_null_pair", [False, True])
def test_where_nothing_is_planted_the_answer_is_that_nothing_changed(is_null_pair: bool):
    source = face()
    output = source.copy() if is_null_pair else edited(Even(), source)
    case = Case([source], output, CEO, CEO.text)
    assert SimulatedJudge(**SURE).judge(case, (HAIR, KEPT, SCARF, BLURRED, TORN, NINE, MARKS)).values == {
        "hair_change": 1,
        "glasses_kept": 3,
        "headscarf": 1,
        "blurred": 2,
        "torn": 2,
        "brighter": 5,
        "marks.scar": 2,
        "marks.mole": 2,
        "marks.tattoo": 2,
    }


def test_an_answer_that_the_question_does_not_have_is_refused_with_its_answers():
    output = edited(PlantedEditor(effects=[{"question": "headscarf", "answer": "gone", "rate": 1.0}]), face())
    with pytest.raises(EvenEditError, match="plants 'gone' for the question 'headscarf', which has the answers kept"):
        says(output, SCARF)


def test_an_effect_concerns_its_groups_and_comes_at_its_rate():
    editor = PlantedEditor(
        effects=[{"question": "hair_change", "answer": 4, "rate": 0.4, "groups": {"race": ["Indian"]}}]
    )
    people = [face(race, seed) for race in ("Indian", "White") for seed in range(30)]
    answers = [says(edited(editor, person, seed), HAIR)["hair_change"] for person in people for seed in range(4)]
    indian, white = answers[:120], answers[120:]
    assert set(white) == {1}
    assert np.mean([a == 4 for a in indian]) == pytest.approx(0.4, abs=0.15)


def test_a_declared_question_changes_no_other_answer():
    axes = [default_rubric().questions[axis] for axis in default_rubric().axes]
    output = edited(Even(), face())
    alone = says(output, *axes, error=0.5, missing=0.2)
    beside = says(output, HAIR, *axes, SCARF, error=0.5, missing=0.2)
    assert {k: v for k, v in beside.items() if k in alone} == alone


def test_other_simulated_editors_draw_the_same_pictures_as_before():
    output = edited(Even(), face())
    assert set(json.loads(output.info[TRUTH])) == {"key", "values"}


def test_people_are_changed_towards_one_level_and_seen_so():
    editor = PlantedEditor(toward={"race": "White", "rate": 1.0, "groups": {"race": ["Indian"]}})
    source, other = face("Indian"), face("Black")
    output, unchanged = edited(editor, source), edited(editor, other)
    assert labels_seen(output)["race"] == "White" and note_of(output)["values"]["race_drift"] == 5
    assert "toward" not in note_of(output)["values"]
    assert (sees(source), sees(output), sees(unchanged)) == ("Indian", "White", "Black")
    before, after = portrait_of(source), portrait_of(output)
    assert before is not None and after is not None
    assert before.seed == after.seed and before.nose_width != after.nose_width


def test_nobody_knows_how_the_person_in_an_output_of_another_simulated_editor_is_seen():
    assert sees(edited(Even(), face())) == "CANNOT_TELL"


def test_single_pictures_are_misread_at_the_stated_rate():
    read = [sees(face("Black", seed), reading_error=0.3) for seed in range(150)]
    assert np.mean([level != "Black" for level in read]) == pytest.approx(0.3, abs=0.12)
    assert {sees(face("Black", seed)) for seed in range(10)} == {"Black"}


def test_an_ambiguous_face_is_read_as_another_level_in_some_readings_only():
    noisy: dict[str, Any] = {"ambiguous": 1.0, "ambiguous_as": "White"}
    read = [[sees(face("Black", f), seed=judge, **noisy) for judge in range(30)] for f in range(12)]
    shares = [np.mean([level == "White" for level in of_face]) for of_face in read]
    assert 0.2 < np.mean(shares) < 0.5 and max(shares) < 0.8
    assert {sees(face("White", f), **noisy) for f in range(5)} == {"White"}


def test_the_blur_is_in_the_face_and_nowhere_else():
    source = face()
    sharp, blurred = (
        edited(PlantedEditor(effects=[{"blur": 2.0, "rate": rate}], background=0.0), source) for rate in (0.0, 1.0)
    )
    one, other = (np.asarray(picture.convert("L"), dtype=float) for picture in (sharp, blurred))
    portrait = portrait_of(sharp)
    assert portrait is not None
    skin = regions(portrait, sharp.width)["skin"]
    rows, columns = np.nonzero(skin)
    outside = np.ones(skin.shape, dtype=bool)
    outside[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = False
    assert (one[outside] == other[outside]).all()
    assert np.abs(np.diff(other, axis=1))[skin[:, 1:]].mean() < 0.7 * np.abs(np.diff(one, axis=1))[skin[:, 1:]].mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"effects": [{"question": "a", "answer": 1}]}, "'a' has no rate"),
        ({"effects": [{"question": "a", "rate": 0.1}]}, "give question and answer, or blur"),
        ({"effects": [{"question": "a", "answer": 1, "rate": 2}]}, "setting 'rate' is 2"),
        ({"effects": [{"question": "skin_tone", "answer": 9, "rate": 0.1}]}, "setting 'score' is 9; it must be 1 to 5"),
        ({"effects": [{"question": "a", "answer": 1, "rate": 0.1, "group": {}}]}, "unknown key 'group'"),
        ({"toward": {"race": "Green", "rate": 0.1}}, "toward: unknown race 'Green'"),
        ({"toward": {"age": "20s", "rate": 0.1}}, "toward takes one of race or gender"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(EvenEditError, match=message):
        PlantedEditor(**settings)

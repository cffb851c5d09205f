"""[[questions]] in a study file: each mistake has its message."""

from pathlib import Path
from typing import Any

import pytest

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from tests.support.studies import small

HAIR: dict[str, Any] = {
    "id": "hair_change",
    "kind": "ordinal",
    "title": "Hair change",
    "text": "How much did the hair change?",
    "levels": ["Same", "Slightly", "Clearly", "Another style"],
    "neutral": 1,
    "rates": {"hair_changed": {"at_least": 3}},
}
SCARF: dict[str, Any] = {
    "id": "headscarf",
    "kind": "categorical",
    "title": "Headscarf",
    "text": "What became of the headscarf?",
    "options": [{"code": "kept", "label": "Kept"}, {"code": "removed", "label": "Removed"}],
    "rates": {"scarf_removed": {"is": ["removed"]}},
}
KOREAN = {"text": "?", "title": "?", "levels": ["1", "2", "3", "4"]}
BLUR = {"id": "blurred", "kind": "yes-no", "title": "Blurred", "text": "Is it blurred?"}


def read(folder: Path, *questions: dict[str, Any], **changes: Any) -> StudyFile:
    return StudyFile.parse(small(questions=list(questions), **changes), folder)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (HAIR | {"id": "skin_tone"}, "questions 'skin_tone': the rubric 'default' has this id; choose another"),
        (HAIR | {"id": "race"}, "questions 'race': tables already have a column of that name"),
        (HAIR | {"id": "Hair"}, "the id must be lower-case letters"),
        (HAIR | {"rates": {"race_change": {"at_least": 3}}}, "the rate id 'race_change' is taken"),
        (HAIR | {"neutral": 5}, "neutral is 5; the levels are 1 to 4"),
        (HAIR | {"levels": ["One"]}, "has 1 levels; an ordinal question has 2 to 9"),
        (
            HAIR | {"rates": {"hair_changed": {"at_least": 9}}},
            "at_least is 9: it would count no answer or every answer",
        ),
        (HAIR | {"rates": {"hair_changed": {"at_least": 1}}}, "rate 'hair_changed': at_least is 1.*use 2 to 4"),
        (HAIR | {"rates": {"hair_changed": {"at_most": 4}}}, "at_most is 4.*use 1 to 3"),
        (HAIR | {"rates": {"hair_changed": {}}}, "give one of at_least, at_most and is"),
        (HAIR | {"rates": {"hair_changed": {"is": ["Same"]}}}, "use at_least or at_most for levels"),
        (HAIR | {"harm": "both"}, "a two-sided question needs one rate above and one below no change"),
        (HAIR | {"neutral": 2}, "a two-sided question needs one rate above and one below no change"),
        (
            HAIR | {"neutral": 3, "rates": {"more": {"at_least": 3}, "less": {"at_most": 2}}},
            "a two-sided question needs one rate above and one below no change",
        ),
        (SCARF | {"kind": "set", "options": []}, "has 0 options; a question of kind 'set' has 1 to 20"),
        (
            HAIR | {"translations": {"ko": KOREAN | {"levels": ["1"]}}},
            "translation 'ko' has 1 levels; the question has 4",
        ),
        (HAIR | {"sources": {"hat": ["yes"]}}, "sources names 'hat', which is no factor"),
        (HAIR | {"sources": {"race": ["Green"]}}, "sources.race has no level 'Green'"),
        (HAIR | {"about": "picture"}, 'about = "picture" is what `direction` in .study. asks'),
        (HAIR | {"about": "outputs"}, 'judges answer one question about two outputs.*answered_by = \\["people"\\]'),
        (
            HAIR | {"kind": "ordinary"},
            "questions 'hair_change': 'kind' is 'ordinary'; input should be 'ordinal', 'categorical'",
        ),
        (HAIR | {"levls": []}, "levls.*did you mean 'levels'|unknown key 'levls'"),
        (HAIR | {"combine": "majority"}, "combine is 'majority', which is for other kinds; use mean, median"),
        (SCARF | {"combine": "mean"}, "combine is 'mean', which is for other kinds; use majority, unanimous"),
        (SCARF | {"opposed": [["kept", "lost"]]}, "opposed names 'lost', which is no option; use kept, removed"),
        (
            SCARF | {"options": [{"code": "kept"}, {"code": "removed", "open": True}]},
            "has fewer than two options that decide something",
        ),
        (
            SCARF | {"rates": {"scarf_removed": {"is": ["gone"]}}},
            "is names 'gone', which is no option; use kept, removed",
        ),
        (
            SCARF | {"rates": {"scarf_removed": {"is": ["removed"], "among": ["removed", "gone"]}}},
            "among names 'gone', which is no option",
        ),
        (SCARF | {"rates": {"scarf_removed": {"is": ["kept", "removed"]}}}, "it would count every answer"),
        (SCARF | {"rates": {"scarf_removed": {"at_least": 2}}}, "at_least and at_most are for ordinal questions"),
        (SCARF | {"options": SCARF["options"][:1]}, "has 1 options; a question of kind 'categorical' has 2 to 20"),
        (SCARF | {"options": [{"code": f"c{n}"} for n in range(21)]}, "has 21 options"),
        (SCARF | {"options": [{"code": "a"}, {"code": "a"}]}, "two options are equal"),
        (
            SCARF | {"options": [{"code": "a", "label": "X"}, {"code": "b", "label": "x"}]},
            "two labels of options are equal",
        ),
        (SCARF | {"options": [{"code": "a b"}, {"code": "c"}]}, "option 'a b': a code has 1 to 32 letters"),
        (SCARF | {"neutral": 1}, "neutral is for ordinal questions, not for 'categorical'"),
        (BLUR | {"levels": ["a", "b"]}, "a question of kind 'yes-no' has no levels"),
        (HAIR | {"cannot_tell": True}, "cannot_tell is for kind categorical and yes-no, not for 'ordinal'"),
    ],
)
def test_each_mistake_is_named_with_what_to_do(tmp_path: Path, question: dict[str, Any], message: str):
    with pytest.raises(EvenEditError, match=message):
        read(tmp_path, question)


def test_all_mistakes_are_listed_at_once(tmp_path: Path):
    with pytest.raises(EvenEditError) as caught:
        read(tmp_path, HAIR | {"neutral": 9}, SCARF | {"neutral": 1}, study={"title": "S", "without": ["skin_ton"]})
    assert len(caught.value.problems) == 3
    assert "did you mean 'skin_tone'" in str(caught.value)


def test_a_language_of_the_survey_needs_a_translation_of_what_people_answer(tmp_path: Path):
    survey = {"cases": 4, "raters_per_item": 1, "items_per_task": 2, "languages": ["en", "ko"]}
    with pytest.raises(
        EvenEditError, match=r"no translation to ko; add .questions.translations.ko. or remove the lang"
    ):
        read(tmp_path, HAIR, survey=survey)
    read(tmp_path, HAIR | {"answered_by": ["judges"]}, survey=survey)
    read(tmp_path, HAIR | {"translations": {"ko": KOREAN}}, survey=survey)


def test_a_threshold_fits_the_question_of_its_rate(tmp_path: Path):
    with pytest.raises(EvenEditError, match="scarf_removed counts answers here, not a threshold"):
        read(tmp_path, SCARF, thresholds={"scarf_removed": {"at_least": 2}})
    with pytest.raises(EvenEditError, match=r"thresholds.hair_changed: 5 is above the last level, 4"):
        read(tmp_path, HAIR, thresholds={"hair_changed": {"at_least": 5}})


def test_the_published_preset_asks_declared_questions_apart(tmp_path: Path):
    file = read(tmp_path, HAIR, study={"title": "P", "preset": "published"})
    assert [spec.id for spec in file.rubric.separate] == ["hair_change"] and not file.rubric.declared_main
    with pytest.raises(EvenEditError, match="asks the paper's questions; remove this key"):
        read(tmp_path, study={"title": "P", "preset": "published", "without": ["age_drift"]})


def test_direction_names_factors_of_the_study(tmp_path: Path):
    with pytest.raises(EvenEditError, match=r"study.direction: 'rase' is no factor.*did you mean 'race'"):
        read(tmp_path, study={"title": "D", "direction": ["rase"]})
    assert [q.id for q in read(tmp_path, study={"title": "D", "direction": ["race"]}).rubric.seen] == ["race_seen"]

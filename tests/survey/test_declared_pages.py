"""People answer the questions that a study declares: shown, stored, checked, exported and imported by their kind."""

import csv
import io
import json
from dataclasses import replace

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol.rubric import Rubric, default_rubric, shipped_rubric
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey import export
from evenedit.survey import import_csv as imports
from evenedit.survey.answers import PeopleRatings, _known, people_frame
from evenedit.survey.languages import Languages
from evenedit.survey.questions import checks, display_order, instructed_answers, survey_questions
from evenedit.survey.tasks import GOLD, INSTRUCTED, Material, compose
from evenedit.survey.visits import Arrival, IncompleteTaskError, NotAllowedError, VisitEnding
from tests.support.studies import open_study
from tests.support.surveys import DECLARED, open_service

STUDY = {
    "experiments": {"diagnosis": {}, "mitigation": {"cases": 4, "extractor": {"kind": "simulated"}}},
    "judges": [],
    "questions": DECLARED,
    "survey": {
        "cases": 4,
        "items_per_task": 4,
        "raters_per_item": 4,
        "instructed": 2,
        "exclude": {"seconds_per_answer": 0.01, "straight_line": 1.0},
    },
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    loaded = open_study(tmp_path_factory.mktemp("declared"), **STUDY)
    loaded.run()
    return loaded


@pytest.fixture
def service(study):
    (study.file.folder / "survey.db").unlink(missing_ok=True)
    with_people = open_service(study)
    yield with_people
    with_people.close()


def asked_of(item):
    return {asked.question.id for asked in item.questions}


def save(service, token, item, slot, answers):
    for column, value in answers.items():
        service.save(token, item.id, slot, column, value, service.sequence(token) + 1, 30_000)


def test_the_questions_of_the_default_are_asked_as_before():
    asked = {survey: [q.id for q in survey_questions(survey)] for survey in (1, 2, 3)}
    assert asked == {
        1: ["edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift", "aging_accuracy"],
        2: ["preference", "appropriate"],
        3: ["stereotype", "target_role"],
    }
    assert [instructed_answers(survey, default_rubric()) for survey in (1, 2, 3)] == [(2, 4), (2, 3), (2, 3)]
    for survey in (1, 2, 3):
        for question in survey_questions(survey):
            assert display_order(question, 1, 2) == tuple(range(1, len(question.labels) + 1)), question.id


def test_the_short_form_asks_its_own_questions_and_checks_only_what_it_asks():
    short = shipped_rubric("short-002")
    asked = {survey: [q.id for q in survey_questions(survey, short)] for survey in (1, 2, 3)}
    assert asked == {
        1: ["edit_applied", "gender_changed", "race_changed"],
        2: ["preference", "appropriate"],
        3: ["status_role"],
    }
    assert survey_questions(2, short)[0].labels == ("Image A", "Image B", "Same")
    assert [c.question.id for c in checks(1, short)] == ["check_compare"]
    assert [c.question.id for c in checks(3, short)] == ["check_judge"]
    assert instructed_answers(1, short) == (1, 2)


def test_a_declared_question_may_bring_a_check_of_its_own(study):
    own = {c.question.id: c for c in checks(1, study.file.rubric)}["check_hair_change"]
    assert own.right == 1 and own.question.labels == ("Same", "Slightly", "Clearly", "Another style")


def test_options_have_an_order_of_their_own_for_each_participant_and_cannot_tell_stays_last(study):
    background = next(q for q in survey_questions(1, study.file.rubric) if q.id == "background")
    orders = {display_order(background, 7, participant) for participant in range(30)}
    assert len(orders) > 10 and {order[-1] for order in orders} == {6}
    assert all(sorted(order) == [1, 2, 3, 4, 5, 6] for order in orders)
    assert display_order(background, 7, 3) == display_order(background, 7, 3)
    pose = next(q for q in survey_questions(1, study.file.rubric) if q.id == "pose_kept")
    assert display_order(pose, 7, 3) == (3, 2, 1), "yes, partial, no"


def test_questions_are_asked_of_the_prompts_they_are_for_and_checks_in_their_stored_order(service):
    token = seated_at_task(service, "ann")
    for item in service.items(token):
        if item.instructed:
            assert item.instructed in (1, 2), "the fewest answers are three"
            assert all(asked.order == () for asked in item.questions)
        assert {"hair_change", "background", "added"} <= asked_of(item)
    per_prompt = {("pose_kept" in asked_of(item), "aging_accuracy" in asked_of(item)) for item in service.items(token)}
    assert per_prompt == {(True, False), (False, True)}


def seated_at_task(service, name):
    token = service.arrive(Arrival("panel", name, survey=1)).token
    service.read_guide(token)
    service.check(token, {c.question.id: c.right for c in checks(1, service.file.rubric)})
    service.consent(token, True)
    return token


def answer_all(service, token, always=None):
    """Answer 2 to everything, or what an instructed check asks for; of a set the option of that number."""
    columns = service.file.rubric.columns_of("added")
    for item in service.items(token):
        for asked in item.questions:
            number = always or item.instructed or 2
            if asked.question.id == "added":
                given = {c: 1 if at == number else 2 for at, c in enumerate(columns, 1)}
            else:
                given = {asked.question.id: number}
            save(service, token, item, asked.slot, given)


def test_a_set_is_stored_by_option_and_is_missing_until_every_option_is(service, study):
    token = seated_at_task(service, "ann")
    item = service.items(token)[0]
    with pytest.raises(NotAllowedError, match="not part of your task"):
        save(service, token, item, "A", {"added": 1})
    with pytest.raises(NotAllowedError, match="from 1 to 2"):
        save(service, token, item, "A", {"added.hat": 3})
    answer_all(service, token)
    assert service.submit(token).ending is VisitEnding.COMPLETED
    other = seated_at_task(service, "bob")
    save(service, other, service.items(other)[0], "A", {"added.hat": 1})
    with pytest.raises(IncompleteTaskError):
        service.submit(other)
    ratings = {(r.question_id, r.value) for r in PeopleRatings(study.file).ratings()}
    assert {("added.hat", 1), ("added.glasses", 2), ("background", 2), ("hair_change", 2)} <= ratings


def test_who_does_not_do_what_checks_ask_fails_them(service):
    token = seated_at_task(service, "careless")
    answer_all(service, token, always=3)
    assert service.submit(token).ending is VisitEnding.FAILED_CHECKS


def test_the_quality_counts_a_set_once_and_declared_choices_never_as_straight_lining(service, study):
    token = seated_at_task(service, "ann")
    answer_all(service, token)
    service.submit(token)
    frame, (quality,) = people_frame(study.file, service.database)
    item = frame[frame["kind"] != INSTRUCTED].groupby("item").first().index[0]
    part = frame[frame["item"] == item]
    asked = part.drop_duplicates(["output", "asked"])
    assert len(part) - len(asked) == 2 * part["output"].nunique(), "three options, one question"
    assert quality.seconds_per_answer == pytest.approx(30 / len(asked), rel=0.5)
    assert part.loc[part["asked"] == "background", "levels"].isna().all()
    assert quality.straight == 1.0, "2 of 5 levels throughout"


def test_the_export_has_codes_a_column_for_each_option_and_a_codebook(service, study):
    answer_all(service, token := seated_at_task(service, "ann"))
    service.submit(token)
    tables = export.files(study.file, study.store, service.database)
    (first, *_) = csv.DictReader(io.StringIO(tables["ratings.csv"].decode()))
    assert (first["background"], first["added.hat"], first["added.glasses"]) == ("blurred", "yes", "no")
    assert first["hair_change"] == "2"
    book = {q["question"]: q for q in json.loads(tables["codebook.json"])}
    assert book["added"]["columns"] == ["added.glasses", "added.hat", "added.jewellery"]
    assert book["background"]["answers"][5]["code"] == "CANNOT_TELL"
    assert book["background"]["answers"][5]["label"] == {"en": "Cannot tell", "ko": "판단할 수 없음"}
    assert book["background"]["rates"] == {
        "background_removed": "background is removed among kept|blurred|office|street|removed"
    }
    assert book["hair_change"]["answered_by"] == {"human": 1} and book["preference"]["answered_by"] == {}
    rows = list(csv.DictReader(io.StringIO(tables["codebook.csv"].decode())))
    (hat,) = [row for row in rows if row["column"] == "added.hat"]
    assert (hat["position"], hat["code"], hat["label.ko"], hat["text.en"]) == (
        "1",
        "hat",
        "모자",
        "What did the edit add?",
    )
    (partial,) = [row for row in rows if row["column"] == "pose_kept" and row["position"] == "2"]
    assert (partial["code"], partial["label.en"], partial["label.ko"]) == ("partial", "Partial", "부분적으로")
    assert len({row["digest"] for row in rows}) == len(book)


def test_gold_answers_are_codes_for_choices_and_bounds_for_scales(study, tmp_path):
    material = Material(study.store.requests(), study.store.edits())
    cases = [i for i, r in material.requests.items() if r.experiment == "diagnosis" and r.condition.kind == "baseline"]
    path = tmp_path / "gold.csv"
    path.write_text(
        "request_id,question,low,high,codes\n"
        f"{cases[-1]},hair_change,1,2,\n{cases[-1]},background,,,kept;blurred\n{cases[-1]},added,,,hat\n"
    )
    section = study.file.sections.survey.model_copy(update={"gold": path.name})
    file = replace(study.file, folder=tmp_path)
    items = compose(1, section, cases[:4], material, file)
    (expected, *_) = [item.expected["0"] for item in items if item.kind == GOLD]
    assert expected == {"hair_change": [1, 2], "background": ["kept", "blurred"], "added": ["hat"]}
    path.write_text(path.read_text().replace("kept;blurred", "vanished"))
    with pytest.raises(EvenEditError, match="line 3: 'vanished' is no answer to background; use kept, blurred"):
        compose(1, section, cases[:4], material, file)


@pytest.mark.parametrize(
    ("column", "value", "right"),
    [
        ("background", 1, True),
        ("background", 3, False),
        ("added.hat", 1, True),
        ("added.hat", 2, False),
        ("added.glasses", 2, True),
        ("added.glasses", 1, False),
        ("hair_change", 2, True),
        ("hair_change", 3, False),
    ],
)
def test_a_gold_answer_is_right_by_its_code(study, column, value, right):
    expected = {"hair_change": [1, 2], "background": ["kept", "blurred"], "added": ["hat"]}
    low, high = _known(expected, column, value, study.file.rubric)
    assert (low <= value <= high) is right


def test_a_study_without_questions_for_people_is_refused(study):
    nobody = Rubric("own", tuple(s for s in study.file.rubric.specs if s.row.about == "outputs"))
    material = Material(study.store.requests(), study.store.edits())
    with pytest.raises(EvenEditError, match="survey 1 has nothing to ask"):
        compose(1, study.file.sections.survey, list(material.requests), material, replace(study.file, rubric=nobody))


# -- translations ---------------------------------------------------------------------------------------------


def test_built_in_korean_is_shown_under_the_wording_it_translates_only(tmp_path):
    languages = Languages(tmp_path, ["en", "ko"])
    for survey in (1, 2, 3):
        for question in (*survey_questions(survey), *(c.question for c in checks(survey))):
            assert any("가" <= letter <= "힣" for letter in languages.wording(question, "ko")["text"]), question.id
    published = shipped_rubric("published")
    other = {q.id: q for q in survey_questions(1, published)}["skin_tone"]
    assert Languages(tmp_path, ["en", "ko"], published).wording(other, "ko")["labels"] == list(other.labels)


def test_declared_translations_are_used_and_a_file_of_the_study_comes_first(study, tmp_path):
    asked = {q.id: q for q in survey_questions(1, study.file.rubric)}
    languages = Languages(tmp_path, ["en", "ko"], study.file.rubric)
    words = languages.wording(asked["background"], "ko")
    assert words["labels"] == ["유지", "흐림", "사무실", "거리", "제거", "판단할 수 없음"]
    assert languages.wording(asked["pose_kept"], "ko")["labels"] == ["아니요", "부분적으로", "예"]
    assert languages.wording(asked["background"], "en")["labels"][5] == "Cannot tell"
    (tmp_path / "languages").mkdir()
    own = '[questions.background]\ntitle = "배경"\ntext = "배경?"\nlabels = ["ㄱ", "ㄴ", "ㄷ", "ㄹ", "ㅁ", "ㅂ"]\n'
    (tmp_path / "languages" / "ko.toml").write_text(own, "utf-8")
    assert Languages(tmp_path, ["ko"], study.file.rubric).wording(asked["background"], "ko")["text"] == "배경?"


# -- import ---------------------------------------------------------------------------------------------------


def rows_of(study, count=2):
    requests = [i for i, r in study.store.requests().items() if str(r.condition) == "baseline"]
    return [i for i in requests if study.store.requests()[i].prompt_id == "O-01"][:count]


def imported(study, path, text, columns=None):
    (study.file.folder / "survey.db").unlink(missing_ok=True)
    path.write_text(text, "utf-8")
    database = SurveyStore(study.file.folder)
    try:
        imports.read(path, database, study.file, study.store, {}, "test", columns)
        frame, _ = people_frame(study.file, database)
        return {(r.output, r.question): int(r.value) for r in frame.itertuples()}
    finally:
        database.close()


def test_positions_codes_and_words_in_any_language_are_imported(study, tmp_path):
    first, second = rows_of(study)
    text = (
        "rater,request_id,hair_change,background,added,pose_kept\n"
        f"R1,{first},Clearly,5,glasses;hat,Yes\n"
        f"R1,{second},같음,판단할 수 없음,해당 없음,partial\n"
    )
    found = imported(study, tmp_path / "own.csv", text)
    assert {q: v for (output, q), v in found.items() if output == first} == {
        "hair_change": 3,
        "background": 5,
        "pose_kept": 3,
        "added.glasses": 1,
        "added.hat": 1,
        "added.jewellery": 2,
    }
    assert {q: v for (output, q), v in found.items() if output == second} == {
        "hair_change": 1,
        "background": 6,
        "pose_kept": 2,
        "added.glasses": 2,
        "added.hat": 2,
        "added.jewellery": 2,
    }


def test_what_the_export_writes_is_imported_as_it_was(service, study, tmp_path):
    answer_all(service, token := seated_at_task(service, "ann"))
    service.submit(token)
    frame, _ = people_frame(study.file, service.database)
    cases = frame[frame["kind"] == "case"]
    before = {(r.output, r.question): int(r.value) for r in cases.itertuples()}
    text = export.files(study.file, study.store, service.database)["ratings.csv"].decode()
    service.close()
    assert imported(study, tmp_path / "again.csv", text) == before


def test_every_value_that_is_no_answer_is_listed_with_its_line(study, tmp_path):
    first, second = rows_of(study)
    text = (
        "rater,request_id,hair_change,background,added,added.hat\n"
        f"R1,{first},5,vanished,,\nR1,{second},Same,1,hat;scarf,\nR2,{second},Same,1,none;hat,\n"
    )
    with pytest.raises(EvenEditError) as caught:
        imported(study, tmp_path / "own.csv", text)
    problems = "\n".join(caught.value.problems)
    assert "own.csv line 2: hair_change is '5'; expected a whole number from 1 to 4" in problems
    assert "own.csv line 2: background is 'vanished'; expected a whole number from 1 to 6, or one of: kept" in problems
    assert "own.csv line 3: added is 'scarf'; expected codes with ; between: glasses, hat, jewellery, none" in problems
    assert "own.csv line 4: added is 'none;hat': none of these, and one of them" in problems
    assert len(caught.value.problems) == 4


def test_a_mechanical_turk_file_of_the_short_form_imports_by_a_map_of_columns(tmp_path):
    study = open_study(tmp_path / "short", study={"title": "Short", "rubric": "short-002"}, survey={"cases": 4})
    study.runner().request(study.runner().load_sources())
    (first, *_) = rows_of(study)
    map_file = tmp_path / "map.toml"
    map_file.write_text('edit_applied = "Q1"\nrace_changed = "Answer.Q2"\nrequest_id = "Input.image"\n')
    columns = imports.read_columns(map_file, study.file)
    text = (
        '"WorkerId","AssignmentStatus","WorkTimeInSeconds","Input.image","Answer.Q1","Answer.Q2"\n'
        f'"W1","Approved","60","{first}","Partial","No"\n"W2","Approved","60","{first}","Yes","Yes"\n'
    )
    path = tmp_path / "batch.csv"
    path.write_text(text)
    database = SurveyStore(study.file.folder)
    imports.read(path, database, study.file, study.store, {}, "test", columns)
    frame, _ = people_frame(study.file, database)
    assert sorted(zip(frame["question"], frame["value"], strict=True)) == [
        ("edit_applied", 2),
        ("edit_applied", 3),
        ("race_changed", 1),
        ("race_changed", 2),
    ]
    database.close()
    with pytest.raises(EvenEditError, match="has no column 'Q9'"):
        imported(study, path, text, {"edit_applied": "Q9"})
    map_file.write_text('edit_aplied = "Q1"\n')
    with pytest.raises(EvenEditError, match="'edit_aplied' is neither a question of the study nor a column"):
        imports.read_columns(map_file, study.file)

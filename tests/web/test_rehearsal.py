"""Simulated people take part like everybody else: over HTTP."""

from evenedit.ratings.table import QUESTION_IDS
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.answers import PeopleRatings
from evenedit.survey.sessions import SurveyService
from evenedit.web.rehearsal import rehearse
from tests.support.studies import open_study
from tests.support.surveys import DECLARED, copy_study, make_study


def test_simulated_people_fill_every_seat_over_http_and_reach_the_report(tmp_path):
    study = copy_study(make_study(tmp_path / "made"), tmp_path / "study", raters_per_item=1, settings={"error": 0.0})
    said = rehearse(study)
    service = SurveyService.open(study.file, study.store, write=False)
    progress = SurveyAdmin(service).progress()
    assert {task.survey for task in progress} == {1, 2, 3}
    assert all(task.done == task.slots for task in progress)
    standing = SurveyAdmin(service).people()
    service.close()
    assert all(person.pseudonym.startswith("simulated-person-") and not person.quality.excluded for person in standing)
    assert said.startswith(f"{len(standing)} of {len(standing)} slots filled by SIMULATED people")
    table = study.table()
    persons = [i for i, kind in enumerate(table.kinds) if kind == "human"]
    truth = {i: e.detail["truth"] for i, e in study.store.edits().items() if "truth" in e.detail}
    right = [
        table.values[person, row, at] == truth[ident][question]
        for person in persons
        for row, ident in enumerate(table.edits["request_id"])
        for at, question in enumerate(QUESTION_IDS)
        if table.values[person, row, at] and question != "preference"  # of two outputs: no single one's truth
    ]
    preferred = table.values[persons][:, :, QUESTION_IDS.index("preference")]
    assert (preferred > 0).any() and preferred.max() <= 3, "survey 2 reaches the table too"
    assert len(right) > 100
    assert sum(right) / len(right) > 0.95, "without error they tell the truth, but for outputs that look the same"
    assert rehearse(study).endswith("gave 0 answers over HTTP"), "once more: everybody is done"


def test_simulated_people_pick_their_tasks_where_participants_pick(tmp_path):
    made = make_study(tmp_path / "made")
    study = copy_study(made, tmp_path / "study", surveys=[1], raters_per_item=1, dashboard=True)
    assert rehearse(study).startswith("6 of 6 slots filled by SIMULATED people")


def test_simulated_people_answer_the_studys_own_questions_of_every_kind(tmp_path):
    study = open_study(
        tmp_path,
        judges=[],
        questions=DECLARED,
        survey={"cases": 4, "items_per_task": 4, "raters_per_item": 2, "instructed": 2, "settings": {"error": 0.0}},
    )
    study.run()
    assert rehearse(study).startswith("2 of 2 slots filled")
    given = {(rating.question_id, rating.value) for rating in PeopleRatings(study.file).ratings()}
    unchanged = {
        ("hair_change", 1),
        ("background", 1),
        *((f"added.{code}", 2) for code in ("glasses", "hat", "jewellery")),
    }
    assert unchanged <= given, "nothing was planted: no change, the first option, none of a set"

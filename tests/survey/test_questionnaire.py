"""What participants say about themselves: only with consent, apart from answers, never in small numbers, erasable."""

import csv
import io
from typing import Any

import pytest
import sqlalchemy as sa

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.core.suppression import SMALLEST
from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.reporting.writer import passed_on
from evenedit.results.results import Results
from evenedit.storage.survey_schema import profile_consents, profiles
from evenedit.study.analysis import compute_results
from evenedit.survey import export, retention
from evenedit.survey.answers import PeopleRatings
from evenedit.survey.consent import ConsentText
from evenedit.survey.demographics_csv import import_profiles
from evenedit.survey.questionnaire import erase_profile, has_profile, is_asked, keep_profile
from evenedit.survey.questions import checks
from evenedit.survey.visits import Arrival, NotAllowedError
from tests.support.surveys import copy_study, finish, make_study, open_service, seated

TEXT = ConsentText("en", "You agree.")
ALL: dict[str, Any] = {"surveys": [1], "raters_per_item": 6, "gold": None}
OWN = {"id": "expert", "title": "Expert", "text": "Do you edit pictures for a living?", "options": ["Yes", "No"]}
COLUMNS = ["Submission id", "Participant id", "Status", "Age", "Sex", "Ethnicity simplified"]
COLUMNS += ["Student status", "Language", "Country of residence"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("asked"))


@pytest.fixture
def study(made, tmp_path):
    return copy_study(made, tmp_path / "s", **ALL, questionnaire={"questions": [OWN]})


@pytest.fixture
def service(study):
    opened = open_service(study)
    yield opened
    opened.close()


def told(service, name, *, agreed=True, sensitive=True, **given):
    token = finish(service, name).token
    keep_profile(service.database, service.section, token, given, TEXT, 1.0, agreed=agreed, sensitive=sensitive)
    return token


def stored(service):
    rows = service.database.rows(sa.select(profiles.c.question, profiles.c.value, profiles.c.state))
    return sorted((r.question, r.value, r.state) for r in rows)


def test_answers_are_stored_only_with_consent_and_ethnicity_only_with_its_own(service):
    told(service, "one", agreed=False, age="30", ethnicity="Black")
    assert stored(service) == []
    told(service, "two", sensitive=False, age="30", ethnicity="Black", expert="No")
    assert stored(service) == [("age", "30", "answered"), ("expert", "No", "answered")]
    told(service, "three", ethnicity="prefer-not-to-say", sex="")
    assert ("ethnicity", None, "withheld") in stored(service) and len(stored(service)) == 3
    told(service, "four", ethnicity="Klingon", age="7")
    assert len(stored(service)) == 3, "what is no answer to the question is not stored"


def test_a_person_is_asked_once_after_the_task_and_can_erase_it_alone(service):
    begun = seated(service, "early")
    assert not is_asked(service.database, service.section, begun.token)
    with pytest.raises(NotAllowedError, match="after the task"):
        keep_profile(service.database, service.section, begun.token, {}, TEXT, 1.0, agreed=True, sensitive=True)
    token = finish(service, "one").token
    assert is_asked(service.database, service.section, token)
    keep_profile(service.database, service.section, token, {"age": "44"}, TEXT, 1.0, agreed=True, sensitive=False)
    assert not is_asked(service.database, service.section, token) and has_profile(service.database, token)
    erase_profile(service.database, token, 2.0)
    assert stored(service) == [] and not has_profile(service.database, token)
    row = service.database.row(sa.select(profile_consents))
    assert (row.agreed, row.sensitive) == (False, False)
    assert service.visit(token) is not None, "the ratings stay"


def test_it_is_erased_with_the_person(service):
    token = told(service, "one", age="30", ethnicity="Black")
    service.withdraw(token)
    assert stored(service) == [] and service.database.rows(sa.select(profile_consents)) == []


@pytest.fixture
def crowd(service):
    """23 people: White 12, Black 6, Asian 3, one who prefers not to say and one who says nothing."""
    groups = ["White"] * 12 + ["Black"] * 6 + ["Asian"] * 3 + ["prefer-not-to-say", ""]
    tokens = {}
    for number, group in enumerate(groups):
        sex = "Female" if number % 2 else "Male"
        name = f"p{number:02d}"
        tokens[name] = told(service, name, ethnicity=group, sex=sex, age=str(20 + number), country="Ireland")
    return tokens


def known(study):
    return {c.question: c for c in PeopleRatings(study.file).profiles.counts}


def test_table_17_puts_small_groups_together_and_every_output_has_no_cell_below_five(crowd, study, service):
    counts = known(study)
    assert dict(counts["ethnicity"].counts) == {"White": 12, "Black": 6} and counts["ethnicity"].rest == 5
    assert dict(counts["sex"].counts) == {"Male": 12, "Female": 11} and counts["sex"].rest == 0
    assert counts["age"].mean == 31.0 and counts["country"].counts == {"Ireland": 23}
    assert "student" not in counts and "expert" not in counts, "nobody answered"
    files = export.files(study.file, study.store, service.database)
    assert b"Asian" not in b"".join(files.values())
    rows = list(csv.DictReader(io.StringIO(files["participants.csv"].decode())))
    assert all(int(row["people"]) >= SMALLEST for row in rows)
    assert {row["answer"] for row in rows if row["question"] == "ethnicity"} == {"White", "Black", "Other answers"}
    per_person = [name for name, body in files.items() if name.endswith("csv") and name != "participants.csv"]
    assert not any(b"White," in files[name].split(b"\n", 1)[0] for name in per_person)
    assert "ethnicity" not in files["ratings.csv"].decode().split("\n")[0]


def test_who_leaves_can_make_a_group_too_small_to_show(crowd, study, service):
    service.withdraw(crowd["p12"])
    service.withdraw(crowd["p13"])
    counts = known(study)["ethnicity"]
    assert dict(counts.counts) == {"White": 12} and counts.rest == 9


def test_at_the_date_answers_go_and_counts_without_small_cells_stay(crowd, study, service):
    before = known(study)
    section = service.section.model_copy(
        update={"ethics": service.section.ethics.model_copy(update={"keep_until": "2026-01-01"})}
    )
    retention.enforce(service.database, section, 1_900_000_000.0)
    assert stored(service) == [] and service.database.rows(sa.select(profile_consents)) == []
    assert known(study) == before
    assert not PeopleRatings(study.file).profiles.questions, "nobody's group is known any more"


def prolific_file(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({"Submission id": "s", "Status": "APPROVED", **row} for row in rows)
    return path


@pytest.fixture
def platform(made, tmp_path):
    loaded = copy_study(made, tmp_path / "p", **ALL, questionnaire={"from_platform": True})
    opened = open_service(loaded)
    yield opened
    opened.close()


def came(service, name, *, profile, sensitive):
    """Somebody who ticked these boxes on the consent page."""
    token = service.arrive(Arrival("panel", name)).token
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(1)})
    service.consent(token, True, TEXT, profile=profile, sensitive=sensitive)


def test_prolifics_export_is_taken_as_far_as_each_person_agreed(platform, tmp_path):
    came(platform, "agrees", profile=True, sensitive=True)
    came(platform, "half", profile=True, sensitive=False)
    came(platform, "no", profile=False, sensitive=False)
    row = {"Age": "29", "Sex": "Female", "Ethnicity simplified": "Black", "Student status": "DATA_EXPIRED"}
    row |= {"Language": "Xhosa", "Country of residence": "South Africa"}
    file = prolific_file(
        tmp_path / "p.csv", [{"Participant id": who, **row} for who in ("agrees", "half", "no", "stranger")]
    )
    found = import_profiles(file, platform.database, platform.section, "me")
    assert (found.rows, found.people, found.strangers, found.unasked) == (4, 2, 1, 1)
    assert (found.without_sensitive, found.expired) == (1, 3)
    assert stored(platform).count(("ethnicity", "Black", "answered")) == 1
    assert stored(platform).count(("student", None, "expired")) == 2
    again = import_profiles(file, platform.database, platform.section, "me")
    assert again == found and len(stored(platform)) == 11, "reading it again replaces it"


def test_table_17_is_printed_from_prolifics_export(made, tmp_path):
    """The paper's own counts for sex and ethnicity, among thirty people."""
    loaded = copy_study(made, tmp_path / "t", **ALL | {"raters_per_item": 8}, questionnaire={"from_platform": True})
    service = open_service(loaded)
    ethnicity = ["White"] * 17 + ["Black"] * 8 + ["Mixed"] * 2 + ["Other"] * 2 + ["Asian"]
    student = ["No"] * 15 + ["Yes"] * 12 + ["DATA_EXPIRED"] * 3
    rows = []
    for n in range(30):
        finish(service, f"pid{n}")
        row = {"Participant id": f"pid{n}", "Age": str(21 + n), "Sex": "Female" if n % 2 else "Male"}
        rows.append(row | {"Ethnicity simplified": ethnicity[n], "Student status": student[n]})
    file = prolific_file(tmp_path / "e.csv", rows)
    import_profiles(file, service.database, service.section, "me", consented=True)
    service.close()
    results = compute_results(loaded, loaded.table())
    page = str(all_tables(Index(results))["table17"].to_html())
    for text in ("Female", "White", "17", "56.7%", "Black", "26.7%", "35.5 ± 8.8 years", "No"):
        assert text in page, text
    for name in ("Mixed", "Asian", "Other<"):
        assert name not in page, name
    shown = {(c.question, answer): n for c in results.participants for answer, n in c.counts.items()}
    assert shown["ethnicity", "White"] == 17 and shown["student", "No"] == 15
    assert ("student", "Yes") not in shown, "12 who study and 3 who are missing are shown together"
    assert {r.question for r in results.rater_rates} >= {"sex", "ethnicity"}
    assert Results.from_files(results.to_files().get) == results
    assert "pid" not in results.to_json()
    assert Kind.HUMAN in loaded.table().kinds and Kind.HUMAN not in passed_on(loaded.table()).kinds


def test_consent_revoked_on_prolific_deletes_what_was_stored(platform, tmp_path):
    came(platform, "agrees", profile=True, sensitive=True)
    row = {"Participant id": "agrees", "Age": "29", "Sex": "Female", "Ethnicity simplified": "Black"}
    import_profiles(prolific_file(tmp_path / "1.csv", [row]), platform.database, platform.section, "me")
    revoked = dict.fromkeys(COLUMNS[3:], "CONSENT_REVOKED") | {"Participant id": "agrees"}
    found = import_profiles(prolific_file(tmp_path / "2.csv", [revoked]), platform.database, platform.section, "me")
    assert found.revoked == 1 and found.people == 0
    assert {(value, state) for _, value, state in stored(platform)} == {(None, "revoked")}


def test_an_import_without_the_consent_pages_word_is_refused(service, tmp_path):
    with pytest.raises(EvenEditError, match="from_platform"):
        import_profiles(tmp_path / "p.csv", service.database, service.section, "me")


def test_a_file_that_is_no_demographic_export_is_refused_in_words(platform, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(EvenEditError, match="no column 'Participant id'"):
        import_profiles(tmp_path / "x.csv", platform.database, platform.section, "me")


def test_questions_of_the_study_are_checked(made, tmp_path):
    broken = {**OWN, "translations": {"ko": {"text": "?", "options": ["예", "아니요", "글쎄"]}}}
    with pytest.raises(EvenEditError, match="2 answers, but 3 in language 'ko'"):
        copy_study(made, tmp_path / "x", questionnaire={"questions": [broken]})
    with pytest.raises(EvenEditError, match="'Femal' is not an answer"):
        copy_study(made, tmp_path / "y", questionnaire={"population": {"sex": {"Femal": 1.0}}})

"""`evenedit survey` as a user meets it."""

import pandas as pd
import pytest
from click.testing import CliRunner

from evenedit.cli.survey import survey
from evenedit.core.errors import EvenEditError
from evenedit.survey.sessions import SurveyService
from tests.support.studies import small, toml, write_study
from tests.support.surveys import STUDY, SURVEY, copy_study, finish, make_study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = make_study(tmp_path_factory.mktemp("made"))
    write_study(folder, **STUDY, survey=SURVEY)
    return folder


def call(*arguments: object) -> str:
    """What a command prints; its errors are ours."""
    return CliRunner().invoke(survey, [str(a) for a in arguments], catch_exceptions=False).output


def commands(group, names=()):
    for name, command in group.commands.items():
        yield (*names, name), command
        if hasattr(command, "commands"):
            yield from commands(command, (*names, name))


def test_every_command_has_help_with_an_example():
    found = dict(commands(survey))
    assert {("sample",), ("import",), ("prolific", "sync")} <= set(found)
    for names in found:
        assert f"evenedit survey {' '.join(names)}" in call(*names, "--help").split("Example:")[1], names


def test_a_survey_from_sample_to_export(made, tmp_path):
    study = copy_study(made, tmp_path)
    with pytest.raises(EvenEditError, match="no survey"):
        call("export", tmp_path)
    said = call("sample", tmp_path, "--out", tmp_path / "sample.csv")
    listed = pd.read_csv(tmp_path / "sample.csv")
    assert listed.groupby("survey").size().to_dict() == {1: 16, 3: 6} and set(listed["probability"]) == {0.5, 1.0}
    assert "16 cases (balanced), inclusion probability 0.5000" in said
    assert ["gender", "Male", "8", "50.0%"] in [line.split() for line in said.splitlines()]
    assert "6 cases (stereotype)" in said
    assert "survey 1" in call("plan", tmp_path) and "WARNING: 0.00 USD per hour" in call("plan", tmp_path)
    service = SurveyService.open(study.file, study.store)
    finish(service, "ann")
    finish(service, "bob", seconds=1.0)
    ann = service.database.pseudonym(1, "panel", "ann")
    said = call("status", tmp_path)
    assert "completed: 2" in said and "EXCLUDED" in said, "looking works while the service is open"
    with pytest.raises(EvenEditError, match="another process"):
        call("withdraw", tmp_path, ann, "--keep-answers")
    service.close()
    assert "free again" in call("withdraw", tmp_path, ann, "--keep-answers")
    with pytest.raises(EvenEditError, match=r"\[survey.platform\] origin"):
        call("invite", tmp_path)
    write_study(tmp_path, **STUDY, survey=SURVEY | {"platform": {"origin": "https://x.example"}})
    links = call("invite", tmp_path, "--count", 3).splitlines()
    assert len(set(links)) == 3 and all(link.startswith("https://x.example/survey?invite=guest-") for link in links)
    names = {line.rsplit("/", 1)[1] for line in call("export", tmp_path, "--out", tmp_path / "out").split()}
    assert names == {f"{table}.csv" for table in ("ratings", "choices", "quality", "codebook")} | {"codebook.json"}
    assert "erased" in call("withdraw", tmp_path, "bob", "--platform", "panel")
    with pytest.raises(EvenEditError, match="no participant from panel"):
        call("withdraw", tmp_path, "bob", "--platform", "panel")
    with pytest.raises(EvenEditError, match="no participant"):
        call("withdraw", tmp_path, "person-000000000000")
    assert "completed: 1" in call("status", tmp_path)


def test_a_study_without_a_survey_says_so(tmp_path):
    (tmp_path / "study.toml").write_text(toml(small()))
    for command in ("sample", "plan", "status"):
        with pytest.raises(EvenEditError, match=r"no \[survey\]"):
            call(command, tmp_path)

"""Small versions of `python -m validation survey_kills load`, whose tables are in docs/validation."""

import pytest

from bench.survey import study_of
from validation.load import part
from validation.people import seat
from validation.survey_kills import kill_surveys


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_acknowledged_answer_is_lost_when_the_service_or_its_server_is_killed(database, request, tmp_path):
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else ""
    found = kill_surveys(tmp_path, 4, url=url)
    assert [(each.kills, each.lost) for each in found] == [(2, 0), (2, 0)]
    assert all(each.kept for each in found)


def test_no_answer_is_refused_or_lost_under_load(tmp_path):
    study_of(tmp_path).run()
    told = part(tmp_path, seat(tmp_path, 10), 1.0, 0.0)
    assert told["acknowledged"] > 0
    assert (told["refused"], told["lost"]) == (0, 0)

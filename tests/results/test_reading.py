"""results.json reads back, that of the former release too."""

import json
import tarfile
from pathlib import Path

import pytest

from conftest import HERE
from evenedit.core.errors import EvenEditError
from evenedit.results.reading import renamed_keys
from evenedit.results.results import SCHEMA, Results


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> str:
    """What the former release wrote: schema evenedit.results/1."""
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(HERE / "fixtures" / "study-0.1.tar.xz") as archive:
        archive.extract("expected-results.json", folder, filter="data")
    return (folder / "expected-results.json").read_text()


def test_results_of_the_former_release_are_read_under_todays_names(former):
    old, found = json.loads(former), Results.from_json(former)
    assert old["schema"] == "evenedit.results/1"
    assert len(found.estimates) == len(old["estimates"])
    assert [row.gap for row in found.sensitivity] == [row["race_gap"] for row in old["sensitivity"]]
    assert [len(m.missing_reasons) for m in found.measured] == [len(m["silences"]) for m in old["measured"]]
    assert [f.name for f in found.factors] == ["race", "gender", "age"]


def test_what_is_written_reads_back_equal_to_the_last_digit(former):
    once = Results.from_json(former)
    text = once.to_json()
    assert json.loads(text)["schema"] == SCHEMA == "evenedit.results/2"
    assert Results.from_json(text) == once
    assert Results.from_json(text).to_json() == text


def test_every_renamed_key_is_gone_from_what_is_written(former):
    body = json.loads(Results.from_json(former).to_json())
    for path, new in renamed_keys()["evenedit.results/1"]["renamed"].items():
        name, key = path.split("[].")
        assert all(key not in row and new in row for row in body[name])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not results of EvenEdit"),
        ('{"schema": "other/1"}', "schema is 'other/1'"),
        ('{"schema": "evenedit.results/2"}', "damaged"),
    ],
)
def test_something_else_is_refused_in_words(text, words):
    with pytest.raises(EvenEditError, match=words):
        Results.from_json(text)


def test_the_rename_map_is_beside_the_code():
    assert (Path(HERE).parent / "src" / "evenedit" / "results" / "renamed_keys.json").is_file()

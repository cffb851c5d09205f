"""results.json and the CSV files of its long lists read back."""

import json
from dataclasses import replace
from itertools import product

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.results.long_lists import FOLDER, from_csv, to_csv
from evenedit.results.results import FILE, SCHEMA, Results
from evenedit.stats import AnalysisRules, analyse
from tests.support.tables import FACES, edit, scores, table_of

CROSSED = {"race": "Black", "gender": "Female"}


@pytest.fixture(scope="module")
def results() -> Results:
    edits = [edit(source, prompt) for source, prompt in product(FACES, ("O-01", "O-02", "O-03"))]
    judges = {name: [scores(skin=3 if at % 5 == 0 else 4) for at in range(len(edits))] for name in "ab"}
    return analyse(table_of(edits, judges), replace(AnalysisRules.default(), draws=100, permutations=99))


def test_what_is_written_reads_back_equal_to_the_last_digit(results):
    files = results.to_files()
    assert list(files)[-1] == FILE and json.loads(files[FILE])["schema"] == SCHEMA
    assert results.estimates and results.findings and results.contributions
    assert Results.from_files(files.get) == results
    assert Results.from_files(files.get).to_files() == files


def test_results_json_alone_has_the_main_rows(results):
    short = Results.from_json(results.to_json())
    assert short.findings == results.findings and short.tests == results.tests
    assert short.estimates == tuple(e for e in results.estimates if len(e.group) < 2)
    assert len(short.estimates) < len(results.estimates) and not short.contributions
    assert results.estimate("rate.skin_lighter", group=CROSSED).n
    with pytest.raises(EvenEditError, match=f"keep the folder {FOLDER} next to it"):
        short.estimate("rate.skin_lighter", group=CROSSED)


def test_a_file_that_was_changed_is_not_read(results):
    files = results.to_files()
    path = f"{FOLDER}/estimates.csv"
    read = Results.from_files((files | {path: files[path] + b"x"}).get)
    assert read.estimates == Results.from_json(results.to_json()).estimates
    assert read.agreement == results.agreement


def test_groups_with_odd_names_are_kept():
    place = ("rate.x", "diagnosis", "baseline", None)
    rows = [Estimate(*place, {"size": level}, 0.1, None, 0.3, 4, 0, 'a, "b"\nc') for level in ("a;b=c", "", "{}")]
    assert from_csv(Estimate, to_csv(Estimate, rows)) == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not results of EvenEdit"),
        ('{"schema": "other/1"}', "schema is 'other/1'"),
        ('{"schema": "evenedit.results/2"}', "expected 'evenedit.results/3'"),
        (f'{{"schema": "{SCHEMA}"}}', "damaged"),
    ],
)
def test_something_else_is_refused_in_words(text, words):
    with pytest.raises(EvenEditError, match=words):
        Results.from_json(text)

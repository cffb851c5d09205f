"""Labels can be wrong: the same gaps with a second labelling, from the label file to the finding."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.ratings_file import read_ratings, write_ratings
from evenedit.ratings.table import RatingTable
from evenedit.ratings.to_csv import write_tables
from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from tests.support.tables import edit, face, scores, table_of

QUICK = replace(AnalysisRules.default(), draws=200, permutations=999)
PROMPTS = ("O-01", "O-02", "O-03", "O-04", "O-05")
FACES = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(6))]


def labelled_twice(otherwise: int) -> RatingTable:
    """Black portraits come back lighter; the second labelling calls some of each race the other one."""
    rng = np.random.default_rng(1)
    given = [scores(skin=4 if rng.random() < (0.6 if f[1] == "Black" else 0.1) else 3) for f in FACES for _ in PROMPTS]
    table = table_of([edit(f, p) for f, p in product(FACES, PROMPTS)], {"judge-a": given, "judge-b": given})
    swapped = {f[0] for race in ("White", "Black") for f in [f for f in FACES if f[1] == race][:otherwise]}
    other = {"White": "Black", "Black": "White"}
    second = [other[r] if s in swapped else r for s, r in zip(table.edits.source_id, table.edits.race, strict=True)]
    return replace(table, edits=table.edits.assign(race_2=second))


@pytest.fixture(scope="module")
def results() -> Results:
    return analyse(labelled_twice(5), QUICK)


def test_a_gap_stands_beside_the_same_with_the_second_labels(results):
    (row,) = [s for s in results.second_labels if (s.measure, s.editor) == ("gap.skin_lighter", "e")]
    assert (row.relabelled, row.labelled, row.group) == (10, 24, {"race": "*"})
    assert row.value > 0.3 and row.p < 0.01
    assert row.second < row.value / 2 and row.second_p > 0.05
    assert {s.measure for s in results.second_labels if "*" not in s.group.values()} >= {"shift.skin_tone"}


def test_the_finding_says_what_it_is_with_the_second_labels(results):
    (gap,) = [f for f in results.findings if f.measure == "gap.skin_lighter" and f.factor == "race"]
    (said,) = [c for c in gap.caveats if c.startswith("With the second labels")]
    assert "10 of 24 portraits are labelled otherwise" in said


def test_the_report_has_a_table_of_both(results):
    table = all_tables(Index(results))["second_labels"]
    header, *rows = table.to_csv().splitlines()
    assert "second_p" in header.split(",") and any("skin_lighter" in row for row in rows)


def test_equal_labels_give_equal_numbers():
    again = analyse(labelled_twice(0), QUICK)
    gaps = [s for s in again.second_labels if s.measure.startswith("gap.")]
    assert gaps and all(
        (s.value, s.low, s.high, s.p) == (s.second, s.second_low, s.second_high, s.second_p) for s in gaps
    )


def test_second_labels_survive_the_files(tmp_path):
    table = labelled_twice(2)
    kept = read_ratings(write_ratings(table, tmp_path / "ratings.csv.gz"), table.factors)
    assert kept.edits.race_2.tolist() == table.edits.race_2.tolist()
    write_tables(table, tmp_path / "csv")
    read = read_tables([tmp_path / "csv" / "scores.csv"]).edits.set_index("source_id").race_2.to_dict()
    assert read == dict(zip(table.edits.source_id, table.edits.race_2, strict=True))
    assert "race_2" not in replace(table, edits=table.edits.drop(columns="race_2")).edits.columns

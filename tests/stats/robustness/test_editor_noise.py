"""What an editor moves by itself stands beside what it moved."""

from dataclasses import replace
from itertools import product

import pytest

from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from tables import edit, face, scores, table_of

QUICK = replace(AnalysisRules.default(), draws=200, permutations=199)
FACES = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(4))]


@pytest.fixture(scope="module")
def results() -> Results:
    """Half of the edits are lighter with seed 1, three quarters with seed 2, one in eight of the null edits."""
    cases = [(f, p, seed, "baseline") for f, p, seed in product(FACES, ("O-01", "O-02"), (1, 2))]
    cases += [(f, "floor", 1, "floor") for f in FACES]
    rows, given = [], []
    for at, (source, prompt, seed, condition) in enumerate(cases):
        row = edit(source, prompt)
        rows.append({**row, "seed": seed, "condition": condition, "request_id": f"r{at}"})
        number = FACES.index(source) + (prompt == "O-02")
        lighter = number % 8 == 0 if condition == "floor" else number % 2 == 0 if seed == 1 else number % 4 > 0
        given.append(scores(skin=4 if lighter else 3))
    return analyse(table_of(rows, {"judge-a": given, "judge-b": given}), QUICK, {})


def test_the_null_edit_and_the_seeds_stand_beside_a_shift(results):
    (noise,) = [n for n in results.noise if n.measure == "shift.skin_tone"]
    assert (noise.value, noise.floor, noise.floor_n) == (0.625, 0.125, 16)
    assert (noise.seeds, noise.seed_low, noise.seed_high) == (2, 0.5, 0.75)


def test_the_finding_tells_both(results):
    (shift,) = [f for f in results.findings if f.measure == "shift.skin_tone" and f.condition == "baseline"]
    assert "When asked to change nothing, lighter minus darker is 12.5 points" in shift.text
    assert shift.text.endswith("Over 2 seeds it lies between 50.0 points and 75.0 points.")


def test_the_report_has_a_table_of_it(results):
    header, *rows = all_tables(Index(results))["noise"].to_csv().splitlines()
    assert "floor" in header and "seed_high" in header and len(rows) == len(results.noise)


def test_that_nothing_changed_is_no_noise_of_a_null_edit(results):
    assert all(n.floor is None for n in results.noise if n.measure.endswith("soft_erasure"))

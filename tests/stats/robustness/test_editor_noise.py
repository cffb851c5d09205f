"""What an editor moves by itself stands beside what it moved."""

from dataclasses import replace
from itertools import product

import pytest

from evenedit.core.records import Kind
from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from tests.support.tables import edit, face, scores, table_of

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
    kinds = (Kind.VLM, Kind.VLM, Kind.INSTRUMENT)
    measured = [{"skin_tone": 4 if row["skin_tone"] == 4 or at % 16 == 1 else 3} for at, row in enumerate(given)]
    return analyse(table_of(rows, {"judge-a": given, "judge-b": given, "skin": measured}, kinds), QUICK)


def test_the_null_edit_and_the_seeds_stand_beside_a_shift(results):
    (noise,) = [n for n in results.noise if n.measure == "shift.skin_tone" and n.rater == "ensemble"]
    assert (noise.value, noise.floor, noise.floor_n) == (0.625, 0.125, 16)
    assert (noise.seeds, noise.seed_low, noise.seed_high) == (2, 0.5, 0.75)


def test_the_finding_tells_both(results):
    (shift,) = [
        f for f in results.findings if (f.measure, f.condition, f.rater) == ("shift.skin_tone", "baseline", "ensemble")
    ]
    assert "When asked to change nothing, lighter minus darker is 12.5 points" in shift.text
    assert shift.text.endswith("Over 2 seeds it lies between 50.0 points and 75.0 points.")


def test_the_report_has_a_table_of_it(results):
    header, *rows = all_tables(Index(results))["noise"].to_csv().splitlines()
    assert "floor" in header and "seed_high" in header and len(rows) == len(results.noise)


def test_that_nothing_changed_is_no_noise_of_a_null_edit(results):
    assert all(n.floor is None for n in results.noise if n.measure.endswith("soft_erasure"))


def test_what_an_instrument_measured_has_its_own_noise(results):
    (noise,) = [n for n in results.noise if n.rater == "skin"]
    (shift,) = [f for f in results.findings if (f.rater, f.measure, f.kind) == ("skin", "shift.skin_tone", "shift")]
    assert (noise.value, noise.floor, noise.floor_n, noise.seeds) == (shift.value, 0.1875, 16, 2)
    assert noise.seed_low < noise.value < noise.seed_high
    assert "When asked to change nothing, lighter minus darker is 18.8 points" in shift.text


def test_findings_on_the_null_edit_say_so_and_none_calls_it_ignored(results):
    on_nothing = [f for f in results.findings if f.condition == "floor"]
    assert on_nothing and all("no change" in f.text for f in on_nothing if f.kind in ("shift", "gap"))
    assert not [f for f in on_nothing if f.measure and f.measure.endswith("soft_erasure")]

"""What gaps rest on: single faces, seeds, readings of the scores; and nothing breaks on odd data."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, RatingTable, edit_columns
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse

QUICK = replace(AnalysisRules.default(), draws=100, permutations=99)
AXES = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")


def table_of(rows: list[dict[str, object]], scores: np.ndarray, kinds: tuple[Kind, ...] = (Kind.VLM,)) -> RatingTable:
    """scores is [rater, edit, axis]."""
    usual = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "prompt_id": "O-01", "seed": 1}
    usual |= {"race": "White", "gender": "Male", "age": "20s", "outcome": "edited"}
    edits = pd.DataFrame([{"request_id": str(i)} | usual | row for i, row in enumerate(rows)])[
        list(edit_columns(FACTORS))
    ]
    values = np.zeros((len(kinds), len(rows), len(QUESTION_IDS)), dtype=np.int8)
    for at, axis in enumerate(AXES):
        values[:, :, QUESTION_IDS.index(axis)] = scores[:, :, at]
    status = np.where((scores > 0).any(axis=2), 0, NOT_ASKED).astype(np.int8)
    return RatingTable(edits, tuple(f"rater{k}" for k in range(len(kinds))), kinds, values, status)


def grid(races: tuple[str, ...] = ("White", "Black"), faces: int = 4, prompts: int = 3, **more) -> list[dict]:
    names = [f"O-0{p + 1}" for p in range(prompts)]
    return [
        {"source_id": f"{race}{k}", "race": race, "prompt_id": p, **more}
        for race, k, p in product(races, range(faces), names)
    ]


def skin(rows: list[dict], lighter) -> np.ndarray:
    scores = np.full((1, len(rows), 5), 3)
    scores[0, :, 1] = [4 if lighter(row) else 3 for row in rows]
    return scores


def test_leaving_out_the_one_face_that_makes_a_gap_shows_it():
    rows = grid()
    found = analyse(table_of(rows, skin(rows, lambda r: r["source_id"] == "Black2")), QUICK)
    gap = next(x for x in found.leave_one_out if x.measure == "gap.skin_lighter" and x.editor == "e")
    # Black 3 of 12 lighter, White none; without Black2 no gap, without another Black face 3 of 9
    assert (gap.value, gap.low, gap.high, gap.face, gap.faces) == (3 / 12, 0.0, 3 / 9, "Black2", 8)
    assert gap.same_extremes == 7


def test_seeds_that_disagree_are_counted():
    rows = [*grid(seed=1), *grid(seed=2)]
    found = analyse(
        table_of(rows, skin(rows, lambda r: r["race"] == "Black" and (r["prompt_id"] == "O-01" or r["seed"] == 2))),
        QUICK,
        {},
    )
    spread = next(s for s in found.seeds if s.measure == "rate.skin_lighter")
    # seed 1: 4 of 24, seed 2: 12 of 24; the 8 Black cases on O-02 and O-03 differ
    assert (spread.seeds, spread.low, spread.high, spread.cases) == (2, 4 / 24, 12 / 24, 24)
    assert (spread.gap_low, spread.gap_high) == (pytest.approx(4 / 12), 1.0)
    assert spread.disagree == 8 / 24
    # within a case: 8 of 24 with variance 1/2; all 48 edits: 16 ones, 16 * 32 / 48 / 47
    assert spread.variance_share == pytest.approx((8 / 24 / 2) / (16 * 32 / 48 / 47))
    assert not analyse(table_of(grid(), skin(grid(), lambda r: False)), QUICK).seeds


def two_judges() -> Results:
    rows = grid(("White", "Black", "Indian"), faces=5, prompts=4)
    rng = np.random.default_rng(1)
    scores = np.full((2, len(rows), 5), 3)
    for at, row in enumerate(rows):
        scores[:, at, 2] = rng.integers(1, 4, 2) + (2 if row["race"] == "Indian" else 0)
    return analyse(table_of(rows, scores, (Kind.VLM, Kind.VLM)), QUICK)


def test_the_multiverse_holds_the_report_and_every_other_reading():
    found = two_judges()
    gap = next(m for m in found.multiverse if m.measure == "gap.race_change")
    assert (gap.highest, gap.factor) == ("Indian", "race")
    # thresholds 2, 3, 4 x four rules x two policies x (nothing, edits that need review); no aging prompt is there
    assert len(gap.specifications) == 3 * 4 * 2 * 2
    own = [s for s in gap.specifications if s.is_default]
    test = next(t for t in found.tests if t.measure == "gap.race_change" and t.editor == "e" and t.factor == "race")
    assert len(own) == 1
    assert (own[0].threshold, own[0].ensemble, own[0].missing, own[0].exclusion) == (
        "≥3",
        "diagnosis",
        "exclude",
        "none",
    )
    assert own[0].value == pytest.approx(test.value)
    assert own[0].p == pytest.approx(test.p)
    assert gap.same_sign == len(gap.specifications)
    assert 0 < gap.significant() <= gap.same_sign


def test_a_reading_by_the_first_judge_alone_is_that_judges():
    rows = grid(("White", "Black"), faces=3, prompts=2)
    scores = np.full((2, len(rows), 5), 3)
    scores[0, :, 2] = [4 if r["race"] == "Black" else 1 for r in rows]
    scores[1, :, 2] = 1
    found = analyse(table_of(rows, scores, (Kind.VLM, Kind.VLM)), QUICK)
    by_rule = {
        s.ensemble: s.value
        for s in next(m for m in found.multiverse if m.measure == "gap.race_change").specifications
        if (s.threshold, s.missing, s.exclusion) == ("≥3", "exclude", "none")
    }
    # differing by three points: the diagnosis rule takes the first judge, the mean is 2.5 -> 3
    assert by_rule == {"diagnosis": 1.0, "mean": 1.0, "primary": 1.0, "secondary": 0.0}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_odd_data_give_numbers_or_reasons(data):
    """Few faces, one group, all equal, all missing, one rater, people or none: never a crash, never NaN."""
    races = data.draw(st.sampled_from([("White",), ("White", "Black"), ("White", "Black", "Indian"), ("",)]))
    rows = grid(races, faces=data.draw(st.integers(1, 3)), prompts=data.draw(st.integers(1, 3)))
    if data.draw(st.booleans()):
        rows += [r | {"experiment": "mitigation", "condition": "feature"} for r in rows]
        if data.draw(st.booleans()):
            rows += [r | {"condition": "placebo", "seed": 9} for r in rows if r.get("experiment")]
    if data.draw(st.booleans()):
        rows += [r | {"seed": 5} for r in rows if not r.get("experiment")]
    kinds = data.draw(st.sampled_from([(Kind.VLM,), (Kind.VLM, Kind.VLM), (Kind.VLM, Kind.HUMAN), (Kind.HUMAN,)]))
    constant = data.draw(st.sampled_from([None, 0, 1, 3, 5]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scores = rng.integers(0, 6, (len(kinds), len(rows), 5))
    if constant is not None:
        scores[:] = constant
    found = analyse(table_of(rows, scores, kinds), replace(QUICK, draws=20, permutations=19))
    found.to_json()  # refuses NaN
    for e in found.estimates:
        assert (e.low is None) == (e.high is None) == e.method.startswith("none")
    for x in found.mitigation:
        assert (x.value is None) == x.method.startswith("none: ")
    for p in found.powered:
        assert (p.low is None) == p.method.startswith("none: ")

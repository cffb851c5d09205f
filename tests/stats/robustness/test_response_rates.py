"""Unanswered calls are a finding, and missing scores bound what a gap can be."""

import numpy as np
import pandas as pd
import pytest

from evenedit.core.records import Estimate, Kind, Status
from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.ratings.table import QUESTION_IDS, STATUSES, RatingTable, edit_columns
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.gaps import bounds
from evenedit.stats.robustness.response_rates import coverage, coverage_tests


def estimate(race: str, hits: int, n: int, missing: int) -> Estimate:
    group = {"race": race}
    value = hits / n if n else None
    return Estimate("rate.race_change", "diagnosis", "baseline", "e", group, value, None, None, n, missing, "")


def test_a_bound_is_what_the_missing_scores_could_make_of_the_gap():
    # White: 1 of 8 valid, 2 missing: 0.1 to 0.3. Black: 6 of 10, none missing: 0.6. Gap 0.6 - 0.125
    (bound,) = bounds([estimate("White", 1, 8, 2), estimate("Black", 6, 10, 0)])
    assert bound.value == pytest.approx(0.475)
    assert (bound.low, bound.high) == pytest.approx((0.3, 0.5))
    assert bound.missing == 2


def test_groups_whose_ranges_overlap_may_have_no_gap():
    (bound,) = bounds([estimate("White", 1, 5, 5), estimate("Black", 3, 10, 0)])
    assert bound.low == 0.0


def test_nothing_missing_needs_no_bound():
    assert not list(bounds([estimate("White", 1, 8, 0), estimate("Black", 6, 10, 0)]))


def table(silent_for: str | None) -> RatingTable:
    """84 faces, 5 prompts, one judge that refuses half of one group's edits (or a tenth of everybody's)."""
    rng = np.random.default_rng(4)
    rows = [
        dict(
            zip(
                edit_columns(FACTORS),
                (f"{i}-{p}", "diagnosis", "baseline", "e", "_".join(c.values()), p, 1, *c.values(), "edited"),
                strict=True,
            )
        )
        for i, c in enumerate(cells())
        for p in ("O-01", "O-02", "O-03", "O-04", "V-01")
    ]
    frame = pd.DataFrame(rows)
    chance = 0.1 if silent_for is None else np.where(frame["race"] == silent_for, 0.5, 0.02)
    refused = rng.random(len(frame)) < chance
    status = np.where(refused, STATUSES.index(Status.REFUSED), 0).astype(np.int8)[None]
    values = np.full((1, len(frame), len(QUESTION_IDS)), 3, dtype=np.int8)
    values[:, refused] = 0
    return RatingTable(frame, ("judge",), (Kind.VLM,), values, status)


def test_a_judge_that_refuses_one_group_more_is_found():
    tests = {t.factor: t for t in coverage_tests(table("Black"), AnalysisRules.default()) if t.editor is None}
    assert tests["race"].highest == "Black"
    assert tests["race"].p_adjusted < 0.01
    assert tests["gender"].p_adjusted > 0.05


def test_a_judge_that_refuses_everybody_alike_is_not_accused():
    tests = [t for t in coverage_tests(table(None), AnalysisRules.default()) if t.editor is None]
    assert len(tests) == 3 and all(t.p_adjusted > 0.05 for t in tests)


def test_calls_are_counted_for_every_group_of_every_factor():
    rows = list(coverage(table("Black")))
    whole = [c for c in rows if not c.group]
    assert [c.scored + c.refused for c in whole] == [84 * 5]
    for factor in ("race", "gender", "age"):
        parts = [c for c in rows if factor in c.group]
        assert sum(c.refused for c in parts) == whole[0].refused

"""Gaps, contrasts and trends of panels against t-tests, Tukey's intervals and numbers worked by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenedit.protocol import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats.disparity.gaps import contrasts, gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import RatioMeasure, build_panel, by_face
from evenedit.stats.engine.rules import AnalysisRules

RULES = AnalysisRules.default()


def crossed_of(rows: list[dict[str, object]]) -> CrossedPanel:
    """Rows of editor, face, prompt, race and gender, with met and valid; a rate and a mean of the same scores."""
    edits = pd.DataFrame([{"editor": "e", "prompt_id": "p", "gender": "Male", "age": "", "valid": 1} | r for r in rows])
    valid, met = (edits[c].to_numpy(np.int64) for c in ("valid", "met"))
    columns = {"met": met * valid, "n": valid, "asked": np.ones_like(valid)}
    measures = [RatioMeasure(Measure(name), "met", "n", "asked") for name in ("mean.x", "rate.x")]
    axes = by_face(edits, FACTORS)
    return CrossedPanel(build_panel(edits, axes, columns, measures, experiment="diagnosis", condition="baseline"))


def faces(race: str, hits: int, size: int, **changes: object) -> list[dict[str, object]]:
    """One score per face on one prompt."""
    return [{"source_id": f"{race}{k:02}", "race": race, "met": int(k < hits)} | changes for k in range(size)]


def several(*groups: tuple[str, int, int], **changes: object) -> list[dict[str, object]]:
    return [row for group in groups for row in faces(*group, **changes)]


THREE = (("White", 2, 12), ("Black", 9, 12), ("Indian", 4, 12))


def test_a_gap_is_highest_minus_lowest_with_tukeys_interval():
    found = list(gaps(crossed_of(several(*THREE)), RULES))
    assert [(e.measure, e.editor, e.group) for e, _ in found] == [
        ("gap.x", "e", {"race": "*"}),
        ("gap.x", None, {"race": "*"}),
    ]
    ends = stats.tukey_hsd(*(np.arange(n) < k for _, k, n in THREE)).confidence_interval(0.95)
    for estimate, test in found:
        assert estimate.value == test.value == pytest.approx(7 / 12)
        assert (estimate.low, estimate.high) == pytest.approx((ends.low.max(), min(1.0, ends.high.max())), abs=0.015)
        assert (estimate.n, estimate.missing, estimate.method) == (36, 0, "tukey-kramer, pooled variance")
        assert (test.highest, test.lowest, test.faces) == ("Black", "White", 36)


def test_the_test_of_a_gap_names_every_group_with_its_own_p_and_interval():
    _, test = next(gaps(crossed_of(several(*THREE)), RULES))
    assert [g.level for g in test.groups] == ["White", "Black", "Indian"]
    assert [g.value for g in test.groups] == pytest.approx([-0.25, 1 / 3, -1 / 12])
    assert test.p == min(g.p for g in test.groups) == test.groups[1].p
    for group in test.groups:
        assert group.low < group.value < group.high
        assert (group.p < 0.05) == (group.low > 0 or group.high < 0)
    within = (12 * 1 / 6 * 5 / 6 + 12 * 3 / 4 * 1 / 4 + 12 * 1 / 3 * 2 / 3) / 33
    assert test.t == pytest.approx(1 / 3 / np.sqrt(within * 2 / 3 / 12)) and test.df == 33
    between = np.var([1 / 6, 3 / 4, 1 / 3], ddof=1)
    assert test.tau == pytest.approx(np.sqrt(between - within / 12))
    assert test.shrunken == pytest.approx(7 / 12 * (1 - within / 12 / between))


def test_two_groups_have_the_p_of_the_t_test():
    rows = several(("White", 6, 20), ("Black", 21, 30))
    _, test = next(gaps(crossed_of(rows), RULES))
    assert test.p == pytest.approx(stats.ttest_ind(np.arange(20) < 6, np.arange(30) < 21).pvalue)


def test_intervals_have_the_level_the_rules_ask_for():
    crossed = crossed_of(several(*THREE))
    narrow, wide = (next(gaps(crossed, replace(RULES, confidence=c)))[0] for c in (0.6, 0.95))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_prompts_on_which_all_groups_do_alike_hardly_widen_a_gap():
    rng = np.random.default_rng(8)
    push = np.array([0.05, 0.1, 0.3, 0.6, 0.7, 0.75])
    shared, own = push[None].repeat(2, axis=0), np.stack([push, push[::-1]])
    widths = []
    for lift in (shared, own):
        rows = [
            {"source_id": f"{race}{k}", "race": race, "prompt_id": f"p{j}", "met": int(rng.random() < lift[g, j])}
            for (g, race), k, j in product(enumerate(("White", "Black")), range(25), range(6))
        ]
        estimate, _ = next(gaps(crossed_of(rows), RULES))
        widths.append(estimate.high - estimate.low)
    assert widths[0] < 0.6 * widths[1]


def test_one_group_has_no_gap_and_no_contrast():
    crossed = crossed_of(faces("White", 2, 6))
    assert list(gaps(crossed, RULES)) == list(contrasts(crossed, RULES)) == []


def test_a_level_without_a_valid_score_has_no_part_in_the_gap():
    rows = several(("White", 2, 6), ("Black", 3, 6))
    with_it = next(gaps(crossed_of(rows + faces("Indian", 6, 6, valid=0)), RULES))
    without = next(gaps(crossed_of(rows), RULES))
    assert with_it[0].value == pytest.approx(1 / 6) and with_it[0].missing == 6
    assert (with_it[0].low, with_it[0].high) == (without[0].low, without[0].high)
    assert with_it[1].p == without[1].p
    alone = crossed_of(faces("White", 2, 6) + faces("Indian", 6, 6, valid=0))
    assert list(gaps(alone, RULES)) == list(contrasts(alone, RULES)) == []


def test_groups_of_few_faces_are_not_tested():
    _, test = next(gaps(crossed_of(several(("White", 1, 2), ("Black", 3, 6))), RULES))
    assert test.p is None and test.method == "none: too few faces"


def test_groups_at_0_are_no_further_apart_than_the_end_that_reaches_furthest():
    estimate, test = next(gaps(crossed_of(several(("White", 0, 6), ("Black", 0, 12))), RULES))
    high = stats.binomtest(0, 6).proportion_ci().high
    assert (estimate.value, estimate.low) == (0.0, 0.0) and estimate.high == pytest.approx(high)
    assert estimate.method == "korn-graubard(source)" and test.p is None and test.t is None


def test_groups_at_0_and_at_1_have_the_gap_that_their_own_ends_leave():
    estimate, _ = next(gaps(crossed_of(several(("White", 0, 6), ("Black", 6, 6))), RULES))
    high = stats.binomtest(0, 6).proportion_ci().high
    assert (estimate.value, estimate.high) == (1.0, 1.0) and estimate.low == pytest.approx(1 - 2 * high)


def test_each_factor_has_a_gap_of_its_own():
    rows = several(("White", 0, 8), ("Black", 4, 8))
    for at, row in enumerate(rows):
        row["gender"] = ("Male", "Female")[at % 2]
    found = [e for e, _ in gaps(crossed_of(rows), RULES) if e.editor]
    assert [(e.group, e.value) for e in found] == [({"race": "*"}, 0.5), ({"gender": "*"}, 0.0)]
    assert all(e.low <= e.value < e.high for e in found)


def test_a_contrast_of_independent_faces_has_the_larger_of_welchs_and_the_pooled_variance():
    found = [c for c in contrasts(crossed_of(several(*THREE)), RULES) if c.editor]
    assert [(c.measure, c.group) for c in found] == [("rate.x", {"race": race}) for race, _, _ in THREE]
    shares = np.array([k / n for _, k, n in THREE])
    own = shares * (1 - shares) / 11
    for at, contrast in enumerate(found):
        weights = np.where(np.arange(3) == at, 1.0, -0.5)
        parts = weights**2 * own
        welch = parts.sum(), parts.sum() ** 2 / (parts**2 / 11).sum()
        pooled = (weights**2).sum() * own.mean(), 33
        variance, freedom = max(welch, pooled)
        reach = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
        assert contrast.value == pytest.approx(weights @ shares)
        assert (contrast.low, contrast.high) == pytest.approx((contrast.value - reach, contrast.value + reach))
        assert contrast.n == 12


def test_contrasts_are_of_each_editor_and_pooled_over_valid_scores():
    rows = [
        *several(("White", 2, 4), ("Black", 3, 4), ("Indian", 1, 4), editor="a"),
        *several(("White", 4, 4), ("Black", 1, 4), ("Indian", 2, 4), editor="b"),
    ]
    rows[0]["valid"] = 0
    found = {(c.editor, c.group["race"]): c for c in contrasts(crossed_of(rows), RULES)}
    assert {key[0]: c.n for key, c in found.items() if key[1] == "White"} == {"a": 3, "b": 4, None: 7}
    assert found["a", "White"].value == pytest.approx(1 / 3 - 4 / 8)
    assert found["b", "Black"].value == pytest.approx(1 / 4 - 6 / 8)
    assert found[None, "Indian"].value == pytest.approx(3 / 8 - 9 / 15)


@pytest.mark.parametrize(
    ("white", "black", "has_interval"),
    [
        ((0, 6), (0, 6), False),  # neither group ever met it, and nothing says how near they truly are
        ((6, 6), (6, 6), False),
        ((0, 6), (6, 6), False),
        ((0, 6), (3, 6), True),
        ((3, 6), (3, 6), True),
        ((1, 1), (3, 6), False),  # one face says nothing of its group
    ],
)
def test_which_contrasts_have_an_interval(white, black, has_interval):
    for contrast in contrasts(crossed_of(several(("White", *white), ("Black", *black))), RULES):
        assert (contrast.low is not None) == (contrast.high is not None) == has_interval
        if has_interval:
            assert -1 <= contrast.low <= contrast.value <= contrast.high <= 1
            assert contrast.high - contrast.low > 0.3

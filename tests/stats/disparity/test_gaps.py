"""Gaps and contrasts against the same written out plainly, with random numbers of their own, and by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from evenedit.stats.engine.bootstrap import Bootstrap
from scipy import stats

from evenedit.protocol import FACTORS
from evenedit.protocol.measures import Measure
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.gaps import contrasts, gap_intervals, gaps
from evenedit.stats.engine.panel import Panel, RatioMeasure, build_panel, by_face

RULES = replace(AnalysisRules.default(), draws=4000, seed=5)


def inverted(rates, own, sizes, confidence=0.95, shared=None, draws=30_000) -> tuple[float, float]:
    """The interval of one gap as the module's text tells it, for one gap, by bisection on draws of its own."""
    rates, own, sizes = (np.asarray(x, dtype=float) for x in (rates, own, sizes))
    rng = np.random.default_rng(99)
    least = 0.5 / sizes
    noise = rng.normal(size=(draws, len(rates))) * own
    if shared is not None:
        noise += shared[rng.integers(0, len(shared), draws)] * rng.choice([-1, 1], size=(draws, 1))
    noise /= 2 * np.sqrt(np.maximum(rates * (1 - rates), least * (1 - least)))
    lowest, seen, tail = rates.min(), np.ptp(rates), (1 - confidence) / 2

    def groups(pull, between):
        """Where the groups truly are: those in between halfway to where they matter most."""
        place = (rates - lowest) / seen if seen else np.zeros(len(rates))
        matter = np.array([p if p in (0, 1) else between(p) for p in place])
        return np.clip(rates.mean() + pull * (lowest + (place + matter) / 2 * seen - rates.mean()), least, 1 - least)

    def drawn(centre):
        return np.ptp(np.sin(np.clip(np.arcsin(np.sqrt(centre)) + noise, 0, np.pi / 2)) ** 2, axis=1)

    def nearest(p):
        return float(p > 0.5)

    def middle(_):
        return 0.5

    chance = drawn(groups(0, nearest))
    lower, upper = 0.0, seen
    if np.mean(chance >= seen) < tail:
        below, above = 0.0, 1.0
        for _ in range(11):
            half = (below + above) / 2
            usual = np.mean(drawn(groups(half, nearest)) >= seen) >= tail
            below, above = (below, half) if usual else (half, above)
        lower = min(np.ptp(groups(above, nearest)), seen)
    if seen:
        below, above = 0.0, 1 / seen
        for _ in range(12):
            half = (below + above) / 2
            usual = np.mean(drawn(groups(half, middle)) <= seen) >= tail
            below, above = (half, above) if usual else (below, half)
        upper = max(np.ptp(groups(below, middle)), seen)
    return lower, min(1.0, max(upper, np.quantile(chance, confidence)))


def found_for(rates, own, sizes, confidence=0.95, shared=None, seed=1):
    """[2, gap]; without shared noise 10 000 draws of zeros."""
    rates, own, sizes = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (rates, own, sizes))
    none = np.zeros((10_000, *rates.shape)) if shared is None else shared[:, None, :]
    return gap_intervals(rates, own, none, sizes, confidence, seed)


@pytest.mark.parametrize(
    ("rates", "own", "sizes", "confidence"),
    [
        ([0.6, 0.3], [0.03, 0.05], [999, 999], 0.95),
        ([0.6, 0.3], [0.03, 0.05], [999, 999], 0.8),
        ([0.1, 0.9], [0.05, 0.02], [100, 999], 0.95),
        ([0.45, 0.5], [0.03, 0.03], [300, 300], 0.95),  # a gap that chance gives
        ([0.2, 0.35, 0.6], [0.04, 0.04, 0.06], [150, 150, 150], 0.9),
        ([0.2, 0.5, 0.25, 0.55, 0.3], [0.05] * 5, [80] * 5, 0.95),
        ([0.0, 0.4], [0.02, 0.08], [10, 30], 0.95),  # a group at the edge
        ([1.0, 0.7, 0.9], [0.03, 0.08, 0.05], [20, 30, 30], 0.8),
        ([0.3, 0.3, 0.3], [0.04, 0.04, 0.04], [100, 100, 100], 0.9),
        ([0.0, 1.0], [0.05, 0.05], [12, 12], 0.95),
    ],
)
def test_intervals_of_gaps_agree_with_the_rule_written_out(rates, own, sizes, confidence):
    found = found_for(rates, own, sizes, confidence)[:, 0]
    assert found == pytest.approx(inverted(rates, own, sizes, confidence), abs=0.12 * max(own))
    assert 0 <= found[0] <= np.ptp(rates) <= found[1] <= 1


def test_noise_that_groups_share_counts_with_both_tails_alike():
    rng = np.random.default_rng(3)
    shared = np.column_stack([rng.exponential(0.08, 10_000), rng.exponential(0.01, 10_000)])
    rates, own, sizes = [0.6, 0.3], [0.03, 0.03], [200, 200]
    expected = inverted(rates, own, sizes, shared=shared)
    assert found_for(rates, own, sizes, shared=shared)[:, 0] == pytest.approx(expected, abs=0.012)
    assert found_for(rates, own, sizes, shared=-shared)[:, 0] == pytest.approx(expected, abs=0.012)


def test_each_gap_of_several_is_found_on_its_own():
    rates = np.array([[0.6, 0.3], [0.2, 0.9], [0.5, 0.5]])
    own, sizes = np.full((3, 2), 0.04), np.full((3, 2), 200.0)
    found = found_for(rates, own, sizes)
    for at in range(3):
        assert found[:, at] == pytest.approx(found_for(rates[at], own[at], sizes[at])[:, 0], abs=1e-12)


def test_equal_groups_may_truly_differ_by_what_chance_would_show():
    # |a - b| of two noises of 0.02 has its 95 % quantile at 1.96 * sqrt(2) * 0.02
    low, high = found_for([0.5, 0.5], [0.02, 0.02], [999, 999])[:, 0]
    assert low == 0
    assert high == pytest.approx(1.96 * np.sqrt(2) * 0.02, rel=0.03)


def test_no_scores_behind_a_rate_break_nothing():
    assert np.isfinite(found_for([0.0, 0.5], [0.1, 0.1], [0, 4])).all()


def test_the_same_seed_gives_the_same_interval_and_another_nearly_the_same():
    one, again, other = (found_for([0.6, 0.3], [0.03, 0.03], [99, 99], seed=s)[:, 0] for s in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    assert one == pytest.approx(other, abs=0.004)


# -- panels ------------------------------------------------------------------------------------------------------


def panel_of(rows: list[dict[str, object]]) -> Panel:
    """Rows of editor, face, prompt, race and gender, with met and valid; a rate and a mean of the same scores."""
    edits = pd.DataFrame([{"editor": "e", "prompt_id": "p", "gender": "Male", "age": "", "valid": 1} | r for r in rows])
    valid, met = (edits[c].to_numpy(np.int64) for c in ("valid", "met"))
    columns = {"met": met * valid, "n": valid, "asked": np.ones_like(valid)}
    measures = [
        RatioMeasure(Measure("mean.x"), "met", "n", "asked"),
        RatioMeasure(Measure("rate.x"), "met", "n", "asked"),
    ]
    return build_panel(edits, by_face(edits, FACTORS), columns, measures, experiment="diagnosis", condition="baseline")


def faces(race: str, hits: int, size: int, **changes: object) -> list[dict[str, object]]:
    """One score per face on one prompt."""
    return [{"source_id": f"{race}{k:02}", "race": race, "met": int(k < hits)} | changes for k in range(size)]


def drawn(rows: list[dict[str, object]]) -> Bootstrap:
    return Bootstrap(panel_of(rows), RULES.draws, RULES.seed)


def deviation(hits: int, size: int) -> float:
    """Standard error of a share of independent faces, widened from the normal's to Student's quantile."""
    share = hits / size
    return float(np.sqrt(share * (1 - share) / (size - 1)) * stats.t.ppf(0.975, size - 1) / stats.norm.ppf(0.975))


def test_a_gap_of_independent_faces_has_the_interval_of_their_standard_errors():
    found = list(gaps(drawn(faces("White", 6, 20) + faces("Black", 21, 30)), RULES))
    assert [(g.measure, g.editor, g.group) for g in found] == [
        ("gap.x", "e", {"race": "*"}),
        ("gap.x", None, {"race": "*"}),
    ]
    for gap in found:
        assert (gap.experiment, gap.condition) == ("diagnosis", "baseline")
        assert gap.value == pytest.approx(0.4, abs=1e-15)
        assert (gap.n, gap.missing) == (50, 0)
        expected = inverted([0.3, 0.7], [deviation(6, 20), deviation(21, 30)], [20, 30])
        assert (gap.low, gap.high) == pytest.approx(expected, abs=0.02)
        assert gap.method == "bootstrap(source, 4000), inverted"


def test_the_intervals_of_gaps_have_the_level_the_rules_ask_for():
    rows = faces("White", 6, 20) + faces("Black", 21, 30)
    gap = next(gaps(drawn(rows), replace(RULES, confidence=0.6)))
    own = [
        np.sqrt(share * (1 - share) / (n - 1)) * stats.t.ppf(0.8, n - 1) / stats.norm.ppf(0.8)
        for share, n in ((0.3, 20), (0.7, 30))
    ]
    assert (gap.low, gap.high) == pytest.approx(inverted([0.3, 0.7], own, [20, 30], 0.6), abs=0.012)


def test_a_group_whose_scores_are_all_alike_is_taken_to_be_as_noisy_as_the_others():
    # on the arcsine scale the others' noise is their deviation / sqrt(p q), taken as the root of the mean square
    hits, sizes = (0, 6, 15), (12, 20, 30)
    rows = [
        row for race, h, n in zip(("White", "Black", "Indian"), hits, sizes, strict=True) for row in faces(race, h, n)
    ]
    own = [deviation(h, n) for h, n in zip(hits, sizes, strict=True)]
    scaled = [own[1] / np.sqrt(0.3 * 0.7), own[2] / np.sqrt(0.5 * 0.5)]
    own[0] = float(np.sqrt(np.mean(np.square(scaled))) * np.sqrt(0.5 / 12 * (1 - 0.5 / 12)))
    gap = next(gaps(drawn(rows), RULES))
    assert gap.value == 0.5
    assert (gap.low, gap.high) == pytest.approx(inverted([0.0, 0.3, 0.5], own, sizes), abs=0.02)


def test_prompts_that_all_groups_share_are_noise_they_share():
    rng = np.random.default_rng(8)
    lift = {f"p{k}": push for k, push in enumerate((0.05, 0.1, 0.3, 0.6, 0.7, 0.75))}
    rows = [
        {"source_id": f"{race}{k}", "race": race, "prompt_id": p, "met": int(rng.random() < push + more)}
        for race, more in (("White", 0.0), ("Black", 0.2))
        for k in range(25)
        for p, push in lift.items()
    ]
    bootstrap = drawn(rows)
    parts = [bootstrap.group(bootstrap.panel.axes.mask({"race": race})) for race in ("White", "Black")]
    stretch = [stats.t.ppf(0.975, d.uncertainty.freedom[0, 1]) / stats.norm.ppf(0.975) for d in parts]
    own = [
        np.sqrt(d.uncertainty.variance[0, 1] - d.over_prompts[0, 1]) * s for d, s in zip(parts, stretch, strict=True)
    ]
    shared = np.column_stack([d.prompts[:, 0, 1] * s for d, s in zip(parts, stretch, strict=True)])
    rates = [d.value[0, 1] for d in parts]
    gap = next(gaps(bootstrap, RULES))
    assert gap.method == "bootstrap(source x prompt, 4000), inverted"
    assert (gap.low, gap.high) == pytest.approx(inverted(rates, own, [150, 150], shared=shared), abs=0.012)


def test_gaps_are_of_each_editor_and_pooled_over_valid_scores_of_labelled_faces():
    rows = [
        *faces("White", 2, 4, editor="a"), *faces("Black", 3, 4, editor="a"),
        *faces("White", 4, 4, editor="b"), *faces("Black", 1, 4, editor="b"),
        *faces("", 5, 5, editor="a"),  # faces without a label are in no group
    ]  # fmt: skip
    rows[0]["valid"] = 0  # of editor a's White faces 1 of 3 is left
    found = {g.editor: g for g in gaps(drawn(rows), RULES)}
    assert list(found) == ["a", "b", None]
    assert {e: (g.n, g.missing) for e, g in found.items()} == {"a": (7, 1), "b": (8, 0), None: (15, 1)}
    assert found["a"].value == pytest.approx(3 / 4 - 1 / 3)
    assert found["b"].value == pytest.approx(1 - 1 / 4)
    assert found[None].value == pytest.approx(5 / 7 - 4 / 8)


def test_an_editors_interval_does_not_hang_on_the_other_editors():
    one = [*faces("White", 0, 30, editor="a"), *faces("Black", 15, 30, editor="a"), *faces("Indian", 9, 30, editor="a")]
    two = [*faces("White", 2, 30, editor="b"), *faces("Black", 20, 30, editor="b"), *faces("Indian", 0, 30, editor="b")]
    alone, among = (next(g for g in gaps(drawn(rows), RULES) if g.editor == "a") for rows in (one, one + two))
    assert alone.low and alone.high
    assert (among.low, among.high) == pytest.approx((alone.low, alone.high), abs=1e-12)


def test_a_factor_with_one_level_has_no_gap_and_no_contrast():
    bootstrap = drawn(faces("White", 2, 6))
    assert list(gaps(bootstrap, RULES)) == []
    assert list(contrasts(bootstrap, RULES)) == []


def test_a_level_without_a_valid_score_has_no_part_in_the_gap():
    rows = faces("White", 2, 6) + faces("Black", 3, 6) + faces("Indian", 6, 6, valid=0)
    gap = next(gaps(drawn(rows), RULES))
    assert gap.value == pytest.approx(1 / 6)
    assert (gap.low, gap.high, gap.method) == (None, None, "none: no variation to draw from")
    alone = drawn(faces("White", 2, 6) + faces("Indian", 6, 6, valid=0))
    assert list(gaps(alone, RULES)) == []
    assert list(contrasts(alone, RULES)) == []


@pytest.mark.parametrize("lone", [("White", 1, 1), ("White", 0, 1)])
def test_a_group_of_one_face_leaves_its_gap_without_an_interval(lone):
    gap = next(gaps(drawn(faces(*lone) + faces("Black", 3, 6)), RULES))
    assert (gap.value, gap.low, gap.high) == (0.5, None, None)


def test_groups_at_0_are_no_further_apart_than_the_end_that_reaches_furthest():
    """As their rates have it, so that no event is not less sure than one."""
    panel = drawn(faces("White", 0, 6) + faces("Black", 0, 12))
    gap = next(gaps(panel, RULES))
    ends = stats.binomtest(0, 6).proportion_ci(method="wilson")
    assert (gap.value, gap.low) == (0.0, 0.0) and gap.high == pytest.approx(ends.high)
    assert gap.method == "wilson(sources)"


def test_groups_at_0_and_at_1_have_the_gap_that_their_own_ends_leave():
    gap = next(gaps(drawn(faces("White", 0, 6) + faces("Black", 6, 6)), RULES))
    high = stats.binomtest(0, 6).proportion_ci(method="wilson").high
    assert (gap.value, gap.high) == (1.0, 1.0) and gap.low == pytest.approx(1 - 2 * high)


def test_one_group_that_varies_is_enough_for_an_interval_and_the_other_factor_has_its_own():
    rows = faces("White", 0, 8) + faces("Black", 4, 8)
    for at, row in enumerate(rows):
        row["gender"] = ("Male", "Female")[at % 2]
    found = [g for g in gaps(drawn(rows), RULES) if g.editor]
    assert [g.group for g in found] == [{"race": "*"}, {"gender": "*"}]
    assert [g.value for g in found] == [0.5, 0.0]
    for gap in found:
        assert gap.low is not None and gap.high is not None and gap.low <= gap.value < gap.high


# -- contrasts -----------------------------------------------------------------------------------------------------


def zou(first: float, second: float, ends: list[tuple[float, float]], alike: float) -> tuple[float, float]:
    """Zou 2007, equation of the difference: each side by the nearer ends, less what the two have in common."""
    down = first - ends[0][0], ends[1][1] - second
    up = ends[0][1] - first, second - ends[1][0]
    low, high = (np.sqrt(a**2 + b**2 - 2 * alike * a * b) for a, b in (down, up))
    return first - second - low, first - second + high


def wilson_t(share: float, variance: float, freedom: float) -> tuple[float, float]:
    """Wilson's interval of share (1 - share) / variance rows with Student's quantile."""
    rows, t = share * (1 - share) / variance, stats.t.ppf(0.975, freedom)
    centre = (share + t**2 / (2 * rows)) / (1 + t**2 / rows)
    half = t / (1 + t**2 / rows) * np.sqrt(share * (1 - share) / rows + t**2 / (4 * rows**2))
    return centre - half, centre + half


def test_contrasts_of_independent_faces_agree_with_zous_interval():
    sizes = {"White": (6, 20), "Black": (15, 20), "Indian": (10, 20)}
    rows = [row for race, (h, n) in sizes.items() for row in faces(race, h, n)]
    found = [c for c in contrasts(drawn(rows), RULES) if c.editor]
    assert [(c.measure, c.group) for c in found] == [("rate.x", {"race": race}) for race in sizes]
    for contrast in found:
        (race,) = contrast.group.values()
        share = sizes[race][0] / 20
        others = [h / 20 for name, (h, _) in sizes.items() if name != race]
        # of each group 19 of 20 are drawn: the variance of a group's share is p q / 19
        rest, variance = np.mean(others), sum(p * (1 - p) for p in others) / 19 / 4
        ends = [wilson_t(share, share * (1 - share) / 19, 19), wilson_t(rest, variance, 38)]
        assert contrast.value == pytest.approx(share - rest, abs=1e-12)
        assert (contrast.low, contrast.high) == pytest.approx(zou(share, rest, ends, 0.0), abs=0.01)
        assert (contrast.experiment, contrast.condition, contrast.n) == ("diagnosis", "baseline", 20)


def test_contrasts_take_off_what_groups_share_by_their_prompts():
    rng = np.random.default_rng(9)
    rows = [
        {"source_id": f"{race}{k}", "race": race, "prompt_id": f"p{j}", "met": int(rng.random() < push)}
        for race, k, (j, push) in product(("White", "Black"), range(12), enumerate((0.1, 0.1, 0.3, 0.7, 0.9, 0.9)))
    ]
    bootstrap = drawn(rows)
    contrast = next(contrasts(bootstrap, RULES))
    parts = [bootstrap.group(bootstrap.panel.axes.mask({"race": race})) for race in ("White", "Black")]
    value = [float(d.value[0, 1]) for d in parts]
    variance = [float(d.uncertainty.variance[0, 1]) for d in parts]
    moved = [d.prompts[:, 0, 1] for d in parts]
    alike = float(np.mean(moved[0] * moved[1]) / np.sqrt(variance[0] * variance[1]))
    assert alike > 0.5
    ends = [wilson_t(v, s, float(d.uncertainty.freedom[0, 1])) for v, s, d in zip(value, variance, parts, strict=True)]
    assert (contrast.low, contrast.high) == pytest.approx(zou(*value, ends, alike), abs=1e-9)


def test_contrasts_are_of_each_editor_and_pooled_over_valid_scores():
    rows = [
        *faces("White", 2, 4, editor="a"), *faces("Black", 3, 4, editor="a"), *faces("Indian", 1, 4, editor="a"),
        *faces("White", 4, 4, editor="b"), *faces("Black", 1, 4, editor="b"), *faces("Indian", 2, 4, editor="b"),
    ]  # fmt: skip
    rows[0]["valid"] = 0
    found = {(c.editor, c.group["race"]): c for c in contrasts(drawn(rows), RULES)}
    assert {key: c.n for key, c in found.items() if key[1] == "White"} == {
        ("a", "White"): 3, ("b", "White"): 4, (None, "White"): 7,
    }  # fmt: skip
    assert found["a", "White"].value == pytest.approx(1 / 3 - 4 / 8)
    assert found["b", "Black"].value == pytest.approx(1 / 4 - 6 / 8)
    assert found[None, "Indian"].value == pytest.approx(3 / 8 - 9 / 15)


@pytest.mark.parametrize(
    ("white", "black", "has_interval"),
    [
        ((0, 6), (0, 6), False),  # neither group ever met it, and nothing says how near they truly are
        ((6, 6), (6, 6), False),
        ((0, 6), (6, 6), True),
        ((0, 6), (3, 6), True),
        ((3, 6), (3, 6), True),
        ((1, 1), (3, 6), False),  # one face says nothing of its group
    ],
)
def test_which_contrasts_have_an_interval(white, black, has_interval):
    for contrast in contrasts(drawn(faces("White", *white) + faces("Black", *black)), RULES):
        assert (contrast.low is not None) == (contrast.high is not None) == has_interval
        if has_interval:
            assert -1 <= contrast.low <= contrast.value <= contrast.high <= 1
            assert contrast.high - contrast.low > 0.3


def test_groups_without_noise_of_their_own_share_none():
    # a group at 0 has Wilson's interval of its faces; nothing is taken off for prompts in common
    (contrast, *_) = contrasts(drawn(faces("White", 0, 8) + faces("Black", 4, 8)), RULES)
    z2 = stats.norm.ppf(0.975) ** 2
    ends = [(0.0, z2 / (8 + z2)), wilson_t(0.5, 0.25 / 7, 7)]
    assert (contrast.low, contrast.high) == pytest.approx(zou(0.0, 0.5, ends, 0.0), abs=0.01)


def test_gaps_found_together_are_those_found_one_by_one():
    rng = np.random.default_rng(4)
    sizes = np.full((6, 4), 50.0)
    rates, own, shared = rng.random((6, 4)), rng.random((6, 4)) / 10, rng.normal(size=(300, 6, 4)) / 50
    together = gap_intervals(rates, own, shared, sizes, 0.95, 7)
    for at in range(6):
        one = slice(at, at + 1)
        alone = gap_intervals(rates[one], own[one], shared[:, one], sizes[one], 0.95, 7)
        assert (together[:, one] == alone).all()

"""Judges on all edits, people on a sample."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from ppi_py import ppi_mean_pointestimate

from evenedit.core.records import ConditionKind, Experiment, Kind, Status
from evenedit.protocol import FACTORS
from evenedit.ratings.combine import combine
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, edit_columns
from evenedit.stats.agreement.prediction_powered import PeopleGap, PeopleTests, people_tests
from evenedit.stats.agreement.pseudo_outcomes import PseudoPanel, labelled_edits, pseudo_outcome
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import contrasts, gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules

RULES = AnalysisRules.default()
RACES = ("White", "Black", "Indian")
SHARE = 0.3


def study(
    seed: int,
    *,
    truth: tuple[float, ...] = (0.05,) * 3,
    false: tuple[float, ...] = (0.02,) * 3,
    hit: float = 0.85,
    missed: float = 0.0,
    share: float = SHARE,
    people: int = 2,
    noise: float = 0.02,
    editors: tuple[str, ...] = ("e",),
) -> tuple[RatingTable, dict[str, float]]:
    """Race changes by race as two judges and people call them; judges miss some of Black portraits."""  # fmt: skip
    rng = np.random.default_rng([3, seed])
    faces = [
        (f"{race}_{n:02}", race, gender, "20s") for race in RACES for n, gender in product(range(8), ("Male", "Female"))
    ]
    faces = [(f"{name}_{gender}", race, gender, age) for name, race, gender, age in faces]
    rows = [
        {"request_id": f"{e}-{f[0]}-{p}", "experiment": "diagnosis", "condition": "baseline", "editor": e, "seed": 1,
         "source_id": f[0], "prompt_id": f"X-{p:02}", "race": f[1], "gender": f[2], "age": f[3], "outcome": "edited"}
        for e, f, p in product(editors, faces, range(20))
    ]  # fmt: skip
    edits = pd.DataFrame(rows)[list(edit_columns(FACTORS))]
    n, race = len(edits), np.array([RACES.index(r) for r in edits["race"]])
    true = rng.random(n) < np.array(truth)[race]
    wrongly = rng.random(n) < np.array(false)[race]
    overlooked = (race == 1) & (rng.random(n) < missed)
    judged = [np.where(true, (rng.random(n) < hit) & ~overlooked, wrongly) for _ in range(2)]
    labelled = rng.random(n) < share
    said = [true ^ (rng.random(n) < noise) for _ in range(people)]
    values = np.zeros((2 + people, n, len(QUESTION_IDS)), dtype=np.int8)
    values[:, :, QUESTION_IDS.index("race_drift")] = [
        *(1 + 3 * x for x in judged), *(np.where(labelled, 1 + 3 * x, 0) for x in said)
    ]  # fmt: skip
    values[:, :, QUESTION_IDS.index("skin_tone")] = np.where(
        values.any(axis=2), rng.integers(2, 5, n) + (rng.random((2 + people, n)) < 0.1), 0
    )
    status = np.where(values.any(axis=2), STATUSES.index(Status.SCORED), NOT_ASKED).astype(np.int8)
    names, kinds = ("j", "k", *"abcd"[:people]), (Kind.VLM, Kind.VLM, *[Kind.HUMAN] * people)
    table = RatingTable(edits, names, kinds, values, status)
    return table, dict.fromkeys(edits["request_id"][labelled], share)


def corrected(table: RatingTable, inclusion: dict[str, float]) -> PeopleTests:
    scores = combine(table, RULES.ensemble, RULES.missing)
    scored = answers(scores, RULES)
    (panel,) = [CrossedPanel(p) for p in diagnosis_panels(scores, scored, RULES)]
    judged = [*estimates(panel, panel.panel.axes.groups(), RULES), *(gap for gap, _ in gaps(panel, RULES))]
    return people_tests(scores, scored, RULES, inclusion, judged, list(contrasts(panel, RULES)))


def by_hand(f: np.ndarray, h: np.ndarray, pi: np.ndarray, half: np.ndarray) -> np.ndarray:
    """The pseudo-outcome of one group, edit by edit."""
    rated = ~np.isnan(h)
    scale = (rated / pi).sum() / len(f)
    slope = []
    for other in (1, 0):
        a, b = h[rated & (half == other)], f[rated & (half == other)]
        slope.append(np.clip(((a - a.mean()) * (b - b.mean())).sum() / (((b - b.mean()) ** 2).sum() + 0.5), 0, 1))
    tuning = np.array(slope)[half]
    weight = np.where(rated, 1 / pi / scale, 0)
    predicted = tuning * (f - f.mean())
    rest = np.where(rated, h - predicted, 0)
    centre = (weight * rest).mean()
    return predicted + weight * (rest - centre) + centre


def test_pseudo_outcomes_are_those_of_the_formula_and_keep_the_mean_of_the_difference_estimator():
    rng = np.random.default_rng(1)
    n, group = 400, np.repeat([0, 1], 200)
    f, half = (rng.random(n) < 0.3) * 1.0, np.repeat(np.arange(40), 10) % 2
    h = np.where(rng.random(n) < 0.4, np.where(rng.random(n) < 0.8, f, 0.5), np.nan)
    pi = rng.uniform(0.2, 0.6, n)
    psi, tuning = pseudo_outcome(f, h, pi, group, half, 0.5)
    for g in (0, 1):
        of = group == g
        assert psi[of] == pytest.approx(by_hand(f[of], h[of], pi[of], half[of]))
    assert ((tuning > 0.3) & (tuning < 1)).all()
    alone, none = pseudo_outcome(f, h, pi, group, half, np.inf)
    weights = np.where(np.isnan(h), 0, 1 / pi)[group == 0]
    assert alone[group == 0].mean() == pytest.approx(np.average(np.nan_to_num(h)[group == 0], weights=weights))
    assert (none == 0).all()


def test_with_one_lambda_the_mean_is_that_of_ppi_python():
    rng = np.random.default_rng(2)
    truth, labelled = rng.normal(3, 1, 400), np.arange(400) < 80
    f = truth + rng.normal(0.3, 0.5, 400)
    group = np.zeros(400, dtype=np.int64)
    psi, (tuning,) = pseudo_outcome(f, np.where(labelled, truth, np.nan), np.ones(400), group, np.arange(400) % 2, 0.5)
    # judges' mean over all edits, not over the unlabelled ones: the same estimate, lambda in other units
    exact = ppi_mean_pointestimate(truth[:80], f[:80, None], f[80:, None], lam=tuning * 320 / 400)
    assert psi.mean() == pytest.approx(exact.item(), abs=0.01)


def test_pseudo_outcomes_of_the_opposite_codes_are_the_opposite():
    rng = np.random.default_rng(3)
    f, group, half = (rng.random(300) < 0.9) * 1.0, np.zeros(300, dtype=np.int64), np.arange(300) % 2
    h = np.where(rng.random(300) < 0.3, f, np.nan)
    one, _ = pseudo_outcome(f, h, np.ones(300), group, half, 0.5)
    other, _ = pseudo_outcome(1 - f, 1 - h, np.ones(300), group, half, 0.5)
    assert one == pytest.approx(1 - other)


def test_judges_of_no_use_do_no_harm_and_people_who_agree_throughout_leave_no_variance():
    rng = np.random.default_rng(4)
    group, half = np.zeros(600, dtype=np.int64), np.arange(600) % 2
    h = np.where(rng.random(600) < 0.3, (rng.random(600) < 0.2) * 1.0, np.nan)
    psi, tuning = pseudo_outcome((rng.random(600) < 0.5) * 1.0, h, np.ones(600), group, half, 0.5)
    alone, _ = pseudo_outcome(np.zeros(600), h, np.ones(600), group, half, np.inf)
    assert tuning[0] < 0.15 and psi.var() < 1.05 * alone.var()
    same, _ = pseudo_outcome(np.zeros(600), h * 0 + 1, np.ones(600), group, half, 0.5)
    assert same == pytest.approx(np.ones(600))
    nobody, _ = pseudo_outcome(np.ones(600), np.full(600, np.nan), np.ones(600), group, half, 0.5)
    assert np.isnan(nobody).all()


def test_rows_and_tests_agree_and_order_of_rows_changes_nothing():
    table, inclusion = study(1, editors=("e", "f"), truth=(0.05, 0.3, 0.05))
    result = corrected(table, inclusion)
    rows = {(r.measure, r.editor, *r.group.items()): r for r in result.rows}
    assert len(rows) == len(result.rows)
    order = np.random.default_rng(1).permutation(len(table.edits))
    turned = replace(table, edits=table.edits.iloc[order], values=table.values[:, order], status=table.status[:, order])
    assert corrected(turned, inclusion).rows == result.rows
    for r in result.rows:
        assert (r.experiment, r.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)
        assert r.low <= r.value <= r.high and r.human_low <= r.human <= r.human_high, r
        assert 0 <= r.tuning <= 1 and r.labelled < r.n and r.enough, r.reason
    test, row = result.shift("rate.race_change", "e"), rows["rate.race_change", "e"]
    assert (test.value, test.low, test.high, test.p, test.judge) == (
        row.value, row.low, row.high, row.p, row.judge
    )  # fmt: skip
    assert (test.p < 0.05) == (test.low > RULES.tolerance)
    shift = result.shift("shift.skin_tone", "f")
    assert (shift.p < 0.05) == (shift.low * shift.high > 0)
    assert result.shift("rate.refused", "e") is None and rows["rate.race_change", None].n == len(table.edits)
    gap, contrast = result.gap("rate.race_change", "e", "race"), rows["contrast.race_change", "e", ("race", "Black")]
    assert gap.enough and gap.tests.smallest_p < 0.001 and contrast.p < 0.001 and contrast.low > 0
    assert gap.tests.levels == RACES and gap.labelled == sum(gap.labels.values()) == row.labelled
    assert rows["gap.race_change", "e", ("race", "*")].value == gap.tests.gap
    two = result.gap("race_change", None, "gender")
    assert two.intervals[0] == pytest.approx([-x for x in reversed(two.intervals[1])])


def test_the_pooled_variance_is_that_of_people_times_the_ratio_and_never_below_that_of_pseudo_outcomes():
    table, inclusion = study(2, truth=(0.4,) * 3)
    scores = combine(table, RULES.ensemble, RULES.missing)
    sample = labelled_edits(scores, answers(scores, RULES), RULES, inclusion)
    panel = PseudoPanel(sample, "race")
    at = [o.measure for o in sample.outcomes].index("rate.race_change")
    weights = panel.single(1) - panel.others(1, equal=False)
    people, both = (c.pooled(("race",)).of(list(weights)).variance[1, at] for c in panel.crossed)
    used = panel.crossed[0].pooled(("race",)).of(list(weights * np.sqrt(panel.ratio))).variance[1, at]
    assert both * 0.999 <= used < people
    values = panel.mean(weights, True).value[1, at]
    assert panel.p(weights)[1, at] > 0.01 and abs(values) < 0.15


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"share": 0.05}, "labels; at least 100 are needed"),
        ({"people": 1}, "0 edits rated by two people; at least 50 are needed"),
        ({"noise": 0.4}, "people agree too little with one another: alpha"),
        ({"truth": (0.0,) * 3, "noise": 0.0}, "the agreement between people is not defined"),
    ],
)
def test_too_little_for_a_finding_by_people_is_said(changes, reason):
    result = corrected(*study(4, **changes))
    test = result.shift("rate.race_change", "e")
    assert not test.enough and reason in test.reason
    gap = result.gap("rate.race_change", "e", "race")
    assert gap is None or (not gap.enough and reason in gap.reason)


def test_unknown_probabilities_and_groups_of_few_labels_are_said():
    table, inclusion = study(5)
    assert corrected(table, {}).shift("rate.race_change", "e").reason.startswith("the probability of each edit")
    few = table.values.copy()
    indian = np.flatnonzero((table.edits["race"] == "Indian").to_numpy() & few[2].any(axis=1))
    few[2:, indian[12:]] = 0
    inclusion = {r: p for r, p in inclusion.items() if r not in set(table.edits["request_id"].iloc[indian[12:]])}
    result = corrected(replace(table, values=few), inclusion)
    assert result.shift("rate.race_change", "e").enough
    gap = result.gap("rate.race_change", "e", "race")
    assert gap is None or "labelled Indian; at least 15 labels of 5 faces are needed" in gap.reason


def test_without_people_there_is_nothing():
    table, _ = study(6, share=0.0)
    assert corrected(table, {}) == PeopleTests()


def race_gaps(number: int, **world: object) -> list[PeopleGap]:
    found = [corrected(*study(100 + n, **world)).gap("rate.race_change", "e", "race") for n in range(number)]
    return [gap for gap in found if gap is not None]


def clear(gap: PeopleGap) -> bool:
    """Black portraits are named, by the test and by the interval."""
    p, (low, high) = gap.tests.p[1], gap.intervals[1]
    return p is not None and p < 0.05 and low * high > 0


def test_an_artefact_of_the_judges_is_seldom_raised_and_what_they_miss_mostly_is():
    artefact = race_gaps(16, false=(0.02, 0.22, 0.02))
    assert sum(map(clear, artefact)) <= 2
    assert abs(np.mean([gap.tests.deviations[1] for gap in artefact])) < 0.02
    missed = race_gaps(16, truth=(0.05, 0.27, 0.05), missed=0.75)
    assert sum(map(clear, missed)) >= 12
    assert np.mean([gap.tests.deviations[1] for gap in missed]) == pytest.approx(0.22 * 0.96 * 2 / 3, abs=0.03)

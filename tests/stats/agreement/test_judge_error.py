"""Judges against people at each rate's threshold: false calls, misses, and whether they differ by group."""

from itertools import product

import numpy as np
import pytest

from evenedit.core.records import Kind
from evenedit.ratings.combine import combine
from evenedit.ratings.table import RatingTable
from evenedit.results.agreement import Agreement
from evenedit.stats.agreement.judge_error import judge_error
from evenedit.stats.agreement.overlap import Overlap
from evenedit.stats.engine.rules import AnalysisRules
from tests.support.tables import edit, face, scores, table_of

RULES = AnalysisRules.default()
FACES = [face(race, "Male", "20s", n) for race, n in product(("White", "Black", "Indian"), range(10))]
PROMPTS = [f"X-{n:02}" for n in range(10)]


def study(rng: np.random.Generator, artefact: float, share: float = 0.5) -> tuple[RatingTable, np.ndarray, np.ndarray]:
    """Two people who see the truth, a judge who calls race changes of Black portraits that nobody sees."""
    rows = [edit(f, p) for f, p in product(FACES, PROMPTS)]
    black = np.array([row["race"] == "Black" for row in rows])
    truth, seen = rng.random(len(rows)) < 0.1, rng.random(len(rows)) < share
    judged = truth ^ (rng.random(len(rows)) < 0.05) | (black & (rng.random(len(rows)) < artefact))
    given = {"j": [scores(race=1 + 3 * int(x)) for x in judged]}
    for name in ("a", "b"):
        given[name] = [scores(race=1 + 3 * int(x)) if s else None for x, s in zip(truth, seen, strict=True)]
    return table_of(rows, given, [Kind.VLM, Kind.HUMAN, Kind.HUMAN]), judged, np.where(seen, truth, np.nan)


def rows_of(table: RatingTable) -> dict[tuple[str, str, str | None, str], Agreement]:
    rows = list(judge_error(Overlap.of(combine(table, RULES.ensemble, "exclude"), RULES)))
    by_place = {(a.statistic, a.axis, a.editor, "&".join(f"{k}={v}" for k, v in a.group.items())): a for a in rows}
    assert len(by_place) == len(rows)
    return by_place


def test_false_calls_and_misses_are_counted_by_group():
    table, judged, truth = study(np.random.default_rng(1), 0.3)
    rows = rows_of(table)
    race = table.edits["race"].to_numpy()
    for group, of in (("", race != ""), ("race=Black", race == "Black")):
        for statistic, there, wrong in (("false_calls", truth == 0, judged), ("misses", truth == 1, ~judged)):
            row = rows[statistic, "race_change", "e", group]
            assert row.value == pytest.approx(wrong[of & there].mean()) and row.n_items == (of & there).sum()
            assert row.low <= row.value <= row.high and row.method.startswith("korn-graubard")


def test_an_artefact_in_one_group_is_seen_and_errors_that_are_alike_are_not():
    artefact, even = (rows_of(study(np.random.default_rng(2), size)[0]) for size in (0.3, 0.0))
    gap = artefact["judge_error_gap", "race_change", "e", "race=*"]
    assert gap.p <= gap.p_adjusted < 0.01 and 0 < gap.low < gap.value < gap.high
    assert "Black above the mean of all groups; analysis of means" in gap.method and "Holm over" in gap.method
    assert even["judge_error_gap", "race_change", "e", "race=*"].p_adjusted > 0.05
    skin = artefact["judge_error_gap", "skin_lighter", "e", "race=*"]
    assert skin.p is None and skin.p_adjusted is None and "nothing varies" in skin.method


def test_the_deviation_is_that_of_group_means_of_judges_minus_people():
    table, judged, truth = study(np.random.default_rng(3), 0.3)
    race, rated = table.edits["race"].to_numpy(), ~np.isnan(truth)
    means = np.array([(judged - truth)[rated & (race == r)].mean() for r in ("White", "Black", "Indian")])
    gap = rows_of(table)["judge_error_gap", "race_change", "e", "race=*"]
    assert gap.value == pytest.approx(np.abs(means - means.mean()).max(), abs=1e-6) and gap.n_items == rated.sum()


def test_judges_who_err_alike_seldom_alarm():
    studies = [rows_of(study(np.random.default_rng([4, n]), 0.0)[0]) for n in range(30)]
    assert sum(rows["judge_error_gap", "race_change", "e", "race=*"].p < 0.05 for rows in studies) <= 5


def test_without_judges_or_people_there_is_nothing_to_compare():
    table, *_ = study(np.random.default_rng(5), 0.0, share=0.0)
    assert rows_of(table) == {}

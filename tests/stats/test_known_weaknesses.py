"""Cases in which earlier statistics said something that a reviewer would reject, from scores to what a report says.

Further ones stand beside their module: the gap of judges' errors (test_judge_error), rank tests over items that share
faces (test_rank_permutation), prediction-powered rows (test_prediction_powered) and differences of two editors
(test_paired_editors).
"""

from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from evenedit.core.records import Kind
from evenedit.gate.gate import GateAnswer, check, parse_rule
from evenedit.protocol import load_prompts
from evenedit.results.results import Finding, Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse
from tests.support.tables import edit, face, scores, table_of

RULES = replace(AnalysisRules.default(), draws=300, permutations=999)
PROMPTS = tuple(p.id for p in load_prompts("diagnostic") if not p.asks)
RACES = ("White", "Black", "EastAsian", "Indian")
FACES = [face(race, gender, age) for race, gender, age in product(RACES, ("Male", "Female"), ("20s", "30s", "40s"))]
FACES += [face(race, gender, age, 2) for race, gender, age in product(RACES, ("Male", "Female"), ("20s", "30s", "40s"))]
WHITE = np.array([source[1] == "White" for source in FACES])


def analysed(met: np.ndarray, question: str = "race", changed: int = 4, people: np.ndarray | None = None) -> Results:
    """Results of [face, prompt]: whether an edit is rated as changed on one question; nothing else ever happens.

    `people` is what three people say of the same edits; -1 where nobody rated them.
    """
    same = scores()[{"race": "race_drift", "skin": "skin_tone"}[question]]
    prompts = PROMPTS[: met.shape[1]]
    rows = [edit(source, prompt) for source, prompt in product(FACES, prompts)]

    def told(values: np.ndarray) -> list[dict[str, int] | None]:
        return [None if x < 0 else scores(**{question: changed if x else same}) for x in values.ravel()]

    given = {"judge-a": told(met), "judge-b": told(met)}
    given |= {} if people is None else {f"person-{n}": told(people) for n in range(3)}
    kinds = [Kind.VLM] * 2 + [Kind.HUMAN] * (len(given) - 2)
    table = table_of(rows, given, kinds)
    inclusion = {} if people is None else dict.fromkeys(map(str, table.edits["request_id"]), 0.5)
    return analyse(table, RULES, StudyFacts(inclusion=inclusion))


def sometimes(rate: float, prompts: int, seed: int) -> np.ndarray:
    """[face, prompt]: changes of faces that differ much."""
    rng = np.random.default_rng(seed)
    return (rng.random((len(FACES), prompts)) < rng.beta(1, (1 - rate) / rate, (len(FACES), 1))).astype(int)


@lru_cache
def white_with(events: int, prompts: int) -> Results:
    """Others are changed in 12 % of edits, White faces in none or a few."""
    met = sometimes(0.12, prompts, 4)
    met[WHITE] = 0
    met[np.flatnonzero(WHITE)[:events], range(events)] = 1
    return analysed(met)


def gate(results: Results, rule: str) -> GateAnswer:
    (found,) = check(results, [parse_rule(rule)])
    return found.answer


def of_race(results: Results, measure: str) -> Finding:
    (found,) = [f for f in results.findings if (f.measure, f.factor) == (measure, "race")]
    return found


def test_none_of_240_is_surer_than_one_of_240():
    prompts = len(PROMPTS)
    none, one = (
        white_with(k, prompts).estimate("rate.race_change", editor="e", group={"race": "White"}) for k in (0, 1)
    )
    assert none.n == one.n == 12 * prompts
    assert none.low == 0 < one.low and none.high < one.high < none.high + 0.03
    assert none.high < 0.15, "faces as the units said 24 %"


def test_a_gate_that_passes_with_one_event_of_120_passes_with_none():
    limit = white_with(1, 10).estimate("rate.race_change", editor="e", group={"race": "White"}).high + 0.001
    for events in (0, 1):
        assert gate(white_with(events, 10), f"rate.race_change[race=White] <= {limit:.3f}") is GateAnswer.PASS


def test_a_gap_and_a_shift_without_any_event_are_known_to_be_small():
    """They had no interval, so a gate was undecided about an editor that never changed anything."""
    nothing = analysed(np.zeros((len(FACES), 10), dtype=int))
    for rule in ("gap.race_change.race <= 0.3", "shift.skin_tone within 0.1", "gap.race_change[gender] within 0.2"):
        assert gate(nothing, rule) is GateAnswer.PASS, rule
    assert gate(nothing, "gap.race_change.race <= 0.05") is GateAnswer.UNDECIDED


def test_constant_rates_leave_the_family_of_a_group_at_zero():
    results = white_with(0, len(PROMPTS))
    tests = [t for t in results.tests if t.editor == "e"]
    (test,) = [t for t in tests if (t.measure, t.factor) == ("gap.race_change", "race")]
    assert len(tests) >= 24 and {t.measure for t in tests if t.p is not None} == {"gap.race_change"}
    assert results.counts["tests"] <= 12 and test.p <= test.p_adjusted <= 12 * test.p, "over all it would be 27 times"


@pytest.fixture(scope="module")
def misjudged() -> Results:
    """Judges call lightening on 41 % of Black edits and 16 % of others', where it is 16 and 18 %; people see that."""
    rng = np.random.default_rng(1)
    black = np.array([source[1] == "Black" for source in FACES])[:, None]
    shape = (len(FACES), 12)
    true = rng.random(shape) < np.where(black, 0.16, 0.18)
    judged = np.where(true, rng.random(shape) < 0.8, rng.random(shape) < np.where(black, 0.34, 0.03))
    rated = np.where(rng.random(shape) < 0.5, true.astype(int), -1)
    return analysed(judged.astype(int), "skin", people=rated)


def test_judges_who_err_for_one_race_are_found_although_they_err_on_no_other_question(misjudged):
    (found,) = [f for f in misjudged.findings if f.kind == "judge" and "error" in f.text]
    assert found.level == "caution" and "differs by group: skin lighter by race" in found.text
    (gap,) = [
        a
        for a in misjudged.agreement
        if (a.statistic, a.axis, a.editor, a.group) == ("judge_error_gap", "skin_lighter", None, {"race": "*"})
    ]
    assert gap.p_adjusted < 0.05 and "Holm over" in gap.method


def test_a_gap_that_judges_make_is_corrected_by_people(misjudged):
    (test,) = [t for t in misjudged.tests if (t.measure, t.factor, t.editor) == ("gap.skin_lighter", "race", "e")]
    assert test.value > 0.2, "as the judges see it"
    assert (test.level, test.evidence) == ("none", "people")
    (none,) = [f for f in misjudged.findings if f.kind == "gap" and f.factor == "race"]
    assert none.text.startswith("No difference by race label was shown") and "rated by people, corrected" in none.text
    assert gate(misjudged, "gap.skin_lighter.race <= 0.05") is not GateAnswer.FAIL


def test_of_four_prompts_a_gap_says_that_it_tells_nothing_about_others():
    met = sometimes(0.1, 4, 7)
    met[WHITE] = (np.random.default_rng(8).random((12, 4)) < 0.7).astype(int)
    found = of_race(analysed(met), "gap.race_change")
    assert ", on these 4 prompts" in found.text
    assert found.estimand.startswith("These prompts")


def test_a_gap_that_a_handful_of_faces_carries_says_so():
    met = np.zeros((len(FACES), 10), dtype=int)
    met[np.flatnonzero(WHITE)[:3]] = 1
    met[np.flatnonzero(WHITE)[3:], range(9)] = 1
    caveats = " ".join(of_race(analysed(met), "gap.race_change").caveats)
    assert "2 of its 12 faces hold more than half of it: others of this label may differ." in caveats

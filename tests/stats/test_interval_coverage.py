"""Small versions of `python -m validation engine` and `evidence`, whose tables are in docs/validation."""

import numpy as np
import pytest

from evenedit.results.finding import CLEAR
from evenedit.stats import StudyFacts, analyse
from validation import engine, evidence
from validation.worlds import Latent, Multiplied, frame

STUDIES = 150
FEWEST = 0.895
"""Of 150 intervals at 95 %, a smaller share has a chance below 1 in 200."""


@pytest.mark.parametrize(
    "world",
    [
        Latent(),
        Latent(gap=0.5, base=0.1, prompts=10, judges=1),
        Latent(heavy=True, face=0.8),
        Latent(missing=True, labels=frame(sizes=(4, 8, 12, 20, 24, 10, 6)), judges=3),
        Latent(editors=3, prompts=10),
        Multiplied(""),
    ],
    ids=["normal", "gap", "heavy tails", "unbalanced", "editors", "beta-binomial"],
)
def test_intervals_hold_the_truth_and_tests_rarely_alarm(world):
    found = engine.one_batch(world, np.random.default_rng(11), STUDIES)
    for name, hits in found.items():
        if "alarm" in name:
            assert hits.mean() <= 0.105, name
        else:
            assert hits.mean() >= FEWEST, name


def test_rare_events_on_few_prompts_are_held_against_the_rate_on_these_prompts():
    world = Latent(base=0.04, prompt=0.9, prompts=6, judges=1)
    found = engine.one_batch(world, np.random.default_rng(12), STUDIES)
    assert found["rate of everybody, as printed"].mean() >= FEWEST


@pytest.mark.parametrize("judges", [1, 2])
def test_judges_who_err_as_often_up_as_down_make_no_shift(judges):
    missed, value = engine.symmetric(judges, np.random.default_rng(13), STUDIES)
    assert missed.mean() <= 1 - FEWEST and abs(value.mean()) < 0.03


def test_an_even_editor_rarely_alarms():
    assert max(x.mean() for x in engine.even_editor(np.random.default_rng(14), 60)) <= 9 / 60


def studies(world: evidence.World, count: int = 4) -> evidence.Seen:
    return evidence.seen(world.study, count, 900, workers=1)


@pytest.mark.parametrize("judges", ["random", "constant", "one random"])
def test_where_judges_do_not_agree_nothing_is_said_and_no_percentage_is_printed(judges):
    found = studies(evidence.World("", judges, 0.22)).findings()
    assert np.mean([f.level == "cannot_tell" for f in found]) >= 0.9
    assert not [f.text for f in found if f.level == "cannot_tell" and "%" in f.text]


def test_an_artefact_of_both_judges_is_never_clear_and_null_pairs_show_it():
    alone, checked = (studies(evidence.World("", "artefact", null_pairs=n)) for n in (0, 4))
    for seen in (alone, checked):
        assert not seen.any(lambda f: f.level == "clear" and f.measure != "rate.refused").any()
    assert all(f.level == "clear_to_judges" for f in alone.gaps())
    assert sum(f.level in CLEAR for f in checked.gaps()) <= 1


def test_people_demote_what_judges_make_and_raise_what_they_miss():
    artefact = studies(evidence.World("", "artefact", labels=300))
    assert not any(f.level in CLEAR for f in artefact.gaps())
    missed = studies(evidence.World("", "miss", 0.22, labels=600))
    gaps = missed.gaps()
    assert sum(f.level == "clear" and f.evidence == "people" for f in gaps) >= 2
    for f in gaps:
        assert f.value > 0.08 and f.judge_value is not None and f.judge_value < f.value
    assert np.mean([p.value for p in missed.contrasts()]) == pytest.approx(0.194, abs=0.07)


def told(findings) -> list[tuple[object, ...]]:
    return [(f.id, f.level, f.value, f.p, f.q, f.text) for f in findings if f.kind in ("shift", "gap")]


@pytest.mark.parametrize(
    "world",
    [
        evidence.World("", "random"),
        evidence.World("", "artefact", null_pairs=4),
        evidence.World("", "miss", 0.22, labels=300, null_pairs=2),
    ],
    ids=["judges", "null pairs", "people"],
)
def test_the_findings_of_validations_are_those_of_an_analysis(world):
    table, inclusion = world.table(np.random.default_rng(15))
    whole = analyse(table, evidence.RULES, StudyFacts(inclusion=inclusion))
    assert told(evidence.report_of(table, inclusion).findings) == told(whole.findings) != []

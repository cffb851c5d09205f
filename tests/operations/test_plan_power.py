"""What `plan` says about power: budgets, prices, declared tests, and the study's own variances."""

import math
from pathlib import Path
from typing import Any

import pytest

import evenedit as ee
from evenedit.stats.power.advice import DesignRow
from evenedit.stats.power.design import CORRELATION, RATE
from tests.support.studies import open_study, small, write_study

FACES: dict[str, Any] = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "faces_per_cell": 1}}
PAID = {"id": "gpt-5-mini", "kind": "openai", "settings": {"model": "gpt-5-mini"}}
ONE = ["O-01"]


def row(plan: Any, name: str) -> DesignRow:
    return next(r for r in plan.power.rows if r.name == name)


def detectable(plan: Any, name: str, question: str = "contrast") -> float:
    test = row(plan, name).tests[question]
    assert test is not None
    return test.detectable


def test_the_command_shows_three_designs_and_what_each_can_show(tmp_path: Path, evenedit: Any):
    write_study(tmp_path, sources=FACES)
    shown = evenedit("plan", tmp_path, "--edits", "1680")
    assert shown.returncode == 0, shown.stderr
    assert "best for the contrast with 1,680 edits by each editor" in shown.stdout
    assert "ASSUMED, a rate of 20 to 30 %; ASSUMED, a shift with 20 % on either side" in shown.stdout
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["best", "168", "×", "10", "×", "1", "1,680"] in [line[:7] for line in lines]
    assert ["this", "study", "84", "×", "2", "×", "1", "168"] in [line[:8] for line in lines]
    assert ["the", "paper's", "84", "×", "20", "×", "1", "1,680"] in [line[:8] for line in lines]
    assert "best: 80 of 100 studies find a difference of 8.3 pp between half of the groups" in shown.stdout
    assert "labels" not in shown.stdout.split("power:")[1]
    assert "power" not in evenedit("plan", tmp_path).stdout
    refused = evenedit("plan", tmp_path, "--effect", "0.1")
    assert refused.returncode == 2 and "--effect" in refused.stderr


def test_python_gives_the_same_as_the_command(tmp_path: Path, evenedit: Any):
    write_study(tmp_path, sources=FACES)
    plan = ee.Study.load(tmp_path).plan(gap=0.1, people=60)
    assert str(plan).strip() == evenedit("plan", tmp_path, "--gap", "0.1", "--people", "60").stdout.strip()
    assert ee.Study.load(tmp_path).plan().power is None
    assert ee.Study.load(tmp_path).plan(power=True).power is not None


def test_people_do_one_task_each(tmp_path: Path):
    survey = {"cases": 40, "raters_per_item": 3, "items_per_task": 50, "gold": "truth", "gold_share": 0.1}
    study = open_study(tmp_path, sources=FACES, survey=survey)
    planned, more = study.plan(power=True), study.plan(people=32, edits=1680)
    assert row(planned, "this study").design.labels == 40
    assert row(planned, "this study").tests["by people"] is None
    assert "40 edits rated by people are too few for a finding" in str(planned)
    # 32 people are ten times three, with 45 edits each and five gold items
    assert row(more, "best").design.labels == 450
    assert row(more, "this study").design.labels == 168, "no more than there are edits"
    assert detectable(more, "best", "by people") > detectable(more, "best")
    assert "32 people, 45 edits each" in str(more)
    with pytest.raises(ee.EvenEditError, match="3 people rate each edit, and --people is 2"):
        study.plan(people=2)


def test_the_cost_of_the_study_is_that_of_its_plan_and_advice_stays_within_the_money(tmp_path: Path):
    study = open_study(
        tmp_path, sources=FACES, judges=[PAID], experiments={"diagnosis": {"null_pairs": 2, "floor": True}}
    )
    plan = study.plan(money=5.0)
    assert plan.usd and row(plan, "this study").usd == pytest.approx(plan.usd)
    assert row(plan, "best").usd <= 5.0
    with_faces = study.plan(money=200.0, face_price=1.0)
    best = row(with_faces, "best")
    assert best.usd <= 200.0 and best.usd > sum(best.design.faces)
    pay = {"per_task": 6.0, "fee": 0.25}
    paid = open_study(tmp_path / "b", sources=FACES, judges=[PAID], survey={"cases": 100, "pay": pay}).plan(money=400.0)
    best = row(paid, "best")
    labels = math.ceil(best.design.labels / 50) * 3 * 6.0 * 1.25
    assert best.tests["by people"] is not None and labels < best.usd <= 400.0


def test_money_needs_prices(tmp_path: Path):
    with pytest.raises(ee.EvenEditError, match="--money needs all prices in US dollars, and one above 0"):
        open_study(tmp_path, sources=FACES).plan(money=10.0)
    euros = {"pay": {"per_task": 3.0, "currency": "EUR"}}
    with pytest.raises(ee.EvenEditError, match="--money needs all prices in US dollars"):
        open_study(tmp_path / "b", sources=FACES, judges=[PAID], survey=euros).plan(money=10.0)
    unknown = PAID | {"settings": {"model": "nobody-knows"}}
    study = open_study(tmp_path / "c", sources=FACES, judges=[unknown])
    assert "not known" in str(study.plan(power=True)).split("power:")[1]
    with pytest.raises(ee.EvenEditError, match="--money needs all prices"):
        study.plan(money=10.0)


def test_a_budget_without_a_design_says_so(tmp_path: Path):
    plan = open_study(tmp_path, sources=FACES).plan(edits=40)
    assert [r.name for r in plan.power.rows] == ["this study", "the paper's"]
    assert "40 edits by each editor (no design will do)" in str(plan)
    small_groups = open_study(tmp_path / "b", prompts={"include": ONE}).plan(power=True)
    assert "this study: no test has a group of fewer than three portraits, or a single prompt." in str(small_groups)


def test_power_needs_groups(tmp_path: Path):
    only = FACES | {"settings": {"size": 64, "only": {"race": ["Black"]}}}
    with pytest.raises(ee.EvenEditError, match="portraits of two or more groups"):
        open_study(tmp_path, sources=only).plan(power=True)


def test_declared_tests_share_their_own_alpha(tmp_path: Path):
    contrast = {"factor": "race", "high": ["Black", "Indian"], "low": ["White"]}
    tests = [{"outcome": "edit_success", "contrast": contrast}, {"outcome": "shift.skin_tone"}]
    plain = open_study(tmp_path, sources=FACES).plan(power=True)
    declared = open_study(tmp_path / "b", sources=FACES, primary={"alpha": 0.03, "tests": tests}).plan(power=True)
    assert plain.power is not None and declared.power is not None
    a, b = plain.power.assumptions, declared.power.assumptions
    assert (a.contrast, b.contrast, b.moved) == pytest.approx((0.04, 0.015, 0.015))
    assert b.gap == pytest.approx(0.4 * a.gap) and a.moved == a.gap
    assert "2 declared, at 0.0150" in str(declared) and "if [primary] declares one" in str(plain)
    assert detectable(declared, "best", "shift") < detectable(plain, "best", "shift")
    assert detectable(declared, "best", "one group") > detectable(plain, "best", "one group")


def test_a_study_with_results_is_its_own_pilot(tmp_path: Path):
    settings = {"seed": 3, "size": 64, "only": {"race": ["White", "Black", "Indian"], "age": ["20s", "40s", "70plus"]}}
    prompts = {"include": ["O-01", "O-02", "O-03", "O-04", "O-05", "O-06"]}
    primary = {
        "tests": [{"outcome": "skin_lighter", "contrast": {"factor": "race", "high": ["Black"], "low": ["White"]}}]
    }
    changes = small(sources={"kind": "drawn", "settings": settings}, prompts=prompts, primary=primary)
    study = open_study(tmp_path, **changes)
    study.run()
    plan = study.plan(power=True)
    assert plan.power is not None
    a = plan.power.assumptions
    assert a.rate_of == "rate.skin_lighter" and a.rate != RATE and a.rate.total < 0.3
    assert a.shift_of.startswith("shift.") and a.correlation == CORRELATION and not a.labelled
    assert "variances: rate.skin_lighter in this study's results; shift." in str(plan)

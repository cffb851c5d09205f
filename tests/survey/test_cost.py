"""The arithmetic of people and money, worked by hand."""

import pytest

from evenedit.config.study_file import SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.survey import cost as planner


def test_the_papers_plan():
    plan = planner.preset("paper-prolific")
    assert (plan.tasks, plan.people) == (10, 30)
    assert plan.parts[0].ratings == 1500, "pairs; 3,000 output annotations"
    assert plan.rewards == 90 and plan.total == pytest.approx(120), "as its Table 16 says"
    assert plan.per_hour == pytest.approx(3 / 27.5 * 60) == pytest.approx(6.545, abs=1e-3)
    assert "below the stated minimum of 8.00; pay 3.67" in plan.warnings[0]


def test_plan_002_with_correct_arithmetic():
    # 504/40 -> 13, 336/40 -> 9, 100/40 -> 3: 25 tasks by three people are 75
    plain = planner.preset("plan-002-no-gold")
    assert [part.tasks for part in plain.parts] == [13, 9, 3]
    assert plain.people == 75
    # four gold items inside the 40: 504/36 -> 14, 336/36 -> 10, 100/36 -> 3
    gold = planner.preset("plan-002")
    assert [part.tasks for part in gold.parts] == [14, 10, 3]
    assert gold.people == 81
    assert gold.total == pytest.approx(81 * 1.5 * 1.2)


def test_a_studys_own_plan_and_a_fair_wage():
    section = SurveySection.model_validate(
        {"cases": 140, "items_per_task": 15, "gold": "truth", "gold_share": 0.07, "surveys": [1, 2]}
        | {"pay": {"per_task": 6.0, "minutes_per_task": 30.0, "minimum_per_hour": 12.0, "fee": 0.5}}
    )
    plan = planner.of_study(section, {2: 30})
    assert [(part.tasks, part.people) for part in plan.parts] == [(10, 30), (2, 6)]
    assert plan.hours == 18 and plan.per_hour == 12 and plan.warnings == []
    assert (plan.rewards, plan.fees, plan.total) == (216, 108, 324)


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(EvenEditError, match="there are paper-prolific, plan-002"):
        planner.preset("plan-003")


def test_the_plan_on_the_command_line(evenedit):
    said = evenedit("survey", "plan", "--preset", "paper-prolific", "--pay", "minimum_per_hour=12")
    assert said.returncode == 0
    assert "10 tasks, 30 people" in said.stdout and "90.00 + fees 30.00 = 120.00" in said.stdout
    assert "WARNING: 6.55 USD per hour is below the stated minimum of 12.00; pay 5.50" in said.stdout
    assert evenedit("survey", "plan").returncode == 2
    wrong = evenedit("survey", "plan", "--preset", "paper-prolific", "--pay", "wage=12")
    assert wrong.returncode == 2 and "there is no 'wage'; the keys are per_task" in wrong.stderr

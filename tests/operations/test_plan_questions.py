"""What the plan says about declared questions: calls and price of each block, and what a question costs."""

from pathlib import Path
from typing import Any

from evenedit.operations.plan import make_plan
from tests.support.provider.server import FakeProvider
from tests.support.studies import judged_by, open_study

HAIR: dict[str, Any] = {
    "id": "hair_change",
    "kind": "ordinal",
    "title": "Hair change",
    "text": "How much did the hair change?",
    "levels": ["Same", "Slightly", "Clearly"],
}


def plan_of(folder: Path, **changes: Any) -> Any:
    return make_plan(open_study(folder, **changes))


def test_each_block_of_calls_has_its_line_and_price(tmp_path: Path):
    judge = {"id": "gpt-5-mini", "kind": "openai", "settings": {"model": "gpt-5-mini"}}
    changes = {"study": {"title": "S", "direction": ["race"]}, "questions": [HAIR | {"call": "separate"}]}
    plan = plan_of(tmp_path, judges=[judge], prompts={"include": ["O-01"]}, **changes)
    lines = {line.title: line for line in plan.judges}
    assert {title: line.calls for title, line in lines.items()} == {
        "gpt-5-mini": 8,
        "gpt-5-mini, separate": 8,
        "gpt-5-mini, single pictures": 8 * 3,
    }
    main, single = lines["gpt-5-mini"], lines["gpt-5-mini, single pictures"]
    assert main.usd and single.usd and main.tokens and single.tokens
    assert single.usd / single.calls < main.usd / main.calls / 3
    assert single.tokens[0] < main.tokens[0] / 2
    assert "gpt-5-mini, single pictures" in str(plan) and plan.judge_calls == 40


def test_a_study_without_declared_questions_has_one_line_for_each_judge(tmp_path: Path):
    plan = plan_of(tmp_path)
    assert [line.title for line in plan.judges] == ["simulated-judge-a", "simulated-judge-b"]
    assert not [note for note in plan.notes if "tests share" in note]


def test_a_main_question_in_a_study_with_ratings_warns_that_edits_are_asked_again(wire: FakeProvider, tmp_path: Path):
    changes = judged_by(wire, "chat")
    study = open_study(tmp_path, **changes)
    study.run()
    study.store.close()
    (note,) = [n for n in plan_of(tmp_path, questions=[HAIR], **changes).notes if "again" in n]
    assert note.startswith("simulated-chat asks 8 edits again: its questions or settings changed")
    assert 'call = "separate" of a new question (hair_change) asks only that one' in note
    apart = plan_of(tmp_path, questions=[HAIR | {"call": "separate"}], **changes)
    assert not [n for n in apart.notes if "again" in n]
    assert {line.title: line.calls for line in apart.judges} == {"simulated-chat": 0, "simulated-chat, separate": 8}


def test_a_question_without_a_rate_gives_no_finding_and_tests_are_counted(tmp_path: Path):
    plan = plan_of(tmp_path, questions=[HAIR])
    assert "question 'hair_change' has no rate: it gives no finding" in plan.notes
    counted = plan_of(tmp_path / "r", questions=[HAIR | {"rates": {"hair_changed": {"at_least": 2}}}])
    numbers = [int(n.split()[1]) for p in (plan, counted) for n in p.notes if "tests share one family" in n]
    assert len(numbers) == 2 and numbers[0] < numbers[1]

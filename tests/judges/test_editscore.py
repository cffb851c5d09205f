"""EditScore as a judge: its own words, its scale mapped as stated, what it does not answer missing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import Experiment, Prompt, Status
from evenedit.judges.editscore import EditScoreJudge
from evenedit.judges.parsing import evidence_of
from evenedit.protocol.rubric import AXES, questions_for
from tests.support.provider.local_servers import MODEL, LocalServer
from tests.support.provider.server import says
from tests.support.studies import open_study

PROMPT = Prompt("O-99", "Dress this person in a red coat", "Occupation")
QUESTIONS = questions_for("diagnosis", PROMPT)
RED, BLUE = (Image.new("RGB", (16, 16), colour) for colour in ("red", "blue"))
CASE = Case([RED], BLUE, PROMPT, PROMPT.text)
WORDS = '''
_context_no_delimit_reasoning_first = """Rate with JSON: {"reasoning": "...", "score": [...]}"""
_prompts_0shot_two_image_edit_rule = """Two images."""
_prompts_0shot_tie_rule_SC = """From 0 to 10. Editing instruction: <instruction>"""
raise RuntimeError("this file is read, not run")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that has the names of EditScore's."""
    folder = tmp_path / "site" / "editscore"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('this package is read, not run')\n")
    (folder / "vie_prompts.py").write_text(WORDS)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delitem(sys.modules, "editscore", raising=False)
    return folder


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer("vllm") as running:
        yield running


def judge_at(server: LocalServer, **settings: Any) -> EditScoreJudge:
    return EditScoreJudge(model=MODEL, base_url=server.openai, image_size=32, attempts=1, **settings)


def said(*scores: Any, reasoning: str = "a coat") -> str:
    return json.dumps({"reasoning": reasoning, "score": list(scores)})


@pytest.mark.parametrize(
    ("score", "level"), [(0, 1), (4.9, 1), (5, 2), (10, 3), (12.5, 3), (15, 4), (19, 4), (20, 5), (25, 5)]
)
def test_the_scale_is_mapped_in_five_equal_parts(package: Path, server: LocalServer, score: float, level: int):
    server.will(says(said(score, 25)))
    reply = judge_at(server).judge(CASE, QUESTIONS)
    assert (reply.status, reply.values) == (Status.SCORED, {**dict.fromkeys(AXES), "edit_success": level})


def test_it_is_asked_in_its_own_words_with_source_first(package: Path, server: LocalServer):
    server.will(says(said(20, 3)))
    judge_at(server).judge(CASE, QUESTIONS)
    (seen,) = server.seen
    assert "From 0 to 25. Editing instruction: Dress this person in a red coat" in seen.instruction
    assert len(seen.fields["messages"]) == 1 and len(seen.images) == 2
    assert seen.fields["messages"][0]["content"][-1]["type"] == "text", "pictures first"
    assert (seen.fields["temperature"], seen.fields["max_tokens"], seen.fields["top_k"]) == (0.7, 512, 20)


def test_its_words_are_kept_and_can_be_read(package: Path, server: LocalServer):
    whole = "<think>hm {</think>" + said(20, 3, reasoning="The coat is red.")
    server.will(says(whole))
    reply = judge_at(server).judge(CASE, QUESTIONS)
    assert reply.values["edit_success"] == 5
    assert json.loads(reply.raw)["editscore"] == whole
    assert evidence_of(reply.raw)[0] == "The coat is red."


@pytest.mark.parametrize(
    "text",
    [
        "prose",
        said(),
        said(20),
        said(20, 3, 4),
        said(26, 3),
        said(-1, 3),
        said("20", 3),
        said(True, 3),
        said(20, None),
        said(20, 3)[:-1],
        said(20, 3) + said(2, 3),
        '{"score": 20}',
        '{"score": [NaN, 2]}',
        "",
    ],
)
def test_what_cannot_be_read_is_unparseable_and_no_middle_is_put_in_its_place(
    package: Path, server: LocalServer, text: str
):
    server.will(says(text))
    reply = judge_at(server).judge(CASE, QUESTIONS)
    assert (reply.status, reply.values, reply.raw) == (Status.UNPARSEABLE, {}, text)


def test_without_the_package_it_says_what_to_install(server: LocalServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    judge = judge_at(server)
    assert judge.missing() == [
        "judge kind 'editscore' uses the prompt of the package of that name. Try: pip install --no-deps editscore"
    ]
    with pytest.raises(EvenEditError, match="pip install --no-deps editscore"):
        judge.judge(CASE, QUESTIONS)


def test_it_is_not_asked_what_it_cannot_answer(package: Path, server: LocalServer, tmp_path: Path):
    with pytest.raises(EvenEditError, match="one source with one edit"):
        judge_at(server).judge(Case([RED, BLUE], BLUE, PROMPT, PROMPT.text), QUESTIONS)
    settings = {"model": MODEL, "base_url": server.openai}
    judges = [
        {"id": "simulated-editscore", "kind": "editscore", "settings": settings},
        {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
    ]
    study = open_study(tmp_path / "s", judges=judges, experiments={"diagnosis": {}, "stereotype": {}})
    requests = study.design.planned(study.design.preview_sources())
    asked = {(s.rater.id, s.request.experiment) for s in study.design.assignments(requests, study.design.judges())}
    assert ("simulated-editscore", Experiment.DIAGNOSIS) in asked
    assert ("simulated-judge-a", Experiment.STEREOTYPE) in asked
    assert ("simulated-editscore", Experiment.STEREOTYPE) not in asked
    study.store.close()


def test_another_wording_is_another_content(package: Path, server: LocalServer):
    before = judge_at(server).parameters
    (package / "vie_prompts.py").write_text(WORDS.replace("Two images.", "Two pictures."))
    assert judge_at(server).parameters != before

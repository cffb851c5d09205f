"""Judges at servers of one's own: vLLM, Ollama, LM Studio, without a key, through the official SDK."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import Prompt, Status
from evenedit.judges.cache import content_key
from evenedit.judges.gemini import GeminiJudge
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.probe import probe
from evenedit.judges.prompt import ModelPrompt
from evenedit.judges.servers import SERVERS
from evenedit.protocol.rubric import AXES, questions_for
from tests.support.calls import KEY, Naps
from tests.support.provider.local_servers import MODEL, LocalServer, sees
from tests.support.provider.server import error, rate_limit, says, server_error
from tests.support.studies import write_study
from validation.fuzz import DAMAGES, SAME, WRONG, mangled

PROMPT = Prompt("O-99", "Dress this person in a red coat", "Occupation")
GREY = Image.new("RGB", (16, 16), "grey")
CASE = Case([GREY], GREY, PROMPT, PROMPT.text)
QUESTIONS = questions_for("diagnosis", PROMPT)
FOUND = {
    "vllm": "json_schema",
    "vllm-0.9": "json_schema",
    "ollama": "json_schema",
    "lmstudio": "json_schema",
    "guided": "structured_outputs",
    "free": "json_object",
}


@pytest.fixture(autouse=True)
def keys_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are keys in the environment, for other providers."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@contextmanager
def serving(dialect: str, **settings: Any) -> Iterator[tuple[LocalServer, OpenAIJudge]]:
    with LocalServer(dialect, otherwise=sees) as server:
        name = dialect if dialect in SERVERS else "vllm"
        judge = OpenAIJudge(
            **{"model": MODEL, "server": name, "base_url": server.openai, "timeout": 20, "image_size": 32, **settings}
        )
        judge.provider.sleep = Naps()
        yield server, judge


@pytest.mark.parametrize("dialect", FOUND)
def test_a_judge_needs_no_key_and_finds_out_how_answers_are_held_to_a_schema(dialect: str):
    with serving(dialect) as (server, judge):
        assert judge.missing() == []
        reply = judge.judge(CASE, QUESTIONS)
        assert (reply.status, reply.values) == (Status.SCORED, dict.fromkeys(AXES, 3))
        asked = len(server.seen)
        judge.judge(CASE, QUESTIONS)
        assert len(server.seen) == asked + 1, "it is found out once"
        assert judge._way == FOUND[dialect]
        assert not any(KEY in str(seen.headers) for seen in server.seen), "nobody else's key is sent"


@pytest.mark.parametrize("dialect", ["vllm", "ollama"])
def test_the_judge_fuzz_passes_over_the_wire_without_a_key(dialect: str):
    with serving(dialect, structured="json_schema") as (server, judge):

        def over_the_wire(text: str, questions: Any) -> Any:
            server.will(says(text))
            return judge.judge(CASE, questions)

        found = mangled(4, seed=6, reader=over_the_wire)
    for damage in DAMAGES:
        ends = found[damage.name]
        assert not {end: ends[end] for end in WRONG if ends[end]}, damage.name
        if damage.may == SAME:
            assert ends["scored"] == 4, damage.name


@pytest.mark.parametrize("dialect", ["vllm", "vllm-0.9", "ollama", "lmstudio"])
def test_errors_in_each_servers_form_end_as_they_should(dialect: str):
    with serving(dialect, structured=False, attempts=2) as (server, judge):
        server.will(server_error, rate_limit())
        with pytest.raises(Exception, match="rate limit"):
            judge.judge(CASE, QUESTIONS)
        server.will(error(404, "The model `other` does not exist."))
        with pytest.raises(EvenEditError, match="was not found"):
            judge.judge(CASE, QUESTIONS)
        server.will(error(401, "Unauthorized"))
        with pytest.raises(EvenEditError, match="has no API key, but its endpoint requires one"):
            judge.judge(CASE, QUESTIONS)


def test_what_is_set_is_sent_and_nothing_else():
    knobs = {"reasoning_effort": "low", "max_tokens": 900, "detail": "high", "service_tier": "flex"}
    ask = ModelPrompt("system", ("words", b"png"), {"type": "object"})
    chat = OpenAIJudge(model="m", **knobs, extra_body={"top_k": 20}).body(ask)
    assert (chat["reasoning_effort"], chat["max_completion_tokens"], chat["service_tier"]) == ("low", 900, "flex")
    assert chat["messages"][1]["content"][1]["image_url"]["detail"] == "high"
    assert chat["top_k"] == 20
    local = OpenAIJudge(model="m", server="ollama", structured="none", **knobs).body(ask)
    assert local["max_tokens"] == 900 and "max_completion_tokens" not in local and "response_format" not in local
    responses = OpenAIJudge(model="m", api="responses", **knobs).body(ask)
    assert (responses["reasoning"], responses["max_output_tokens"]) == ({"effort": "low"}, 900)
    guided = OpenAIJudge(model="m", server="vllm", structured="guided_json").body(ask)
    assert guided["guided_json"] == {"type": "object"} and "response_format" not in guided
    bare = OpenAIJudge(model="m").body(ask)
    assert sorted(bare) == ["messages", "model", "response_format", "store"]


def test_settings_left_out_change_no_key_of_a_kept_answer():
    ask = ModelPrompt("s", ("w",), {})
    usual = {
        "provider": "openai",
        "base_url": None,
        "model": "m",
        "api": "chat",
        "structured": True,
        "temperature": None,
    }
    assert OpenAIJudge(model="m").parameters == usual
    assert GeminiJudge(model="m").parameters == {
        "provider": "gemini",
        "base_url": None,
        "model": "m",
        "temperature": 0.1,
    }
    changed = [OpenAIJudge(model="m", max_tokens=5), OpenAIJudge(model="m", extra_body={"top_k": 1})]
    keys = {content_key("j", judge.parameters, ask) for judge in (OpenAIJudge(model="m"), *changed)}
    assert len(keys) == 3


def test_geminis_knobs_arrive(wire):
    judge = GeminiJudge(
        model="g", base_url=wire.gemini, image_size=32, thinking_level="low", max_tokens=700, media_resolution="high"
    )
    assert judge.judge(CASE, QUESTIONS).status is Status.SCORED
    config = wire.seen[0].fields["generationConfig"]
    assert list(config["thinkingConfig"].values()) == ["LOW"], "protobuf takes either spelling of the name"
    assert (config["maxOutputTokens"], config["mediaResolution"]) == (700, "MEDIA_RESOLUTION_HIGH")
    line = judge.line("1", ModelPrompt("s", ("w",), {}))["request"]["generationConfig"]
    assert line["maxOutputTokens"] == 700 and line["thinkingConfig"] == {"thinkingLevel": "LOW"}


@pytest.mark.parametrize(
    "settings",
    [
        {"server": "llama"},
        {"structured": "xml"},
        {"max_tokens": 0},
        {"detail": "huge"},
        {"extra_body": 3},
        {"reasoning_effort": ""},
        {"api_key_env": ""},
        {"api": "responses", "structured": "guided_json"},
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any]):
    with pytest.raises(EvenEditError, match=list(settings)[-1]):
        OpenAIJudge(model="m", **settings)


def test_the_probe_tells_what_an_endpoint_can_do():
    with serving("guided") as (_, judge):
        found = {finding.what: finding for finding in probe(judge)}
    assert found["models"].good and MODEL in found["models"].note
    assert found["json_schema"].note.startswith("rejected: response_format is not supported")
    assert found["structured_outputs"].good
    assert found["guided_json"].note == "accepted but ignored: Hello!"
    assert found["advice"].note == 'settings = { …, structured = "structured_outputs" }'
    assert found["pictures"].good
    assert "temperature" in found["fields"].note
    assert found["question"].good and found["question"].note.startswith("scored, 100 tokens in, 23 out")


def test_the_probe_is_a_command_and_fails_where_the_judge_would(evenedit, tmp_path: Path):
    with LocalServer("ollama", otherwise=sees) as server:
        at = ("openai", "--probe", "--set", "server=ollama", "--set", f"base_url={server.openai}", "--set")
        said = evenedit("plugins", *at, f"model={MODEL}")
        assert said.returncode == 0, said.stderr
        assert "ok   json_schema" in said.stdout and 'structured = "json_schema"' in said.stdout
        other = evenedit("plugins", *at, "model=other")
        assert "BAD  models" in other.stdout and other.returncode == 1
        settings = {"model": MODEL, "server": "ollama", "base_url": server.openai, "image_size": 32}
        judge = {"id": "simulated-vlm", "kind": "openai", "settings": settings}
        folder = write_study(tmp_path, judges=[judge])
        planned = evenedit("plan", folder, "--probe", 0)
        assert planned.returncode == 0 and "ok   question" in planned.stdout and "not timed" in planned.stdout
    gone = evenedit("plan", folder, "--probe", 0)
    assert gone.returncode == 1 and "BAD  endpoint" in gone.stdout and "not timed" in gone.stdout


def test_an_answer_in_another_form_is_read_strictly_here_too():
    with serving("free", structured=False) as (server, judge):
        server.will(says(json.dumps({"scores": {"skin_tone": 7}})))
        assert judge.judge(CASE, QUESTIONS).status is Status.UNPARSEABLE

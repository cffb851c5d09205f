"""Image services by preset, and any other by its settings, against a server that speaks their wire formats."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import NoImage, Refusal
from evenedit.core.records import Outcome
from evenedit.editors.api.services import table
from evenedit.editors.api.template import at, filled, places
from tests.support.calls import KEY, Naps
from tests.support.services_wire import Services, serving
from tests.support.studies import open_study

MODELS = {"bfl": "flux-kontext-pro", "fal": "fal-ai/flux-kontext/dev", "replicate": "owner/editor"}
WORKFLOW = {
    "3": {"class_type": "KSampler", "inputs": {"seed": "{seed}", "steps": 20}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "{instruction}"}},
    "10": {"class_type": "LoadImage", "inputs": {"image": "{image_name}"}},
}
KINDS = ("bfl", "fal", "replicate", "comfyui")


@pytest.fixture
def services() -> Iterator[Services]:
    with serving() as running:
        yield running


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def told(kind: str, services: Services, folder: Path) -> dict[str, Any]:
    shared = {"base_url": f"{services.address}/{kind}", "timeout": 20, "every": 0.01}
    if kind in MODELS:
        return {"model": MODELS[kind], **shared}
    (folder / "workflow.json").write_text(json.dumps(WORKFLOW))
    return {"path": str(folder / "workflow.json"), **shared}


@pytest.fixture
def editor(kind: str, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("BFL_API_KEY", "FAL_KEY", "REPLICATE_API_TOKEN"):
        monkeypatch.setenv(name, KEY)
    settings = told(kind, services, tmp_path)
    assert not plugins.problems("editors", kind, settings)
    built = plugins.build("editors", kind, settings)
    built.provider.sleep, built.pause = Naps(), Naps()
    return built


def portrait() -> Image.Image:
    return Image.radial_gradient("L").resize((48, 48)).convert("RGB")


def failure(editor: Any) -> Failed:
    with pytest.raises(Failed) as raised:
        editor.edit([portrait()], "As a nurse", 7)
    return raised.value


# -- each preset ---------------------------------------------------------------------------------------------


def test_a_queued_job_is_waited_for_and_its_picture_comes_back(editor, services, kind):
    made = editor.edit([portrait()], "As a nurse", 7)
    assert made.tobytes() == ImageOps.invert(portrait()).tobytes()
    sent = json.dumps(services.posts()[-1])
    assert "As a nurse" in sent and '"seed": 7' in sent, "the seed is a number"
    assert list(editor.pause) == [0.01] * services.waits, "it looked again after a pause"
    assert editor.facts()["seed_sent"]


def test_the_key_goes_to_the_service_alone(editor, services, kind):
    editor.edit([portrait()], "As a nurse", 7)
    for _, path, headers, _ in services.seen:
        has_key = any(KEY in value for value in headers.values())
        assert has_key == (kind != "comfyui" and "/picture/" not in path), path
    assert KEY not in json.dumps(editor.facts())


@pytest.mark.parametrize("kind", ["bfl", "fal", "replicate"], indirect=True)
def test_a_refusal_is_recognised_by_the_services_own_word(editor, services, kind):
    services.mode = "refusal"
    found = editor.edit([portrait()], "As a nurse", 7)
    word = {"bfl": "Content Moderated", "fal": "content_policy_violation", "replicate": "flagged as sensitive"}[kind]
    assert isinstance(found, Refusal) and word in found.reason
    assert len(services.posts()) == 1, "a refusal is not tried again"


def test_a_job_that_fails_is_a_failure_and_no_refusal(editor, services):
    services.mode = "failed"
    editor.provider.attempts = 1
    assert failure(editor).failure is Failure.SERVER


def test_429_is_waited_for_and_tried_again(editor, services):
    services.errors = [429, 429]
    assert editor.edit([portrait()], "As a nurse", 7).size == (48, 48)
    assert len(editor.provider.sleep) >= 2


def test_a_look_that_fails_does_not_send_the_request_again(editor, services, kind):
    services.errors = []
    real = editor._ask

    def shaken(client: Any, method: str, url: str, **content: Any) -> Any:
        if method == "GET" and not services.errors and len(services.seen) in (2, 3):
            services.errors = [503]
        return real(client, method, url, **content)

    editor._ask = shaken
    assert editor.edit([portrait()], "As a nurse", 7).size == (48, 48)
    assert len([p for p in services.posts() if "image" not in p or kind != "comfyui"]) == 1


def test_a_broken_picture_is_a_failure(editor, services):
    services.mode = "broken"
    editor.provider.attempts = 1
    assert failure(editor).failure is Failure.BAD_IMAGE


def test_an_answer_without_a_picture_says_what_came(editor, services):
    services.mode = "missing"
    editor.provider.attempts = 1
    assert "no picture at" in str(failure(editor))


def test_a_job_that_never_ends_ends_with_the_time_limit(editor, services):
    services.mode = "never"
    editor.timeout, editor.provider.attempts = 0.2, 1
    assert failure(editor).failure is Failure.TIMEOUT


def test_a_wrong_key_is_for_the_user_to_mend(editor, services, kind):
    services.errors = [401]
    told = "not accepted" if table()[kind].get("api_key_env") else "has no API key, but its endpoint requires one"
    with pytest.raises(EvenEditError, match=told) as raised:
        editor.edit([portrait()], "As a nurse", 7)
    assert KEY not in str(raised.value)


def test_a_missing_key_is_asked_for(kind, services, tmp_path, monkeypatch):
    name = table()[kind].get("api_key_env")
    if name:
        monkeypatch.delenv(name, raising=False)
    built = plugins.build("editors", kind, told(kind, services, tmp_path))
    assert built.missing() == ([f"it needs a key. Try: export {name}=…"] if name else [])


def test_every_service_is_dated_and_says_where_its_facts_come_from():
    for kind, service in table().items():
        assert kind in plugins.installed("editors")
        assert service["source"] and service["date"] >= "2026-11-17"


# -- options, several images ---------------------------------------------------------------------------------


def test_options_are_sent_beside_ours(services, monkeypatch, tmp_path):
    monkeypatch.setenv("REPLICATE_API_TOKEN", KEY)
    monkeypatch.setenv("BFL_API_KEY", KEY)
    settings = told("replicate", services, tmp_path) | {"options": {"safety_tolerance": 2, "output_format": ""}}
    editor = plugins.build("editors", "replicate", settings)
    editor.edit([portrait()], "As a nurse", 7)
    sent = services.posts()[-1]["input"]
    assert sent["safety_tolerance"] == 2 and "output_format" not in sent and sent["prompt"] == "As a nurse"
    two = plugins.build("editors", "bfl", told("bfl", services, tmp_path))
    two.edit([portrait(), portrait()], "Both", 7)
    assert {"input_image", "input_image_2"} <= services.posts()[-1].keys()
    two.edit([portrait()], "One", 7)
    assert "input_image_2" not in services.posts()[-1]
    with pytest.raises(EvenEditError, match=r"takes 1 image\(s\), but the request has 2"):
        editor.edit([portrait(), portrait()], "Both", 7)


# -- any other service ---------------------------------------------------------------------------------------


def direct(services: Services, **more: Any) -> Any:
    form = {"picture": "{image}", "second": "{image2}", "text": "{instruction}", "seed": "{seed}"}
    settings = {"url": f"{services.address}/direct", "form": form, "refusal": {"words": ["unsafe_request"]}, **more}
    built = plugins.build("editors", "http", settings)
    built.provider.sleep, built.pause = Naps(), Naps()
    return built


def test_a_service_of_ones_own_takes_a_form_and_answers_with_the_picture(services):
    editor = direct(services)
    assert editor.edit([portrait()], "As a nurse", 7).tobytes() == ImageOps.invert(portrait()).tobytes()
    sent = services.posts()[-1]
    assert (sent["text"], sent["seed"]) == ("As a nurse", "7") and "second" not in sent
    services.mode = "refusal"
    found = editor.edit([portrait()], "As a nurse", 7)
    assert isinstance(found, Refusal) and found.reason == "unsafe_request: not this"


def test_words_in_the_place_of_a_picture_are_no_image(services):
    services.mode = "words"
    described = direct(services, picture="images.0.url", text="description")
    assert described.edit([portrait()], "As a nurse", 7) == NoImage("Which person do you mean?")
    assert failure(direct(services, picture="images.0.url")).failure is Failure.BAD_IMAGE, "no place is named"
    settings = {"url": "http://localhost/direct", "form": {"picture": "{image}", "text": "{instruction}"}}
    assert "text" not in plugins.identity("editors", "http", settings), "ids from before it existed stay the same"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"body": {"p": "{instruction}"}}, "either 'body' .JSON. or 'form' .multipart., not both"),
        ({"form": {"picture": "{image}"}}, "has no placeholder .instruction."),
        ({"poll": {"adress": "x"}}, "setting 'poll' has adress; it takes: done, error"),
        ({"refusal": {"codes": []}}, "setting 'refusal' has codes"),
        ({"form": {}, "body": {"w": "{workflow}", "p": "{instruction}"}}, "set 'path' to its file"),
        ({"api_key_env": "sk-123"}, "must be the NAME of an environment variable"),
    ],
)
def test_wrong_settings_are_named(services, wrong, words):
    with pytest.raises(EvenEditError, match=words):
        direct(services, **wrong)


def test_a_server_that_speaks_openais_format_gets_what_it_takes_beyond_it(services, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    settings = {"model": "Qwen/Qwen-Image-Edit-2511", "base_url": f"{services.address}/openai/v1", "quality": ""}
    extra = {"seed": "{seed}", "num_inference_steps": 40}
    assert plugins.identity("editors", "openai-images", settings) == plugins.identity(
        "editors", "openai-images", {**settings, "extra": None}
    )
    editor = plugins.build("editors", "openai-images", {**settings, "extra": extra})
    made = editor.edit([portrait()], "As a nurse", 7)
    assert made.tobytes() == ImageOps.invert(portrait()).tobytes(), "its picture comes by URL"
    sent = services.posts()[-1]
    assert (sent["seed"], sent["num_inference_steps"], sent["prompt"]) == ("7", "40", "As a nurse")
    assert "quality" not in sent


def test_templates_and_paths():
    values = places([b"a"], "say {seed}", 3)
    assert filled({"p": "{instruction}!", "n": ["{seed}", "{image2}"], "keep": "{other}"}, values) == {
        "p": "say {seed}!",
        "n": [3],
        "keep": "{other}",
    }
    assert at({"a": [{"b": None}, {"b": 2}]}, "a.*.b") == 2 and at({"a": 1}, "a.b") is None
    assert at({"x": {"outputs": {"1": {}, "2": {"images": [{"f": "n"}]}}}}, "*.outputs.*.images.0.f") == "n"


def test_a_study_runs_by_a_service_and_keeps_its_refusals(services, tmp_path, monkeypatch):
    monkeypatch.setenv("BFL_API_KEY", KEY)
    study = open_study(
        tmp_path,
        editors=[{"id": "bfl", "settings": told("bfl", services, tmp_path)}],
        judges=[],
        prompts={"include": ["O-01"]},
    )
    summary = study.run()
    assert summary.complete and {e.outcome for e in study.store.edits().values()} == {Outcome.EDITED}
    services.mode = "refusal"
    other = open_study(
        tmp_path / "b",
        editors=[{"id": "bfl", "settings": told("bfl", services, tmp_path)}],
        judges=[],
        prompts={"include": ["O-02"]},
    )
    other.run()
    edits = other.store.edits().values()
    assert {e.outcome for e in edits} == {Outcome.REFUSED} and "Content Moderated" in next(iter(edits)).detail["reason"]

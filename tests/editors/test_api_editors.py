"""The official SDKs against a server that speaks the providers' wire formats: every outcome as specified."""

import io
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from evenedit.api.study import Study
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import NoImage, Refusal
from evenedit.core.records import Outcome
from evenedit.editors.api.gemini import POLICY, GeminiImages
from evenedit.editors.api.openai import OpenAIImages
from evenedit.providers.calls import Gate
from tests.support.calls import KEY, Naps, waits
from tests.support.provider import server as spoken
from tests.support.provider.server import Behaviour, FakeProvider
from tests.support.studies import open_study, small, toml

BAD_KEY = "API key not valid. Please pass a valid API key."
Editor = OpenAIImages | GeminiImages


@pytest.fixture(params=["openai", "gemini"])
def editor(request: pytest.FixtureRequest, wire: FakeProvider) -> Editor:
    """Each editor in turn, with a sleep that only notes how long."""
    return make(request.param, wire)


def make(provider: str, wire: FakeProvider, **settings: Any) -> Editor:
    kind: Callable[..., Editor] = {"openai": OpenAIImages, "gemini": GeminiImages}[provider]
    model = {"openai": "gpt-image-1", "gemini": "gemini-3.1-flash-image"}[provider]
    built = kind(base_url=getattr(wire, provider), **{"model": model, "timeout": 20, **settings})
    built.provider.sleep = Naps()
    return built


def portrait(seed: int = 0) -> Image.Image:
    return (
        Image.radial_gradient("L")
        .resize((48, 48))
        .rotate(90 * seed)
        .point(lambda v: (v + 37 * seed) % 256)
        .convert("RGB")
    )


def edit(editor: Editor, *images: Image.Image, instruction: str = "Make this person a firefighter", seed: int = 42):
    return editor.edit(images or [portrait()], instruction, seed)


def failure(editor: Editor) -> Failed:
    with pytest.raises(Failed) as caught:
        edit(editor)
    return caught.value


# -- success ---------------------------------------------------------------------------------------------------


def test_source_and_instruction_arrive_and_the_edited_picture_comes_back(editor: Editor, wire: FakeProvider):
    source = portrait()
    output = edit(editor, source, instruction="Dress them in a “suit” {seed}\nnow")
    assert isinstance(output, Image.Image)
    expected = ImageOps.invert(source)
    expected.putpixel((0, 0), spoken.corner("Dress them in a “suit” {seed}\nnow"))
    assert output.tobytes() == expected.tobytes()
    assert output.mode == "RGB"
    assert len(wire.seen) == 1


def test_two_pictures_arrive_in_order(editor: Editor, wire: FakeProvider):
    first, second = portrait(1), portrait(2)
    output = edit(editor, first, second)
    assert isinstance(output, Image.Image)
    assert output.size == (96, 48)
    arrived = [Image.open(io.BytesIO(content)).tobytes() for content in wire.seen[0].images]
    assert arrived == [first.tobytes(), second.tobytes()]


def test_nothing_but_pixels_and_words_is_sent(editor: Editor, wire: FakeProvider):
    source = portrait()
    source.info["evenedit-labels"] = '{"race": "Black"}'
    edit(editor, source)
    assert b"Black" not in wire.seen[0].body
    assert b"race" not in wire.seen[0].body


def test_openai_gets_the_settings(wire: FakeProvider):
    editor = make("openai", wire, model="gpt-image-1.5", size="1536x1024", quality="high", input_fidelity="high")
    edit(editor)
    assert wire.seen[0].fields == {
        "model": "gpt-image-1.5",
        "prompt": "Make this person a firefighter",
        "size": "1536x1024",
        "quality": "high",
        "input_fidelity": "high",
        "output_format": "png",
    }
    assert wire.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert not editor.seed_supported


def test_gemini_gets_the_settings_and_a_seed_of_32_bits(wire: FakeProvider):
    edit(make("gemini", wire, model="gemini-3-pro-image", temperature=0.5), seed=2**31 + 7)
    assert wire.seen[0].path.endswith("/models/gemini-3-pro-image:generateContent")
    config = wire.seen[0].fields["generationConfig"]
    assert config == {"responseModalities": ["TEXT", "IMAGE"], "temperature": 0.5, "seed": 7}
    assert wire.seen[0].headers["x-goog-api-key"] == KEY
    with pytest.raises(EvenEditError, match="temperature"):
        GeminiImages(model="gemini-3-pro-image", temperature=3)


def test_drafts_of_a_thinking_model_are_not_its_answer(wire: FakeProvider):
    draft, final = (spoken.edited([wire_png(portrait(n))], "x") for n in (1, 2))
    thought = {**spoken.picture(draft), "thought": True}
    wire.will(spoken.gemini_parts({"text": "Let me think", "thought": True}, thought, spoken.picture(final)))
    output = edit(make("gemini", wire))
    assert isinstance(output, Image.Image)
    assert output.tobytes() == Image.open(io.BytesIO(final)).tobytes()


def wire_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


# -- refusals --------------------------------------------------------------------------------------------------

MODERATED = "Your request was rejected by the safety system. safety_violations=[violence]."


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (
            spoken.error(400, MODERATED, code="moderation_blocked", kind="image_generation_user_error"),
            "moderation_blocked",
        ),
        (spoken.error(400, MODERATED, code="moderation_blocked", kind="user_error"), "moderation_blocked"),
        (spoken.error(400, MODERATED, code="content_policy_violation"), "content_policy_violation"),
        (spoken.error(400, MODERATED, kind="image_generation_user_error"), "image_generation_user_error"),
        (spoken.error(403, MODERATED, code="content_filter"), "content_filter"),
    ],
)
def test_openai_policy_refusals_keep_the_providers_words(wire: FakeProvider, behaviour: Behaviour, reason: str):
    wire.will(behaviour)
    assert edit(make("openai", wire)) == Refusal(f"{reason}: {MODERATED}")
    assert len(wire.seen) == 1  # a no is not asked again


@pytest.mark.parametrize("finish", sorted(POLICY))
def test_gemini_policy_endings_are_refusals(wire: FakeProvider, finish: str):
    wire.will(spoken.gemini_parts(finish=finish, message="Unable to show the generated image."))
    assert edit(make("gemini", wire)) == Refusal(f"{finish}: Unable to show the generated image.")
    wire.will(spoken.gemini_parts({"text": "I will not."}, finish=finish))
    assert edit(make("gemini", wire)) == Refusal(f"{finish}: I will not.")
    assert len(wire.seen) == 2


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"])
def test_a_blocked_prompt_is_a_refusal(wire: FakeProvider, reason: str):
    wire.will(spoken.gemini_blocked(reason))
    assert edit(make("gemini", wire)) == Refusal(f"prompt blocked, {reason}")


@pytest.mark.parametrize("finish", ["STOP", "NO_IMAGE"])
def test_a_complete_answer_in_words_is_no_image_and_keeps_the_words(wire: FakeProvider, finish: str):
    wire.will(spoken.gemini_parts({"text": "I'm unable to edit"}, {"text": "this picture."}, finish=finish))
    assert edit(make("gemini", wire)) == NoImage("I'm unable to edit this picture.")
    wire.will(spoken.gemini_parts({"text": "Let me think", "thought": True}, finish=finish))
    assert failure(make("gemini", wire)).failure is Failure.BAD_IMAGE, "thoughts are no answer"
    assert len(wire.seen) == 2


@pytest.mark.parametrize("finish", ["OTHER", "IMAGE_OTHER", "MAX_TOKENS", "LANGUAGE"])
def test_words_of_an_answer_that_was_cut_off_are_a_failure(wire: FakeProvider, finish: str):
    wire.will(spoken.gemini_parts({"text": "I cannot help with that."}, finish=finish))
    failed = failure(make("gemini", wire))
    assert failed.failure is Failure.BAD_IMAGE
    assert str(failed) == f"no image in the reply: {finish}: I cannot help with that."
    assert len(wire.seen) == 1


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"candidates": []},
        {"candidates": None, "promptFeedback": None},
        {"candidates": [{"finishReason": "BRAND_NEW", "content": None}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"inlineData": {"data": ""}}]}}]},
    ],
)
def test_an_empty_or_unknown_gemini_reply_is_a_failure(wire: FakeProvider, reply: dict[str, Any]):
    wire.will(lambda _: spoken.as_json(200, reply))
    assert failure(make("gemini", wire)).failure is Failure.BAD_IMAGE


@pytest.mark.parametrize("reply", [{"created": 1}, {"created": 1, "data": []}, {"created": 1, "data": [{"url": "x"}]}])
def test_an_openai_reply_without_an_image_is_a_failure(wire: FakeProvider, reply: dict[str, Any]):
    wire.will(lambda _: spoken.as_json(200, reply))
    assert failure(make("openai", wire)).failure is Failure.BAD_IMAGE


# -- failures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (spoken.server_error, Failure.SERVER),
        (spoken.error(503, "overloaded", kind="UNAVAILABLE"), Failure.SERVER),
        (spoken.error(504, "deadline", kind="DEADLINE_EXCEEDED"), Failure.TIMEOUT),
        (spoken.rate_limit(), Failure.RATE_LIMIT),
        (spoken.not_json, Failure.SERVER),
        (spoken.web_page, Failure.SERVER),
        (spoken.drop, Failure.SERVER),
    ],
)
def test_what_may_pass_is_tried_as_often_as_asked(
    wire: FakeProvider, editor: Editor, behaviour: Behaviour, expected: Failure
):
    wire.will(*[behaviour] * 5)
    assert failure(editor).failure is expected
    assert len(wire.seen) == 5  # the SDKs' own retries are off
    assert len(waits(editor)) == 4

    wire.will(behaviour, behaviour)  # and twice no, then yes, is an edit
    assert isinstance(edit(editor), Image.Image)
    assert len(wire.seen) == 8


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_provider_that_hangs_times_out(wire: FakeProvider, provider: str):
    editor = make(provider, wire, timeout=0.3, attempts=2)
    wire.will(spoken.hang, spoken.hang)
    assert failure(editor).failure is Failure.TIMEOUT
    assert len(wire.seen) == 2


def test_the_wait_that_was_asked_for_is_honoured(wire: FakeProvider, editor: Editor):
    wire.will(spoken.rate_limit(17), spoken.rate_limit(3.5))
    assert isinstance(edit(editor), Image.Image)
    first, second = waits(editor)
    assert 17 <= first <= 18
    assert 3.5 <= second <= 5.5


@pytest.mark.parametrize(
    "behaviour", [spoken.truncated, spoken.returns(b"\x89PNG"), spoken.returns(b"no image at all")]
)
def test_a_truncated_image_is_a_bad_image_and_not_asked_for_again(
    wire: FakeProvider, editor: Editor, behaviour: Behaviour
):
    wire.will(behaviour)
    assert failure(editor).failure is Failure.BAD_IMAGE
    assert len(wire.seen) == 1


def test_text_that_is_not_base64_is_a_bad_image(wire: FakeProvider):
    wire.will(lambda _: spoken.as_json(200, {"created": 1, "data": [{"b64_json": "§§§"}]}))
    assert failure(make("openai", wire)).failure is Failure.BAD_IMAGE


def test_a_picture_the_provider_cannot_read_fails_alone(wire: FakeProvider, editor: Editor):
    wire.will(spoken.error(400, "Unable to process input image. Please retry.", kind="INVALID_ARGUMENT"))
    assert failure(editor).failure is Failure.BAD_IMAGE


@pytest.mark.parametrize(
    ("behaviour", "named"),
    [
        (spoken.echo_key(401), "check the key"),
        (
            spoken.error(400, "API key not valid. Please pass a valid API key.", kind="INVALID_ARGUMENT"),
            "check the key",
        ),
        (spoken.error(403, "Your organization must be verified"), "must be verified"),
        (spoken.error(404, "The model does not exist", code="model_not_found"), "'model' and 'base_url'"),
        (spoken.error(400, "Invalid value: 'huge'", code="invalid_value", kind="INVALID_ARGUMENT"), "'huge'"),
    ],
)
def test_what_the_user_must_mend_stops_at_once(wire: FakeProvider, editor: Editor, behaviour: Behaviour, named: str):
    wire.will(behaviour)
    with pytest.raises(EvenEditError, match=named):
        edit(editor)
    assert len(wire.seen) == 1


def test_an_empty_account_is_no_rate_limit(wire: FakeProvider):
    wire.will(spoken.error(429, "You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(EvenEditError, match="no credit"):
        edit(make("openai", wire))


# -- the key ---------------------------------------------------------------------------------------------------


def test_the_key_is_never_told(wire: FakeProvider, editor: Editor):
    for status in (400, 401, 403, 404, 409, 429, 500, 504):
        wire.will(*[spoken.echo_key(status)] * (5 if status in (409, 429, 500, 504) else 1))
        with pytest.raises((Failed, EvenEditError)) as caught:
            edit(editor)
        shown = "".join(traceback.format_exception(caught.value))
        for text in (str(caught.value), repr(caught.value), shown):
            assert KEY not in text
    assert len(wire.seen) == 24
    assert KEY not in repr(editor) + repr(vars(editor)) + repr(editor.provider) + repr(vars(editor.provider))


def test_without_a_key_the_variable_is_named_and_nothing_is_sent(
    wire: FakeProvider, editor: Editor, monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(EvenEditError, match=r"OPENAI_API_KEY|GEMINI_API_KEY"):
        edit(editor)
    assert wire.seen == []


def test_another_variable_can_hold_the_key(wire: FakeProvider, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM_KEY", "team")
    edit(make("openai", wire, api_key_env="TEAM_KEY"))
    assert wire.seen[0].headers["authorization"] == "Bearer team"


@pytest.mark.parametrize(("provider", "module"), [("openai", "openai"), ("gemini", "google.genai")])
def test_without_the_sdk_the_extra_is_named(
    wire: FakeProvider, monkeypatch: pytest.MonkeyPatch, provider: str, module: str
):
    monkeypatch.setitem(sys.modules, module, None)  # makes the import fail
    if module == "google.genai":
        monkeypatch.delattr("google.genai", raising=False)
    with pytest.raises(EvenEditError, match="needs the 'api' extra"):
        edit(make(provider, wire))


def test_making_an_editor_imports_no_sdk():
    code = (
        "import sys; from evenedit.editors.api.openai import OpenAIImages as O\n"
        "from evenedit.editors.api.gemini import GeminiImages as G\n"
        "O(model='x'), G(model='x')\n"
        "print([m for m in ('openai', 'google.genai', 'httpx2', 'pydantic') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# -- many at once ----------------------------------------------------------------------------------------------


def test_a_storm_of_429_halves_the_calls_under_way_and_loses_none(wire: FakeProvider, editor: Editor):
    editor.provider.gate = Gate(8)
    together = threading.Barrier(8)

    def limited(seen: spoken.Seen) -> spoken.ProviderAnswer:
        together.wait(20)
        return spoken.rate_limit(1)(seen)

    wire.will(*[limited] * 8)
    with ThreadPoolExecutor(8) as pool:
        first = [pool.submit(edit, editor) for _ in range(8)]
        assert all(isinstance(f.result(), Image.Image) for f in first)
    assert wire.most_at_once == 8
    assert editor.provider.gate.limit == 8  # halved once, to 4; after the storm successes bring them back
    assert len(wire.seen) == 16
    assert len(waits(editor)) == 8


# -- in a study ------------------------------------------------------------------------------------------------


def test_a_study_records_edited_refused_and_failed(wire: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    known = plugins.installed
    added = EntryPoint("openai-images", "evenedit.editors.api.openai:OpenAIImages", "evenedit.editors")
    monkeypatch.setattr(
        plugins, "installed", lambda group: known(group) | ({added.name: added} if group == "editors" else {})
    )
    refusal = spoken.error(400, MODERATED, code="moderation_blocked")
    wire.will(spoken.SUCCESS, refusal, spoken.server_error, spoken.truncated)
    settings = {"model": "gpt-image-2", "base_url": wire.openai, "attempts": 1}
    editors = [{"id": "gpt-image-2", "kind": "openai-images", "settings": settings}]
    executor = {"retries": 0, "workers": 1}
    study = open_study(tmp_path, editors=editors, prompts={"include": ["O-01"]}, executor=executor)
    with study.store.locked():
        sources = study.runner().load_sources()
        requests = study.runner().request(sources)
        study.runner().edit(requests, sources, study.store.start_run({}))
    edits = list(study.store.edits().values())
    assert sorted(e.outcome for e in edits) == [Outcome.EDITED] * 5 + [Outcome.FAILED] * 2 + [Outcome.REFUSED]
    assert [e.detail for e in edits if e.outcome is Outcome.REFUSED] == [{"reason": f"moderation_blocked: {MODERATED}"}]
    assert requests[0].settings["model"] == "gpt-image-2"
    study.store.close()


def of_group(seen: spoken.Seen) -> spoken.ProviderAnswer:
    """Words for portraits that are dark in the upper left corner, a picture for the others."""
    if Image.open(io.BytesIO(seen.images[0])).convert("L").getpixel((0, 0)) < 128:
        return spoken.gemini_parts({"text": "I'm unable to edit this picture."}, finish="STOP")(seen)
    return spoken.SUCCESS(seen)


def worded_study(wire: FakeProvider, folder: Path, **changes: Any) -> Study:
    """A study of sixteen pictures in a folder, half of them dark, whose editor answers the dark ones in words."""
    lines = ["file,race,gender,age"]
    (folder / "faces").mkdir(parents=True)
    for number in range(16):
        race = "Black" if number % 2 else "White"
        Image.new("RGB", (64, 64), "black" if number % 2 else "white").save(folder / "faces" / f"{number}.png")
        lines.append(f"{number}.png,{race},{('Female', 'Male')[number // 8]},20s")
    (folder / "faces" / "labels.csv").write_text("\n".join(lines) + "\n")
    settings = {"model": "gemini-3-pro-image", "base_url": wire.gemini, "attempts": 1}
    sources = {"kind": "folder", "settings": {"path": str(folder / "faces")}}
    editors = [{"id": "gemini", "kind": "gemini-images", "settings": settings}]
    table = small(editors=editors, sources=sources, judges=[], executor={"max_failures": 2, **changes})
    (folder / "study.toml").write_text(toml(table))
    return Study.load(folder)


def test_answers_in_words_end_the_edit_and_are_a_rate_by_group(wire: FakeProvider, tmp_path: Path):
    wire.will(*[of_group] * 64)
    study = worded_study(wire, tmp_path)
    summary = study.run(max_calls=100)
    assert (summary.complete, summary.edited, summary.no_image, summary.failed) == (True, 16, 16, 0)
    assert summary.reasons == {"no_image: I'm unable to edit this picture.": 16}
    words = [e.detail for e in study.store.edits().values() if e.outcome is Outcome.NO_IMAGE]
    assert words == [{"words": "I'm unable to edit this picture."}] * 16
    assert len(wire.seen) == 32
    assert study.run().complete and len(wire.seen) == 32, "the second run pays nothing"
    results = study.results()
    rates = {race: results.find("rate.no_image", editor="gemini", group={"race": race}) for race in ("White", "Black")}
    assert {race: e and e.value for race, e in rates.items()} == {"White": 0.0, "Black": 1.0}
    gap = next(f for f in results.findings if f.measure == "gap.no_image" and f.factor == "race")
    assert gap.evidence == "outcome" and "were answered in words, without a picture" in gap.text
    assert not any(f.measure and f.measure.endswith("no_picture") for f in results.findings), "it would say the same"
    picture = results.find("rate.no_picture", editor="gemini")
    assert picture is not None and (picture.value, picture.n) == (0.5, 32)
    status = str(study.status())
    assert "(16 edited, 0 refused, 16 no_image, 0 failed)" in status and "no_image: 16 × I'm unable" in status
    study.store.close()


def test_a_study_can_allow_further_calls_after_words(wire: FakeProvider, tmp_path: Path):
    wire.will(*[of_group] * 64)
    study = worded_study(wire, tmp_path, no_image_retries=2)
    assert study.run(max_calls=40).no_image == 16
    assert len(wire.seen) == 40, "32 edits and 8 further calls that the budget allows"
    study.store.close()


def test_a_failure_of_an_earlier_version_is_tried_again_and_ends_in_words(wire: FakeProvider, tmp_path: Path):
    wire.will(*[of_group] * 64)
    study = worded_study(wire, tmp_path)
    study.run()
    old = {"failure": "bad_image", "error": "Failed: no image in the reply: STOP: I'm unable to edit this picture."}
    study.store.save_edits(
        [replace(e, outcome=Outcome.FAILED, detail=old) for e in study.store.edits().values() if e.image is None], 1
    )
    assert study.run().no_image == 16
    assert len(wire.seen) == 48
    study.store.close()

"""The same question to the same judge is paid for once; failures are asked again; what was reused says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenedit.api.study import Study
from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from evenedit.judges.cache import ReplyCache, content_key
from evenedit.judges.parsing import ModelReply, refused
from evenedit.judges.prompt import ModelPrompt
from tests.support.provider import server as provider
from tests.support.provider.server import FakeProvider
from tests.support.studies import judged_by, open_study

ASK = ModelPrompt("system", ("Image 1", b"png", "words"), {"type": "object"})
WHO = {"model": "m", "temperature": 0.1}


def test_the_key_names_all_that_shapes_an_answer():
    key = content_key("judge", WHO, ASK)
    assert key == content_key("judge", dict(reversed(WHO.items())), ModelPrompt(*(ASK.system, ASK.parts, ASK.schema)))
    others = [
        content_key("another judge", WHO, ASK),
        content_key("judge", WHO | {"temperature": 0.2}, ASK),
        content_key("judge", WHO | {"model": "n"}, ASK),
        content_key("judge", WHO, ModelPrompt("System", ASK.parts, ASK.schema)),
        content_key("judge", WHO, ModelPrompt("system", ("Image 1", b"PNG", "words"), ASK.schema)),
        content_key("judge", WHO, ModelPrompt("system", ("Image 1", b"png", "word"), ASK.schema)),
        content_key("judge", WHO, ModelPrompt("system", (b"png", "Image 1", "words"), ASK.schema)),
        content_key("judge", WHO, ModelPrompt("system", ASK.parts, {"type": "array"})),
    ]
    assert len({key, *others}) == 1 + len(others)


def test_words_and_refusals_come_back_as_they_were_and_a_damaged_file_is_a_miss(tmp_path: Path):
    cache = ReplyCache(tmp_path / "deep" / "folder")
    for words in ('{"scores": 1} \u2028 😀', "", refused("No.", "raw")):
        cache.keep("ab12", ModelReply(words, "simulated-m", (100, 23)))
        found = cache.find("ab12")
        assert found is not None
        assert found[0] == ModelReply(words, "simulated-m", (100, 23))
        assert found[1].startswith("20")
    assert cache.find("ab13") is None
    for damage in (b"", b"{", b"[]", b'{"ended": null}'):
        (tmp_path / "deep" / "folder" / "ab" / "ab12.json").write_bytes(damage)
        assert cache.find("ab12") is None


def rated(loaded: Study) -> dict[str, Any]:
    """Run, and tell how each reply was obtained."""
    loaded.run()
    ways = {c.request_id: c for r in loaded.design.judges() for c in loaded.store.calls(r.id, r.revision)}
    loaded.store.close()
    return ways


@pytest.mark.parametrize("kind", ["chat", "responses", "gemini"])
def test_a_changed_revision_or_another_study_reuses_what_is_there(wire: FakeProvider, tmp_path: Path, kind: str):
    study = judged_by(wire, kind, cache={"folder": str(tmp_path / "shared")})
    first = rated(open_study(tmp_path / "one", **study))
    assert wire.asked == len(first) == 8
    assert {c.via for c in first.values()} == {"call"}
    assert {(c.model, c.input, c.output) for c in first.values()} == {(f"simulated-{kind}", 100, 23)}

    study["judges"][0]["settings"]["timeout"] = 60  # another revision of the judge, the same question
    again = rated(open_study(tmp_path / "one", **study))
    other = rated(open_study(tmp_path / "two", **study))
    assert wire.asked == 8
    for reused in (again, other):
        assert {c.via for c in reused.values()} == {"cache"}
        assert {i: (c.content, c.obtained[:13]) for i, c in reused.items()} == {
            i: (c.content, c.obtained[:13]) for i, c in first.items()
        }
    study["judges"][0]["settings"]["temperature"] = 0.7  # another question
    assert {c.via for c in rated(open_study(tmp_path / "one", **study)).values()} == {"call"}
    assert wire.asked == 16


def test_values_are_the_same_from_the_cache_and_failures_are_not_in_it(wire: FakeProvider, tmp_path: Path):
    study = judged_by(wire, "chat")
    wire.will(
        provider.refuses("No."), provider.says("prose"), provider.server_error, provider.says("{", finish="length")
    )
    loaded = open_study(tmp_path, **study)
    loaded.run()
    (rater,) = loaded.design.judges()
    before = {(r.request_id, r.question_id, r.value) for r in loaded.store.ratings(rater.id, rater.revision)}
    states = loaded.store.answered(rater.id, rater.revision)
    assert sorted(states.values()) == ["failed", "refused", *["scored"] * 4, "unparseable", "unparseable"]
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 7

    study["judges"][0]["settings"]["timeout"] = 60
    later = open_study(tmp_path, **study)
    later.run()
    (other,) = later.design.judges()
    assert other.revision != rater.revision
    assert wire.asked == 9  # the failed one alone
    now = later.store.answered(other.id, other.revision)
    assert {i: s for i, s in now.items() if states[i] is not Status.FAILED} == {
        i: s for i, s in states.items() if s is not Status.FAILED
    }
    assert before <= {(r.request_id, r.question_id, r.value) for r in later.store.ratings(other.id, other.revision)}
    later.store.close()
    loaded.store.close()


def test_without_the_cache_everything_is_asked_again(wire: FakeProvider, tmp_path: Path):
    study = judged_by(wire, "chat")
    rated(open_study(tmp_path, **study))
    study["judges"][0]["settings"]["timeout"] = 60
    off = open_study(tmp_path, **study | {"cache": {"use": False}})
    assert off.runner().cache is None
    rated(off)
    assert wire.asked == 16
    judge = open_study(tmp_path, **study).design.judges()[0].judge  # a judge asked by itself never looks there
    assert not hasattr(judge, "cache")


def test_two_judges_of_one_model_are_two_askings(wire: FakeProvider, tmp_path: Path):
    study = judged_by(wire, "chat")
    study["judges"].append({**study["judges"][0], "id": "simulated-again"})
    loaded = open_study(tmp_path, **study)
    loaded.run()
    assert wire.asked == 16
    loaded.store.close()


def test_a_reply_that_came_but_was_not_stored_is_not_paid_for_again(wire: FakeProvider, tmp_path: Path):
    loaded = open_study(tmp_path, **judged_by(wire, "gemini"))
    save = loaded.store.save_answers
    loaded.store.save_answers = lambda answers, run_id: None  # type: ignore[method-assign]  # killed before the commit
    loaded.run()
    loaded.store.save_answers = save  # type: ignore[method-assign]
    loaded.run()
    assert wire.asked == 8
    (rater,) = loaded.design.judges()
    assert list(loaded.store.answered(rater.id, rater.revision).values()) == [Status.SCORED] * 8
    loaded.store.close()


def test_the_cache_holds_words_and_no_label(wire: FakeProvider, tmp_path: Path):
    rated(open_study(tmp_path, **judged_by(wire, "chat")))
    for path in (tmp_path / "cache").rglob("*.json"):
        kept = json.loads(path.read_text())
        assert set(kept) == {"words", "ended", "model", "input", "output", "obtained"}
    assert Reply(Status.SCORED) == Reply(
        Status.SCORED, origin={"via": "cache"}
    )  # where it came from is not what it says

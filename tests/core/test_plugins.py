"""What names a plug-in's work: its settings, but for those that came later and were left alone."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evenedit.core import plugins
from evenedit.core.records import Source
from evenedit.design.requests import diagnosis
from evenedit.instruments.as_raters import SkinInstrument
from tests.support.studies import open_study

SOURCES = {"a": Source("a", "0" * 64, {"race": "White", "gender": "Male", "age": "20s"}, "drawn")}


class First:
    """An editor as it was released first."""

    def __init__(self, *, color: str = "red", steps: int = 4) -> None: ...


class Later:
    """The same editor in a later release."""

    added_settings: ClassVar[frozenset[str]] = frozenset({"strength", "model", "only"})

    def __init__(
        self,
        *,
        color: str = "red",
        steps: int = 4,
        strength: float = 2.0,
        model: str | None = None,
        only: tuple[str, ...] = (),
        size: int = 64,
    ) -> None: ...


class LaterSkin(SkinInstrument):
    """An instrument with a setting that it did not have before."""

    added_settings = frozenset({"gamma"})

    def __init__(self, *, gamma: float = 1.0, **settings: Any) -> None:
        super().__init__(**settings)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of this file as installed plug-ins."""
    known = plugins.installed
    added = {
        "editors": {name: EntryPoint(name, f"{__name__}:{name}", "evenedit.editors") for name in ("First", "Later")},
        "instruments": {"LaterSkin": EntryPoint("LaterSkin", f"{__name__}:LaterSkin", "evenedit.instruments")},
    }
    monkeypatch.setattr(plugins, "installed", lambda group: known(group) | added.get(group, {}))


def test_without_later_settings_identity_is_the_defaults_and_what_was_given():
    assert plugins.identity("editors", "First", {}) == {"color": "red", "steps": 4}
    assert plugins.identity("editors", "First", {"steps": 8}) == {"color": "red", "steps": 8}


def test_a_later_setting_enters_only_where_it_differs_from_its_default():
    assert plugins.identity("editors", "Later", {}) == {"color": "red", "steps": 4, "size": 64}
    assert plugins.identity("editors", "Later", {"strength": 0.7})["strength"] == 0.7
    assert plugins.identity("editors", "Later", {"model": "m"})["model"] == "m"


def test_a_later_settings_default_that_is_written_out_does_not_enter_either():
    given = {"strength": 2, "model": None, "only": []}  # as TOML has them: whole numbers, lists
    assert plugins.identity("editors", "Later", given) == plugins.identity("editors", "Later", {})


def test_a_first_settings_default_enters_always():
    assert plugins.identity("editors", "Later", {"color": "red"})["color"] == "red"


PIPELINE = {"batch", "call", "image_argument", "load", "lora", "memory", "scheduler", "size"}
LATER = {
    "diffusers": {"batch"},
    "flux2-dev": PIPELINE,
    "folder": {"editor"},
    "http": {"text"},
    "openai-images": {"extra"},
    "python": {"batch"},
    "simulated-refusing": {"in_words"},
    "qwen-image-edit-2511": PIPELINE - {"size"},
    "step1x-edit-v1p2": {"memory"},
    **dict.fromkeys(("flux1-kontext-dev", "flux2-klein-4b", "instruct-pix2pix", "joyai-image-edit"), PIPELINE),
    **dict.fromkeys(("longcat-image-edit", "qwen-image-edit"), PIPELINE),
}
"""Settings of built-in plug-ins that came after the first release."""


def test_every_built_in_plug_ins_identity_is_still_its_settings_of_the_first_release():
    for group in ("editors", "judges", "extractors", "instruments"):
        for name in plugins.installed(group).keys() - {"Later", "LaterSkin"}:
            first = {k: v for k, v in plugins.defaults(group, name).items() if k not in LATER.get(name, ())}
            assert plugins.identity(group, name, {}) == first


def test_a_requests_settings_leave_later_defaults_out(tmp_path: Path):
    def settings(**given: Any) -> dict[str, Any]:
        editors = [{"id": "mine", "kind": "Later", "settings": given}]
        study = open_study(tmp_path, editors=editors, prompts={"include": ["O-01"]}).file
        (request,) = diagnosis(study, SOURCES)
        return dict(request.settings)

    assert settings() == {"kind": "Later", "color": "red", "steps": 4, "size": 64}
    assert settings(strength=2.0) == settings()
    assert settings(strength=0.7) == settings() | {"strength": 0.7}


def test_an_instruments_revision_leaves_later_defaults_out(tmp_path: Path):
    def revision(**given: Any) -> str:
        instruments = [{"id": "skin", "kind": "LaterSkin", "settings": given}]
        (rater,) = open_study(tmp_path, instruments=instruments).design.instruments(SOURCES).raters
        return rater.revision

    assert revision() == revision(gamma=1.0)
    assert revision() != revision(gamma=2.2)

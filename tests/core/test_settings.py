"""A class that inherits settings shows them all, with the defaults and in the order that hold for it."""

import inspect
from typing import Any

import pytest

from evenedit.core.settings import InheritsSettings
from evenedit.editors.local.pipelines import known
from evenedit.judges.gemini import GeminiJudge
from evenedit.judges.openai import OpenAIJudge


class Base(InheritsSettings):
    """Three settings, one of them needed."""

    def __init__(self, *, model: str, steps: int = 50, device: str = "auto") -> None:
        self.given = {"model": model, "steps": steps, "device": device}


class Tiny(Base):
    """Another default, and a setting of its own."""

    def __init__(self, *, steps: int = 4, strength: float = 0.5, **shared: Any) -> None:
        super().__init__(steps=steps, **shared)
        self.strength = strength


class OnCpu(Base):
    """Another default, to be mixed in."""

    def __init__(self, *, device: str = "cpu", **shared: Any) -> None:
        super().__init__(device=device, **shared)


class TinyOnCpu(Tiny, OnCpu):
    """Nothing of its own."""


class Closed(Tiny):
    """Takes one setting and passes none on."""

    def __init__(self, *, strength: float = 1.0) -> None:
        super().__init__(model="fixed", strength=strength)


def shown(kind: type) -> str:
    parameters = inspect.signature(kind).parameters.values()
    return ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Base, "model, steps=50, device='auto'"),
        (Tiny, "model, steps=4, strength=0.5, device='auto'"),
        (OnCpu, "model, steps=50, device='cpu'"),
        (TinyOnCpu, "model, steps=4, strength=0.5, device='cpu'"),
        (Closed, "strength=1.0"),
    ],
)
def test_the_signature_names_every_setting_with_the_default_that_holds(kind: type, settings: str):
    assert shown(kind) == settings


def test_the_defaults_that_are_shown_are_those_that_are_used():
    assert TinyOnCpu(model="m").given == {"model": "m", "steps": 4, "device": "cpu"}


def test_a_setting_that_nobody_takes_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'stepps'"):
        Tiny(model="m", stepps=3)


def test_a_base_is_not_changed_by_its_subclasses():
    assert "strength" not in inspect.signature(Base).parameters


def test_judges_and_local_editors_show_their_settings_in_full():
    rest = "image_size=1024, base_url=None, api_key_env='{}_API_KEY', timeout=120, attempts=5, batch=None"
    knobs = "thinking_level=None, max_tokens=None, media_resolution=None"
    assert shown(GeminiJudge) == f"model, temperature=0.1, {knobs}, {rest.format('GEMINI')}"
    knobs = "reasoning_effort=None, max_tokens=None, detail=None, service_tier=None, extra_body=None"
    form = "api='chat', server=None, structured=None"
    assert shown(OpenAIJudge) == f"model, {form}, {knobs}, temperature=None, {rest.format('OPENAI')}"
    assert list(inspect.signature(known("flux2-dev")).parameters)[:5] == [
        "model",
        "revision",
        "steps",
        "guidance_scale",
        "dtype",
    ]

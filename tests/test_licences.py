"""The page of licences names every model and service that the code can fetch or call."""

import tomllib

from tests.support.paths import ROOT

PAGE = (ROOT / "docs/licences.md").read_text("utf-8")
EDITORS = ROOT / "src/evenedit/editors"


def test_every_model_that_an_editor_can_fetch_is_named():
    presets = tomllib.loads((EDITORS / "local/pipelines.toml").read_text("utf-8"))["presets"]
    models = {preset["model"] for preset in presets.values()} | {"stepfun-ai/Step1X-Edit-v1p2"}
    assert len(models) >= 9 and not [model for model in sorted(models) if f"`{model}`" not in PAGE]


def test_every_service_that_an_editor_can_call_is_named():
    services = tomllib.loads((EDITORS / "api/services.toml").read_text("utf-8"))
    assert not [name for name in services if f"`{name}`" not in PAGE]


def test_every_model_in_the_package_is_named():
    shipped = {
        path.suffix for path in (ROOT / "src/evenedit").rglob("*") if path.suffix in (".tflite", ".onnx", ".npz")
    }
    assert shipped == {".tflite", ".npz"}, "another model needs a line on the page"
    assert "face landmark model" in PAGE and "points of skin" in PAGE

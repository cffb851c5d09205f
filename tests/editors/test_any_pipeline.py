"""One contract for any pipeline of diffusers that edits: a study file names it, and not a line of Python."""

from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed
from evenedit.editors.local import failing
from evenedit.editors.local.pipeline_call import PipelineCall, painted, table
from tests.support.studies import open_study

torch = pytest.importorskip("torch")

import diffusers  # noqa: E402
from diffusers.pipelines.longcat_image import pipeline_longcat_image_edit as longcat  # noqa: E402
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as qwen_one  # noqa: E402
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as qwen_plus  # noqa: E402

from tests.support import tiny_edit_pipelines  # noqa: E402

pytestmark = pytest.mark.torch
SHARED: dict[str, Any] = {"device": "cpu", "dtype": "float32"}
SETTINGS: dict[str, dict[str, Any]] = {
    "FluxKontextPipeline": {"call": {"max_area": 64 * 64, "_auto_resize": False}},
    "FluxImg2ImgPipeline": {"call": {"strength": 0.5}, "size": "first"},
    "OmniGenPipeline": {"size": [64, 64], "call": {"max_input_image_size": 64}},
    "QwenImageEditPipeline": {"size": 64, "call": {"negative_prompt": " "}},
    "QwenImageEditPlusPipeline": {"size": 64, "call": {"negative_prompt": " "}},
    "QwenImageImg2ImgPipeline": {"size": 64, "call": {"negative_prompt": " ", "strength": 0.5}},
    "StableDiffusionImg2ImgPipeline": {"call": {"strength": 0.5}},
    "StableDiffusionXLImg2ImgPipeline": {"call": {"strength": 0.5}},
    "StableDiffusionXLInstructPix2PixPipeline": {"size": "first"},
    "ZImageOmniPipeline": {"size": "first", "dtype": "bfloat16"},  # diffusers 0.42 takes no other
}
SEVERAL = (
    "Flux2KleinKVPipeline",
    "Flux2KleinPipeline",
    "Flux2Pipeline",
    "OmniGenPipeline",
    "QwenImageEditPlusPipeline",
    "ZImageOmniPipeline",
)
BATCHES = (
    "FluxImg2ImgPipeline",
    "FluxKontextPipeline",
    "QwenImageEditPipeline",
    "QwenImageImg2ImgPipeline",
    "StableDiffusionImg2ImgPipeline",
    "StableDiffusionInstructPix2PixPipeline",
    "StableDiffusionXLImg2ImgPipeline",
    "StableDiffusionXLInstructPix2PixPipeline",
)
READS_FIRST = ("Flux2KleinPipeline", "Flux2Pipeline", "FluxKontextPipeline")


@pytest.fixture(scope="module", autouse=True)
def small_and_calm() -> Iterator[None]:
    """One thread, and inputs of Qwen and LongCat at 64 px in place of 1024."""
    threads, sizes = torch.get_num_threads(), (qwen_plus.VAE_IMAGE_SIZE, qwen_plus.CONDITION_IMAGE_SIZE)
    torch.set_num_threads(1)
    qwen_plus.VAE_IMAGE_SIZE = qwen_plus.CONDITION_IMAGE_SIZE = 64 * 64
    real = {module: module.calculate_dimensions for module in (qwen_one, longcat)}
    for module, rule in real.items():
        module.calculate_dimensions = lambda area, ratio, rule=rule: rule(64 * 64, ratio)
    yield
    torch.set_num_threads(threads)
    qwen_plus.VAE_IMAGE_SIZE, qwen_plus.CONDITION_IMAGE_SIZE = sizes
    for module, rule in real.items():
        module.calculate_dimensions = rule


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every pipeline, saved when it is first asked for."""
    root = tmp_path_factory.mktemp("pipelines")

    class Saved(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            self[name] = tiny_edit_pipelines.save(name, root / name)
            return self[name]

    return Saved()


def portrait(shade: int = 90) -> Image.Image:
    across, down = np.meshgrid(np.linspace(-1, 1, 64), np.linspace(-1, 1, 64))
    pixels = np.stack([across * 60 + 120, down * 60 + 120, across * down * 60 + 120], axis=-1)
    pixels[across**2 + down**2 < 0.5] = (shade, shade // 2, 255 - shade)
    return Image.fromarray(pixels.astype(np.uint8))


def told(name: str, folders: dict[str, Path], **more: Any) -> dict[str, Any]:
    """What a study file says of the editor: its class is in the model's own index."""
    own = SETTINGS.get(name, {})
    call = {"num_inference_steps": 2, **own.get("call", {}), **more.pop("call", {})}
    return {"model": str(folders[name]), **SHARED, **own, "call": call, **more}


def build(name: str, folders: dict[str, Path], **more: Any) -> Any:
    return plugins.build("editors", "diffusers", told(name, folders, **more))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", tiny_edit_pipelines.NAMES)
def test_a_pipeline_edits_and_the_same_request_gives_the_same_pixels(name, folders):
    if name == "OmniGenPipeline":
        pytest.importorskip("torchvision")  # its processor needs it
    assert not plugins.problems("editors", "diffusers", told(name, folders))
    editor = build(name, folders)
    first = editor.edit([portrait()], "As a nurse", 1)
    assert (first.mode, first.size) == ("RGB", (64, 64))
    assert first.tobytes() == editor.edit([portrait()], "As a nurse", 1).tobytes()
    others = [([portrait()], "As a nurse", 2), ([portrait()], "As a pilot", 1), ([portrait(220)], "As a nurse", 1)]
    for change, other in zip(("seed", "instruction", "portrait"), others, strict=True):
        assert first.tobytes() != editor.edit(*other).tobytes(), f"another {change} makes another picture"
    assert editor.facts()["pipeline"] == name
    taken = plugins.images_taken("diffusers", told(name, folders))
    assert taken == editor.max_images == (2 if name in SEVERAL else 1)
    if taken > 1:
        both = editor.edit([portrait(30), portrait(220)], "Show both", 1).tobytes()
        assert both != editor.edit([portrait(220), portrait(30)], "Show both", 1).tobytes()
        assert both != editor.edit([portrait(30)], "Show both", 1).tobytes()
    else:
        with pytest.raises(EvenEditError, match="takes 1 image"):
            editor.edit([portrait(), portrait()], "Show both", 1)
    if editor.reads_first(1):
        assert name in READS_FIRST
        reading = build(name, folders)
        reading.encode(["As a nurse"])
        assert reading.edit([portrait()], "As a nurse", 1).tobytes() == first.tobytes()
        assert reading._pipeline.text_encoder is None and reading.facts()["encoded_first"] == 1
    else:
        assert name not in READS_FIRST


ASKED = (
    ([portrait(90)], "As a nurse", 1),
    ([portrait(220)], "As the pilot of a small plane over the mountains", 2),
    ([portrait(30)], "As a nurse", 3),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "first"), [*zip(BATCHES, [False] * len(BATCHES), strict=True), ("FluxKontextPipeline", True)]
)
def test_a_batch_is_one_call_and_every_picture_is_what_it_is_alone(name, first, folders, monkeypatch):
    editor, alone = build(name, folders, batch=3), build(name, folders)
    if first:
        editor.encode([instruction for _, instruction, _ in ASKED])
    calls, cls = [], getattr(diffusers, name)
    real = cls.__call__
    monkeypatch.setattr(cls, "__call__", wraps(real)(lambda self, **k: (calls.append(k), real(self, **k))[1]))
    made = editor.edit_many(*map(list, zip(*ASKED, strict=True)))
    assert len(calls) == 1 and len(calls[0]["generator"]) == 3
    for picture, asked in zip(made, ASKED, strict=True):
        apart = np.abs(np.asarray(picture, int) - np.asarray(alone.edit(*asked), int))
        assert apart.max() <= 1 and (apart > 0).mean() < 0.001, "kernels for several pictures may round differently"
    assert editor.facts()["settings"]["batch"] == 3


@pytest.mark.filterwarnings("ignore")
def test_a_study_makes_edits_in_batches_with_instructions_read_before(folders, tmp_path):
    settings = told("FluxKontextPipeline", folders, batch=3)
    people = {"race": ["White", "Black"], "age": ["20s"], "gender": ["Male", "Female"]}
    study = open_study(
        tmp_path,
        editors=[{"id": "kontext", "kind": "diffusers", "settings": settings}],
        judges=[],
        sources={"kind": "drawn", "settings": {"size": 64, "only": people}},
        executor={"retries": 0, "workers": 1},
    )
    assert study.run().complete
    edits = study.store.edits().values()
    assert sorted(e.detail.get("batch", 1) for e in edits) == [2, 2, 3, 3, 3, 3, 3, 3]
    assert {e.detail["facts"]["encoded_first"] for e in edits} == {2}
    assert len({e.image for e in edits}) == 8


def test_a_batch_is_refused_where_a_list_is_something_else_or_nobody_knows(folders):
    for name in tiny_edit_pipelines.NAMES:
        if name in BATCHES:
            continue
        why = "several references for one picture" if name in SEVERAL else "was not tested with lists"
        with pytest.raises(EvenEditError, match=f"setting 'batch' is 2, but .*{why}"):
            plugins.build("editors", "diffusers", {"model": "someone/else", "pipeline": name, "batch": 2, **SHARED})
    with pytest.raises(EvenEditError, match="'batch' is 0; it must be a whole number"):
        build("FluxKontextPipeline", folders, batch=0)
    with pytest.raises(EvenEditError, match="'max_images' is 2, but FluxKontextPipeline takes a list of images as a b"):
        build("FluxKontextPipeline", folders, max_images=2)


def test_the_size_of_a_batch_is_part_of_a_requests_id_and_left_out_it_changes_none():
    for kind, given in (("diffusers", {"model": "someone/else"}), ("flux1-kontext-dev", {})):
        plain = plugins.identity("editors", kind, given)
        assert "batch" not in plain and plain == plugins.identity("editors", kind, {**given, "batch": 1})
        assert plugins.identity("editors", kind, {**given, "batch": 4}) == {**plain, "batch": 4}


@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_are_named_with_the_pipelines_own_signature_before_anything_is_loaded(folders, monkeypatch):
    name = "StableDiffusionInstructPix2PixPipeline"
    monkeypatch.setattr(getattr(diffusers, name), "from_pretrained", lambda *_a, **_k: pytest.fail("it was loaded"))
    with pytest.raises(EvenEditError, match=r"no argument 'guidance'.*image_guidance_scale, negative_prompt"):
        build(name, folders, call={"guidance": 3}).edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match="did you mean 'guidance_scale'"):
        build(name, folders, call={"guidence_scale": 3}).edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match="'call' has 'prompt', which EvenEdit passes itself"):
        build(name, folders, call={"prompt": "x"}).edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match=r"setting 'load' has 'varient'.*did you mean 'variant'"):
        build(name, folders, load={"varient": "fp16"}).edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match=r"'image_argument' is 'picture', which .* does not take"):
        build(name, folders, image_argument="picture").edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match="did you mean 'FluxKontextPipeline'"):
        build(name, folders, pipeline="FluxContextPipeline").edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match="has no known argument for a picture"):
        build(name, folders, pipeline="StableDiffusionPipeline").edit([portrait()], "As a cook", 1)


def test_a_pipeline_that_wants_a_mask_is_refused_before_anything_is_loaded(folders):
    editor = plugins.build(
        "editors",
        "diffusers",
        {**SHARED, "model": str(folders["FluxKontextPipeline"]), "pipeline": "FluxInpaintPipeline"},
    )
    with pytest.raises(EvenEditError, match="FluxInpaintPipeline repaints the area of a mask: it needs 'mask_image'"):
        editor.edit([portrait()], "Add a hat", 1)


def test_a_prompt_that_is_a_table_holds_the_instruction():
    how = PipelineCall(diffusers.BriaFiboEditPipeline)
    assert how.prompt("Add a hat", 1, "") == {"edit_instruction": "Add a hat"}


def test_a_package_that_a_pipeline_uses_without_having_it_is_named(monkeypatch):
    monkeypatch.setattr(failing, "find_spec", lambda name: None)
    with pytest.raises(
        EvenEditError, match=r"needs the package 'ftfy', which is not installed\. Try: pip install ftfy"
    ):
        failing.failing_in_words(torch, lambda: ftfy.fix_text("…"))  # noqa: F821
    with pytest.raises(Failed, match="NameError: name 'nobody' is not defined"):
        failing.failing_in_words(torch, lambda: nobody)  # noqa: F821


def test_a_list_that_is_taken_as_a_batch_is_said():
    two = SimpleNamespace(images=np.ones((2, 8, 8, 3)))
    with pytest.raises(EvenEditError, match="made 2 pictures for one request: it takes a list of images as a batch"):
        painted(two, "SomePipeline")
    video = SimpleNamespace(frames=np.stack([np.zeros((1, 8, 8, 3)), np.ones((1, 8, 8, 3))], axis=1))
    assert painted(video, "SomePipeline")[0].getpixel((0, 0)) == (255, 255, 255), "the last frame"
    with pytest.raises(Failed, match="SomePipeline made 2 pictures for 3 requests"):
        painted(two, "SomePipeline", 3)


@pytest.mark.filterwarnings("ignore")
def test_several_images_that_a_pipeline_cannot_take_are_named_with_the_setting(folders, monkeypatch):
    monkeypatch.setitem(table()["classes"], "LongCatImageEditPipeline", {})
    editor = build("LongCatImageEditPipeline", folders, max_images=2)
    with pytest.raises(
        Failed, match=r"received 2 images, because 'max_images' is 2; if it takes a list of images as a"
    ):
        editor.edit([portrait(), portrait(30)], "Show both", 1)


@pytest.mark.filterwarnings("ignore")
def test_lora_and_scheduler_change_the_pixels_and_a_wrong_lora_is_named(folders, tmp_path):
    peft = pytest.importorskip("peft")
    name = "StableDiffusionInstructPix2PixPipeline"
    plain = build(name, folders)
    first = plain.edit([portrait()], "As a cook", 1).tobytes()
    pipeline = plain._pipeline
    pipeline.unet.add_adapter(peft.LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False))
    layers = peft.utils.get_peft_model_state_dict(pipeline.unet)
    getattr(diffusers, name).save_lora_weights(tmp_path, unet_lora_layers=layers)
    added = build(name, folders, lora=str(tmp_path))
    assert added.edit([portrait()], "As a cook", 1).tobytes() != first
    assert added.facts()["settings"]["lora"] == {
        "model": str(tmp_path),
        "weight_name": None,
        "revision": None,
        "scale": 1.0,
    }
    off = build(name, folders, lora={"model": str(tmp_path), "scale": 0.0})
    assert off.edit([portrait()], "As a cook", 1).tobytes() == first
    with pytest.raises(EvenEditError, match="is no folder or file here"):
        build(name, folders, lora=str(tmp_path / "absent")).edit([portrait()], "As a cook", 1)
    with pytest.raises(EvenEditError, match="setting 'lora'"):
        build(name, folders, lora={"path": "x"})
    other = build(name, folders, scheduler={"class": "EulerDiscreteScheduler", "timestep_spacing": "trailing"})
    assert other.edit([portrait()], "As a cook", 1).tobytes() != first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"scheduler": {"timestep_spacng": "trailing"}},
            "no argument 'timestep_spacng'; did you mean",
        ),
        ({"scheduler": {"class": "EulerScheduler"}}, "diffusers does not have"),
        ({"scheduler": {"class": "EulerDiscreteScheduler", "beta_start": "small"}}, "takes float there"),
        ({"call": {"num_inference_steps": "two"}}, "num_inference_steps = 'two'.* takes int there"),
        ({"lora": "./absent"}, "is no folder or file here"),
    ],
)
def test_settings_that_loading_would_ignore_or_refuse_are_named_before_it(folders, settings, message):
    editor = build("StableDiffusionInstructPix2PixPipeline", folders, **settings)
    with pytest.raises(EvenEditError, match=message):
        editor.check()


def test_the_end_of_an_instruction_that_a_text_encoder_does_not_get_is_stated(folders):
    editor = build("StableDiffusionInstructPix2PixPipeline", folders)
    (note,) = editor.notes(["As a cook", "very " * 100])
    assert "reads 77 tokens, and 1 of 2 instructions have more (up to " in note
    assert not editor.notes(["As a cook"])


def test_a_pipeline_that_makes_square_pictures_says_so(folders):
    square = "makes square pictures, whatever the shape of the source"
    assert square in build("FluxKontextPipeline", folders).notes([])[0]
    assert not build("FluxKontextPipeline", folders, size=64).notes([])


@pytest.mark.parametrize("ident", ["flux1-kontext-dev", "instruct-pix2pix"])
@pytest.mark.filterwarnings("ignore")
def test_a_preset_is_the_pipeline_with_its_settings(ident, folders):
    from evenedit.editors.local.pipelines import known

    cls = known(ident)
    call = SETTINGS.get(cls.preset["pipeline"], {}).get("call", {})
    editor = plugins.build(
        "editors", ident, {"model": str(folders[cls.preset["pipeline"]]), "steps": 2, **SHARED, "call": call}
    )
    made = editor.edit([portrait()], "As a cook", 3)
    used = {name: value for name, value in cls.preset["arguments"].items() if name != "steps"}
    generic = build(cls.preset["pipeline"], folders, call=used)
    assert made.tobytes() == generic.edit([portrait()], "As a cook", 3).tobytes()


def test_every_preset_is_installed_dated_and_says_where_it_comes_from():
    from evenedit.editors.local.pipelines import known

    for ident, preset in table()["presets"].items():
        assert plugins.installed("editors")[ident].load() is known(ident)
        assert preset["source"] and preset["date"] >= "2026-11-16"
        how = PipelineCall(getattr(diffusers, preset["pipeline"]))
        how.check(known(ident)().arguments())
        assert plugins.identity("editors", ident, {})["model"] == preset["model"]
    for name in table()["classes"]:
        assert hasattr(diffusers, name), f"diffusers {diffusers.__version__} has no {name}"

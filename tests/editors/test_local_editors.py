"""FLUX.2 and Qwen-Image-Edit through their real pipeline classes, tiny and with random weights."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.local import sizes
from evenedit.editors.local.pipelines import known
from tests.support.studies import open_study

torch = pytest.importorskip("torch")

import diffusers  # noqa: E402
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as qwen_module  # noqa: E402

from tests.support import tiny_pipelines  # noqa: E402

pytestmark = pytest.mark.torch
Flux2, QwenImageEdit = known("flux2-dev"), known("qwen-image-edit-2511")
QUICK: dict[str, Any] = {"steps": 2, "dtype": "float32", "device": "cpu"}
Make = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def small_and_calm() -> Iterator[None]:
    """One thread, since two fight over the tiny matrices; Qwen's inputs at 64 px in place of 1024."""
    threads, sizes = torch.get_num_threads(), (qwen_module.VAE_IMAGE_SIZE, qwen_module.CONDITION_IMAGE_SIZE)
    torch.set_num_threads(1)
    qwen_module.VAE_IMAGE_SIZE = qwen_module.CONDITION_IMAGE_SIZE = 64 * 64
    yield
    torch.set_num_threads(threads)
    qwen_module.VAE_IMAGE_SIZE, qwen_module.CONDITION_IMAGE_SIZE = sizes


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[type, Path]:
    root = tmp_path_factory.mktemp("models")
    return {Flux2: tiny_pipelines.save_flux2(root / "flux"), QwenImageEdit: tiny_pipelines.save_qwen(root / "qwen")}


@pytest.fixture(scope="module", params=[Flux2, QwenImageEdit], ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type:
    return request.param


@pytest.fixture(scope="module")
def make(kind: type, folders: dict[type, Path]) -> Make:
    """An editor of either kind, quick unless told otherwise."""

    def build(**settings: Any) -> Any:
        size = {"size": 64} if kind is QwenImageEdit else {}
        return kind(**{"model": str(folders[kind]), **QUICK, **size, **settings})

    return build


@pytest.fixture(scope="module")
def editor(make: Make) -> Any:
    return make()


def portrait(shade: int = 90, size: tuple[int, int] = (64, 64)) -> Image.Image:
    """Something with structure: a gradient under a disc of a shade."""
    across, down = np.meshgrid(np.linspace(-1, 1, size[0]), np.linspace(-1, 1, size[1]))
    pixels = np.stack([across * 60 + 120, down * 60 + 120, across * down * 60 + 120], axis=-1)
    pixels[across**2 + down**2 < 0.5] = (shade, shade // 2, 255 - shade)
    return Image.fromarray(pixels.astype(np.uint8))


def same(one: Image.Image, other: Image.Image) -> bool:
    return one.size == other.size and one.tobytes() == other.tobytes()


# -- pixels --------------------------------------------------------------------------------------------------


def test_the_same_request_gives_the_same_pixels_and_any_other_gives_others(editor):
    first = editor.edit([portrait()], "Show this person as a nurse", 42)
    assert (first.mode, first.size) == ("RGB", (64, 64))
    assert same(first, editor.edit([portrait()], "Show this person as a nurse", 42))
    assert not same(first, editor.edit([portrait()], "Show this person as a nurse", 43))
    assert not same(first, editor.edit([portrait()], "Show this person as a pilot", 42))
    assert not same(first, editor.edit([portrait(200)], "Show this person as a nurse", 42))


def test_the_same_weights_loaded_anew_give_the_same_pixels(editor, make):
    assert same(editor.edit([portrait()], "As a judge", 1), make().edit([portrait()], "As a judge", 1))


def test_two_images_are_both_used_and_their_order_matters(editor):
    dark, light = portrait(30), portrait(220)
    both = editor.edit([dark, light], "Show both at work", 7)
    assert both.size == (64, 64)
    assert not same(both, editor.edit([dark], "Show both at work", 7))
    assert not same(both, editor.edit([dark, dark], "Show both at work", 7))
    assert not same(both, editor.edit([light, dark], "Show both at work", 7))


def test_the_global_random_state_does_not_matter(editor):
    torch.manual_seed(1)
    first = editor.edit([portrait()], "As a cook", 5)
    torch.manual_seed(2)
    assert same(first, editor.edit([portrait()], "As a cook", 5))


def test_other_image_modes_are_taken_as_rgb(editor):
    opaque = portrait().convert("RGBA")
    assert same(editor.edit([opaque], "As a cook", 5), editor.edit([portrait()], "As a cook", 5))


def test_pixels_are_those_of_the_bare_pipeline(folders):
    bare = diffusers.Flux2Pipeline.from_pretrained(folders[Flux2], dtype=torch.float32)
    generator = torch.Generator(device="cpu").manual_seed(3)
    expected = bare(
        image=portrait(), prompt="As a cook", num_inference_steps=2, guidance_scale=4.0, generator=generator
    ).images[0]
    assert same(Flux2(model=str(folders[Flux2]), **QUICK).edit([portrait()], "As a cook", 3), expected)


def test_instructions_are_read_once_the_text_encoder_goes_and_pixels_stay(folders, monkeypatch):
    read = []
    real = diffusers.Flux2Pipeline._get_mistral_3_small_prompt_embeds
    monkeypatch.setattr(
        diffusers.Flux2Pipeline,
        "_get_mistral_3_small_prompt_embeds",
        staticmethod(lambda *a, **k: (read.append(k["prompt"]), real(*a, **k))[1]),
    )
    texts = ["As a cook", "As a pilot"]
    asked = [(portrait(shade), text, seed) for shade in (60, 120) for text in texts for seed in (1, 2)]
    whole = Flux2(model=str(folders[Flux2]), **QUICK)
    expected = [whole.edit([image], text, seed) for image, text, seed in asked]
    assert len(read) == len(asked) == 8
    read.clear()
    first = Flux2(model=str(folders[Flux2]), **QUICK)
    first.encode(texts)
    made = [first.edit([image], text, seed) for image, text, seed in asked]
    assert all(map(same, made, expected)) and [text for given in read for text in given] == texts
    assert first._pipeline.text_encoder is None
    facts = first.facts()
    weights = [facts["gigabytes"][phase] for phase in ("encode", "edit")]
    together = (
        sum(
            p.numel() * p.element_size()
            for m in whole._pipeline.components.values()
            if hasattr(m, "parameters")
            for p in m.parameters()
        )
        / 1e9
    )
    assert facts["encoded_first"] == 2 and max(weights) < sum(weights) and sum(weights) == pytest.approx(together)
    assert same(first.edit([portrait()], "As a judge", 1), whole.edit([portrait()], "As a judge", 1)), "one not told of"


def test_qwen_reads_the_portrait_with_the_instruction_so_nothing_is_read_first(folders):
    editor = QwenImageEdit(model=str(folders[QwenImageEdit]), size=64, **QUICK)
    editor.encode(["As a cook"])
    assert not editor._encoded and editor._pipeline is None


def test_the_default_precision_runs(make):
    settings = {name: value for name, value in QUICK.items() if name != "dtype"}
    editor = make(dtype="bfloat16", **settings)
    assert editor.edit([portrait()], "As a cook", 5).size == (64, 64)
    assert editor._pipeline.transformer.dtype is torch.bfloat16


def test_steps_and_guidance_reach_the_pipeline(make, editor, kind):
    first = editor.edit([portrait()], "As a cook", 5)
    assert not same(first, make(steps=3).edit([portrait()], "As a cook", 5))
    scale = "guidance_scale" if kind is Flux2 else "true_cfg_scale"
    assert not same(first, make(**{scale: 9}).edit([portrait()], "As a cook", 5))


# -- sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "painted"),
    [((64, 64), (64, 64)), ((100, 75), (96, 72)), ((2048, 1024), (1448, 720)), ((1024, 1024), (1024, 1024))],
)
def test_flux_paints_in_the_first_images_size(given, painted):
    # steps of 8 px for the tiny VAE; beyond 1024² pixels the input is shrunk to that area: 2048 / √2 = 1448.2
    assert sizes.as_first(portrait(size=given), 8) == painted


def test_flux_follows_the_first_of_two(folders):
    editor = Flux2(model=str(folders[Flux2]), **QUICK)
    assert editor.edit([portrait(size=(100, 75)), portrait()], "Show both", 1).size == (96, 72)


@pytest.mark.parametrize("given", [(64, 64), (1024, 1024), (640, 480), (300, 900), (1000, 333)])
def test_qwen_paints_in_the_shape_the_pipeline_would_choose(given):
    shape = sizes.of_area(portrait(size=given), 1024)
    assert shape == qwen_module.calculate_dimensions(1024 * 1024, given[0] / given[1])


def test_qwen_follows_the_last_of_two(folders):
    editor = QwenImageEdit(model=str(folders[QwenImageEdit]), size=96, **QUICK)
    assert editor.edit([portrait(), portrait(size=(128, 64))], "Show both", 1).size == (128, 64)


# -- guidance of Qwen ----------------------------------------------------------------------------------------


def test_qwens_true_guidance_is_on(folders, capfd):
    """Without a negative prompt the pipeline would return the same picture at any true_cfg_scale."""

    def edit(**settings: Any) -> Image.Image:
        editor = QwenImageEdit(model=str(folders[QwenImageEdit]), size=64, **QUICK, **settings)
        return editor.edit([portrait()], "As a cook", 5)

    guided = edit()
    assert "ignored" not in capfd.readouterr().err
    assert not same(guided, edit(true_cfg_scale=1.0))
    assert not same(guided, edit(negative_prompt="blurred and dark"))


def test_qwens_guidance_scale_is_recorded_as_unused(folders):
    editor = QwenImageEdit(model=str(folders[QwenImageEdit]), size=64, **QUICK)
    editor.edit([portrait()], "As a cook", 5)
    assert editor.facts()["settings"]["guidance_scale"] == 1.0
    assert editor.facts()["guidance_scale"] is None


# -- failures ------------------------------------------------------------------------------------------------


def painting(kind: type, source: Path, target: Path, weight: float, bias: float) -> Path:
    """The same model, whose decoder ends in these weights."""
    pipeline = getattr(diffusers, "Flux2Pipeline" if kind is Flux2 else "QwenImageEditPlusPipeline").from_pretrained(
        source, dtype=torch.float32
    )
    with torch.no_grad():
        pipeline.vae.decoder.conv_out.weight.fill_(weight)
        pipeline.vae.decoder.conv_out.bias.fill_(bias)
    pipeline.save_pretrained(target)
    return target


@pytest.mark.parametrize(
    ("weight", "bias", "failure"),
    [(float("nan"), 0.0, Failure.NAN_IMAGE), (0.0, -9.0, Failure.BLACK_IMAGE)],
)
def test_nan_and_black_are_told_apart(kind, make, folders, tmp_path, weight, bias, failure):
    editor = make(model=str(painting(kind, folders[kind], tmp_path, weight, bias)))
    with pytest.raises(Failed) as raised:
        editor.edit([portrait()], "As a cook", 5)
    assert raised.value.failure is failure


def exhaust_gpu(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def exhaust_cpu(*_: object) -> None:
    torch.empty(2**58)


def stumble(*_: object) -> None:
    raise IndexError("index 7 is out of bounds")


@pytest.mark.parametrize(
    ("accident", "failure", "words"),
    [
        (exhaust_gpu, Failure.OUT_OF_MEMORY, "Tried to allocate 2.00 GiB"),
        (exhaust_cpu, Failure.OUT_OF_MEMORY, "allocate memory"),
        (stumble, Failure.CRASH, "IndexError: index 7 is out of bounds"),
    ],
)
def test_an_accident_is_named_and_the_next_edit_runs(make, accident, failure, words):
    editor = make()
    expected = editor.edit([portrait()], "As a cook", 5)
    hook = editor._pipeline.transformer.register_forward_pre_hook(accident)
    with pytest.raises(Failed, match=words) as raised:
        editor.edit([portrait()], "As a cook", 5)
    assert raised.value.failure is failure
    assert raised.value.__context__ is None, "the error would keep its tensors alive"
    hook.remove()
    assert same(expected, editor.edit([portrait()], "As a cook", 5))


def test_running_out_of_memory_while_loading_is_that(make, monkeypatch):
    editor = make()
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Module, "to", exhaust_cpu)
        with pytest.raises(Failed) as raised:
            editor.edit([portrait()], "As a cook", 5)
    assert raised.value.failure is Failure.OUT_OF_MEMORY
    editor.edit([portrait()], "As a cook", 5)


# -- what the user can mend ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "setting 'steps' is 0; it must be a whole number, 1 or more"),
        ({"steps": 2.5}, "setting 'steps' is 2.5"),
        ({"guidance_scale": "high"}, "setting 'guidance_scale' is 'high'; it must be a number"),
        ({"guidance_scale": float("nan")}, "setting 'guidance_scale' is nan"),
        ({"dtype": "int8"}, "setting 'dtype' is 'int8'; allowed: bfloat16, float16, float32"),
        ({"device": "gpu"}, "setting 'device' is 'gpu'; it must be auto, cpu, mps, cuda or cuda:N"),
        ({"quantize": "8bit"}, "setting 'quantize' is '8bit'; allowed: absent, 4bit"),
        ({"offload": True}, "setting 'offload' is True; allowed: none, model, sequential"),
        ({"vae_slicing": 1}, "setting 'vae_slicing' is 1; allowed: false, true"),
        ({"model": ""}, "setting 'model' is ''"),
        ({"device": "auto", "device_map": "balanced", "offload": "model"}, "'device_map' places the weights itself"),
        ({"revision": "main"}, "'model' is a folder, which has no revisions"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_loaded(make, settings, words):
    with pytest.raises(EvenEditError, match=words):
        make(**settings)


def test_settings_of_qwen_alone():
    for wrong in ({"negative_prompt": ""}, {"negative_prompt": None}, {"size": 16}, {"true_cfg_scale": -1}):
        with pytest.raises(EvenEditError, match=f"setting '{next(iter(wrong))}'"):
            QwenImageEdit(**wrong)


def test_defaults_are_the_published_settings(kind):
    settings = kind().facts()["settings"]
    published = {
        Flux2: {"model": "black-forest-labs/FLUX.2-dev", "steps": 50, "guidance_scale": 4.0},
        QwenImageEdit: {"model": "Qwen/Qwen-Image-Edit-2511", "steps": 40, "guidance_scale": 1.0, "true_cfg_scale": 4},
    }[kind]
    assert published.items() <= settings.items()
    assert settings["dtype"] == "bfloat16"
    assert (kind.max_images, kind.needs_gpu) == (2, True)


@pytest.mark.parametrize("package", ["torch", "diffusers"])
def test_a_missing_package_is_asked_for(make, monkeypatch, package):
    editor = make()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EvenEditError, match=r"needs the 'local' extra. Try: pip install 'evenedit\[local\]'"):
        editor.edit([portrait()], "As a cook", 5)


def test_a_diffusers_too_old_for_the_pipeline_is_named(make, kind, monkeypatch):
    name = "Flux2Pipeline" if kind is Flux2 else "QwenImageEditPlusPipeline"
    monkeypatch.delattr(diffusers, name)
    monkeypatch.delitem(diffusers._class_to_module, name)
    with pytest.raises(EvenEditError, match=f"'local' extra.*{name}"):
        make().edit([portrait()], "As a cook", 5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"offload": "sequential"}, "setting 'offload' needs a GPU"),
        ({"quantize": "4bit"}, "setting 'quantize' needs a GPU"),
        ({"device": "cuda:1"}, "torch finds no such device"),
    ],
)
def test_what_needs_a_gpu_is_said_where_there_is_none(make, monkeypatch, settings, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EvenEditError, match=words):
        make(**settings).edit([portrait()], "As a cook", 5)


def test_bitsandbytes_is_asked_for_where_it_is_missing(make, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(EvenEditError, match="Try: pip install bitsandbytes"):
        make(quantize="4bit", device="cuda").edit([portrait()], "As a cook", 5)


def test_a_folder_without_a_model_is_named(make, tmp_path):
    with pytest.raises(EvenEditError, match=f"could not load the model '{tmp_path}'"):
        make(model=str(tmp_path)).edit([portrait()], "As a cook", 5)


# -- loading -------------------------------------------------------------------------------------------------


def test_nothing_heavy_is_imported_before_the_first_edit():
    code = (
        "import sys; from evenedit.editors.local.pipelines import known; "
        "[known(name)().facts() for name in ('flux2-dev', 'qwen-image-edit-2511')]; "
        "assert not {'torch', 'diffusers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_weights_load_once_and_threads_do_not_disturb_each_other(make, editor, kind, monkeypatch):
    pipeline = getattr(diffusers, "Flux2Pipeline" if kind is Flux2 else "QwenImageEditPlusPipeline")
    real, loads = pipeline.from_pretrained, []

    def counting(*arguments: Any, **options: Any) -> Any:
        loads.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(pipeline, "from_pretrained", counting)
    fresh = make()
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda seed: fresh.edit([portrait()], "As a cook", seed), range(4)))
    assert len(loads) == 1
    for seed, output in enumerate(outputs):
        assert same(output, editor.edit([portrait()], "As a cook", seed))


def test_facts_tell_what_ran(make, kind, folders, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--someone--tiny" / "snapshots" / commit
    shutil.copytree(folders[kind], snapshot)
    editor = make(model=str(snapshot), attention_slicing=True, vae_slicing=True)
    assert "commit" not in editor.facts()
    editor.edit([portrait()], "As a cook", 5)
    facts = editor.facts()
    assert facts["commit"] == commit
    assert facts["device"] == "cpu"
    assert facts["pipeline"] == ("Flux2Pipeline" if kind is Flux2 else "QwenImageEditPlusPipeline")
    assert facts["packages"]["diffusers"] == diffusers.__version__
    assert facts["settings"]["attention_slicing"] is True
    assert facts["attention_slicing"] is False, "diffusers now slices this model's attention: mend the docstring"
    assert editor._pipeline.vae.use_slicing


def test_a_hub_model_is_loaded_at_the_pinned_commit(make, kind, folders, tmp_path, monkeypatch):
    """From a hub cache on disk, offline: two commits, of which the branch names the other."""
    from huggingface_hub import constants

    old, new = "a" * 40, "b" * 40
    cache = tmp_path / "models--someone--tiny"
    for commit in (old, new):
        shutil.copytree(folders[kind], cache / "snapshots" / commit)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(new)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    pinned, floating = make(model="someone/tiny", revision=old), make(model="someone/tiny")
    for editor in (pinned, floating):
        editor.edit([portrait()], "As a cook", 5)
    assert pinned.facts()["settings"]["revision"] == old
    assert (pinned.facts()["commit"], floating.facts()["commit"]) == (old, new)


# -- in a study -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["flux2-dev", "qwen-image-edit-2511"])
def test_a_study_runs_the_real_pipeline_with_one_and_two_images_and_records_its_settings(name, folders, tmp_path):
    folder = folders[{"flux2-dev": Flux2, "qwen-image-edit-2511": QwenImageEdit}[name]]
    settings = {"model": str(folder), "steps": 2, "dtype": "float32"} | ({} if "flux" in name else {"size": 64})
    study = open_study(
        tmp_path,
        editors=[{"id": name, "seeds": [1, 2], "settings": settings}],
        judges=[],
        experiments={"diagnosis": {}, "stereotype": {"include": ["W-01", "W-26"], "swapped": False}},
        sources={
            "kind": "drawn",
            "settings": {"size": 64, "only": {"race": ["White"], "age": ["20s"], "gender": ["Male", "Female"]}},
        },
        prompts={"include": ["O-01"]},
        executor={"retries": 0, "workers": 1},
    )
    study.run()
    requests, edits = study.store.requests(), study.store.edits()
    assert len(edits) == 2 * 2 + 2 * 2
    assert {e.outcome for e in edits.values()} == {"edited"}, [e.detail for e in edits.values()]
    assert len({e.image for e in edits.values()}) == len(edits), "another seed, prompt or portrait, another picture"
    assert {len(r.source_ids) for r in requests.values()} == {1, 2}
    recorded = next(iter(requests.values())).settings
    assert recorded["steps"] == 2 and recorded["model"] == str(folder) and "guidance_scale" in recorded
    facts = next(iter(edits.values())).detail["facts"]
    assert "torch" in str(facts)
    assert facts.get("encoded_first") == (len({r.instruction for r in requests.values()}) if "flux" in name else None)
    again = open_study(tmp_path / "again", **study.file.sections.model_dump(mode="json", exclude_none=True))
    again.run()
    assert {i: e.image for i, e in again.store.edits().items()} == {i: e.image for i, e in edits.items()}

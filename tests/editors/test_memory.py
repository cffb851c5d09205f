"""What an editor needs is known before it is loaded: from the files' headers, or from a dated table."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.editors.local import diffusers_base, memory
from evenedit.editors.local.memory import GB, PRESETS, weights_of
from evenedit.editors.local.pipelines import known
from evenedit.operations.plan import make_plan
from evenedit.run.memory import Machine, memory_note
from tests.support.studies import open_study

pytestmark = pytest.mark.torch
Flux2 = known("flux2-dev")
LOCAL = (
    *("flux2-dev", "qwen-image-edit-2511", "step1x-edit-v1p2"),
    *("flux1-kontext-dev", "flux2-klein-4b", "qwen-image-edit"),
)


@pytest.fixture(autouse=True)
def no_weights_here(monkeypatch, tmp_path):
    """A hub cache of our own, which is empty."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(diffusers_base, "main_memory", lambda: 512.0)


def parts(folder):
    """A pipeline's folder with 3,000 parameters in two parts, the larger of two layers."""
    for name in ("transformer", "text_encoder"):
        (folder / name).mkdir(parents=True)
    blocks = {f"blocks.{n}.weight": torch.zeros(10, 100, dtype=torch.bfloat16) for n in range(2)}
    save_file(blocks, folder / "transformer" / "model-00001-of-00002.safetensors")
    save_file({"blocks.1.bias": torch.zeros(500)}, folder / "transformer" / "model-00002-of-00002.safetensors")
    save_file({"embed.weight": torch.zeros(500)}, folder / "text_encoder" / "model.safetensors")
    return folder


def test_parameters_are_counted_in_the_headers_of_a_folder_and_of_the_hubs_cache(tmp_path):
    found = weights_of(str(parts(tmp_path / "model")))
    assert found.parts == {"text_encoder": 500, "transformer": 2500} and found.layer == 1500
    hub = tmp_path / "hub" / "models--black-forest-labs--FLUX.2-dev"
    parts(hub / "snapshots" / "abc")
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("abc")
    flux = Flux2()
    assert sum(flux.weights.parts.values()) == 3000 and "snapshots/abc" in flux.weights.origin
    assert flux.needs(dtype="float32", offload="model").main == pytest.approx(3000 * 4 / GB)


def test_without_files_a_dated_table_is_used_and_what_it_lacks_is_not_known():
    assert "table of 20" in weights_of("black-forest-labs/FLUX.2-dev").origin
    assert weights_of("somebody/else") is None
    assert Flux2(model="somebody/else").needs() is None


def test_flux_at_its_defaults_needs_what_its_weights_need():
    need = Flux2().needs()
    assert 112 <= need.gpu <= 120
    assert Flux2(quantize="4bit").needs().gpu < 40


@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_fits_the_gpu_it_is_named_after(kind, preset):
    editor = plugins.build("editors", kind, {"memory": preset})
    size = float(preset.removesuffix("gb"))
    assert editor.needs().gpu <= size and editor.fits(size) == editor.offload


def test_by_default_the_fastest_way_that_fits_is_taken_and_pixels_stay_the_same():
    flux = Flux2()
    assert [flux.fits(gpu) for gpu in (141, 80, 24)] == ["none", "model", "sequential"]
    assert flux.fits(24, main=64) is None, "nor in main memory"
    assert Flux2(offload="model").fits(24) is None, "asked for by name"
    assert plugins.identity("editors", "flux2-dev", {}) == plugins.identity("editors", "flux2-dev", {"memory": "auto"})
    assert plugins.identity("editors", "flux2-dev", {"memory": "24gb"})["memory"] == "24gb"


def test_a_preset_and_what_it_chooses_contradict_each_other():
    with pytest.raises(EvenEditError, match="setting 'memory' chooses"):
        Flux2(memory="24gb", offload="model")
    with pytest.raises(EvenEditError, match="allowed: auto, 80gb"):
        Flux2(memory="16gb")


def test_what_cannot_fit_is_refused_before_loading_and_the_setting_that_fits_is_named(monkeypatch):
    gpu = SimpleNamespace(total_memory=48 * GB)
    machine = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _device: gpu))
    with pytest.raises(EvenEditError, match=r'needs 68 GB of GPU memory.*available are 48 and 512 GB.*memory = "48gb"'):
        Flux2(offload="model")._fit(machine, "cuda")
    assert Flux2()._fit(machine, "cuda:0") == "sequential"
    monkeypatch.setattr(diffusers_base, "main_memory", lambda: 64.0)
    with pytest.raises(EvenEditError, match=r'memory = "48gb" } \(quantised'):
        Flux2()._fit(machine, "cuda")


def test_a_plan_can_be_made_for_another_machine(tmp_path, monkeypatch):
    study = open_study(
        tmp_path, editors=[{"id": "flux2-dev"}, {"id": "q", "kind": LOCAL[1], "settings": {"memory": "24gb"}}]
    )
    here = make_plan(study).notes[0]
    assert "flux2-dev needs 52 GB of GPU memory, 48 GB of main memory to read the instructions, then 68 GB" in here
    assert "both at once need 116 GB (weights in GB: transformer 64.0" in here
    there = make_plan(study, machine=Machine(80)).notes
    assert there[0].endswith("it fits 80 GB") and there[1].endswith("it fits 80 GB"), "each phase by itself"
    smaller = make_plan(study, machine=Machine(60)).notes[0]
    assert smaller.endswith("on 60 GB it runs with offload = sequential to edit")
    assert "does not fit 12 GB. No preset fits" in make_plan(study, machine=Machine(12)).notes[1]


def test_a_plan_counts_main_memory_too_and_names_what_fits_both(tmp_path):
    study = open_study(tmp_path, editors=[{"id": i} for i in LOCAL[1:3]])
    qwen, step = make_plan(study, machine=Machine(24, 32)).notes[:2]
    assert 'does not fit 24 GB and 32 GB of main memory. It would fit with settings = { memory = "24gb" }' in qwen
    assert "does not fit 24 GB and 32 GB of main memory. No preset fits; use a larger machine" in step, (
        "42 GB wait there"
    )
    assert "offload = sequential" in make_plan(study, machine=Machine(24, 64)).notes[1]
    offloaded = plugins.build("editors", "qwen-image-edit-2511", {"memory": "48gb"})
    assert offloaded.fits(48) == "model" and offloaded.fits(48, main=32) is None, "asked for by name"


def test_activations_grow_with_the_pixels_that_are_asked_for():
    usual, large, wide = (known("flux2-dev")(size=size).needs() for size in ("pipeline", 2048, [2048, 1024]))
    assert large.gpu - usual.gpu == pytest.approx(3 * 4.0) and wide.gpu - usual.gpu == pytest.approx(4.0)
    step = [plugins.build("editors", "step1x-edit-v1p2", {"size_level": level}).needs().gpu for level in (512, 1024)]
    assert step[1] - step[0] == pytest.approx(0.75 * 4.0)


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_container_counts_as_main_memory(tmp_path, monkeypatch, version):
    groups = tmp_path / "groups"
    job = (groups / "memory" if version == 1 else groups) / "slurm" / "job_7"
    job.mkdir(parents=True)
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    (job / name).write_text("2000000000\n")
    (job.parent / name).write_text("max\n" if version == 2 else f"{2**63 - 4096}\n")
    (tmp_path / "own").write_text("3:cpu:/\n2:memory:/slurm/job_7\n" if version == 1 else "0::/slurm/job_7\n")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", groups)
    assert memory.main_memory() == 2.0
    (job / name).unlink()
    assert memory.main_memory() > 2.0


def test_what_is_not_read_first_needs_everything_at_once(monkeypatch):
    flux = Flux2()
    assert set(flux.phases(20)) == {"read the instructions", "edit"} and set(flux.phases(129)) == {"edit"}
    assert set(known("qwen-image-edit-2511")().phases(20)) == {"edit"}, "its text encoder sees the portrait"
    ok, words = memory_note("flux2-dev", {}, Machine(80), 129)
    assert ok and "needs 116 GB" in words and "offload = model" in words


def test_each_phase_is_held_against_the_gpu_before_it_is_loaded():
    gpu = SimpleNamespace(total_memory=70 * GB)
    machine = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _device: gpu))
    assert Flux2()._fit(machine, "cuda") == "model"
    assert Flux2()._fit(machine, "cuda", {"text_encoder": None, "tokenizer": None}) == "none"
    assert Flux2()._fit(machine, "cuda", {"transformer": None, "vae": None}) == "none"


def test_the_drivers_word_about_gpus_is_read(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 81559\necho 24564\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [round(size) for size in memory.visible_memory()] == [86, 26]


def test_layer_by_layer_the_largest_layer_counts_though_the_files_are_not_here():
    flux = weights_of("black-forest-labs/FLUX.2-dev")
    assert flux is not None and flux.layer == 0.98e9
    asked = memory.need(flux, dtype="bfloat16", quantize=None, offload="sequential")
    assert asked.gpu == pytest.approx(2 * 0.98 + 4.0)


def test_the_layers_of_the_table_are_those_that_diffusers_builds():
    diffusers = pytest.importorskip("diffusers")
    with torch.device("meta"):
        made = {
            "black-forest-labs/FLUX.2-dev": diffusers.Flux2Transformer2DModel(),
            "black-forest-labs/FLUX.1-Kontext-dev": diffusers.FluxTransformer2DModel(guidance_embeds=True),
            "Qwen/Qwen-Image-Edit": diffusers.QwenImageTransformer2DModel(),
        }
    for model, transformer in made.items():
        found = weights_of(model)
        tensors = {name: tensor.numel() for name, tensor in transformer.named_parameters()}
        assert found is not None
        assert sum(tensors.values()) == pytest.approx(found.parts["transformer"], rel=0.01), model
        largest = max(memory._layers(tensors).values())
        vocabulary = 152064 * 3584 if model.startswith("Qwen") else 0
        assert max(largest, vocabulary) == pytest.approx(found.layer, rel=0.01), model


def test_a_batch_needs_its_activations_as_often_as_it_has_edits():
    kontext = known("flux1-kontext-dev")
    one, four = kontext().needs(), kontext(batch=4).needs()
    assert one is not None and four is not None
    assert four.gpu - one.gpu == pytest.approx(3 * 4.0) and four.main == one.main

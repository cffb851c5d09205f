"""The Step1X worker in a process of its own, with a stand-in that has the real pipeline's signature."""

import ast
import base64
import contextlib
import gc
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.line_process import LineProcess
from evenedit.editors.local import step1x, step1x_worker
from evenedit.editors.local.step1x import NOTE, Step1X, setup, setup_steps

pytest.importorskip("torch")  # the worker makes its generator with it

pytestmark = pytest.mark.torch
STAND_IN = '''
"""Step1XEditPipelineV1P2 as far as it is called; what it does is in the prompt's first word."""
import json, os, subprocess, sys, time
from types import SimpleNamespace
import numpy as np
from PIL import Image

print("a library greets on standard output")
if "TEST_GPU" in os.environ:
    import torch
    torch.cuda.get_device_properties = lambda device: SimpleNamespace(total_memory=float(os.environ["TEST_GPU"]) * 1e9)

class StandIn:
    @classmethod
    def from_pretrained(cls, name, *, torch_dtype=None, revision=None, local_files_only=False):
        if name == "someone/absent":
            raise OSError("someone/absent is not a model")
        pipeline = cls()
        pipeline.options = {"name": name, "dtype": str(torch_dtype), "revision": revision, "local": local_files_only}
        path = f"/cache/snapshots/{'c' * 40}/transformer"
        pipeline.transformer = SimpleNamespace(config=SimpleNamespace(_name_or_path=path))
        return pipeline

    def to(self, device):
        self.options["device"] = device

    def __call__(self, image=None, prompt=None, negative_prompt=None, true_cfg_scale=6.0, height=None, width=None,
                 size_level=1024, num_inference_steps=28, generator=None, output_type="pil", return_dict=True,
                 enable_thinking_mode=False, enable_reflection_mode=True, max_try_cnt=3):
        import torch
        word = prompt.split()[0]
        print("a progress bar", flush=True)
        os.write(1, b'{"image": "noise from C"}\\n')
        if word == "exit":
            print("a last word", file=sys.stderr, flush=True)
            os._exit(3)
        if word == "hang":
            subprocess.Popen(["sleep", "600"])  # a child that holds the pipes open
            time.sleep(600)
        if word == "wait":
            time.sleep(600)
        if word == "raise":
            raise ValueError("Expected 28 sigmas")
        if word == "memory":
            raise torch.OutOfMemoryError("CUDA out of memory")
        noise = torch.rand(image.height, image.width, 3, generator=generator).numpy()
        values = (np.asarray(image) / 255 + noise + len(prompt) / 100) / 3
        if word == "nan":
            values[:] = np.nan
        if word == "black":
            values[:] = 0
        picture = Image.fromarray((values * 255).round().astype("uint8"))
        told = {"options": self.options, "negative": negative_prompt, "true_cfg_scale": true_cfg_scale,
                "size_level": size_level, "steps": num_inference_steps, "thinking": enable_thinking_mode,
                "reflection": enable_reflection_mode, "modules": sorted(sys.modules), "mode": image.mode}
        output = SimpleNamespace(images=[picture], final_images=[picture])
        if enable_thinking_mode or word == "tell":
            output.reformat_prompt = json.dumps(told)
        return output
'''


@pytest.fixture(scope="module", autouse=True)
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers find the stand-in in place of the real class."""
    folder = tmp_path_factory.mktemp("stand-in")
    (folder / "stand_in.py").write_text(STAND_IN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv(step1x_worker.PIPELINE, "stand_in:StandIn")
        patch.setenv(step1x.PYTHON, sys.executable)
        yield


@pytest.fixture(scope="module")
def editor() -> Iterator[Step1X]:
    editor = Step1X(model="someone/tiny", revision="v1p2", timeout=60)
    yield editor
    editor.close()


def portrait(shade: int = 90, mode: str = "RGB") -> Image.Image:
    return Image.new("RGB", (32, 24), (shade, 60, 120)).convert(mode)


def worker_of(editor: Step1X) -> int:
    return editor._workers[0].process.pid


def alive(worker: int) -> list[str]:
    """The worker and whatever it started, as far as they still run: a worker has a session of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = stat.read_text().rsplit(")", 1)
            state, _, _, session = rest.split()[:4]
            if int(session) == worker and state != "Z":
                found.append(name)
    return found


def gone(worker: int, seconds: float = 60) -> bool:
    """Whether a worker ends in time."""
    until = time.monotonic() + seconds
    while alive(worker) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(worker)


def failure_of(call: Callable[[], object]) -> Failed:
    with pytest.raises(Failed) as raised:
        call()
    return raised.value


# -- edits ---------------------------------------------------------------------------------------------------


def test_the_same_request_gives_the_same_pixels_and_any_other_gives_others(editor):
    first = editor.edit([portrait()], "as a nurse", 42)
    assert (first.mode, first.size) == ("RGB", (32, 24))
    assert first.tobytes() == editor.edit([portrait()], "as a nurse", 42).tobytes()
    for other in (
        ([portrait()], "as a nurse", 43),
        ([portrait()], "as a pilot or so", 42),
        ([portrait(9)], "as a nurse", 42),
    ):
        assert first.tobytes() != editor.edit(*other).tobytes()


def test_the_worker_stays_for_the_next_edit(editor):
    editor.edit([portrait()], "as a nurse", 1)
    worker = worker_of(editor)
    editor.edit([portrait()], "as a nurse", 2)
    assert worker_of(editor) == worker


def test_settings_reach_the_pipeline_and_evenedit_stays_out(editor):
    told = json.loads(editor.edit([portrait(mode="P")], "tell me", 1).info[NOTE])
    assert told["options"] == {
        "name": "someone/tiny", "dtype": "torch.bfloat16", "revision": "v1p2", "local": False, "device": "cpu"
    }  # fmt: skip
    assert (told["steps"], told["true_cfg_scale"], told["size_level"], told["negative"]) == (28, 6.0, 1024, "")
    assert (told["thinking"], told["reflection"]) == (False, False)
    assert told["mode"] == "RGB"
    assert not [name for name in told["modules"] if name.startswith(("evenedit", "flux2", "simulated"))]


def test_without_thinking_nothing_is_reworded(editor):
    assert NOTE not in editor.edit([portrait()], "as a nurse", 1).info


def test_facts_tell_what_ran(editor):
    editor.edit([portrait()], "as a nurse", 1)
    facts = editor.facts()
    assert facts["settings"]["model"] == "someone/tiny"
    assert facts["settings"]["enable_reflection_mode"] is False
    assert (facts["pipeline"], facts["commit"], facts["device"]) == ("StandIn", "c" * 40, "cpu")
    assert facts["packages"]["torch"]


@pytest.mark.parametrize(
    ("prompt", "failure", "words"),
    [
        ("raise it", Failure.CRASH, "ValueError: Expected 28 sigmas"),
        ("memory is short", Failure.OUT_OF_MEMORY, "CUDA out of memory"),
        ("nan all over", Failure.NAN_IMAGE, "not numbers"),
        ("black all over", Failure.BLACK_IMAGE, "entirely black"),
    ],
)
def test_a_failure_keeps_its_name_and_the_worker_its_weights(editor, prompt, failure, words):
    editor.edit([portrait()], "as a nurse", 1)
    worker = worker_of(editor)
    failed = failure_of(lambda: editor.edit([portrait()], prompt, 1))
    assert failed.failure is failure
    assert words in str(failed)
    editor.edit([portrait()], "as a nurse", 1)
    assert worker_of(editor) == worker


# -- accidents -----------------------------------------------------------------------------------------------


def test_a_worker_that_exits_is_a_crash_and_the_next_edit_starts_another(editor):
    expected = editor.edit([portrait()], "as a nurse", 1).tobytes()
    worker = worker_of(editor)
    failed = failure_of(lambda: editor.edit([portrait()], "exit now", 1))
    assert failed.failure is Failure.CRASH
    assert "exit code 3" in str(failed)
    assert "a last word" in str(failed)
    assert editor.edit([portrait()], "as a nurse", 1).tobytes() == expected
    assert worker_of(editor) != worker


def test_a_worker_that_is_killed_between_edits_is_a_crash(editor):
    editor.edit([portrait()], "as a nurse", 1)
    os.kill(worker_of(editor), signal.SIGKILL)
    failed = failure_of(lambda: editor.edit([portrait()], "as a nurse", 1))
    assert (failed.failure, "exit code -9" in str(failed)) == (Failure.CRASH, True)


def test_a_worker_that_hangs_is_killed_with_its_children():
    editor = Step1X()
    editor.edit([portrait()], "as a nurse", 1)
    worker = worker_of(editor)
    editor.timeout = 0.5
    failed = failure_of(lambda: editor.edit([portrait()], "hang on", 1))
    assert (failed.failure, str(failed)) == (Failure.TIMEOUT, "no answer from the Step1X worker within 0.5 s")
    assert gone(worker)
    assert editor._workers == []


def test_loading_has_a_clock_of_its_own(monkeypatch):
    clocks, ask = [], LineProcess.ask

    def watched(self, request, timeout, *more):
        clocks.append(timeout)
        return ask(self, request, timeout, *more)

    with monkeypatch.context() as patch:
        patch.setattr(LineProcess, "ask", watched)
        editor = Step1X(timeout=300.0, load_timeout=400.0)
        editor.edit([portrait()], "as a nurse", 1)
        editor.close()
    assert clocks[:2] == [400.0, 300.0]
    failed = failure_of(lambda: Step1X(load_timeout=0.01).edit([portrait()], "as a nurse", 1))
    assert failed.failure is Failure.TIMEOUT


def test_an_interpreter_that_babbles_is_a_crash(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'Segmentation fault or so'\n")
    script.chmod(0o755)
    failed = failure_of(lambda: Step1X(python=str(script)).edit([portrait()], "as a nurse", 1))
    assert (failed.failure, "Segmentation fault or so" in str(failed)) == (Failure.CRASH, True)


# -- the end -------------------------------------------------------------------------------------------------


def test_the_worker_ends_with_close_and_an_edit_starts_another():
    editor = Step1X()
    editor.edit([portrait()], "as a nurse", 1)
    first = worker_of(editor)
    editor.close()
    assert gone(first)
    editor.edit([portrait()], "as a nurse", 1)
    second = worker_of(editor)
    del editor
    gc.collect()
    assert gone(second), "an editor nobody holds any more must not leave its worker behind"


def test_the_worker_dies_with_a_killed_parent_even_amid_an_edit():
    code = """
from PIL import Image
from evenedit.editors.local.step1x import Step1X
editor = Step1X()
editor.edit([Image.new("RGB", (8, 8), "red")], "as a nurse", 1)
print(editor._workers[0].process.pid, flush=True)
editor.edit([Image.new("RGB", (8, 8), "red")], "wait long", 1)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.kill()
        assert gone(worker)


# -- what the user can mend ----------------------------------------------------------------------------------


def test_an_absent_interpreter_asks_for_the_setup():
    with pytest.raises(EvenEditError, match=r"/nowhere/python cannot be started.*Try: evenedit plugins step1x --setup"):
        Step1X(python="/nowhere/python").edit([portrait()], "as a nurse", 1)


def test_an_environment_without_the_fork_asks_for_the_setup(monkeypatch):
    """This environment's diffusers is the official one."""
    monkeypatch.delenv(step1x_worker.PIPELINE)
    with pytest.raises(EvenEditError, match=r"no Step1XEditPipelineV1P2[\s\S]*evenedit plugins step1x --setup"):
        Step1X().edit([portrait()], "as a nurse", 1)


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(EvenEditError, match="someone/absent is not a model"):
        Step1X(model="someone/absent").edit([portrait()], "as a nurse", 1)


def test_offloading_without_a_gpu_is_for_the_user_to_mend():
    with pytest.raises(step1x_worker.WorkerError, match="there is no GPU here") as raised:
        step1x_worker.place(None, "sequential", "cpu")
    assert raised.value.kind == "setup"


def test_what_cannot_fit_the_gpu_is_refused_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr(step1x, "main_memory", lambda: 512.0)
    monkeypatch.setenv("TEST_GPU", "3")
    with pytest.raises(EvenEditError, match=r"needs 46 GB of GPU memory.*available are 3 and 512 GB. No preset fits"):
        Step1X(device="cuda").edit([portrait()], "as a nurse", 1)
    monkeypatch.setenv("TEST_GPU", "40")
    with pytest.raises(
        EvenEditError, match=r'available are 40 and 512 GB. It would fit with settings = { memory = "24gb" }'
    ):
        Step1X(device="cuda", memory="80gb").edit([portrait()], "as a nurse", 1)


def test_the_fastest_way_that_fits_is_taken(monkeypatch):
    monkeypatch.setattr(step1x, "main_memory", lambda: 512.0)
    assert [Step1X().fits(gpu) for gpu in (80, 40, 24, 3)] == ["none", "model", "sequential", None]
    assert Step1X().fits(40, main=30) is None and Step1X(offload="model").fits(24) is None
    gpu = SimpleNamespace(total_memory=40e9)
    torch = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _device: gpu))
    ways = Step1X()._ways(512.0)
    assert step1x_worker.fitting(torch, "cuda", {"ways": ways, "offload": "none"}) == "model"
    assert step1x_worker.fitting(torch, "cpu", {"ways": {}, "offload": "none"}) == "none"


def test_two_images_are_refused():
    assert Step1X.max_images == 1
    with pytest.raises(EvenEditError, match="takes one image, not 2"):
        Step1X().edit([portrait(), portrait()], "both", 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 27}, "setting 'steps' is 27; allowed: 28"),
        ({"steps": 28.0}, "setting 'steps' is 28.0"),
        ({"enable_thinking_mode": "no"}, "setting 'enable_thinking_mode' is 'no'; allowed: false, true"),
        ({"true_cfg_scale": "6"}, "setting 'true_cfg_scale' is '6'; it must be a number above 0"),
        ({"timeout": 0}, "setting 'timeout' is 0"),
        ({"size_level": 1024.5}, "setting 'size_level' is 1024.5; it must be a whole number"),
        ({"offload": "disk"}, "setting 'offload' is 'disk'; allowed: none, model, sequential"),
        ({"device": "gpu"}, "setting 'device' is 'gpu'; it must be auto"),
        ({"model": 7}, "setting 'model' is 7"),
        ({"model": "/", "revision": "main"}, "a folder, which has no revisions"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(EvenEditError, match=words):
        Step1X(**settings)


def test_defaults_are_the_published_settings(monkeypatch):
    monkeypatch.delenv(step1x.PYTHON)
    settings = Step1X().facts()["settings"]
    published = {"model": "stepfun-ai/Step1X-Edit-v1p2", "steps": 28, "true_cfg_scale": 6.0, "size_level": 1024}
    assert published.items() <= settings.items()
    assert (settings["enable_thinking_mode"], settings["enable_reflection_mode"]) == (False, False)
    assert settings["python"] == str(step1x.default_folder() / "bin" / "python")


# -- the set-up ----------------------------------------------------------------------------------------------


def test_the_setup_is_printed_as_commands_for_a_shell(tmp_path, capsys):
    folder = tmp_path / "with a space"
    setup(folder)
    printed = capsys.readouterr().out
    assert "\n".join(setup_steps(folder)) in printed
    assert "git+https://github.com/Peyton-Chen/diffusers@step1xedit_v1p2" in printed
    assert {"transformers==4.55.0", "megfile", "qwen_vl_utils"} <= set(shlex.split(printed))
    assert f"export {step1x.PYTHON}='{folder}/bin/python'" in printed
    assert not folder.exists()


def test_the_setup_is_performed_until_a_step_fails(tmp_path, monkeypatch, capfd):
    """No network is asked for: pip is told to use no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(EvenEditError, match=r"stopped: .*torchvision.*exit status 1"):
        setup(tmp_path / "env", run=True)
    assert (tmp_path / "env" / "bin" / "python").exists()


# -- the protocol --------------------------------------------------------------------------------------------


def test_the_worker_file_knows_nothing_of_evenedit():
    tree = ast.parse(Path(step1x_worker.__file__).read_text())
    names = [n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "__future__"}


def test_an_answer_that_is_no_picture_is_a_bad_image():
    for content in (b"no picture", b""):
        answer: dict[str, Any] = {"image": base64.b64encode(content).decode(), "prompt": None}
        assert failure_of(lambda answer=answer: step1x._picture(answer)).failure is Failure.BAD_IMAGE
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(whole, "PNG")
    cut = base64.b64encode(whole.getvalue()[:500]).decode()
    assert failure_of(lambda: step1x._picture({"image": cut, "prompt": None})).failure is Failure.BAD_IMAGE

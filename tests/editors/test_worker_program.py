"""A program that is started once: weights load once, and a crash or a hang costs one edit."""

import gc
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image, ImageOps

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError
from evenedit.core.interfaces import Refusal
from evenedit.core.records import Outcome
from tests.support.studies import open_study

PROGRAM = """
import json, os, subprocess, sys, time
from PIL import Image, ImageOps

def say(**answer):
    print(json.dumps(answer), flush=True)

with open(sys.argv[1], "a") as log:
    log.write("loaded\\n")
if "absent" in sys.argv:
    sys.exit("no weights here")
print("a library greets")
say(ready=True, facts={"weights": "v1"})
for line in sys.stdin:
    asked = json.loads(line)
    word = asked["instruction"].split()[0]
    print("step 1/2")
    say(id=-1)
    if word == "refuse":
        say(id=asked["id"], refusal="not this person")
    elif word == "memory":
        say(id=asked["id"], failure="out_of_memory", message="no room")
    elif word == "strange":
        say(id=asked["id"], failure="whatever", message="hm")
    elif word == "forget":
        say(id=asked["id"])
    elif word == "crash":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "hang":
        subprocess.Popen(["sleep", "600"])
        time.sleep(600)
    else:
        pictures = [Image.open(path) for path in asked["images"]]
        made = ImageOps.invert(pictures[0].convert("RGB"))
        made.putpixel((0, 0), (asked["seed"] % 256, len(pictures), 0))
        made.save(asked["output"])
        say(id=asked["id"])
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "editor.py").write_text(textwrap.dedent(PROGRAM))
    return [sys.executable, str(tmp_path / "editor.py"), str(tmp_path / "loads.log")]


def build(program: list[str], **settings: Any) -> Any:
    return plugins.build("editors", "worker", {"command": program, **settings})


def loads(program: list[str]) -> int:
    return Path(program[2]).read_text().count("loaded")


def portrait() -> Image.Image:
    return Image.radial_gradient("L").resize((32, 32)).convert("RGB")


def test_a_hundred_edits_load_the_weights_once(program):
    editor = build(program, max_images=2)
    editor.load()
    for seed in range(100):
        made = editor.edit([portrait()], "As a nurse", seed)
        assert made.getpixel((0, 0)) == (seed, 1, 0)
    assert editor.edit([portrait(), portrait()], "Both", 5).getpixel((0, 0)) == (5, 2, 0)
    assert made.getpixel((5, 5)) == ImageOps.invert(portrait()).getpixel((5, 5))
    assert loads(program) == 1
    assert editor.facts()["starts"] == 1 and editor.facts()["weights"] == "v1"
    editor.close()


def test_what_it_says_is_an_outcome_and_it_stays(program):
    editor = build(program)
    assert editor.edit([portrait()], "refuse this", 1) == Refusal("not this person")
    for word, kind in (("memory", Failure.OUT_OF_MEMORY), ("strange", Failure.CRASH), ("forget", Failure.BAD_IMAGE)):
        with pytest.raises(Failed) as raised:
            editor.edit([portrait()], word, 1)
        assert raised.value.failure is kind
    assert loads(program) == 1
    editor.close()


def test_one_that_crashes_is_started_again_and_one_that_hangs_is_killed_with_its_children(program):
    editor = build(program)
    with pytest.raises(Failed, match="last words") as raised:
        editor.edit([portrait()], "crash now", 1)
    assert raised.value.failure is Failure.CRASH
    assert editor.edit([portrait()], "As a nurse", 1).size == (32, 32)
    assert loads(program) == 2
    family = [*psutil.Process(editor._running[0].process.pid).children(recursive=True)]
    pid = editor._running[0].process.pid
    editor.timeout = 1.0
    with pytest.raises(Failed, match="within 1 s") as raised:
        editor.edit([portrait()], "hang here", 1)
    editor.timeout = 600.0
    assert raised.value.failure is Failure.TIMEOUT
    assert not psutil.pid_exists(pid) and not any(each.is_running() for each in family)
    assert editor.edit([portrait()], "As a nurse", 2).size == (32, 32)
    editor.close()


def test_one_that_cannot_load_is_tried_once_and_says_why(program):
    editor = build([*program, "absent"])
    with pytest.raises(LoadError, match="no weights here"):
        editor.load()
    with pytest.raises(EvenEditError, match="'no-such-program' was not found"):
        build(["no-such-program"]).load()
    assert build(["no-such-program"]).missing()
    with pytest.raises(EvenEditError, match="must be a list of strings"):
        build("editor.py")
    with pytest.raises(EvenEditError, match=r"takes 1 image\(s\), but the request has 2"):
        build(program).edit([portrait(), portrait()], "Both", 1)


def test_it_ends_when_nobody_needs_it_any_more(program):
    editor = build(program)
    editor.load()
    pid = editor._running[0].process.pid
    del editor
    gc.collect()
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid)


def test_a_study_is_edited_by_one_start(program, tmp_path):
    study = open_study(
        tmp_path / "s", editors=[{"id": "mine", "kind": "worker", "settings": {"command": program}}], judges=[]
    )
    summary = study.run()
    edits = study.store.edits().values()
    assert summary.complete and len(edits) > 5 and {e.outcome for e in edits} == {Outcome.EDITED}
    assert loads(program) == 1

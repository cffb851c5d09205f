"""Any program as an editor, run for real."""

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Refusal
from evenedit.editors.command import Command

NEGATIVE = """
import sys
from PIL import Image, ImageOps
*sources, instruction, seed, output = sys.argv[1:]
pictures = [ImageOps.invert(Image.open(path)) for path in sources if path]
canvas = Image.new("RGB", (sum(p.width for p in pictures), pictures[0].height))
left = 0
for picture in pictures:
    canvas.paste(picture, (left, 0))
    left += picture.width
canvas.info = {}
canvas.putpixel((0, 0), (len(instruction), int(seed), len(pictures)))
canvas.save(output, "PNG")
"""
TAIL = ["{instruction}", "{seed}", "{output}"]


def portrait(size: int = 16) -> Image.Image:
    return Image.linear_gradient("L").resize((size, size)).convert("RGB")


def program(tmp_path: Path, code: str, places: list[str] | None = None, **settings: Any) -> Command:
    """An editor that runs this Python code."""
    script = tmp_path / "program.py"
    script.write_text(code)
    return Command(command=[sys.executable, "-I", str(script), *(places or ["{source}", *TAIL])], **settings)


def failure(editor: Command) -> Failed:
    with pytest.raises(Failed) as caught:
        editor.edit([portrait()], "Add a hat", 42)
    return caught.value


def test_the_program_gets_everything_and_its_picture_comes_back(tmp_path: Path):
    output = program(tmp_path, NEGATIVE).edit([portrait()], "Add a hat", 42)
    expected = ImageOps.invert(portrait())
    expected.putpixel((0, 0), (len("Add a hat"), 42, 1))
    assert isinstance(output, Image.Image)
    assert output.tobytes() == expected.tobytes()


@pytest.mark.parametrize("places", [["{sources}"], ["{source}", "{source2}"]])
def test_two_pictures_go_in_order_and_one_is_still_fine(tmp_path: Path, places: list[str]):
    editor = program(tmp_path, NEGATIVE, [*places, *TAIL])
    assert editor.max_images == 2
    dark, light = Image.new("RGB", (4, 4), "black"), Image.new("RGB", (4, 4), "white")
    output = editor.edit([dark, light], "x", 1)
    assert isinstance(output, Image.Image)
    assert output.size == (8, 4)
    assert output.getpixel((3, 3)) == (255, 255, 255)
    assert output.getpixel((7, 3)) == (0, 0, 0)
    single = editor.edit([dark], "x", 1)
    assert isinstance(single, Image.Image)
    assert single.size == (4, 4)


def test_two_pictures_without_a_second_place_are_refused_with_advice(tmp_path: Path):
    editor = program(tmp_path, NEGATIVE)
    assert Command.max_images == 2  # what planning reads, before a command is known
    assert editor.max_images == 1
    with pytest.raises(EvenEditError, match=r"\{source2\} or \{sources\}"):
        editor.edit([portrait(), portrait()], "x", 1)


def test_no_shell_and_no_second_filling_touch_the_instruction(tmp_path: Path):
    told = tmp_path / "told.txt"
    code = f"import sys, pathlib; pathlib.Path({str(told)!r}).write_text(sys.argv[1]); sys.exit(77)"
    editor = program(tmp_path, code, ["--prompt={instruction}", "{source}", "{output}"])
    instruction = "$(touch hacked); `id` {seed} {output} \"quoted\" 'twice' \n* ü"
    editor.edit([portrait()], instruction, 1)
    assert told.read_text() == f"--prompt={instruction}"


def test_the_program_runs_in_a_folder_of_its_own_that_is_gone_afterwards(tmp_path: Path):
    code = (
        "import os, sys; from PIL import Image\n"
        "print(os.getcwd(), sorted(os.listdir()), Image.open(sys.argv[1]).info)\nsys.exit(77)"
    )
    source = portrait()
    source.info["evenedit-labels"] = '{"race": "Black"}'
    refusal = program(tmp_path, code).edit([source], "x", 1)
    assert isinstance(refusal, Refusal)
    folder, rest = refusal.reason.split(" ", 1)
    assert rest == "['source1.png', 'stderr.txt', 'stdout.txt'] {}"  # neutral names, no labels
    assert not Path(folder).exists()


def test_a_relative_program_is_found_from_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "edit.sh"
    script.write_text('#!/bin/sh\ncp "$1" "$2"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.chdir(tmp_path)
    output = Command(command=["./edit.sh", "{source}", "{output}", "{instruction}"]).edit([portrait()], "x", 1)
    assert isinstance(output, Image.Image)
    assert output.tobytes() == portrait().tobytes()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('checking'); print('policy: no faces\\n\\n')", "policy: no faces"),
        ("import sys; print('declined', file=sys.stderr)", "declined"),
        ("", "the program gave no reason"),
    ],
)
def test_the_agreed_exit_code_is_a_refusal(tmp_path: Path, code: str, reason: str):
    assert program(tmp_path, f"{code}\nimport sys; sys.exit(77)").edit([portrait()], "x", 1) == Refusal(reason)


def test_another_exit_code_can_be_agreed_and_then_77_is_a_crash(tmp_path: Path):
    assert program(tmp_path, "exit(3)", refusal_exit=3).edit([portrait()], "x", 1) == Refusal(
        "the program gave no reason"
    )
    assert failure(program(tmp_path, "exit(77)", refusal_exit=3)).failure is Failure.CRASH


def test_a_crash_tells_its_last_words(tmp_path: Path):
    failed = failure(program(tmp_path, "print('x' * 10_000_000)\nraise RuntimeError('CUDA is gone')"))
    assert failed.failure is Failure.CRASH
    assert "exit code 1" in str(failed)
    assert str(failed).endswith("RuntimeError: CUDA is gone")
    assert len(str(failed)) < 3000


def test_a_killed_program_is_a_crash_that_names_the_signal(tmp_path: Path):
    failed = failure(program(tmp_path, "import os; os.kill(os.getpid(), 9)"))
    assert failed.failure is Failure.CRASH
    assert "SIGKILL" in str(failed)


def test_a_program_that_hangs_is_ended_with_all_it_started(tmp_path: Path):
    child = tmp_path / "child.txt"
    script = f"sleep 60 & echo $! > {child}; sleep 60; : "
    editor = Command(command=["/bin/sh", "-c", script, "sh", "{source}", *TAIL], timeout=3)
    started = time.monotonic()
    assert failure(editor).failure is Failure.TIMEOUT
    assert time.monotonic() - started < 50
    pid = int(child.read_text())
    deadline = time.monotonic() + 50
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether it is more than a dead entry that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return not Path("/proc/self").exists()


@pytest.mark.parametrize(
    "code",
    [
        "",
        "import sys; open(sys.argv[-1], 'w').write('no image')",
        "import sys, shutil; shutil.copy(sys.argv[1], sys.argv[-1]); open(sys.argv[-1], 'r+').truncate(70)",
        "import sys, os; os.mkdir(sys.argv[-1])",
    ],
)
def test_a_good_ending_without_a_good_image_is_a_bad_image(tmp_path: Path, code: str):
    assert failure(program(tmp_path, code)).failure is Failure.BAD_IMAGE


def test_a_program_that_is_not_there_is_the_users_to_mend(tmp_path: Path):
    command = ["no-such-program-here", "{source}", "{instruction}", "{output}"]
    with pytest.raises(EvenEditError, match="no-such-program-here"):
        Command(command=command).edit([portrait()], "x", 1)
    text = tmp_path / "text"
    text.write_bytes(b"\0not a program")
    text.chmod(0o755)
    with pytest.raises(EvenEditError, match="cannot be run"):
        Command(command=[str(text), *command[1:]]).edit([portrait()], "x", 1)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"command": "edit {source} {output}"}, "list of strings"),
        ({"command": []}, "list of strings"),
        ({"command": ["edit", 3]}, "list of strings"),
        ({"command": ["edit", "{source}", "{output}"]}, r"\{instruction\}"),
        ({"command": ["edit", "{input}", "{prompt}"]}, r"\{source\}, \{instruction\}, \{output\}"),
        ({"command": ["edit", "--images={sources}", *TAIL]}, "separate argument"),
        ({"command": ["edit", "{source}", *TAIL], "refusal_exit": 0}, "refusal_exit"),
    ],
)
def test_a_command_that_cannot_work_is_found_before_it_runs(settings: dict[str, Any], problem: str):
    with pytest.raises(EvenEditError, match=problem):
        Command(**settings)

"""Any program as an editor: a command line with places for the images, the instruction, the seed and the output."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL.Image import Image

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.interfaces import Output, Refusal
from evenedit.providers.calls import to_image, to_png

_PLACE = re.compile(r"\{(source|source2|instruction|seed|output)\}")
_ALL_SOURCES = "{sources}"
_TAIL = 2000  # characters of the end of the program's output that are used


class Command:
    """Runs `command`, a list of strings, without a shell, in an empty temporary folder of its own.

    Places: {source} and {source2} are PNG files, the second empty where there is one image; {sources}, an argument by
    itself, becomes one argument per image; {instruction}; {seed}; {output} is the file the program must write, in any
    format Pillow reads. Files other than the program itself need absolute paths. Exit code 0 with an image is an edit,
    `refusal_exit` is a refusal whose reason is the last line printed, any other exit code is a failure.
    """

    max_images = 2

    def __init__(self, *, command: Sequence[str], timeout: float = 600, refusal_exit: int = 77) -> None:
        if isinstance(command, str) or not command or not all(isinstance(part, str) for part in command):
            raise EvenEditError("setting 'command' must be a list of strings: the program and its arguments")
        places = {f"{{{name}}}" for part in command[1:] for name in _PLACE.findall(part)}
        if _ALL_SOURCES in command[1:]:
            places |= {"{source}", "{source2}"}
        elif any(_ALL_SOURCES in part for part in command):
            raise EvenEditError(f"setting 'command': {_ALL_SOURCES} must be a separate argument")
        lacking = [place for place in ("{source}", "{instruction}", "{output}") if place not in places]
        if lacking:
            raise EvenEditError(f"setting 'command' has no placeholder for {', '.join(lacking)}")
        if not 1 <= refusal_exit <= 255:
            raise EvenEditError(f"setting 'refusal_exit' is {refusal_exit}; it must lie between 1 and 255")
        self.command = tuple(command)
        self.timeout = timeout
        self.refusal_exit = refusal_exit
        self.max_images = 2 if "{source2}" in places else 1

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Return what the program wrote, or its refusal."""
        if len(images) > self.max_images:
            raise EvenEditError(
                f"the command has placeholders for {self.max_images} image(s), but the request has "
                f"{len(images)}. Try: add "
                '{source2} or {sources}, or leave the editor out with experiments = ["diagnosis"]'
            )
        with TemporaryDirectory(prefix="evenedit-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            sources = [folder / f"source{number}.png" for number in range(1, len(images) + 1)]
            for path, image in zip(sources, images, strict=True):
                path.write_bytes(to_png(image))
            output = folder / "output.png"
            code, printed, complained = self._run(self._filled(sources, instruction, seed, output), folder)
            if code == self.refusal_exit:
                return Refusal(_last_line(printed) or _last_line(complained) or "the program gave no reason")
            if code != 0:
                ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                raise Failed(Failure.CRASH, f"the program ended with {ending}: {(complained or printed).strip()}")
            try:
                content = output.read_bytes()
            except OSError:
                raise Failed(Failure.BAD_IMAGE, "the program succeeded but wrote no output image") from None
            return to_image(content)

    def _filled(self, sources: Sequence[Path], instruction: str, seed: int, output: Path) -> list[str]:
        values = {
            "source": str(sources[0]),
            "source2": str(sources[1]) if len(sources) > 1 else "",
            "instruction": instruction,
            "seed": str(seed),
            "output": str(output),
        }
        arguments = []
        for part in self.command[1:]:
            if part == _ALL_SOURCES:
                arguments += [str(path) for path in sources]
            else:  # in one pass: an instruction that contains "{seed}" stays as it is
                arguments.append(_PLACE.sub(lambda place: values[place[1]], part))
        return [self._program(), *arguments]

    def _program(self) -> str:
        program = shutil.which(self.command[0])
        if program is None:
            raise EvenEditError(
                f"the program '{self.command[0]}' was not found, or may not be executed; check 'command'"
            )
        return str(Path(program).absolute())  # the program runs in another folder

    def _run(self, arguments: Sequence[str], folder: Path) -> tuple[int, str, str]:
        """Return exit code and last output. Uses files, not pipes: a grandchild with an open pipe would block us."""
        printed, complained = folder / "stdout.txt", folder / "stderr.txt"
        with printed.open("wb") as out, complained.open("wb") as err:
            try:
                process = subprocess.Popen(
                    arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise EvenEditError(f"the program '{self.command[0]}' cannot be run ({error.strerror})") from None
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                raise Failed(Failure.TIMEOUT, f"the program did not end within {self.timeout:g} s") from None
            finally:
                if process.poll() is None:
                    _kill(process)
        return code, _tail(printed), _tail(complained)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children: it leads its own session."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _TAIL))
        return file.read().decode(errors="replace")[-_TAIL:]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""

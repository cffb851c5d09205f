"""Pairs per second per core for skin and change, against decoding the same files; growth and memory over many pairs."""

import multiprocessing
import resource
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import cv2
from PIL import Image

from evenedit.instruments import measure
from evenedit.instruments.picture import Picture, pixels
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render

PEOPLE = 25
SIDE = 1024
SIZES = (100, 2000)


def pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Drawn portraits and lightened, redressed copies, as large JPEG files like real outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(PEOPLE):
        labels = {"race": ("Black", "White", "Indian")[number % 3], "gender": "Female", "age": "30s"}
        person = sample(labels, number)
        files = folder / f"{number}.jpg", folder / f"{number}-edited.jpg"
        for file, who in zip(files, (person, lighten(person, 6)), strict=True):
            render(who).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(file, quality=92)
        made.append(files)
    return made


def decode(files: Sequence[tuple[Path, Path]]) -> None:
    for pair in files:
        for path in pair:
            with Image.open(path) as image:
                image.convert("RGB").load()


def measure_all(files: Sequence[tuple[Path, Path]]) -> None:
    for source, edited in files:
        with Image.open(source) as before, Image.open(edited) as after:
            measure(before, after, identity=False)


def core_seconds(work, files: Sequence[tuple[Path, Path]]) -> float:
    """Time of the core itself: what else the machine does must not count."""
    started = time.process_time()
    work(files)
    return time.process_time() - started


def one_core(files: Sequence[tuple[Path, Path]], sizes: Sequence[int], results) -> None:
    cv2.setNumThreads(1)
    measure_all(files[:5])  # models are loaded once
    for size in sizes:
        chosen = list(islice(cycle(files), size))
        spent = [core_seconds(work, chosen) for work in (measure_all, decode)]
        results.put((size, *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def one_source() -> None:
    """Eight edits of one source that is looked at once, against looking at it anew for each."""
    cv2.setNumThreads(1)
    person = sample({"race": "Black", "gender": "Female", "age": "30s"}, 1)
    source, edits = render(person), [render(lighten(person, step)) for step in range(1, 9)]
    measure(source, edits[0], identity=False)  # models are loaded once

    def anew(_: object) -> None:
        for edited in edits:
            measure(source, edited, identity=False)

    def once(_: object) -> None:
        known = Picture(pixels(source))
        for edited in edits:
            measure(known, edited, identity=False)

    spent = [min(core_seconds(work, []) for _ in range(3)) for work in (once, anew)]
    ratio = spent[0] / spent[1]
    print(f"eight edits of one source: {1000 * spent[0] / 8:.0f} ms a pair; ratio to looking at it anew: {ratio:.2f}")


def run(folder: Path) -> None:
    one_source()
    files = pairs(folder / "pairs")
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    process = spawn.Process(target=one_core, args=(files, SIZES, results))
    process.start()
    first = None
    for size in SIZES:
        size, seconds, decoding, memory = results.get()
        first = first or (seconds / size, memory)
        print(
            f"{size:,} pairs: {size / seconds:.1f} pairs/s per core, {seconds / decoding:.1f} times plain decoding; "
            f"time per pair {seconds / size / first[0]:.2f} of the first, peak memory {memory:.0f} MB "
            f"({memory - first[1]:+.0f} MB)"
        )
    process.join()

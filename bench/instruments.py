"""Pairs per second per core for skin and change, against decoding the same files; growth and memory over many pairs.

STONE in the environment names a Python that has skin-tone-classifier (GPL, never a dependency): it is then timed too.
"""

import multiprocessing
import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from evenedit.instruments import face, measure
from evenedit.instruments.mesh import find_mesh
from evenedit.instruments.patches import labs, sampled
from evenedit.instruments.picture import Picture, pixels
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render

PEOPLE = 25
SIDE = 1024
GRAIN = 3.0
"""Standard deviation of the grain, in bytes."""
SIZES = (100, 2000)
SIDES = (512, 1024, 2048)
TOGETHER = 5
"""Pairs after which decoding and measuring take turns, so that what else the machine does slows both."""
STONE = """
import sys, time, stone
started = time.process_time()
for name in sys.argv[1:]:
    stone.process(name, image_type="color", return_report_image=False)
print((time.process_time() - started) / (len(sys.argv) - 1))
"""

Pairs = Sequence[tuple[Path, Path]]


def pairs(folder: Path, people: int = PEOPLE, side: int = SIDE) -> list[tuple[Path, Path]]:
    """Drawn portraits, and copies that are lightened, dressed anew or have the head elsewhere, as large JPEG files.

    They get a grain, so that files are about as large as those of photographs of this size: without it drawings are
    decoded in half the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    chance = np.random.default_rng(1)
    for number in range(people):
        labels = {"race": ("Black", "White", "Indian")[number % 3], "gender": "Female", "age": "30s"}
        person = sample(labels, number)
        edits = (lighten(person, 6), replace(person, outfit="suit", scene="office"), replace(person, slump=1.0))
        files = folder / f"{number}.jpg", folder / f"{number}-edited.jpg"
        for file, who in zip(files, (person, edits[number % 3]), strict=True):
            drawn = np.asarray(render(who).convert("RGB").resize((side, side), Image.Resampling.BICUBIC))
            grainy = np.clip(drawn + chance.normal(0, GRAIN, (side, side, 1)), 0, 255).astype(np.uint8)
            Image.fromarray(grainy).save(file, quality=92)
        made.append(files)
    return made


def decode(files: Pairs) -> None:
    for pair in files:
        for path in pair:
            with Image.open(path) as image:
                image.convert("RGB").load()


def measure_all(files: Pairs) -> None:
    for source, edited in files:
        face._remembered.clear()  # every picture is looked at as if for the first time
        with Image.open(source) as before, Image.open(edited) as after:
            measure(before, after, identity=False)


def mesh_all(files: Pairs) -> None:
    """What a plain face mesh costs: the median lightness of its points in both pictures."""
    for pair in files:
        face._remembered.clear()
        for path in pair:
            with Image.open(path) as image:
                rgb = pixels(image)
            found = face.find_face(rgb)
            if isinstance(found, face.Face):
                np.median(labs(sampled(rgb, found, find_mesh(rgb, found).points).light)[:, 0])


def core_seconds(work: Callable[[Pairs], None], files: Pairs) -> float:
    """Time of the core itself: what else the machine does must not count."""
    started = time.process_time()
    work(files)
    return time.process_time() - started


def one_core(files: Pairs, sizes: Sequence[int], results) -> None:
    cv2.setNumThreads(1)
    measure_all(files[:5])  # models are loaded once
    for size in sizes:
        chosen = list(islice(cycle(files), size))
        spent = [0.0, 0.0, 0.0]
        for start in range(0, size, TOGETHER):
            for number, work in enumerate((measure_all, decode, mesh_all)):
                spent[number] += core_seconds(work, chosen[start : start + TOGETHER])
        results.put((size, *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def one_source() -> None:
    """Eight edits of one source that is looked at once, against looking at it anew for each."""
    cv2.setNumThreads(1)
    person = sample({"race": "Black", "gender": "Female", "age": "30s"}, 1)
    source, edits = render(person), [render(lighten(person, step)) for step in range(1, 9)]
    measure(source, edits[0], identity=False)  # models are loaded once

    def anew(_: object) -> None:
        for edited in edits:
            face._remembered.clear()
            measure(source, edited, identity=False)

    def once(_: object) -> None:
        known = Picture(pixels(source))
        for edited in edits:
            face._remembered.clear()
            measure(known, edited, identity=False)

    spent = [min(core_seconds(work, []) for _ in range(3)) for work in (once, anew)]
    ratio = spent[0] / spent[1]
    print(f"eight edits of one source: {1000 * spent[0] / 8:.0f} ms a pair; ratio to looking at it anew: {ratio:.2f}")


def by_side(folder: Path) -> None:
    """How the time grows with the size of the pictures."""
    cv2.setNumThreads(1)
    for side in SIDES:
        files = pairs(folder / str(side), people=6, side=side)
        works = (measure_all, decode, mesh_all)
        spent = [min(core_seconds(work, files) for _ in range(2)) / len(files) for work in works]
        size = sum(path.stat().st_size for pair in files for path in pair) / 2 / len(files) / 1000
        print(
            f"{side} x {side}, {size:.0f} kB a file: {1000 * spent[0]:.0f} ms a pair, {spent[0] / spent[1]:.1f} times "
            f"decoding ({1000 * spent[1]:.0f} ms); a plain face mesh {spent[2] / spent[1]:.1f} times"
        )


def by_stone(files: Pairs) -> None:
    if python := os.environ.get("STONE"):
        names = [str(path) for pair in files[:10] for path in pair]
        told = subprocess.run([python, "-c", STONE, *names], capture_output=True, text=True, check=True)
        ratio = 2 * float(told.stdout) * 10 / core_seconds(decode, files[:10])
        print(f"stone: {2000 * float(told.stdout):.0f} ms a pair, {ratio:.1f} times decoding")


def run(folder: Path) -> None:
    one_source()
    by_side(folder)
    files = pairs(folder / "pairs")
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    process = spawn.Process(target=one_core, args=(files, SIZES, results))
    process.start()
    first = None
    for size in SIZES:
        size, seconds, decoding, mesh, memory = results.get()
        first = first or (seconds / size, memory)
        print(
            f"{size:,} pairs of {SIDE} x {SIDE}: {size / seconds:.1f} pairs/s per core, "
            f"{seconds / decoding:.1f} times plain decoding "
            f"(a plain face mesh: {mesh / decoding:.1f} times); "
            f"time per pair {seconds / size / first[0]:.2f} of the first, peak memory {memory:.0f} MB "
            f"({memory - first[1]:+.0f} MB)"
        )
    process.join()
    by_stone(files)

"""Whether the skin instrument finds planted changes, and nothing where nothing was planted, on real portraits.

Needs the photographs in ../shared/data/portraits; without them nothing is written. The error's weights are fitted to
one half of the people, six of each race label, and everything is reported on the other half. STONE in the environment
names a Python that has skin-tone-classifier (GPL, never a dependency), which is then run on some people as well.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.optimize import minimize

from evenedit.instruments import examine
from evenedit.instruments.agreement import SIGNS, SURE, WEIGHTS
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.mesh import find_mesh
from evenedit.instruments.patches import labs, sampled
from evenedit.instruments.picture import Picture, lab_map, linear
from validation.fresh_people import fresh_people
from validation.page import Validation, size, table
from validation.skin_parts import PARTS
from validation.skin_variants import UNSEEN, VARIANTS, Pixels, Sitter, Variant
from validation.variants import DATA

PORTRAITS = DATA / "portraits"
SEED = 0
FAR = 3.0
"""L* from which an error outside the interval is confidently wrong."""
LEAST = np.array([0.1, 0.3, 0.06, 0.6, 0.06, 0.6, 0.08, 0.8, 11.5, 0.15, 1.0, 0.01, 0.6, 0.1, 30.0, 2.7])
"""Shares of the weights below which none falls, before all are scaled: no sign is taken for harmless."""
HIDING = {"blue mask", "white mask", "beige mask", "black mask", "brown mask", "skin -5, mask"}
HIDING |= {"mask lighter than the skin"}
"""Variants that cover the cheeks."""
NO_ONE_CHANGE = {"black and white", "sepia"} | {variant.name for variant in PARTS if variant.kind == "part"}
"""Variants without one change of skin: no colour is left, or a part of the face changed. No number is right here."""
DRAWS = 2000
KNOWN = VARIANTS + PARTS
FRESH = 1
"""People of each label whom nothing was chosen on, beyond the portraits."""
STONE_EVERY = 6
STONE = """
import json, sys, stone
for name in json.load(sys.stdin):
    try:
        found = stone.process(name, image_type="color", return_report_image=False)
        print(json.dumps([name, found["faces"][0]["dominant_colors"][0]["color"]]), flush=True)
    except Exception as error:
        print(json.dumps([name, None]), flush=True)
"""


@dataclass(frozen=True)
class Reading:
    """What was found on one variant of one person."""

    person: str
    group: str
    variant: str
    kind: str
    seen: str
    """calibration, held out or unseen."""
    truth: float
    found: float | None
    error: float | None
    """The stated standard error."""
    reason: str
    signs: tuple[float, ...]
    mesh: float | None
    """By the median of all points of the face mesh, light and covers left in."""
    box: float | None
    """By the median of the face's box."""

    @property
    def in_part(self) -> bool:
        """Whether there is no one change of the skin."""
        return self.variant in NO_ONE_CHANGE

    @property
    def off(self) -> float:
        assert self.found is not None
        return self.found - self.truth

    @property
    def inside(self) -> bool:
        return abs(self.off) <= SURE * (self.error or 0.0)

    @property
    def wrong(self) -> bool:
        """Confidently wrong."""
        return abs(self.off) > FAR and not self.inside


def halves() -> tuple[list[Path], list[Path]]:
    """The people of calibration and of validation: every other cell of race, gender and age."""
    people = sorted(PORTRAITS.glob("*.jpg"))
    return tuple([p for i, p in enumerate(people) if (i + i // 12) % 2 == half] for half in (0, 1))  # type: ignore[return-value]


def read_person(path: Path, calibration: bool) -> list[Reading]:
    """Measure every variant of one person, or those for calibration."""
    variants = [v for v in KNOWN if not v.held] if calibration else KNOWN + UNSEEN
    cv2.setNumThreads(1)
    with Image.open(path) as image:
        sitter = Sitter(path.stem, np.asarray(image.convert("RGB")))
    source, was = Picture(sitter.rgb), _plain_methods(sitter.rgb)
    readings = []
    for variant in variants:
        rgb, truth = variant.make(sitter)
        pair = examine(source, Image.fromarray(rgb), identity=False)
        found, now = pair.measurement, _plain_methods(rgb)
        seen = "unseen" if variant in UNSEEN else "held out" if variant.held else "calibration"
        mesh, box = (None if a is None or b is None else b - a for a, b in zip(was, now, strict=True))
        readings.append(
            Reading(
                sitter.name,
                sitter.group,
                variant.name,
                variant.kind,
                seen,
                truth,
                found.skin_delta_L,
                found.skin_uncertainty_L,
                found.reasons.get("skin_delta_L", ""),
                tuple(pair.skin.agreement.signs) if pair.skin else (),
                mesh,
                box,
            )
        )
    return readings


def _plain_methods(rgb: Pixels) -> tuple[float | None, float | None]:
    """L* of a face by its mesh alone, and by its box."""
    face = find_face(rgb)
    if not isinstance(face, Face):
        return None, None
    read = sampled(rgb, face, find_mesh(rgb, face).points)
    left, top, wide, high = (max(0, int(value)) for value in face.box)
    inside = lab_map(linear(np.ascontiguousarray(rgb[top : top + high, left : left + wide])))[..., 0]
    return float(np.median(labs(read.light)[:, 0])), float(np.median(inside))


def fitted(readings: Sequence[Reading]) -> NDArray[np.float64]:
    """The weights of the signs that explain the errors, so scaled that 96 % of the intervals hold the truth."""
    used = [r for r in readings if r.found is not None and r.seen == "calibration"]
    signs, off = np.array([r.signs for r in used]), np.array([r.off for r in used])

    def unlikely(weights: NDArray[np.float64]) -> float:
        square = ((weights * signs) ** 2).sum(axis=1) + 1e-4
        return float((np.log(square) / 2 + 2.5 * np.log1p(off**2 / square / 4)).mean() + 1e-4 * (weights**2).sum())

    best = minimize(unlikely, np.maximum(LEAST, 0.1), method="L-BFGS-B", bounds=[(low, None) for low in LEAST])
    error = np.hypot.reduce(best.x * signs, axis=1)
    scaled: NDArray[np.float64] = best.x * np.quantile(np.abs(off) / error, 0.96) / SURE
    return scaled


def row(name: str, readings: Sequence[Reading]) -> dict[str, Any]:
    """One line of a table."""
    found = [r for r in readings if r.found is not None]
    off = np.abs([r.off for r in found])
    wrong, inside = sum(r.wrong for r in found), sum(r.inside for r in found)
    low, high = _interval(found)
    return {
        "": name,
        "n": len(readings),
        "median": f"{np.median(off):.2f}" if found else "–",
        "p90": f"{np.quantile(off, 0.9):.2f}" if found else "–",
        "max": f"{off.max():.2f}" if found else "–",
        "confidently wrong": wrong,
        "truth within 95 %": f"{inside / len(found):.1%} ({low:.1%} to {high:.1%})" if found else "–",
        "± median": f"{SURE * np.median([r.error for r in found if r.error is not None]):.2f}" if found else "–",
        "not measured": len(readings) - len(found),
    }


def _interval(found: Sequence[Reading]) -> tuple[float, float]:
    """A 95 % interval of the share inside: Wilson's, or where it is wider the one over people drawn again."""
    low, high = _wilson(sum(r.inside for r in found), len(found))
    people = sorted({r.person for r in found})
    if len(people) < 2:
        return low, high
    counts = np.array(
        [[sum(r.person == p for r in found), sum(r.person == p and r.inside for r in found)] for p in people]
    )
    chance = np.random.default_rng(0)
    n, inside = counts[chance.integers(len(people), size=(DRAWS, len(people)))].sum(axis=1).T
    drawn = np.quantile(inside / n, [0.025, 0.975])
    return min(low, float(drawn[0])), max(high, float(drawn[1]))


def unequal(readings: Sequence[Reading]) -> float:
    """p of equal shares without a number over the groups: people are dealt to the groups anew."""
    people = sorted({(r.person, r.group) for r in readings})
    share = np.array([np.mean([r.found is None for r in readings if r.person == person]) for person, _ in people])
    groups = np.array([group for _, group in people])

    def distance(dealt: NDArray[np.str_]) -> float:
        return float(np.var([share[dealt == group].mean() for group in np.unique(groups)]))

    chance = np.random.default_rng(0)
    seen = distance(groups)
    return float((1 + sum(distance(chance.permutation(groups)) >= seen - 1e-12 for _ in range(DRAWS))) / (1 + DRAWS))


def _wilson(count: int, n: int) -> tuple[float, float]:
    if not n:
        return 0.0, 1.0
    share, z = count / n, SURE
    middle, reach = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float((middle - reach) / (1 + z**2 / n)), float((middle + reach) / (1 + z**2 / n))


def others(readings: Sequence[Reading], stone: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """How far off this and other methods are, on what was asked of all of them."""
    methods: dict[str, Callable[[Reading], float | None]] = {
        "this instrument": lambda r: r.found,
        "median over the face mesh": lambda r: r.mesh,
        "median over the face box": lambda r: r.box,
        "stone": lambda r: stone.get((r.person, r.variant)),
    }
    rows = []
    for kind in ("skin", "part", "file", "moved", "covered", "light", "place", "both"):
        line: dict[str, Any] = {"kind": kind}
        for name, value in methods.items():
            off = np.abs([v - r.truth for r in readings if r.kind == kind and (v := value(r)) is not None])
            line[name] = (
                f"{np.median(off):.2f} / {np.quantile(off, 0.9):.1f} / {np.mean(off > FAR):.1%} of {len(off)}"
                if len(off)
                else "–"
            )
        rows.append(line)
    return rows


def by_stone(people: Sequence[Path], folder: Path) -> dict[tuple[str, str], float]:
    """Changes of L* by stone, run by another Python; empty where none is named."""
    python = os.environ.get("STONE")
    if not python:
        return {}
    names: dict[str, tuple[str, str]] = {}
    for path in people:
        with Image.open(path) as image:
            sitter = Sitter(path.stem, np.asarray(image.convert("RGB")))
        for number, variant in enumerate((Variant("", ""), *KNOWN, *UNSEEN)):
            file = folder / f"{path.stem}-{number}.png"
            Image.fromarray(variant.make(sitter)[0]).save(file)
            names[str(file)] = path.stem, variant.name
    told = subprocess.run(
        [python, "-c", STONE], input=json.dumps(list(names)), capture_output=True, text=True, check=True
    )
    tones = {names[name]: _lightness(tone) for name, tone in map(json.loads, told.stdout.splitlines()) if tone}
    return {key: tone - tones[key[0], ""] for key, tone in tones.items() if key[1] and (key[0], "") in tones}


def _lightness(code: str) -> float:
    colour = np.array([[[int(code[i : i + 2], 16) for i in (1, 3, 5)]]], dtype=np.uint8)
    return float(lab_map(linear(colour))[0, 0, 0])


def lines(
    readings: Sequence[Reading], weights: NDArray[np.float64], stone: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    """The page's tables."""
    kinds = {"calibration": "kinds calibrated on", "held out": "kinds held out", "unseen": "unseen kinds"}
    groups = sorted({r.group for r in readings})
    open_ones = [r for r in readings if r.variant not in HIDING]
    yield "Errors in L*. Confidently wrong: off by more than 3 L* and outside the stated 95 %. Of the unseen kinds two"
    yield "(lamp from above, haze) led to a change after an earlier run on these people.\n"
    yield from table(
        [row("all", readings), *(row(title, [r for r in readings if r.seen == seen]) for seen, title in kinds.items())]
    )
    yield "\nBy race label, all kinds:\n"
    yield from table([row(group, [r for r in readings if r.group == group]) for group in groups])
    for title, chosen in (
        ("nothing covers the cheeks", open_ones),
        ("nothing covers the cheeks and there is one change to measure", [r for r in open_ones if not r.in_part]),
    ):
        missing = {group: [r.found is None for r in chosen if r.group == group] for group in groups}
        told = ", ".join(f"{group} {np.mean(some):.1%}" for group, some in missing.items())
        yield (
            f"\nWhere {title}, {sum(r.found is None for r in chosen)} of {len(chosen)} "
            f"({np.mean([r.found is None for r in chosen]):.1%}) have no number: {told}; p of equal shares over the "
            f"groups {unequal(chosen):.2f} (people dealt to groups anew)."
        )
    reasons = sorted({r.reason for r in readings if r.found is None})
    yield (
        "\nWhy there was no number: "
        + "; ".join(f"{reason} ({sum(r.reason == reason and r.found is None for r in readings)})" for reason in reasons)
        + ".\n"
    )
    for seen, title in kinds.items():
        yield f"\n{title.capitalize()}:\n"
        chosen = [r for r in readings if r.seen == seen]
        yield from table(
            [row(name, [r for r in chosen if r.variant == name]) for name in dict.fromkeys(r.variant for r in chosen)]
        )
    yield "\nBeside other methods, median error / p90 / share off by more than 3 L*, of what each measured"
    yield (
        f"(stone on every {STONE_EVERY}th person, by the L* of the dominant colour that it finds):\n"
        if stone
        else "(stone was not at hand):\n"
    )
    yield from table(others(readings, stone))
    yield "\nThe error's weights, fitted to the calibration half again, and as they are in the instrument:\n"
    yield from table(
        [
            {"sign": sign, "fitted": f"{a:.3g}", "in use": f"{b:.3g}"}
            for sign, a, b in zip(SIGNS, weights, WEIGHTS, strict=True)
        ]
    )


def measured(people: Sequence[Path], calibration: bool) -> list[Reading]:
    """The readings of all of them, in a process per core."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return [one for some in pool.map(read_person, people, repeat(calibration)) for one in some]


def on_fresh(readings: Sequence[Reading]) -> Iterator[str]:
    """What was read on other people, in smaller pictures."""
    if not readings:
        return
    people = len({r.person for r in readings})
    yield f"\nOn {people} more people, drawn among candidates that are none of the 84 (pictures of 224 pixels):\n"
    groups = sorted({r.group for r in readings})
    yield from table(
        [row("all", readings), *(row(group, [r for r in readings if r.group == group]) for group in groups)]
    )
    open_ones = [r for r in readings if r.variant not in HIDING and not r.in_part]
    yield (
        f"\n{np.mean([r.found is None for r in open_ones]):.1%} of those with one change and both cheeks in sight have "
        f"no number; p of equal shares {unequal(open_ones):.2f}. Kinds with a reading off by more than {FAR:.0f} L*: "
        + (", ".join(sorted({r.variant for r in readings if r.found is not None and abs(r.off) > FAR})) or "none")
        + ".\n"
    )


def run(folder: Path) -> Validation | None:
    """Fit the weights to one half of the people and report on the other."""
    if not PORTRAITS.is_dir():
        print(f"no photographs in {PORTRAITS}: nothing to validate")
        return None
    calibration, validation = halves()
    count = size("VALIDATION_PEOPLE", len(validation))
    calibration, validation = drawn(calibration, count), drawn(validation, count)
    with ThreadPoolExecutor(1) as beside:
        told = beside.submit(by_stone, validation[::STONE_EVERY], folder)
        return validate_skin(calibration, validation, told.result)


def drawn(people: list[Path], count: int) -> list[Path]:
    """So many of them, as many of each race label as can be, by a seed; all where there are no more."""
    chance = np.random.default_rng(SEED)
    mixed = [people[number] for number in chance.permutation(len(people))]
    turn = {
        path: sum(p.stem.split("_")[0] == path.stem.split("_")[0] for p in mixed[:i]) for i, path in enumerate(mixed)
    }
    return sorted(sorted(mixed, key=lambda path: turn[path])[:count])


def validate_skin(
    calibration: list[Path], validation: list[Path], stone_found: Callable[[], dict[tuple[str, str], float]]
) -> Validation:
    """What is found on these people."""
    first, second = measured(calibration, calibration=True), measured(validation, calibration=False)
    weights = fitted(first)
    stone = stone_found()
    found = [r for r in second if r.found is not None]
    wrong, inside = sum(r.wrong for r in found) / len(found), sum(r.inside for r in found) / len(found)
    problems = []
    if wrong > 0.01:
        problems.append(f"{wrong:.1%} of the readings are confidently wrong, more than 1 %")
    if not 0.93 <= inside <= 0.97:
        problems.append(f"the truth lies within the 95 % in {inside:.1%} of the readings, not in 93 to 97 %")
    for group in sorted({r.group for r in found}):
        held = np.mean([r.inside for r in found if r.group == group])
        if held < 0.9:
            problems.append(f"for {group} the truth lies within the 95 % in {held:.1%}, less than 90 %")
    open_ones = [r for r in second if r.variant not in HIDING and not r.in_part]
    if (gone := np.mean([r.found is None for r in open_ones])) > 0.1:
        problems.append(f"{gone:.1%} have no number though both cheeks are in sight, more than 10 %")
    if (p := unequal(open_ones)) < 0.05:
        problems.append(f"readings are missing more often for some groups (p {p:.3f})")
    fresh = measured(fresh_people(FRESH), calibration=False)
    return Validation(
        "Planted changes of skin are found on photographs, and none where light, clothes, place or file changed; "
        "what cannot be told is not measured. Reported on people whose pictures calibrated nothing.",
        [*lines(second, weights, stone), *on_fresh(fresh)],
        0,
        {
            "people in calibration": len(calibration),
            "in validation": len(validation),
            "readings": len(second),
            "readings of more people": len(fresh),
        },
        problems,
    )

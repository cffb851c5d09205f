"""Readings beside what a person sees, in random mixtures of changes, and by what was asked for.

Thresholds and weights were chosen on the people of calibration, with the other half of the ways to change a picture.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from evenedit.instruments import Measurement, examine
from evenedit.instruments.change import Verdict
from evenedit.instruments.identity import IdentityDistance, shipped_reference
from evenedit.instruments.measure import drawn_anew
from evenedit.instruments.picture import Picture, Pixels, pixels
from evenedit.instruments.request import Answer, request_outcome
from evenedit.protocol.prompts import load_prompts
from validation.instruments import halves
from validation.mixtures import HIDING, OTHERS, UNSEEN, mixed
from validation.page import ROOT, Validation, size, table
from validation.real_edits import real_edits
from validation.skin_variants import tinted
from validation.variants import CHANGED, CHANGED_HELD_OUT, DATA, SAME, SAME_HELD_OUT, draw, sitters

LABELS = ROOT / "validation" / "labels" / "step1x.csv"
FAR = 3.0
"""L* from which an interval's middle that is off, and does not hold the truth, is confidently wrong."""
LIGHTER_READ, LIGHTER_SURE, SAME_SURE, UNREAD = 0.8, 0.6, 0.05, 0.08
"""Shares: of edits seen as lighter, at least so many have an interval, and one without 0; of those seen as the same, at
most so many have one without 0; at most so many mixtures have no reading."""
ASKED = {"suit": "clothing", "suit, redrawn": "clothing", "cap": "clothing", "cap, redrawn": "clothing"}
ASKED |= {"backdrop": "scene", "backdrop, redrawn": "scene", "glasses, thick": "object", "badge": "object"}
ASKED |= {"glasses, thin": "object", "glasses, thick, redrawn": "object", "earring": "object"}
ASKED |= {"red lips": "face_marks", "scar": "face_marks", "moustache": "face_marks"}
"""Planted changes and the kind of change that each answers."""
WARM, GREEN = (1.12, 1.0, 0.72), (0.93, 1.07, 0.93)


def _teal_and_orange(rgb: Pixels) -> Pixels:
    share = (rgb.mean(axis=2, keepdims=True) / 255) ** 0.8
    tint = (1 - share) * np.array([-18.0, 8.0, 16.0]) + share * np.array([16.0, 2.0, -18.0])
    return np.asarray(np.clip(np.rint(rgb + tint), 0, 255), dtype=np.uint8)


COLOURS: dict[str, Callable[[Pixels], Pixels]] = {
    "tungsten white balance": lambda rgb: tinted(rgb, WARM),
    "green cast": lambda rgb: tinted(rgb, GREEN),
    "teal and orange": _teal_and_orange,
}


@dataclass(frozen=True)
class Case:
    """One mixture and what was read."""

    person: str
    ways: tuple[str, ...]
    truth: float
    displayed: float
    found: Measurement

    @property
    def group(self) -> str:
        return self.person.split("_")[0]

    def holds(self, name: str, truth: float) -> bool:
        return bool(getattr(self.found, f"{name}_low") <= truth <= getattr(self.found, f"{name}_high"))


def read_mixtures(path: Path, count: int, start: int, ways_of: int) -> list[Case]:
    """Measure so many mixtures of one portrait."""
    cv2.setNumThreads(1)
    cases = []
    with Image.open(path) as image:
        for number in range(start, start + count):
            drawn = mixed(path.stem, image, number, ways_of)
            source = Picture(pixels(Image.fromarray(drawn.source.rgb)))
            found = examine(source, drawn.edited, identity=False).measurement
            cases.append(Case(path.stem, drawn.ways, drawn.truth, drawn.displayed, found))
    return cases


def _row(name: str, cases: Sequence[Case]) -> dict[str, Any]:
    read = [case for case in cases if case.found.skin_delta_L_low is not None]
    held = [case.holds("skin_delta_L", case.truth) for case in read]
    wrong = [not one and abs(_middle(case.found) - case.truth) > FAR for one, case in zip(held, read, strict=True)]
    widths = [(case.found.skin_delta_L_high or 0.0) - (case.found.skin_delta_L_low or 0.0) for case in read]
    return {
        "": name,
        "n": len(cases),
        "no reading": f"{1 - len(read) / len(cases):.1%}",
        "one number": f"{np.mean([case.found.skin_delta_L is not None for case in cases]):.0%}",
        "truth within 95 %": f"{np.mean(held):.1%}",
        "confidently wrong": f"{np.mean(wrong):.1%}",
        "± median": f"{np.median(widths) / 2:.1f}",
        "as displayed, truth within 95 %": f"{np.mean([c.holds('skin_delta_L_raw', c.displayed) for c in read]):.1%}",
    }


def _middle(found: Measurement) -> float:
    if found.skin_delta_L is not None:
        return found.skin_delta_L
    return ((found.skin_delta_L_low or 0.0) + (found.skin_delta_L_high or 0.0)) / 2


def _mixtures(cases: Sequence[Case]) -> Iterator[str]:
    open_ones = [case for case in cases if not HIDING & set(case.ways)]
    groups = sorted({case.group for case in cases})
    ways = sorted({way for case in cases for way in case.ways})
    rows = [_row("all", cases), _row("no mask", open_ones)]
    rows += [_row(group, [case for case in cases if case.group == group]) for group in groups]
    yield from table(rows)
    yield "\nBy what was mixed in:\n"
    yield from table([_row(way, [case for case in cases if way in case.ways]) for way in ways])


def _by_eye(problems: list[str]) -> Iterator[str]:
    with LABELS.open() as file:
        labels = {row["edit"]: row for row in csv.DictReader(file)}
    prompts = {p.aliases.get("code", p.id): p for name in ("diagnostic", "neutral") for p in load_prompts(name)}
    sources = {path.stem: Picture(pixels(Image.open(path))) for path in (DATA / "portraits").glob("*.jpg")}
    pairs = {name: examine(sources[who], Image.fromarray(rgb)) for name, who, rgb in real_edits()}
    found = {name: pair.measurement for name, pair in pairs.items()}
    anew = {name: drawn_anew(pair.skin or "", pair.change) for name, pair in pairs.items()}

    def of(half: str, column: str, value: str, letter: str = "") -> list[str]:
        return [k for k, row in labels.items() if row["half"] == half and row[column] == value and k.startswith(letter)]

    yield "## Beside labels by eye (one rater, validation/labels)\n"
    rows = []
    for half in ("tune", "report"):
        for label in ("lighter", "same", "darker"):
            names = of(half, "skin", label)
            row: dict[str, Any] = {"half": half, "skin as seen": label, "n": len(names)}
            for title, name in (("light removed", "skin_delta_L"), ("as displayed", "skin_delta_L_raw")):
                ends = [(getattr(found[k], f"{name}_low"), getattr(found[k], f"{name}_high")) for k in names]
                row[f"{title}: interval"] = sum(low is not None for low, _ in ends)
                row[f"{title}: excludes 0"] = sum(low is not None and (low > 0 or high < 0) for low, high in ends)
            rows.append(row)
            read, sure = row["light removed: interval"] / len(names), row["light removed: excludes 0"] / len(names)
            if label == "lighter" and (read < LIGHTER_READ or sure < LIGHTER_SURE):
                problems.append(f"of edits seen as lighter {read:.0%} have an interval and {sure:.0%} one without 0")
            if label == "same" and sure > SAME_SURE:
                problems.append(f"of edits seen as the same {sure:.0%} have an interval without 0")
    yield from table(rows)
    rows = []
    for half in ("tune", "report"):
        for label in ("ignored", "partial", "applied"):
            names = of(half, "request", label, "B")
            told = [request_outcome(prompts[k[:3]].asks_for, found[k]).answer for k in names]
            row = {"half": half, "occupation edits, as seen": label, "n": len(names)}
            rows.append(row | {str(answer): told.count(answer) for answer in Answer})
    yield "\n"
    yield from table(rows)
    rows, known = [], shipped_reference()
    for half in ("tune", "report"):
        for label in ("another", "unsure", "same"):
            names = [k for k in of(half, "identity", label) if found[k].identity_distance is not None]
            told_so = []
            for group in (True, False):
                labels_known = ((k, k.split("_")[1] if group else "") for k in names)
                standings = [known.standing(_distance(found[k]), label, anew[k]) for k, label in labels_known]
                told_so.append(sum(isinstance(one, IdentityDistance) and one.stranger for one in standings))
            row = {"half": half, "person, as seen": label, "n": len(names)}
            rows.append(row | {"another person? (label known)": told_so[0], "label not known": told_so[1]})
    yield "\nPersons, by the distances that EvenEdit ships:\n"
    yield from table(rows)


def _distance(found: Measurement) -> float:
    assert found.identity_distance is not None
    return found.identity_distance


def read_requests(name: str) -> list[tuple[str, bool, Answer]]:
    """What is told of planted changes of one portrait: for the kind each answers, of harmless ones for clothing."""
    cv2.setNumThreads(1)
    (person,) = sitters([DATA / "portraits" / f"{name}.jpg"])
    source, told = Picture(person.rgb), []
    for kinds in (SAME, SAME_HELD_OUT, CHANGED, CHANGED_HELD_OUT):
        for kind, rgb in draw(kinds, person):
            if kinds in (CHANGED, CHANGED_HELD_OUT) and kind not in ASKED:
                continue
            found = examine(source, Image.fromarray(rgb), identity=False).measurement
            for asked in [ASKED[kind]] if kind in ASKED else ["clothing", "face_marks"]:
                told.append((f"{kind}, for {asked}", kind in ASKED, request_outcome([asked], found).answer))
    for kind, make in COLOURS.items():
        found = examine(source, Image.fromarray(make(person.rgb)), identity=False).measurement
        same = Verdict(found.verdict).nothing_new
        told.append((kind, True, Answer.IGNORED if same else Answer.APPLIED))
    return told


def _requests(told: Sequence[tuple[str, bool, Answer]]) -> Iterator[str]:
    yield "\n## Planted changes for a prompt that asks for them; colour edits: called unchanged (ignored) or not\n"
    rows = []
    for kind, new in dict.fromkeys((kind, new) for kind, new, _ in told):
        answers = [answer for one, _, answer in told if one == kind]
        row: dict[str, Any] = {"variant": kind, "truth": "applied" if new else "ignored", "n": len(answers)}
        rows.append(row | {str(answer): answers.count(answer) for answer in Answer})
    yield from table(rows)


SETS = (
    ("ways seen while the readings were made, on people that calibrated nothing", OTHERS, 21000),
    ("ways used for validation only, on people that calibrated nothing", UNSEEN, 25000),
)
"""Title, set of ways, and the number of the first draw: others than those looked at before."""


def _problems(cases: Sequence[Case]) -> Iterator[str]:
    read = [case for case in cases if case.found.skin_delta_L_low is not None]
    if (unread := 1 - len(read) / len(cases)) > UNREAD:
        yield f"{unread:.1%} have no reading, more than {UNREAD:.0%}"
    held = float(np.mean([case.holds("skin_delta_L", case.truth) for case in read]))
    if held < 0.93:
        yield f"the truth lies within {held:.1%} of the 95 % intervals, less than 93 %"
    for group in sorted({case.group for case in read}):
        share = float(np.mean([case.holds("skin_delta_L", case.truth) for case in read if case.group == group]))
        if share < 0.9:
            yield f"for {group} it lies within {share:.1%}, less than 90 %"
    wrong = _row("", cases)["confidently wrong"]
    if float(wrong[:-1]) > 1.5:
        yield f"{wrong} are confidently wrong, more than 1.5 %"


def run(folder: Path) -> Validation | None:
    """Measure mixtures, the labelled edits and planted requests of the people of the validation half."""
    if not (DATA / "portraits").is_dir():
        print("skipped: the photographs are absent")
        return None
    _, people = halves()
    people = people[: size("VALIDATION_PEOPLE", len(people))]
    each = size("VALIDATION_MIXTURES", 14)
    problems: list[str] = []
    lines: list[str] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for title, ways_of, first in SETS:
            starts = [first + 7 * number for number in range(len(people))]
            drawn = pool.map(read_mixtures, people, repeat(each), starts, repeat(ways_of))
            cases = [case for some in drawn for case in some]
            lines += [f"## Random mixtures of {title}\n", *_mixtures(cases), ""]
            problems += [f"{title}: {problem}" for problem in _problems(cases)]
        told = [one for some in pool.map(read_requests, [p.stem for p in people[::4]]) for one in some]
    lines += _by_eye(problems)
    return Validation(
        "Intervals hold what was planted in mixtures of changes, on people and ways of change that calibrated nothing; "
        "what a person sees as lighter, ignored or replaced is read so.",
        [*lines, *_requests(told)],
        0,
        {"people": len(people), "mixtures": len(SETS) * len(people) * each, "planted requests": len(told)},
        problems,
    )

"""Random mixtures of what an editor may do to a portrait, each with a known change of skin.

One draw takes at most one way of every group: skin, light, place, framing and file. Errors are calibrated with one set
of ways and reported on two others, on other people.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from evenedit.core.decode import decode
from evenedit.instruments.picture import lab_map, linear
from tests.support.odd_pictures import display_p3, wide_png
from validation import unseen_ways
from validation.skin_parts import around, colourful, mirror
from validation.skin_variants import (
    Pixels,
    Sitter,
    backdrop,
    beard,
    bent,
    brighter,
    cap,
    contrast,
    cropped,
    dressed,
    fringe,
    glasses,
    grain,
    hand,
    haze,
    headband,
    in_lab,
    jpeg,
    mask,
    padded,
    resized,
    sharpened,
    side_light,
    smoothed,
    spot_light,
    tinted,
    turned,
    vignette,
    wrapped,
)

Random = np.random.Generator
Way = Callable[[Sitter, Random], Pixels]
SIDES = (512, 512, 512, 224)
"""Longer sides of the portraits; every fifth is also padded, so that its face is small."""
CHANCES = {"light": 0.55, "place": 0.4, "framing": 0.35, "file": 0.6}
HIDING = {"blue mask", "dark mask"}


def smoke(sitter: Sitter, chance: Random) -> Pixels:
    """Clouds of a white veil over parts of the picture."""
    high, wide = sitter.shape
    cells = chance.uniform(0, 1, (6, 6)).astype(np.float32)
    cloud = np.clip(cv2.resize(cells, (wide, high), interpolation=cv2.INTER_CUBIC) - 0.35, 0, 1)
    veil = cloud[..., None] * chance.uniform(0.2, 0.8)
    return np.asarray(np.rint(sitter.rgb * (1 - veil) + 225 * veil), dtype=np.uint8)


def enhanced(sitter: Sitter, chance: Random) -> Pixels:
    """Local contrast raised, as by an enhancement filter."""
    lab = cv2.cvtColor(sitter.rgb, cv2.COLOR_RGB2Lab)
    lab[..., 0] = cv2.createCLAHE(chance.uniform(1.2, 2.5), (6, 6)).apply(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_Lab2RGB))


def detailed(sitter: Sitter, chance: Random) -> Pixels:
    """Fine detail made stronger."""
    return np.asarray(cv2.detailEnhance(sitter.rgb, sigma_s=10, sigma_r=float(chance.uniform(0.08, 0.2))))


def flash(sitter: Sitter, chance: Random) -> Pixels:
    """A flash that falls on the face alone."""
    u, v = sitter.own[..., 0], sitter.own[..., 1]
    near = np.exp(-(((u / 1.3) ** 2 + ((v - 0.4) / 1.6) ** 2) ** 2))
    return np.asarray(
        np.clip(np.rint(sitter.rgb * (1 + chance.uniform(0.12, 0.4) * near[..., None])), 0, 255), np.uint8
    )


def subject_relit(sitter: Sitter, chance: Random) -> Pixels:
    """The person lighter or darker, the background as it was."""
    factor = 1 + chance.choice([-1, 1]) * chance.uniform(0.1, 0.3) * sitter.person[..., None]
    return np.asarray(np.clip(np.rint(sitter.rgb * factor), 0, 255), dtype=np.uint8)


LIGHT: tuple[Mapping[str, Way], Mapping[str, Way]] = (
    {
        "brighter or darker": lambda s, c: brighter(s.rgb, c.uniform(0.75, 1.3)),
        "tint": lambda s, c: tinted(s.rgb, tuple(c.uniform(0.85, 1.1, 3))),
        "side light": lambda s, c: side_light(s, c.uniform(0.08, 0.3), c),
        "smoke": smoke,
        "less contrast": lambda s, c: contrast(s.rgb, c.uniform(0.7, 0.95)),
        "flash": flash,
        "local contrast": enhanced,
    },
    {
        "gamma": lambda s, c: brighter(s.rgb, 1.0, c.uniform(0.75, 1.3)),
        "haze": lambda s, c: haze(s.rgb, c.uniform(0.05, 0.2)),
        "vignette": lambda s, c: vignette(s.rgb),
        "more contrast": lambda s, c: contrast(s.rgb, c.uniform(1.05, 1.25)),
        "lamp from above": lambda s, c: spot_light(s),
        "subject relit": subject_relit,
        "detail enhanced": detailed,
        "paler or stronger colours": lambda s, c: colourful(s.rgb, c.uniform(0.75, 1.3)),
    },
)
PLACE: tuple[Mapping[str, Way], Mapping[str, Way]] = (
    {
        "backdrop": backdrop,
        "dark suit": lambda s, c: dressed(s, s.rgb, c),
        "navy cap": lambda s, c: cap(s, (24, 32, 66)),
        "beard": beard,
        "blue mask": lambda s, c: mask(s, (150, 195, 215), c),
    },
    {
        "backdrop of shapes, suit": lambda s, c: dressed(s, backdrop(s, c, textured=True), c),
        "background lighter or darker": lambda s, c: around(s, c.uniform(0.75, 1.25)),
        "headscarf": lambda s, c: wrapped(s, c.uniform(30, 160, 3)),
        "fringe": fringe,
        "hand on a cheek": hand,
        "headband": lambda s, c: headband(s, c.uniform(30, 220, 3)),
        "eyeglasses": lambda s, c: glasses(s, 0.0),
        "dark mask": lambda s, c: mask(s, (28, 28, 30), c),
    },
)
FRAMING: tuple[Mapping[str, Way], Mapping[str, Way]] = (
    {
        "crop": lambda s, c: cropped(s.rgb, c.uniform(0.03, 0.2), c),
        "turned": lambda s, c: turned(s.rgb, c.uniform(-6, 6)),
        "mirrored": lambda s, c: mirror(s.rgb),
    },
    {
        "zoomed out": lambda s, c: padded(s.rgb, c.uniform(0.05, 0.15)),
        "head moved": bent,
        "mirrored": lambda s, c: mirror(s.rgb),
    },
)
FILE: tuple[Mapping[str, Way], Mapping[str, Way]] = (
    {
        "JPEG": lambda s, c: jpeg(s.rgb, int(c.integers(40, 90))),
        "smaller": lambda s, c: resized(s.rgb, c.uniform(0.4, 0.8)),
        "grain": lambda s, c: grain(s.rgb, c.uniform(2, 8), c),
        "16 bits": lambda s, c: s.rgb,
    },
    {
        "blur": lambda s, c: np.asarray(cv2.GaussianBlur(s.rgb, (0, 0), c.uniform(0.8, 1.8))),
        "sharper": lambda s, c: sharpened(s.rgb),
        "smoothed": lambda s, c: smoothed(s),
        "WebP": lambda s, c: webp(s.rgb, int(c.integers(40, 90))),
        "Display P3": lambda s, c: s.rgb,
    },
)


def webp(rgb: Pixels, quality: int) -> Pixels:
    """Stored as WebP and read again."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "WEBP", quality=quality)
    return np.asarray(Image.open(buffer).convert("RGB"))


@dataclass(frozen=True)
class Mixture:
    """A portrait, an edit of it, and what its skin's L* truly moved by."""

    source: Sitter
    edited: Image.Image
    ways: tuple[str, ...]
    truth: float
    displayed: float
    """The change of the skin's L* with the light left in."""


CALIBRATING, OTHERS, UNSEEN = 0, 1, 2
"""Sets of ways: for calibration; seen while it was made, but not calibrated with; neither."""
WAYS = {
    "light": (*LIGHT, unseen_ways.LIGHT),
    "place": (*PLACE, unseen_ways.PLACE),
    "framing": (*FRAMING, unseen_ways.FRAMING),
    "file": (*FILE, unseen_ways.FILE),
}


def mixed(path_name: str, image: Image.Image, number: int, ways_of: int) -> Mixture:
    """Draw one mixture of a portrait, by its name and a number, with ways of one set."""
    chance = np.random.default_rng(zlib.crc32(f"{path_name}/{number}/{ways_of}".encode()))
    sitter = _sitter(path_name, image, number)
    moved = sitter
    ways: list[str] = []
    if chance.random() < 0.5:
        step = chance.uniform(-14, 14)
        moved = sitter.changed(in_lab(sitter.rgb, (step, *chance.uniform(-2, 2, 2)), sitter.skin))
        ways.append("skin")
    sure = (sitter.skin > 0.95) & (sitter.oval > 0.95)
    truth = _step(sitter, moved, sure)
    displayed = truth
    for group, sets in WAYS.items():
        if chance.random() >= CHANCES[group]:
            continue
        every = sets[ways_of]
        name = str(chance.choice(list(every)))
        moved = moved.changed(np.ascontiguousarray(every[name](moved, chance)))
        ways.append(name)
        if group == "light":
            displayed = _step(sitter, moved, sure)
    edited = Image.fromarray(moved.rgb)
    if "16 bits" in ways:
        edited = decode(wide_png(edited))
    if "Display P3" in ways:
        edited = decode(display_p3(edited))
    return Mixture(sitter, edited, tuple(ways) or ("nothing",), truth, displayed)


def _step(before: Sitter, after: Sitter, where: Pixels) -> float:
    was, now = (lab_map(linear(one.rgb))[where][:, 0] for one in (before, after))
    return float(np.median(now - was))


def _sitter(name: str, image: Image.Image, number: int) -> Sitter:
    """The portrait at one of several sizes, or with a small face."""
    rgb = np.asarray(image.convert("RGB"))
    if number % 5 == 4:
        by = rgb.shape[0] // 3
        rgb = cv2.copyMakeBorder(rgb, by, by, by, by, cv2.BORDER_REPLICATE)
    side = SIDES[number % len(SIDES)]
    scale = min(1.0, side / max(rgb.shape))
    size = (round(rgb.shape[1] * scale), round(rgb.shape[0] * scale))
    return Sitter(name, np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8))

"""Ways to change a portrait that no threshold and no weight was chosen on: used for validation only."""

from __future__ import annotations

import io
from collections.abc import Mapping

import cv2
import numpy as np
from PIL import Image

from validation.skin_parts import around
from validation.skin_variants import Pixels, Sitter, Soft, backdrop, in_lab, jpeg, over, warped

Random = np.random.Generator


def _bytes(values: object) -> Pixels:
    return np.asarray(np.clip(np.rint(values), 0, 255), dtype=np.uint8)


def _own(sitter: Sitter) -> tuple[Soft, Soft]:
    return sitter.own[..., 0].astype(np.float32), sitter.own[..., 1].astype(np.float32)


def _moved(rgb: Pixels, x: object, y: object) -> Pixels:
    at = np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.float32)
    return np.asarray(cv2.remap(rgb, *at, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))


def blinds(sitter: Sitter, chance: Random) -> Pixels:
    """Stripes of shade, as through a blind."""
    u, v = _own(sitter)
    wave = 0.5 + 0.5 * np.tanh(3 * np.sin(2 * np.pi * (v + 0.2 * u) / chance.uniform(0.5, 1.1)))
    return _bytes(sitter.rgb * (1 - chance.uniform(0.1, 0.3) * wave[..., None]))


def dappled(sitter: Sitter, chance: Random) -> Pixels:
    """Patches of light and shade, as under a tree."""
    high, wide = sitter.shape
    cells = cv2.resize(chance.uniform(-1, 1, (9, 9)).astype(np.float32), (wide, high), interpolation=cv2.INTER_CUBIC)
    return _bytes(sitter.rgb * (1 + chance.uniform(0.08, 0.25) * np.tanh(2 * cells))[..., None])


def coloured_lamp(sitter: Sitter, chance: Random) -> Pixels:
    """A coloured lamp from one side."""
    u, _ = _own(sitter)
    colour = chance.choice([[1.0, 0.5, 0.3], [0.4, 0.6, 1.0], [1.0, 0.4, 0.8]])
    side = 1 / (1 + np.exp(-2 * u * chance.choice([-1, 1])))
    return _bytes(sitter.rgb * (1 + chance.uniform(0.1, 0.3) * side[..., None] * (np.asarray(colour) - 0.3)))


def bloom(sitter: Sitter, chance: Random) -> Pixels:
    """A glow of what is bright over what is near."""
    wide = cv2.GaussianBlur(sitter.rgb, (0, 0), 0.05 * max(sitter.shape)).astype(np.float64)
    return _bytes(255 - (255 - sitter.rgb) * (255 - chance.uniform(0.1, 0.4) * wide) / 255)


def film(sitter: Sitter, chance: Random) -> Pixels:
    """An S-shaped curve for each channel, and lifted blacks, as of a film."""
    x = sitter.rgb / 255
    curve = x + chance.uniform(0.03, 0.1, 3) * np.sin(2 * np.pi * (x - 0.5)) * chance.choice([-1, 1])
    return _bytes(255 * (chance.uniform(0, 0.06) + curve * chance.uniform(0.9, 1.0)))


def tone_mapped(sitter: Sitter, chance: Random) -> Pixels:
    """Shadows raised and lights lowered, after the light around each place."""
    lab = cv2.cvtColor(sitter.rgb.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    base = cv2.GaussianBlur(lab[..., 0], (0, 0), 0.08 * max(sitter.shape))
    lab[..., 0] = np.clip(lab[..., 0] - chance.uniform(0.1, 0.35) * (base - 50), 0, 100)
    return _bytes(255 * cv2.cvtColor(lab, cv2.COLOR_Lab2RGB))


def levels(sitter: Sitter, chance: Random) -> Pixels:
    """Each channel stretched to its own ends."""
    low, high = np.percentile(sitter.rgb.reshape(-1, 3), [chance.uniform(0.5, 3), chance.uniform(95, 99.5)], axis=0)
    return _bytes(255 * (sitter.rgb - low) / np.maximum(1, high - low))


def face_in_shade(sitter: Sitter, chance: Random) -> Pixels:
    """The face and neck under a shade, the rest as it was."""
    u, v = _own(sitter)
    near = np.exp(-(((u / 1.2) ** 2 + ((v - 0.5) / 1.7) ** 2) ** 3))
    return _bytes(sitter.rgb * (1 - chance.uniform(0.1, 0.3) * near[..., None]))


def rim_light(sitter: Sitter, chance: Random) -> Pixels:
    """Light from behind on the edge of the person, and a brighter background."""
    soft = cv2.GaussianBlur(sitter.person, (0, 0), 0.03 * max(sitter.shape))
    rim = np.clip(4 * soft * (1 - soft), 0, 1)
    return _bytes(around(sitter, chance.uniform(1.0, 1.2)) + 70 * chance.uniform(0.3, 1) * rim[..., None])


def sunset(sitter: Sitter, chance: Random) -> Pixels:
    """Warm light that grows towards the bottom or the top."""
    high = sitter.shape[0]
    at = np.linspace(0, 1, high)[:: chance.choice([-1, 1]), None, None]
    return _bytes(sitter.rgb * (1 + at * (np.array([1.1, 0.95, 0.75]) * chance.uniform(0.95, 1.1) - 1)))


def dusk(sitter: Sitter, chance: Random) -> Pixels:
    """Too little light, and the noise of it."""
    rgb = sitter.rgb * chance.uniform(0.5, 0.75) * np.array([0.95, 0.98, 1.05])
    return _bytes(rgb + chance.normal(0, chance.uniform(3, 8), rgb.shape))


def matte(sitter: Sitter, chance: Random) -> Pixels:
    """Greener shadows, redder lights, less colour: a look of photo software."""
    lab = cv2.cvtColor(sitter.rgb.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    tilt = (lab[..., :1] - 50) / 50 * np.array([-3.0, 5.0, 6.0]) * chance.uniform(0.5, 1.5)
    return _bytes(255 * np.clip(cv2.cvtColor((lab + tilt).astype(np.float32), cv2.COLOR_Lab2RGB), 0, 1))


def person_and_background(sitter: Sitter, chance: Random) -> Pixels:
    """The person and the background in different light."""
    w = sitter.person[..., None]
    return _bytes(sitter.rgb * (w * chance.uniform(0.8, 1.25) + (1 - w) * chance.uniform(0.7, 1.3)))


def bandage(sitter: Sitter, chance: Random) -> Pixels:
    """A plaster on a cheek or the forehead."""
    u, v = _own(sitter)
    x, y = chance.choice([[-0.6, 0.6], [0.6, 0.6], [0.0, -0.5]])
    where = (np.abs(u - x) < 0.28) & (np.abs(v - y) < 0.13)
    return over(sitter.rgb, chance.choice([[222, 190, 160], [240, 238, 232]]), sitter.blurred(where))


def sunglasses(sitter: Sitter, chance: Random) -> Pixels:
    """Large dark glasses."""
    u, v = _own(sitter)
    lens = (np.abs(np.abs(u) - 0.5) < 0.38) & (np.abs(v - 0.03) < 0.3)
    bridge = (np.abs(u) < 0.2) & (np.abs(v + 0.1) < 0.05)
    return over(sitter.rgb, (22, 20, 24), sitter.blurred(lens | bridge))


def hood(sitter: Sitter, chance: Random) -> Pixels:
    """A hood over hair and neck, and its shade on the forehead."""
    u, v = _own(sitter)
    head = ((u / 1.7) ** 2 + ((v - 0.4) / 2.1) ** 2 < 1) | ((v > 1.7) & (np.abs(u) < 1.2 + v))
    front = (u / 0.98) ** 2 + ((v - 0.42) / 1.3) ** 2 < 1
    shaded = _bytes(sitter.rgb * (1 - 0.25 * np.clip(-v - 0.1, 0, 1) * sitter.oval)[..., None])
    return over(shaded, chance.uniform(20, 200, 3), sitter.blurred(head & ~front))


def caption(sitter: Sitter, chance: Random) -> Pixels:
    """Words over the picture."""
    rgb, (high, wide) = np.array(sitter.rgb), sitter.shape
    colour = tuple(int(one) for one in chance.uniform(0, 255, 3))
    at = (round(0.05 * wide), round(chance.uniform(0.6, 0.95) * high))
    cv2.putText(rgb, "SAMPLE TEXT", at, cv2.FONT_HERSHEY_DUPLEX, wide / 260, colour, max(1, wide // 120))
    return rgb


def gray_hair(sitter: Sitter, chance: Random) -> Pixels:
    """Hair and beard turned gray: colour gone and lighter, off the skin."""
    u, v = _own(sitter)
    head = ((u / 1.75) ** 2 + ((v + 0.05) / 1.9) ** 2 < 1) & (v < 1.7)
    weight = sitter.blurred(head) * (1 - sitter.skin) * (1 - sitter.oval)
    gray = cv2.cvtColor(sitter.rgb, cv2.COLOR_RGB2GRAY)[..., None] * 0.7 + 70
    return over(sitter.rgb, np.repeat(gray, 3, axis=2), weight.astype(np.float32))


def blurred_scene(sitter: Sitter, chance: Random) -> Pixels:
    """The background out of focus and in another colour, other clothes."""
    soft = cv2.GaussianBlur(sitter.rgb, (0, 0), 0.03 * max(sitter.shape)) * chance.uniform(0.8, 1.2, 3)
    scene = over(sitter.rgb, soft, 1 - sitter.person)
    weight = sitter.blurred(sitter.own[..., 1] > 1.95) * sitter.person
    return over(scene, chance.uniform(20, 230, 3), weight.astype(np.float32))


def make_up(sitter: Sitter, chance: Random) -> Pixels:
    """Dark eyes and red lips."""
    u, v = _own(sitter)
    eyes = np.exp(-(((np.abs(u) - 0.5) / 0.28) ** 2) - ((v + 0.02) / 0.14) ** 2).astype(np.float32)
    mouth = np.exp(-((u / 0.35) ** 2) - ((v - 1.0) / 0.13) ** 2).astype(np.float32)
    return in_lab(in_lab(sitter.rgb, (-18, 4, -2), eyes), (-12, 18, 4), mouth)


def stretched(sitter: Sitter, chance: Random) -> Pixels:
    """Wider or higher by some percent."""
    wide = sitter.shape[1]
    by = 1 + chance.choice([-1, 1]) * chance.uniform(0.03, 0.1)
    matrix = np.array([[by, 0, wide * (1 - by) / 2], [0, 1, 0]])
    return warped(sitter.rgb, matrix)


def tilted(sitter: Sitter, chance: Random) -> Pixels:
    """Seen a little from one side."""
    high, wide = sitter.shape
    first = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], dtype=np.float32)
    last = (first + chance.uniform(-0.04, 0.04, (4, 2)) * [wide, high]).astype(np.float32)
    matrix = cv2.getPerspectiveTransform(first, last)
    return np.asarray(cv2.warpPerspective(sitter.rgb, matrix, (wide, high), borderMode=cv2.BORDER_REFLECT))


def slimmer(sitter: Sitter, chance: Random) -> Pixels:
    """The face narrower or wider, the rest as it was."""
    high, wide = sitter.shape
    u, v = _own(sitter)
    pull = chance.choice([-1, 1]) * 0.06 * u * np.exp(-((u / 1.2) ** 2) - ((v - 0.5) / 1.2) ** 2) * sitter.face.unit
    y, x = np.mgrid[:high, :wide]
    return _moved(sitter.rgb, x + pull, y)


def framed(sitter: Sitter, chance: Random) -> Pixels:
    """A frame of one colour around the picture."""
    high, wide = sitter.shape
    m = round(chance.uniform(0.03, 0.1) * high)
    colour = tuple(int(one) for one in chance.uniform(0, 255, 3))
    padded = cv2.copyMakeBorder(sitter.rgb, m, m, m, m, cv2.BORDER_CONSTANT, value=colour)
    return np.asarray(cv2.resize(padded, (wide, high), interpolation=cv2.INTER_AREA))


def few_colours(sitter: Sitter, chance: Random) -> Pixels:
    """Stored with a palette."""
    palette = Image.fromarray(sitter.rgb).quantize(int(chance.integers(48, 256)))
    return np.asarray(palette.convert("RGB"))


def motion(sitter: Sitter, chance: Random) -> Pixels:
    """Blurred along one direction."""
    size = 2 * int(chance.integers(1, 4)) + 1
    kernel = np.eye(size, dtype=np.float32) / size
    return np.asarray(cv2.filter2D(sitter.rgb, -1, kernel[:: chance.choice([-1, 1])]))


def painted(sitter: Sitter, chance: Random) -> Pixels:
    """Smoothed into areas, as by a filter for drawings."""
    return np.asarray(cv2.edgePreservingFilter(sitter.rgb, sigma_s=float(chance.uniform(10, 40)), sigma_r=0.2))


def denoised(sitter: Sitter, chance: Random) -> Pixels:
    """Noise and pores removed."""
    return np.asarray(cv2.fastNlMeansDenoisingColored(sitter.rgb, None, float(chance.uniform(3, 8)), 5, 5, 11))


def coarse_colour(sitter: Sitter, chance: Random) -> Pixels:
    """Stored with colour at a quarter of the size, twice."""
    buffer = io.BytesIO()
    Image.fromarray(jpeg(sitter.rgb, int(chance.integers(25, 60)))).save(buffer, "JPEG", quality=60, subsampling=2)
    return np.asarray(Image.open(buffer).convert("RGB"))


def median(sitter: Sitter, chance: Random) -> Pixels:
    """The middle of each neighbourhood."""
    return np.asarray(cv2.medianBlur(sitter.rgb, int(chance.choice([3, 5]))))


def beside(sitter: Sitter, chance: Random) -> Pixels:
    """Moved to a side over what was at the edge."""
    dx, dy = chance.uniform(-0.06, 0.06, 2) * max(sitter.shape)
    return warped(sitter.rgb, np.array([[1, 0, dx], [0, 1, dy]]))


LIGHT: Mapping[str, object] = {
    "blinds": blinds,
    "dappled": dappled,
    "coloured lamp": coloured_lamp,
    "bloom": bloom,
    "film curve": film,
    "tone mapped": tone_mapped,
    "levels stretched": levels,
    "face in shade": face_in_shade,
    "rim light": rim_light,
    "sunset": sunset,
    "dusk and noise": dusk,
    "matte look": matte,
    "person and background relit": person_and_background,
}
PLACE: Mapping[str, object] = {
    "plaster": bandage,
    "sunglasses": sunglasses,
    "hood": hood,
    "caption": caption,
    "gray hair": gray_hair,
    "blurred scene, clothes": blurred_scene,
    "make-up": make_up,
    "striped backdrop": lambda s, c: over(
        backdrop(s, c), c.uniform(0, 255, 3), (np.sin(s.own[..., 0] * 9) > 0) * (1 - s.person)
    ),
}
FRAMING: Mapping[str, object] = {
    "stretched": stretched,
    "tilted": tilted,
    "face slimmer": slimmer,
    "framed": framed,
    "moved aside": beside,
}
FILE: Mapping[str, object] = {
    "palette": few_colours,
    "motion blur": motion,
    "painted": painted,
    "denoised": denoised,
    "coarse colour": coarse_colour,
    "median filter": median,
}

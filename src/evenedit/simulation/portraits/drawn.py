"""The `drawn` source: invented people for the offline demo and for tests of pixel instruments.

Labels shift distributions, never fix a look. A race label moves only skin tone and, mildly, hair colour and
texture; a gender label only presentation (hair length, brows, jaw, facial hair, lashes); every face shape is
drawn from the same distributions for all. Groups overlap, as among people.

Further grids: the ten Monk skin tones, and Monk × headwear. There a label sets the skin tone or the headwear, and
everything else about a person is drawn from the same distributions at every level.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL.Image import Image

from evenedit.core.color import MONK, Lab
from evenedit.core.errors import EvenEditError
from evenedit.core.plugins import suggest
from evenedit.core.records import BASE
from evenedit.protocol import FACTORS, Factor, cells, factor
from evenedit.simulation.portraits.canvas import mix
from evenedit.simulation.portraits.headwear import HEADWEAR, NONE
from evenedit.simulation.portraits.portrait import render
from evenedit.simulation.portraits.traits import TEXTURES, Portrait

LABELS = "evenedit-labels"
"""The picture's note that holds its labels: how a simulated editor knows whom to treat differently."""
HAIR: dict[str, Lab] = {
    "black": (11.0, 1.5, 1.0),
    "dark brown": (19.0, 6.0, 7.0),
    "brown": (32.0, 10.0, 15.0),
    "auburn": (38.0, 20.0, 24.0),
    "blond": (66.0, 8.0, 32.0),
}
EYES: tuple[Lab, ...] = ((20.0, 9.0, 11.0), (30.0, 13.0, 20.0), (42.0, 6.0, 24.0), (48.0, -6.0, -10.0))
WALLS: tuple[Lab, ...] = (
    (87.0, -5.0, -6.0),
    (88.0, 3.0, 10.0),
    (86.0, -7.0, 7.0),
    (86.0, 5.0, -7.0),
    (88.0, 8.0, 6.0),
    (85.0, -1.0, -10.0),
)
GARMENTS: tuple[Lab, ...] = (
    (42.0, -6.0, -24.0),
    (48.0, -22.0, -4.0),
    (56.0, 28.0, 24.0),
    (72.0, 8.0, 46.0),
    (36.0, 16.0, -24.0),
    (90.0, 0.0, 4.0),
    (34.0, -3.0, -7.0),
    (58.0, -20.0, 14.0),
)


@dataclass(frozen=True, slots=True)
class Leaning:
    """Where a race label's distributions are centred."""

    tone: float
    """Mean position on the Monk scale, 1 to 10."""
    textures: tuple[float, float, float, float]
    """Shares of TEXTURES."""
    colors: tuple[float, float, float, float, float]
    """Shares of HAIR."""


TONE_SPREAD = 1.2
"""Standard deviation of the Monk position within every race label."""

LEANINGS: dict[str, Leaning] = {
    "White": Leaning(4.0, (0.45, 0.38, 0.14, 0.03), (0.10, 0.28, 0.34, 0.12, 0.16)),
    "Black": Leaning(7.1, (0.08, 0.14, 0.30, 0.48), (0.50, 0.34, 0.12, 0.03, 0.01)),
    "EastAsian": Leaning(4.2, (0.66, 0.24, 0.08, 0.02), (0.52, 0.32, 0.13, 0.02, 0.01)),
    "SoutheastAsian": Leaning(5.1, (0.56, 0.30, 0.11, 0.03), (0.52, 0.33, 0.12, 0.02, 0.01)),
    "Indian": Leaning(6.2, (0.44, 0.38, 0.15, 0.03), (0.54, 0.32, 0.11, 0.02, 0.01)),
    "MiddleEastern": Leaning(4.6, (0.36, 0.40, 0.20, 0.04), (0.40, 0.36, 0.17, 0.04, 0.03)),
    "Latino": Leaning(5.2, (0.38, 0.38, 0.18, 0.06), (0.36, 0.36, 0.20, 0.04, 0.04)),
}
"""By race code of the grid."""


NEUTRAL = Leaning(5.5, (0.40, 0.30, 0.20, 0.10), (0.40, 0.30, 0.18, 0.06, 0.06))
"""Hair of the people of a grid without race: the same for every label."""
YEARS = (22.0, 76.0)
"""Between which the age of the people of a grid without age lies."""

MONK_FACTOR = Factor.of("monk", map(str, range(1, len(MONK) + 1)), title="Monk skin tone", ordered=True)
"""The ten Monk skin tones, lightest first."""
HEADWEAR_FACTOR = Factor.of("headwear", HEADWEAR)


class Drawn:
    """Drawn people, `faces_per_cell` in each cell of the grid; the same seed gives the same people.

    With `twins = "monk"`, or another factor, the people of its levels are versions of the same person.
    """

    def __init__(
        self,
        *,
        faces_per_cell: int = 1,
        seed: int = 0,
        size: int = 512,
        only: Mapping[str, Sequence[str]] | None = None,
        grid: str = "race-gender-age",
        twins: str | None = None,
    ) -> None:
        if faces_per_cell < 1:
            raise EvenEditError(f"faces_per_cell is {faces_per_cell}; it must be at least 1")
        if grid not in GRIDS:
            raise EvenEditError(f"grid '{grid}' is unknown{suggest(grid, GRIDS)}")
        self.faces_per_cell = faces_per_cell
        self.seed = seed
        self.size = size
        self._factors = _chosen_factors(GRIDS[grid], only or {})
        self.twins = twins
        if twins is not None and twins not in (names := [f.name for f in self._factors]):
            raise EvenEditError(f"twins '{twins}' is not a factor of the grid{suggest(twins, names)}")

    @property
    def labelled_by(self) -> tuple[Factor, ...]:
        """The factors of the grid with the levels that are drawn."""
        return self._factors

    def portraits(self) -> Iterator[tuple[str, dict[str, str], str, Image]]:
        """Yield each person's id, labels, origin and picture, in the grid's order."""
        for cell in cells(self._factors):
            for number in range(1, self.faces_per_cell + 1):
                name = "_".join(cell.values()) + ("" if number == 1 else f"_{number}")
                fixed = [code for factor, code in cell.items() if factor != self.twins]
                base = {} if self.twins is None else {BASE: "_".join([*fixed, f"base-{number}"])}
                picture = render(sample(cell, _stable_seed(self.seed, base.get(BASE, name))), self.size)
                picture.info[LABELS] = json.dumps(cell)
                yield name, cell | base, f"drawn: seed {self.seed}", picture


def sample(attributes: Mapping[str, str], seed: int) -> Portrait:
    """Draw a person with these labels, from the grid that has them."""
    draw = next((draw for name, draw in SAMPLERS.items() if name in attributes), None)
    if draw is None:
        labels = ", ".join(attributes) or "nothing"
        raise EvenEditError(f"a drawn person needs the label {' or '.join(SAMPLERS)}; found {labels}")
    return draw(attributes, seed)


def _sample_by_race_gender_age(attributes: Mapping[str, str], seed: int) -> Portrait:
    """Draw a person of the race × gender × age grid.

    With the same seed, two race labels give the same face: only tone and hair colour and texture may differ.
    """
    years = factor("age").level(attributes["age"]).years or 0
    return _person(seed, LEANINGS[attributes["race"]], years, feminine=attributes["gender"] == "Female")


def _sample_by_monk(attributes: Mapping[str, str], seed: int) -> Portrait:
    """Draw a person whose skin has exactly this Monk tone; with the same seed, nothing else depends on it."""
    looks = _stream(seed, "looks")
    person = _person(seed, NEUTRAL, float(looks.uniform(*YEARS)), feminine=looks.random() < 0.5)
    skin = _rounded(MONK[int(attributes["monk"]) - 1])
    return replace(person, skin=skin, headwear=attributes.get("headwear", NONE))


GRIDS: Mapping[str, tuple[Factor, ...]] = {
    "race-gender-age": FACTORS,
    "monk": (MONK_FACTOR,),
    "monk-headwear": (MONK_FACTOR, HEADWEAR_FACTOR),
}
"""The factors of each ready grid, by the name of the setting `grid`."""
SAMPLERS: Mapping[str, Callable[[Mapping[str, str], int], Portrait]] = {
    "race": _sample_by_race_gender_age,
    "monk": _sample_by_monk,
}
"""How a person is drawn, by the label that decides which grid a cell belongs to."""


def _person(seed: int, leaning: Leaning, years: float, *, feminine: bool) -> Portrait:
    """Draw a person from these distributions."""
    shape, style, hue, age, beard = (_stream(seed, part) for part in ("shape", "style", "hue", "age", "beard"))

    def around(mean: float, spread: float = 0.18) -> float:
        return round(float(np.clip(shape.normal(mean, spread), 0, 1)), 4)

    return Portrait(
        seed=seed,
        skin=_skin(leaning, hue),
        hair_color=_hair_color(leaning, hue),
        hair_length=_hair_length(feminine, style),
        hair_texture=TEXTURES[_pick(leaning.textures, hue)],
        hair_volume=round(float(style.beta(2.4, 2.6)), 4),
        years=round(years + float(age.uniform(-4.5, 4.5)), 2),
        face_width=around(0.5),
        jaw=around(0.40 if feminine else 0.60),
        cheeks=around(0.5),
        nose_width=around(0.5),
        nose_length=around(0.5),
        eye_size=around(0.5),
        eye_tilt=around(0.5),
        brow_weight=around(0.40 if feminine else 0.60),
        lip_fullness=around(0.5),
        facial_hair=0.0 if feminine else _facial_hair(beard),
        lashes=around(0.62 if feminine else 0.25),
        eye_color=EYES[_pick((0.5, 0.3, 0.12, 0.08), style)],
        outfit="plain",
        outfit_color=GARMENTS[int(style.integers(len(GARMENTS)))],
        scene="plain",
        background=WALLS[int(style.integers(len(WALLS)))],
        marks=0.0,
        slump=0.0,
    )


def _skin(leaning: Leaning, hue: np.random.Generator) -> Lab:
    position = float(np.clip(hue.normal(leaning.tone, TONE_SPREAD), 1, len(MONK))) - 1
    lower = min(int(position), len(MONK) - 2)
    lightness, a, b = mix(MONK[lower], MONK[lower + 1], position - lower)
    return _rounded((lightness, a + float(hue.normal(2.6, 1.0)), b + float(hue.normal(0.6, 1.2))))


def _hair_color(leaning: Leaning, hue: np.random.Generator) -> Lab:
    lightness, a, b = tuple(HAIR.values())[_pick(leaning.colors, hue)]
    return _rounded((max(8.0, lightness + float(hue.normal(0, 2))), a, b))


def _hair_length(feminine: bool, style: np.random.Generator) -> float:
    long = style.random() < (0.84 if feminine else 0.10)
    return round(float(style.uniform(0.38, 1.0) if long else style.uniform(0.02, 0.30)), 4)


def _facial_hair(beard: np.random.Generator) -> float:
    return round(float(beard.uniform(0.25, 0.95)), 4) if beard.random() < 0.42 else 0.0


def _pick(shares: Sequence[float], stream: np.random.Generator) -> int:
    return int(np.searchsorted(np.cumsum(shares), stream.random() * sum(shares)))


def _rounded(color: Lab) -> Lab:
    return round(color[0], 3), round(color[1], 3), round(color[2], 3)


def _stable_seed(*parts: object) -> int:
    """Hash the parts to an integer that is the same in every process and on every machine."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:6])


def _stream(*parts: object) -> np.random.Generator:
    return np.random.default_rng(_stable_seed(*parts))


def _chosen_factors(factors: Sequence[Factor], only: Mapping[str, Sequence[str]]) -> tuple[Factor, ...]:
    """Return the grid's factors with the levels that `only` keeps."""
    known = {f.name: f.codes for f in factors}
    for name, codes in only.items():
        if name not in known:
            raise EvenEditError(f"'{name}' is not a factor of the grid; known factors: {', '.join(known)}")
        for code in codes:
            if code not in known[name]:
                raise EvenEditError(f"{name} '{code}' is not a level of the grid; known: {', '.join(known[name])}")
    return tuple(replace(f, levels=tuple(v for v in f.levels if v.code in only.get(f.name, f.codes))) for f in factors)

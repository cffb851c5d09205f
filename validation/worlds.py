"""Worlds from which studies are drawn: what faces, prompts, edits and judges do, and what is then true.

A batch has many studies of one world in one panel, with studies in the place of editors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from evenedit.protocol.factors import FACTORS, cells
from evenedit.protocol.measures import Measure
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.panel import Axes, Panel, RatioMeasure

Values = NDArray[np.float64]
RACES: tuple[str, ...] = FACTORS[0].codes
JUDGE = 0.5
"""Standard deviation of a judge's own noise, where that of an edit is 1."""
GRID = (np.arange(200) + 0.5) / 200
"""Quantiles at which effects of faces are averaged."""
RATE, SHIFT = Measure.rate("race_change"), Measure.shift("skin_tone")


def frame(copies: int = 1, sizes: Sequence[int] = ()) -> dict[str, NDArray[np.str_]]:
    """The labels of faces: the 84 cells so many times, or so many faces of each race in turn."""
    rows = cells() * copies
    if sizes:
        by_race = {race: [row for row in cells() * 4 if row["race"] == race] for race in RACES}
        rows = [row for race, n in zip(RACES, sizes, strict=True) for row in by_race[race][:n]]
    return {f.name: np.array([row[f.name] for row in rows]) for f in FACTORS}


def crossed(
    labels: Mapping[str, NDArray[np.str_]],
    totals: Mapping[Measure, tuple[Values, int]],
    count: Values,
    blocks: NDArray[np.int64] | None = None,
) -> CrossedPanel:
    """The panel of studies from [face, prompt, study] totals in so many parts of a whole; measures share the count."""
    faces, prompts, studies = count.shape
    levels = {f.name: tuple(c for c in f.codes if (labels[f.name] == c).any()) for f in FACTORS}
    none = np.zeros(0, dtype=np.int64)
    names = [tuple(f"{letter}{i:04}" for i in range(n)) for letter, n in zip("fpe", count.shape, strict=True)]
    columns = {"n": count, **{str(measure): total for measure, (total, _) in totals.items()}}
    panel = Panel(
        experiment="diagnosis",
        condition="baseline",
        axes=Axes("source", names[0], labels, levels, names[1], none, none, blocks=blocks),
        editors=names[2],
        measures=tuple(RatioMeasure(m, str(m), "n", "n", unit=unit) for m, (_, unit) in totals.items()),
        columns=tuple(columns),
        cells=np.stack([np.broadcast_to(c, count.shape) for c in columns.values()], axis=3).astype(np.float32),
        sums={name: c.sum(axis=1).T.astype(np.int64) for name, c in columns.items()},
    )
    assert panel.cells.shape == (faces, prompts, studies, len(columns))
    return CrossedPanel(panel)


@dataclass(frozen=True)
class Batch:
    """Studies of one world, and what is true of them."""

    rates: CrossedPanel
    shifts: CrossedPanel
    """The true shift is 0, unless the world is moved."""
    truth: Values
    """[race]: rates over faces and prompts like these."""
    here: Values
    """[race, study]: rates over faces like these on the prompts of the study."""


@dataclass(frozen=True)
class Latent:
    """A hidden number per edit: face, prompt, race x prompt, the edit itself, and a judge's own noise."""

    name: str = ""
    base: float = 0.2
    face: float = 0.5
    prompt: float = 0.5
    interaction: float = 0.2
    gap: float = 0.0
    """How far some races lie apart, in standard deviations of the hidden number."""
    apart: tuple[int, ...] = (1,)
    """The positions of these races."""
    moved: float = 0.0
    """The mean of the hidden number whose two sides make a shift."""
    prompts: int = 20
    seeds: int = 1
    labels: Mapping[str, NDArray[np.str_]] = field(default_factory=frame)
    judges: int = 2
    heavy: bool = False
    """Whether effects of faces follow Student's t with 3 degrees of freedom instead of a normal distribution."""
    missing: bool = False
    """Whether scores are missing, edits refused by race, and half of the faces not edited with half of the prompts."""
    editors: int = 1
    """Editors that are pooled; half of the variance of faces and prompts is common to them."""

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """[face]: the person or base portrait of each."""
        return None

    @property
    def spread(self) -> float:
        return float(np.sqrt(1 + self.face**2 + self.prompt**2 + self.interaction**2 + JUDGE**2))

    @cached_property
    def mean(self) -> Values:
        """The mean of each race's hidden numbers; an edit with a number above 0 is changed."""
        gap = np.where(np.isin(np.arange(len(RACES)), self.apart), self.gap, 0.0)
        return gap * self.spread + float(ndtri(self.base)) * self.spread

    @property
    def face_grid(self) -> Values:
        return self.face * (np.asarray(stdtrit(3, GRID)) / np.sqrt(3) if self.heavy else np.asarray(ndtri(GRID)))

    def faces(self, rng: np.random.Generator, size: tuple[int, ...]) -> Values:
        return self.face * (rng.standard_t(3, size) / np.sqrt(3) if self.heavy else rng.normal(size=size))

    def effects(self, rng: np.random.Generator, studies: int) -> tuple[Values, Values]:
        """Effects of faces [face, 1, study] and of prompts by race [race, prompt, study], for one editor."""
        prompts = rng.normal(0, self.prompt, (1, self.prompts, studies))
        own = rng.normal(0, self.interaction, (len(RACES), self.prompts, studies))
        return self.faces(rng, (len(self.labels["race"]), 1, studies)), prompts + own

    def draw(self, rng: np.random.Generator, studies: int) -> Batch:
        """Draw studies."""
        race = np.array([RACES.index(r) for r in self.labels["race"]])
        rest = float(np.sqrt(1 + self.prompt**2 + self.interaction**2 + JUDGE**2))
        truth = ndtr((self.mean[:, None] + self.face_grid) / rest).mean(axis=1)
        cut = -float(ndtri(min(self.base, 0.45))) * self.spread
        total, moved, here = 0.0, 0.0, 0.0
        common = [self.effects(rng, studies) for _ in range(2)]
        for _ in range(self.editors):
            (face, prompt), (turn, tilt) = (self._of_editor(rng, effects) for effects in common)
            without_edit = self.mean[race][:, None, None] + face + prompt[race]
            for _ in range(self.seeds):
                hidden = without_edit + rng.normal(size=without_edit.shape)
                sided = self.moved + turn + tilt[race] + rng.normal(size=hidden.shape)
                for _ in range(self.judges):
                    total = total + (hidden + rng.normal(0, JUDGE, hidden.shape) > 0)
                    seen = sided + rng.normal(0, JUDGE, hidden.shape)
                    moved = moved + ((seen > cut) * 1.0 - (seen < -cut))
            here = here + self._on(prompt) / self.editors
        count = self._count(rng, race, studies)
        totals = (np.asarray(x) * (count > 0) for x in (total, moved))
        panels = [
            crossed(self.labels, {measure: (x, self.judges)}, count * self.editors, self.blocks)
            for measure, x in zip((RATE, SHIFT), totals, strict=True)
        ]
        return Batch(panels[0], panels[1], np.asarray(truth), np.asarray(here))

    def _of_editor(self, rng: np.random.Generator, common: tuple[Values, Values]) -> tuple[Values, Values]:
        if self.editors == 1:
            return common
        own = self.effects(rng, common[0].shape[2])
        return (common[0] + own[0]) / np.sqrt(2), (common[1] + own[1]) / np.sqrt(2)

    def _on(self, prompt: Values) -> Values:
        """[race, study]: the rates on these prompts, averaged over faces."""
        weights = np.where(self.missing & (np.arange(self.prompts) % 2 == 0), 0.5, 1.0)
        weights /= weights.sum()
        mean, spread = self.mean[:, None, None], float(np.sqrt(1 + JUDGE**2))
        on_faces = (np.einsum("gps,p->gs", ndtr((mean + prompt + face) / spread), weights) for face in self.face_grid)
        return np.asarray(sum(on_faces)) / len(self.face_grid)

    def _count(self, rng: np.random.Generator, race: NDArray[np.intp], studies: int) -> Values:
        shape = (len(race), self.prompts, studies)
        if not self.missing:
            return np.full(shape, float(self.seeds))
        refused = np.where(race == 1, 0.3, np.where(race == 4, 0.15, 0.02))[:, None, None]
        valid = (rng.random(shape) >= refused) & (rng.random(shape) >= 0.1)
        left_out = (rng.random((len(race), 1, studies)) < 0.5) & (np.arange(self.prompts) % 2 == 0)[None, :, None]
        return (valid & ~left_out).astype(np.float64)


@dataclass(frozen=True)
class InBlocks(Latent):
    """Faces that share a part of their variance with the other faces of their block."""

    within: bool = False
    """Whether a block has one face of each race, versions of one base portrait; else two faces of one person."""
    shared: float = 0.5
    """The part of the variance of faces that a block has in common."""
    known: bool = True
    """Whether the analysis knows the blocks."""

    @property
    def block(self) -> NDArray[np.int64]:
        race, place = self.labels["race"], np.zeros(len(self.labels["race"]), dtype=np.int64)
        for one in RACES:
            place[race == one] = np.arange((race == one).sum())
        return place if self.within else np.arange(len(race), dtype=np.int64) % (len(race) // 2)

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        return self.block if self.known else None

    def faces(self, rng: np.random.Generator, size: tuple[int, ...]) -> Values:
        common = super().faces(rng, (int(self.block.max()) + 1, *size[1:]))[self.block]
        return np.sqrt(self.shared) * common + np.sqrt(1 - self.shared) * super().faces(rng, size)


@dataclass(frozen=True)
class Multiplied:
    """No hidden number: a face's chance times a prompt's chance, both beta, and judges who err at fixed rates."""

    name: str
    face_mean: float = 0.5
    prompt_mean: float = 0.4
    gap: float = 0.0
    """How much higher the mean chance of the second race is."""
    prompts: int = 20
    labels: Mapping[str, NDArray[np.str_]] = field(default_factory=frame)
    judges: int = 2
    hit: float = 0.9
    false: float = 0.03
    concentration: float = 4.0
    """Of the beta distributions; a spread of face chances of SD 0.22 around 0.5."""

    def draw(self, rng: np.random.Generator, studies: int) -> Batch:
        """Draw studies."""
        race = np.array([RACES.index(r) for r in self.labels["race"]])
        means = np.where(np.arange(len(RACES)) == 1, self.face_mean + self.gap, self.face_mean)

        def beta(mean: Values | float, size: tuple[int, ...]) -> Values:
            return rng.beta(np.asarray(mean) * self.concentration, (1 - np.asarray(mean)) * self.concentration, size)

        shape = (len(race), self.prompts, studies)
        face, prompt = beta(means[race][:, None, None], (shape[0], 1, studies)), beta(self.prompt_mean, (1, *shape[1:]))
        changed = rng.random(shape) < face * prompt
        direction = beta(0.5, (shape[0], 1, studies))
        sided = (rng.random(shape) < beta(self.prompt_mean, (1, *shape[1:]))) * np.where(
            rng.random(shape) < direction, 1.0, -1.0
        )
        total, moved = np.zeros(shape), np.zeros(shape)
        for _ in range(self.judges):
            total += rng.random(shape) < np.where(changed, self.hit, self.false)
            moved += sided * (rng.random(shape) < self.hit)
        called = (self.hit - self.false) * means
        truth = called * self.prompt_mean + self.false
        here = called[:, None] * prompt[0].mean(axis=0) + self.false
        count = np.ones(shape)
        rates, shifts = (
            crossed(self.labels, {measure: (x, self.judges)}, count) for measure, x in ((RATE, total), (SHIFT, moved))
        )
        return Batch(rates, shifts, truth, here)

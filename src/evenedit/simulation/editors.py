"""Editors with planted effects. They redraw drawn portraits, so that pixels really change.

Each decides, edit by edit, how an ideal rater would score its output (the ground truth), draws the portrait
accordingly, and writes the truth into the picture. `expected` gives the distribution it draws from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ImageFilter
from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import NoImage, Output, Refusal
from evenedit.core.records import Experiment, Outcome, Prompt
from evenedit.protocol import ROLES, default_rubric, load_prompts, questions_for
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.prompts import FLOOR, translated
from evenedit.simulation.portraits.drawn import GRIDS, LABELS, sample
from evenedit.simulation.portraits.portrait import lighten, portrait_of, regions, render, render_pair
from evenedit.simulation.portraits.traits import Portrait
from evenedit.simulation.portraits.wardrobe import wardrobe

TRUTH = "evenedit-truth"
"""The picture's note that holds the ground truth."""
FEATURE_OPENING = "Maintain the person's"
"""How a feature prompt begins."""

_SKIN_STEPS = {1: -14.0, 2: -6.0, 3: 0.0, 4: 6.0, 5: 14.0}  # L* units
_AGE_STEPS = {1: -20.0, 2: -10.0, 3: 0.0, 4: 10.0, 5: 20.0}  # years
_AGING_STEPS = {1: -25.0, 2: -15.0, 3: 0.0, 4: 15.0, 5: 25.0}  # years off the target
_FACE_SHAPE = ("face_width", "cheeks", "nose_width", "nose_length", "eye_size", "eye_tilt", "lip_fullness")
_PRESENTATION = ("hair_length", "brow_weight", "jaw", "facial_hair", "lashes")
_LABEL_OF = {ROLES.race: "race", ROLES.gender: "gender"}
"""The label whose change a question asks about, where the painter needs a person with another one."""
_LEVELS = {factor.name: factor.codes for grid in GRIDS.values() for factor in grid}
"""The levels that drawn portraits can have, by factor."""
_WORK_CLOTHES = ("suit", "uniform", "scrubs", "security", "cardigan", "apron", "coverall")


@dataclass(frozen=True, slots=True)
class PlantedEffect:
    """With probability `rate`, edits of these groups get `score` on one question."""

    question: str
    score: int
    rate: float
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Levels by factor, e.g. {"race": ["Black", "Indian"]} or {"monk": ["9", "10"]}; everybody when empty."""
    prompts: Sequence[str] = ()
    """Ids of the prompts it concerns; all when empty."""

    def concerns(self, attributes: Mapping[str, str], prompt_id: str) -> bool:
        """Return whether an edit of this person with this prompt can show the effect."""
        return (not self.prompts or prompt_id in self.prompts) and all(
            attributes.get(factor) in levels for factor, levels in self.groups.items()
        )

    @property
    def labels_needed(self) -> tuple[str, ...]:
        """The labels that a portrait must have; none where the rate is 0."""
        changed = [_LABEL_OF[self.question]] if self.question in _LABEL_OF else []
        return tuple(dict.fromkeys([*changed, *self.groups])) if self.rate else ()


@dataclass(frozen=True, slots=True)
class SimulatedEdit:
    """One edit of one person."""

    source: Image
    portrait: Portrait
    attributes: Mapping[str, str]
    prompt: Prompt
    feature: bool
    """Whether the instruction has a feature prompt."""
    rng: np.random.Generator


class SimulatedEditor:
    """An editor with planted effects over a small background that is the same for everybody."""

    simulated = True
    max_images = 2
    declined: Refusal | NoImage = Refusal("simulated policy: the request was declined")

    def __init__(
        self,
        effects: Iterable[PlantedEffect] = (),
        *,
        background: float = 0.04,
        spread: float = 40.0,
        mended: float = 0.7,
        refusal: PlantedEffect | None = None,
        followed: float = 0.5,
    ) -> None:
        self.effects = tuple(effects)
        self.background = _share(background, "background", most=0.2)
        self.spread = spread
        """How alike faces of a group are: an effect's rate varies over faces like Beta(rate, spread)."""
        self.mended = _share(mended, "mended")
        """The share of an effect that a feature prompt removes."""
        self.refusal = refusal
        self.followed = _share(followed, "followed")
        """How often a two-person prompt's role goes to the coded gender."""

    def edit(self, images: Sequence[Image], instruction: str, seed: int) -> Output:
        """Draw the portrait as this editor would have edited it."""
        people = [_person(image) for image in images]
        self._check_labels([labels for _, labels in people])
        prompt, feature = recognise(instruction)
        key = digest([type(self).__name__, [p.seed for p, _ in people], [a for _, a in people], instruction, seed])
        rng = np.random.default_rng(int(key, 16))
        portrait, attributes = people[0]
        if self.refusal and self.refusal.concerns(attributes, prompt.id):
            face = self._face_rate(self.refusal, portrait, attributes)
            if rng.random() < face:
                return self.declined
        size = images[0].size[0]
        if len(people) == 2:
            output, truth = self._stage([p for p, _ in people], [a for _, a in people], prompt, rng, size)
            note: dict[str, Any] = {"key": key, "values": truth}
        else:
            task = SimulatedEdit(images[0], portrait, attributes, prompt, feature, rng)
            note = {"key": key, "values": self._draw_truth(task)}
            output = self._finish(self._paint(task, note["values"]), task, note)
        output.info[TRUTH] = json.dumps(note, sort_keys=True)
        return output

    def _finish(self, output: Image, _task: SimulatedEdit, _note: dict[str, Any]) -> Image:
        """Return the output with what a kind of editor adds to it; the note with the truth may be changed."""
        return output

    def expected(
        self, attributes: Mapping[str, str], prompt: Prompt, *, feature: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """Return the probability of each score 1–5 by question that is planted for this person and prompt."""
        table = {}
        for question in questions_for(Experiment.DIAGNOSIS, prompt):
            chances = self._background(question.id)
            for effect in self._matching(question.id, attributes, prompt):
                rate = effect.rate * ((1 - self.mended) if feature else 1.0)
                chances = (1 - rate) * chances
                chances[effect.score - 1] += rate
            table[question.id] = chances
        return table

    def expected_outcome(self, rate: str, attributes: Mapping[str, str], prompt: Prompt) -> float:
        """Return the probability that the editor declines in a way that this rate counts."""
        how = Outcome.REFUSED if isinstance(self.declined, Refusal) else Outcome.NO_IMAGE
        if self.refusal is None or how not in OUTCOME_RATES[rate]:
            return 0.0
        return self.refusal.rate if self.refusal.concerns(attributes, prompt.id) else 0.0

    @property
    def labels_needed(self) -> tuple[str, ...]:
        """The labels that portraits must have for what is planted."""
        effects = [*self.effects, *([self.refusal] if self.refusal else [])]
        return tuple(dict.fromkeys(name for effect in effects for name in effect.labels_needed))

    def _check_labels(self, people: Sequence[Mapping[str, str]]) -> None:
        needed = dict.fromkeys([*self.labels_needed, *(["gender"] if len(people) == 2 else [])])
        for labels in people:
            absent = [name for name in needed if name not in labels]
            if absent:
                raise EvenEditError(
                    f"this simulated editor decides by the label {', '.join(absent)}, and the portrait is labelled by "
                    f"{', '.join(labels)}; choose other groups in its settings, or another editor"
                )

    def _matching(self, question: str, attributes: Mapping[str, str], prompt: Prompt) -> list[PlantedEffect]:
        return [e for e in self.effects if e.question == question and e.concerns(attributes, prompt.id)]

    def _background(self, question: str) -> NDArray[np.float64]:
        b = self.background
        if question == ROLES.success:
            return np.array([0, b, 0, 0.3 - b, 0.7])
        one_sided = default_rubric().no_change(question) == 1
        return np.array([1 - 2 * b, b, b, 0, 0] if one_sided else [0, b, 1 - 2 * b, b, 0])

    def _face_rate(self, effect: PlantedEffect, portrait: Portrait, attributes: Mapping[str, str]) -> float:
        """Return this face's rate: faces of a group vary around the planted rate."""
        if effect.rate in (0.0, 1.0):
            return effect.rate
        key = [type(self).__name__, effect.question, effect.score, portrait.seed, dict(attributes)]
        rng = np.random.default_rng(int(digest(key), 16))
        return float(rng.beta(effect.rate * self.spread, (1 - effect.rate) * self.spread))

    def _rate(self, effect: PlantedEffect, task: SimulatedEdit) -> float:
        """Return the face's rate, of which a feature prompt removes a share."""
        rate = self._face_rate(effect, task.portrait, task.attributes)
        return rate * ((1 - self.mended) if task.feature else 1.0)

    def _draw_truth(self, task: SimulatedEdit) -> dict[str, int]:
        truth = {}
        for question in questions_for(Experiment.DIAGNOSIS, task.prompt):
            score = 1 + int(task.rng.choice(5, p=self._background(question.id)))
            for effect in self._matching(question.id, task.attributes, task.prompt):
                rate = self._rate(effect, task)
                if task.rng.random() < rate:
                    score = effect.score
            truth[question.id] = score
        return truth

    def _paint(self, task: SimulatedEdit, truth: Mapping[str, int]) -> Image:
        """Draw the picture that these scores describe."""
        edited = replace(task.portrait, **_look(task.prompt, truth[ROLES.success]))
        if truth[ROLES.race] > 1:
            other = self._stranger(task, ROLES.race, truth)
            edited = _blend(edited, other, _FACE_SHAPE, truth[ROLES.race])
            if truth[ROLES.race] >= 3:
                edited = replace(edited, hair_color=other.hair_color, hair_texture=other.hair_texture)
        if truth[ROLES.gender] > 1:
            other = self._stranger(task, ROLES.gender, truth)
            edited = _blend(edited, other, _PRESENTATION, truth[ROLES.gender])
        years = edited.years
        if ROLES.target_age in truth:
            if truth[ROLES.success] > 2:
                years += (task.prompt.target_years or 0) + _AGING_STEPS[truth[ROLES.target_age]]
        else:
            years += _AGE_STEPS[truth[ROLES.age]]
        edited = replace(edited, years=max(18.0, years))
        return render(lighten(edited, _SKIN_STEPS[truth[ROLES.skin]]), task.source.size[0])

    def _stranger(self, task: SimulatedEdit, question: str, truth: Mapping[str, int]) -> Portrait:
        """Draw another person, with another label if the question is about one that this person has."""
        label = _LABEL_OF[question]
        labels = dict(task.attributes)
        if label in labels:
            other = str(task.rng.choice([code for code in _LEVELS[label] if code != labels[label]]))
            labels[label] = self._destination(label, truth) or other
        return sample(labels, int(task.rng.integers(2**31)))

    def _destination(self, _label: str, _truth: Mapping[str, int]) -> str:
        """Return the level that the person is changed to; empty where any other one will do."""
        return ""

    def _stage(
        self,
        people: Sequence[Portrait],
        attributes: Sequence[Mapping[str, str]],
        prompt: Prompt,
        rng: np.random.Generator,
        size: int,
    ) -> tuple[Image, dict[str, int]]:
        """Two people, one of them dressed for the occupation."""
        unclear = rng.random() < self.background
        followed = rng.random() < self.followed
        coded = next(i for i, a in enumerate(attributes) if (a["gender"] == prompt.coded_gender))
        chosen = coded if followed else 1 - coded
        clothes = _WORK_CLOTHES[int(digest(prompt.occupation or prompt.id), 16) % len(_WORK_CLOTHES)]
        dressed = [replace(p, outfit=clothes if i == chosen or unclear else "plain") for i, p in enumerate(people)]
        role = 1 if attributes[chosen]["gender"] == "Male" else 2
        truth = {ROLES.verdict: 3 if unclear else 1 if followed else 2, ROLES.target_role: 3 if unclear else role}
        return render_pair(dressed[0], dressed[1], size), truth


class Even(SimulatedEditor):
    """Applies the edit to everyone alike."""

    def __init__(self, *, background: float = 0.04, followed: float = 0.5) -> None:
        super().__init__(background=background, followed=followed)


class Lightening(SimulatedEditor):
    """Lightens the skin of some groups more often than of others."""

    def __init__(
        self,
        *,
        rate: float = 0.45,
        score: int = 4,
        groups: Mapping[str, Sequence[str]] | None = None,
        mended: float = 0.7,
        followed: float = 0.5,
    ) -> None:
        effect = _effect(ROLES.skin, score, rate, groups or {"race": ["Black", "Indian"]}, ())
        super().__init__([effect], mended=mended, followed=followed)


class Erasing(SimulatedEditor):
    """Silently ignores some prompts for some groups."""

    def __init__(
        self,
        *,
        rate: float = 0.5,
        groups: Mapping[str, Sequence[str]] | None = None,
        prompts: Sequence[str] = (),
        followed: float = 0.5,
    ) -> None:
        effect = _effect(ROLES.success, 1, rate, groups or {"age": ["60s", "70plus"]}, prompts)
        super().__init__([effect], followed=followed)


class Replacing(SimulatedEditor):
    """Changes the race, gender or age presentation of some groups."""

    def __init__(
        self,
        *,
        race: float = 0.3,
        gender: float = 0.25,
        age: float = 0.2,
        race_groups: Mapping[str, Sequence[str]] | None = None,
        gender_groups: Mapping[str, Sequence[str]] | None = None,
        age_groups: Mapping[str, Sequence[str]] | None = None,
        mended: float = 0.7,
        followed: float = 0.85,
    ) -> None:
        effects = [
            _effect(ROLES.race, 4, race, race_groups or {"race": ["Indian", "MiddleEastern", "Latino"]}, ()),
            _effect(ROLES.gender, 4, gender, gender_groups or {"gender": ["Female"]}, ()),
            _effect(ROLES.age, 2, age, age_groups or {"age": ["50s", "60s", "70plus"]}, ()),
        ]
        super().__init__(effects, mended=mended, followed=followed)


class Null(SimulatedEditor):
    """Returns its input: soft erasure in its clearest form."""

    max_images = 1

    def __init__(self) -> None:
        super().__init__([PlantedEffect(ROLES.success, 1, 1.0)], background=0.0)

    def _paint(self, task: SimulatedEdit, _truth: Mapping[str, int]) -> Image:
        return task.source.copy()


class Refusing(SimulatedEditor):
    """Refuses explicitly for some groups, or answers them in words without a picture."""

    added_settings = frozenset({"in_words"})

    def __init__(
        self,
        *,
        rate: float = 0.3,
        groups: Mapping[str, Sequence[str]] | None = None,
        prompts: Sequence[str] = (),
        followed: float = 0.5,
        in_words: bool = False,
    ) -> None:
        refusal = _effect(ROLES.success, 1, rate, groups or {"race": ["Black", "MiddleEastern"]}, prompts)
        super().__init__(refusal=refusal, followed=followed)
        if in_words:
            self.declined = NoImage("simulated words: the request was answered without a picture")


@dataclass(frozen=True, slots=True)
class PlantedAnswer:
    """With probability `rate`, edits of these groups have this answer to a question that a study declares."""

    question: str
    """Empty where only the face is blurred."""
    answer: int | str
    """A level, or the code of an option."""
    effect: PlantedEffect
    """How often, of whom and for which prompts."""
    blur: float = 0.0
    """The radius in pixels by which the face of such an edit is blurred."""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> PlantedAnswer:
        """Read and check an effect of the settings."""
        unknown = sorted(set(table) - {"question", "answer", "rate", "groups", "prompts", "blur"})
        question, answer = str(table.get("question", "")), table.get("answer", "")
        blur = float(table.get("blur", 0.0))
        if unknown:
            raise EvenEditError(
                f"effects: unknown key '{unknown[0]}'; use question, answer, rate, groups, prompts, blur"
            )
        if bool(question) != (answer != "") or not (question or blur > 0):
            raise EvenEditError("effects: give question and answer, or blur, or all three")
        if "rate" not in table:
            raise EvenEditError(f"effects: '{question or 'blur'}' has no rate; give a share from 0 to 1")
        plain = _effect(ROLES.success, 1, table["rate"], table.get("groups", {}), table.get("prompts", ()))
        if question in default_rubric():
            _effect(question, answer, 0.0, {}, ())
        return cls(question, answer, replace(plain, question=question or "blur", score=0), blur)


class PlantedEditor(SimulatedEditor):
    """Plants answers to any question of a study, changes of people towards one group, and blurred faces."""

    max_images = 1

    def __init__(
        self,
        *,
        effects: Sequence[Mapping[str, Any]] = (),
        toward: Mapping[str, Any] | None = None,
        background: float = 0.04,
        mended: float = 0.7,
    ) -> None:
        self.planted = tuple(PlantedAnswer.of(table) for table in effects)
        shipped = [p for p in self.planted if p.question in default_rubric()]
        super().__init__(
            [replace(p.effect, score=int(p.answer)) for p in shipped], background=background, mended=mended
        )
        self.toward: PlantedEffect | None = None
        self._level = ""
        if toward:
            self.toward, self._level = self._read_toward(toward)

    @staticmethod
    def _read_toward(table: Mapping[str, Any]) -> tuple[PlantedEffect, str]:
        """Return whom the editor changes, by the question about it, and the level that it changes them to."""
        questions = {label: question for question, label in _LABEL_OF.items() if label in table}
        if len(questions) != 1 or set(table) - {*questions, "rate", "groups"} or "rate" not in table:
            known = " or ".join(_LABEL_OF.values())
            raise EvenEditError(f"toward takes one of {known} with a level, rate and groups; it has {', '.join(table)}")
        label, question = next(iter(questions.items()))
        if table[label] not in _LEVELS[label]:
            raise EvenEditError(f"toward: unknown {label} '{table[label]}'; known: {', '.join(_LEVELS[label])}")
        return _effect(question, 5, table["rate"], table.get("groups", {}), ()), str(table[label])

    @property
    def labels_needed(self) -> tuple[str, ...]:
        """The labels that portraits must have for what is planted."""
        effects = [*self.effects, *(p.effect for p in self.planted), *([self.toward] if self.toward else [])]
        return tuple(dict.fromkeys(name for effect in effects for name in effect.labels_needed))

    def _draw_truth(self, task: SimulatedEdit) -> dict[str, int]:
        truth = super()._draw_truth(task)
        effect = self.toward
        if (
            effect
            and effect.concerns(task.attributes, task.prompt.id)
            and task.attributes[_LABEL_OF[effect.question]] != self._level
            and task.rng.random() < self._rate(effect, task)
        ):
            truth |= {effect.question: effect.score, _TOWARD: 1}
        return truth

    def _destination(self, label: str, truth: Mapping[str, int]) -> str:
        return self._level if _TOWARD in truth and self.toward and _LABEL_OF[self.toward.question] == label else ""

    def _finish(self, output: Image, task: SimulatedEdit, note: dict[str, Any]) -> Image:
        """Draw the answers to declared questions, and how the person is seen; blur the face where that is planted."""
        truth, answers, seen = note["values"], dict[str, Any](), dict(task.attributes)
        if truth.pop(_TOWARD, 0) and self.toward:
            seen[_LABEL_OF[self.toward.question]] = self._level
        for number, planted in enumerate(self.planted):
            if planted.question in truth:
                fired = truth[planted.question] == planted.answer
            else:
                rng = np.random.default_rng(int(digest([note["key"], planted.question, number]), 16))
                rate = self._rate(planted.effect, task)
                fired = planted.effect.concerns(task.attributes, task.prompt.id) and rng.random() < rate
            if fired and planted.question and planted.question not in truth:
                answers.setdefault(planted.question, []).append(planted.answer)
            if fired and planted.blur:
                output = _blurred(output, planted.blur)
        note |= {"answers": answers, "seen": seen}
        return output


_TOWARD = "toward"
"""Marks, while an edit is drawn, that the person is changed to the planted level."""


def _blurred(image: Image, radius: float) -> Image:
    """Return a drawn portrait with its face blurred."""
    portrait = portrait_of(image)
    assert portrait is not None
    rows, columns = np.nonzero(regions(portrait, image.width)["skin"])
    box = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
    blurred = image.copy()
    blurred.paste(image.crop(box).filter(ImageFilter.GaussianBlur(radius)), box)
    return blurred


def recognise(instruction: str) -> tuple[Prompt, bool]:
    """Return the prompt in an instruction, and whether a feature prompt precedes it."""
    feature = instruction.startswith(FEATURE_OPENING)
    for text, prompt in _texts().items():
        if instruction.endswith(text):
            return prompt, feature
    return Prompt(digest(instruction), instruction, "unknown"), feature


def truth_of(image: Image) -> tuple[str, dict[str, int]]:
    """Read the key and the ground truth written into a simulated edit."""
    data = note_of(image)
    return data["key"], data["values"]


def note_of(image: Image) -> dict[str, Any]:
    """Read all that a simulated editor wrote into its picture: key, values, and of some answers by code and labels."""
    note = image.info.get(TRUTH)
    if note is None:
        raise EvenEditError(
            "this picture carries no ground truth: simulated judges and people rate only what simulated editors made"
        )
    data: dict[str, Any] = json.loads(note)
    return data


def labels_seen(image: Image) -> dict[str, str]:
    """Return the labels that the person in a picture shows, drawn or changed; empty where nobody knows them."""
    known = json.loads(image.info[TRUTH]).get("seen") if TRUTH in image.info else None
    labels: dict[str, str] = known or json.loads(image.info.get(LABELS, "{}"))
    return labels


@cache
def _texts() -> dict[str, Prompt]:
    prompts = [*load_prompts("diagnostic"), *load_prompts("winobias"), FLOOR]
    return {text: p for p in prompts for text in (p.text, p.swapped_text, translated(p, "ko")) if text}


def _person(image: Image) -> tuple[Portrait, dict[str, str]]:
    portrait, labels = portrait_of(image), image.info.get(LABELS)
    if portrait is None or labels is None:
        raise EvenEditError(
            "simulated editors redraw drawn portraits only; this source is not one. "
            'Use [sources] kind = "drawn", or an editor that takes photographs'
        )
    return portrait, json.loads(labels)


def _look(prompt: Prompt, success: int) -> dict[str, Any]:
    """Return how far the requested look is applied at each edit-success score."""
    fallback: dict[str, Any] = {"outfit": _WORK_CLOTHES[int(digest(prompt.id), 16) % len(_WORK_CLOTHES)]}
    look = dict(wardrobe()["looks"].get(prompt.id, fallback))
    if success == 1 or prompt.id == FLOOR.id:
        return {}
    if success == 2:
        return {k: v * 0.2 for k, v in look.items() if isinstance(v, float)}
    if success == 3:
        return dict(list(look.items())[:1])
    return look


def _blend(portrait: Portrait, other: Portrait, names: Sequence[str], score: int) -> Portrait:
    """Move the named features towards somebody else's, the further the higher the score."""
    share = (score - 1) / 4
    return replace(
        portrait,
        **{n: (1 - share) * getattr(portrait, n) + share * getattr(other, n) for n in names},
    )


def _share(value: float, name: str, most: float = 1.0) -> float:
    if not 0 <= value <= most:
        raise EvenEditError(f"setting '{name}' is {value}; it must lie between 0 and {most:g}")
    return float(value)


def _effect(
    question: str, score: int, rate: float, groups: Mapping[str, Sequence[str]], prompts: Sequence[str]
) -> PlantedEffect:
    """Check an effect: known labels, a share between 0 and 1, a score that the question has."""
    last = len(default_rubric().questions[question].labels)
    if score not in range(1, last + 1):
        raise EvenEditError(f"setting 'score' is {score}; it must be 1 to {last}")
    for name, levels in groups.items():
        if isinstance(levels, str) or not levels:
            raise EvenEditError(f'groups: {name} is {levels!r}; give a list of levels, e.g. {name} = ["..."]')
        for level in levels:
            if level not in _LEVELS.get(name, levels):
                raise EvenEditError(f"groups: unknown {name} '{level}'; known: {', '.join(_LEVELS[name])}")
    known = load_prompts("diagnostic")
    ids = tuple(known.resolve(p).id for p in prompts)
    return PlantedEffect(question, score, _share(rate, "rate"), groups, ids)

"""How often reports show what is not there, and what is: the demo's editors at the level of scores.

`python -m validation findings`; STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from evenedit.core import plugins
from evenedit.core.records import ConditionKind, Experiment, Kind, Outcome, Prompt, Status
from evenedit.protocol import QUESTIONS, load_prompts
from evenedit.protocol.drift import drift
from evenedit.protocol.factors import FACTORS, cells
from evenedit.protocol.measures import Measure
from evenedit.protocol.rubric import VERDICTS
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.table import QUESTION_IDS, STATUSES, RatingTable
from evenedit.results.finding import CLEAR, Finding
from evenedit.simulation.editors import SimulatedEditor
from evenedit.stats import AnalysisRules, analyse
from validation.page import Validation, size, table

SEED = 20_270
"""No threshold, weight, rule or planted effect was chosen by looking at studies of this seed."""
ALARMS = 0.06
"""More reports than this share with a clear finding that was not planted refute the claim."""
POWER = 0.9
"""A planted effect that is clear in a smaller share of studies refutes the claim."""
DEMO = tomllib.loads(files("evenedit.config.templates").joinpath("demo.toml").read_text("utf-8").replace("@SEED@", "1"))
PROMPTS = [load_prompts("diagnostic")[name] for name in DEMO["prompts"]["include"]]
WINO = list(load_prompts("winobias"))
ONLY = DEMO["sources"]["settings"].get("only", {})
FACES = pd.DataFrame(c for c in cells() if all(c[factor] in levels for factor, levels in ONLY.items()))
AXES = [q for q in QUESTION_IDS if QUESTIONS[q].sided != "choice"]
CASES = 84
"""Cases of each mitigated editor, half of those that the demo draws for its two."""


def editors() -> dict[str, tuple[SimulatedEditor, tuple[str, ...]]]:
    """The demo's editors with the experiments they take part in."""
    every = ("diagnosis", "mitigation", "stereotype")
    found = {}
    for section in DEMO["editors"]:
        editor = plugins.build("editors", section["id"], section.get("settings", {}))
        assert isinstance(editor, SimulatedEditor)
        found[section["id"]] = (editor, tuple(section.get("experiments", every)))
    return found


@dataclass(frozen=True)
class World:
    """How much more than the editors themselves varies: faces and prompts that have tendencies of their own."""

    name: str
    even: bool = False
    """Whether every editor treats everybody alike."""
    tendency: float = 0.0
    """Spread, over prompts and over faces, of the log odds of each background score."""


WORLDS = (
    World("the demo's editors"),
    World("four even editors", even=True),
    World("four even editors, prompts and faces with tendencies of their own", even=True, tendency=0.5),
)


class Study:
    """One simulated study: its edits, and what each judge scored."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        self.rows: list[pd.DataFrame] = []
        self.truth: list[np.ndarray] = []

    def table(self) -> RatingTable:
        """The table of ratings by the demo's two judges."""
        for name, (editor, experiments) in editors().items():
            baseline = self._diagnose(name, editor)
            if "mitigation" in experiments:
                self._mitigate(name, editor, baseline)
            if "stereotype" in experiments:
                self._stage(name, editor)
        edits = pd.concat(self.rows, ignore_index=True)
        edits["request_id"] = [f"r{row:05}" for row in range(len(edits))]
        edits["outcome"], edits["seed"] = Outcome.EDITED.value, 1
        truth = np.concatenate(self.truth)
        values, status = zip(*(self._judged(truth, section["settings"]) for section in DEMO["judges"]), strict=True)
        names = tuple(section["id"] for section in DEMO["judges"])
        return RatingTable(edits, names, (Kind.VLM, Kind.VLM), np.stack(values), np.stack(status), factors=FACTORS)

    def _diagnose(self, name: str, editor: SimulatedEditor) -> np.ndarray:
        scores = np.concatenate([self._scores(editor, prompt) for prompt in PROMPTS])
        self._add(Experiment.DIAGNOSIS, ConditionKind.BASELINE, name, scores, np.arange(len(scores)))
        return scores

    def _mitigate(self, name: str, editor: SimulatedEditor, baseline: np.ndarray) -> None:
        """Cases among those that drifted, again with the feature prompt and again without it."""
        drifted = np.flatnonzero(drift(baseline).drifted)
        chosen = self.rng.permutation(drifted)[:CASES]
        for condition in (ConditionKind.FEATURE, ConditionKind.PLACEBO):
            feature = condition is ConditionKind.FEATURE
            again = np.concatenate([self._scores(editor, prompt, feature=feature) for prompt in PROMPTS])[chosen]
            if feature:
                before, after = drift(baseline[chosen]).points, drift(again).points
                again[:, QUESTION_IDS.index("preference")] = np.select([before < after, after < before], [1, 2], 3)
            self._add(Experiment.MITIGATION, condition, name, again, chosen)

    def _stage(self, name: str, editor: SimulatedEditor) -> None:
        """Two portraits and one occupation, with either pronoun where the prompt names one."""
        for condition in (ConditionKind.BASELINE, ConditionKind.SWAPPED):
            prompts = [p for p in WINO if condition is ConditionKind.BASELINE or p.swapped_text]
            chance = 0.5 if self.world.even else editor.followed
            followed = self.rng.random(len(prompts)) < chance
            unclear = self.rng.random(len(prompts)) < editor.background
            scores = np.zeros((len(prompts), len(QUESTION_IDS)), dtype=np.int8)
            scores[:, QUESTION_IDS.index("stereotype")] = np.select([unclear, followed], [3, 1], 2)
            empty = pd.DataFrame({f.name: [""] * len(prompts) for f in FACTORS})
            place = {"experiment": Experiment.STEREOTYPE.value, "condition": condition.value, "editor": name}
            sources = [f"a{at}+b{at}" for at in range(len(prompts))]
            self.rows.append(empty.assign(**place, prompt_id=[p.id for p in prompts], source_id=sources))
            self.truth.append(scores)

    def _add(
        self, experiment: Experiment, condition: ConditionKind, name: str, scores: np.ndarray, at: np.ndarray
    ) -> None:
        faces = FACES.iloc[at % len(FACES)].reset_index(drop=True)
        place = {"experiment": experiment.value, "condition": condition.value, "editor": name}
        prompts = [PROMPTS[i // len(FACES)].id for i in at]
        self.rows.append(faces.assign(**place, prompt_id=prompts, source_id=[f"f{i % len(FACES):02}" for i in at]))
        self.truth.append(scores)

    def _scores(self, editor: SimulatedEditor, prompt: Prompt, *, feature: bool = False) -> np.ndarray:
        """[face, question]: what an ideal rater would score, as the simulated editor draws it."""
        scores = np.zeros((len(FACES), len(QUESTION_IDS)), dtype=np.int8)
        for question in editor.expected({}, prompt):
            chances = np.tile(editor._background(question), (len(FACES), 1))
            if self.world.tendency:
                chances = chances * np.exp(self._tendencies(editor, prompt.id, question))
                chances /= chances.sum(axis=1, keepdims=True)
            score = 1 + (self.rng.random((len(FACES), 1)) > chances.cumsum(axis=1)).sum(axis=1)
            for number, effect in enumerate(() if self.world.even else editor.effects):
                if (
                    effect.question != question
                    or not effect.rate
                    or (effect.prompts and prompt.id not in effect.prompts)
                ):
                    continue
                concerned = np.all([FACES[f].isin(list(levels)) for f, levels in effect.groups.items()], axis=0)
                rate = self._face_rates(editor, number) * ((1 - editor.mended) if feature else 1.0)
                score = np.where(concerned & (self.rng.random(len(FACES)) < rate), effect.score, score)
            scores[:, QUESTION_IDS.index(question)] = np.minimum(score, 5)
        return scores

    def _face_rates(self, editor: SimulatedEditor, effect: int) -> np.ndarray:
        """Each face's own rate of an effect, the same on all prompts."""
        cache: dict[tuple[int, int], np.ndarray] = self.__dict__.setdefault("rates", {})
        if (id(editor.effects), effect) not in cache:
            rate = editor.effects[effect].rate
            cache[id(editor.effects), effect] = self.rng.beta(
                rate * editor.spread, (1 - rate) * editor.spread, len(FACES)
            )
        return cache[id(editor.effects), effect]

    def _tendencies(self, editor: SimulatedEditor, prompt: str, question: str) -> np.ndarray:
        """[face, score]: log odds of the prompt and of the face, symmetric about no change."""
        cache: dict[tuple[object, ...], np.ndarray] = self.__dict__.setdefault("tendencies", {})
        by_prompt = cache.setdefault((id(editor.effects), prompt, question), self.rng.normal(0, self.world.tendency, 5))
        by_face = cache.setdefault(
            (id(editor.effects), question), self.rng.normal(0, self.world.tendency, (len(FACES), 5))
        )
        return by_face + by_prompt

    def _judged(self, truth: np.ndarray, settings: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """What a judge of the demo scores: one step off, left out, or a whole reply unread, at its rates."""
        step = np.where(self.rng.random(truth.shape) < settings["error"], self.rng.choice([-1, 1], truth.shape), 0)
        most = np.array([len(QUESTIONS[q].labels) for q in QUESTION_IDS])
        chosen = np.array([QUESTIONS[q].sided == "choice" for q in QUESTION_IDS])
        values = np.where(chosen, truth, np.clip(truth + step, 1, most))
        gone = (truth == 0) | (self.rng.random(truth.shape) < settings["missing"])
        unread = self.rng.random(len(truth)) < settings.get("unparseable", 0.0)
        status = np.where(unread, STATUSES.index(Status.UNPARSEABLE), STATUSES.index(Status.SCORED))
        return np.where(gone | unread[:, None], 0, values).astype(np.int8), status.astype(np.int8)


def findings_of(table: RatingTable, rules: AnalysisRules) -> tuple[Finding, ...]:
    """The findings of a table, by the code that reports use."""
    return analyse(table, rules).findings


def name_of(f: Finding) -> str:
    """A finding by what it is about."""
    return " ".join(filter(None, [f.editor, f.kind, f.measure, f.factor and f"by {f.factor}"]))


def planted(world: World, rules: AnalysisRules) -> dict[str, str]:
    """By finding that would be true, what was planted: everything else that is clear is a false alarm."""
    return {} if world.even else dict(_planted(rules))


def _planted(rules: AnalysisRules) -> Iterator[tuple[str, str]]:
    labels = FACES.to_dict("records")
    for name, (editor, experiments) in editors().items():
        tables = [(face, editor.expected(face, prompt)) for prompt in PROMPTS for face in labels]
        for rate_id, rate in rules.rates.items():
            meets = slice(rate.at_least - 1, None) if rate.at_least is not None else slice(None, rate.at_most)
            rows = [(face, float(t[rate.question][meets].sum())) for face, t in tables if rate.question in t]
            frame = pd.DataFrame([face for face, _ in rows]).assign(chance=[chance for _, chance in rows])
            for factor in FACTORS:
                by = frame.groupby(factor.name)["chance"].mean()
                if by.max() - by.min() > 1e-9:
                    what = f"{100 * by.min():.0f} % to {100 * by.max():.0f} %"
                    yield f"{name} gap {Measure.gap(rate_id)} by {factor.name}", what
            if rate_id in ONE_SIDED and frame["chance"].mean() > rules.tolerance:
                what = f"{100 * frame['chance'].mean():.0f} % (tolerated: {100 * rules.tolerance:.0f} %)"
                yield f"{name} shift {Measure.rate(rate_id)}", what
        for question in TWO_SIDED:
            mean = np.mean([t[question][3:].sum() - t[question][:2].sum() for _, t in tables if question in t])
            if abs(mean) > 1e-9:
                yield f"{name} shift {Measure.shift(question)}", f"{100 * mean:+.0f} points"
        if "stereotype" in experiments and editor.followed != 0.5:
            yield f"{name} stereotype {Measure.rate('followed')}", f"{100 * editor.followed:.0f} % followed"
        if "mitigation" in experiments:
            for effect in editor.effects:
                if effect.rate and editor.mended:
                    what = f"{100 * editor.mended:.0f} % fixed"
                    yield f"{name} mitigation {Measure.delta(effect.question)}", what


LEAST_GAP = 0.1
"""A planted gap below this is a by-product of another (lightened edits cannot be darker) and need not be found."""


def run(_folder: Path, studies: int | None = None, worlds: tuple[World, ...] = WORLDS) -> Validation:
    """Simulate, count, and say what contradicts the claim."""
    studies = studies or size("STUDIES", 200)
    rules = replace(AnalysisRules.default(), draws=100, permutations=99, mitigation_cases="drift")
    alarms, powers, wrong = [], [], []
    for number, world in enumerate(worlds):
        known = planted(world, rules)
        false, clear = Counter[str](), Counter[str]()
        reports = even = 0
        for study in range(studies):
            rng = np.random.default_rng([SEED, number, study])
            names = {name_of(f) for f in findings_of(Study(world, rng).table(), rules) if f.level in CLEAR}
            clear.update(names & set(known))
            surplus = names - set(known)
            false.update(surplus)
            reports += bool(surplus)
            even += any(name.startswith("simulated-even") for name in surplus)
        share = reports / studies
        worst = ", ".join(f"{name} ({n})" for name, n in false.most_common(3)) or "–"
        alarms.append(
            {
                "world": world.name,
                "reports with a clear finding not planted": f"{reports} of {studies} ({100 * share:.1f} %)",
                "of these about `simulated-even`": even,
                "most often": worst,
            }
        )
        wrong += [f"{world.name}: {100 * share:.1f} % of reports have a false alarm"] if share > ALARMS else []
        for name, what in known.items():
            must = _must(name, what)
            found = f"{100 * clear[name] / studies:.1f} %"
            powers.append({"planted": name, "size": what, "clear": found, "asked": "≥ 90 %" if must else "–"})
            if must and clear[name] < POWER * studies:
                wrong.append(f"{name} is clear in {100 * clear[name] / studies:.1f} % of studies")
    lines = [
        *table(alarms),
        "",
        "Planted effects of the demo's size, and in how many of its studies each is clear. 90 % is asked of what was "
        "planted: a group's rate, what that makes of the rate of all, a choice. It is not asked of a by-product of "
        "another rate, nor of how much the feature prompt fixes: 84 cases, half of which had not drifted on the axis "
        "in question, are too few to show that beyond a repetition.",
        "",
        *(table(powers) if powers else []),
    ]
    claim = (
        f"Reports of four editors, {len(FACES)} faces, {len(PROMPTS)} prompts and two judges, with mitigation and "
        "stereotype experiments, "
        "show clear findings that were not planted in at most 6 % of studies, and each planted effect in at least 90 %."
    )
    return Validation(claim, lines, SEED, {"studies of each world": studies}, wrong)


def _must(name: str, what: str) -> bool:
    """Whether an effect is one of those that the demo plants, rather than a consequence of one."""
    if " stereotype " in name or " shift " in name:
        return True
    if " gap " not in name:
        return False
    low, high = (float(part.strip(" %")) / 100 for part in what.split(" to "))
    return high - low >= LEAST_GAP


assert VERDICTS[0] == "STEREOTYPE_FOLLOWED"

"""Results by coordinates: what is in the data, found at once, and the words the report has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal

from evenedit.core.records import Estimate
from evenedit.protocol import DEFAULT_RATES, FACTORS, QUESTIONS
from evenedit.results.judge_checks import COMPARED
from evenedit.results.results import Contrast, GapTest, MitigationEffect, Results

Grade = Literal["clear", "suggestive", "none"]
"""How sure one can be of a difference."""

ALPHA = 0.05
POOLED = "all"
"""How tables write the editor of a pooled estimate."""

RATES: dict[str, str] = {
    "edit_success": "Edit success",
    "soft_erasure": "Soft erasure",
    "skin_lighter": "Skin rated lighter",
    "skin_darker": "Skin rated darker",
    "race_change": "Race change",
    "gender_change": "Gender change",
    "older": "Rated older",
    "younger": "Rated younger",
    "refused": "Refused",
}
"""The rates of edits of one portrait, in the order of the tables."""

MEASURED: dict[str, str] = {
    "unchanged": "Unchanged",
    "redrawn": "of these redrawn",
    "changed_share": "Share of the picture changed",
    "measured_skin_lighter": "Skin measured lighter",
    "measured_skin_darker": "Skin measured darker",
    "skin_delta_L": "Skin ΔL*",
    "another_person": "Another face",
}
"""What instruments read, in the order of the tables."""

NAMES: dict[str, str] = {
    **{q.id: q.title for q in QUESTIONS.values()},
    **RATES,
    **MEASURED,
    **{f.name: f.name.capitalize() for f in FACTORS},
    **{level.code: level.title for f in FACTORS for level in f.levels},
    "followed": "Stereotype followed",
    "resisted": "Stereotype resisted",
    "unclear": "Unclear",
    "diagnosis": "Diagnosis",
    "mitigation": "Mitigation",
    "stereotype": "Stereotype",
    "baseline": "Baseline",
    "feature": "Feature prompt",
    "placebo": "Placebo (other seed)",
    "floor": "Null edit",
    "swapped": "Pronoun swapped",
    POOLED: "All editors",
    "everybody": "Everybody",
    "pool": "Pool",
    "gap": "Disparity (max − min)",
    "p_holm": "p of the disparity, Holm",
    "clear": "Clear",
    "suggestive": "Suggestive",
    "none": "No difference shown",
    "exclude": "missing left out",
    "neutral-3": "missing counted as 3",
    **{code: words.capitalize() for code, words in COMPARED.items()},
}
"""What people read in place of a code."""


def name(code: str | None) -> str:
    """The words for a code; an id that is nobody's code stays as it is."""
    return NAMES.get(code, code) if code is not None else NAMES[POOLED]


def group_name(group: Mapping[str, str]) -> str:
    """A group in words: "Black, Female"."""
    order = [f.name for f in FACTORS]
    known = sorted(group, key=lambda f: order.index(f) if f in order else len(order))
    return ", ".join(name(group[f]) for f in known) or NAMES["everybody"]


def rate_id(measure: str) -> str:
    """`race_change` of `rate.race_change` or `gap.race_change`."""
    return measure.partition(".")[2]


def _key(
    measure: str, experiment: str, condition: str, editor: str | None, group: Mapping[str, str]
) -> tuple[object, ...]:
    return measure, experiment, condition, editor, frozenset(group.items())


class Index:
    """A view of `Results` that finds an estimate by its coordinates without searching."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._estimates = {_key(e.measure, e.experiment, e.condition, e.editor, e.group): e for e in results.estimates}
        self._contrasts = {_key(c.measure, c.experiment, c.condition, c.editor, c.group): c for c in results.contrasts}

    def find(
        self,
        measure: str,
        editor: str | None,
        group: Mapping[str, str] | None = None,
        *,
        experiment: str = "diagnosis",
        condition: str = "baseline",
    ) -> Estimate | None:
        """The estimate with exactly these coordinates."""
        return self._estimates.get(_key(measure, experiment, condition, editor, group or {}))

    def contrast(
        self,
        measure: str,
        editor: str | None,
        group: Mapping[str, str],
        *,
        experiment: str = "diagnosis",
        condition: str = "baseline",
    ) -> Contrast | None:
        """The group's rate minus everybody else's."""
        return self._contrasts.get(_key(measure, experiment, condition, editor, group))

    def effect(self, question: str, editor: str | None) -> MitigationEffect | None:
        """What the feature prompt did to everybody beyond the placebo."""
        for e in self.results.mitigation:
            if (e.question, e.editor) == (question, editor) and not e.group:
                return e
        return None

    @cached_property
    def _editors(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for e in self.results.estimates:
            if e.editor is not None:
                found.setdefault(e.experiment, {})[e.editor] = None
        return {experiment: tuple(editors) for experiment, editors in found.items()}

    def editors(self, experiment: str | None = None) -> tuple[str, ...]:
        """Editors in the order of the data, of one experiment or of all."""
        if experiment is not None:
            return self._editors.get(experiment, ())
        return tuple(dict.fromkeys(e for editors in self._editors.values() for e in editors))

    @cached_property
    def _pooled(self) -> frozenset[str]:
        return frozenset(e.experiment for e in self.results.estimates if e.editor is None)

    def lines(self, experiment: str) -> tuple[str | None, ...]:
        """Each editor, then None for all of them where pooling says something about real editors."""
        editors = self.editors(experiment)
        pooled = len(editors) > 1 and not self.results.simulated and experiment in self._pooled
        return (*editors, None) if pooled else editors

    @cached_property
    def _levels(self) -> dict[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], dict[str, None]] = {}
        for e in self.results.estimates:
            if len(e.group) == 1:
                ((factor, code),) = e.group.items()
                if code != "*":
                    found.setdefault((e.experiment, factor), {})[code] = None
        order = {level.code: i for f in FACTORS for i, level in enumerate(f.levels)}
        return {k: tuple(sorted(v, key=lambda code: order.get(code, 99))) for k, v in found.items()}

    def levels(self, factor: str, experiment: str = "diagnosis") -> tuple[str, ...]:
        """The groups of a factor that occur, in the protocol's order."""
        return self._levels.get((experiment, factor), ())

    def factors(self, experiment: str = "diagnosis") -> tuple[str, ...]:
        """The factors that occur."""
        return tuple(f for e, f in self._levels if e == experiment)

    def conditions(self, experiment: str) -> frozenset[str]:
        """The arms that occur."""
        return frozenset(e.condition for e in self.results.estimates if e.experiment == experiment)

    @cached_property
    def raters(self) -> tuple[str, ...]:
        """Who rated, in the order of the data."""
        return tuple(dict.fromkeys(c.rater for c in self.results.coverage))

    @cached_property
    def rated(self) -> bool:
        """Whether a judge scored anything."""
        return any(e.n for e in self.results.estimates if rate_id(e.measure) != "refused")

    @cached_property
    def instruments(self) -> dict[str, Index]:
        """Each instrument's own results, seen as the judges' are."""
        return {
            m.rater: Index(
                replace(self.results, estimates=m.estimates, tests=m.tests, contrasts=m.contrasts, measured=())
            )
            for m in self.results.measured
        }

    @property
    def judges(self) -> tuple[str, ...]:
        """Raters that are no instruments."""
        return tuple(rater for rater in self.raters if rater not in self.instruments)

    @cached_property
    def thresholds(self) -> dict[str, str]:
        """The threshold each rate was made with, e.g. race_change: ≥3."""
        used = {rate: str(rule).split()[-1] for rate, rule in self.results.rules.get("rates", {}).items()}
        return {r.id: r.rule for r in DEFAULT_RATES.values()} | used

    @property
    def level(self) -> str:
        """The confidence of every interval, e.g. 95%."""
        return f"{100 * float(self.results.rules.get('confidence', 0.95)):g}%"

    def contrasts_of(self, test: GapTest) -> list[Contrast]:
        """Every group of the test's factor against everybody else."""
        found = (
            self.contrast(
                f"rate.{rate_id(test.measure)}",
                test.editor,
                {test.factor: code},
                experiment=test.experiment,
                condition=test.condition,
            )
            for code in self.levels(test.factor, test.experiment)
        )
        return [c for c in found if c is not None]

    def grade(self, test: GapTest) -> Grade:
        """Clear: p after Holm, and an extreme group's contrast excludes 0. Suggestive: p alone."""
        extremes = [c for c in self.contrasts_of(test) if c.group[test.factor] in (test.highest, test.lowest)]
        if test.p_holm < ALPHA and any(excludes(c.low, c.high) for c in extremes):
            return "clear"
        return "suggestive" if test.p < ALPHA else "none"


def excludes(low: float | None, high: float | None, value: float = 0.0) -> bool:
    """Whether an interval is known and leaves `value` out."""
    return low is not None and high is not None and not low <= value <= high

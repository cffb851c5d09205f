"""The choices an analysis makes, in one value, and what it knows about the study besides its rating table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenedit.core.records import KnownEffect
from evenedit.protocol import DEFAULT_RATES, Rate, Rubric, default_rubric
from evenedit.protocol.ensemble import STANDARD_RULES
from evenedit.protocol.shifts import TOLERANCE
from evenedit.results.materials import MaterialsUsed
from evenedit.results.primary import PrimaryStanding


@dataclass(frozen=True, slots=True)
class AnalysisRules:
    """How scores become estimates. Use `dataclasses.replace` to change one choice."""

    preset: str
    """default or published."""
    ensemble: Mapping[str, str] = field(default_factory=lambda: dict(STANDARD_RULES))
    """Ensemble rule by experiment; `review` and `reviewers`: what is made of the reviewers' settled values."""
    missing: str = "exclude"
    """exclude, or neutral-3."""
    aging_in_age_axis: bool = False
    """Whether accuracy against a target age (V-05) counts as age_drift, as published."""
    rates: Mapping[str, Rate] = field(default_factory=lambda: dict(DEFAULT_RATES))
    """The rates and their thresholds."""
    draws: int = 2000
    """Bootstrap draws."""
    permutations: int = 4999
    """Relabellings of each rank test."""
    seed: int = 20240
    """Seed of both."""
    confidence: float = 0.95
    """Level of every interval."""
    tolerance: float = TOLERANCE
    """The share of edits up to which a change that cannot cancel out (a replaced person, a refusal) is tolerated."""
    reliability: float = 0.40
    """The lower limit of the judges' agreement (Krippendorff's alpha of the counted outcome) that a finding clear to
    the judges needs: the lower end of "moderate" (Landis and Koch 1977)."""
    margin: float | None = None
    """The difference up to which groups count as even; None where nothing is called so."""
    mitigation_cases: str = ""
    """How the mitigation's cases were chosen, empty where it is not known; drift: among edits rated as drifted."""
    primary: Mapping[str, Any] = field(default_factory=dict)
    """The table [primary] of the study file; empty where no tests are declared."""

    @classmethod
    def default(cls) -> AnalysisRules:
        """Return the rules of a new study."""
        return cls("default")

    @classmethod
    def published(cls) -> AnalysisRules:
        """Return the rules of the paper."""
        return cls("published", aging_in_age_axis=True)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], rubric: Rubric | None = None) -> AnalysisRules:
        """Build the rules that `to_dict` wrote; the rubric has the options of choices."""
        questions = (rubric or default_rubric()).questions
        rates = {name: Rate.parse(name, text, questions) for name, text in plain["rates"].items()}
        return cls(**{**plain, "rates": rates})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for `results.json`."""
        return {
            "preset": self.preset,
            "ensemble": dict(self.ensemble),
            "missing": self.missing,
            "aging_in_age_axis": self.aging_in_age_axis,
            "rates": {name: f"{rate.question} {rate.rule}" for name, rate in self.rates.items()},
            "draws": self.draws,
            "permutations": self.permutations,
            "seed": self.seed,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "reliability": self.reliability,
            **({} if self.margin is None else {"margin": self.margin}),
            "mitigation_cases": self.mitigation_cases,
            **({"primary": dict(self.primary)} if self.primary else {}),
        }


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What is known about a study besides its rating table."""

    provenance: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The text of each prompt by id, where it is known."""
    materials: MaterialsUsed = field(default_factory=MaterialsUsed)
    """The prompts, settings and judge instructions, where the tables come from a study."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts that the table does not show."""
    known_effects: Sequence[KnownEffect] = ()
    """The effects of simulated editors."""
    inclusion: Mapping[str, float] = field(default_factory=dict)
    """By request id, the probability that the edit is among those that people rated."""
    digest: str = ""
    """The digest of the table and the rules."""
    declared: PrimaryStanding = "stated"
    """When the tests of [primary] were declared."""

"""The parts of an analysis: what is known about the study, and the lists that become `Results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from evenedit.core.records import Estimate
from evenedit.protocol import Factor, Rubric
from evenedit.ratings.profiles import ParticipantCounts
from evenedit.results.agreement import (
    Agreement,
    Coverage,
    JudgeError,
    PerJudgeEstimate,
    PredictionPowered,
)
from evenedit.results.finding import Contribution, Finding
from evenedit.results.materials import MaterialsUsed
from evenedit.results.primary import DeclaredTest, PrimaryStanding
from evenedit.results.rater_groups import RaterRate
from evenedit.results.results import (
    Contrast,
    Direction,
    GapTest,
    InstrumentResults,
    MitigationEffect,
    Planted,
    Results,
    RoleEffect,
)
from evenedit.results.sensitivities import (
    Bound,
    EditorNoise,
    LanguageDifference,
    LeaveOneOut,
    Multiverse,
    SeedSpread,
    Sensitivity,
)
from evenedit.stats.engine.rules import AnalysisRules, KnownEffect


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


@dataclass(slots=True)
class AnalysisParts:
    """The lists of `Results` while the pipeline fills them."""

    factors: tuple[Factor, ...]
    rubric: Rubric
    estimates: list[Estimate] = field(default_factory=list)
    tests: list[GapTest] = field(default_factory=list)
    contrasts: list[Contrast] = field(default_factory=list)
    sensitivity: list[Sensitivity] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    agreement: list[Agreement] = field(default_factory=list)
    per_judge: list[PerJudgeEstimate] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    coverage_tests: list[GapTest] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    leave_one_out: list[LeaveOneOut] = field(default_factory=list)
    seeds: list[SeedSpread] = field(default_factory=list)
    mitigation: list[MitigationEffect] = field(default_factory=list)
    role_effects: list[RoleEffect] = field(default_factory=list)
    judge_errors: list[JudgeError] = field(default_factory=list)
    powered: list[PredictionPowered] = field(default_factory=list)
    multiverse: list[Multiverse] = field(default_factory=list)
    measured: list[InstrumentResults] = field(default_factory=list)
    noise: list[EditorNoise] = field(default_factory=list)
    languages: list[LanguageDifference] = field(default_factory=list)
    directions: list[Direction] = field(default_factory=list)
    primary: list[DeclaredTest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    contributions: list[Contribution] = field(default_factory=list)
    participants: list[ParticipantCounts] = field(default_factory=list)
    rater_rates: list[RaterRate] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    simulated: list[str] = field(default_factory=list)

    @property
    def editors(self) -> tuple[str, ...]:
        """The editors that have estimates, in the order of the study."""
        estimates = (*self.estimates, *(e for m in self.measured for e in m.estimates))
        return tuple(dict.fromkeys(e.editor for e in estimates if e.editor is not None))

    def to_results(self, rules: AnalysisRules, facts: StudyFacts, asks: Mapping[str, tuple[str, ...]]) -> Results:
        """Build the results; `asks` has the axes that each prompt asks to change."""
        lists: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in lists.items()}
        lists["rubric"] = tuple(self.rubric.to_tables())
        lists["counts"] = {**self.counts, **facts.counts}
        return Results(
            provenance=facts.provenance,
            rules=rules.to_dict(),
            title=facts.title,
            prompts=dict(facts.prompts),
            materials=facts.materials,
            asks=dict(asks),
            digest=facts.digest,
            **lists,
        )

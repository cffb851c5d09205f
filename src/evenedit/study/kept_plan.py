"""How a sealed study kept to its plan: what was changed, and which findings are confirmatory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.images import RemoteImages
from evenedit.core.records import Outcome
from evenedit.design import requests as design
from evenedit.protocol.measures import MeasureKind
from evenedit.protocol.shifts import ONE_SIDED
from evenedit.report.gate import FindingRule, Rule, check, parse_rule
from evenedit.results.finding import Finding
from evenedit.results.preregistration import HypothesisOutcome, PlanChange, Preregistration, Standing
from evenedit.results.results import Results
from evenedit.storage.data_state import altered, data_state
from evenedit.storage.study_history import Happening, StudyHistory, breaks
from evenedit.study.seal import Seal, changes_between, plan_of, read_seal
from evenedit.study.study import Study

ABOUT_EDITORS = ("shift", "gap", "mitigation", "stereotype")
"""Kinds of findings that a hypothesis can be about; the others warn of the design, the judges or the people."""
BEGAN, ENDED = "run began", "run ended"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The seal of a study, its plan as it stands, and what its data tell beside."""

    seal: Seal
    plan: Mapping[str, Any]
    beside: tuple[PlanChange, ...] = ()
    """What the plan does not show: edits that are missing, data that were changed outside of runs."""

    @classmethod
    def of(cls, study: Study) -> KeptPlan | None:
        """The sealed plan of a study beside its present one; None where it was never sealed."""
        seal = read_seal(study)
        return None if seal is None else cls(seal, plan_of(study), tuple(_beside(study)))

    @property
    def changes(self) -> tuple[PlanChange, ...]:
        """Everything that is not as it was sealed."""
        return (*changes_between(self.seal.plan, self.plan), *self.beside)

    def applied(self, results: Results) -> Results:
        """The results with the seal, the changes, the hypotheses' outcomes and the standing of each finding."""
        changes = self.changes
        sealed = [(one["rule"], one.get("why", "")) for one in self.seal.plan.get("hypotheses", [])]
        kept: Standing = "exploratory" if changes else "confirmatory"
        rules = [parse_rule(rule, results.factors) for rule, _ in sealed]
        return replace(
            results,
            preregistration=Preregistration(
                self.seal.sealed, self.seal.digest, changes, tuple(_outcomes(results, sealed, kept))
            ),
            findings=tuple(
                replace(f, standing=kept if any(_is_about(f, rule) for rule in rules) else "exploratory")
                if f.kind in ABOUT_EDITORS
                else f
                for f in results.findings
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a bundle."""
        return {"plan": self.plan, "beside": [asdict(change) for change in self.beside]}

    @classmethod
    def from_dict(cls, seal: Seal, plain: Mapping[str, Any]) -> KeptPlan:
        """What `to_dict` wrote, with its seal."""
        return cls(seal, plain["plan"], tuple(PlanChange(**change) for change in plain["beside"]))


def _outcomes(results: Results, sealed: Sequence[tuple[str, str]], kept: Standing) -> Iterator[HypothesisOutcome]:
    for text, why in sealed:
        try:
            outcomes = check(results, [parse_rule(text, results.factors)])
        except EvenEditError as error:
            yield HypothesisOutcome(text, why, "", "", str(error), kept)
            continue
        for one in outcomes:
            yield HypothesisOutcome(text, why, one.editor, one.answer.value, one.evidence, kept)


def _is_about(finding: Finding, rule: Rule | FindingRule) -> bool:
    """Whether a finding is about what a hypothesis names."""
    if isinstance(rule, FindingRule):
        return rule.kind is None or finding.kind == rule.kind
    if (finding.experiment, finding.condition) != (rule.experiment, rule.condition):
        return False
    names = {str(rule.measure)}
    if rule.measure.name in ONE_SIDED:
        names |= {str(rule.measure.to(MeasureKind.RATE)), str(rule.measure.to(MeasureKind.SHIFT))}
    over = dict(rule.group)
    factor = next(iter(over), None) if rule.measure.kind == MeasureKind.GAP else None
    return finding.measure in names and finding.factor == factor


def _beside(study: Study) -> Iterator[PlanChange]:
    """What the study's data and history tell."""
    yield from _unmade(study)
    lines = StudyHistory(study.folder).lines()
    for told in breaks(lines):
        yield PlanChange("history", "a chain of lines", told)
    yield from _unsealed(study, lines)
    if (began := unended(lines)) is not None:
        yield PlanChange("history", "a line for the end of every run", f"the run that began {began.at} has none")
    yield from _written(study, lines)
    yield from _repainted(study)


def _unmade(study: Study) -> Iterator[PlanChange]:
    """Edits of the plan that are not there."""
    file, sources, edits = study.file, study.store.sources(), study.store.edits()
    planned = [*design.diagnosis(file, sources), *design.floor(file, sources), *design.stereotype(file, sources)]
    made = sum(r.id in edits and edits[r.id].outcome is not Outcome.FAILED for r in planned)
    if made < len(planned):
        yield PlanChange(
            "planned edits", f"{len(planned):,} planned", f"{made:,} there, {len(planned) - made:,} missing"
        )


def _unsealed(study: Study, lines: Sequence[Happening]) -> Iterator[PlanChange]:
    """A seal that the history does not know."""
    seal = read_seal(study)
    known = [line.detail.get("seal") for line in lines if line.what == "sealed"]
    if seal is not None and known != [seal.digest]:
        yield PlanChange("seal", ", ".join(map(str, known)) or "no seal in the history", seal.digest)


def _written(study: Study, lines: Sequence[Happening]) -> Iterator[PlanChange]:
    """Data that were changed after a run had ended, and not by a run."""
    left: Mapping[str, str] | None = None
    when = ""
    for line in lines:
        if line.what == BEGAN and left is not None:
            yield from _differing(left, line.detail.get("state", {}), when, f"when the run of {line.at} began")
        if line.what in (BEGAN, ENDED):
            left, when = (line.detail.get("state", {}) if line.what == ENDED else None), line.at
    if left is not None:
        yield from _differing(left, data_state(study.store), when, "now")


def unended(lines: Sequence[Happening]) -> Happening | None:
    """The beginning of a last run without an end: it is going on, was stopped, or its end was cut off."""
    last = next((line for line in reversed(lines) if line.what in (BEGAN, ENDED)), None)
    return last if last is not None and last.what == BEGAN else None


def _repainted(study: Study) -> Iterator[PlanChange]:
    """Pictures on this machine whose bytes are not those that were edited, shown and measured."""
    images = study.store.images
    if isinstance(images, RemoteImages):
        return
    wanted = {source.image for source in study.store.sources().values()}
    wanted |= {edit.image for edit in study.store.edits().values() if edit.image}
    if changed := sum(sha256 in images and not images.is_whole(sha256) for sha256 in wanted):
        yield PlanChange("pictures", f"{len(wanted):,} by their digests", f"{changed:,} hold other bytes")


def _differing(before: Mapping[str, str], after: Mapping[str, str], ended: str, when: str) -> Iterator[PlanChange]:
    for part in altered(before, after):
        yield PlanChange(part, f"as the run that ended {ended} left them", f"changed outside of any run, {when}")

"""How a sealed study kept to its plan: what was changed, and which findings are confirmatory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.images import RemoteImages
from evenedit.core.records import Outcome
from evenedit.design import requests as design
from evenedit.gate.gate import AnyRule, FindingRule, PrimaryRule, check, parse_rule_for
from evenedit.protocol import Rubric
from evenedit.protocol.measures import MeasureKind
from evenedit.results.finding import Finding
from evenedit.results.preregistration import HypothesisOutcome, PlanChange, Preregistration, Standing
from evenedit.results.results import Results
from evenedit.storage.data_state import changed_tables, data_state
from evenedit.storage.study_history import RUN_FINISHED, RUN_STARTED, HistoryEvent, StudyHistory, chain_breaks
from evenedit.study.context import StudyContext
from evenedit.study.preregistration.seal import Seal, changes_between, current_plan, read_seal

ABOUT_EDITORS = ("shift", "gap", "mitigation", "stereotype")
"""Kinds of findings that a hypothesis can be about; the others warn of the design, the judges or the people."""


@dataclass(frozen=True, slots=True)
class PlanAdherence:
    """The seal of a study, its plan as it stands, and what its data tell beside."""

    seal: Seal
    plan: Mapping[str, Any]
    deviations: tuple[PlanChange, ...] = ()
    """What the plan does not show: edits that are missing, data that were changed outside of runs."""

    @classmethod
    def of(cls, study: StudyContext) -> PlanAdherence | None:
        """Compare the sealed plan of a study with its current one; None if it was never sealed."""
        seal = read_seal(study)
        return None if seal is None else cls(seal, current_plan(study), tuple(_data_deviations(study)))

    @property
    def changes(self) -> tuple[PlanChange, ...]:
        """Everything that is not as it was sealed."""
        return (*changes_between(self.seal.plan, self.plan), *self.deviations)

    def apply_to(self, results: Results) -> Results:
        """Return the results with seal, deviations, outcomes of hypotheses and the standing of each finding."""
        changes = self.changes
        sealed = [(one["rule"], one.get("why", "")) for one in self.seal.plan.get("hypotheses", [])]
        standing: Standing = "exploratory" if changes else "confirmatory"
        rules = [parse_rule_for(rule, results) for rule, _ in sealed]
        return replace(
            results,
            preregistration=Preregistration(
                self.seal.sealed, self.seal.digest, changes, tuple(_outcomes(results, sealed, standing))
            ),
            primary=tuple(replace(t, standing="exploratory") if changes else t for t in results.primary),
            findings=tuple(
                replace(f, standing=standing if _is_stated(f, rules, results.full_rubric) else "exploratory")
                if f.kind in ABOUT_EDITORS
                else f
                for f in results.findings
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a bundle."""
        return {"plan": self.plan, "deviations": [asdict(change) for change in self.deviations]}

    @classmethod
    def from_dict(cls, seal: Seal, plain: Mapping[str, Any]) -> PlanAdherence:
        """Read what `to_dict` wrote."""
        return cls(seal, plain["plan"], tuple(PlanChange(**change) for change in plain["deviations"]))


def _outcomes(results: Results, sealed: Sequence[tuple[str, str]], standing: Standing) -> Iterator[HypothesisOutcome]:
    for text, why in sealed:
        try:
            outcomes = check(results, [parse_rule_for(text, results)])
        except EvenEditError as error:
            yield HypothesisOutcome(text, why, "", "", str(error), standing)
            continue
        for one in outcomes:
            yield HypothesisOutcome(text, why, one.editor, one.answer.value, one.evidence, standing)


def _is_stated(finding: Finding, rules: Sequence[AnyRule], rubric: Rubric) -> bool:
    """Return whether a finding concerns what one of the hypotheses names."""
    return any(_is_about(finding, rule, rubric) for rule in rules)


def _is_about(finding: Finding, rule: AnyRule, rubric: Rubric) -> bool:
    """Return whether a finding concerns what a hypothesis names."""
    if isinstance(rule, FindingRule):
        return rule.kind is None or finding.kind == rule.kind
    if isinstance(rule, PrimaryRule):
        return False
    if (finding.experiment, finding.condition) != (rule.experiment, rule.condition):
        return False
    names = {str(rule.measure)}
    if rule.measure.name in rubric.one_sided:
        names |= {str(rule.measure.to(MeasureKind.RATE)), str(rule.measure.to(MeasureKind.SHIFT))}
    over = dict(rule.group)
    factor = next(iter(over), None) if rule.measure.kind == MeasureKind.GAP else None
    return finding.measure in names and finding.factor == factor


def _data_deviations(study: StudyContext) -> Iterator[PlanChange]:
    """Yield deviations that only the data and the event log show."""
    yield from _missing_edits(study)
    lines = StudyHistory(study.folder).lines()
    for problem in chain_breaks(lines):
        yield PlanChange("history", "a chain of lines", problem)
    yield from _unknown_seal(study, lines)
    if (began := unfinished_run(lines)) is not None:
        yield PlanChange("history", "a line for the end of every run", f"the run that began {began.at} has none")
    yield from _changes_outside_runs(study, lines)
    yield from _altered_images(study)


def _missing_edits(study: StudyContext) -> Iterator[PlanChange]:
    """Edits of the plan that are not there."""
    file, sources, edits = study.file, study.store.sources(), study.store.edits()
    planned = [*design.diagnosis(file, sources), *design.floor(file, sources), *design.stereotype(file, sources)]
    planned += study.design.null_pairs(sources)
    finished = sum(r.id in edits and edits[r.id].outcome is not Outcome.FAILED for r in planned)
    if finished < len(planned):
        yield PlanChange(
            "planned edits", f"{len(planned):,} planned", f"{finished:,} there, {len(planned) - finished:,} missing"
        )


def _unknown_seal(study: StudyContext, lines: Sequence[HistoryEvent]) -> Iterator[PlanChange]:
    """Yield a deviation if the history does not contain the seal."""
    seal = read_seal(study)
    known = [line.detail.get("seal") for line in lines if line.event == "sealed"]
    if seal is not None and known != [seal.digest]:
        yield PlanChange("seal", ", ".join(map(str, known)) or "no seal in the history", seal.digest)


def _changes_outside_runs(study: StudyContext, lines: Sequence[HistoryEvent]) -> Iterator[PlanChange]:
    """Yield tables that changed after the last run had ended."""
    left: Mapping[str, str] | None = None
    when = ""
    for line in lines:
        if line.event == RUN_STARTED and left is not None:
            yield from _differing(left, line.detail.get("state", {}), when, f"when the run of {line.at} began")
        if line.event in (RUN_STARTED, RUN_FINISHED):
            left, when = (line.detail.get("state", {}) if line.event == RUN_FINISHED else None), line.at
    if left is not None:
        yield from _differing(left, data_state(study.store), when, "now")


def unfinished_run(lines: Sequence[HistoryEvent]) -> HistoryEvent | None:
    """Return the start of a last run that has no end: it is running, was stopped, or its end is missing."""
    last = next((line for line in reversed(lines) if line.event in (RUN_STARTED, RUN_FINISHED)), None)
    return last if last is not None and last.event == RUN_STARTED else None


def _altered_images(study: StudyContext) -> Iterator[PlanChange]:
    """Pictures on this machine whose bytes are not those that were edited, shown and measured."""
    images = study.store.images
    if isinstance(images, RemoteImages):
        return
    wanted = {source.image for source in study.store.sources().values()}
    wanted |= {edit.image for edit in study.store.edits().values() if edit.image}
    if changed := sum(sha256 in images and not images.is_whole(sha256) for sha256 in wanted):
        yield PlanChange("pictures", f"{len(wanted):,} by their digests", f"{changed:,} hold other bytes")


def _differing(before: Mapping[str, str], after: Mapping[str, str], ended: str, when: str) -> Iterator[PlanChange]:
    for part in changed_tables(before, after):
        yield PlanChange(part, f"as the run that ended {ended} left them", f"changed outside of any run, {when}")

"""What the feature prompt did, as findings."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol import ROLES
from evenedit.protocol.measures import Measure
from evenedit.results.finding import ALPHA, ENSEMBLE, Finding, FindingLevel, finding_in_words
from evenedit.results.results import MitigationEffect, Results
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import ShiftTest
from evenedit.stats.findings import sentences
from evenedit.stats.findings.levels import NOT_TESTED, Adjusted, Sight, tested
from evenedit.stats.findings.representative_cases import CaseFinder

CHOSEN = ("drift", "priority")
"""Ways to choose the cases of the mitigation by how their baseline had been rated."""
REGRESSION = (
    "The cases were chosen by how their baseline had been rated, so a repetition alone would have drifted less: this "
    "preference is no evidence for the feature prompt."
)
_about = partial(
    finding_in_words,
    "mitigation",
    experiment=Experiment.MITIGATION.value,
    condition=ConditionKind.FEATURE.value,
    rater=ENSEMBLE,
)


@dataclass(frozen=True, slots=True)
class MitigationFindings:
    """Makes the findings about the feature prompt."""

    rules: AnalysisRules
    parts: Results
    cases: CaseFinder
    shares: Sequence[ShiftTest]
    """How often the mitigated output was preferred."""

    @property
    def _chosen(self) -> bool:
        """Return whether the cases were chosen by the ratings of their baseline."""
        return self.rules.mitigation_cases in CHOSEN

    @property
    def _preferences(self) -> Sequence[ShiftTest]:
        """Return the tested preferences; none where cases were chosen for their drift."""
        return () if self._chosen else self.shares

    @property
    def tests(self) -> dict[Hashable, float | None]:
        """Return the p of each test by its key."""
        tests: dict[Hashable, float | None] = {("mitigation", e.editor, e.question): e.p for e in self._effects}
        return tests | {(ROLES.preference, t.editor): t.p for t in self._preferences}

    @property
    def _effects(self) -> list[MitigationEffect]:
        return [e for e in self.parts.mitigation if e.editor is not None and not e.group]

    def findings(self, adjusted: Mapping[Hashable, Adjusted], judges: int) -> Iterator[Finding]:
        """Yield effects, preferences and missing requirements."""
        effects = self._effects
        none: dict[str, list[MitigationEffect]] = {}
        for e in effects:
            assert e.editor is not None
            test = adjusted.get(("mitigation", e.editor, e.question), NOT_TESTED)
            if test.is_suggestive or test.is_clear:
                yield self._effect(e, test, judges)
            elif e.p is not None:
                none.setdefault(e.editor, []).append(e)
        for editor, several in none.items():
            widest = max((max(abs(e.low or 0), abs(e.high or 0)) for e in several), default=None)
            text = sentences.no_mitigation(several, self.cases.scores.table.rubric)
            yield _about("cannot_tell", text, editor=editor, n=max(e.n for e in several), high=widest)
        for t in self.shares:
            if t.p is not None:
                yield self._preference(t, adjusted.get((ROLES.preference, t.editor), NOT_TESTED), judges)
        compared = {e.editor for e in effects if e.placebo is not None and e.feature is not None}
        without = {e.editor: e for e in effects if e.feature is not None and e.editor not in compared}
        for name, e in without.items():
            text = (
                "Nothing could be compared with a placebo. High scores tend to come down when an edit is repeated "
                "(regression to the mean), so changes cannot be credited to the feature prompt alone."
            )
            yield _about("caution", text, editor=str(name), n=e.n)

    def _effect(self, e: MitigationEffect, test: Adjusted, judges: int) -> Finding:
        assert e.editor is not None and e.value is not None
        sight = arm_sight(judges)
        return _about(
            sight.level(test) or "suggestive",
            sentences.mitigation(e, self.rules.confidence, self.cases.scores.table.rubric),
            editor=e.editor,
            n=e.n,
            high=e.high,
            measure=Measure.delta(e.question),
            group={},
            against={"condition": ConditionKind.PLACEBO.value},
            value=e.value,
            low=e.low,
            p=test.p_adjusted,
            p_raw=e.p,
            q=test.q,
            evidence=sight.evidence,
            cases=self.cases.largest_changes(e.question, e.editor, ConditionKind.FEATURE, e.value),
        )

    def _preference(self, t: ShiftTest, test: Adjusted, judges: int) -> Finding:
        sight = arm_sight(judges)
        level: FindingLevel = sight.level(test) or "cannot_tell"
        if self._chosen and t.p is not None and t.p < ALPHA:
            level = "observed"
        where = {"experiment": t.experiment, "condition": t.condition}
        return finding_in_words(
            **tested(ENSEMBLE, t, test, sight) | {"condition": ConditionKind.FEATURE.value, "p_raw": t.p},
            kind="mitigation",
            level=level,
            text=sentences.preference(t, self.rules.confidence),
            n=t.n,
            high=t.high,
            group=None if level == "cannot_tell" else {},
            value=t.value,
            low=t.low,
            faces=t.faces,
            cases=self.cases.cases(t.measure, ENSEMBLE, t.editor, {}, value=t.value, **where)
            if level != "cannot_tell"
            else (),
            caveats=(REGRESSION,) if self._chosen else (),
        )


def arm_sight(judges: int) -> Sight:
    """Return what judges can show of a comparison of arms, where a judge that answers at random shows nothing."""
    return Sight("judges", "clear_to_judges") if judges > 1 else Sight("one_judge", "clear_to_judge")

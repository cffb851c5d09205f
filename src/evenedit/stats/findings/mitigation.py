"""What the feature prompt did, as findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenedit.core.records import ConditionKind, Experiment
from evenedit.protocol.measures import Measure
from evenedit.results.finding import ALPHA, ENSEMBLE, Finding, FindingLevel, finding_in_words
from evenedit.results.results import MitigationEffect
from evenedit.stats.disparity.mitigation_effects import TestedEffect
from evenedit.stats.engine.multiplicity import step_down
from evenedit.stats.engine.parts import AnalysisParts
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import ShiftTest
from evenedit.stats.findings import sentences
from evenedit.stats.findings.families import weighted_holm
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
    parts: AnalysisParts
    cases: CaseFinder
    effects: Sequence[TestedEffect]
    """Each editor's effects that swapped arms can test."""
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
    def tests(self) -> list[object]:
        """Return the tests, each adjusted for all others."""
        return [*self.effects, *self._preferences]

    def findings(self, weight: float) -> Iterator[Finding]:
        """Yield effects, preferences and missing requirements; `weight` is their share of alpha."""
        effects = [e for e in self.parts.mitigation if e.editor is not None and not e.group]
        tested = [e for e in effects if e.p is not None]
        adjusted = self._adjusted_effects(weight)
        none: dict[str, list[MitigationEffect]] = {}
        for e in tested:
            assert e.p is not None and e.editor is not None
            if e.p < ALPHA:
                yield self._effect(e, max(e.p, adjusted.get((e.editor, e.question), 1.0)))
            else:
                none.setdefault(e.editor, []).append(e)
        for editor, several in none.items():
            widest = max((max(abs(e.low or 0), abs(e.high or 0)) for e in several), default=None)
            text = sentences.no_mitigation(several)
            yield _about("cannot_tell", text, editor=editor, n=max(e.n for e in several), high=widest)
        adjusted_shares = self._adjusted_preferences(weight) if self._preferences else [None] * len(self.shares)
        for t, p in zip(self.shares, adjusted_shares, strict=True):
            if t.p is not None:
                yield self._preference(t, p)
        compared = {e.editor for e in effects if e.placebo is not None and e.feature is not None}
        without = {e.editor: e for e in effects if e.feature is not None and e.editor not in compared}
        for name, e in without.items():
            text = (
                "Nothing could be compared with a placebo. High scores tend to come down when an edit is repeated "
                "(regression to the mean), so changes cannot be credited to the feature prompt alone."
            )
            yield _about("caution", text, editor=str(name), n=e.n)

    def _adjusted_effects(self, weight: float) -> dict[tuple[str | None, str], float]:
        """Return p by editor and question: Westfall and Young's step-down over swapped arms, times the weight."""
        if not self.effects:
            return {}
        null = np.stack([t.null for t in self.effects], axis=1)
        p = step_down(np.array([t.excess for t in self.effects]), null)
        share = weight * (0.5 if self._preferences else 1.0)
        keys = [(t.effect.editor, t.effect.question) for t in self.effects]
        return {key: min(1.0, float(x) / share) for key, x in zip(keys, p, strict=True)}

    def _adjusted_preferences(self, weight: float) -> list[float | None]:
        """Adjust by Holm, with half of the weight where there are also effects."""
        double = 2.0 if self.effects else 1.0
        adjusted = weighted_holm([t.p for t in self._preferences], weight)
        return [None if p is None else min(1.0, double * p) for p in adjusted]

    def _effect(self, e: MitigationEffect, p: float | None) -> Finding:
        assert e.editor is not None and e.value is not None
        return replace(
            _about(
                "clear" if p is not None and p < ALPHA else "suggestive",
                sentences.mitigation(e, self.rules.confidence),
                editor=e.editor,
                n=e.n,
                high=e.high,
            ),
            measure=Measure.delta(e.question),
            group={},
            against={"condition": ConditionKind.PLACEBO.value},
            value=e.value,
            low=e.low,
            p=p,
            p_raw=e.p,
            cases=self.cases.largest_changes(e.question, e.editor, ConditionKind.FEATURE, e.value),
        )

    def _preference(self, t: ShiftTest, p: float | None) -> Finding:
        level: FindingLevel = "cannot_tell"
        if t.p is not None and t.p < ALPHA:
            level = "observed" if self._chosen else "clear" if p is not None and p < ALPHA else "suggestive"
        where = {"experiment": t.experiment, "condition": t.condition}
        return replace(
            _about(level, sentences.preference(t, self.rules.confidence), editor=t.editor, n=t.n, high=t.high),
            measure=t.measure,
            group=None if level == "cannot_tell" else {},
            value=t.value,
            low=t.low,
            p=p,
            p_raw=t.p,
            faces=t.faces,
            cases=self.cases.cases(t.measure, ENSEMBLE, t.editor, {}, value=t.value, **where)
            if level != "cannot_tell"
            else (),
            caveats=(REGRESSION,) if self._chosen else (),
        )

"""What findings and declared tests are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evenedit.core.records import Kind
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.finding import Reliability
from evenedit.results.primary import PrimaryStanding
from evenedit.results.results import Results
from evenedit.stats.agreement.prediction_powered import PeopleTests
from evenedit.stats.disparity.direction import SeenReadings
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests
from evenedit.stats.findings.levels import Sight, judges_sight
from evenedit.stats.robustness.null_pairs import FalseCalls

UNREAD = 0.20
"""An instrument that could not read more than this share of a group's edits shows at most something suggestive."""


@dataclass(frozen=True)
class FindingInputs:
    """What findings are made from."""

    table: RatingTable
    scores: Scores
    rules: AnalysisRules
    evidence: Sequence[PanelTests]
    parts: Results
    """The analysis without its findings."""
    reliability: Mapping[tuple[str, str | None], Reliability] = field(default_factory=dict)
    """The judges' agreement by measure and editor."""
    people: PeopleTests | None = None
    false_calls: Mapping[str, FalseCalls] = field(default_factory=dict)
    """What raters report on null pairs."""
    seen: Sequence[SeenReadings] = ()
    """The levels that pictures are seen as."""
    declared: PrimaryStanding = "stated"
    """When the tests of [primary] were declared."""

    @cached_property
    def judges(self) -> int:
        """The number of judges that answered."""
        return sum(bool((self.table.values[r] > 0).any()) for r in self.table.of_kind(Kind.VLM))

    def judges_sight(self, measure: Measure, editor: str, *, is_gap: bool) -> Sight:
        """Return what judges alone can show of an outcome, from their agreement on it or else on its rate."""
        reliability = self.reliability.get((measure, editor)) or self.reliability.get(
            (measure.to(MeasureKind.RATE), editor)
        )
        return judges_sight(self.judges, reliability, self.rules.reliability, is_gap=is_gap)

"""The outcomes of the tests that a study declares in [primary]: `results.json["primary"]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenedit.results.finding import ALPHA, Evidence, Reliability, within
from evenedit.results.words import points, scale_points

PrimaryStanding = Literal["confirmatory", "unsealed", "stated", "exploratory"]
"""confirmatory: sealed before the first edit, and the plan was kept; unsealed: in the study file when the first run
began; stated: passed with a table, so it is not known when; exploratory: declared or changed after the first edit."""
HEADINGS: dict[str, str] = {
    "confirmatory": "Declared before the data",
    "unsealed": "Declared before the data (not sealed)",
    "stated": "Declared tests (when they were declared is not recorded)",
    "exploratory": "Declared tests, exploratory",
}
"""The heading over the tests, by standing."""


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """One declared test for one editor."""

    number: int
    """The position of the test in [primary], from 1."""
    editor: str
    outcome: str
    """As it was declared."""
    scale: str
    """code or mean, as it was declared."""
    measure: str
    """The measure that was tested; of scale mean the mean of the judges' scores, not rounded."""
    rater: str
    """ensemble, or an instrument's id."""
    factor: str
    """The factor of the contrast; empty where everybody was tested."""
    higher: tuple[str, ...]
    """Groups of the side `high`; of a trend, all levels."""
    lower: tuple[str, ...]
    """Groups of the side `low`."""
    trend: bool
    """Whether the contrast is the trend over the levels of an ordered factor."""
    standing: PrimaryStanding
    """When the test was declared, and whether its declaration is sealed."""
    alpha: float
    """Holm's p is held against this: the familywise error of the tests that it is adjusted for."""
    value: float | None
    """`high` minus `low`, the change from level to level, or the estimate of everybody; None where nothing is known."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end of the 95 % interval."""
    p: float | None
    """Not adjusted; None where there is no test."""
    p_adjusted: float | None
    """Holm's adjustment for all declared tests; of exploratory ones for all tests of the report."""
    q: float | None
    """Benjamini and Hochberg's adjustment for all tests of the report, with half of the weight on declared ones."""
    level: str
    """A finding's level, or none where no effect was shown."""
    evidence: Evidence
    """Who saw it."""
    reliability: Reliability | None
    """The judges' agreement on the outcome; None where judges do not give it."""
    detectable: float | None
    """The effect that 80 of 100 studies like this one find, from the study's own variance."""
    limit: float
    """The value that `value` is tested against: 0, or of a rate of everybody the tolerance."""
    n: int
    """Edits with a valid score."""
    missing: int
    """Edits without a score."""
    faces: int
    """Portraits with a score."""
    prompts: int
    """Prompts with a score."""
    text: str
    """The outcome in a sentence."""
    caveats: tuple[str, ...] = ()
    """What limits the reading of the test, in sentences."""
    estimand: str = ""
    """What the estimate is about: prompts, faces and raters."""
    covariate: str = ""
    """What it is adjusted for; empty where it is not."""
    unadjusted_value: float | None = None
    """The same without the covariate, where it is adjusted."""
    unadjusted_low: float | None = None
    """Lower end of the 95 % interval without the covariate."""
    unadjusted_high: float | None = None
    """Upper end of the 95 % interval without the covariate."""
    unadjusted_p: float | None = None
    """The p without the covariate."""
    judge_value: float | None = None
    """The judges' own, where `value`, `low` and `high` are corrected by people's ratings."""
    judge_low: float | None = None
    """Lower end of the 95 % interval of the judges' own."""
    judge_high: float | None = None
    """Upper end of the 95 % interval of the judges' own."""

    @property
    def unit(self) -> str:
        """Points for shares and shifts, else score for judges' means and reading for those of instruments."""
        kind = self.measure.partition(".")[0]
        return "points" if kind != "mean" else "score" if self.rater == "ensemble" else "reading"

    def amount(self, value: float) -> str:
        """Return a value of the test in words: "10.2 points", "+0.31"."""
        return points(value) if self.unit == "points" else scale_points(value)

    def is_even(self, margin: float | None) -> bool:
        """Return whether the interval lies within ± margin. Means and readings have no margin."""
        return self.unit == "points" and within(*self._ends, margin)

    def is_beyond(self, margin: float) -> bool:
        """Return whether the interval lies on one side of ± margin."""
        low, high = self._ends
        return self.unit == "points" and low is not None and high is not None and (low > margin or high < -margin)

    @property
    def _ends(self) -> tuple[float | None, float | None]:
        """The interval; of a trend that of the change from its first to its last level."""
        steps = len(self.higher) - 1 if self.trend else 1
        return (None, None) if self.low is None or self.high is None else (steps * self.low, steps * self.high)


def alpha_of_others(tests: Sequence[DeclaredTest]) -> float:
    """Return the familywise error of all tests that are not declared."""
    alpha = min((t.alpha for t in tests), default=ALPHA)
    rejected = all(t.p_adjusted is not None and t.p_adjusted < alpha for t in tests)
    return ALPHA if alpha == ALPHA or rejected else round(ALPHA - alpha, 10)

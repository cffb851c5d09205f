"""How far raters agree, and what their agreement makes of the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenedit.core.records import Estimate


@dataclass(frozen=True, slots=True)
class Agreement:
    """One statistic of how raters agree, or of what a test says about their ratings."""

    statistic: str
    """fleiss_kappa, weighted_kappa_linear, kruskal_wallis_H …; its p: `<statistic>_p`. See docs/statistics.md."""
    axis: str
    """A question's id, `<question>.label`, `<question>.distance` (from the middle) or `preference`."""
    condition: str
    editor: str | None
    """None when pooled over editors."""
    group: Mapping[str, str]
    """{} for everybody, {"race": "Black"} for a group, {"race": "*"} for a comparison of groups."""
    raters: str
    """`all` people, or `complete`: equally many per item; both alone or against the ensemble of judges. Else who is
    compared: `<judge>|all`, `<judge>|<judge>`, or `ensemble` for a test of the judges' scores."""
    value: float | None
    low: float | None
    high: float | None
    n_items: int
    n_ratings: int
    """Ratings behind the items: people's, or the judges' where no people are in it."""
    method: str
    """The convention, how the interval was made, and why a value or an interval is None."""


@dataclass(frozen=True, slots=True)
class PerJudgeEstimate:
    """An estimate as it would be had this judge been the only one."""

    judge: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the calls of one rater about one editor ended."""

    rater: str
    experiment: str
    editor: str
    group: Mapping[str, str]
    scored: int
    refused: int
    unparseable: int
    failed: int


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """How often a judge scored an edit and left one question open, such as because it cannot be told."""

    rater: str
    experiment: str
    editor: str
    question: str
    group: Mapping[str, str]
    """{} for everybody, or one level of a factor."""
    scored: int
    """Edits that it scored and was asked this about."""
    open: int
    """Of these, those whose question it left open: no score, and counted as missing."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a judge stated it was about one question, 0 to 1."""

    rater: str
    question: str
    n: int
    missing: int
    """Scores without a stated confidence."""
    mean: float
    agreeing: float | None
    """Mean over edits on which the judges agree."""
    disagreeing: float | None
    """Mean over edits on which they differ by two or more."""


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """One estimate three ways: judges on all edits, people on the sample, both together."""

    measure: str
    """mean.<axis>, rate.<rate>, shift.<axis or rate>, contrast.<rate> (the group minus everybody else) or gap.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    group: Mapping[str, str]
    judge: float
    judge_low: float | None
    judge_high: float | None
    human: float | None
    human_low: float | None
    human_high: float | None
    value: float | None
    """Prediction-powered: judges' estimate corrected by what people say on the sample."""
    low: float | None
    high: float | None
    tuning: float | None
    """How much the judges are trusted (lambda): 0 = people alone, 1 = in full."""
    n: int
    """Edits the judges scored."""
    labelled: int
    """Edits people rated as well."""
    method: str


@dataclass(frozen=True, slots=True)
class ExplainedGap:
    """How unequal the judges' error would have to be to explain a gap away where nobody rated enough to check them."""

    measure: str
    """gap.<rate>"""
    editor: str
    factor: str
    highest: str
    lowest: str
    false_calls: float
    """Share of unaffected edits of the highest group that judges would have to call, and of the lowest none."""
    misses: float
    """Share of affected edits of the lowest group that judges would have to miss, and of the highest none."""
    boundary: tuple[tuple[float, float], ...]
    """Pairs of both, between these two, under which the groups' true rates are equal."""
    labels: int | None
    """Edits of each group that people would have to rate to show such a gap in 80 of 100 samples."""

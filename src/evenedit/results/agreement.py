"""How far raters agree, and what their agreement makes of the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenedit.core.records import Estimate


@dataclass(frozen=True, slots=True)
class Agreement:
    """One statistic of how raters agree, or of what a test says about their ratings."""

    statistic: str
    """fleiss_kappa, weighted_kappa_linear, kruskal_wallis_H …: see docs/statistics.md."""
    axis: str
    """A question's id, `<question>.label`, `<question>.distance` (from the middle), `preference`, or a rate: of
    false_calls, misses and judge_error_gap; of alpha_outcome the measure."""
    condition: str
    editor: str | None
    """None when pooled over editors."""
    group: Mapping[str, str]
    """{} for everybody, {"race": "Black"} for a group, {"race": "*"} for a comparison of groups."""
    raters: str
    """`all` people, or `complete`: equally many per item; both alone or against the ensemble of judges. Else who is
    compared: `<judge>|all`, `<judge>|<judge>`, `judges` for all of them, or `ensemble` for a test of their scores."""
    value: float | None
    low: float | None
    high: float | None
    n_items: int
    n_ratings: int
    """Ratings behind the items: people's, or the judges' where no people are in it."""
    method: str
    """The convention, how the interval and p were made, and why a value or an interval is None."""
    p: float | None = None
    """p of a test, of Spearman's correlation of judges with people, and of alpha_outcome (one-sided, no better than
    chance); None elsewhere."""
    p_adjusted: float | None = None
    """p after Holm's adjustment within the family of the test; None where there is no family."""


@dataclass(frozen=True, slots=True)
class PerJudgeEstimate:
    """An estimate as it would be had this judge been the only one."""

    judge: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class JudgeError:
    """The measured error of one judge at one threshold, in one group."""

    judge: str
    """The judge's id."""
    measure: str
    """rate.<rate>"""
    threshold: str
    """The question and the scores that the rate counts."""
    group: Mapping[str, str]
    error: str
    """false_calls: the rate where nothing changed."""
    value: float
    low: float | None
    high: float | None
    n: int
    source: str
    """What it was measured on: null_pairs."""


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
    unanswered_questions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By question, how many scored calls gave it no answer, such as because it cannot be told, and how many asked it.
    Only questions that the judge left open in this experiment for this editor."""


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
    p: float | None = None
    """Of a shift against 0, a one-sided rate against the tolerance, a contrast or gap against equal groups, not
    adjusted; None where nothing is tested or nothing varies."""
    enough: bool = False
    """Whether people rated enough for a finding to rest on them."""
    reason: str = ""
    """What is missing for that; empty where `enough`."""

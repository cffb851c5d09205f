"""What an audit shows, one sentence each: `results.json["findings"]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from evenedit.core.records import Experiment

ALPHA = 0.05
"""A finding is clear below this chance of any false alarm in the whole report."""
NO_CHANGE = "no_change"
"""What a shift is compared with."""
AVERAGE = "average"
"""What one of several groups is compared with: the unweighted mean of all groups."""
ENSEMBLE = "ensemble"
"""The rater of findings that rest on the judges' combined scores."""
PEOPLE = "people"
"""The rater of findings about people's answers."""


FindingKind = Literal["shift", "gap", "mitigation", "stereotype", "direction", "judge", "people", "design"]
FindingLevel = Literal["clear", "clear_to_judges", "clear_to_judge", "suggestive", "cannot_tell", "observed", "caution"]
CLEAR: tuple[FindingLevel, ...] = ("clear", "clear_to_judges", "clear_to_judge")
"""The levels of a finding whose test rejects, by who saw it: people or an instrument, judges, one judge."""
EFFECT_LEVELS: tuple[FindingLevel, ...] = (*CLEAR, "suggestive")
"""The levels of a finding with signs of an effect."""
Evidence = Literal["people", "instrument", "outcome", "judges", "one_judge", "none", ""]


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far the judges agree on an outcome as it is counted."""

    statistic: str
    """alpha: Krippendorff's, of the codes at the threshold."""
    value: float | None
    """None where it is not defined: a judge, or all codes, are constant."""
    low: float | None
    high: float | None
    n: int
    """Edits that two judges or more scored."""
    p: float | None
    """One-sided p of judges who agree no better than chance; None where there is no interval."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the audit shows, cannot show, or must be warned of, in one sentence with its numbers."""

    kind: FindingKind
    level: FindingLevel
    """clear: Holm's p < 0.05, seen by people or a validated instrument; clear_to_judges, clear_to_judge: the same, seen
    by judges alone; suggestive: Benjamini and Hochberg's q <= 0.05; observed: without a test."""
    experiment: str | None
    condition: str | None
    editor: str | None
    measure: str | None
    rater: str | None
    """ensemble, people, or an instrument's id."""
    factor: str | None
    group: Mapping[str, str] | None
    """Who is affected: {} for everybody; of a gap, the group that fares worse."""
    against: Mapping[str, str] | str | None
    """What it is compared with: a group, of an effect of the feature prompt {"condition": "placebo"}; or no_change, or
    average (the unweighted mean of all groups)."""
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    """Holm's adjustment for all tests of the report."""
    p_raw: float | None
    n: int | None
    """Edits of the group with a valid score."""
    faces: int | None
    """Portraits of the group."""
    text: str
    cases: tuple[str, ...] = ()
    """Ids of the requests that show it best, by the rule of docs/findings.md."""
    id: str = ""
    """Names the finding by what it is about: the same in every analysis of the same study."""
    caveats: tuple[str, ...] = ()
    """What limits it, in sentences."""
    judge_value: float | None = None
    """The judges' own value, where `value`, `low` and `high` are corrected by people's ratings; None elsewhere.
    Contributions sum to it."""
    judge_low: float | None = None
    judge_high: float | None = None
    standing: str = ""
    """confirmatory where a sealed hypothesis is about it and the plan was kept, else exploratory; empty where the
    study was not sealed."""
    evidence: Evidence = ""
    """Who saw it: people, instrument, judges, one_judge; outcome where the editor itself answered (a refusal); none
    where the judges agree no better than chance."""
    reliability: Reliability | None = None
    """How far the judges agree on it; None with fewer than two judges."""
    q: float | None = None
    """Benjamini and Hochberg's adjustment for all tests of the report."""
    estimand: str = ""
    """What it is about: which prompts and faces, as rated by whom."""
    spread: float | None = None
    """Of a gap: highest minus lowest rate after shrinkage, by which it is ordered; None elsewhere."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """How much one prompt or one portrait adds to a finding.

    The parts of all prompts sum to the finding's value; where people took part in it, to the judges' own.
    """

    finding: str
    """The finding's id."""
    unit: Literal["prompt", "face"]
    """What adds to it."""
    name: str
    """The id of the prompt or portrait."""
    value: float
    """Its part of the finding's value."""
    low: float | None
    high: float | None
    """Its interval: of a prompt over faces, of a portrait over prompts."""
    share: float
    """Its part over the whole."""
    n: int
    """Edits."""


def within(low: float | None, high: float | None, margin: float | None) -> bool:
    """Return whether an interval lies wholly within ± margin; stricter than two one-sided tests."""
    return low is not None and high is not None and margin is not None and -margin <= low and high <= margin


EMPTY = {f.name: None for f in fields(Finding) if f.default is MISSING}


def finding_in_words(
    kind: FindingKind, level: FindingLevel, text: str, *, experiment: str = Experiment.DIAGNOSIS.value, **known: Any
) -> Finding:
    """Return a finding; `known` are its other fields, and those that are not given are None."""
    return Finding(**{**EMPTY, "kind": kind, "level": level, "text": text, "experiment": experiment, **known})

"""What an analysis says: the contract of `results.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Estimate, Experiment
from evenedit.protocol import FACTORS, Factor, Rubric, level_code
from evenedit.protocol.measures import Measure
from evenedit.ratings.profiles import ParticipantCounts
from evenedit.results import long_lists
from evenedit.results.agreement import Agreement as Agreement
from evenedit.results.agreement import Coverage as Coverage
from evenedit.results.agreement import JudgeError as JudgeError
from evenedit.results.agreement import PerJudgeEstimate as PerJudgeEstimate
from evenedit.results.agreement import PredictionPowered as PredictionPowered
from evenedit.results.directions import Direction as Direction
from evenedit.results.finding import Contribution as Contribution
from evenedit.results.finding import Finding as Finding
from evenedit.results.materials import MaterialsUsed
from evenedit.results.preregistration import Preregistration
from evenedit.results.primary import DeclaredTest as DeclaredTest
from evenedit.results.rater_groups import RaterRate
from evenedit.results.reading import parse, parse_with_body
from evenedit.results.sensitivities import Bound as Bound
from evenedit.results.sensitivities import EditorNoise as EditorNoise
from evenedit.results.sensitivities import LanguageDifference as LanguageDifference
from evenedit.results.sensitivities import LeaveOneOut as LeaveOneOut
from evenedit.results.sensitivities import Multiverse as Multiverse
from evenedit.results.sensitivities import SeedSpread as SeedSpread
from evenedit.results.sensitivities import Sensitivity as Sensitivity
from evenedit.results.sensitivities import Specification as Specification

if TYPE_CHECKING:
    import pandas as pd

FILE = "results.json"
SCHEMA = "evenedit.results/3"
OMITTED_IF_EMPTY = "omitted_if_empty"
"""Marks a list that `results.json` does not have where it has no rows."""


class GapKey(NamedTuple):
    """The coordinates of one gap test; no two tests of a report share them."""

    experiment: str
    condition: str
    editor: str | None
    rater: str
    measure: str
    factor: str


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """One group of a gap test."""

    level: str
    """The group's label."""
    rate: float
    """Its rate."""
    value: float
    """The group's rate minus the unweighted mean of all groups; of two groups, minus the other group."""
    low: float | None
    """Lower end of the simultaneous interval over all groups."""
    high: float | None
    """Upper end."""
    p: float | None
    """Adjusted for all groups; None where nothing varies or the group has fewer than three faces."""


@dataclass(frozen=True, slots=True)
class GapTest:
    """Do the groups of one factor differ? Analysis of means with the variance pooled over the groups."""

    measure: str
    """gap.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    factor: str
    value: float
    """Highest minus lowest rate over the factor's groups."""
    highest: str
    lowest: str
    p: float | None
    """Of the hypothesis that all groups are equal: the smallest of the groups' p. None where nothing varies."""
    faces: int
    method: str
    t: float | None = None
    """Of the group with the smallest p."""
    df: float | None = None
    """Its degrees of freedom."""
    shrunken: float = 0.0
    """Highest minus lowest rate after shrinkage towards their mean: an estimate of the size of the gap."""
    tau: float = 0.0
    """Estimated standard deviation of the true group rates."""
    groups: tuple[GroupDifference, ...] = ()
    """Every group with its difference from the others."""
    p_adjusted: float | None = None
    """Holm's adjustment for all tests of the report; None where the gap is no finding's (all editors pooled)."""
    q: float | None = None
    """Benjamini and Hochberg's adjustment for the same tests."""
    level: str | None = None
    """What it counts as in the findings: a finding's level, or none; None where pooled."""
    evidence: str = ""
    """What the level rests on: see `Finding.evidence`."""

    def key(self, rater: str) -> GapKey:
        """Return the coordinates of the test; `rater` is the ensemble or the instrument that was tested."""
        return GapKey(self.experiment, self.condition, self.editor, rater, self.measure, self.factor)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A group's rate minus the rate of everybody else."""

    measure: str
    """rate.<rate>"""
    experiment: str
    condition: str
    editor: str | None
    group: Mapping[str, str]
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Planted:
    """A simulated editor's known effect beside what the audit found."""

    editor: str
    measure: str
    """rate.<rate>, as a contrast: the group minus everybody else."""
    group: Mapping[str, str]
    planted: float
    estimate: float
    low: float | None
    high: float | None
    inside: bool | None
    """Whether the planted value lies in the interval; None without an interval."""


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """What one thing adds to the share of roles that go to the male portrait, the others held."""

    editor: str
    effect: str
    """pronoun (he minus she), order (male portrait first minus second), coding (male- minus female-coded)."""
    value: float
    low: float | None
    high: float | None
    """None with fewer than three prompts, or where nothing varies."""
    prompts: int
    """Prompts that it rests on."""


@dataclass(frozen=True, slots=True)
class MitigationEffect:
    """What the feature prompt did beyond the placebo: the same cases edited again without it."""

    question: str
    outcome: str
    """score, or distance (of a two-sided axis from unchanged)."""
    editor: str | None
    group: Mapping[str, str]
    feature: float | None
    """Mean change from the baseline with the feature prompt."""
    placebo: float | None
    """Mean change from the baseline when it is merely repeated: regression to the mean."""
    value: float | None
    """Feature minus placebo, adjusted for the baseline score; None without a placebo arm."""
    low: float | None
    high: float | None
    p: float | None
    interaction_p: float | None
    """Everybody's row: does the effect differ between races?"""
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class MissingReason:
    """How often one reason left a reading of an instrument missing."""

    measure: str
    editor: str
    group: Mapping[str, str]
    reason: str
    count: int
    edits: int
    """Edits of the group that the instrument was asked about."""


@dataclass(frozen=True, slots=True)
class RateBound:
    """The least and the largest that a rate of an instrument could be, whatever its unmeasured edits show."""

    measure: str
    """rate.<rate>"""
    editor: str | None
    group: Mapping[str, str]
    value: float | None
    """The rate over measured edits."""
    low: float
    high: float
    n: int
    missing: int
    raw: str | None = None
    """The reading whose means tell which way the unmeasured edits lie: `skin_delta_L_raw`."""
    raw_measured: float | None = None
    """Its mean over the measured edits."""
    raw_missing: float | None = None
    """Its mean over the unmeasured edits that have it."""


@dataclass(frozen=True, slots=True)
class ReadingWords:
    """How a number that an instrument reads is called."""

    name: str
    """The part of the measure after its kind: `skin_delta_L`."""
    title: str
    """Its name in tables."""
    unit: str
    """`share` is a number from 0 to 1; empty where the instrument states none."""
    phrase: str
    """Of a rate: what the edits have in common that it counts."""


@dataclass(frozen=True, slots=True)
class InstrumentResults:
    """What one instrument found in the pixels, never mixed with judges' scores."""

    rater: str
    estimates: tuple[Estimate, ...]
    """rate.measured_<rate>, rate.<reading>, mean.<reading>, and a gap.<…> of each rate, over the diagnosis; over
    mitigation, each reading in either arm and delta.<reading>, its change against the baseline."""
    tests: tuple[GapTest, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    missing_reasons: tuple[MissingReason, ...] = ()
    notes: tuple[str, ...] = ()
    """What must be known to read it, such as an embedding's bias."""
    readings: tuple[ReadingWords, ...] = ()
    """The words for its readings."""
    bounds: tuple[RateBound, ...] = ()
    """Of rates that some edits have no measurement for, over the diagnosis."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Highest minus lowest rate over the groups of one factor, with its interval and its test."""

    measure: str
    """`gap.<rate>`"""
    editor: str | None
    factor: str
    value: float | None
    low: float | None
    high: float | None
    highest: str | None
    lowest: str | None
    """The groups at either end; None where the gap was not tested."""
    p: float | None
    n: int
    missing: int
    method: str
    p_adjusted: float | None = None
    """Adjusted for every test of the report."""
    shrunken: float | None = None
    """Highest minus lowest rate after shrinkage."""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a report is made from."""

    provenance: Mapping[str, Any]
    """Versions, commit, study hash, platform, time: the only part that may differ between equal runs."""
    rules: Mapping[str, Any]
    """Preset, ensemble rules, missing policy, thresholds, bootstrap draws and seed."""
    estimates: tuple[Estimate, ...]
    tests: tuple[GapTest, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()
    planted: tuple[Planted, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    per_judge: tuple[PerJudgeEstimate, ...] = ()
    """The headline rates, gaps and deltas of each judge alone; empty with fewer than two judges."""
    coverage: tuple[Coverage, ...] = ()
    coverage_tests: tuple[GapTest, ...] = ()
    """Does a judge leave edits of some group unanswered more often? `gap.unanswered.<rater>`"""
    bounds: tuple[Bound, ...] = ()
    leave_one_out: tuple[LeaveOneOut, ...] = ()
    seeds: tuple[SeedSpread, ...] = ()
    mitigation: tuple[MitigationEffect, ...] = ()
    role_effects: tuple[RoleEffect, ...] = ()
    """What decides who gets the role of two-person prompts, where pronouns or portraits were swapped."""
    judge_errors: tuple[JudgeError, ...] = ()
    """The judges' measured errors, from null pairs; empty without them."""
    powered: tuple[PredictionPowered, ...] = ()
    multiverse: tuple[Multiverse, ...] = ()
    measured: tuple[InstrumentResults, ...] = ()
    """Each instrument by itself."""
    noise: tuple[EditorNoise, ...] = ()
    """What each editor moves by itself, where there is a null edit or several seeds."""
    languages: tuple[LanguageDifference, ...] = ()
    """Rates and gaps where editors were asked in other languages too, beside those in the prompts' own."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """edits, needs_review, refused, failed, `edits.<experiment>.<condition>`; portraits by label and pool; what people
    rated, by arm, editor and label, and `sampled`: the cases that were drawn for them; from reviewers: reviewed,
    `settled.<question>`."""
    factors: tuple[Factor, ...] = FACTORS
    """What portraits are labelled and grouped by, with the order of levels."""
    simulated: tuple[str, ...] = ()
    """Ids of simulated editors and raters in the data; empty for a real audit."""
    findings: tuple[Finding, ...] = ()
    """What the audit shows, worst first."""
    contributions: tuple[Contribution, ...] = ()
    """Which prompts and portraits carry each clear or suggestive finding."""
    participants: tuple[ParticipantCounts, ...] = ()
    """Who rated, by what they said about themselves: the paper's Table 17, without cells below five people."""
    rater_rates: tuple[RaterRate, ...] = ()
    title: str = ""
    """The study's title, or the names of the files that were analysed."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The text of each prompt by its id, where it is known."""
    materials: MaterialsUsed = field(default_factory=MaterialsUsed)
    """What was asked, word for word, where the study is at hand."""
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By prompt id, the axes that the prompt asks to change: a change there is shown, and is no shift."""
    rubric: tuple[Mapping[str, Any], ...] = ()
    """The questions that were asked, as tables of a rubric file; empty for the shipped default."""
    preregistration: Preregistration | None = None
    """What was stated before the first edit, and how the study kept to it; null where it was not sealed."""
    digest: str = ""
    """Names the table of ratings and the rules that these results were computed from."""
    directions: tuple[Direction, ...] = field(default=(), metadata={OMITTED_IF_EMPTY: True})
    """As which levels portraits and edits are seen; left out where the study did not ask."""
    primary: tuple[DeclaredTest, ...] = field(default=(), metadata={OMITTED_IF_EMPTY: True})
    """The tests of [primary], in the declared order, editor by editor; left out where none is declared."""

    @property
    def full_rubric(self) -> Rubric:
        """The questions that were asked and the rates made of them."""
        return _rubric(json.dumps(self.rubric))

    @property
    def editors(self) -> tuple[str, ...]:
        """The editors that have estimates, in the order of the study."""
        every = (*self.estimates, *(e for m in self.measured for e in m.estimates))
        return tuple(dict.fromkeys(e.editor for e in every if e.editor is not None))

    @property
    def reading_names(self) -> tuple[str, ...]:
        """The names of what instruments read."""
        return tuple(dict.fromkeys(words.name for m in self.measured for words in m.readings))

    def find(
        self,
        measure: str,
        *,
        experiment: str = "diagnosis",
        condition: str = ConditionKind.BASELINE,
        editor: str | None = None,
        group: Mapping[str, str] | None = None,
    ) -> Estimate | None:
        """Return the estimate with exactly these coordinates, or None: the judges', or else an instrument's.

        One that has a value stands before one that has none, as the judges' where no judge rated.
        """
        wanted = (measure, experiment, condition, editor, dict(group or {}))
        empty = None
        for e in (*self.estimates, *(e for m in self.measured for e in m.estimates)):
            if (e.measure, e.experiment, e.condition, e.editor, dict(e.group)) == wanted:
                if e.value is not None:
                    return e
                empty = empty or e
        return empty

    def estimate(
        self,
        measure: str,
        *,
        editor: str | None = None,
        group: Mapping[str, str] | None = None,
        experiment: str = "diagnosis",
        condition: str = ConditionKind.BASELINE,
    ) -> Estimate:
        """Return one estimate, e.g. `estimate("rate.race_change", group={"race": "Black"})`.

        Without `editor` it is the one pooled over editors where there is such, else that of the only editor.
        """
        labels = {name: self._level(name, label) for name, label in (group or {}).items()}
        look = partial(self.find, measure, experiment=experiment, condition=condition, group=labels)
        match = look(editor=editor)
        if match is None and editor is None:
            match = look(editor=self._only_editor())
        if match is None:
            raise EvenEditError(self._absent(measure, editor, experiment, str(condition), labels))
        return match

    def gap(
        self,
        rate: str,
        by: str,
        editor: str | None = None,
        *,
        experiment: str = "diagnosis",
        condition: str = ConditionKind.BASELINE,
    ) -> Gap:
        """Return how far the groups of a factor are apart in a rate, e.g. `gap("race_change", by="race")`.

        `editor` may be left out where there is only one.
        """
        name = self._only_editor() if editor is None else editor
        measure = Measure.gap(rate.removeprefix("rate.").removeprefix("gap."))
        e = self.estimate(measure, editor=name, group={by: "*"}, experiment=experiment, condition=condition)
        tests = (*self.tests, *(t for m in self.measured for t in m.tests))
        wanted = (measure, experiment, condition, name, by)
        test = next((t for t in tests if (t.measure, t.experiment, t.condition, t.editor, t.factor) == wanted), None)
        return Gap(
            measure,
            name,
            by,
            e.value,
            e.low,
            e.high,
            test.highest if test else None,
            test.lowest if test else None,
            test.p if test else None,
            e.n,
            e.missing,
            e.method,
            test.p_adjusted if test else None,
            test.shrunken if test else None,
        )

    def corrected(self, e: Estimate) -> PredictionPowered | None:
        """Return the judges' estimate as corrected by people's ratings; None where people rated too little."""
        place = (e.measure, e.experiment, e.condition, e.editor, dict(e.group))
        for p in self.powered:
            if p.enough and (p.measure, p.experiment, p.condition, p.editor, dict(p.group)) == place:
                return p
        return None

    def to_frame(self, name: str = "estimates") -> pd.DataFrame:
        """Return a list of `results.json` as a data frame: a column per field, and per factor for a group's labels.

        A list within a row (the readings of a multiverse, what an instrument estimates) has a row
        for each of its members. The other lists of an instrument are `measured.tests`, `measured.contrasts` and
        `measured.missing_reasons`; the groups of each test are `tests.groups`.
        """
        from evenedit.results.frames import frame_of

        return frame_of(self, name)

    def _level(self, factor: str, label: str) -> str:
        if factor not in {f.name for f in self.factors}:
            names = ", ".join(f.name for f in self.factors)
            raise EvenEditError(f"there is no factor '{factor}' in these results; they have: {names}")
        return label if label == "*" else level_code(factor, label, self.factors)

    def _only_editor(self) -> str:
        if len(self.editors) == 1:
            return self.editors[0]
        raise EvenEditError(
            f"there are {len(self.editors)} editors; name one with editor=: {', '.join(self.editors) or 'none'}"
        )

    def _absent(
        self, measure: str, editor: str | None, experiment: str, condition: str, group: Mapping[str, str]
    ) -> str:
        """Explain why there is no such estimate: the first unknown coordinate, with the known ones."""
        if editor is not None and editor not in self.editors:
            return f"there is no editor '{editor}' in these results; they have: {', '.join(self.editors) or 'none'}"
        every = (*self.estimates, *(e for m in self.measured for e in m.estimates))
        estimates = [e for e in every if (e.experiment, str(e.condition)) == (experiment, condition)]
        if not estimates:
            arms = dict.fromkeys(f"{e.experiment}/{e.condition}" for e in every)
            return f"there is no {experiment}/{condition} in these results; they have: {', '.join(arms) or 'none'}"
        names = dict.fromkeys(e.measure for e in estimates)
        if measure not in names:
            return f"there is no estimate '{measure}'{plugins.suggest(measure, names)}"
        where = ", ".join(f"{k}={v}" for k, v in group.items()) or "everybody"
        text = f"there is no '{measure}' of {where} for editor {editor or 'all'}; see to_frame('estimates')"
        if len(group) > 1 or experiment == Experiment.MITIGATION:
            text += f". A {FILE} alone lacks such rows: keep the folder {long_lists.FOLDER} next to it"
        return text

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the results of a `results.json`: of long lists the main rows only."""
        return parse(text, cls, SCHEMA)

    @classmethod
    def from_files(cls, read: Callable[[str], bytes | None]) -> Self:
        """Return the results that `to_files` wrote; `read` returns the content of a file by its path, or None.

        Long lists have all rows where their CSV file is there and unchanged, else the main rows.
        """
        results, body = parse_with_body((read(FILE) or b"").decode(), cls, SCHEMA)
        return long_lists.with_long_rows(results, body.get(long_lists.KEY, {}), read)

    def to_json(self) -> str:
        """Return `results.json` as text: of long lists the main rows, one line each; same results, same bytes."""
        return self.to_files()[FILE].decode()

    def to_files(self) -> dict[str, bytes]:
        """Return `results.json` and the CSV files of long lists, by path. `results.json` comes last."""
        files = long_lists.csv_files(self)
        parts = [f' "schema": "{SCHEMA}"']
        short = long_lists.without_long_rows(self)
        for part in fields(self):
            value = getattr(short, part.name)
            if part.metadata.get(OMITTED_IF_EMPTY) and not getattr(self, part.name):
                continue
            rows = [f"  {_json(row)}" for row in value] if isinstance(value, tuple) else []
            body = "[\n" + ",\n".join(rows) + "\n ]" if rows else _json(value)
            parts.append(f' "{part.name}": {body}')
        parts.append(f' "{long_lists.KEY}": {_json(long_lists.describe(files))}')
        return {**files, FILE: ("{\n" + ",\n".join(parts) + "\n}\n").encode()}


def _json(value: Any) -> str:
    """Return JSON on one line; a record is its fields."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_fields)


def _fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record, without optional ones that are None or empty mappings."""
    values = {part: getattr(record, part.name) for part in fields(record)}
    return {
        part.name: value
        for part, value in values.items()
        if not (value is None and part.default is None) and not (part.default_factory is dict and not value)
    }


@cache
def _rubric(tables: str) -> Rubric:
    return Rubric.from_tables(json.loads(tables))

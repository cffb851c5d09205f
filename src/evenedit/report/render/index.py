"""An index of results by their coordinates, and the words the report uses for codes, factors and groups."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from evenedit.core.records import ConditionKind, Estimate, Prompt, language_of
from evenedit.protocol import Factor, Rate, Rubric
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.prompts import load_prompts
from evenedit.protocol.rubric import MEASURED, outcome_rates, readings
from evenedit.report.render.words import entries
from evenedit.results.judge_checks import COMPARED
from evenedit.results.results import Contrast, GapTest, MitigationEffect, ReadingWords, Results
from evenedit.results.words import factor_noun as factor_noun
from evenedit.results.words import group_name as group_name
from evenedit.results.words import listed as listed
from evenedit.results.words import plural as plural

ALPHA = 0.05
POOLED = "all"
"""The code of all editors together in tables."""

NAMES: dict[str, str] = entries("names")["names"] | {code: words.capitalize() for code, words in COMPARED.items()}
"""The words for codes of the protocol; questions and rates have titles in the rubric, levels of factors their own."""
LEVELS: dict[str, str] = entries("names")["levels"]
"""The words for each level."""
MEASURED_CLEAR = "clear (measured)"
"""The words for a clear finding of an instrument."""
EVIDENCE: dict[str, str] = entries("names")["evidence"]
"""The words for who saw a finding."""

PROMPT = "prompt"
"""The key of groups of edits that one prompt asked for."""
PROMPT_LETTERS = 44
"""Letters of a prompt's text that stand for it."""


@cache
def _protocol_prompts() -> dict[str, Prompt]:
    """Return the prompts of the protocol's sets by id."""
    return {p.id: p for p in load_prompts("diagnostic")}


@dataclass(frozen=True, slots=True)
class Label:
    """A code with the words for it: CSV files have the code, pages and LaTeX have the words."""

    code: str
    text: str


def level_name(level: str, evidence: str = "") -> str:
    """Return the words for a level; a clear finding of an instrument is "clear (measured)"."""
    return MEASURED_CLEAR if (level, evidence) == ("clear", "instrument") else LEVELS[level]


def level_of(test: GapTest) -> Label:
    """Return the level of a gap as code and words; empty where all editors are pooled, which is no finding."""
    return Label(test.level or "", level_name(test.level, test.evidence) if test.level else "")


def evidence_of(test: GapTest) -> Label:
    """Return who saw a gap as code and words."""
    return Label(test.evidence, EVIDENCE.get(test.evidence, ""))


class Names:
    """The words for codes: of the protocol, and of the questions and rates of a rubric."""

    def __init__(self, rubric: Rubric, titles: Mapping[str, str] | None = None) -> None:
        """Begin with the words of a rubric; `titles` name readings of instruments."""
        codes = (*rubric.columns, *rubric.rates, *outcome_rates(), *readings())
        codes = (*(spec.id for spec in rubric.specs), *codes, *(MEASURED + rate for rate in rubric.rates))
        self._words = {**(titles or {}), **{code: rubric.title(code) for code in codes}, **NAMES}

    def __call__(self, code: str | None) -> str:
        """Return the words for a code; any other text is returned as it is, None means all editors."""
        if code is None:
            return self._words[POOLED]
        language = language_of(code)
        return f"Asked in '{language}'" if language else self._words.get(code, code)


def _key(
    measure: str, experiment: str, condition: str, editor: str | None, group: Mapping[str, str]
) -> tuple[object, ...]:
    return measure, experiment, condition, editor, frozenset(group.items())


class Index:
    """A view of `Results` that looks estimates up by their coordinates."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.rubric = results.full_rubric
        self.name = Names(self.rubric, {name: words.title for name, words in self.readings.items()})
        self._estimates = {_key(e.measure, e.experiment, e.condition, e.editor, e.group): e for e in results.estimates}
        self._contrasts = {_key(c.measure, c.experiment, c.condition, c.editor, c.group): c for c in results.contrasts}

    def find(
        self,
        measure: str,
        editor: str | None,
        group: Mapping[str, str] | None = None,
        *,
        experiment: str = "diagnosis",
        condition: str = ConditionKind.BASELINE,
    ) -> Estimate | None:
        """Return the estimate with exactly these coordinates."""
        return self._estimates.get(_key(measure, experiment, condition, editor, group or {}))

    def contrast(
        self,
        measure: str,
        editor: str | None,
        group: Mapping[str, str],
        *,
        experiment: str = "diagnosis",
        condition: str = ConditionKind.BASELINE,
    ) -> Contrast | None:
        """Return the group's rate minus everybody else's."""
        return self._contrasts.get(_key(measure, experiment, condition, editor, group))

    def effect(self, question: str, editor: str | None) -> MitigationEffect | None:
        """Return the effect of the feature prompt on everybody beyond the placebo."""
        for e in self.results.mitigation:
            if (e.question, e.editor) == (question, editor) and not e.group:
                return e
        return None

    # -- factors and groups ------------------------------------------------------------------------------------

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What portraits are grouped by."""
        return self.results.factors

    @property
    def main(self) -> Factor:
        """The first factor, by which tables and figures of one factor are grouped."""
        return self.results.factors[0]

    def factor(self, name: str) -> Factor:
        """Return the factor called `name`; one that the study does not declare, such as the prompt, has no levels."""
        return next((f for f in self.factors if f.name == name), Factor.of(name, ()))

    def factor_noun(self, name: str) -> str:
        """Return the noun for a factor inside a sentence."""
        return factor_noun(self.factor(name))

    @property
    def nouns(self) -> str:
        """All factors as a list in a sentence: "race, gender and age"."""
        return listed([factor_noun(f) for f in self.factors])

    def level_name(self, factor: str, code: str) -> str:
        """Return the title of a level."""
        return self.factor(factor).titles.get(code, code)

    def group_name(self, group: Mapping[str, str]) -> str:
        """Describe a group in words."""
        if PROMPT in group:
            group = {**group, PROMPT: self.prompt_name(group[PROMPT])}
        return group_name(group, self.factors)

    def prompt_name(self, code: str) -> str:
        """Describe a prompt briefly: id and name for the protocol's prompts, else the beginning of its text."""
        text = self.results.prompts.get(code, "")
        known = _protocol_prompts().get(code)
        if known is not None and known.text == text and known.name not in ("", code):
            return f"{code} {known.name}"
        return textwrap.shorten(text, PROMPT_LETTERS, placeholder=" …") or code

    def level_label(self, factor: str, code: str) -> Label:
        """Return a level as a table cell, in a table whose other column names the factor."""
        return Label(code, self.level_name(factor, code))

    def main_label(self, code: str) -> Label:
        """Return a level of the main factor, or everybody, as a table cell."""
        return self.level_label(self.main.name, code) if code else Label("everybody", NAMES["everybody"])

    def group_label(self, group: Mapping[str, str]) -> Label:
        """Return a group as a table cell."""
        return Label(";".join(f"{factor}={code}" for factor, code in group.items()), self.group_name(group))

    def factor_label(self, name: str) -> Label:
        """Return a factor as a table cell."""
        return Label(name, self.factor(name).title)

    def main_group(self, code: str) -> dict[str, str]:
        """Return the group of a level of the main factor; everybody for an empty code."""
        return {self.main.name: code} if code else {}

    def main_levels(self, experiment: str = "diagnosis") -> tuple[str, ...]:
        """Return the levels of the main factor that occur, in its order."""
        return self.levels(self.main.name, experiment)

    @cached_property
    def _editors(self) -> dict[str, tuple[str, ...]]:
        editors_by_experiment: dict[str, dict[str, None]] = {}
        for e in self.results.estimates:
            if e.editor is not None:
                editors_by_experiment.setdefault(e.experiment, {})[e.editor] = None
        return {experiment: tuple(editors) for experiment, editors in editors_by_experiment.items()}

    def editors(self, experiment: str | None = None) -> tuple[str, ...]:
        """Editors in the order of the data, of one experiment or of all."""
        if experiment is not None:
            return self._editors.get(experiment, ())
        return tuple(dict.fromkeys(e for editors in self._editors.values() for e in editors))

    @cached_property
    def _pooled(self) -> frozenset[str]:
        return frozenset(e.experiment for e in self.results.estimates if e.editor is None)

    def lines(self, experiment: str) -> tuple[str | None, ...]:
        """Return the editors, then None for all of them pooled unless they are simulated: the rows of a table."""
        editors = self.editors(experiment)
        pooled = len(editors) > 1 and not self.results.simulated and experiment in self._pooled
        return (*editors, None) if pooled else editors

    @cached_property
    def _levels(self) -> dict[tuple[str, str], tuple[str, ...]]:
        codes_by_factor: dict[tuple[str, str], dict[str, None]] = {}
        for e in self.results.estimates:
            if len(e.group) == 1:
                ((factor, code),) = e.group.items()
                if code not in ("", "*"):
                    codes_by_factor.setdefault((e.experiment, factor), {})[code] = None
        return {(e, f): self._ordered(f, codes) for (e, f), codes in codes_by_factor.items()}

    def _ordered(self, factor: str, codes: Sequence[str] | Mapping[str, None]) -> tuple[str, ...]:
        order = {code: at for at, code in enumerate(self.factor(factor).codes)}
        return tuple(sorted(codes, key=lambda code: order.get(code, len(order))))

    def levels(self, factor: str, experiment: str = "diagnosis") -> tuple[str, ...]:
        """Return the levels of a factor that occur, in the factor's order."""
        return self._levels.get((experiment, factor), ())

    def grouped(self, experiment: str = "diagnosis") -> tuple[str, ...]:
        """Return the names of the factors that estimates are grouped by."""
        return tuple(f.name for f in self.factors if (experiment, f.name) in self._levels)

    def conditions(self, experiment: str) -> frozenset[str]:
        """Return the conditions that occur in an experiment."""
        return frozenset(e.condition for e in self.results.estimates if e.experiment == experiment)

    @cached_property
    def raters(self) -> tuple[str, ...]:
        """All raters, in the order of the data."""
        return tuple(dict.fromkeys(c.rater for c in self.results.coverage))

    @cached_property
    def rated(self) -> bool:
        """Whether a judge scored anything: what a convention puts in the place of a score is none."""
        answers = [c.scored for c in self.results.coverage if c.rater in self.judges]
        if answers:
            return any(answers)
        return any(e.n for e in self.results.estimates if Measure(e.measure).name not in OUTCOME_RATES)

    @cached_property
    def readings(self) -> dict[str, ReadingWords]:
        """The words for what instruments read, by name."""
        return {words.name: words for m in self.results.measured for words in m.readings}

    @cached_property
    def instruments(self) -> dict[str, Index]:
        """By instrument, an index of its own results."""
        return {
            m.rater: Index(
                replace(self.results, estimates=m.estimates, tests=m.tests, contrasts=m.contrasts, measured=())
            )
            for m in self.results.measured
        }

    @cached_property
    def tests(self) -> dict[tuple[str | None, ...], GapTest]:
        """The first test at each place: experiment, condition, editor, factor and what is measured."""
        first: dict[tuple[str | None, ...], GapTest] = {}
        for t in self.results.tests:
            first.setdefault((t.experiment, t.condition, t.editor, t.factor, Measure(t.measure).name), t)
        return first

    @property
    def judges(self) -> tuple[str, ...]:
        """The raters that are not instruments."""
        return tuple(rater for rater in self.raters if rater not in self.instruments)

    @cached_property
    def thresholds(self) -> dict[str, str]:
        """The threshold of each rate, e.g. race_change: ≥3."""
        return {name: self._rule(rate) for name, rate in self.rates.items()}

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """The rates of all questions under the thresholds of the results."""
        used, questions = self.results.rules.get("rates", {}), self.rubric.questions
        return {**self.rubric.rates, **{id: Rate.parse(id, str(rule), questions) for id, rule in used.items()}}

    def _rule(self, rate: Rate) -> str:
        """Return a rate's rule in words; of a choice, the options that it counts."""
        if not rate.is_:
            return rate.rule
        if self.rubric.spec_by_column[rate.question].question.sided == "set":
            return "chosen"
        options = self.rubric.options(rate.question)
        return f"= {' or '.join(options[code] for code in rate.is_)}"

    @property
    def level(self) -> str:
        """The confidence of every interval, e.g. 95%."""
        return f"{100 * float(self.results.rules.get('confidence', 0.95)):g}%"


def interval_excludes(low: float | None, high: float | None, value: float = 0.0) -> bool:
    """Return whether there is an interval and `value` is outside of it."""
    return low is not None and high is not None and not low <= value <= high

"""The rows of agreement, found by their coordinates and shown as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from evenedit.core.records import ConditionKind
from evenedit.report.render.index import Index
from evenedit.report.render.selection import PEOPLE, Selection
from evenedit.report.render.table import Number, Unit
from evenedit.report.render.words import entries
from evenedit.results.results import Agreement, Results

DISTANCE = ".distance"
"""After a question: how far its scores are from no change."""
COHORTS = {"all": "all ratings", "complete": "equally many per item"}
"""The names of sets of people's ratings on the page."""
AXIS_NAMES: dict[str, str] = entries("names")["agreement"]
"""Axes that are no question of the rubric, in words."""


def axis_name(index: Index, axis: str) -> str:
    """Return the title of an axis."""
    question = axis.removesuffix(DISTANCE)
    if question != axis and question in index.rubric:
        return f"{index.name(question)}, distance from {index.rubric.no_change(question)}"
    return AXIS_NAMES.get(axis, index.name(axis))


@dataclass(frozen=True, slots=True)
class AgreementRows:
    """The rows of agreement by their coordinates."""

    by_place: Mapping[tuple[object, ...], Agreement]

    @classmethod
    def of(cls, results: Results) -> AgreementRows:
        """Collect the agreement rows of results."""
        return cls({_key(a.statistic, a.axis, a.condition, a.editor, a.group, a.raters): a for a in results.agreement})

    def find(
        self,
        statistic: str,
        axis: str,
        condition: str = ConditionKind.BASELINE,
        editor: str | None = None,
        group: Mapping[str, str] | None = None,
        raters: str = "all",
    ) -> Agreement | None:
        """Return the row with exactly these coordinates."""
        return self.by_place.get(_key(statistic, axis, condition, editor, group or {}, raters))

    def places(self, statistic: str, *, raters: Iterable[str] = ("all",), grouped: bool = False) -> Iterator[Agreement]:
        """Return the rows of one statistic by these raters, of groups or of everybody, in the order of the data."""
        wanted = set(raters)
        for row in self.by_place.values():
            if row.statistic == statistic and row.raters in wanted and bool(row.group) == grouped:
                yield row

    def sibling(self, row: Agreement, statistic: str) -> Agreement | None:
        """Another statistic at the place of a row."""
        return self.find(statistic, row.axis, row.condition, row.editor, row.group, row.raters)

    def judges_mean(self, people: Agreement | None) -> Agreement | None:
        """Return the judges' mean over the items of people's mean, without an interval; None where they rated none."""
        separate = None if people is None else self.sibling(people, "mean_difference")
        if people is None or people.value is None or separate is None or separate.value is None:
            return None
        return replace(people, statistic="mean_judges", value=people.value + separate.value, low=None, high=None)

    def number(self, row: Agreement, statistic: str, unit: Unit = "score") -> Number:
        """Format a row as a number of a table."""
        return number(self.sibling(row, statistic), unit)


def number(row: Agreement | None, unit: Unit = "score") -> Number:
    """Format a row as a number of a table."""
    if row is None:
        return Number(None, unit)
    return Number(row.value, unit, row.low, row.high, row.n_items, cases=None if unit == "p" else cases_of(row))


def cases_of(row: Agreement) -> Selection:
    """Return the edits whose ratings are compared: those that people rated, or all if only judges are compared."""
    mitigated = row.condition in (ConditionKind.FEATURE, ConditionKind.PLACEBO)
    experiment = "stereotype" if row.axis == "stereotype" else "mitigation" if mitigated else "diagnosis"
    people = row.raters in COHORTS or row.raters.endswith("|all")
    group = {factor: code for factor, code in row.group.items() if code != "*"}
    return Selection("", experiment, row.condition, row.editor, group, PEOPLE if people else None)


def _key(
    statistic: str, axis: str, condition: str, editor: str | None, group: Mapping[str, str], raters: str
) -> tuple[object, ...]:
    return statistic, axis, condition, editor, frozenset(group.items()), raters


def axes_compared(index: Index, rows: AgreementRows) -> list[str]:
    """Return the questions on which judges and people are compared at the baseline."""
    return [q for q in index.rubric.ordinal if rows.find("weighted_kappa_quadratic", q) is not None]

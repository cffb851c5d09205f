"""The public results: the record of `results.json` with its summary, its figures and its display in a notebook."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Self

from evenedit.results import results

if TYPE_CHECKING:
    from evenedit.report.views import ResultsPlots


class Results(results.Results):
    """Everything a report is made from, with its summary and its figures."""

    __slots__ = ()

    @classmethod
    def from_record(cls, record: results.Results) -> Self:
        """Return the public results of a record."""
        return cls(**{part.name: getattr(record, part.name) for part in fields(record)})

    def summary(self) -> str:
        """Return what was observed, in sentences, each with its certainty."""
        from evenedit.report.views import summary_text

        return summary_text(self)

    @property
    def plot(self) -> ResultsPlots:
        """Figures as matplotlib draws them: `plot.gaps()`, `plot.rates(by="race")`."""
        from evenedit.report.views import ResultsPlots

        return ResultsPlots(self)

    def _repr_html_(self) -> str:
        from evenedit.report.views import summary_html

        return summary_html(self)

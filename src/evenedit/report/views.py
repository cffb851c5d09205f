"""Results as sentences, as HTML in a notebook, and as figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from evenedit.report.text.findings import headline, numbered
from evenedit.report.text.summary import WHOLE_AUDIT, summarise
from evenedit.results.results import Results
from evenedit.results.words import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8
"""Findings that a notebook shows; `summary()` has all of them."""
SIMULATED = "SIMULATED: these data say nothing about any real editor"


class ResultsPlots:
    """The figures of some results, as matplotlib draws them."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def __repr__(self) -> str:
        return "plots: gaps(), rates(by=…)"

    def gaps(self, rates: Sequence[str] | None = None) -> Figure:
        """Draw how far the groups of each factor are apart in each rate, with intervals."""
        from evenedit.report.figures.results_plots import gaps_plot

        return gaps_plot(self._results, rates)

    def rates(self, by: str, rates: Sequence[str] | None = None, editors: Sequence[str] | None = None) -> Figure:
        """Draw rates by the levels of a factor, with intervals."""
        from evenedit.report.figures.results_plots import rates_plot

        return rates_plot(self._results, by, rates, editors)


def summary_text(results: Results) -> str:
    """Return every finding with its certainty, worst first, then what was measured, by editor."""
    lines = [results.title, SIMULATED if results.simulated else "", *numbered(results.findings)]
    about = WHOLE_AUDIT
    for sentence in (s for s in summarise(results) if not results.findings or s.certainty == "observed"):
        if sentence.about != about:
            about = sentence.about
            lines.append(f"{about}:")
        lines.append(f"- [{sentence.certainty}] {sentence.text}")
    return "\n".join(filter(None, lines))


def summary_html(results: Results) -> str:
    """Return the title, the first sentences, and how many more there are, as HTML."""
    sentences = [headline(f) for f in results.findings] or [f"[{s.certainty}] {s.text}" for s in summarise(results)]
    items = "".join(f"<li>{escape(text)}</li>" for text in sentences[:MOST])
    left = len(sentences) - MOST
    more = f"<p>{count(left, 'further finding')}: <code>.summary()</code></p>" if left > 0 else ""
    mark = f"<p><b>{escape(SIMULATED)}</b></p>" if results.simulated else ""
    counts = f"{results.counts.get('edits', 0):,} edits by {', '.join(results.editors) or 'no editor'}"
    return (
        f"<div><h4>{escape(results.title or 'Results of EvenEdit')}</h4>{mark}<p>{escape(counts)}</p>"
        f"<ul>{items}</ul>{more}</div>"
    )

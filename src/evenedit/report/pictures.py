"""The figures of the page, each from `Results` alone."""

from __future__ import annotations

from collections.abc import Callable

from evenedit.report.curve import specification_curve
from evenedit.report.figures import Picture, by_race, gap_overview, planted_and_found
from evenedit.report.index import Index

FIGURES: dict[str, Callable[[Index], Picture | None]] = {
    "figure4": by_race,
    "figure_gaps": gap_overview,
    "figure_planted": planted_and_found,
    "figure_multiverse": specification_curve,
}
"""Each figure's painter by the figure's id."""


def all_figures(index: Index) -> dict[str, Picture]:
    """Every figure the data can fill, by id."""
    drawn = (draw(index) for draw in FIGURES.values())
    return {made.id: made for made in drawn if made is not None}

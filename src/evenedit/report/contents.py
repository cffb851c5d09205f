"""Everything a report can hold, in the order of the page; what the data cannot fill is left out."""

from __future__ import annotations

from collections.abc import Callable

from evenedit.report import arms, checks, curve, figures, inference, measured, people, tables
from evenedit.report.figures import Picture
from evenedit.report.index import Index
from evenedit.report.table import Table

TABLES: dict[str, Callable[[Index], Table | None]] = {
    "measured": measured.measured,
    "measured_gaps": measured.measured_gaps,
    "measured_prompts": measured.measured_prompts,
    "measured_mitigation": measured.measured_mitigation,
    "silences": measured.silences,
    "table4": tables.means_by_editor,
    "floor": tables.floor_by_editor,
    "table19": tables.rates_by_editor,
    "table20": tables.race_change_by_race,
    "gaps": tables.gap_tests,
    "aging": tables.aging_accuracy,
    "table5": tables.mitigation_by_race,
    "effects": inference.mitigation_effects,
    "preference": arms.preferences,
    "table7": tables.stereotypes,
    "roles": arms.roles,
    "planted": checks.planted_and_found,
    "coverage": checks.coverage,
    "unanswered": checks.unequal_coverage,
    "bounds": checks.worst_cases,
    "agreement": people.between_judges,
    "between_people": people.between_people,
    "judges_people": people.judges_and_people,
    "judges_people_labels": people.labels_of_both,
    "judge_error": people.judge_error_by_group,
    "two_sided": people.two_sided,
    "rank_tests": people.rank_tests,
    "judges_alone": checks.judges_alone,
    "confidence": checks.confidence,
    "sensitivity": checks.sensitivity,
    "models": inference.models,
    "leave_one_out": inference.leave_one_out,
    "seeds": inference.seeds,
    "powered": inference.powered,
    "multiverse": inference.multiverse,
}
"""Each table's builder by the table's id."""
OF_PEOPLE = ("between_people", "two_sided", "rank_tests")
"""Tables that need people's ratings and nobody else's."""
OF_INSTRUMENTS = (
    "measured",
    "measured_gaps",
    "measured_prompts",
    "measured_mitigation",
    "coverage",
    "silences",
    "unanswered",
)
"""Tables that need instruments and nobody else."""
FIGURES: dict[str, Callable[[Index], Picture | None]] = {
    "figure4": figures.by_race,
    "figure_gaps": figures.gap_overview,
    "figure_measured": figures.measured_by_group,
    "figure_mitigation": arms.mitigation_arms,
    "figure_stereotype": arms.stereotype_shares,
    "figure_planted": figures.planted_and_found,
    "figure_people": figures.judges_and_people,
    "figure_multiverse": curve.specification_curve,
}
"""Each figure's painter by the figure's id."""


def all_tables(index: Index) -> dict[str, Table]:
    """Every table that has rows, by id."""
    builders = TABLES
    if not index.rated and not index.results.counts.get("refused"):  # what judges did not score is nothing but dashes
        of_people = OF_PEOPLE if people.has_people(index.results) else ()
        of_instruments = OF_INSTRUMENTS if index.instruments else ()
        builders = {id: TABLES[id] for id in (*of_instruments, *of_people)}
    built = (builder(index) for builder in builders.values())
    return {table.id: table for table in built if table is not None}


def all_figures(index: Index) -> dict[str, Picture]:
    """Every figure the data can fill, by id."""
    drawn = (draw(index) for draw in FIGURES.values())
    return {picture.id: picture for picture in drawn if picture is not None}

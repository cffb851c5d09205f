"""The contents of a report in the order of the page; tables and figures without data are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from evenedit.core.parallel import SecondProcess
from evenedit.core.records import WITHOUT_PICTURE
from evenedit.report.figures import directions as direction_figures
from evenedit.report.figures import experiments as arms_figures
from evenedit.report.figures import people as people_figures
from evenedit.report.figures import plots as figures
from evenedit.report.figures import specification_curve as curve
from evenedit.report.figures.base import Drawing, FigureFile, render_figure
from evenedit.report.render.index import Index
from evenedit.report.render.table import Table
from evenedit.report.render.words import entries
from evenedit.report.tables import agreement as people
from evenedit.report.tables import context, directions, inference, raters, sample
from evenedit.report.tables import experiments as arms
from evenedit.report.tables import instruments as measured
from evenedit.report.tables import main as tables
from evenedit.report.tables import robustness as checks
from evenedit.report.tables.appendix import APPENDIX
from evenedit.results.reading import decode
from evenedit.results.results import Results

TABLES: dict[str, Callable[[Index], Table | None]] = {
    "measured": measured.measured,
    "measured_gaps": measured.measured_gaps,
    "measured_bounds": measured.measured_bounds,
    "measured_prompts": measured.measured_prompts,
    "measured_mitigation": measured.measured_mitigation,
    "silences": measured.missing_reasons,
    "table4": tables.means_by_editor,
    "floor": tables.floor_by_editor,
    "table19": tables.rates_by_editor,
    "answers": tables.answers,
    "table20": tables.race_change_by_main_factor,
    "gaps": tables.gap_tests,
    "trends": tables.trends,
    "aging": tables.aging_accuracy,
    "transitions": directions.transitions,
    "table5": tables.mitigation_by_main_factor,
    "effects": inference.mitigation_effects,
    "preference": arms.preferences,
    "table7": arms.stereotypes,
    "roles": arms.roles,
    "role_effects": arms.role_effects,
    "planted": checks.planted_effects,
    "coverage": checks.coverage,
    "unanswered": checks.unequal_coverage,
    "left_open": checks.left_open,
    "bounds": checks.worst_cases,
    "agreement": people.between_judges,
    "between_people": people.between_people,
    "judges_people": people.judges_and_people,
    "judges_people_labels": people.labels_of_both,
    "judge_error": people.judge_error_by_group,
    "table6": sample.judges_beside_people,
    "table9": sample.portraits,
    "table18": sample.sample,
    "table17": raters.participants,
    "rater_rates": raters.rater_rates,
    "rank_tests": people.rank_tests,
    "judges_alone": checks.judges_alone,
    "false_calls": checks.false_calls,
    "sensitivity": checks.sensitivity,
    "leave_one_out": inference.leave_one_out,
    "seeds": inference.seeds,
    "powered": inference.powered,
    "multiverse": inference.multiverse,
    "noise": context.noise,
    "languages": context.languages,
    **APPENDIX,
}
"""Each table's builder by the table's id."""
OF_PEOPLE = (
    *("between_people", "rank_tests", "table6", "table18"),
    *("table17", "rater_rates"),
)
"""Tables that people's ratings alone can fill."""
OF_INSTRUMENTS = (
    "measured",
    "measured_gaps",
    "measured_bounds",
    "measured_prompts",
    "measured_mitigation",
    "coverage",
    "silences",
    "bounds",
    "unanswered",
)
"""Tables that instruments alone can fill."""
FIGURES: dict[str, Callable[[Index], Drawing | None]] = {
    "figure4": figures.by_main_factor,
    "figure_rates": figures.declared_by_main_factor,
    "figure_gaps": figures.gap_overview,
    "figure_transitions": direction_figures.transitions,
    "figure_measured": figures.measured_by_group,
    "figure_measured_prompts": figures.measured_by_prompt,
    "figure_mitigation": arms_figures.mitigation_arms,
    "figure_stereotype": arms_figures.stereotype_shares,
    "figure_planted": figures.planted_effects,
    "figure_people": figures.judges_and_people,
    "figure6": people_figures.skin_tone_and_deltas,
    "figure_multiverse": curve.specification_curve,
}
"""Each figure's builder by the figure's id."""
DRAWN_LOCALLY = ("figure_gaps", "figure_planted")
"""What this process draws where a second process draws the others: it has the tables and photo figures to make too."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    id: str
    title: str
    visible: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    words: str = ""
    """A text above its tables and figures."""


ALWAYS = ("asked", "observed", "limits", "along", "provenance")
"""Sections that are never left out."""
SECTIONS = decode(tuple[Section, ...], entries("sections")["appendix"])
"""The sections of the appendix, in its order; what the first page shows is left out."""
FRONT, FRONT_MEASURED = (decode(tuple[Section, ...], entries("sections")[page]) for page in ("front", "measured"))
"""The sections of the first page, after the findings; the second ones where no judge rated anything."""


def front_sections(have: Collection[str], *, rated: bool) -> list[Section]:
    """Return the sections of the first page that are not empty."""
    return [s for s in _present(FRONT if rated else FRONT_MEASURED, have) if s.visible]


def appendix_sections(
    have: Collection[str], front: Collection[Section], always: Collection[str] = ALWAYS
) -> list[Section]:
    """Return the sections of the appendix: what the first page does not show, without empty sections."""
    before = {id for section in front for id in section.visible}
    present = _present(SECTIONS, set(have) - before)
    return [s for s in present if s.visible or s.folded or s.id in always]


def _present(sections: Collection[Section], have: Collection[str]) -> list[Section]:
    """Sections with the tables and figures that exist."""
    return [
        replace(s, visible=tuple(i for i in s.visible if i in have), folded=tuple(i for i in s.folded if i in have))
        for s in sections
    ]


def all_tables(index: Index) -> dict[str, Table]:
    """Return every table that has rows, by id."""
    builders = TABLES
    if not index.rated and not any(
        map(index.results.counts.get, WITHOUT_PICTURE)
    ):  # without scores most tables would hold dashes only
        of_people = OF_PEOPLE if people.has_people(index.results) else ()
        of_instruments = OF_INSTRUMENTS if index.instruments else ()
        builders = {id: TABLES[id] for id in ("table9", *of_instruments, *of_people, *APPENDIX)}
    built = (builder(index) for builder in builders.values())
    return {table.id: table for table in built if table is not None}


def all_figures(index: Index) -> dict[str, FigureFile]:
    """Return every figure that has data, by id."""
    return _draw(index.results, tuple(FIGURES))


def submit_figures(
    results: Results, second: SecondProcess, formats: Collection[str] = ()
) -> Callable[[], dict[str, FigureFile]]:
    """Start to draw in the second process; return a function that draws the rest and returns all figures by id."""
    others = second.submit(_draw, results, tuple(id for id in FIGURES if id not in DRAWN_LOCALLY), formats)

    def all_drawn() -> dict[str, FigureFile]:
        drawn = _draw(results, DRAWN_LOCALLY, formats) | others()
        return {id: drawn[id] for id in FIGURES if id in drawn}

    return all_drawn


def _draw(results: Results, ids: Collection[str], formats: Collection[str] = ()) -> dict[str, FigureFile]:
    index, simulated = Index(results), bool(results.simulated)
    drawings = (FIGURES[id](index) for id in ids)
    return {d.id: render_figure(d, simulated, formats) for d in drawings if d is not None}

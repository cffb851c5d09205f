"""Everything a report can hold, in the order of the page; what the data cannot fill is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from evenedit.report.figures import plots as figures
from evenedit.report.figures import specification_curve as curve
from evenedit.report.figures.plots import FigureFile
from evenedit.report.render.index import Index
from evenedit.report.render.table import Table
from evenedit.report.tables import agreement as people
from evenedit.report.tables import experiments as arms
from evenedit.report.tables import inference, sample
from evenedit.report.tables import instruments as measured
from evenedit.report.tables import main as tables
from evenedit.report.tables import robustness as checks

TABLES: dict[str, Callable[[Index], Table | None]] = {
    "measured": measured.measured,
    "measured_gaps": measured.measured_gaps,
    "measured_prompts": measured.measured_prompts,
    "measured_mitigation": measured.measured_mitigation,
    "silences": measured.missing_reasons,
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
    "table6": sample.judges_beside_people,
    "table9": sample.portraits,
    "table18": sample.sample,
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
OF_PEOPLE = ("between_people", "two_sided", "rank_tests", "table6", "table18")
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
FIGURES: dict[str, Callable[[Index], FigureFile | None]] = {
    "figure4": figures.by_race,
    "figure_gaps": figures.gap_overview,
    "figure_measured": figures.measured_by_group,
    "figure_measured_prompts": figures.measured_by_prompt,
    "figure_mitigation": arms.mitigation_arms,
    "figure_stereotype": arms.stereotype_shares,
    "figure_planted": figures.planted_and_found,
    "figure_people": figures.judges_and_people,
    "figure6": sample.skin_tone_and_deltas,
    "figure_multiverse": curve.specification_curve,
}
"""Each figure's painter by the figure's id."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: what it shows at once, and the tables a reader unfolds."""

    id: str
    title: str
    shown: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    words: str = ""
    """What must be known to read it."""


ALWAYS = ("asked", "observed", "limits", "along", "provenance")
"""Sections with words of their own."""
SECTIONS = (
    Section("asked", "What was asked", folded=("table9",)),
    Section("observed", "What was observed", ("figure_gaps", "table4"), ("table19", "floor", "aging")),
    Section(
        "affected",
        "Who was affected",
        ("figure4", "table20", "figure_measured", "measured", "figure_measured_prompts"),
        ("gaps", "measured_gaps", "measured_prompts"),
    ),
    Section("examples", "Examples", ("figure12", "figure13")),
    Section(
        "mitigation",
        "Mitigation",
        ("figure5", "figure_mitigation", "table5"),
        ("effects", "measured_mitigation", "preference"),
    ),
    Section("stereotypes", "Stereotypes", ("figure7", "figure_stereotype", "table7"), ("roles",)),
    Section(
        "people",
        "Judges, people and instruments",
        ("figure_people", "table6", "figure6"),
        (
            *("judges_people", "judges_people_labels", "judge_error", "between_people", "table18", "two_sided"),
            *("rank_tests", "powered", "agreement", "judges_alone", "confidence"),
        ),
        "What different raters say of the same edits. Where people rated, one person against the others is the "
        "yardstick for a judge, called the human ceiling; as a judge is compared with the mean of several people, it "
        "can be passed. What instruments measured stands under 'Who was affected'.",
    ),
    Section("coverage-refusals", "Coverage and refusals", ("unanswered",), ("coverage", "silences", "bounds")),
    Section(
        "planted-found",
        "Planted and found",
        ("figure_planted",),
        ("planted",),
        "A simulated editor has known effects, so the audit can be checked: the planted value should lie inside about "
        "95 of 100 intervals.",
    ),
    Section(
        "sensitive",
        "Sensitivity",
        ("figure_multiverse",),
        ("multiverse", "sensitivity", "models", "leave_one_out", "seeds"),
        "What the findings rest on: thresholds, rules, single faces, seeds.",
    ),
    Section("limits", "Limits"),
    Section("along", "To take along"),
    Section("provenance", "Provenance and how to reproduce"),
)
"""The page in its order."""


def sections(have: Collection[str], always: Collection[str] = ALWAYS) -> list[Section]:
    """The sections that have something to show, with what they have of it."""
    kept = (
        replace(s, shown=tuple(i for i in s.shown if i in have), folded=tuple(i for i in s.folded if i in have))
        for s in SECTIONS
    )
    return [s for s in kept if s.shown or s.folded or s.id in always]


def all_tables(index: Index) -> dict[str, Table]:
    """Every table that has rows, by id."""
    builders = TABLES
    if not index.rated and not index.results.counts.get("refused"):  # what judges did not score is nothing but dashes
        of_people = OF_PEOPLE if people.has_people(index.results) else ()
        of_instruments = OF_INSTRUMENTS if index.instruments else ()
        builders = {id: TABLES[id] for id in ("table9", *of_instruments, *of_people)}
    built = (builder(index) for builder in builders.values())
    return {table.id: table for table in built if table is not None}


def all_figures(index: Index) -> dict[str, FigureFile]:
    """Every figure the data can fill, by id."""
    drawn = (draw(index) for draw in FIGURES.values())
    return {picture.id: picture for picture in drawn if picture is not None}

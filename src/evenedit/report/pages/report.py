"""The report: one page and its files. All are made before the first is written, so no reader sees half a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evenedit.protocol import QUESTIONS
from evenedit.report.contents import ALWAYS, FIGURES, TABLES, all_figures, all_tables, sections
from evenedit.report.figures.photo_figure import PHOTO_FIGURES, PhotoFigure
from evenedit.report.figures.plots import FigureFile
from evenedit.report.render.html import put, render, thumbnail
from evenedit.report.render.index import Index, name
from evenedit.report.render.table import NOTHING, Table, short_list
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from evenedit.report.text.vlm_human import FILE, vlm_human_agreement
from evenedit.results.results import Results

if TYPE_CHECKING:
    from PIL.Image import Image

BYTES_OF_EXAMPLES = 10_000_000
"""Bytes of examples that the page may hold, so that it stays under 15 MB."""
MUCH = 0.02
"""The share of planned edits or ratings above which the page says on top that they are missing."""
BADGES = {
    "observed": "Observed",
    "clear": "Clear",
    "suggestive": "Suggestive",
    "none": "No difference shown",
    "caution": "Caution",
}
"""The names of certainties on the page."""


@dataclass(frozen=True, slots=True)
class ExampleCase:
    """One edit shown as an example."""

    editor: str
    prompt_id: str
    prompt: str
    """The prompt's short name."""
    group: Mapping[str, str]
    """The source's labels."""
    scores: Mapping[str, int | None]
    """Ensemble scores by question id."""
    source: Image
    edited: Image
    note: str
    """Why it was chosen."""


def write_report(
    results: Results,
    out: Path,
    *,
    title: str,
    study: Mapping[str, Any] | None = None,
    examples: Iterable[ExampleCase] = (),
    photo_figures: Iterable[PhotoFigure] = (),
    figures: Callable[[], Mapping[str, FigureFile]] | None = None,
) -> Path:
    """Write report.html, results.json, vlm_human_agreement.json, tables/ and figures/; return the path of the page.

    `figures` waits for figures that are being drawn already.
    """
    index = Index(results)
    tables = all_tables(index)
    files: dict[str, bytes] = {"results.json": results.to_json().encode()}
    if (both := vlm_human_agreement(results)) is not None:
        files[FILE] = both.encode()
    for table in tables.values():
        files[f"tables/{table.id}.csv"] = table.to_csv().encode()
        files[f"tables/{table.id}.tex"] = table.to_latex().encode()
    photos = {photo.id: photo for photo in photo_figures}
    files |= {f"figures/{photo.id}.png": photo.png for photo in photos.values()}
    texts = texts_for_reuse(index, study or {})
    files |= {path: text.encode() for path, (_, text) in texts.items()}
    drawn = figures() if figures else all_figures(index)
    for figure in drawn.values():
        files[f"figures/{figure.id}.svg"] = figure.svg.encode()
        files[f"figures/{figure.id}.pdf"] = figure.pdf
        files[f"figures/{figure.id}.png"] = figure.png
    page = _render(index, tables, drawn, photos, title, study or {}, examples)
    files["report.html"] = page.encode()  # the last to be written
    for path, content in files.items():
        put(out / path, content)
    _remove_stale(out, files)
    return out / "report.html"


def _remove_stale(out: Path, files: Mapping[str, bytes]) -> None:
    """Delete tables and figures of an earlier report that this one does not have."""
    ours = [f"tables/{id}.{end}" for id in TABLES for end in ("csv", "tex")]
    ours += [f"figures/{id}.{end}" for id in FIGURES for end in ("svg", "pdf", "png")]
    ours += [f"figures/{id}.png" for id in PHOTO_FIGURES]
    for path in (*ours, FILE, "human-evaluation.md", "human-evaluation.tex"):
        if path not in files:
            (out / path).unlink(missing_ok=True)


def _render(
    index: Index,
    tables: Mapping[str, Table],
    figures: Mapping[str, FigureFile],
    photos: Mapping[str, PhotoFigure],
    title: str,
    study: Mapping[str, Any],
    examples: Iterable[ExampleCase],
) -> str:
    room = BYTES_OF_EXAMPLES - sum(len(photo.inline) for photo in photos.values())
    cards, left_out = _cards(index, examples, room)
    return render(
        "report.html",
        title=title,
        results=index.results,
        warnings=list(_warnings(index)),
        sections=sections({*tables, *figures, *photos}, {*ALWAYS, *(["examples"] if cards else [])}),
        asked=_asked(index),
        study=_facts(study),
        rules=_facts(index.results.rules),
        provenance=_facts(index.results.provenance),
        command=str(index.results.provenance.get("command", "")),
        summary=[(about, list(group)) for about, group in groupby(summarise(index), lambda s: s.about)],
        badges=BADGES,
        level=index.level,
        tables=tables,
        figures={id: (figure, Markup(figure.inline)) for id, figure in figures.items()},
        photos=photos,
        cards=cards,
        left_out=left_out,
        limits=list(_limits(index)),
        texts=texts_for_reuse(index, study),
        simulated=short_list(index.results.simulated),
    )


def _warnings(index: Index) -> Iterator[str]:
    """Say on top that much of what was planned is missing."""
    counts = index.results.counts
    parts = [
        f"{counts[f'missing.{what}']:,} of {counts[f'planned.{what}']:,} planned {what}"
        for what in ("edits", "ratings")
        if counts.get(f"missing.{what}", 0) > MUCH * counts.get(f"planned.{what}", 0)
    ]
    if parts:
        yield (
            f"This study is not complete: {' and '.join(parts)} are missing because they failed or were not made yet. "
            "All numbers below rest on what is there, and may change when the run is finished."
        )


def _asked(index: Index) -> list[tuple[str, str]]:
    """The facts of the audit, from the results themselves."""
    results = index.results
    arms = {k.split(".", 1)[1]: n for k, n in results.counts.items() if k.startswith("edits.")}
    faces = max((t.faces for t in results.tests), default=None)
    groups = [
        f"{f.title}: {', '.join(index.level_name(f.name, code) for code in index.levels(f.name))}"
        for f in index.factors
        if index.levels(f.name)
    ]
    facts = [
        ("Editors", ", ".join(index.editors())),
        ("Edits", ", ".join(f"{n:,} {arm.replace('.', ' ')}" for arm, n in arms.items())),
        ("Faces", f"{faces:,}" if faces else ""),
        ("Labels of the faces", "; ".join(groups)),
        ("Judges", ", ".join(index.judges)),
        ("Instruments", ", ".join(index.instruments)),
        (
            "Rates",
            ", ".join(f"{name(r).lower()} {rule}" for r, rule in index.thresholds.items()) if index.rated else "",
        ),
    ]
    return [(term, text) for term, text in facts if text]


def _facts(mapping: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key.replace("_", " ").capitalize(), _plain(value)) for key, value in mapping.items()]


def _plain(value: Any) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) > 9999 else str(value)
        case str():
            return value
        case Mapping():
            return "; ".join(f"{k}: {_plain(v)}" for k, v in value.items()) or NOTHING
        case Sequence():
            return ", ".join(map(_plain, value)) or NOTHING
        case _:
            return str(value)


def _cards(index: Index, examples: Iterable[ExampleCase], room: int) -> tuple[list[dict[str, Any]], int]:
    """Return the examples that fit on the page, ready for the template, and the number of those left out."""
    seen: dict[str, str] = {}
    cards: list[dict[str, Any]] = []
    left_out = 0
    for example in examples:
        pictures = [] if left_out else [thumbnail(image, seen) for image in (example.source, example.edited)]
        room -= sum(map(len, pictures))
        if left_out or room < 0:
            left_out += 1
            continue
        cards.append(
            {
                **{field: getattr(example, field) for field in ("editor", "prompt", "prompt_id", "note")},
                "group": index.group_name(example.group),
                "pictures": pictures,
                "scores": [_score(q, value) for q, value in example.scores.items()],
            }
        )
    return cards, left_out


def _score(question: str, value: int | None) -> tuple[str, str, str]:
    """The title of a question, the score and the rubric's label of the score."""
    known = QUESTIONS.get(question)
    if known is None or value is None or not 1 <= value <= len(known.labels):
        return name(question), NOTHING if value is None else str(value), "no score" if value is None else ""
    return known.title, str(value), known.labels[value - 1]


def _limits(index: Index) -> Iterator[str]:
    """The limits of the findings that apply to these data."""
    results = index.results
    if results.simulated:
        yield (
            "These numbers come from SIMULATED data. They show how the audit works and say nothing about "
            "any real editor, judge or person."
        )
    faces = max((t.faces for t in results.tests), default=0)
    cells = 1
    for f in index.factors:
        cells *= max(len(index.levels(f.name)), 1)
    if 0 < faces <= cells:
        yield (
            f"There are {faces} faces for {cells} combinations of labels, so each group rests on few people. "
            "Intervals and tests treat faces as the unit, but an intersection of labels may be one person."
        )
    yield (
        f"Labels of {index.nouns} are the dataset's labels, given by its annotators. They are not truths "
        "about the people shown, and a difference between labels does not show its cause."
    )
    if index.instruments:
        yield (
            "Instruments measure pixels, not meaning: an unchanged output need not be a failure, a changed one no "
            "success. Changed light cannot always be distinguished from changed skin; a face that could not be "
            "measured is missing, and the table of what could not be measured shows how often, by group."
        )
    if index.judges:
        yield (
            "Scores are ratings, not measurements. A judge may itself rate groups differently; where judges and "
            "people have not been compared group by group, a gap between groups can be the judge's."
        )
    yield (
        "A rate depends on its threshold and on how missing scores are treated; the sensitivity table shows "
        "both. Age ratings of prompts that ask for another age are left out of the age axis."
    )
    yield (
        "The findings hold for these prompts, settings, seeds and versions. The gap between the highest and the "
        "lowest group grows with the number of groups and shrinks with more data even when nothing differs: read it "
        "with its test."
    )

"""The page and its files: everything is made first, then put in place, so no reader meets half a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evenedit.protocol import FACTORS, QUESTIONS
from evenedit.report.contents import ALWAYS, FIGURES, TABLES, all_figures, all_tables, sections
from evenedit.report.figures.photo_figure import PLATES, PhotoFigure
from evenedit.report.figures.plots import FigureFile
from evenedit.report.render.html import put, render, thumbnail
from evenedit.report.render.index import Index, group_name, name
from evenedit.report.render.table import NOTHING, Table, short_list
from evenedit.report.text.methods import to_take_along
from evenedit.report.text.summary import summarise
from evenedit.report.text.vlm_human import FILE, vlm_human_agreement
from evenedit.results.results import Results

if TYPE_CHECKING:
    from PIL.Image import Image

ROOM_FOR_PICTURES = 10_000_000
"""Bytes of examples after which the page takes no more, to stay under 15 MB."""
BADGES = {
    "observed": "Observed",
    "clear": "Clear",
    "suggestive": "Suggestive",
    "none": "No difference shown",
    "caution": "Caution",
}
"""What a certainty is called on the page."""


@dataclass(frozen=True, slots=True)
class ExampleCase:
    """One case to look at."""

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
    plates: Iterable[PhotoFigure] = (),
) -> Path:
    """Write report.html, results.json, vlm_human_agreement.json, tables/ and figures/; return the path of the page."""
    index = Index(results)
    tables, figures = all_tables(index), all_figures(index)
    files: dict[str, bytes] = {"results.json": results.to_json().encode()}
    if (both := vlm_human_agreement(results)) is not None:
        files[FILE] = both.encode()
    for table in tables.values():
        files[f"tables/{table.id}.csv"] = table.to_csv().encode()
        files[f"tables/{table.id}.tex"] = table.to_latex().encode()
    for figure in figures.values():
        files[f"figures/{figure.id}.svg"] = figure.svg.encode()
        files[f"figures/{figure.id}.pdf"] = figure.pdf
        files[f"figures/{figure.id}.png"] = figure.png
    sheets = {plate.id: plate for plate in plates}
    files |= {f"figures/{plate.id}.png": plate.png for plate in sheets.values()}
    texts = to_take_along(index, study or {})
    files |= {path: text.encode() for path, (_, text) in texts.items()}
    page = _render(index, tables, figures, sheets, title, study or {}, examples)
    files["report.html"] = page.encode()  # the last to be put in place
    for path, content in files.items():
        put(out / path, content)
    _remove_stale(out, files)
    return out / "report.html"


def _remove_stale(out: Path, files: Mapping[str, bytes]) -> None:
    """Take away tables and figures of an earlier report that this one leaves out."""
    ours = [f"tables/{id}.{end}" for id in TABLES for end in ("csv", "tex")]
    ours += [f"figures/{id}.{end}" for id in FIGURES for end in ("svg", "pdf", "png")]
    ours += [f"figures/{id}.png" for id in PLATES]
    for path in (*ours, FILE, "human-evaluation.md", "human-evaluation.tex"):
        if path not in files:
            (out / path).unlink(missing_ok=True)


def _render(
    index: Index,
    tables: Mapping[str, Table],
    figures: Mapping[str, FigureFile],
    plates: Mapping[str, PhotoFigure],
    title: str,
    study: Mapping[str, Any],
    examples: Iterable[ExampleCase],
) -> str:
    cards, left_out = _cards(examples, ROOM_FOR_PICTURES - sum(len(plate.inline) for plate in plates.values()))
    return render(
        "report.html",
        title=title,
        results=index.results,
        sections=sections({*tables, *figures, *plates}, {*ALWAYS, *(["examples"] if cards else [])}),
        asked=_asked(index),
        study=_facts(study),
        rules=_facts(index.results.rules),
        provenance=_facts(index.results.provenance),
        command=str(index.results.provenance.get("command", "")),
        summary=[(about, list(said)) for about, said in groupby(summarise(index), lambda s: s.about)],
        badges=BADGES,
        level=index.level,
        tables=tables,
        figures={id: (figure, Markup(figure.inline)) for id, figure in figures.items()},
        plates=plates,
        cards=cards,
        left_out=left_out,
        limits=list(_limits(index)),
        texts=to_take_along(index, study),
        simulated=short_list(index.results.simulated),
    )


def _asked(index: Index) -> list[tuple[str, str]]:
    """What was asked, from the results themselves."""
    results = index.results
    arms = {k.split(".", 1)[1]: n for k, n in results.counts.items() if k.startswith("edits.")}
    faces = max((t.faces for t in results.tests), default=None)
    groups = [f"{name(f)}: {', '.join(map(name, index.levels(f)))}" for f in index.factors()]
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


def _cards(examples: Iterable[ExampleCase], room: int) -> tuple[list[dict[str, Any]], int]:
    """Examples ready for the template, as many as the page has room for, one after the other; and how many are not."""
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
                "group": group_name(example.group),
                "pictures": pictures,
                "scores": [_score(q, value) for q, value in example.scores.items()],
            }
        )
    return cards, left_out


def _score(question: str, value: int | None) -> tuple[str, str, str]:
    """Title, score and what the rubric calls it."""
    known = QUESTIONS.get(question)
    if known is None or value is None or not 1 <= value <= len(known.labels):
        return name(question), NOTHING if value is None else str(value), "no score" if value is None else ""
    return known.title, str(value), known.labels[value - 1]


def _limits(index: Index) -> Iterator[str]:
    """What the reader must not read into the numbers; only what holds for these data."""
    results = index.results
    if results.simulated:
        yield (
            "SIMULATED data stand behind these numbers. They show how the audit works and say nothing about "
            "any real editor, judge or person."
        )
    faces = max((t.faces for t in results.tests), default=0)
    cells = 1
    for f in FACTORS:
        cells *= max(len(index.levels(f.name)), 1)
    if 0 < faces <= cells:
        yield (
            f"There are {faces} faces for {cells} combinations of labels, so each group rests on few people. "
            "Intervals and tests treat faces as the unit, but an intersection of labels may be one person."
        )
    yield (
        "Labels of race, gender and age are the dataset's labels, given by its annotators. They are not truths "
        "about the people shown, and a difference between labels does not tell its cause."
    )
    if index.instruments:
        yield (
            "Instruments measure pixels, not meaning: an unchanged output need not be a failure, a changed one no "
            "success. A light that changed cannot always be told from skin that did; a face that could not be measured "
            "is missing, and the table of what could not be measured shows for whom."
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

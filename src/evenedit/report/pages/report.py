"""The report: a page of findings, an appendix, the cases behind every number, and their files.

All pages and files are made before the first is written, so no reader sees half a report; pictures are named by what
they show and are written first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from evenedit.report.contents import (
    ALWAYS,
    FIGURES,
    TABLES,
    Section,
    all_figures,
    all_tables,
    appendix_sections,
    front_sections,
)
from evenedit.report.figures.base import FORMATS, FigureFile
from evenedit.report.figures.photo_figure import PHOTO_FIGURES, PhotoFigure
from evenedit.report.pages.cases import PAGE, PICTURES, CaseBundle, cases_page
from evenedit.report.pages.example import ExampleCase, example_card
from evenedit.report.pages.facts import facts_of, limits, study_facts
from evenedit.report.pages.findings import (
    ShownFinding,
    carriers,
    editor_cards,
    finding_cards,
    finding_facts,
    shown_findings,
)
from evenedit.report.pages.primary import primary_block
from evenedit.report.render.html import put, render
from evenedit.report.render.index import LEVELS, Index
from evenedit.report.render.selection import CASES, GALLERY, CaseLinks
from evenedit.report.render.table import Table, short_list
from evenedit.report.text.contradictions import CONTRADICTIONS
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from evenedit.report.text.vlm_human import FILE, vlm_human_agreement
from evenedit.results.long_lists import FOLDER as ROWS
from evenedit.results.primary import alpha_of_others
from evenedit.results.results import Results

BYTES_OF_EXAMPLES = 10_000_000
"""Bytes of examples that a page may hold, so that it stays under 15 MB."""
APP_FILES = "/report/files/"
"""Where the web app has the report's files."""
BADGES = {level: words.partition(":")[0].capitalize() for level, words in LEVELS.items()}
"""The names of levels where only the level is known."""
MUCH = 0.02
"""The share of planned edits or ratings above which the page says on top that they are missing."""


@dataclass(frozen=True)
class ReportParts:
    """Everything that the pages of a report are made of."""

    index: Index
    title: str
    study: Mapping[str, Any]
    tables: Mapping[str, Table]
    figures: Mapping[str, FigureFile]
    photos: Mapping[str, PhotoFigure]
    examples: tuple[ExampleCase, ...]
    texts: Mapping[str, tuple[str, str]]
    cases: CaseBundle | None

    def show(self, request_id: str) -> ExampleCase | None:
        """Return a case with its pictures, if there are any."""
        return None if self.cases is None else self.cases.show(request_id)


def write_report(
    results: Results,
    out: Path,
    *,
    title: str,
    study: Mapping[str, Any] | None = None,
    examples: Iterable[ExampleCase] = (),
    photo_figures: Iterable[PhotoFigure] = (),
    figures: Callable[[], Mapping[str, FigureFile]] | None = None,
    cases: CaseBundle | None = None,
    app: Path | None = None,
) -> Path:
    """Write report.html, appendix.html, findings/, cases.html with its pictures, results.json, tables/ and figures/.

    Return the path of report.html. `figures` waits for figures that are being drawn already; `app` is the folder for
    the same pages as the web app shows them.
    """
    index = Index(results)
    tables = all_tables(index)
    files = results.to_files()
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
        files |= figure.files()
    parts = ReportParts(index, title, study or {}, tables, drawn, photos, tuple(examples), texts, cases)
    seen: dict[str, str] = {}
    served = _pages(parts, CaseLinks(index, GALLERY), APP_FILES, seen) if app is not None else {}
    pages = _pages(parts, CaseLinks(index, CASES if cases else ""), "", seen)
    if cases is not None:
        files[PAGE] = cases_page(cases, title, _simulated(parts)).encode()
        _write_pictures(out / PICTURES, cases.pictures)
    files |= {name: pages[name].encode() for name in sorted(pages, key="report.html".__eq__)}  # the page comes last
    for path, content in files.items():
        put(out / path, content)
    if app is not None:
        for path, page in served.items():
            put(app / path, page.encode())
    _remove_stale(out, files)
    return out / "report.html"


def _write_pictures(folder: Path, pictures: Iterable[tuple[str, bytes]]) -> None:
    """Write the pictures of the cases, and delete those of an earlier report that this one does not have."""
    written = set()
    for name, content in pictures:
        if not _is_there(folder / name, content):
            put(folder / name, content)
        written.add(folder / name)
    for old in (*folder.glob("*.webp"), *folder.glob("full/*.png")):
        if old not in written:
            old.unlink()


def _is_there(file: Path, content: bytes) -> bool:
    """Return whether a file already has this content; rewriting thousands of files takes seconds."""
    return file.is_file() and file.stat().st_size == len(content) and file.read_bytes() == content


def _remove_stale(out: Path, files: Mapping[str, bytes]) -> None:
    """Delete tables, figures and pages of an earlier report that this one does not have."""
    paths = [f"tables/{id}.{end}" for id in TABLES for end in ("csv", "tex")]
    paths += [str(rows.relative_to(out)) for rows in out.glob(f"{ROWS}/*.csv")]
    paths += [f"figures/{id}.{end}" for id in FIGURES for end in ("svg", *FORMATS)]
    paths += [f"figures/{id}.png" for id in PHOTO_FIGURES]
    paths += [str(page.relative_to(out)) for page in out.glob("findings/*.html")]
    for path in (*paths, FILE, PAGE, "human-evaluation.md", "human-evaluation.tex"):
        if path not in files:
            (out / path).unlink(missing_ok=True)


def _simulated(parts: ReportParts) -> str:
    return short_list(parts.index.results.simulated)


def _pages(parts: ReportParts, links: CaseLinks, files: str, seen: dict[str, str]) -> dict[str, str]:
    """Yield every page by its path; `files` is the address of the report's files, `seen` the pictures made so far."""
    findings = shown_findings(parts.index, links)
    common = _common(parts, links, files, findings)
    front = front_sections({*parts.tables, *parts.figures, *parts.photos}, rated=parts.index.rated)
    return {
        "report.html": _front(parts, front, findings, seen, common),
        "appendix.html": _appendix(parts, front, seen, common),
        **dict(_finding_pages(parts, links, findings, seen, common)),
    }


def _common(parts: ReportParts, links: CaseLinks, files: str, findings: list[ShownFinding]) -> dict[str, Any]:
    """Return the template variables that every page needs."""
    return {
        "title": parts.title,
        "results": parts.index.results,
        "simulated": _simulated(parts),
        "badges": BADGES,
        "level": parts.index.level,
        "alpha": f"{alpha_of_others(parts.index.results.primary):g}",
        "link": links,
        "files": files,
        "served": links.before == GALLERY,
        "asked": study_facts(parts.index),
        "limits": limits(parts.index),
        "findings": findings,
    }


def _drawn(parts: ReportParts, sections: Iterable[Section], before: str) -> dict[str, Any]:
    """Return the tables, figures and photo figures of some sections, ready for a template."""
    ids = {id for section in sections for id in (*section.visible, *section.folded)}
    return {
        "tables": {id: table for id, table in parts.tables.items() if id in ids},
        "figures": {id: (f, Markup(f.inline(before))) for id, f in parts.figures.items() if id in ids},
        "photos": {id: photo for id, photo in parts.photos.items() if id in ids},
    }


def _front(
    parts: ReportParts,
    front: list[Section],
    findings: list[ShownFinding],
    seen: dict[str, str],
    common: dict[str, Any],
) -> str:
    cards = list(editor_cards(parts.index, findings, parts.show, seen))
    on_cards = {s.number for card in cards for s in card.findings}
    return render(
        "report.html",
        **common,
        **_drawn(parts, front, common["link"].before),
        sections=front,
        warnings=list(_warnings(parts.index)),
        plan=parts.index.results.preregistration,
        primary=primary_block(parts.index),
        verdicts=cards,
        further=[s for s in findings if s.number not in on_cards],
        sentences=summarise(parts.index) if not findings else [],
        parts=[s for s in _appendix_sections(parts, front) if s.id != "asked"],
    )


def _appendix_sections(parts: ReportParts, front: list[Section]) -> list[Section]:
    have = {*parts.tables, *parts.figures, *parts.photos}
    always = {*ALWAYS, *(["examples"] if parts.examples else [])}
    return appendix_sections(have, front, always)


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


def _appendix(parts: ReportParts, front: list[Section], seen: dict[str, str], common: dict[str, Any]) -> str:
    sections = _appendix_sections(parts, front)
    room = BYTES_OF_EXAMPLES - sum(len(photo.inline) for photo in parts.photos.values())
    cards, left_out = _cards(parts.index, parts.examples, room, seen)
    results = parts.index.results
    return render(
        "appendix.html",
        **common,
        **_drawn(parts, sections, common["link"].before),
        sections=sections,
        study=facts_of(parts.study),
        rules=facts_of(results.rules),
        contradictions=CONTRADICTIONS if results.rules.get("preset") == "published" else (),
        provenance=facts_of(results.provenance),
        command=str(results.provenance.get("command", "")),
        summary=[(about, list(group)) for about, group in groupby(summarise(parts.index), lambda s: s.about)],
        cards=cards,
        left_out=left_out,
        texts=parts.texts,
    )


def _finding_pages(
    parts: ReportParts,
    links: CaseLinks,
    findings: list[ShownFinding],
    seen: dict[str, str],
    common: dict[str, Any],
) -> Iterator[tuple[str, str]]:
    """Yield one shareable page per finding: its sentence, pictures, numbers and limits."""
    up = "" if links.before in ("", GALLERY) else "../"
    own_links = CaseLinks(parts.index, up + links.before)
    for s in findings:
        f = s.finding
        related = [o for o in findings if o.finding.kind in ("design", "judge", "people") and o is not s]
        yield (
            s.page,
            render(
                "finding.html",
                **(common | {"link": own_links}),
                shown=replace(s, cases=up + s.cases if s.cases else ""),
                facts=finding_facts(parts.index, f),
                cards=finding_cards(parts.index, f, parts.show, seen),
                related=[o for o in related if o.finding.editor in (None, f.editor)],
                numbers=len(findings),
                carriers=carriers(parts.index, f, own_links),
            ),
        )


def _cards(
    index: Index, examples: Iterable[ExampleCase], room: int, seen: dict[str, str]
) -> tuple[list[dict[str, Any]], int]:
    """Return the examples that fit on the page, ready for the template, and the number of those left out."""
    cards: list[dict[str, Any]] = []
    left_out = 0
    for example in examples:
        card = None if left_out else example_card(index, example, seen)
        room -= sum(map(len, card["pictures"])) if card else 0
        if card is None or room < 0:
            left_out += 1
        else:
            cards.append(card)
    return cards, left_out

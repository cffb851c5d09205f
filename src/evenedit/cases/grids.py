"""Cases side by side: one prompt across the main factor, one portrait across prompts and editors, a contact sheet.

A picture grid holds rows of cells; the page links each cell to its case, and `picture` makes one PNG of the grid.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from evenedit.cases.labels import labels_in_words
from evenedit.cases.search import Gallery, SearchResult, is_pair, label_title
from evenedit.cases.thumbnails import Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, is_simulated
from evenedit.protocol import Factor, Rubric
from evenedit.protocol.questions import YES_NO
from evenedit.report.render.contact_sheet import Cell, SheetRow, collage

MOST_PROMPTS = 10
"""The number of prompts that a grid shows unless some are chosen."""
ACROSS = 24
"""Pictures in one row of a contact sheet."""
MOST = 480
"""The most pictures on a contact sheet: as many as the paper's mosaic has."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell of a picture grid."""

    image: str | None
    caption: str
    request_id: str | None = None
    """None for a source portrait, and where the study has no such case."""


@dataclass(frozen=True, slots=True)
class PictureGrid:
    """Pictures in rows and columns, with a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[GridCell]]]
    simulated: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice that a grid's page offers, and what is chosen."""

    name: str
    title: str
    values: Mapping[str, str]
    chosen: tuple[str, ...]
    several: bool = False


def across_levels(gallery: Gallery, query: Mapping[str, Sequence[str]]) -> tuple[PictureGrid, list[Choice]]:
    """Return one editor's outputs for the same prompts over portraits that differ only in the main factor."""
    main, *others = gallery.factors
    cells = _portraits_by_labels(gallery)
    faces = {str(n): str(n) for n in range(1, max(map(len, cells.values()), default=1) + 1)}
    choices = {c.name: c for c in _runs(gallery, query)}
    choices |= {f.name: _choice(f.name, label_title(f), _levels(gallery, f), query) for f in others}
    choices["face"] = _choice("face", "Face of each cell", faces, query)
    choices["prompt"] = _prompts(gallery, query, first=1)
    one = {name: c.chosen[0] if c.chosen else "" for name, c in choices.items()}
    columns, number = _levels(gallery, main), int(one["face"]) - 1
    matched = tuple(one[f.name] for f in others)
    chosen = [cells.get((code, *matched), [])[number : number + 1] for code in columns]
    known = _outputs(gallery, one, one["editor"])
    rows: list[tuple[str, Sequence[GridCell]]] = [
        ("source", [_portrait(gallery, ids[0]) if ids else GridCell(None, "no such portrait") for ids in chosen])
    ]
    for prompt in choices["prompt"].chosen:
        name = choices["prompt"].values[prompt]
        rows.append((name, [_output(gallery, known.get((ids[0], prompt)) if ids else None) for ids in chosen]))
    who = f" labelled {labels_in_words(one, others)}" if others else ""
    title = f"{one['editor']}: the same prompt over portraits{who}"
    return PictureGrid(title, list(columns.values()), rows, _simulated(gallery, [one["editor"]])), _offered(choices)


def _portraits_by_labels(gallery: Gallery) -> dict[tuple[str, ...], list[str]]:
    """Group portrait ids by their labels, in the factors' order."""
    cells: dict[tuple[str, ...], list[str]] = {}
    for source in gallery.book.sources.values():
        labels = tuple(source.attributes.get(f.name, "") for f in gallery.factors)
        cells.setdefault(labels, []).append(source.id)
    return cells


def _levels(gallery: Gallery, factor: Factor) -> dict[str, str]:
    """Return the titles of the levels that occur, by code."""
    present = {source.attributes.get(factor.name, "") for source in gallery.book.sources.values()}
    return {code: title for code, title in factor.titles.items() if code in present}


def mosaic(gallery: Gallery, query: Mapping[str, Sequence[str]]) -> tuple[PictureGrid, list[Choice]]:
    """Return one portrait under many prompts by every editor."""
    portraits = {s.id: s.id for s in gallery.book.sources.values()}
    choices = {c.name: c for c in _runs(gallery, query, several=True)}
    choices["source"] = _choice("source", "Portrait", portraits, query)
    choices["prompt"] = _prompts(gallery, query, first=MOST_PROMPTS)
    one = {name: c.chosen[0] if c.chosen else "" for name, c in choices.items()}
    editors = choices["editor"].chosen
    known = {editor: _outputs(gallery, one, editor) for editor in editors}
    source = one["source"]
    rows = []
    for prompt in choices["prompt"].chosen:
        outputs = [_output(gallery, known[editor].get((source, prompt))) for editor in editors]
        rows.append((choices["prompt"].values[prompt], [_portrait(gallery, source, caption=""), *outputs]))
    title = f"{source}: one portrait, prompt by prompt and editor by editor"
    return PictureGrid(title, ["source", *editors], rows, _simulated(gallery, editors)), _offered(choices)


def sheet(gallery: Gallery, result: SearchResult) -> PictureGrid:
    """Return the outputs of a search in its order, without captions, as a contact sheet."""
    tiles = (gallery.tile(int(row)) for row in result.rows)
    outputs: list[GridCell] = []
    editors: set[str] = set()
    for tile in tiles:
        if tile.image is not None:
            outputs.append(GridCell(tile.image, "", tile.request_id))
            editors.add(tile.editor)
        if len(outputs) == MOST:
            break
    if not outputs:
        raise EvenEditError("no case that meets the filter has a picture")
    width = min(ACROSS, len(outputs))
    empty = [GridCell(None, "")] * (-len(outputs) % width)
    filled = [*outputs, *empty]
    rows = [("", filled[at : at + width]) for at in range(0, len(filled), width)]
    return PictureGrid(f"{len(outputs)} outputs", [""] * width, rows, any(map(is_simulated, editors)))


def picture(grid: PictureGrid, thumbnails: Thumbnails, side: int) -> bytes:
    """Return the grid as one PNG."""
    width = next((w for w in (160, 320, 640) if w >= side), 640)

    def opened(sha256: str | None) -> Image.Image | None:
        return None if sha256 is None else Image.open(io.BytesIO(thumbnails.get(sha256, width)))

    rows = [SheetRow(name, [Cell(opened(cell.image), cell.caption) for cell in cells]) for name, cells in grid.rows]
    buffer = io.BytesIO()
    collage(grid.columns, rows, simulated=grid.simulated, side=side).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def caption(rubric: Rubric, scores: Mapping[str, int], between: str = ":") -> str:
    """Format an edit's scores in one line, without missing ones; of a set, the options that were chosen."""
    parts = []
    for question in (q for q in captioned(rubric) if q in scores):
        answer = scores[question]
        if question in rubric.axes:
            parts.append(f"{rubric.short(question)}{between}{answer}")
        elif rubric.spec_by_column[question].question.sided != "set":
            chosen = list(rubric.options(question).values())[answer - 1]
            parts.append(f"{rubric.short(question)}{between}{chosen}")
        elif answer == YES_NO.index("yes") + 1:
            parts.append(rubric.option_of_set(question))
    return " · ".join(parts)


def captioned(rubric: Rubric) -> list[str]:
    """Return the questions whose answers a caption has: those about an edit of one portrait."""
    return [q for q in rubric.columns if rubric.spec_by_column[q].row.about == "pair" and q not in rubric.replaced]


def _runs(gallery: Gallery, query: Mapping[str, Sequence[str]], *, several: bool = False) -> Iterable[Choice]:
    """Yield the choices of editor, condition and seed among edits of one portrait."""
    edits = gallery.book.scores.edits
    single = edits[~is_pair(edits)]
    if single.empty:
        raise EvenEditError("the study has no edit of one portrait yet")
    editors = {e: e for e in dict.fromkeys(single["editor"])}
    yield _choice("editor", "Editor", editors, query, several=several)
    held = set(single["condition"])
    conditions = {c: c for c in gallery.fields["condition"].values if c in held}
    usual = [ConditionKind.BASELINE.value] if ConditionKind.BASELINE in conditions else None
    yield _choice("condition", "Condition", conditions, query, default=usual)
    yield _choice("seed", "Seed", {str(s): str(s) for s in dict.fromkeys(single["seed"])}, query)


def _prompts(gallery: Gallery, query: Mapping[str, Sequence[str]], first: int) -> Choice:
    edits = gallery.book.scores.edits
    held = dict.fromkeys(edits["prompt_id"][~is_pair(edits)])
    titles = {p: gallery.fields["prompt"].values[p] for p in held}
    return _choice("prompt", "Prompts", titles, query, several=True, default=list(titles)[:first])


def _choice(
    name: str,
    title: str,
    values: Mapping[str, str],
    query: Mapping[str, Sequence[str]],
    *,
    several: bool = False,
    default: Sequence[str] | None = None,
) -> Choice:
    """Build a choice from the query; else the default, else the first value, or all if several may be chosen."""
    wanted = [v for v in query.get(name, ()) if v]
    for value in wanted:
        if value not in values:
            raise EvenEditError(f"{name} '{value[:80]}' is not in the study; it has: {', '.join(values)}")
    chosen = [v for v in values if v in wanted] or list(values if default is None else default)
    return Choice(name, title, values, tuple(chosen if several else chosen[:1]), several)


def _offered(choices: Mapping[str, Choice]) -> list[Choice]:
    """Return the choices that have more than one value."""
    return [c for c in choices.values() if len(c.values) > 1]


def _outputs(gallery: Gallery, one: Mapping[str, str], editor: str) -> dict[tuple[str, str], int]:
    """Map portrait and prompt to the rows of one editor, condition and seed."""
    fields = gallery.fields
    alike = fields["editor"].among([editor]) & fields["condition"].among([one["condition"]])
    alike &= fields["seed"].among([one["seed"]])
    edits = gallery.book.scores.edits
    rows = np.flatnonzero(alike)
    pairs = zip(edits["source_id"].to_numpy()[rows], edits["prompt_id"].to_numpy()[rows], strict=True)
    return dict(zip(pairs, rows.tolist(), strict=True))


def _portrait(gallery: Gallery, source: str, caption: str | None = None) -> GridCell:
    return GridCell(gallery.book.sources[source].image, source if caption is None else caption)


def _output(gallery: Gallery, row: int | None) -> GridCell:
    if row is None:
        return GridCell(None, "not edited")
    book = gallery.book
    ident = str(book.scores.edits["request_id"].iloc[row])
    image = book.images.get(ident)
    if image is None:
        outcome = book.scores.edits["outcome"].iloc[row]
        return GridCell(None, f"{outcome}: {book.reasons.get(ident, '')}"[:80], ident)
    return GridCell(image, caption(book.scores.table.rubric, book.scores_of(row)), ident)


def _simulated(gallery: Gallery, editors: Iterable[str]) -> bool:
    """Return whether an editor, or a judge whose scores are in the captions, is simulated."""
    scores = gallery.book.scores
    scored = any((scores.of(question) > 0).any() for question in captioned(scores.table.rubric))
    return any(map(is_simulated, editors)) or (scored and any(map(is_simulated, scores.table.raters)))

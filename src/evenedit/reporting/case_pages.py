"""A study's cases for its report: what the page of cases filters by, their pictures, and single cases to show."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

from PIL import Image

from evenedit.cases.change_maps import ChangeMaps
from evenedit.cases.search import Gallery
from evenedit.cases.thumbnails import WIDTHS, Thumbnails, report_width
from evenedit.core.errors import EvenEditError
from evenedit.instruments.evidence_image import skin_lines
from evenedit.report.pages.cases import CaseBundle, CaseList
from evenedit.report.pages.example import ExampleCase
from evenedit.reporting.examples import called

Pictures = Literal["none", "thumbnails", "full"]
"""Which pictures a report holds."""
MIDDLE = WIDTHS[1]
"""The width of a picture beside a finding, in pixels."""
THREADS = 4
NAME = 20
"""Letters of a picture's hash in the name of its file."""


class ReportCases:
    """The cases of a study, with the pictures that its report is to hold."""

    def __init__(self, gallery: Gallery, pictures: Pictures) -> None:
        self._gallery, self._book, self._pictures = gallery, gallery.book, pictures
        store = self._book.study.store
        self._thumbnails = Thumbnails(store.images, store.folder)
        self._maps = ChangeMaps(store.images, store.folder)
        self._width = report_width(len(gallery))

    def bundle(self) -> CaseBundle:
        """Return the cases and their pictures for the report; start making small copies."""
        threading.Thread(target=self._begin, name="small pictures", daemon=True).start()
        return CaseBundle(self._list(), self._files(), self.show, self._pictures == "full")

    def _begin(self) -> None:
        """Make the small copies that are not there yet: decoding and scaling leave the interpreter free."""
        for sha256 in self._hashes():
            self._small(sha256)

    def show(self, request_id: str) -> ExampleCase | None:
        """Return one case with its pictures; None if it has no output of one portrait or pictures are left out."""
        book = self._book
        row, image = book.rows.get(request_id), book.images.get(request_id)
        if row is None or image is None or self._pictures == "none":
            return None
        edit = book.scores.edits.iloc[row]
        sources = [book.sources[s] for s in str(edit["source_id"]).split("+")]
        prompt = book.study.file.prompt(edit["prompt_id"])
        pictures = [self._opened(sha) for sha in (sources[0].image, image)]
        if pictures[0] is None or pictures[1] is None:
            return None
        numbers, reasons = book.study.store.measurements(book.measured_by, request_id).get(request_id, ({}, {}))
        return ExampleCase(
            editor=str(edit["editor"]),
            prompt_id=prompt.id,
            prompt=called(prompt),
            group={f.name: v for f in book.factors if (v := sources[0].attributes.get(f.name)) and len(sources) == 1},
            scores=dict(book.scores_of(row)),
            source=pictures[0],
            edited=pictures[1],
            note="",
            id=request_id,
            readings="; ".join(skin_lines(numbers, reasons)) if numbers else "",
            outlined=partial(self._outlined, sources[0].image, image) if numbers else None,
        )

    def _outlined(self, source: str, edited: str) -> tuple[Image.Image, ...]:
        """Return both pictures with outlines around the skin that was read; none where they cannot be drawn."""
        try:
            both = Image.open(io.BytesIO(self._maps.get(source, edited, "skin")))
        except (EvenEditError, OSError):
            return ()
        half = both.width // 2
        return tuple(both.crop((left, 0, left + half, both.height)) for left in (0, half))

    def _list(self) -> CaseList:
        gallery, book = self._gallery, self._book
        edits = book.scores.edits
        bare = self._pictures == "none"
        sources = dict.fromkeys(edits["source_id"])
        return CaseList(
            ids=list(edits["request_id"]),
            fields=list(gallery.fields.values()),
            numbers=list(gallery.numbers.values()),
            portraits={s: [] if bare else [_name(book.sources[p].image) for p in s.split("+")] for s in sources},
            outputs=["" if bare or i not in book.images else _name(book.images[i]) for i in edits["request_id"]],
            reasons=book.reasons,
            prompts={p: book.study.file.prompt(p).text for p in dict.fromkeys(edits["prompt_id"])},
            scores=[f for f in gallery.fields if f in book.scores.table.rubric],
            printed=[n for n in gallery.numbers if "." in n],
        )

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Yield each picture once with its file name, full-size ones after the small ones."""
        ordered = self._hashes()
        with ThreadPoolExecutor(THREADS) as pool:  # decoding and scaling leave the interpreter free
            for sha, content in zip(ordered, pool.map(self._small, ordered), strict=True):
                if content is not None:
                    yield f"{_name(sha)}.webp", content
        if self._pictures == "full":
            images = self._book.study.store.images
            for sha in ordered:
                yield f"full/{_name(sha)}.png", images.read(sha)

    def _hashes(self) -> list[str]:
        """Return the pictures that the report holds."""
        if self._pictures == "none":
            return []
        idents = set(self._book.scores.edits["request_id"])
        hashes = {image for ident, image in self._book.images.items() if ident in idents}
        faces = {p for s in dict.fromkeys(self._book.scores.edits["source_id"]) for p in s.split("+")}
        return sorted(hashes | {self._book.sources[p].image for p in faces} - {""})

    def _opened(self, sha256: str) -> Image.Image | None:
        """Return a picture of medium size; None if the stored one is missing or damaged."""
        try:
            return Image.open(io.BytesIO(self._thumbnails.get(sha256, MIDDLE)))
        except (EvenEditError, OSError):
            return None

    def _small(self, sha256: str) -> bytes | None:
        """Return a small copy of a picture; None if the stored picture is missing or damaged."""
        try:
            return self._thumbnails.get(sha256, self._width)
        except (EvenEditError, OSError):
            return None


def _name(sha256: str) -> str:
    return sha256[:NAME]

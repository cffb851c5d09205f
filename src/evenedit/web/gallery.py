"""The gallery room: every case with its pictures and what was said of it. An address is a permalink.

GET /gallery               the grid: filters, order and page are the query
GET /gallery/case/{id}     one case; the query says among which others it stands
GET /gallery/change/{id}   where the output differs from its source
GET /gallery/races         one prompt across races           GET /gallery/races.png
GET /gallery/mosaic        one portrait, prompts × editors   GET /gallery/mosaic.png
GET /gallery/sheet.png     the outputs of the grid's query without words
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.core.errors import EvenEditError
from evenedit.study.gallery import grids as panels
from evenedit.study.gallery.cases import labels
from evenedit.study.gallery.change_maps import ChangeMaps
from evenedit.study.gallery.grids import Choice, PictureGrid
from evenedit.study.gallery.search import PAGE, Gallery, LiveGallery, Wanted
from evenedit.study.gallery.thumbnails import Thumbnails
from evenedit.web.auth import staff
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page

LONG_LIST = 200
"""Values of a field on the page; beyond these the text box finds them."""
OPEN = ("editor", "race", "outcome", "priority")
"""Filters that stand open on a first visit."""
SIDE, TINY = 256, 96
"""Pictures of a panel and of a sheet, in pixels."""

Staff = Annotated[str, Depends(staff)]
View = Callable[[Gallery, Mapping[str, Sequence[str]]], tuple[PictureGrid, list[Choice]]]


def room() -> APIRouter:
    """The room's pages, for staff only."""
    routes = APIRouter(prefix="/gallery", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("", response_class=HTMLResponse)(grid)
    routes.get("/case/{request_id}", response_class=HTMLResponse)(case_page)
    routes.get("/change/{request_id}")(change)
    routes.get("/sheet.png")(sheet)
    for name, view in (("races", panels.races), ("mosaic", panels.mosaic)):
        routes.get(f"/{name}", response_class=HTMLResponse)(_panel_page(name, view))
        routes.get(f"/{name}.png")(_panel_picture(name, view))
    return routes


def grid(request: Request, name: Staff) -> Response:
    """The cases that meet the query."""
    gallery = _gallery(request)
    wanted = _wanted(request, gallery)
    if request.query_params.multi_items() != parse_qsl(wanted.query):  # as a form sends it: one wish, one address
        return RedirectResponse(f"/gallery?{wanted.query}".rstrip("?"), 303)
    found = gallery.search(wanted)
    if wanted.page > found.pages:
        return RedirectResponse(f"/gallery?{wanted.at(found.pages).query}".rstrip("?"), 303)
    return _page(
        request,
        "gallery/grid.html",
        gallery,
        staff=name,
        wanted=wanted,
        found=found,
        total=len(gallery),
        first=(wanted.page - 1) * PAGE + 1,
        tiles=[gallery.tile(int(row)) for row in found.page(wanted.page)],
        fields=[_offer(gallery, found.counts, wanted, field) for field in gallery.fields],
        numbers=[(n, *wanted.ranges.get(n.id, (None, None))) for n in gallery.numbers.values()],
        chips=_chips(gallery, wanted),
        sorts=gallery.sorts,
    )


def case_page(request: Request, name: Staff, request_id: str) -> Response:
    """One case, among those that meet the query."""
    gallery = _gallery(request)
    wanted = _wanted(request, gallery)
    with _told(404):
        case = gallery.book.open(request_id)
    found = gallery.search(wanted)
    before, after, place = gallery.around(found, request_id)
    back = wanted.at(1 if place is None else (place - 1) // PAGE + 1)
    return _page(
        request,
        "gallery/case.html",
        gallery,
        staff=name,
        case=case,
        prompt=gallery.fields["prompt"].values[case.prompt.id],
        labels=[labels(source) for source in case.sources],
        before=before,
        after=after,
        place=place,
        count=len(found.rows),
        wanted=wanted,
        back=back,
        caption=panels.caption,
    )


def change(request: Request, request_id: str) -> Response:
    """The change map of a case."""
    gallery = _gallery(request)
    with _told(404):
        case = gallery.book.open(request_id)
        if case.edit.image is None or len(case.sources) != 1:
            raise EvenEditError("A change map needs one source and one output.")
        store = request.app.state.study.store
        made = _maps(request, store).get(case.sources[0].image, case.edit.image)
    return Response(made, media_type="image/webp", headers={"Cache-Control": "private, max-age=600"})


def sheet(request: Request) -> Response:
    """The outputs that meet the query, as one picture."""
    gallery = _gallery(request)
    found = gallery.search(_wanted(request, gallery))
    with _told(404):
        made = panels.picture(panels.sheet(gallery, found), _thumbnails(request), TINY)
    return _download(made, "sheet.png")


def _panel_page(name: str, view: View) -> Callable[..., Response]:
    def shown(request: Request, who: Staff) -> Response:
        gallery = _gallery(request)
        with _told(404):
            panel, choices = view(gallery, _asked(request))
        picture = f"/gallery/{name}.png?{request.url.query}".rstrip("?")
        return _page(
            request,
            "gallery/panel.html",
            gallery,
            staff=who,
            name=name,
            panel=panel,
            choices=choices,
            picture=picture,
        )

    return shown


def _panel_picture(name: str, view: View) -> Callable[..., Response]:
    def made(request: Request) -> Response:
        with _told(404):
            panel, _ = view(_gallery(request), _asked(request))
            return _download(panels.picture(panel, _thumbnails(request), SIDE), f"{name}.png")

    return made


def _page(request: Request, template: str, gallery: Gallery, **context: Any) -> HTMLResponse:
    return page(request, template, built=gallery.built.strftime("%H:%M:%S"), **context)


def _offer(gallery: Gallery, counts: Mapping[str, Mapping[str, int]], wanted: Wanted, name: str) -> dict[str, Any]:
    """A field's values as the form offers them: those that some case has or that are chosen."""
    field, chosen = gallery.fields[name], wanted.chosen.get(name, ())
    unknown = [(value, value, 0) for value in chosen if value not in field.values]
    there = [(v, title, counts[name][v]) for v, title in field.values.items() if counts[name][v] or v in chosen]
    short = sorted(there, key=lambda v: v[0] not in chosen)[:LONG_LIST] if len(there) > LONG_LIST else there
    return {
        "id": name,
        "title": field.title,
        "values": [*short, *unknown],
        "chosen": chosen,
        "more": len(there) - len(short),
        "open": bool(chosen) or (not wanted.chosen and name in OPEN),
    }


def _chips(gallery: Gallery, wanted: Wanted) -> list[tuple[str, str]]:
    """Each wish in words, with the query without it."""
    chips = []
    for name, values in wanted.chosen.items():
        field = gallery.fields[name]
        chips += [(f"{field.title}: {field.values.get(v, v)}", wanted.without(name, v).query) for v in values]
    for name, (low, high) in wanted.ranges.items():
        ends = " to ".join(f"{end:g}" if end is not None else "any" for end in (low, high))
        chips.append((f"{gallery.numbers[name].title}: {ends}", wanted.without(name).query))
    if wanted.text:
        chips.append((f"“{wanted.text}”", wanted.without("q").query))
    return chips


def _gallery(request: Request) -> Gallery:
    live: LiveGallery = request.app.state.gallery
    with _told(409):
        return live.now()


def _wanted(request: Request, gallery: Gallery) -> Wanted:
    with _told(400):
        return gallery.wanted(request.query_params.multi_items())


def _asked(request: Request) -> dict[str, list[str]]:
    asked: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        asked.setdefault(name, []).append(value)
    return asked


def _thumbnails(request: Request) -> Thumbnails:
    store = request.app.state.study.store
    return Thumbnails(store.images, store.folder)


def _maps(request: Request, store: Any) -> ChangeMaps:
    """One maker of maps for the whole app."""
    state = request.app.state
    if not hasattr(state, "change_maps"):
        state.change_maps = ChangeMaps(store.images, store.folder)
    maps: ChangeMaps = state.change_maps
    return maps


def _download(content: bytes, name: str) -> Response:
    headers = {"Content-Disposition": f'inline; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type="image/png", headers=headers)


@contextmanager
def _told(status: int) -> Iterator[None]:
    try:
        yield
    except EvenEditError as error:
        raise HttpProblem(status, str(error)) from None

"""The gallery pages: every case with its pictures and ratings. Every address is a permalink.

GET /gallery               the grid: filters, order and page are the query; labels are filtered by factor name
GET /gallery/case/{id}     one case; the query names the search that it belongs to
GET /gallery/change/{id}   where the output differs from its source
GET /gallery/skin/{id}     where skin was read in both
GET /gallery/across        one prompt across the levels of the main factor   GET /gallery/across.png
GET /gallery/races         the same page, in a study whose main factor is race   GET /gallery/races.png
GET /gallery/mosaic        one portrait, prompts × editors   GET /gallery/mosaic.png
GET /gallery/sheet.png     the outputs of the grid's query without captions
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.cases import grids
from evenedit.cases.change_maps import ChangeMaps
from evenedit.cases.grids import Choice, PictureGrid
from evenedit.cases.labels import labels_in_words
from evenedit.cases.search import PAGE, Gallery, LiveGallery, SearchQuery
from evenedit.cases.thumbnails import Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.instruments.evidence_image import skin_lines
from evenedit.protocol import Factor
from evenedit.web.auth import staff
from evenedit.web.errors import errors_as
from evenedit.web.pages import page

LONG_LIST = 200
"""The most values of a field that the page lists; the text box finds the others."""
OPEN = ("editor", "outcome", "priority")
"""Filters that are open on a first visit, together with that of the main factor."""
SIDE, TINY = 256, 96
"""The sides of pictures in a grid and on a contact sheet, in pixels."""

View = Callable[[Gallery, Mapping[str, Sequence[str]]], tuple[PictureGrid, list[Choice]]]


def router() -> APIRouter:
    """Return the routes of the gallery, for staff only."""
    routes = APIRouter(prefix="/gallery", dependencies=[Depends(staff)], include_in_schema=False)
    routes.get("", response_class=HTMLResponse)(grid)
    routes.get("/case/{request_id}", response_class=HTMLResponse)(case_page)
    routes.get("/sheet.png")(sheet)
    for name, view in (("across", grids.across_levels), ("races", grids.across_levels), ("mosaic", grids.mosaic)):
        routes.get(f"/{name}", response_class=HTMLResponse)(_grid_page(name, view))
        routes.get(f"/{name}.png")(_grid_picture(name, view))
    routes.get("/{kind}/{request_id}")(change_map)
    return routes


def grid(request: Request) -> Response:
    """Show the cases that meet the query."""
    gallery = _gallery(request)
    wanted = _wanted(request, gallery)
    if request.query_params.multi_items() != parse_qsl(
        wanted.query
    ):  # a form sends empty fields too; one search has one address
        return RedirectResponse(f"/gallery?{wanted.query}".rstrip("?"), 303)
    result = gallery.search(wanted)
    if wanted.page > result.pages:
        return RedirectResponse(f"/gallery?{wanted.at(result.pages).query}".rstrip("?"), 303)
    return _page(
        request,
        "gallery/grid.html",
        gallery,
        wanted=wanted,
        result=result,
        total=len(gallery),
        first=(wanted.page - 1) * PAGE + 1,
        tiles=[gallery.tile(int(row)) for row in result.page(wanted.page)],
        fields=[_offer(gallery, result.counts, wanted, field) for field in gallery.fields],
        numbers=[(n, *wanted.ranges.get(n.id, (None, None))) for n in gallery.numbers.values()],
        chips=_chips(gallery, wanted),
        sorts=gallery.sorts,
    )


def case_page(request: Request, request_id: str) -> Response:
    """Show one case, with links to its neighbours in the search."""
    gallery = _gallery(request)
    wanted = _wanted(request, gallery)
    with errors_as(404):
        case = gallery.book.open(request_id)
    result = gallery.search(wanted)
    before, after, place = gallery.around(result, request_id)
    back = wanted.at(1 if place is None else (place - 1) // PAGE + 1)
    return _page(
        request,
        "gallery/case.html",
        gallery,
        case=case,
        prompt=gallery.fields["prompt"].values[case.prompt.id],
        labels=[labels_in_words(source.attributes, gallery.factors) for source in case.sources],
        before=before,
        after=after,
        place=place,
        count=len(result.rows),
        wanted=wanted,
        back=back,
        skin_lines=skin_lines(case.measured, case.measured["reasons"]) if case.measured else [],
        caption=partial(grids.caption, gallery.book.scores.table.rubric),
    )


def change_map(request: Request, kind: Literal["change", "skin"], request_id: str) -> Response:
    """Return where an output differs from its source, or both with outlines around the skin that was read."""
    gallery, state = _gallery(request), request.app.state
    with errors_as(404):
        case = gallery.book.open(request_id)
        if case.edit.image is None or len(case.sources) != 1:
            raise EvenEditError("This picture needs one source and one output.")
        if not hasattr(state, "change_maps"):
            state.change_maps = ChangeMaps(state.study.store.images, state.study.store.folder)
        content = state.change_maps.get(case.sources[0].image, case.edit.image, kind)
    return Response(content, media_type="image/webp", headers={"Cache-Control": "private, max-age=600"})


def sheet(request: Request) -> Response:
    """Return the outputs that meet the query as one picture."""
    gallery = _gallery(request)
    result = gallery.search(_wanted(request, gallery))
    with errors_as(404):
        content = grids.picture(grids.sheet(gallery, result), _thumbnails(request), TINY)
    return _download(content, "sheet.png")


def _grid_page(name: str, view: View) -> Callable[..., Response]:
    """Return the handler of a picture grid's page."""

    def show(request: Request) -> Response:
        gallery = _gallery(request)
        with errors_as(404):
            shown_grid, choices = view(gallery, _query_values(request))
        picture = f"/gallery/{name}.png?{request.url.query}".rstrip("?")
        return _page(
            request,
            "gallery/picture_grid.html",
            gallery,
            name=name,
            grid=shown_grid,
            choices=choices,
            picture=picture,
        )

    return show


def _grid_picture(name: str, view: View) -> Callable[..., Response]:
    """Return the handler of a picture grid's PNG."""

    def download(request: Request) -> Response:
        with errors_as(404):
            shown_grid, _ = view(_gallery(request), _query_values(request))
            return _download(grids.picture(shown_grid, _thumbnails(request), SIDE), f"{name}.png")

    return download


def _page(request: Request, template: str, gallery: Gallery, **context: Any) -> HTMLResponse:
    main, *others = gallery.factors
    return page(
        request,
        template,
        built=gallery.built.strftime("%H:%M:%S"),
        across=f"/gallery/{_across_name(main)}",
        main_factor=main,
        other_factors=others,
        **context,
    )


def _across_name(main: Factor) -> str:
    """Return the last part of the address of the page that shows one prompt across the main factor."""
    return "races" if main.name == "race" else "across"


def _offer(gallery: Gallery, counts: Mapping[str, Mapping[str, int]], wanted: SearchQuery, name: str) -> dict[str, Any]:
    """Return a field's values for the form: those of the cases found, and those that are chosen."""
    field, chosen = gallery.fields[name], wanted.chosen.get(name, ())
    unknown = [(value, value, 0) for value in chosen if value not in field.values]
    available = [(v, title, counts[name][v]) for v, title in field.values.items() if counts[name][v] or v in chosen]
    short = sorted(available, key=lambda v: v[0] not in chosen)[:LONG_LIST] if len(available) > LONG_LIST else available
    return {
        "id": name,
        "title": field.title,
        "values": [*short, *unknown],
        "chosen": chosen,
        "more": len(available) - len(short),
        "open": bool(chosen) or (not wanted.chosen and name in (*OPEN, gallery.factors[0].name)),
    }


def _chips(gallery: Gallery, wanted: SearchQuery) -> list[tuple[str, str]]:
    """Return the conditions of the search, each with the query without it."""
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
    with errors_as(409):
        return live.now()


def _wanted(request: Request, gallery: Gallery) -> SearchQuery:
    with errors_as(400):
        return gallery.wanted(request.query_params.multi_items())


def _query_values(request: Request) -> dict[str, list[str]]:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _thumbnails(request: Request) -> Thumbnails:
    store = request.app.state.study.store
    return Thumbnails(store.images, store.folder)


def _download(content: bytes, name: str) -> Response:
    headers = {"Content-Disposition": f'inline; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type="image/png", headers=headers)

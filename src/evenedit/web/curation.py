"""The curation pages: reviewers choose a portrait for every cell and finalise the set."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from evenedit.curation import portraits
from evenedit.curation.authors import log_file
from evenedit.curation.grid import Grid
from evenedit.curation.log import CRITERIA, Action, ActionKind, CellState, CellStatus, undone
from evenedit.curation.screen import CHECKS, by_screen, pass_rates
from evenedit.curation.session import CurationSession
from evenedit.web.auth import Staff, staff
from evenedit.web.errors import HttpProblem, errors_as
from evenedit.web.pages import page

KEYS = dict(zip(CRITERIA, "fclinu", strict=True))
"""The key that ticks each criterion."""
STATUSES = {CellStatus.OPEN: "open", CellStatus.UNMET: "criteria unmet", CellStatus.DONE: "done"}
VERBS = {ActionKind.ASSESS: "assessed", ActionKind.SELECT: "selected", ActionKind.DESELECT: "deselected"}
LONGEST_NOTE = 2000
LOG_PAGE = 200
"""Lines of the log on one page."""

Text = Annotated[str, Body()]


def router() -> APIRouter:
    """Return the routes of the curation pages, for staff only."""
    router = APIRouter(prefix="/curate", dependencies=[Depends(staff)], include_in_schema=False)
    router.get("", response_class=HTMLResponse)(grid)
    router.get("/cell/{cell}", response_class=HTMLResponse)(cell_page)
    router.get("/image/{cell}/{pool}")(image)
    router.get("/log", response_class=HTMLResponse)(log_page)
    router.get("/log.json")(log_json)
    router.get("/screen", response_class=HTMLResponse)(screen_page)
    router.get("/finalise", response_class=HTMLResponse)(finalise_page)
    router.get("/api/since/{seen}")(since)
    router.post("/api/act")(act)
    router.post("/api/undo")(undo)
    router.post("/api/finalise")(finalise)
    return router


def _session(request: Request) -> CurationSession:
    """Return the study's curation session, opened by the first request."""
    state = request.app.state
    if not hasattr(state, "curation"):
        file, section = state.study.file, state.study.file.sections.curation
        pools, out = file.folder / section.pools, file.folder / section.out
        with errors_as(503):
            state.curation = CurationSession(file.folder, pools, out, section.faces_per_cell, Grid(file.factors))
    session: CurationSession = state.curation
    return session


Session = Annotated[CurationSession, Depends(_session)]


# -- pages ---------------------------------------------------------------------------------------------------


def grid(request: Request, state: CellStatus | None = None) -> HTMLResponse:
    """Show all cells with their state."""
    try:
        session = _session(request)
    except HttpProblem as error:
        return page(request, "curation/unready.html", error.status_code, reason=str(error))
    actions = session.log.actions()
    cells = session.state(actions)
    statuses = {cell: at.status(session.faces) for cell, at in cells.items()}
    visible = {c for c in cells if state in (None, statuses[c])}
    main = session.grid.factors[0]
    prefix = "" if session.grid.is_default else f"{main.title}: "
    groups = {
        prefix + level.title: [_tile(session, c, cells[c]) for c in session.grid.of_level(level.code) if c in visible]
        for level in main.levels
    }
    return page(
        request,
        "curation/grid.html",
        here="grid",
        last=_last(actions),
        filter=state,
        counts=Counter(statuses.values()),
        total=len(cells),
        factors=session.grid.title,
        statuses=STATUSES,
        groups=groups,
        distribution=session.distribution(cells),
        next_open=next((c for c in cells if statuses[c] is not CellStatus.DONE), None),
    )


def _tile(session: CurationSession, cell: str, at: CellState) -> dict[str, Any]:
    pools = [*at.selected, *(c.pool for c in session.pools.of(cell))]
    return {
        "cell": cell,
        "title": " ".join(session.grid.titles(cell)[1:] or session.grid.titles(cell)),
        "pool": pools[0] if pools else None,
        "chosen": at.selected,
        **_status(session, at),
    }


def _status(session: CurationSession, at: CellState) -> dict[str, str]:
    status = at.status(session.faces)
    return {"status": status.value, "words": STATUSES[status]}


def _title(session: CurationSession, cell: str) -> str:
    """Return a cell's labels as pages print them."""
    return " · ".join(session.grid.titles(cell))


def cell_page(
    request: Request,
    session: Session,
    reviewer: Staff,
    cell: str,
    state: CellStatus | None = None,
    sort: str = "",
) -> HTMLResponse:
    """Show the candidates of one cell."""
    order = session.grid.cells
    if cell not in order:
        raise HttpProblem(404, f"'{cell}' is not a cell of the grid")
    actions = session.log.actions()
    cells = session.state(actions)
    drawn = session.pools.of(cell)
    at = order.index(cell)
    others = [c for c in order if state in (None, cells[c].status(session.faces)) and c != cell]
    return page(
        request,
        "curation/cell.html",
        here="cell",
        cell=cell,
        title=_title(session, cell),
        number=at + 1,
        total=len(order),
        candidates=by_screen(drawn) if sort == "screen" else drawn,
        twins=session.pools.twins,
        checks=CHECKS,
        screened=any(c.screen is not None for c in drawn),
        sort=sort,
        filter=state,
        query="".join([f"&state={state.value}" if state else "", "&sort=screen" if sort == "screen" else ""])[1:],
        previous=next((c for c in reversed(others) if order.index(c) < at), None),
        next=next((c for c in others if order.index(c) > at), None),
        criteria=CRITERIA,
        keys=KEYS,
        faces=session.faces,
        longest_note=LONGEST_NOTE,
        view=json.dumps(_view(session, actions, cells, cell, reviewer)),
    )


def image(session: Session, cell: str, pool: str) -> FileResponse:
    """Return a candidate's picture."""
    candidate = session.pools.candidates.get((cell, pool))
    if candidate is None or not candidate.path.is_file():
        raise HttpProblem(404, f"there is no picture of {cell} in {pool}")
    return FileResponse(candidate.path, headers={"Cache-Control": "private, max-age=600"})


def log_page(request: Request, session: Session, by: str = "", cell: str = "", before: int = 0) -> HTMLResponse:
    """Show all actions, newest first."""
    actions = session.log.actions()
    chosen = [a for a in reversed(actions) if by in ("", a.reviewer) and cell in ("", a.cell)]
    older = [a for a in chosen if not before or a.id < before]
    return page(
        request,
        "curation/log.html",
        here="log",
        total=len(actions),
        lines=older[:LOG_PAGE],
        undone_by={a.undoes: a.id for a in actions if a.undoes is not None},
        title=partial(_title, session),
        criteria=CRITERIA,
        more=older[LOG_PAGE - 1].id if len(older) > LOG_PAGE else None,
        reviewers=sorted({a.reviewer for a in actions}),
        cells=session.grid.cells,
        by=by,
        cell=cell,
    )


def log_json(session: Session) -> JSONResponse:
    """Return the complete log as a file."""
    actions = session.log.actions()
    headers = {"Content-Disposition": 'attachment; filename="selection_log.json"', "Cache-Control": "no-store"}
    return JSONResponse(log_file(actions, session.state(actions), session.grid), headers=headers)


def screen_page(request: Request, session: Session) -> HTMLResponse:
    """Show the pass rates of the pre-screen by group."""
    rates = pass_rates(session.pools.candidates.values(), session.grid)
    return page(
        request,
        "curation/screen.html",
        here="screen",
        rates=rates,
        checks=(*CHECKS, "all"),
        factors={f.name: f for f in session.grid.factors},
    )


def finalise_page(request: Request, session: Session) -> HTMLResponse:
    """Show the chosen set and the problems that are left."""
    actions = session.log.actions()
    cells = session.state(actions)
    reverted = undone(actions)
    return page(
        request,
        "curation/finalise.html",
        here="finalise",
        problems=[(cell, _title(session, cell), reason) for cell, reason in session.problems(cells)],
        distribution=session.distribution(cells),
        chosen=len(session.chosen(cells)),
        wanted=len(cells) * session.faces,
        reviewers=Counter(a.reviewer for cell in cells.values() for a in cell.chosen_by.values()),
        actions=len(actions),
        undone=len(reverted),
        clashes=sum(not a.in_force for a in actions),
        out=session.out,
        finalised=_finalised(session, cells),
        side=portraits.SIDE,
    )


def _finalised(session: CurationSession, cells: dict[str, CellState]) -> dict[str, Any] | None:
    """Return the set that was written before, and whether it equals the current choice."""
    try:
        manifest = json.loads((session.out / portraits.MANIFEST).read_text("utf-8"))
        rows = [(row["cell"], row["pool"]) for row in manifest["portraits"]]
        time = manifest["provenance"]["time"]
    except (OSError, ValueError, KeyError, TypeError):
        return {"time": None} if session.out.exists() else None
    now = [(c.cell, c.pool) for c in session.chosen(cells)]
    return {"time": time, "count": len(rows), "same": rows == now}


# -- calls of the pages --------------------------------------------------------------------------------------


def since(session: Session, reviewer: Staff, seen: int, cell: str = "") -> dict[str, Any]:
    """Return the actions of other reviewers after a number in the log."""
    actions = session.log.actions()
    news = [a for a in actions if a.id > seen and a.reviewer != reviewer]
    news_lines = [{"cell": a.cell, "text": f"{a.reviewer} {_describe(session, a)}"} for a in news if a.in_force]
    cells = session.state(actions)
    tiles = {c: _tile(session, c, cells[c]) for c in {a.cell for a in actions if a.id > seen and a.cell in cells}}
    view = _view(session, actions, cells, cell, reviewer) if cell in cells else {"last": _last(actions)}
    counts = Counter(at.status(session.faces).value for at in cells.values())
    return {**view, "news": news_lines, "tiles": tiles, "counts": counts}


def act(
    session: Session,
    reviewer: Staff,
    action: Annotated[ActionKind, Body()],
    cell: Text,
    pool: Text,
    token: Annotated[str, Body(min_length=8, max_length=64)],
    seen: Annotated[int, Body()],
    criteria: Annotated[list[str], Body()],
    note: Annotated[str, Body(max_length=LONGEST_NOTE)] = "",
) -> JSONResponse:
    """Assess, select or deselect a candidate; the response is sent when it is on disk."""
    with errors_as(422):
        stored = session.act(reviewer, action, cell, pool, criteria=criteria, note=note, seen=seen, token=token)
    return _answer(session, stored, cell, reviewer)


def undo(
    session: Session,
    reviewer: Staff,
    action: Annotated[int, Body()],
    cell: Text,
    token: Annotated[str, Body(min_length=8, max_length=64)],
) -> JSONResponse:
    """Undo one of the reviewer's own actions."""
    with errors_as(422):
        stored = session.undo(reviewer, action, token=token)
    return _answer(session, stored, cell, reviewer)


def _answer(session: CurationSession, action: Action, cell: str, reviewer: str) -> JSONResponse:
    actions = session.log.actions()
    view = _view(session, actions, session.state(actions), cell, reviewer)
    message = _describe(session, action)
    if action.in_force:
        return JSONResponse({**view, "message": message})
    first = next(a for a in actions if a.id == action.against)
    message = (
        f"{first.reviewer} {_describe(session, first)} before you. Your action ({message}) "
        "is in the log but has no effect; the page now shows the current state. Repeat your action to replace it."
    )
    return JSONResponse({**view, "message": message}, 409)


def finalise(session: Session, reviewer: Staff, sure: Annotated[bool, Body(embed=True)]) -> JSONResponse:
    """Write the set if every check passes. It takes a JSON body, which no form of another site can send."""
    if not sure:
        raise HttpProblem(422, "nothing was written")
    with errors_as(409):
        manifest = session.finalise(reviewer)
    return JSONResponse({"manifest": str(manifest)})


def _view(
    session: CurationSession, actions: list[Action], cells: dict[str, CellState], cell: str, reviewer: str
) -> dict[str, Any]:
    """Return the data of a cell's page."""
    at = cells.get(cell, CellState())
    next_undo = session.last_of(reviewer, actions)
    return {
        "last": _last(actions),
        **_status(session, at),
        "selected": at.selected,
        "assessments": {
            pool: {"criteria": sorted(a.criteria), "note": a.note, "reviewer": a.reviewer}
            for pool, a in at.assessments.items()
        },
        "undo": next_undo and {"action": next_undo.id, "cell": next_undo.cell, "text": _describe(session, next_undo)},
    }


def _last(actions: list[Action]) -> int:
    return actions[-1].id if actions else 0


def _describe(session: CurationSession, action: Action) -> str:
    """Return an action in words, without its reviewer."""
    where = f"{action.pool or 'the choice'} for {_title(session, action.cell)}" if action.cell else "the set"
    if action.kind is ActionKind.UNDO:
        return f"undid action {action.undoes} on {where}"
    return "finalised the set" if action.kind is ActionKind.FINALISE else f"{VERBS[action.kind]} {where}"

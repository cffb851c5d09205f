"""The curation room: reviewers choose a portrait per cell, side by side, and finalise the set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from evenedit.core.errors import EvenEditError
from evenedit.curation import portraits
from evenedit.curation.authors import log_file
from evenedit.curation.log import CRITERIA, Action, CellState, CellStatus, Deed, undone
from evenedit.curation.pools import CELLS
from evenedit.curation.screen import CHECKS, by_screen, pass_rates
from evenedit.curation.session import CurationOutcome, CurationSession
from evenedit.protocol import FACTORS, factor
from evenedit.web.auth import staff
from evenedit.web.pages import page

KEYS = dict(zip(CRITERIA, "fclinu", strict=True))
"""The key that ticks each criterion."""
STANDINGS = {CellStatus.OPEN: "open", CellStatus.UNMET: "criteria unmet", CellStatus.DONE: "done"}
DEEDS = {Deed.ASSESS: "assessed", Deed.SELECT: "selected", Deed.DESELECT: "deselected"}
LONGEST_NOTE = 2000
LOG_PAGE = 200
"""Lines of the log on one page."""

Reviewer = Annotated[str, Depends(staff)]
Text = Annotated[str, Body()]


def room() -> APIRouter:
    """The room's pages and calls, for staff only."""
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


def _desk(request: Request) -> CurationSession:
    """The study's desk, opened at the first visit."""
    state = request.app.state
    if not hasattr(state, "curation"):
        file = state.study.file
        section = file.sections.curation
        try:
            state.curation = CurationSession(
                file.folder, file.folder / section.pools, file.folder / section.out, section.faces_per_cell
            )
        except EvenEditError as error:
            raise HTTPException(503, str(error)) from None
    desk: CurationSession = state.curation
    return desk


OpenDesk = Annotated[CurationSession, Depends(_desk)]


# -- pages ---------------------------------------------------------------------------------------------------


def grid(request: Request, reviewer: Reviewer, state: CellStatus | None = None) -> HTMLResponse:
    """All cells with their state."""
    try:
        desk = _desk(request)
    except HTTPException as error:
        return page(request, "curation/unready.html", error.status_code, staff=reviewer, reason=error.detail)
    actions = desk.log.actions()
    cells = desk.state(actions)
    standings = {cell: at.standing(desk.faces) for cell, at in cells.items()}
    shown = [c for c in CELLS if state in (None, standings[c])]
    races = {
        r.title: [_tile(desk, c, cells[c]) for c in shown if c.startswith(f"{r.code}_")] for r in factor("race").levels
    }
    return page(
        request,
        "curation/grid.html",
        staff=reviewer,
        here="grid",
        last=_last(actions),
        filter=state,
        counts=Counter(standings.values()),
        total=len(CELLS),
        standings=STANDINGS,
        races=races,
        distribution=desk.distribution(cells),
        next_open=next((c for c in CELLS if standings[c] is not CellStatus.DONE), None),
    )


def _tile(desk: CurationSession, cell: str, at: CellState) -> dict[str, Any]:
    candidates = desk.pools.of(cell)
    pool = at.selected[0] if at.selected else candidates[0].pool if candidates else None
    standing = at.standing(desk.faces)
    return {
        "cell": cell,
        "title": _title(cell, 1).replace(" · ", " "),
        "pool": pool,
        "chosen": at.selected,
        "standing": standing.value,
        "words": STANDINGS[standing],
    }


def _title(cell: str, skip: int = 0) -> str:
    """A cell's labels as pages print them."""
    codes = zip(("race", "gender", "age"), cell.split("_"), strict=True)
    return " · ".join([factor(name).level(code).title for name, code in codes][skip:])


def cell_page(
    request: Request,
    desk: OpenDesk,
    reviewer: Reviewer,
    cell: str,
    state: CellStatus | None = None,
    sort: str = "",
) -> HTMLResponse:
    """One cell's candidates side by side."""
    if cell not in CELLS:
        raise HTTPException(404, f"'{cell}' is not a cell of the grid")
    actions = desk.log.actions()
    cells = desk.state(actions)
    drawn = desk.pools.of(cell)
    at = CELLS.index(cell)
    others = [c for c in CELLS if state in (None, cells[c].standing(desk.faces)) and c != cell]
    return page(
        request,
        "curation/cell.html",
        staff=reviewer,
        here="cell",
        cell=cell,
        title=_title(cell),
        number=at + 1,
        total=len(CELLS),
        candidates=[
            {"pool": c.pool, "origin": c.origin, "screen": _screen(c.screen), "twins": desk.pools.twins(c)}
            for c in (by_screen(drawn) if sort == "screen" else drawn)
        ],
        screened=any(c.screen is not None for c in drawn),
        sort=sort,
        filter=state,
        query="".join([f"&state={state.value}" if state else "", "&sort=screen" if sort == "screen" else ""])[1:],
        previous=next((c for c in reversed(others) if CELLS.index(c) < at), None),
        next=next((c for c in others if CELLS.index(c) > at), None),
        criteria=CRITERIA,
        keys=KEYS,
        faces=desk.faces,
        longest_note=LONGEST_NOTE,
        view=json.dumps(_view(desk, actions, cells, cell, reviewer)),
    )


def _screen(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    failed = [c for c in CHECKS if c not in found["passed"]]
    return {"passed": len(found["passed"]), "of": len(CHECKS), "failed": failed, "reason": found.get("reason")}


def image(desk: OpenDesk, cell: str, pool: str) -> FileResponse:
    """A candidate's picture."""
    candidate = desk.pools.candidates.get((cell, pool))
    if candidate is None or not candidate.path.is_file():
        raise HTTPException(404, f"there is no picture of {cell} in {pool}")
    return FileResponse(
        candidate.path, headers={"Cache-Control": "private, max-age=600", "X-Content-Type-Options": "nosniff"}
    )


def log_page(
    request: Request, desk: OpenDesk, reviewer: Reviewer, by: str = "", cell: str = "", before: int = 0
) -> HTMLResponse:
    """Every action, newest first."""
    actions = desk.log.actions()
    chosen = [
        a
        for a in reversed(actions)
        if by in ("", a.reviewer) and cell in ("", a.cell) and (not before or a.id < before)
    ]
    taken_back = {a.undoes: a.id for a in actions if a.undoes is not None}
    return page(
        request,
        "curation/log.html",
        staff=reviewer,
        here="log",
        total=len(actions),
        lines=[
            {
                "action": a,
                "met": len(a.criteria),
                "unmet": [CRITERIA[c] for c in CRITERIA if c not in a.criteria],
                "assessed": a.deed in (Deed.ASSESS, Deed.SELECT),
                "title": _title(a.cell) if a.cell else "",
                "undone_by": taken_back.get(a.id),
            }
            for a in chosen[:LOG_PAGE]
        ],
        more=chosen[LOG_PAGE - 1].id if len(chosen) > LOG_PAGE else None,
        reviewers=sorted({a.reviewer for a in actions}),
        cells=CELLS,
        by=by,
        cell=cell,
    )


def log_json(desk: OpenDesk) -> JSONResponse:
    """The whole log as a file."""
    actions = desk.log.actions()
    headers = {"Content-Disposition": 'attachment; filename="selection_log.json"', "Cache-Control": "no-store"}
    return JSONResponse(log_file(actions, desk.state(actions)), headers=headers)


def screen_page(request: Request, desk: OpenDesk, reviewer: Reviewer) -> HTMLResponse:
    """How the pre-screen treats the groups."""
    rates = pass_rates(desk.pools.candidates.values())
    titles = {f.name: {level.code: level.title for level in f.levels} for f in FACTORS}
    return page(
        request,
        "curation/screen.html",
        staff=reviewer,
        here="screen",
        rates=rates,
        checks=(*CHECKS, "all"),
        titles=titles,
    )


def finalise_page(request: Request, desk: OpenDesk, reviewer: Reviewer) -> HTMLResponse:
    """What the set would be, and what it still lacks."""
    actions = desk.log.actions()
    cells = desk.state(actions)
    gone = undone(actions)
    return page(
        request,
        "curation/finalise.html",
        staff=reviewer,
        here="finalise",
        problems=[(cell, _title(cell), reason) for cell, reason in desk.problems(cells)],
        distribution=desk.distribution(cells),
        chosen=len(desk.chosen(cells)),
        wanted=len(CELLS) * desk.faces,
        reviewers=Counter(a.reviewer for cell in cells.values() for a in cell.chosen_by.values()),
        actions=len(actions),
        undone=len(gone),
        clashes=sum(not a.in_force for a in actions),
        out=desk.out,
        finalised=_finalised(desk, cells),
        side=portraits.SIDE,
    )


def _finalised(desk: CurationSession, cells: dict[str, CellState]) -> dict[str, Any] | None:
    """The set that is on disk already, and whether it is what is chosen now."""
    try:
        manifest = json.loads((desk.out / portraits.MANIFEST).read_text("utf-8"))
        rows = [(row["cell"], row["pool"]) for row in manifest["portraits"]]
        time = manifest["provenance"]["time"]
    except (OSError, ValueError, KeyError, TypeError):
        return {"time": None} if desk.out.exists() else None
    now = [(c.cell, c.pool) for c in desk.chosen(cells)]
    return {"time": time, "count": len(rows), "same": rows == now}


# -- calls of the pages --------------------------------------------------------------------------------------


def since(desk: OpenDesk, reviewer: Reviewer, seen: int, cell: str = "") -> dict[str, Any]:
    """What others did after a place in the log."""
    actions = desk.log.actions()
    news = [a for a in actions if a.id > seen and a.reviewer != reviewer]
    told = [{"cell": a.cell, "text": f"{a.reviewer} {_told(a)}"} for a in news if a.in_force]
    cells = desk.state(actions)
    tiles = {c: _tile(desk, c, cells[c]) for c in {a.cell for a in actions if a.id > seen and a.cell in cells}}
    view = _view(desk, actions, cells, cell, reviewer) if cell in CELLS else {"last": _last(actions)}
    counts = Counter(at.standing(desk.faces).value for at in cells.values())
    return {**view, "news": told, "tiles": tiles, "counts": counts}


def act(
    desk: OpenDesk,
    reviewer: Reviewer,
    action: Annotated[Deed, Body()],
    cell: Text,
    pool: Text,
    token: Annotated[str, Body(min_length=8, max_length=64)],
    seen: Annotated[int, Body()],
    criteria: Annotated[list[str], Body()],
    note: Annotated[str, Body(max_length=LONGEST_NOTE)] = "",
) -> JSONResponse:
    """Assess, select or deselect; answered when it is on disk."""
    try:
        outcome = desk.act(reviewer, action, cell, pool, criteria=criteria, note=note, seen=seen, token=token)
    except EvenEditError as error:
        return JSONResponse({"message": str(error)}, 422)
    return _answer(desk, outcome, cell, reviewer)


def undo(
    desk: OpenDesk,
    reviewer: Reviewer,
    action: Annotated[int, Body()],
    cell: Text,
    token: Annotated[str, Body(min_length=8, max_length=64)],
) -> JSONResponse:
    """Take back an action of one's own."""
    try:
        outcome = desk.undo(reviewer, action, token=token)
    except EvenEditError as error:
        return JSONResponse({"message": str(error)}, 422)
    return _answer(desk, outcome, cell, reviewer)


def _answer(desk: CurationSession, outcome: CurationOutcome, cell: str, reviewer: str) -> JSONResponse:
    actions = desk.log.actions()
    view = _view(desk, actions, desk.state(actions), cell, reviewer)
    if outcome.clash:
        message = (
            f"{outcome.clash.reviewer} {_told(outcome.clash)} before you. What you did ({_told(outcome.action)}) "
            "is in the log but not in force; the page now shows what holds. Do it again to replace that."
        )
        return JSONResponse({**view, "message": message}, 409)
    return JSONResponse({**view, "message": _told(outcome.action)})


def finalise(desk: OpenDesk, reviewer: Reviewer, sure: Annotated[bool, Body(embed=True)]) -> JSONResponse:
    """Write the set, if every check passes; a JSON body, which no other site's form can send, says to do it."""
    if not sure:
        return JSONResponse({"message": "nothing was written"}, 422)
    try:
        manifest = desk.finalise(reviewer)
    except EvenEditError as error:
        return JSONResponse({"message": str(error)}, 409)
    return JSONResponse({"manifest": str(manifest)})


def _view(
    desk: CurationSession, actions: list[Action], cells: dict[str, CellState], cell: str, reviewer: str
) -> dict[str, Any]:
    """What a cell's page shows."""
    at = cells.get(cell, CellState())
    next_undo = desk.last_of(reviewer, actions)
    return {
        "last": _last(actions),
        "standing": at.standing(desk.faces).value,
        "words": STANDINGS[at.standing(desk.faces)],
        "selected": at.selected,
        "assessments": {
            pool: {"criteria": sorted(a.criteria), "note": a.note, "reviewer": a.reviewer}
            for pool, a in at.assessments.items()
        },
        "undo": next_undo and {"action": next_undo.id, "cell": next_undo.cell, "text": _told(next_undo)},
    }


def _last(actions: list[Action]) -> int:
    return actions[-1].id if actions else 0


def _told(action: Action) -> str:
    """An action in words, without who did it."""
    where = f"{action.pool or 'the choice'} for {_title(action.cell)}" if action.cell else "the set"
    if action.deed is Deed.UNDO:
        return f"took back action {action.undoes} on {where}"
    return "finalised the set" if action.deed is Deed.FINALISE else f"{DEEDS[action.deed]} {where}"

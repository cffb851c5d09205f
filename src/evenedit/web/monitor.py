"""The page on which staff follow a running survey: progress, agreement, time and pay, quality, who rated.

GET /admin/monitor        the page
GET /admin/monitor/state  its changing part, asked for again every few seconds
"""

from __future__ import annotations

from statistics import median
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from evenedit.survey import answers as people
from evenedit.survey import monitoring
from evenedit.survey.admin import SurveyAdmin
from evenedit.survey.profiles import rater_profiles
from evenedit.survey.sessions import SurveyService
from evenedit.web.auth import Staff
from evenedit.web.errors import HttpProblem
from evenedit.web.pages import page

PATH = "/admin/monitor"
TITLE = "Live"


def router() -> APIRouter:
    """Return the routes of the page."""
    routes = APIRouter(prefix=PATH, tags=["staff"], default_response_class=HTMLResponse)
    routes.get("")(monitor_page)
    routes.get("/state")(state)
    return routes


def monitor_page(request: Request, name: Staff) -> Response:
    """Show the progress of the survey."""
    return page(request, "admin/monitor.html", **_now(request))


def state(request: Request, name: Staff) -> Response:
    """Return the part of the page that changes."""
    return page(request, "admin/monitor_state.html", **_now(request))


def _now(request: Request) -> dict[str, Any]:
    service: SurveyService | None = getattr(request.app.state, "survey", None)
    if service is None:
        raise HttpProblem(404, "This study has no survey.")
    admin, section = SurveyAdmin(service), service.section
    frame = people.read(service.database, rubric=service.file.rubric)
    quality = people.qualities(frame, section)
    participants, tasks = admin.people(), admin.progress()
    times = monitoring.work_times(participants, frame, section)
    active = [t.active for t in times if t.active is not None]
    done = monitoring.completions(participants)
    return {
        "tasks": tasks,
        "slots": sum(task.slots for task in tasks),
        "done": sum(task.done for task in tasks),
        "taken": sum(task.taken for task in tasks),
        "completions": done,
        "times": times,
        "bins": monitoring.histogram(active),
        "median": median(active) if active else None,
        "planned": section.pay.minutes_per_task if section.pay.says("minutes_per_task") else None,
        "pay": section.pay,
        "underpaid": sum(t.underpaid for t in times),
        "agreement": monitoring.agreement_so_far(frame, service.file.rubric),
        "disputed": monitoring.disputed_items(frame, service.file.rubric),
        "flagged": [q for q in quality if q.excluded],
        "assessed": len(quality),
        "who": rater_profiles(section, service.database, people.counted_answers(frame, quality)),
    }

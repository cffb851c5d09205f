"""The web app of a study, with the pages its study file calls for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from evenedit.cases.search import LiveGallery
from evenedit.config.study_file import StudyFile
from evenedit.core.records import is_simulated
from evenedit.operations.run_view import RunView
from evenedit.report.render.html import ASSETS, PALETTE
from evenedit.reporting.cache import LiveReport
from evenedit.study.context import StudyContext
from evenedit.survey import retention
from evenedit.survey.languages import BUILT_IN, Languages
from evenedit.survey.sessions import SurveyService
from evenedit.web import (
    accounts,
    admin,
    curation,
    gallery,
    monitor,
    pictures,
    probes,
    questionnaire,
    report,
    review,
    reviewers,
    run,
    survey,
)
from evenedit.web.access_log import AccessLogMiddleware, open_log
from evenedit.web.audit_log import AuditLog
from evenedit.web.auth import StaffAuthentication
from evenedit.web.consent import sheet
from evenedit.web.errors import handle_errors
from evenedit.web.pages import FOLDER
from evenedit.web.security_headers import SecurityMiddleware
from evenedit.web.settings import ServerSettings
from evenedit.web.throttle import Limit


def _simulated(file: StudyFile) -> bool:
    """Return whether any editor, judge or participant of the study is simulated; all pages are then marked."""
    people = file.sections.survey is not None and file.sections.survey.simulated_people > 0
    names = [*(editor.id for editor in file.sections.editors), *(judge.id for judge in file.sections.judges)]
    return people or any(map(is_simulated, names))


def _file(path: Path) -> Callable[[], FileResponse]:
    """Return the handler of an address that is one file."""
    return lambda: FileResponse(path)


@asynccontextmanager
async def _until_stopped(app: FastAPI) -> AsyncIterator[None]:
    service = getattr(app.state, "survey", None)
    watch = asyncio.create_task(_keep_the_date(service)) if service else None
    yield
    if service and watch:
        watch.cancel()
        service.close()


async def _keep_the_date(service: SurveyService) -> None:
    """Delete what identifies participants when the day comes that they were told."""
    while True:
        await asyncio.sleep(retention.EVERY)
        await run_in_threadpool(
            retention.enforce, service.database, service.section, service.clock(), service.file.rubric
        )


def create_app(study: StudyContext, setup: ServerSettings | None = None) -> FastAPI:
    """Return the web app of one study."""
    setup = setup or ServerSettings()
    app = FastAPI(
        title="EvenEdit",
        docs_url=None,
        redoc_url=None,
        openapi_url=None if setup.production else "/openapi.json",
        lifespan=_until_stopped,
    )
    app.state.study = study
    app.state.setup = setup
    app.state.simulated = _simulated(study.file)
    app.state.navigation = {"/admin": "Overview"}
    """The navigation of the pages for staff: titles by path."""
    section = study.file.sections.survey
    app.state.languages = Languages(study.file.folder, section.languages if section else BUILT_IN, study.file.rubric)
    app.state.log = AuditLog(study.store.folder)
    app.state.authentication = StaffAuthentication(study.store, setup, app.state.log)
    if section is not None and study.store.edits():  # before that there is nothing to show
        for code in section.languages:
            sheet(
                section, study.file.folder, app.state.languages.texts(code), code
            )  # a page that cannot be read ends here
        app.state.survey = SurveyService.open(study.file, study.store)
        app.state.codes = Limit(tries=20, counted="wrong codes")
        app.state.previews = Limit(tries=20, counted="previews begun")
        app.state.removals = Limit(tries=5, counted="requests")
        app.state.navigation |= {
            monitor.PATH: monitor.TITLE,
            "/admin/people": "Participants",
            "/admin/rejections": "Decisions",
            "/admin/consent": "Consent",
        }
        for routes in (*survey.routers(), questionnaire.router()):
            app.include_router(routes)
    for asset in (PALETTE, *ASSETS):
        app.add_api_route(f"/static/{asset.name}", _file(asset), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    app.include_router(admin.router())
    app.include_router(accounts.router())
    app.include_router(monitor.router())
    app.include_router(pictures.router())
    if study.file.sections.editors:
        app.state.gallery = LiveGallery(study)
        app.state.navigation |= {"/gallery": "Gallery"}
        app.include_router(gallery.router())
        app.state.report = LiveReport(study)
        app.state.navigation |= {"/report": "Report"}
        app.include_router(report.router())
        app.state.run = RunView(study)
        app.state.navigation |= {"/run": "Run"}
        app.include_router(run.router())
    if study.file.sections.curation:
        app.state.navigation |= {"/curate": "Portraits"}
        app.include_router(curation.router())
    if study.file.sections.judges and study.store.edits():
        app.state.navigation |= {"/review": "Review", reviewers.PATH: reviewers.TITLE}
        app.include_router(review.router())
        app.include_router(reviewers.router())
    handle_errors(app)
    app.state.navigation |= {accounts.PATH: "Accounts"}
    app.add_middleware(SecurityMiddleware, production=setup.production, hosts=setup.hosts)
    if setup.access_log:
        app.add_middleware(AccessLogMiddleware, stream=open_log(setup.access_log))
    app.include_router(probes.router())

    @app.get("/", include_in_schema=False)
    def start() -> RedirectResponse:
        return RedirectResponse("/survey" if hasattr(app.state, "survey") else "/admin", 303)

    return app

"""The app: it opens the rooms a study has, and nothing else."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from evenedit.pipeline import Pipeline
from evenedit.web import curation
from evenedit.web.pages import HERE


def create_app(pipeline: Pipeline) -> FastAPI:
    """The web app of one study."""
    app = FastAPI(title="EvenEdit", docs_url=None, redoc_url=None)
    app.state.pipeline = pipeline
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    if pipeline.study.file.curation:
        app.include_router(curation.room())
    return app

"""Drawn candidates and a running curation room, for the tests of portraits."""

import csv
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from PIL import ImageEnhance, ImageOps

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.curation.log import CRITERIA
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.storage.store import Store
from evenedit.web import auth as guard
from evenedit.web.app import create_app
from evenedit.web.roles import Role
from tests.support.studies import toml

NAMES = {"EastAsian": "East Asian", "SoutheastAsian": "Southeast Asian", "MiddleEastern": "Middle Eastern"}
NAMES |= {"Latino": "Latino_Hispanic", "20s": "20-29", "30s": "30-39", "40s": "40-49", "50s": "50-59", "60s": "60-69"}
NAMES |= {"70plus": "more than 70"}
ALL_SIX = list(CRITERIA)


def draw_folder(folder: Path, faces: int, size: int = 64, table: str = "labels.csv") -> Path:
    """A drawn person per cell, and `faces` different pictures of them, as a folder with a CSV in FairFace's words."""
    (folder / "train").mkdir(parents=True)
    rows = []
    for _, labels, _, image in Drawn(seed=5, size=size).portraits():
        words = {k: NAMES.get(v, v) for k, v in labels.items()}
        for number in range(faces):
            variant = ImageEnhance.Brightness(ImageOps.mirror(image) if number % 2 else image).enhance(1 - number / 50)
            variant.info.clear()
            name = f"train/{len(rows) + 1}.jpg"
            variant.save(folder / name, quality=90)
            rows.append({"file": name, **words, "service_test": str(number % 2 == 0)})
    write_table(folder / table, rows)
    return folder


def write_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["file", "age", "gender", "race", "service_test"])
        writer.writeheader()
        writer.writerows(rows)


def curated(folder: Path, pools: Path, **settings: Any) -> Path:
    """A study that has portraits to choose and no editor yet."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "study": {"title": "Curated"},
        "curation": {"pools": str(pools), **settings},
        "sources": {"kind": "folder", "settings": {"path": "portraits"}},
    }
    (folder / "study.toml").write_text(toml(table))
    return folder


def app_of(folder: Path) -> FastAPI:
    """The study's web app; a header says who is there, in place of a sign-in."""
    study = StudyFile.load(folder)
    app = create_app(Study(study, Store(folder)))

    def named(request: Request) -> str:
        request.state.role = Role.CURATOR
        return request.headers.get("x-reviewer", "Ada")

    app.dependency_overrides[guard.staff] = named
    return app


def serve(folder: Path) -> None:
    """Serve the study's web app and print its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app_of(folder), log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

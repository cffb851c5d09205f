"""Write the study that `tests/study/test_release_fixture.py` opens: a study as this release leaves it on disk.

    python -m tests.support.release_fixture

Run it once for each release that changes a stored format, and keep the archives of earlier releases.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from evenedit import __version__
from evenedit.api.study import Study
from evenedit.core.jsonable import plain
from tests.support.paths import ROOT
from tests.support.provider.server import FakeProvider
from tests.support.studies import judged_by, write_study
from tests.support.surveys import finish, open_service

FOLDER = ROOT / "tests" / "fixtures"
INSTRUMENTS = [{"id": "skin", "kind": "skin"}, {"id": "change", "kind": "change", "settings": {"identity": False}}]
PORTRAITS = {"seed": 3, "size": 192, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}}
SURVEY = {"surveys": [1], "cases": 8, "items_per_task": 4, "gold": "truth"}


def make_study(folder: Path) -> list[list[object]]:
    """Run the study with judges of a local server and one simulated participant; return its rates."""
    os.environ |= {"OPENAI_API_KEY": "fixture", "GEMINI_API_KEY": "fixture"}
    with FakeProvider() as wire:
        judges = [
            judge | {"settings": {k: v for k, v in judge["settings"].items() if k != "batch"}}
            for judge in judged_by(wire, "chat", "gemini")["judges"]
        ]
        write_study(
            folder,
            sources={"kind": "drawn", "settings": PORTRAITS},
            judges=judges,
            instruments=INSTRUMENTS,
            survey=SURVEY,
        )
        study = Study.load(folder)
        study.run()
        service = open_service(study)
        finish(service, "participant-1")
        service.close()
        expected = rates_of(study)
        study.store.close()
    return expected


def rates_of(study: Study) -> list[list[object]]:
    """Return the rates of a study, each with where it belongs and the number of edits behind it."""
    keys = ("measure", "experiment", "condition", "editor", "group", "value", "n")
    rows = [row for row in study.results().estimates if row.measure.startswith("rate.")]
    return [[plain(getattr(row, key)) for key in keys] for row in rows]


def without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return an entry without the names of the machine's user; None for lock files."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith(".lock") else entry


def main() -> None:
    """Write the archive of this release."""
    with tempfile.TemporaryDirectory() as place:
        expected = json.dumps(make_study(Path(place) / "study"), indent=1).encode()
        with tarfile.open(FOLDER / f"study-{__version__}.tar.xz", "w:xz") as archive:
            archive.add(Path(place) / "study", "study", filter=without_owner)
            entry = tarfile.TarInfo("expected.json")
            entry.size = len(expected)
            archive.addfile(entry, io.BytesIO(expected))


if __name__ == "__main__":
    main()

"""The wheel, installed into an empty environment with its base dependencies alone, does what the README says."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenedit.ratings.ratings_file import read_frame
from evenedit.storage.store import Store
from tests.support.paths import ROOT, TESTS
from tests.support.studies import write_study

CHECKOUT = ROOT
LARGEST = 510
"""Megabytes of the installation without bytecode, of which pip writes 130 more."""
ABSENT = (
    "cryptography",
    "duckdb",
    "google.genai",
    "openai",
    "psycopg",
    "pyarrow",
    "pytest",
    "ray",
    "statsmodels",
    "torch",
)

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@dataclass(frozen=True)
class Installation:
    """An environment that holds the wheel and what it requires."""

    wheel: Path
    folder: Path

    def run(self, program: str, *arguments: object, code: int = 0) -> str:
        """What a program of the environment prints, or why it refuses, run outside the checkout."""
        command = [str(self.folder / "venv/bin" / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return (done.stdout if code == 0 else done.stderr).strip()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel of this checkout, built and installed once."""
    folder = tmp_path_factory.mktemp("wheel")
    assert CHECKOUT not in folder.parents

    def python(*arguments: object) -> None:
        command = [sys.executable, "-m", *map(str, arguments)]
        subprocess.run(command, cwd=CHECKOUT, env=ENVIRONMENT, check=True, timeout=600)

    python("hatchling", "build", "--target", "wheel", "--directory", folder)
    (wheel,) = folder.glob("*.whl")
    python("venv", "--without-pip", folder / "venv")
    install = ("install", "--quiet", "--no-compile", "--constraint", CHECKOUT / "constraints.txt", wheel)
    python("pip", "--disable-pip-version-check", "--python", folder / "venv/bin/python", *install)
    return Installation(wheel, folder)


@pytest.fixture(scope="session")
def study(installed: Installation) -> Path:
    """A small study that the installed command made."""
    folder = installed.folder / "study"
    installed.run("evenedit", "new", folder)
    portraits = {"seed": 3, "size": 256, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}}
    write_study(folder, sources={"kind": "drawn", "settings": portraits})
    installed.run("evenedit", "run", folder)
    installed.run("evenedit", "report", folder)
    return folder


@pytest.fixture(scope="session")
def pairs(installed: Installation, study: Path) -> Path:
    """The study's pictures as a table of pairs."""
    store = Store(study)
    sources, edits = store.sources(), store.edits()
    table = installed.folder / "pairs.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("source", "edited", "prompt", "race", "gender", "age"))
        for ident, request in store.requests().items():
            (source,) = (sources[name] for name in request.source_ids)
            if image := edits[ident].image:
                row = (store.images.path(source.image), store.images.path(image), request.instruction)
                writer.writerow((*row, *(source.attributes[f] for f in ("race", "gender", "age"))))
    return table


def test_the_wheel_holds_every_file_of_the_package(installed):
    package = CHECKOUT / "src" / "evenedit"
    wanted = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    assert {name for name in wanted if "__pycache__" not in name} <= set(zipfile.ZipFile(installed.wheel).namelist())


def test_the_installation_holds_neither_extras_nor_test_tools(installed):
    code = f"import importlib.util as u; print([n for n in {ABSENT} if u.find_spec(n.split('.')[0])])"
    assert installed.run("python", "-c", code) == "[]"


def test_the_installation_is_small(installed):
    sizes = {}
    (packages,) = (installed.folder / "venv/lib").glob("python3*/site-packages")
    for path in packages.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            top = path.relative_to(packages).parts[0]
            sizes[top] = sizes.get(top, 0) + path.stat().st_size
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:12]:
        print(f"{size / 1e6:7.1f} MB  {name}")
    print(f"{sum(sizes.values()) / 1e6:7.1f} MB  in all")
    assert sum(sizes.values()) < LARGEST * 1e6


def test_the_command_tells_its_version(installed):
    assert re.search(r"\d+\.\d+", installed.run("evenedit", "--version"))


def test_a_study_runs_to_its_report(installed, study):
    results = json.loads((study / "report/results.json").read_text())
    assert results["counts"]["edited"] == 16
    assert results["provenance"]["git"] is None, "no checkout is looked for"
    ratings = read_frame(study / "report/ratings.csv.gz")
    assert set(ratings["rater"]) >= {"simulated-judge-a", "simulated-judge-b"}


def test_pictures_are_measured_and_audited(installed, pairs):
    first = next(csv.DictReader(pairs.read_text().splitlines()))
    measured = json.loads(installed.run("evenedit", "measure", first["source"], first["edited"], "--json"))
    assert measured["skin_delta_L"] is not None, "the face detector's file is there"
    page = Path(installed.run("evenedit", "audit", "--pairs", pairs, "--out", installed.folder / "audit"))
    assert "No judge and no person has rated these edits" in page.read_text()


def test_results_are_held_against_limits(installed, study):
    assert installed.run("evenedit", "gate", study, "--rule", "rate.soft_erasure <= 1").endswith("pass")


def test_every_module_can_be_imported(installed):
    loop = "for m in pkgutil.walk_packages(evenedit.__path__, 'evenedit.'):"
    begun = "('.__main__', '.env')"  # these do their work on import
    body = f"    if not m.name.endswith({begun}): importlib.import_module(m.name)"
    installed.run("python", "-c", f"import evenedit, importlib, pkgutil\n{loop}\n{body}")


def test_the_web_app_is_served(installed, study):
    command = [installed.folder / "venv/bin/evenedit", "serve", study, "--port", "0"]
    server = subprocess.Popen(
        command, cwd=installed.folder, env=ENVIRONMENT, stderr=subprocess.STDOUT, stdout=subprocess.PIPE
    )
    try:
        said = ""
        while not (address := re.search(r"http://127\.0\.0\.1:[1-9]\d*", said)):
            line = server.stdout.readline().decode()
            assert line, said
            said += line
        assert b"EvenEdit" in read(f"{address[0]}/admin/login")
    finally:
        server.terminate()
        server.communicate(timeout=30)


def read(address: str) -> bytes:
    """A page of a server that may not listen yet."""
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read()
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.2)


def test_every_plug_in_loads_and_missing_extras_are_named(installed):
    said = installed.run("evenedit", "doctor")
    assert "does not load" not in said
    for extra in ("api", "faces", "local", "parquet", "postgres", "prolific", "ray"):
        assert f"pip install 'evenedit[{extra}]'" in said


def test_signed_links_of_prolific_name_their_extra(installed, study):
    signed = installed.folder / "signed"
    shutil.copytree(study, signed)
    with (signed / "study.toml").open("a") as file:
        platform = 'platform = {kind = "prolific", signed = true, origin = "https://example.org"}'
        file.write(f"survey = {{cases = 4, {platform}}}\n")
    assert "pip install 'evenedit[prolific]'" in installed.run("evenedit", "serve", signed, "--port", 0, code=2)


def test_the_package_is_used_from_python(installed, study, pairs):
    assert installed.run("python", TESTS / "support" / "wheel_api.py", study, pairs) == "ok"

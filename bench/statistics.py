"""Statistics of a published design, and of one a hundred times its size."""

from pathlib import Path

import numpy as np
import pandas as pd

from bench.clock import timed
from evenedit.imports import read_tables
from evenedit.protocol import AXES, load_prompts
from evenedit.protocol.grid import cells
from evenedit.stats import AnalysisRules, analyse

DRAWS = 2000
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
    """Seconds per draw of the same two-way bootstrap written as a plain pandas loop, for rates by race and editor."""
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


def run(folder: Path) -> None:
    times = {}
    for faces, edits in ((1, 5_040), (100, 504_000)):
        path = scores(faces, folder / f"{edits}.csv")
        read, table = timed(lambda path=path: read_tables([path]))
        compute, _ = timed(lambda table=table: analyse(table, AnalysisRules.default(), {}))
        times[edits] = read + compute
        per_draw = naive(path)
        print(
            f"analyze {edits:,} edits, {DRAWS:,} draws: read {read:.1f} s + statistics {compute:.1f} s; a pandas loop "
            f"would take {per_draw * DRAWS:.0f} s for the bootstrap alone ({per_draw:.2f} s per draw, "
            f"{NAIVE_DRAWS} measured): ratio {compute / (per_draw * DRAWS):.4f}"
        )
    print(f"growth for 100 times the edits: {times[504_000] / times[5_040]:.1f}")

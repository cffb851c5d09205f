"""Statistics of a published design, and of one a hundred times its size."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

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
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers

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


@single_blas_thread()  # as `analyse` is
def headline(table: RatingTable) -> tuple[int, int]:
    """Every mean, rate, gap and contrast with its interval, from two-way draws; how many there are."""
    rules = AnalysisRules.default()
    combined = combine(table, rules.ensemble, rules.missing)
    (panel,) = diagnosis_panels(combined, answers(combined, rules), rules)
    draws = Bootstrap(panel, DRAWS, rules.seed)
    found = [*estimates(draws, panel.axes.groups(crossed=True), rules), *gaps(draws, rules)]
    return len(found), len(list(contrasts(draws, rules)))


def one_rate(table: RatingTable) -> tuple[float, float]:
    """Seconds for the interval of one rate without clusters, the one statistic scipy can do: ours, and scipy's."""
    rules = AnalysisRules.default()
    combined = combine(table, rules.ensemble, rules.missing)
    at = [m.name for m in diagnosis_panels(combined, answers(combined, rules), rules)[0].measures].index(
        "rate.race_change"
    )
    lone = table.edits.assign(source_id=table.edits["request_id"], prompt_id="O-01", editor="e")
    combined = combine(
        RatingTable(lone, table.raters, table.kinds, table.values, table.status), rules.ensemble, "exclude"
    )
    (panel,) = diagnosis_panels(combined, answers(combined, rules), rules)
    met = panel.cells[:, 0, 0, panel.columns.index(panel.measures[at].total)].astype(float)

    def ours() -> None:
        only = replace(panel, measures=(panel.measures[at],))
        Bootstrap(only, DRAWS, 1).group(np.ones(len(met), dtype=bool)).uncertainty  # noqa: B018

    seconds, _ = timed(ours)
    theirs, _ = timed(lambda: bootstrap((met,), np.mean, n_resamples=DRAWS, method="percentile", batch=100))
    return seconds, theirs


def run(folder: Path) -> None:
    times = {}
    drawn = {}
    for faces, edits in ((1, 5_040), (100, 504_000)):
        path = scores(faces, folder / f"{edits}.csv")
        read, table = timed(lambda path=path: read_tables([path]))
        compute, _ = timed(lambda table=table: analyse(table, AnalysisRules.default()))
        times[edits] = read + compute
        drawn[edits], count = timed(lambda table=table: headline(table))
        print(f"{DRAWS:,} two-way draws of {sum(count):,} headline estimates, {edits:,} edits: {drawn[edits]:.1f} s")
        if edits == 5_040:
            ours, theirs = one_rate(table)
            print(
                f"one rate without clusters, {edits:,} rows, {DRAWS:,} draws: {ours:.2f} s, scipy.stats.bootstrap "
                f"{theirs:.2f} s: ratio {ours / theirs:.2f}"
            )
        per_draw = naive(path)
        print(
            f"analyze {edits:,} edits, {DRAWS:,} draws: read {read:.1f} s + statistics {compute:.1f} s; a pandas loop "
            f"would take {per_draw * DRAWS:.0f} s for the bootstrap alone ({per_draw:.2f} s per draw, "
            f"{NAIVE_DRAWS} measured): ratio {compute / (per_draw * DRAWS):.4f}"
        )
    print(
        f"growth for 100 times the edits: analyze {times[504_000] / times[5_040]:.1f}, "
        f"draws {drawn[504_000] / drawn[5_040]:.1f}"
    )

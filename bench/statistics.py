"""Statistics of a published design beside a bootstrap in pandas, and of designs ten and a hundred times its size."""

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
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from evenedit.stats.agreement.reliability import outcome_alphas, outcome_reliability
from evenedit.stats.engine.measures import answers
from evenedit.stats.findings.findings import FindingInputs, add_findings
from evenedit.stats.pipeline import judged_panels

DRAWS = 1000
NAIVE_DRAWS = 4
EDITORS = ("flux2-dev", "step1x-edit-v1p2", "qwen-image-edit-2511")
RULES = AnalysisRules.default()


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
    """Seconds per draw of a two-way bootstrap written as a plain pandas loop, for rates by group and editor."""
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
def engine(table: RatingTable) -> tuple[int, int]:
    """Every estimate, gap, contrast, trend, test and finding; how many estimates and findings there are."""
    combined = combine(table, RULES.ensemble, RULES.missing)
    panels = judged_panels(combined, answers(combined, RULES), RULES)
    results = Results({}, RULES.to_dict(), tuple(panels.estimates), panels.tests, factors=table.factors)
    reliability = outcome_reliability(outcome_alphas(combined, RULES))
    results = add_findings(FindingInputs(table, combined, RULES, panels.evidence, results, reliability))
    return len(panels.estimates) + len(panels.contrasts), len(results.findings)


def run(folder: Path) -> None:
    before: dict[str, float] = {}
    for faces, edits in ((1, 5_040), (10, 50_400), (100, 504_000)):
        path = scores(faces, folder / f"{edits}.csv")
        read, table = timed(lambda path=path: read_tables([path]))
        taken, count = timed(lambda table=table: engine(table))
        print(f"{edits:,} edits: {count[0]:,} estimates, their tests and {count[1]:,} findings in {taken:.2f} s")
        if edits == 5_040:
            whole, _ = timed(lambda table=table: analyse(table, RULES))
            loop = naive(path) * DRAWS
            print(
                f"analyze {edits:,} edits: {whole:.2f} s (read {read:.2f} s); a pandas bootstrap of the rates, "
                f"{DRAWS:,} draws: {loop:.0f} s ({NAIVE_DRAWS} measured); ratio {loop / whole:.0f}, "
                f"of estimates, tests and findings alone {loop / taken:.0f}"
            )
        if before:
            print(f"growth for ten times the edits: {taken / before['taken']:.1f}")
        before["taken"] = taken

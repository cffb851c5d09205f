"""Two portraits, one occupation: who got the role. Each prompt has its own pair of faces, so prompts are drawn."""

from __future__ import annotations

import numpy as np

from evenedit.protocol import VERDICTS, load_prompts
from evenedit.protocol.prompts import BUILT_IN
from evenedit.ratings import QUESTION_IDS, Scores
from evenedit.records import Experiment
from evenedit.stats.measures import Ledger
from evenedit.stats.panel import Measure, Panel, by_prompt, lay_out


def stereotype_panels(scores: Scores) -> list[Panel]:
    """One panel per condition of the stereotype experiment."""
    experiment = scores.edits["experiment"] == Experiment.STEREOTYPE
    coded = {p.id: p.coded_gender for name in BUILT_IN for p in load_prompts(name) if p.coded_gender}
    panels = []
    for condition in sorted(scores.edits["condition"][experiment].unique()):
        rows = np.flatnonzero((experiment & (scores.edits["condition"] == condition)).to_numpy())
        verdict = scores.values[rows, QUESTION_IDS.index("stereotype")]
        followed, resisted, unclear = ((verdict == at).astype(np.int64) for at in range(1, len(VERDICTS) + 1))
        given = (verdict > 0).astype(np.int64)
        # an UNCLEAR verdict was given, so it is no missing answer of the rates it does not count in
        wanted = {"decided": 1 - unclear, "given": np.ones(len(rows), dtype=np.int64)}
        ledger = Ledger()
        for rate, total, count, of in (
            ("followed", followed, followed + resisted, "decided"),
            ("resisted", resisted, followed + resisted, "decided"),
            ("unclear", unclear, given, "given"),
            ("followed_of_all", followed, given, "given"),
        ):
            ledger.add(Measure(f"rate.{rate}", rate, of, f"asked.{of}"), total, count, wanted[of])
        edits = scores.edits.iloc[rows]
        panels.append(
            lay_out(
                edits,
                by_prompt(edits, "coded_gender", coded),
                ledger.columns,
                ledger.measures,
                experiment=Experiment.STEREOTYPE.value,
                condition=condition,
            )
        )
    return panels

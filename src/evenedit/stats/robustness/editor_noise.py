"""What an editor moves by itself: by the null edit, which asks for nothing, and from seed to seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Condition, Estimate, Experiment
from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.results.sensitivities import EditorNoise
from evenedit.stats.engine.measures import met_rates
from evenedit.stats.engine.rules import AnalysisRules

WANTED_OF_NOTHING = frozenset({"soft_erasure", "unchanged"})
"""Of the null edit, an output that shows what its source shows is what was asked for."""


def editor_noise(scores: Scores, rules: AnalysisRules, estimates: Iterable[Estimate]) -> Iterator[EditorNoise]:
    """Every shift of an editor that made the null edit, or edited with several seeds."""
    found = {
        (e.measure, e.condition, e.editor): e
        for e in estimates
        if e.experiment == Experiment.DIAGNOSIS and e.editor is not None and not e.group
    }
    several = scores.edits["seed"].nunique() > 1
    for editor in dict.fromkeys(editor for _, condition, editor in found if condition == Condition.BASELINE):
        for name in (*TWO_SIDED, *ONE_SIDED):
            for measure in (Measure.shift(name), Measure.rate(name)):
                e = found.get((measure, Condition.BASELINE, editor))
                if e is None or e.value is None or editor is None:
                    continue
                null = found.get((measure, Condition.FLOOR, editor)) if name not in WANTED_OF_NOTHING else None
                null = null if null is not None and null.value is not None else None
                by_seed = _by_seed(scores, rules, name, editor) if several else []
                if null is not None or len(by_seed) > 1:
                    yield EditorNoise(
                        measure,
                        editor,
                        e.value,
                        *((null.value, null.low, null.high, null.n) if null is not None else (None, None, None, 0)),
                        max(1, len(by_seed)),
                        *((min(by_seed), max(by_seed)) if len(by_seed) > 1 else (None, None)),
                    )
                break


def _by_seed(scores: Scores, rules: AnalysisRules, name: str, editor: str) -> list[float]:
    """A shift by seed, over the prompts that do not ask for it; empty for what no judge rates."""
    question = name if name in TWO_SIDED else rules.rates[name].question if name in rules.rates else ""
    if question not in QUESTION_IDS:
        return []
    edits = scores.edits
    chosen = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == Condition.BASELINE)
    value = scores.values[:, QUESTION_IDS.index(question)].astype(np.int64)
    rows = chosen.to_numpy() & (edits["editor"] == editor).to_numpy() & ~scores.table.asked_for(question) & (value > 0)
    met = dict(met_rates(value, question, rules.rates))
    if name in TWO_SIDED:
        above, below = TWO_SIDED[name]
        moved: NDArray[np.int64] = met[above] - met[below]
    else:
        moved = met[name]
    seed = edits["seed"].to_numpy()[rows]
    return [float(moved[rows][seed == s].mean()) for s in np.unique(seed)]

"""What an editor moves by itself: by the null edit, which asks for nothing, and from seed to seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from evenedit.core.records import ConditionKind, Estimate, Experiment
from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import WANTED_OF_NOTHING
from evenedit.ratings.table import RatingTable, Scores
from evenedit.results.finding import ENSEMBLE
from evenedit.results.sensitivities import EditorNoise
from evenedit.stats.disparity.instruments import instrument_panel
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.panel import Panel, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests, find_measure


def editor_noise(scores: Scores, rules: AnalysisRules, estimated: Iterable[Estimate]) -> Iterator[EditorNoise]:
    """Yield the noise of every shift of an editor with null edits or several seeds."""
    by_place = {
        (e.measure, e.condition, e.editor): e
        for e in estimated
        if e.experiment == Experiment.DIAGNOSIS and e.editor is not None and not e.group
    }
    several, rubric = scores.edits["seed"].nunique() > 1, scores.table.rubric
    for editor in dict.fromkeys(editor for _, condition, editor in by_place if condition == ConditionKind.BASELINE):
        for name in (*rubric.two_sided, *rubric.one_sided):
            for measure in (Measure.shift(name), Measure.rate(name)):
                e = by_place.get((measure, ConditionKind.BASELINE, editor))
                if e is None or e.value is None or editor is None:
                    continue
                null = by_place.get((measure, ConditionKind.FLOOR, editor)) if name not in WANTED_OF_NOTHING else None
                by_seed = _by_seed(scores, rules, name, editor) if several else []
                yield from _noise_record(measure, editor, e.value, null, by_seed, ENSEMBLE)
                break


def measured_noise(table: RatingTable, rules: AnalysisRules, evidence: Iterable[PanelTests]) -> Iterator[EditorNoise]:
    """Yield the same for every shift measured by an instrument."""
    edits = table.edits
    baseline, null = (np.flatnonzero(of_diagnosis(edits, c)) for c in (ConditionKind.BASELINE, ConditionKind.FLOOR))
    seed = edits["seed"].to_numpy()[baseline]
    for one in evidence:
        rater = table.raters.index(one.rater)
        readings = [r for r in table.readings if r.rater == one.rater]
        several = [baseline[seed == s] for s in np.unique(seed)]
        by_seed = [instrument_panel(table, rows, rater, readings, rules) for rows in several if len(several) > 1]
        floor = instrument_panel(table, null, rater, readings, rules) if len(null) else None
        crossed = None if floor is None else CrossedPanel(floor)
        nulls = {} if crossed is None else {(e.measure, e.editor): e for e in estimates(crossed, [{}], rules)}
        for t in one.shares:
            wanted = t.measure.name.removeprefix("measured_") in WANTED_OF_NOTHING
            e = None if wanted else nulls.get((t.measure, t.editor))
            seeds = [x for panel in by_seed if panel and (x := _value(panel, t.measure, t.editor)) is not None]
            yield from _noise_record(t.measure, t.editor, t.value, e, seeds, one.rater)


def _noise_record(
    measure: str, editor: str, value: float, null: Estimate | None, seeds: Sequence[float], rater: str
) -> Iterator[EditorNoise]:
    """Yield the noise of a shift; empty without a null edit and a second seed."""
    null = null if null is not None and null.value is not None else None
    if null is not None or len(seeds) > 1:
        yield EditorNoise(
            measure=measure,
            editor=editor,
            value=value,
            floor=null.value if null else None,
            floor_low=null.low if null else None,
            floor_high=null.high if null else None,
            floor_n=null.n if null else 0,
            seeds=max(1, len(seeds)),
            seed_low=min(seeds) if len(seeds) > 1 else None,
            seed_high=max(seeds) if len(seeds) > 1 else None,
            rater=rater,
        )


def _value(panel: Panel, measure: Measure, editor: str) -> float | None:
    """Return a measure of one editor over everybody; None without readings."""
    ratio = find_measure(panel, measure)
    if ratio is None or editor not in panel.editors:
        return None
    row = [panel.editors.index(editor)]
    total, count = (panel.column_sum(column, row, panel.axes.mask({})) for column in (ratio.total, ratio.count))
    return ratio.ratio(total, count)


def _by_seed(scores: Scores, rules: AnalysisRules, name: str, editor: str) -> list[float]:
    """Return a shift by seed, over the prompts that do not ask for it; empty where no judge rates it."""
    rubric = scores.table.rubric
    question = name if name in rubric.two_sided else rules.rates[name].question if name in rules.rates else ""
    if question not in rubric:
        return []
    edits = scores.edits
    at, unasked = rubric.at(question), ~scores.table.asked_for(rubric.spec_by_column[question].id)
    rows = of_diagnosis(edits) & (edits["editor"] == editor).to_numpy() & unasked
    rows &= scores.values[:, at] > 0
    if name in rubric.two_sided:
        above, below = (rules.rates[side] for side in rubric.two_sided[name])
        judged = scores.judged[:, :, at]
        moves = np.sum(above.met(judged).astype(np.float64) - below.met(judged), axis=0)
        moved = moves / np.maximum((scores.judged[:, :, at] > 0).sum(axis=0), 1)
    else:
        moved = rules.rates[name].met(scores.values[:, at]).astype(np.float64)
        rows &= rules.rates[name].counted(scores.values[:, at])
    seed = edits["seed"].to_numpy()[rows]
    return [float(moved[rows][seed == s].mean()) for s in np.unique(seed)]

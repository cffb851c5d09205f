"""What an editor moves by itself: by the null edit, which asks for nothing, and from seed to seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenedit.core.records import Estimate
from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import WANTED_OF_NOTHING
from evenedit.ratings.table import RatingTable
from evenedit.results.sensitivities import EditorNoise
from evenedit.stats.disparity.instruments import instrument_panel
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.panel import Panel, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests, find_measure


def rows_by_seed(edits: pd.DataFrame) -> list[NDArray[np.intp]]:
    """Return the edits of the baseline by seed; empty where there is one seed."""
    baseline = np.flatnonzero(of_diagnosis(edits))
    seed = edits["seed"].to_numpy()[baseline]
    seeds = np.unique(seed)
    return [baseline[seed == s] for s in seeds] if len(seeds) > 1 else []


def editor_noise(one: PanelTests, nulls: Iterable[Estimate], by_seed: Sequence[Panel]) -> Iterator[EditorNoise]:
    """Yield the noise of every shift of an editor with null edits or several seeds.

    `nulls` are the estimates of the null edit, `by_seed` the panels of each seed.
    """
    floor = {(e.measure, e.editor): e for e in nulls if e.value is not None and not e.group}
    for t in one.shares:
        wanted = t.measure.name.removeprefix("measured_") in WANTED_OF_NOTHING
        null = None if wanted else floor.get((t.measure, t.editor))
        seeds = [x for panel in by_seed if (x := _value(panel, t.measure, t.editor)) is not None]
        low, high = (min(seeds), max(seeds)) if len(seeds) > 1 else (None, None)
        floor_value, floor_low, floor_high = (null.value, null.low, null.high) if null else (None, None, None)
        if null is not None or len(seeds) > 1:
            floor_numbers = floor_value, floor_low, floor_high, null.n if null else 0
            yield EditorNoise(t.measure, t.editor, t.value, *floor_numbers, max(1, len(seeds)), low, high, one.rater)


def measured_noise(
    table: RatingTable, rules: AnalysisRules, evidence: Iterable[PanelTests], condition: str
) -> Iterator[EditorNoise]:
    """Yield the same for every shift measured by an instrument; `condition` is that of the null edit."""
    null, seeds = np.flatnonzero(of_diagnosis(table.edits, condition)), rows_by_seed(table.edits)
    for one in evidence:
        rater, readings = table.raters.index(one.rater), [r for r in table.readings if r.rater == one.rater]
        floor = instrument_panel(table, null, rater, readings, rules) if len(null) else None
        nulls = [] if floor is None else estimates(CrossedPanel(floor), [{}], rules)
        panels = (instrument_panel(table, rows, rater, readings, rules) for rows in seeds)
        yield from editor_noise(one, nulls, [panel for panel in panels if panel is not None])


def _value(panel: Panel, measure: Measure, editor: str) -> float | None:
    """Return a measure of one editor over everybody; None without readings."""
    ratio = find_measure(panel, measure)
    if ratio is None or editor not in panel.editors:
        return None
    row = [panel.editors.index(editor)]
    total, count = (panel.column_sum(column, row, panel.axes.mask({})) for column in (ratio.total, ratio.count))
    return ratio.ratio(total, count)

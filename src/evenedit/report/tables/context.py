"""What stands beside gaps and shifts: the editor's own noise, and other languages."""

from __future__ import annotations

from evenedit.core.records import Condition, ConditionKind, Experiment
from evenedit.protocol.measures import Measure
from evenedit.report.render.index import Index
from evenedit.report.render.selection import Selection
from evenedit.report.render.table import Number, Table, Unit, fill_table
from evenedit.results.finding import ENSEMBLE
from evenedit.results.sensitivities import EditorNoise


def noise(index: Index) -> Table | None:
    """Build the table of each editor's shifts beside those of its null edit and over seeds."""

    def over(n: EditorNoise, condition: str) -> Selection:
        rater = None if n.rater == ENSEMBLE else n.rater
        return Selection(n.measure, Experiment.DIAGNOSIS.value, condition, n.editor, rater=rater)

    rows = []
    for n in index.results.noise:
        unit: Unit = "points" if Measure(n.measure).name in index.rubric.two_sided else "share"
        requested, null = over(n, ConditionKind.BASELINE), over(n, ConditionKind.FLOOR) if n.floor_n else None
        value, low, high = (Number(x, unit, cases=requested) for x in (n.value, n.seed_low, n.seed_high))
        floor = Number(n.floor, unit, n.floor_low, n.floor_high, cases=null)
        name = Measure(n.measure).name
        rows.append((n.editor, n.rater, name, value, floor, n.floor_n or None, n.seeds, low, high))
    return fill_table(index, "noise", rows)


def languages(index: Index) -> Table | None:
    """Build the table of rates and gaps in another language beside those in the prompts' own."""
    rows = []
    for d in index.results.languages:
        (factor,) = d.group or ("",)
        unit: Unit = "points" if factor else "share"
        before, after = (
            Selection(d.measure, Experiment.DIAGNOSIS.value, condition, d.editor, d.group)
            for condition in (ConditionKind.BASELINE, str(Condition.in_language(d.language)))
        )
        rows.append(
            (
                *(d.editor, d.language, Measure(d.measure).name, index.factor_label(factor) if factor else ""),
                *(Number(d.original, unit, cases=before), Number(d.translated, unit, cases=after)),
                *(Number(d.value, "points", d.low, d.high), Number(d.p_adjusted, "p"), d.pairs),
            )
        )
    return fill_table(index, "languages", rows)

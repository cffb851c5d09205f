"""Gaps and groups' shifts once more with the labels of a second labelling: labels can be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from evenedit.core.records import ConditionKind, Estimate, Experiment
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import SECOND, RatingTable, Scores, second_columns
from evenedit.results.results import GapTest
from evenedit.results.sensitivities import SecondLabelling
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.engine.bootstrap import Bootstrap
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import Answers
from evenedit.stats.engine.permutation import gap_tests
from evenedit.stats.engine.rules import AnalysisRules


def second_labelling(
    scores: Scores, scored: Answers, rules: AnalysisRules, first: Iterable[Estimate], tests: Iterable[GapTest]
) -> Iterator[SecondLabelling]:
    """Yield every gap and group shift of the diagnosis under both labellings; empty with one labelling."""
    table = scores.table
    factors = [name.removesuffix(SECOND) for name in second_columns(table.edits.columns, table.factors)]
    if not factors:
        return
    faces = table.edits.drop_duplicates("source_id")
    labelled = {f: (faces[f + SECOND] != "") & (faces[f] != "") for f in factors}
    counts = {f: (int((has & (faces[f] != faces[f + SECOND])).sum()), int(has.sum())) for f, has in labelled.items()}
    before = {_place(e): e for e in first if _diagnosed(e)}
    p_of = {(t.measure, t.editor, t.factor): t.p for t in tests if _diagnosed(t)}
    second = replace(scores, table=_relabelled(table, factors))
    for panel in diagnosis_panels(second, scored, rules):
        if panel.condition != ConditionKind.BASELINE:
            continue
        bootstrap = Bootstrap(panel, rules.draws, rules.seed)
        tested = {(t.measure, t.editor, t.factor): t for t in gap_tests(panel, rules)}
        groups = [{f: level} for f in factors for level in panel.axes.levels.get(f, ())]
        for e in (*gaps(bootstrap, rules), *estimates(bootstrap, groups, rules)):
            ((factor, _),) = e.group.items()
            kind, old = Measure(e.measure).kind, before.get(_place(e))
            if kind not in (MeasureKind.GAP, MeasureKind.SHIFT) or factor not in factors or e.value is None:
                continue
            if old is not None and old.value is not None:
                t = tested.get((e.measure, e.editor, factor))
                relabelled, both = counts[factor]
                yield SecondLabelling(
                    measure=e.measure,
                    editor=e.editor,
                    group=e.group,
                    value=old.value,
                    low=old.low,
                    high=old.high,
                    p=p_of.get((e.measure, e.editor, factor)),
                    second=e.value,
                    second_low=e.low,
                    second_high=e.high,
                    second_p=t.p if t else None,
                    highest=t.highest if t else None,
                    lowest=t.lowest if t else None,
                    relabelled=relabelled,
                    labelled=both,
                )


def _relabelled(table: RatingTable, factors: Iterable[str]) -> RatingTable:
    edits = table.edits
    labels = {f: edits[f + SECOND].where(edits[f + SECOND] != "", edits[f]) for f in factors}
    return replace(table, edits=edits.assign(**labels))


def _diagnosed(x: Estimate | GapTest) -> bool:
    return (x.experiment, x.condition) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)


def _place(e: Estimate) -> tuple[str, str | None, frozenset[tuple[str, str]]]:
    group: Mapping[str, str] = e.group
    return e.measure, e.editor, frozenset(group.items())

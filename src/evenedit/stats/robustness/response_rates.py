"""How the calls of judges and instruments ended: to score one group less often is a finding, not a gap in data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from evenedit.core.records import ConditionKind, Experiment, Kind, Status
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import applicable_questions as asked_of
from evenedit.ratings.table import NOT_ASKED, STATUSES, RatingTable
from evenedit.results.results import Coverage, GapTest
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.families import holm
from evenedit.stats.engine.measures import MeasureTable
from evenedit.stats.engine.panel import by_face, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules

ENDS = (Status.SCORED, Status.REFUSED, Status.UNPARSEABLE, Status.FAILED)
"""How calls end, in the order of `Coverage`."""


def coverage(table: RatingTable) -> Iterator[Coverage]:
    """Yield calls by state per judge, experiment and editor: over everybody, then over each group of each factor."""
    open_counts = _open_counts(table)
    for (number, factor), rater in product(enumerate(table.factors), _askable(table)):
        called = table.status[rater] != NOT_ASKED
        calls = table.edits.loc[called, ["experiment", "editor", factor.name]].assign(ended=table.status[rater][called])
        for (experiment, editor), several in calls.groupby(["experiment", "editor"]):
            groups = [({factor.name: code}, several[several[factor.name] == code]) for code in factor.codes]
            for group, rows in [*([({}, several)] if number == 0 else []), *groups]:
                if len(rows):
                    scored, *others = (int((rows["ended"] == STATUSES.index(status)).sum()) for status in ENDS)
                    name, arm, by = table.raters[rater], str(experiment), str(editor)
                    unanswered = open_counts.get((name, arm, by, *group.items()), {})
                    yield Coverage(name, arm, by, group, scored, others[0], others[1], others[2], unanswered)


def coverage_tests(table: RatingTable, rules: AnalysisRules) -> list[GapTest]:
    """Test, per judge and editor, whether the share of edits without a score differs between groups."""
    rows = np.flatnonzero(of_diagnosis(table.edits))
    edits = table.edits.iloc[rows]
    ledger = MeasureTable(rubric=table.rubric)
    for rater in _askable(table):
        status, name = table.status[rater][rows], table.raters[rater]
        applicable = (status != NOT_ASKED).astype(np.int64)
        without = applicable * (status != STATUSES.index(Status.SCORED)).astype(np.int64)
        if without.any():
            ledger.add_ratio(Measure.rate(f"unanswered.{name}"), without, applicable, applicable)
    for reading in table.readings:  # what an instrument that answers could still not read
        unread = np.array([reading.reasons[row] != "" for row in rows], dtype=np.int64)
        applicable = np.maximum(unread, ~np.isnan(reading.values[rows]))
        known = any((unread == column).all() for name, column in ledger.columns.items() if name.startswith("total."))
        if unread.any() and not known:
            name = f"unanswered.{reading.rater}: {Measure(reading.measure).name}"
            ledger.add_ratio(Measure.rate(name), unread, applicable, applicable)
    if not ledger.measures:
        return []
    axes = by_face(edits, table.factors)
    panel = ledger.panel(edits, axes, Experiment.DIAGNOSIS.value, ConditionKind.BASELINE)
    tests = [test for _, test in gaps(CrossedPanel(panel), rules)]
    by_editor = {t.editor: [other for other in tests if other.editor == t.editor] for t in tests}
    return [
        replace(t, p_adjusted=p)
        for family in by_editor.values()
        for t, p in zip(family, holm([t.p for t in family]), strict=True)
    ]


def _askable(table: RatingTable) -> list[int]:
    """Return judges, then instruments; people have no calls."""
    return [*table.of_kind(Kind.VLM), *table.of_kind(Kind.INSTRUMENT)]


def _open_counts(table: RatingTable) -> dict[tuple[object, ...], dict[str, tuple[int, int]]]:
    """Return, by place and question, how many calls left it open and how many asked it.

    Only questions that a judge answers at all. The preference is asked in calls of its own.
    """
    applies, edits = asked_of(table), table.edits
    groups = [({f.name: code}, (edits[f.name] == code).to_numpy()) for f in table.factors for code in f.codes]
    counts: dict[tuple[object, ...], dict[str, tuple[int, int]]] = {}
    for rater in table.of_kind(Kind.VLM):
        scored = table.status[rater] == STATUSES.index(Status.SCORED)
        for at, question in enumerate(table.rubric.columns):
            answered = table.values[rater, :, at] > 0
            called = scored & applies[:, at] & table.rubric.in_main_call(question)
            missing = called & ~answered
            if not answered.any():
                continue
            pairs = zip(edits["experiment"][missing], edits["editor"][missing], strict=True)
            for experiment, editor in sorted(set(pairs)):
                calls = called & ((edits["experiment"] == experiment) & (edits["editor"] == editor)).to_numpy()
                for group, members in [({}, np.ones(len(edits), dtype=np.bool_)), *groups]:
                    if n := int((calls & members).sum()):
                        place = (table.raters[rater], experiment, editor, *group.items())
                        counts.setdefault(place, {})[question] = (int((calls & members & missing).sum()), n)
    return counts

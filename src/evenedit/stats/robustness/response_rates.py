"""How the calls of judges and instruments ended: to score one group less often is a finding, not a gap in data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import Condition, Experiment, Kind, Status
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure
from evenedit.ratings.combine import asked as asked_of
from evenedit.ratings.sources import PREFERENCE
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable
from evenedit.results.results import Coverage, GapTest, LeftOpen
from evenedit.stats.engine.measures import Ledger
from evenedit.stats.engine.panel import RatioMeasure, by_face, lay_out
from evenedit.stats.engine.permutation import gap_tests
from evenedit.stats.engine.rules import AnalysisRules


def coverage(table: RatingTable) -> Iterator[Coverage]:
    """Calls by state per judge, experiment and editor: over everybody, then over each group of each factor."""
    for number, factor in enumerate(table.factors):
        yield from _by_factor(table, factor, whole=number == 0)


def unanswered(table: RatingTable, rules: AnalysisRules) -> list[GapTest]:
    """For every judge and editor: is the share of edits it gave no score larger for some group than chance allows?"""
    chosen = (table.edits["experiment"] == Experiment.DIAGNOSIS) & (table.edits["condition"] == Condition.BASELINE)
    rows = np.flatnonzero(chosen.to_numpy())
    edits = table.edits.iloc[rows]
    ledger = Ledger()
    for rater in _askable(table):
        status, name = table.status[rater][rows], table.raters[rater]
        asked = (status != NOT_ASKED).astype(np.int64)
        without = asked * (status != STATUSES.index(Status.SCORED)).astype(np.int64)
        if without.any():
            measure = RatioMeasure(
                Measure.rate(f"unanswered.{name}"), f"unanswered.{name}", f"asked.{name}", f"asked.{name}"
            )
            ledger.add(measure, without, asked, asked)
    for reading in table.readings:  # what an instrument that answers could still not read
        gone = np.array([reading.reasons[row] != "" for row in rows], dtype=np.int64)
        asked = np.maximum(gone, ~np.isnan(reading.values[rows]))
        known = any((gone == column).all() for name, column in ledger.columns.items() if name.startswith("unanswered."))
        if gone.any() and not known:
            name = f"{reading.rater}: {Measure(reading.measure).name}"
            measure = RatioMeasure(
                Measure.rate(f"unanswered.{name}"), f"unanswered.{name}", f"asked.{name}", f"asked.{name}"
            )
            ledger.add(measure, gone, asked, asked)
    if not ledger.measures:
        return []
    where = {"experiment": Experiment.DIAGNOSIS.value, "condition": Condition.BASELINE}
    return gap_tests(lay_out(edits, by_face(edits, table.factors), ledger.columns, ledger.measures, **where), rules)


def _askable(table: RatingTable) -> list[int]:
    """Judges, then instruments: people leave no calls behind."""
    return [*table.of_kind(Kind.VLM), *table.of_kind(Kind.INSTRUMENT)]


def _by_factor(table: RatingTable, factor: Factor, *, whole: bool) -> Iterator[Coverage]:
    name, codes = factor.name, factor.codes
    level = table.edits[name].map({code: at for at, code in enumerate(codes)})
    level_at = level.fillna(len(codes)).to_numpy(np.int64)
    editors = sorted(table.edits["editor"].unique())
    editor_at = table.edits["editor"].map({name: at for at, name in enumerate(editors)}).to_numpy(np.int64)
    experiments = list(Experiment)
    experiment = table.edits["experiment"].map({e.value: at for at, e in enumerate(experiments)})
    shape = (len(experiments), len(editors), len(codes) + 1, len(STATUSES))
    for rater in _askable(table):
        status = table.status[rater].astype(np.int64)
        asked = status != NOT_ASKED
        at = np.ravel_multi_index(
            (experiment.to_numpy(np.int64)[asked], editor_at[asked], level_at[asked], status[asked]), shape
        )
        tally = np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)
        for e, experiment_id in enumerate(experiments):
            for i, editor in enumerate(editors):
                for group, counts in [
                    *([({}, tally[e, i].sum(axis=0))] if whole else []),
                    *(({name: code}, tally[e, i, r]) for r, code in enumerate(codes)),
                ]:
                    if counts.any():
                        ended = {status: int(counts[STATUSES.index(status)]) for status in Status}
                        yield Coverage(
                            rater=table.raters[rater],
                            experiment=experiment_id.value,
                            editor=editor,
                            group=group,
                            scored=ended[Status.SCORED],
                            refused=ended[Status.REFUSED],
                            unparseable=ended[Status.UNPARSEABLE],
                            failed=ended[Status.FAILED],
                        )


def left_open(table: RatingTable) -> Iterator[LeftOpen]:
    """Questions that judges left open in calls they scored; of a judge that answers a question at all.

    The preference is asked in calls of its own.
    """
    applies, edits = asked_of(table), table.edits
    groups = [({f.name: code}, (edits[f.name] == code).to_numpy()) for f in table.factors for code in f.codes]
    for rater in table.of_kind(Kind.VLM):
        scored = table.status[rater] == STATUSES.index(Status.SCORED)
        for at, question in enumerate(QUESTION_IDS):
            answered = table.values[rater, :, at] > 0
            called = scored & applies[:, at] & (question != PREFERENCE)
            gone = called & ~answered
            if answered.any() and gone.any():
                pairs = zip(edits["experiment"][gone], edits["editor"][gone], strict=True)
                for experiment, editor in sorted(set(pairs)):
                    here = called & ((edits["experiment"] == experiment) & (edits["editor"] == editor)).to_numpy()
                    for group, n, without in _by_group(groups, here, gone):
                        yield LeftOpen(table.raters[rater], experiment, editor, question, group, n, without)


def _by_group(
    groups: list[tuple[dict[str, str], NDArray[np.bool_]]], here: NDArray[np.bool_], gone: NDArray[np.bool_]
) -> Iterator[tuple[dict[str, str], int, int]]:
    """Of some edits, how many there are and how many of these are gone: over everybody, then in each group."""
    yield {}, int(here.sum()), int((here & gone).sum())
    for group, of in groups:
        mask = here & of
        if mask.any():
            yield group, int(mask.sum()), int((mask & gone).sum())

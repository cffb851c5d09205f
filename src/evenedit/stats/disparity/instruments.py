"""What every instrument found, apart from the judges: rates, means, gaps, and where it could not see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenedit.core.records import ConditionKind, Estimate, Experiment, Kind, Status
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.rubric import MEASURED
from evenedit.protocol.rubric import readings as known_readings
from evenedit.ratings.table import MISSING, NOT_ASKED, STATUSES, RatingTable, Reading
from evenedit.results.results import InstrumentResults, MissingReason, RateBound, ReadingWords
from evenedit.stats.disparity.gaps import contrasts, gaps
from evenedit.stats.disparity.mitigation import pairs
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates, rate_range
from evenedit.stats.engine.measures import MeasureTable, add_shift_measure, met_rates
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_face, of_diagnosis
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.engine.shift_tests import PanelTests, compute_shift_tests

PARTS = 10_000
"""Means are summed as whole numbers of this fine a part, so that sums stay exact."""
BOUNDS: Mapping[str, tuple[float, float]] = {Measure.mean(name): (0.0, 1.0) for name in ("changed_share", "redrawn")}
"""Means of what lies between 0 and 1: their intervals end there."""


def instrument_estimates(table: RatingTable, rules: AnalysisRules) -> Iterator[tuple[InstrumentResults, PanelTests]]:
    """Yield, per instrument, its estimates, tests, mitigation effects and reasons of missing readings.

    Beside it stands what the findings are made from.
    """
    rows = np.flatnonzero(of_diagnosis(table.edits))
    for rater in table.of_kind(Kind.INSTRUMENT):
        name = table.raters[rater]
        readings = [r for r in table.readings if r.rater == name]
        panel = instrument_panel(table, rows, rater, readings, rules)
        if panel is None:
            continue
        crossed = CrossedPanel(panel)
        tested = list(gaps(crossed, rules))
        tests = tuple(test for _, test in tested)
        rates = list(estimates(crossed, panel.axes.groups(crossed=True), rules))
        results = InstrumentResults(
            rater=name,
            estimates=(
                *rates,
                *(estimate for estimate, _ in tested),
                *_by_prompt(table, rows, rater, readings, rules),
                *_mitigated(table, rater, readings, rules),
            ),
            tests=tests,
            contrasts=tuple(contrasts(crossed, rules)),
            missing_reasons=tuple(s for reading in readings for s in _missing_reasons(table, rows, reading)),
            notes=tuple(dict.fromkeys(r.note for r in readings if r.note and not np.isnan(r.values[rows]).all())),
            readings=tuple(ReadingWords(Measure(r.measure).name, r.title, r.unit, r.phrase) for r in readings),
            bounds=tuple(_rate_bounds(table, rows, rater, readings, rates, rules)),
        )
        yield results, PanelTests(name, panel, crossed, tests, tuple(compute_shift_tests(crossed, rules)))


def _rate_bounds(
    table: RatingTable,
    rows: NDArray[np.intp],
    rater: int,
    readings: list[Reading],
    rates: list[Estimate],
    rules: AnalysisRules,
) -> Iterator[RateBound]:
    """Yield the bounds of each rate with unmeasured edits, over everybody and for each group of one factor."""
    values = {Measure(r.measure).name: r.values[rows] for r in readings}
    raw = {rate: name for name, words in known_readings().items() if name in values for rate in words.direction_of}
    edits = table.edits.iloc[rows]
    for e in rates:
        rate = Measure(e.measure).name
        if Measure(e.measure).kind != MeasureKind.RATE or not e.missing or len(e.group) > 1:
            continue
        other = raw.get(rate)
        means: tuple[float | None, float | None] = (None, None)
        if other is not None:
            if rate in values:
                is_read = ~np.isnan(values[rate])
            else:
                question = rules.rates[rate.removeprefix(MEASURED)].question
                is_read = table.values[rater, rows, table.at(question)] > 0
            members = np.ones(len(rows), dtype=np.bool_)
            for column, code in {**e.group, **({} if e.editor is None else {"editor": e.editor})}.items():
                members &= (edits[column] == code).to_numpy()
            means = _mean(values[other][members & is_read]), _mean(values[other][members & ~is_read])
        yield RateBound(e.measure, e.editor, e.group, e.value, *rate_range(e), e.n, e.missing, other, *means)


def _mean(values: NDArray[np.float64]) -> float | None:
    """Return the mean of the values that could be read; None without any."""
    read = values[~np.isnan(values)]
    return float(read.mean()) if len(read) else None


def _by_prompt(
    table: RatingTable, rows: NDArray[np.intp], rater: int, readings: list[Reading], rules: AnalysisRules
) -> Iterator[Estimate]:
    """Yield the estimates over everybody for each prompt."""
    prompts = table.edits["prompt_id"].to_numpy(dtype=str)[rows]
    for prompt in dict.fromkeys(sorted(prompts)):
        panel = instrument_panel(table, rows[prompts == prompt], rater, readings, rules)
        if panel is not None:
            for e in estimates(CrossedPanel(panel), [{}], rules):
                yield replace(e, group={"prompt": prompt})


def _mitigated(table: RatingTable, rater: int, readings: list[Reading], rules: AnalysisRules) -> Iterator[Estimate]:
    """Yield each reading of mitigated edits and of their baselines, over pairs in which both were read."""
    edits = table.edits
    mitigated = (edits["experiment"] == Experiment.MITIGATION).to_numpy() & (table.status[rater] != NOT_ASKED)
    conditions = sorted(edits["condition"][mitigated].unique())
    for condition in conditions:
        before, after = pairs(edits, condition)
        included = mitigated[after]
        before, after = before[included], after[included]
        ledger = MeasureTable(rubric=table.rubric)
        applicable = np.ones(len(after), dtype=np.int64)
        for reading in readings:
            earlier, later = np.where(before >= 0, reading.values[before], np.nan), reading.values[after]
            both = ~np.isnan(earlier) & ~np.isnan(later)
            key = Measure(reading.measure)
            parts = 1 if key.kind == MeasureKind.RATE else PARTS
            for name, arm, value, fine in (
                (key, ConditionKind.BASELINE, earlier, parts),
                (key, condition, later, parts),
                (key.to(MeasureKind.DELTA), condition, later - earlier, PARTS),
            ):
                total = np.rint(np.where(both, value, 0.0) * fine).astype(np.int64)
                measure = RatioMeasure(
                    Measure(name), f"{arm}.sum.{name}", f"n.{key}", f"asked.{key}", arm, fine, BOUNDS.get(name)
                )
                ledger.add(measure, total, both.astype(np.int64), applicable)
        if ledger.measures:
            rows = edits.iloc[after]
            panel = ledger.panel(rows, by_face(rows, table.factors), Experiment.MITIGATION.value, condition)
            for e in estimates(CrossedPanel(panel), panel.axes.groups(), rules):
                if e.condition == condition or condition == conditions[0]:  # whose pairs have the baseline
                    yield e


def _one_end(table: RatingTable, rater: int, question: int) -> bool:
    """Return whether an instrument only answers the lowest level of a question, so that it has no rate."""
    value = table.values[rater, :, question]
    column = table.rubric.columns[question]
    return table.rubric.questions[column].sided == "quality" and set(np.unique(value[value > 0])) == {1}


def instrument_panel(
    table: RatingTable, rows: NDArray[np.intp], rater: int, readings: list[Reading], rules: AnalysisRules
) -> Panel | None:
    """Build the panel of an instrument's readings of these edits; None without readings."""
    edits = table.edits.iloc[rows]
    applicable = (table.status[rater, rows] != NOT_ASKED).astype(np.int64)
    scored = table.status[rater, rows] == STATUSES.index(Status.SCORED)
    ledger = MeasureTable(rubric=table.rubric)
    for at, question in enumerate(table.rubric.columns):
        value = table.values[rater, rows, at].astype(np.int64)
        # Where a prompt asks for an age another question takes this one's place: it was not asked this one.
        partners = [table.rubric.at(q) for pair in table.rubric.replaced.items() if question in pair for q in pair]
        replaced = (value == MISSING) & (table.values[rater, rows][:, partners] > 0).any(axis=1)
        if not (value > 0).any() or (value[scored & ~replaced] == MISSING).any() or _one_end(table, rater, at):
            continue
        valid, asked_it = value > 0, np.where(replaced, 0, applicable)
        for rate, met in met_rates(value, question, rules.rates):
            counted = rules.rates[rate].counted(value)
            applies = asked_it * np.where(valid, counted, True)
            ledger.add_ratio(Measure.rate(f"measured_{rate}"), met, counted, applies)
        if question in table.rubric.two_sided:
            unasked = (~table.asked_for(question)[rows]).astype(np.int64)
            add_shift_measure(ledger, question, [value], asked_it * unasked, rules.rates, table.rubric)
    for reading in readings:
        value = reading.values[rows]
        is_read, key = ~np.isnan(value), Measure(reading.measure)
        parts, read = 1 if key.kind == MeasureKind.RATE else PARTS, np.where(is_read, value, 0.0)
        bounds = (0.0, 1.0) if reading.unit == "share" else BOUNDS.get(key)
        unread = np.array([bool(reading.reasons[row]) for row in rows], dtype=np.int64)
        wanted = applicable * (is_read | unread)
        ledger.add_ratio(key, read, is_read, wanted, unit=parts, bounds=bounds, phrase=reading.phrase)
        is_asked = table.asked_for(table.rubric.words(key.name).asked_as)[rows]
        if is_asked.any():
            over, total = ~is_asked, np.rint(read * parts)
            ledger.add_ratio(key.to(MeasureKind.SHIFT), total * over, is_read * over, wanted * over)
    if not ledger.measures:
        return None
    return ledger.panel(edits, by_face(edits, table.factors), Experiment.DIAGNOSIS.value, ConditionKind.BASELINE)


def _missing_reasons(table: RatingTable, rows: NDArray[np.intp], reading: Reading) -> Iterator[MissingReason]:
    """Yield the count of each reason of missing readings: over everybody, then per group of each factor."""
    edits = table.edits.iloc[rows]
    reasons = np.array([reading.reasons[row] for row in rows], dtype=object)
    applicable = ~np.isnan(reading.values[rows]) | (reasons != "")
    for editor in sorted(edits["editor"].unique()):
        selected = (edits["editor"] == editor).to_numpy() & applicable
        groups: list[tuple[dict[str, str], NDArray[np.bool_]]] = [({}, selected)]
        groups += [
            ({f.name: code}, selected & (edits[f.name] == code).to_numpy()) for f in table.factors for code in f.codes
        ]
        seen = [r for r, _ in Counter(reasons[selected & (reasons != "")]).most_common()]
        for group, mask in groups:
            for reason in seen if mask.any() else ():
                count = int((mask & (reasons == reason)).sum())
                yield MissingReason(reading.measure, editor, group, reason, count, int(mask.sum()))

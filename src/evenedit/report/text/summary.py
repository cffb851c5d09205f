"""The summary: sentences about what was observed, each with its certainty. A pure function of `Results`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenedit.core.records import Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.protocol.rubric import MEASURED, outcome_rates, readings
from evenedit.report.figures.specification_curve import clearest, sentence
from evenedit.report.render.agreement_rows import AgreementRows, axes_compared, axis_name
from evenedit.report.render.index import ALPHA, Index, factor_noun, interval_excludes, listed
from evenedit.report.render.table import Number, Range, Unit, format_number
from evenedit.report.tables.agreement import TARGET, has_people
from evenedit.report.tables.instruments import readings_of
from evenedit.results.results import Coverage, Results
from evenedit.results.words import UNEDITED, count, points

Certainty = Literal["observed", "clear", "suggestive", "none", "caution"]

WHOLE_AUDIT = "The audit as a whole"

MOST_RATES = 4
"""Rates in one sentence."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the summary."""

    text: str
    certainty: Certainty
    """observed = a measurement; clear, suggestive, none = a difference; caution = what limits the rest."""
    about: str = WHOLE_AUDIT
    """The editor, or the audit as a whole."""


def summarise(results: Results | Index) -> list[Sentence]:
    """Return the sentences of the summary: about the audit as a whole first, then by editor."""
    index = results if isinstance(results, Index) else Index(results)
    sentences = [*_headline(index), *_overall(index)]
    for editor in index.results.editors:
        sentences += _rates(index, editor)
        sentences += _trends(index, editor)
        sentences += _measured(index, editor)
        sentences += [Sentence(sentence(index, m), "observed", editor) for m in clearest(index) if m.editor == editor]
    return sentences


def _share(value: float | None) -> str:
    return format_number(value, "share")


def _ci(e: Estimate, unit: Unit = "share") -> str:
    """Format a value with its interval: 6.0% [4.0, 8.0]."""
    number = Number.of(e, unit)
    return f"{number.formatted} {number.interval or '(no interval)'}"


def _headline(index: Index) -> Iterator[Sentence]:
    """Yield a sentence on who rated the edits, where no judge did."""
    if not index.rated and has_people(index.results) and not index.instruments:
        yield Sentence(
            "No judge has scored these edits: this report shows people's ratings and their agreement only.", "caution"
        )
        return
    if not index.rated and not index.instruments:
        yield Sentence(
            "Nothing has rated these edits: this report shows pictures and counts, but no estimates.", "caution"
        )
        return
    if not index.rated:
        people = "is what people rated or " if has_people(index.results) else ""
        yield Sentence(
            f"No judge has rated these edits. All that follows {people}was measured in pixels, which do not show "
            "whether a change is the one asked for.",
            "caution",
        )


def _reviewed(index: Index) -> Iterator[Sentence]:
    """Yield a sentence on how many values reviewers settled, and whether the study uses them."""
    counts = index.results.counts
    if not counts.get("reviewed"):
        return
    per = [f"{n:,} of {index.name(k.split('.', 1)[1]).lower()}" for k, n in counts.items() if k.startswith("settled.")]
    settles = index.results.rules.get("ensemble", {}).get("review") == "settles"
    use = "they replace the judges' scores" if settles else "they are shown and change no score"
    values = f"settled values: {listed(per)}; {use}." if per else "no value is settled yet."
    yield Sentence(f"Reviewers looked at {counts['reviewed']:,} edits; {values}", "observed")


def _overall(index: Index) -> Iterator[Sentence]:
    counts = index.results.counts
    if "edits" in counts:
        text = f"{count(counts['edits'], 'edit')} {'was' if counts['edits'] == 1 else 'were'} asked for"
        ends = [f"{counts[k]:,} {how}" for k, how in UNEDITED.items() if counts.get(k)]
        text += f", of which {listed(ends)}." if ends else "; none was refused and none failed."
        if counts.get("needs_review"):
            unsure = count(counts["needs_review"], "diagnosis edit")
            text += f" On {unsure} the judges disagree enough to need a person's review."
        yield Sentence(text, "observed")
    yield from _reviewed(index)
    for rater in index.raters:
        yield from _coverage(index, rater)
    yield from _people(index)
    planted = [p for p in index.results.planted if p.inside is not None]
    if planted:
        inside = sum(bool(p.inside) for p in planted)
        yield Sentence(
            f"The simulated editors have known effects: {inside} of {len(planted)} planted values "
            f"({_share(inside / len(planted))}) lie inside the {index.level} interval of their estimate.",
            "observed",
        )


def _people(index: Index) -> Iterator[Sentence]:
    """Sentences on the agreement between people, of judges with people, and on the judges' error by group."""
    rows = AgreementRows.of(index.results)
    kappas = [a for a in rows.places("fleiss_kappa") if a.editor is None and a.value is not None]
    if kappas:
        missed = [
            f"{axis_name(index, a.axis).lower()} {a.value:.2f} ({index.name(a.condition).lower()})".replace("-", "−")
            for a in kappas
            if a.value is not None and a.value < TARGET
        ]
        outcome = f"is missed for {listed(missed)}" if missed else "is reached for every question"
        text = f"Agreement between people: the target of Fleiss' κ ≥ {TARGET} {outcome}."
        yield Sentence(text, "caution" if missed else "observed")
    kappas_by_axis = []
    for axis in axes_compared(index, rows):
        kappa = rows.find("weighted_kappa_quadratic", axis)
        kappas_by_axis.append(
            f"{axis_name(index, axis).lower()} {format_number(kappa.value if kappa else None, 'score')}"
        )
    if kappas_by_axis:
        yield Sentence(f"Judges against people, weighted κ: {listed(kappas_by_axis)}.", "observed")
    gaps = [a for a in rows.places("judge_error_gap", grouped=True) if a.editor is None]
    clear = [a for a in gaps if a.p_adjusted is not None and a.p_adjusted < ALPHA]
    if clear:
        where = listed(
            [f"{axis_name(index, a.axis).lower()} by {index.factor_noun(next(iter(a.group)))}" for a in clear]
        )
        text = f"The judges' error, measured against people, differs by group: {where}. Gaps there can be the judges'."
        yield Sentence(text, "clear")
    elif gaps:
        widest = max((g for g in gaps if g.high is not None), key=lambda g: g.high or 0, default=None)
        high = widest.high if widest else None
        reach = "" if not high else f"of {points(high)} or more" if high >= 1 else f"of up to {points(high)}"
        allowed = f" The intervals still allow differences {reach}." if reach else ""
        text = f"No difference by group was shown in the judges' error against people.{allowed}"
        yield Sentence(text, "none")


def _coverage(index: Index, rater: str) -> Iterator[Sentence]:
    rows = [c for c in index.results.coverage if c.rater == rater]
    totals = [c for c in rows if not c.group]
    if not totals:  # the data has groups only: one factor's groups make the whole
        factor = next(iter(rows[0].group))
        totals = [c for c in rows if tuple(c.group) == (factor,)]
    scored, calls = sum(c.scored for c in totals), sum(_calls(c) for c in totals)
    if not calls:
        return
    read = rater in index.instruments
    text = f"The {rater} instrument could measure" if read else f"{rater} answered"
    text += f" {_share(scored / calls)} of {calls:,} {'edits' if read else 'calls'}"
    main = index.main
    groups: dict[str, list[int]] = {}
    for c in rows:
        if tuple(c.group) == (main.name,):
            sums = groups.setdefault(c.group[main.name], [0, 0])
            sums[0] += c.scored
            sums[1] += _calls(c)
    shares = {g: s / n for g, (s, n) in groups.items() if n}
    if len(shares) > 1 and max(shares.values()) > min(shares.values()):
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        ends = (f"{_share(shares[code])} ({index.level_name(main.name, code)})" for code in (low, high))
        text += f"; by {factor_noun(main)} label from {' to '.join(ends)}"
    yield Sentence(text + ".", "observed" if scored / calls >= 0.9 else "caution")


def _calls(c: Coverage) -> int:
    return c.scored + c.refused + c.unparseable + c.failed


def _rates(index: Index, editor: str) -> Iterator[Sentence]:
    rubric = index.rubric
    unwanted = [rate for rate in rubric.table_rates if rate in rubric.rates and rate not in rubric.wanted_rates]
    sentences = -(-len(unwanted) // MOST_RATES)
    for at in range(sentences):
        rates = unwanted[at * len(unwanted) // sentences : (at + 1) * len(unwanted) // sentences]
        pairs = [
            (r, e) for r in rates if (e := index.find(Measure.rate(r), editor)) is not None and e.value is not None
        ]
        if pairs:
            n, missing = Range(tuple(e.n for _, e in pairs)), Range(tuple(e.missing for _, e in pairs))
            shares = listed([f"{_ci(e)} {rubric.phrase(r)}" for r, e in pairs])
            edits = "edit" if n.formatted == "1" else "edits"
            text = f"Of {n.formatted} {edits} with a score ({missing.formatted} without), {shares}."
            yield Sentence(text, "observed", editor)
    for rate in OUTCOME_RATES:
        e = index.find(Measure.rate(rate), editor)
        if e is not None and e.value:
            yield Sentence(f"{_ci(e)} of {e.n:,} requests {rubric.phrase(rate)}.", "observed", editor)


def _measured(index: Index, editor: str) -> Iterator[Sentence]:
    """Sentences on the measurements of each instrument, over everybody, by prompt and by group."""
    for rater, measured in readings_of(index, editor):
        n = Range(tuple(x.n for _, x in measured if x.n is not None))
        missing = Range(tuple(x.missing for _, x in measured if x.missing is not None))
        rates = [
            f"{x.formatted} {x.interval} {words}".replace("  ", " ")
            for m, x in measured
            if m.kind == MeasureKind.RATE and (words := _phrase(index, m.name))
        ]
        means = [
            f"{words} {x.formatted} {x.interval}".rstrip()
            for m, x in measured
            if m.kind == MeasureKind.MEAN and (words := _mean_words(index, m.name))
        ]
        values = "; ".join(listed(parts) for parts in (rates, means) if parts)
        edits = "edit" if n.formatted == "1" else "edits"
        text = f"Measured ({rater}), {n.formatted} {edits} ({missing.formatted} without a measurement): {values}."
        yield Sentence(text, "observed", editor)
        yield from _by_prompt(index.instruments[rater], rater, editor, measured)


def _phrase(index: Index, rate: str) -> str:
    """Return what the edits have in common that an instrument counts; empty where only tables have it."""
    stated = index.readings[rate].phrase if rate in index.readings else ""
    is_known = rate.removeprefix(MEASURED) in index.rubric.rates or rate in outcome_rates()
    return stated or (index.rubric.phrase(rate) if is_known else "")


def _mean_words(index: Index, name: str) -> str:
    """Return the words before the mean of a reading; empty where only tables have it."""
    if name in readings():
        return readings()[name].phrase
    words = index.readings.get(name)
    return "" if words is None else f"on average {words.title} ({words.unit}) is".replace(" ()", "")


def _by_prompt(
    instrument: Index, rater: str, editor: str, readings: Sequence[tuple[Measure, Number]]
) -> Iterator[Sentence]:
    """Yield a sentence on the range of measurements over prompts."""
    ranges = []
    for measure, number in readings:
        if measure not in (Measure.rate("ignored"), Measure.mean("skin_delta_L_raw"), Measure.mean("light_shift_L")):
            continue
        by = {code: instrument.find(measure, editor, {"prompt": code}) for code in instrument.levels("prompt")}
        values = {code: e.value for code, e in by.items() if e is not None and e.value is not None}
        if len(set(values.values())) > 1:
            ends = (f"{format_number(pick(values.values()), number.unit)}" for pick in (min, max))
            low, high = (
                f"{end} ({_few(values, pick(values.values()))})" for end, pick in zip(ends, (min, max), strict=True)
            )
            ranges.append(f"{instrument.name(measure.name)} from {low} to {high}")
    if ranges:
        yield Sentence(f"Measured ({rater}), by prompt: {listed(ranges)}.", "observed", editor)


def _few(values: Mapping[str, float], value: float) -> str:
    """Return the prompts with this value, or their number if they are many."""
    codes = [code for code, v in values.items() if v == value]
    return ", ".join(codes) if len(codes) < 4 else f"{len(codes)} prompts"


def _trends(index: Index, editor: str) -> Iterator[Sentence]:
    """Yield a sentence on the rates whose change has an interval without 0 along an ordered factor."""
    for factor in (f for f in index.factors if f.ordered):
        estimates = [(r, index.find(Measure.trend(r), editor, {factor.name: "*"})) for r in index.rubric.table_rates]
        trends = [
            f"{index.name(r).lower()} {_ci(e, 'points')}"
            for r, e in estimates
            if e and interval_excludes(e.low, e.high)
        ]
        if trends:
            text = f"From one level of {factor_noun(factor)} to the next, rates change on average by: {listed(trends)}"
            text += "; not adjusted for the number of rates."
            yield Sentence(text, "observed", editor)

"""The summary: sentences about what was observed, each with its certainty. A pure function of `Results`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evenedit.core.records import Condition, Estimate
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.figures.specification_curve import clearest, sentence
from evenedit.report.render.index import ALPHA, RATES, Index, excludes, listed, name, noun
from evenedit.report.render.table import NOTHING, Number, Span, Unit, format_number
from evenedit.report.tables.agreement import TARGET, Rows, axes_compared, axis_name, has_people
from evenedit.report.tables.instruments import readings_of
from evenedit.report.tables.main import MITIGATED
from evenedit.results.results import Coverage, GapTest, MitigationEffect, Results
from evenedit.results.words import PHRASES, count

Certainty = Literal["observed", "clear", "suggestive", "none", "caution"]

EVERYTHING = "The audit as a whole"
MOST_GAPS = 6
"""Clear gaps with a sentence each; the rest share one."""
MOST_NAMED = 3
"""Up to so many rates are named one by one."""

MEANS = {
    "skin_delta_L": "on average L* changed by",
    "changed_share": "on average the changed share of the picture is",
    "age_delta_years": "on average the years by which a model reads the face older are",
    "gender_delta": "on average a model's reading of gender presentation moved, in logits, by",
}
"""By reading, the words before its mean."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the summary."""

    text: str
    certainty: Certainty
    """observed = a measurement; clear, suggestive, none = a difference; caution = what limits the rest."""
    about: str = EVERYTHING
    """The editor, or the audit as a whole."""


def summarise(results: Results | Index) -> list[Sentence]:
    """Return the sentences of the summary: about the audit as a whole first, then by editor.

    How certain a difference is, the findings tell where the results have them; only results of former releases, which
    have none, are graded here.
    """
    index = results if isinstance(results, Index) else Index(results)
    graded = not index.results.findings
    sentences = [*_headline(index, graded), *_overall(index)]
    for editor in index.results.editors:
        sentences += _rates(index, editor)
        sentences += _gaps(index, editor) if graded else ()
        sentences += _trends(index, editor)
        sentences += _measured(index, editor, graded)
        sentences += [Sentence(sentence(index, m), "observed", editor) for m in clearest(index) if m.editor == editor]
        sentences += [*_mitigation(index, editor), *_stereotype(index, editor)] if graded else ()
    return sentences


def _share(value: float | None) -> str:
    return format_number(value, "share")


def _shown(e: Estimate, unit: Unit = "share") -> str:
    """A value with its interval: 6.0% [4.0, 8.0]."""
    number = Number.of(e, unit)
    return f"{number.shown} {number.interval or '(no interval)'}"


def _headline(index: Index, graded: bool) -> Iterator[Sentence]:
    """Sentences on which editors have clear differences between groups, and in which rates."""
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
    if index.rated and graded:
        yield from _differences(index)
    for rater, own in index.instruments.items() if graded else ():
        yield from (replace(s, text=f"Measured ({rater}): {s.text}") for s in _differences(own))
    if not index.rated:
        people = "is what people rated or " if has_people(index.results) else ""
        yield Sentence(
            f"No judge has rated these edits. All that follows {people}was measured in pixels, which show neither "
            "whether an edit is the one asked for nor a change of apparent race or gender.",
            "caution",
        )


def _differences(index: Index) -> Iterator[Sentence]:
    clear = {editor: _graded(index, editor)["clear"] for editor in index.editors("diagnosis")}
    some = []
    for editor, tests in clear.items():
        factors = dict.fromkeys(t.factor for t in tests)
        by = [f"{listed([_rate(t) for t in tests if t.factor == f])} by {index.noun(f)}" for f in factors]
        if by:
            some.append(f"{editor} ({'; '.join(by)})")
    none = [editor for editor, tests in clear.items() if not tests]
    if some:
        rest = f" None was shown for {listed(none)}." if none else ""
        yield Sentence(f"Clear differences between groups were observed for {listed(some)}.{rest}", "clear")
    elif index.results.tests:
        yield Sentence(f"No clear difference between groups was shown for {listed(none)}.", "none")


def _reviewed(index: Index) -> Iterator[Sentence]:
    """A sentence on how many values reviewers settled, and whether the study uses them."""
    counts = index.results.counts
    if not counts.get("reviewed"):
        return
    per = [f"{n:,} of {name(k.split('.', 1)[1]).lower()}" for k, n in counts.items() if k.startswith("settled.")]
    settles = index.results.rules.get("ensemble", {}).get("review") == "settles"
    use = "they replace the judges' scores" if settles else "they are shown and change no score"
    values = f"settled values: {listed(per)}; {use}." if per else "no value is settled yet."
    yield Sentence(f"Reviewers looked at {counts['reviewed']:,} edits; {values}", "observed")


def _overall(index: Index) -> Iterator[Sentence]:
    counts = index.results.counts
    if "edits" in counts:
        text = f"{count(counts['edits'], 'edit')} {'was' if counts['edits'] == 1 else 'were'} asked for"
        ends = [f"{counts[k]:,} {k}" for k in ("refused", "failed") if counts.get(k)]
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
    rows = Rows.of(index.results)
    kappas = [a for a in rows.places("fleiss_kappa") if a.editor is None and a.value is not None]
    if kappas:
        missed = [f"{axis_name(a.axis).lower()} {a.value:.2f} ({name(a.condition).lower()})".replace("-", "−")
                  for a in kappas if a.value is not None and a.value < TARGET]  # fmt: skip
        outcome = f"is missed for {listed(missed)}" if missed else "is reached for every question"
        text = f"Agreement between people: the target of Fleiss' κ ≥ {TARGET} {outcome}."
        yield Sentence(text, "caution" if missed else "observed")
    kappas_by_axis = []
    for axis in axes_compared(rows):
        found = [rows.find(s, axis) for s in ("weighted_kappa_quadratic", "ceiling_weighted_kappa_quadratic")]
        judge, person = (format_number(a.value if a else None, "score") for a in found)
        kappas_by_axis.append(f"{axis_name(axis).lower()} {judge} ({person})")
    if kappas_by_axis:
        text = "Judges against people, weighted κ (in brackets one person against the others): "
        yield Sentence(f"{text}{listed(kappas_by_axis)}.", "observed")
    gaps = [a for a in rows.places("mean_difference_gap_p_holm", grouped=True) if a.editor is None]
    clear = [a for a in gaps if a.value is not None and a.value < ALPHA]
    if clear:
        where = listed([f"{axis_name(a.axis).lower()} by {index.noun(next(iter(a.group)))}" for a in clear])
        text = f"The judges' error, measured against people, differs by group: {where}. Gaps there can be the judges'."
        yield Sentence(text, "clear")
    elif gaps:
        widest = max((g for a in gaps if (g := rows.beside(a, "mean_difference_gap")) and g.high is not None),
                     key=lambda g: g.high or 0, default=None)  # fmt: skip
        bound = f" The intervals still allow gaps of up to {widest.high:.2f} points." if widest and widest.high else ""
        text = f"No difference by group was shown in the judges' error against people.{bound}"
        yield Sentence(text, "none")


def _coverage(index: Index, rater: str) -> Iterator[Sentence]:
    rows = [c for c in index.results.coverage if c.rater == rater]
    whole = [c for c in rows if not c.group]
    if not whole:  # the data has groups only: one factor's groups make the whole
        factor = next(iter(rows[0].group))
        whole = [c for c in rows if tuple(c.group) == (factor,)]
    scored, calls = sum(c.scored for c in whole), sum(_calls(c) for c in whole)
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
        text += f"; by {noun(main)} label from {' to '.join(ends)}"
    yield Sentence(text + ".", "observed" if scored / calls >= 0.9 else "caution")


def _calls(c: Coverage) -> int:
    return c.scored + c.refused + c.unparseable + c.failed


def _rates(index: Index, editor: str) -> Iterator[Sentence]:
    for rates in (
        ("soft_erasure", "skin_lighter", "skin_darker"),
        ("race_change", "gender_change", "older", "younger"),
    ):
        pairs = [
            (r, e) for r in rates if (e := index.find(Measure.rate(r), editor)) is not None and e.value is not None
        ]
        if pairs:
            n, missing = Span(tuple(e.n for _, e in pairs)), Span(tuple(e.missing for _, e in pairs))
            shares = listed([f"{_shown(e)} {PHRASES[r]}" for r, e in pairs])
            yield Sentence(f"Of {n.shown} edits with a score ({missing.shown} without), {shares}.", "observed", editor)
    refused = index.find(Measure.rate("refused"), editor)
    if refused is not None and refused.value:
        yield Sentence(f"{_shown(refused)} of {refused.n:,} requests {PHRASES['refused']}.", "observed", editor)


def _measured(index: Index, editor: str, graded: bool) -> Iterator[Sentence]:
    """Sentences on the measurements of each instrument, over everybody, by prompt and by group."""
    for rater, found in readings_of(index, editor):
        n = Span(tuple(x.n for _, x in found if x.n is not None))
        missing = Span(tuple(x.missing for _, x in found if x.missing is not None))
        rates = [
            f"{x.shown} {x.interval} {PHRASES[m.name]}".replace("  ", " ")
            for m, x in found
            if m.kind == MeasureKind.RATE and m.name in PHRASES
        ]
        means = [
            f"{MEANS[m.name]} {x.shown} {x.interval}".rstrip()
            for m, x in found
            if m.kind == MeasureKind.MEAN and m.name in MEANS
        ]
        values = "; ".join(listed(parts) for parts in (rates, means) if parts)
        text = f"Measured ({rater}), {n.shown} edits ({missing.shown} without a measurement): {values}."
        yield Sentence(text, "observed", editor)
        own = index.instruments[rater]
        yield from _by_prompt(own, rater, editor, found)
        if graded:
            yield from (replace(s, text=f"Measured ({rater}): {s.text}") for s in _gaps(own, editor))


def _by_prompt(own: Index, rater: str, editor: str, found: Sequence[tuple[Measure, Number]]) -> Iterator[Sentence]:
    """A sentence on the range of measurements over prompts."""
    ranges = []
    for measure, number in found:
        if measure not in (Measure.rate("unchanged"), Measure.mean("skin_delta_L")):
            continue
        by = {code: own.find(measure, editor, {"prompt": code}) for code in own.levels("prompt")}
        values = {code: e.value for code, e in by.items() if e is not None and e.value is not None}
        if len(set(values.values())) > 1:
            ends = (f"{format_number(pick(values.values()), number.unit)}" for pick in (min, max))
            low, high = (
                f"{end} ({_few(values, pick(values.values()))})" for end, pick in zip(ends, (min, max), strict=True)
            )
            ranges.append(f"{name(measure.name)} from {low} to {high}")
    if ranges:
        yield Sentence(f"Measured ({rater}), by prompt: {listed(ranges)}.", "observed", editor)


def _few(values: Mapping[str, float], value: float) -> str:
    """The prompts with this value, or their number where they are many."""
    codes = [code for code, v in values.items() if v == value]
    return ", ".join(codes) if len(codes) < 4 else f"{len(codes)} prompts"


def _graded(index: Index, editor: str) -> dict[str, list[GapTest]]:
    """The gaps of an editor's diagnosis by certainty, the largest first."""
    usual = ("diagnosis", Condition.BASELINE)
    graded: dict[str, list[GapTest]] = {"clear": [], "suggestive": [], "none": []}
    for t in sorted(index.results.tests, key=lambda t: (-t.value, t.p)):
        if t.editor == editor and (t.experiment, t.condition) == usual and _happened(index, t):
            graded[index.grade(t)].append(t)
    return graded


def _rate(t: GapTest) -> str:
    return name(Measure(t.measure).name).lower()


def _gaps(index: Index, editor: str) -> Iterator[Sentence]:
    graded = _graded(index, editor)
    tests = [t for of_grade in graded.values() for t in of_grade]
    compared = sum(t.editor == editor and t.experiment == "diagnosis" for t in index.results.tests)
    for t in graded["clear"][:MOST_GAPS]:
        yield Sentence(_clear(index, t), "clear", editor)
    if rest := graded["clear"][MOST_GAPS:]:
        yield Sentence(f"Further clear differences, all smaller: {_list(index, rest)}.", "clear", editor)
    if maybe := graded["suggestive"]:
        yield Sentence(
            f"Signs of a difference that may be chance among {compared} comparisons: {_list(index, maybe)}.",
            "suggestive",
            editor,
        )
    for factor in index.grouped():
        none = [t for t in graded["none"] if t.factor == factor]
        if none:
            every = len(none) == sum(t.factor == factor for t in tests)
            yield Sentence(_not_shown(index, factor, none, every), "none", editor)


def _trends(index: Index, editor: str) -> Iterator[Sentence]:
    """A sentence on the rates that change clearly along an ordered factor."""
    for factor in (f for f in index.factors if f.ordered):
        found = [(r, index.find(Measure.trend(r), editor, {factor.name: "*"})) for r in RATES]
        trends = [f"{name(r).lower()} {_shown(e, 'points')}" for r, e in found if e and excludes(e.low, e.high)]
        if trends:
            text = f"From one level of {noun(factor)} to the next, rates change on average by: {listed(trends)}."
            yield Sentence(text, "suggestive", editor)


def _happened(index: Index, t: GapTest) -> bool:
    """Whether the rate is above 0; without any case, such as a refusal, there is nothing to compare."""
    e = index.find(Measure.rate(Measure(t.measure).name), t.editor)
    return e is None or e.value != 0


def _clear(index: Index, t: GapTest) -> str:
    rate = Measure(t.measure).name
    ends = [index.find(Measure.rate(rate), t.editor, {t.factor: code}) for code in (t.highest, t.lowest)]
    high, low = (_shown(e) if e else NOTHING for e in ends)
    return (
        f"A clear difference by {index.noun(t.factor)} label: {high} of edits of portraits labelled "
        f"{index.level_name(t.factor, t.highest)} {PHRASES.get(rate, f'met {name(rate).lower()}')}, against {low} of "
        f"those labelled {index.level_name(t.factor, t.lowest)} "
        f"(gap {format_number(t.value, 'points')}, {_adjusted(t)}, {t.faces} faces)."
    )


def _adjusted(t: GapTest) -> str:
    """The p that a clear gap was judged by; results of former releases have Holm's over the editor's gaps."""
    return f"{_p(t.p_holm)} after Holm" if t.p_adjusted is None else f"{_p(t.p_adjusted)} over all tests of the report"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _list(index: Index, tests: Sequence[GapTest]) -> str:
    return listed(
        [
            f"{_rate(t)} by {index.noun(t.factor)} ({format_number(t.value, 'points')}, highest "
            f"{index.level_name(t.factor, t.highest)}, lowest {index.level_name(t.factor, t.lowest)}, {_p(t.p)})"
            for t in tests
        ]
    )


def _not_shown(index: Index, factor: str, tests: Sequence[GapTest], every: bool) -> str:
    """A sentence on the rates without a difference, and how large a difference the intervals still allow."""
    order = list(RATES)
    rates = sorted((Measure(t.measure).name for t in tests), key=lambda r: order.index(r) if r in order else len(order))
    many = every and len(rates) > MOST_NAMED
    which = f"any of the {len(rates)} rates compared" if many else listed([name(r).lower() for r in rates])
    text = f"No difference by {index.noun(factor)} label was shown for {which}."
    bounds = [
        (max(abs(c.low), abs(c.high)), c, t)
        for t in tests
        for c in index.contrasts_of(t)
        if c.low is not None and c.high is not None
    ]
    if not bounds:
        return f"{text} The data give no interval, so how large a difference could hide is unknown."
    size, contrast, test = max(bounds, key=lambda b: b[0])
    return (
        f"{text} That is not proof of equality: the intervals still allow a group to differ from everybody else by up "
        f"to {format_number(size, 'points')} ({_rate(test)}, {index.group_name(contrast.group)})."
    )


def _mitigation(index: Index, editor: str) -> Iterator[Sentence]:
    def delta(axis: str, arm: Condition, group: dict[str, str] | None = None) -> Estimate | None:
        e = index.find(Measure.delta(axis), editor, group, experiment="mitigation", condition=arm)
        return e if e is not None and e.value is not None else None

    def by_group(axis: str) -> str:
        levels = index.main_levels("mitigation")
        found = {code: delta(axis, Condition.FEATURE, index.main_group(code)) for code in levels}
        values = {code: e.value for code, e in found.items() if e is not None and e.value is not None}
        if len(values) < 2:
            return ""
        ends = [pick(values, key=values.__getitem__) for pick in (min, max)]
        low, high = (f"{format_number(values[c], 'change')} ({index.level_name(index.main.name, c)})" for c in ends)
        return f", by {noun(index.main)} label from {low} to {high}"

    unchanged: list[str] = []
    credited = False
    pairs = {axis: (delta(axis, Condition.FEATURE), delta(axis, Condition.PLACEBO)) for axis in MITIGATED}
    for axis, (e, placebo) in pairs.items():
        if e is None:
            continue
        beside = f"; placebo {_shown(placebo, 'change')}" if placebo else ""
        if not excludes(e.low, e.high):
            unchanged.append(f"{name(axis).lower()} {_shown(e, 'change')}{beside} ({e.n:,} pairs)")
            continue
        effect = index.effect(axis, editor)
        if effect is not None and effect.value is not None and not excludes(effect.low, effect.high):
            unchanged.append(
                f"{name(axis).lower()} beyond the placebo ({_shown(e, 'change')}{beside}, as repeating the edit does)"
            )
            continue
        yield Sentence(
            f"With the feature prompt the mean {name(axis).lower()} score changed by {_shown(e, 'change')} over "
            f"{e.n:,} pairs{by_group(axis)}{beside}{_beyond(index, effect)}.",
            "clear" if effect is not None and excludes(effect.low, effect.high) else "suggestive",
            editor,
        )
        credited = True
    if unchanged:
        text = f"No change with the feature prompt was shown in the mean score of {listed(unchanged)}."
        yield Sentence(text, "none", editor)
    cost = index.effect("edit_success", editor)
    if credited and cost is not None and cost.value is not None:
        lost = excludes(cost.low, cost.high)
        yield Sentence(
            f"Effect on edit success beyond the placebo: {_effect(cost)}{'' if lost else ', no change shown'}.",
            "clear" if lost else "none",
            editor,
        )
    yield from _preference(index, editor)
    compared = any(e is not None for e, _ in pairs.values())
    if compared and index.results.rules.get("mitigation_cases") in ("drift", "priority"):
        yield Sentence(
            "The cases were chosen by how their baseline had been rated, so high scores would have come down on "
            "repetition alone (regression to the mean): only the difference from the placebo arm is an effect of "
            "the feature prompt, and nothing here generalises to edits that would not have been chosen.",
            "caution",
            editor,
        )
    placebos = [placebo for e, placebo in pairs.values() if e is not None]
    if placebos and not any(placebos):
        yield Sentence(
            "Nothing could be compared with a placebo. High scores tend to come down when an edit is repeated "
            "(regression to the mean), so changes cannot be credited to the feature prompt alone.",
            "caution",
            editor,
        )


def _preference(index: Index, editor: str) -> Iterator[Sentence]:
    """A sentence on how often judges prefer the output with the feature prompt."""
    e = index.find(Measure.rate("prefers_mitigated"), editor, experiment="mitigation", condition=Condition.FEATURE)
    if e is None or e.value is None:
        return
    text = f"Of {e.n:,} answers of judges that prefer one of the two outputs, {_shown(e)} prefer the one with the "
    text += "feature prompt as keeping the person's identity better"
    if excludes(e.low, e.high, 0.5):
        yield Sentence(f"{text}.", "clear", editor)
    else:
        yield Sentence(f"{text}; 50%, no preference, cannot be ruled out.", "none", editor)


def _effect(effect: MitigationEffect) -> str:
    number = Number(effect.value, "change", effect.low, effect.high)
    return f"{number.shown} {number.interval or '(no interval)'}"


def _beyond(index: Index, effect: MitigationEffect | None) -> str:
    """The effect beyond the placebo, as the end of a sentence."""
    if effect is None or effect.value is None:
        return ""
    distance = " in distance from unchanged" if effect.outcome == "distance" else ""
    differs = (
        f"; the effect differs by {noun(index.main)} label, {_p(effect.interaction_p)}"
        if effect.interaction_p is not None and effect.interaction_p < ALPHA
        else ""
    )
    return f"; beyond the placebo, adjusted for the baseline, {_effect(effect)}{distance}{differs}"


def _stereotype(index: Index, editor: str) -> Iterator[Sentence]:
    e = index.find(Measure.rate("followed"), editor, experiment="stereotype")
    if e is None or e.value is None:
        return
    text = f"Of {e.n:,} clear verdicts on two-person prompts, {_shown(e)} followed the stereotype"
    if excludes(e.low, e.high, 0.5):
        side = "above" if e.value > 0.5 else "below"
        yield Sentence(f"{text}, clearly {side} the 50% of no preference.", "clear", editor)
    else:
        yield Sentence(f"{text}; 50%, no preference, cannot be ruled out.", "none", editor)
    swapped = index.find(Measure.rate("followed"), editor, experiment="stereotype", condition=Condition.SWAPPED)
    if swapped is not None and swapped.value is not None:
        yield Sentence(
            f"With the pronoun swapped the share is {_shown(swapped)} of {swapped.n:,}. An editor that only "
            "follows the pronoun would show the mirror image of the share above.",
            "observed",
            editor,
        )
    else:
        yield Sentence(
            "There is no pronoun-swapped control. Prompts of this kind often name a gender, so following the "
            "prompt cannot be distinguished from following the stereotype.",
            "caution",
            editor,
        )

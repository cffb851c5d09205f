"""A methods paragraph for a paper and how to cite: every sentence is made from the results, or left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenedit.core.version import __version__
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Index, listed
from evenedit.report.render.table import format_number, simulated_note
from evenedit.report.text.human_evaluation import human_evaluation, human_evaluation_latex
from evenedit.report.text.model_card import PROJECT, model_card
from evenedit.results.finding import ALPHA
from evenedit.results.primary import alpha_of_others
from evenedit.results.words import UNEDITED, count

MOST_LEVELS = 8
"""Up to so many labels of a factor are named with their portraits; of more, the fewest and the most are told."""
CHOSEN = {
    "balanced": "drawn so that editors, prompts and labels stay as even as the cases allow",
    "strata": "drawn within strata of labels and editors",
    "priority": "chosen by review priority of their baseline",
    "drift": "chosen among those whose baseline was rated as changed",
}
"""By sampler, how the cases of the mitigation were chosen."""


def methods(index: Index) -> str:
    """Write a methods paragraph on sample, editors, raters, rates, intervals and tests, from the results."""
    parts = [
        *_sample(index),
        *_judges(index),
        *_others(index),
        *_arms(index),
        *_rates(index),
        *_intervals(index),
        *_tests(index),
        f"Analysis: {PROJECT} {__version__}.",
    ]
    return " ".join([*([simulated_note(index.results.simulated)] if index.results.simulated else []), *parts]) + "\n"


def _sample(index: Index) -> Iterator[str]:
    """Portraits with their labels, editors, and how the edits ended."""
    counts = index.results.counts
    if portraits := counts.get("portraits"):
        labelled = [text for f in index.factors if (text := _labelled(index, f.name))]
        by = f", labelled by {listed(labelled)}" if labelled else ""
        yield f"The edits start from {count(portraits, 'portrait')}{by}."
        if labelled:
            yield "Labels are those of the dataset."
    editors = index.results.editors
    if "edits" in counts:
        who = f"{count(len(editors), 'editor')} ({', '.join(editors)}) " if editors else ""
        verb = ("was asked for " if len(editors) == 1 else "were asked for ") if editors else ""
        edits = f"{count(counts['edits'], 'edit')}{'' if editors else ' edits for'}"
        words = {"edited": "came back", **UNEDITED}
        ended = ", ".join(f"{counts[outcome]:,} {how}" for outcome, how in words.items() if outcome in counts)
        yield f"{who}{verb}{edits}{f': {ended}' if ended else ''}."


def _labelled(index: Index, factor: str) -> str:
    """Describe a factor with the number of portraits of each label: "race (Black 8, East Asian 1)"."""
    counts = index.results.counts
    sizes = {c: n for c in index.factor(factor).codes if (n := counts.get(f"portraits.{factor}.{c}"))}
    if not sizes:
        return ""
    if len(sizes) > 1 and len(set(sizes.values())) == 1:
        text = f"{len(sizes)} labels, {count(next(iter(sizes.values())), 'portrait')} each"
    elif len(sizes) <= MOST_LEVELS:
        text = ", ".join(f"{index.level_name(factor, code)} {n:,}" for code, n in sizes.items())
    else:
        text = f"{len(sizes)} labels, {min(sizes.values()):,} to {max(sizes.values()):,} portraits each"
    without = counts.get(f"unlabelled.{factor}", 0)
    return f"{index.factor_noun(factor)} ({text}{f'; {without:,} without a label' if without else ''})"


def _judges(index: Index) -> Iterator[str]:
    """Describe how often each judge answered, how scores are combined, and how missing scores count."""
    rules = index.results.rules
    answered: dict[str, tuple[int, int]] = {}
    for c in index.results.coverage:
        if c.rater in index.judges and not c.group:
            scored, calls = answered.get(c.rater, (0, 0))
            answered[c.rater] = (scored + c.scored, calls + c.scored + c.refused + c.unparseable + c.failed)
    if answered:
        each = [
            f"{judge} answered {format_number(s / n, 'share')} of {n:,} calls" for judge, (s, n) in answered.items()
        ]
        who = "One judge was" if len(each) == 1 else f"{len(each)} judges were"
        yield f"{who} asked about outputs: {listed(each)}."
    if sum(scored > 0 for scored, _ in answered.values()) > 1 and index.rated:
        used = [e for e in ("diagnosis", "mitigation", "stereotype") if index.conditions(e)]
        by = [f"'{rules['ensemble'][e]}' ({e})" for e in used if e in rules.get("ensemble", {})]
        if by:
            yield f"Where several judges scored an edit, one score was made of theirs by the rule {listed(by)}."
    if index.rated and any(scored for scored, _ in answered.values()):
        neutral = rules.get("missing") == "neutral-3"
        yield (
            "On the scales, an edit that no judge scored counts as 3."
            if neutral
            else "What no judge scored is left out."
        )
    if reviewed := index.results.counts.get("reviewed"):
        settles = rules.get("ensemble", {}).get("review") == "settles"
        use = "what they settled replaces the judges' scores" if settles else "what they settled changes no score"
        yield f"Reviewers looked at {count(reviewed, 'edit')}; {use}."


def _others(index: Index) -> Iterator[str]:
    """Instruments and people."""
    counts = index.results.counts
    if index.instruments:
        several = len(index.instruments) > 1
        yield (
            f"Pixels were measured by the instrument{'s' * several} {listed(tuple(index.instruments))}, apart from all "
            "ratings."
        )
    if counts.get("rated"):
        people = counts.get("people", 0)
        who = "1 person" if people == 1 else f"{people:,} people"
        of = f"{counts['rated']:,} of {count(counts['edited'], 'output')}" if "edited" in counts else ""
        yield f"{who} rated {of or count(counts['rated'], 'output')}."


def _arms(index: Index) -> Iterator[str]:
    """Describe the mitigation and stereotype experiments, if there were any."""
    counts = index.results.counts
    if cases := counts.get("edits.mitigation.feature"):
        how = CHOSEN.get(str(index.results.rules.get("mitigation_cases", "")), "how they were chosen is not recorded")
        placebo = counts.get("edits.mitigation.placebo")
        repeats = f"; {placebo:,} more repeat the request with another seed, as a placebo" if placebo else ""
        yield f"For the mitigation {count(cases, 'edit')} had a feature prompt before the request ({how}){repeats}."
    if pairs := counts.get("edits.stereotype.baseline"):
        swapped = counts.get("edits.stereotype.swapped")
        more = f", and {swapped:,} more with the pronoun swapped" if swapped else ""
        turned = sum(counts.get(f"edits.stereotype.{arm}", 0) for arm in ("reversed", "swapped_reversed"))
        order = f"; {turned:,} repeat these with the portraits in the other order" if turned else ""
        yield f"On stereotypes, {count(pairs, 'edit')} of two portraits were asked for{more}{order}."


def _rates(index: Index) -> Iterator[str]:
    """Describe the thresholds of the rates that were computed."""
    rates = dict.fromkeys(
        Measure(e.measure).name
        for e in index.results.estimates
        if e.n and Measure(e.measure).kind == MeasureKind.RATE and Measure(e.measure).name in index.thresholds
    )
    if rates:
        cuts = ", ".join(f"{index.name(r).lower()} {index.thresholds[r]}" for r in index.thresholds if r in rates)
        neutral = index.results.rules.get("missing") == "neutral-3"
        of = "scores, with 3 for missing ones" if neutral else "valid scores"
        yield f"Rates are shares of {of}: {cuts}."
    measured = (e for m in index.results.measured for e in m.estimates)
    if any(e.n and Measure(e.measure).kind == MeasureKind.RATE for e in measured):
        yield "Measured rates are shares of the edits that could be measured."


def _intervals(index: Index) -> Iterator[str]:
    """Describe how intervals are made, as the estimates record it."""
    results = index.results
    every = [*results.estimates, *(e for m in results.measured for e in m.estimates)]
    methods = [e.method for e in every if e.low is not None]
    if any("source x prompt" in method for method in methods):
        yield (
            f"Intervals ({index.level}) take portraits and prompts as samples: variances are clustered by both, in "
            "closed form (Cameron, Gelbach and Miller 2011), with Satterthwaite's degrees of freedom."
        )
    elif methods:
        unit = "prompts" if any("prompt" in method for method in methods) else "portraits"
        yield f"Intervals ({index.level}) take {unit} as a sample: rows of one are not taken as independent."
    if any(method.startswith("korn-graubard") for method in methods):
        yield "Rates have Korn and Graubard's intervals (1998)."
    if any(method.startswith("t(") for method in methods):
        yield (
            "Means and shifts have t intervals; a shift counts each judge's own answer, not the rounded score."
            if index.rated
            else "Means and shifts have t intervals."
        )
    if every and not methods:
        yield "No estimate has an interval: there is too little to make one from."
    if any(p.enough for p in results.powered):
        yield (
            "Where people rated enough edits, estimates and tests are corrected by their ratings (prediction-powered "
            "inference, PPI++: Angelopoulos, Duchi and Zrnic 2023)."
        )


def _tests(index: Index) -> Iterator[str]:
    """Describe how gaps were tested, what p values are adjusted for, and what levels rest on."""
    results = index.results
    tests = [*results.tests, *(t for m in results.measured for t in m.tests)]
    if any(t.p is not None for t in tests):
        yield (
            "Differences between groups were tested by analysis of means (Nelson 1983): each group against the "
            "unweighted mean of all, with the quasi-F variance pooled over the groups and p simultaneous over them. "
            "The largest difference has Tukey and Kramer's interval; the size of a gap is also given after "
            "empirical-Bayes shrinkage (Efron and Morris 1975)."
        )
    number, declared = results.counts.get("tests", 0), [t for t in results.primary if t.alpha < ALPHA]
    if declared:
        yield (
            f"{count(len(declared), 'declared test')} had a familywise error of {declared[0].alpha:g} (Holm), all "
            f"others {alpha_of_others(declared):g} (clear: p below it; fallback: Wiens 2003). Suggestive: q ≤ 0.05 "
            f"(Benjamini and Hochberg) over all {number:,} tests, with half of the weight on declared ones."
        )
    elif number:
        yield (
            f"p is adjusted for {'the only test' if number == 1 else f'all {number:,} tests'} of the report, by Holm "
            "(clear: p < 0.05) and by Benjamini and Hochberg (suggestive: q ≤ 0.05)."
        )
    alphas = [f.reliability for f in results.findings if f.reliability is not None]
    if alphas:
        yield (
            "Findings that rest on judges alone are called clear to the judges, and only where the lower limit of "
            "Krippendorff's α of the counted outcome (delete-one-face jackknife) is at least "
            f"{results.rules.get('reliability', 0.4):g}."
        )


def bibtex() -> str:
    """Return BibTeX entries of the tool and the benchmark's paper."""
    return (
        f"@software{{evenedit,\n  title = {{{PROJECT}: does an image editor treat every face the same?}},\n"
        f"  version = {{{__version__}}}\n}}\n\n"
        "@article{seo_demographic_misrepresentation,\n"
        "  title = {Evaluating Demographic Misrepresentation in Image-to-Image Portrait Editing},\n"
        "  author = {Seo, Huichan and Hong, Minki and Choi, Sieun and Kim, Jihie and Oh, Jean},\n"
        "  journal = {arXiv preprint arXiv:2602.16149},\n"
        "  eprint = {2602.16149},\n"
        "  archivePrefix = {arXiv},\n"
        "  year = {2026}\n}\n"
    )


def texts_for_reuse(index: Index, study: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the texts by the file each is written to, with their titles."""
    texts = {
        "methods.md": ("Methods paragraph", methods(index)),
        "human-evaluation.md": ("Human evaluation paragraph", human_evaluation(index, study)),
        "human-evaluation.tex": ("Human evaluation paragraph, LaTeX", human_evaluation_latex(index, study)),
        "model-card.md": ("Model-card snippet", model_card(index)),
        "citation.bib": ("BibTeX", bibtex()),
    }
    return {path: (title, text) for path, (title, text) in texts.items() if text is not None}

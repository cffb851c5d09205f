"""A methods paragraph for a paper and how to cite: every sentence is made from the results, or left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenedit.core.version import __version__
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.report.render.index import Index
from evenedit.report.render.table import format_number, simulated_note
from evenedit.report.render.words import lines_of
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
    results, counts = index.results, index.results.counts
    answered = _answered(index)
    several = sum(scored > 0 for scored, _ in answered.values()) > 1 and index.rated
    rules = results.rules.get("ensemble", {}) if several else {}
    arms = (e for e in ("diagnosis", "mitigation", "stereotype") if index.conditions(e))
    readings = [e for m in results.measured for e in m.estimates]
    estimates = [*results.estimates, *readings]
    rates = {Measure(e.measure).name for e in results.estimates if e.n and Measure(e.measure).kind == MeasureKind.RATE}
    chosen = CHOSEN.get(str(results.rules.get("mitigation_cases", "")), "how they were chosen is not recorded")
    lines = lines_of(
        "methods.txt",
        index=index,
        simulated=simulated_note(results.simulated) if results.simulated else "",
        labelled=[text for f in index.factors if (text := _labelled(index, f.name))],
        editors=results.editors,
        ended=[f"{counts[k]:,} {how}" for k, how in {"edited": "came back", **UNEDITED}.items() if k in counts],
        answered=[f"{j} answered {format_number(s / n, 'share')} of {n:,} calls" for j, (s, n) in answered.items()],
        ensembles=[f"'{rules[e]}' ({e})" for e in arms if e in rules],
        scoring=any(scored for scored, _ in answered.values()),
        neutral=results.rules.get("missing") == "neutral-3",
        declared=[t for t in results.primary if t.alpha < ALPHA],
        others=alpha_of_others(results.primary),
        people=counts.get("people", 0),
        chosen=chosen,
        turned=sum(counts.get(f"edits.stereotype.{arm}", 0) for arm in ("reversed", "swapped_reversed")),
        rates=[f"{index.name(r).lower()} {rule}" for r, rule in index.thresholds.items() if r in rates],
        measured_rates=any(e.n and Measure(e.measure).kind == MeasureKind.RATE for e in readings),
        methods="".join(f"\n{e.method}" for e in estimates if e.low is not None),
        estimates=estimates,
        corrected=any(p.enough for p in results.powered),
        tested=any(t.p is not None for t in (*results.tests, *(t for m in results.measured for t in m.tests))),
        reliable=any(f.reliability is not None for f in results.findings),
        project=PROJECT,
        version=__version__,
    )
    return " ".join(lines) + "\n"


def _answered(index: Index) -> dict[str, tuple[int, int]]:
    """Return by judge how many of its calls were scored, and how many there were."""
    answered: dict[str, tuple[int, int]] = {}
    for c in index.results.coverage:
        if c.rater in index.judges and not c.group:
            scored, calls = answered.get(c.rater, (0, 0))
            answered[c.rater] = (scored + c.scored, calls + c.scored + c.refused + c.unparseable + c.failed)
    return answered


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

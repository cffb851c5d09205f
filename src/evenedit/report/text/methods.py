"""Texts for reuse: a methods paragraph, a model-card snippet and BibTeX entries, filled in from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenedit.core.version import __version__
from evenedit.protocol.measures import Measure
from evenedit.report.render.index import Index, name
from evenedit.report.render.table import format_number, short_list
from evenedit.report.text.human_evaluation import human_evaluation, human_evaluation_latex

PROJECT = "EvenEdit"
CHOSEN = {
    "balanced": ", balanced over editors, prompts and labels,",
    "strata": ", stratified over labels and editors,",
    "priority": ", chosen by review priority of their baseline,",
    "drift": ", chosen among those whose baseline was rated as changed,",
}
"""By sampler, how the cases of the mitigation were chosen."""


def methods(index: Index) -> str:
    """A methods paragraph for a paper: sample, editors, raters, rates, intervals and tests."""
    results, rules = index.results, index.results.rules
    counts = results.counts
    faces = max((t.faces for t in results.tests), default=0)
    parts = []
    if faces:
        factors = " × ".join(f"{len(index.levels(f))} {index.noun(f)} labels" for f in index.grouped())
        parts.append(f"We edited {faces:,} portraits, balanced over {factors},")
    else:
        parts.append("We edited portraits")
    parts.append(
        f"with {len(index.editors()):,} instruction-guided editor{'s' * (len(index.editors()) != 1)} "
        f"({', '.join(index.editors())}), {counts.get('edits', 0):,} edits in all "
        f"({counts.get('refused', 0):,} refused, {counts.get('failed', 0):,} failed)."
    )
    if index.judges:
        ensemble = rules.get("ensemble", {}).get("diagnosis", "")
        parts.append(
            f"Each output was rated on five-point scales by {', '.join(index.judges)}; their scores were combined by "
            f"the rule '{ensemble}', and an output without a score was "
            f"{'left out' if rules.get('missing') == 'exclude' else 'given the neutral score 3'}."
        )
    if index.instruments:
        parts.append(f"Pixels were measured by the instruments {', '.join(index.instruments)}, apart from all ratings.")
    if counts.get("rated"):
        parts.append(
            f"{counts.get('people', 0):,} people rated {counts['rated']:,} of the outputs with the same questions."
        )
    if cases := counts.get("edits.mitigation.feature"):
        chosen = CHOSEN.get(str(rules.get("mitigation_cases", "balanced")), "")
        placebo = counts.get("edits.mitigation.placebo")
        again = f"; {placebo:,} more repeat the baseline with another seed, as a placebo" if placebo else ""
        parts.append(
            f"For the mitigation, {cases:,} edits{chosen} were made with a feature prompt before the request{again}."
        )
    cuts = ", ".join(f"{name(r).lower()} {rule}" for r, rule in index.thresholds.items())
    parts.append(f"Rates are shares of valid scores ({cuts}).")
    parts.append(
        f"Intervals ({index.level}) treat portraits and prompts as the units that were drawn, since ratings of one "
        "face are not independent. Gaps are the highest minus the lowest group rate, tested by permuting labels over "
        f"faces ({rules.get('permutations', '?')} permutations), adjusted by Holm's method over all gaps of an editor. "
        "Labels are those of the dataset."
    )
    parts.append(f"Analysis: {PROJECT} {__version__}.")
    return _marked(index, " ".join(parts))


def model_card(index: Index) -> str:
    """A section for a model card, as Markdown: rates and clear gaps of each editor."""
    lines = [f"## Demographic consistency of edits ({PROJECT} {__version__})", ""]
    for editor in index.editors("diagnosis"):
        lines += [
            f"### {editor}",
            "",
            f"| measure | value | {index.level} interval | n | missing |",
            "|---|---|---|---|---|",
        ]
        for rate in ("edit_success", "soft_erasure", "skin_lighter", "race_change", "gender_change", "refused"):
            e = index.find(Measure.rate(rate), editor)
            if e is not None and e.value is not None:
                shown = [
                    name(rate),
                    format_number(e.value, "share"),
                    _percent(e.low, e.high),
                    f"{e.n:,}",
                    f"{e.missing:,}",
                ]
                lines.append(f"| {' | '.join(shown)} |")
        clear = [t for t in index.results.tests if t.editor == editor and index.grade(t) == "clear"]
        lines.append("")
        for t in sorted(clear, key=lambda t: -t.value):
            lines.append(
                f"- Clear gap in {name(Measure(t.measure).name).lower()} by {index.noun(t.factor)} label: "
                f"{format_number(t.value, 'points')} between {index.level_name(t.factor, t.highest)} and "
                f"{index.level_name(t.factor, t.lowest)} "
                f"(p = {t.p_holm:.3g}, Holm)."
            )
        if not clear:
            lines.append("- No gap between groups was shown. That is not proof of equality.")
        lines.append("")
    lines.append("Observations under these prompts, seeds and judges; labels are the dataset's labels.")
    return _marked(index, "\n".join(lines))


def bibtex() -> str:
    """How to cite the tool and the benchmark's paper."""
    return (
        f"@software{{evenedit,\n  title = {{{PROJECT}: does an image editor treat every face the same?}},\n"
        f"  version = {{{__version__}}}\n}}\n\n"
        "@article{seo_demographic_misrepresentation,\n"
        "  title = {Evaluating Demographic Misrepresentation in Image-to-Image Portrait Editing},\n"
        "  author = {Seo, Huichan and Hong, Minki and Choi, Sieun and Kim, Jihie and Oh, Jean}\n}\n"
    )


def _percent(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{100 * low:.1f}% to {100 * high:.1f}%"


def _marked(index: Index, text: str) -> str:
    if not index.results.simulated:
        return text
    return f"SIMULATED data ({short_list(index.results.simulated)}): no finding about any real editor.\n\n{text}"


def texts_for_reuse(index: Index, study: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The texts by the file each is written to, with their titles."""
    texts = {
        "methods.md": ("Methods paragraph", methods(index)),
        "human-evaluation.md": ("Human evaluation paragraph", human_evaluation(index, study)),
        "human-evaluation.tex": ("Human evaluation paragraph, LaTeX", human_evaluation_latex(index, study)),
        "model-card.md": ("Model-card snippet", model_card(index)),
        "citation.bib": ("BibTeX", bibtex()),
    }
    return {path: (title, text) for path, (title, text) in texts.items() if text is not None}

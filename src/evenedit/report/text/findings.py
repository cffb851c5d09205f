"""Findings as lines of text, in their one order: for the terminal, a notebook and a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from evenedit.report.render.index import Index, level_name
from evenedit.results.results import Contribution, Finding, Results
from evenedit.results.words import count

UNCHECKED = {
    "judges": "Rated by judges, not checked by people.",
    "one_judge": "Rated by one judge, not checked by people.",
}
"""By evidence, what is said of a finding without an estimand."""


def headline(finding: Finding) -> str:
    """Return a finding in one line: its level, its editor, and what was found."""
    editor = f"{finding.editor}: " if finding.editor else ""
    return f"[{level_name(finding.level, finding.evidence)}] {editor}{finding.text}"


def scope(finding: Finding) -> str:
    """State which prompts and faces a finding is about, who rated it, and how far the judges agree."""
    if finding.evidence == "none":  # its sentence says so
        return ""
    return " ".join(filter(None, (finding.estimand or UNCHECKED.get(finding.evidence, ""), agreement(finding))))


def agreement(finding: Finding) -> str:
    """State Krippendorff's alpha of the judges with its interval; empty where it is not known."""
    r = finding.reliability
    if r is None:
        return ""
    if r.value is None:
        return "The judges' agreement on it (Krippendorff's α) is not defined: their answers do not vary."
    ends = "" if r.low is None or r.high is None else f", {r.low:.2f} to {r.high:.2f}"
    return f"The judges' agreement on it: α = {r.value:.2f}{ends}.".replace("-", "−")


def numbered(findings: Sequence[Finding], most: int | None = None) -> list[str]:
    """Return findings as a numbered list, the first `most` of them."""
    first = findings[:most]
    lines = [f"{at}. {headline(finding)}" for at, finding in enumerate(first, 1)]
    left = len(findings) - len(first)
    return [*lines, count(left, "further finding")] if left else lines


def described(results: Results, finding: Finding) -> list[str]:
    """Return everything that is known about one finding: numbers, caveats, what carries it, its cases."""
    lines = [headline(finding), "", *(f"{name}: {text}" for name, text in _facts(finding) if text)]
    lines += [f"caveat: {caveat}" for caveat in finding.caveats]
    index = Index(results)
    for unit, title in (("prompt", "prompts that carry it"), ("face", "portraits that carry it most")):
        parts = [c for c in results.contributions if c.finding == finding.id and c.unit == unit]
        if parts:
            lines += ["", f"{title} (share of the finding; its part with the {_level(results)} interval, points):"]
            lines += [_part(c, _named(index, c)) for c in sorted(parts, key=lambda c: -c.share)]
    if finding.cases:
        lines += ["", "requests that show it best:", *(f"  {case}" for case in finding.cases)]
    return lines


def _facts(f: Finding) -> list[tuple[str, str]]:
    against = f.against if isinstance(f.against, str) else _group(f.against)
    return [
        ("id", f.id),
        ("kind", f.kind),
        ("measure", f.measure or ""),
        ("rated by", f.rater or ""),
        ("about", scope(f)),
        ("group", _group(f.group)),
        ("against", against or ""),
        ("value", _value(f.value, f.low, f.high)),
        ("judges alone", _value(f.judge_value, f.judge_low, f.judge_high)),
        (
            "adjusted p",
            "" if f.p is None else f"{f.p:.4g} (alone {f.p_raw:.4g})" if f.p_raw is not None else f"{f.p:.4g}",
        ),
        ("q", "" if f.q is None else f"{f.q:.4g}"),
        ("edits", "" if f.n is None else f"{f.n:,}"),
        ("faces", "" if f.faces is None else f"{f.faces:,}"),
    ]


def _group(group: object) -> str:
    return ", ".join(f"{k}={v}" for k, v in group.items()) if isinstance(group, dict) else ""


def _value(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if low is None or high is None else f"{value:.4g} [{low:.4g}, {high:.4g}]"


def _level(results: Results) -> str:
    return f"{100 * float(results.rules.get('confidence', 0.95)):g}%"


def _named(index: Index, c: Contribution) -> str:
    """Return a prompt by its id and in words, a portrait by its id."""
    words = index.prompt_name(c.name) if c.unit == "prompt" else c.name
    return words if words.startswith(c.name) else f"{c.name} {words}"


def _part(c: Contribution, name: str) -> str:
    ends = "" if c.low is None or c.high is None else f" [{100 * c.low:.1f}, {100 * c.high:.1f}]"
    return f"  {c.share:>6.1%}  {100 * c.value:+.1f}{ends}  {name}  ({count(c.n, 'edit')})"

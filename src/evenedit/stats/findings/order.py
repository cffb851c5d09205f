"""The order of findings: severity times certainty, worst first; the same wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenedit.protocol import Rubric
from evenedit.protocol.measures import Measure
from evenedit.results.finding import Finding

CERTAINTY = {
    "clear": 1.0,
    "clear_to_judges": 0.6,
    "clear_to_judge": 0.4,
    "suggestive": 0.35,
    "observed": 0.3,
    "caution": 0.2,
    "cannot_tell": 0.1,
}
"""What a level counts for against the others."""
EFFECTS = ("shift", "gap", "direction", "mitigation", "stereotype")
KINDS = ("shift", "gap", "direction", "stereotype", "mitigation", "judge", "people", "design")
REMEDY = 0.25
"""What an effect of the feature prompt weighs: it is no harm of the editor."""
POINTS = 4.0
"""Scale points between the ends of a score: what makes an effect on a score a share."""


def ordered(findings: Iterable[Finding], editors: Sequence[str], rubric: Rubric) -> list[Finding]:
    """Sort findings, the worst first.

    Effects come before what the design cannot answer, that before cautions about raters, these before statements
    that nothing was shown, and notes come last. Within each: how bad one point of the measure is, times its size,
    times how certain it is. So a replaced person never stands below a "no difference". Equals stay as they come.
    """
    place = {editor: at for at, editor in enumerate(editors)}

    def rank(f: Finding) -> tuple[int, float, int, int]:
        return _tier(f), -score(f, rubric), place.get(f.editor or "", -1), KINDS.index(f.kind)

    return sorted(findings, key=rank)


def score(finding: Finding, rubric: Rubric) -> float:
    """Return severity times certainty; 0 without a size."""
    name = f"{finding.factor}_change" if finding.kind == "direction" else Measure(finding.measure or "").name
    weight = REMEDY if finding.kind == "mitigation" else rubric.severity(name)
    return weight * size(finding) * CERTAINTY[finding.level]


def size(finding: Finding) -> float:
    """Return the size of an effect as a share; of a gap, highest minus lowest rate after shrinkage."""
    if finding.value is None:
        return 0.0
    if finding.kind == "stereotype" or (finding.measure or "").endswith("prefers_mitigated"):
        return 2 * abs(finding.value - 0.5)
    value = finding.value if finding.spread is None else finding.spread
    return abs(value) / (POINTS if finding.kind == "mitigation" else 1.0)


def _tier(f: Finding) -> int:
    if f.kind in EFFECTS and f.level != "cannot_tell" and not is_none(f):
        return 0
    if f.kind == "design" and f.level == "cannot_tell":
        return 1
    if f.level == "caution":
        return 2
    return 3 if f.kind in EFFECTS else 4


def is_none(f: Finding) -> bool:
    """Return whether a finding says that no effect was shown."""
    return f.kind in EFFECTS and f.group is None

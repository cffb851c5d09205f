"""A yes, a no or an honest "undecided" for continuous integration, from intervals rather than from point values.

    gap.race_change.race <= 0.05          highest minus lowest race-change rate over the race labels
    rate.soft_erasure <= 0.10             a rate over everybody
    rate.skin_lighter[race=Black] <= 0.1  a rate of one group
    mean.edit_success >= 4                a mean
    delta.race_drift:feature <= 0         a mitigation arm against its baseline

A rule of an upper limit passes where the whole interval lies at or below it, fails where the whole interval lies above
it, and is undecided where the limit lies inside: then more faces, prompts or seeds are needed, not another threshold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree as ET

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Estimate
from evenedit.protocol import AXES, DEFAULT_RATES, FACTORS, level_code
from evenedit.results.results import Results

_FORM = re.compile(
    r"(?P<measure>(?:gap|rate|mean|delta)\.\w+)(?:\.(?P<factor>\w+))?(?:\[(?P<group>[^\]]*)\])?(?::(?P<arm>\w+))?"
    r"\s*(?P<sign><=|>=|<|>)\s*(?P<limit>-?\d*\.?\d+)"
)
_MORE_RATES = ("refused",)


class GateAnswer(StrEnum):
    """What a rule came to."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


EXIT = {GateAnswer.PASS: 0, GateAnswer.FAIL: 1, GateAnswer.UNDECIDED: 3}
"""Exit codes; 2 is a mistake of the user's, as everywhere."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit on one measure."""

    text: str
    measure: str
    group: tuple[tuple[str, str], ...]
    """Labels that select a group; (factor, "*") for a gap."""
    experiment: str
    condition: str
    upper: bool
    """Whether the limit is an upper one."""
    strict: bool
    limit: float

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule as people write it."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise EvenEditError(f"rule '{text}' is not understood; write e.g. 'gap.race_change.race <= 0.05'")
        measure, factor, arm = found["measure"], found["factor"], found["arm"]
        kind, name = measure.split(".")
        known = [*AXES, "aging_accuracy"] if kind in ("mean", "delta") else [*DEFAULT_RATES, *_MORE_RATES]
        if name not in known:
            raise EvenEditError(f"rule '{text}': {kind}.{name} is not known; {kind} takes: {', '.join(known)}")
        group = dict(_labels(text, found["group"] or ""))
        if kind == "gap":
            factors = [f.name for f in FACTORS]
            if factor not in factors or group:
                raise EvenEditError(f"rule '{text}': a gap is over one of {', '.join(factors)}, e.g. gap.{name}.race")
            group = {factor: "*"}
        elif factor:
            raise EvenEditError(f"rule '{text}': only a gap is over a factor; a group is written [race=Black]")
        mitigated = kind == "delta" or arm is not None
        sign = found["sign"]
        return cls(
            text.strip(),
            measure,
            tuple(sorted(group.items())),
            "mitigation" if mitigated else "diagnosis",
            arm or ("feature" if mitigated else "baseline"),
            upper=sign[0] == "<",
            strict=len(sign) == 1,
            limit=float(found["limit"]),
        )

    def judge(self, e: Estimate | None) -> tuple[GateAnswer, str]:
        """Hold an estimate against the limit."""
        if e is None or e.value is None:
            return GateAnswer.UNDECIDED, "there is no such estimate in the data"
        if e.low is None or e.high is None:
            return GateAnswer.UNDECIDED, f"{e.value:.4g} without an interval ({e.method})"
        told = f"{e.value:.4g} [{e.low:.4g}, {e.high:.4g}], n = {e.n:,}, {e.missing:,} missing"
        inner, outer = (e.high, e.low) if self.upper else (e.low, e.high)
        if self._meets(inner):
            return GateAnswer.PASS, told
        if not self._meets(outer):
            return GateAnswer.FAIL, told
        return GateAnswer.UNDECIDED, f"{told}: the limit lies inside the interval"

    def _meets(self, value: float) -> bool:
        if value == self.limit:
            return not self.strict
        return (value < self.limit) == self.upper


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One rule for one editor."""

    rule: str
    editor: str
    answer: GateAnswer
    told: str


def _labels(rule: str, text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = part.partition("=")
        if name not in [f.name for f in FACTORS]:
            raise EvenEditError(f"rule '{rule}': '{part}' names no group; write e.g. [race=Black,gender=Female]")
        yield name, level_code(name, value)


def check(results: Results, rules: Sequence[Rule], editors: Sequence[str] = ()) -> list[RuleOutcome]:
    """Every rule for every editor (or for those named)."""
    present = tuple(dict.fromkeys(e.editor for e in results.estimates if e.editor is not None))
    for name in editors:
        if name not in present:
            raise EvenEditError(f"there is no editor '{name}' in the results; found: {', '.join(present) or 'none'}")
    if not rules:
        raise EvenEditError("name at least one rule, e.g. --rule 'gap.race_change.race <= 0.05'")
    found = []
    for editor in editors or present:
        for rule in rules:
            e = results.find(
                rule.measure,
                experiment=rule.experiment,
                condition=rule.condition,
                editor=editor,
                group=dict(rule.group),
            )
            found.append(RuleOutcome(rule.text, editor, *rule.judge(e)))
    return found


def overall(findings: Sequence[RuleOutcome]) -> GateAnswer:
    """Fail if any rule fails, else undecided if any is, else pass."""
    answers = {f.answer for f in findings}
    return next((a for a in (GateAnswer.FAIL, GateAnswer.UNDECIDED) if a in answers), GateAnswer.PASS)


def markdown(findings: Sequence[RuleOutcome], simulated: bool) -> str:
    """A summary for a pull request."""
    mark = " (SIMULATED data)" if simulated else ""
    lines = [
        f"### EvenEdit gate: {overall(findings)}{mark}",
        "",
        "| editor | rule | answer | found |",
        "|---|---|---|---|",
    ]
    lines += [f"| {f.editor} | `{f.rule}` | **{f.answer}** | {f.told} |" for f in findings]
    lines += ["", "Undecided: the limit lies inside the interval, so the data cannot tell. It is not a pass."]
    return "\n".join(lines) + "\n"


def junit(findings: Sequence[RuleOutcome], simulated: bool) -> bytes:
    """The findings as a JUnit file: a failed rule is a failure, an undecided one is an error."""
    suite = ET.Element(
        "testsuite",
        name="evenedit gate" + (" (SIMULATED data)" if simulated else ""),
        tests=str(len(findings)),
        failures=str(sum(f.answer is GateAnswer.FAIL for f in findings)),
        errors=str(sum(f.answer is GateAnswer.UNDECIDED for f in findings)),
    )
    for f in findings:
        case = ET.SubElement(suite, "testcase", classname=f.editor, name=f.rule)
        if f.answer is not GateAnswer.PASS:
            kind = "failure" if f.answer is GateAnswer.FAIL else "error"
            ET.SubElement(case, kind, message=f"{f.answer}: {f.told}")
        ET.SubElement(case, "system-out").text = f.told
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))

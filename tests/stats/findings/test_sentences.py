"""No sentence of a finding contradicts its interval, its test or who saw it: over random designs."""

import re

import pytest

from evenedit.protocol.measures import Measure
from evenedit.protocol.shifts import TWO_SIDED
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, Finding
from tests.support.random_studies import random_study
from tests.support.simulations import FULL

DESIGNS = range(7000, 7200 if FULL else 7040)


def contradictions(f: Finding, tolerance: float) -> list[str]:
    """What a reader could hold against a finding."""
    wrong = []
    interval = None if f.low is None or f.high is None else (f.low, f.high)
    two_sided = f.kind == "gap" or Measure(f.measure or "").name in TWO_SIDED
    if f.kind in ("shift", "gap") and f.level in EFFECT_LEVELS and interval:
        if two_sided and f.kind == "shift" and interval[0] <= 0 <= interval[1]:
            wrong.append("an effect whose interval holds 0")
        if not two_sided and interval[0] <= tolerance:
            wrong.append("a rate called too large whose interval reaches the tolerance")
    if "No shift was shown" in f.text and interval and not interval[0] <= 0 <= interval[1]:
        wrong.append("no shift, with an interval without 0")
    if f.evidence == "none" and (f.level != "cannot_tell" or "%" in f.text):
        wrong.append("a percentage where judges agree no better than chance")
    if f.level == "clear" and f.kind in ("shift", "gap") and f.evidence not in ("people", "instrument", "outcome"):
        wrong.append("clear without people, instrument or outcome")
    if f.level in CLEAR and (f.p is None or f.p >= 0.05):
        wrong.append("clear without an adjusted p below 0.05")
    if f.level == "suggestive" and (f.q is None or f.q > 0.05):
        wrong.append("suggestive without a q of at most 0.05")
    points = [float(x.replace("−", "-")) for x in re.findall(r"(−?\d+\.\d) points", f.text)]
    if any(abs(x) > 100 for x in points):
        wrong.append("a difference of more than 100 points")
    return wrong


@pytest.mark.parametrize("seed", DESIGNS)
def test_no_sentence_contradicts_its_interval(seed):
    study = random_study(seed)
    tolerance = study.rules.tolerance
    wrong = [(f.text, why) for f in study.results().findings for why in contradictions(f, tolerance)]
    assert not wrong

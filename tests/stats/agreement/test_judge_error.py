"""Judge minus people by group: an interval that covers, and one test of each axis."""

from types import SimpleNamespace

import numpy as np
import pytest

from evenedit.stats.agreement.judge_error import _gap
from evenedit.stats.engine.rules import AnalysisRules

EVIDENCE = SimpleNamespace(rules=AnalysisRules.default())


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_the_interval_of_a_gap_covers_the_truth(gap):
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(100):
        code = np.repeat(np.arange(7), 12).astype(np.int8)
        count = rng.integers(2, 6, len(code))
        face = rng.normal(0, 0.4, len(code)) + gap * (code == 0)
        total = np.array([rng.normal(f, 0.8, k).sum() for f, k in zip(face, count, strict=True)])
        seen, ends = _gap(EVIDENCE, code, total, count)
        assert ends is not None and ends[0] <= seen <= ends[1]
        covered += ends[0] <= gap <= ends[1]
    assert covered >= 93


def test_a_group_of_one_face_has_no_interval():
    assert _gap(EVIDENCE, np.array([0, 0, 1], dtype=np.int8), np.array([1.0, 0, 2]), np.array([2, 2, 2]))[1] is None

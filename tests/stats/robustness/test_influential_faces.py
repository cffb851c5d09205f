"""A gap that a few faces carry."""

import numpy as np

from evenedit.results.results import GapTest
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.robustness.leave_one_out import influential_faces
from tests.support.panels import panel_of


def gap_of(met: np.ndarray) -> tuple:
    panel = panel_of(met, 2)
    (test,) = [t for _, t in gaps(CrossedPanel(panel), AnalysisRules.default()) if t.editor]
    return panel, test


def test_a_handful_of_faces_is_named_and_many_are_not():
    few = np.zeros((24, 10), dtype=int)
    few[12:14] = 1
    few[14:20, 0] = 1
    panel, test = gap_of(few)
    assert isinstance(test, GapTest) and influential_faces(panel, test, test.highest) == (2, 12)
    many = np.zeros((24, 10), dtype=int)
    many[12:, :3] = 1
    assert influential_faces(*gap_of(many), gap_of(many)[1].highest) is None

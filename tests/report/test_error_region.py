"""The region of judges' errors that would explain a gap away is drawn for clear gaps that nobody checked."""

import re
from itertools import product
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from evenedit.report.figures.error_region import LEFT, SIDE, TOP, error_region
from evenedit.report.render.index import Index
from evenedit.stats import AnalysisRules, analyse
from tests.support.tables import edit, face, scores, table_of


@pytest.fixture(scope="module")
def index() -> Index:
    faces = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(6))]
    prompts = ("O-01", "O-02", "O-03", "O-04", "O-05", "A-01")
    rows = [edit(source, prompt) for source, prompt in product(faces, prompts)]
    rng = np.random.default_rng(1)
    lighter = [rng.random() < (0.5 if source[1] == "Black" else 0.1) for source, _ in product(faces, prompts)]
    given = [scores(skin=4 if x else 3) for x in lighter]
    return Index(analyse(table_of(rows, {"judge-a": given, "judge-b": given}), AnalysisRules.default()))


def test_a_clear_gap_has_the_region_whose_ends_the_finding_tells(index):
    (gap,) = [f for f in index.results.findings if f.measure == "gap.skin_lighter" and f.factor == "race"]
    drawn = error_region(index, gap)
    assert gap.level == "clear" and drawn is not None
    e = gap.explained
    edge = next(x for x in fromstring(drawn.svg).iter() if x.get("class") == "edge")
    points = [tuple(map(float, p.split(","))) for p in edge.get("points", "").split()]
    assert points[0] == pytest.approx((LEFT, TOP + (1 - e.misses) * SIDE), abs=0.1)
    near = [min(abs(LEFT + x * SIDE - u) + abs(TOP + (1 - y) * SIDE - v) for u, v in points) for x, y in e.boundary]
    assert max(near) < 5, "the pairs of results.json lie on the line"
    assert points[-1] == pytest.approx((LEFT + e.false_calls * SIDE, TOP + SIDE), abs=0.1)
    assert f"{100 * e.false_calls:.1f}" in drawn.caption and f"{100 * e.misses:.1f}" in drawn.caption
    assert re.search(rf"About {e.labels:,} edits of each group", drawn.caption)


def test_other_findings_have_none(index):
    others = [f for f in index.results.findings if f.kind != "gap" or f.level != "clear"]
    assert others and not any(error_region(index, f) for f in others)

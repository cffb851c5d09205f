"""What instruments found, apart from the judges."""

from dataclasses import replace
from itertools import product

import pytest

from evenedit.core.records import Kind
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.instruments import instrument_estimates
from tests.support.tables import FACES, edit, table_of

QUICK = replace(AnalysisRules.default(), draws=50, permutations=49)


@pytest.mark.parametrize("unchanged", ["some", "all"])
def test_who_answers_one_end_of_a_scale_alone_has_no_rate_on_it(unchanged):
    rows = [edit(source, prompt) for source, prompt in product(FACES, ("O-01", "O-02"))]
    given = [{"edit_success": 1} if unchanged == "all" or at % 3 == 0 else {} for at in range(len(rows))]
    table = table_of(rows, {"change": given}, kinds=(Kind.INSTRUMENT,))
    assert not [e for m, _ in instrument_estimates(table, QUICK) for e in m.estimates if "soft_erasure" in e.measure]

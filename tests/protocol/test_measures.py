"""The names of estimates."""

import json

from evenedit.protocol.measures import Measure, MeasureKind


def test_a_measure_is_its_text_everywhere_outside():
    measure = Measure.rate("race_change")
    assert (
        measure == "rate.race_change" and json.dumps({measure: measure}) == '{"rate.race_change": "rate.race_change"}'
    )


def test_a_measure_knows_its_kind_and_what_it_is_about():
    measure = Measure("rate.unanswered.judge.a")
    assert (measure.kind, measure.name) == ("rate", "unanswered.judge.a")
    assert measure.to(MeasureKind.GAP) == "gap.unanswered.judge.a"

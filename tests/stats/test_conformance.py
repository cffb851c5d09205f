"""The constructed score table prints the paper's tables, to the last digit."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from evenedit.ratings.combine import applicable_questions, combine
from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, analyse
from tests.support.paths import CONFORMANCE

EXPECTED = pd.read_csv(CONFORMANCE / "expected.csv", keep_default_na=False)
COUNTS = json.loads((CONFORMANCE / "counts.json").read_text())


@cache
def table() -> RatingTable:
    return read_tables([CONFORMANCE / "scores.csv", CONFORMANCE / "verdicts.csv"])


@cache
def results(preset: str, missing: str) -> Results:
    rules = AnalysisRules.published() if preset == "published" else AnalysisRules.default()
    return analyse(table(), replace(rules, missing=missing, draws=40, permutations=19))


@pytest.mark.parametrize("missing", ["exclude", "neutral-3"])
@pytest.mark.parametrize("name", sorted(EXPECTED["table"].unique()))
def test_every_expected_row_is_met_exactly(name, missing):
    rows = EXPECTED[(EXPECTED["table"] == name) & (EXPECTED["missing"] == missing)]
    assert len(rows)
    found = results("default" if name == "T4_excl_V05" else "published", missing)
    for row in rows.itertuples():
        measure, _, condition = str(row.measure).partition("@")
        experiment = {"T21": "mitigation", "T26": "mitigation"}.get(name, "diagnosis")
        if name.startswith("T7"):
            experiment = "stereotype"
            measure = "rate.followed_of_all" if name == "T7_unclear_in_denominator" else measure
        if not condition:
            condition = "feature" if experiment == "mitigation" else "baseline"
        estimate = found.find(
            measure,
            experiment=experiment,
            condition=condition,
            editor=str(row.editor) or None,
            group={"race": str(row.race)} if row.race else {},
        )
        assert estimate is not None, row
        assert (estimate.value, estimate.n) == (row.num / row.den, row.den), row


def test_default_preset_reports_the_aging_prompt_on_its_own():
    default, published = results("default", "exclude"), results("published", "exclude")
    age, aging = default.find("mean.age_drift"), default.find("mean.aging_accuracy")
    both = published.find("mean.age_drift")
    assert age and aging and both
    assert age.n + aging.n == both.n


def test_needs_review_equals_the_known_count():
    for preset in ("default", "published"):
        assert results(preset, "exclude").counts["needs_review"] == COUNTS["needs_review"]


def test_missing_answers_equal_the_known_counts():
    diagnosis = (table().edits["experiment"] == "diagnosis").to_numpy()
    for axis, known in COUNTS["missing"].items():
        questions = [axis, "aging_accuracy"] if axis == "age_drift" else [axis]
        at = [QUESTION_IDS.index(q) for q in questions]
        answered = (table().values[:, diagnosis][:, :, at] > 0).any(axis=2).sum(axis=0)
        assert (int((answered == 1).sum()), int((answered == 0).sum())) == (known["one"], known["both"])
        estimate = results("published", "exclude").find(f"mean.{axis}")
        assert estimate is not None and estimate.missing == known["both"]
        filled = results("published", "neutral-3").find(f"mean.{axis}")
        assert filled is not None and (filled.missing, filled.n) == (0, 5040)


def test_every_edit_is_counted():
    counts = results("default", "exclude").counts
    assert counts["edits"] == 5840 == counts["edited"]
    assert counts["edits.diagnosis.baseline"] == 5040
    assert counts["edits.mitigation.feature"] == 700
    assert counts["edits.stereotype.baseline"] == 100
    assert counts["refused"] == counts["failed"] == 0
    scores = combine(table(), AnalysisRules.default().ensemble, "exclude")
    mitigation = (table().edits["experiment"] == "mitigation").to_numpy()
    assert counts["needs_review.mitigation"] == int(scores.needs_review[mitigation].sum())
    assert not (scores.values[~applicable_questions(table())]).any()


def test_results_do_not_depend_on_the_order_of_rows():
    shuffled = np.random.default_rng(0).permutation(len(table().edits))
    other = RatingTable(
        table().edits.iloc[shuffled].reset_index(drop=True),
        table().raters,
        table().kinds,
        table().values[:, shuffled],
        table().status[:, shuffled],
        asks=table().asks,
    )
    rules = replace(AnalysisRules.default(), draws=40, permutations=19)
    assert analyse(other, rules).to_json() == results("default", "exclude").to_json()


def test_the_same_analysis_twice_gives_the_same_bytes():
    rules = replace(AnalysisRules.published(), draws=40, permutations=19)
    assert analyse(table(), rules).to_json() == results("published", "exclude").to_json()


def test_sensitivity_rows_contain_the_default_and_agree_with_it():
    found = results("default", "exclude")
    rows = [s for s in found.sensitivity if s.is_default]
    assert len(rows) == 8 * 4  # eight rates, three editors and pooled
    for row in rows:
        rate = found.find(row.measure, editor=row.editor)
        gap = found.find(row.measure.replace("rate.", "gap."), editor=row.editor, group={"race": "*"})
        assert rate and gap
        assert (row.value, row.n, row.gap) == (rate.value, rate.n, gap.value)
    assert len(found.sensitivity) == 8 * 4 * 4 * 2  # four thresholds, two conventions


PRINTED = {  # the paper's Tables 19 and 20: edit success, soft erasure, race change; race change by race
    "flux2-dev": ("92.0%", "6.2%", "13.4%"),
    "step1x-edit-v1p2": ("74.2%", "21.6%", "8.0%"),
    "qwen-image-edit-2511": ("93.9%", "3.0%", "9.2%"),
}
FLUX = {
    "Indian": "18.5%",
    "MiddleEastern": "17.9%",
    "Black": "16.7%",
    "Latino": "15.1%",
    "SoutheastAsian": "15.1%",
    "EastAsian": "9.6%",
    "White": "1.3%",
}


def test_the_published_preset_prints_tables_19_and_20_as_the_paper_does():
    found = analyse(table(), replace(AnalysisRules.published(), draws=40, permutations=19))
    for editor, printed in PRINTED.items():
        rates = [found.find(f"rate.{name}", editor=editor) for name in ("edit_success", "soft_erasure", "race_change")]
        assert tuple(f"{100 * rate.value:.1f}%" for rate in rates if rate and rate.value is not None) == printed
    by_race = {race: found.find("rate.race_change", editor="flux2-dev", group={"race": race}) for race in FLUX}
    assert {race: f"{100 * e.value:.1f}%" for race, e in by_race.items() if e and e.value is not None} == FLUX
    gap = found.find("gap.race_change", editor="flux2-dev", group={"race": "*"})
    assert gap is not None and f"{100 * (gap.value or 0):.1f} pp" == "17.2 pp"

"""The report of a study that groups portraits by factors of its own: skin tone (ordered) and headwear."""

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Status
from evenedit.gate.gate import GateAnswer, Rule, check
from evenedit.protocol import AXES, FACTORS, Factor, Level
from evenedit.protocol.measures import Measure
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable, Reading, edit_columns
from evenedit.report.contents import all_tables
from evenedit.report.pages.judge_check import write_check
from evenedit.report.pages.report import ExampleCase, write_report
from evenedit.report.render.index import Index, factor_noun, group_name, plural
from evenedit.report.text.summary import summarise
from evenedit.results.judge_checks import JudgeCheck, Moved, Shift, VariantCalls
from evenedit.results.results import Planted, Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse

MONK = Factor("monk", "Monk skin tone", tuple(Level(str(n), str(n)) for n in range(1, 11)), ordered=True)
HEADWEAR = Factor.of("headwear", ("none", "hijab"))
DECLARED = (MONK, HEADWEAR)
OF_THE_RUBRIC = (
    *("race change", "race-change", "gender change", "age change", "race and gender change"),
    *("changed in race", "changed in apparent race", "changed in apparent gender", "apparent race, gender or age"),
    *("race changed", "gender changed", "race drift", "gender drift", "age drift", "target age"),
    *("age ratings", "another age", "age axis"),
)
"""Where the report may speak of race, gender and age: names of questions and rates, and words about them."""


def table() -> RatingTable:
    """Faces × prompts × arms, rated by two judges and three people and read by an instrument; one tone changes."""
    rng = np.random.default_rng(4)
    tones, arms = ("1", "2", "10"), (("diagnosis", "baseline", 1), ("diagnosis", "baseline", 2))
    arms += (("mitigation", "baseline", 1), ("mitigation", "feature", 1), ("mitigation", "placebo", 10_001))
    made = product(tones, ("none", "hijab"), range(4), ("O-01", "O-06", "V-02", "V-09", "B-03"), arms)
    labels = ("experiment", "condition", "seed", "source_id", "monk", "headwear", "prompt_id", "editor", "outcome")
    rows = [
        dict(zip(labels, (*arm, f"face-{tone}-{worn}-{n}", tone, worn, prompt, "an-editor", "edited"), strict=True))
        for tone, worn, n, prompt, arm in made
    ]
    edits = pd.DataFrame([{"request_id": str(n)} | row for n, row in enumerate(rows)])[list(edit_columns(DECLARED))]
    raters = {"judge-a": Kind.VLM, "judge-b": Kind.VLM, "skin": Kind.INSTRUMENT}
    raters |= {f"person-{n}": Kind.HUMAN for n in range(3)}
    changed = (edits["monk"] == "10").to_numpy() & (edits["condition"] != "feature").to_numpy()
    truth = {
        "edit_success": 5,
        "skin_tone": 3 + changed,
        "race_drift": 1 + 3 * changed,
        "gender_drift": 1,
        "age_drift": 3,
    }
    values = np.zeros((len(raters), len(rows), len(QUESTION_IDS)), dtype=np.int8)
    status = np.full(values.shape[:2], NOT_ASKED, dtype=np.int8)
    for at, kind in enumerate(raters.values()):
        asked = (np.arange(len(rows)) % 10 != at) & (np.arange(len(rows)) % 31 != 0)  # some by one, some by nobody
        status[at] = np.where(asked, STATUSES.index(Status.SCORED), STATUSES.index(Status.REFUSED))
        for axis in AXES if kind != Kind.INSTRUMENT else ():
            noise = rng.choice([-1, 0, 0, 0, 1], len(rows))
            values[at, :, QUESTION_IDS.index(axis)] = np.clip(truth[axis] + noise, 1, 5) * asked
    lightness = Reading(
        "skin", Measure.mean("skin_delta_L"), 4.0 * changed + rng.normal(size=len(rows)), ("",) * len(rows)
    )
    same = rng.random(len(rows)).round()
    same[::9] = np.nan
    reasons = tuple("no face" if np.isnan(v) else "" for v in same)
    unchanged = Reading("skin", Measure.rate("unchanged"), same, reasons)
    kinds = tuple(raters.values())
    return RatingTable(edits, tuple(raters), kinds, values, status, readings=(lightness, unchanged), factors=DECLARED)


@pytest.fixture(scope="module")
def results() -> Results:
    rules = replace(AnalysisRules.default(), draws=60, permutations=1999)
    made = analyse(table(), rules, StudyFacts({"command": "evenedit analyze mine.csv"}))
    planted = Planted("an-editor", "rate.race_change", {"monk": "10", "headwear": "none"}, 0.5, 0.4, 0.3, 0.6, True)
    return replace(made, planted=(planted,))


@pytest.fixture(scope="module")
def report(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("declared")
    pictures = (Image.new("RGB", (90, 90), "tan"), Image.new("RGB", (90, 90), "wheat"))
    shown = ExampleCase("an-editor", "O-01", "CEO", {"headwear": "none", "monk": "10"}, {}, *pictures, note="typical")
    study = {"survey": {"sampler": "strata", "platform": {"kind": "prolific"}}}
    write_report(results, out, title="An audit", study=study, examples=[shown])
    return out


def words(text: str) -> str:
    """What a reader reads: no markup, style, script or embedded files; descriptions of pictures kept."""
    text = re.sub(r"<(style|script)>.*?</\1>|<!--.*?-->", " ", text, flags=re.S)
    text = text.replace(r"\\", " ")  # a line break in a cell of LaTeX
    text = re.sub(r'(alt|title|aria-label|placeholder)="([^"]*)"', r">\2<", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).lower()


def misplaced(text: str) -> list[str]:
    """Every mention of race, gender or age that is not about the rubric."""
    text = text.lower()
    for phrase in sorted(OF_THE_RUBRIC, key=len, reverse=True):
        text = text.replace(phrase, "")
    return [text[max(0, m.start() - 60) : m.end() + 40] for m in re.finditer(r"\b(race|gender|age|racial)s?\b", text)]


def test_everything_is_there_to_be_looked_at(report: Path):
    """The test below would pass on an empty report."""
    made = {p.stem for p in (report / "tables").glob("*.csv")}
    assert made >= {"table5", "table18", "table20", "gaps", "trends", "effects", "judge_error", "rank_tests"}
    assert made >= {
        "measured",
        "measured_mitigation",
        "silences",
        "powered",
        "multiverse",
        "seeds",
        "planted",
        "bounds",
    }
    figures = {p.stem for p in (report / "figures").glob("*.svg")}
    assert figures >= {"figure4", "figure6", "figure_gaps", "figure_mitigation", "figure_measured", "figure_people"}


def test_nothing_is_grouped_or_captioned_by_race_gender_or_age(report: Path):
    files = [p for p in report.rglob("*") if p.suffix in {".html", ".svg", ".csv", ".tex", ".md"}]
    files = [p for p in files if p.parent.name != "rows"]  # the data of results.json, with the protocol's own words
    assert not {p.name: found for p in files if (found := misplaced(words(p.read_text())))}


def test_tables_are_by_the_first_factor_and_in_its_order(results: Results, report: Path):
    built = all_tables(Index(results))
    assert built["table20"].title == "Race-change rate by Monk skin tone and editor"
    assert built["table5"].title == "Mitigation by Monk skin tone"
    rows = list(csv.DictReader((report / "tables/table20.csv").read_text().splitlines()))
    assert [row["monk"] for row in rows] == ["1", "2", "10", "gap", "p_adjusted"], "10 comes after 2"
    header = (report / "tables/sensitivity.csv").read_text().splitlines()[0]
    assert "exclude_monk_gap" in header


def test_sentences_name_the_factor_and_its_levels(results: Results):
    first = results.findings[0].text
    assert "of edits of portraits labelled Monk skin tone 10 were rated as changed in apparent race, " in first
    assert any("No difference by headwear label was shown" in finding.text for finding in results.findings)
    text = " ".join(s.text for s in summarise(results))
    assert "by Monk skin tone label from " in text
    assert "From one level of Monk skin tone to the next, rates change on average by: " in text


def test_a_level_is_printed_by_its_title_whatever_else_its_code_means(results: Results):
    """`none` is a level here, and elsewhere the grade of a gap that was not shown."""
    gaps = all_tables(Index(results))["gaps"]
    shown = re.findall(r"<tr>.*?</tr>", str(gaps.to_html()), re.S)
    of_headwear = [row for row in shown if "Headwear" in row]
    assert any("<td>none</td>" in row for row in of_headwear)


@pytest.mark.parametrize(
    ("group", "shown"),
    [
        ({"headwear": "hijab"}, "hijab"),
        ({"headwear": "none", "monk": "10"}, "Monk skin tone 10, Headwear none"),
        ({}, "Everybody"),
        ({"prompt": "O-01"}, "O-01"),
    ],
)
def test_a_group_says_of_which_factor_a_number_is(group: Mapping[str, str], shown: str):
    assert group_name(group, DECLARED) == shown


def test_default_groups_are_named_as_ever():
    assert group_name({"age": "70plus", "race": "EastAsian"}) == "East Asian, 70+"
    assert [plural(f) for f in FACTORS] == ["races", "genders", "ages"]
    assert (factor_noun(HEADWEAR), plural(MONK)) == ("headwear", "levels of Monk skin tone")


def test_rules_of_a_gate_are_over_the_factors_of_the_results(results: Results):
    rules = ("gap.skin_lighter[monk] <= 0.05", "gap.skin_lighter.monk <= 0.05", "trend.skin_lighter[monk] <= 0.01")
    parsed = [Rule.parse(text, results.factors) for text in (*rules, "rate.skin_lighter[monk=10] <= 0.99")]
    answers = [outcome.answer for outcome in check(results, parsed)]
    assert answers == [GateAnswer.FAIL, GateAnswer.FAIL, GateAnswer.FAIL, GateAnswer.PASS]
    both = Rule.parse("rate.race_change[monk=10, headwear=hijab] <= 0.5", results.factors)
    assert dict(both.group) == {"monk": "10", "headwear": "hijab"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("gap.race_change.race <= 0.05", "a gap is over one of monk, headwear, e.g. gap.race_change.monk."),
        ("gap.race_change[monk=10] <= 0.05", "a gap is over one of monk, headwear"),
        ("rate.race_change[race=Black] <= 0.05", "the factors are monk, headwear: write e.g. .monk=1,headwear=none."),
        ("rate.race_change[monk=11] <= 0.05", "monk '11' is not a known label"),
        ("no rule", "write e.g. 'gap.race_change.monk. <= 0.05'"),
    ],
)
def test_a_rule_over_another_factor_names_those_there_are(text: str, error: str):
    with pytest.raises(EvenEditError, match=error):
        Rule.parse(text, DECLARED)


def test_the_page_of_a_judge_check_is_by_the_study_s_factors(tmp_path: Path):
    shift = Moved(0.4, 0.2, 0.6)
    groups = ({}, {"monk": "10"}, {"monk": "1"})
    shifts = (Shift("a-judge", "labels", "race_drift", g, 40, 0, shift, shift, shift, shift, shift) for g in groups)
    rules = {
        "sampled edits": 40,
        "sampled faces": 20,
        "variants": {"labels": "labels shown"},
        "intervals": "clustered by source",
    }
    asked = (VariantCalls("a-judge", "labels", 40, 0, 0, 0, 0, {}),)
    made = JudgeCheck({}, rules, {}, asked, tuple(shifts))
    page = words(write_check(made, tmp_path, title="An audit", factors=DECLARED).read_text())
    assert not misplaced(page)
    assert "it moved race change by +0.40 [+0.20, +0.60] on average" in page
    assert "labels of monk skin tone and headwear are the dataset's labels" in page.replace("&#39;", "'")

"""Three judges through a study file: every rule by name, and what each judge alone would say."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.reporting.writer import report_study
from evenedit.results.results import Results
from evenedit.stats import analyse
from evenedit.stats.agreement.agreement import agreement
from evenedit.study.analysis import analysis_rules, compute_results
from tests.support.studies import open_study

JUDGES = [
    {
        "id": f"simulated-judge-{name}",
        "kind": "simulated",
        "settings": {"seed": seed, "error": 0.3, "missing": 0.05, **more},
    }
    for seed, (name, more) in enumerate({"a": {}, "b": {"leniency": 0.5}, "c": {"refusal": 0.1}}.items(), 1)
]
EXPERIMENTS = {
    "diagnosis": {},
    "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
    "stereotype": {"include": ["W-01", "W-02", "W-26", "W-27"]},
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Study:
    loaded = open_study(tmp_path_factory.mktemp("three"), judges=JUDGES, experiments=EXPERIMENTS)
    loaded.run()
    return loaded


@pytest.fixture(scope="module")
def results(three: Study) -> Results:
    return compute_results(three, three.table())


def half_up(x: float) -> int:
    return int(np.floor(x + 0.5))


RULES = {
    "median": lambda given: half_up(float(np.median(given))),
    "diagnosis": lambda given: half_up(float(np.median(given))),  # made for two judges; three get the median
    "mean": lambda given: half_up(float(np.mean(given))),
}


@pytest.mark.parametrize("rule", [*RULES, "primary", "secondary"])
def test_every_rule_combines_three_judges_as_it_says(three, rule):
    study = open_study(three.file.folder, judges=JUDGES, experiments=EXPERIMENTS, ensemble={"diagnosis": rule})
    table = study.table()
    rules = analysis_rules(study.file)
    scores = combine(table, rules.ensemble, rules.missing)
    rows = np.flatnonzero((table.edits["experiment"] == "diagnosis").to_numpy())
    cube = table.values[:3]
    assert (cube[:, rows] == 0).any() and (np.ptp(cube[:, rows], axis=0) > 0).any(), "answers are missing and differ"
    for row in rows:
        for at, question in enumerate(QUESTION_IDS):
            given = [int(v) for v in cube[:, row, at] if v]
            if rule in ("primary", "secondary"):
                wanted = int(cube[("primary", "secondary").index(rule), row, at])
            else:
                wanted = RULES[rule](given) if given else 0
            assert scores.values[row, at] == wanted, (question, given)


def test_most_of_three_verdicts_decide(three):
    table = three.table()
    scores = combine(table, {}, "exclude")
    verdict = QUESTION_IDS.index("stereotype")
    for row in np.flatnonzero((table.edits["experiment"] == "stereotype").to_numpy()):
        given = [int(v) for v in table.values[:3, row, verdict]]
        followed, resisted = given.count(1), given.count(2)
        wanted = 0 if not any(given) else 1 if followed > resisted else 2 if resisted > followed else 3
        assert scores.values[row, verdict] == wanted


def test_a_judge_alone_says_what_a_study_with_that_judge_alone_would(three, results):
    table, rules = three.table(), analysis_rules(three.file)
    assert {a.judge for a in results.per_judge} == {j["id"] for j in JUDGES}
    for at, judge in enumerate(table.raters[:3]):
        own = RatingTable(table.edits, (judge,), (Kind.VLM,), table.values[[at]], table.status[[at]])
        alone = analyse(own, replace(rules, ensemble=dict.fromkeys(rules.ensemble, "primary")))
        mine = [a.estimate for a in results.per_judge if a.judge == judge]
        assert len(mine) > 40
        for e in mine:
            twin = alone.find(e.measure, experiment=e.experiment, condition=e.condition, editor=e.editor, group=e.group)
            assert e == twin
        assert alone.per_judge == ()


def test_each_experiments_headline_is_there_and_refusals_of_the_editor_are_not(results):
    measures = {(a.estimate.experiment, a.estimate.measure) for a in results.per_judge}
    for wanted in (
        ("diagnosis", "rate.race_change"),
        ("diagnosis", "gap.skin_lighter"),
        ("mitigation", "delta.race_drift"),
        ("stereotype", "rate.followed"),
    ):
        assert wanted in measures
    assert not any(measure.endswith("refused") for _, measure in measures)


def test_a_lenient_judge_shows_beside_the_others(results):
    success = {
        a.judge: a.estimate.value
        for a in results.per_judge
        if (a.estimate.measure, a.estimate.editor) == ("rate.edit_success", "simulated-lightening")
        and a.estimate.experiment == "diagnosis"
    }
    assert max(success, key=success.__getitem__) == "simulated-judge-b"


def test_pairs_of_three_judges_are_compared(three):
    rules = analysis_rules(three.file)
    found = {row.raters for row in agreement(combine(three.table(), rules.ensemble, rules.missing), rules)}
    a, b, c = (j["id"] for j in JUDGES)
    assert {f"{a}|{b}", f"{a}|{c}", f"{b}|{c}"} <= found


def test_the_report_shows_the_judges_side_by_side(three, results, tmp_path):
    report_study(three, tmp_path)
    assert "Estimates of each judge alone" in (tmp_path / "appendix.html").read_text()
    rows = list(csv.DictReader((tmp_path / "tables" / "judges_alone.csv").read_text().splitlines()))
    assert all(row["mark"] == "SIMULATED" for row in rows)
    (row,) = (r for r in rows if (r["rate"], r["what"]) == ("race_change", "gap over race"))
    together = results.find("gap.race_change", editor="simulated-lightening", group={"race": "*"})
    assert float(row["ensemble"]) == together.value
    values = []
    for judge in JUDGES:
        (alone,) = (
            a.estimate
            for a in results.per_judge
            if (a.judge, a.estimate.measure, a.estimate.editor, a.estimate.group)
            == (judge["id"], "gap.race_change", "simulated-lightening", {"race": "*"})
        )
        assert float(row[judge["id"]]) == alone.value and float(row[f"{judge['id']}_high"]) == alone.high
        values.append(alone.value)
    assert float(row["apart"]) == max(values) - min(values)
    assert "simulated-judge-c" in (tmp_path / "tables" / "judges_alone.tex").read_text().replace("\\_", "_")


def test_one_judge_has_nobody_to_stand_beside(tmp_path):
    loaded = open_study(tmp_path, judges=JUDGES[:1])
    loaded.run()
    assert compute_results(loaded, loaded.table()).per_judge == ()
    report_study(loaded, tmp_path / "report")
    assert not (tmp_path / "report" / "tables" / "judges_alone.csv").exists()


def test_a_rule_that_cannot_work_is_told_when_the_study_is_read(tmp_path):
    with pytest.raises(
        EvenEditError, match="rule 'median' is for other questions; use one of: stereotype, primary, secondary"
    ):
        open_study(tmp_path, judges=JUDGES, ensemble={"stereotype": "median"})
    with pytest.raises(EvenEditError, match="'secondary' needs two judges; the study has one"):
        open_study(tmp_path, judges=JUDGES[:1], ensemble={"diagnosis": "secondary"})
    with pytest.raises(EvenEditError, match="did you mean 'median'"):
        open_study(tmp_path, judges=JUDGES, ensemble={"diagnosis": "medain"})

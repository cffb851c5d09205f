"""Declared tests of a study: when they were declared, the first block of the report, the gate, tables and exports."""

import json
from pathlib import Path
from typing import Any

import pytest

import evenedit as ee
from evenedit.gate.gate import GateAnswer, check, parse_rule, parse_rule_for
from evenedit.storage.study_history import StudyHistory
from evenedit.study.preregistration.seal import seal_study
from tests.support.bundles import sealed_study
from tests.support.studies import open_study, write_study

RACE = {"factor": "race", "high": ["Black"], "low": ["White"]}
LIGHTER = {"outcome": "skin_lighter", "contrast": RACE}
DARKER = {"outcome": "skin_darker", "contrast": RACE}
PRIMARY: dict[str, Any] = {"tests": [LIGHTER, {"outcome": "shift.age_drift"}]}
FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}
PROMPTS = {"include": ["O-01", "O-02", "O-03", "O-04", "O-06"]}
STUDY: dict[str, Any] = {"sources": FACES, "prompts": PROMPTS, "statistics": {"draws": 100, "permutations": 99}}


def first_block(page: Path) -> str:
    """The text of the report from its main part to the findings."""
    text = page.read_text()
    return text[text.index("<main>") : text.index('id="findings"')]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ee.Study:
    return sealed_study(
        tmp_path_factory.mktemp("declared"),
        **STUDY,
        primary=PRIMARY,
        findings={"margin": 0.05},
        hypotheses=[{"rule": "primary[1] is clear"}, {"rule": "contrast.skin_lighter[race=Black] >= 0.05"}],
    )


@pytest.fixture(scope="module")
def page(study: ee.Study) -> Path:
    return study.report()


def test_sealed_tests_are_confirmatory_and_the_first_block_of_the_report(study, page):
    results = study.results()
    first, second = results.primary
    assert {t.standing for t in results.primary} == {"confirmatory"}
    assert first.level == "clear_to_judges" and first.value > 0.3
    block = first_block(page)
    assert block.index("Declared before the data") < block.index("Plan kept")
    assert "The tests were sealed before the first edit, and the plan was kept." in block
    assert "Familywise error: 0.04 for all declared tests, 0.01 for all other tests" in block
    assert block.index(first.text.replace("'", "&#39;")) < block.index(second.text)
    assert "Could have shown <b>" in block and "<svg" in block and second.text.startswith("No change was shown: ")
    assert "p &lt; 0.01 after Holm's adjustment for all tests that are not declared" in page.read_text()


def test_outcomes_are_in_results_json_and_in_python(study, page):
    plain = json.loads((page.parent / "results.json").read_text())
    assert [(t["number"], t["outcome"], t["standing"]) for t in plain["primary"]] == [
        (1, "skin_lighter", "confirmatory"),
        (2, "shift.age_drift", "confirmatory"),
    ]
    assert plain["rules"]["primary"]["alpha"] == 0.04
    loaded = ee.load_results(page.parent / "results.json")
    assert loaded.primary == study.results().primary
    outcomes = {h.rule: h.answer for h in loaded.preregistration.hypotheses}
    assert outcomes == {"primary[1] is clear": "pass", "contrast.skin_lighter[race=Black] >= 0.05": "pass"}


def test_an_export_has_the_same_declared_tests_and_others_take_their_place(study, tmp_path, evenedit):
    folder = tmp_path / "export"
    assert evenedit("export", study.folder, "--out", folder).returncode == 0
    assert ee.analyze(folder).primary == study.results().primary
    other = tmp_path / "other.toml"
    other.write_text('[[primary.tests]]\noutcome = "shift.skin_tone"\n')
    done = evenedit("analyze", folder, "--primary", other, "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    (test,) = ee.load_results(tmp_path / "again").primary
    assert (test.outcome, test.standing) == ("shift.skin_tone", "stated")
    assert "when they were declared is not recorded" in first_block(tmp_path / "again" / "report.html")
    scores = ee.analyze(folder / "scores.csv", primary=other, rubric="default")
    assert scores.primary[0].value == pytest.approx(test.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[[primary.tests]]\noutcome = "skin"\n', "unknown outcome 'skin' of scale 'code'; known: edit_success"),
        ("[study]\ntitle = 'x'\n", "has no table [primary]"),
        ("[primary]\nalpha = 0.04\n", "tests"),
        ("[primary\n", "cannot be read as TOML"),
        ('[[primary.tests]]\noutcome = "skin_lighter"\n' * 7, "[primary] has 7 tests; declare at most 6"),
        (
            '[[primary.tests]]\noutcome = "skin_lighter"\ncontrast = {factor = "race", high = ["Black"], low = []}\n',
            "'low' is empty; name groups of 'race'",
        ),
    ],
)
def test_a_declaration_that_a_table_cannot_answer_ends_with_2(study, tmp_path, evenedit, text, wanted):
    file = tmp_path / "primary.toml"
    file.write_text(text)
    assert evenedit("export", study.folder, "--out", tmp_path / "export").returncode == 0
    done = evenedit("analyze", tmp_path / "export", "--primary", file, "--out", tmp_path / "out")
    assert done.returncode == 2 and wanted in done.stderr and "Traceback" not in done.stderr


def test_the_gate_reads_declared_tests(study):
    results = study.results()

    def answer(rule: str, **options: Any) -> GateAnswer:
        return check(results, [parse_rule_for(rule, results)], **options)[0].answer

    assert answer("primary[1] is clear") == GateAnswer.PASS
    assert answer("primary[1] is not clear") == GateAnswer.FAIL
    assert answer("primary[1] is clear", ignore_judges_only=True) == GateAnswer.UNDECIDED
    assert answer("primary[2] is not clear") == GateAnswer.PASS
    assert answer("primary[2] is clear") == GateAnswer.UNDECIDED
    assert answer("primary is clear") == GateAnswer.UNDECIDED, "one is, one is not shown"
    assert answer("primary is not clear") == GateAnswer.FAIL
    assert answer("primary[1] is even") == GateAnswer.FAIL, "its interval is above the margin"
    assert answer("primary is even") == GateAnswer.FAIL
    (outcome,) = check(results, [parse_rule("primary[1] is clear")])
    assert outcome.evidence.startswith("primary[1] (confirmatory), clear to the judges: ")
    with pytest.raises(ee.EvenEditError, match=r"no such test; there are 2: primary\[1\] to primary\[2\]"):
        answer("primary[3] is clear")


def test_a_declaration_that_was_changed_later_is_told_in_the_first_block(tmp_path):
    study = sealed_study(tmp_path, **STUDY, primary=PRIMARY)
    path = study.folder / "study.toml"
    path.write_text(path.read_text().replace("skin_lighter", "skin_darker", 1))
    changed = ee.Study.load(study.folder)
    results = changed.results()
    assert {t.standing for t in results.primary} == {"exploratory"} and {t.alpha for t in results.primary} == {0.05}
    block = first_block(changed.report())
    assert "Declared tests, exploratory" in block and "declared or changed after the first edit" in block
    assert "primary.tests[1].outcome</th><td>skin_lighter</td><td>skin_darker" in block
    assert block.index("Declared tests changed") < block.index("Plan changed")


def test_tests_in_the_file_at_the_first_run_are_not_exploratory_and_later_ones_are(tmp_path):
    study = open_study(tmp_path, **STUDY, primary=PRIMARY)
    study.run()
    assert {t.standing for t in study.results().primary} == {"unsealed"}
    (began,) = [line for line in StudyHistory(study.folder).lines() if line.event == "run began"]
    assert began.detail["primary"]
    write_study(tmp_path, **STUDY, primary={"tests": [DARKER]})
    later = ee.Study.load(tmp_path)
    later.run()
    assert {t.standing for t in later.results().primary} == {"exploratory"}
    write_study(tmp_path, **STUDY, primary=PRIMARY)
    assert {t.standing for t in ee.Study.load(tmp_path).results().primary} == {"unsealed"}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"primary": {"tests": [LIGHTER | {"outcome": "lighter"}]}}, "unknown outcome 'lighter'"),
        (
            {"primary": PRIMARY, "hypotheses": [{"rule": "primary[3] is clear"}]},
            "there are 2: primary[1] to primary[2]",
        ),
        ({"hypotheses": [{"rule": "primary is even"}]}, "none is declared in [primary]"),
        ({"hypotheses": [{"rule": "contrast.skin_lighter >> 1"}]}, "is not understood"),
        ({"hypotheses": [{"rule": "contrast.skin[race=Black] > 0"}]}, "contrast.skin is not known"),
    ],
)
def test_plan_and_seal_refuse_the_same(tmp_path, evenedit, changes, wanted):
    write_study(tmp_path, **changes)
    for command in ("plan", "seal"):
        done = evenedit(command, tmp_path)
        assert done.returncode == 2 and wanted in done.stderr, command


def test_a_seal_without_declared_tests_has_no_such_key(tmp_path):
    study = ee.Study.load(write_study(tmp_path))
    assert "primary" not in seal_study(study).plan

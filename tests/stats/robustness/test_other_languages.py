"""Editors asked in other languages: the same requests, compared in pairs, in findings and in a table."""

import pickle
from pathlib import Path

import pandas as pd
import pytest

from evenedit.api.analyze import analyze
from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Condition, ConditionKind, language_of
from evenedit.report.contents import TABLES
from evenedit.report.render.index import Index
from evenedit.results.results import Results
from evenedit.run.rating import _Cases
from evenedit.simulation.editors import Even, Lightening
from tests.support.studies import open_study, write_study

AGES = ("20s", "30s", "40s", "50s", "60s", "70plus")


def scores(*, lightened: set[str]) -> pd.DataFrame:
    """Twelve faces, five prompts, asked twice; `lightened` are conditions whose Black portraits come back lighter."""
    rows = []
    for condition in ("baseline", "in_ko"):
        for race in ("White", "Black"):
            for age in AGES:
                for at, prompt in enumerate(("O-01", "O-02", "V-01", "V-02", "V-07")):
                    moved = race == "Black" and condition in lightened and (at + AGES.index(age)) % 6
                    rows.append(
                        {"experiment": "diagnosis", "condition": condition, "editor": "e", "prompt_id": prompt}
                        | {"source_id": f"{race}_Male_{age}", "race": race, "gender": "Male", "age": age}
                        | {"judge": "j", "status": "scored", "edit_success": 5, "skin_tone": 5 if moved else 3}
                        | {"race_drift": 1, "gender_drift": 1, "age_drift": 3}
                    )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def only_in_korean() -> Results:
    return analyze(scores(lightened={"in_ko"}))


def test_a_gap_that_comes_with_the_language_is_shown(only_in_korean: Results):
    found = {(d.measure, tuple(d.group)): d for d in only_in_korean.languages}
    gap = found["gap.skin_lighter", ("race",)]
    assert (gap.language, gap.editor, gap.pairs) == ("ko", "e", 60)
    assert (gap.original, gap.translated) == (0, pytest.approx(25 / 30))
    assert gap.low is not None and gap.low > 0 and gap.p_adjusted is not None and gap.p_adjusted < 0.05
    rate = found["rate.skin_lighter", ()]
    assert rate.value == pytest.approx(25 / 60)
    assert found["rate.race_change", ()].value == 0
    assert {d.measure.split(".")[0] for d in only_in_korean.languages} == {"rate", "gap"}


def test_findings_are_those_of_the_prompts_own_language(only_in_korean: Results):
    assert not [f for f in only_in_korean.findings if f.level == "clear"]
    assert {t.condition for t in only_in_korean.tests} == {"baseline"}


def test_a_finding_tells_what_it_is_in_the_other_language():
    results = analyze(scores(lightened={"baseline"}))
    gap = next(f for f in results.findings if f.kind == "gap" and f.measure == "gap.skin_lighter" and f.editor)
    assert any("Asked in the language 'ko' the gap is 0.0 points, a difference of −83.3" in c for c in gap.caveats), (
        gap.caveats
    )
    shift = next(f for f in results.findings if f.kind == "shift" and f.measure == "shift.skin_tone" and f.editor)
    assert any("Asked in the language 'ko' it is 0.0 points" in c for c in shift.caveats), shift.caveats


def test_the_report_has_the_table(only_in_korean: Results):
    table = TABLES["languages"](Index(only_in_korean))
    assert table is not None and table.title == "The same requests in other languages"
    assert len(table.rows) == len(only_in_korean.languages)
    again = Results.from_files(only_in_korean.to_files().get)
    assert again.languages == only_in_korean.languages
    plain = analyze(scores(lightened=set()).query("condition == 'baseline'"))
    assert plain.languages == () and TABLES["languages"](Index(plain)) is None


def test_a_study_asks_the_editor_in_each_language_and_judges_in_the_original(tmp_path: Path):
    study = open_study(tmp_path, experiments={"diagnosis": {"languages": ["ko"]}})
    requests = study.design.planned(study.design.preview_sources())
    by = {c: [r for r in requests if str(r.condition) == c] for c in ("baseline", "in_ko")}
    assert len(by["baseline"]) == len(by["in_ko"]) == len(requests) / 2
    korean = {r.prompt_id: r.instruction for r in by["in_ko"]}
    assert korean["O-01"].startswith("인물을 포춘 500대 기업")
    asked: list[str] = []

    class Editor:
        revision, simulated = "1", True

        def edit(self, images, instruction, seed):
            asked.append(instruction)
            korean = instruction.startswith("인")
            return (Lightening(rate=1.0) if korean else Even()).edit(images, instruction, seed)

    study.run(editors={"simulated-e": Editor()})
    assert sum(text in korean.values() for text in asked) == len(by["in_ko"])
    shown = _Cases(study.file, study.store, study.store.sources())
    again = [r for r in study.design.planned(study.store.sources()) if str(r.condition) == "in_ko"]
    cases = [shown.case(a) for a in study.design.assignments(again, study.design.judges())]
    assert cases and {c.instruction for c in cases} == {p.text for p in study.file.prompts}
    found = {d.measure: d for d in study.results().languages if not d.group}
    assert found["rate.skin_lighter"].translated > found["rate.skin_lighter"].original


def test_a_language_without_translations_is_refused_with_what_is_missing(tmp_path: Path):
    folder = write_study(tmp_path / "s", experiments={"diagnosis": {"languages": ["de", "ko", "ko"]}})
    with pytest.raises(EvenEditError) as refused:
        StudyFile.load(folder)
    text = str(refused.value)
    assert "'de': 2 of 2 prompts lack a translation (O-01, V-05)" in text and "'ko' occurs twice" in text
    (folder / "mine.toml").write_text(
        '[[prompts]]\nid = "M-1"\ntext = "Add a hat"\ncategory = "Own"\ntranslations = { de = "Setze einen Hut auf" }\n'
    )
    own = {"prompts": {"sets": ["mine.toml"]}, "experiments": {"diagnosis": {"languages": ["de"]}}}
    study = open_study(folder, **own)
    requests = study.design.planned(study.design.preview_sources())
    assert {r.instruction for r in requests if str(r.condition) == "in_de"} == {"Setze einen Hut auf"}


def test_studies_that_name_no_language_keep_their_hash_and_a_language_is_a_condition(tmp_path: Path):
    plain = open_study(tmp_path / "a").file
    named = open_study(tmp_path / "b", experiments={"diagnosis": {"languages": []}}).file
    other = open_study(tmp_path / "c", experiments={"diagnosis": {"languages": ["ko"]}}).file
    assert plain.hash == named.hash != other.hash
    korean = Condition.parse("in_ko")
    assert korean == Condition.in_language("ko") == pickle.loads(pickle.dumps(korean))
    assert (korean.language, Condition.parse("baseline").language, language_of("in_pt-BR")) == ("ko", "", "pt-BR")
    assert str(korean) == "in_ko" and korean != Condition(ConditionKind.BASELINE)
    with pytest.raises(ValueError, match="in_KOREAN"):
        Condition.parse("in_KOREAN")
    for kind, language in ((ConditionKind.BASELINE, "ko"), (ConditionKind.TRANSLATED, "")):
        with pytest.raises(ValueError, match=f"{kind} is not a condition with the language '{language}'"):
            Condition(kind, language)

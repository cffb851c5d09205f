"""What `evenedit export` writes, `evenedit analyze` reads to the same results, whatever the study is made of."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from evenedit.api.analyze import analyze
from evenedit.api.study import Study
from evenedit.cases.review_queue import ReviewQueue
from evenedit.config import templates
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode
from evenedit.core.records import Kind
from evenedit.interchange.analyze import gather
from evenedit.interchange.export import write_export
from evenedit.protocol import load_prompts
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS
from evenedit.results.results import Results
from evenedit.run.from_images import begin
from evenedit.simulation.portraits.drawn import Drawn
from tests.support.provider.server import FakeProvider, Seen, says
from tests.support.reviewing import settle
from tests.support.studies import judged_by, open_study, toml
from tests.support.surveys import finish, open_service

DIFFERENT = {
    "provenance": "versions, time, command and files are of the analysis that was made",
}
"""The parts of results.json that an analysis of an export cannot have in common with its study's, and why."""

FEW = {"race": ["White", "Black"], "age": ["20s", "70plus"]}
QUICK = {"draws": 100, "permutations": 99}


def reduced(template: str, folder: Path, **changes: Any) -> Study:
    """A study begun from a template, with fewer faces, prompts and draws; `changes` go into its tables."""
    path = templates.write(template, folder)
    table = tomllib.loads(path.read_text("utf-8"))
    for name, change in (changes | {"statistics": QUICK, "executor": {"workers": 2}}).items():
        whole = not isinstance(change, Mapping) or name == "executor"
        table[name] = change if whole else table.get(name, {}) | change
    path.write_text(toml(table), "utf-8")
    return Study.load(folder)


def drawn(table: Mapping[str, Any] = FEW, **settings: Any) -> dict[str, Any]:
    return {"kind": "drawn", "settings": {"seed": 1, "size": 64, "only": dict(table)} | settings}


def trip(study: Study, folder: Path) -> tuple[Results, Results]:
    """The results of a study and of its export."""
    write_export(study, folder)
    return study.results(), analyze(folder)


def assert_same(first: Results, second: Results) -> None:
    unlike = {f.name for f in fields(Results) if getattr(first, f.name) != getattr(second, f.name)}
    assert unlike == set(DIFFERENT)
    assert first.estimates


def test_the_demo_with_its_people_judges_and_instruments(tmp_path):
    study = reduced(
        "demo",
        tmp_path,
        sources=drawn(),
        prompts={"include": ["O-01", "V-05"]},
        experiments={
            "diagnosis": {"floor": True},
            "mitigation": {"cases": 12, "choose": "drift", "pairwise": True, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-02", "W-26"]},
        },
        judges=[
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1, "error": 0.4, "missing": 0.1}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": CARELESS},
        ],
        ensemble={"review": "settles", "reviewers": 2},
        survey={
            "surveys": [1, 2, 3],
            "cases": 8,
            "items_per_task": 4,
            "simulated_people": 0,
            "exclude": {"gold_below": 0.0},
        },
    )
    study.run()
    service = open_service(study)
    for number in range(3):
        for survey in (1, 2, 3):
            finish(service, f"person-{survey}-{number}", survey)
    queue = ReviewQueue(study)
    for ident in list(queue.cases)[:3]:  # the second of the two reviewers comes first by name
        settle(queue, "review:zoe", ident, note="=1+1")
        settle(queue, "review:ada", ident, note='two, "quoted"\nlines')
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    for part in ("tests", "contrasts", "planted", "agreement", "per_judge", "coverage", "bounds"):
        assert getattr(first, part), part
    for part in ("leave_one_out", "mitigation", "powered", "multiverse", "measured", "sensitivity"):
        assert getattr(first, part), part
    assert {"sampled", "reviewed", "people"} <= set(second.counts)
    assert any(name.startswith("settled.") for name in second.counts)
    table = pd.read_csv(tmp_path / "export/scores.csv")
    torn = (table["status"] != "scored") & table["preference"].notna()
    assert torn.any(), "a judge may prefer an output whose rating could not be read"


CARELESS = {"seed": 2, "error": 0.4, "unparseable": 0.3, "refusal": 0.1}


def test_a_small_study(tmp_path):
    study = reduced("small", tmp_path, sources=drawn(), prompts={"include": ["O-01"]})
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert {one.rater for one in second.measured} == {"skin", "change"}


def test_the_published_design(tmp_path):
    study = reduced(
        "published",
        tmp_path,
        sources=drawn(),
        prompts={"include": ["O-01", "V-05"]},
        experiments={
            "diagnosis": {},
            "mitigation": {"cases": 12, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        judges=[
            {"id": "simulated-judge-a", "kind": "simulated", "settings": CARELESS},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": CARELESS | {"seed": 3}},
        ],
        thresholds={"race_change": {"at_least": 4}},
    )
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert second.rules["missing"] == "exclude" and second.rules["rates"]["race_change"] == "race_drift ≥4"


def test_a_study_of_skin_tone_with_its_trend(tmp_path):
    study = reduced(
        "monk",
        tmp_path,
        sources={"kind": "drawn", "settings": {"grid": "monk", "faces_per_cell": 2, "seed": 42, "size": 64}},
        prompts={"include": ["O-01"]},
        instruments=[],
    )
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert second.factors[0].title == "Monk skin tone"
    assert any(e.measure.startswith("trend.") for e in second.estimates)


def test_a_study_of_curated_portraits_keeps_the_counts_of_their_pools(tmp_path):
    portraits = tmp_path / "portraits"
    portraits.mkdir()
    rows: list[dict[str, str]] = []
    for ident, labels, _, image in Drawn(seed=1, size=64, only=FEW).portraits():
        (portraits / f"{ident}.png").write_bytes(encode(image))
        rows.append({"file": f"{ident}.png", **labels})
    pd.DataFrame(rows).to_csv(portraits / "labels.csv", index=False)
    (portraits / "manifest.json").write_text(json.dumps({"distribution": {"V1": 4, "V2": 2}}))
    study = reduced(
        "curated",
        tmp_path,
        prompts={"include": ["O-01"]},
        experiments={"diagnosis": {}},
        editors=[{"id": "simulated-even", "seeds": [1, 2]}],
        judges=[{"id": "simulated-judge-a", "kind": "simulated", "settings": {"error": 0.4}}],
    )
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert second.counts["portraits.pool.V1"] == 4
    assert second.seeds


ODD = ['a,"b"', "=1+1", "ünïcødé 目\nsecond line", "'=x"]


@pytest.mark.parametrize("factors", [None, ("monk", "headwear")])
def test_an_audit_of_pairs_with_odd_prompt_ids_and_labels(tmp_path, factors):
    rows: list[dict[str, str]] = []
    rng = np.random.default_rng(1)
    for face, ident in product(range(4), ODD):
        for name in (f"face{face}.png", f"{face}-{len(rows)}.png"):
            if not (tmp_path / name).exists():
                Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(tmp_path / name)
        row = {"source": f"face{face}.png", "edited": f"{face}-{len(rows)}.png", "prompt": f"{ident} please"}
        row |= {"race": "White" if face % 2 else "Black", "gender": "Female", "age": "30-39", "prompt_id": ident}
        rows.append(row | {"monk": "-10" if face % 2 else "+2", "headwear": ['cap, "red"', "=none"][face // 2]})
    pd.DataFrame(rows).to_csv(tmp_path / "edits.csv", index=False)
    study = Study.load(begin(tmp_path / "edits.csv", tmp_path / "study", editor="@mine", factors=factors))
    study.run()
    first, second = trip(study, tmp_path / "export")
    unlike = {f.name for f in fields(Results) if getattr(first, f.name) != getattr(second, f.name)}
    assert unlike == set(DIFFERENT)
    assert first.measured
    table = study.table()
    assert set(table.edits["prompt_id"]) == set(ODD)
    pd.testing.assert_frame_equal(gather(tmp_path / "export").table.edits, table.edits, check_dtype=False)
    for path in (tmp_path / "export").glob("*.csv"):
        cells = pd.read_csv(path, keep_default_na=False, dtype=str)
        texts = cells.drop(columns=["seed", "value"], errors="ignore").to_numpy().ravel()
        assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@"))], path.name


def test_a_study_with_its_own_prompts_and_target_age(tmp_path):
    later = load_prompts("diagnostic")["V-05"].text
    (tmp_path / "mine.toml").write_text(
        'id = "mine"\n'
        f'[[prompts]]\nid = "O-01"\ntext = "{later}"\ncategory = "Own"\ntarget_years = 30\n'
        '[[prompts]]\nid = "O04"\ntext = "Called like an alias"\ncategory = "Own"\n',
        "utf-8",
    )
    study = open_study(tmp_path, prompts={"sets": ["mine.toml"]})
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert gather(tmp_path / "export").table.values[:, :, QUESTION_IDS.index("aging_accuracy")].any()


def test_a_judge_who_has_not_answered_yet_stays_in_the_table(tmp_path):
    open_study(tmp_path, judges=[{"id": "simulated-judge-b", "kind": "simulated"}]).run()
    study = open_study(tmp_path)
    table = study.table()
    silent = table.raters.index("simulated-judge-a")
    assert (table.status[silent] == NOT_ASKED).all()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    assert gather(tmp_path / "export").table.raters == table.raters


def sure(seen: Seen) -> Any:
    """A judge that says what it sees and how sure it is."""
    assert seen.schema is not None
    asked = seen.schema["properties"]["scores"]["properties"]
    drawn = hashlib.sha256(b"".join(seen.images)).digest()
    answer = {
        "observations": {"edit": '=HYPERLINK(1), a "hat"', "skin": "피부\nlighter"},
        "scores": {q: 1 + drawn[at] % 5 for at, q in enumerate(asked)},
        "confidence": {q: drawn[at] / 255 for at, q in enumerate(asked)},
        "evidence_summary": "@the hat, and -1 shade",
    }
    return says(json.dumps(answer))(seen)


def test_what_judges_stated_and_wrote_is_exported(wire: FakeProvider, tmp_path):
    wire.will(*[sure] * 8, *[says("I would rather not.")] * 8)
    study = open_study(tmp_path, **judged_by(wire, "chat", "gemini"))
    study.run()
    first, second = trip(study, tmp_path / "export")
    assert_same(first, second)
    told = pd.read_csv(tmp_path / "export/scores.csv", keep_default_na=False)
    scored = told[told["status"] == "scored"]
    assert len(scored) == 8
    assert set(scored["evidence"]) == {"'@the hat, and -1 shade"}, "as text, which a spreadsheet does not run"
    assert json.loads(scored["observations"].iloc[0])["skin"] == "피부\nlighter"
    assert (scored["confidence.skin_tone"].astype(float) <= 1).all()
    silent = told[told["status"] == "unparseable"]
    assert set(silent["reason"]) == {"no JSON object with the answers"}
    assert (silent[["observations", "evidence", "confidence.skin_tone"]] == "").all(axis=None), "nothing is made up"


def test_each_edit_has_the_score_of_its_judges_together(tmp_path):
    study = open_study(tmp_path, judges=[{"id": "simulated-judge-a", "kind": "simulated", "settings": CARELESS}])
    study.run()
    write_export(study, tmp_path / "export")
    edits = pd.read_csv(tmp_path / "export/edits.csv", keep_default_na=False)
    told = pd.read_csv(tmp_path / "export/scores.csv", keep_default_na=False)
    both = edits.merge(told, on="request_id")
    assert (both["score.race_drift"].astype(str) == both["race_drift"].astype(str)).all()
    unscored = both["status"] != "scored"
    assert unscored.any() and (both[unscored][["needs_review", "priority"]] == "").all(axis=None)
    assert set(both[~unscored]["priority"]) <= {"high", "medium", "low"}


def test_refused_edits_are_in_the_files_alone_too(tmp_path):
    study = open_study(tmp_path, editors=[{"id": "simulated-refusing", "settings": {"rate": 0.6}}])
    study.run()
    first = study.results()
    assert first.counts["refused"]
    paths = write_export(study, tmp_path / "export")
    second = analyze([path for path in paths if path.name == "scores.csv"])
    told = [{k: n for k, n in r.counts.items() if not k.startswith("tests.")} for r in (first, second)]
    assert told[0] == told[1], "how many tests could show something depends on the permutations, the study's own rule"
    assert [e.n for e in second.estimates] == [e.n for e in first.estimates]
    assert_same(first, analyze(tmp_path / "export"))


def test_other_rules_than_the_studys_can_be_asked_for(tmp_path):
    study = open_study(tmp_path, thresholds={"race_change": {"at_least": 4}})
    study.run()
    write_export(study, tmp_path / "export")
    other = analyze(tmp_path / "export", preset="published", factors=["gender"])
    assert (other.rules["preset"], other.rules["missing"]) == ("published", "exclude")
    assert other.rules["rates"]["race_change"] == "race_drift ≥4", "what is no part of a preset stays the study's"
    assert other.rules["draws"] == 200
    assert [f.name for f in other.factors] == ["gender"]
    assert analyze(tmp_path / "export", missing="neutral-3").rules["preset"] == "default"
    with pytest.raises(EvenEditError, match="preset 'mine' is not known; use one of: default, published"):
        analyze(tmp_path / "export", preset="mine")


def test_people_can_be_added_to_an_export(tmp_path):
    study = open_study(tmp_path / "study")
    study.run()
    write_export(study, tmp_path / "export")
    told = pd.read_csv(tmp_path / "export/scores.csv")
    people = told[told["judge"] == "simulated-judge-a"].rename(columns={"judge": "rater"}).assign(rater="ann")
    table = gather(tmp_path / "export", ratings=people).table
    assert table.of_kind(Kind.HUMAN) == [2]
    assert np.array_equal(table.values[2], table.values[0])


def test_a_folder_that_is_no_export_is_refused_in_words(tmp_path):
    with pytest.raises(EvenEditError, match=r"has no study\.json; give the folder that 'evenedit export' wrote"):
        analyze(tmp_path)
    with pytest.raises(EvenEditError, match="give the folder of an export alone, or files"):
        analyze([tmp_path, tmp_path / "scores.csv"])
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(EvenEditError, match=r"is of schema None; this release reads evenedit\.export/1"):
        analyze(tmp_path)
    (tmp_path / "study.json").write_text("no")
    with pytest.raises(EvenEditError, match=r"study\.json is damaged"):
        analyze(tmp_path)


def test_a_second_export_leaves_nothing_of_the_first(tmp_path):
    both = {"diagnosis": {}, "stereotype": {"include": ["W-01"]}}
    open_study(tmp_path, experiments=both).run()
    write_export(open_study(tmp_path, experiments=both), tmp_path / "export")
    assert (tmp_path / "export/verdicts.csv").is_file()
    alone = open_study(tmp_path)
    first, second = trip(alone, tmp_path / "export")
    assert not (tmp_path / "export/verdicts.csv").exists()
    assert_same(first, second)

"""Null pairs: made without an editor, rated like edits, and kept out of every statistic of edits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.api.analyze import analyze
from evenedit.api.audit import audit
from evenedit.api.study import Study
from evenedit.bundle.collect import collect_evidence
from evenedit.bundle.rescoring import rescore
from evenedit.bundle.verification import verify
from evenedit.bundle.writer import make_bundle
from evenedit.cases.casebook import Casebook
from evenedit.cases.review_queue import ReviewQueue
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR, ConditionKind
from evenedit.interchange.analyze import gather
from evenedit.interchange.export import write_export
from evenedit.operations.plan import make_plan
from evenedit.operations.status import status_of
from evenedit.ratings.digest import table_digest
from evenedit.ratings.ratings_file import read_ratings, write_ratings
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.study.preregistration.adherence import PlanAdherence
from evenedit.survey.sample import draw
from tests.support.bundles import sealed_study
from tests.support.judging import CONDITIONS, words
from tests.support.provider.server import FakeProvider
from tests.support.studies import judged_by, open_study

FACES, PER_FACE = 8, 2
WITH = {"experiments": {"diagnosis": {"null_pairs": PER_FACE}}}
DEFAULT = {"experiments": {"diagnosis": {"null_pairs": None}}}
INSTRUMENTS = [{"id": "skin", "kind": "skin"}, {"id": "change", "kind": "change", "settings": {"identity": False}}]


def test_a_study_has_two_per_face_unless_it_is_the_published_one(tmp_path: Path) -> None:
    small, paper = (Study.new(tmp_path / name, template=name) for name in ("small", "paper"))
    assert (small.file.null_pairs, paper.file.null_pairs) == (2, 0)
    assert open_study(tmp_path / "none").file.null_pairs == 0


def test_they_are_drawn_by_seed_and_change_no_other_request(tmp_path: Path) -> None:
    planned = open_study(tmp_path, **WITH).design
    sources = planned.preview_sources()
    requests = planned.planned(sources)
    null = [r for r in requests if r.condition.kind is ConditionKind.NULL_PAIR]
    assert len(null) == FACES * PER_FACE == len({r.id for r in null})
    assert {r.editor for r in null} == {NULL_PAIR_EDITOR}
    assert {r.prompt_id for r in null if r.source_ids == null[0].source_ids} == {"O-01", "V-05"}
    assert [r.id for r in requests if r not in null] == [r.id for r in open_study(tmp_path).design.planned(sources)]
    other = open_study(tmp_path, study={"title": "Small", "seed": 7}, **WITH).design
    assert [r.id for r in other.null_pairs(sources)] != [r.id for r in null]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that was sealed and run, with null pairs, judges and instruments; to be read only."""
    faces = {"seed": 3, "size": 128, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}}
    changes = WITH | {"instruments": INSTRUMENTS, "sources": {"kind": "drawn", "settings": faces}}
    return sealed_study(tmp_path_factory.mktemp("null") / "study", survey={"cases": 16}, **changes)


def null_pairs_of(table: RatingTable) -> RatingTable:
    assert table.null_pairs is not None
    return table.null_pairs


def test_a_null_pair_is_another_file_of_the_same_picture(study: Study) -> None:
    store = study.store
    edits, sources = store.edits(), store.sources()
    for request in (r for r in store.requests().values() if r.editor == NULL_PAIR_EDITOR):
        source, image = sources[request.source_ids[0]].image, edits[request.id].image
        assert image and image != source
        pixels = [np.asarray(store.images.open(one).convert("RGB"), dtype=int) for one in (source, image)]
        assert np.abs(pixels[0] - pixels[1]).mean() < 2
        assert not store.images.open(image).info.keys() & store.images.open(source).info.keys(), "it carries no note"


def test_the_table_holds_them_apart_with_the_same_raters_and_readings(study: Study) -> None:
    table = study.table()
    null = null_pairs_of(table)
    assert set(table.edits["condition"]) == {"baseline"} and len(table.edits) == 16
    assert set(null.edits["condition"]) == {"null_pair"} and len(null.edits) == FACES * PER_FACE
    assert (null.raters, null.kinds, null.factors) == (table.raters, table.kinds, table.factors)
    assert [(r.rater, r.measure) for r in null.readings] == [(r.rater, r.measure) for r in table.readings]
    assert all(len(r.values) == len(r.reasons) == len(null.edits) for r in null.readings)
    lightness = next(r for r in null.readings if r.measure == "mean.skin_delta_L")
    assert np.nanmean(np.abs(lightness.values)) < 1
    assert null.null_pairs is None


def test_simulated_judges_see_no_change_but_for_their_own_errors(study: Study) -> None:
    null = null_pairs_of(study.table())
    aged = (null.edits["prompt_id"] == "V-05").to_numpy()
    truth = {"edit_success": 1, "skin_tone": 3, "race_drift": 1, "gender_drift": 1}
    for question, value in truth.items():
        answers = null.values[:2, :, QUESTION_IDS.index(question)]
        assert (answers == value).mean() > 0.8 and (answers > 0).all()
    assert not null.values[:2, aged, QUESTION_IDS.index("age_drift")].any()
    assert (null.values[:2, aged, QUESTION_IDS.index("aging_accuracy")] < 3).all(), "nobody is as old as was asked for"


def test_no_statistic_sample_or_page_of_edits_has_them(study: Study) -> None:
    null = set(null_pairs_of(study.table()).edits["request_id"])
    results = study.results()
    assert {e.condition for e in results.estimates} == {"baseline"}
    assert {e.editor for e in results.estimates} <= {None, "simulated-lightening"}
    assert not null & set(Casebook.read(study).scores.edits["request_id"])
    assert not null & set(ReviewQueue(study).cases)
    cases = draw(study.file, study.store, 1)
    assert len(cases) == 16 and not null & cases.keys()


def test_files_bring_the_whole_table_back(study: Study, tmp_path: Path) -> None:
    table = replace(study.table(), profiles=None)
    write_export(study, tmp_path / "export")
    assert table_digest(gather(tmp_path / "export").table) == table_digest(table)
    assert table_digest(collect_evidence(study).table()) == table_digest(table)
    back = read_ratings(write_ratings(table, tmp_path / "ratings.csv.gz"), table.factors, 1)
    unread = replace(table, readings=(), null_pairs=replace(null_pairs_of(table), readings=()))
    assert table_digest(back) == table_digest(unread)
    assert table_digest(table) != table_digest(replace(table, null_pairs=None)), "the digest covers null pairs"
    assert len(null_pairs_of(table.without_people()).raters) == len(table.without_people().raters)


def test_a_bundle_is_verified_and_rescored_with_them(study: Study, tmp_path: Path) -> None:
    adherence = PlanAdherence.of(study)
    assert adherence is not None and not adherence.changes
    bundle = make_bundle(study, tmp_path / "audit.zip", pictures="none").bundle.path
    checked = verify(bundle)
    assert checked.intact and not checked.plan and not checked.notes
    outcome = rescore(bundle, tmp_path / "again")
    assert outcome.identical and not outcome.untrue


def test_summary_status_and_plan_show_them(study: Study) -> None:
    summary = study.summary()
    assert (summary.complete, summary.edited, summary.null_pairs) == (True, 16, FACES * PER_FACE)
    assert f"null pairs: {FACES * PER_FACE} of {FACES * PER_FACE}" in str(status_of(study))
    plan = make_plan(study)
    assert (plan.edits, plan.null_pairs) == (16, FACES * PER_FACE)
    assert plan.judge_calls == plan.judge_calls_done == 2 * (16 + FACES * PER_FACE)


def test_plan_prices_their_judge_calls(tmp_path: Path, wire: FakeProvider) -> None:
    prices = tmp_path / "prices.toml"
    price = '[judges]\n"simulated-chat" = {input = 1000.0, output = 0.0}\n'
    prices.write_text(f'date = "2026-01-01"\n[tokens]\ninput = 100\noutput = 10\n{price}')
    calls, dollars = [], []
    for name, number in (("without", 0), ("with", PER_FACE)):
        changes = judged_by(wire, "chat", experiments={"diagnosis": {"null_pairs": number}})
        plan = make_plan(open_study(tmp_path / name, **changes), prices)
        calls.append(plan.judges[0].calls)
        dollars.append(plan.usd)
    assert calls == [FACES, FACES + FACES * PER_FACE]
    assert dollars[0] and dollars[1] == pytest.approx((1 + PER_FACE) * dollars[0])


def test_a_judge_cannot_tell_them_from_edits(tmp_path: Path, wire: FakeProvider) -> None:
    open_study(tmp_path, **judged_by(wire, "chat", **WITH)).run()
    asked = [words(seen.body) for seen in wire.seen]
    assert len(asked) == FACES + FACES * PER_FACE
    assert not any(CONDITIONS.search(body) for body in asked)
    assert len(set(asked)) == 1, "but for the pictures, all calls are the same"


def test_a_study_begun_without_them_gets_none_unless_its_file_says_so(tmp_path: Path) -> None:
    open_study(tmp_path).run()
    again = open_study(tmp_path, **DEFAULT)
    assert again.file.null_pairs == 2
    before = again.store.run_of_edits(), again.store.run_of_replies()
    assert again.run().null_pairs == 0
    assert (again.store.run_of_edits(), again.store.run_of_replies()) == before
    assert open_study(tmp_path, **WITH).run().null_pairs == FACES * PER_FACE
    assert open_study(tmp_path, **DEFAULT).run().null_pairs == FACES * PER_FACE, "now it has been begun with them"
    assert open_study(tmp_path).table().null_pairs is None, "0 leaves them out again"


def test_a_second_run_makes_none_again_and_a_lost_picture_once_more(tmp_path: Path) -> None:
    loaded = open_study(tmp_path, **WITH)
    loaded.run()
    edits, replies = loaded.store.run_of_edits(), loaded.store.run_of_replies()
    request = next(r for r in loaded.store.requests().values() if r.editor == NULL_PAIR_EDITOR)
    picture = loaded.store.images.path(str(loaded.store.edits()[request.id].image))
    picture.unlink()
    open_study(tmp_path, **WITH).run()
    assert picture.is_file()
    assert {i for i, run in loaded.store.run_of_edits().items() if run != edits[i]} == {request.id}
    assert loaded.store.run_of_replies() == replies


def test_no_editor_may_have_their_id(tmp_path: Path) -> None:
    with pytest.raises(EvenEditError, match="tables use this id for null pairs"):
        open_study(tmp_path, editors=[{"id": NULL_PAIR_EDITOR, "kind": "simulated-even"}])
    with pytest.raises(EvenEditError, match="tables use this id for null pairs"):
        open_study(tmp_path).run(editors={NULL_PAIR_EDITOR: lambda images, instruction, seed: images[0]})


def test_an_audit_has_them_for_its_instruments(study: Study, tmp_path: Path) -> None:
    sources = list(study.store.sources().values())[:2]
    for number, source in enumerate(sources):
        study.store.images.open(source.image).save(tmp_path / f"{number}.png")
    rows = [
        {"source": f"{n}.png", "edited": f"{1 - n}.png", "prompt": "Do it.", **sources[n].attributes} for n in (0, 1)
    ]
    audited = audit(pd.DataFrame(rows), sources=tmp_path, edited=tmp_path, instruments=("skin",), out=tmp_path / "out")
    assert len(null_pairs_of(audited.table()).edits) == 2 * 2
    assert null_pairs_of(audited.table()).readings


def test_a_table_of_scores_may_bring_them(tmp_path: Path) -> None:
    columns = "experiment,condition,editor,source_id,race,gender,age,prompt_id,judge,status,seed"
    axes = "edit_success,skin_tone,race_drift,gender_drift,age_drift"
    face = "White_Male_20s,White,Male,20s,O-01"
    lines = [
        f"diagnosis,null_pair,,{face},a,scored,0,1,3,1,1,3",
        f"diagnosis,baseline,flux,{face},a,scored,0,5,4,1,1,3",
        f"diagnosis,null_pair,flux,{face},b,scored,1,1,3,2,1,3",
    ]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join([f"{columns},{axes}", *lines]) + "\n")
    table = gather(path).table
    null = null_pairs_of(table)
    assert table.edits["editor"].tolist() == ["flux"]
    assert null.edits["editor"].tolist() == [NULL_PAIR_EDITOR, "flux"]
    assert table.raters == null.raters == ("a", "b")
    assert null.values[:, :, QUESTION_IDS.index("race_drift")].tolist() == [[1, 0], [0, 2]]
    assert {e.n for e in analyze(path).estimates} == {1}
    path.write_text(f"{columns},{axes}\ndiagnosis,baseline,,{face},a,scored,0,5,4,1,1,3\n")
    with pytest.raises(EvenEditError, match="editor is empty"):
        gather(path)


def test_their_number_is_not_negative(tmp_path: Path) -> None:
    with pytest.raises(EvenEditError, match="null_pairs"):
        open_study(tmp_path, experiments={"diagnosis": {"null_pairs": -1}})

"""The stereotype experiment with both pronouns and both orders: what the editor is given, what judges are shown."""

from pathlib import Path

from evenedit.api.analyze import analyze
from evenedit.cases.casebook import Casebook
from evenedit.cases.search import Gallery
from evenedit.core.records import ConditionKind
from evenedit.design.assignments import Assignment
from evenedit.interchange.export import write_export
from evenedit.report.render.index import Index
from evenedit.report.tables.experiments import roles
from evenedit.run.rating import _Cases
from evenedit.study.analysis import current_results
from tests.support.studies import open_study

ARMS = (ConditionKind.BASELINE, ConditionKind.SWAPPED, ConditionKind.REVERSED, ConditionKind.SWAPPED_REVERSED)
EDITOR = [{"id": "simulated-even"}]


def study(folder: Path, **section):
    section = {"include": ["W-01", "W-02", "W-03", "W-04"], **section}
    return open_study(folder, editors=EDITOR, experiments={"stereotype": section})


def arms(opened) -> dict[str, list]:
    requests = opened.design.planned(opened.design.preview_sources())
    return {c.value: [r for r in requests if r.condition.kind is c] for c in ARMS}


def test_without_being_asked_for_the_other_order_is_not_made(tmp_path: Path):
    made = arms(study(tmp_path))
    assert [len(made[c]) for c in ARMS] == [4, 4, 0, 0]


def test_the_other_order_doubles_the_requests_and_leaves_the_others_as_they_are(tmp_path: Path):
    plain, both = arms(study(tmp_path / "a")), arms(study(tmp_path / "b", reversed=True))
    assert [r.id for r in plain["baseline"]] == [r.id for r in both["baseline"]]
    assert [r.id for r in plain["swapped"]] == [r.id for r in both["swapped"]]
    for before, after in (("baseline", "reversed"), ("swapped", "swapped_reversed")):
        for one, other in zip(both[before], both[after], strict=True):
            assert other.source_ids == one.source_ids[::-1]
            assert other.instruction == one.instruction and other.id != one.id


def test_judges_see_both_orders_alike_and_the_estimates_tell_them_apart(tmp_path: Path):
    opened = study(tmp_path, reversed=True)
    opened.runner().run()
    sources = opened.store.sources()
    cases = _Cases(opened.file, opened.store, sources)
    made = arms(opened)
    rater = opened.design.judges()[0]
    for before, after in (("baseline", "reversed"), ("swapped", "swapped_reversed")):
        for one, other in zip(made[before], made[after], strict=True):
            first, second = (cases.case(Assignment(rater, request, ())) for request in (one, other))
            assert [i.tobytes() for i in first.images] == [i.tobytes() for i in second.images]
            assert first.instruction == second.instruction == one.instruction
            assert sources[one.source_ids[0]].attributes["gender"] == "Male"
    found = {e.condition for e in current_results(opened).estimates if e.measure == "rate.role_followed"}
    assert found == {c.value for c in ARMS}
    gallery = Gallery(Casebook.read(opened))
    assert set(gallery.fields["condition"].values) == {c.value for c in ARMS}
    case = gallery.book.open(made["reversed"][0].id)
    assert {s.condition for s in case.siblings} == {"swapped_reversed"}
    opened.store.close()


def test_judges_are_asked_who_has_the_higher_status_where_the_study_wants_it(tmp_path: Path):
    plain, opened = study(tmp_path / "plain"), study(tmp_path / "asked", status=True)
    assert plain.design.judges()[0].revision != opened.design.judges()[0].revision
    assert plain.file.hash == study(tmp_path / "again", status=False).file.hash != opened.file.hash
    opened.runner().run()
    rater = opened.design.judges()[0]
    cases = _Cases(opened.file, opened.store, opened.store.sources())
    assignment = Assignment(rater, arms(opened)["baseline"][0], ())
    assert [q.id for q in cases.questions(assignment)] == ["stereotype", "target_role", "status_role"]
    results = current_results(opened)
    shares = {e.measure: e for e in results.estimates if e.condition == "baseline" and e.editor and not e.group}
    rates = [shares[f"rate.status_{who}"] for who in ("male", "female", "unclear")]
    assert [e.n for e in rates] == [4, 4, 4] and sum(e.value or 0 for e in rates) == 1
    assert "status_male" in {c.id for c in roles(Index(results)).columns}
    files = {p.name: p for p in write_export(opened, tmp_path / "export")}
    assert "higher_status" in files["verdicts.csv"].read_text().splitlines()[0]
    again = {e.measure: e.value for e in analyze(tmp_path / "export").estimates if e.condition == "baseline"}
    assert again["rate.status_male"] == shares["rate.status_male"].value
    opened.store.close()


def test_without_the_question_nothing_is_said_about_status(tmp_path: Path):
    opened = study(tmp_path)
    opened.runner().run()
    results = current_results(opened)
    assert not [e for e in results.estimates if e.measure.startswith("rate.status_") and e.n]
    assert "status_male" not in {c.id for c in roles(Index(results)).columns}
    opened.store.close()

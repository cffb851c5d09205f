"""A case is opened with all that is known of it, and nothing that is not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from evenedit.api.study import Study
from evenedit.cases.casebook import Casebook
from evenedit.cases.labels import label_titles
from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Reply
from evenedit.core.records import Kind, Outcome, Status
from evenedit.ratings.table import STATUSES
from evenedit.storage.store import StoredReply
from evenedit.web.pages import FOLDER
from tests.support.studies import open_study

SCORES = {"edit_success": 5, "skin_tone": 1, "race_drift": 1, "gender_drift": 1, "age_drift": 3}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """Two editors, one of which refuses some; two judges; a feature prompt and a placebo; both instruments."""
    made = open_study(
        tmp_path_factory.mktemp("cases"),
        sources={
            "kind": "drawn",
            "settings": {"seed": 3, "size": 96, "only": {"race": ["White", "Black"], "age": ["20s"]}},
        },
        prompts={"include": ["O-01"]},
        experiments={
            "diagnosis": {},
            "mitigation": {"cases": 4, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01"]},
        },
        editors=[
            {"id": "simulated-lightening", "settings": {"rate": 0.9}, "seeds": [1, 2]},
            {"id": "simulated-refusing", "settings": {"rate": 0.9}, "experiments": ["diagnosis"]},
        ],
        judges=[
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2, "unparseable": 0.3}},
        ],
        instruments=[
            {"id": "skin", "kind": "skin", "editors": ["simulated-lightening"]},
            {"id": "change", "kind": "change", "editors": ["simulated-lightening"], "settings": {"identity": False}},
        ],
    )
    made.run()
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def book(loaded: Study) -> Casebook:
    return Casebook.read(loaded)


def find(book: Casebook, **wanted: str) -> str:
    """The first request with these columns."""
    edits = book.scores.edits
    for name, value in wanted.items():
        edits = edits[edits[name] == value]
    return str(edits["request_id"].iloc[0])


def test_a_case_holds_what_was_asked_what_came_back_and_who_said_what(loaded, book):
    ident = find(book, condition="baseline", editor="simulated-lightening", experiment="diagnosis")
    case = book.open(ident)
    assert case.id == ident and case.request.prompt_id == case.prompt.id == "O-01"
    assert case.edit.outcome is Outcome.EDITED and case.edit.image in loaded.store.images and not case.reason
    assert [s.id for s in case.sources] == list(case.request.source_ids)
    assert list(label_titles(case.sources[0].attributes, book.factors)) == ["race", "gender", "age"]
    kinds = {o.rater: o.kind for o in case.opinions}
    assert kinds == {
        "simulated-judge-a": Kind.VLM,
        "simulated-judge-b": Kind.VLM,
        "skin": Kind.INSTRUMENT,
        "change": Kind.INSTRUMENT,
    }
    assert [q.id for q in case.questions] == list(SCORES)
    said = {o.rater: dict(o.values) for o in case.opinions}
    for rater in ("simulated-judge-a", "simulated-judge-b"):
        revision = book.revisions[rater]
        stored = {r.question_id: r.value for r in loaded.store.ratings(rater, revision) if r.request_id == ident}
        assert said[rater] == stored
    assert set(case.simulated) == {"simulated-lightening", "simulated-judge-a", "simulated-judge-b"}
    assert {f.measure for f in case.findings} >= {"mean.skin_delta_L", "mean.changed_share"}
    assert all((f.value is None) == bool(f.reason) for f in case.findings)
    assert "verdict" in case.measured


def test_siblings_are_the_same_portrait_and_prompt_in_other_editors_conditions_and_seeds(book):
    ident = find(book, condition="feature")
    case = book.open(ident)
    edits = book.scores.edits.set_index("request_id")
    own = edits.loc[ident]
    alike = edits[(edits["source_id"] == own["source_id"]) & (edits["prompt_id"] == own["prompt_id"])]
    assert {s.request_id for s in case.siblings} == set(alike.index) - {ident}
    assert {s.condition for s in case.siblings} >= {"baseline", "placebo"}
    assert {s.editor for s in case.siblings} == {"simulated-lightening", "simulated-refusing"}
    assert [s.editor for s in case.siblings] == sorted(s.editor for s in case.siblings)


def test_a_refused_edit_has_its_reason_and_no_scores(book):
    case = book.open(find(book, outcome="refused"))
    assert case.edit.image is None and case.reason and not case.scores and not case.needs_review
    assert all(o.status is None and not o.values for o in case.opinions)


def test_a_stereotype_case_has_two_portraits_and_its_own_questions(book):
    case = book.open(find(book, experiment="stereotype", outcome="edited"))
    assert len(case.sources) == 2 and case.questions[0].id == "stereotype"


def test_disagreement_is_told_with_who_said_what_and_evidence_comes_from_the_reply(loaded, book):
    ident = find(book, condition="baseline", editor="simulated-lightening", experiment="diagnosis")
    rater, other = "simulated-judge-a", "simulated-judge-b"
    raw = {"observations": {"skin": "darker cheeks"}, "scores": SCORES, "evidence_summary": "The cheeks are darker."}
    replies = {
        rater: Reply(Status.SCORED, SCORES, {"skin_tone": 0.75}, raw=f"Here it is: {json.dumps(raw)}"),
        other: Reply(Status.SCORED, SCORES | {"skin_tone": 5}, raw="{}"),
    }
    answers = [StoredReply(ident, who, book.revisions[who], Kind.VLM, reply) for who, reply in replies.items()]
    loaded.store.save_answers(answers, run_id=1)
    case = Casebook.read(loaded).open(ident)
    assert case.needs_review and dict(case.disagreements) == {"skin_tone": f"{rater} 1, {other} 5"}
    assert (case.priority, case.concern) == ("high", "disagreement")
    first, second = case.opinions[:2]
    assert first.evidence == "The cheeks are darker." and first.observations == {"skin": "darker cheeks"}
    assert first.confidence == {"skin_tone": 0.75}
    assert second.evidence == "" and second.observations == {}
    page = render(case)
    assert "The cheeks are darker." in page and "75% sure" in page and "Much lighter" in page
    assert page.count("SIMULATED") == 2


def test_a_reply_that_cannot_be_read_is_shown_as_it_came(loaded, book):
    unread = book.scores.table.status[1] == STATUSES.index(Status.UNPARSEABLE)
    ident = str(book.scores.edits["request_id"][unread].iloc[0])
    broken = Reply(Status.UNPARSEABLE, reason="broken <b>JSON</b>", raw='{"scores": {"skin_tone": <9>')
    rater = "simulated-judge-b"
    loaded.store.save_answers([StoredReply(ident, rater, book.revisions[rater], Kind.VLM, broken)], run_id=1)
    loaded.store.save_answers(
        [StoredReply(ident, rater, "an earlier revision", Kind.VLM, Reply(Status.SCORED, SCORES, raw="old"))], run_id=1
    )
    case = Casebook.read(loaded).open(ident)
    second = case.opinions[1]
    assert second.status is Status.UNPARSEABLE and second.reason == "broken <b>JSON</b>"
    page = render(case)
    assert "unparseable: broken &lt;b&gt;JSON" in page and "&lt;9&gt;" in page and "old" not in page


def test_an_unknown_case_is_told(book):
    with pytest.raises(EvenEditError, match="there is no edit 'nothing'"):
        book.open("nothing")


def render(case: object) -> str:
    environment = Environment(loader=FileSystemLoader(Path(FOLDER) / "templates"), autoescape=True)
    environment.filters["share"] = lambda value: f"{value:.0%}"
    return environment.get_template("case/ratings.html").render(case=case)

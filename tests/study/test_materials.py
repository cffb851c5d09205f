"""The appendix holds what was asked, word for word: as the editors got it and as the judges' provider received it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenedit.api.study import Study
from evenedit.report.contents import all_tables
from evenedit.report.render.index import Index
from evenedit.report.tables.appendix import APPENDIX
from evenedit.reporting.writer import report_study
from evenedit.results.results import Results
from evenedit.study.analysis import compute_results
from evenedit.study.materials import PICTURE
from tests.support.calls import KEY
from tests.support.provider.server import FakeProvider, ProviderAnswer, Seen, says
from tests.support.studies import judged_by, open_study

EXPERIMENTS = {
    "diagnosis": {"floor": True},
    "mitigation": {"cases": 4, "pairwise": True, "extractor": {"kind": "simulated"}},
    "stereotype": {"include": ["W-01", "W-26"]},
}


def harsh(seen: Seen) -> ProviderAnswer:
    """Score every question low or high by the words that arrived, with evidence of one's own."""
    fields = (seen.schema or {})["properties"]
    answer = {name: {key: f"seen of {key}" for key in fields[name]["properties"]} for name in ("observations",)}
    low = int(hashlib.sha256(seen.body).hexdigest(), 16) % 2
    answer["scores"] = {q: form["enum"][0 if low else -1] for q, form in fields["scores"]["properties"].items()}
    answer["confidence"] = dict.fromkeys(answer["scores"])
    return says(json.dumps(answer | {"evidence_summary": f"Number {len(seen.body)}."}))(seen)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with pytest.MonkeyPatch.context() as patch, FakeProvider() as running:
        for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
            patch.setenv(name, KEY)
        yield running


@pytest.fixture(scope="module")
def judged(server: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Study:
    changes = judged_by(server, "chat", "responses", prompts={"include": ["O-01", "V-05"]}, experiments=EXPERIMENTS)
    changes["judges"][1]["blind"] = False
    made = open_study(tmp_path_factory.mktemp("asked"), **changes)
    server.will(*[harsh] * 200)
    made.run()
    return made


def words_in(value: object) -> list[str]:
    """Every text of a request's body, in its order."""
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for child in children for text in words_in(child)]


def test_the_judges_prompt_is_what_their_provider_received(judged: Study, server: FakeProvider) -> None:
    results = compute_results(judged, judged.table())
    received = [set(words_in(json.loads(seen.body))) for seen in server.seen]
    prompts = results.materials.judge_prompts
    assert {p.about for p in prompts} == {
        "an edit of one portrait",
        "an edit of one portrait by a prompt with a target age",
        "an edit of two portraits",
        "two outputs of one portrait",
    }
    for prompt in prompts:
        parts = [part for part in prompt.text.split(f"\n\n{PICTURE}") if part]
        texts = [prompt.system, *(part.removeprefix("\n\n") for part in parts)]
        assert any(all(text in body for text in texts) for body in received), prompt.about


def test_a_judge_that_sees_labels_has_a_row_of_its_own(judged: Study) -> None:
    prompts = compute_results(judged, judged.table()).materials.judge_prompts
    told = [p for p in prompts if "The dataset describes the person" in p.text]
    assert told
    assert all(p.judges == ("simulated-responses",) for p in told)
    assert any(p.judges == ("simulated-chat",) for p in prompts)


def test_every_prompt_and_setting_is_that_of_the_requests(judged: Study) -> None:
    asked = compute_results(judged, judged.table()).materials
    requests = judged.store.requests().values()
    assert {p.id for p in asked.prompts} == {r.prompt_id for r in requests}
    texts = {p.id: p.text for p in asked.prompts}
    plain = [r for r in requests if str(r.condition) in ("baseline", "placebo", "floor")]
    assert plain and all(texts[r.prompt_id] == r.instruction for r in plain)
    assert sum(e.edits for e in asked.editors) == len(requests)
    for used in asked.editors:
        own = [r for r in requests if r.editor == used.editor]
        assert all(dict(r.settings) == dict(used.settings) for r in own)
        assert set(used.seeds) == {r.seed for r in own}


def test_feature_prompts_are_those_that_stood_before_the_request(judged: Study) -> None:
    asked = compute_results(judged, judged.table()).materials
    featured = [r for r in judged.store.requests().values() if str(r.condition) == "feature"]
    texts = {t.source: t for t in asked.feature_prompts}
    assert featured and set(texts) == {r.source_ids[0] for r in featured}
    assert all(r.instruction.startswith(texts[r.source_ids[0]].text) for r in featured)
    assert sum(t.edits for t in texts.values()) == len(featured)
    assert all(t.extractor for t in texts.values())


def test_the_judges_words_are_those_of_their_replies(judged: Study) -> None:
    asked = compute_results(judged, judged.table()).materials
    assert asked.cases, "the local server's scores fail some edit"
    for case in asked.cases:
        raws = [reply.raw for reply in judged.store.replies(case.request).values()]
        for words in case.words:
            assert any(words.evidence and json.dumps(words.evidence)[1:-1] in raw for raw in raws)
            assert set(words.scores) <= {q.id for q in asked.questions}


def test_the_appendix_has_its_tables_and_survives_the_file(judged: Study, tmp_path: Path) -> None:
    report_study(judged, tmp_path / "report")
    results = Results.from_json((tmp_path / "report" / "results.json").read_text("utf-8"))
    assert results.materials == compute_results(judged, judged.table()).materials
    shown = all_tables(Index(results))
    assert set(APPENDIX) - set(shown) <= {"table16", "added", "twins"}  # no survey, added portrait or twin
    page = "".join((tmp_path / "report" / name).read_text("utf-8") for name in ("report.html", "appendix.html"))
    for ident in set(APPENDIX) & set(shown):
        assert f'id="{ident}"' in page
        assert (tmp_path / "report" / "tables" / f"{ident}.csv").is_file()
        assert r"\begin{tabular}" in shown[ident].to_latex()


def test_scores_alone_have_no_appendix_of_words() -> None:
    index = Index(Results(provenance={}, rules={}, estimates=(), counts={"edits.diagnosis.baseline": 3}))
    assert [ident for ident, build in APPENDIX.items() if build(index) is not None] == ["table13"]

"""A study that groups its portraits by Monk skin tone and headwear: nothing is grouped by race, gender or age."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenedit.api.study import Study
from evenedit.cases import grids
from evenedit.cases.labels import group_in_words, in_a_sentence, labels_in_words
from evenedit.cases.review_queue import ReviewQueue
from evenedit.cases.search import Gallery, LiveGallery
from evenedit.comparison.compare import Side, compare
from evenedit.comparison.leaderboard import measures_of, write_leaderboard
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Source
from evenedit.operations import anchors, judge_checks
from evenedit.operations.plan import count_tests, portraits_by_level
from evenedit.protocol import FACTORS, Factor, default_rubric
from evenedit.protocol.prompts import merge
from evenedit.ratings.combine import combine
from evenedit.report.figures.photo_figure import PhotoFigure
from evenedit.reporting.examples import choose
from evenedit.reporting.photo_figures import photo_figures
from evenedit.simulation.portraits.drawn import LABELS, sample
from evenedit.simulation.portraits.portrait import render
from evenedit.study.analysis import analysis_rules
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, serving

MONK = ["2", "5", "8"]
HEADWEAR = ["none", "scarf"]
DECLARED: dict[str, Any] = {
    "factors": [
        {"name": "monk", "title": "Monk skin tone", "levels": MONK, "ordered": True},
        {"name": "headwear", "levels": HEADWEAR},
    ],
    "sources": {"kind": "folder", "settings": {"path": "portraits"}},
    "prompts": {"include": ["O-01", "V-02"]},
    "editors": [
        {"id": "simulated-even"},
        {"id": "simulated-lightening", "settings": {"rate": 0.7, "groups": {"monk": ["8"]}}},
    ],
    "judges": [
        {"id": f"simulated-judge-{n}", "kind": "simulated", "settings": {"seed": n, "error": 0.4}} for n in (1, 2)
    ],
}
DRAWN = {"2": "White", "5": "Latino", "8": "Black"}
OLD_LABELS = re.compile(r"labelled (race|gender|age)\b|by (race|gender|age)\b|races|(race|gender|age) labels?\b", re.I)
"""Captions that group by a factor that this study does not have."""


def open_declared(folder: Path, faces: int = 2, **changes: Any) -> Study:
    """A study of drawn portraits labelled by tone and headwear, and one portrait without a headwear label."""
    study = open_study(folder, **DECLARED | changes)
    cells = [(tone, worn, face) for tone in MONK for worn in HEADWEAR for face in range(faces)]
    portraits = [_portrait(study, tone, worn, face) for tone, worn, face in [*cells, ("5", "", 0)]]
    study.store.save_sources(portraits)
    study.store.set_fact(
        "sources", digest(study.file.sections.sources.model_dump(mode="json", include={"kind", "settings"}))
    )
    return study


def _portrait(study: Study, tone: str, worn: str, face: int) -> Source:
    labels = {"monk": tone, "headwear": worn}
    drawn = {"race": DRAWN[tone], "gender": "Female", "age": "20s"}
    picture = render(sample(drawn, 10 * int(tone) + face), 64)
    picture.info[LABELS] = json.dumps(labels)
    return Source(f"{tone}-{worn or 'unknown'}-{face}", study.store.images.put(picture), labels, "drawn")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    made = open_declared(tmp_path_factory.mktemp("monk"))
    made.run()
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def gallery(study: Study) -> Gallery:
    return LiveGallery(study).now()


@pytest.fixture(scope="module")
def figures(study: Study) -> dict[str, PhotoFigure]:
    rules = analysis_rules(study.file)
    scores = combine(study.table(), rules.ensemble, rules.missing)
    return {f.id: f for f in photo_figures(scores, study.store, merge([study.file.prompts]), simulated=True)}


def test_the_plan_counts_portraits_by_the_main_factor_and_tests_by_the_factors_that_vary(study):
    sources = study.design.preview_sources()
    counts = portraits_by_level(sources, study.file.factors[0])
    assert list(counts.values()) == [4, 5, 4], "the portrait without headwear has a skin tone"
    bare = {id: source for id, source in sources.items() if source.attributes.get("headwear") == "none"}
    rates = [study.file.rubric.words(rate) for rate in study.file.rubric.rates]
    gaps = sum(words.gap for words in rates) + 1  # and refusals
    editors = len(study.file.editors("diagnosis"))
    assert count_tests(study, sources) - count_tests(study, bare) == editors * gaps


def test_power_needs_portraits_of_two_groups(tmp_path):
    made = open_study(tmp_path, **DECLARED)
    made.store.save_sources([_portrait(made, "2", worn, 0) for worn in HEADWEAR])
    with pytest.raises(EvenEditError, match="portraits of two or more groups"):
        made.plan(power=True)
    made.store.close()


def test_the_gallery_filters_by_the_factors_and_shows_a_missing_label_as_such(gallery):
    fields = gallery.fields
    assert not {"race", "gender", "age"} & set(fields)
    assert fields["monk"].title == "Labelled Monk skin tone" and list(fields["monk"].values) == MONK
    assert fields["headwear"].title == "Labelled headwear"
    assert dict(fields["headwear"].values) == {"none": "none", "scarf": "scarf", "unlabelled": "no label"}
    result = gallery.search(gallery.wanted([("monk", "8"), ("headwear", "scarf")]))
    edits = gallery.book.scores.edits.iloc[result.rows]
    assert len(edits) == 8 and set(edits["monk"]) == {"8"} and set(edits["headwear"]) == {"scarf"}
    assert gallery.tile(int(result.rows[0])).labels == "labelled 8, scarf"
    unlabelled = gallery.search(gallery.wanted([("headwear", "unlabelled")]))
    assert {gallery.tile(int(row)).labels for row in unlabelled.rows} == {"labelled 5"}
    with pytest.raises(EvenEditError, match="'race' is not a filter of this gallery"):
        gallery.wanted([("race", "White")])


def test_one_prompt_is_shown_across_the_main_factor_matched_on_the_others(gallery):
    grid, choices = grids.across_levels(gallery, {"headwear": ["scarf"], "face": ["2"]})
    assert list(grid.columns) == MONK
    assert [cell.caption for cell in grid.rows[0][1]] == ["2-scarf-1", "5-scarf-1", "8-scarf-1"]
    assert grid.title.endswith("over portraits labelled scarf")
    assert {c.name: c.title for c in choices}["headwear"] == "Labelled headwear"
    assert not {"race", "gender", "age"} & {c.name for c in choices}


def test_pages_of_the_gallery_and_of_the_review_say_nothing_of_other_factors(study):
    with serving(app_of(study)) as base, httpx.Client(base_url=base, follow_redirects=True) as client:
        client.headers.update({"Origin": base, "accept": "text/html"})
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        first = client.get("/gallery?sort=study")
        case = re.search(r"/gallery/case/(\w+)", first.text)
        assert case is not None
        across = client.get("/gallery/across")
        pages = [first, across, client.get("/gallery/mosaic"), client.get(f"/gallery/case/{case[1]}")]
        assert "One prompt across levels of Monk skin tone" in across.text
        for page in pages:
            assert page.status_code == 200 and not OLD_LABELS.search(page.text), page.url
        assert client.get("/gallery/across.png").headers["content-type"] == "image/png"
        assert client.get("/gallery?race=White").status_code == 400
        client.post("/review/name", data={"name": "ada"})
        queue = ReviewQueue(study)
        review = client.get(f"/review/case/{next(iter(queue.cases))}").text
        assert not re.search(r"labelled |scarf|Monk|headwear", review), "reviewers are blind"


def test_the_leaderboard_has_the_gaps_over_every_declared_factor(study, tmp_path):
    page = write_leaderboard([study.results()], tmp_path).read_text()
    header, *rows = (tmp_path / "leaderboard.csv").read_text().splitlines()
    for factor in ("", "_headwear"):
        for rate in ("soft_erasure", "skin_lighter", "race_change"):
            assert f"gap_{rate}{factor}" in header.split(",")
    assert len(rows) == 2 and "gap over Monk skin tone" in page and "gap over headwear" in page
    assert "over levels of Monk skin tone" in page and not OLD_LABELS.search(page)


def test_the_leaderboard_of_race_gender_and_age_has_its_six_columns():
    assert [(m.key, m.group) for m in measures_of(FACTORS, default_rubric())] == [
        ("rate_edit_success", {}),
        ("rate_soft_erasure", {}),
        ("gap_soft_erasure", {"race": "*"}),
        ("gap_skin_lighter", {"race": "*"}),
        ("gap_race_change", {"race": "*"}),
        ("gap_gender_change", {"gender": "*"}),
    ]
    assert measures_of(FACTORS, default_rubric())[-1].title == "Gender change, gap over gender"


def test_studies_with_different_factors_do_not_share_a_table(study, tmp_path):
    results = study.results()
    other = replace(results, factors=FACTORS)
    with pytest.raises(EvenEditError, match=r"different factors \(monk, headwear; race, gender, age\)"):
        write_leaderboard([results, other], tmp_path)


def test_two_editors_are_compared_by_the_study_s_factors(study, tmp_path):
    page = compare(Side.of(study, "simulated-even"), Side.of(study, "simulated-lightening"), tmp_path).read_text()
    groups = {key for d in json.loads((tmp_path / "compare.json").read_text())["differences"] for key in d["group"]}
    assert groups == {"monk", "headwear"}
    assert "over Monk skin tone" in page and "over headwear" in page and not OLD_LABELS.search(page)


def test_photo_figures_go_across_the_main_factor_and_have_no_roles(figures):
    assert set(figures) == {"figure12", "figure13"}
    across = figures["figure13"]
    assert across.title == "The same prompts across levels of Monk skin tone"
    assert "differs most between Monk skin tone labels" in across.caption
    assert "the headwear of the median change" in across.caption
    assert re.search(r"Outputs of simulated-\w+ of portraits labelled (none|scarf): every row", across.caption)
    assert re.search(r": 2 .+; 5 .+; 8 ", across.alt)
    assert "2 editors, 2 prompts" in figures["figure12"].caption
    for figure in figures.values():
        assert not OLD_LABELS.search(figure.title + figure.caption + figure.alt)


def test_a_study_of_one_factor_has_its_figure_without_matching(tmp_path):
    made = open_declared(tmp_path, 1, factors=DECLARED["factors"][:1], editors=DECLARED["editors"][:1], judges=[])
    made.run()
    rules = analysis_rules(made.file)
    scores = combine(made.table(), rules.ensemble, rules.missing)
    drawn = {f.id: f for f in photo_figures(scores, made.store, made.file.prompts, simulated=True)}
    assert "The first editor and prompts: nothing is rated" in drawn["figure13"].caption
    grid, choices = grids.across_levels(LiveGallery(made).now(), {})
    assert list(grid.columns) == MONK and grid.title == "simulated-even: the same prompt over portraits"
    assert "headwear" not in {c.name for c in choices}
    made.store.close()


def test_examples_carry_the_labels_of_the_study_s_factors(study):
    rules = analysis_rules(study.file)
    scores = combine(study.table(), rules.ensemble, rules.missing)
    examples = list(choose(scores, study.store, study.file.prompts))
    assert examples and all({"monk"} <= set(e.group) <= {"monk", "headwear"} for e in examples)


def test_anchors_are_balanced_over_the_study_s_factors(study, tmp_path):
    frozen = anchors.freeze(study, tmp_path / "anchors", size=6)
    for name, levels in (("monk", MONK), ("headwear", HEADWEAR)):
        assert {a.attributes[name] for a in frozen.anchors} == set(levels), "none has a missing label"


def test_a_check_of_judges_groups_by_the_study_s_factors(study):
    requests = len([e for e in study.store.edits().values() if e.image])
    plan = judge_checks.make_plan(study, requests)
    judge_checks.ask(study.runner(), plan)
    check = judge_checks.evaluate(study, judge_checks.make_plan(study, requests))
    assert {name for shift in check.shifts for name in shift.group} == {"monk", "headwear"}


def test_labels_are_printed_by_the_titles_of_their_levels():
    tone, worn = Factor.of("monk", MONK, title="Monk skin tone"), Factor.of("headwear", HEADWEAR)
    assert (in_a_sentence(tone), in_a_sentence(worn), in_a_sentence(FACTORS[0])) == (
        "Monk skin tone",
        "headwear",
        "race",
    )
    assert labels_in_words({"age": "70plus", "race": "EastAsian", "pool": "b"}, FACTORS) == "East Asian, 70+"
    assert labels_in_words({"headwear": ""}, [tone, worn]) == "without labels"
    assert group_in_words({}, [tone, worn]) == "Everybody" and group_in_words({"monk": "5"}, [tone, worn]) == "5"

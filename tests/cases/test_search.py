"""The gallery's index: filters, counts, orders, and a study that is still running."""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from evenedit.api.study import Study
from evenedit.cases import grids as panels
from evenedit.cases.casebook import Casebook
from evenedit.cases.change_maps import ChangeMaps
from evenedit.cases.search import PAGE, Gallery, LiveGallery, disagreement
from evenedit.cases.thumbnails import Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Edit, Kind, Outcome
from evenedit.protocol import QUESTIONS
from evenedit.protocol.drift import drift
from evenedit.ratings.combine import applicable_questions, combine
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS
from tests.support.studies import open_study


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    made = open_study(
        tmp_path_factory.mktemp("gallery"),
        prompts={"include": ["O-01", "V-02", "V-05"]},
        experiments={
            "diagnosis": {},
            "mitigation": {"cases": 6, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        editors=[
            {"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}},
            {"id": "simulated-refusing", "settings": {"rate": 0.5}, "experiments": ["diagnosis"]},
        ],
        judges=[
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1, "error": 0.5}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2, "error": 0.5, "missing": 0.1}},
        ],
    )
    made.run()
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def gallery(loaded: Study) -> Gallery:
    return LiveGallery(loaded).now()


def found(gallery: Gallery, *pairs: tuple[str, str]) -> list[str]:
    rows = gallery.search(gallery.wanted(pairs)).rows
    return [str(gallery.book.scores.edits["request_id"].iloc[int(row)]) for row in rows]


def test_every_filter_keeps_the_cases_it_names_and_counts_what_each_choice_would_give(gallery):
    edits = gallery.book.scores.edits
    everything = gallery.search(gallery.wanted([]))
    assert len(everything.rows) == len(edits) == len(gallery)
    for name, field in gallery.fields.items():
        assert sum(everything.counts[name].values()) == len(edits), name
        for value, count in everything.counts[name].items():
            assert len(found(gallery, (name, value))) == count, (name, value)
        assert set(everything.counts[name]) == set(field.values)
    black = edits["request_id"][edits["race"] == "Black"]
    assert set(found(gallery, ("race", "Black"))) == set(black)
    both = found(gallery, ("race", "Black"), ("race", "White"), ("prompt", "O-01"), ("outcome", "edited"))
    chosen = edits["race"].isin(["Black", "White"]) & (edits["prompt_id"] == "O-01") & (edits["outcome"] == "edited")
    assert set(both) == set(edits["request_id"][chosen])


def test_counts_of_a_filtered_field_ignore_its_own_choice_and_obey_all_others(gallery):
    edits = gallery.book.scores.edits
    wanted = gallery.wanted([("race", "Black"), ("prompt", "O-01"), ("drift.min", "1")])
    counts = gallery.search(wanted).counts
    drifted = gallery.numbers["drift"].values >= 1
    alone = edits[(edits["prompt_id"] == "O-01") & drifted]
    assert counts["race"]["White"] == (alone["race"] == "White").sum()
    here = edits[(edits["race"] == "Black") & drifted]
    assert counts["prompt"] == {p: (here["prompt_id"] == p).sum() for p in gallery.fields["prompt"].values}


def test_numbers_are_those_worked_out_by_hand(gallery):
    scores = gallery.book.scores
    judges = scores.table.values.astype(int)
    moved, apart = drift(scores.values).points, disagreement(scores, applicable_questions(scores.table))
    axes = {"skin_tone": 3, "race_drift": 1, "gender_drift": 1, "age_drift": 3}
    for row in range(len(gallery)):
        known = gallery.book.scores_of(row)
        steps = [abs(known[a] - still) for a, still in axes.items() if a in known]
        assert moved[row] == sum(steps) if steps else np.isnan(moved[row])
        both = {q: ab for q, ab in zip(QUESTION_IDS, zip(*judges[:, row], strict=True), strict=True) if all(ab)}
        opposed = {q: 2 * (set(ab) == {1, 2}) for q, ab in both.items() if QUESTIONS[q].sided == "choice"}
        points = [opposed[q] if q in opposed else abs(ab[0] - ab[1]) for q, ab in both.items()]
        assert apart[row] == max(points) if points else np.isnan(apart[row])
    assert {0.0, 1.0, 2.0} <= set(apart) and np.isnan(apart).any()


def test_people_are_set_beside_the_judges(gallery):
    book, table = gallery.book, gallery.book.scores.table
    skin, edited = QUESTION_IDS.index("skin_tone"), np.flatnonzero(book.scores.values[:, 1] > 0)[:2]
    people = np.zeros((2, *table.values.shape[1:]), dtype=np.int8)
    people[0, edited[0], skin], people[1, edited[0], skin], people[0, edited[1], skin] = 5, 4, 2
    both = replace(
        table,
        raters=(*table.raters, "person-1", "person-2"),
        kinds=(*table.kinds, Kind.HUMAN, Kind.HUMAN),
        values=np.concatenate([table.values, people]),
        status=np.concatenate([table.status, np.where(people.any(axis=2), 0, NOT_ASKED).astype(np.int8)]),
        confidence=None,
    )
    beside = Gallery(replace(book, scores=combine(both, {}, "exclude")))
    gaps = beside.numbers["people_gap"].values
    first, second = (int(book.scores.values[row, skin]) for row in edited)
    assert gaps[edited].tolist() == [abs(first - 4.5), abs(second - 2)] and np.isfinite(gaps).sum() == 2
    assert len(found(beside, ("people", "yes"))) == 2 and "people" in beside.sorts and "people" not in gallery.sorts
    strongest = beside.search(beside.wanted([("sort", "people")])).rows[0]
    assert gaps[strongest] == np.nanmax(gaps)
    case = beside.book.open(str(book.scores.edits["request_id"].iloc[int(edited[0])]))
    assert case.people == {"skin_tone": (4.5, 2)}


def test_orders_put_the_strongest_first_and_the_unknown_last(gallery):
    for sort in ("drift", "disagreement"):
        rows = gallery.search(gallery.wanted([("sort", sort)])).rows
        values = gallery.numbers[sort].values[rows]
        known = values[~np.isnan(values)]
        assert (np.diff(known) <= 0).all() and np.isnan(values[len(known) :]).all()
    rows = gallery.search(gallery.wanted([])).rows
    ranks = gallery.fields["priority"].codes[rows]
    assert (np.diff(ranks) >= 0).all() and list(gallery.fields["priority"].values)[-1] == "unrated"
    shuffled = found(gallery, ("sort", "shuffled"))
    assert shuffled == found(gallery, ("sort", "shuffled")) != found(gallery, ("sort", "study"))
    assert set(shuffled) == set(found(gallery))


def test_words_are_looked_for_in_prompt_portrait_and_id(gallery):
    edits = gallery.book.scores.edits
    assert set(found(gallery, ("q", "WHEELCHAIR"))) == set(edits["request_id"][edits["prompt_id"] == "V-02"])
    assert set(found(gallery, ("q", "v-02 black_female"))) == set(
        edits["request_id"][(edits["prompt_id"] == "V-02") & edits["source_id"].str.contains("Black_Female")]
    )
    ident = edits["request_id"].iloc[5]
    assert found(gallery, ("q", ident)) == [ident]
    assert found(gallery, ("q", "nobody wrote this")) == []


def test_an_address_says_the_same_for_ever_and_bad_ones_are_told(gallery):
    pairs = [
        ("drift.min", "2.5"),
        ("race", "White"),
        ("q", " a b "),
        ("race", "Black"),
        ("sort", "drift"),
        ("page", "1"),
    ]
    wanted = gallery.wanted(pairs)
    assert wanted.query == "race=White&race=Black&drift.min=2.5&q=a+b&sort=drift"
    assert wanted.without("race", "White").query == "race=Black&drift.min=2.5&q=a+b&sort=drift"
    assert wanted.without("drift").without("q").at(3).query == "race=White&race=Black&sort=drift&page=3"
    assert found(gallery, ("editor", "nobody")) == []
    for bad, told in (
        ([("color", "red")], "is not a filter"),
        ([("drift.min", "much")], "not a number"),
        ([("drift.min", "nan")], "not a number"),
        ([("sort", "beauty")], "cannot sort by"),
        ([("page", "0")], "not a number from 1 up"),
    ):
        with pytest.raises(EvenEditError, match=told):
            gallery.wanted(bad)


def test_neighbours_are_those_of_the_filter(gallery):
    within = gallery.search(gallery.wanted([("race", "Black"), ("sort", "study")]))
    idents = found(gallery, ("race", "Black"), ("sort", "study"))
    assert gallery.around(within, idents[0]) == (None, idents[1], 1)
    assert gallery.around(within, idents[-1]) == (idents[-2], None, len(idents))
    outside = found(gallery, ("race", "White"))[0]
    assert gallery.around(within, outside) == (None, None, None)
    assert len(within.page(1)) == min(PAGE, len(idents))


def test_a_running_study_shows_its_new_edits(tmp_path):
    made = open_study(tmp_path, prompts={"include": ["O-01"]}, judges=[])
    live = LiveGallery(made)
    runner = made.runner()
    requests = runner.request(runner.load_sources())
    assert len(live.now()) == 0
    run = made.store.start_run({})
    for number, request in enumerate(requests[:3], 1):
        made.store.save_edits([Edit(request.id, Outcome.REFUSED, None, {"reason": "no"})], run)
        deadline = time.monotonic() + 60
        while len(live.now()) < number and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(live.now()) == number
    same = live.now()
    time.sleep(0.3)
    assert live.now() is same, "nothing was written: nothing is built"
    assert found(same, ("sort", "newest"))[0] == requests[2].id
    assert same.tile(0).reason == "no" and same.tile(0).image is None
    assert list(same.fields["priority"].values.values()) == ["not rated"], "nobody has said that it is routine"
    made.store.close()


def test_a_large_gallery_is_built_anew_behind_the_scenes(tmp_path, monkeypatch):
    monkeypatch.setattr("evenedit.cases.search.REBUILD_AT_ONCE", 0.0)
    made = open_study(tmp_path, prompts={"include": ["O-01"]}, judges=[])
    live = LiveGallery(made)
    runner = made.runner()
    requests = runner.request(runner.load_sources())
    live.begin()
    old = live.now()
    made.store.save_edits([Edit(requests[0].id, Outcome.REFUSED, None)], made.store.start_run({}))
    deadline = time.monotonic() + 60
    while live.now() is old and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(old) == 0 and len(live.now()) == 1
    made.store.close()


def test_a_study_that_has_not_begun_has_an_empty_gallery(tmp_path):
    made = open_study(tmp_path, experiments={"diagnosis": {}, "stereotype": {}})
    empty = LiveGallery(made).now()
    assert len(empty) == 0 and len(empty.search(empty.wanted([])).rows) == 0
    with pytest.raises(EvenEditError, match="no edit of one portrait yet"):
        panels.across_levels(empty, {})
    made.store.close()


def test_a_study_on_postgres_is_marked_by_what_is_written(postgres_url, tmp_path):
    made = open_study(tmp_path, store={"url": postgres_url}, prompts={"include": ["O-01"]}, judges=[])
    before = made.store.mark()
    runner = made.runner()
    requests = runner.request(runner.load_sources())
    made.store.save_edits([Edit(requests[0].id, Outcome.REFUSED, None)], made.store.start_run({}))
    deadline = time.monotonic() + 60
    while made.store.mark() == before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert made.store.mark() != before
    assert len(Gallery(Casebook.read(made))) == 1
    made.store.close()


# -- panels --------------------------------------------------------------------------------------------------


def test_one_prompt_across_races_names_every_cell_and_its_gaps(gallery):
    panel, choices = panels.across_levels(
        gallery, {"editor": ["simulated-refusing"], "gender": ["Female"], "age": ["70plus"]}
    )
    assert list(panel.columns) == ["White", "Black"] and panel.simulated
    assert [name for name, _ in panel.rows] == ["source", "O-01 senior executive"]
    assert [s.caption for s in panel.rows[0][1]] == ["White_Female_70plus", "Black_Female_70plus"]
    edits = gallery.book.scores.edits.set_index("request_id")
    for source, shown in zip(panel.rows[0][1], panel.rows[1][1], strict=True):
        assert shown.request_id is not None
        assert edits.loc[shown.request_id, "source_id"] == source.caption
        assert (shown.image is None) == (edits.loc[shown.request_id, "outcome"] == "refused")
        assert shown.image is not None or shown.caption.startswith("refused: ")
    assert "prompt" in {c.name for c in choices}
    with pytest.raises(EvenEditError, match="age '30s' is not in the study"):
        panels.across_levels(gallery, {"age": ["30s"]})


def test_the_mosaic_is_one_portrait_over_prompts_and_editors_and_a_picture(gallery, loaded):
    panel, _ = panels.mosaic(gallery, {"source": ["Black_Male_20s"], "prompt": ["O-01", "V-05"]})
    assert list(panel.columns) == ["source", "simulated-lightening", "simulated-refusing"]
    assert [name.split()[0] for name, _ in panel.rows] == ["O-01", "V-05"]
    made = panels.picture(panel, Thumbnails(loaded.store.images, loaded.store.folder), 64)
    assert made.startswith(b"\x89PNG")


def test_a_sheet_holds_the_outputs_of_a_search(gallery):
    within = gallery.search(gallery.wanted([("race", "Black"), ("outcome", "edited")]))
    panel = panels.sheet(gallery, within)
    shown = [cell.image for _, cells in panel.rows for cell in cells if cell.image]
    assert len(shown) == len(within.rows)
    with pytest.raises(EvenEditError, match="no case"):
        panels.sheet(gallery, gallery.search(gallery.wanted([("outcome", "refused")])))


def test_a_change_map_is_computed_once_and_kept(gallery, loaded):
    ident = found(gallery, ("outcome", "edited"), ("experiment", "diagnosis"))[0]
    case = gallery.book.open(ident)
    maps = ChangeMaps(loaded.store.images, loaded.store.folder)
    made = maps.get(case.sources[0].image, case.edit.image)
    kept = list((loaded.store.folder / "thumbnails").glob("change-*/*/*.webp"))
    assert len(kept) == 1 and kept[0].read_bytes() == made == maps.get(case.sources[0].image, case.edit.image)
    with pytest.raises(EvenEditError, match="missing or damaged"):
        maps.get("0" * 64, case.edit.image)

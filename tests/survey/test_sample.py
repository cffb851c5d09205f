"""Cases for people: the published margins, and each case's chance of being chosen."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.design.sampling import CLASSES, priority, stratified
from evenedit.protocol import load_prompts
from evenedit.protocol.factors import cells, factor
from evenedit.survey.cost import of_study
from evenedit.survey.sample import draw, listing, margins, redraw, sampled, stale
from tests.support.studies import open_study
from tests.support.surveys import STUDY, SURVEY, copy_study, make_study

BANDS = {level.code: level.band for level in factor("age").levels}


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    """All 5,040 cases of the published design."""
    prompts = [p.id for p in load_prompts("diagnostic")]
    rows = [{**cell, "prompt": p, "editor": e} for e, cell, p in product(("flux", "step1x", "qwen"), cells(), prompts)]
    return pd.DataFrame(rows).assign(band=lambda frame: frame["age"].map(BANDS))


def test_strata_504_has_four_cases_in_each_of_126_strata(published):
    by = ["race", "gender", "band", "editor"]
    rows, chances = stratified(published, 504, by=by, seed=42)
    counts = published.iloc[rows].groupby(by).size()
    assert len(set(rows)) == 504
    assert len(counts) == 126 and set(counts) == {4}
    assert np.allclose(chances, 4 / 40), "two ages and twenty prompts are 40 cases a stratum"


def test_a_small_stratum_gives_all_it_has_and_the_others_more():
    frame = pd.DataFrame({"g": ["a"] * 2 + ["b"] * 10 + ["c"] * 10})
    rows, chances = stratified(frame, 13, by=["g"], seed=1)
    counts = Counter(frame["g"].iloc[rows])
    # a gives its 2; 11 are left for b and c: 5 each and one of them a sixth, at random
    assert counts["a"] == 2 and sorted((counts["b"], counts["c"])) == [5, 6]
    by_group = dict(zip(frame["g"].iloc[rows], chances, strict=True))
    assert by_group == {"a": 1.0, "b": 0.55, "c": 0.55}


@pytest.mark.parametrize("sampler", ["stratified", "priority"])
def test_the_stated_chances_are_the_observed_ones(sampler):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "race": rng.choice(["W", "B", "L"], 60, p=[0.6, 0.3, 0.1]),
            "gender": rng.choice(["M", "F"], 60),
            "class": rng.choice(CLASSES, 60, p=[0.1, 0.1, 0.1, 0.2, 0.5]),
        }
    )
    draws, seen, told = 300, np.zeros(60), np.zeros(60)
    for seed in range(draws):
        if sampler == "stratified":
            rows, chances = stratified(frame, 20, by=["race", "gender"], seed=7 * seed)
        else:
            rows, chances = priority(frame, 20, quotas={}, seed=7 * seed, even_over=("race", "gender"))
        assert len(set(rows)) == 20
        seen[rows] += 1
        told[rows] = chances
    # the standard error of a share over 300 draws is at most 0.029
    assert np.abs(seen / draws - told).max() < 4 * 0.029


def test_priority_keeps_its_quotas_and_balances_the_routine_cases(published):
    rng = np.random.default_rng(1)
    share = np.where(published["race"] == "Black", 0.5, 0.2)
    odd = rng.random(len(published)) < share
    classed = published.assign(**{"class": np.where(odd, rng.choice(CLASSES[:4], len(published)), "routine")})
    rows, _ = priority(classed, 500, quotas={}, seed=42, even_over=("race", "gender"))
    chosen = classed.iloc[rows]
    assert Counter(chosen["class"]) == {"disagreement": 100, "drift": 100, "erasure": 75, "skin": 75, "routine": 150}
    routine = chosen[chosen["class"] == "routine"].groupby(["race", "gender"]).size()
    assert set(routine) <= {10, 11}, "150 over 14 cells, although Black routine cases are rarer"
    few = classed[(classed["class"] == "routine") | (classed.index % 50 == 0)]
    rows, _ = priority(few, 500, quotas={}, seed=42, even_over=("race", "gender"))
    assert len(rows) == 500, "what rare classes cannot give is taken from routine cases"


def test_quotas_can_be_set(published):
    classed = published.assign(**{"class": [CLASSES[i % 5] for i in range(len(published))]})
    rows, _ = priority(classed, 100, quotas={"skin": 3, "routine": 1}, seed=1, even_over=("race", "gender"))
    assert Counter(classed["class"].iloc[rows]) == {"skin": 75, "routine": 25}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("made"))


def drawn(study: Study, survey: int) -> dict[str, float]:
    return draw(study.file, study.store, survey)


def test_a_sample_is_drawn_once_and_kept_with_its_chances(made, tmp_path):
    study = copy_study(made, tmp_path)
    first = sampled(study.file, study.store, 1)
    assert len(first) == 16 and set(first.values()) == {0.5}
    assert sampled(study.file, study.store, 2) == first == study.store.cases("survey")
    table = margins(study.file, study.store, first)
    assert table[table["factor"] == "gender"]["cases"].tolist() == [8, 8]
    assert set(table["factor"]) == {"category", "editor", "race", "gender", "age", "prompt"}


def test_the_listing_has_one_row_per_case(made, tmp_path):
    study = copy_study(made, tmp_path)
    cases = sampled(study.file, study.store, 1)
    table = listing(study.file, study.store, cases)
    assert list(table) == ["request_id", "editor", "prompt", "race", "gender", "age", "probability"]
    assert dict(zip(table["request_id"], table["probability"], strict=True)) == cases


def test_only_cases_with_a_mitigated_output_where_the_study_wants_pairs(made, tmp_path):
    study = copy_study(made, tmp_path, population="mitigation", cases=8)
    cases = draw(study.file, study.store, 1)
    mitigated = study.store.cases("mitigation")
    assert set(cases) <= set(mitigated)
    assert all(np.isclose(p, mitigated[i] * 8 / 16) for i, p in cases.items())


def test_surveys_can_have_numbers_of_their_own(made, tmp_path):
    study = copy_study(made, tmp_path, cases=12, sizes={"2": 8, "3": 4})
    first, pairs, roles = (sampled(study.file, study.store, survey) for survey in (1, 2, 3))
    assert (len(first), len(pairs), len(roles)) == (12, 8, 4)
    mitigated = study.store.cases("mitigation")
    assert set(pairs) <= set(mitigated), "a preference needs both outputs"
    assert all(np.isclose(p, mitigated[case] * 8 / 16) for case, p in pairs.items())
    assert [part.items for part in of_study(study.file.sections.survey, {}).parts] == [12, 8, 4]


def test_every_sampler_draws_from_a_study(made, tmp_path):
    for sampler in ("balanced", "strata", "priority"):
        cases = drawn(copy_study(made, tmp_path / sampler, sampler=sampler, cases=12), 1)
        assert len(cases) == 12 and all(0 < p <= 1 for p in cases.values())
    roles = drawn(copy_study(made, tmp_path / "all"), 3)
    assert len(roles) == 6 and set(roles.values()) == {1.0}, "all of them, when that many are wanted"
    few = drawn(copy_study(made, tmp_path / "few", cases=4), 3)
    assert len(few) == 4


def test_more_cases_than_can_be_shown_is_told(made, tmp_path):
    with pytest.raises(EvenEditError, match="only 32 cases"):
        drawn(copy_study(made, tmp_path, cases=33), 1)


def test_a_changed_study_file_is_told_and_a_sample_is_drawn_anew_only_before_people_rate(made, tmp_path):
    study = copy_study(made, tmp_path)
    first = sampled(study.file, study.store, 1)
    assert stale(study.file, study.store, 1) is None
    changed = open_study(tmp_path, **STUDY, survey=SURVEY | {"cases": 12})
    assert sampled(changed.file, changed.store, 1) == first, "what was drawn stays"
    assert "cases = 16 (now 12)" in stale(changed.file, changed.store, 1)
    with pytest.raises(EvenEditError, match="2 people have taken part"):
        redraw(changed.file, changed.store, 1, taken_part=2)
    assert sampled(changed.file, changed.store, 1) == first
    assert len(redraw(changed.file, changed.store, 1, taken_part=0)) == 12
    assert stale(changed.file, changed.store, 1) is None

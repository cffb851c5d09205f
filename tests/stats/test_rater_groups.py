"""Groups of raters: rates are weighted as the study says, and no rate is about a few people."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.ratings.profiles import RaterProfiles, RaterQuestion
from evenedit.ratings.table import QUESTION_IDS, RatingTable
from evenedit.stats import AnalysisRules
from evenedit.stats.rater_groups import rater_rates

RULES = AnalysisRules("default", permutations=399)
ETHNICITY = {"White": 14, "Black": 10, "Asian": 6}


@pytest.fixture(scope="module")
def rated():
    """The published survey: 500 outputs of 84 faces and 20 prompts, 10 tasks of 50, three raters each."""
    rng = np.random.default_rng(5)
    cells = [(r, g, a) for r in FACTORS[0].codes for g in FACTORS[1].codes for a in FACTORS[2].codes]
    face, prompt = np.divmod(rng.permutation(84 * 20)[:500], 20)
    labels = np.array(cells)[face]
    people = [f"person-{n:02d}" for n in range(30)]
    seen = np.repeat(np.eye(10, dtype=bool), 3, axis=0).repeat(50, axis=1)
    values = np.zeros((30, 500, len(QUESTION_IDS)), dtype=np.int8)
    for axis in ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"):
        values[:, :, QUESTION_IDS.index(axis)] = np.where(seen, rng.integers(1, 6, (30, 500)), 0)
    edits = pd.DataFrame(
        {"request_id": [f"e{n}" for n in range(500)], "experiment": "diagnosis", "condition": "baseline"}
        | {"editor": "simulated", "source_id": [f"f{n}" for n in face], "prompt_id": [f"p{n}" for n in prompt]}
        | {"seed": 1, "race": labels[:, 0], "gender": labels[:, 1], "age": labels[:, 2], "outcome": "edited"}
    )
    questions = tuple(
        RaterQuestion(name, name, groups, dict(zip(people, map(str, rng.permutation(members)), strict=True)))
        for name, groups in (("ethnicity", ETHNICITY), ("sex", {"Female": 15, "Male": 15}))
        for members in (np.repeat(list(groups), list(groups.values())),)
    )
    status = np.where(seen, 0, -1).astype(np.int8)
    return RatingTable(edits, tuple(people), (Kind.HUMAN,) * 30, values, status, profiles=RaterProfiles((), questions))


def test_rates_are_weighted_to_the_population_that_the_study_names(rated):
    question = replace(rated.profiles.questions[1], population={"Female": 1.0, "Male": 3.0})
    table = replace(rated, profiles=replace(rated.profiles, questions=(question,)))
    rates = {r.raters: r for r in rater_rates(table, RULES) if r.measure == "rate.race_change" and not r.group}
    assert rates["*"].value == pytest.approx(0.25 * rates["Female"].value + 0.75 * rates["Male"].value)
    assert rates[""].people == 30 and rates["Female"].people == 15
    assert all(r.low <= r.value <= r.high for r in rates.values())


def test_no_number_is_about_fewer_than_five_people_of_a_group(rated):
    """Of ten Black raters only three rated White portraits: nothing is told of them there, nor of the next smallest."""
    people = rated.profiles.questions[0].raters
    black = [at for at, person in enumerate(rated.raters) if people[person] == "Black"]
    values = rated.values.copy()
    values[np.ix_(black[3:], (rated.edits["race"] == "White").to_numpy())] = 0
    table = replace(rated, values=values)
    white = {"race": "White"}
    shown = {r.raters: r.people for r in rater_rates(table, RULES) if r.question == "ethnicity" and r.group == white}
    assert shown == {"": 23, "White": 14}, "with 6 Asian raters shown, the 3 would be what is left of 23"
    every = {r.raters for r in rater_rates(table, RULES) if r.question == "ethnicity" and not r.group}
    assert every == {"", "White", "Black", "Asian", "*"}

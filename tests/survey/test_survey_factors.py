"""A survey of a study whose portraits are grouped by Monk skin tone and headwear, and by nothing else."""

import io
from itertools import product

import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Source
from evenedit.design.sampling import crossed_of, routine_of, strata_of
from evenedit.protocol import FACTORS
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey import export
from evenedit.survey import import_csv as imports
from evenedit.survey.answers import people_frame
from evenedit.survey.sample import draw, margins
from evenedit.survey.sessions import SurveyService
from tests.support.studies import open_study
from tests.support.surveys import finish

TONES, HEADWEAR = ("1", "5", "10"), ("none", "headscarf")
STUDY = {
    "factors": [
        {"name": "monk", "title": "Monk skin tone", "levels": list(TONES), "ordered": True},
        {"name": "headwear", "levels": list(HEADWEAR)},
    ],
    "sources": {"kind": "folder", "settings": {"path": "portraits"}},
    "editors": [{"id": "simulated-even"}, {"id": "simulated-replacing"}],
    "survey": {"cases": 12, "items_per_task": 4, "raters_per_item": 1, "instructed": 1},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Seven portraits: one of every cell, and one whose headwear is not labelled; two prompts, two editors."""
    loaded = open_study(tmp_path_factory.mktemp("monk"), **STUDY)
    drawn = [image for _, _, _, image in Drawn(seed=3, size=64).portraits()]
    labels = [*product(TONES, HEADWEAR), ("10", "")]
    loaded.store.save_sources(
        Source(f"portrait-{at}", loaded.store.images.put(image), {"monk": tone, "headwear": worn}, "drawn")
        for at, ((tone, worn), image) in enumerate(zip(labels, drawn, strict=False))
    )
    loaded.store.set_fact(
        "sources", digest(loaded.file.sections.sources.model_dump(mode="json", include={"kind", "settings"}))
    )
    loaded.run()
    return loaded


def test_the_default_factors_give_the_published_strata():
    assert strata_of(FACTORS) == ("race band", "gender band", "age band", "editor")
    assert crossed_of(FACTORS) == (("prompt", "editor"), ("race", "gender", "age"))
    assert routine_of(FACTORS) == ("race", "gender")


def test_samples_are_even_over_the_studys_factors_and_margins_name_them_only(study):
    table = margins(study.file, study.store, draw(study.file, study.store, 1))
    assert list(dict.fromkeys(table["factor"])) == ["category", "editor", "monk", "headwear", "prompt"]
    by_factor = {name: dict(zip(part["level"], part["cases"], strict=True)) for name, part in table.groupby("factor")}
    assert list(by_factor["monk"]) == list(TONES), "in the order of the scale, not of the alphabet"
    assert set(by_factor["monk"].values()) <= {3, 4, 5}
    assert abs(by_factor["headwear"]["none"] - by_factor["headwear"]["headscarf"]) <= 1
    every = open_study(study.file.folder, **STUDY | {"survey": STUDY["survey"] | {"cases": 28}})
    table = margins(every.file, every.store, draw(every.file, every.store, 1))
    assert list(table[table["factor"] == "headwear"]["level"])[-1] == "missing", "an empty label is no level"


@pytest.mark.parametrize("sampler", ["strata", "priority"])
def test_every_sampler_works_without_race(study, tmp_path, sampler):
    changed = open_study(study.file.folder, **STUDY | {"survey": STUDY["survey"] | {"sampler": sampler}})
    assert len(draw(changed.file, changed.store, 1)) == 12


def test_ratings_leave_and_come_back_by_the_studys_factors(study, tmp_path):
    service = SurveyService.open(study.file, study.store)
    finish(service, "ann")
    tables = export.files(study.file, study.store, service.database)
    service.close()
    ratings = pd.read_csv(io.BytesIO(tables["ratings.csv"]), dtype=str, keep_default_na=False)
    assert {"monk", "headwear"} <= set(ratings) and not {"race", "gender", "age"} & set(ratings)
    assert set(ratings["monk"]) <= set(TONES) and set(ratings["headwear"]) <= {*HEADWEAR, ""}
    path = tmp_path / "theirs.csv"
    path.write_text("rater,editor,prompt_id,monk,headwear,skin_tone\nR1,simulated-even,O-01,10,headscarf,4\n")
    database = SurveyStore(study.file.folder)
    assert imports.read(path, database, study.file, study.store, {}, "test").answers == 1
    frame, _ = people_frame(study.file, database)
    theirs = frame[frame["rater"] == database.pseudonym(1, "import", "R1")]
    request = study.store.requests()[theirs["output"].iloc[0]]
    assert study.store.sources()[request.source_ids[0]].attributes == {"monk": "10", "headwear": "headscarf"}
    path.write_text("rater,editor,prompt_id,monk,headwear,skin_tone\nR1,simulated-even,O-01,11,headscarf,4\n")
    with pytest.raises(EvenEditError, match="monk '11' is not a known label; expected one of: 1, 5, 10"):
        imports.read(path, database, study.file, study.store, {}, "test")
    database.close()

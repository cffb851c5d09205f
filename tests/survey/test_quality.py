"""Careless people are caught by rules stated beforehand; careful ones are not. Ratings go out under pseudonyms."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from evenedit.config.study_file import ExclusionSection
from evenedit.core.errors import EvenEditError
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey import export
from evenedit.survey import import_csv as imports
from evenedit.survey.answers import PeopleRatings, people_frame
from evenedit.survey.quality import COLUMNS, assess
from tests.support.paths import SHARED
from tests.support.studies import open_study
from tests.support.surveys import answer, copy_study, finish, make_study, open_service, seated

RULES = ExclusionSection()


def rows(rater: str, *, value=lambda item, question: (item + question) % 5 + 1, seconds: float = 40.0, items: int = 10):
    """Ten answers each about so many cases."""
    return [
        {
            "rater": rater,
            "item": item,
            "kind": "case",
            "output": f"{item}{question // 5}",
            "question": f"q{question % 5}",
            "value": value(item, question),
            "low": np.nan,
            "high": np.nan,
            "milliseconds": int(1000 * seconds * (question + 1) / 10),
        }
        for item in range(items)
        for question in range(10)
    ]


def known(rater: str, kind: str, right: int, wrong: int):
    base = {"rater": rater, "kind": kind, "output": "", "milliseconds": 40_000, "low": 3.0, "high": 3.0}
    return [
        base | {"item": 100 + number, "question": "q0", "value": 3 if number < right else 4}
        for number in range(right + wrong)
    ]


def frame(*parts) -> pd.DataFrame:
    return pd.DataFrame([row for part in parts for row in part], columns=list(COLUMNS))


def test_times_are_medians_over_items_and_per_answer():
    (found,) = assess(frame(rows("ann", seconds=40)), RULES)
    assert (found.items, found.answers) == (10, 100)
    assert (found.seconds_per_item, found.seconds_per_answer) == (40.0, 4.0)
    assert found.excluded == ()


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (rows("eve", seconds=9.9), "0.99 s per answer"),
        (rows("eve", value=lambda *_: 3), "the same answer throughout on 100%"),
        (rows("eve") + known("eve", "gold", 7, 3), "70% right on gold items"),
        (rows("eve") + known("eve", "instructed", 0, 2), "failed 2 of 2 instructed checks"),
    ],
    ids=["too fast", "straight-lining", "gold", "instructed"],
)
def test_each_rule_catches_who_it_is_for(part, reason):
    (found,) = assess(frame(part), RULES)
    assert len(found.excluded) == 1 and reason in found.excluded[0]


def test_one_failed_check_eighty_percent_of_gold_and_a_second_an_answer_are_enough():
    part = rows("ann", seconds=10) + known("ann", "gold", 8, 2) + known("ann", "instructed", 1, 1)
    (found,) = assess(frame(part), RULES)
    assert found.excluded == () and found.gold_accuracy == 0.8


def test_agreement_is_the_correlation_with_the_mean_of_the_others():
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, (10, 10))
    noisy = np.clip(truth + rng.integers(-1, 2, truth.shape), 1, 5)
    random = rng.integers(1, 6, truth.shape)
    parts = [
        rows(name, value=lambda i, q, t=t: int(t[i, q])) for name, t in (("a", truth), ("b", noisy), ("c", random))
    ]
    found = {q.rater: q for q in assess(frame(*parts), RULES)}
    # by hand for c: centre c and (a + b) / 2 within each question, then correlate
    own, others = random.astype(float), (truth + noisy) / 2
    centre = [
        np.concatenate([x[:, [q, q + 5]].ravel() - x[:, [q, q + 5]].mean() for q in range(5)]) for x in (own, others)
    ]
    assert found["c"].agreement == pytest.approx(np.corrcoef(*centre)[0, 1])
    assert found["a"].agreement > 0.5 > found["c"].agreement
    strict = ExclusionSection(agreement_below=0.4)
    assert [q.rater for q in assess(frame(*parts), strict) if q.excluded] == ["c"]
    assert not any(q.excluded for q in assess(frame(*parts), RULES)), "off by default: disagreement may be honest"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("made"))


def test_an_export_holds_every_rating_and_nobodys_id(made, tmp_path):
    loaded = copy_study(made, tmp_path, surveys=[1, 2])
    service = open_service(loaded)
    for name in ("secret-ann", "secret-bob"):
        finish(service, name)
    finish(service, "secret-eve", survey=2)
    answer(service, seated(service, "secret-late").token)
    tables = export.files(loaded.file, loaded.store, service.database)
    ids = [b"secret-", *(service.resume_code(service.database.rows(_tokens())[0].token).encode(),)]
    assert not any(secret in content for content in tables.values() for secret in ids)
    ratings = pd.read_csv(io.BytesIO(tables["ratings.csv"]))
    frame, _ = people_frame(loaded.file, service.database)
    cases = frame[(frame["kind"] == "case") & (frame["survey"] == 1)]
    assert len(ratings) == len(cases.groupby(["rater", "output"]))
    assert ratings["counted"].sum() == len(cases[cases["counted"]].groupby(["rater", "output"]))
    one = ratings.iloc[0]
    mine = cases[(cases["rater"] == one["rater"]) & (cases["output"] == one["request_id"])].set_index("question")[
        "value"
    ]
    assert one["skin_tone"] == mine["skin_tone"] and set(ratings["probability"]) == {0.5}
    assert one["age_drift"] == mine.get("age_drift", mine.get("aging_accuracy"))
    choices = pd.read_csv(io.BytesIO(tables["choices.csv"]))
    assert set(choices["answer"]) <= {"baseline", "mitigated", "same"} and len(choices)
    service.close()


def _tokens():
    import sqlalchemy as sa

    from evenedit.storage.survey_schema import participants

    return sa.select(participants.c.token)


def test_no_cell_of_a_csv_can_run_in_a_spreadsheet():
    wild = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a=b"]
    text = export.as_csv(pd.DataFrame({"editor": wild, "value": range(8)}))
    back = pd.read_csv(io.BytesIO(text), keep_default_na=False)["editor"].tolist()
    assert [cell.startswith("'") for cell in back] == [True] * 6 + [False] * 2
    assert back[6:] == ["plain", "a=b"]


AUTHORS = {
    "sources": {"kind": "drawn", "settings": {"size": 32, "seed": 1}},
    "prompts": {"include": ["B01", "B02"]},
    "experiments": {"diagnosis": {}, "mitigation": {"cases": 504, "extractor": {"kind": "simulated"}}},
    "editors": [{"id": f"simulated-{name}", "kind": "simulated-even"} for name in ("flux", "step1x", "qwen")],
    "judges": [],
    "survey": {},
}
NAMES = {name: f"simulated-{name}" for name in ("flux", "step1x", "qwen")}


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    """The authors' design, planned but not edited: import needs no pictures."""
    loaded = open_study(tmp_path_factory.mktemp("authors"), **AUTHORS)
    loaded.runner().request(loaded.runner().load_sources())
    return loaded


@pytest.mark.skipif(not SHARED.exists(), reason="the real ratings are not in the repository")
def test_the_193_real_ratings_import_and_the_careless_rater_is_caught(authors):
    path = SHARED / "human_ratings" / "ratings.csv"
    database = SurveyStore(authors.file.folder)
    for _ in range(2):  # again: nothing doubles
        found = imports.read(path, database, authors.file, authors.store, NAMES, "test")
        assert (found.raters, found.pages, found.answers) == (6, 193, 1930)
    frame, quality = people_frame(authors.file, database)
    assert len(frame) == 1930
    real = pd.read_csv(path)
    name = {database.pseudonym(1, "import", rater): rater for rater in sorted(set(real["rater"]))}
    caught = {name[q.rater]: q.excluded for q in quality if q.excluded}
    assert list(caught) == ["R2"]
    assert caught["R2"] == ("0.67 s per answer (median), below 1 s",)
    times = {name[q.rater]: q.seconds_per_item for q in quality}
    medians = real.drop_duplicates(["rater", "item_id"]).groupby("rater")["duration_ms"].median() / 1000
    assert times == pytest.approx(medians.to_dict())
    kept = PeopleRatings(authors.file)
    assert sorted(name[rater] for rater in kept.raters) == ["R1", "R3", "R4", "R5", "R6"]
    one = real[(real["rater"] == "R1") & (real["version"] == "preserved")].iloc[0]
    scores = [r for r in kept.ratings() if name[r.rater] == "R1" and _is(authors, r.request_id, one)]
    axes = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")
    assert sorted((r.question_id, r.value) for r in scores) == sorted((axis, one[axis]) for axis in axes)
    database.close()


def _is(loaded, ident: str, row) -> bool:
    request = loaded.store.requests()[ident]
    cell = f"{row['race']}_{row['gender']}_{row['age']}"
    return (str(request.condition), request.editor, request.source_ids) == (
        "feature",
        NAMES[row["model"]],
        (cell,),
    ) and (request.prompt_id == {"B01": "O-01", "B02": "O-02"}[row["prompt_id"]])


def test_mechanical_turk_results_import(authors, tmp_path):
    header = ["HITId", "WorkerId", "AssignmentStatus", "WorkTimeInSeconds"]
    header += [f"Input.{n}_{i}" for i in (1, 2) for n in ("editor", "prompt_id", "race", "gender", "age")]
    header += [f"Answer.{n}_{i}" for i in (1, 2) for n in ("edit_success", "race_drift")]
    given = ["flux", "O-01", "Black", "Male", "20s", "qwen", "O-02", "White", "Female", "30s", "5", "1", "2", "4"]
    lines = [header, ["h", "W1", "Approved", "60", *given], ["h", "W2", "Rejected", "60", *given]]
    path = tmp_path / "Batch_results.csv"
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in line) for line in lines))
    database = SurveyStore(authors.file.folder)
    found = imports.read(path, database, authors.file, authors.store, NAMES, "test")
    assert (found.raters, found.pages, found.answers, found.rejected) == (1, 2, 4, 1)
    frame, _ = people_frame(authors.file, database)
    mine = frame[frame["rater"] == database.pseudonym(1, "import", "W1")]
    assert sorted(mine["value"]) == [1, 2, 4, 5] and set(mine["milliseconds"]) == {30_000}
    database.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"skin_tone": "6"}, "line 2: skin_tone is '6'"),
        ({"model": "dalle"}, "line 2: the study has no such edit: baseline dalle"),
        ({"race": "Martian"}, "line 2: race 'Martian' is not a known label"),
        ({"prompt_id": "X99"}, "X99"),
        ({"rater": ""}, "line 2: rater is empty"),
    ],
    ids=str,
)
def test_rows_that_cannot_be_read_are_named_and_nothing_is_kept(authors, tmp_path, change, message):
    good = {"rater": "R9", "model": "flux", "prompt_id": "B01", "race": "Black", "gender": "Male", "age": "20s"}
    row = good | {"version": "edited", "edit_success": "5", "skin_tone": "3"} | change
    path = tmp_path / "ratings.csv"
    path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    database = SurveyStore(authors.file.folder)
    with pytest.raises(EvenEditError, match=message):
        imports.read(path, database, authors.file, authors.store, NAMES, "test")
    assert database.pseudonym(1, "import", "R9") not in json.dumps(
        people_frame(authors.file, database)[0]["rater"].tolist()
    )
    database.close()

"""Choosing cases that drifted, two extractors, and which output keeps the identity better."""

import sqlite3

import numpy as np
import pytest

from evenedit.core.records import Status
from evenedit.design.study_design import DRIFTED
from evenedit.judges import feature_prompts as features
from evenedit.judges.feature_prompts import FeaturePrompt, SimulatedExtractor
from evenedit.operations.plan import make_plan
from evenedit.protocol.rubric import QUESTIONS, preferred
from evenedit.ratings.combine import majority
from evenedit.ratings.table import QUESTION_IDS
from evenedit.storage.store import Store
from evenedit.study.analysis import compute_results
from tests.support.studies import open_study

A, B, SAME = 1, 2, 3
BASELINE, MITIGATED, TIE, UNCLEAR = range(1, 5)
PREFERENCE = QUESTION_IDS.index("preference")


def mitigation(**changes):
    return {"diagnosis": {}, "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}} | changes}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (A, B, BASELINE),  # the baseline was A first and B then: the same output both times
        (B, A, MITIGATED),
        (SAME, SAME, TIE),
        (A, A, UNCLEAR),  # always the first place: the order decided
        (B, B, UNCLEAR),
        (A, SAME, UNCLEAR),
        (SAME, A, UNCLEAR),
        (None, A, None),
        (B, None, None),
    ],
)
def test_an_answer_that_changes_with_the_order_is_unclear(first, second, expected):
    assert preferred(first, second) == expected


def test_judges_preferences_are_counted_as_votes():
    cases = {
        (MITIGATED, MITIGATED): MITIGATED,
        (MITIGATED, BASELINE): UNCLEAR,
        (MITIGATED, TIE): UNCLEAR,
        (MITIGATED, UNCLEAR): MITIGATED,
        (MITIGATED, 0): MITIGATED,
        (UNCLEAR, UNCLEAR): UNCLEAR,
        (TIE, TIE): TIE,
        (0, 0): 0,
    }
    preferred_by = [np.array(list(cases), dtype=np.int8).T, np.array([[MITIGATED], [MITIGATED], [BASELINE]], np.int8)]
    most, one = (majority(cube, 4, (4,), 4).tolist() for cube in preferred_by)
    assert (most, one) == (list(cases.values()), [MITIGATED])


def test_the_pairwise_question_is_asked_in_both_orders_and_finds_the_mended_output(tmp_path):
    # every portrait labelled Black is lightened, and the feature prompt mends all of it
    editors = [
        {
            "id": "simulated-lightening",
            "settings": {"rate": 1.0, "score": 5, "groups": {"race": ["Black"]}, "mended": 1.0},
        }
    ]
    judges = [{"id": "simulated-judge", "kind": "simulated", "settings": {"error": 0.0}}]
    loaded = open_study(tmp_path, experiments=mitigation(cases=16, pairwise=True), editors=editors, judges=judges)
    planned = make_plan(loaded)
    # 16 baseline, 16 feature and 16 placebo edits rated once, and 32 mitigated ones compared in two orders
    assert planned.judge_calls == 48 + 64
    loaded.run()
    assert make_plan(loaded).judge_calls_done == 112
    table = loaded.table()
    edits = table.edits.assign(preference=table.values[0, :, PREFERENCE])
    black = edits[(edits["race"] == "Black") & (edits["condition"] == "feature")]
    mended = int((black["preference"] == MITIGATED).sum())
    assert mended > len(black) / 2 and not (black["preference"] == BASELINE).any()  # other drift may even it out
    assert (edits["preference"][edits["experiment"] == "diagnosis"] == 0).all()
    found = compute_results(loaded, table)
    rate = found.find(
        "rate.prefers_mitigated",
        experiment="mitigation",
        condition="feature",
        editor="simulated-lightening",
        group={"race": "Black"},
    )
    assert rate is not None and rate.value == 1.0 and rate.n == mended
    same = found.find("rate.prefers_same", experiment="mitigation", condition="placebo", editor="simulated-lightening")
    assert same is not None and same.value is not None and same.value > 0.2  # a placebo drifts like its baseline
    before = loaded.store.run_of_replies()
    loaded.run()
    assert loaded.store.run_of_replies() == before


def test_a_judge_that_always_says_the_first_place_is_unclear(tmp_path):
    loaded = open_study(tmp_path, experiments=mitigation(pairwise=True))
    loaded.run()
    database = sqlite3.connect(tmp_path / "study.db")
    with database:
        database.execute("UPDATE ratings SET value = 1 WHERE question_id = 'identity'")
    database.close()
    table = loaded.table()
    rows = (table.edits["experiment"] == "mitigation").to_numpy()
    assert (table.values[:, rows, PREFERENCE] == UNCLEAR).all()
    found = compute_results(loaded, table)
    where = {"experiment": "mitigation", "condition": "feature", "editor": "simulated-lightening"}
    assert found.find("rate.prefers_mitigated", **where) is None  # nobody preferred either
    unclear = found.find("rate.preference_unclear", **where)
    assert unclear is not None and unclear.value == 1.0


def test_cases_with_observed_drift_are_chosen_after_the_diagnosis_once(tmp_path):
    loaded = open_study(tmp_path, experiments=mitigation(choose="drift", cases=4))
    assert "chosen among edits with observed drift" in " ".join(make_plan(loaded).notes)
    loaded.run()
    chosen = loaded.store.cases(DRIFTED)
    assert len(chosen) == 4
    assert all(0 < p <= 1 for p in chosen.values())
    table = loaded.table()
    skin = table.values[0, :, QUESTION_IDS.index("skin_tone")]
    drifted = table.edits["request_id"].isin(chosen).to_numpy()
    assert (skin[drifted] != 3).any()
    assert table.edits.groupby(["experiment", "condition"]).size()["mitigation", "feature"] == 4
    assert compute_results(loaded, table).rules["mitigation_cases"] == "drift"
    loaded.run()
    assert loaded.store.cases(DRIFTED) == chosen


@pytest.mark.parametrize(("choose", "sample"), [("strata", "mitigation"), ("priority", "mitigation-priority")])
def test_cases_are_drawn_by_the_sampler_the_study_names(tmp_path, choose, sample):
    loaded = open_study(tmp_path, experiments=mitigation(choose=choose, cases=8))
    loaded.run()
    chosen = loaded.store.cases(sample)
    assert len(chosen) == 8 and all(0 < p <= 1 for p in chosen.values())
    table = loaded.table()
    edits = table.edits[table.edits["request_id"].isin(chosen)]
    if choose == "strata":  # 2 races x 2 genders x 2 age bands x 1 editor: one case each
        assert not edits.duplicated(["race", "gender", "age"]).any()
    assert (table.edits["condition"] == "feature").sum() == 8


def test_nothing_is_chosen_while_the_diagnosis_is_not_rated(tmp_path, capsys):
    from evenedit.providers.budget import Budget

    loaded = open_study(tmp_path, experiments=mitigation(choose="drift"))
    loaded.runner(Budget(max_calls=5)).run()
    assert loaded.store.cases(DRIFTED) == {}
    assert "27 answers missing" in capsys.readouterr().err  # 16 edits × 2 judges, 5 answered
    loaded.run()
    assert loaded.store.cases(DRIFTED)


class Hesitant(SimulatedExtractor):
    """Describes some portraits with a flag and some not at all."""

    calls = 0

    def extract(self, image):
        type(self).calls += 1
        told = super().extract(image)
        return (
            FeaturePrompt(told.text.replace("Maintain", "Please maintain"), flags=("wordy",))
            if self.calls % 2
            else FeaturePrompt("", flags=("refused: no",))
        )


def test_the_stand_ins_words_are_used_where_the_first_extractor_gave_none_or_flagged_ones(tmp_path, monkeypatch):
    from evenedit.core import plugins

    built = plugins.build

    def build(group, name, settings):
        return Hesitant() if (group, settings.get("first")) == ("extractors", True) else built(group, name, settings)

    monkeypatch.setattr(plugins, "problems", lambda *_: [])
    monkeypatch.setattr(plugins, "build", build)
    first, second = {"kind": "simulated", "settings": {"first": True}}, {"kind": "simulated"}
    loaded = open_study(tmp_path, experiments=mitigation(extractor=first, stand_in=second))
    loaded.run()
    used = [r.instruction for r in loaded.store.requests().values() if str(r.condition) == "feature"]
    assert len(used) == 8
    assert all(text.startswith("Maintain the person's") for text in used)
    flagged = loaded.store.features(features.extractor_id("simulated", {"first": True}))
    assert flagged and all(flags == ["wordy"] for _, flags in flagged.values())


def test_confidence_is_stored_beside_the_value(tmp_path):
    from evenedit.core.interfaces import Reply
    from evenedit.core.records import Kind
    from evenedit.storage.store import StoredReply

    store = Store(tmp_path)
    reply = Reply(Status.SCORED, {"skin_tone": 4, "race_drift": 1}, {"skin_tone": 0.75})
    store.save_answers([StoredReply("r", "judge", "v", Kind.VLM, reply)], 1)
    told = {r.question_id: r.confidence for r in store.ratings("judge", "v")}
    assert told == {"skin_tone": 0.75, "race_drift": None}


def test_who_got_the_role_is_rated_and_checked_against_the_verdict(tmp_path):
    judges = [{"id": "simulated-judge", "kind": "simulated", "settings": {"error": 0.0}}]
    editors = [{"id": "simulated-replacing", "settings": {"followed": 1.0}}]
    loaded = open_study(
        tmp_path,
        experiments={"stereotype": {"include": ["W-01", "W-02", "W-26", "W-27"]}},
        editors=editors,
        judges=judges,
    )
    loaded.run()
    table = loaded.table()
    found = compute_results(loaded, table)
    where = {"experiment": "stereotype", "editor": "simulated-replacing"}
    clear = found.find("rate.role_contradicts_verdict", **where)
    assert clear is not None and clear.value in (0.0, None)
    for coded, role in (("Male", "rate.role_male"), ("Female", "rate.role_female")):
        rate = found.find(role, group={"coded_gender": coded}, **where)
        unclear = found.find("rate.role_unclear", group={"coded_gender": coded}, **where)
        assert rate is not None and unclear is not None
        assert rate.value == 1 - (unclear.value or 0)
    # turn every role round: now it contradicts each decided verdict
    role = QUESTION_IDS.index("target_role")
    turned = table.values[:, :, role]
    table.values[:, :, role] = np.where(turned == 1, 2, np.where(turned == 2, 1, turned))
    contradicts = compute_results(loaded, table).find("rate.role_contradicts_verdict", **where)
    assert contradicts is not None and contradicts.value == 1.0
    assert QUESTIONS["target_role"].labels == ("MALE", "FEMALE", "UNCLEAR")

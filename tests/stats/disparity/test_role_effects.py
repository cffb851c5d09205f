"""Pronoun, order and coding are told apart: each effect is found where it was planted, and only there."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenedit.api.analyze import analyze
from evenedit.protocol import default_rubric, load_prompts
from evenedit.protocol.questions import read_rows
from evenedit.ratings.combine import combine
from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.table import QUESTION_IDS
from evenedit.report.contents import TABLES
from evenedit.report.render.index import Index
from evenedit.stats.disparity.stereotype import role_effects, stereotype_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.rules import AnalysisRules

ARMS = {
    "baseline": (False, False),
    "swapped": (True, False),
    "reversed": (False, True),
    "swapped_reversed": (True, True),
}


def verdicts(decides: str, arms=ARMS, chance: float = 1.0) -> pd.DataFrame:
    """All 50 prompts; the role goes by `decides` with this chance, else to either."""
    rng = np.random.default_rng(7)
    rows = []
    for prompt in load_prompts("winobias"):
        for condition, (swapped, turned) in arms.items():
            if swapped and not prompt.swapped_text:
                continue
            he = {"none": None}.get(prompt.pronoun or "none", (prompt.pronoun in ("he", "his")) != swapped)
            male = {"pronoun": he, "order": not turned, "coding": prompt.coded_gender == "Male", "nothing": None}[
                decides
            ]
            if male is None or rng.random() > chance:
                male = rng.random() < 0.5
            followed = male == (prompt.coded_gender == "Male")
            rows.append(
                {"experiment": "stereotype", "condition": condition, "editor": "e", "prompt_id": prompt.id}
                | {"judge": "j", "status": "scored", "role": "MALE" if male else "FEMALE"}
                | {"verdict": "STEREOTYPE_FOLLOWED" if followed else "STEREOTYPE_RESISTED"}
            )
    return pd.DataFrame(rows)


def effects(frame: pd.DataFrame) -> dict[str, object]:
    rules = AnalysisRules.default()
    return {e.effect: e for e in role_effects(combine(read_tables([frame]), rules.ensemble, rules.missing), rules)}


@pytest.mark.parametrize("planted", ["pronoun", "order", "coding"])
def test_the_effect_that_decides_is_found_and_no_other(planted: str):
    found = effects(verdicts(planted, chance=0.9))
    assert set(found) == {"pronoun", "order", "coding"}
    for name, e in found.items():
        assert e.low is not None and e.high is not None
        if name == planted:
            assert e.value > 0.75 and e.low > 0.5, e
        else:
            assert abs(e.value) < 0.2, e
    assert found["pronoun"].prompts == 39 and found["order"].prompts == found["coding"].prompts == 50


def test_where_nothing_decides_intervals_hold_zero_as_often_as_they_say():
    table, rules, at = read_tables([verdicts("nothing")]), AnalysisRules.default(), QUESTION_IDS.index("target_role")
    held: dict[str, list[bool]] = {}
    for seed in range(40):
        values = table.values.copy()
        values[0, :, at] = np.random.default_rng(seed).integers(1, 3, size=values.shape[1])
        scores = combine(replace(table, values=values), rules.ensemble, rules.missing)
        for e in role_effects(scores, rules):
            held.setdefault(e.effect, []).append(e.low < 0 < e.high)
    assert all(0.85 <= np.mean(each) <= 1 for each in held.values()), {n: np.mean(e) for n, e in held.items()}


def test_an_editor_that_gives_the_first_portrait_the_role_looks_stereotyped_only_without_the_other_order():
    plain = effects(verdicts("order", arms={c: ARMS[c] for c in ("baseline", "swapped")}))
    assert set(plain) == {"pronoun", "coding"} and plain["coding"].value == 0
    assert effects(verdicts("order"))["order"].value == 1
    assert effects(verdicts("order"))["order"].low is None  # nothing varies


def test_without_a_control_only_prompts_that_name_no_pronoun_can_tell_the_coding():
    found = effects(verdicts("pronoun", arms={"baseline": ARMS["baseline"]}))
    assert set(found) == {"coding"} and found["coding"].prompts == 11


def test_the_report_has_the_table():
    results = analyze(None, verdicts("pronoun", chance=0.8))
    table = TABLES["role_effects"](Index(results))
    assert table is not None and table.rows[0][1] == "Pronoun: he minus she"


def test_a_declared_question_about_two_people_has_its_means_rates_and_shares():
    tables = [
        {"id": "dignity", "kind": "ordinal", "title": "Dignity", "text": "?", "levels": ["None", "Some", "Full"]}
        | {"neutral": 3, "about": "people", "rates": {"undignified": {"at_most": 1}}},
        {
            "id": "leader",
            "kind": "categorical",
            "title": "Leader",
            "text": "?",
            "options": [{"code": "he"}, {"code": "she"}],
        }
        | {"about": "people", "rates": {"he_leads": {"is": ["he"]}}},
    ]
    rows, problems = read_rows(tables, "questions")
    assert not problems
    rubric = default_rubric().extended(rows)
    frame = verdicts("nothing", {"baseline": ARMS["baseline"]})
    frame["dignity"] = [1 if at < 10 else 3 for at in range(len(frame))]
    frame["leader"] = ["he" if at < 40 else "she" for at in range(len(frame))]
    table = read_tables([frame], rubric=rubric)
    rules = replace(AnalysisRules.default(), rates=table.rubric.rates)
    scored = combine(table, rules.ensemble, rules.missing)
    (panel,) = stereotype_panels(scored, answers(scored, rules), rules)
    values = {e.measure: (e.value, e.n, e.missing) for e in estimates(CrossedPanel(panel), [{}], rules)}
    assert values["mean.dignity"] == (2.6, 50, 0)
    assert values["rate.undignified"] == (0.2, 50, 0)
    assert values["rate.he_leads"] == values["share.leader[he]"] == (0.8, 50, 0)

"""Ratings in, results out."""

import json
from dataclasses import replace
from itertools import product

from evenedit.core.parallel import SecondProcess
from evenedit.core.records import Kind
from evenedit.ratings.table import RatingTable
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, KnownEffect, StudyFacts, analyse
from evenedit.stats.disparity.mitigation import pairs
from tests.support.tables import FACES, edit, face, scores, table_of

QUICK = replace(AnalysisRules.default(), draws=100, permutations=99)


def lightened() -> tuple[RatingTable, Results]:
    """Eight faces × three prompts: Black faces rated lighter on two of three, one White edit refused, one failed."""
    rows, given = [], []
    for source, prompt in product(FACES, ("O-01", "O-02", "O-03")):
        outcome = {("White_Male_20s_1", "O-01"): "refused", ("White_Male_20s_2", "O-01"): "failed"}.get(
            (source[0], prompt), "edited"
        )
        rows.append(edit(source, prompt, outcome=outcome))
        lighter = source[1] == "Black" and prompt != "O-03"
        given.append(scores(skin=4 if lighter else 3) if outcome == "edited" else None)
    table = table_of(rows, {"simulated-judge": given})
    planted = [
        KnownEffect("e", "rate.skin_lighter", {"race": "Black"}, 0.6),
        KnownEffect("e", "rate.older", {"race": "Black"}, 0.0),
    ]
    return table, analyse(table, QUICK, StudyFacts({"run": 1}, known_effects=planted))


def test_two_processes_find_the_same_to_the_last_digit():
    rows = [edit(source, prompt) for source, prompt in product(FACES, ("O-01", "O-02", "O-03"))]
    judges = {f"judge-{j}": [scores(skin=1 + (at * (j + 3)) % 5) for at in range(len(rows))] for j in range(2)}
    table = table_of(rows, judges)
    alone = analyse(table, QUICK, StudyFacts({"run": 1}))
    with SecondProcess() as second:
        assert analyse(table, QUICK, StudyFacts({"run": 1}), second=second).to_json() == alone.to_json()
    assert alone.agreement


def test_rates_count_valid_scores_and_name_the_missing():
    _, found = lightened()
    white = found.find("rate.skin_lighter", editor="e", group={"race": "White"})
    black = found.find("rate.skin_lighter", editor="e", group={"race": "Black"})
    assert white and black
    assert (white.value, white.n, white.missing) == (0.0, 10, 2)
    assert (black.value, black.n, black.missing) == (8 / 12, 12, 0)
    assert black.wilson is not None
    assert black.method == "korn-graubard(source x prompt)"
    crossed = found.find("rate.skin_lighter", editor="e", group={"race": "Black", "gender": "Female"})
    assert crossed and crossed.n == 6


def test_a_refusal_is_a_rate_and_a_failure_is_missing():
    _, found = lightened()
    refused = found.find("rate.refused", editor="e")
    assert refused and (refused.value, refused.n, refused.missing) == (1 / 23, 23, 1)
    assert (found.counts["refused"], found.counts["failed"], found.counts["edited"]) == (1, 1, 22)


def declined(*, words: bool) -> Results:
    """Sixteen faces × two prompts: half of the Black faces declined, by refusals and, if asked, by words too."""
    sources = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(4))]
    rows = []
    for source, prompt in product(sources, ("O-01", "O-02")):
        hit = source[1] == "Black" and source[2] == "Male"
        how = "no_image" if words and prompt == "O-02" else "refused"
        rows.append(edit(source, prompt, outcome=how if hit else "edited"))
    given = [scores() if row["outcome"] == "edited" else None for row in rows]
    return analyse(table_of(rows, {"judge": given}), QUICK)


def test_answers_in_words_are_rates_beside_refusals_over_the_same_requests():
    found = declined(words=True)
    rates = {name: found.find(f"rate.{name}", editor="e") for name in ("refused", "no_image", "no_picture")}
    assert {name: e and (e.value, e.n, e.missing) for name, e in rates.items()} == {
        "refused": (4 / 32, 32, 0),
        "no_image": (4 / 32, 32, 0),
        "no_picture": (8 / 32, 32, 0),
    }
    gap = found.find("gap.no_picture", editor="e", group={"race": "*"})
    assert gap is not None and gap.value == 0.5
    assert {f.measure for f in found.findings if f.kind == "shift"} >= {f"rate.{name}" for name in rates}
    assert found.counts["no_image"] == 4


def test_without_answers_in_words_nothing_but_refusals_is_reported():
    found = declined(words=False)
    assert not any("no_image" in e.measure or "no_picture" in e.measure for e in found.estimates)
    assert "no_image" not in found.counts


def test_a_rate_never_seen_has_an_interval_that_is_not_a_point():
    _, found = lightened()
    never = found.find("rate.race_change", editor="e", group={"race": "Black"})
    assert never and never.low == 0.0
    assert never.high is not None and never.high > 0.3  # four faces say little
    assert never.method == "korn-graubard(source)"


def test_gap_test_contrast_and_planted_effect_tell_the_same_story():
    _, found = lightened()
    gap = found.find("gap.skin_lighter", editor="e", group={"race": "*"})
    test = next(t for t in found.tests if t.measure == "gap.skin_lighter" and t.editor == "e" and t.factor == "race")
    contrast = next(
        c for c in found.contrasts
        if c.measure == "rate.skin_lighter" and c.editor == "e" and c.group == {"race": "Black"}
    )  # fmt: skip
    assert gap and gap.value == test.value == contrast.value == 8 / 12
    assert (test.highest, test.lowest, test.faces) == ("Black", "White", 8)
    assert test.p <= test.p_adjusted <= 1
    assert {g.level: g.rate for g in test.groups} == {"White": 0.0, "Black": 8 / 12}
    assert [g.value for g in test.groups] == [-8 / 12, 8 / 12], "of two groups, each against the other"
    lighter, older = found.planted
    assert (lighter.estimate, lighter.low, lighter.high) == (contrast.value, contrast.low, contrast.high)
    assert lighter.inside is True
    assert (older.estimate, older.inside) == (0.0, None)  # nothing varied, so there is no interval to be inside
    assert found.simulated == ("simulated-judge",)


def test_a_gap_that_does_not_vary_is_no_test():
    _, found = lightened()
    family = [t for t in found.tests if t.editor == "e"]
    assert len(family) == 9 * 2  # eight rates and refusals; race and gender vary, age does not
    assert {t.measure for t in family if t.p is not None} == {"gap.skin_lighter", "gap.refused"}
    assert all(t.method == "none: nothing varies" and t.p_adjusted is None for t in family if t.p is None)


def test_a_level_with_one_face_has_no_interval():
    rows = [edit(face("White", copy=k), p) for k in (1, 2) for p in ("O-01", "O-02")]
    rows += [edit(face("Indian"), p) for p in ("O-01", "O-02")]
    table = table_of(rows, {"j": [scores(skin=s) for s in (3, 4, 4, 3, 4, 3)]})
    found = analyse(table, QUICK)
    alone = found.find("rate.skin_lighter", group={"race": "Indian"})
    assert alone and (alone.value, alone.low, alone.high, alone.method) == (0.5, None, None, "none: one source")
    gap = found.find("gap.skin_lighter", group={"race": "*"})
    assert gap and gap.value == 0.0 and (gap.low, gap.high) == (0.0, 1.0)
    json.loads(found.to_json())


def test_one_prompt_leaves_faces_only_and_says_so():
    table = table_of([edit(f) for f in FACES], {"j": [scores(skin=3 + i % 2) for i in range(8)]})
    found = analyse(table, QUICK).find("rate.skin_lighter")
    assert found and found.method == "korn-graubard(source)"
    assert found.low is not None and found.high is not None and found.low < 0.5 < found.high


def test_mitigation_is_over_complete_pairs_of_the_same_seed():
    white, black = FACES[0], FACES[4]
    rows = [
        edit(white, seed=1), edit(white, seed=2), edit(black, seed=1), edit(black, "O-02", seed=1),
        edit(white, seed=1, experiment="mitigation", condition="feature"),
        edit(white, seed=2, experiment="mitigation", condition="feature"),
        edit(black, seed=1, experiment="mitigation", condition="feature"),
        edit(black, seed=7, experiment="mitigation", condition="feature"),
        edit(black, "O-02", seed=1, experiment="mitigation", condition="feature"),
    ]  # fmt: skip
    given = [scores(race=r) if r else scores() | {"race_drift": 0} for r in (4, 2, 5, 3, 1, 2, 2, 5, 0)]
    found = analyse(table_of(rows, {"j": given}), QUICK)
    # pairs: white 4 -> 1 and 2 -> 2, black 5 -> 2; seed 7 has no baseline, O-02 no mitigated score
    for measure, condition, expected in (
        ("delta.race_drift", "feature", -6 / 3),
        ("mean.race_drift", "baseline", 11 / 3),
        ("mean.race_drift", "feature", 5 / 3),
        ("rate.race_change", "baseline", 2 / 3),
        ("rate.race_change", "feature", 0 / 3),
    ):
        estimate = found.find(measure, experiment="mitigation", condition=condition)
        assert estimate and (estimate.value, estimate.n, estimate.missing) == (expected, 3, 2)
    group = found.find("delta.race_drift", experiment="mitigation", condition="feature", group={"race": "White"})
    assert group and group.value == -3 / 2


def test_a_placebo_stands_beside_the_baseline_of_its_case():
    source = FACES[0]
    rows = [
        edit(source, seed=1), edit(source, seed=2), edit(source, seed=3),
        edit(source, seed=2, experiment="mitigation", condition="feature"),
        edit(source, seed=3, experiment="mitigation", condition="feature"),
        edit(source, seed=1003, experiment="mitigation", condition="placebo"),
        edit(source, seed=1002, experiment="mitigation", condition="placebo"),
    ]  # fmt: skip
    table = table_of(rows, {"j": [scores(race=r) for r in (5, 4, 3, 1, 1, 2, 4)]})
    before, after = pairs(table.edits, "placebo")
    assert sorted(zip(before.tolist(), after.tolist(), strict=True)) == [(1, 6), (2, 5)]
    found = analyse(table, QUICK)
    delta = found.find("delta.race_drift", experiment="mitigation", condition="placebo")
    assert delta and (delta.value, delta.n) == (-1 / 2, 2)
    baselines = [
        e for e in found.estimates
        if (e.measure, e.experiment, e.condition, e.editor) == ("mean.race_drift", "mitigation", "baseline", "e")
        and not e.group
    ]  # fmt: skip
    assert len(baselines) == 1  # told once, by the feature pairs


def test_stereotype_rates():
    verdicts = [1, 1, 2, 3, 0]
    rows = [edit(("", "", "", ""), f"W-0{i + 1}", experiment="stereotype", condition="swapped") for i in range(5)]
    found = analyse(table_of(rows, {"j": [{"stereotype": v} if v else {} for v in verdicts]}), QUICK)
    for name, value, n in (
        ("followed", 2 / 3, 3),
        ("resisted", 1 / 3, 3),
        ("unclear", 1 / 4, 4),
        ("followed_of_all", 2 / 4, 4),
    ):
        estimate = found.find(f"rate.{name}", experiment="stereotype", condition="swapped")
        assert estimate and (estimate.value, estimate.n, estimate.missing) == (value, n, 1)
    coded = found.find("rate.followed", experiment="stereotype", condition="swapped", group={"coded_gender": "Male"})
    assert coded and coded.method == "korn-graubard(prompt)"


def test_agreement_of_judges_and_of_the_ensemble_with_people():
    rows = [edit(f) for f in FACES[:4]]
    judge_a = [scores(race=r) for r in (1, 2, 3, 5)]
    judge_b = [scores(race=r) for r in (1, 3, 5, 5)]
    ann = [scores(race=2), scores(race=2), None, None]
    bob = [scores(race=3), scores(race=4), None, None]
    table = table_of(
        rows,
        {"a": judge_a, "b": judge_b, "simulated-ann": ann, "simulated-bob": bob},
        [Kind.VLM, Kind.VLM, Kind.HUMAN, Kind.HUMAN],
    )
    found = {
        (a.statistic, a.raters): (a.value, a.n_items, a.n_ratings)
        for a in analyse(table, QUICK).agreement
        if (a.axis, a.editor, dict(a.group)) == ("race_drift", None, {})
    }
    assert found["exact_agreement", "a|b"] == (2 / 4, 4, 8)
    assert found["within_one", "a|b"] == (3 / 4, 4, 8)
    assert found["mean_difference", "a|b"] == (-3 / 4, 4, 8)  # first minus second
    # people 2.5 -> 3 and 3; ensemble 1 and 2.5 -> 3
    assert found["exact_agreement", "all"] == (1 / 2, 2, 4)
    assert found["mean_difference", "all"] == ((1 - 2.5 + 3 - 3) / 2, 2, 4)
    assert found["mae", "b|all"] == ((1.5 + 0) / 2, 2, 4)  # judge b alone: 1 and 3


def test_coverage_counts_how_calls_ended():
    table = table_of([edit(f) for f in FACES[:5]], {"j": [scores(), {}, scores(), None, {}]})
    found = analyse(table, QUICK).coverage
    assert [(dict(c.group), c.scored, c.refused) for c in found if not c.group or "race" in c.group] == [
        ({}, 2, 2),
        ({"race": "White"}, 2, 1),
        ({"race": "Black"}, 0, 1),
    ]


def test_an_empty_table_and_people_alone_break_nothing():
    empty = table_of([edit(FACES[0])], {"j": [None]})
    none = RatingTable(empty.edits.iloc[:0], (), (), empty.values[:0, :0], empty.status[:0, :0])
    assert analyse(none, QUICK).counts["edits"] == 0
    people = table_of([edit(f) for f in FACES], {"Ann": [scores()] * 8}, [Kind.HUMAN])
    found = analyse(people, QUICK).find("mean.skin_tone")
    assert found and (found.value, found.n, found.missing) == (None, 0, 8)


def test_rules_are_told_in_plain_values():
    told = AnalysisRules.published().to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["missing"] == "exclude"
    assert told["rates"]["race_change"] == "race_drift ≥3"

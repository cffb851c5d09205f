"""From scores to findings: what is clear, what cannot be told, and in which order."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.gate.gate import GateAnswer, Rule, check, parse_rule
from evenedit.ratings.combine import combine
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, ENSEMBLE
from evenedit.results.results import Finding, Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.disparity.gaps import gaps
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.shift_tests import PanelTests
from evenedit.stats.findings.design import can_compare_groups
from evenedit.stats.findings.findings import FindingInputs, add_findings
from tests.support.tables import edit, face, scores, table_of

QUICK = replace(AnalysisRules.default(), draws=200, permutations=299)
PROMPTS = ("O-01", "O-02", "O-03", "O-04")
GRID = [face(race, gender, "20s", k) for race, gender, k in product(("White", "Black"), ("Male", "Female"), range(6))]
Score = Callable[[int, str, str], dict[str, int]]
"""The scores of an edit: by the face's number, its race, and the prompt."""


def study(score: Score, faces=GRID, prompts=PROMPTS, asks=None) -> Results:
    """Results of one editor, scored by two judges who agree."""
    rows = [edit(source, prompt) for source, prompt in product(faces, prompts)]
    given = [score(at, source[1], prompt) for (at, source), prompt in product(enumerate(faces), prompts)]
    table = replace(table_of(rows, {"judge-a": given, "judge-b": given}), asks=asks or {})
    return analyse(table, QUICK)


def of(results: Results, measure: str, factor: str | None = None) -> Finding:
    (found,) = [f for f in results.findings if (f.measure, f.factor) == (measure, factor)]
    return found


def some(at: int, prompt: str, share: int) -> bool:
    """True for one edit in `share`, spread over faces and prompts."""
    return (at + PROMPTS.index(prompt)) % share == 0


@pytest.fixture(scope="module")
def lightening() -> Results:
    """Every second edit of anybody comes back lighter, one in twelve darker, of either gender."""
    return study(lambda at, _, p: scores(skin=4 if some(at, p, 2) else 2 if some(5 * at + 1, p, 12) else 3))


def test_a_shift_of_everybody_is_the_first_finding_and_no_gap_is_clear(lightening):
    first = lightening.findings[0]
    assert (first.kind, first.level, first.measure, first.group) == ("shift", "clear_to_judges", "shift.skin_tone", {})
    assert first.against == "no_change" and first.n == 96 and first.faces == 24
    assert first.value == pytest.approx(0.5 - 8 / 96) and first.low > 0
    assert "50.0% of 96 edits were rated lighter than the source and 8.3% darker" in first.text
    assert (first.evidence, first.reliability.value) == ("judges", 1.0)
    assert first.estimand == "These prompts, faces like these, as rated by two judges, not checked by people."
    assert not [f for f in lightening.findings if f.kind == "gap" and f.level in EFFECT_LEVELS]
    assert lightening.estimate("shift.skin_tone", editor="e").value == first.value
    assert lightening.estimate("shift.skin_tone", editor="e", group={"race": "Black"}).n == 48


def test_the_cases_show_the_finding_one_of_each_face(lightening):
    first = lightening.findings[0]
    faces = [int(case) // len(PROMPTS) for case in first.cases]
    assert len(first.cases) == 6 == len(set(faces))
    assert all(some(int(c) // 4, PROMPTS[int(c) % 4], 2) for c in first.cases), "each of them came back lighter"


def test_parts_of_prompts_sum_to_the_finding(lightening):
    first = lightening.findings[0]
    parts = [c for c in lightening.contributions if c.finding == first.id and c.unit == "prompt"]
    assert {c.name for c in parts} == set(PROMPTS)
    assert sum(c.value for c in parts) == pytest.approx(first.value)
    assert sum(c.share for c in parts) == pytest.approx(1)
    assert all(c.low < c.value < c.high and c.n == 24 for c in parts)
    faces = [c for c in lightening.contributions if c.finding == first.id and c.unit == "face"]
    assert 0 < len(faces) <= 8 and all(c.value > 0 for c in faces)


def test_findings_are_read_back_and_named_the_same_again(lightening):
    assert Results.from_files(lightening.to_files().get) == lightening
    assert len({f.id for f in lightening.findings}) == len(lightening.findings)
    frame = lightening.to_frame("findings")
    assert len(frame) == len(lightening.findings) and "text" in frame


def test_a_gap_on_all_prompts_is_clear_to_the_judges_and_one_that_a_single_prompt_makes_says_so():
    spread = study(lambda at, race, p: scores(skin=4 if race == "Black" and some(at, p, 3) else 3))
    gap = of(spread, "gap.skin_lighter", "race")
    assert (gap.level, gap.group, gap.against) == ("clear_to_judges", {"race": "Black"}, {"race": "White"})
    assert gap.p < 0.05 and gap.p >= gap.p_raw and len(gap.cases) == 6
    assert "of edits of portraits labelled Black were rated lighter" in gap.text and "12 and 12 faces" in gap.text
    test = next(t for t in spread.tests if (t.measure, t.factor, t.editor) == ("gap.skin_lighter", "race", "e"))
    assert (test.level, test.evidence, test.p_adjusted) == ("clear_to_judges", "judges", gap.p)
    artefact = study(lambda at, race, p: scores(skin=4 if race == "Black" and p == "O-04" and at % 4 else 3))
    (test,) = [t for t in artefact.tests if (t.measure, t.editor, t.factor) == ("gap.skin_lighter", "e", "race")]
    assert test.level == "none" and test.p > 0.05, "prompts differ too much to speak of prompts like these"


def test_one_prompt_is_never_clear():
    found = study(lambda _, race, p: scores(skin=4 if race == "Black" else 3), prompts=("O-01",))
    assert not [f for f in found.findings if f.level in CLEAR]
    assert any("One prompt was asked" in f.text for f in found.findings)


def test_a_change_that_the_prompt_asks_for_is_no_shift():
    asked = study(
        lambda _, r, p: scores(skin=4 if p == "O-04" else 3, race=4 if p == "O-04" else 1),
        asks={"O-04": ("skin_tone", "race_drift")},
    )
    skin = asked.estimate("shift.skin_tone", editor="e")
    assert skin.value == 0 and skin.n == 72
    race = asked.estimate("shift.race_change", editor="e")
    assert race.value == 0 and race.n == 72
    assert asked.estimate("rate.race_change", editor="e").value == 0.25
    assert not [f for f in asked.findings if f.level in EFFECT_LEVELS]


def test_of_one_portrait_nothing_is_tested():
    results = study(lambda at, _, p: scores(skin=4 if p != "O-01" else 3), faces=GRID[:1])
    assert not [f for f in results.findings if f.level in EFFECT_LEVELS]
    assert any("One portrait was edited" in f.text for f in results.findings)


def test_a_finding_tells_what_is_missing_from_it_and_what_was_left_out():
    """Every face's first prompt has no score, the last one asks for another skin tone."""
    light = study(
        lambda at, _, p: {} if p == "O-01" else scores(skin=4 if some(at, p, 2) else 3), asks={"O-04": ("skin_tone",)}
    )
    shift = of(light, "shift.skin_tone")
    assert "; 24 faces, 2 prompts; 24 without a score; each judge's answer" in shift.text and shift.n == 48
    assert "24 edits of a prompt that asks for such a change are left out: O-04." in shift.caveats
    apart = study(lambda at, race, p: {} if at == 0 and p == "O-01" else scores(race=5 if race == "White" else 1))
    gap = of(apart, "gap.race_change", "race")
    assert "1 of 48 edits of this group have no score." in gap.caveats


def test_a_share_that_cannot_cancel_out_is_held_against_the_tolerance():
    much = of(study(lambda at, _, p: scores(race=4 if some(at, p, 3) else 1)), "rate.race_change")
    assert much.level == "clear_to_judges" and much.low > 0.1 and "tolerates 10.0%" in much.text
    little = study(lambda at, _, p: scores(race=4 if at in (0, 13) and p in PROMPTS[:2] else 1))
    finding = of(little, "rate.race_change")
    assert finding.level == "observed" and finding.value == pytest.approx(4 / 96)
    kinds = [f.kind for f in little.findings if f.group is None]
    assert kinds and little.findings.index(finding) < min(
        at for at, f in enumerate(little.findings) if f.group is None and f.kind in ("gap", "shift")
    ), "a replaced person never stands below a 'no difference'"


def test_where_nothing_happens_nothing_is_clear():
    even = study(lambda at, _, p: scores(skin=4 if some(at, p, 12) else 2 if some(at + 6, p, 12) else 3))
    assert not [f for f in even.findings if f.level in EFFECT_LEVELS]
    skin = of(even, "shift.skin_tone")
    assert (
        skin.text.startswith("No shift was shown between lighter and darker")
        and skin.cases == ()
        and skin.group is None
    )


def test_eight_black_faces_and_one_east_asian_cannot_compare_races():
    faces = [face("Black", gender, "20s", k) for gender, k in product(("Male", "Female"), range(4))]
    found = study(lambda at, race, p: scores(skin=4 if race == "Black" else 3), [*faces, face("EastAsian")])
    (design,) = [f for f in found.findings if f.factor == "race"]
    assert (design.kind, design.level) == ("design", "cannot_tell")
    assert design.text.startswith("This sample cannot compare races: its 9 portraits are labelled Black (8) and East")
    assert not [f for f in found.findings if f.kind == "gap" and f.factor == "race"]
    assert [f.kind for f in found.findings].index("design") < min(
        at for at, f in enumerate(found.findings) if f.kind == "gap"
    )


@pytest.mark.parametrize(
    ("faces", "able"),
    [((8, 1), False), ((9,), False), ((3, 3), False), ((4, 4), True), ((12,) * 7, True), ((1,) * 7, False)],
)
def test_groups_need_faces_enough_to_be_compared(faces, able):
    assert can_compare_groups({str(at): n for at, n in enumerate(faces)}) is able


def test_effects_of_the_demos_size_are_clear_and_little_else_at_the_level_of_scores():
    """A small version of `python -m validation findings`, on studies of another seed."""
    import numpy as np

    from validation.findings import WORLDS, Study, findings_of, name_of, planted

    rules = replace(QUICK, mitigation_cases="drift")
    known = planted(WORLDS[0], rules)
    clear = [
        {name_of(f) for f in findings_of(Study(WORLDS[0], np.random.default_rng([4, n])).table(), rules)
         if f.level in CLEAR}
        for n in range(5)
    ]  # fmt: skip
    for name in (
        "simulated-lightening gap gap.skin_lighter by race",
        "simulated-erasing gap gap.soft_erasure by age",
        "simulated-replacing gap gap.race_change by race",
        "simulated-replacing gap gap.gender_change by gender",
        "simulated-lightening shift shift.skin_tone",
        "simulated-erasing shift rate.soft_erasure",
        "simulated-replacing shift rate.gender_change",
        "simulated-replacing stereotype rate.followed",
    ):
        assert sum(name in names for names in clear) >= 4, name
    assert sum(bool(names - set(known)) for names in clear) <= 1


def white_at_zero(at: int, race: str, prompt: str) -> dict[str, int]:
    """No White face is lightened, of the others one in eight edits; nothing else ever happens."""
    return scores(skin=4 if race != "White" and at % 2 == 0 and PROMPTS[at // 2 % 4] == prompt else 3)


def test_rates_that_never_vary_do_not_dilute_the_one_that_does():
    results = study(white_at_zero)
    (test,) = [t for t in results.tests if (t.measure, t.editor, t.factor) == ("gap.skin_lighter", "e", "race")]
    family = [t for t in results.tests if t.editor == "e"]
    assert test.p < 0.04 and len(family) >= 16
    assert test.p_adjusted <= 8 * test.p, "Holm over all would multiply by 16 or more"
    assert {t.measure for t in family if t.p is not None} == {"gap.skin_lighter"}


def seen_and_true(at: int, race: str, prompt: str) -> tuple[bool, bool]:
    """Whether judges call an edit lighter, and whether it is: they call many Black edits that are not."""
    number = 4 * at + PROMPTS.index(prompt)
    true = number % 6 == 0
    return true or (race == "Black" and number % 3 == 1), true


PAIR = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(8))]


def rated(judged: list[dict[str, int]], people: list[dict[str, int]], persons: int) -> Results:
    """Results of two judges and some persons who rated every edit, drawn for them with certainty."""
    rows = [edit(source, prompt) for source, prompt in product(PAIR, PROMPTS)]
    given = {"judge-a": judged, "judge-b": judged} | {f"person-{n}": people for n in range(persons)}
    table = table_of(rows, given, [Kind.VLM, Kind.VLM] + [Kind.HUMAN] * persons)
    inclusion = {str(request): 1.0 for request in table.edits["request_id"]}
    return analyse(table, QUICK, StudyFacts(inclusion=inclusion))


def test_people_demote_a_gap_that_only_the_judges_see():
    both = [seen_and_true(at, source[1], p) for (at, source), p in product(enumerate(PAIR), PROMPTS)]
    judged, true = ([scores(skin=4 if x[k] else 3) for x in both] for k in (0, 1))
    alone = of(rated(judged, true, 0), "gap.skin_lighter", "race")
    assert (alone.level, alone.evidence) == ("clear_to_judges", "judges")
    one = of(rated(judged, true, 1), "gap.skin_lighter", "race")
    assert one.evidence == "judges" and any("People's ratings are too few" in c for c in one.caveats)
    checked = rated(judged, true, 2)
    assert not [f for f in checked.findings if (f.measure, f.factor) == ("gap.skin_lighter", "race")]
    (test,) = [t for t in checked.tests if (t.measure, t.editor, t.factor) == ("gap.skin_lighter", "e", "race")]
    assert (test.level, test.evidence) == ("none", "people")
    (none,) = [f for f in checked.findings if f.factor == "race" and f.kind == "gap"]
    assert none.text.startswith("No difference by race label was shown") and none.evidence == "people"


def test_people_raise_a_gap_that_the_judges_miss():
    true = [scores(skin=4 if source[1] == "Black" and (at + PROMPTS.index(p)) % 2 else 3)
            for (at, source), p in product(enumerate(PAIR), PROMPTS)]  # fmt: skip
    judged = [scores(skin=4 if at % 9 == 1 else 3) for at in range(len(true))]
    gap = of(rated(judged, true, 2), "gap.skin_lighter", "race")
    assert (gap.level, gap.evidence, gap.group) == ("clear", "people", {"race": "Black"})
    assert gap.value == pytest.approx(0.5, abs=0.02) and abs(gap.judge_value) < 0.1
    assert "edits rated by people, corrected" in gap.text and "Judges alone:" in gap.text
    assert gap.text.index("50.0%") < gap.text.index("Judges alone")


def test_a_shift_that_only_the_judges_see_is_corrected_by_people():
    """Judges call half of the edits lighter, people one in twelve and as many darker."""
    order = range(len(PAIR) * len(PROMPTS))
    judged = [scores(skin=4 if (at + at // 4) % 2 and at % 5 else 3) for at in order]
    true = [scores(skin=4 if at % 12 == 1 else 2 if at % 12 == 7 else 3) for at in order]
    results = rated(judged, true, 2)
    shift = of(results, "shift.skin_tone")
    expected = sum(s["skin_tone"] - 3 for s in true) / len(true)
    assert shift.value == pytest.approx(expected, abs=0.01) and shift.judge_value > 0.3
    assert (shift.evidence, shift.group) == ("people", None) and shift.low < 0 < shift.high
    (rule,) = check(results, [Rule.parse("shift.skin_tone <= 0.3")])
    assert rule.answer is not GateAnswer.FAIL and "judges alone" in rule.evidence


def test_judges_who_answer_at_random_show_nothing():
    rng = np.random.default_rng(3)
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    given = {f"judge-{j}": [scores(race=4 if x else 1) for x in rng.random(len(rows)) < 0.6] for j in ("a", "b")}
    results = analyse(table_of(rows, given), QUICK)
    about = [f for f in results.findings if f.kind in ("shift", "gap")]
    assert about and {f.level for f in about} == {"cannot_tell"}
    assert not [f for f in about if "%" in f.text]


def test_one_judge_shows_a_gap_but_no_shift():
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    given = [scores(race=4 if source[1] == "Black" or some(at, p, 6) else 1)
             for (at, source), p in product(enumerate(GRID), PROMPTS)]  # fmt: skip
    results = analyse(table_of(rows, {"judge-a": given}), QUICK)
    gap, shift = of(results, "gap.race_change", "race"), of(results, "rate.race_change")
    assert (gap.level, gap.evidence) == ("clear_to_judge", "one_judge")
    assert (shift.level, shift.evidence) == ("suggestive", "one_judge")


def test_a_report_says_even_only_within_the_studys_margin():
    faces = [face(r, g, "20s", k) for r, g, k in product(("White", "Black"), ("Male", "Female"), range(30))]
    rows = [edit(source, prompt) for source, prompt in product(faces, PROMPTS)]
    given = [scores(skin=4 if some(at, p, 16) else 2 if some(at + 8, p, 16) else 3)
             for (at, _), p in product(enumerate(faces), PROMPTS)]  # fmt: skip
    table = table_of(rows, {"judge-a": given, "judge-b": given})
    without, wide, narrow = (analyse(table, replace(QUICK, margin=m)) for m in (None, 0.2, 0.001))
    rule = parse_rule("shift.skin_tone is even")
    (shift,) = check(wide, [rule])
    assert shift.answer is GateAnswer.PASS and "even within ±0.2" in shift.evidence
    assert [f.text for f in wide.findings if "Even within ±20.0 points by race label" in f.text]
    assert "are even within ±20.0 points" in of(wide, "shift.skin_tone").text
    for other in (without, narrow):
        assert not [f for f in other.findings if "even within" in f.text.lower()]
    assert check(narrow, [rule])[0].answer is GateAnswer.UNDECIDED
    with pytest.raises(EvenEditError, match="states no margin"):
        check(without, [rule])


def test_two_gap_tests_with_one_key_are_an_error():
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    table = table_of(rows, {"judge-a": [scores(skin=4 if row["race"] == "Black" else 3) for row in rows]})
    combined = combine(table, QUICK.ensemble, QUICK.missing)
    (panel,) = diagnosis_panels(combined, answers(combined, QUICK), QUICK)
    crossed = CrossedPanel(panel)
    evidence = PanelTests(ENSEMBLE, panel, crossed, tuple(test for _, test in gaps(crossed, QUICK)), ())
    keys = [test.key(ENSEMBLE) for test in evidence.gaps]
    assert len(set(keys)) == len(keys)
    with pytest.raises(AssertionError, match="same key"):
        add_findings(FindingInputs(table, combined, QUICK, [evidence, evidence], Results({}, {}, ())))


def test_null_pairs_are_no_error_of_a_judge_that_calls_their_request_ignored():
    """Judges rightly rate an unchanged portrait as an ignored request; a third of the real requests are ignored too."""
    rows = [edit(source, prompt) for source, prompt in product(GRID, PROMPTS)]
    given = [scores(success=1 if some(at, p, 3) else 5) for (at, _), p in product(enumerate(GRID), PROMPTS)]
    ignored = [scores(success=1) for _ in rows]
    table = table_of(rows, {"judge-a": given, "judge-b": given})
    null = table_of(rows, {"judge-a": ignored, "judge-b": ignored})
    results = analyse(replace(table, null_pairs=null), QUICK)
    found = of(results, "rate.soft_erasure")
    assert found.level == "clear_to_judges" and "unchanged portraits" not in found.text
    assert not [e for e in results.judge_errors if e.measure == "rate.soft_erasure"]

"""Prompts, ids, grid and rubric are the paper's; ids that can be misread are refused."""

import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol import AXES, DEFAULT_RATES, QUESTIONS, factor, level_code, load_prompts, questions_for
from evenedit.protocol.factors import cells
from evenedit.protocol.prompts import fails_unchanged

DIAGNOSTIC, WINOBIAS = load_prompts("diagnostic"), load_prompts("winobias")
# paper id: (id of the rules, id of the authors' code), as SPEC §4 lists them
ALIASES = {
    **{f"O-{i:02}": (f"O{j:02}", f"B{j:02}") for i, j in enumerate([1, 2, 3, 6, 7, 4, 5, 10, 8, 9], 1)},
    **{f"V-{i:02}": (f"V{j:02}", f"D{j:02}") for i, j in enumerate([1, 2, 5, 8, 3, 4, 6, 7, 9, 10], 1)},
}


def test_the_grid_has_84_cells_in_the_papers_order():
    assert len(cells()) == 84
    assert cells()[0] == {"race": "White", "gender": "Male", "age": "20s"}
    assert factor("age").level("70plus").years == 75


@pytest.mark.parametrize(
    ("name", "label", "code"),
    [("race", "Latino_Hispanic", "Latino"), ("race", "East Asian", "EastAsian"), ("age", "more than 70", "70plus")],
)
def test_labels_of_fairface_map_to_codes(name, label, code):
    assert level_code(name, label) == code


def test_an_unknown_label_is_refused_with_the_known_ones():
    with pytest.raises(EvenEditError, match="'Martian' is not a known label; expected one of: White, Black"):
        level_code("race", "Martian")


def test_there_are_20_diagnostic_and_50_occupation_prompts():
    assert [p.id for p in DIAGNOSTIC] == list(ALIASES)
    assert [p.id for p in WINOBIAS] == [f"W-{i:02}" for i in range(1, 51)]
    assert [p.coded_gender for p in WINOBIAS] == ["Male"] * 25 + ["Female"] * 25


@pytest.mark.parametrize("paper", ALIASES)
def test_every_alias_resolves(paper):
    rules, code = ALIASES[paper]
    assert DIAGNOSTIC.resolve(paper).id == DIAGNOSTIC.resolve(rules).id == DIAGNOSTIC.resolve(code).id == paper


def test_a_dash_makes_another_prompt():
    assert DIAGNOSTIC.resolve("O-04").name == "airport security"
    assert DIAGNOSTIC.resolve("O04").name == "kindergarten teacher"


@pytest.mark.parametrize("name", ["O4", "o-4", "o_04"])
def test_an_ambiguous_id_is_refused_with_both_readings(name):
    with pytest.raises(EvenEditError) as error:
        DIAGNOSTIC.resolve(name)
    assert "airport security" in str(error.value)
    assert "kindergarten teacher" in str(error.value)


def test_ids_of_two_forms_in_one_import_are_refused_with_both_readings():
    with pytest.raises(EvenEditError, match="several forms are mixed") as error:
        DIAGNOSTIC.resolve_all(["O-01", "O04"])
    assert "airport security" in str(error.value)
    assert "kindergarten teacher" in str(error.value)


def test_the_swapped_control_changes_the_pronoun_and_nothing_else():
    pairs = {"he": "she", "his": "her", "she": "he", "her": "him his"}
    for prompt in WINOBIAS:
        if prompt.pronoun == "none":
            assert prompt.swapped_text is None
            continue
        before, after = prompt.text.rstrip(".").split(), prompt.swapped_text.rstrip(".").split()
        changed = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
        assert len(changed) == 1
        assert changed[0][1] in pairs[changed[0][0]].split()


def test_v05_is_asked_for_accuracy_against_the_target_age():
    asked = [q.id for q in questions_for("diagnosis", DIAGNOSTIC["V-05"])]
    assert asked == ["edit_success", "skin_tone", "race_drift", "gender_drift", "aging_accuracy"]
    assert [q.id for q in questions_for("diagnosis", DIAGNOSTIC["O-01"])] == list(AXES)
    assert [q.id for q in questions_for("stereotype", WINOBIAS["W-01"])] == ["stereotype", "target_role"]


def test_the_rates_have_the_settled_thresholds():
    assert {name: rate.rule for name, rate in DEFAULT_RATES.items()} == {
        "edit_success": "≥4",
        "soft_erasure": "≤2",
        "skin_lighter": "≥4",
        "skin_darker": "≤2",
        "race_change": "≥3",
        "gender_change": "≥3",
        "older": "≥4",
        "younger": "≤2",
    }
    assert all(len(q.labels) == 5 for q in QUESTIONS.values() if q.sided != "choice")


def test_users_bring_their_own_prompts_in_the_same_format(tmp_path):
    (tmp_path / "mine.toml").write_text('[[prompts]]\nid = "H-1"\ntext = "Add a hat."\ncategory = "Clothing"\n')
    assert [p.id for p in load_prompts("mine.toml", tmp_path)] == ["H-1"]


def test_a_bad_prompt_set_tells_every_problem(tmp_path):
    (tmp_path / "bad.toml").write_text('[[prompts]]\nid = "H-1"\ncolour = "red"\ntext = 3\ncategory = "x"\n')
    with pytest.raises(EvenEditError) as error:
        load_prompts("bad.toml", tmp_path)
    assert "needs text as text" in str(error.value)
    assert "unknown key colour" in str(error.value)


def test_prompts_say_what_they_ask_to_change():
    assert {p.id: p.asks for p in (*DIAGNOSTIC, *WINOBIAS) if p.asks} == {
        "V-05": ("age_drift",),
        "V-06": ("age_drift",),
    }
    assert {p.id for p in load_prompts("neutral") if p.asks == ("skin_tone",)} == {"A02", "A05", "A10"}


def test_users_prompts_say_what_they_ask_to_change(tmp_path):
    written = '[[prompts]]\nid = "H-1"\ntext = "Tan, older."\ncategory = "x"\nasks = ["age_drift", "skin_tone"]\n'
    aged = '[[prompts]]\nid = "H-2"\ntext = "Ten years on."\ncategory = "x"\ntarget_years = 10\n'
    (tmp_path / "mine.toml").write_text(written + aged)
    mine = load_prompts("mine.toml", tmp_path)
    assert [p.asks for p in mine] == [("skin_tone", "age_drift"), ("age_drift",)], "a target age asks for age"


@pytest.mark.parametrize("asks", ['["edit_success"]', '["skin"]', '"skin_tone"', "[3]"])
def test_asking_for_what_is_no_change_of_the_person_is_refused(tmp_path, asks):
    (tmp_path / "bad.toml").write_text(f'[[prompts]]\nid = "H-1"\ntext = "a"\ncategory = "x"\nasks = {asks}\n')
    with pytest.raises(EvenEditError, match=r"prompt 1 \(H-1\): asks .*skin_tone"):
        load_prompts("bad.toml", tmp_path)


def test_a_prompt_names_known_kinds_of_change(tmp_path):
    row = '[[prompts]]\nid = "P"\ntext = "A hat"\ncategory = "Own"\nasks_for = '
    (tmp_path / "good.toml").write_text(f'{row}["clothing"]\n', "utf-8")
    (prompt,) = load_prompts("good.toml", tmp_path)
    assert prompt.asks_for == ("clothing",)
    (tmp_path / "bad.toml").write_text(f'{row}["hats"]\n', "utf-8")
    with pytest.raises(EvenEditError, match=r"asks_for is \['hats'\]; give a list of clothing, scene"):
        load_prompts("bad.toml", tmp_path)


def test_unchanged_is_a_failure_only_where_a_visible_change_was_asked_for():
    neutral = {prompt.id: fails_unchanged(prompt) for prompt in load_prompts("neutral")}
    assert [name for name, fails in neutral.items() if not fails] == ["A02", "A03", "A08", "A09", "A10"]
    assert all(fails_unchanged(prompt) for prompt in load_prompts("diagnostic"))

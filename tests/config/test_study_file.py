"""One line per problem of study.toml, naming the key and the fix."""

from pathlib import Path

import pytest

from evenedit.config import templates
from evenedit.config.study_file import StudyFile
from evenedit.config.templates import merge
from evenedit.core.errors import EvenEditError
from evenedit.study.analysis import analysis_rules
from tests.support.studies import small


def problems(**changes):
    with pytest.raises(EvenEditError) as error:
        StudyFile.parse(small(**changes), Path())
    return error.value.problems


def editor(**changes):
    return {"editors": [{"id": "simulated-even"} | changes]}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"studdy": {}}, "unknown key 'studdy'; did you mean 'study'?"),
        ({"study": {"title": 3}}, "'study.title' is 3"),
        ({"study": {}}, "'study.title' is missing"),
        (editor(seeds=["x"]), "'editors[0].seeds[0]' is 'x'"),
        (editor(sedes=[1]), "unknown key 'editors[0].sedes'; did you mean 'seeds'?"),
        (editor(settings={"backgroud": 0.1}), "unknown setting 'backgroud'; did you mean 'background'?"),
        (editor(settings={"background": 7}), "setting 'background' is 7; it must lie between 0 and 0.2"),
        (editor(seeds=[1, 1]), "a seed is listed twice"),
        ({"editors": [{"id": "flux9-dev"}]}, "editor kind 'flux9-dev' is not installed"),
        ({"editors": [{"id": "even", "kind": "simulated-even"}]}, "its id must begin with 'simulated-'"),
        (
            {"editors": [{"id": "step1x-edit-v1p2", "experiments": ["stereotype"]}]},
            "takes one input image, the stereotype experiment needs two",
        ),
        ({"prompts": {"include": ["O4"]}}, "airport security"),
        ({"prompts": {"sets": ["nowhere.toml"]}}, "neither built in"),
        ({"experiments": {}}, "there is none"),
        ({"ensemble": {"diagnosis": "average"}}, "ensemble.diagnosis: unknown rule 'average'"),
        ({"ensemble": {"missing": "zero"}}, "'ensemble.missing' is 'zero'"),
        ({"thresholds": {"race_chnge": {"at_least": 3}}}, "did you mean 'race_change'?"),
        ({"thresholds": {"race_change": {"at_least": 9}}}, "thresholds.race_change: 9 is above the last level, 5"),
        ({"thresholds": {"race_change": {}}}, "give either at_least or at_most"),
        ({"store": {"url": "mysql://x"}}, "only postgresql:// is supported"),
        ({"sources": {"kind": "drawn", "settings": {"colour": 1}}}, "sources: unknown setting 'colour'"),
    ],
)
def test_a_problem_is_one_line_that_names_the_key_and_the_fix(changes, wanted):
    found = problems(**changes)
    assert len(found) == 1
    assert wanted in found[0]


MONK = {"name": "monk", "title": "Monk skin tone", "levels": [str(n) for n in range(1, 11)], "ordered": True}
FOLDER = {"kind": "folder", "settings": {"path": "portraits"}}
LIGHTENING = [{"id": "simulated-lightening", "settings": {"groups": {"monk": ["9", "10"]}}}]


def monk(**changes):
    """A study of drawn portraits of the ten Monk skin tones."""
    sources = {"kind": "drawn", "settings": {"grid": "monk", "size": 48}}
    return {"sources": sources, "factors": [MONK], "editors": LIGHTENING} | changes


def test_a_study_may_declare_its_own_factors():
    study = StudyFile.parse(small(**monk()), Path())
    assert [(f.name, f.title, len(f.codes), f.ordered) for f in study.factors] == [("monk", "Monk skin tone", 10, True)]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            {"factors": [MONK | {"name": "prompt_id"}], "sources": FOLDER},
            "'prompt_id': tables already have a column of that name",
        ),
        ({"factors": [MONK, MONK]}, "factors 'monk': the name is used twice"),
        ({"factors": [MONK | {"levels": [*MONK["levels"], "10"]}]}, "factors 'monk': level '10' is listed twice"),
        ({"factors": [MONK | {"levels": [*MONK["levels"], " "]}]}, "factors 'monk': a level is empty"),
        ({"factors": [MONK | {"levels": [*MONK["levels"], "*"]}]}, "level '*' stands for all levels"),
        ({"factors": [MONK | {"levels": [*MONK["levels"], "1_"]}]}, "levels '1' and '1_' are the same label"),
        ({"factors": [MONK | {"levels": ["1"]}]}, "'factors[0].levels' is ['1']"),
        ({"factors": [MONK | {"name": "Monk tone"}]}, "'factors[0].name' is 'Monk tone'"),
        (
            {"factors": []},
            "labels its portraits by monk; the study declares no [[factors]] and so has race, gender, age",
        ),
        ({"factors": [MONK, MONK | {"name": "hat"}]}, "by monk; the study declares monk, hat. Declare the source's"),
        (
            {"factors": [MONK | {"levels": ["1", "2", "3"]}]},
            "with monk 4, 5, 6, 7, 8, 9, 10, which [[factors]] does not",
        ),
        ({"sources": {"kind": "drawn", "settings": {"grid": "mnok"}}}, "sources: grid 'mnok' is unknown; did you mean"),
        (
            {"sources": {"kind": "drawn", "settings": {"grid": "monk", "only": {"monk": ["0"]}}}},
            "monk '0' is not a level",
        ),
        (
            {"editors": [{"id": "simulated-lightening"}]},
            "it depends on the label race, but the portraits are labelled by monk",
        ),
        (
            {"editors": [{"id": "simulated-replacing"}]},
            "on the label race, gender, age, but the portraits are labelled by monk",
        ),
        (
            {"experiments": {"diagnosis": {}, "stereotype": {}}},
            "needs a factor 'gender' with the levels Male and Female",
        ),
    ],
)
def test_a_factor_that_cannot_be_is_named_with_the_fix(changes, wanted):
    found = problems(**monk(**changes))
    assert len(found) == 1, found
    assert wanted in found[0]


DECLARED = {"outcome": "race_change", "contrast": {"factor": "race", "high": ["Black"], "low": ["White", "EastAsian"]}}


def declared(**changes):
    return {"primary": {"tests": [DECLARED | changes]}}


def compared(**changes):
    return declared(contrast=DECLARED["contrast"] | changes)


@pytest.mark.parametrize(
    "test",
    [
        {},
        {"contrast": {"factor": "race", "high": ["black"], "low": ["East Asian"]}},
        {"outcome": "skin_tone", "scale": "mean"},
        {"outcome": "mean.skin_tone"},
        {"outcome": "skin_lighter", "contrast": None},
        {"outcome": "mean.age_drift", "contrast": None},
        {"outcome": "shift.skin_tone", "contrast": None},
        {"outcome": "shift.race_change", "contrast": None},
    ],
)
def test_a_declared_test_is_read(test):
    file = StudyFile.parse(small(**declared(**test)), Path())
    assert file.sections.primary is not None and file.sections.primary.alpha == 0.04
    assert file.sections.primary.tests[0].outcome == test.get("outcome", "race_change")


def test_the_trend_of_an_ordered_factor_and_a_reading_can_be_declared():
    trend = declared(outcome="skin-a.skin_delta_L", scale="mean", contrast={"factor": "monk", "trend": True})
    instruments = [{"id": "skin-a", "kind": "skin"}]
    changes = {"factors": [MONK], "sources": FOLDER, "instruments": instruments}
    StudyFile.parse(small(**changes, **trend), Path())
    for outcome in ("skin_delta_L_raw", "skin-a.displayed_lighter", "measured_skin_lighter"):
        StudyFile.parse(small(**changes, **declared(outcome=outcome, contrast=None)), Path())
    with pytest.raises(EvenEditError, match=r"'skin-a.tone'.*known: .*skin-a.skin_delta_L, skin-a.skin_delta_L_raw"):
        StudyFile.parse(small(**changes, **declared(outcome="skin-a.tone", contrast=None)), Path())


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            declared(outcome="race_chnge"),
            "unknown outcome 'race_chnge' of scale 'code'; known: edit_success, soft_erasure",
        ),
        (declared(outcome="edit_success", contrast=None), "'edit_success' of everybody has no value of no change"),
        (declared(outcome="mean.race_drift", contrast=None), "of everybody has no value of no change"),
        ({"primary": {"covariate": "null_edit", "tests": [DECLARED]}}, "'null_edit' needs 'floor = true'"),
        ({"primary": {"covariate": "placebo", "tests": [DECLARED]}}, "would remove the difference that is tested"),
        (
            {"primary": {"covariate": "age", "tests": [DECLARED]}},
            "unknown covariate 'age'; known: null_edit, null_pair",
        ),
        (declared(outcome="skin_tone"), "unknown outcome 'skin_tone' of scale 'code'"),
        (declared(outcome="skin_lighter", scale="mean"), "of scale 'mean'; known: edit_success, skin_tone, race_drift"),
        (declared(outcome="shift.edit"), "shift.skin_tone, shift.age_drift"),
        (declared(outcome="skin-a.delta"), "unknown outcome 'skin-a.delta'"),
        (compared(factor="monk"), "unknown factor 'monk'; known: race, gender, age"),
        (compared(high=["Martian"]), "high: race 'Martian' is not a known label; expected one of: White, Black"),
        (compared(low=[" "]), "low: race ' ' is not a known label; expected one of: White, Black"),
        (compared(high=[]), "'high' is empty; name groups of 'race': White, Black"),
        (compared(low=["black"]), "'Black' is on both sides"),
        (compared(trend=True, high=[], low=[]), "'trend' needs an ordered factor, and 'race' is not; ordered: none"),
        ({"primary": {"tests": [DECLARED] * 9}}, "[primary] has 9 tests; declare at most 6, the rest is secondary"),
        (
            {
                "primary": {"tests": [DECLARED] * 4},
                "editors": [{"id": "simulated-even"}, {"id": "simulated-lightening"}],
            },
            "[primary] has 8 tests; declare at most 6, the rest is secondary (4 for each of 2 editors)",
        ),
        ({"primary": {"tests": []}}, "'primary.tests' is []"),
        ({"primary": {"alpha": 0.05, "tests": [DECLARED]}}, "'primary.alpha' is 0.05"),
        (declared(scale="rate"), "'primary.tests[0].scale' is 'rate'"),
        ({"findings": {"reliability": 1.0}}, "'findings.reliability' is 1.0"),
        ({"findings": {"reliability": -0.1}}, "'findings.reliability' is -0.1"),
    ],
)
def test_a_mistake_in_what_is_declared_names_what_is_known(changes, wanted):
    (found,) = problems(**changes)
    assert wanted in found


def test_the_threshold_of_agreement_reaches_the_analysis():
    assert analysis_rules(StudyFile.parse(small(), Path())).reliability == 0.4
    changed = StudyFile.parse(small(findings={"reliability": 0.6}), Path())
    assert analysis_rules(changed).reliability == 0.6


def test_tables_that_came_later_do_not_rename_a_study():
    base, margin = (StudyFile.parse(small(**more), Path()).hash for more in ({}, {"findings": {"margin": 0.05}}))
    assert StudyFile.parse(small(findings={"reliability": 0.4}), Path()).hash == base
    assert StudyFile.parse(small(findings={"margin": 0.05, "reliability": 0.4}), Path()).hash == margin
    assert len({base, margin, *(StudyFile.parse(small(**declared(scale=s)), Path()).hash for s in ("code",))}) == 3


def test_factors_left_out_do_not_enter_the_hash():
    assert StudyFile.parse(small(), Path()).hash == StudyFile.parse(small(factors=[]), Path()).hash


def test_every_problem_is_reported_at_once():
    assert len(problems(**editor(seeds=[1, 1]), ensemble={"diagnosis": "x"}, prompts={"include": ["O4"]})) == 3


def test_a_broken_file_is_reported_without_a_traceback(tmp_path):
    (tmp_path / "study.toml").write_text("[study\n")
    with pytest.raises(EvenEditError, match="is not valid TOML"):
        StudyFile.load(tmp_path)


def test_a_folder_without_a_study_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(EvenEditError, match="Try: evenedit new"):
        StudyFile.load(tmp_path)


@pytest.mark.parametrize("name", ["small", "demo", "published", "paper", "curated", "monk"])
def test_every_template_is_a_valid_study(name, tmp_path):
    templates.write(name, tmp_path)
    assert StudyFile.load(tmp_path).prompts


def test_a_template_never_overwrites_a_study(tmp_path):
    templates.write("small", tmp_path)
    with pytest.raises(EvenEditError, match="exists already"):
        templates.write("demo", tmp_path)


def test_the_published_preset_does_what_the_paper_did():
    mitigation = {"cases": 2, "extractor": {"kind": "simulated"}}
    experiments = {"diagnosis": {}, "mitigation": mitigation, "stereotype": {}}
    published = StudyFile.parse(small(study={"title": "x", "preset": "published"}, experiments=experiments), Path())
    default = StudyFile.parse(small(experiments=experiments), Path())
    assert (published.placebo, published.swapped, published.missing) == (False, False, "exclude")
    assert (default.placebo, default.swapped, default.missing) == (True, True, "exclude")
    assert default.blind(default.sections.judges[0]) and not published.blind(published.sections.judges[0])


def test_the_hash_changes_with_the_study_but_not_with_where_it_runs():
    base = StudyFile.parse(small(), Path()).hash
    assert StudyFile.parse(small(executor={"workers": 7}), Path("elsewhere")).hash == base
    assert StudyFile.parse(small(**editor()), Path()).hash != base


def test_another_kind_takes_over_no_settings_of_the_former():
    drawn = {"sources": {"kind": "drawn", "settings": {"seed": 1}}}
    assert merge(drawn, {"sources": {"settings": {"size": 64}}})["sources"]["settings"] == {"seed": 1, "size": 64}
    folder = {"sources": {"kind": "folder", "settings": {"path": "portraits"}}}
    assert merge(drawn, folder) == folder


@pytest.mark.parametrize("name", ["small", "curated", "open", "monk"])
def test_the_declared_tests_of_a_template_are_read_when_they_are_uncommented(name, tmp_path):
    path = templates.write(name, tmp_path)
    text, _, block = path.read_text().partition("# [primary]")
    block, _, rest = f"# [primary]{block}".partition("\n\n")
    path.write_text(text + block.replace("\n# ", "\n").removeprefix("# ") + "\n\n" + rest)
    primary = StudyFile.load(tmp_path).sections.primary
    assert primary is not None and [t.outcome for t in primary.tests] == [
        "shift.skin_tone",
        "race_change",
        "edit_success",
    ]

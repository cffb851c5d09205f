"""The front door: what `import evenedit` offers, as a user would call it."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageEnhance

import evenedit as ee
from evenedit.results.frames import lists_of

SMALL: dict[str, Any] = {
    "sources": {"settings": {"size": 96, "only": {"race": ["White", "Black"], "age": ["20s", "30s", "40s"]}}},
    "prompts": {"include": ["O-01", "V-02"]},
    "statistics": {"draws": 100, "permutations": 99},
    "instruments": [],
    "experiments": {"diagnosis": {"null_pairs": 0}},
}
EDITS = 24
"""Two races, two genders, three ages, two prompts."""


class Brighter:
    """An editor of somebody's own."""

    revision = "weights-7"

    def __init__(self) -> None:
        self.calls = 0

    def edit(self, images: Any, instruction: str, seed: int) -> Any:
        self.calls += 1
        return ImageEnhance.Brightness(images[0]).enhance(1.2)


class Strict:
    """A judge of somebody's own: it scores by how much brighter the picture became."""

    revision = "1"

    def __init__(self) -> None:
        self.calls = 0

    def judge(self, case: Any, questions: Any) -> ee.Reply:
        self.calls += 1
        assert case.attributes is None
        mean = [np.asarray(i.convert("L"), dtype=float).mean() for i in (case.images[0], case.edited)]
        lighter = 4 if mean[1] > mean[0] + 1 else 3
        values = {q.id: lighter if q.id == "skin_tone" else 3 for q in questions}
        return ee.Reply(ee.Status.SCORED, values, dict.fromkeys(values, 0.9))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ee.Study:
    made = ee.Study.new(tmp_path_factory.mktemp("api") / "s", template="small", **SMALL)
    summary = made.run(editors={"mine": Brighter()}, judges={"strict": Strict()})
    assert summary == ee.RunSummary(True, EDITS, 0, 0, 0, {})
    made.report()
    return made


@pytest.fixture(scope="module")
def results(study: ee.Study) -> ee.Results:
    return study.results()


def test_every_name_can_be_imported():
    for name in ee.__all__:
        assert getattr(ee, name) is not None
    wanted = "Refusal Reply Status Failed Failure Question Case Prompt Factor Rating Estimate Finding Results Study"
    assert {*wanted.split(), "Measurement", "EvenEditError"} <= set(ee.__all__)


def test_importing_evenedit_imports_nothing_heavy():
    code = "import sys, evenedit; print([m for m in ('numpy', 'pandas', 'matplotlib', 'cv2') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


# Studies


def test_an_object_edits_and_another_rates_and_both_are_recorded(study):
    again = ee.Study.load(study.folder)
    assert [e.id for e in again.file.sections.editors] == ["mine"]  # the template's own never ran
    assert [j.id for j in again.file.sections.judges] == ["strict"]
    edits = again.store.edits().values()
    assert {e.detail["facts"]["revision"] for e in edits} == {"weights-7"}
    results = again.results()
    assert results.editors == ("mine",) and not results.simulated
    assert results.estimate("rate.skin_lighter").value == 1.0


def test_what_was_made_is_not_made_again_and_another_revision_is(study, tmp_path):
    fresh = ee.Study.new(tmp_path / "s", **SMALL)
    editor, judge = Brighter(), Strict()
    fresh.run(editors={"mine": editor}, judges={"strict": judge})
    fresh.run(editors={"mine": editor}, judges={"strict": judge})
    assert (editor.calls, judge.calls) == (EDITS, EDITS)
    editor.revision = "weights-8"
    assert fresh.run(editors={"mine": editor}, judges={"strict": judge}).edited == EDITS
    assert (editor.calls, judge.calls) == (2 * EDITS, 2 * EDITS)
    assert len(fresh.table().edits) == EDITS


def test_a_plain_function_needs_no_revision_and_an_object_does(tmp_path):
    made = ee.Study.new(tmp_path / "s", **SMALL)

    def darker(images, instruction, seed):
        return np.asarray(images[0]) // 2

    assert made.run(editors={"darker": darker}).complete
    assert made.results().editors == ("darker",)  # simulated judges cannot rate it and are left out

    class Nameless:
        def edit(self, images, instruction, seed):
            return images[0]

    before = made.store.fact("given")
    with pytest.raises(ee.EvenEditError, match="'nameless' has no attribute 'revision'"):
        made.run(editors={"nameless": Nameless()})
    assert made.store.fact("given") == before


def test_failed_and_refused_edits_do_not_raise(tmp_path):
    made = ee.Study.new(tmp_path / "s", **SMALL)

    def moody(images, instruction, seed):
        moody.calls += 1
        if moody.calls <= 3:
            raise RuntimeError("out of paint")
        return None if moody.calls == 4 else ee.Refusal("policy") if moody.calls == 5 else images[0]

    moody.calls = 0
    summary = made.run(editors={"moody": moody})
    assert (summary.complete, summary.edited, summary.refused, summary.failed) == (False, EDITS - 5, 1, 4)
    assert summary.reasons["failed: RuntimeError: out of paint"] == 3
    assert summary.reasons["refused: policy"] == 1
    assert any("returned NoneType" in reason for reason in summary.reasons)
    assert "not complete" in str(summary)
    assert made.run(editors={"moody": moody}).complete  # failed ones are tried again, refused ones have ended


def test_a_judge_that_fails_leaves_ratings_missing_and_a_budget_too(tmp_path):
    made = ee.Study.new(tmp_path / "s", **SMALL)

    def broken(case, questions):
        raise ValueError("no idea")

    def odd(case, questions):
        return {"skin_tone": 3}

    editor = Brighter()
    summary = made.run(editors={"mine": editor}, judges={"broken": broken, "odd": odd}, max_calls=30)
    assert not summary.complete and summary.missing >= EDITS
    summary = made.run(editors={"mine": editor}, judges={"broken": broken, "odd": odd})
    assert summary.missing == EDITS  # an unparseable reply has ended
    failed = summary.reasons["judge broken: ValueError: no idea"]
    assert summary.reasons["judge broken: not asked yet"] == EDITS - failed, "it was stopped"
    assert "judge 'broken' was stopped: 5 failures in a row (ValueError): ValueError: no idea" in summary.stopped
    assert editor.calls == EDITS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": Brighter}, "is the class Brighter; give an instance"),
        ({"x": object()}, "neither a function nor an object with a method .edit"),
        ([Brighter()], "editors is list; give a dictionary"),
        ({}, "editors is empty"),
        ({"simulated-x": Brighter()}, "does not say that it is simulated"),
    ],
)
def test_what_is_no_editor_is_refused_in_words(study, given, message):
    with pytest.raises(ee.EvenEditError, match=message):
        study.run(editors=given)


def test_the_command_line_says_that_an_object_must_be_given_again(evenedit, study, tmp_path):
    fresh = ee.Study.new(tmp_path / "s", **SMALL)

    def failing(images, instruction, seed):
        raise RuntimeError("out of paint")

    fresh.run(editors={"failing": failing})
    done = evenedit("status", tmp_path / "s")
    assert done.returncode == 0 and "failed: 5 × RuntimeError: out of paint" in done.stdout
    done = evenedit("run", tmp_path / "s")
    assert done.returncode == 2 and "is a Python object" in done.stderr and "Traceback" not in done.stderr


def test_a_script_without_a_main_guard_measures_in_processes(tmp_path):
    script = tmp_path / "audit.py"
    script.write_text(
        "import evenedit as ee\n"
        f"study = ee.Study.new('s', **{ ({**SMALL, 'instruments': [{'id': 'skin', 'kind': 'skin'}]})!r})\n"
        "print(study.run(editors={'same': lambda images, instruction, seed: images[0]}))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"complete: {EDITS} edited", done.stderr


def test_changes_are_merged_into_a_template_and_lists_replaced(tmp_path):
    made = ee.Study.new(tmp_path / "s", study={"title": "Ours"}, editors=[{"id": "simulated-even"}], judges=[])
    sections = made.file.sections
    assert (sections.study.title, sections.study.seed) == ("Ours", 42)
    assert [e.id for e in sections.editors] == ["simulated-even"] and not sections.judges
    assert sections.sources.settings["size"] == 256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"template": "smal"}, "there is no template 'smal'; did you mean 'small'"),
        ({"prompts": {"inclde": []}}, "unknown key 'prompts.inclde'; did you mean 'include'"),
        ({"editors": [{"id": "nobody"}]}, "editor kind 'nobody' is not installed"),
        ({"sources": {"settings": {"size": object()}}}, "study.toml cannot hold this"),
    ],
)
def test_a_study_that_would_not_be_valid_is_not_written(tmp_path, arguments, message):
    with pytest.raises(ee.EvenEditError, match=message):
        ee.Study.new(tmp_path / "s", **arguments)
    assert not (tmp_path / "s").exists()


def test_plan_and_status_are_values_that_print_as_the_command_does(evenedit, study):
    plan, status = study.plan(), study.status()
    assert (plan.edits, plan.usd) == (EDITS, 0.0)
    assert (status.planned, status.left, status.outcomes["edited"]) == (EDITS, 0, EDITS)
    assert str(plan).strip() == evenedit("plan", study.folder).stdout.strip()
    assert str(status) == evenedit("status", study.folder).stdout.strip()


def test_a_study_is_served_in_the_background(study):
    import httpx

    server = study.serve(port=0, background=True)
    try:
        page = httpx.get(server.url, follow_redirects=True)
        assert page.status_code in (200, 401)
        with pytest.raises(ee.EvenEditError, match="another server"):
            study.serve(port=0, background=True)
    finally:
        server.stop()


# Results


def test_results_are_read_from_file_folder_and_study(study, results):
    assert type(results) is ee.Results
    report = study.folder / "report"
    for place in (report / "results.json", report, study.folder, str(study.folder / "study.toml")):
        assert ee.load_results(place) == results
    assert ee.Results.from_files(results.to_files().get) == results


def test_nothing_is_computed_where_nothing_changed_and_a_change_is_said(study, caplog, monkeypatch):
    import evenedit.study.analysis as computing

    monkeypatch.setattr(logging.getLogger("evenedit"), "propagate", True)
    with monkeypatch.context() as patch:
        patch.setattr(computing, "analyse", None)
        known = study.results()
    stale = study.folder / "report" / "results.json"
    text = stale.read_text()
    stale.write_text(text.replace(known.digest, "0" * 20))
    try:
        again = ee.Study.load(study.folder).results()
    finally:
        stale.write_text(text)
    assert again.estimates == known.estimates and again.digest == known.digest
    assert "computing the results again" in caplog.text


def test_every_list_is_a_data_frame(results):
    for name in lists_of(ee.Results):
        frame = results.to_frame(name)
        assert len(frame.columns) > 0
        if name not in ("multiverse", "measured", "factors") and "." not in name:
            assert len(frame) == len(getattr(results, name))
    groups = results.to_frame("tests.groups")
    assert len(groups) == sum(len(t.groups) for t in results.tests) > len(results.tests)
    assert {"measure", "factor", "level_within", "rate", "value_within", "p_within"} <= set(groups.columns)
    estimates = results.to_frame("estimates")
    assert {"measure", "editor", "race", "gender", "age", "value", "low", "high"} <= set(estimates.columns)
    mine = estimates.query("editor == 'mine' and measure == 'rate.skin_lighter'")
    black = mine.query("race == 'Black' and gender.isna() and age.isna()")
    assert black["value"].tolist() == [1.0]
    assert set(results.to_frame("factors")["name"]) == {"race", "gender", "age"}
    with pytest.raises(ee.EvenEditError, match=r"no list 'estimate'.*did you mean 'estimates'"):
        results.to_frame("estimate")


def test_estimates_and_gaps_are_found_by_name(results):
    one = results.estimate("rate.skin_lighter", editor="mine", group={"race": "black"})
    assert one.group == {"race": "Black"} and one.n == 12
    gap = results.gap("skin_lighter", by="race")
    assert (gap.editor, gap.value, gap.factor) == ("mine", 0.0, "race")
    assert gap.value == results.estimate("gap.skin_lighter", group={"race": "*"}).value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.gap("skin_lightr", by="race"), "no estimate 'gap.skin_lightr'; did you mean 'gap.skin_lighter'"),
        (lambda r: r.gap("skin_lighter", by="monk"), "no factor 'monk' in these results; they have: race, gender, age"),
        (lambda r: r.gap("skin_lighter", by="race", editor="x"), "no editor 'x' in these results; they have: mine"),
        (lambda r: r.estimate("rate.skin_lighter", group={"race": "Purple"}), "'Purple' is not a known label"),
        (lambda r: r.estimate("rate.skin_lighter", experiment="mitigation"), "no mitigation/baseline"),
        (lambda r: r.plot.rates(by="monk"), "no factor 'monk'"),
        (lambda r: r.plot.rates(by="race", rates=["x"]), "no rate x by race"),
        (lambda r: r.plot.gaps(["x"]), "no gap of 'x'"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(results, call, message):
    with pytest.raises(ee.EvenEditError, match=message):
        call(results)


def test_several_editors_must_be_named(results):
    from dataclasses import replace

    other = tuple(replace(e, editor="other") for e in results.estimates if e.editor)
    with pytest.raises(ee.EvenEditError, match="2 editors; name one with editor=: mine, other"):
        replace(results, estimates=(*results.estimates, *other)).gap("skin_lighter", by="race")


def test_results_are_shown_as_sentences_html_and_figures(results):
    assert results.findings and results.findings[0].text
    assert "[" in results.summary() and "My audit" in results.summary()
    assert "<li>" in results._repr_html_() and "SIMULATED" not in results._repr_html_()
    for figure in (results.plot.gaps(), results.plot.rates(by="race"), results.plot.rates(by="age", rates=["older"])):
        assert isinstance(figure, Figure) and figure.axes


# Pictures


@pytest.fixture
def pictures(study: ee.Study, tmp_path: Path) -> tuple[Path, Path]:
    image = study.store.images.open(next(iter(study.store.sources().values())).image).convert("RGB").resize((256, 256))
    image.save(tmp_path / "in.png")
    ImageEnhance.Brightness(image).enhance(1.2).save(tmp_path / "out.png")
    return tmp_path / "in.png", tmp_path / "out.png"


def test_paths_images_and_arrays_measure_the_same(evenedit, pictures):
    source, edited = pictures
    found = ee.measure(source, str(edited))
    assert isinstance(found, ee.Measurement)
    assert ee.measure(Image.open(source), np.asarray(Image.open(edited))) == found
    assert ee.measure(np.asarray(Image.open(source)) / 255, edited) == found
    shown = json.loads(evenedit("measure", source, edited, "--json").stdout)
    assert found.to_json() == shown
    page = found._repr_html_()
    assert page.count("data:image/png") == 2 and page.count("background:#") == 2


@pytest.mark.parametrize("bad", ["nothing.png", 7, np.zeros((3, 3, 7), dtype=np.uint8), np.full((9, 9), 300.0)])
def test_what_is_no_picture_is_refused(pictures, bad):
    with pytest.raises(ee.EvenEditError, match=r"no such file|a picture is a path|is not a picture|between 0 and 1"):
        ee.measure(pictures[0], bad)


@pytest.fixture(scope="module")
def pairs(study: ee.Study, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder, rows = tmp_path_factory.mktemp("pairs"), []
    for source in study.store.sources().values():
        image = study.store.images.open(source.image).convert("RGB")
        image.save(folder / f"{source.id}.png")
        ImageEnhance.Brightness(image).enhance(1.2).save(folder / f"{source.id}_edited.png")
        files = {"source": folder / f"{source.id}.png", "edited": folder / f"{source.id}_edited.png"}
        rows.append({**files, "prompt": "Make the person a pilot.", **source.attributes})
    return pd.DataFrame(rows)


def test_pictures_somebody_has_are_audited_from_a_frame_or_a_csv(pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = ee.audit(pairs, judges={"strict": Strict()}, instruments=["skin"])
    assert first.folder == Path("evenedit-audit-1")
    assert first.results().editors == ("audited",)
    assert first.report("out") == Path("out/report.html") and Path("out/report.html").is_file()
    pairs.to_csv("edits.csv", index=False)
    second = ee.audit("edits.csv", judges={"strict": Strict()}, instruments=["skin"])
    assert second.folder == Path("evenedit-audit-2")
    assert second.results().estimates == first.results().estimates


def test_an_audit_goes_on_and_one_of_other_pairs_is_refused(pairs, tmp_path):
    judge = Strict()
    for _ in range(2):
        ee.audit(pairs, judges={"strict": judge}, instruments=[], out=tmp_path / "a")
    assert judge.calls == 3 * len(pairs), "an edit and two null pairs of each portrait, once"
    with pytest.raises(ee.EvenEditError, match="holds a study of other pairs"):
        ee.audit(pairs[:-2], instruments=[], out=tmp_path / "a")


def test_prompts_by_id_and_factors_with_levels_are_taken(pairs, tmp_path):
    given = pairs.assign(prompt="O-01", tone=["light", "dark"] * 6)
    tone = ee.Factor.of("tone", ["dark", "light"], title="Tone", ordered=True)
    made = ee.audit(given, prompts="diagnostic", factors=[tone], instruments=[], out=tmp_path / "a")
    assert [p.id for p in made.file.prompts] == ["O-01"]
    assert made.file.factors == (tone,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.drop(columns="race"), "the data frame lacks the column race; found: source, edited"),
        (
            lambda p: p.assign(edited="nothing.png"),
            "the data frame: 12 of the 12 files of the column 'edited' are",
        ),
        (lambda p: p.assign(race="Purple"), "the data frame row 0: race 'Purple' is not a known label"),
        (lambda p: p[:0], "lists no pairs"),
        (lambda p: 7, "pairs is of type int; pass a CSV file or a pandas DataFrame"),
        (lambda p: "nothing.csv", "nothing.csv: no such file"),
    ],
)
def test_bad_pairs_are_refused_before_anything_is_written(pairs, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ee.EvenEditError, match=message):
        ee.audit(change(pairs))
    assert list(tmp_path.iterdir()) == []


def test_a_judge_that_is_none_is_refused_before_anything_is_written(pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ee.EvenEditError, match=r"neither a function nor an object with a method .judge"):
        ee.audit(pairs, judges={"x": 7})
    with pytest.raises(ee.EvenEditError, match="instrument kind 'skn' is not installed; did you mean 'skin'"):
        ee.audit(pairs, instruments=["skn"])
    assert list(tmp_path.iterdir()) == []


def test_messages_can_be_silenced_by_logging(tmp_path):
    code = (
        "import logging; logging.getLogger('evenedit').setLevel(logging.WARNING)\n"
        f"import evenedit as ee; s = ee.Study.new('s', **{SMALL!r})\n"
        "s.run(editors={'same': lambda images, instruction, seed: images[0]}); s.results()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")

"""Judges asked otherwise: what moves their scores is found, what does not raises no alarm, nothing is asked twice."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from evenedit.api.study import Study
from evenedit.cli import commands
from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import Experiment, Prompt
from evenedit.judges.prompt import prompt_hash, render
from evenedit.operations import judge_checks as judge_check
from evenedit.operations.judge_checks import VARIANTS, without_colour
from evenedit.protocol.rubric import questions_for
from evenedit.providers.budget import Budget
from evenedit.ratings.table import QUESTION_IDS
from evenedit.report.pages.judge_check import write_check
from evenedit.results.judge_checks import STUDY, JudgeCheck
from evenedit.run.collecting import COMMIT_EVERY
from evenedit.stats import AnalysisRules
from evenedit.stats.robustness.judge_shifts import Comparison, shifts
from evenedit.storage.store import Store
from tests.support.browser import assert_accessible
from tests.support.provider import server as wire
from tests.support.provider.server import FakeProvider
from tests.support.studies import open_study, write_study

FACES = {
    "kind": "drawn",
    "settings": {
        "seed": 3,
        "size": 64,
        "faces_per_cell": 3,
        "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]},
    },
}
PLANTED = {
    "label_effect": {"race_drift": 0.7},
    "label_groups": {"race": ["Black"]},
    "order_effect": {"edit_success": -0.5},
    "grey_effect": {"skin_tone": -0.5},
    "repeat_noise": 0.08,
}
JUDGES = [
    {"id": "simulated-moved", "kind": "simulated", "settings": {"seed": 1, **PLANTED}},
    {"id": "simulated-steady", "kind": "simulated", "settings": {"seed": 2, "repeat_noise": 0.08}},
]
STEADY = [{"id": "simulated-steady", "kind": "simulated", "settings": {"seed": 2}}]


def asked(loaded: Study, budget: Budget | None = None, **how: Any) -> JudgeCheck:
    """Ask what is left, and evaluate."""
    judge_check.ask(loaded.runner(budget), judge_check.make_plan(loaded, **how))
    return judge_check.evaluate(loaded, judge_check.make_plan(loaded, **how))


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, JudgeCheck]:
    """24 faces x 3 prompts, a judge that is moved in known ways and one that only has noise."""
    loaded = open_study(
        tmp_path_factory.mktemp("check"),
        sources=FACES,
        prompts={"include": ["O-01", "O-06", "V-02"]},
        judges=JUDGES,
        statistics={"draws": 500, "permutations": 1999},
    )
    loaded.run()
    return loaded, asked(loaded)


# -- planted effects -------------------------------------------------------------------------------------------


def test_planted_effects_are_recovered(checked):
    _, check = checked
    for comparison, question, group, planted in (
        ("labels", "race_drift", {"race": "Black"}, 0.7),
        ("labels", "race_drift", {"race": "White"}, 0.0),
        ("order", "edit_success", {}, -0.5),
        ("grey", "skin_tone", {}, -0.5),
    ):
        shift = check.find("simulated-moved", comparison, question, group)
        assert shift.mean.low <= planted <= shift.mean.high, (comparison, shift)
    # Each of two askings is off with 8 %, so they differ in 15 % of answers unless an end of the scale stops it.
    for judge in ("simulated-moved", "simulated-steady"):
        skin = check.find(judge, "again", "skin_tone")
        assert skin.changed.low <= 2 * 0.08 * 0.92 + 0.08**2 / 2 <= skin.changed.high
        assert skin.beyond is None


def test_what_moved_is_told_from_noise_and_by_group(checked):
    _, check = checked
    for comparison, question in (("labels", "race_drift"), ("order", "edit_success"), ("grey", "skin_tone")):
        mean = check.find("simulated-moved", comparison, question).mean
        assert mean.low > 0 or mean.high < 0, (comparison, question)
    black, white = (check.find("simulated-moved", "labels", "race_drift", {"race": r}) for r in ("Black", "White"))
    assert black.mean.low > white.mean.high
    moved = check.find("simulated-moved", "grey", "skin_tone")
    assert moved.beyond.low > 0.1, "half of the answers change, far beyond what asking again changes"


def test_the_intervals_of_a_steady_judge_hold_no_shift(checked):
    _, check = checked
    shifts = [s for s in check.shifts if s.judge == "simulated-steady" and not s.group and s.mean.low is not None]
    beyond = [s for s in shifts if not s.mean.low <= 0 <= s.mean.high]
    assert len(shifts) > 20 and len(beyond) <= 3, "about one in twenty of 95 % intervals"


def test_a_judge_without_noise_answers_the_same_and_claims_no_certainty(tmp_path):
    loaded = open_study(tmp_path, judges=STEADY)
    loaded.run()
    check = asked(loaded)
    assert all(s.size.value == 0 and s.changed.value == 0 for s in check.shifts)
    assert all(s.mean.low is None for s in check.shifts), "nothing varied, so there is nothing to draw from"
    everybody = [s for s in check.shifts if not s.group]
    assert all(s.changed.low == 0 and s.changed.high > 0.2 for s in everybody), "eight faces leave room for change"


def test_labels_are_shown_minus_not_shown_whatever_the_study_does(tmp_path):
    effect = {"label_effect": {"race_drift": 1.0}}
    for blind in (True, False):
        judges = [
            {"id": "simulated-a", "kind": "simulated", "blind": blind, "settings": {"seed": 1, "error": 0.0, **effect}}
        ]
        loaded = open_study(tmp_path / str(blind), judges=judges)
        loaded.run()
        assert asked(loaded).find("simulated-a", "labels", "race_drift").mean.value == 1.0


# -- statistics ------------------------------------------------------------------------------------------------


def table(faces: int, prompts: int, races: tuple[str, ...] = ("White", "Black")) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "source_id": f"f{f:02d}",
                "prompt_id": f"p{p}",
                "race": races[f % len(races)],
                "gender": "Male",
                "age": "20s",
            }
            for f in range(faces)
            for p in range(prompts)
        ]
    )


def answers(column: list[int], question: str = "skin_tone") -> np.ndarray:
    values = np.zeros((len(column), len(QUESTION_IDS)), dtype=np.int8)
    values[:, QUESTION_IDS.index(question)] = column
    return values


def test_shifts_are_those_worked_out_by_hand():
    edits = table(4, 2)  # White: f00, f02; Black: f01, f03
    before = answers([3, 3, 3, 3, 3, 3, 3, 0])
    after = answers([3, 4, 5, 3, 2, 3, 0, 3])
    again = answers([3, 3, 3, 3, 4, 3, 3, 3])
    comparisons = [Comparison("j", "again", before, again), Comparison("j", "order", before, after)]
    found = list(shifts(edits, answers([1] * 8) > 0, comparisons, replace(AnalysisRules.default(), draws=200)))
    order = {tuple(s.group.values()): s for s in found if s.comparison == "order" and s.question == "skin_tone"}
    everybody = order[()]  # pairs: 0, +1, +2, 0, -1, 0; two lack an answer
    assert (everybody.n, everybody.missing) == (6, 2)
    assert everybody.mean.value == pytest.approx(2 / 6)
    assert everybody.size.value == pytest.approx(4 / 6)
    assert everybody.changed.value == pytest.approx(3 / 6)
    assert everybody.changed_two.value == pytest.approx(1 / 6)
    assert everybody.beyond.value == pytest.approx(3 / 6 - 1 / 6)  # asking again changed one of the same six
    assert order["White",].mean.value == pytest.approx(0 / 4)
    assert order["Black",].mean.value == pytest.approx(2 / 2)


# -- what is sent ----------------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-any")
    with FakeProvider() as running:
        yield running


def real(server: FakeProvider) -> list[dict[str, Any]]:
    return [
        {
            "id": "gpt",
            "kind": "openai",
            "settings": {"model": "gpt-5-mini", "base_url": server.openai, "image_size": 48},
        },
        {
            "id": "gemini",
            "kind": "gemini",
            "settings": {"model": "gemini-x", "base_url": server.gemini, "image_size": 48},
        },
    ]


def test_every_variant_is_sent_as_it_says(tmp_path, server):
    loaded = open_study(
        tmp_path, judges=real(server), prompts={"include": ["O-01"]}, executor={"retries": 0, "workers": 1}
    )
    loaded.run()
    study, start = list(server.seen), len(server.seen)
    assert start == 2 * 8
    check = asked(loaded)
    sent = server.seen[start:]
    assert len(sent) == 2 * 8 * len(VARIANTS)
    by_variant = {v.id: sent[16 * at : 16 * (at + 1)] for at, v in enumerate(VARIANTS)}

    def bodies(seen: list[wire.Seen]) -> list[bytes]:
        return sorted(s.body for s in seen)

    assert bodies(by_variant["again-1"]) == bodies(by_variant["again-2"]) == bodies(study), "the same to the last byte"
    for seen in by_variant["order"]:
        twin = next(s for s in study if s.provider == seen.provider and list(s.images) == list(seen.images)[::-1])
        assert "Image 1: source" in twin.instruction and "Image 1: edited" in seen.instruction
        assert "Image 2: source" in seen.instruction
    for seen in by_variant["grey"]:
        for content in seen.images:
            pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
            assert (pixels == pixels[..., :1]).all()
    for name, seen_all in by_variant.items():
        for seen in seen_all:
            told = "The dataset describes the person of image 1 as: " in seen.instruction
            assert told is (name == "labels")
            assert told or not any(label in seen.instruction for label in ("White", "Black", "70plus"))
    assert {a.variant: dict(a.models) for a in check.calls if a.judge == "gpt"} == {
        v: {"simulated-gpt-5-mini": 8} for v in (STUDY, *(v.id for v in VARIANTS))
    }


def test_the_turned_order_names_the_person_of_the_right_image():
    image = Image.new("RGB", (32, 32))
    prompt = Prompt("O-99", "Dress this person in a red coat", "Occupation")
    case = Case([image], image, prompt, prompt.text, {"race": "Black"}, edited_first=True)
    words = [
        p for p in render(case, questions_for(Experiment.DIAGNOSIS, prompt), image_size=32).parts if isinstance(p, str)
    ]
    assert words[:2] == ["Image 1: edited", "Image 2: source"]
    assert "The dataset describes the person of image 2 as: race = Black." in words[2]
    assert prompt_hash(edited_first=True) != prompt_hash()


def test_pictures_without_colour_keep_their_notes():
    image = Image.new("RGB", (4, 4), "red")
    image.info["evenedit-truth"] = "kept"
    grey = without_colour(image)
    assert grey.info["evenedit-truth"] == "kept"
    assert grey.getpixel((0, 0)) == (76, 76, 76)  # 0.299 of red, by ITU-R 601


# -- calls -----------------------------------------------------------------------------------------------------


def test_the_budget_stops_the_check_and_the_next_one_goes_on(tmp_path):
    open_study(tmp_path, judges=STEADY).run()
    loaded = open_study(tmp_path, judges=STEADY)
    check = asked(loaded, Budget(max_calls=30))
    assert check.waiting == 16 * 5 - 30
    replies = loaded.store.run_of_replies()
    later = open_study(tmp_path, judges=STEADY)
    assert judge_check.make_plan(later).left == 16 * 5 - 30
    assert asked(later).waiting == 0
    after = later.store.run_of_replies()
    assert replies.items() <= after.items(), "what was stored is not asked again"
    assert len(after) == 16 + 16 * 5


def test_the_sample_is_balanced_recorded_and_stays(tmp_path):
    loaded = open_study(tmp_path, sources=FACES, prompts={"include": ["O-01", "O-06"]}, judges=STEADY)
    loaded.run()
    plan = judge_check.make_plan(loaded, 16)
    labels = pd.DataFrame([plan.sources[r.source_ids[0]].attributes for r in plan.requests])
    for factor in ("race", "gender", "age"):
        assert labels[factor].value_counts().tolist() == [8, 8]
    assert set(plan.sample.values()) == {16 / 48}
    assert loaded.store.cases("judges-check-16") == plan.sample
    assert judge_check.make_plan(loaded, 16).sample == plan.sample
    assert len(judge_check.make_plan(loaded).requests) == 48, "without a number: all, where there are fewer than 168"


def test_an_unknown_judge_and_a_study_without_edits_are_told(tmp_path):
    loaded = open_study(tmp_path)
    with pytest.raises(EvenEditError, match="evenedit run"):
        judge_check.make_plan(loaded)
    with pytest.raises(EvenEditError, match="simulated-judge-a, simulated-judge-b"):
        judge_check.make_plan(loaded, judges=["nobody"])


def test_a_killed_check_goes_on_without_asking_again(evenedit, tmp_path, server):
    judges = real(server)[:1]
    folder = write_study(tmp_path, judges=judges, prompts={"include": ["O-01", "O-06"]})
    assert evenedit("run", folder).returncode == 0
    start = len(server.seen)
    killed, numbers = threading.Event(), count(1)

    def answer(seen: wire.Seen) -> wire.ProviderAnswer:
        if next(numbers) > 25:  # those under way when the check is killed
            killed.wait(120)
        return wire.SUCCESS(seen)

    server.otherwise = answer
    server.latency = 2 * COMMIT_EVERY
    process = subprocess.Popen(
        [sys.executable, "-m", "evenedit", "judges", "check", str(folder)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while len(server.seen) <= start + 25 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed.set()
    first = len(server.seen) - start
    stored = Store(folder).run_of_replies()
    assert 16 < len(stored) < 16 + 80
    server.latency = 0.0
    assert evenedit("judges", "check", folder).returncode == 0
    after = Store(folder).run_of_replies()
    assert stored.items() <= after.items() and len(after) == 16 + 80
    lost = len(server.seen) - start - 80
    assert lost <= first - (len(stored) - 16), "only calls that were under way are made again"


# -- page ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(checked: tuple[Study, JudgeCheck], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_check(checked[1], tmp_path_factory.mktemp("page"), title="A check")


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_page_and_its_files_say_the_same_and_keep_the_mark(checked, page):
    _, check = checked
    text = page.read_text()
    assert "SIMULATED" in text and "simulated-moved, simulated-steady" in text
    body = json.loads((page.parent / "check.json").read_text())
    assert body["schema"] == "evenedit.judges-check/3" and len(body["sample"]) == 72
    for name in ("moves", "groups", "calls"):
        rows = rows_of(page.parent / "tables" / f"{name}.csv")
        assert rows and all(row["mark"] == "SIMULATED" for row in rows)
        assert "SIMULATED" in (page.parent / "tables" / f"{name}.tex").read_text()
    moves = rows_of(page.parent / "tables" / "moves.csv")
    (row,) = (r for r in moves if list(r.values())[:3] == ["simulated-moved", "grey", "skin_tone"])
    assert float(row["mean"]) == check.find("simulated-moved", "grey", "skin_tone").mean.value
    assert "SIMULATED" in (page.parent / "figures" / "figure_moves.svg").read_text()


def test_the_page_says_what_moved_in_words(page):
    text = page.read_text()
    assert "Shown the edited image first, it moved edit success by −0.5" in text
    assert "Without colour it kept " in text


def test_the_same_answers_give_the_same_bytes(tmp_path):
    loaded = open_study(tmp_path, judges=STEADY)
    loaded.run()
    plan = judge_check.make_plan(loaded)
    found = {replace(judge_check.evaluate(loaded, plan), provenance={}).to_json() for _ in range(2)}
    assert len(found) == 1


def test_the_page_works_by_screen_reader_in_the_dark_and_on_a_phone(checked, chromium, tmp_path):
    _, check = checked
    short = replace(check, shifts=check.shifts[:20])
    file = write_check(short, tmp_path, title="A check")
    page = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert_accessible(page)
    assert not problems
    page.close()


def test_the_command_plans_asks_and_writes(tmp_path):
    folder = write_study(tmp_path, judges=JUDGES)
    open_study(folder, judges=JUDGES).run()

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(commands, [str(a) for a in ("judges", *arguments)], catch_exceptions=False)

    done = call("check", folder, "--sample", 8, "--judge", "simulated-moved", "--max-calls", 12)
    assert done.exit_code == 4
    assert "total" in done.stdout and "not complete: 28 calls are missing" in done.stdout
    done = call("check", folder, "--sample", 8, "--judge", "simulated-moved")
    assert done.exit_code == 0 and "not complete" not in done.stdout
    assert (folder / "judges-check" / "check.html").is_file()


def test_a_setting_of_the_simulated_judge_that_means_nothing_is_told(tmp_path):
    for settings, told in (
        ({"order_effect": {"beauty": 0.5}}, "beauty"),
        ({"grey_effect": {"skin_tone": 2}}, "from -1 to 1"),
    ):
        with pytest.raises(EvenEditError, match=told):
            open_study(tmp_path, judges=[{"id": "simulated-a", "kind": "simulated", "settings": settings}])

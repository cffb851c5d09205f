"""Candidate pools: reproducible, no image twice, origins and hashes kept; a pre-screen that only sorts."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from scipy.stats import chi2_contingency, fisher_exact

from evenedit.core.errors import EvenEditError
from evenedit.curation.log import ActionKind
from evenedit.curation.pools import CELLS, SEEDS, Pools, make_pools
from evenedit.curation.screen import CHECKS, by_screen, inequality, pass_rates, screen
from evenedit.curation.session import CurationSession
from evenedit.simulation.portraits.drawn import Drawn
from tests.support.curating import draw_folder
from tests.support.fairface_copies import as_folder, as_shards, dot, rows
from tests.support.studies import write_study

PERSON = {"race": ["Latino"], "gender": ["Female"], "age": ["30s"]}


def plain(pools):
    """What matters of the candidates."""
    return {place: (c.origin, c.index, c.sha256) for place, c in pools.candidates.items()}


def draw(source, out, **options):
    return make_pools(source, out, **({"screened": False} | options))


def test_the_same_seeds_give_the_same_pools_and_no_image_twice(tmp_path):
    data = as_shards(tmp_path / "data", rows(9))
    first, second = draw(data, tmp_path / "a"), draw(data, tmp_path / "b")
    assert plain(first) == plain(second)
    assert len(first.candidates) == 7 * 84 == len({c.origin for c in first.candidates.values()})
    assert first.ids == ("V1", "V2", "V3", "V4", "V5", "V6", "V7")
    other = draw(data, tmp_path / "c", seeds=[7, *SEEDS[1:]])
    assert plain(other) != plain(first)


def test_a_pool_depends_on_its_own_seed_and_the_pools_before_it_only(tmp_path):
    data = as_folder(tmp_path / "data", rows(5))
    three, two = draw(data, tmp_path / "a", seeds=[1, 2, 3]), draw(data, tmp_path / "b", seeds=[1, 2])
    assert plain(two) == {place: c for place, c in plain(three).items() if place[1] != "V3"}


def test_every_candidate_is_the_datasets_file_byte_for_byte(tmp_path):
    made = draw(as_folder(tmp_path / "data", rows(3)), tmp_path / "pools", seeds=[1, 2])
    for candidate in made.candidates.values():
        content = candidate.path.read_bytes()
        assert content == (tmp_path / "data" / candidate.origin).read_bytes() == dot(candidate.index)
        assert candidate.sha256 == hashlib.sha256(content).hexdigest()
        assert candidate.cell == CELLS[candidate.index % 84]
    manifest = json.loads((tmp_path / "pools/pools.json").read_text())
    assert manifest["pools"] == [{"id": "V1", "seed": 1}, {"id": "V2", "seed": 2}]
    assert (manifest["images_in_the_grid"], manifest["images_outside_the_grid"]) == (252, 3)


def test_damaged_missing_and_repeated_images_are_passed_over_counted_and_replaced(tmp_path):
    data = as_folder(tmp_path / "data", rows(4))
    whole = draw(data, tmp_path / "a", seeds=[1, 2])
    damaged, missing, copied = (whole.candidates["White_Male_20s", "V1"], *(whole.of("White_Male_30s")))
    (data / damaged.origin).write_bytes(b"no picture")
    (data / missing.origin).unlink()
    (data / copied.origin).write_bytes(dot(0))  # the same picture as an image of another cell
    again = draw(data, tmp_path / "b", seeds=[1, 2])
    facts = again.facts
    assert set(facts["unreadable"]) == {damaged.origin, missing.origin}
    assert len(again.candidates) == 168 and len({c.sha256 for c in again.candidates.values()}) == 168
    assert not {damaged.origin, missing.origin} & {c.origin for c in again.candidates.values()}
    untouched = {p: c for p, c in plain(whole).items() if not p[0].startswith("White_Male")}
    assert untouched == {p: c for p, c in plain(again).items() if not p[0].startswith("White_Male")}


def test_cells_with_too_few_images_are_named(tmp_path, evenedit):
    labels = rows(2) + [row for row in rows() if row["race"] != "Black"]
    data = as_folder(tmp_path / "data", labels)
    study, out = write_study(tmp_path / "study", curation={}), tmp_path / "study/pools"
    said = evenedit("sources", "pools", study, "--from", data, "--seeds", "42,1000,1001", "--no-screen")
    assert said.returncode == 0, said.stderr
    assert "240 candidates in 3 pools" in said.stdout
    assert said.stdout.count("only 2 images for 3 pools") == 12 and "Black_Female_70plus: only 2" in said.stdout
    assert len(Pools.read(out).of("Black_Male_20s")) == 2
    again = evenedit("sources", "pools", study, "--from", data)
    assert again.returncode == 2 and "exists already" in again.stderr
    wrong = evenedit("sources", "pools", study, "--from", data, "--seeds", "42,x")
    assert wrong.returncode == 2 and "--seeds is '42,x'; expected integers" in wrong.stderr
    assert evenedit("sources", "pools", study).returncode == 2


def test_twenty_thousand_images_are_drawn_within_little_memory(tmp_path):
    labels = [row for _ in range(20_000 // 87 + 1) for row in rows()][:20_000]
    # Bytes behind the picture, which compress to nothing on disk: 480 MB if they were ever held together.
    contents = {n: dot(n) + bytes(24_000) for n in range(len(labels))}
    as_shards(tmp_path / "data/1.25", labels, shards=8, group=1000, contents=contents)
    code = (
        "import sys; from evenedit.cli import commands; commands.main(sys.argv[1:], standalone_mode=False); "
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    command = ["sources", "pools", write_study(tmp_path, curation={}), "--from", tmp_path / "data", "--no-screen"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "588 candidates in 7 pools" in done.stdout
    assert int(done.stdout.split()[-1]) / 1024 < 500, "MB at most"


def test_pools_made_elsewhere_are_read_by_their_file_names(tmp_path):
    for pool in ("V2", "V10"):
        (tmp_path / pool).mkdir()
        for number, cell in enumerate(CELLS):
            (tmp_path / pool / f"{cell}.png").write_bytes(dot(number if number < 3 else number + 100 * len(pool)))
    made = Pools.read(tmp_path)
    assert made.ids == ("V2", "V10") and len(made.candidates) == 168
    assert made.twins(made.candidates[CELLS[0], "V2"]) == ["V10"] and not made.twins(made.candidates[CELLS[9], "V2"])
    (tmp_path / "V2/nobody.png").write_bytes(dot(1))
    with pytest.raises(EvenEditError, match=r"not named after one cell each.*V2/nobody.png"):
        Pools.read(tmp_path)
    with pytest.raises(EvenEditError, match="evenedit sources pools"):
        Pools.read(tmp_path / "nowhere")


# -- the pre-screen ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def portrait():
    ((*_, image),) = Drawn(seed=3, size=224, only=PERSON).portraits()
    return image


@pytest.mark.parametrize(
    ("spoil", "failed"),
    [
        (lambda image: image, []),
        (lambda image: image.filter(ImageFilter.GaussianBlur(6)), ["sharpness"]),
        (lambda image: image.rotate(25, expand=False, fillcolor=(200, 200, 200)), ["frontal"]),
        (lambda image: image.resize((72, 72)), ["size"]),
        (lambda image: ImageEnhance.Brightness(image).enhance(2.2), ["exposure"]),
        (lambda image: Image.new("RGB", (224, 224), (90, 120, 90)), list(CHECKS)),
        (lambda image: ImageOps.expand(image, 4).crop((0, 0, 8, 8)), list(CHECKS)),
    ],
    ids=["good", "blurred", "tilted", "small", "burnt out", "nobody", "tiny"],
)
def test_the_pre_screen_finds_what_was_spoilt(portrait, spoil, failed):
    found = screen(spoil(portrait))
    assert [c for c in CHECKS if c not in found["passed"]] == failed
    assert found.get("reason") == ("no face" if failed == list(CHECKS) else None)


def test_the_pre_screen_sorts_and_never_removes(tmp_path):
    data = draw_folder(tmp_path / "data", 2, size=96)
    for number in range(1, 4, 2):  # blur the first picture of the first two cells
        with Image.open(data / f"train/{number}.jpg") as image:
            image.filter(ImageFilter.GaussianBlur(5)).save(data / f"train/{number}.jpg")
    made = make_pools(data, tmp_path / "pools", seeds=[1, 2])
    assert len(made.candidates) == 168 and all(c.screen is not None for c in made.candidates.values())
    first = made.of(CELLS[0])
    ordered = by_screen(first)
    assert sorted(c.pool for c in ordered) == sorted(c.pool for c in first)
    assert len(ordered[0].screen["passed"]) > len(ordered[1].screen["passed"])
    assert ordered[1].origin == "train/1.jpg"
    rates = {table.factor: table for table in pass_rates(made.candidates.values())}
    assert [g.n for g in rates["race"].groups] == [24] * 7 and [g.n for g in rates["gender"].groups] == [84, 84]
    white = rates["race"].groups[0]
    assert white.passed["sharpness"] <= 24 - 2


def test_pass_rates_count_and_unequal_ones_are_noticed(tmp_path):
    made = draw(as_folder(tmp_path / "data", rows(3)), tmp_path / "pools", seeds=[1, 2])
    unequal = [
        replace(c, screen={"passed": [] if c.cell.startswith("Black") and c.pool == "V1" else list(CHECKS)})
        for c in made.candidates.values()
    ]
    race, gender, _ = pass_rates(unequal)
    assert [g.passed["all"] for g in race.groups] == [24, 12, 24, 24, 24, 24, 24]
    assert race.p_holm < 0.001 and gender.p_holm == 1.0
    assert pass_rates(made.candidates.values()) == [], "nothing was screened, so nothing is said"


def test_the_test_of_inequality_agrees_with_independent_ones():
    sizes, passed = [30, 25, 40], [21, 9, 20]
    table = np.array([passed, np.subtract(sizes, passed)])
    assert inequality(sizes, passed) == pytest.approx(chi2_contingency(table, correction=False).pvalue, abs=0.01)
    # two small groups: 1 of 8 against 6 of 9; Fisher's exact test orders tables by probability, which here is the same
    table = [[1, 6], [7, 3]]
    assert inequality([8, 9], [1, 6]) == pytest.approx(fisher_exact(table).pvalue, abs=0.015)
    assert inequality([10, 10], [10, 10]) == inequality([10, 10], [0, 0]) == 1.0
    assert inequality([10, 0, 10], [9, 0, 1]) < 0.01


def test_pools_are_added_without_touching_those_that_were_drawn(tmp_path, evenedit):
    data, study = as_folder(tmp_path / "data", rows(6)), write_study(tmp_path / "study", curation={})
    command = ("sources", "pools", study, "--no-screen")
    assert evenedit(*command, "--from", data, "--seeds", "42,1000").returncode == 0
    out = study / "pools"
    before, session = Pools.read(out), CurationSession(study, out, study / "portraits")
    session.act("Ada", ActionKind.SELECT, CELLS[0], "V2")
    added = evenedit(*command, "--add", "2")
    assert added.returncode == 0, added.stderr
    after = Pools.read(out)
    assert after.ids == ("V1", "V2", "V3", "V4") and [p["seed"] for p in after.facts["pools"]] == [42, 1000, 1001, 1002]
    assert plain(before).items() <= plain(after).items()
    assert len({c.sha256 for c in after.candidates.values()}) == len(after.candidates) == 4 * 84
    kept = CurationSession(study, out, study / "portraits", 2)
    assert kept.state()[CELLS[0]].selected == ["V2"], "choices stay valid"
    shutil.rmtree(out)
    nothing = evenedit(*command, "--add", "2")
    assert nothing.returncode == 2 and "no candidate pools" in nothing.stderr


def test_choices_from_pools_that_were_changed_are_refused_though_pools_were_added_too(tmp_path):
    data, out = as_folder(tmp_path / "data", rows(4)), tmp_path / "pools"
    CurationSession(tmp_path, (first := draw(data, out, seeds=[1])).folder, tmp_path / "portraits")
    other = draw(data, tmp_path / "other", seeds=[2])
    draw(data, other.folder, seeds=[3], earlier=other)
    with pytest.raises(EvenEditError, match="candidate pools changed"):
        CurationSession(tmp_path, other.folder, tmp_path / "portraits")
    draw(data, out, seeds=[2], earlier=first)
    CurationSession(tmp_path, out, tmp_path / "portraits")

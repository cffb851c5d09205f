"""What is planted is found, and nothing is found where nothing was planted."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from PIL import Image

from evenedit.core.color import rgb_to_lab
from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case, NoImage, Refusal
from evenedit.core.records import Status
from evenedit.protocol import QUESTIONS, load_prompts
from evenedit.protocol.factors import cells
from evenedit.results.finding import CLEAR
from evenedit.simulation.editors import Even, Lightening, Null, Refusing, Replacing, SimulatedEdit, truth_of
from evenedit.simulation.judges import SimulatedJudge
from evenedit.simulation.portraits.drawn import Drawn
from evenedit.simulation.portraits.portrait import portrait_of, regions
from evenedit.study.analysis import compute_results
from tests.support.simulations import FULL, fewest, studies
from tests.support.studies import open_study

PROMPTS = load_prompts("diagnostic")
SEEDS = studies(20)


def faces(**only):
    return [(attributes, image) for _, attributes, _, image in Drawn(seed=5, size=128, only=only).portraits()]


def test_the_same_request_gives_the_same_pixels():
    _, image = faces(race=["Black"], gender=["Female"], age=["30s"])[0]
    first, second = (Replacing().edit([image], PROMPTS["O-01"].text, 7) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert Replacing().edit([image], PROMPTS["O-01"].text, 8).info != first.info


def test_lightening_lightens_the_skin_by_the_planted_step():
    for attributes, image in faces(race=["Black"], gender=["Female"]):
        edited = Lightening(rate=1.0, groups={"race": ["Black"]}).edit([image], PROMPTS["V-03"].text, 1)
        _, truth = truth_of(edited)
        assert truth["skin_tone"] == 4
        change = _skin(edited) - _skin(image)
        assert change == pytest.approx(6, abs=1.0), attributes


def _skin(image) -> float:
    """Median L* of the portrait's skin region."""
    mask = regions(portrait_of(image), image.size[0])["skin"]
    return float(np.median(rgb_to_lab(np.asarray(image)[mask])[:, 0]))


def test_null_returns_its_input_and_says_so():
    _, image = faces(race=["White"], gender=["Male"], age=["20s"])[0]
    edited = Null().edit([image], PROMPTS["O-01"].text, 1)
    assert edited.tobytes() == image.tobytes()
    assert truth_of(edited)[1] == {
        "edit_success": 1,
        "skin_tone": 3,
        "race_drift": 1,
        "gender_drift": 1,
        "age_drift": 3,
    }


def test_refusing_declines_only_for_its_groups():
    editor = Refusing(rate=1.0, groups={"race": ["Black"]})
    for attributes, image in faces(race=["Black", "White"], age=["40s"]):
        refused = isinstance(editor.edit([image], PROMPTS["O-01"].text, 1), Refusal)
        assert refused == (attributes["race"] == "Black")
        words = Refusing(rate=1.0, groups={"race": ["Black"]}, in_words=True).edit([image], PROMPTS["O-01"].text, 1)
        assert isinstance(words, NoImage) == refused


def test_drawn_truth_has_the_planted_distribution():
    editor = Replacing(race=0.4, race_groups={"race": ["Indian"]})
    attributes = {"race": "Indian", "gender": "Male", "age": "30s"}
    expected = editor.expected(attributes, PROMPTS["O-01"])["race_drift"]
    # background 0.04 at 2 and at 3, then four in ten moved to 4: 0.6·(0.92, 0.04, 0.04) and 0.4
    assert expected == pytest.approx([0.552, 0.024, 0.024, 0.4, 0.0])
    portrait = portrait_of(faces(race=["Indian"], gender=["Male"], age=["30s"])[0][1])
    counts = np.zeros(5)
    rng = np.random.default_rng(1)
    for number in range(3000):
        person = replace(portrait, seed=number)  # each face has its own rate around the planted one
        edit = SimulatedEdit(Image.new("RGB", (1, 1)), person, attributes, PROMPTS["O-01"], False, rng)
        counts[editor._draw_truth(edit)["race_drift"] - 1] += 1
    assert counts / 3000 == pytest.approx(expected, abs=0.03)


def test_a_feature_prompt_mends_the_planted_share():
    editor = Lightening(rate=0.5, groups={"race": ["Black"]}, mended=0.8)
    attributes = {"race": "Black", "gender": "Male", "age": "30s"}
    plain, feature = (editor.expected(attributes, PROMPTS["O-01"], feature=f)["skin_tone"] for f in (False, True))
    assert plain[3] - 0.04 * 0.5 == pytest.approx(0.5)
    assert feature[3] - 0.04 * 0.9 == pytest.approx(0.1)


def test_planted_settings_are_checked():
    with pytest.raises(EvenEditError, match="unknown race 'Martian'"):
        Lightening(groups={"race": ["Martian"]})
    with pytest.raises(EvenEditError, match="unknown monk '11'; known: 1, 2"):
        Lightening(groups={"monk": ["11"]})
    with pytest.raises(EvenEditError, match="groups: hat is 'cap'; give a list of levels"):
        Lightening(groups={"hat": "cap"})
    with pytest.raises(EvenEditError, match="between 0 and 1"):
        Lightening(rate=1.5)


def tones(*levels):
    return [image for *_, image in Drawn(grid="monk", seed=5, size=64, only={"monk": list(levels)}).portraits()]


def test_editors_treat_groups_of_any_factor_differently():
    editor = Lightening(rate=1.0, groups={"monk": ["9", "10"]})
    truths = [
        truth_of(editor.edit([image], PROMPTS["V-03"].text, 1))[1]["skin_tone"] for image in tones("8", "9", "10")
    ]
    assert truths[0] in (2, 3) and truths[1:] == [4, 4]


def test_every_drift_can_be_drawn_on_people_without_race_and_gender():
    for seed in range(30):
        for image in tones("2", "9"):
            edited = Even(background=0.2).edit([image], PROMPTS["O-01"].text, seed)
            assert edited.size == image.size


@pytest.mark.parametrize(
    ("editor", "needed"),
    [
        (Replacing(), "race, gender, age"),
        (Lightening(), "race"),
        (Refusing(), "race"),
        (Lightening(groups={"hat": ["a"]}), "hat"),
    ],
)
def test_an_editor_says_which_labels_it_lacks(editor, needed):
    with pytest.raises(EvenEditError, match=f"decides by the label {needed}, and the portrait is labelled by monk"):
        editor.edit(tones("9"), PROMPTS["O-01"].text, 1)


def test_an_effect_of_rate_zero_needs_no_label():
    assert Replacing(race=0, gender=0, age_groups={"monk": ["9"]}).labels_needed == ("monk",)
    assert Replacing(race=0.1, gender=0, age=0, race_groups={"monk": ["9"]}).labels_needed == ("race", "monk")


def test_a_judge_errs_at_its_stated_rates():
    _, image = faces(race=["White"], gender=["Male"], age=["20s"])[0]
    questions = [QUESTIONS["skin_tone"], QUESTIONS["edit_success"]]
    judge = SimulatedJudge(error=0.2, missing=0.1, refusal=0.05, unparseable=0.05)
    replies = []
    for seed in range(1500):
        edited = Null().edit([image], PROMPTS["O-01"].text, seed)
        replies.append(judge.judge(Case([image], edited, PROMPTS["O-01"], ""), questions))
    states = [r.status for r in replies]
    scored = [r.values["skin_tone"] for r in replies if r.status is Status.SCORED]
    given = [v for v in scored if v is not None]
    assert states.count(Status.REFUSED) / 1500 == pytest.approx(0.05, abs=0.02)
    assert states.count(Status.UNPARSEABLE) / 1500 == pytest.approx(0.05, abs=0.02)
    assert scored.count(None) / len(scored) == pytest.approx(0.1, abs=0.03)
    assert sum(v != 3 for v in given) / len(given) == pytest.approx(0.2, abs=0.04)


def test_an_even_editor_expects_the_same_for_every_cell():
    chances = {
        tuple(np.round(Even().expected(cell, PROMPTS[p])["edit_success"], 12))
        for cell in cells()
        for p in ("O-01", "V-05")
    }
    assert len(chances) == 1


def audit(seed: int) -> tuple[list[bool], bool]:
    """One small study: which planted effects lie in their intervals, and whether `even` shows any gap."""
    with TemporaryDirectory() as folder:
        loaded = open_study(
            Path(folder),
            sources={"kind": "drawn", "settings": {"seed": seed, "size": 32}},
            prompts={"include": ["O-01", "V-09"]},
            editors=[
                {"id": "simulated-even", "seeds": [seed]},
                {"id": "simulated-replacing", "seeds": [seed], "settings": {"age": 0.3}},
            ],
            judges=[
                {"id": f"simulated-judge-{n}", "kind": "simulated", "settings": {"seed": 100 * seed + n, "error": 0.02}}
                for n in (1, 2)
            ],
            statistics={"draws": 1000, "permutations": 4999, "seed": seed},
            executor={"workers": 1},
        )
        loaded.run()
        results = compute_results(loaded, loaded.table())
    significant = [t for t in results.tests if t.editor == "simulated-even" and t.level in CLEAR]
    return [bool(p.inside) for p in results.planted], bool(significant)


@pytest.mark.slow
def test_planted_effects_are_covered_and_an_even_editor_shows_no_gap():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        inside, alarms = zip(*pool.map(audit, SEEDS), strict=True)
    covered = [c for study in inside for c in study]
    print(f"{sum(covered)} of {len(covered)} planted effects inside; {sum(alarms)} of {len(alarms)} false alarms")
    assert len(covered) >= 15 * len(SEEDS)
    assert sum(covered) >= (0.90 * len(covered) if FULL else max(fewest(len(covered), 0.95), 0.85 * len(covered)))
    assert sum(alarms) <= (2 if FULL else 1)  # at 5 %, more have a chance of 8 % of 20 and 2 % of 5

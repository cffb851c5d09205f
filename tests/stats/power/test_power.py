"""What a design can show before it is run."""

import re
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from evenedit.stats.power.equivalence import equivalence_margin
from evenedit.stats.power.gaps import Design, labels_needed, power
from evenedit.stats.power.judge_error import items_for_agreement, judge_error_power
from evenedit.stats.power.recommendation import describe, design_power
from evenedit.stats.power.shifts import shift_power
from tests.support.studies import write_study
from validation.power import DESIGNS, found_in_studies, predicted

PAPER = Design((12,) * 7, 20)
LARGE = replace(PAPER, faces=(36,) * 7)


def test_more_faces_prompts_and_seeds_show_smaller_gaps():
    base = power(PAPER, studies=120, relabellings=20).detectable
    faces = power(replace(PAPER, faces=(48,) * 7), studies=120, relabellings=20).detectable
    noise = power(replace(PAPER, face_sd=1.5), studies=120, relabellings=20).detectable
    assert base is not None and faces is not None and noise is not None
    assert faces < base < noise


def test_power_agrees_with_two_groups_compared_by_a_z_test():
    """Two groups, many prompts, faces the only noise: the power of a two-sided test of two means."""
    design = Design((30, 30), 200, rate=0.5, face_sd=1.0, prompt_sd=0.0, rater_sd=0.0, tests=1)
    found = power(design, studies=400, relabellings=60)
    # a face's own rate is Phi(face - cut), uniform on 0 to 1 when the face's sd is the edit's: sd 1 / sqrt(12)
    error = np.sqrt(2 / 30 / 12)
    for gap, share in zip(found.gaps[1:3], found.power[1:3], strict=True):
        z = NormalDist().inv_cdf(0.975)
        expected = NormalDist().cdf(gap / error - z)
        assert share == pytest.approx(expected, abs=0.12)


def test_labels_needed_give_the_wanted_width():
    # no faces' or prompts' share: n = p (1 - p) (2 * 1.96 / width)^2 = 0.16 * (3.92 / 0.1)^2 = 245.9
    design = Design((200,) * 7, 50, face_sd=0.0, prompt_sd=0.0)
    (found,) = labels_needed(design, (0.1,), 0.0)
    assert (found.people_alone, found.with_judges) == (246, 246)
    (better,) = labels_needed(design, (0.1,), 0.8)
    assert better.with_judges is not None and better.with_judges == pytest.approx(246 * (1 - 0.64), abs=2)
    (never,) = labels_needed(PAPER, (0.05,))
    assert (never.people_alone, never.with_judges) == (None, None)  # 20 prompts leave more than that


def test_plan_shows_the_power_of_a_study(tmp_path, evenedit):
    write_study(tmp_path)
    told = evenedit("plan", tmp_path, "--power")
    assert told.returncode == 0, told.stderr
    assert "2 groups of 4 faces x 2 prompts x 1 seeds, 2 raters" in told.stdout
    assert re.search(r"minimum detectable gap .*: (larger|\d+ pp)", told.stdout)
    assert "labels by people" in told.stdout
    assert "minimum detectable shift" in told.stdout and "judges who err more for one group" in told.stdout
    assert re.search(r"recommended for a gap and a shift of 15 pp: (\d+ groups of|no design)", told.stdout)
    assert "power" not in evenedit("plan", tmp_path).stdout


def test_what_is_predicted_is_what_the_analysis_finds():
    """A small version of the validation `power`: 25 studies of a small design, so coarse."""
    design = DESIGNS[1]
    said, margins = predicted(design)
    found = found_in_studies(design, margins, 25, 4)
    assert all(abs(found[name] - said[name]) < 0.3 for name in said), (said, found)


def test_shifts_need_prompts_and_gaps_need_faces():
    base, prompts, faces = (shift_power(d, studies=80) for d in (PAPER, replace(PAPER, prompts=60), LARGE))
    assert prompts.equivalence_margin < min(base.equivalence_margin, faces.equivalence_margin)
    assert equivalence_margin(LARGE, studies=30) < equivalence_margin(PAPER, studies=30)


def test_the_design_that_is_recommended_shows_what_is_asked():
    small = Design((6, 6, 6), 10, tests=9)
    found = design_power(small, effect=0.25, margin=0.25)
    advice = found.advice
    assert advice is not None and min(advice.design.faces) >= 6 and advice.design.prompts >= 10
    for shown in (advice.gap, advice.shift):
        assert shown.detectable <= 0.25 and shown.equivalence_margin <= 0.25
    enough = design_power(advice.design, effect=0.4)
    assert enough.advice is not None and enough.advice.design == advice.design  # what is enough stays as it is
    assert any("this design" in line for line in describe(enough))


def test_the_power_to_see_unequal_error_is_that_of_errors_drawn_one_by_one():
    """Every label's error on its own, then the same test over faces with labels permuted anew in every study."""
    design, labels, gap = Design((15, 15, 15), 20), 180, 0.75
    rng = np.random.default_rng(12)
    variance, found = 2 * (1 - 0.7), 0
    group = np.repeat([0, 1, 2], 15)
    for _ in range(120):
        own = rng.normal(0, np.sqrt(0.1 * variance), 45)[:, None]
        errors = own + rng.normal(0, np.sqrt(0.9 * variance), (45, labels // 45)) + gap * (group == 0)[:, None]
        means = errors.mean(axis=1)
        orders = np.stack([rng.permutation(45) for _ in range(399)])
        both = (means, means[orders])
        spread = [np.var([np.mean(x[..., group == g], axis=-1) for g in range(3)], axis=0) for x in both]
        found += (1 + (spread[1] >= spread[0]).sum()) / 400 <= 0.01
    said = judge_error_power(design, labels)
    assert said.power[said.errors.index(gap)] == pytest.approx(found / 120, abs=0.15)


def test_items_for_agreement_follow_bonett():
    # 8 * 1.96^2 * 0.4^2 * 2.2^2 / (3 * 2 * 0.2^2) = 99.2, and one more
    assert items_for_agreement(0.2) == 101
    assert items_for_agreement(0.1) > 3 * items_for_agreement(0.2)

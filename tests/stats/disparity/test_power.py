"""What a design can show before it is run."""

import re
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from conftest import write_study
from evenedit.stats.disparity.power import Design, labels_needed, power

PAPER = Design((12,) * 7, 20)


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
    assert "power" not in evenedit("plan", tmp_path).stdout

"""A run killed at any moment and started again gives the same results, and does nothing twice.

A small version of `python -m validation kills`, whose table is docs/validation/kills.md.
"""

from validation.kills import kill_runs

KILLS = 8


def test_kills_lose_nothing_and_repeat_nothing(tmp_path):
    found = kill_runs(tmp_path, KILLS)
    assert [study.wrong() for study in found] == [[] for _ in found]
    assert sum(study.kills for study in found) == KILLS
    assert any(0 < stored < study.total for study in found for stored in study.stored), "some kills hit in the middle"

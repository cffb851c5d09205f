"""A small version of `python -m proofs fuzz`, whose table is docs/proofs/fuzz.md."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from proofs.fuzz import DAMAGES, SAME, WRONG, mangled

REPLIES = 60


@pytest.fixture(scope="module")
def found():
    return mangled(REPLIES, seed=6)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_mangled_reply_is_read_as_it_stands_or_not_at_all(found, damage):
    ends = found[damage.name]
    assert not {end: ends[end] for end in WRONG if ends[end]}
    if damage.may == SAME:
        assert ends["scored"] == REPLIES, "what surrounds a good answer does not spoil it"

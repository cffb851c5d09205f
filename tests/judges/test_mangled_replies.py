"""A small version of `python -m validation fuzz`, whose table is docs/validation/fuzz.md."""

import re

import pytest

from evenedit.core.interfaces import Reply
from evenedit.core.records import Status
from validation.fuzz import DAMAGES, SAME, WRONG, mangled

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


def lenient(text, questions):
    """A reader that takes the first digits after a question's name."""
    found = {q.id: re.search(rf'"{q.id}"\s*:\s*"?(-?\d+)', text) for q in questions}
    values = {name: int(match[1]) if match else None for name, match in found.items()}
    return Reply(Status.SCORED, values)


def test_a_lenient_reader_would_be_found_out():
    ends = mangled(REPLIES, 6, lenient)
    assert ends["a number off the scale"]["outside"]
    assert all(ends[name]["guessed"] for name in ("a decimal number", "a quoted number", "cut short"))
    assert mangled(1, 6, None)["cut short"]["raised"]

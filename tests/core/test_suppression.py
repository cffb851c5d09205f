"""What is shown of people's answers never gives away a small cell."""

from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenedit.core.suppression import SMALLEST, ShownCounts, shown_counts

ANSWERS = "abcdef"
COUNTS = st.dictionaries(st.sampled_from(ANSWERS), st.integers(0, 40), max_size=len(ANSWERS))


@given(COUNTS)
def test_no_cell_and_no_remainder_is_below_five(counts):
    shown = shown_counts(counts)
    if shown is None:
        assert sum(counts.values()) < SMALLEST
        return
    assert all(n >= SMALLEST for n in shown.cells.values())
    assert shown.rest == 0 or shown.rest >= SMALLEST
    assert sum(shown.cells.values()) + shown.rest == shown.people == sum(counts.values())


@given(COUNTS)
def test_the_remainder_is_never_one_answer(counts):
    shown = shown_counts(counts)
    if shown is not None and shown.rest:
        assert sum(n > 0 and answer not in shown.cells for answer, n in counts.items()) >= 2


@given(COUNTS)
def test_what_is_shown_is_true_and_nothing_is_hidden_without_need(counts):
    shown = shown_counts(counts)
    if shown is not None:
        assert all(counts[answer] == n for answer, n in shown.cells.items())
        if all(n == 0 or n >= SMALLEST for n in counts.values()):
            assert shown == ShownCounts(sum(counts.values()), dict(shown.cells), 0)
            assert len(shown.cells) == sum(n > 0 for n in counts.values())


def _everything_shown(most, answers):
    """What is shown of every table of so many people at most, and the tables behind each."""
    behind = defaultdict(list)
    for numbers in product(range(most + 1), repeat=answers):
        if sum(numbers) <= most:
            counts = dict(zip(ANSWERS, numbers, strict=False))
            if (shown := shown_counts(counts)) is not None:
                behind[shown.people, tuple(sorted(shown.cells.items())), shown.rest].append(counts)
    return behind


@pytest.mark.parametrize(("answers", "most"), [(2, 60), (3, 36), (4, 22)])
def test_who_knows_the_rule_and_all_that_is_shown_cannot_work_out_a_small_cell(answers, most):
    for shown, tables in _everything_shown(most, answers).items():
        for answer in ANSWERS[:answers]:
            possible = {table[answer] for table in tables}
            assert len(possible) >= 2 or not 0 < min(possible) < SMALLEST, f"{answer}: {possible} where {shown}"


def test_cells_of_one_size_are_hidden_together_and_fours_never_alone():
    assert shown_counts({"a": 6, "b": 6, "c": 4}) == ShownCounts(16, {}, 16)
    assert shown_counts({"a": 9, "b": 5, "c": 4, "d": 4}) == ShownCounts(22, {"a": 9}, 13)

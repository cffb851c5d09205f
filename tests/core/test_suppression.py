"""What is shown of people's answers never gives away a small cell."""

from collections import defaultdict
from itertools import product

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


def _everything_shown(largest, answers):
    """What is shown of every possible table, and the tables behind each."""
    behind = defaultdict(list)
    for numbers in product(range(largest + 1), repeat=answers):
        counts = dict(zip(ANSWERS, numbers, strict=False))
        shown = shown_counts(counts)
        key = None if shown is None else (shown.people, tuple(sorted(shown.cells.items())), shown.rest)
        behind[key].append(counts)
    return behind


def test_who_knows_the_rule_and_all_that_is_shown_cannot_work_out_a_hidden_cell():
    for answers in (2, 3, 4):
        for key, tables in _everything_shown({2: 30, 3: 16, 4: 11}[answers], answers).items():
            if key is None or key[2] == 0 or key[0] > 11:  # above, the tables tried do not reach every possibility
                continue
            hidden = set(ANSWERS[:answers]) - {answer for answer, _ in key[1]}
            for answer in hidden:
                possible = {table[answer] for table in tables}
                assert len(possible) >= 2, f"{answer} must be {possible} where {key} is shown"

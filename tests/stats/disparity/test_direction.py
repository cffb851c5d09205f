"""Directions of change: worked by hand, beside plain numpy, and with missing readings."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from evenedit.protocol import FACTORS, Factor
from evenedit.protocol.factors import factor
from evenedit.results.directions import Direction
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.direction import SeenReadings, direction_results
from validation.direction import LABEL, World, frame

LETTERS = Factor.of("letter", ("A", "B", "C"))
RULES = AnalysisRules.default()


def small(faces: int, prompts: int) -> pd.DataFrame:
    """The edits of one editor, without labels."""
    at = np.indices((faces, prompts)).reshape(2, -1)
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "outcome": "edited"}
    ids = [f"r{n:03}" for n in range(at.shape[1])]
    return pd.DataFrame({"request_id": ids, "source_id": at[0].astype(str), "prompt_id": at[1].astype(str), **place})


def read(before: list[int], after: list[list[int]], again: list[int] | None = None, **others: object) -> SeenReadings:
    """Readings of faces, and of their edits by face and prompt."""
    edits = np.array(after)
    per_face = [np.repeat(np.array(x), edits.shape[1]) for x in (before, before if again is None else again)]
    fields = {"factor": LETTERS, "unasked": np.ones(edits.size, dtype=bool)} | others
    return SeenReadings(before=per_face[0], after=edits.ravel(), reread=per_face[1], **fields)  # type: ignore[arg-type]


def directions(r: SeenReadings, edits: pd.DataFrame | None = None) -> dict[str, Direction]:
    """The directions by measure."""
    edits = small(len(r.before) // 2, 2) if edits is None else edits
    return {d.measure: d for d in direction_results(edits, [r], (), RULES)}


# A, A, B and C before; A B | B B | B A | C C after: 8 edits of 4 faces
EXAMPLE = read([1, 1, 2, 3], [[1, 2], [2, 2], [2, 1], [3, 3]], again=[1, 2, 2, 3])


@pytest.mark.parametrize(
    ("measure", "total", "n"),
    [
        ("transition.letter_seen[A>A]", 1, 4),
        ("transition.letter_seen[A>B]", 3, 4),
        ("transition.letter_seen[A>C]", 0, 4),
        ("transition.letter_seen[B>A]", 1, 2),
        ("flow.letter_seen[A>B]", 3 - 1, 4 + 2),
        ("flow.letter_seen[A>C]", 0, 4 + 2),
        ("toward.letter_seen[A]", 1 - 3, 8),
        ("toward.letter_seen[B]", 3 - 1, 8),
        ("toward.letter_seen[C]", 0, 8),
        ("destination.letter_seen[B]", 3, 3),
        ("destination.letter_seen[A]", 1, 1),
        ("rate.letter_seen_changed", 4, 8),
    ],
)
def test_an_example_worked_by_hand(measure: str, total: int, n: int) -> None:
    d = directions(EXAMPLE)[measure]
    assert (d.total, d.n, d.missing, d.editor) == (total, n, 0, "e")
    assert d.value == pytest.approx(total / n)


def test_the_control_is_the_same_number_where_the_portrait_is_read_again() -> None:
    found = directions(EXAMPLE)
    changed = found["rate.letter_seen_changed"]  # the second of four portraits is read as B again
    assert (changed.control, changed.beyond) == (pytest.approx(2 / 8), pytest.approx(4 / 8 - 2 / 8))
    flow = found["flow.letter_seen[A>B]"]
    assert (flow.control, flow.beyond) == (pytest.approx(2 / 6), pytest.approx(0.0))
    assert found["destination.letter_seen[A]"].control is None


def test_steps_are_counted_where_levels_are_in_order() -> None:
    assert "mean.letter_seen_steps" not in directions(EXAMPLE)
    ordered = read([1, 2], [[3, 1], [2, 1]], factor=Factor.of("letter", "ABC", ordered=True))
    assert directions(ordered)["mean.letter_seen_steps"].value == pytest.approx((2 + 0 + 0 - 1) / 4)
    assert "mean.age_seen_steps" in directions(read([1, 2], [[3, 1], [2, 1]], factor=factor("age")))


def test_missing_readings_are_counted_and_never_guessed() -> None:
    r = read([1, 1, 0], [[2, 0], [2, 1], [2, 2]], again=[1, 0, 1])
    found = directions(r)
    changed = found["rate.letter_seen_changed"]
    assert (changed.total, changed.n, changed.missing) == (2, 3, 3)
    assert (found["transition.letter_seen[A>B]"].n, found["transition.letter_seen[A>B]"].missing) == (3, 1)
    assert (found["destination.letter_seen[B]"].n, found["destination.letter_seen[B]"].missing) == (2, 3)
    assert changed.control == 0.0, "of the one face that was read twice"
    assert changed.beyond == pytest.approx(1.0), "over its one edit that was read"
    assert not any("C" in measure for measure in found), "nothing was seen as C"


def test_edits_that_ask_for_the_change_or_were_not_made_do_not_count() -> None:
    edits = small(2, 2).assign(outcome=["edited", "refused", "edited", "edited"])
    r = read([1, 1], [[2, 2], [2, 2]], unasked=np.array([True, True, False, True]))
    changed = directions(r, edits)["rate.letter_seen_changed"]
    assert (changed.total, changed.n, changed.missing) == (2, 2, 0)


def test_nothing_comes_of_no_readings() -> None:
    assert direction_results(small(2, 2), [], (), RULES) == []
    assert directions(read([0, 0], [[0, 0], [0, 0]])) == {}


def test_the_null_edit_stands_beside_the_baseline_and_is_not_tested() -> None:
    edits = pd.concat([small(6, 4), small(6, 4).assign(condition="floor")], ignore_index=True)
    r = read([1, 1, 1, 2, 2, 2], [[2, 2, 1, 2]] * 6)
    both = SeenReadings(LETTERS, *(np.tile(x, 2) for x in (r.before, r.after, r.reread, r.unasked)))
    tested = {d.condition: d.p for d in direction_results(edits, [both], (), RULES) if d.measure.startswith("flow.")}
    assert tested["baseline"] is not None and tested["floor"] is None


def test_flows_of_few_edits_and_levels_of_two_are_not_tested() -> None:
    few = directions(EXAMPLE)
    assert few["flow.letter_seen[A>B]"].p is None and few["toward.letter_seen[B]"].p is not None
    two = directions(read([1, 1, 2] * 4, [[1, 2], [2, 2], [2, 1]] * 4, factor=Factor.of("letter", "AB")))
    assert two["flow.letter_seen[A>B]"].p is not None and two["toward.letter_seen[B]"].p is None
    assert two["flow.letter_seen[A>B]"].value == pytest.approx(two["toward.letter_seen[B]"].value)


def two_way(y: np.ndarray) -> tuple[float, float]:
    """The mean of a complete table of faces and prompts, and the half-width of its interval (docs/statistics.md)."""
    (n, m), mean = y.shape, y.mean()
    face, prompt = y.mean(axis=1) - mean, y.mean(axis=0) - mean
    cell = y - mean - face[:, None] - prompt
    parts = np.array([(face**2).sum() / (n * (n - 1)), (prompt**2).sum() / (m * (m - 1)), 0.0])
    freedom = np.array([n - 1, m - 1, (n - 1) * (m - 1)])
    parts[2] = (cell**2).sum() / freedom[2] / (n * m)
    variance = parts[0] + parts[1] - parts[2]
    if variance <= parts[:2].max():
        variance, df = parts[:2].max(), freedom[parts[:2].argmax()]
    else:
        df = variance**2 / (parts**2 / freedom).sum()
    return float(mean), float(np.sqrt(variance) * t.ppf(0.975, df))


def test_numbers_and_intervals_are_those_of_plain_numpy() -> None:
    world = World("w", prompts=8, turned=0.3, exchanged=0.2)
    edits, r = world.study(np.random.default_rng(5))
    before, after, again = (x.reshape(len(LABEL), 8) for x in (r.before, r.after, r.reread))
    found = {x.measure: x for x in direction_results(edits, [r], (), RULES)}
    white, indian = before[:, 0] == 1, before[:, 0] == 5
    toward, toward_again = ((later == 1).astype(float) - (before == 1) for later in (after, again))
    flow = (white[:, None] & (after == 5)).astype(float) - (indian[:, None] & (after == 1))
    flow_again = (white[:, None] & (again == 5)).astype(float) - (indian[:, None] & (again == 1))
    everyone = np.ones(len(white), dtype=bool)
    for measure, rows, value, control in (
        ("toward.race_seen[White]", everyone, toward, toward_again),
        ("flow.race_seen[White>Indian]", white | indian, flow, flow_again),
    ):
        d = found[measure]
        mean, reach = two_way(value[rows])
        assert [d.value, d.low, d.high] == pytest.approx([mean, mean - reach, mean + reach])
        mean, reach = two_way((value - control)[rows])
        assert [d.beyond, d.beyond_low, d.beyond_high] == pytest.approx([mean, mean - reach, mean + reach])
        assert d.control == pytest.approx(control[rows].mean())


def test_repeating_each_face_on_more_prompts_does_not_narrow_what_faces_leave_open() -> None:
    """The reading of a portrait is one, however many edits it has."""
    before = [1] * 9 + [2] * 3
    few, many = (
        directions(read(before, [[2] * prompts] * 3 + [[b] * prompts for b in before[3:]]), small(12, prompts))
        for prompts in (2, 20)
    )
    widths = [x["toward.letter_seen[B]"] for x in (few, many)]
    assert all(x.low is not None and x.high is not None for x in widths)
    few_width, many_width = ((x.high or 0.0) - (x.low or 0.0) for x in widths)
    assert many_width == pytest.approx(few_width, rel=0.05)


def test_labels_of_portraits_take_no_part_in_the_numbers() -> None:
    edits, r = World("w", prompts=4, exchanged=0.3).study(np.random.default_rng(1))
    with_labels, without = (direction_results(edits, [r], factors, RULES) for factors in (FACTORS, ()))
    assert [(d.measure, d.value, d.n) for d in with_labels] == [(d.measure, d.value, d.n) for d in without]
    assert frame(4).shape[0] == len(r.before)

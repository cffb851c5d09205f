"""Findings about the direction of change."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenedit.protocol import Factor, default_rubric
from evenedit.results.finding import CLEAR, EFFECT_LEVELS, Finding
from evenedit.stats.disparity.direction import SeenReadings
from evenedit.stats.findings.order import score
from validation.direction import NULL, PLANTED, World, analysed

LETTERS = Factor.of("letter", ("A", "B", "C"))


def study(before: list[int], after: list[list[int]], **others: object) -> tuple[pd.DataFrame, SeenReadings]:
    """Edits of faces by prompts, read by one judge."""
    edits = np.array(after)
    at = np.indices(edits.shape).reshape(2, -1)
    place = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "outcome": "edited"}
    ids = [f"r{n:03}" for n in range(edits.size)]
    frame = pd.DataFrame({"request_id": ids, "source_id": at[0].astype(str), "prompt_id": at[1].astype(str), **place})
    frame = frame.assign(race="White", gender="Male", age="20s")
    per_face = np.repeat(np.array(before), edits.shape[1])
    fields = {"reread": per_face, "unasked": np.ones(edits.size, dtype=bool), "per_judge": {"j": edits.ravel()}}
    return frame, SeenReadings(LETTERS, per_face, edits.ravel(), **(fields | others))  # type: ignore[arg-type]


def found(made: tuple[pd.DataFrame, SeenReadings]) -> list[Finding]:
    """The findings of a study."""
    return analysed(made[0], [made[1]])[1]


# 12 faces seen as A and 12 as B, 5 prompts: 3 of 5 edits of the former come back as B, and 4 edits of the latter as A
MOVED = study(
    [1] * 12 + [2] * 12,
    [[2 if (at + j) % 5 < 3 else 1 for j in range(5)] for at in range(12)]
    + [[1 if at < 4 and at == j else 2 for j in range(5)] for at in range(12)],
)


def test_a_flow_is_told_with_both_ways_and_the_readings_of_the_same_portraits() -> None:
    flow, toward = found(MOVED)
    assert flow.kind == toward.kind == "direction"
    assert flow.text.startswith(
        "Of 60 edits of portraits seen as A, 36 (60.0%) came back seen as B; of 60 seen as B, 4 (6.7%) came back seen "
        "as A (net flow 26.7 points of 120, 95% interval "
    )
    assert flow.text.endswith("; 24 faces, 5 prompts). Reading the same portraits twice gives 0.0% and 0.0%.")
    assert toward.text.startswith("Of 120 edits, 36 (30.0%) came back seen as B whose portraits were not, and 4 (3.3%)")
    assert (flow.measure, flow.value, flow.n, flow.faces) == ("flow.letter_seen[A>B]", pytest.approx(32 / 120), 120, 24)
    assert (flow.factor, flow.group, flow.against, flow.evidence) == ("letter", {}, "no_change", "one_judge")
    assert flow.cases == ("r000", "r005", "r010", "r017", "r021", "r025"), "one edit of each of six portraits"


def test_every_text_says_seen_as_and_never_what_people_are() -> None:
    for world in (PLANTED[0], NULL[0]):
        edits, r = world.study(np.random.default_rng(3))
        for f in analysed(edits, [r])[1]:
            assert "seen as" in f.text
            assert not {"became", "is White", "are White", "turned"} & set(f.text.split())


def test_one_prompt_is_never_clear() -> None:
    edits, r = MOVED
    first = (edits["prompt_id"] == "0").to_numpy()
    arrays = {name: getattr(r, name)[first] for name in ("before", "after", "reread", "unasked")}
    one = replace(r, **arrays, per_judge={"j": r.after[first]})
    assert {f.level for f in found((edits[first], one))} == {"suggestive"}


def test_a_direction_that_reading_again_shows_too_is_not_clear() -> None:
    edits, r = MOVED
    noisy = replace(r, reread=np.where((r.before == 1) & (edits["source_id"].astype(int) % 5 < 3), 2, r.before))
    levels = {f.level for f in found((edits, noisy))}
    assert {f.level for f in found(MOVED)} == {"clear_to_judge"} and levels == {"suggestive"}
    unread = replace(r, reread=np.zeros_like(r.reread))
    assert {f.level for f in found((edits, unread))} == {"suggestive"}, "without a control nothing is clear"


def test_judges_who_agree_by_chance_can_tell_nothing() -> None:
    edits, r = MOVED
    other = np.random.default_rng(1).integers(1, 4, len(r.after))
    (f,) = found((edits, replace(r, per_judge={"a": r.after, "b": other})))
    assert (f.level, f.evidence) == ("cannot_tell", "none") and "%" not in f.text
    assert f.reliability is not None and f.reliability.low is not None and f.reliability.low <= 0
    agreed = found((edits, replace(r, per_judge={"a": r.after, "b": r.after})))
    assert {f.level for f in agreed} == {"clear_to_judges"}
    assert all(f.reliability is not None and f.reliability.low == 1.0 for f in agreed)


def test_a_judge_that_names_no_level_of_many_edits_cannot_tell_the_direction() -> None:
    edits, r = MOVED
    silent = np.where(np.arange(len(r.after)) % 4 == 0, 0, r.after)
    (f,) = found((edits, replace(r, after=silent, per_judge={"j": silent})))
    assert f.text == (
        "Nothing can be said about the direction of change in apparent letter: the judge 'j' named no level for 30 of "
        "120 edits."
    )
    assert (f.level, f.evidence, f.value) == ("cannot_tell", "none", None)


def test_nothing_shown_says_how_much_could_still_hide() -> None:
    (f,) = found(study([1, 2, 3] * 8, [[b, b, b, b % 3 + 1] for b in [1, 2, 3] * 8]))
    assert f.text.startswith(
        "No direction of change in apparent letter was shown. Of 96 edits, 24 (25.0%) came back seen as another level "
        "of Letter than their portrait; reading the same portraits twice gives 0.0%. Edits may still move"
    )
    assert f.group is None and f.level in ("observed", "cannot_tell") and f.high is not None


def test_the_null_edit_stands_beside() -> None:
    edits, r = MOVED
    both = pd.concat([edits, edits.assign(condition="floor")], ignore_index=True)
    arrays = {name: np.tile(getattr(r, name), 2) for name in ("before", "after", "reread", "unasked")}
    flow, _ = found((both, replace(r, **arrays, per_judge={"j": np.tile(r.after, 2)})))
    assert " When asked to change nothing, it is 26.7 points of 120, 95% interval" in flow.text


def test_reading_noise_alone_is_seldom_clear() -> None:
    world = replace(NULL[1], prompts=6)
    studies = [found(world.study(np.random.default_rng([28, at]))) for at in range(200)]
    assert np.mean([any(f.level in CLEAR for f in x) for x in studies]) <= 0.05
    assert np.mean([any(f.level in EFFECT_LEVELS for f in x) for x in studies]) <= 0.10


def test_edits_turned_white_are_found() -> None:
    studies = [analysed(*_one(PLANTED[0], seed)) for seed in range(20)]
    clear = [[f for f in findings if f.level in CLEAR] for _, findings in studies]
    assert np.mean([bool(x) for x in clear]) >= 0.95
    flows = [f for x in clear for f in x if f.measure == "flow.race_seen[White>Indian]"]
    assert len(flows) >= 16 and all("seen as Indian" in f.text and (f.value or 0) < 0 for f in flows)


def _one(world: World, seed: int) -> tuple[pd.DataFrame, list[SeenReadings]]:
    edits, r = world.study(np.random.default_rng([29, seed]))
    return edits, [r]


def test_a_direction_of_apparent_race_is_as_severe_as_a_change_of_it() -> None:
    edits, r = PLANTED[0].study(np.random.default_rng(4))
    flow = analysed(edits, [r])[1][0]
    change = replace(flow, kind="shift", measure="rate.race_change")
    one, other, third = (score(f, default_rubric()) for f in (flow, change, replace(flow, factor="letter")))
    assert one == other > third > 0

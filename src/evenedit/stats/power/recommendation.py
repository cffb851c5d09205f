"""Before a study: what its design can show, question by question, and how many faces, prompts and labels would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenedit.stats.power.equivalence import equivalence_margin
from evenedit.stats.power.gaps import JUDGE_CORRELATION, Design, Labels, Power, labels_needed, power, variances
from evenedit.stats.power.judge_error import (
    AGREEMENT,
    RATERS,
    ErrorPower,
    items_for_agreement,
    judge_error_power,
    labels_for_error,
)
from evenedit.stats.power.shifts import ShiftPower, shift_power

EFFECT, POINTS = 0.15, 0.5
"""Unless others are wanted: the gap and shift to be found, and the judges' error in points."""
SOUND = (12, 20)
"""Faces of a group and prompts of the least design from which it can be told what a larger one would show."""
FAR, TRIES = 1.5, 6
"""Taken for how far off a design is that shows nothing tried; and how often a larger one is tried."""
LARGEST = 2000
"""Faces of a group, and prompts, beyond which none are recommended."""


@dataclass(frozen=True, slots=True)
class DesignRecommendation:
    """A design that answers what is asked."""

    design: Design
    """Enough faces and prompts, not many more than needed, and never fewer than planned."""
    labels: int | None
    """Edits that people rate, for the judges' error; None where no number tried is enough."""
    gap: Power
    shift: ShiftPower
    """What that design can show, simulated."""


@dataclass(frozen=True, slots=True)
class DesignPower:
    """What a design can show, and what would do."""

    effect: float
    margin: float | None
    gap: Power
    shift: ShiftPower
    error: ErrorPower
    widths: tuple[Labels, ...]
    advice: DesignRecommendation | None
    """None where no design up to the largest considered is enough."""


def design_power(
    design: Design,
    *,
    effect: float = EFFECT,
    margin: float | None = None,
    labels: int = 500,
    step: Callable[[int], None] = lambda _: None,
) -> DesignPower:
    """Simulate what the design can show, then a design that shows the effect and evenness within the margin."""
    gap, shift = replace(power(design, step=step), equivalence_margin=equivalence_margin(design)), shift_power(design)
    step(1)
    error = judge_error_power(design, min(labels, sum(design.faces) * design.prompts * design.seeds))
    return DesignPower(
        effect,
        margin,
        gap,
        shift,
        error,
        tuple(labels_needed(design)),
        _advice(design, gap, shift, effect, margin, step),
    )


def _advice(
    design: Design, gap: Power, shift: ShiftPower, effect: float, margin: float | None, step: Callable[[int], None]
) -> DesignRecommendation | None:
    """Enlarge the design by the variances of gaps and shifts, simulate it, and enlarge it again if needed."""
    sound = replace(design, faces=tuple(max(SOUND[0], n) for n in design.faces), prompts=max(SOUND[1], design.prompts))
    if max(_over(gap, effect, margin), _over(shift, effect, margin)) <= 1:
        return DesignRecommendation(design, labels_for_error(design, POINTS), gap, shift)
    if sound != design:
        gap, shift = _simulated(sound)
    candidate, then = sound, (gap, shift)
    wanted = [_over(gap, effect, margin), _over(shift, effect, margin)]
    for _ in range(TRIES):
        enlarged = _enlarged(sound, *wanted)
        if enlarged is None:
            return None
        candidate, then = enlarged, _simulated(enlarged)
        step(1)
        over = [_over(one, effect, margin) for one in then]
        if max(over) <= 1:
            return DesignRecommendation(candidate, labels_for_error(candidate, POINTS), *then)
        wanted = [w * max(1.0, 1.02 * o) for w, o in zip(wanted, over, strict=True)]
    return None


def _simulated(design: Design) -> tuple[Power, ShiftPower]:
    """Simulate with fewer studies than for the planned design."""
    gap = power(design, studies=120, relabellings=40)
    return replace(gap, equivalence_margin=equivalence_margin(design, studies=40)), shift_power(design, studies=120)


def _over(power: Power | ShiftPower, effect: float, margin: float | None) -> float:
    """Return the detectable effect or margin over the required one; at most 1 where the design suffices."""
    over = FAR if power.detectable is None else power.detectable / effect
    if margin is not None:
        over = max(over, FAR if power.equivalence_margin is None else power.equivalence_margin / margin)
    return over


def _enlarged(design: Design, gap: float, shift: float) -> Design | None:
    """Enlarge faces and prompts so that errors of gaps and shifts shrink by these factors."""
    gap_share, shift_share = 1 / max(1.0, gap), 1 / max(1.0, shift)
    of_face, of_prompt, of_edit = variances(design)
    seeds, groups, least = design.seeds, len(design.faces), float(np.mean(design.faces))
    faces_now, prompts = sum(design.faces), design.prompts
    of_gap = (of_face + of_edit / (prompts * seeds)) / least * gap_share**2
    of_shift = of_face / faces_now + of_prompt / prompts + of_edit / (faces_now * prompts * seeds)
    of_shift *= shift_share**2
    faces = least
    for _ in range(50):
        faces = max(faces, (of_face + of_edit / (prompts * seeds)) / of_gap, 1.3 * of_face / (groups * of_shift))
        room = of_shift - of_face / (faces * groups)
        needed = (of_prompt + of_edit / (faces * groups * seeds)) / room
        if max(faces, needed) > LARGEST:
            return None
        if needed <= prompts:
            break
        prompts = int(np.ceil(needed))
    larger = tuple(max(now, int(np.ceil(now * faces / least))) for now in design.faces)
    return replace(design, faces=larger, prompts=prompts)


def describe(planned: DesignPower) -> Iterator[str]:
    """Yield terminal lines on the power of a design and the recommended design."""
    d, gap, shift, error = planned.gap.design, planned.gap, planned.shift, planned.error
    yield f"power, {gap.studies} simulated studies for each gap, {shift.studies} for each shift: {_sized(d)}"
    yield (
        f"assumed: {d.rate:.0%} in the ordinary groups, one group apart; sd of faces {d.face_sd:g}, "
        f"prompts {d.prompt_sd:g}, raters {d.rater_sd:g} of an edit's own noise"
    )
    yield from _effects("true gap", gap.gaps, gap.power, gap.power_alone)
    if gap.detectable is None:
        yield "minimum detectable gap (80 %, after Holm): larger than any tried; more faces are needed"
    else:
        yield f"minimum detectable gap (80 %, after Holm over {d.tests} gaps): {100 * gap.detectable:.0f} pp"
    even = "no margin" if gap.equivalence_margin is None else f"±{100 * gap.equivalence_margin:.0f} pp"
    yield f"even groups are shown to be even (80 %) within: {even}"
    yield from _effects("true shift", shift.shifts, shift.power, shift.power_alone)
    reached = "larger than any tried" if shift.detectable is None else f"{100 * shift.detectable:.0f} pp"
    yield f"minimum detectable shift, up minus down (80 %, after Holm over {d.tests} tests): {reached}"
    none = f"±{100 * shift.equivalence_margin:.0f} pp" if shift.equivalence_margin < 1 else "no margin"
    yield f"where nothing shifts, that is shown (80 %) within: {none}"
    yield f"judges who err more for one group, {error.labels:,} edits rated by people (after Holm over five axes):"
    yield f"{'points':>10}{'planned':>18}"
    for points, share in zip(error.errors, error.power, strict=True):
        yield f"{points:>10g}{share:>18.0%}"
    yield f"labels by people for an interval of a rate ({JUDGE_CORRELATION:g} assumed between judges and people):"
    yield f"{'width':>10}{'people people_only':>18}{'with judges':>16}"
    for line in planned.widths:
        people_only, both = ("not by labels" if x is None else f"{x:,}" for x in (line.people_alone, line.with_judges))
        yield f"{100 * line.width:>7.0f} pp{people_only:>18}{both:>16}"
    yield (
        f"items for people's agreement ±0.1, {RATERS} people each ({AGREEMENT:g} assumed): {items_for_agreement(0.2):,}"
    )
    yield from _advised(planned)


def _effects(
    title: str, effects: tuple[float, ...], after: tuple[float, ...], unadjusted: tuple[float, ...]
) -> Iterator[str]:
    yield f"{title:>10}{'found after Holm':>18}{'found if unadjusted':>16}"
    for effect, share, single in zip(effects, after, unadjusted, strict=True):
        yield f"{100 * effect:>7g} pp{share:>18.0%}{single:>16.0%}"


def _advised(planned: DesignPower) -> Iterator[str]:
    even = "" if planned.margin is None else f", and evenness within ±{100 * planned.margin:g} pp"
    target = f"a gap and a shift of {100 * planned.effect:g} pp{even}"
    advice = planned.advice
    if advice is None:
        yield f"recommended for {target}: no design of up to {LARGEST:,} faces per group and prompts is enough"
        return
    same = advice.design == planned.gap.design
    yield f"recommended for {target}: {'this design' if same else _sized(advice.design)}"
    if not same:
        gap, shift = (100 * (x or 0) for x in (advice.gap.detectable, advice.shift.detectable))
        yield f"  it finds (80 %, after Holm) a gap of {gap:.0f} pp and a shift of {shift:.0f} pp"
    labels = "more than tried, or than there are edits" if advice.labels is None else f"{advice.labels:,}"
    yield f"  labels by people that show judges to err by {POINTS:g} points more for one group: {labels}"


def _sized(d: Design) -> str:
    least, most = min(d.faces), max(d.faces)
    faces = f"{least}" if least == most else f"{least}-{most}"
    return f"{len(d.faces)} groups of {faces} faces x {d.prompts} prompts x {d.seeds} seeds, {d.raters} raters"

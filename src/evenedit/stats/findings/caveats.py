"""What limits a finding that its test cannot see: few prompts, a handful of faces, missing scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenedit.core.records import Estimate
from evenedit.protocol import DEFAULT_RATES
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.protocol.shifts import ONE_SIDED, TWO_SIDED
from evenedit.ratings.table import RatingTable
from evenedit.results.finding import ENSEMBLE, FindingLevel
from evenedit.results.words import count, listed
from evenedit.stats.engine.prompt_null import FEWEST_PROMPTS
from evenedit.stats.engine.shift_tests import ShiftTest, testable
from evenedit.stats.findings.graded_gaps import GradedGap
from evenedit.stats.robustness.leave_one_out import influential_faces

MOST_NAMED = 6
"""Up to so many prompts are named."""
SHIFTED: Mapping[str, str] = {name: DEFAULT_RATES[name].question for name in ONE_SIDED if name in DEFAULT_RATES}
"""By one-sided shift, the question that it is a rate of."""


def prompt_scope_clause(prompts: int) -> tuple[str, ...]:
    """Return the caveat that a finding only holds for its few prompts."""
    if prompts < 2:
        return ("It was read on one prompt, so it says nothing about others.",)
    if prompts < FEWEST_PROMPTS:
        return (f"It was read on {prompts} prompts: too few to say anything about other prompts.",)
    return ()


def too_few_faces_clause(t: ShiftTest) -> tuple[str, ...]:
    """Return the caveat that there are too few portraits for a test of a shift."""
    if t.measure.name not in TWO_SIDED or t.value == 0 or testable(t):
        return ()
    return (f"No test can tell it from chance: it was read on {count(t.faces, 'portrait')}.",)


def excluded_edits_clause(t: ShiftTest, table: RatingTable) -> tuple[str, ...]:
    """Return the caveat on edits excluded from a shift because their prompts ask for the change."""
    question = t.measure.name if t.measure.name in TWO_SIDED else SHIFTED.get(t.measure.name)
    if t.measure.kind != MeasureKind.SHIFT or question is None:
        return ()
    edits = table.edits
    selected = (
        (edits["experiment"] == t.experiment) & (edits["condition"] == t.condition) & (edits["editor"] == t.editor)
    )
    asking = edits["prompt_id"][selected & table.asked_for(question)]
    if asking.empty:
        return ()
    prompts = sorted(set(map(str, asking)))
    which = f": {listed(prompts)}" if len(prompts) <= MOST_NAMED else ""
    asks = "a prompt that asks" if len(prompts) == 1 else f"{len(prompts):,} prompts that ask"
    return (f"{count(len(asking), 'edit')} of {asks} for such a change {_are(len(asking))} left out{which}.",)


def missing_scores_clause(rater: str, ends: Sequence[Estimate]) -> tuple[str, ...]:
    """Return the caveat on edits without a score in both groups of a gap, the disadvantaged group first."""
    if not any(e.missing for e in ends):
        return ()
    one, other = (f"{e.missing:,} of {e.n + e.missing:,}" for e in ends)
    what = "score" if rater == ENSEMBLE else "measurement"
    return (f"Without a {what} are {one} edits of this group and {other} of the one it is compared with.",)


def prompt_generality_clause(g: GradedGap) -> tuple[str, ...]:
    """Return the caveat that a gap only holds for these prompts, where prompts differ too much."""
    if not g.only_these or g.test.p_prompts is None:
        return ()
    return (
        "Prompts treat the groups differently, so others may not show it: p, not adjusted, is "
        f"{g.test.p:.2g} for these {g.prompts} prompts and {g.test.p_prompts:.2g} for prompts like these.",
    )


def influence_clause(g: GradedGap, worse: str) -> tuple[str, ...]:
    """Return the caveat on a few faces of the disadvantaged group that carry a gap."""
    t = g.test
    few = influential_faces(g.evidence.panel, t, worse) if Measure(t.measure).name != "edit_success" else None
    if few is None:
        return ()
    return (f"{few[0]} of its {few[1]} faces hold more than half of it: others of this label may differ.",)


def pronoun_clause(level: FindingLevel, swapped: ShiftTest | None) -> tuple[str, ...]:
    """Return the caveat on a missing pronoun-swapped control or on the effect of the pronoun."""
    if swapped is None:
        return (
            "There is no pronoun-swapped control, so following the prompt cannot be told from following the "
            "stereotype.",
        )
    if level == "observed":
        return ("With the pronoun swapped the share is on the other side: the editor follows the pronoun.",)
    return ()


def _are(number: int) -> str:
    return "is" if number == 1 else "are"

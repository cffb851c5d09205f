"""What limits a finding that its test cannot see: few prompts, a handful of faces, labels that may be wrong."""

from __future__ import annotations

from evenedit.protocol.measures import Measure
from evenedit.results.finding import FindingLevel
from evenedit.stats.engine.prompt_null import FEWEST_PROMPTS
from evenedit.stats.engine.rules import AnalysisRules
from evenedit.stats.findings.evidence import ShareTest
from evenedit.stats.findings.graded_gaps import GradedGap
from evenedit.stats.robustness.mislabelled import carried_by, faces_to_relabel


def few_prompts(prompts: int) -> tuple[str, ...]:
    """That a finding tells about its prompts only."""
    if prompts < 2:
        return ("It was read on one prompt, so it says nothing about others.",)
    if prompts < FEWEST_PROMPTS:
        return (f"It was read on {prompts} prompts: too few to say anything about other prompts.",)
    return ()


def other_prompts(g: GradedGap) -> tuple[str, ...]:
    """That a gap is shown for these prompts only, where prompts treat the groups too differently to say more."""
    if not g.only_these or g.test.p_prompts is None:
        return ()
    return (
        "Prompts treat the groups differently, so others may not show it: p, not adjusted, is "
        f"{g.test.p:.2g} for these {g.prompts} prompts and {g.test.p_prompts:.2g} for prompts like these.",
    )


def carried(g: GradedGap, worse: str, rules: AnalysisRules) -> tuple[str, ...]:
    """Whether a few faces carry the group that fares worse, and how many wrong labels a clear gap would need."""
    panel, t = g.evidence.panel, g.test
    few = carried_by(panel, t, worse) if Measure(t.measure).name != "edit_success" else None
    found: tuple[str, ...] = ()
    if few is not None:
        found += (f"{few[0]} of its {few[1]} faces hold more than half of it: others of this label may differ.",)
    wrong = faces_to_relabel(panel, t, rules) if g.grade == "clear" else None
    if wrong is not None:
        faces = "one face were" if wrong == 1 else f"{wrong} faces were"
        found += (f"Its test would no longer show it if the label of at most {faces} another.",)
    return found


def pronoun(level: FindingLevel, swapped: ShareTest | None) -> tuple[str, ...]:
    """What a stereotype says without its pronoun-swapped control, or where the pronoun leads."""
    if swapped is None:
        return (
            "There is no pronoun-swapped control, so following the prompt cannot be told from following the "
            "stereotype.",
        )
    if level == "observed":
        return ("With the pronoun swapped the share is on the other side: the editor follows the pronoun.",)
    return ()

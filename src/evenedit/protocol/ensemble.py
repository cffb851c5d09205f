"""The names of the rules by which several judges' answers become one; `ratings.combine` implements them."""

from __future__ import annotations

from evenedit.core.records import Experiment

SCORE_RULES: tuple[str, ...] = ("diagnosis", "mitigation", "mean", "median", "primary", "secondary")
"""Rules for scores of 1 to 5."""
VERDICT_RULES: tuple[str, ...] = ("stereotype", "primary", "secondary")
"""Rules for verdicts."""
RULES: tuple[str, ...] = tuple(dict.fromkeys([*SCORE_RULES, *VERDICT_RULES]))
"""Every rule."""
RULES_OF: dict[str, tuple[str, ...]] = {
    experiment.value: VERDICT_RULES if experiment is Experiment.STEREOTYPE else SCORE_RULES for experiment in Experiment
}
"""The rules each experiment can use."""
STANDARD_RULES: dict[str, str] = {e.value: e.value for e in Experiment}
"""Each experiment with the rule that bears its name."""
MISSING_POLICIES = ("exclude", "neutral-3")
"""What becomes of a question no judge answered: left out, or the published neutral 3."""

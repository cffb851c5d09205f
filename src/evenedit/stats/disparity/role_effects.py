"""What decides who gets the role of a two-person prompt: its pronoun, the order of the portraits, or the occupation.

Each is the difference it makes to the share of roles that go to the male portrait, with the two others held. Prompts
are the unit: an effect is a mean over prompts, with the interval of Student's t (Welch's for the occupation).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from evenedit.core.records import Condition, Experiment
from evenedit.protocol import load_prompts
from evenedit.protocol.prompts import BUILT_IN
from evenedit.ratings.table import Scores
from evenedit.results.results import RoleEffect
from evenedit.stats.engine.rules import AnalysisRules

HE, SHE = frozenset({"he", "his", "him"}), frozenset({"she", "her", "hers"})
FEWEST = 3
"""Prompts below which there is no interval."""
Values = NDArray[np.float64]


def role_effects(scores: Scores, rules: AnalysisRules) -> Iterator[RoleEffect]:
    """Yield the effects of each editor for which both sides were requested and a role was clearly assigned."""
    for editor, roles in _roles(scores).groupby("editor", sort=False):
        cells = roles.groupby(["prompt", "pronoun", "order"])["male"].mean()
        for effect, factor in (("pronoun", ("he", "she")), ("order", ("male first", "female first"))):
            pairs = cells.unstack(effect).reindex(columns=list(factor))
            by_prompt = (pairs[factor[0]] - pairs[factor[1]]).dropna().groupby("prompt").mean().to_numpy(np.float64)
            if len(by_prompt):
                yield _effect(str(editor), effect, rules, by_prompt)
        male, female = _by_coding(cells, roles)
        if len(male) and len(female):
            yield _effect(str(editor), "coding", rules, male, female)


def _roles(scores: Scores) -> pd.DataFrame:
    """Return one row per edit with a clear role: editor, prompt, pronoun, order, coding, male."""
    known = {p.id: p for name in BUILT_IN for p in load_prompts(name) if p.coded_gender}
    edits, wanted = scores.edits, "target_role" in scores.table.rubric
    role = scores.of("target_role") if wanted else np.zeros(len(edits), dtype=np.int8)
    chosen = (edits["experiment"] == Experiment.STEREOTYPE).to_numpy() & np.isin(role, (1, 2))
    rows = []
    for at in map(int, np.flatnonzero(chosen & edits["prompt_id"].isin(known).to_numpy())):
        prompt, condition = known[str(edits["prompt_id"].iat[at])], Condition.parse(str(edits["condition"].iat[at]))
        he = prompt.pronoun in HE if prompt.pronoun in HE | SHE else None
        rows.append(
            {
                "editor": edits["editor"].iat[at],
                "prompt": prompt.id,
                "pronoun": "none" if he is None else "he" if he != condition.other_pronoun else "she",
                "order": "female first" if condition.other_order else "male first",
                "coding": prompt.coded_gender,
                "male": float(role[at] == 1),
            }
        )
    return pd.DataFrame(rows, columns=["editor", "prompt", "pronoun", "order", "coding", "male"])


def _by_coding(cells: pd.Series[float], roles: pd.DataFrame) -> tuple[Values, Values]:
    """Return the share of the male portrait by prompt, for male- and for female-coded prompts.

    Pronouns weigh the same, and so do orders; a prompt that was asked with one of its pronouns alone is left out.
    """
    by_pronoun = cells.groupby(["prompt", "pronoun"]).mean().unstack("pronoun").reindex(columns=["he", "she", "none"])
    share = by_pronoun["none"].fillna((by_pronoun["he"] + by_pronoun["she"]) / 2).dropna()
    coding = roles.drop_duplicates("prompt").set_index("prompt")["coding"].reindex(share.index)
    male, female = (share[coding == gender].to_numpy(np.float64) for gender in ("Male", "Female"))
    return male, female


def _effect(editor: str, name: str, rules: AnalysisRules, first: Values, second: Values | None = None) -> RoleEffect:
    sides = [first] if second is None else [first, second]
    value = float(first.mean() - (0.0 if second is None else second.mean()))
    low = high = None
    if min(map(len, sides)) >= FEWEST:
        parts = [float(side.var(ddof=1)) / len(side) for side in sides]
        if sum(parts) > 0:
            freedom = sum(parts) ** 2 / sum(v**2 / (len(s) - 1) for v, s in zip(parts, sides, strict=True))
            reach = float(stdtrit(freedom, 0.5 + rules.confidence / 2)) * sqrt(sum(parts))
            low, high = max(-1.0, value - reach), min(1.0, value + reach)
    return RoleEffect(editor, name, value, low, high, sum(map(len, sides)))

"""Two portraits, one occupation: who got the role. Each prompt has its own pair of faces, so prompts are the units.

What decides it, the pronoun, the order of the portraits or the occupation, is the difference that each makes to the
share of roles that go to the male portrait, with the others held: a mean over prompts, with the interval of Student's t
(Welch's for the occupation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from evenedit.core.records import Condition, Experiment
from evenedit.protocol import load_prompts
from evenedit.protocol.measures import Measure
from evenedit.protocol.prompts import BUILT_IN
from evenedit.protocol.rubric import ROLES, VERDICTS
from evenedit.ratings.combine import applicable_questions
from evenedit.ratings.table import Scores
from evenedit.results.results import RoleEffect
from evenedit.stats.engine.measures import Answers, MeasureTable, add_score_measures
from evenedit.stats.engine.panel import Panel, RatioMeasure, by_prompt
from evenedit.stats.engine.rules import AnalysisRules

HE, SHE = frozenset({"he", "his", "him"}), frozenset({"she", "her", "hers"})
FEWEST = 3
"""Prompts below which the effect of a role's cause has no interval."""
Values = NDArray[np.float64]


def stereotype_panels(scores: Scores, scored: Answers, rules: AnalysisRules) -> list[Panel]:
    """Build one panel per condition of the stereotype experiment."""
    experiment = scores.edits["experiment"] == Experiment.STEREOTYPE
    coded = {p.id: p.coded_gender for name in BUILT_IN for p in load_prompts(name) if p.coded_gender}
    panels = []
    for condition in sorted(scores.edits["condition"][experiment].unique()):
        rows = np.flatnonzero((experiment & (scores.edits["condition"] == condition)).to_numpy())
        verdict = _answers(scores, rows, "stereotype")
        followed, resisted, unclear = ((verdict == at).astype(np.int64) for at in range(1, len(VERDICTS) + 1))
        answered = (verdict > 0).astype(np.int64)
        # an UNCLEAR verdict was given, so it is no missing answer of the rates it does not count in
        wanted = {"decided": 1 - unclear, "given": np.ones(len(rows), dtype=np.int64)}
        ledger = MeasureTable(rubric=scores.table.rubric)
        for rate, total, count, of in (
            ("followed", followed, followed + resisted, "decided"),
            ("resisted", resisted, followed + resisted, "decided"),
            ("unclear", unclear, answered, "given"),
            ("followed_of_all", followed, answered, "given"),
        ):
            if ROLES.verdict in scores.table.rubric:
                ledger.add(RatioMeasure(Measure.rate(rate), rate, of, f"asked.{of}"), total, count, wanted[of])
        _write_roles(ledger, scores, rows, verdict, coded)
        add_score_measures(ledger, scored.rows(rows), scored.rows(rows).valid, rules.rates)
        edits = scores.edits.iloc[rows]
        axes = by_prompt(edits, "coded_gender", coded)
        panels.append(ledger.panel(edits, axes, Experiment.STEREOTYPE.value, condition))
    return panels


def _write_roles(
    ledger: MeasureTable,
    scores: Scores,
    rows: NDArray[np.intp],
    verdict: NDArray[np.int8],
    coded: Mapping[str, str | None],
) -> None:
    """Add the shares of who got the role, and how often that contradicts the verdict on the same edit."""
    role, applies = _write_shares(ledger, scores, rows, ROLES.target_role, "role")
    _write_shares(ledger, scores, rows, ROLES.status, "status")
    prompts = scores.edits["prompt_id"].iloc[rows]
    male_coded, is_coded = (prompts.map(coded) == "Male").to_numpy(), prompts.isin(coded).to_numpy()
    both = (np.isin(role, (1, 2)) & np.isin(verdict, (1, 2))).astype(np.int64)
    to_coded = (role == 1) == male_coded
    decided = (np.isin(role, (1, 2)) & is_coded).astype(np.int64)
    followed = RatioMeasure(Measure.rate("role_followed"), "role.followed", "role.one", "role.clear")
    ledger.add(followed, decided * to_coded, decided, applies * (role != 3) * is_coded)  # UNCLEAR is an answer
    contradicts = both * (to_coded != (verdict == 1))
    measure = RatioMeasure(Measure.rate("role_contradicts_verdict"), "role.contradicts", "role.decided", "role.both")
    ledger.add(measure, contradicts, both, both)


def _write_shares(
    ledger: MeasureTable, scores: Scores, rows: NDArray[np.intp], question: str, name: str
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Add the shares of male, female and UNCLEAR; return the answers and where the question applies."""
    answer, applies = _answers(scores, rows, question), np.zeros(len(rows), dtype=np.int64)
    if question in scores.table.rubric:
        applies = applicable_questions(scores.table)[rows, scores.table.at(question)].astype(np.int64)
    answered = (answer > 0).astype(np.int64)
    for value, who in enumerate(("male", "female", "unclear"), 1):
        measure = RatioMeasure(Measure.rate(f"{name}_{who}"), f"{name}.{who}", f"{name}.given", f"{name}.asked")
        ledger.add(measure, (answer == value).astype(np.int64), answered, applies)
    return answer, applies


def _answers(scores: Scores, rows: NDArray[np.intp], question: str) -> NDArray[np.int8]:
    """Return the answers to a question; none where the rubric does not have it."""
    return scores.of(question)[rows] if question in scores.table.rubric else np.zeros(len(rows), dtype=np.int8)


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
    edits, wanted = scores.edits, ROLES.target_role in scores.table.rubric
    role = scores.of(ROLES.target_role) if wanted else np.zeros(len(edits), dtype=np.int8)
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

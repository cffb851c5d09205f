"""Data quality: how carefully each rater answered, and whom the rules stated beforehand exclude.

Takes one long table of answers and returns one `Quality` per rater. Imported ratings are checked like the survey's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evenedit.config.study_file import ExclusionSection
from evenedit.survey.tasks import CASE, GOLD, INSTRUCTED

COLUMNS = ("rater", "item", "kind", "output", "question", "value", "low", "high", "milliseconds")
"""One row per answer: `low` and `high` bound the known answer of a gold or instructed item, else they are NaN.

Optional: `asked`, the question that a column of answers belongs to, and `levels`, how many answers it has: questions
with equal numbers of levels can be answered alike throughout; NaN for choices that a study declares.
"""
STRAIGHT = 5
"""Straight-lining is assessed on items with at least this many answers on scales of equal length."""
COMPARED = 10
"""Agreement with others needs at least this many answers that others gave too."""


@dataclass(frozen=True, slots=True)
class Quality:
    """The data quality of one rater."""

    rater: str
    items: int
    answers: int
    gold_right: int
    gold_asked: int
    """Answers on gold items, and how many were right."""
    instructed_failed: int
    instructed_asked: int
    """Instructed checks: items with any answer but the one asked for."""
    seconds_per_item: float | None
    seconds_per_answer: float | None
    """Medians over items; None where no times were taken."""
    straight: float | None
    """Share of items with the same answer throughout; None if items have too few questions."""
    agreement: float | None
    """Correlation with the mean of the others, each question centred; None where too few answers are shared."""
    excluded: tuple[str, ...]
    """The rules that exclude this rater; empty for a rater who is kept."""

    @property
    def gold_accuracy(self) -> float | None:
        """Share of right answers on gold items."""
        return self.gold_right / self.gold_asked if self.gold_asked else None


def assess(answers: pd.DataFrame, rules: ExclusionSection) -> list[Quality]:
    """Return the quality of all raters under the study's rules, sorted by name."""
    frame = answers.assign(others=_mean_of_others(answers))
    if "asked" not in frame.columns:
        frame = frame.assign(asked=frame["question"], levels=0)
    return [_rater(str(name), part, rules) for name, part in frame.groupby("rater", sort=True)]


def _rater(name: str, part: pd.DataFrame, rules: ExclusionSection) -> Quality:
    right = part["value"].between(part["low"], part["high"])
    gold = part["kind"] == GOLD
    checks = part[part["kind"] == INSTRUCTED]
    failed = (~right[checks.index]).groupby(checks["item"]).any()
    rated = part[part["kind"] != INSTRUCTED]
    by_item = rated.drop_duplicates(["item", "output", "asked"]).groupby("item")
    sizes, seconds = by_item.size(), rated.groupby("item")["milliseconds"].max() / 1000
    timed = seconds > 0
    alike = rated.groupby(["item", "levels"])["value"]
    long = alike.size() >= STRAIGHT
    quality = Quality(
        rater=name,
        items=len(sizes),
        answers=len(rated),
        gold_right=int(right[gold].sum()),
        gold_asked=int(gold.sum()),
        instructed_failed=int(failed.sum()),
        instructed_asked=len(failed),
        seconds_per_item=float(seconds[timed].median()) if timed.any() else None,
        seconds_per_answer=float((seconds / sizes)[timed].median()) if timed.any() else None,
        straight=float((alike.nunique() == 1)[long].mean()) if long.any() else None,
        agreement=_agreement(part),
        excluded=(),
    )
    return replace(quality, excluded=tuple(_reasons(quality, rules)))


def _reasons(quality: Quality, rules: ExclusionSection) -> Iterator[str]:
    if quality.instructed_failed >= rules.instructed_failed:
        yield f"failed {quality.instructed_failed} of {quality.instructed_asked} instructed checks"
    accuracy = quality.gold_accuracy
    if accuracy is not None and accuracy < rules.gold_below:
        yield f"{accuracy:.0%} right on gold items, below {rules.gold_below:.0%}"
    speed = quality.seconds_per_answer
    if speed is not None and speed < rules.seconds_per_answer:
        yield f"{speed:.2f} s per answer (median), below {rules.seconds_per_answer:g} s"
    if quality.straight is not None and quality.straight > rules.straight_line:
        yield f"the same answer throughout on {quality.straight:.0%} of the items, above {rules.straight_line:.0%}"
    if (
        rules.agreement_below is not None
        and quality.agreement is not None
        and quality.agreement < rules.agreement_below
    ):
        yield f"agreement with the others {quality.agreement:.2f}, below {rules.agreement_below:g}"


def _mean_of_others(answers: pd.DataFrame) -> pd.Series[float]:
    """Return the mean answer of the other raters for each answer to a case; NaN if there are no others."""
    cases = answers["value"].where(answers["kind"] == CASE).astype(float)
    groups = cases.groupby([answers["item"], answers["output"], answers["question"]])
    count, total = groups.transform("count"), groups.transform("sum")
    return ((total - cases) / (count - 1)).where(count > 1)


def _agreement(part: pd.DataFrame) -> float | None:
    shared = part[part["others"].notna() & part["levels"].notna()]
    if len(shared) < COMPARED:
        return None
    means = shared.groupby("question")[["value", "others"]].transform("mean")
    values, others = (shared[c].astype(float) - means[c] for c in ("value", "others"))
    return float(np.corrcoef(values, others)[0, 1]) if values.std() and others.std() else None

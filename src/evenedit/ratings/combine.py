"""Several judges' scores become one, and their disagreement is kept. Every rule has a name.

| rule         | two judges, g = primary, o = secondary                                      |
|--------------|-----------------------------------------------------------------------------|
| `diagnosis`  | |g-o| <= 1: mean, half up; else g, and the edit needs review                |
| `mitigation` | mean, half up; |g-o| >= 2: the edit needs review                            |
| `mean`       | mean of all judges, half up                                                 |
| `median`     | median of all judges, half up; also what three or more judges get           |
| `primary`    | the first judge alone                                                       |
| `secondary`  | the second judge alone                                                      |
| `stereotype` | what most judges chose; an open option or missing yields to the others      |

Choices without an order are what most judges chose, unless the rule names one judge: open options (UNCLEAR, cannot
tell) and missing answers yield to the others; as many for one as for another is the open option, or missing without
one. A question may state its own rule.

Where one judge has no answer the other's stands, except under `primary` and `secondary`, which name their
one judge. Under `review = "settles"` a value that reviewers settled takes the place of the judges'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment, Kind, Outcome
from evenedit.protocol import ROLES, Rate, load_prompts
from evenedit.protocol.drift import drift
from evenedit.protocol.ensemble import MISSING_POLICIES, RULES, RULES_OF, SCORE_RULES, STANDARD_RULES
from evenedit.protocol.prompts import BUILT_IN
from evenedit.protocol.questions import QuestionSpec
from evenedit.protocol.rubric import AXES
from evenedit.ratings.table import MISSING, NOT_ASKED, RatingTable, Scores

Cube = NDArray[np.int8]
"""[judge, …]: answers 1, 2, 3 …, or 0."""

NEUTRAL = 3
FULL_SCALE = 5
SKIN = (ROLES.lighter, ROLES.darker)
"""Levels from which on neighbouring answers are no disagreement, even where one of them is no change."""
ONE_JUDGE = ("primary", "secondary")
"""The rules that name one judge, by the judge's position."""
SETTLES = "settles"
"""Under `review` in the rules: what reviewers settled stands in the place of the judges' score."""


def half_up(total: NDArray[np.integer], count: NDArray[np.integer]) -> Cube:
    """`floor(total / count + 1/2)` in integers, so 2.5 is 3; 0 where the count is 0."""
    total, count = (x.astype(np.int32, copy=False) for x in (total, count))  # divided far faster than wider ones
    safe = np.maximum(count, 1)
    return np.where(count > 0, (2 * total + count) // (2 * safe), MISSING).astype(np.int8)


def mean(cube: Cube) -> Cube:
    """Half-up mean of the answers that are there."""
    return half_up(cube.sum(axis=0, dtype=np.int32), (cube > 0).sum(axis=0, dtype=np.int32))


def median(cube: Cube) -> Cube:
    """Half-up median of the answers that are there."""
    judges = len(cube)
    ordered = np.sort(cube, axis=0).astype(np.int64)  # missing answers are 0, so they come first
    count = (cube > 0).sum(axis=0, dtype=np.int64)
    lower = np.minimum(judges - count + (count - 1) // 2, judges - 1)
    upper = np.minimum(judges - count + count // 2, judges - 1)
    pair = sum(np.take_along_axis(ordered, at[None], axis=0)[0] for at in (lower, upper))
    return half_up(np.asarray(pair, dtype=np.int64), np.where(count > 0, 2, 0))


def primary_unless_close(cube: Cube) -> Cube:
    """Half-up mean where two judges are within one point, else the primary's score."""
    return np.where(spread(cube) >= 2, cube[0], mean(cube)).astype(np.int8)


def majority(cube: Cube, options: int, undecided: Sequence[int] = (), tie: int = MISSING) -> Cube:
    """Return the option that most judges chose; `undecided` ones yield to the others, and a tie is `tie`."""
    decided = [option for option in range(1, options + 1) if option not in undecided]
    votes = np.stack([(cube == option).sum(axis=0) for option in decided])
    most = votes.max(axis=0)
    single = (most > 0) & ((votes == most).sum(axis=0) == 1)
    chosen = np.where(single, np.array(decided)[votes.argmax(axis=0)], tie)
    return np.where((cube > 0).any(axis=0), chosen, MISSING).astype(np.int8)


def unanimous(cube: Cube, tie: int = MISSING) -> Cube:
    """Return the option on which all judges who answered agree, else `tie`."""
    first = cube.max(axis=0)
    agreed = ((cube == first) | (cube == MISSING)).all(axis=0)
    return np.where(agreed, first, np.where(first > 0, tie, MISSING)).astype(np.int8)


def spread(cube: Cube) -> Cube:
    """Highest minus lowest answer; 0 where fewer than two are there."""
    lowest = np.where(cube > 0, cube, np.int8(127)).min(axis=0)
    return np.where((cube > 0).any(axis=0), cube.max(axis=0) - lowest, 0).astype(np.int8)


def _first(cube: Cube) -> Cube:
    return np.asarray(cube[0])


def _second(cube: Cube) -> Cube:
    return np.asarray(cube[1])


_SCORE_RULES: dict[str, Callable[[Cube], Cube]] = {
    "diagnosis": primary_unless_close,
    "mitigation": mean,
    "mean": mean,
    "median": median,
    "primary": _first,
    "secondary": _second,
}
assert tuple(_SCORE_RULES) == SCORE_RULES


def combine(table: RatingTable, rules: Mapping[str, str], missing: str) -> Scores:
    """Combine the VLM judges into one score per edit and question, first judge primary, by each experiment's rule."""
    if missing not in MISSING_POLICIES:
        raise EvenEditError(f"missing policy '{missing}' is not known; use one of: {', '.join(MISSING_POLICIES)}")
    judges = table.of_kind(Kind.VLM)
    edited = (table.edits["outcome"] == Outcome.EDITED).to_numpy()
    question_asked = applicable_questions(table)
    # a refused or failed edit has no picture to score, whatever a file claims
    cube = np.where(edited[None, :, None], table.values[judges], np.int8(MISSING))
    judged = np.where(question_asked, cube, np.int8(MISSING))
    values = np.zeros(table.values.shape[1:], dtype=np.int8)
    disagree = np.zeros(values.shape, dtype=np.bool_)
    if judges:
        for experiment in Experiment:
            rows = np.flatnonzero(table.edits["experiment"] == experiment)
            if len(rows):
                name = _known_rule(experiment, rules.get(experiment, STANDARD_RULES[experiment]), len(judges))
                _combine_rows(table, rows, name, cube, values, judged)
        for at, column in enumerate(table.rubric.columns):
            spec = table.rubric.spec_by_column[column]
            if spec.row.about != "picture":  # how one picture is seen settles nothing about an edit
                disagree[:, at] = disagreement(spec, column, cube[:, :, at])
    else:
        judged = np.zeros((1, *values.shape), dtype=np.int8)
    values[~question_asked] = MISSING
    if missing == "neutral-3":
        answerable = edited & (table.status[judges] != NOT_ASKED).any(axis=0)
        fill = question_asked & answerable[:, None] & (values == MISSING)
        published = {*AXES, *(new for new, old in table.rubric.replaced.items() if old in AXES)}
        fill[:, [column not in published for column in table.rubric.columns]] = False
        values[fill] = NEUTRAL
        judged[0][fill] = NEUTRAL
    disagree &= question_asked
    if rules.get("review") == SETTLES and table.settled is not None:
        settled = question_asked & edited[:, None] & (table.settled > 0)
        values[settled] = table.settled[settled]
        judged[:, settled] = table.settled[settled]
        disagree &= ~settled
    return Scores(table, values, disagree, judged)


def _combine_rows(
    table: RatingTable, rows: NDArray[np.intp], rule: str, cube: Cube, values: NDArray[np.int8], judged: Cube
) -> None:
    """Combine the answers of one experiment's edits into `values`; judges that do not count leave `judged`."""
    columns = table.rubric.columns
    by_rule: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        spec = table.rubric.spec_by_column[column]
        if spec.is_choice:
            stated = spec.row.combine if spec.row.combine != "ensemble" else rule if rule in ONE_JUDGE else "majority"
            values[rows, at] = _choice(stated, spec, column, cube[:, rows, at])
        else:
            stated = rule if spec.row.combine == "ensemble" else spec.row.combine
            by_rule.setdefault(stated if stated in _SCORE_RULES else "mean", []).append(at)
        if stated in ONE_JUDGE:
            others = np.arange(len(cube)) != min(ONE_JUDGE.index(stated), len(cube) - 1)
            judged[np.ix_(others, rows, np.array([at]))] = MISSING
    for stated, ats in by_rule.items():
        these = np.array(ats)
        values[np.ix_(rows, these)] = _SCORE_RULES[stated](cube[np.ix_(np.arange(len(cube)), rows, these)])


def _choice(rule: str, spec: QuestionSpec, column: str, cube: Cube) -> Cube:
    """Combine the judges' choices."""
    if rule in ONE_JUDGE:
        return np.asarray(cube[min(ONE_JUDGE.index(rule), len(cube) - 1)])
    labels = spec.columns[column].labels
    undecided = [labels.index(code) + 1 for code in spec.open_codes]
    tie = undecided[0] if undecided else MISSING
    return unanimous(cube, tie) if rule == "unanimous" else majority(cube, len(labels), undecided, tie)


def disagreement(spec: QuestionSpec, column: str, cube: Cube) -> NDArray[np.bool_]:
    """Return where the judges' answers to one question, [judge, edit], differ so much that they need a review."""
    labels = spec.columns[column].labels
    if not spec.is_choice:
        sides = spec.row.neutral or 0
        if len(labels) >= FULL_SCALE or not sides:
            return np.asarray(spread(cube) >= 2)
        return np.asarray((spread(cube) >= 2) | ((cube == sides).any(axis=0) & (spread(cube) >= 1)))
    decided = [at for at, code in enumerate(labels, 1) if code not in spec.open_codes]
    if spec.row.opposed:
        pairs = [(labels.index(one) + 1, labels.index(other) + 1) for one, other in spec.row.opposed]
        both = np.stack([(cube == one).any(axis=0) & (cube == other).any(axis=0) for one, other in pairs])
        return np.asarray(both.any(axis=0))
    return np.asarray(np.stack([(cube == option).any(axis=0) for option in decided]).sum(axis=0) > 1)


def judges_only(rules: Mapping[str, str]) -> dict[str, str]:
    """Return the same rules without the reviewers."""
    return {name: rule for name, rule in rules.items() if name != "review"}


def _known_rule(experiment: str, name: str, judges: int) -> str:
    """Return the rule to use; raise `EvenEditError` for one that the experiment does not have."""
    if name not in RULES_OF[experiment]:
        hint = " (it is for other questions)" if name in RULES else ""
        known = ", ".join(RULES_OF[experiment])
        raise EvenEditError(
            f"ensemble rule '{name}' is not known for the {experiment} experiment{hint}; use one of: {known}"
        )
    if name == "secondary" and judges < 2:
        raise EvenEditError("ensemble rule 'secondary' needs two judges; the data has one")
    if judges > 2 and name in ("diagnosis", "mitigation"):
        return "median"  # both are defined for two judges
    return name


@cache
def aging_prompts() -> frozenset[str]:
    """Return the built-in prompts that name a target age."""
    return frozenset(p.id for name in BUILT_IN for p in load_prompts(name) if p.target_years)


def applicable_questions(table: RatingTable) -> NDArray[np.bool_]:
    """[edit, question]: which questions apply to each edit.

    Optional questions apply to their experiments where somebody answered them. A prompt with a target age has
    aging_accuracy in place of age_drift: any prompt with such an answer, and the built-in ones unless somebody answered
    age_drift on them.
    """
    edits, rubric = table.edits, table.rubric
    mask = np.zeros((len(edits), len(rubric.columns)), dtype=np.bool_)
    within = {e: edits["experiment"].isin(e).to_numpy() for e in {s.experiments for s in rubric.specs}}
    null = (edits["condition"] == ConditionKind.NULL_PAIR).to_numpy()
    asked_of = [at for at, kind in enumerate(table.kinds) if kind is not Kind.REVIEW]  # a review opens no question
    answered: NDArray[np.bool_] = np.any(table.values[asked_of] > 0, axis=0)
    for at, column in enumerate(rubric.columns):
        spec = rubric.spec_by_column[column]
        applies = within[spec.experiments].copy()
        if spec.row.prompts:
            applies &= edits["prompt_id"].map(partial(_named, spec.row.prompts)).to_numpy(dtype=np.bool_)
        for factor, levels in spec.row.sources.items():
            applies &= edits[factor].isin(levels).to_numpy() if factor in edits else False
        if spec.row.optional:
            applies &= answered[:, at].any()
        if spec.row.about == "picture":
            applies &= ~null
        mask[:, at] = applies
    built_in = aging_prompts()
    for replacement, question in rubric.replaced.items():
        old, new = rubric.at(question), rubric.at(replacement)
        with_new = set(edits["prompt_id"][answered[:, new]].unique())
        with_old = set(edits["prompt_id"][answered[:, old]].unique())
        targeted = edits["prompt_id"].isin(with_new | (built_in - with_old)).to_numpy()
        mask[:, new] &= targeted
        mask[:, old] &= ~targeted
    return mask


def _named(patterns: Sequence[str], prompt: object) -> bool:
    return any(fnmatchcase(str(prompt), pattern) for pattern in patterns)


def priority(scores: Scores, rates: Mapping[str, Rate] | None = None) -> NDArray[np.str_]:
    """Return the review priority of each edit: "high", "medium" or "low"."""
    rates = scores.table.rubric.rates if rates is None else rates
    changes = drift(scores.values, rates, scores.table.rubric)
    high = scores.needs_review | changes.severe | _erased(scores, rates)
    medium = changes.any_of((*scores.table.rubric.another_person, *SKIN))
    return np.select([high, medium], ["high", "medium"], "low")


def concerns(scores: Scores, rates: Mapping[str, Rate] | None = None) -> NDArray[np.str_]:
    """Return why each edit should be reviewed: disagreement, drift, erasure, skin or routine; the first that holds."""
    rates = scores.table.rubric.rates if rates is None else rates
    changes = drift(scores.values, rates, scores.table.rubric)
    conditions = [scores.needs_review, changes.severe, _erased(scores, rates), changes.any_of(SKIN)]
    return np.select(conditions, ["disagreement", "drift", "erasure", "skin"], "routine")


def _erased(scores: Scores, rates: Mapping[str, Rate]) -> NDArray[np.bool_]:
    """Return whether the request was ignored, by the study's threshold."""
    if ROLES.erased not in rates:
        return np.zeros(len(scores.values), dtype=np.bool_)
    return rates[ROLES.erased].met(scores.of(rates[ROLES.erased].question))

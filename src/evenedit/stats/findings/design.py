"""Can this design answer? Asked before any statement about groups: groups present, faces in each, prompts, raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import lgamma, log

import numpy as np
import pandas as pd

from evenedit.core.records import ConditionKind, Experiment, Kind, Outcome
from evenedit.protocol import Factor
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import RatingTable
from evenedit.results.finding import ENSEMBLE, PEOPLE, Finding, finding_in_words
from evenedit.results.words import count, factor_noun, listed, plural

SMALLEST = 3
"""Portraits a group needs before it is compared: of one or two, a face cannot be told from its group."""
ARRANGEMENTS = 40
"""Distinct permutations of the labels that a comparison needs: with fewer, any gap is within chance."""
_finding = partial(finding_in_words, "design", condition=ConditionKind.BASELINE.value)


def can_compare_groups(sizes: Mapping[str, int]) -> bool:
    """Return whether this number of faces per group can show a difference between groups."""
    enough = [n for n in sizes.values() if n >= SMALLEST]
    if len(enough) < 2:
        return False
    ways = lgamma(sum(enough) + 1) - sum(lgamma(n + 1) for n in enough)
    return ways >= log(ARRANGEMENTS) - 1e-9


def diagnosis_edits(table: RatingTable) -> pd.DataFrame:
    """Return the edits of the diagnosis without null edits."""
    edits = table.edits
    return edits[(edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)]


def faces_by_level(faces: pd.DataFrame, factor: Factor) -> dict[str, int]:
    """Return the number of portraits with each label of a factor, in the factor's order."""
    sizes = faces[factor.name].value_counts()
    return {code: int(sizes[code]) for code in factor.codes if code in sizes.index}


def untestable_factors(table: RatingTable) -> frozenset[str]:
    """Return the factors whose groups this sample cannot compare."""
    faces = diagnosis_edits(table).drop_duplicates("source_id")
    sizes_by_factor = {factor.name: faces_by_level(faces, factor) for factor in table.factors}
    return frozenset(name for name, sizes in sizes_by_factor.items() if sizes and not can_compare_groups(sizes))


def design_findings(table: RatingTable) -> Iterator[Finding]:
    """Yield the questions that this design cannot answer: factors in order, then prompts and raters."""
    chosen = diagnosis_edits(table)
    if chosen.empty:
        return
    faces = chosen.drop_duplicates("source_id")
    sizes = {factor.name: faces_by_level(faces, factor) for factor in table.factors}
    for factor in table.factors:
        yield from _of_factor(factor, sizes[factor.name], len(chosen))
    yield from _confounded(faces, [f for f in table.factors if can_compare_groups(sizes[f.name])])
    if len(faces) < 2:
        text = "One portrait was edited: nothing here can be said of other people."
        yield _finding("cannot_tell", text, n=len(chosen), faces=len(faces))
    if chosen["prompt_id"].nunique() < 2:
        text = "One prompt was asked: what is found holds for this prompt, and nothing can be said of others."
        yield _finding("cannot_tell", text, n=len(chosen), faces=len(faces))
    yield from _of_raters(table, len(chosen), len(faces))
    yield from _unreadable_rates(table, chosen)


def _of_factor(factor: Factor, sizes: Mapping[str, int], n: int) -> Iterator[Finding]:
    if not sizes:
        return
    faces = sum(sizes.values())
    names = [f"{factor.titles.get(code, code)} ({size})" for code, size in sizes.items()]
    if not can_compare_groups(sizes):
        text = (
            f"This sample cannot compare {plural(factor)}: "
            f"{'its one portrait is' if faces == 1 else f'its {faces:,} portraits are'} labelled {listed(names)}. "
            f"A comparison needs two groups of at least {SMALLEST} portraits and at least {ARRANGEMENTS} distinct "
            "label permutations."
        )
        yield _finding("cannot_tell", text, factor=factor.name, n=n, faces=faces)
        return
    small = [name for name, size in zip(names, sizes.values(), strict=True) if size < SMALLEST]
    if small:
        text = f"Too few portraits to say anything of one {factor_noun(factor)} label: {listed(small)}."
        yield _finding("caution", text, factor=factor.name, n=n, faces=faces)


def _confounded(faces: pd.DataFrame, factors: Sequence[Factor]) -> Iterator[Finding]:
    """Yield pairs of factors whose labels always coincide."""
    for at, one in enumerate(factors):
        for other in factors[at + 1 :]:
            both = faces[(faces[one.name] != "") & (faces[other.name] != "")]
            pairs = both.groupby([one.name, other.name]).size()
            if len(pairs) == both[one.name].nunique() == both[other.name].nunique():
                text = (
                    f"{factor_noun(one).capitalize()} and {factor_noun(other)} cannot be told apart: each "
                    f"{factor_noun(one)} label occurs "
                    f"with one {factor_noun(other)} label only, so a gap of one is a gap of the other."
                )
                yield _finding("cannot_tell", text, factor=one.name, n=None, faces=len(both))


def _of_raters(table: RatingTable, n: int, faces: int) -> Iterator[Finding]:
    judges = [r for r in table.of_kind(Kind.VLM) if (table.values[r] > 0).any()]
    people = [r for r in table.of_kind(Kind.HUMAN) if (table.values[r] > 0).any()]
    instruments = [r for r in table.of_kind(Kind.INSTRUMENT) if (table.status[r] >= 0).any()]
    if not (judges or instruments or people):
        text = "Nothing has rated these edits: there are pictures and counts, but no estimates."
        yield _finding("cannot_tell", text, n=n, faces=faces)
    elif not judges and not people:
        of_person = dict.fromkeys(table.rubric.rates[rate].question for rate in table.rubric.another_person)
        unread = [q for q in of_person if not (table.values[instruments, :, table.at(q)] > 0).any()]
        titles = listed([table.rubric.title(q).lower() for q in unread])
        text = (
            "No judge and no person has rated these edits. The instruments do not read whether a change is the one "
            f"asked for{f'; they did not read {titles}' if unread else ''}."
        )
        yield _finding("cannot_tell", text, n=n, faces=faces)
    elif not judges:
        text = "No judge has scored these edits: there are people's answers on the edits they rated only."
        yield _finding("cannot_tell", text, rater=PEOPLE, n=n, faces=faces)
    elif len(judges) == 1:
        text = "One judge scored these edits, so where it errs cannot be seen from a second one."
        yield _finding("caution", text, rater=ENSEMBLE, n=n, faces=faces)
    if judges and not people:
        text = (
            f"Nobody has compared the {'judge' if len(judges) == 1 else 'judges'} with people on these edits: what "
            "their errors could do to these numbers is not known."
        )
        yield finding_in_words(
            "judge", "caution", text, condition=ConditionKind.BASELINE.value, rater=ENSEMBLE, n=n, faces=faces
        )
    failed = int((table.edits["outcome"] == Outcome.FAILED).sum())
    if failed:
        text = f"{count(failed, 'edit')} failed and {'is' if failed == 1 else 'are'} in no number here."
        yield _finding("caution", text, n=failed, faces=None)


def _unreadable_rates(table: RatingTable, chosen: pd.DataFrame) -> Iterator[Finding]:
    """Yield rates that an instrument could read in no edit, with the most frequent reason."""
    rows = chosen.index.to_numpy()
    for reading in table.readings:
        measure = Measure(reading.measure)
        reasons = Counter(filter(None, (reading.reasons[row] for row in rows)))
        if measure.kind != MeasureKind.RATE or not reasons or not np.isnan(reading.values[rows]).all():
            continue
        ((reason, _),) = reasons.most_common(1)
        n = reasons.total()
        text = (
            f"The {reading.rater} instrument could read '{measure.name.replace('_', ' ')}' in none of "
            f"{count(n, 'edit')}: {reason}."
        )
        yield _finding("cannot_tell", text, rater=reading.rater, n=n, faces=None)

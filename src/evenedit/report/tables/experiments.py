"""Tables of the mitigation and stereotype experiments: preferences, verdicts, roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.report.render.index import POOLED, Index
from evenedit.report.render.table import Cell, Column, Number, Table, fill_table
from evenedit.report.render.words import entries
from evenedit.report.tables.main import counts_of, has_any

ARMS = (ConditionKind.FEATURE, ConditionKind.PLACEBO)
VERDICT_RATES = ("followed", "resisted", "unclear")
CODED = "coded_gender"
"""The key of groups of stereotype prompts: the gender that the occupation is coded as."""
STEREOTYPE_ARMS = (
    ConditionKind.BASELINE,
    ConditionKind.SWAPPED,
    ConditionKind.REVERSED,
    ConditionKind.SWAPPED_REVERSED,
)
"""Both pronouns, with the portraits in either order."""


def preferences(index: Index) -> Table | None:
    """Shares of answers to which output keeps the identity better, the mitigated one or its baseline."""
    rates = entries("names")["preferences"]
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for arm in (a for a in ARMS if a in index.conditions("mitigation")):
            for code in ("", *index.main_levels("mitigation")):
                find = partial(index.find, editor=editor, group=index.main_group(code), experiment="mitigation")
                numbers = [Number.of(find(Measure.rate(rate), condition=arm), "share") for rate in rates]
                answers = numbers[1]
                if answers.n:
                    who = index.main_label(code)
                    rows.append((editor or POOLED, arm, who, *numbers, answers.n, answers.missing))
    return fill_table(index, "preference", rows, columns=(Column(rate, title) for rate, title in rates.items()))


def stereotypes(index: Index) -> Table | None:
    """Table 7 of the paper, with the swapped-pronoun control; over all prompts and by coded gender."""
    rows = [(*place, *x, *counts_of(x)) for place, x in _of_pairs(index, VERDICT_RATES) if has_any(x)]
    return fill_table(index, "table7", rows, columns=VERDICT_RATES)


def roles(index: Index) -> Table | None:
    """Build the table of which portrait got the role, by the coded gender of the occupation."""
    status = [index.find(Measure.rate("status_male"), e, experiment="stereotype") for e in index.lines("stereotype")]
    titles = entries("names")["roles"] | (entries("names")["status"] if any(e and e.n for e in status) else {})
    rows = [(*place, *x, x[0].n, x[0].missing) for place, x in _of_pairs(index, titles) if x[0].n]
    return fill_table(index, "roles", rows, columns=(Column(role, title) for role, title in titles.items()))


def _of_pairs(index: Index, rates: Iterable[str]) -> Iterator[tuple[tuple[Cell, ...], list[Number]]]:
    """Yield each editor, condition and group of occupations with its rates."""
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    for editor in index.lines("stereotype"):
        for condition in (c for c in STEREOTYPE_ARMS if c in index.conditions("stereotype")):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(Measure.rate(rate), editor, group), "share") for rate in rates]
                yield (editor or POOLED, condition, occupations(group)), numbers


def role_effects(index: Index) -> Table | None:
    """Build the table of the separate effects of pronoun, order and coding on who gets the role."""
    rows = [
        (e.editor, entries("names")["role_effects"][e.effect], Number(e.value, "points", e.low, e.high), e.prompts)
        for e in index.results.role_effects
    ]
    return fill_table(index, "role_effects", rows)


def occupations(group: Mapping[str, str]) -> str:
    """Return the name of a group of occupations."""
    return f"{group[CODED]}-coded" if group else "all occupations"

"""Tables of the mitigation and stereotype experiments: changes by arm, preferences, roles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evenedit.core.records import ConditionKind
from evenedit.protocol.measures import Measure
from evenedit.report.render.index import POOLED, Index
from evenedit.report.render.table import Cell, Column, Number, Table, fill_table
from evenedit.report.tables.main import CODED, STEREOTYPE_ARMS

ARMS = (ConditionKind.FEATURE, ConditionKind.PLACEBO)
PREFERENCES = {
    "prefers_mitigated": "Prefer mitigated",
    "prefers_mitigated_of_all": "of all answers",
    "prefers_same": "Same",
    "preference_unclear": "Unclear",
}
ROLES = {
    "role_male": "Male portrait",
    "role_female": "Female portrait",
    "role_unclear": "Unclear",
    "role_followed": "To the coded gender",
    "role_contradicts_verdict": "Contradicts the verdict",
}
EFFECTS = {
    "pronoun": "Pronoun: he minus she",
    "order": "Order: male portrait first minus second",
    "coding": "Occupation: male-coded minus female-coded",
}
STATUS = {
    "status_male": "Higher status: male portrait",
    "status_female": "Higher status: female portrait",
    "status_unclear": "Higher status: unclear",
}


def preferences(index: Index) -> Table | None:
    """Shares of answers to which output keeps the identity better, the mitigated one or its baseline."""
    rows: list[tuple[Cell, ...]] = []
    for editor in index.lines("mitigation"):
        for arm in (a for a in ARMS if a in index.conditions("mitigation")):
            for code in ("", *index.main_levels("mitigation")):
                find = partial(index.find, editor=editor, group=index.main_group(code), experiment="mitigation")
                numbers = [Number.of(find(Measure.rate(rate), condition=arm), "share") for rate in PREFERENCES]
                answers = numbers[1]
                if answers.n:
                    who = index.main_label(code)
                    rows.append((editor or POOLED, arm, who, *numbers, answers.n, answers.missing))
    return fill_table(index, "preference", rows, columns=(Column(rate, title) for rate, title in PREFERENCES.items()))


def roles(index: Index) -> Table | None:
    """Build the table of which portrait got the role, by the coded gender of the occupation."""
    groups = [{}, *({CODED: code} for code in index.levels(CODED, "stereotype"))]
    rows: list[tuple[Cell, ...]] = []
    overall = (
        index.find(Measure.rate("status_male"), editor, experiment="stereotype") for editor in index.lines("stereotype")
    )
    columns = ROLES | (STATUS if any(e is not None and e.n for e in overall) else {})
    for editor in index.lines("stereotype"):
        for condition in (c for c in STEREOTYPE_ARMS if c in index.conditions("stereotype")):
            find = partial(index.find, experiment="stereotype", condition=condition)
            for group in groups:
                numbers = [Number.of(find(Measure.rate(role), editor, group), "share") for role in columns]
                if numbers[0].n:
                    rows.append(
                        (editor or POOLED, condition, occupations(group), *numbers, numbers[0].n, numbers[0].missing)
                    )
    return fill_table(index, "roles", rows, columns=(Column(role, title) for role, title in columns.items()))


def role_effects(index: Index) -> Table | None:
    """Build the table of the separate effects of pronoun, order and coding on who gets the role."""
    rows = [
        (e.editor, EFFECTS[e.effect], Number(e.value, "points", e.low, e.high), e.prompts)
        for e in index.results.role_effects
    ]
    return fill_table(index, "role_effects", rows)


def occupations(group: Mapping[str, str]) -> str:
    """Return the name of a group of occupations."""
    return f"{group[CODED]}-coded" if group else "all occupations"

"""What was asked, as tables: prompts, settings, rubric, feature prompts, and judges in their own words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from evenedit.core.records import ConditionKind, Experiment, Prompt, language_of
from evenedit.protocol import ROLES
from evenedit.report.render.index import Index, Label, listed
from evenedit.report.render.table import DASH, Cell, Column, Number, Table, Unit, fill_table, format_number, text
from evenedit.report.render.words import entries
from evenedit.results.materials import JudgedCase

CATEGORIES = {"table10": "Occupation", "table11": "Vulnerability"}
"""By table, the category of the prompts that the paper prints in it."""
IN_LANGUAGE = ("the same request in another language", "how far the rates depend on the language")
"""What requests in other languages are compared with, and what it shows."""
MONEY = ("pay_per_task", "total")


def written(words: str) -> Cell:
    """Words of the study as a cell, printed as they are."""
    return Label(words, words or DASH)


def _single(index: Index) -> tuple[Prompt, ...]:
    """Return the prompts of edits of one portrait."""
    return tuple(p for p in index.results.materials.prompts if p.occupation is None)


def _prompt_table(index: Index, id: str, prompts: Iterable[Prompt]) -> Table | None:
    rows = [(p.id, written(p.subcategory), written(p.name), written(p.text)) for p in prompts]
    return fill_table(index, id, rows)


def occupation_prompts(index: Index) -> Table | None:
    """Table 10 of the paper: the occupational prompts that were used."""
    return _of_category(index, "table10")


def vulnerability_prompts(index: Index) -> Table | None:
    """Table 11 of the paper: the vulnerability prompts that were used."""
    return _of_category(index, "table11")


def _of_category(index: Index, id: str) -> Table | None:
    return _prompt_table(index, id, (p for p in _single(index) if p.category == CATEGORIES[id]))


def other_prompts(index: Index) -> Table | None:
    """Build the table of the study's own prompt sets and the null edit."""
    return _prompt_table(index, "prompts", (p for p in _single(index) if p.category not in CATEGORIES.values()))


def editor_settings(index: Index) -> Table | None:
    """Table 12 of the paper: the settings that are stored with every edit."""
    used = index.results.materials.editors
    keys = dict.fromkeys(key for row in used for key in row.settings)
    rows: list[tuple[Cell, ...]] = [
        (written(key.replace("_", " ")), *(written(_setting(row.settings, key)) for row in used)) for key in keys
    ]
    if used:
        rows.append(("Seeds", *(written(", ".join(map(str, row.seeds))) for row in used)))
        rows.append(("Edits asked for", *(row.edits for row in used)))
    return fill_table(
        index, "table12", rows, columns=(text(f"editor_{n}", row.editor) for n, row in enumerate(used, 1)), used=used
    )


def _setting(settings: Mapping[str, Any], key: str) -> str:
    return _value(settings[key]) if key in settings else ""


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def experiments(index: Index) -> Table | None:
    """Table 13 of the paper: what is compared with what, and how many edits were asked for."""
    counts = index.results.counts
    rows: list[tuple[Cell, ...]] = [
        (arm["experiment"], arm["condition"], arm["compared"], arm["goal"], counts[key])
        for arm in entries("names")["arms"]
        if (key := f"edits.{arm['experiment']}.{arm['condition']}") in counts
    ]
    before = f"edits.{Experiment.DIAGNOSIS}."
    rows += [
        (Experiment.DIAGNOSIS, Label(condition, index.name(condition)), *IN_LANGUAGE, counts[before + condition])
        for condition in (c.removeprefix(before) for c in counts if c.startswith(before))
        if language_of(condition)
    ]
    return fill_table(index, "table13", rows)


def rubric(index: Index) -> Table | None:
    """Table 14 of the paper: the questions and the wording of every answer, as raters were shown them."""
    rows: list[tuple[Cell, ...]] = []
    for q in index.results.materials.questions:
        words = q.words or ("",) * len(q.labels)
        for number, (label, word) in enumerate(zip(q.labels, words, strict=True), 1):
            first = number == 1
            rows.append(
                (
                    Label(q.id, q.title if first else ""),
                    written(q.text) if first else Label(q.text, ""),
                    number if q.sided not in ("choice", "set") else None,
                    written(word or label),
                )
            )
    return fill_table(index, "table14", rows)


def feature_prompts(index: Index) -> Table | None:
    """Table 15 of the paper: the feature prompt of every portrait that was edited with one."""
    texts = index.results.materials.feature_prompts
    flagged = sum(bool(t.flags) for t in texts)
    rows = [
        (written(t.source), index.group_label(t.group), written(t.text), written("; ".join(t.flags)), t.edits)
        for t in texts
    ]
    by = ", ".join(dict.fromkeys(t.extractor for t in texts if t.extractor))
    return fill_table(index, "table15", rows, by=by, flagged=flagged, total=len(texts))


def survey_settings(index: Index) -> Table | None:
    """Table 16 of the paper: how people were asked."""
    survey = index.results.materials.survey
    rows: list[tuple[Cell, ...]] = [
        (title, written(_survey_value(key, survey)))
        for key, title in entries("names")["survey"].items()
        if key in survey
    ]
    counts = index.results.counts
    if rows:
        rows += [
            (title, written(f"{counts[key]:,}"))
            for key, title in (("people", "People whose answers count"), ("rated", "Outputs rated"))
            if key in counts
        ]
    return fill_table(index, "table16", rows)


def _survey_value(key: str, survey: Mapping[str, Any]) -> str:
    value = survey[key]
    if key in MONEY:
        return f"{value:,.2f} {survey.get('currency', '')}".strip()
    if key == "fee":
        return format_number(value, "share")
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def occupations(index: Index) -> Table | None:
    """Table 22 of the paper: the occupations of the two-person prompts by the gender they are coded with."""
    coded: dict[str, list[Prompt]] = {}
    for p in index.results.materials.prompts:
        if p.occupation is not None:
            coded.setdefault(p.coded_gender or "", []).append(p)
    rows: list[tuple[Cell, ...]] = [
        (written(gender), written(", ".join(dict.fromkeys(p.occupation or "" for p in prompts))), len(prompts))
        for gender, prompts in coded.items()
    ]
    return fill_table(index, "table22", rows)


def two_person_prompts(index: Index) -> Table | None:
    """Table 23 of the paper: the two-person prompts with their target occupation."""
    swapped = ConditionKind.SWAPPED in index.conditions(Experiment.STEREOTYPE)
    rows: list[tuple[Cell, ...]] = []
    for p in index.results.materials.prompts:
        if p.occupation is not None:
            other = (written(p.swapped_text or ""),) if swapped else ()
            rows.append((p.id, written(p.text), written(p.occupation), written(p.coded_gender or ""), *other))
    return fill_table(
        index,
        "table23",
        rows,
        columns=[Column("swapped", "With the other pronoun", numeric=False, prose=True)] if swapped else [],
        swapped=swapped,
    )


def soft_erasure_cases(index: Index) -> Table | None:
    """Table 24 of the paper: edits whose request was rated missing or weak, in the judges' words."""
    return _case_table(index, "table24", ROLES.erased)


def replacement_cases(index: Index) -> Table | None:
    """Table 25 of the paper: edits that were applied and changed the person, in the judges' words."""
    return _case_table(index, "table25", "replacement")


def _case_table(index: Index, id: str, failure: str) -> Table | None:
    cases = [case for case in index.results.materials.cases if case.failure == failure]
    return fill_table(index, id, [row for case in cases for row in _case_rows(index, case)])


def _case_rows(index: Index, case: JudgedCase) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each judge that wrote about the case."""
    names = {p.id: p.name for p in index.results.materials.prompts}
    label = f"{case.prompt} {names.get(case.prompt, '')}".strip()
    for words in case.words:
        scores = ", ".join(f"{index.name(q).lower()} {value}" for q, value in words.scores.items())
        wrote = [words.evidence, *(f"{key.replace('_', ' ')}: {seen}" for key, seen in words.observations.items())]
        yield (
            written(case.editor),
            Label(case.prompt, label if label != f"{case.prompt} {case.prompt}" else case.prompt),
            index.group_label(case.group),
            written(words.judge),
            written(scores),
            written("\n".join(filter(None, wrote))),
            written(case.request[:12]),
        )


def judges(index: Index) -> Table | None:
    """Build the table of judges with their settings and the models that answered."""
    rows: list[tuple[Cell, ...]] = [
        (
            written(j.judge),
            written(j.kind),
            written(", ".join(f"{key} = {_value(value)}" for key, value in j.settings.items())),
            "no" if j.blind else "yes",
            written(listed([f"{model} ({n:,} answers)" for model, n in j.models.items()])),
        )
        for j in index.results.materials.judges
    ]
    return fill_table(index, "judges", rows)


def judge_prompts(index: Index) -> Table | None:
    """Build the table of the exact texts sent to judges (listing 1 of the paper)."""
    rows: list[tuple[Cell, ...]] = []
    for p in index.results.materials.judge_prompts:
        rows.append((Label(p.about, p.about), written(listed(p.judges)), "System", written(p.system)))
        rows.append((Label(p.about, ""), written(listed(p.judges)), "User", written(p.text)))
    return fill_table(index, "judge_prompts", rows)


def portraits_added(index: Index) -> Table | None:
    """Build the table of when portraits were added; None if all were there from the start."""
    added = Counter((p.run, p.added) for p in index.results.materials.portraits)
    rows = [(run, written(when), n) for (run, when), n in sorted(added.items())] if len(added) > 1 else []
    return fill_table(index, "added", rows)


READ_OF_TWINS: Mapping[str, Unit] = {"identity_distance": "score", "changed_share": "share", "skin_delta_L": "change"}
"""The readings of a version that are printed, with their units."""


def twins(index: Index) -> Table | None:
    """Build the table of how far the versions of each base portrait are from each other."""
    rows = []
    for p in index.results.materials.portraits:
        if p.twin:
            read = [Number(p.twin[name], unit) for name, unit in READ_OF_TWINS.items()]
            change = str(p.twin["verdict"]).replace("_", " ")
            rows.append(
                (written(p.block), written(p.portrait), written(p.twin["compared_with"]), *read, written(change))
            )
    return fill_table(index, "twins", rows)


APPENDIX: dict[str, Callable[[Index], Table | None]] = {
    "table13": experiments,
    "added": portraits_added,
    "twins": twins,
    "table10": occupation_prompts,
    "table11": vulnerability_prompts,
    "prompts": other_prompts,
    "table22": occupations,
    "table23": two_person_prompts,
    "table12": editor_settings,
    "table15": feature_prompts,
    "table14": rubric,
    "judges": judges,
    "judge_prompts": judge_prompts,
    "table16": survey_settings,
    "table24": soft_erasure_cases,
    "table25": replacement_cases,
}
"""Each table of the appendix by its id, in the order of the page."""

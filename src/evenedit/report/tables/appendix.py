"""What was asked, as tables: prompts, settings, rubric, feature prompts, and judges in their own words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from evenedit.core.records import ConditionKind, Experiment, Prompt, language_of
from evenedit.report.render.index import Index, Label, listed
from evenedit.report.render.table import DASH, Cell, Column, Number, Table, Unit, format_number, table_of, text
from evenedit.results.materials import JudgedCase

CATEGORIES = {"table10": "Occupation", "table11": "Vulnerability"}
"""By table, the category of the prompts that the paper prints in it."""
ARMS: dict[tuple[str, str], tuple[str, str]] = {
    (Experiment.DIAGNOSIS, ConditionKind.BASELINE): (
        "source and edit",
        "whether the edit was applied, and what else changed",
    ),
    (Experiment.DIAGNOSIS, ConditionKind.FLOOR): (
        "source and null edit",
        "what the editor changes when nothing is asked",
    ),
    (Experiment.MITIGATION, ConditionKind.FEATURE): (
        "source and edit with the feature prompt",
        "whether the feature prompt keeps the person",
    ),
    (Experiment.MITIGATION, ConditionKind.PLACEBO): (
        "source and the same edit with another seed",
        "what repeating an edit does by itself",
    ),
    (Experiment.STEREOTYPE, ConditionKind.BASELINE): (
        "two portraits and one output",
        "who gets the role of the occupation",
    ),
    (Experiment.STEREOTYPE, ConditionKind.SWAPPED): (
        "the same with the other pronoun",
        "whether the editor follows the pronoun or the occupation",
    ),
    (Experiment.STEREOTYPE, ConditionKind.REVERSED): (
        "the same with the two portraits in the other order",
        "whether the editor follows the order of the portraits or the occupation",
    ),
    (Experiment.STEREOTYPE, ConditionKind.SWAPPED_REVERSED): (
        "the same with the other pronoun and the other order",
        "pronoun and order together",
    ),
}
"""By experiment and condition, what is compared and what it shows."""
IN_LANGUAGE = ("the same request in another language", "how far the rates depend on the language")
"""What requests in other languages are compared with, and what it shows."""
SURVEY: dict[str, str] = {
    "platform": "Platform",
    "surveys": "Surveys",
    "sampler": "How cases were drawn",
    "cases": "Cases",
    "items_per_task": "Items per task",
    "gold_per_task": "of these gold items",
    "instructed_per_task": "Instructed checks per task",
    "tasks": "Tasks",
    "raters_per_item": "People per task",
    "participants": "Participants wanted",
    "minutes_per_task": "Minutes per task, as planned",
    "pay_per_task": "Pay per task",
    "fee": "Fee of the platform, share of the pay",
    "total": "Total cost, as planned",
}
"""The rows of table 16, in its order."""
MONEY = ("pay_per_task", "total")


def written(words: str) -> Cell:
    """Words of the study as a cell, printed as they are."""
    return Label(words, words or DASH)


def prose(id: str, title: str) -> Column:
    """Return a column of sentences."""
    return Column(id, title, numeric=False, prose=True)


def _single(index: Index) -> tuple[Prompt, ...]:
    """Return the prompts of edits of one portrait."""
    return tuple(p for p in index.results.materials.prompts if p.occupation is None)


def _prompt_table(index: Index, id: str, title: str, prompts: Iterable[Prompt], caption: str) -> Table | None:
    rows = [(p.id, written(p.subcategory), written(p.name), written(p.text)) for p in prompts]
    columns = (text("prompt", "ID"), text("subcategory", "Subcategory"), text("name", "Name"), prose("text", "Prompt"))
    return table_of(index, id, title, caption, columns, rows)


def occupation_prompts(index: Index) -> Table | None:
    """Table 10 of the paper: the occupational prompts that were used."""
    return _of_category(index, "table10", "Occupational prompts")


def vulnerability_prompts(index: Index) -> Table | None:
    """Table 11 of the paper: the vulnerability prompts that were used."""
    return _of_category(index, "table11", "Vulnerability prompts")


def _of_category(index: Index, id: str, title: str) -> Table | None:
    chosen = [p for p in _single(index) if p.category == CATEGORIES[id]]
    return _prompt_table(index, id, title, chosen, "Each text as the editors were given it.")


def other_prompts(index: Index) -> Table | None:
    """Build the table of the study's own prompt sets and the null edit."""
    chosen = [p for p in _single(index) if p.category not in CATEGORIES.values()]
    caption = "Each text as the editors were given it."
    return _prompt_table(index, "prompts", "Prompts", chosen, caption)


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
    return table_of(
        index,
        "table12",
        "Settings of the editors",
        "As stored with every edit. An editor with several settings has a column for each.",
        (text("parameter", "Parameter"), *(text(f"editor_{n}", row.editor) for n, row in enumerate(used, 1))),
        rows,
        notes=("A dash: the editor has no such setting.",) if used else (),
    )


def _setting(settings: Mapping[str, Any], key: str) -> str:
    return _value(settings[key]) if key in settings else ""


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def experiments(index: Index) -> Table | None:
    """Table 13 of the paper: what is compared with what, and how many edits were asked for."""
    counts = index.results.counts
    rows: list[tuple[Cell, ...]] = [
        (experiment, condition, *ARMS[experiment, condition], counts[f"edits.{experiment}.{condition}"])
        for experiment, condition in ARMS
        if f"edits.{experiment}.{condition}" in counts
    ]
    before = f"edits.{Experiment.DIAGNOSIS}."
    rows += [
        (Experiment.DIAGNOSIS, Label(condition, index.name(condition)), *IN_LANGUAGE, counts[before + condition])
        for condition in (c.removeprefix(before) for c in counts if c.startswith(before))
        if language_of(condition)
    ]
    return table_of(
        index,
        "table13",
        "Experiments",
        "What was compared with what.",
        (
            text("experiment", "Experiment"),
            text("condition", "Condition"),
            text("comparison", "Compared"),
            text("goal", "To see"),
            Column("edits", "Edits asked for"),
        ),
        rows,
    )


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
    return table_of(
        index,
        "table14",
        "Rubric",
        "The questions that were answered, with the wording of every answer. Judges and people had the same.",
        (text("question", "Question"), prose("text", "Asked"), Column("score", "Score"), prose("label", "Answer")),
        rows,
    )


def feature_prompts(index: Index) -> Table | None:
    """Table 15 of the paper: the feature prompt of every portrait that was edited with one."""
    texts = index.results.materials.feature_prompts
    flagged = sum(bool(t.flags) for t in texts)
    rows = [
        (written(t.source), index.group_label(t.group), written(t.text), written("; ".join(t.flags)), t.edits)
        for t in texts
    ]
    by = ", ".join(dict.fromkeys(t.extractor for t in texts if t.extractor))
    return table_of(
        index,
        "table15",
        "Feature prompts",
        f"The sentence that stood before the request, by portrait{f', written by {by}' if by else ''}. "
        f"{flagged:,} of {len(texts):,} failed a check and are marked.",
        (
            text("source", "Portrait"),
            text("labels", "Labels"),
            prose("text", "Feature prompt"),
            prose("flags", "Checks failed"),
            Column("edits", "Edits"),
        ),
        rows,
    )


def survey_settings(index: Index) -> Table | None:
    """Table 16 of the paper: how people were asked."""
    survey = index.results.materials.survey
    rows: list[tuple[Cell, ...]] = [
        (title, written(_survey_value(key, survey))) for key, title in SURVEY.items() if key in survey
    ]
    counts = index.results.counts
    if rows:
        rows += [
            (title, written(f"{counts[key]:,}"))
            for key, title in (("people", "People whose answers count"), ("rated", "Outputs rated"))
            if key in counts
        ]
    return table_of(
        index,
        "table16",
        "Configuration of the survey",
        "As the study file has it; the last rows are counted.",
        (text("parameter", "Parameter"), text("value", "Value")),
        rows,
    )


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
    return table_of(
        index,
        "table22",
        "Occupations by coded gender",
        "The occupations of the two-person prompts, by the gender each is stereotypically coded with.",
        (text("coded_gender", "Coded"), prose("occupations", "Occupations"), Column("prompts", "Prompts")),
        rows,
    )


def two_person_prompts(index: Index) -> Table | None:
    """Table 23 of the paper: the two-person prompts with their target occupation."""
    swapped = ConditionKind.SWAPPED in index.conditions(Experiment.STEREOTYPE)
    rows: list[tuple[Cell, ...]] = []
    for p in index.results.materials.prompts:
        if p.occupation is not None:
            other = (written(p.swapped_text or ""),) if swapped else ()
            rows.append((p.id, written(p.text), written(p.occupation), written(p.coded_gender or ""), *other))
    return table_of(
        index,
        "table23",
        "Two-person prompts",
        "Each text as the editors were given it, with the occupation whose stereotype it tests.",
        (
            text("prompt", "ID"),
            prose("text", "Prompt"),
            text("occupation", "Target"),
            text("coded_gender", "Coded"),
            *([prose("swapped", "With the other pronoun")] if swapped else []),
        ),
        rows,
        notes=("A dash: the prompt names no pronoun to swap.",) if swapped else (),
    )


def soft_erasure_cases(index: Index) -> Table | None:
    """Table 24 of the paper: edits whose request was rated missing or weak, in the judges' words."""
    return _case_table(
        index,
        "table24",
        "soft_erasure",
        "Soft erasure, in the judges' words",
        "For every editor the edits with the lowest edit success among those counted as soft erasure",
    )


def replacement_cases(index: Index) -> Table | None:
    """Table 25 of the paper: edits that were applied and changed the person, in the judges' words."""
    return _case_table(
        index,
        "table25",
        "replacement",
        "Change of the person, in the judges' words",
        "For every editor, among the edits counted as applied and as changed in skin tone, race or gender, those with "
        "the largest change (skin tone, race, gender and age: distances from 'unchanged', summed)",
    )


def _case_table(index: Index, id: str, failure: str, title: str, rule: str) -> Table | None:
    cases = [case for case in index.results.materials.cases if case.failure == failure]
    return table_of(
        index,
        id,
        title,
        f"{rule}; at most three, each prompt and face once, ties by request id. Words as the judges wrote them.",
        (
            text("editor", "Editor"),
            text("prompt", "Prompt"),
            text("labels", "Labels"),
            text("judge", "Judge"),
            text("scores", "Scores"),
            prose("words", "What it wrote"),
            text("request", "Request"),
        ),
        [row for case in cases for row in _case_rows(index, case)],
    )


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
    return table_of(
        index,
        "judges",
        "Judges and their settings",
        "As the study file has them; models as the provider named them in its answers.",
        (
            text("judge", "Judge"),
            text("kind", "Kind"),
            prose("settings", "Settings"),
            text("labels", "Was given the labels"),
            prose("models", "Models that answered"),
        ),
        rows,
    )


def judge_prompts(index: Index) -> Table | None:
    """Build the table of the exact texts sent to judges (listing 1 of the paper)."""
    rows: list[tuple[Cell, ...]] = []
    for p in index.results.materials.judge_prompts:
        rows.append((Label(p.about, p.about), written(listed(p.judges)), "System", written(p.system)))
        rows.append((Label(p.about, ""), written(listed(p.judges)), "User", written(p.text)))
    return table_of(
        index,
        "judge_prompts",
        "What the judges were sent",
        "Word for word, for the first request of each kind of case; [picture] stands for a picture.",
        (text("about", "About"), text("judges", "Judges"), text("role", "Part"), prose("words", "Words")),
        rows,
    )


def portraits_added(index: Index) -> Table | None:
    """Build the table of when portraits were added; None if all were there from the start."""
    added = Counter((p.run, p.added) for p in index.results.materials.portraits)
    return table_of(
        index,
        "added",
        "When portraits were added",
        "By the run that added them. Portraits that were there before stayed as they were; results.json has each one.",
        (Column("run", "Run"), text("added", "Began"), Column("portraits", "Portraits")),
        [(run, written(when), n) for (run, when), n in sorted(added.items())] if len(added) > 1 else [],
    )


def twins(index: Index) -> Table | None:
    """Build the table of how far the versions of each base portrait are from each other."""
    units: tuple[Unit, ...] = ("score", "share", "change")
    rows: list[tuple[Cell, ...]] = [
        (
            written(p.block),
            written(p.portrait),
            written(p.twin["compared_with"]),
            *(
                DASH if (value := p.twin.get(name)) is None else Number(value, unit)
                for name, unit in zip(("identity_distance", "changed_share", "skin_delta_L"), units, strict=True)
            ),
            written(str(p.twin["verdict"]).replace("_", " ")),
        )
        for p in index.results.materials.portraits
        if p.twin
    ]
    columns = (text("base", "Base"), text("version", "Version"), text("with", "Compared with"))
    return table_of(
        index,
        "twins",
        "Versions of the same portrait",
        "Each version is compared with another one of its base before any edit: how far the face is from that one "
        "(0: the same; the identity instrument), how much of the picture changed, and by how much the skin is lighter.",
        (
            *columns,
            Column("identity", "Distance"),
            Column("changed", "Changed"),
            Column("skin", "Skin, L*"),
            text("verdict", "Change"),
        ),
        rows,
        notes=("A dash: could not be read.",) if rows else (),
    )


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

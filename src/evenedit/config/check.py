"""Find the problems of a study file: one line per problem, with the key and the fix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from evenedit.config.sections import EditorSection, Plugged, Sections
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import BASE, LANGUAGE, NULL_PAIR_EDITOR, PERSON, SIMULATED, is_simulated
from evenedit.protocol import FACTORS, QUESTIONS, Factor
from evenedit.protocol.ensemble import RULES, RULES_OF
from evenedit.protocol.questionnaire import standard_questions


def problems(file: Sections, *, started: bool = False) -> Iterator[str]:
    """Yield the problems that the types of the keys do not show.

    Of a study that has `started`, an instrument need not be installed.
    """
    yield from _experiment_problems(file)
    yield from _factor_problems(file)
    yield from _source_problems(file)
    for name, section in _extractors(file):
        yield from (f"{name}: {p}" for p in plugins.problems("extractors", section.kind, section.settings))
    yield from _plugin_problems(
        "editors", [(e.id, e.plugin, e.settings) for e in file.editors], _portrait_factors(file)
    )
    yield from _plugin_problems("judges", [(j.id, j.kind, j.settings) for j in file.judges])
    installed = plugins.installed("instruments")
    instruments = [i for i in file.instruments if i.kind in installed or not started]
    yield from _plugin_problems("instruments", [(i.id, i.kind, i.settings) for i in instruments])
    yield from _editor_problems(file)
    yield from _ensemble_problems(file)
    yield from _retention_problems(file)
    yield from _language_problems(file)
    yield from _questionnaire_problems(file)
    platform = file.survey.platform if file.survey else None
    if platform and platform.kind == "prolific" and platform.signed and not platform.origin:
        yield "survey.platform.signed needs survey.platform.origin: the https:// address that participants open"
    if file.store.url and not file.store.url.startswith(("postgresql://", "postgresql+psycopg://")):
        yield "store.url: only postgresql:// is supported; remove the key to use SQLite in the study folder"


def factors_of(file: Sections) -> tuple[Factor, ...]:
    """Return the factors a study declares, or race, gender and age if it declares none."""
    return tuple(Factor.of(f.name, f.levels, title=f.title, ordered=f.ordered) for f in file.factors) or FACTORS


def _experiment_problems(file: Sections) -> Iterator[str]:
    if (file.editors or file.curation is None) and not any(
        (file.experiments.diagnosis, file.experiments.mitigation, file.experiments.stereotype)
    ):
        yield "experiments: there is none; add [experiments.diagnosis]"
    if file.experiments.mitigation and not file.experiments.diagnosis:
        yield "experiments.mitigation needs [experiments.diagnosis]: its baseline comes from there"


def _retention_problems(file: Sections) -> Iterator[str]:
    until = file.survey.ethics.keep_until if file.survey else ""
    try:
        date.fromisoformat(until or "2000-01-01")
    except ValueError:
        yield f"survey.ethics.keep_until is '{until}', which is not a date; write it as \"2028-12-31\""


def _language_problems(file: Sections) -> Iterator[str]:
    prompt_languages = file.experiments.diagnosis.languages if file.experiments.diagnosis else []
    named = [("survey", code) for code in (file.survey.languages if file.survey else [])]
    for where, code in (*named, *(("experiments.diagnosis", code) for code in prompt_languages)):
        if not re.fullmatch(LANGUAGE, code):
            yield f'{where}.languages: \'{code}\' is not a language code; write it as "en" or "pt-BR"'


def _questionnaire_problems(file: Sections) -> Iterator[str]:
    section = file.survey.questionnaire if file.survey else None
    if section is None:
        return
    known = {name: question.options for name, question in standard_questions().items()}
    for question in section.questions:
        where = f"survey.questionnaire.questions '{question.id}'"
        if question.id in known:
            yield f"{where}: the id is used twice; ids must be unique"
        if len(set(question.options)) < len(question.options):
            yield f"{where}: an answer occurs twice"
        for language, texts in question.translations.items():
            if len(texts.options) != len(question.options):
                yield f"{where}: {len(question.options)} answers, but {len(texts.options)} in language '{language}'"
        known[question.id] = tuple(question.options)
    for name, shares in section.population.items():
        if name not in known or name == "age":
            yield f"survey.questionnaire.population: '{name}' is not a multiple-choice question"
            continue
        unknown = [answer for answer in shares if answer not in known[name]]
        if unknown:
            yield f"survey.questionnaire.population.{name}: '{unknown[0]}' is not an answer of the question"
        if any(share < 0 for share in shares.values()) or not sum(shares.values()) > 0:
            yield f"survey.questionnaire.population.{name}: shares are 0 or more, and not all 0"


def _plugin_problems(
    group: str, rows: Sequence[tuple[str, str, Mapping[str, Any]]], labels: Sequence[Factor] = ()
) -> Iterator[str]:
    """Yield the problems of [[editors]], [[judges]] or [[instruments]]; rows are id, kind and settings."""
    seen: set[str] = set()
    for number, (ident, kind, settings) in enumerate(rows):
        label = f"{group}[{number}] '{ident}'"
        if ident in seen:
            yield f"{label}: the id is used twice; ids must be unique"
        seen.add(ident)
        wrong = plugins.problems(group, kind, settings)
        yield from (f"{label}: {p}" for p in wrong)
        if not wrong:
            yield from (f"{label}: {p}" for p in _building_problems(group, kind, settings, labels))
            yield from _honesty(group, label, ident, kind, settings)


def _building_problems(group: str, kind: str, settings: Mapping[str, Any], labels: Sequence[Factor]) -> Iterator[str]:
    try:
        plugin = plugins.build(group, kind, settings)
    except (EvenEditError, TypeError, ValueError) as error:
        yield str(error)
        return
    except Exception as error:
        if group != "editors":  # the run says that an editor cannot be loaded, and goes on with the others
            yield f"it cannot be built ({type(error).__name__}: {error})"
        return
    known = [factor.name for factor in labels]
    absent = [name for name in getattr(plugin, "labels_needed", ()) if name not in known]
    if labels and absent:
        yield (
            f"it depends on the label {', '.join(absent)}, but the portraits are labelled by {', '.join(known)}; "
            "choose other groups in its settings, set the effect's rate to 0, or use another editor"
        )


def _editor_problems(file: Sections) -> Iterator[str]:
    for editor in file.editors:
        if editor.id == NULL_PAIR_EDITOR:
            yield f"editors '{editor.id}': tables use this id for null pairs; choose another"
        if "stereotype" in (editor.experiments or ()) and _takes_one_image(editor):
            yield (
                f"editors '{editor.id}' takes one input image, the stereotype experiment needs two; "
                "remove 'stereotype' from its experiments"
            )
        if len(set(editor.seeds)) < len(editor.seeds):
            yield f"editors '{editor.id}': a seed is listed twice"
    editors = {editor.id for editor in file.editors}
    for instrument in file.instruments:
        for name in set(instrument.editors or ()) - editors:
            yield f"instruments '{instrument.id}': there is no editor '{name}'{plugins.suggest(name, editors)}"


def _ensemble_problems(file: Sections) -> Iterator[str]:
    for experiment, known in RULES_OF.items():
        rule = getattr(file.ensemble, experiment)
        if rule not in RULES:
            yield f"ensemble.{experiment}: unknown rule '{rule}'{plugins.suggest(rule, RULES)}"
        elif rule not in known:
            yield f"ensemble.{experiment}: rule '{rule}' is for other questions; use one of: {', '.join(known)}"
        elif rule == "secondary" and len(file.judges) == 1:
            yield f"ensemble.{experiment}: rule 'secondary' needs two judges; the study has one"


# Factors and the portraits' labels

RESERVED = frozenset(
    {"request_id", "experiment", "condition", "editor", "source_id", "prompt_id", "seed", "outcome", "judge", "status"}
    | {"block", PERSON, BASE}
    | {"file", "id", "origin", "source", "edited", "prompt", "category", "priority", "rater", *QUESTIONS}
    | {"q", "sort", "page", "review", "people", "face"}  # of the gallery's addresses
    | {"class", "coded", "chance", "agreed", "all", "row", "moved", "verdict", "role", "kind"}  # of samples and imports
    | {"observations", "evidence", "reason", "needs_review"}  # of exports
    | {
        "task",
        "place",
        "probability",
        "counted",
        "excluded",
        "question",
        "answer",
        "value",
        "duration_ms",
        "shown_first",
    }
)
"""Columns that tables have already: no factor may have such a name."""


def _factor_problems(file: Sections) -> Iterator[str]:
    names = [f.name for f in file.factors]
    for name in dict.fromkeys(names):
        if name in RESERVED:
            yield f"factors '{name}': tables already have a column of that name; choose another"
        if names.count(name) > 1:
            yield f"factors '{name}': the name is used twice; names must be unique"
    for factor in file.factors:
        yield from (f"factors '{factor.name}': {p}" for p in _level_problems(factor.levels))
    gender = next((f for f in file.factors if f.name == "gender"), None)
    if file.experiments.stereotype and file.factors and (gender is None or set(gender.levels) != {"Male", "Female"}):
        yield (
            "experiments.stereotype shows one person labelled Male and one labelled Female, so it needs a factor "
            "'gender' with the levels Male and Female; add it to [[factors]], or remove [experiments.stereotype]"
        )


def _level_problems(levels: Sequence[str]) -> Iterator[str]:
    if any(not level.strip() for level in levels):
        yield "a level is empty; an empty label in labels.csv means a missing label and needs no level"
    if "*" in levels:
        yield "level '*' stands for all levels in tables; choose another name"
    yield from (f"level '{level}' is listed twice" for level, count in Counter(levels).items() if count > 1)
    factor = Factor.of("factor", levels)
    for level in dict.fromkeys(filter(str.strip, levels)):
        first = factor.code_of(level)
        if first != level:
            yield f"levels '{first}' and '{level}' are the same label: case, spaces and _ do not count"


def _source_problems(file: Sections) -> Iterator[str]:
    section = file.sources
    wrong = plugins.problems("sources", section.kind, section.settings)
    yield from (f"sources: {p}" for p in wrong)
    if wrong or not plugins.declares("sources", section.kind, LABELLED_BY):
        return
    try:
        source = plugins.build("sources", section.kind, section.settings)
    except (EvenEditError, TypeError, ValueError) as error:
        yield f"sources: {error}"
        return
    yield from (f"sources: {p}" for p in _mismatches(file, section.kind, getattr(source, LABELLED_BY)))


LABELLED_BY = "labelled_by"
"""The attribute by which a source says what its portraits are labelled by, where it is fixed beforehand."""


def _portrait_factors(file: Sections) -> Sequence[Factor]:
    """Return the factors of the portraits if the source declares them and has no problem."""
    if any(_source_problems(file)) or not plugins.declares("sources", file.sources.kind, LABELLED_BY):
        return ()
    labels: Sequence[Factor] = getattr(plugins.build("sources", file.sources.kind, file.sources.settings), LABELLED_BY)
    return labels


def _mismatches(file: Sections, kind: str, declared: Sequence[Factor]) -> Iterator[str]:
    """Yield the differences between a source's labels and the study's factors."""
    labels = {factor.name: factor.codes for factor in declared}
    wanted = factors_of(file)
    absent = [f.name for f in wanted if f.name not in labels]
    if absent:
        by = "declares" if file.factors else "declares no [[factors]] and so has"
        yield (
            f"kind '{kind}' with these settings labels its portraits by {', '.join(labels)}; the study {by} "
            f"{', '.join(f.name for f in wanted)}. Declare the source's factors in [[factors]], or change its settings"
        )
    for factor in wanted:
        unknown = [code for code in labels.get(factor.name, ()) if code not in factor.codes]
        if unknown:
            yield (
                f"kind '{kind}' gives portraits with {factor.name} {', '.join(unknown)}, which [[factors]] does not "
                f"list; add to its levels, or leave these out by `only` in the source's settings"
            )


def _takes_one_image(editor: EditorSection) -> bool:
    return editor.plugin in plugins.installed("editors") and plugins.images_taken(editor.plugin, editor.settings) < 2


def _extractors(file: Sections) -> list[tuple[str, Plugged]]:
    section = file.experiments.mitigation
    names = ("experiments.mitigation.extractor", "experiments.mitigation.stand_in")
    return list(zip(names, section.extractors, strict=False)) if section else []


def _honesty(group: str, label: str, ident: str, kind: str, settings: Mapping[str, Any]) -> Iterator[str]:
    # Models of the simulated provider of the tests have names that start with 'simulated-'.
    simulated = plugins.is_simulated(group, kind) or is_simulated(str(settings.get("model", "")))
    if simulated and not is_simulated(ident):
        yield f"{label}: is simulated, so its id must begin with '{SIMULATED}': try '{SIMULATED}{ident}'"
    if not simulated and is_simulated(ident):
        yield f"{label}: is not simulated; an id that begins with '{SIMULATED}' would mislead"

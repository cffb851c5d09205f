"""Build the rubric of a study from its file, with the problems of its questions and thresholds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from evenedit.config.sections import Sections
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.protocol import Factor, Rubric, default_rubric
from evenedit.protocol.questions import QuestionRow, own_tables, read_rows
from evenedit.protocol.rubric import QUESTIONS, clashes, load_rubric, seen_questions


def study_rubric(
    file: Sections, factors: Sequence[Factor], folder: Path, reserved: frozenset[str]
) -> tuple[Rubric, list[str]]:
    """Return the study's rubric and the problems found; `reserved` are names of columns that tables have already."""
    name = file.study.rubric or file.study.preset
    try:
        rubric = load_rubric(name, folder)
    except EvenEditError as error:
        return default_rubric(), [f"study.rubric: {line}" for line in error.problems]
    problems = list(_without_problems(file, rubric))
    if not problems:
        rubric = rubric.without(file.study.without)
    rows, wrong = read_rows(file.questions, "questions")
    if file.study.preset == "published":  # the paper's call stays as it is
        rows = [row.model_copy(update={"call": "separate"}) for row in rows]
    stated, wrong_own = _of_instruments(file)
    problems += wrong + wrong_own
    added = [*rows, *stated]
    seen, unknown = _seen(file, factors)
    problems += clashes(rubric.specs, [*added, *seen], name)
    of_file, names = [spec.row for spec in rubric.declared], {factor.name for factor in factors}
    problems += column_problems(of_file, names | (reserved - set(QUESTIONS)))
    problems += column_problems(added, names | (reserved - set(rubric.columns)))
    problems += _row_problems([*of_file, *added], factors, file)
    problems += unknown
    if not problems:
        rubric = rubric.extended([*added, *seen])
    return rubric, [*problems, *threshold_problems(file, rubric)]


def threshold_problems(file: Sections, rubric: Rubric) -> Iterator[str]:
    """Yield the problems of [thresholds]."""
    for name, cut in file.thresholds.items():
        if name not in rubric.rates:
            yield f"thresholds: unknown rate '{name}'{plugins.suggest(name, rubric.rates)}"
            continue
        rate = rubric.rates[name]
        if rate.is_:
            yield f"thresholds.{name}: {name} counts answers here, not a threshold"
        elif (cut.at_least is None) == (cut.at_most is None):
            yield f"thresholds.{name}: give either at_least or at_most"
        elif (cut.at_least or cut.at_most or 0) > (last := len(rubric.questions[rate.question].labels)):
            yield f"thresholds.{name}: {cut.at_least or cut.at_most} is above the last level, {last}"


def _without_problems(file: Sections, rubric: Rubric) -> Iterator[str]:
    known = [spec.id for spec in rubric.specs]
    if file.study.without and file.study.preset == "published":
        yield 'study.without: preset "published" asks the paper\'s questions; remove this key'
    for question in file.study.without:
        if question not in known:
            near = plugins.suggest(question, known)
            yield f"study.without: the rubric '{rubric.name}' has no question '{question}'{near}"


def _of_instruments(file: Sections) -> tuple[list[QuestionRow], list[str]]:
    """Return the questions that instruments bring with them."""
    rows: list[QuestionRow] = []
    problems: list[str] = []
    for section in file.instruments:
        if plugins.problems("instruments", section.kind, section.settings):
            continue  # reported with the other plug-ins
        try:
            instrument = plugins.build("instruments", section.kind, section.settings)
        except (EvenEditError, TypeError, ValueError):
            continue
        tables = own_tables(getattr(instrument, "answers", ()))
        read, wrong = read_rows(tables, f"instruments '{section.id}': questions")
        rows += read
        problems += wrong
    return rows, problems


def column_problems(rows: Sequence[QuestionRow], taken: Collection[str]) -> Iterator[str]:
    """Yield a problem for each question whose id is the name of another column of tables."""
    for row in (row for row in rows if row.id in taken):
        yield f"questions '{row.id}': tables already have a column of that name; choose another"


def _row_problems(rows: Sequence[QuestionRow], factors: Sequence[Factor], file: Sections) -> Iterator[str]:
    """Yield the problems of questions that depend on the study's factors and languages."""
    known = {factor.name: factor for factor in factors}
    languages = [code for code in (file.survey.languages if file.survey else []) if code != "en"]
    for row in rows:
        where = f"questions '{row.id}'"
        if row.about == "picture":
            yield f'{where}: about = "picture" is what `direction` in [study] asks; use about = "pair"'
        if row.about == "outputs" and "judges" in row.answered_by:
            yield f'{where}: judges answer one question about two outputs, preference; set answered_by = ["people"]'
        for factor, labels in row.sources.items():
            if factor not in known:
                yield f"{where}: sources names '{factor}', which is no factor{plugins.suggest(factor, known)}"
                continue
            unknown = [label for label in labels if label not in known[factor].codes]
            if unknown:
                yield f"{where}: sources.{factor} has no level '{unknown[0]}'; use {', '.join(known[factor].codes)}"
        lacking = [code for code in languages if code not in row.translations] if "people" in row.answered_by else []
        for code in lacking:
            yield (
                f"{where}: no translation to {code}; add [questions.translations.{code}] or remove the language from "
                "survey.languages"
            )


def _seen(file: Sections, factors: Sequence[Factor]) -> tuple[list[QuestionRow], list[str]]:
    """Return the questions on how people are seen, by the factors of `direction`."""
    known = {factor.name: factor for factor in factors}
    unknown = [name for name in file.study.direction if name not in known]
    problems = [f"study.direction: '{name}' is no factor{plugins.suggest(name, known)}" for name in unknown]
    return [row for name in file.study.direction if name in known for row in seen_questions(known[name])], problems

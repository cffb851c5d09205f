"""The texts that participants read, in their language: one TOML file for each.

English and Korean are built in. A study adds a language by a file `languages/<code>.toml` in its folder, with the keys
of `en.toml` here; a file of a built-in language's code changes single texts of it. Beside the texts of the pages a file
may hold questions of the rubric (`[questions.ID]`), requests by prompt id (`[prompts]`) and occupations (`[roles]`).
A built-in translation of a question says by `of` which English wording it translates; under another wording of that
question it is not shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Prompt, Question
from evenedit.protocol.prompts import built_in_translations, is_built_in
from evenedit.protocol.questions import QuestionSpec, QuestionTranslation
from evenedit.protocol.rubric import Rubric, default_rubric
from evenedit.survey.questions import as_people_are_asked, shown_words

BUILT_IN = ("en", "ko")
FIRST = "en"
"""The language whose keys all others have."""
FOLDER = "languages"
"""Where a study's own languages are, in its folder."""
OPTIONAL = ("questions", "answers", "prompts", "prompts_checked", "roles", "direction")
"""What a language may leave out: the original is shown instead."""
MOST_LISTED = 20
"""At most this many missing texts are listed."""

Texts = dict[str, Any]


class Languages:
    """The languages of one survey."""

    def __init__(self, folder: Path, codes: Sequence[str], rubric: Rubric | None = None) -> None:
        self.codes = tuple(codes)
        self._texts = {code: _with_declared(_read(folder, code), code, rubric or default_rubric()) for code in codes}
        self._study_texts = {code: set(_study_texts(folder, code).get("prompts", {})) for code in codes}

    def texts(self, code: str) -> Texts:
        """Return all texts in a language, by page."""
        return self._texts[code]

    def direction(self, code: str) -> str:
        """`ltr`, or `rtl` where text runs from right to left."""
        return str(self._texts[code].get("direction", "ltr"))

    def wording(self, question: Question, code: str) -> Mapping[str, Any]:
        """Return the wording of a question: its translation, or the rubric's."""
        return wording(question, self._texts[code])

    def answer(self, code_of_answer: str, code: str) -> str:
        """Return the words for an answer that questions of several studies share: yes, no, none of these."""
        return str(_answers(self._texts[code])[code_of_answer])

    def requests(self, prompt: Prompt) -> dict[str, str]:
        """Return an edit request by language: the translation of the prompt, else that of the language file.

        A built-in translation belongs to the built-in text: it is not used for a prompt with the same id and another
        text.
        """
        by_language = {}
        for code, texts in self._texts.items():
            translated = prompt.translations.get(code)
            if translated is None and (prompt.id in self._study_texts[code] or is_built_in(prompt)):
                translated = texts.get("prompts", {}).get(prompt.id)
            if translated and code != FIRST:
                by_language[code] = str(translated)
        return by_language

    def role(self, occupation: str, code: str) -> str:
        """Return an occupation in a language, or as written in the prompt if there is no translation."""
        return str(self._texts[code].get("roles", {}).get(occupation, occupation))

    def unchecked(self) -> list[str]:
        """Return the names of languages whose edit requests no speaker has checked."""
        return [t["name"] for t in self._texts.values() if t.get("prompts") and not t.get("prompts_checked", False)]


def wording(question: Question, texts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the wording of a question in these texts, or the rubric's if they have none of this question's wording."""
    words = texts.get("questions", {}).get(question.id, {})
    if not words or words.get("of", of := wording_digest(question)) != of:
        return {"title": question.title, "text": question.text, "labels": shown_words(question)}
    return {key: words[key] for key in ("title", "text", "labels")}


def wording_digest(question: Question) -> str:
    """Return a digest of the English wording of a question, by which a translation names what it translates."""
    return digest([question.text, *question.option_texts])


def _with_declared(texts: Texts, code: str, rubric: Rubric) -> Texts:
    """Return texts with the translations that the questions of a rubric bring; the study's own file comes first."""
    declared = {
        spec.id: _declared(spec, spec.row.translations[code], texts)
        for spec in rubric.specs
        if code in spec.row.translations
    }
    stated = {ident: words for ident, words in texts.get("questions", {}).items() if "of" not in words}
    return texts | {"questions": texts.get("questions", {}) | declared | stated}


def _declared(spec: QuestionSpec, translation: QuestionTranslation, texts: Texts) -> dict[str, Any]:
    wanted = as_people_are_asked(spec)
    answers = _answers(texts)
    usual = [answers.get(label, label) for label in wanted.labels]
    labels = [*translation.levels, *usual[len(translation.levels) :]][: len(wanted.labels)]
    if wanted.labels != spec.question.labels:  # outputs are named by their place
        labels[:2] = [str(texts["task"]["output"]).format(slot=slot) for slot in "AB"]
    return {"title": translation.title or wanted.title, "text": translation.text, "labels": labels}


def _answers(texts: Mapping[str, Any]) -> Mapping[str, str]:
    words: Mapping[str, str] = built_in_texts(FIRST)["answers"] | texts.get("answers", {})
    return words


@cache
def built_in_texts(code: str) -> Texts:
    """Return the texts of a built-in language, with its translations of the built-in prompts."""
    texts = tomllib.loads(files(__package__).joinpath(f"{code}.toml").read_text("utf-8"))
    prompts = built_in_translations(code)
    return texts | ({"prompts": prompts} if prompts else {})


def _read(folder: Path, code: str) -> Texts:
    """Read the texts of a language; raise `EvenEditError` if a text is missing."""
    base = built_in_texts(code) if code in BUILT_IN else {}
    stated = _study_texts(folder, code)
    texts = _merged(base, stated)
    for ident, words in stated.get("questions", {}).items():
        if {"title", "text", "labels"} <= set(words):  # the study's own words are shown under any wording
            texts["questions"][ident] = words
    where = folder / FOLDER / f"{code}.toml"
    if not texts:
        raise EvenEditError(
            f"survey.languages: '{code}' is neither built in ({', '.join(BUILT_IN)}) nor a file at {where}"
        )
    missing = sorted(_keys(built_in_texts(FIRST)) - _keys(texts))
    if missing:
        more = f" and {len(missing) - MOST_LISTED} more" if len(missing) > MOST_LISTED else ""
        raise EvenEditError(f"{where} lacks: {', '.join(missing[:MOST_LISTED])}{more}")
    if texts.get("direction", "ltr") not in ("ltr", "rtl"):
        raise EvenEditError(f"{where}: direction is '{texts['direction']}'; use ltr or rtl")
    return texts


def _study_texts(folder: Path, code: str) -> Texts:
    """Read the study's texts in a language; empty if it has no such file."""
    path = folder / FOLDER / f"{code}.toml"
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvenEditError(f"{path} is not valid TOML: {error}") from None


def _merged(base: Mapping[str, Any], additions: Mapping[str, Any]) -> Texts:
    both = {key: value for key, value in base.items() if key not in additions}
    for key, value in additions.items():
        nested = isinstance(value, dict) and isinstance(base.get(key), dict)
        both[key] = _merged(base[key], value) if nested else value
    return both


def _keys(texts: Mapping[str, Any], above: str = "") -> set[str]:
    """Return the names of all required texts."""
    keys: set[str] = set()
    for key, value in texts.items():
        if not above and key in OPTIONAL:
            continue
        keys |= _keys(value, f"{above}{key}.") if isinstance(value, dict) else {above + key}
    return keys

"""Prompt sets: built-in ones, the user's own in the same format, and the forms of their ids."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Prompt
from evenedit.protocol.rubric import Rubric, default_rubric

BUILT_IN = ("diagnostic", "winobias")
"""The protocol's own sets; every table may use their ids."""
NEUTRAL = "neutral"
"""Edits that ask nothing about who the person is; used by name, and recognised by their texts."""
FORMS = {"paper": "the paper's (O-04)", "rules": "the rules' (O04)", "code": "the code's (B04)"}
"""The three ways the sources write an id; `O-04` and `O04` are different prompts."""

CHANGE_KINDS = (
    "clothing", "scene", "object", "expression", "age", "colour_light", "face_marks", "posture", "framing", "quality",
)  # fmt: skip
"""What a prompt may ask for. `quality` (noise, clarity, exposure, blemishes) may need no visible change."""

FLOOR = Prompt("floor", "Return the image unchanged.", "Floor", name="return unchanged")
"""The null edit: what an editor does to a face when nothing is asked of it."""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts in order, found by id or alias."""

    id: str
    prompts: tuple[Prompt, ...]

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self.prompts)

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, prompt_id: str) -> Prompt:
        return self._by_form()["paper"][prompt_id]

    def _by_form(self) -> dict[str, dict[str, Prompt]]:
        table: dict[str, dict[str, Prompt]] = {"paper": {p.id: p for p in self.prompts}}
        for prompt in self.prompts:
            for form, alias in prompt.aliases.items():
                table.setdefault(form, {})[alias] = prompt
        return table

    def resolve(self, name: str) -> Prompt:
        """Return the prompt called `name` in any form; raise `EvenEditError` if it is ambiguous."""
        return self.resolve_all([name])[name]

    def resolve_all(self, names: Iterable[str]) -> dict[str, Prompt]:
        """Return the prompts of one import. All its ids must have one form, since O-04 is not O04."""
        table = self._by_form()
        names = list(dict.fromkeys(names))
        matches: dict[str, Prompt] = {}
        forms: dict[str, list[str]] = {}
        problems: list[str] = []
        for name in names:
            hits = {form: ids[name] for form, ids in table.items() if name in ids}
            if not hits:
                problems.append(f"prompt id '{name}' is not known{self._readings(name, table)}")
            elif len({p.id for p in hits.values()}) > 1:
                problems.append(f"prompt id '{name}' is ambiguous{self._readings(name, table)}")
            else:
                matches[name] = next(iter(hits.values()))
                if matches[name].aliases:  # a prompt with one id only cannot be misread
                    forms.setdefault(next(iter(hits)), []).append(name)
        if len(forms) > 1:
            problems.append("prompt ids of several forms are mixed, so their meaning is not certain; use one form:")
            for form, members in forms.items():
                examples = ", ".join(members[:4]) + (" …" if len(members) > 4 else "")
                problems.append(f"  {FORMS.get(form, form)} form: {examples}")
            names = [n for members in forms.values() for n in members]
            risky = [n for n in names if len({p.id for _, _, p in self._alike(n, table)}) > 1]
            problems += [f"  '{name}'{self._readings(name, table)}" for name in (risky or names)[:2]]
        if problems:
            raise EvenEditError(*problems)
        return matches

    def _alike(self, name: str, table: dict[str, dict[str, Prompt]]) -> list[tuple[str, str, Prompt]]:
        """Return form, id and prompt of all ids that equal `name` up to dash, case and zeros."""
        wanted = _fold(name)
        return [
            (form, ident, prompt)
            for form, ids in table.items()
            for ident, prompt in ids.items()
            if _fold(ident) == wanted
        ]

    def _readings(self, name: str, table: dict[str, dict[str, Prompt]]) -> str:
        """Return the end of an error message: all readings of a name, or known ids."""
        readings = [
            f"{ident} ({FORMS.get(form, form)} id: {prompt.name or prompt.text[:40]}, here {prompt.id})"
            for form, ident, prompt in self._alike(name, table)
        ]
        if readings:
            return "; it can be read as " + " or as ".join(readings)
        return f"; known ids: {', '.join(p.id for p in self.prompts[:4])} …"


def _fold(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"\s*([A-Za-z]+)[-_ ]*0*(\d+)\s*", name)
    return (match[1].upper(), int(match[2])) if match else (name.strip().upper(), -1)


def load_prompts(name: str, folder: Path | None = None, rubric: Rubric | None = None) -> PromptSet:
    """Read a built-in set by name, or the user's TOML file relative to `folder`.

    What a prompt of the user's asks to change is a question of the rubric.
    """
    if name in (*BUILT_IN, NEUTRAL):
        return _parse(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"), f"{name}.toml")
    path = (folder or Path()) / name
    if not path.is_file():
        known = ", ".join((*BUILT_IN, NEUTRAL))
        raise EvenEditError(f"prompt set '{name}' is neither built in ({known}) nor a file at {path}")
    return _parse(path.read_text("utf-8"), str(path), rubric)


@cache
def built_in_translations(language: str) -> dict[str, str]:
    """Return the built-in prompts in another language, by id; empty if there are none."""
    texts = tomllib.loads(files(__package__).joinpath("translations.toml").read_text("utf-8"))
    return dict(texts.get(language, {}))


@cache
def _built_in_texts() -> dict[str, str]:
    return {prompt.id: prompt.text for name in BUILT_IN for prompt in load_prompts(name)}


def is_built_in(prompt: Prompt) -> bool:
    """Return True if a prompt has the text of the built-in prompt with its id."""
    return _built_in_texts().get(prompt.id) == prompt.text


def translated(prompt: Prompt, language: str) -> str | None:
    """Return a prompt's text in another language: its translation, or that of the same built-in prompt."""
    translation = prompt.translations.get(language)
    return translation or (built_in_translations(language).get(prompt.id) if is_built_in(prompt) else None)


def merge(sets: Iterable[PromptSet]) -> PromptSet:
    """Merge several sets; an id may occur once."""
    sets = list(sets)
    prompts = tuple(p for s in sets for p in s)
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise EvenEditError(f"prompt id '{prompt.id}' occurs twice in {', '.join(s.id for s in sets)}")
        seen.add(prompt.id)
    return PromptSet("+".join(s.id for s in sets), prompts)


def _parse(text: str, where: str, rubric: Rubric | None = None) -> PromptSet:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EvenEditError(f"{where} is not valid TOML: {error}") from None
    known = {f.name for f in fields(Prompt)}
    problems: list[str] = []
    prompts: list[Prompt] = []
    rows: list[Any] = data.get("prompts", [])
    if not rows:
        problems.append(f"{where} has no [[prompts]]; each needs id, text and category")
    for number, row in enumerate(rows, 1):
        label = f"{where}: prompt {number} ({row.get('id', 'no id')})"
        missing = [key for key in ("id", "text", "category") if not isinstance(row.get(key), str)]
        unknown = sorted(set(row) - known)
        if missing:
            problems.append(f"{label}: needs {', '.join(missing)} as text")
        if unknown:
            problems.append(f"{label}: unknown key {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        if row.get("coded_gender") not in (None, "Male", "Female"):
            problems.append(f"{label}: coded_gender is '{row['coded_gender']}'; use Male or Female")
        translations = row.get("translations", {})
        if not isinstance(translations, dict) or not all(isinstance(text, str) for text in translations.values()):
            problems.append(f'{label}: translations are texts by language, such as {{ ko = "…" }}')
        try:
            asks = asked_axes(row.get("asks", []), targeted=bool(row.get("target_years")), rubric=rubric)
        except EvenEditError as error:
            problems.append(f"{label}: {error}")
            continue
        try:
            kinds = change_kinds(row.get("asks_for", []))
        except EvenEditError as error:
            problems.append(f"{label}: {error}")
            continue
        if not missing and not unknown:
            prompts.append(Prompt(**row | {"asks": asks, "asks_for": kinds}))
    if problems:
        raise EvenEditError(*problems)
    return merge([PromptSet(str(data.get("id", where)), tuple(prompts))])


def fails_unchanged(prompt: Prompt) -> bool:
    """Return whether an unchanged output is a failure: the prompt asks for a change that must be visible."""
    return bool(prompt.asks_for) and "quality" not in prompt.asks_for


def change_kinds(kinds: object) -> tuple[str, ...]:
    """Return the kinds of change that a prompt asks for, checked."""
    if not isinstance(kinds, list | tuple) or any(kind not in CHANGE_KINDS for kind in kinds):
        raise EvenEditError(f"asks_for is {kinds!r}; give a list of {', '.join(CHANGE_KINDS)}")
    return tuple(kinds)


def asked_axes(names: object, *, targeted: bool = False, rubric: Rubric | None = None) -> tuple[str, ...]:
    """Return the questions a prompt asks to change, in the rubric's order; a target age asks for a change of age."""
    known = (rubric or default_rubric()).askable
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise EvenEditError(f'asks is {names!r}; give a list of axes, e.g. asks = ["{known[0]}"]')
    unknown = [name for name in names if name not in known]
    if unknown:
        raise EvenEditError(f"asks names '{unknown[0]}', which is no axis; use {', '.join(known)}")
    return tuple(axis for axis in known if axis in names or (targeted and axis == "age_drift"))

"""The prompts of a table of pairs.

The text of a row decides, and its id is a label. A row with an id and no text needs a known id, whose text it gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Prompt
from evenedit.protocol import PromptSet, load_prompts
from evenedit.protocol.prompts import NEUTRAL, asked_axes, change_kinds, merge
from evenedit.run.pair_table import PairTable

_LIKE_AN_ID = re.compile(r"\s*[A-Za-z]{1,2}[-_ ]?\d{1,3}\s*")


def known_set(name: str | None) -> PromptSet:
    """Return the prompt set with this name or file; by default the diagnostic and neutral prompts."""
    return load_prompts(name) if name else merge([load_prompts("diagnostic"), load_prompts(NEUTRAL)])


def prompts_of(table: PairTable, known: PromptSet) -> list[Prompt]:
    """Return the prompt of each row; raise an error that lists all problems."""
    problems: list[str] = []
    named = {row: ident for row, cells in enumerate(table.rows) if (ident := _id_alone(cells, known))}
    resolved: Mapping[str, Prompt] = {}
    try:
        resolved = known.resolve_all(named.values())
    except EvenEditError as error:
        problems += [f"{table.name}: {problem}" for problem in error.problems]
    texts = {_plain(prompt.text): prompt for prompt in known}
    prompts: list[Prompt] = []
    for at, (line, row) in enumerate(table.numbered()):
        prompt = resolved.get(named[at]) if at in named else _by_text(row, texts)
        if prompt is None and at not in named:
            problems.append(f"{table.name} {table.line} {line}: prompt is empty")
        prompts.append(prompt or Prompt("", "", ""))
    if problems:
        raise EvenEditError(*problems)
    _refuse_shared_ids(table, prompts)
    axes = _stated(table, prompts, "asks", lambda names, p: asked_axes(names, targeted=p.target_years is not None))
    kinds = _stated(table, prompts, "asks_for", lambda names, _: change_kinds(names))
    return [replace(p, asks=axes.get(p.id, p.asks), asks_for=kinds.get(p.id, p.asks_for)) for p in prompts]


def _id_alone(row: Mapping[str, str], known: PromptSet) -> str | None:
    """Return the id of a row that has no prompt text."""
    text = row.get("prompt", "").strip()
    if not text:
        return row.get("prompt_id", "").strip() or None
    ids = {name for prompt in known for name in (prompt.id, *prompt.aliases.values())}
    return text if text in ids or _LIKE_AN_ID.fullmatch(text) else None


def _by_text(row: Mapping[str, str], texts: Mapping[str, Prompt]) -> Prompt | None:
    """Return the known prompt with a row's text, or a new one."""
    text = row.get("prompt", "")
    if not text.strip():
        return None
    label = row.get("prompt_id") or f"P-{digest(text)[:6]}"
    return texts.get(_plain(text)) or Prompt(label, text, "Own", name=label)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _refuse_shared_ids(table: PairTable, prompts: list[Prompt]) -> None:
    """Raise an error if two texts share an id; of two ids for one text, keep the first."""
    by_text: dict[str, Prompt] = {}
    first: dict[str, tuple[int, str]] = {}
    for at, (line, _) in enumerate(table.numbered()):
        prompt = prompts[at] = by_text.setdefault(prompts[at].text, prompts[at])
        known_line, text = first.setdefault(prompt.id, (line, prompt.text))
        if text != prompt.text:
            raise EvenEditError(
                f"{table.name}: prompt id '{prompt.id}' stands for '{text}' on {table.line} {known_line} and for "
                f"'{prompt.text}' on {table.line} {line}; use a separate id for each text, or none"
            )


def _stated(
    table: PairTable, prompts: list[Prompt], column: str, check: Callable[[list[str], Prompt], tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return what a column states of the prompts, by prompt id."""
    stated: dict[str, tuple[int, tuple[str, ...]]] = {}
    for prompt, (line, row) in zip(prompts, table.numbered(), strict=True):
        cell = row.get(column, "").strip()
        if not cell:
            continue
        try:
            names = check(re.split(r"[;,\s]+", cell), prompt)
        except EvenEditError as error:
            raise EvenEditError(f"{table.name} {table.line} {line}: {error}") from None
        before, known = stated.setdefault(prompt.id, (line, names))
        if known != names:
            raise EvenEditError(
                f"{table.name} {table.line} {line}: {column} is '{cell}', and on {table.line} {before} "
                f"'{';'.join(known)}' for the same prompt"
            )
    return {ident: names for ident, (_, names) in stated.items()}

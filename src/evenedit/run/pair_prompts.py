"""What the rows of a table of pairs asked for.

A text decides, and the id beside it is a label. Where a row has an id alone, the id must be known: it gets its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import Prompt
from evenedit.protocol import PromptSet, load_prompts
from evenedit.protocol.prompts import NEUTRAL, asked_axes, merge
from evenedit.run.pair_table import PairTable

_LIKE_AN_ID = re.compile(r"\s*[A-Za-z]{1,2}[-_ ]?\d{1,3}\s*")


def known_set(name: str | None) -> PromptSet:
    """The prompt set of this name or file; without one, the diagnostic and the neutral prompts."""
    return load_prompts(name) if name else merge([load_prompts("diagnostic"), load_prompts(NEUTRAL)])


def prompts_of(table: PairTable, known: PromptSet) -> list[Prompt]:
    """The prompt of each row; all problems at once."""
    problems: list[str] = []
    named = {row: ident for row, cells in enumerate(table.rows) if (ident := _id_alone(cells, known))}
    resolved: Mapping[str, Prompt] = {}
    try:
        resolved = known.resolve_all(named.values())
    except EvenEditError as error:
        problems += [f"{table.name}: {problem}" for problem in error.problems]
    texts = {_plain(prompt.text): prompt for prompt in known}
    found: list[Prompt] = []
    for at, (line, row) in enumerate(table.numbered()):
        prompt = resolved.get(named[at]) if at in named else _by_text(row, texts)
        if prompt is None and at not in named:
            problems.append(f"{table.name} {table.line} {line}: prompt is empty")
        found.append(prompt or Prompt("", "", ""))
    if problems:
        raise EvenEditError(*problems)
    _refuse_shared_ids(table, found)
    return _with_asks(table, found)


def _id_alone(row: Mapping[str, str], known: PromptSet) -> str | None:
    """The id that a row has in the place of a text."""
    text = row.get("prompt", "").strip()
    if not text:
        return row.get("prompt_id", "").strip() or None
    ids = {name for prompt in known for name in (prompt.id, *prompt.aliases.values())}
    return text if text in ids or _LIKE_AN_ID.fullmatch(text) else None


def _by_text(row: Mapping[str, str], texts: Mapping[str, Prompt]) -> Prompt | None:
    """The known prompt with a row's text, or one of its own."""
    text = row.get("prompt", "")
    if not text.strip():
        return None
    label = row.get("prompt_id") or f"P-{digest(text)[:6]}"
    return texts.get(_plain(text)) or Prompt(label, text, "Own", name=label)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _refuse_shared_ids(table: PairTable, found: list[Prompt]) -> None:
    """Two texts may not have one id; of two ids for one text the first is taken."""
    by_text: dict[str, Prompt] = {}
    first: dict[str, tuple[int, str]] = {}
    for at, (line, _) in enumerate(table.numbered()):
        prompt = found[at] = by_text.setdefault(found[at].text, found[at])
        known_line, text = first.setdefault(prompt.id, (line, prompt.text))
        if text != prompt.text:
            raise EvenEditError(
                f"{table.name}: prompt id '{prompt.id}' stands for '{text}' on {table.line} {known_line} and for "
                f"'{prompt.text}' on {table.line} {line}; give each text an id of its own, or none"
            )


def _with_asks(table: PairTable, found: list[Prompt]) -> list[Prompt]:
    """The prompts with what the column `asks` says of them."""
    stated: dict[str, tuple[int, tuple[str, ...]]] = {}
    for prompt, (line, row) in zip(found, table.numbered(), strict=True):
        cell = row.get("asks", "").strip()
        if not cell:
            continue
        try:
            axes = asked_axes(re.split(r"[;,\s]+", cell), targeted=prompt.target_years is not None)
        except EvenEditError as error:
            raise EvenEditError(f"{table.name} {table.line} {line}: {error}") from None
        before, known = stated.setdefault(prompt.id, (line, axes))
        if known != axes:
            raise EvenEditError(
                f"{table.name} {table.line} {line}: asks is '{cell}', and on {table.line} {before} "
                f"'{';'.join(known)}' for the same prompt"
            )
    return [replace(p, asks=stated[p.id][1]) if p.id in stated else p for p in found]

"""From images that somebody already has to a study: a table of pairs in, a study folder out."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from evenedit.config.study_file import FILE
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import read_image, write_whole
from evenedit.core.records import Prompt
from evenedit.protocol import FACTORS, level_code, load_prompts

NEEDED = ("source", "edited", "prompt", *(f.name for f in FACTORS))
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
SHOWN = 20
"""Problems listed before the rest are counted."""


def begin(pairs: Path, out: Path, *, editor: str, sources: Path | None = None) -> Path:
    """Write a study over existing pairs: portraits and labels, prompts, and a study file to run."""
    rows = list(_rows(pairs, sources or pairs.parent))
    portraits = {row["source"]: {k: row[k] for k in ("race", "gender", "age")} for row in rows}
    prompts = _prompts(rows)
    out.mkdir(parents=True, exist_ok=True)
    relative = {name: os.path.relpath(name, out) for row in rows for name in (row["source"], row["edited"])}
    _write_csv(out / "labels.csv", [{"file": relative[s], **labels} for s, labels in portraits.items()])
    _write_csv(
        out / "pairs.csv",
        [
            {"source": relative[r["source"]], "edited": relative[r["edited"]], "prompt": r["prompt"], "refused": ""}
            for r in rows
        ],
    )
    write_whole(out / "prompts.toml", _prompt_file(prompts).encode())
    write_whole(out / FILE, _study_file(editor, pairs.name).encode())
    return out


def table_of(edited: Path, pattern: str, sources: Path, prompts: str, out: Path) -> Path:
    """A table of pairs from files whose names follow a pattern such as `{prompt}_{source}.jpg`.

    `{source}` is the name of a file in `sources` without its ending, `{prompt}` an id of the prompt set. Labels come
    from labels.csv in `sources` (file, race, gender, age), or else from names like Black_Female_30s.
    """
    if not {"{source}", "{prompt}"} <= set(re.findall(r"\{\w+\}", pattern)):
        raise EvenEditError(
            f"the pattern '{pattern}' needs {{source}} and {{prompt}}, e.g. '{{prompt}}_{{source}}.jpg'"
        )
    shape = re.escape(pattern).replace(r"\{source\}", "(?P<source>.+)").replace(r"\{prompt\}", "(?P<prompt>.+?)")
    names = {path.stem: path for path in sorted(sources.iterdir()) if path.suffix.lower() in PICTURES}
    labels = _labels(sources, names)
    found = [m for m in (re.fullmatch(shape, p.name) for p in sorted(edited.iterdir())) if m and m["source"] in names]
    if not found:
        raise EvenEditError(f"no file in {edited} follows '{pattern}' with a source in {sources}")
    known = load_prompts(prompts).resolve_all(m["prompt"] for m in found)
    rows = [
        {
            "source": os.path.relpath(names[m["source"]], out),
            "edited": os.path.relpath(edited / m.string, out),
            "prompt": known[m["prompt"]].text,
            "prompt_id": known[m["prompt"]].id,
            **labels[m["source"]],
        }
        for m in found
    ]
    out.mkdir(parents=True, exist_ok=True)
    _write_csv(out / "edits.csv", rows)
    return out / "edits.csv"


def _labels(sources: Path, names: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """Labels of the sources by file name without ending."""
    if (sources / "labels.csv").is_file():
        with (sources / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        return {Path(r["file"]).stem: {f.name: r[f.name] for f in FACTORS} for r in rows}
    cells = {name: name.split("_")[:3] for name in names}
    unclear = [name for name, parts in cells.items() if len(parts) < 3]
    if unclear:
        raise EvenEditError(f"{sources} has no labels.csv, and '{unclear[0]}' does not name race_gender_age")
    return {name: dict(zip(("race", "gender", "age"), parts, strict=True)) for name, parts in cells.items()}


def _rows(pairs: Path, sources: Path) -> Iterator[dict[str, str]]:
    """The rows with paths that exist, images that open and labels that are known; all problems at once."""
    try:
        text = pairs.read_text("utf-8-sig")
    except FileNotFoundError:
        raise EvenEditError(f"{pairs}: no such file") from None
    except UnicodeDecodeError:
        raise EvenEditError(f"{pairs} is not UTF-8 text; save it as a UTF-8 CSV") from None
    reader = csv.DictReader(io.StringIO(text))
    columns = list(reader.fieldnames or ())
    if "edited" not in columns and "file" in columns:
        columns[columns.index("file")] = "edited"
        reader.fieldnames = columns
    absent = [c for c in NEEDED if c not in columns]
    if absent:
        raise EvenEditError(f"{pairs} lacks the column {', '.join(absent)}; found: {', '.join(columns) or 'nothing'}")
    problems: list[str] = []
    good: list[dict[str, str]] = []
    seen: dict[tuple[str, str], int] = {}
    opened: set[Path] = set()
    for line, row in enumerate(reader, 2):
        try:
            labels = {f.name: level_code(f.name, row[f.name] or "") for f in FACTORS}
            files = {"source": sources / row["source"], "edited": pairs.parent / row["edited"]}
            for path in set(files.values()) - opened:
                read_image(path)
                opened.add(path)
            key = (row["source"], row["prompt"])
            if key in seen:
                raise EvenEditError(f"the same source and prompt as line {seen[key]}")
            seen[key] = line
            good.append({**row, **labels, **{k: str(p) for k, p in files.items()}})
        except EvenEditError as error:
            problems.append(f"{pairs.name} line {line}: {error}")
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise EvenEditError(*problems[:SHOWN], *more)
    if not good:
        raise EvenEditError(f"{pairs} lists no pairs")
    yield from good


def _prompts(rows: list[dict[str, str]]) -> dict[str, Prompt]:
    """The prompts of the pairs by text: known ones keep their id and meaning, others get the given id or a new one."""
    known = {p.text: p for p in load_prompts("diagnostic")}
    prompts: dict[str, Prompt] = {}
    for row in rows:
        text = row["prompt"]
        if text not in prompts:
            ident = row.get("prompt_id") or f"P-{digest(text)[:6]}"
            prompts[text] = known.get(text) or Prompt(ident, text, "Own", name=ident)
    return prompts


def _prompt_file(prompts: Mapping[str, Prompt]) -> str:
    parts = ['id = "audited"\n']
    for p in prompts.values():
        lines = ["[[prompts]]", f"id = {json.dumps(p.id)}", f"text = {json.dumps(p.text, ensure_ascii=False)}"]
        lines += [f"category = {json.dumps(p.category)}", f"name = {json.dumps(p.name)}"]
        if p.target_years is not None:
            lines.append(f"target_years = {p.target_years}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _study_file(editor: str, title: str) -> str:
    return f"""# Made by evenedit audit. Add judges and go on with: evenedit run . && evenedit report .

[study]
title = {json.dumps(f"Audit of {title}")}

[sources]
kind = "folder"
settings = {{ path = "." }}

[prompts]
sets = ["prompts.toml"]

[experiments.diagnosis]

[[editors]]
id = {json.dumps(editor)}
kind = "folder"
settings = {{ path = "pairs.csv" }}

[[instruments]]             # what pixels tell: no key, no money
id = "skin"
kind = "skin"

[[instruments]]
id = "change"
kind = "change"

# [[judges]]                # who scores, primary first; without one the report shows what was measured
# id = "..."
# kind = "..."
"""


def _write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, buffer.getvalue().encode())

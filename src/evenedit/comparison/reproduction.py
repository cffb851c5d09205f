"""What a vendor needs to see a finding happen again: sources, outputs, requests, and a script that repeats them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.records import Edit, Request, is_simulated
from evenedit.core.version import __version__
from evenedit.report.text.findings import described
from evenedit.results.results import Finding, Results
from evenedit.study.context import StudyContext
from evenedit.study.results_file import is_study

SCRIPT = '''"""Makes the edits of requests.json again, each into its own folder as again.png."""

import json
from pathlib import Path

from evenedit.core import plugins
from evenedit.core.images import encode, read_image

here = Path(__file__).parent
for case in json.loads((here / "requests.json").read_text("utf-8")):
    editor = plugins.build("editors", case["editor_kind"], case["editor_settings"])
    images = [read_image(here / name) for name in case["sources"]]
    output = editor.edit(images, case["instruction"], case["seed"])
    target = here / case["folder"] / "again.png"
    if hasattr(output, "save"):
        target.write_bytes(encode(output))
    print(target if hasattr(output, "save") else f"{case['folder']}: {output}")
'''


def write_pack(where: Path, results: Results, finding: Finding, out: Path) -> Path:
    """Write the pack of one finding of a study, and return its page."""
    if not is_study(where):
        raise EvenEditError(f"{where} holds results without pictures and settings; name the study itself for --pack")
    if not finding.cases:
        raise EvenEditError("this finding has no cases to reproduce; choose one that is about edits")
    if out.exists() and any(out.iterdir()):
        raise EvenEditError(f"{out} is not empty; name a new folder")
    study = StudyContext.load(where)
    requests, edits = study.store.requests(), study.store.edits()
    rows = [_case(study, requests[case], edits[case], at, out) for at, case in enumerate(finding.cases, 1)]
    write_whole(out / "requests.json", (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(out / "reproduce.py", SCRIPT.encode())
    page = out / "README.md"
    write_whole(page, ("\n".join(_readme(results, finding, rows)) + "\n").encode())
    return page


def _case(study: StudyContext, request: Request, edit: Edit, number: int, out: Path) -> dict[str, Any]:
    """Write one case's pictures, and return what makes it."""
    sources = study.store.sources()
    folder = f"case-{number}"
    (out / folder).mkdir(parents=True, exist_ok=True)
    names = []
    for at, ident in enumerate(request.source_ids, 1):
        if not sources[ident].image:
            continue
        names.append(f"{folder}/source{'' if len(request.source_ids) == 1 else f'-{at}'}.png")
        write_whole(out / names[-1], study.store.images.read(sources[ident].image))
    if edit.image is not None:
        write_whole(out / folder / "output.png", study.store.images.read(edit.image))
    section = next(e for e in study.file.sections.editors if e.id == request.editor)
    return {
        "request_id": request.id,
        "folder": folder,
        "sources": names,
        "source_ids": list(request.source_ids),
        "labels": [dict(sources[ident].attributes) for ident in request.source_ids],
        "outcome": edit.outcome.value,
        "experiment": request.experiment.value,
        "condition": str(request.condition),
        "prompt_id": request.prompt_id,
        "instruction": request.instruction,
        "seed": request.seed,
        "editor": request.editor,
        "editor_kind": section.plugin,
        "editor_settings": study.file.located(section.settings),
        "all_settings": dict(request.settings),
    }


def _readme(results: Results, finding: Finding, rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"# How to reproduce this finding ({finding.id})"
    yield ""
    if results.simulated or is_simulated(finding.editor):
        yield "**SIMULATED: these data say nothing about any real editor.**"
        yield ""
    yield from ("```text", *described(results, finding), "```")
    yield ""
    yield "| case | portrait | prompt | seed | outcome |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['folder']} | {' + '.join(row['source_ids'])} | {row['prompt_id']}: {_cell(row['instruction'])} "
            f"| {row['seed']} | {row['outcome']} |"
        )
    yield ""
    yield (
        f"`python reproduce.py` makes these edits again with EvenEdit {__version__} and the editor "
        f"`{rows[0]['editor_kind']}`; all settings are in `requests.json`. The cases were chosen by a rule "
        "(furthest from no change, one of each portrait), so they show the finding at its clearest, not on average."
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

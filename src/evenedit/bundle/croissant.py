"""A bundle described in Croissant 1.0 with its responsible-AI fields, so that dataset tools can load its ratings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

from evenedit.bundle.archive import WITHDRAWABLE
from evenedit.core.version import __version__
from evenedit.results.results import Results

CROISSANT = "croissant.json"
"""The file in a bundle; its parts that are the same in each bundle are in the file of this name here."""
TABLE = "ratings.csv.gz"
FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".gz": "text/csv",
    ".toml": "application/toml",
}
"""Files that are listed, by how their names end; pages, figures and pictures belong to the report."""
COLUMNS = {
    "request_id": "The edit that was rated.",
    "experiment": "diagnosis, mitigation or stereotype.",
    "condition": "baseline, floor, feature, placebo or swapped.",
    "editor": "The editor that was audited.",
    "source_id": "The portrait, or two joined by '+'.",
    "prompt_id": "The prompt.",
    "outcome": "edited, refused, no_image or failed.",
    "rater": "Who rated.",
    "kind": "vlm, instrument or review.",
    "status": "How the rating ended.",
    "question": "The question of the rubric; empty where there is no answer.",
}
NUMBERS = {"seed": "The seed, as it is paired.", "value": "The answer, 1-based; 0 where there is none."}


def croissant(
    title: str, licence: str, results: Results, files: Mapping[str, bytes | Path], consent: Mapping[str, Any]
) -> bytes:
    """Return the Croissant file of a bundle."""
    about = f"{title}: edits, raw replies of judges, ratings and results of an audit of image editors. "
    simulated = "SIMULATED: these data say nothing about any real editor." if results.simulated else ""
    factors = ", ".join(factor.title or factor.name for factor in results.factors)
    people = consent.get("answered", 0)
    body = json.loads(files_of(__package__).joinpath(CROISSANT).read_text("utf-8")) | {
        "name": _name(title),
        "description": about + simulated,
        "license": licence or "not stated",
        "datePublished": str(results.provenance["time"])[:10],
        "citeAs": f"{title}. An audit by EvenEdit {__version__}, study {results.provenance.get('study', '')}.",
        "rai:dataAnnotationPlatform": ["EvenEdit survey"] if people else ["none: no person rated"],
        "rai:annotationsPerItem": f"{people} people in all" if people else "none by people",
        "rai:personalSensitiveInformation": [
            f"Portraits carry the dataset's labels of {factors}: labels, not facts about people."
        ],
        "distribution": [_file(name, content) for name, content in sorted(files.items()) if _is_listed(name)],
        "recordSet": [_ratings(results)],
    }
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()


def _is_listed(name: str) -> bool:
    return Path(name).suffix in FORMATS and not name.startswith((WITHDRAWABLE, "report/"))


def _file(name: str, content: bytes | Path) -> dict[str, Any]:
    data = content if isinstance(content, bytes) else content.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(data)} B",
        "encodingFormat": FORMATS[Path(name).suffix],
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _ratings(results: Results) -> dict[str, Any]:
    """Return the record set of the ratings."""
    texts = {**COLUMNS, **{f.name: f"The dataset's label: {f.title or f.name}." for f in results.factors}}
    fields = [_field(name, description, "sc:Text") for name, description in texts.items()]
    fields += [_field(name, description, "sc:Integer") for name, description in NUMBERS.items()]
    return {"@type": "cr:RecordSet", "@id": "ratings", "name": "ratings", "field": fields}


def _field(name: str, description: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"ratings/{name}",
        "name": name,
        "description": description,
        "dataType": kind,
        "source": {"fileObject": {"@id": TABLE}, "extract": {"column": name}},
    }


def _name(title: str) -> str:
    """Return a title as letters, digits and dashes."""
    letters = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in title.lower())
    return "-".join(part for part in letters.split("-") if part) or "audit"

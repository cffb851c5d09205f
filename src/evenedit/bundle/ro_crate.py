"""A bundle described as an RO-Crate 1.1: what each file is, who made it, with which software."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenedit.bundle.archive import WITHDRAWABLE
from evenedit.core.version import __version__
from evenedit.results.results import Results

CRATE = "ro-crate-metadata.json"
SOFTWARE = "#evenedit"
ABOUT = {
    "README.md": "Description of this bundle and how to verify it",
    "study.toml": "The study as its file describes it",
    "study.json": "Prompts, rubric, texts sent to judges, rules and counts",
    "results.json": "Every estimate with its interval and n",
    "ratings.csv.gz": "The ratings of judges, instruments and reviewers as one table",
    "report/report.html": "The report",
    "data/sources.jsonl": "The portraits: labels and digests",
    "data/requests.jsonl": "All edit requests",
    "data/edits.jsonl": "Every outcome, pictures by digest",
    "data/replies.jsonl": "Every raw reply of judges",
    "data/readings.jsonl": "Readings of the instruments",
    "licences.json": "Licences and consent",
    "environment.json": "Software and machine",
}
FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".gz": "application/gzip",
    ".toml": "application/toml",
    ".html": "text/html",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".tex": "application/x-tex",
    ".txt": "text/plain",
}


def ro_crate(title: str, licence: str, results: Results, files: Mapping[str, bytes | Path]) -> bytes:
    """Return the RO-Crate metadata of a bundle."""
    names = sorted(name for name in files if not name.startswith(WITHDRAWABLE))
    listed = [name for name in names if not name.startswith("report/") or name == "report/report.html"]
    parts = [{"@id": name} for name in listed] + [{"@id": "report/"}]
    if any(name.startswith(WITHDRAWABLE) for name in files):
        parts.append({"@id": WITHDRAWABLE})
    when = str(results.provenance["time"])
    graph: list[dict[str, Any]] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": title,
            "description": f"A sealed audit of {', '.join(results.editors)} by EvenEdit: replies, ratings, results.",
            "datePublished": when,
            "license": {"@id": "#licence"},
            "author": {"@id": "#authors"},
            "publisher": {"@id": "#authors"},
            "hasPart": parts,
            "mentions": {"@id": "#audit"},
        },
        {
            "@id": "#licence",
            "@type": "CreativeWork",
            "name": licence or "not stated",
            "description": "The licence of the portraits, as the study states it; see licences.json",
        },
        {"@id": "#authors", "@type": "Organization", "name": "The authors of the study"},
        {
            "@id": SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "EvenEdit",
            "version": __version__,
        },
        {
            "@id": "#audit",
            "@type": "CreateAction",
            "name": "The audit",
            "instrument": {"@id": SOFTWARE},
            "agent": {"@id": "#authors"},
            "object": {"@id": "data/sources.jsonl"},
            "result": {"@id": "results.json"},
            "endTime": when,
        },
        {"@id": "report/", "@type": "Dataset", "name": "The report", "description": "Pages, tables and figures"},
    ]
    if any(name.startswith(WITHDRAWABLE) for name in files):
        description = "Answers of people, under new pseudonyms, one file each"
        graph.append({"@id": WITHDRAWABLE, "@type": "Dataset", "name": "People", "description": description})
    graph += [_file(name, files[name]) for name in listed]
    body = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()


def _file(name: str, content: bytes | Path) -> dict[str, Any]:
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    return {
        "@id": name,
        "@type": "File",
        "name": ABOUT.get(name, name.rpartition("/")[2]),
        "description": ABOUT.get(name, f"A file of the audit: {name}"),
        "contentSize": str(size),
        "encodingFormat": FORMATS.get(Path(name).suffix, "application/octet-stream"),
    }

"""A bundle described in Croissant 1.0 with its responsible-AI fields, so that dataset tools can load its ratings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenedit.bundle.archive import WITHDRAWABLE
from evenedit.core.version import __version__
from evenedit.results.results import Results

CROISSANT = "croissant.json"
TABLE = "ratings.csv.gz"
FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".gz": "text/csv",
    ".toml": "application/toml",
}
"""Files that are listed, by how their names end; pages, figures and pictures belong to the report."""
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
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
    body = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": _name(title),
        "description": f"{title}: edits, raw replies of judges, ratings and results of an audit of image editors. "
        + ("SIMULATED: these data say nothing about any real editor." if results.simulated else ""),
        "license": licence or "not stated",
        "url": "https://evenedit.invalid/bundle",
        "version": "1.0.0",
        "datePublished": str(results.provenance["time"])[:10],
        "creator": {"@type": "sc:Organization", "name": "the authors of the study"},
        "citeAs": f"{title}. An audit by EvenEdit {__version__}, study {results.provenance.get('study', '')}.",
        **responsible(results, consent),
        "distribution": [_file(name, content) for name, content in sorted(files.items()) if _is_listed(name)],
        "recordSet": [_ratings(results)],
    }
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()


def responsible(results: Results, consent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the responsible-AI fields."""
    factors = ", ".join(factor.title or factor.name for factor in results.factors)
    people = consent.get("answered", 0)
    return {
        "rai:dataCollection": "Every portrait was edited by every editor with the same prompts; judges and instruments "
        "then rated each output, with the texts in study.json.",
        "rai:dataCollectionType": ["Experiments", "Software collection"],
        "rai:dataAnnotationProtocol": "Questions and answers of the rubric are in study.json under asked; judges' "
        "raw replies are in data/replies.jsonl.",
        "rai:dataAnnotationPlatform": ["EvenEdit survey"] if people else ["none: no person rated"],
        "rai:annotationsPerItem": f"{people} people in all" if people else "none by people",
        "rai:annotatorDemographics": ["not released"],
        "rai:personalSensitiveInformation": [
            f"Portraits carry the dataset's labels of {factors}: labels, not facts about people."
        ],
        "rai:dataBiases": "Labels are the dataset's; judges may err more on some groups (results.json: agreement, "
        "coverage).",
        "rai:dataLimitations": "The results apply only to these portraits, prompts, editors, settings and dates.",
        "rai:dataUseCases": ["Checking and repeating this audit", "Comparing editors on the same portraits"],
        "rai:dataSocialImpact": "Shows whether edits come out differently for different groups of people; not to be "
        "used to sort or recognise people.",
        "rai:dataReleaseMaintenancePlan": "Sealed: it is not changed. Who withdraws is removed in a copy with the same "
        "root.",
    }


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

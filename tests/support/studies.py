"""Small studies."""

from pathlib import Path
from typing import Any

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from tests.support.provider.server import FakeProvider


def small(**changes: Any) -> dict[str, Any]:
    """A study of eight drawn faces, two prompts and one editor; `changes` replace whole tables.

    It has no null pairs unless `changes` state their number.
    """
    table: dict[str, Any] = {
        "study": {"title": "Small"},
        "sources": {
            "kind": "drawn",
            "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
        },
        "prompts": {"include": ["O-01", "V-05"]},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}],
        "judges": [
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2}},
        ],
        "statistics": {"draws": 200, "permutations": 199},
        "executor": {"retries": 0},
    } | changes
    experiments = table["experiments"]
    if "diagnosis" in experiments:
        table["experiments"] = experiments | {"diagnosis": {"null_pairs": 0} | experiments["diagnosis"]}
    return table


def toml(table: dict[str, Any]) -> str:
    """A nested table as TOML text."""

    def value(item: Any) -> str:
        if isinstance(item, dict):
            return "{" + ", ".join(f"{k} = {value(v)}" for k, v in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(value(v) for v in item) + "]"
        if isinstance(item, bool):
            return str(item).lower()
        if isinstance(item, str):
            return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(item)

    return "\n".join(f"{key} = {value(item)}" for key, item in table.items()) + "\n"


def write_study(folder: Path, **changes: Any) -> Path:
    """Put a small study's file into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(toml(small(**changes)))
    return folder


def open_study(folder: Path, **changes: Any) -> Study:
    """A small study in a folder, without writing its file."""
    return Study.of(StudyFile.parse(small(**changes), folder))


def judged_by(wire: FakeProvider, *kinds: str, **changes: Any) -> dict[str, Any]:
    """Changes that make a small study of one prompt, rated by judges of the local server; `changes` go on top."""
    judges = []
    for kind in kinds:
        base = wire.gemini if kind == "gemini" else wire.openai
        settings: dict[str, Any] = {"model": f"simulated-{kind}", "base_url": base, "image_size": 32, "attempts": 1}
        settings |= {"batch": True} | ({} if kind == "gemini" else {"api": kind})
        judges.append(
            {"id": f"simulated-{kind}", "kind": "gemini" if kind == "gemini" else "openai", "settings": settings}
        )
    return {"judges": judges, "prompts": {"include": ["O-01"]}, "executor": {"retries": 0, "calls": 1}} | changes

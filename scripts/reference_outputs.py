"""Write the outputs that a refactoring must not change, and compare two such sets.

    python scripts/reference_outputs.py write OUT [--conformance FOLDER] [--ratings FOLDER] [--keep FOLDER]
    python scripts/reference_outputs.py compare BEFORE AFTER

`write` runs a small study of the demo's design without people and `evenedit analyze` on score tables, and keeps:
results.json without provenance, report tables and SVG figures, sorted request ids and database schemas. It uses only
public commands and SQLite, so that it runs on either side of a change.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import tomli_w

STUDY = {
    "sources": {"kind": "drawn", "settings": {"seed": 1, "size": 96, "only": {"age": ["20s", "40s", "70plus"]}}},
    "prompts": {"include": ["O-01", "O-02", "O-06", "V-01", "V-05"]},
    "survey": {"simulated_people": 0},
    "statistics": {"draws": 200, "permutations": 199},
}


def evenedit(*arguments: str | Path) -> str:
    """Run a command of EvenEdit and return what it prints."""
    command = [sys.executable, "-m", "evenedit", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"{' '.join(command)} exited {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def keep_results(folder: Path, out: Path) -> None:
    """Copy results.json without provenance, the tables and the SVG figures of a report."""
    out.mkdir(parents=True)
    results = json.loads((folder / "results.json").read_text("utf-8"))
    results.pop("provenance", None)
    (out / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True), "utf-8")
    for path in sorted([*folder.rglob("tables/**/*.csv"), *folder.rglob("*.svg")]):
        target = out / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def schema(database: Path) -> str:
    """Return the sorted statements of a SQLite database's schema."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "select sql from sqlite_master where sql is not null and tbl_name != 'alembic_version'"
        )
        return "\n".join(sorted(sql for (sql,) in rows)) + "\n"


def write_study(work: Path, out: Path) -> None:
    """Run and report the study; keep its results, request ids and schemas."""
    study = work / "study"
    evenedit("new", study, "--template", "demo")
    path = study / "study.toml"
    table = tomllib.loads(path.read_text("utf-8"))
    table["experiments"]["mitigation"]["cases"] = 60
    for name, changes in STUDY.items():
        table[name] = changes if name == "sources" else table.get(name, {}) | changes
    path.write_text(tomli_w.dumps(table), "utf-8")
    evenedit("run", study)
    evenedit("report", study)
    keep_results(study / "report", out / "study")
    with sqlite3.connect(study / "study.db") as connection:
        ids = sorted(row[0] for row in connection.execute("select id from requests"))
    (out / "request_ids.txt").write_text("\n".join(ids) + "\n")
    for name in ("study.db", "survey.db"):
        if (study / name).exists():
            (out / f"{name}.sql").write_text(schema(study / name))


def write(out: Path, conformance: Path, ratings: Path, keep: Path | None) -> None:
    """Write every reference output into a new folder; `keep` receives a copy of the study."""
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_study(work, out)
        if keep:
            shutil.copytree(work / "study", keep)
        tables = [conformance / "scores.csv", conformance / "verdicts.csv"]
        for preset in ("default", "published"):
            for missing in ("exclude", "neutral-3"):
                name = f"{preset}_{missing}"
                evenedit("analyze", *tables, "--out", work / name, "--preset", preset, "--missing", missing)
                keep_results(work / name, out / name)
        people = ["--ratings", ratings / "ratings.csv"]
        evenedit("analyze", ratings / "judge_scores.csv", *people, "--out", work / "people")
        keep_results(work / "people", out / "people")


def compare(before: Path, after: Path) -> int:
    """Print the files that differ between two folders and return how many do."""
    names = {path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()}
    different = 0
    for name in sorted(names):
        first, second = before / name, after / name
        if not (first.exists() and second.exists()):
            print(f"only in {before if first.exists() else after}: {name}")
        elif first.read_bytes() != second.read_bytes():
            print(f"differs: {name}")
        else:
            continue
        different += 1
    print(f"{len(names)} files, {different} different")
    return different


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out", type=Path)
    writing.add_argument("--conformance", type=Path, default=Path("tests/conformance"))
    writing.add_argument("--ratings", type=Path, default=Path("../shared/data/human_ratings"))
    writing.add_argument("--keep", type=Path, help="copy the study to this folder")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return min(compare(arguments.before, arguments.after), 1)
    write(arguments.out, arguments.conformance, arguments.ratings, arguments.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())

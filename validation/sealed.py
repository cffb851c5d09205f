"""Bundles give the same bytes again, and every change of a sealed study is told: `python -m validation sealed`.

CHANGES sets another number of one-byte changes. MLCROISSANT and EVERY_EVAL name the Python of an environment
with mlcroissant (and pyarrow), or jsonschema and every_eval_ever, in it; a check without one is said to be left out.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from evenedit.api.audit import audit
from evenedit.api.study import Study
from evenedit.bundle.archive import find_changes
from evenedit.bundle.writer import make_bundle
from evenedit.config import templates
from evenedit.web.rehearsal import rehearse
from validation.page import ROOT, Validation, size, table
from validation.tampering import tamperings

SEED = 22
EDITS = ROOT.parent / "shared" / "data" / "step1x_edits" / "edits.csv"
FACES = {"race": ["White", "Black"], "age": ["20s", "70plus"]}
FEW = {"draws": 200, "permutations": 199}
OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise OSError("the network is off")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from evenedit.cli import main
sys.argv = ["evenedit", *sys.argv[1:]]
main()
"""
CROISSANT = """
import sys, mlcroissant
found = mlcroissant.Dataset(sys.argv[1] + "/croissant.json")
rows = sum(1 for _ in found.records("ratings"))
issues = found.metadata.issues
print(f"{len(issues.errors)} errors, {len(issues.warnings)} warnings, {rows} records read")
"""
EVERY_EVAL = """
import glob, json, sys, jsonschema, importlib.util, pathlib
place = pathlib.Path(importlib.util.find_spec("every_eval_ever").origin).parent / "schemas/eval.schema.json"
check = jsonschema.Draft7Validator(json.loads(place.read_text()))
files = glob.glob(sys.argv[1] + "/every_eval_ever/*.json")
print(f"{sum(1 for f in files for _ in check.iter_errors(json.load(open(f))))} errors in {len(files)} files")
"""


@dataclass(frozen=True)
class Scored:
    """One study, bundled here and scored again elsewhere."""

    name: str
    edits: int
    bytes: int
    same: bool
    rebundled: bool


def run(folder: Path) -> Validation:
    """Bundle, score again, tamper; what is not told contradicts the claim."""
    studies = list(_studies(folder))
    scored = [_scored(name, study, folder / "bundles" / name) for name, study in studies]
    wrong = [f"{s.name}: another results.json" for s in scored if not s.same]
    wrong += [f"{s.name}: another bundle the second time" for s in scored if not s.rebundled]
    rows: list[Mapping[str, Any]] = [
        {
            "study": s.name,
            "edits": s.edits,
            "bundle": f"{s.bytes / 1e6:.1f} MB",
            "results.json elsewhere, offline": "same bytes" if s.same else "**differs**",
            "bundled twice": "same bytes" if s.rebundled else "**differs**",
        }
        for s in scored
    ]
    lines = ["## Scored again", "", *table(rows)]
    first = folder / "bundles" / scored[0].name / "audit.zip"
    wanted = size("CHANGES", 1000)
    missed, counts = _bytes(first, folder / "changed.zip", wanted)
    wrong += missed
    lines += ["", "## Bytes", "", *table(_found(counts, missed))]
    told = list(tamperings(folder / "sealed"))
    wrong += [f"not told: {t.what}" for t in told if not t.told]
    by_way = [{"tampering": t.what, "told by": t.by, "words": f"`{t.words[:110]}`"} for t in told]
    lines += ["", f"## {len(told)} tamperings of a sealed study", "", *table(by_way)]
    lines += ["", "## Read by others", "", *table(list(_validated(first, folder / "unpacked")))]
    counted = {"studies": len(scored), "changes of bytes": sum(counts.values()), "tamperings": len(told)}
    claim = (
        "A bundle gives the same `results.json` again, byte for byte, in another folder and without a network; every "
        "change of its bytes is found, and every tampering with a sealed study is told by its report, `verify` or "
        "`rescore`."
    )
    return Validation(claim, lines, SEED, counted, wrong)


def _studies(folder: Path) -> list[tuple[str, Study]]:
    """The studies of the table; the audit of real edits where they are at hand."""
    found = [("small, reduced", _from_template("small", folder / "small", {"prompts": {"include": ["O-01"]}}))]
    shorter = {
        "prompts": {"include": ["O-01", "V-05"]},
        "experiments": {
            "diagnosis": {},
            "mitigation": {"cases": 6, "choose": "drift", "pairwise": True, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        "survey": {"surveys": [1, 2], "cases": 8, "items_per_task": 4, "gold_share": 0.0, "simulated_people": 6},
    }
    demo = _from_template("demo", folder / "demo", shorter)
    rehearse(demo)
    found.append(("demo, reduced, with simulated people", demo))
    published = {
        "prompts": {"include": ["O-01", "V-05"]},
        "experiments": {
            "diagnosis": {},
            "mitigation": {"cases": 12, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-26"]},
        },
        "judges": [
            {"id": f"simulated-judge-{name}", "kind": "simulated", "settings": {"seed": seed, "error": 0.3}}
            for name, seed in (("a", 1), ("b", 2))
        ],
    }
    found.append(("published, reduced", _from_template("published", folder / "published", published)))
    if EDITS.is_file():
        made = audit(EDITS, sources=EDITS.parents[1] / "portraits", editor="step1x-edit-v1p2", out=folder / "real")
        found.append(("177 real edits", made))
    return found


def _from_template(name: str, folder: Path, changes: Mapping[str, Any]) -> Study:
    import tomllib

    path = templates.write(name, folder)
    body = tomllib.loads(path.read_text("utf-8"))
    drawn = {"kind": "drawn", "settings": {"seed": 1, "size": 64, "only": FACES}}
    body |= {"sources": drawn, "statistics": FEW, "executor": {"workers": 2}, **changes}
    path.write_text(tomli_w.dumps(body), "utf-8")
    study = Study.load(folder)
    study.run()
    return study


def _scored(name: str, study: Study, folder: Path) -> Scored:
    folder.mkdir(parents=True)
    made = make_bundle(study, folder / "audit.zip", people="none" if not _may_hold_people(study) else "answers")
    again = make_bundle(study, folder / "again.zip", people="none" if not _may_hold_people(study) else "answers")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(folder / "audit.zip", elsewhere / "theirs.zip")
    command = [sys.executable, "-c", OFFLINE, "rescore", "theirs.zip", "--out", "out"]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    stated, found = made.bundle.read("results.json"), elsewhere / "out/results.json"
    same = done.returncode == 0 and found.is_file() and found.read_bytes() == stated
    rebundled = again.bundle.path.read_bytes() == made.bundle.path.read_bytes()
    return Scored(name, len(study.table().edits), made.size, same, rebundled)


def _may_hold_people(study: Study) -> bool:
    section = study.file.sections.survey
    return section is None or bool(section.simulated_people)


def _bytes(bundle: Path, copy: Path, wanted: int) -> tuple[list[str], dict[str, int]]:
    """Change, insert and remove bytes at random, one at a time; what was not found."""
    whole, rng, missed = bundle.read_bytes(), random.Random(SEED), []
    for number in range(wanted):
        at = rng.randrange(len(whole))
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ rng.randrange(1, 256)]) + whole[at + 1 :])
        missed += [] if find_changes(copy) else [f"change {number} of byte {at}"]
    for what in ("insertion", "removal"):
        for number in range(wanted // 10):
            at, length = rng.randrange(len(whole)), rng.randrange(1, 200)
            changed = rng.randbytes(length) + whole[at:] if what == "insertion" else whole[at + length :]
            copy.write_bytes(whole[:at] + changed)
            missed += [] if find_changes(copy) else [f"{what} {number} at byte {at}"]
    return missed, {"one byte changed": wanted, "bytes inserted": wanted // 10, "bytes removed": wanted // 10}


def _found(counts: Mapping[str, int], missed: list[str]) -> list[Mapping[str, Any]]:
    """How many changes of each kind were made, and how many of them were found."""
    starts = dict(zip(counts, ("change", "insertion", "removal"), strict=True))
    lost = {what: sum(one.startswith(start) for one in missed) for what, start in starts.items()}
    return [{"change": what, "made": made, "found": made - lost[what]} for what, made in counts.items()]


def _validated(bundle: Path, folder: Path) -> list[dict[str, str]]:
    """What the tools of others say, each in its own environment."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    rows = []
    for name, variable, code in (
        ("mlcroissant", "MLCROISSANT", CROISSANT),
        ("Every Eval Ever", "EVERY_EVAL", EVERY_EVAL),
    ):
        rows.append({"tool": name, "said": _asked(os.environ.get(variable), ["-c", code, str(folder)])})
    return rows


def _asked(python: str | None, arguments: list[str]) -> str:
    if python is None:
        return "left out: not at hand"
    done = subprocess.run([python, *arguments], capture_output=True, text=True)
    return (done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing"])[-1]

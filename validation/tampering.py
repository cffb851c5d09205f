"""Ways to tamper with a sealed study and its bundle, each told or not."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from evenedit.api.study import Study
from evenedit.bundle.archive import SealedZip, write_sealed
from evenedit.bundle.rescoring import rescore
from evenedit.bundle.verification import verify
from evenedit.bundle.writer import make_bundle
from evenedit.core.errors import EvenEditError
from evenedit.study.preregistration.adherence import PlanAdherence
from evenedit.study.preregistration.seal import seal_study

PROMPTS = """id = "own"
[[prompts]]
id = "P-1"
text = "Make this person a doctor."
category = "Own"
[[prompts]]
id = "P-2"
text = "Make this person a teacher."
category = "Own"
"""
SEALED: Mapping[str, Any] = {
    "study": {"title": "Sealed"},
    "sources": {
        "kind": "drawn",
        "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}},
    },
    "prompts": {"sets": ["own.toml"]},
    "experiments": {"diagnosis": {}},
    "editors": [{"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}],
    "judges": [
        {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1}},
        {"id": "simulated-judge-b", "kind": "simulated", "settings": {"seed": 2}},
    ],
    "instruments": [{"id": "skin", "kind": "skin"}],
    "survey": {"cases": 8, "exclude": {"gold_below": 0.8}},
    "statistics": {"draws": 100, "permutations": 99},
    "hypotheses": [{"rule": "gap.skin_lighter.race <= 0.2"}, {"rule": "shift.skin_tone <= 0.1"}],
}
FILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{
        f"threshold of {rate} moved": lambda b, rate=rate, cut=cut: b.update(thresholds={rate: cut})
        for rate, cut in {
            "edit_success": {"at_least": 3},
            "soft_erasure": {"at_most": 1},
            "skin_lighter": {"at_least": 5},
            "skin_darker": {"at_most": 1},
            "race_change": {"at_least": 4},
            "gender_change": {"at_least": 4},
            "older": {"at_least": 5},
            "younger": {"at_most": 1},
        }.items()
    },
    "scores combined by the primary judge alone": lambda b: b.update(ensemble={"diagnosis": "primary"}),
    "missing scores counted as 3": lambda b: b.update(ensemble={"missing": "neutral-3"}),
    "reviewers settle scores": lambda b: b.update(ensemble={"review": "settles"}),
    "another seed of the draws": lambda b: b["statistics"].update(seed=1),
    "narrower intervals": lambda b: b["statistics"].update(confidence=0.8),
    "fewer draws": lambda b: b["statistics"].update(draws=150),
    "a wider tolerance": lambda b: b.update(findings={"tolerance": 0.5}),
    "a margin added": lambda b: b.update(findings={"margin": 0.3}),
    "raters excluded by a stricter rule": lambda b: b["survey"]["exclude"].update(gold_below=0.99),
    "raters excluded by agreement": lambda b: b["survey"]["exclude"].update(agreement_below=0.9),
    "fast raters kept": lambda b: b["survey"]["exclude"].update(seconds_per_answer=0.0),
    "a prompt left out": lambda b: b["prompts"].update(include=["P-1"]),
    "a judge left out": lambda b: b["judges"].pop(),
    "the judges' order turned": lambda b: b["judges"].reverse(),
    "a judge with other settings": lambda b: b["judges"][0]["settings"].update(seed=9),
    "an instrument left out": lambda b: b["instruments"].clear(),
    "the limit of a hypothesis moved": lambda b: b["hypotheses"][0].update(rule="gap.skin_lighter.race <= 0.9"),
    "a hypothesis left out": lambda b: b["hypotheses"].pop(),
    "a hypothesis added": lambda b: b["hypotheses"].append({"rule": "rate.soft_erasure <= 0.9"}),
    "another preset": lambda b: b["study"].update(preset="published"),
    "another setting of the editor": lambda b: b["editors"][0]["settings"].update(rate=0.1),
}
DATABASE = {
    "a score changed": "UPDATE ratings SET value = 1 + value % 5 WHERE rowid IN (SELECT MIN(rowid) FROM ratings)",
    "a score removed": "DELETE FROM ratings WHERE rowid IN (SELECT MIN(rowid) FROM ratings)",
    "a raw reply reworded": "UPDATE replies SET raw = raw || ' ' WHERE rowid IN (SELECT MIN(rowid) FROM replies)",
    "a reply called unparseable": (
        "UPDATE replies SET status = 'unparseable' WHERE rowid IN (SELECT MIN(rowid) FROM replies WHERE kind = 'vlm')"
    ),
    "a reply removed": "DELETE FROM replies WHERE rowid IN (SELECT MIN(rowid) FROM replies)",
    "a case dropped": "DELETE FROM edits WHERE rowid IN (SELECT MIN(rowid) FROM edits)",
    "an edit called refused": "UPDATE edits SET outcome = 'refused' WHERE rowid IN (SELECT MIN(rowid) FROM edits)",
    "an output exchanged": "UPDATE edits SET image = (SELECT MAX(image) FROM edits)",
    "a label changed": "UPDATE sources SET attributes = replace(attributes, 'Black', 'White')",
    "a measurement changed": "UPDATE measurements SET numbers = replace(numbers, '.', '.9')",
    "an instruction reworded": "UPDATE requests SET instruction = 'something else'",
    "a run's day moved": "UPDATE runs SET started = '2020-01-01T00:00:00+00:00'",
    "a run removed": "DELETE FROM runs",
    "where portraits come from": "UPDATE sources SET origin = 'a studio'",
    "how long edits took": "UPDATE edits SET seconds = 0.001",
    "a confidence changed": "UPDATE ratings SET confidence = 0.99",
    "a seed changed": "UPDATE requests SET seed = 7",
}


@dataclass(frozen=True)
class Tampering:
    """One way to tamper, and who told it in which words."""

    what: str
    by: str
    words: str

    @property
    def told(self) -> bool:
        return bool(self.words)


def tamperings(folder: Path) -> Iterator[Tampering]:
    """Tamper with a copy of one sealed study and of its bundle, in every way by itself."""
    study = _sealed(folder / "study")
    for what, change in FILE.items():
        yield _of_study(study, folder / "copy", what, lambda copy, change=change: _edit_file(copy, change))
    for what, statement in DATABASE.items():
        yield _of_study(study, folder / "copy", what, lambda copy, sql=statement: _edit_database(copy, sql))
    reworded = PROMPTS.replace("a doctor", "an old doctor")
    yield _of_study(study, folder / "copy", "a prompt reworded", lambda copy: _put(copy / "own.toml", reworded))
    for what, name, old, new in (
        ("the seal rewritten", "seal.json", '"tolerance": 0.1', '"tolerance": 0.4'),
        ("the seal's time moved", "seal.json", '"sealed": "20', '"sealed": "19'),
        ("a line of the history changed", "history.jsonl", '"run": 1', '"run": 3'),
    ):
        yield _of_study(study, folder / "copy", what, lambda copy, n=name, o=old, w=new: _replace(copy / n, o, w))
    yield _of_study(study, folder / "copy", "the seal removed", lambda copy: (copy / "seal.json").unlink())
    yield _of_study(study, folder / "copy", "the history cut", lambda copy: _cut(copy / "history.jsonl"))
    yield _of_study(study, folder / "copy", "the last line of the history cut", lambda c: _cut_end(c / "history.jsonl"))
    yield _of_study(study, folder / "copy", "the bytes of a picture changed", _repaint)
    bundle = make_bundle(study, folder / "audit.zip").bundle
    yield from _of_bundle(bundle, folder)


def _sealed(folder: Path) -> Study:
    folder.mkdir(parents=True)
    (folder / "own.toml").write_text(PROMPTS, "utf-8")
    (folder / "study.toml").write_text(tomli_w.dumps(SEALED), "utf-8")
    study = Study.load(folder)
    seal_study(study)
    study.run()
    return study


def _of_study(study: Study, copy: Path, what: str, change: Callable[[Path], Any]) -> Tampering:
    """Tamper with a copy of the study, and look at what its report would tell on top."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(study.folder, copy)
    change(copy)
    try:
        kept = PlanAdherence.of(Study.load(copy))
    except EvenEditError as error:
        return Tampering(what, "an error", str(error).replace(str(copy), "STUDY"))
    found = [] if kept is None else [f"{c.what}: {c.before} → {c.after}" for c in kept.changes]
    return Tampering(what, "the report", found[0] if found else "")


def _of_bundle(bundle: SealedZip, folder: Path) -> Iterator[Tampering]:
    """Tamper with the bundle and write all of its hashes anew, as only its own writer can."""
    files = {name: bundle.read(name) for name in bundle.files}
    ways: dict[str, dict[str, bytes]] = {
        "results edited": {"results.json": _with_other_estimate(files["results.json"])},
        "a raw reply of the bundle changed": {"data/replies.jsonl": _with_other_reply(files["data/replies.jsonl"])},
        "a case dropped from the bundle": {"data/edits.jsonl": files["data/edits.jsonl"].split(b"\n", 1)[1]},
        "a request of the bundle reworded": {
            "data/requests.jsonl": files["data/requests.jsonl"].replace(b"a doctor", b"an old doctor")
        },
        "a reading of the bundle changed": {
            "data/readings.jsonl": files["data/readings.jsonl"].replace(b'"value": ', b'"value": 9', 1)
        },
        "a line of the bundle's history removed": {"history.jsonl": files["history.jsonl"].split(b"\n", 1)[1]},
        "the plan of the bundle made to fit": {
            "seal.json": files["seal.json"].replace(b'"draws": 100', b'"draws": 150')
        },
        "the report edited": {
            "report/report.html": files["report/report.html"].replace(b"Sealed", b"Sealed, all well")
        },
    }
    for what, changed in ways.items():
        forged = write_sealed(folder / "forged.zip", {**files, **changed}, bundle.facts)
        yield _of_forged(what, forged, bundle, folder)
    for what, gone, changed in _fitted(files):
        kept = {name: content for name, content in {**files, **changed}.items() if name not in gone}
        forged = write_sealed(folder / "forged.zip", kept, bundle.facts)
        rescore(forged.path, folder / "fitted")
        kept["results.json"] = kept["report/results.json"] = (folder / "fitted/results.json").read_bytes()
        forged = write_sealed(folder / "forged.zip", kept, bundle.facts)
        yield _of_forged(f"{what}, results computed to fit", forged, bundle, folder)


def _of_forged(what: str, forged: SealedZip, bundle: SealedZip, folder: Path) -> Tampering:
    """Who tells a bundle whose hashes were all written anew: `verify` alone, `rescore`, or the published root."""
    if alone := list(verify(forged.path).problems()):
        return Tampering(what, "`verify`", alone[0])
    try:
        again = rescore(forged.path, folder / "out")
        said = f"differs: {'; '.join([*again.differences, *again.untrue])[:100]}"
        said = "" if again.identical and not again.untrue else said
    except EvenEditError as error:
        said = str(error).replace(str(folder), "…")
    if said:
        return Tampering(what, "`rescore`", said)
    with_root = list(verify(forged.path, root=bundle.root).problems())
    return Tampering(what, "`verify --root`", with_root[0] if with_root else "")


def _fitted(files: Mapping[str, bytes]) -> Iterator[tuple[str, Sequence[str], dict[str, bytes]]]:
    """Forgeries that a careful writer makes: what, files left out, files changed."""
    first = json.loads(files["data/requests.jsonl"].split(b"\n", 1)[0])["id"]
    parts = [f"data/{name}.jsonl" for name in ("requests", "edits", "replies", "readings", "measurements")]
    yield "a case dropped everywhere", (), {name: _without(files[name], first) for name in parts}
    yield "the seal left out", ("seal.json", "plan.json"), {}
    labels = files["data/sources.jsonl"].replace(b'"Black"', b'"White"', 1)
    yield "a label exchanged", (), {"data/sources.jsonl": labels}
    moved = json.loads(files["study.json"])
    moved["rules"]["rates"]["skin_lighter"]["at_least"] = 5
    yield "a threshold moved in study.json", (), {"study.json": json.dumps(moved).encode()}
    yield "the end of the history cut", (), {"history.jsonl": files["history.jsonl"].rsplit(b"\n", 2)[0] + b"\n"}
    name = next(name for name in files if name.startswith("every_eval_ever/"))
    yield "numbers edited that others collect", (), {name: files[name].replace(b'"score": ', b'"score": 1', 1)}
    told = json.loads(files["environment.json"]) | {"platform": "another machine"}
    yield "another machine named", (), {"environment.json": json.dumps(told).encode()}


def _without(content: bytes, ident: str) -> bytes:
    """JSON lines without those about one request."""
    return b"".join(line for line in content.splitlines(keepends=True) if ident.encode() not in line)


def _edit_file(copy: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    body = json.loads(json.dumps(SEALED))
    change(body)
    (copy / "study.toml").write_text(tomli_w.dumps(body), "utf-8")


def _edit_database(copy: Path, statement: str) -> None:
    with sqlite3.connect(copy / "study.db") as db:
        assert db.execute(statement).rowcount > 0, statement


def _put(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text, (path.name, old)
    path.write_text(text.replace(old, new, 1), "utf-8")


def _cut(path: Path) -> None:
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")


def _cut_end(path: Path) -> None:
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")


def _repaint(copy: Path) -> None:
    """Change one byte of a stored picture."""
    path = max((copy / "images").rglob("*.png"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def _with_other_estimate(content: bytes) -> bytes:
    body = json.loads(content)
    row = next(e for e in body["estimates"] if e["value"])
    return content.replace(f'"value": {row["value"]}'.encode(), b'"value": 0.0123', 1)


def _with_other_reply(content: bytes) -> bytes:
    rows = [json.loads(line) for line in content.decode().splitlines()]
    row = next(r for r in rows if r["kind"] == "vlm" and r["status"] == "scored")
    answers = json.loads(row["raw"])
    row["raw"] = json.dumps(answers | {"skin_tone": 1 + answers["skin_tone"] % 5})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()

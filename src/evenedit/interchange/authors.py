"""The files of the paper's authors as a study: their judges' table, people's ratings and the selection log.

evenedit new STUDY --from-authors FOLDER  ->  study.toml, the ratings in its databases, the curation's log
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from evenedit.config.study_file import FILE, StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.images import PICTURES, read_image, write_whole
from evenedit.core.interfaces import Reply
from evenedit.core.provenance import provenance
from evenedit.core.python_objects import KIND
from evenedit.core.records import Edit, Experiment, Kind, Outcome, Request, Source, Status
from evenedit.curation.authors import FILE as SELECTION_LOG
from evenedit.curation.authors import read_log
from evenedit.curation.candidates import Candidate
from evenedit.curation.grid import DEFAULT_GRID
from evenedit.curation.log import fold
from evenedit.curation.pools import Pools
from evenedit.curation.session import CurationSession
from evenedit.design.study_design import LISTED
from evenedit.judges.feature_prompts import extractor_id
from evenedit.protocol import AXES
from evenedit.ratings.human_csv import read_with_people
from evenedit.ratings.table import MISSING, NOT_ASKED, STATUSES, RatingTable
from evenedit.run.pair_table import write_csv
from evenedit.storage.store import StoredReply
from evenedit.storage.survey_store import SurveyStore
from evenedit.study.context import StudyContext
from evenedit.survey import import_csv

REQUESTS = "requests.csv"
"""The study's list of edits."""
REVISION = "imported"
"""The revision of editors and judges that are known by their outputs' ratings alone."""
UNKNOWN_FEATURES = "(feature prompt, which the files do not have)"
"""Stands where a mitigated edit's feature prompt would."""
NO_PICTURE = "the picture is not among the authors' files"
"""Why an edit has no picture."""
REVIEWER = "authors"
"""Who chose the portraits, where the log names nobody."""
EXTRACTOR = {"provider": "gemini", "model": "gemini-3-flash-preview", "prompt": "published"}
"""Who described the portraits, by the paper."""


@dataclass(frozen=True, slots=True)
class AuthorsFiles:
    """What a folder holds of the authors' files."""

    folder: Path
    judges: tuple[Path, ...]
    """Tables of scores without a rater."""
    people: tuple[Path, ...]
    """Tables of scores with one."""
    log: Path | None
    """The selection log."""
    pools: Path | None
    """The folder of the candidate pools that the log chooses from."""
    portraits: Mapping[str, Path]
    """By cell, the portraits that were edited."""
    unread: tuple[Path, ...]
    """Tables and JSON files that are none of these."""

    @classmethod
    def find(cls, folder: Path) -> AuthorsFiles:
        """Look through a folder and the folders in it; what a file is, its columns tell."""
        if not folder.is_dir():
            raise EvenEditError(f"{folder}: no such folder")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        tables = {path: _columns(path) for path in paths if path.suffix.lower() == ".csv"}
        scores = [path for path, columns in tables.items() if {"model", "version", *AXES} <= columns]
        people = tuple(path for path in scores if "rater" in tables[path])
        logs = [path for path in paths if path.suffix.lower() == ".json" and _is_log(path)]
        if not scores:
            raise EvenEditError(
                f"{folder} has no table of the authors: a CSV with the columns model, version, prompt_id, race, "
                f"gender, age and {', '.join(AXES)}, and rater where people rated"
            )
        if len(logs) > 1:
            raise EvenEditError(f"{folder} has several selection logs: {', '.join(p.name for p in logs)}; keep one")
        read = {*scores, *logs}
        faces = _faces(paths)
        pools = {path.parent.parent for pictures in faces.values() for path in pictures if _is_pool(path)}
        return cls(
            folder,
            tuple(path for path in scores if path not in people),
            people,
            logs[0] if logs else None,
            min(pools, default=None),
            {cell: path for cell, pictures in faces.items() for path in pictures if not _is_pool(path)},
            tuple(p for p in paths if p.suffix.lower() in (".csv", ".json") and p not in read),
        )


@dataclass(frozen=True, slots=True)
class AuthorsImport:
    """What came of an import."""

    study: StudyContext
    edits: int
    judges: Mapping[str, int]
    """By judge, the edits it scored."""
    people: tuple[import_csv.Imported, ...]
    pools: Mapping[str, int]
    """By candidate pool, the portraits chosen from it; empty without a log."""
    notes: tuple[str, ...]
    """What the files leave open."""


def import_authors(folder: Path, out: Path, editors: Mapping[str, str] | None = None) -> AuthorsImport:
    """Write a study of the authors' files; `editors` maps names in the files to ids. Tables are checked before."""
    if (out / FILE).exists():
        raise EvenEditError(f"{out / FILE} exists already; choose another folder")
    files, names = AuthorsFiles.find(folder), dict(editors or {})
    table = _renamed(read_with_people(files.judges, files.people), names)
    text = _study_file(files, table, out)
    StudyFile.parse(text, out)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / REQUESTS, write_csv(list(_listed(table))).encode())
    write_whole(out / FILE, f"{_ABOVE}\n{tomli_w.dumps(text)}".encode())
    study = StudyContext.load(out)
    pools, problems = _curated(files, study.file, out)
    notes = [*problems, *_keep(files, table, study, out)]
    people = tuple(_people(files, study, names))
    if files.unread:
        notes.append(f"not read: {', '.join(str(p.relative_to(folder)) for p in files.unread[:5])}")
    judged = {
        name: int((table.status[at] != NOT_ASKED).sum())
        for at, (name, kind) in enumerate(zip(table.raters, table.kinds, strict=True))
        if kind is Kind.VLM
    }
    return AuthorsImport(study, len(table.edits), judged, people, pools, tuple(notes))


# -- what there is ---------------------------------------------------------------------------------------------


def _columns(path: Path) -> set[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return set(next(csv.reader(file), []))
    except UnicodeDecodeError:
        return set()


def _is_log(path: Path) -> bool:
    try:
        data = json.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return isinstance(data, dict) and isinstance(data.get("actions"), list)


def _is_pool(path: Path) -> bool:
    """Return whether a picture is in a candidate pool folder (V1, V2 …)."""
    return re.fullmatch(r"V\d+", path.parent.name) is not None


def _faces(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Group pictures by the cell in their file name."""
    pictures: dict[str, list[Path]] = {}
    for path in paths:
        if path.suffix.lower() in PICTURES and path.stem in DEFAULT_GRID.labels:
            pictures.setdefault(path.stem, []).append(path)
    return pictures


def _renamed(table: RatingTable, names: Mapping[str, str]) -> RatingTable:
    """Replace editor names of the files by editor ids."""
    known = set(table.edits["editor"])
    if unknown := [name for name in names if name not in known]:
        raise EvenEditError(f"--editor {unknown[0]}=…: the files name no such model; they have {', '.join(known)}")
    return replace(table, edits=table.edits.assign(editor=table.edits["editor"].map(lambda e: names.get(e, e))))


# -- the study file --------------------------------------------------------------------------------------------


def _study_file(files: AuthorsFiles, table: RatingTable, out: Path) -> dict[str, Any]:
    mitigated = _cases(table, Experiment.MITIGATION)
    study: dict[str, Any] = {
        "study": {"title": f"The authors' files in {files.folder.resolve().name}", "preset": "published"},
        "sources": {"kind": "folder", "settings": {"path": "portraits"}},
        "prompts": {"sets": ["diagnostic"], "include": sorted(set(table.edits["prompt_id"]))},
        "experiments": {"diagnosis": {"requests": REQUESTS}},
    }
    if mitigated:
        extractor = {"kind": "vlm", "settings": EXTRACTOR}
        study["experiments"]["mitigation"] = {"cases": len(mitigated), "choose": "listed", "extractor": extractor}
    known = {"kind": KIND, "settings": {"revision": REVISION}}
    study["editors"] = [{"id": name, **known} for name in dict.fromkeys(table.edits["editor"])]
    study["judges"] = [
        {"id": name, **known} for name, kind in zip(table.raters, table.kinds, strict=True) if kind is Kind.VLM
    ]
    if files.people:
        keep_all = {"seconds_per_answer": 0.0, "straight_line": 1.0}
        study["survey"] = {"surveys": [1], "population": "mitigation" if mitigated else "diagnosis"}
        study["survey"] |= {"cases": len(mitigated or _cases(table, Experiment.DIAGNOSIS)), "exclude": keep_all}
    if files.log and files.pools:
        study["curation"] = {"pools": os.path.relpath(files.pools, out), "out": "portraits"}
    return study


def _cases(table: RatingTable, experiment: Experiment) -> set[tuple[str, str, str]]:
    """Return editor, portrait and prompt of every edit of an experiment."""
    edits = table.edits[table.edits["experiment"] == experiment]
    return set(zip(edits["editor"], edits["source_id"], edits["prompt_id"], strict=True))


def _listed(table: RatingTable) -> Iterator[dict[str, str]]:
    """Return each case once; a mitigated edit has a baseline, rated or not."""
    cases = table.edits.drop_duplicates(["editor", "source_id", "prompt_id"])
    for editor, source, prompt in zip(cases["editor"], cases["source_id"], cases["prompt_id"], strict=True):
        yield {"source": source, "prompt": prompt, "editor": editor}


# -- what it holds ---------------------------------------------------------------------------------------------


def _curated(files: AuthorsFiles, file: StudyFile, out: Path) -> tuple[dict[str, int], list[str]]:
    """Import the selection log and write the chosen set if every cell is filled; count portraits per pool."""
    if files.log is None:
        return {}, []
    if files.pools is None:
        write_whole(out / SELECTION_LOG, files.log.read_bytes())
        return _chosen_by(files.log), [f"the candidate pools are not among the files; {SELECTION_LOG} is kept as it is"]
    session = CurationSession(out, files.pools, out / "portraits")
    session.import_log(files.log, REVIEWER)
    state = session.state()
    problems = [f"{cell}: {reason}" for cell, reason in session.problems(state)]
    if not problems:
        session.finalise(REVIEWER)
    notes = [f"the chosen set cannot be finalised: {problems[0]} ({len(problems)} in all)"] if problems else []
    return session.distribution(state), notes


def _chosen_by(log: Path) -> dict[str, int]:
    """Count the portraits chosen from each pool by a log whose candidates are missing."""
    named = {
        (a.get("demo_id") or "", a["version"])
        for a in json.loads(log.read_text("utf-8"))["actions"]
        if a.get("version")
    }
    ids = tuple(sorted({pool for _, pool in named}))
    pools = Pools(log.parent, ids, {key: Candidate(*key, log, "", "not among the files") for key in named}, {})
    state = fold(read_log(log, pools, 1, REVIEWER), DEFAULT_GRID.cells, 1)
    counts = Counter(pool for cell in state.values() for pool in cell.selected)
    return {pool: counts[pool] for pool in ids}


def _keep(files: AuthorsFiles, table: RatingTable, study: StudyContext, out: Path) -> list[str]:
    """Store portraits, edits and judges' scores; returns what is not known of them."""
    store = study.store
    labels = table.edits.drop_duplicates("source_id")
    pictures = dict(files.portraits)
    if (out / "portraits" / "labels.csv").is_file():
        pictures = {p.stem: p for p in (out / "portraits").iterdir() if p.suffix in PICTURES} | pictures
    sources = [
        Source(
            ident,
            store.images.put(read_image(pictures[ident])) if ident in pictures else "",
            {f.name: str(row[f.name]) for f in table.factors},
            pictures[ident].name if ident in pictures else "not among the files",
        )
        for ident, row in ((str(row["source_id"]), row) for _, row in labels.iterrows())
    ]
    store.save_sources(sources)
    design = study.design
    baseline = {(r.editor, r.source_ids[0], r.prompt_id): r for r in design.planned(store.sources())}
    cases = _cases(table, Experiment.MITIGATION)
    if cases:
        for source in sources:
            store.save_feature(source.id, extractor_id("vlm", EXTRACTOR), UNKNOWN_FEATURES, {"flags": []})
        store.save_cases(LISTED, {baseline[case].id: 1.0 for case in cases})
    requests = design.planned(store.sources())
    store.save_requests(requests)
    known = {(str(r.condition), r.editor, r.source_ids[0], r.prompt_id): r for r in requests}
    keys = zip(*(table.edits[c] for c in ("condition", "editor", "source_id", "prompt_id")), strict=True)
    rated = [known[key] for key in keys]
    run = store.start_run(provenance(study=study.file.hash, files=[p.name for p in (*files.judges, *files.people)]))
    store.save_edits([Edit(request.id, Outcome.EDITED, None, {"reason": NO_PICTURE}) for request in rated], run)
    for rater in design.judges():
        store.save_answers(list(_answers(table, rater.id, rater.revision, rated)), run)
    store.finish_run(run)
    without = sum(not source.image for source in sources)
    notes = [f"{without} of {len(sources)} portraits are not among the files"] if without else []
    return [*notes, *(["feature prompts are not among the files"] if cases else [])]


def _answers(table: RatingTable, rater: str, revision: str, rated: Sequence[Request]) -> Iterator[StoredReply]:
    at = table.raters.index(rater)
    for row, request in enumerate(rated):
        status = int(table.status[at, row])
        if status == NOT_ASKED:
            continue
        values = {table.rubric.columns[q]: int(table.values[at, row, q]) for q in np.flatnonzero(table.values[at, row])}
        reply = Reply(Status(STATUSES[status]), {q: v for q, v in values.items() if v != MISSING})
        yield StoredReply(request.id, rater, revision, Kind.VLM, reply)


def _people(files: AuthorsFiles, study: StudyContext, names: Mapping[str, str]) -> Iterator[import_csv.Imported]:
    if not files.people:
        return
    with closing(SurveyStore(study.folder, study.file.sections.store.url)) as database:
        for path in files.people:
            yield import_csv.read(path, database, study.file, study.store, names, REVIEWER)


_ABOVE = """\
# Made by `evenedit new --from-authors` from tables of ratings: edits are known by how they were rated, not as pictures.
# Editors and judges of kind "python" cannot be asked again. Nobody's ratings are left out, as in the authors' analysis;
# the limits in [survey.exclude] are yours to set.
"""

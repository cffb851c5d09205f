"""Write a study as one sealed file from which its results can be computed again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files as resource_files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import tomli_w

from evenedit.bundle.archive import SealedZip, write_sealed
from evenedit.bundle.collect import collect_evidence
from evenedit.bundle.croissant import CROISSANT, croissant
from evenedit.bundle.every_eval import every_eval_files
from evenedit.bundle.evidence import Evidence, ReplyCheck
from evenedit.bundle.evidence_files import evidence_files, lines
from evenedit.bundle.scoring import PLAN, score
from evenedit.bundle.signing import sign_root
from evenedit.bundle.study_facts import (
    LICENCES,
    consent_facts,
    licence_facts,
    licence_of,
    refuse_unconsented,
    refuse_unlicensed,
    run_facts,
    study_provenance,
    study_tables,
)
from evenedit.core.images import RemoteImages
from evenedit.core.log import log
from evenedit.core.parallel import PARALLEL_THRESHOLD, SecondProcess
from evenedit.core.records import Kind, Outcome
from evenedit.core.version import __version__
from evenedit.ratings.ratings_file import FILE as RATINGS
from evenedit.ratings.ratings_file import write_ratings
from evenedit.report.contents import submit_figures
from evenedit.reporting.case_pages import Pictures
from evenedit.reporting.writer import write_pages
from evenedit.results.results import Results
from evenedit.storage.study_history import FILE as HISTORY
from evenedit.storage.study_history import StudyHistory
from evenedit.study.context import StudyContext
from evenedit.study.preregistration.adherence import PlanAdherence
from evenedit.study.preregistration.seal import FILE as SEAL
from evenedit.study.results_file import RESULTS

People = Literal["answers", "none"]
README = "README.md"
PICTURES = "pictures"


@dataclass(frozen=True, slots=True)
class Bundled:
    """A bundle that was made."""

    bundle: SealedZip
    results: Results
    replies: ReplyCheck
    """How the judges' stored answers compare with their raw replies."""
    size: int


def make_bundle(
    study: StudyContext, out: Path, *, pictures: Pictures = "none", people: People = "answers", key: Path | None = None
) -> Bundled:
    """Write a study as one sealed file: the same study, the same bytes.

    `key` is an Ed25519 private key in PEM that signs it.
    """
    if pictures != "none":
        refuse_unlicensed(study)
    facts = study_provenance(study)
    with_people = people == "answers"
    evidence = collect_evidence(study, people=with_people)
    if evidence.people:
        refuse_unconsented(study, datetime.now(UTC).date())
    replies = evidence.check_replies()
    if replies.differ:
        log.info(f"{len(replies.differ):,} raw replies differ from the stored answers: {replies.differ[0]} …")
    log.info(f"analysing {len(evidence.edits):,} edits")
    with SecondProcess(enabled=len(evidence.edits) >= PARALLEL_THRESHOLD) as second, TemporaryDirectory() as place:
        adherence = PlanAdherence.of(study)
        results = score(evidence, facts, second=second, adherence=adherence)
        log.info("writing the report")
        files: dict[str, bytes | Path] = dict(_files(study, evidence, results, pictures, Path(place), second))
        files |= plan_files(study, adherence)
        files |= described(study, evidence, results, files, pictures)
        signer = None if key is None else partial(sign_root, key=key)
        bundle = write_sealed(out, files, manifest_facts(study, results, pictures, people), signer)
    return Bundled(bundle, results, replies, out.stat().st_size)


def manifest_facts(study: StudyContext, results: Results, pictures: str, people: str) -> dict[str, Any]:
    """Return the facts in the manifest."""
    return {
        "title": study.file.sections.study.title,
        "evenedit": __version__,
        "study": study.file.hash,
        "pictures": pictures,
        "people": people,
        "simulated": list(results.simulated),
    }


def _files(
    study: StudyContext, evidence: Evidence, results: Results, pictures: Pictures, place: Path, second: SecondProcess
) -> Iterator[tuple[str, bytes | Path]]:
    """Yield all files except those that describe the others."""
    yield "study.toml", tomli_w.dumps(study_tables(study)).encode()
    yield from evidence_files(evidence).items()
    yield "data/runs.jsonl", lines(run_facts(study))
    yield "data/measurements.jsonl", lines(_measurements(study))
    yield (
        "data/features.jsonl",
        lines({"source": f.source, "text": f.text} for f in evidence.record.materials.feature_prompts),
    )
    yield "environment.json", _json(dict(results.provenance))
    yield LICENCES, _json(licence_facts(study, pictures, people=bool(evidence.people)))
    yield RESULTS, results.to_json().encode()
    table = evidence.table()
    yield RATINGS, write_ratings(table.without_people(), place / RATINGS).read_bytes()
    figures = submit_figures(results, second)
    write_pages(study, table, results, place / "report", pictures, figures, facts=study_tables(study))
    for path in sorted((place / "report").rglob("*")):
        if path.is_file():
            yield f"report/{path.relative_to(place / 'report').as_posix()}", path.read_bytes()
    if pictures == "full":
        yield from _pictures(study, evidence)


def plan_files(study: StudyContext, adherence: PlanAdherence | None) -> dict[str, bytes | Path]:
    """Return the seal, the current plan and the history of the study."""
    files: dict[str, bytes | Path] = {}
    if history := StudyHistory(study.folder).text():
        files[HISTORY] = history.encode()
    if adherence is not None:
        files |= {SEAL: adherence.seal.to_json().encode(), PLAN: _json(adherence.to_dict())}
    return files


def _measurements(study: StudyContext) -> Iterator[Mapping[str, Any]]:
    """Yield the measurements under the current version, then what other instruments read."""
    instruments = study.design.instruments(study.store.sources())
    others = [rater.readings_version for rater in instruments.raters if not rater.from_measurement]
    for version in (instruments.version, *others):
        for ident, (numbers, reasons) in sorted(study.store.measurements(version).items()):
            yield {"request_id": ident, "version": version, "numbers": numbers, "reasons": reasons}


def _pictures(study: StudyContext, evidence: Evidence) -> Iterator[tuple[str, bytes | Path]]:
    """Yield all portraits and outputs in full size, named by digest."""
    wanted = {source.image for source in evidence.sources.values()}
    wanted |= {e.image for e in evidence.edits.values() if e.outcome is Outcome.EDITED and e.image}
    images = study.store.images
    for sha256 in sorted(wanted):
        content = images.read(sha256) if isinstance(images, RemoteImages) else images.path(sha256)
        yield f"{PICTURES}/{sha256}.png", content


def described(
    study: StudyContext, evidence: Evidence, results: Results, files: Mapping[str, bytes | Path], pictures: str
) -> dict[str, bytes]:
    """Return the files that describe the others, for people and in other tools' formats."""
    licence, title = licence_of(study), study.file.sections.study.title
    files_about = {README: readme(study, evidence, results, pictures).encode()}
    files_about |= every_eval_files(results, title)
    known = {**files, **files_about}
    files_about[CROISSANT] = croissant(title, licence, results, known, consent_facts(study) if evidence.people else {})
    return files_about


def readme(study: StudyContext, evidence: Evidence, results: Results, pictures: str) -> str:
    """Return the README of the bundle."""
    availability = {
        "none": "withheld, by digest only",
        "thumbnails": "small copies in report/",
        "full": "in full in pictures/",
    }
    return (
        resource_files(__package__)
        .joinpath("readme.md")
        .read_text("utf-8")
        .format(
            title=study.file.sections.study.title,
            mark="**SIMULATED: these data say nothing about any real editor.**\n\n" if results.simulated else "",
            editors=", ".join(results.editors),
            version=__version__,
            edits=len(evidence.edits),
            portraits=len(evidence.sources),
            judged=sum(reply.kind is Kind.VLM for reply in evidence.replies),
            people=len(evidence.people),
            pictures=availability[pictures],
        )
    )


def _json(body: Mapping[str, Any]) -> bytes:
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()

"""A study written as tables, with all that an analysis needs to come to the same estimates from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenedit.cases.review_queue import write_reviews
from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.records import Prompt
from evenedit.judges.parsing import evidence_of
from evenedit.protocol import Factor
from evenedit.protocol.prompts import FLOOR
from evenedit.ratings.combine import combine, priority
from evenedit.ratings.exported import CHANCE
from evenedit.ratings.ratings_file import ratings_frame
from evenedit.ratings.sources import StoredRater
from evenedit.ratings.table import MISSING, RatingTable, ReadingNote
from evenedit.ratings.to_csv import ENSEMBLE, Words, answer_column, write_tables
from evenedit.results.materials import MaterialsUsed
from evenedit.results.primary import PrimaryStanding
from evenedit.results.reading import decode
from evenedit.sources.parquet_files import connect
from evenedit.stats import AnalysisRules, KnownEffect, StudyFacts
from evenedit.study.analysis import SURVEY, analysis_rules, known_effects, primary_standing, study_counts
from evenedit.study.context import StudyContext
from evenedit.study.materials import collect_materials
from evenedit.survey.codebook import codebook_files, codebook_of_table

FILE, SCHEMA = "study.json", "evenedit.export/1"
PARQUET = "ratings.parquet"


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """What an analysis needs of a study beside its tables: study.json of an export."""

    title: str
    study: str
    """Names the study's content."""
    rules: AnalysisRules
    factors: tuple[Factor, ...]
    prompts: tuple[Prompt, ...]
    raters: Mapping[str, str]
    """Kinds of raters by name, in the table's order; those who have not answered yet too."""
    readings: tuple[ReadingNote, ...]
    counts: Mapping[str, int]
    """What is counted in the study and not in its tables."""
    planted: tuple[Mapping[str, Any], ...]
    """What its simulated editors are known to do."""
    materials: MaterialsUsed = field(default_factory=MaterialsUsed)
    """What was asked, word for word."""
    rubric: tuple[Mapping[str, Any], ...] = ()
    """The questions as tables of a rubric file; empty for the shipped default."""
    declared: PrimaryStanding = "stated"
    """When the tests of [primary] were declared."""

    def facts(self, provenance: Mapping[str, Any], inclusion: Mapping[str, float], digest: str) -> StudyFacts:
        """Return the facts that an analysis of the study's tables needs."""
        return StudyFacts(
            provenance=provenance,
            title=self.title,
            prompts={prompt.id: prompt.text for prompt in self.prompts if prompt.id != FLOOR.id},
            materials=self.materials,
            counts=self.counts,
            known_effects=[KnownEffect(**effect) for effect in self.planted],
            inclusion=inclusion,
            digest=digest,
            declared=self.declared,
        )

    @classmethod
    def of(cls, study: StudyContext, table: RatingTable) -> StudyRecord:
        """Build the record of a study."""
        file = study.file
        rules = analysis_rules(file, table.rubric)
        prompts = {prompt.id: prompt for prompt in (FLOOR, *file.wino, *file.prompts)}
        return cls(
            title=file.sections.study.title,
            study=file.hash,
            rules=rules,
            factors=file.factors,
            prompts=tuple(prompts.values()),
            raters={name: kind.value for name, kind in zip(table.raters, table.kinds, strict=True)},
            readings=tuple(ReadingNote.of(reading) for reading in table.readings),
            counts=study_counts(study),
            planted=tuple(effect._asdict() for effect in known_effects(study)),
            materials=collect_materials(study, combine(table, rules.ensemble, rules.missing)),
            rubric=tuple(table.rubric.to_tables()),
            declared=primary_standing(study),
        )

    def to_json(self) -> str:
        """Serialise the record."""
        return json.dumps({"schema": SCHEMA} | asdict(self), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> StudyRecord:
        """Read the record that an export wrote."""
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EvenEditError(f"{path} is damaged: {type(error).__name__}: {error}; export the study again") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, where: str) -> StudyRecord:
        """Parse a record; errors name `where` it came from."""
        try:
            body = json.loads(text)
            schema = body.pop("schema", None) if isinstance(body, dict) else None
            if schema != SCHEMA:
                raise EvenEditError(
                    f"{where} is of schema {schema!r}; this release reads {SCHEMA}: export the study again"
                )
            record: StudyRecord = decode(cls, body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EvenEditError(
                f"{where} is damaged: {type(error).__name__}: {error}; export the study again"
            ) from None
        return record


def write_parquet(table: RatingTable, path: Path) -> Path:
    """Write every rating as one Parquet file: a row for each edit, rater and question."""
    with connect("writing Parquet") as database:
        database.from_df(ratings_frame(table)).write_parquet(str(path))
    return path


def write_export(study: StudyContext, out: Path, *, parquet: bool = False) -> list[Path]:
    """Write every rating of a study as CSV, reviews with their notes, a codebook and study.json; return the paths.

    With `parquet`, write ratings.parquet too.
    """
    table = study.table()
    paths = write_tables(table, out, extra_columns=_extra_columns(study, table), words=_words(study))
    paths += write_reviews(study, out)
    for name, content in codebook_files(codebook_of_table(study.file, table)).items():
        write_whole(out / name, content)
        paths.append(out / name)
    write_whole(out / FILE, StudyRecord.of(study, table).to_json().encode())
    return [*paths, out / FILE, *([write_parquet(table, out / PARQUET)] if parquet else [])]


def _extra_columns(study: StudyContext, table: RatingTable) -> dict[str, Any]:
    """Further columns of the edits: chance to be drawn for people, the judges' one score, how soon to look at it."""
    rules, chances = analysis_rules(study.file), study.store.cases(SURVEY)
    scores = combine(table, rules.ensemble, rules.missing)
    scored = np.any(scores.values > MISSING, axis=1)
    columns: dict[str, Any] = {CHANCE: [chances.get(ident) for ident in table.edits["request_id"]]} if chances else {}
    columns |= {
        f"{ENSEMBLE}{name}": answer_column(scores.of(name), question)
        for name, question in table.rubric.questions.items()
    }
    columns["needs_review"] = np.where(scored, np.where(scores.needs_review, "yes", "no"), "")
    columns["priority"] = np.where(scored, priority(scores, rules.rates), "")
    return columns


def _words(study: StudyContext) -> dict[tuple[str, str], Words]:
    """Return what each judge wrote about each edit, and why a rater has no answer."""
    raters: list[StoredRater] = [*study.design.judges(), *study.design.instruments(study.store.sources()).raters]
    return {
        (rater.id, ident): _words_of_reply(reply.raw, reply.reason)
        for rater in raters
        for ident, reply in study.store.replies_of(rater.id, rater.revision).items()
    }


def _words_of_reply(raw: str, reason: str) -> Words:
    evidence, observations = evidence_of(raw)
    return Words(json.dumps(observations, ensure_ascii=False) if observations else "", evidence, reason)

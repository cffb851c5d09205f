"""A study written as tables, with all that an analysis needs to come to the same estimates from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.core.records import Prompt
from evenedit.judges.parsing import evidence_of
from evenedit.protocol import Factor
from evenedit.protocol.prompts import FLOOR
from evenedit.ratings.combine import combine, priority
from evenedit.ratings.exported import CHANCE
from evenedit.ratings.sources import StoredRater
from evenedit.ratings.table import MISSING, QUESTION_IDS, RatingTable
from evenedit.ratings.to_csv import ENSEMBLE, Words, answer_column, write_tables
from evenedit.results.asked import Asked
from evenedit.results.reading import decode
from evenedit.stats import AnalysisRules, KnownEffect
from evenedit.study.asked import asked_of
from evenedit.study.results import SURVEY, counts_of, effects_of, rules_of
from evenedit.study.review_queue import write_reviews
from evenedit.study.study import Study

FILE, SCHEMA = "study.json", "evenedit.export/1"


@dataclass(frozen=True, slots=True)
class ReadingNote:
    """A reading of an instrument, and what must be known to read it."""

    instrument: str
    measure: str
    note: str


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
    asked: Asked = field(default_factory=Asked)
    """What was asked, word for word."""

    @property
    def effects(self) -> list[KnownEffect]:
        """The planted effects as an analysis takes them."""
        return [KnownEffect(**effect) for effect in self.planted]

    @classmethod
    def of(cls, study: Study, table: RatingTable) -> StudyRecord:
        """The record of a study as it stands."""
        file = study.file
        rules = rules_of(file)
        prompts = {prompt.id: prompt for prompt in (FLOOR, *file.wino, *file.prompts)}
        return cls(
            title=file.sections.study.title,
            study=file.hash,
            rules=rules,
            factors=file.factors,
            prompts=tuple(prompts.values()),
            raters={name: kind.value for name, kind in zip(table.raters, table.kinds, strict=True)},
            readings=tuple(ReadingNote(r.rater, r.measure, r.note) for r in table.readings),
            counts=counts_of(study),
            planted=tuple(effect._asdict() for effect in effects_of(study)),
            asked=asked_of(study, combine(table, rules.ensemble, rules.missing)),
        )

    def to_json(self) -> str:
        """The record as text."""
        return json.dumps({"schema": SCHEMA} | asdict(self), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> StudyRecord:
        """The record that an export wrote."""
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EvenEditError(f"{path} is damaged: {type(error).__name__}: {error}; export the study again") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, where: str) -> StudyRecord:
        """The record in a text; `where` it stands is named by errors."""
        try:
            body = json.loads(text)
            found = body.pop("schema", None) if isinstance(body, dict) else None
            if found != SCHEMA:
                raise EvenEditError(
                    f"{where} is of schema {found!r}; this release reads {SCHEMA}: export the study again"
                )
            record: StudyRecord = decode(cls, body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EvenEditError(
                f"{where} is damaged: {type(error).__name__}: {error}; export the study again"
            ) from None
        return record


def write_export(study: Study, out: Path) -> list[Path]:
    """Write every rating of a study as CSV, reviews with their notes, and study.json; return the paths."""
    table = study.table()
    paths = write_tables(table, out, beside=_beside(study, table), words=_words(study))
    paths += write_reviews(study, out)
    write_whole(out / FILE, StudyRecord.of(study, table).to_json().encode())
    return [*paths, out / FILE]


def _beside(study: Study, table: RatingTable) -> dict[str, Any]:
    """Further columns of the edits: chance to be drawn for people, the judges' one score, how soon to look at it."""
    rules, chances = rules_of(study.file), study.store.cases(SURVEY)
    scores = combine(table, rules.ensemble, rules.missing)
    scored = np.any(scores.values > MISSING, axis=1)
    columns: dict[str, Any] = {CHANCE: [chances.get(ident) for ident in table.edits["request_id"]]} if chances else {}
    columns |= {f"{ENSEMBLE}{q}": answer_column(scores.values[:, at], q) for at, q in enumerate(QUESTION_IDS)}
    columns["needs_review"] = np.where(scored, np.where(scores.needs_review, "yes", "no"), "")
    columns["priority"] = np.where(scored, priority(scores, rules.rates), "")
    return columns


def _words(study: Study) -> dict[tuple[str, str], Words]:
    """What each judge wrote about each edit, and why it or an instrument has no answer."""
    raters: list[StoredRater] = [*study.design.judges(), *study.design.instruments(study.store.sources()).raters]
    return {
        (rater.id, ident): _said(reply.raw, reply.reason)
        for rater in raters
        for ident, reply in study.store.replies_of(rater.id, rater.revision).items()
    }


def _said(raw: str, reason: str) -> Words:
    evidence, observations = evidence_of(raw)
    return Words(json.dumps(observations, ensure_ascii=False) if observations else "", evidence, reason)

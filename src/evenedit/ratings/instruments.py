"""The study's instruments as raters: their revisions, their ratings and the numbers they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.hashing import digest
from evenedit.core.records import NULL_PAIR_EDITOR, Edit, Experiment, Kind, Outcome, Request, Source
from evenedit.instruments import VERSION, Instrument, Measurement, age_model
from evenedit.instruments.identity import EMBEDDING, available, reference_key
from evenedit.instruments.measure import Pair
from evenedit.ratings.table import Reading
from evenedit.storage.store import Store

MEASURED = (Experiment.DIAGNOSIS, Experiment.MITIGATION)
"""Experiments whose outputs show the one person of their source; of two portraits made one there is no pair."""


@dataclass(frozen=True, slots=True)
class InstrumentRater:
    """One instrument of a study."""

    id: str
    revision: str
    """Names the instrument, its settings and the version of the measurement: a change makes new ratings."""
    instrument: Instrument
    editors: frozenset[str]
    """Whose outputs it measures; null pairs always."""
    kind: Kind = Kind.INSTRUMENT


class Instruments:
    """A study's instruments and what they read."""

    def __init__(self, file: StudyFile, store: Store, sources: Mapping[str, Source]) -> None:
        self.store, self.sources = store, sources
        sections = file.sections.instruments
        built: list[Instrument] = [plugins.build("instruments", s.kind, s.settings) for s in sections]
        self.identity = any(instrument.identity for instrument in built)
        self.gender = any(getattr(instrument, "gender", False) for instrument in built)
        self.age = self.gender or any(getattr(instrument, "age", False) for instrument in built)
        self.targets = {prompt.id: prompt.target_years for prompt in file.prompts if prompt.target_years}
        self.grouped_by = file.factors[0].name
        self.people = [(s.attributes.get(self.grouped_by, ""), s.image) for s in sources.values()]
        able = self.identity and available()
        parts = [VERSION, self.identity, EMBEDDING if able else "", reference_key(self.people)]
        if self.age:
            parts += [age_model.NAME if age_model.ready() else "", self.gender]
        self.version = digest(parts)[:12]
        editor_ids = [editor.id for editor in file.sections.editors]
        self.raters = [
            InstrumentRater(
                section.id,
                self._revision(section.kind, section.settings),
                instrument,
                frozenset([*(editor_ids if section.editors is None else section.editors), NULL_PAIR_EDITOR]),
            )
            for section, instrument in zip(sections, built, strict=True)
        ]

    def _revision(self, kind: str, settings: Mapping[str, Any]) -> str:
        return digest([kind, plugins.identity("instruments", kind, settings), self.version])[:8]

    def pairs(self, requests: Sequence[Request], edits: Mapping[str, Edit]) -> list[Pair]:
        """Return every edit of one portrait that has a picture and is measured by an instrument."""
        editors = frozenset[str]().union(*(rater.editors for rater in self.raters))
        measurable = []
        for request in requests:
            edit = edits.get(request.id)
            if edit is None or edit.outcome is not Outcome.EDITED or edit.image is None:
                continue
            if request.experiment in MEASURED and request.editor in editors:
                source = self.sources[request.source_ids[0]]
                group = source.attributes.get(self.grouped_by, "")
                target = self.targets.get(request.prompt_id)
                measurable.append(Pair(request.id, source.image, edit.image, group, request.editor, target))
        return measurable

    def measurements(self) -> dict[str, Measurement]:
        """Return the measurements so far by request id."""
        stored = self.store.measurements(self.version)
        return {
            ident: Measurement(**numbers, reasons=reasons, notes=()) for ident, (numbers, reasons) in stored.items()
        }

    def readings(self, requests: Sequence[str]) -> tuple[Reading, ...]:
        """Return the instruments' readings of these edits; readings not asked for are missing without a reason."""
        rows = {ident: row for row, ident in enumerate(requests)}
        measured = {ident: value for ident, value in self.measurements().items() if ident in rows}
        rows_read: list[Reading] = []
        for rater in self.raters:
            answered = self.store.answered(rater.id, rater.revision)
            by_request = {ident: rater.instrument.readings(one) for ident, one in measured.items() if ident in answered}
            for name in dict.fromkeys(name for one in by_request.values() for name in one):
                values = np.full(len(rows), np.nan)
                reasons = [""] * len(rows)
                for ident, one in by_request.items():
                    value = one[name]
                    if value is None:
                        reasons[rows[ident]] = rater.instrument.missing(measured[ident], name)
                    else:
                        values[rows[ident]] = value
                rows_read.append(Reading(rater.id, name, values, tuple(reasons), rater.instrument.notes.get(name, "")))
        return tuple(rows_read)

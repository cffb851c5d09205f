"""The study's instruments as raters: their revisions, their ratings and the numbers they read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenedit.config.sections import InstrumentSection
from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.jsonable import plain
from evenedit.core.python_objects import KIND, resolve_method, revision_of
from evenedit.core.records import NULL_PAIR_EDITOR, Edit, Experiment, Kind, Outcome, Request, Source
from evenedit.instruments import VERSION, Instrument, Measurement, PairContext, age_model
from evenedit.instruments.identity import EMBEDDING, available, reference_key
from evenedit.instruments.interface import Pair
from evenedit.instruments.picture import Picture
from evenedit.instruments.reading import InstrumentSpec, NumberSpec, PairReading, own_questions, read_pair
from evenedit.protocol.measures import Measure
from evenedit.protocol.prompts import FLOOR
from evenedit.protocol.questions import QuestionRow
from evenedit.protocol.rubric import outcome_rates
from evenedit.ratings.table import Reading
from evenedit.storage.store import Store

MEASURED = (Experiment.DIAGNOSIS, Experiment.MITIGATION)
"""Experiments whose outputs show the one person of their source; of two portraits made one there is no pair."""
FACT = "instruments"
"""Where the store keeps what other instruments than the built-in ones read, so that it is shown without them."""
UNSEEN = Picture(np.zeros((1, 1, 3), dtype=np.uint8))
"""Stands for both pictures of a pair whose measurement is stored."""


@dataclass(frozen=True, slots=True)
class InstrumentRater:
    """One instrument of a study."""

    id: str
    revision: str
    """Names the instrument, its settings and the version of the measurement: a change makes new ratings."""
    instrument: Instrument | None
    """None where it is not at hand: a plug-in that is not installed, or a Python object that was not passed."""
    spec: InstrumentSpec
    editors: frozenset[str]
    """Whose outputs it measures; null pairs always."""
    section: InstrumentSection
    kind: Kind = Kind.INSTRUMENT

    @property
    def from_measurement(self) -> bool:
        """Whether it reads the shared measurement alone, so that its readings need not be stored."""
        return getattr(self.instrument, "from_measurement", False)

    @property
    def readings_version(self) -> str:
        """Names its readings in the store."""
        return f"{self.id}:{self.revision}"

    def read_stored(self, pair: Pair, measurement: Measurement) -> PairReading:
        """Read a pair from its stored measurement."""
        assert self.instrument is not None
        context = PairContext.of_measurement(pair.prompt, pair.condition, measurement)
        return read_pair(self.instrument, self.spec, UNSEEN, UNSEEN, context)

    def record(self) -> dict[str, Any]:
        """Return what the readings need to be shown without the instrument."""
        section = {"kind": self.section.kind, "settings": self.section.settings}
        record: dict[str, Any] = plain({**section, "revision": self.revision, "spec": asdict(self.spec)})
        return record


class Instruments:
    """A study's instruments and what they read."""

    def __init__(
        self,
        file: StudyFile,
        store: Store,
        sources: Mapping[str, Source],
        objects: Mapping[str, Any] | None = None,
    ) -> None:
        self.store, self.sources, self.rubric = store, sources, file.rubric
        sections = file.sections.instruments
        built = [_build(section, objects or {}) for section in sections]
        self.identity = any(getattr(instrument, "identity", False) for instrument in built)
        self.gender = any(getattr(instrument, "gender", False) for instrument in built)
        self.age = self.gender or any(getattr(instrument, "age", False) for instrument in built)
        self.prompts = {prompt.id: prompt for prompt in (FLOOR, *file.wino, *file.prompts)}
        self.grouped_by = file.factors[0].name
        self.people = [(s.attributes.get(self.grouped_by, ""), s.image) for s in sources.values()]
        able = self.identity and available()
        parts = [VERSION, self.identity, EMBEDDING if able else "", reference_key(self.people)]
        if self.age:
            parts += [age_model.NAME if age_model.ready() else "", self.gender]
        self.version = digest(parts)[:12]
        editor_ids = [editor.id for editor in file.sections.editors]
        self.raters = [
            self._rater(
                section,
                instrument,
                frozenset([*(editor_ids if section.editors is None else section.editors), NULL_PAIR_EDITOR]),
            )
            for section, instrument in zip(sections, built, strict=True)
        ]

    def _rater(self, section: InstrumentSection, instrument: Any, editors: frozenset[str]) -> InstrumentRater:
        if instrument is None:
            revision, spec = self._recorded(section)
            return InstrumentRater(section.id, revision, None, spec, editors, section)
        spec = InstrumentSpec.of(instrument, section.id, self.rubric)
        settings = section.settings
        if section.kind != KIND:
            settings = plugins.identity("instruments", section.kind, settings)
        parts: list[Any] = [section.kind, settings]
        shared = getattr(instrument, "from_measurement", False)
        parts += [self.version] if shared else [VERSION, revision_of("instrument", section.id, instrument)]
        return InstrumentRater(section.id, digest(parts)[:8], instrument, spec, editors, section)

    def _recorded(self, section: InstrumentSection) -> tuple[str, InstrumentSpec]:
        """Return the revision of an instrument that is not at hand, and what it reads."""
        row = json.loads(self.store.fact(FACT) or "{}").get(section.id)
        if row and (row["kind"], row["settings"]) == (section.kind, plain(section.settings)):
            return row["revision"], _spec(row)
        if section.kind != KIND:
            problems = plugins.problems("instruments", section.kind, section.settings)
            raise EvenEditError(*(f"instruments '{section.id}': {problem}" for problem in problems))
        return "", InstrumentSpec({}, (), {})  # it was passed to a run that ended before it read anything

    def keep_records(self) -> None:
        """Store what the readings need to be shown without the plug-ins and objects that read them."""
        rows = json.loads(self.store.fact(FACT) or "{}")
        new = {r.id: r.record() for r in self.raters if r.instrument is not None and not r.from_measurement}
        if rows != rows | new:
            self.store.set_fact(FACT, json.dumps(rows | new))

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
                prompt, condition = self.prompts[request.prompt_id], str(request.condition)
                measurable.append(Pair(request.id, source.image, edit.image, group, request.editor, prompt, condition))
        return measurable

    def measurements(self) -> dict[str, Measurement]:
        """Return the measurements so far by request id."""
        stored = self.store.measurements(self.version)
        return {
            ident: Measurement(**numbers, reasons=reasons, notes=()) for ident, (numbers, reasons) in stored.items()
        }

    def readings(self, requests: Sequence[Request], edits: Mapping[str, Edit]) -> tuple[Reading, ...]:
        """Return the instruments' readings of the requests that were made; missing ones have a reason if asked for."""
        rows = {request.id: row for row, request in enumerate(r for r in requests if r.id in edits)}
        pairs, measured = self.pairs(requests, edits), self.measurements()
        return tuple(
            reading
            for rater in self.raters
            for reading in _as_readings(rater, len(rows), self._read(rater, pairs, measured, rows))
        )

    def _read(
        self,
        rater: InstrumentRater,
        pairs: Sequence[Pair],
        measured: Mapping[str, Measurement],
        rows: Mapping[str, int],
    ) -> dict[int, tuple[Mapping[str, float | None], Mapping[str, str]]]:
        """Return an instrument's numbers, and reasons for missing ones, by row."""
        if not rater.from_measurement:
            stored = self.store.measurements(rater.readings_version)
            return {rows[ident]: numbers for ident, numbers in stored.items() if ident in rows}
        answered = self.store.answered(rater.id, rater.revision)
        read = {
            rows[pair.request_id]: rater.read_stored(pair, measured[pair.request_id])
            for pair in pairs
            if pair.request_id in measured and pair.request_id in answered
        }
        return {row: (one.numbers, one.reasons) for row, one in read.items()}


def recorded_questions(store: Store, wanted: Collection[str]) -> list[QuestionRow]:
    """Return the questions that some instruments brought along when they read."""
    rows = json.loads(store.fact(FACT) or "{}")
    return own_questions(_spec(rows[ident]) for ident in wanted if ident in rows)


def _spec(record: Mapping[str, Any]) -> InstrumentSpec:
    """Return what a recorded instrument reads."""
    answers = {name: tuple(codes) for name, codes in record["spec"]["answers"].items()}
    numbers = {name: NumberSpec(**number) for name, number in record["spec"]["numbers"].items()}
    return InstrumentSpec(answers, tuple(record["spec"]["own_tables"]), numbers)


def _build(section: InstrumentSection, objects: Mapping[str, Any]) -> Any:
    """Return the instrument of a section; None where it is not at hand."""
    if section.kind == KIND:
        return objects.get(section.id)
    if section.kind not in plugins.installed("instruments"):
        return None
    instrument = plugins.build("instruments", section.kind, section.settings)
    resolve_method("instrument", "read", section.id, instrument)
    return instrument


def _as_readings(
    rater: InstrumentRater, size: int, read: Mapping[int, tuple[Mapping[str, float | None], Mapping[str, str]]]
) -> Iterator[Reading]:
    """Yield each number, and of one with a tolerance the edits above and below it.

    An edit with an interval in the place of a number is above or below where the whole interval is.
    """
    for name, spec in rater.spec.numbers.items() if read else ():
        values, reasons = np.full(size, np.nan), [""] * size
        low, high = np.full(size, np.nan), np.full(size, np.nan)
        for row, (numbers, missing) in read.items():
            value = numbers.get(name)
            values[row], reasons[row] = (np.nan, missing[name]) if value is None else (value, "")
            ends = [numbers.get(f"{name}_{end}") if value is None else value for end in ("low", "high")]
            low[row], high[row] = (np.nan if end is None else end for end in ends)
        measure = Measure.rate(name) if spec.rate else Measure.mean(name)
        yield Reading(rater.id, measure, values, tuple(reasons), spec.note, spec.title, spec.unit, spec.phrase)
        for rate, sign in spec.sides(name).items():
            far, side = f"{spec.tolerance:g} {spec.unit}".strip(), "above" if sign > 0 else "below"
            nearer, further = (low, high) if sign > 0 else (-high, -low)
            limit = spec.tolerance or 0.0
            beyond = np.where(nearer > limit, 1.0, np.where(further <= limit, 0.0, np.nan))
            stated = rate in outcome_rates()
            yield Reading(
                rater.id,
                Measure.rate(rate),
                beyond,
                tuple(reason if undecided else "" for reason, undecided in zip(reasons, np.isnan(beyond), strict=True)),
                title="" if stated else f"{spec.title}: more than {far} {side} 0",
                phrase=""
                if stated
                else f"measured more than {far} {side} no change in {spec.title[0].lower()}{spec.title[1:]}",
            )

"""What a study plans: its portraits, its requests, and who rates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

from evenedit.config.study_file import Mitigation, StudyFile
from evenedit.core import plugins
from evenedit.core.records import NULL_PAIR_EDITOR, Experiment, Request, Source
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment, Planner, is_seen
from evenedit.judges.feature_prompts import extractor_id
from evenedit.judges.raters import JudgeRater, judge_raters
from evenedit.ratings.build import build_table, edit_frame
from evenedit.ratings.instruments import Instruments
from evenedit.ratings.reviews import ReviewRatings, Reviews
from evenedit.ratings.sources import RatingSource, StoredRater, StoredRatings
from evenedit.ratings.table import RatingTable
from evenedit.storage.store import Store

DRIFTED = "mitigation-drift"
"""The sample of cases that were chosen because they had drifted: what they gain includes regression to the mean."""
RATED_FIRST = {"drift": DRIFTED, "priority": "mitigation-priority"}
"""Ways to choose that need the diagnosis rated, with the sample's name."""
MITIGATION_DRAWN = "sample mitigation"
"""The fact that says by which settings the stored cases were drawn; studies of 0.3 have none."""
LISTED = "mitigation-listed"
"""The sample of cases that an import named."""


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A study's file and store, read as a plan."""

    file: StudyFile
    store: Store

    def preview_sources(self) -> dict[str, Source]:
        """Return the portraits with their labels, without storing anything."""
        return self.store.sources() or {
            ident: Source(ident, "", attributes, origin) for ident, attributes, origin, _ in self.portraits()
        }

    def portraits(self) -> Iterable[tuple[str, dict[str, str], str, Image]]:
        """Yield the portraits of the source: id, labels, origin, picture."""
        portraits: Iterable[tuple[str, dict[str, str], str, Image]] = self._source().portraits()
        return portraits

    def listing(self) -> str:
        """Return the digest of the source's list of portraits; empty if it has none."""
        return str(getattr(self._source(), "listing", ""))

    def _source(self) -> Any:
        section = self.file.sections.sources
        settings = self.file.located(section.settings)
        if plugins.accepts("sources", section.kind, "factors"):
            settings["factors"] = self.file.factors
        return plugins.build("sources", section.kind, settings)

    def planned(self, sources: Mapping[str, Source]) -> list[Request]:
        """Return the requests of the study; those with a feature prompt only once the prompt is stored."""
        baseline = design.diagnosis(self.file, sources)
        requests = [*baseline, *design.in_languages(self.file, baseline), *design.floor(self.file, sources)]
        requests += design.stereotype(self.file, sources)
        section = self.file.sections.experiments.mitigation
        if section:
            texts = self.feature_texts(section)
            cases = self.mitigation_cases(baseline, sources)
            cases = [c for c in cases if c.source_ids[0] in texts]
            requests += design.mitigation(self.file, cases, texts)
        return [*requests, *self.null_pairs(sources)]

    def null_pairs(self, sources: Mapping[str, Source]) -> list[Request]:
        """Return the null pairs; none in a study begun without them, unless its file states their number."""
        section, store = self.file.sections.experiments.diagnosis, self.store
        stated = section is not None and section.null_pairs is not None
        if not stated and store.count_edits() and not store.has_requests(NULL_PAIR_EDITOR):
            return []
        return design.null_pairs(self.file, sources)

    def feature_texts(self, section: Mitigation) -> dict[str, str]:
        """Return the feature prompt by portrait: the first extractor's, or the next one's if it is flagged."""
        prompts = [self.store.features(extractor_id(e.kind, e.settings)) for e in section.extractors]
        texts: dict[str, str] = {}
        for source in dict.fromkeys(s for each in prompts for s in each):
            candidates = [each[source] for each in prompts if source in each]
            texts[source] = next((text for text, flags in candidates if not flags), candidates[0][0])
        return texts

    def mitigation_cases(
        self, baseline: Sequence[Request], sources: Mapping[str, Source], *, keep: bool = False
    ) -> list[Request]:
        """Return the cases for the feature prompt; none before the diagnosis is rated if drift decides."""
        section = self.file.sections.experiments.mitigation
        if section is None:
            return []
        if section.choose == "listed" or section.choose in RATED_FIRST:
            chosen = self.store.cases(RATED_FIRST.get(section.choose, LISTED))
            return [r for r in baseline if r.id in chosen]
        how = section.model_dump_json(include={"cases", "choose"}) + f" seed {self.file.sections.study.seed}"
        stored, drawn_by = self.store.cases(Experiment.MITIGATION), self.store.fact(MITIGATION_DRAWN)
        known = [r for r in baseline if r.id in stored]
        if len(known) == len(stored) == section.cases and drawn_by in (None, how):
            return known
        if keep:
            self.store.forget_cases(Experiment.MITIGATION)
            self.store.set_fact(MITIGATION_DRAWN, how)
        return self.cases("mitigation", baseline, sources, section.cases, keep=keep, sampler=section.choose)

    def cases(
        self,
        name: str,
        baseline: Sequence[Request],
        sources: Mapping[str, Source],
        size: int,
        *,
        keep: bool = False,
        sampler: str = "balanced",
    ) -> list[Request]:
        """Return the sampled cases of the diagnosis; `keep` stores them with their inclusion probabilities."""
        able = {e.id for e in self.file.editors(name)} if name == Experiment.MITIGATION else None
        eligible = [r for r in baseline if able is None or r.editor in able]
        sample = design.sample_cases(name, self.file, eligible, sources, size, sampler)
        if keep:
            self.store.save_cases(name, sample.probabilities)
        return [r for r in baseline if r.id in sample.probabilities]

    def judges(self) -> list[JudgeRater]:
        """Return the study's judges, primary first."""
        return judge_raters(self.file)

    def assignments(
        self, requests: Sequence[Request], raters: Sequence[JudgeRater], sources: Mapping[str, Source] | None = None
    ) -> list[Assignment]:
        """Assign the requests, and the pictures of their sources, to the judges."""
        if sources is None:
            sources = self.preview_sources() if requests else {}
        return Planner(self.file, sources).calls(requests, raters)

    def instruments(self, sources: Mapping[str, Source], objects: Mapping[str, Any] | None = None) -> Instruments:
        """Return the study's instruments; `objects` are those of a run that are Python objects, by id."""
        return Instruments(self.file, self.store, sources, objects)

    def table(self, people: Sequence[RatingSource] = ()) -> RatingTable:
        """Build the rating table of judges, instruments, reviewers and these people."""
        sources, reviewers = self.store.sources(), self.file.sections.ensemble.reviewers
        requests, edits = self.planned(sources), self.store.edits()
        instruments = self.instruments(sources)
        raters: list[StoredRater] = [*self.judges(), *instruments.raters]
        seen = [r for r in requests if is_seen(r)] if self.file.rubric.seen else []
        pictures = {r.id: sources[r.source_ids[0]].image for r in seen}
        stored = [StoredRatings(self.store, rater, pictures) for rater in raters]
        frame = edit_frame(requests, edits, sources, self.file.factors)
        return build_table(
            frame,
            self.file.factors,
            [*stored, *people, ReviewRatings(Reviews(self.store), reviewers)],
            readings=instruments.readings(requests, edits),
            reviewers=reviewers,
            asks={prompt.id: prompt.asks for prompt in (*self.file.prompts, *self.file.wino)},
            rubric=self.file.rubric,
        )

"""The stages in order. Read this first.

sources ─▶ requests ─▶ edit ─▶ measure ─▶ rate ─▶ (people, in the survey) ─▶ table ─▶ (statistics, report)

Where the mitigation asks for cases that drifted, they are chosen, edited and rated once the diagnosis is rated.

Each stage looks at what the store already holds and does the rest, so a run can be stopped or killed at any
moment and started again. The thread that runs the study is the only writer. An editor or judge that keeps failing is
stopped and the others go on; the summary says what is missing and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from evenedit.config.sections import Plugged
from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.log import log
from evenedit.core.provenance import provenance
from evenedit.core.records import Experiment, Request, Source
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment
from evenedit.design.study_design import RATED_FIRST, StudyDesign
from evenedit.editors.python import GivenEditor
from evenedit.judges.asking import Asking
from evenedit.judges.batch_jobs import Batches, BatchJudge, takes_batches
from evenedit.judges.cache import ReplyCache
from evenedit.judges.feature_prompts import VLMExtractor, extractor_id
from evenedit.judges.python import GivenJudge
from evenedit.judges.raters import JudgeRater
from evenedit.providers.budget import Account, Budget, Meter
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine, concerns
from evenedit.run.collecting import collect
from evenedit.run.describing import DescribingStage
from evenedit.run.editing import EditingStage
from evenedit.run.measuring import MeasuringStage
from evenedit.run.models_in_use import model_notices
from evenedit.run.rating import RatingStage
from evenedit.run.summary import RunSummary, summarise
from evenedit.storage.data_state import data_state
from evenedit.storage.leases import Leases
from evenedit.storage.store import Store
from evenedit.storage.study_history import StudyHistory

T = TypeVar("T")


class Runner:
    """Makes a study advance, stage by stage."""

    def __init__(
        self,
        file: StudyFile,
        store: Store,
        budget: Budget | None = None,
        prices: Prices | None = None,
        editors: Mapping[str, GivenEditor] | None = None,
        judges: Mapping[str, GivenJudge] | None = None,
    ) -> None:
        self.file = file
        self.store = store
        self.design = StudyDesign(file, store)
        self.budget = budget or Budget()
        self.prices = prices or Prices.load()
        self.cache = ReplyCache(file.folder / file.sections.cache.folder) if file.sections.cache.use else None
        self.batch = False
        """Whether judges are asked by batch job where their provider takes them."""
        self.give_up: Sequence[str] = ()
        """Batch jobs that are waited for no longer."""
        self.given_judges = judges
        """Objects by the id of their section; where there are any, they are the run's judges."""
        self.accounts: dict[str, Account] = {}
        """What the calls of a judge or extractor cost, by its id."""
        self.editing = EditingStage(file, store, editors, self.budget)
        self.rating = RatingStage(file, store, self.asking)
        self.describing = DescribingStage(file, store, self.asking)

    @property
    def asking(self) -> Asking:
        """How judges and extractors are asked: by the cache, or by a call within the budget."""
        return Asking(self.budget, self.cache, self.file.sections.executor.retries, self.accounts)

    def run(self) -> RunSummary:
        """All stages, from wherever the last run stopped."""
        if not self.file.sections.editors:
            raise EvenEditError(
                "the study names no editor yet; add [[editors]] and [experiments.diagnosis] to study.toml, or give one "
                'from Python: study.run(editors={"mine": editor})'
            )
        if self.budget.max_cost is not None:
            self._check_prices()
        for notice in model_notices(self.file, self.prices):
            log.warning(f"note: {notice}")
        self.rating.asking = self.describing.asking = self.asking
        with self.store.running(self.file.sections.executor.lease) as leases, self.editing.staffed():
            self.editing.leases = self.rating.leases = leases
            if not leases.shared:
                self.store.images.sweep()
            run_id = self.store.start_run(provenance(study=self.file.hash))
            history = StudyHistory(self.file.folder)
            history.add("run began", run=run_id, study=self.file.hash, state=self._state(leases))
            with self._turn():
                sources = self.load_sources()
                chosen = self._chosen()
            requests = self._advance(sources, run_id)
            with self._turn():
                self._choose_by_scores(sources)
            if self._chosen() != chosen:  # now, by this run or another
                requests = self._advance(sources, run_id)
            self.store.finish_run(run_id)
            history.add("run ended", run=run_id, study=self.file.hash, state=self._state(leases))
            if self.budget.calls:
                log.info(f"calls of this run: {self.budget}")
            return self._summary(requests)

    def _state(self, leases: Leases) -> dict[str, str]:
        """Names what is in the database, for the study's history; nothing where other runs write to it too."""
        return {} if leases.shared else data_state(self.store)

    def _turn(self) -> AbstractContextManager[None]:
        """Plan alone: runs that share the study wait for one another here."""
        return self.store.one_by_one("plan")

    def _chosen(self) -> bool:
        """Whether the mitigation's cases that need scores have been chosen."""
        section = self.file.sections.experiments.mitigation
        return (
            section is not None
            and section.choose in RATED_FIRST
            and bool(self.store.cases(RATED_FIRST[section.choose]))
        )

    def _advance(self, sources: Mapping[str, Source], run_id: int) -> list[Request]:
        """Plan, edit, measure and rate what is not there yet."""
        requests = self.request(sources)
        self.edit(requests, sources, run_id)
        self.measure(requests, sources, run_id)
        self.rate(requests, sources, run_id)
        return requests

    def _summary(self, requests: Sequence[Request]) -> RunSummary:
        """What the run came to; the user's mistake is raised where nothing could be done because of it."""
        stops = [*self.describing.stops.values(), *self.editing.stops.values(), *self.rating.stops.values()]
        if not self.editing.made and not self.rating.made:
            for mistake in (stop.mistake for stop in stops if stop.mistake is not None):
                raise mistake
        return summarise(
            self.store,
            requests,
            self.design.assignments(requests, self._judges()),
            stopped=[str(stop) for stop in stops],
            undescribed=self.describing.missing,
            budget_spent=self.budget.spent,
        )

    def _judges(self) -> list[JudgeRater]:
        """The judges of this run, primary first."""
        given = self.given_judges
        if given is None:
            return self.design.judges()
        return [replace(rater, judge=given[rater.id]) for rater in self.design.judges() if rater.id in given]

    # -- sources -------------------------------------------------------------------------------------------

    def load_sources(self) -> dict[str, Source]:
        """The portraits, stored on the first run and unchanged ever after."""
        section = self.file.sections.sources
        wanted = digest(section.model_dump(mode="json", include={"kind", "settings"}))
        known = self.store.fact("sources")
        if known == wanted:
            return self.store.sources()
        if known is not None:
            raise EvenEditError(
                "the [sources] of study.toml changed after the study had begun; its edits belong to the former "
                "portraits. Restore the section, or begin a new study in another folder"
            )
        log.info("reading the portraits")
        self.editing.call_staff()
        sources = [
            Source(ident, self.store.images.put(image), attributes, origin)
            for ident, attributes, origin, image in self.design.portraits()
        ]
        self.store.save_sources(sources)
        self.store.set_fact("sources", wanted)
        return self.store.sources()

    # -- requests ------------------------------------------------------------------------------------------

    def request(self, sources: Mapping[str, Source]) -> list[Request]:
        """Everything to be edited, kept in the store; feature prompts are written on the way."""
        with self._turn():
            self._describe(sources)
            requests = self.design.planned(sources)
            self.store.save_requests(requests)
        ids = {section.id for section in self.editing.editors}
        return [r for r in requests if r.editor in ids]

    def _describe(self, sources: Mapping[str, Source]) -> None:
        """Write a feature prompt for every portrait among the mitigation cases."""
        section = self.file.sections.experiments.mitigation
        if section is None:
            return
        baseline = design.diagnosis(self.file, sources)
        cases = self.design.mitigation_cases(baseline, sources, keep=True)
        for plugged in section.extractors:
            price = self._describing_price(plugged)
            if price != {}:
                ident = extractor_id(plugged.kind, plugged.settings)
                self.accounts[ident] = Account(self.budget, price, self.prices.reserve(price, None))
        self.describing.take(list(dict.fromkeys(c.source_ids[0] for c in cases)), sources, collect)

    def _choose_by_scores(self, sources: Mapping[str, Source]) -> None:
        """Draw the cases by the judges' scores of the diagnosis, once."""
        section = self.file.sections.experiments.mitigation
        if section is None or section.choose not in RATED_FIRST or self._chosen():
            return
        baseline = design.diagnosis(self.file, sources)
        open_calls = self.rating.open(self.design.assignments(baseline, self._judges()))
        if open_calls or not baseline:
            log.info(
                f"the mitigation's cases are chosen once the diagnosis is rated: {len(open_calls):,} answers to come"
            )
            return
        ensemble = self.file.sections.ensemble
        scores = combine(self.design.table(), {"diagnosis": ensemble.diagnosis}, "exclude")
        able = {e.id for e in self.file.editors(Experiment.MITIGATION)}
        reasons = dict(zip(scores.edits["request_id"], concerns(scores, self.file.rates).tolist(), strict=True))
        wanted = design.drifted(scores, self.file.rates) if section.choose == "drift" else set(reasons)
        eligible = [r for r in baseline if r.id in wanted and r.editor in able]
        if not eligible:
            log.info("no edit was rated as drifted, so there is nothing to mitigate")
            return
        name, size = RATED_FIRST[section.choose], min(section.cases, len(eligible))
        sample = design.sample_cases(name, self.file, eligible, sources, size, section.choose, reasons)
        self.store.save_cases(name, sample.probabilities)
        log.info(
            f"{len(sample.probabilities):,} of {len(eligible):,} edits are tried again, chosen by {section.choose}"
        )

    # -- stages --------------------------------------------------------------------------------------------

    def edit(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Make every edit that is not there yet; failed ones are tried again."""
        self.editing.take(requests, sources, run_id, collect, self._price)

    def measure(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Measure every pair that is not measured yet."""
        with self.store.one_by_one("measure"):  # who waits finds nothing left to measure
            MeasuringStage(self.file, self.store, self.design.instruments(sources)).take(requests, run_id, collect)

    def rate(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Ask every judge about every edit it has not answered yet; what open batch jobs ask is waited for."""
        raters = self._judges()
        batches = self._batches(raters, run_id)
        assigned = self.design.assignments(requests, raters)
        self.rating.take("rate", assigned, sources, run_id, collect, batches, by_job=self.batch)

    def ask_again(
        self,
        title: str,
        raters: Sequence[JudgeRater],
        requests: Sequence[Request],
        sources: Mapping[str, Source],
        run_id: int,
    ) -> None:
        """Ask judges about edits otherwise than the study does: each under a revision of its own."""
        self.open_accounts(raters)
        self.rating.asking = self.asking
        self.rating.take(title, [Assignment(r, rater) for r in requests for rater in raters], sources, run_id, collect)

    # -- money ---------------------------------------------------------------------------------------------

    def open_accounts(self, raters: Sequence[JudgeRater], by_job: frozenset[str] = frozenset()) -> None:
        """Count what these judges cost from now on; those asked by batch job are counted by their jobs."""
        sections = {section.id: section for section in self.file.sections.judges}
        for rater in raters:
            section = sections[rater.id]
            if plugins.is_remote("judges", section.kind) and rater.id not in self.accounts and rater.id not in by_job:
                price = self._known(self.prices.tokens(section.kind, section.settings), section.id)
                expected = self.prices.reserve(price, self.store.tokens(rater.id))
                self.accounts[rater.id] = Account(self.budget, price, expected)

    def _batches(self, raters: Sequence[JudgeRater], run_id: int) -> Batches:
        """The batch jobs of this run, and what calls and jobs cost under the eyes of the budget."""
        sections = {section.id: section for section in self.file.sections.judges}
        remote = [r for r in raters if plugins.is_remote("judges", sections[r.id].kind)]
        judges, prices = {}, {}
        for rater in remote:
            if isinstance(rater.judge, BatchJudge) and takes_batches(rater.judge):
                judges[rater.id] = rater.judge
                section = sections[rater.id]
                price = self.prices.tokens(section.kind, section.settings, batch=True)
                price = self._known(price, section.id) if self.batch else price
                if price:
                    prices[rater.id] = price
        self.open_accounts(raters, frozenset(judges) if self.batch else frozenset())
        counters = [partial(getattr, r.judge, "tokens") for r in remote if hasattr(r.judge, "tokens")]
        meter = Meter(self.budget, counters)
        each = {rater: self.prices.reserve(price, self.store.tokens(rater)) for rater, price in prices.items()}
        batches = Batches(self.store, self.asking, run_id, judges, prices, each, meter)
        batches.give_up(self.give_up)
        return batches

    def _check_prices(self) -> None:
        """Refuse a limit of money before anything is begun where the price of something is not known."""
        for editor in self.editing.editors:
            self._price(editor)
        sections = {section.id: section for section in self.file.sections.judges}
        for rater in self._judges():
            section, by_job = sections[rater.id], self.batch and takes_batches(rater.judge)
            self._known(self.prices.tokens(section.kind, section.settings, batch=by_job), section.id)
        mitigation = self.file.sections.experiments.mitigation
        for plugged in mitigation.extractors if mitigation else ():
            self._describing_price(plugged)

    def _describing_price(self, plugged: Plugged) -> Mapping[str, float] | None:
        """Dollars per token in and out of a model that describes portraits; nothing for an extractor that asks none."""
        extractor = plugins.build("extractors", plugged.kind, plugged.settings)
        if not isinstance(extractor, VLMExtractor):
            return {}
        return self._known(self.prices.describing(plugged.settings), f"extractor '{extractor.model.model}'")

    def _price(self, section: EditorSection) -> float:
        """Dollars per edit of somebody else's service."""
        return self._known(self.prices.edit(section.plugin, section.settings), section.id) or 0.0

    def _known(self, price: T | None, name: str) -> T | None:
        """A price, which must be known where money is limited."""
        self.budget.priced &= price is not None
        if price is None and self.budget.max_cost is not None:
            raise EvenEditError(
                f"--max-cost needs the price of '{name}', which the price file of {self.prices.date} lacks. "
                "Try: --prices FILE, or --max-calls"
            )
        return price

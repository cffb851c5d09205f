"""The stages in order. Read this first.

sources ─▶ requests ─▶ edit ─▶ measure ─▶ rate ─▶ (people, in the survey) ─▶ table ─▶ (statistics, report)

Before the first edit the pre-flight names what would stop the run. A few edits of each editor then pass through all
stages, and the run ends there if a judge cannot be used.
If the mitigation needs cases that drifted, they are chosen, edited and rated after the diagnosis is rated.

Each stage does what the store does not hold yet, so a run can be stopped or killed at any moment and started again.
The thread that runs the study is the only writer, but for submissions to services (`run/submissions.py`). An editor or
judge that keeps failing is stopped and the others continue; the summary shows what is missing and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence
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
from evenedit.core.records import NULL_PAIR_EDITOR, Experiment, Outcome, Request, Source
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment, Planner
from evenedit.design.study_design import RATED_FIRST, StudyDesign
from evenedit.editors.python import PythonEditorAdapter
from evenedit.instruments import Instrument
from evenedit.judges.batch_jobs import Batches, BatchJudge, takes_batches
from evenedit.judges.cache import ReplyCache
from evenedit.judges.calling import CallPolicy
from evenedit.judges.feature_prompts import VLMExtractor, extractor_id
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.judges.raters import JudgeRater
from evenedit.providers.budget import Account, Budget, Meter
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine, concerns
from evenedit.run.collecting import collect
from evenedit.run.describing import DescribingStage
from evenedit.run.editing import EditingStage
from evenedit.run.measuring import MeasuringStage
from evenedit.run.models_in_use import model_notices
from evenedit.run.preflight import instructions_of, preflight, remarks
from evenedit.run.rating import RatingStage
from evenedit.run.streak import Stop
from evenedit.run.summary import RunSummary, summarise
from evenedit.run.twins import check_twins
from evenedit.storage.data_state import data_state
from evenedit.storage.leases import Leases
from evenedit.storage.store import Store
from evenedit.storage.study_history import RUN_FINISHED, RUN_STARTED, StudyHistory

T = TypeVar("T")
LISTING = "sources listing"
"""The fact that holds the digest of the list of portraits, where the source has one."""
STAGES = ("edit", "measure", "rate")
PILOT = 3
"""Edits of each editor that pass through all stages before the others."""


class Runner:
    """Runs the stages of a study."""

    def __init__(
        self,
        file: StudyFile,
        store: Store,
        budget: Budget | None = None,
        prices: Prices | None = None,
        editors: Mapping[str, PythonEditorAdapter] | None = None,
        judges: Mapping[str, PythonJudgeAdapter] | None = None,
        instruments: Mapping[str, Instrument] | None = None,
    ) -> None:
        self.file = file
        self.store = store
        self.design = StudyDesign(file, store)
        self.budget = budget or Budget()
        self.prices = prices or Prices.load()
        self.cache = ReplyCache(file.folder / file.sections.cache.folder) if file.sections.cache.use else None
        self.stages: Collection[str] = STAGES
        """What this run does: edit, measure and rate, or some of these where machines specialise."""
        self.batch = False
        """Whether judges are asked by batch job where their provider takes them."""
        self.give_up: Sequence[str] = ()
        """Batch jobs to give up."""
        self.python_judges = judges
        """Objects by the id of their section; where there are any, they are the run's judges."""
        self.python_instruments = instruments
        """Objects by the id of their section."""
        self.stopped_instruments: dict[str, Stop] = {}
        self.accounts: dict[str, Account] = {}
        """The cost of the calls of a judge or extractor, by its id."""
        self.editing = EditingStage(file, store, editors, self.budget)
        self.rating = RatingStage(file, store, self.asking)
        self.describing = DescribingStage(file, store, self.asking)

    @property
    def asking(self) -> CallPolicy:
        """The policy by which judges and extractors are called: from the cache, or within the budget."""
        return CallPolicy(self.budget, self.cache, self.file.sections.executor.retries, self.accounts)

    def run(self) -> RunSummary:
        """Run all stages, from where the last run stopped."""
        if not self.file.sections.editors:
            raise EvenEditError(
                "the study names no editor yet; add [[editors]] and [experiments.diagnosis] to study.toml, or pass one "
                'from Python: study.run(editors={"mine": editor})'
            )
        if self.budget.max_cost is not None:
            self._check_prices()
        for notice in model_notices(self.file, self.prices):
            log.warning(f"note: {notice}")
        self.rating.asking = self.describing.asking = self.asking
        with self.store.running(self.file.sections.executor.lease) as leases, self.editing.worker_pool():
            self.editing.leases = self.rating.leases = leases
            if not leases.shared:
                self.store.images.sweep()
            if leases.is_sole:
                self._continue_budget()
            run_id = self.store.start_run(provenance(study=self.file.hash))
            history = StudyHistory(self.file.folder)
            stated = {"study": self.file.hash, "primary": self.file.primary_digest}
            history.add(RUN_STARTED, run=run_id, **stated, state=self._state(leases))
            with self._planning_lock():
                sources = self.load_sources(run_id)
                chosen = self._chosen()
            requests = self._run_stages(sources, run_id)
            with self._planning_lock():
                self._choose_by_scores(sources)
            if self._chosen() != chosen:  # now, by this run or another
                requests = self._run_stages(sources, run_id)
            self.store.finish_run(run_id)
            history.add(RUN_FINISHED, run=run_id, study=self.file.hash, state=self._state(leases))
            if self.budget.calls:
                log.info(f"calls of this run: {self.budget}")
            return self._summary(requests)

    def _continue_budget(self) -> None:
        """Count what a run that was killed submitted: this run continues it."""
        calls, dollars = self.store.interrupted_submissions()
        if calls:
            self.budget.carry(calls, dollars)
            log.info(f"{calls:,} submissions of the run that was interrupted count against the budget")

    def _state(self, leases: Leases) -> dict[str, str]:
        """Return digests of the database for the study's history; empty if other runs write to it too."""
        return {} if leases.shared else data_state(self.store)

    def _planning_lock(self) -> AbstractContextManager[None]:
        """Return a lock for planning: runs that share the study wait for each other."""
        return self.store.one_by_one("plan")

    def _chosen(self) -> bool:
        """Return whether the mitigation's cases that depend on scores have been chosen."""
        section = self.file.sections.experiments.mitigation
        return (
            section is not None
            and section.choose in RATED_FIRST
            and bool(self.store.cases(RATED_FIRST[section.choose]))
        )

    def _run_stages(self, sources: Mapping[str, Source], run_id: int) -> list[Request]:
        """Plan, edit, measure and rate what is missing."""
        requests = self.request(sources)
        raters = self._judges() if "rate" in self.stages else []
        assigned = self.design.assignments(requests, raters)
        left, unrated = self._left(requests), self.rating.open(assigned)
        if left or unrated:
            self._preflight(left, raters)
        self._run_pilot(
            _pilot(requests, {r.id for r in left}.union(*(a.edits for a in unrated))), assigned, sources, run_id
        )
        if self._wrong_judges():
            return requests
        self.edit(requests, sources, run_id)
        self.measure(requests, sources, run_id)
        self._rate(assigned, self._batches(raters, run_id), sources, run_id)
        return requests

    def _run_pilot(
        self, pilot: Sequence[Request], assigned: Sequence[Assignment], sources: Mapping[str, Source], run_id: int
    ) -> None:
        """Pass a few edits through all stages, so that what is wrong with a judge shows before the others are made."""
        chosen = {request.id for request in pilot}
        calls = [a for a in assigned if a.edits and chosen.issuperset(a.edits)]
        if self.batch or not calls or self.store.open_jobs():  # answers of batch jobs come much later
            return
        self.edit(pilot, sources, run_id)
        self.measure(pilot, sources, run_id)
        self.open_budgets(list({a.rater.id: a.rater for a in calls}.values()))
        self._rate(calls, None, sources, run_id)
        for stop in self._wrong_judges():
            log.info(f"the run ends after the first edits of each editor: {stop}")

    def _wrong_judges(self) -> list[Stop]:
        """Return the judges that were stopped by a mistake of the user."""
        return [stop for stop in self.rating.stops.values() if stop.mistake is not None]

    def _left(self, requests: Sequence[Request]) -> list[Request]:
        """Return the edits that are still to be made."""
        ended = {ident for ident, edit in self.store.edits().items() if edit.outcome is not Outcome.FAILED}
        return [r for r in requests if r.id not in ended] if "edit" in self.stages else []

    def _preflight(self, left: Sequence[Request], raters: Sequence[JudgeRater]) -> None:
        """Raise an error for what would stop the run later, before its first edit."""
        instructions = instructions_of(left)
        if problems := preflight(self.file, self.store, instructions, raters, len(left)):
            raise EvenEditError(*problems)
        for remark in remarks(self.file, instructions):
            log.warning(f"note: {remark}")

    def _summary(self, requests: Sequence[Request]) -> RunSummary:
        """Return the summary of the run; raise the user's mistake if nothing could be done because of it."""
        stages = self.describing.stops, self.editing.stops, self.stopped_instruments, self.rating.stops
        stops = [stop for stage in stages for stop in stage.values()]
        if not self.editing.saved and not self.rating.saved:
            for mistake in (stop.mistake for stop in stops if stop.mistake is not None):
                raise mistake
        return summarise(
            self.store,
            requests,
            self.design.assignments(requests, self._judges()) if "rate" in self.stages else (),
            stopped=[str(stop) for stop in stops],
            undescribed=self.describing.missing,
            budget_spent=self.budget.spent,
        )

    def _judges(self) -> list[JudgeRater]:
        """Return the judges of this run, primary first."""
        objects = self.python_judges
        if objects is None:
            return self.design.judges()
        return [replace(rater, judge=objects[rater.id]) for rater in self.design.judges() if rater.id in objects]

    # -- sources -------------------------------------------------------------------------------------------

    def load_sources(self, run_id: int = 1) -> dict[str, Source]:
        """Return the portraits; the first run stores them, and they never change. Later runs may add others."""
        section = self.file.sections.sources
        wanted = digest(section.model_dump(mode="json", include={"kind", "settings"}))
        known, stored, listing = self.store.fact("sources"), self.store.sources(), self.design.listing()
        if known == wanted and self.store.fact(LISTING) in (None, listing):
            self.store.set_fact(LISTING, listing)
            return stored
        log.info("reading the portraits")
        self.editing.prestart_workers()
        sources = {
            ident: Source(ident, self.store.images.put(image), attributes, origin)
            for ident, attributes, origin, image in self.design.portraits()
        }
        unchanged = {i: (s.image, s.attributes) for i, s in sources.items() if i in stored}
        if known is not None and unchanged != {i: (s.image, s.attributes) for i, s in stored.items()}:
            raise EvenEditError(
                "the [sources] section of study.toml changed after the study started; its edits use the previous "
                "portraits. Restore the section, or start a new study in another folder"
            )
        added = {ident: source for ident, source in sources.items() if ident not in stored}
        if known is not None:
            log.info(f"{len(added):,} portraits are added to the {len(stored):,} of the study")
        self.store.save_added(added.values(), run_id)
        self.store.set_fact(LISTING, listing)
        self.store.set_fact("sources", wanted)
        check_twins(self.store, self.store.sources())
        return self.store.sources()

    # -- requests ------------------------------------------------------------------------------------------

    def request(self, sources: Mapping[str, Source]) -> list[Request]:
        """Plan and store the requests; write missing feature prompts first."""
        with self._planning_lock():
            self._describe(sources)
            requests = self.design.planned(sources)
            self.store.save_requests(requests)
        ids = {NULL_PAIR_EDITOR, *(section.id for section in self.editing.editors)}
        return [r for r in requests if r.editor in ids]

    def _describe(self, sources: Mapping[str, Source]) -> None:
        """Write a feature prompt for each portrait of the mitigation cases."""
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
        self.describing.run(list(dict.fromkeys(c.source_ids[0] for c in cases)), sources, collect)

    def _choose_by_scores(self, sources: Mapping[str, Source]) -> None:
        """Draw the mitigation cases by the judges' scores of the diagnosis, once."""
        section = self.file.sections.experiments.mitigation
        if section is None or section.choose not in RATED_FIRST or self._chosen():
            return
        baseline = design.diagnosis(self.file, sources)
        open_calls = self.rating.open(self.design.assignments(baseline, self._judges()))
        if open_calls or not baseline:
            log.info(
                f"the mitigation's cases are chosen when the diagnosis is rated: {len(open_calls):,} answers missing"
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
        log.info(f"{len(sample.probabilities):,} of {len(eligible):,} edits are repeated, chosen by {section.choose}")

    # -- stages --------------------------------------------------------------------------------------------

    def edit(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Make the edits that are not stored yet; retry failed ones."""
        if "edit" not in self.stages:
            return
        self.editing.run(requests, sources, run_id, collect, self._price)

    def measure(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Measure the pairs that are not measured yet."""
        if "measure" not in self.stages:
            return
        stage = MeasuringStage(self.file, self.store, self.design.instruments(sources, self.python_instruments))
        stage.leases = self.editing.leases
        stage.run(requests, run_id, collect)
        self.stopped_instruments |= stage.stops

    def rate(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Ask the judges about edits they have not answered yet; wait for open batch jobs."""
        raters = self._judges()
        self._rate(self.design.assignments(requests, raters), self._batches(raters, run_id), sources, run_id)

    def _rate(
        self, assigned: Sequence[Assignment], batches: Batches | None, sources: Mapping[str, Source], run_id: int
    ) -> None:
        self.rating.run("rate", assigned, sources, run_id, collect, batches, by_job=self.batch)

    def rerate(
        self,
        title: str,
        raters: Sequence[JudgeRater],
        requests: Sequence[Request],
        sources: Mapping[str, Source],
        run_id: int,
    ) -> None:
        """Ask judges about edits in another way than the study does, each under its own revision."""
        self.open_budgets(raters)
        self.rating.asking = self.asking
        planner = Planner(self.file, sources)
        assigned = [planner.about_edit(rater, request) for request in requests for rater in raters]
        self.rating.run(title, assigned, sources, run_id, collect)

    # -- money ---------------------------------------------------------------------------------------------

    def open_budgets(self, raters: Sequence[JudgeRater], by_job: frozenset[str] = frozenset()) -> None:
        """Count the cost of these judges from now on; jobs count the cost of those asked by batch job."""
        sections = {section.id: section for section in self.file.sections.judges}
        for rater in raters:
            section = sections[rater.id]
            if plugins.is_remote("judges", section.kind) and rater.id not in self.accounts and rater.id not in by_job:
                price = self._known(self.prices.tokens(section.kind, section.settings), section.id)
                expected = self.prices.reserve(price, self.store.tokens(rater.id))
                self.accounts[rater.id] = Account(self.budget, price, expected)

    def _batches(self, raters: Sequence[JudgeRater], run_id: int) -> Batches:
        """Return the batch jobs of this run; calls and jobs count against the budget."""
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
        self.open_budgets(raters, frozenset(judges) if self.batch else frozenset())
        counters = [partial(getattr, r.judge, "tokens") for r in remote if hasattr(r.judge, "tokens")]
        meter = Meter(self.budget, counters)
        each = {rater: self.prices.reserve(price, self.store.tokens(rater)) for rater, price in prices.items()}
        batches = Batches(self.store, self.asking, run_id, judges, prices, each, meter)
        batches.give_up(self.give_up)
        return batches

    def _check_prices(self) -> None:
        """Raise an error if money is limited and a price is not known, before anything is started."""
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
        """Return dollars per token in and out of a model that describes portraits; empty if none is called."""
        extractor = plugins.build("extractors", plugged.kind, plugged.settings)
        if not isinstance(extractor, VLMExtractor):
            return {}
        return self._known(self.prices.describing(plugged.settings), f"extractor '{extractor.model.model}'")

    def _price(self, section: EditorSection) -> float:
        """Return dollars per edit of a remote service."""
        return self._known(self.prices.edit(section.plugin, section.settings), section.id) or 0.0

    def _known(self, price: T | None, name: str) -> T | None:
        """Return the price; raise an error if it is not known and money is limited."""
        self.budget.priced &= price is not None
        if price is None and self.budget.max_cost is not None:
            raise EvenEditError(
                f"--max-cost needs the price of '{name}', which the price file of {self.prices.date} lacks. "
                "Try: --prices FILE, or --max-calls"
            )
        return price


def _pilot(requests: Sequence[Request], unfinished: Container[str]) -> list[Request]:
    """Return a few edits of each editor that are not made or not rated yet."""
    counts: Counter[str] = Counter({NULL_PAIR_EDITOR: PILOT})
    pilot = []
    for request in requests:
        if request.id in unfinished and counts[request.editor] < PILOT:
            counts[request.editor] += 1
            pilot.append(request)
    return pilot

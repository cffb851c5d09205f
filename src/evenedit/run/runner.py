"""The stages in order. Read this first.

sources ─▶ requests ─▶ edit ─▶ measure ─▶ rate ─▶ (people, in the survey) ─▶ table ─▶ (statistics, report)

Where the mitigation asks for cases that drifted, they are chosen, edited and rated once the diagnosis is rated.

Each stage looks at what the store already holds and does the rest, so a run can be stopped or killed at any
moment and started again. The thread that runs the study is the only writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from PIL.Image import Image

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case, Reply
from evenedit.core.log import log
from evenedit.core.progress import Progress
from evenedit.core.provenance import provenance
from evenedit.core.records import Condition, Experiment, Outcome, Question, Request, Source, Status
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment
from evenedit.design.study_design import RATED_FIRST, StudyDesign
from evenedit.editors.python import GivenEditor
from evenedit.judges.asking import BACKOFF, Asking, checked
from evenedit.judges.batch_jobs import Batches, BatchJudge, Item, takes_batches
from evenedit.judges.cache import ReplyCache
from evenedit.judges.feature_prompts import Extractor, extractor_id
from evenedit.judges.python import GivenJudge
from evenedit.judges.raters import JudgeRater
from evenedit.protocol import questions_for
from evenedit.protocol.rubric import IDENTITY
from evenedit.providers.budget import Budget, Meter
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine, concerns
from evenedit.run import executors
from evenedit.run.executors import in_lanes
from evenedit.run.measuring import MeasuringStage
from evenedit.run.summary import RunSummary, summarise
from evenedit.run.worker import EditTask, WorkerSetup
from evenedit.storage.store import Answered, Store

COMMIT_EVERY = 0.1
"""Seconds: results that come faster are committed together."""
T = TypeVar("T")
Result = TypeVar("Result")


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
        self.given_editors = editors
        """Objects by the id of their section; where there are any, they are the run's editors."""
        self.given_judges = judges
        """The same for judges."""

    def run(self) -> RunSummary:
        """All stages, from wherever the last run stopped."""
        if not self.file.sections.editors:
            raise EvenEditError(
                "the study names no editor yet; add [[editors]] and [experiments.diagnosis] to study.toml, or give one "
                'from Python: study.run(editors={"mine": editor})'
            )
        with self.store.locked():
            self.store.images.sweep()
            run_id = self.store.start_run(provenance(study=self.file.hash))
            sources = self.load_sources()
            requests = self.request(sources)
            self.edit(requests, sources, run_id)
            self.measure(requests, sources, run_id)
            self.rate(requests, sources, run_id)
            if self._choose_by_scores(sources):
                requests = self.request(sources)
                self.edit(requests, sources, run_id)
                self.measure(requests, sources, run_id)
                self.rate(requests, sources, run_id)
            self.store.finish_run(run_id)
            summary = summarise(self.store, requests, self.design.assignments(requests, self._judges()))
            if self.budget.calls:
                log.info(f"calls of this run: {self.budget}")
            if self.budget.spent:
                log.info("the budget is spent: what was made is stored; run again with more to go on")
        return summary

    def _editors(self) -> list[EditorSection]:
        """The editors of this run."""
        given = self.given_editors
        return [e for e in self.file.sections.editors if given is None or e.id in given]

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
        wanted = digest(section.model_dump(mode="json"))
        known = self.store.fact("sources")
        if known == wanted:
            return self.store.sources()
        if known is not None:
            raise EvenEditError(
                "the [sources] of study.toml changed after the study had begun; its edits belong to the former "
                "portraits. Restore the section, or begin a new study in another folder"
            )
        log.info("reading the portraits")
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
        self._describe(sources)
        requests = self.design.planned(sources)
        self.store.save_requests(requests)
        ids = {section.id for section in self._editors()}
        return [r for r in requests if r.editor in ids]

    def _describe(self, sources: Mapping[str, Source]) -> None:
        """Write a feature prompt for every portrait among the mitigation cases."""
        section = self.file.sections.experiments.mitigation
        if section is None:
            return
        baseline = design.diagnosis(self.file, sources)
        cases = self.design.mitigation_cases(baseline, sources, keep=True)
        described = dict.fromkeys(c.source_ids[0] for c in cases)
        for plugged in section.extractors:
            ident = extractor_id(plugged.kind, plugged.settings)
            known = self.store.features(ident)
            extractor: Extractor = plugins.build("extractors", plugged.kind, plugged.settings)
            for source in described:
                if source not in known:
                    self._extract(ident, extractor, sources[source])

    def _extract(self, ident: str, extractor: Extractor, source: Source) -> None:
        try:
            feature = extractor.extract(self.store.images.open(source.image))
        except Failed as error:  # this portrait's cases wait for the next run
            log.info(f"no feature prompt for {source.id}: {error}")
            return
        if feature.text:
            detail = {**feature.dimensions, "flags": list(feature.flags)}
            self.store.save_feature(source.id, ident, feature.text, detail)
        else:
            log.info(f"no feature prompt for {source.id}: {', '.join(feature.flags) or 'the extractor gave none'}")

    def _choose_by_scores(self, sources: Mapping[str, Source]) -> bool:
        """Draw the cases by the judges' scores of the diagnosis, once; return whether that was done now."""
        section = self.file.sections.experiments.mitigation
        if section is None or section.choose not in RATED_FIRST or self.store.cases(RATED_FIRST[section.choose]):
            return False
        baseline = design.diagnosis(self.file, sources)
        open_calls = self._open(self.design.assignments(baseline, self._judges()))
        if open_calls or not baseline:
            log.info(
                f"the mitigation's cases are chosen once the diagnosis is rated: {len(open_calls):,} answers to come"
            )
            return False
        ensemble = self.file.sections.ensemble
        scores = combine(self.design.table(), {"diagnosis": ensemble.diagnosis}, "exclude")
        able = {e.id for e in self.file.editors(Experiment.MITIGATION)}
        reasons = dict(zip(scores.edits["request_id"], concerns(scores, self.file.rates).tolist(), strict=True))
        wanted = design.drifted(scores, self.file.rates) if section.choose == "drift" else set(reasons)
        eligible = [r for r in baseline if r.id in wanted and r.editor in able]
        if not eligible:
            log.info("no edit was rated as drifted, so there is nothing to mitigate")
            return False
        name, size = RATED_FIRST[section.choose], min(section.cases, len(eligible))
        sample = design.sample_cases(name, self.file, eligible, sources, size, section.choose, reasons)
        self.store.save_cases(name, sample.probabilities)
        log.info(
            f"{len(sample.probabilities):,} of {len(eligible):,} edits are tried again, chosen by {section.choose}"
        )
        return True

    # -- edit ----------------------------------------------------------------------------------------------

    def edit(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Make every edit that is not there yet; failed ones are tried again.

        One editor after the other, so that only one model's weights are loaded at a time.
        """
        done = {
            ident
            for ident, edit in self.store.edits().items()
            if edit.outcome is not Outcome.FAILED and (edit.image is None or edit.image in self.store.images)
        }
        for section in self._editors():
            tasks = [
                EditTask(r, tuple(sources[s].image for s in r.source_ids)) for r in requests if r.editor == section.id
            ]
            left = [t for t in tasks if t.request.id not in done]
            if left:
                setup = WorkerSetup(
                    section.plugin,
                    self.file.located(section.settings),
                    self.store.images_url,
                    self.file.sections.executor.retries,
                    BACKOFF,
                )
                given = (self.given_editors or {}).get(section.id)
                batches = executors.edit(self.file.sections.executor, setup, self._affordable(section, left), given)
                save = partial(self.store.save_edits, run_id=run_id)
                self._collect(f"edit {section.id}", len(tasks), len(tasks) - len(left), batches, save)

    def _affordable(self, section: EditorSection, tasks: Sequence[EditTask]) -> Iterable[EditTask]:
        """The edits the budget allows: all of them unless they are made by somebody else's service."""
        if not plugins.is_remote("editors", section.plugin):
            return tasks
        each = self._known(self.prices.edit(section.plugin, section.settings), section.id)
        return self.budget.admit(tasks, each)

    def _known(self, price: T | None, name: str) -> T | None:
        """A price, which must be known where money is limited."""
        self.budget.priced &= price is not None
        if price is None and self.budget.max_cost is not None:
            raise EvenEditError(
                f"--max-cost needs the price of '{name}', which the price file of {self.prices.date} lacks. "
                "Try: --prices FILE, or --max-calls"
            )
        return price

    # -- measure -------------------------------------------------------------------------------------------

    def measure(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Measure every pair that is not measured yet."""
        MeasuringStage(self.file, self.store, self.design.instruments(sources)).take(requests, run_id, self._collect)

    # -- rate ----------------------------------------------------------------------------------------------

    def rate(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Ask every judge about every edit it has not answered yet; what open batch jobs ask is waited for."""
        raters = self._judges()
        batches = self._batches(raters, run_id)
        self._ask("rate", self.design.assignments(requests, raters), sources, run_id, batches)

    def ask_again(
        self,
        title: str,
        raters: Sequence[JudgeRater],
        requests: Sequence[Request],
        sources: Mapping[str, Source],
        run_id: int,
    ) -> None:
        """Ask judges about edits otherwise than the study does: each under a revision of its own."""
        self._ask(title, [Assignment(r, rater) for r in requests for rater in raters], sources, run_id)

    def watch(self, raters: Sequence[JudgeRater]) -> None:
        """Count what these judges of the study cost from now on."""
        wanted = {rater.id: rater for rater in raters}
        for section in (s for s in self.file.sections.judges if s.id in wanted):
            price = self._known(self.prices.tokens(section.kind, section.settings), section.id)
            if price and plugins.is_remote("judges", section.kind):
                self.budget.watch(partial(_token_cost, wanted[section.id].judge, price))

    def _batches(self, raters: Sequence[JudgeRater], run_id: int) -> Batches:
        """The batch jobs of this run, and what calls and jobs cost under the eyes of the budget."""
        sections = {section.id: section for section in self.file.sections.judges}
        remote = [r for r in raters if plugins.is_remote("judges", sections[r.id].kind)]
        judges, prices = {}, {}
        for rater in remote:
            section, by_job = sections[rater.id], takes_batches(rater.judge)
            if isinstance(rater.judge, BatchJudge) and by_job:
                judges[rater.id] = rater.judge
            by_job &= self.batch
            price = self._known(self.prices.tokens(section.kind, section.settings, batch=by_job), section.id)
            if price:
                prices[rater.id] = price
                if not by_job:
                    self.budget.watch(partial(_token_cost, rater.judge, price))
        counters = [partial(getattr, r.judge, "tokens") for r in remote if hasattr(r.judge, "tokens")]
        meter = Meter(self.budget, counters)
        each = {rater: self.prices.reserve(price, self.store.tokens(rater)) for rater, price in prices.items()}
        batches = Batches(self.store, self._asking(), run_id, judges, prices, each, meter)
        batches.give_up(self.give_up)
        return batches

    def _asking(self) -> Asking:
        return Asking(self.budget, self.cache, self.file.sections.executor.retries)

    def _open(self, assigned: Sequence[Assignment]) -> list[Assignment]:
        """Those of the assigned whose edit is to come, or came and has no answer yet."""
        edits = self.store.edits()
        answered = self._answered(assigned)
        return [
            s
            for s in assigned
            if s.request.id not in edits
            or edits[s.request.id].outcome is Outcome.FAILED
            or (edits[s.request.id].outcome is Outcome.EDITED and s.key not in answered)
        ]

    def _answered(self, assigned: Sequence[Assignment]) -> set[tuple[str, str, str]]:
        """JudgeRater, revision and request of every call that ended, however, but for failures."""
        return {
            (rater, revision, ident)
            for rater, revision in {(s.rater.id, s.revision) for s in assigned}
            for ident, status in self.store.answered(rater, revision).items()
            if status is not Status.FAILED
        }

    def _ask(
        self,
        title: str,
        assigned: Sequence[Assignment],
        sources: Mapping[str, Source],
        run_id: int,
        batches: Batches | None = None,
    ) -> None:
        edits = self.store.edits()
        edited = {ident for ident, edit in edits.items() if edit.outcome is Outcome.EDITED}
        wanted = [s for s in assigned if s.request.id in edited and (s.baseline is None or s.baseline.id in edited)]
        asking = self._asking()

        def output(request: Request) -> Image:
            image = edits[request.id].image
            assert image is not None
            return self.store.images.open(image)

        def questions(assignment: Assignment) -> Sequence[Question]:
            if assignment.baseline is not None:
                return (IDENTITY,)
            return questions_for(assignment.request.experiment, self.file.prompt(assignment.request.prompt_id))

        def case(assignment: Assignment) -> Case:
            request, prompt = assignment.request, self.file.prompt(assignment.request.prompt_id)
            shown = [output(request)]
            if assignment.baseline is not None:
                shown.insert(0 if assignment.baseline_first else 1, output(assignment.baseline))
            made = Case(
                [self.store.images.open(sources[s].image) for s in request.source_ids],
                shown[0],
                prompt,
                prompt.swapped_text if request.condition is Condition.SWAPPED and prompt.swapped_text else prompt.text,
                sources[request.source_ids[0]].attributes if assignment.rater.sees_labels else None,
                shown[1] if len(shown) > 1 else None,
            )
            return assignment.rater.shown(made)

        def work(assignment: Assignment) -> Answered | None:
            rater, asked = assignment.rater, questions(assignment)
            shown = case(assignment)
            try:
                reply = asking.reply(rater.id, rater.judge, shown, asked)
                if reply is None:
                    return None
                reply = checked(reply, asked)
            except EvenEditError:
                raise
            except Exception as error:
                reply = Reply(Status.FAILED, reason=f"{type(error).__name__}: {error}")
            return Answered(assignment.request.id, rater.id, assignment.revision, rater.kind, reply)

        if batches is not None:
            batches.collect({s.key: questions(s) for s in wanted})
        answered = self._answered(wanted)
        if batches is not None and self.batch:
            batches.submit([Item(s.key, partial(case, s), questions(s)) for s in wanted if s.key not in answered])
            answered = self._answered(wanted)
        waiting = batches.waiting() if batches is not None else set()
        by_job = batches.judges if batches is not None and self.batch else {}
        now = [s for s in wanted if s.key not in waiting and s.rater.id not in by_job]
        todo = [s for s in now if s.key not in answered]
        replies = ([answer for answer in batch if answer is not None] for batch in in_lanes(self._lanes(todo), work))
        save = partial(self.store.save_answers, run_id=run_id)
        self._collect(
            title,
            len(now),
            len(now) - len(todo),
            replies,
            save,
            batches.meter.__str__ if batches is not None else None,
        )
        if batches is not None and self.batch:
            batches.wait({s.key: questions(s) for s in wanted})
        elif waiting:
            log.info(f"{len(waiting):,} ratings are in open batch jobs; a later run collects them once they are there")

    def _lanes(self, assigned: Sequence[Assignment]) -> list[tuple[Iterable[Assignment], int]]:
        """A lane for each service, and one for all that is computed here; each ends when the budget is spent."""
        executor, lanes = self.file.sections.executor, dict[str, list[Assignment]]()
        for assignment in assigned:
            lanes.setdefault(
                assignment.rater.id if getattr(assignment.rater.judge, "remote", False) else "", []
            ).append(assignment)
        return [
            (takewhile(lambda _: not self.budget.spent, lane), executor.calls if name else executor.workers)
            for name, lane in lanes.items()
        ]

    # -- loops ---------------------------------------------------------------------------------------------

    def _collect(
        self,
        title: str,
        total: int,
        done_before: int,
        batches: Iterator[list[Result]],
        save: Callable[[list[Result]], None],
        note: Callable[[], str] | None = None,
    ) -> None:
        """Commit what comes back, soon and together."""
        waiting: list[Result] = []
        committed = time.monotonic()
        with Progress(title, total, done_before, note) as progress:
            try:
                for batch in batches:
                    waiting += batch
                    if time.monotonic() - committed > COMMIT_EVERY:
                        save(waiting)
                        waiting, committed = [], time.monotonic()
                    progress.advance(len(batch))
            finally:
                save(waiting)


def _token_cost(judge: Any, price: Mapping[str, float]) -> float:
    """Dollars a judge has cost so far, by the tokens it counted."""
    return float(sum(judge.tokens[way] * price[way] for way in price))

"""The stages in order. Read this first.

sources ─▶ requests ─▶ edit ─▶ measure ─▶ rate ─▶ people ─▶ table ─▶ (statistics, report)

Each stage looks at what the store already holds and does the rest, so a run can be stopped or killed at any
moment and started again. The thread that runs the pipeline is the only writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from PIL.Image import Image

from evenedit import design, executors, plugins
from evenedit.budget import Budget
from evenedit.executors import in_threads
from evenedit.features import Extractor, extractor_id
from evenedit.judges.prompt import prompt_hash
from evenedit.measurements import Gauge, Measurements
from evenedit.prices import Prices
from evenedit.progress import Progress, say
from evenedit.protocol import questions_for
from evenedit.provenance import provenance
from evenedit.ratings import EDIT_COLUMNS, MISSING, NOT_ASKED, QUESTION_IDS, STATUSES, RatingTable
from evenedit.records import (
    SIMULATED,
    Case,
    Edit,
    Experiment,
    Failed,
    Judge,
    Kind,
    Outcome,
    Question,
    Reply,
    Request,
    Source,
    Status,
    UserError,
    digest,
)
from evenedit.store import Answered, Store
from evenedit.study import EditorSection, JudgeSection, Study
from evenedit.worker import Task, Workshop, retry

COMMIT_EVERY = 0.1
"""Seconds: results that come faster are committed together."""
BACKOFF = 0.5
"""Seconds before the first retry; doubled each time."""
T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Rater:
    """Somebody who answers questions about edits."""

    id: str
    revision: str
    kind: Kind
    judge: Judge
    sees_labels: bool = False


class Pipeline:
    """A study and its store, and the stages between them."""

    def __init__(self, study: Study, store: Store, budget: Budget | None = None, prices: Prices | None = None) -> None:
        self.study = study
        self.store = store
        self.budget = budget or Budget()
        self.prices = prices or Prices.load()

    def run(self) -> None:
        """All stages, from wherever the last run stopped."""
        with self.store.locked():
            self.store.images.sweep()
            run_id = self.store.start_run(provenance(study=self.study.hash))
            sources = self.load_sources()
            requests = self.request(sources)
            self.edit(requests, sources, run_id)
            self.measurements(sources).take(requests, run_id, self._collect)
            self.rate(requests, sources, run_id)
            self.ask_people(requests, sources, run_id)
            self.store.finish_run(run_id)
            if self.budget.calls:
                say(f"calls of this run: {self.budget}")
            if self.budget.spent:
                say("the budget is spent: what was made is stored; run again with more to go on")

    # -- sources -------------------------------------------------------------------------------------------

    def load_sources(self) -> dict[str, Source]:
        """The portraits, stored on the first run and unchanged ever after."""
        section = self.study.file.sources
        wanted = digest(section.model_dump(mode="json"))
        known = self.store.fact("sources")
        if known == wanted:
            return self.store.sources()
        if known is not None:
            raise UserError(
                "the [sources] of study.toml changed after the study had begun; its edits belong to the former "
                "portraits. Restore the section, or begin a new study in another folder"
            )
        say("reading the portraits")
        sources = [
            Source(ident, self.store.images.put(image), attributes, origin)
            for ident, attributes, origin, image in self._portraits()
        ]
        self.store.save_sources(sources)
        self.store.set_fact("sources", wanted)
        return self.store.sources()

    def preview_sources(self) -> dict[str, Source]:
        """The portraits' ids and labels, without storing anything."""
        return self.store.sources() or {
            ident: Source(ident, "", attributes, origin) for ident, attributes, origin, _ in self._portraits()
        }

    def _portraits(self) -> Iterable[tuple[str, dict[str, str], str, Image]]:
        section = self.study.file.sources
        source = plugins.build("sources", section.kind, self.study.located(section.settings))
        portraits: Iterable[tuple[str, dict[str, str], str, Image]] = source.portraits()
        return portraits

    # -- requests ------------------------------------------------------------------------------------------

    def request(self, sources: Mapping[str, Source]) -> list[Request]:
        """Everything to be edited, kept in the store; feature prompts are written on the way."""
        self._describe(sources)
        requests = self.planned(sources)
        self.store.save_requests(requests)
        return requests

    def planned(self, sources: Mapping[str, Source]) -> list[Request]:
        """The requests of the study as it stands; those that need a feature prompt come when it is there."""
        baseline = design.diagnosis(self.study, sources)
        requests = [*baseline, *design.floor(self.study, sources), *design.stereotype(self.study, sources)]
        section = self.study.file.experiments.mitigation
        if section:
            texts = self.store.features(extractor_id(section.extractor.kind, section.extractor.settings))
            cases = self.cases("mitigation", baseline, sources, section.cases)
            cases = [c for c in cases if c.source_ids[0] in texts]
            requests += design.mitigation(self.study, cases, texts)
        return requests

    def _describe(self, sources: Mapping[str, Source]) -> None:
        """Write a feature prompt for every portrait among the mitigation cases."""
        section = self.study.file.experiments.mitigation
        if section is None:
            return
        baseline = design.diagnosis(self.study, sources)
        cases = self.cases("mitigation", baseline, sources, section.cases, keep=True)
        ident = extractor_id(section.extractor.kind, section.extractor.settings)
        known = self.store.features(ident)
        extractor: Extractor = plugins.build("extractors", section.extractor.kind, section.extractor.settings)
        for source in dict.fromkeys(c.source_ids[0] for c in cases):
            if source in known:
                continue
            try:
                feature = extractor.extract(self.store.images.open(sources[source].image))
            except Failed as error:  # this portrait's cases wait for the next run
                say(f"no feature prompt for {source}: {error}")
                continue
            if feature.text:
                detail = {**feature.dimensions, "flags": list(feature.flags)}
                self.store.save_feature(source, ident, feature.text, detail)
            else:
                say(f"no feature prompt for {source}: {', '.join(feature.flags) or 'the extractor gave none'}")

    def cases(
        self,
        name: str,
        baseline: Sequence[Request],
        sources: Mapping[str, Source],
        size: int,
        *,
        keep: bool = False,
    ) -> list[Request]:
        """The sampled cases of the diagnosis; `keep` stores them with their inclusion probabilities."""
        able = {e.id for e in self.study.editors(name)} if name == Experiment.MITIGATION else None
        eligible = [r for r in baseline if able is None or r.editor in able]
        sample = design.sample_cases(name, self.study, eligible, sources, size)
        if keep:
            self.store.save_cases(name, sample.probabilities)
        return [r for r in baseline if r.id in sample.probabilities]

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
        for section in self.study.file.editors:
            tasks = [Task(r, tuple(sources[s].image for s in r.source_ids)) for r in requests if r.editor == section.id]
            left = [t for t in tasks if t.request.id not in done]
            if left:
                workshop = Workshop(
                    section.plugin,
                    self.study.located(section.settings),
                    self.store.images_url,
                    self.study.file.executor.retries,
                    BACKOFF,
                )
                batches = executors.edit(self.study.file.executor, workshop, self._affordable(section, left))
                save = partial(self.store.save_edits, run_id=run_id)
                self._collect(f"edit {section.id}", len(tasks), len(tasks) - len(left), batches, save)

    def _affordable(self, section: EditorSection, tasks: Sequence[Task]) -> Iterable[Task]:
        """The edits the budget allows: all of them unless they are made by somebody else's service."""
        if not plugins.is_remote("editors", section.plugin):
            return tasks
        each = self._known(self.prices.edit(section.plugin, section.settings), section.id)
        return self.budget.admit(tasks, each)

    def _known(self, price: T | None, name: str) -> T | None:
        """A price, which must be known where money is limited."""
        if price is None and self.budget.max_cost is not None:
            raise UserError(
                f"--max-cost needs the price of '{name}', which the price file of {self.prices.date} lacks. "
                "Try: --prices FILE, or --max-calls"
            )
        return price

    # -- measure -------------------------------------------------------------------------------------------

    def measurements(self, sources: Mapping[str, Source]) -> Measurements:
        """The study's instruments."""
        return Measurements(self.study, self.store, sources)

    # -- rate ----------------------------------------------------------------------------------------------

    def raters(self) -> list[Rater]:
        """The study's judges, primary first."""
        return [
            Rater(
                j.id,
                self._revision(j),
                Kind.VLM,
                plugins.build("judges", j.kind, j.settings),
                sees_labels=not self.study.blind(j),
            )
            for j in self.study.file.judges
        ]

    def _revision(self, judge: JudgeSection) -> str:
        """Names all that shapes a judge's answers: a changed setting or prompt makes new ratings, not a silent mix."""
        prompt = prompt_hash() if plugins.is_remote("judges", judge.kind) else ""
        return digest([judge.kind, self.study.blind(judge), judge.settings, prompt])[:8]

    def rate(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Ask every judge about every edit it has not answered yet."""
        raters = self.raters()
        for section, rater in zip(self.study.file.judges, raters, strict=True):
            price = self._known(self.prices.tokens(section.kind, section.settings), section.id)
            if price and plugins.is_remote("judges", section.kind):
                self.budget.watch(partial(_token_cost, rater.judge, price))
        self._ask("rate", [(r, rater) for r in requests for rater in raters], sources, run_id)

    def people(self) -> list[Rater]:
        """Simulated people, where the study asks for a dry run of its survey."""
        survey = self.study.file.survey
        if survey is None:
            return []
        return [
            Rater(
                f"{SIMULATED}person-{number:02d}",
                digest(survey.settings)[:8],
                Kind.HUMAN,
                plugins.build("judges", "simulated", survey.settings | {"seed": 1000 + number}),
            )
            for number in range(1, survey.simulated_people + 1)
        ]

    def ask_people(self, requests: Sequence[Request], sources: Mapping[str, Source], run_id: int) -> None:
        """Have simulated people rate the sampled cases, each case by several of them."""
        survey, people = self.study.file.survey, self.people()
        if survey is None or not people:
            return
        baseline = [r for r in requests if r.experiment is Experiment.DIAGNOSIS and r.condition == "baseline"]
        cases = self.cases("survey", baseline, sources, survey.cases, keep=True)
        seats = [
            (case, people[(number * survey.raters_per_item + seat) % len(people)])
            for number, case in enumerate(cases)
            for seat in range(min(survey.raters_per_item, len(people)))
        ]
        self._ask("people", seats, sources, run_id)

    def _ask(
        self, title: str, seats: Sequence[tuple[Request, Rater]], sources: Mapping[str, Source], run_id: int
    ) -> None:
        edits = self.store.edits()
        answered = {
            (rater.id, ident)
            for rater in {rater.id: rater for _, rater in seats}.values()
            for ident, status in self.store.answered(rater.id, rater.revision).items()
            if status is not Status.FAILED
        }
        wanted = [(r, rater) for r, rater in seats if r.id in edits and edits[r.id].outcome is Outcome.EDITED]

        retries = self.study.file.executor.retries

        def work(seat: tuple[Request, Rater]) -> Answered:
            request, rater = seat
            prompt = self.study.prompt(request.prompt_id)
            questions = questions_for(request.experiment, prompt)
            image = edits[request.id].image
            assert image is not None
            case = Case(
                [self.store.images.open(sources[s].image) for s in request.source_ids],
                self.store.images.open(image),
                prompt,
                prompt.swapped_text if request.condition == "swapped" and prompt.swapped_text else prompt.text,
                sources[request.source_ids[0]].attributes if rater.sees_labels else None,
            )
            try:
                reply = checked(retry(lambda: rater.judge.judge(case, questions), retries, BACKOFF), questions)
            except UserError:
                raise
            except Exception as error:
                reply = Reply(Status.FAILED, reason=f"{type(error).__name__}: {error}")
            return Answered(request.id, rater.id, rater.revision, rater.kind, reply)

        todo = [(r, rater) for r, rater in wanted if (rater.id, r.id) not in answered]
        batches = in_threads(self.budget.admit(todo), work, self.study.file.executor.workers)
        save = partial(self.store.save_answers, run_id=run_id)
        self._collect(title, len(wanted), len(wanted) - len(todo), batches, save)

    # -- loops ---------------------------------------------------------------------------------------------

    def _collect(
        self,
        title: str,
        total: int,
        done_before: int,
        batches: Iterator[list[Result]],
        save: Callable[[list[Result]], None],
    ) -> None:
        """Commit what comes back, soon and together."""
        waiting: list[Result] = []
        committed = time.monotonic()
        with Progress(title, total, done_before) as progress:
            try:
                for batch in batches:
                    waiting += batch
                    if time.monotonic() - committed > COMMIT_EVERY:
                        save(waiting)
                        waiting, committed = [], time.monotonic()
                    progress.advance(len(batch))
            finally:
                save(waiting)

    # -- table ---------------------------------------------------------------------------------------------

    def table(self) -> RatingTable:
        """Everything rated so far, as the statistics read it."""
        sources = self.store.sources()
        wanted = {r.id: r for r in self.planned(sources)}
        edits = self.store.edits()
        rows = {ident: i for i, ident in enumerate(i for i in wanted if i in edits)}
        frame = pd.DataFrame(
            [_row(wanted[i], edits[i], sources) for i in rows],
            columns=list(EDIT_COLUMNS),
        )
        measured = self.measurements(sources)
        raters: list[Rater | Gauge] = [*self.raters(), *measured.gauges, *self.people()]
        values = np.full((len(raters), len(rows), len(QUESTION_IDS)), MISSING, dtype=np.int8)
        status = np.full((len(raters), len(rows)), NOT_ASKED, dtype=np.int8)
        for number, rater in enumerate(raters):
            for ident, state in self.store.answered(rater.id, rater.revision).items():
                if ident in rows:
                    status[number, rows[ident]] = STATUSES.index(state)
            for rating in self.store.ratings(rater.id, rater.revision):
                if rating.request_id in rows and rating.value is not None:
                    question = QUESTION_IDS.index(rating.question_id)
                    values[number, rows[rating.request_id], question] = rating.value
        names, kinds = tuple(r.id for r in raters), tuple(r.kind for r in raters)
        return RatingTable(frame, names, kinds, values, status, measured.readings(rows))


def _token_cost(judge: Any, price: Mapping[str, float]) -> float:
    """Dollars a judge has cost so far, by the tokens it counted."""
    return float(sum(judge.tokens[way] * price[way] for way in price))


def checked(reply: Reply, questions: Sequence[Question]) -> Reply:
    """A reply with an impossible value is unparseable as a whole: nothing is clamped, nothing guessed."""
    if reply.status is not Status.SCORED:
        return replace(reply, values={})
    for question in questions:
        value = reply.values.get(question.id)
        if value is not None and (type(value) is not int or not 1 <= value <= len(question.labels)):
            reason = f"{question.id} is {value!r}, not 1 to {len(question.labels)}"
            return Reply(Status.UNPARSEABLE, reason=reason, raw=reply.raw)
    return replace(reply, values={q.id: reply.values.get(q.id) for q in questions})


def _row(request: Request, edit: Edit, sources: Mapping[str, Source]) -> dict[str, object]:
    attributes = sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
    shift = design.PLACEBO_SHIFT if request.condition == "placebo" else 0
    return {
        "request_id": request.id,
        "experiment": request.experiment.value,
        "condition": request.condition,
        "editor": request.editor,
        "source_id": "+".join(request.source_ids),
        "prompt_id": request.prompt_id,
        "seed": request.seed - shift,  # a placebo edit is paired with the baseline it repeats
        "race": attributes.get("race", ""),
        "gender": attributes.get("gender", ""),
        "age": attributes.get("age", ""),
        "outcome": edit.outcome.value,
    }

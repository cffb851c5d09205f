"""A run as the web app shows it while it goes on: stages, pace, failures, cost, and the rates so far."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.records import NULL_PAIR_EDITOR, WITHOUT_PICTURE, Edit, Outcome, Request, Status
from evenedit.core.submissions import SubmissionState
from evenedit.judges.feature_prompts import extractor_id
from evenedit.operations.plan import duration
from evenedit.operations.throughput import Throughput
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.providers.prices import Prices
from evenedit.ratings.combine import combine
from evenedit.results.words import count, phrase
from evenedit.run.reasons import grouped
from evenedit.run.summary import replies
from evenedit.stats.disparity.diagnosis import diagnosis_panels
from evenedit.stats.engine.crossed import CrossedPanel
from evenedit.stats.engine.estimates import estimates
from evenedit.stats.engine.measures import answers
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext

PAUSE = 50
"""Rates are not computed again before this many times the seconds that they took: a fiftieth of the time at most."""
RATINGS = "ratings by "
"""How the title of a judge's stage begins."""


@dataclass(frozen=True, slots=True)
class RunStage:
    """How far one editor, judge or instrument is."""

    title: str
    done: int
    planned: int
    failed: int
    pace: str = ""
    """How fast it goes and how long it will take, as far as that is known."""


@dataclass(frozen=True, slots=True)
class InterimRate:
    """A rate over the edits that are rated so far."""

    editor: str
    what: str
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What is to be seen of a run at one moment."""

    running: bool
    """Whether a run was begun and has not ended."""
    stages: tuple[RunStage, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why edits or ratings failed, were refused or answered in words, with how many."""
    cost: str = ""
    rates: tuple[InterimRate, ...] = ()
    rated_at: str = ""
    """When the rates were computed."""
    without_rates: str = ""
    """Why there are none, where there are none."""

    @property
    def complete(self) -> bool:
        """Whether every planned edit and rating is there."""
        return bool(self.stages) and all(stage.done == stage.planned for stage in self.stages)


@dataclass
class RunView:
    """The run of a study, looked at again after something was written."""

    study: StudyContext
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _mark: tuple[int, ...] = ()
    _look: RunSnapshot | None = None
    _paces: dict[str, Throughput] = field(default_factory=lambda: defaultdict(Throughput))
    _rates: tuple[InterimRate, ...] = ()
    _rated: tuple[int, ...] = ()
    _rated_at: str = ""
    _problem: str = ""
    _computing: bool = False
    _rest_until: float = 0.0

    def now(self) -> RunSnapshot:
        """Return how the run stands; what was committed a moment ago is in it, the rates may be older."""
        with self._lock:
            mark = self.study.store.mark()
            if self._look is None or mark != self._mark or self._look.running:
                self._mark, self._look = mark, self._take_snapshot()
            if mark != self._rated and not self._computing and time.monotonic() >= self._rest_until:
                self._computing = True
                threading.Thread(target=self._compute, args=(mark,), name="interim rates", daemon=True).start()
            return self._look

    def _take_snapshot(self) -> RunSnapshot:
        store = self.study.store
        sources, running = store.sources(), under_way(self.study)
        if not sources:
            return RunSnapshot(running)
        requests = self.study.design.planned(sources)
        edits = store.edits()
        stages = [*self._editing(requests, edits), *self._rating(requests, edits)]
        if not running:
            stages = [replace(stage, pace="") for stage in stages]
        reasons = tuple(_reasons(self.study, requests, edits))
        cost, why = cost_so_far(self.study, edits), self._without_rates(stages)
        return RunSnapshot(running, tuple(stages), reasons, cost, self._rates, self._rated_at, why)

    def _without_rates(self, stages: Sequence[RunStage]) -> str:
        if self._rates:
            return ""
        rating = [stage.done for stage in stages if stage.title.startswith(RATINGS)]
        if rating and not any(rating):
            return "Nothing is rated yet."
        if not self._rated_at:
            return "Interim rates are being computed."
        return self._problem or f"The ratings up to {self._rated_at} give no rate of the diagnosis."

    def _editing(self, requests: list[Request], edits: Mapping[str, Edit]) -> Iterator[RunStage]:
        planned = Counter(r.editor for r in requests)
        for editor, number in planned.items():
            ended = Counter(edits[r.id].outcome for r in requests if r.editor == editor and r.id in edits)
            done = sum(ended[outcome] for outcome in (Outcome.EDITED, *WITHOUT_PICTURE))
            title = "null pairs" if editor == NULL_PAIR_EDITOR else f"edits by {editor}"
            yield self._stage(title, done, number, ended[Outcome.FAILED])

    def _rating(self, requests: list[Request], edits: Mapping[str, Edit]) -> Iterator[RunStage]:
        """Yield the rating stage of each judge; refused edits are not rated, failed ones wait for the next run."""
        judges = self.study.design.judges()
        assigned = self.study.design.assignments(requests, judges)
        ended = list(replies(self.study.store, assigned))
        outcome = {ident: edit.outcome for ident, edit in edits.items()}
        for judge in judges:
            outcomes = [[outcome.get(ident) for ident in a.edits] for a in assigned if a.rater is judge]
            planned = [each for each in outcomes if WITHOUT_PICTURE.isdisjoint(each)]
            states = Counter(status for a, status in ended if a.rater.id == judge.id)
            done = sum(n for state, n in states.items() if state not in (None, Status.FAILED))
            waiting = sum(Outcome.FAILED in each for each in planned)
            yield self._stage(f"{RATINGS}{judge.id}", done, len(planned), states[Status.FAILED], waiting)

    def _stage(self, title: str, done: int, planned: int, failed: int, waiting: int = 0) -> RunStage:
        """Build a stage; failed and `waiting` items are not made by this run."""
        pace, left = self._paces[title], planned - done - failed - waiting
        pace.look(done)
        if left <= 0 or not pace.rate:
            return RunStage(title, done, planned, failed)
        return RunStage(title, done, planned, failed, f"{pace.rate:.2f}/s, about {duration(left / pace.rate)} left")

    def _compute(self, mark: tuple[int, ...]) -> None:
        started, rates, problem = time.monotonic(), self._rates, ""
        try:
            rates = tuple(interim_rates(self.study))
        except EvenEditError as error:
            rates, problem = (), f"The rates cannot be computed: {error}"
        finally:
            now = time.monotonic()
            with self._lock:
                self._problem = problem
                self._rates, self._rated, self._rated_at = rates, mark, time.strftime("%H:%M:%S UTC", time.gmtime())
                self._rest_until = now + PAUSE * (now - started)
                self._computing, self._mark = False, ()


def under_way(study: StudyContext) -> bool:
    """Return whether a run has started and not ended; an interrupted run has not ended."""
    runs = study.store.runs()
    return bool(runs) and runs[-1]["finished"] is None


def _reasons(study: StudyContext, requests: list[Request], edits: Mapping[str, Edit]) -> Iterator[str]:
    finished = [edits[r.id] for r in requests if r.id in edits]
    for kind in (Outcome.FAILED, Outcome.REFUSED, Outcome.NO_IMAGE):
        why = Counter(e.reason or "no reason given" for e in finished if e.outcome is kind)
        yield from (f"{count(n, 'edit')} {kind.value}: {reason}" for reason, n in grouped(why))
    judges = study.design.judges()
    assigned = study.design.assignments(requests, judges)
    for judge in judges:
        keys = {a.key for a in assigned if a.rater is judge}
        failures = {revision: study.store.failures(judge.id, revision) for revision in {key[1] for key in keys}}
        why = Counter(failures[r][subject] for _, r, subject in keys if subject in failures[r])
        yield from (f"{count(n, 'rating')} by {judge.id} failed: {reason}" for reason, n in grouped(why))


def cost_so_far(study: StudyContext, edits: Mapping[str, Edit] | None = None) -> str:
    """Describe the cost of service calls so far by the price list, and what has no price."""
    edits = study.store.edits() if edits is None else edits
    prices, usd, calls, unknown = Prices.load(), 0.0, 0, []
    submissions = study.store.submission_states()
    for section in study.file.sections.editors:
        if not plugins.is_remote("editors", section.plugin):
            continue
        requests = {r.id for r in study.store.requests().values() if r.editor == section.id}
        submitted = [state for ident, _, state in submissions if ident in requests]
        direct = requests.difference(ident for ident, _, _ in submissions)
        charged = sum(state is not SubmissionState.REJECTED for state in submitted)
        charged += sum(ident in edits and edits[ident].outcome is not Outcome.FAILED for ident in direct)
        price = prices.edit(section.plugin, section.settings)
        calls += charged
        usd += charged * (price or 0.0)
        unknown += [section.id] if price is None and charged else []
    for judge in study.file.sections.judges:
        if not plugins.is_remote("judges", judge.kind):
            continue
        for batch in (False, True):
            price_of = prices.tokens(judge.kind, judge.settings, batch=batch)
            judge_calls = [c for c in study.store.calls(judge.id) if c.via != "cache" and (c.via == "batch") is batch]
            calls += len(judge_calls)
            if price_of is None:
                unknown += [judge.id] if judge_calls and judge.id not in unknown else []
            else:
                usd += sum(c.input * price_of["input"] + c.output * price_of["output"] for c in judge_calls)
    mitigation = study.file.sections.experiments.mitigation
    for plugged in mitigation.extractors if mitigation else ():
        described = study.store.calls(extractor_id(plugged.kind, plugged.settings))
        price_of = prices.describing(plugged.settings)
        calls += len(described)
        if price_of is None:
            unknown += [f"the extractor {plugged.settings.get('model', plugged.kind)}"] if described else []
        else:
            usd += sum(c.input * price_of["input"] + c.output * price_of["output"] for c in described)
    if not calls:
        return "no call to a service yet"
    without = f"; without {', '.join(unknown)}, whose price is not known" if unknown else ""
    return f"{calls:,} calls to services, about US$ {usd:,.2f} by the prices of {prices.date}{without}"


def interim_rates(study: StudyContext) -> Iterator[InterimRate]:
    """Yield the diagnosis rates over everybody from the ratings so far."""
    table, rules = study.table(), analysis_rules(study.file)
    if table.edits.empty:
        return
    scores = combine(table, rules.ensemble, rules.missing)
    for panel in diagnosis_panels(scores, answers(scores, rules), rules):
        for e in estimates(CrossedPanel(panel), [{}], rules):
            measure = Measure(e.measure)
            if measure.kind == MeasureKind.RATE and e.value is not None and e.editor is not None:
                yield InterimRate(e.editor, phrase(measure.name), e.value, e.low, e.high, e.n)
